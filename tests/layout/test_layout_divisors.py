"""Divisors and prime factors: those of a sweep, without one."""

from __future__ import annotations

from math import prod

import pytest
from effort import calls
from hypothesis import given
from hypothesis import strategies as st

from rote.layout.divisors import divisors, prime_factors

LARGE = [10**15 + 37, 2**61 - 1, 2**63 - 25, 3037000493**2, 1_000_000_007 * 998_244_353, 2**40 - 1, 2**62, 1009**6]


@given(st.integers(1, 5000))
def test_divisors_are_those_of_a_sweep(n):
    """Law: the divisors are all numbers that divide, in ascending order."""
    assert [*divisors(n)] == [d for d in range(1, n + 1) if n % d == 0]


@pytest.mark.parametrize("n", LARGE)
def test_factors_of_large_numbers(n):
    """Law: the product of the powers is the number, and no factor has a factor of its own, by Fermat's test."""
    factors = prime_factors(n)
    assert prod(prime**power for prime, power in factors) == n
    assert all(pow(3, prime - 1, prime) == 1 for prime, _ in factors if prime != 3)


@pytest.mark.parametrize("n", LARGE)
def test_large_numbers_take_few_steps(n):
    """Law: no number below 2**63 takes more than a few fourth roots of calls; a sweep would take its square root."""
    assert calls(lambda: prime_factors.__wrapped__(n)) < 8 * n**0.25 + 2000
