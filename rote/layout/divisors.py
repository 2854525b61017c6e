"""The divisors of a number, from its prime factors, which are found without a loop to its square root.

Small primes are divided out by trial; what remains is tested by the rounds of Miller (1976) and Rabin (1980) that are
exact below 3.3e24 (Sorenson and Webster, 2015), and taken apart by the rho method of Pollard (1975).
"""

from __future__ import annotations

from math import gcd

from ..caches import memoized

__all__ = ["divisors", "prime_factors"]

_TRIED = 1 << 10
_WITNESSES = 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41


@memoized(1024)
def divisors(n: int) -> tuple[int, ...]:
    """All divisors of a positive number, ascending.

    >>> divisors(12), divisors(1), len(divisors(1_000_000_007 * 998_244_353))
    ((1, 2, 3, 4, 6, 12), (1,), 4)
    """
    every = [1]
    for prime, power in prime_factors(n):
        every = [d * prime**k for d in every for k in range(power + 1)]
    return tuple(sorted(every))


@memoized(1024)
def prime_factors(n: int) -> tuple[tuple[int, int], ...]:
    """The primes that divide a positive number, ascending, each with its power.

    >>> prime_factors(360), prime_factors(1), prime_factors(10**15 + 37)
    (((2, 3), (3, 2), (5, 1)), (), ((1000000000000037, 1),))
    """
    primes: dict[int, int] = {}
    for p in range(2, _TRIED):
        if p * p > n:
            break
        while n % p == 0:
            primes[p] = primes.get(p, 0) + 1
            n //= p
    left = [n] if n > 1 else []
    while left:
        m = left.pop()
        if _is_prime(m):
            primes[m] = primes.get(m, 0) + 1
        else:
            factor = _factor(m)
            left += [factor, m // factor]
    return tuple(sorted(primes.items()))


def _is_prime(n: int) -> bool:
    """Whether an odd number above the witnesses is a prime."""
    if n < _TRIED**2:
        return True  # all smaller factors are divided out
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for witness in _WITNESSES:
        power = pow(witness, odd, n)
        if power in (1, n - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % n
            if power == n - 1:
                break
        else:
            return False
    return True


def _factor(n: int) -> int:
    """A proper factor of a composite number."""
    shift = 0
    while True:
        shift += 1
        slow = fast = 2
        common = 1
        while common == 1:
            slow = (slow * slow + shift) % n
            fast = (fast * fast + shift) % n
            fast = (fast * fast + shift) % n
            common = gcd(slow - fast, n)
        if common != n:
            return common
