"""Twiddle factors: roots of unity to the last bits, in every octant, for large and prime numbers of points."""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache

import numpy as np
import pytest

import rote
from rote.fft.program.twiddles import factor, roots
from rote.fft.walk import Twiddle

POINTS = (1, 2, 3, 5, 7, 8, 12, 97, 1000, 4096, 360360, 1 << 20, 1_048_573, 15_485_863)
ULPS = {"F": 0.51, "D": 1.1, "G": 2.5}  # how far a part may be off; the angle of long double is rounded as well
DIGITS = 50


@cache
def pi():
    """Machin: pi / 4 = 4 atan(1/5) - atan(1/239), in integers."""
    one = 10 ** (DIGITS + 10)

    def arctan(x):
        terms, power, k = [], one // x, 1
        while power:
            terms.append(power // k * (-1) ** (k // 2))
            power, k = power // x**2, k + 2
        return sum(terms)

    return Decimal(4 * (4 * arctan(5) - arctan(239))).scaleb(-DIGITS - 10)


def cosine_and_sine(angle):
    """Taylor's series."""
    found, term, n = [Decimal(0), Decimal(0)], Decimal(1), 0
    while abs(term) > Decimal(10) ** -DIGITS:
        found[n % 2] += term * (-1) ** (n // 2)
        n += 1
        term = term * angle / n
    return found


def exact(k, points):
    """exp(-2 pi i k / points) as two decimals, from an angle of at most a quarter of a turn."""
    quarter, rest = divmod(4 * k, points)
    cosine, sine = cosine_and_sine(pi() / 2 * rest / points)
    for _ in range(quarter):
        cosine, sine = -sine, cosine
    return cosine, -sine


def as_decimal(number):
    """A float of any precision, digit for digit."""
    high = float(number)
    return Decimal(high) + Decimal(float(number - type(number)(high)))


def chosen(points):
    """Numerators in every octant: around all multiples of an eighth, and some between."""
    at = {(points * j // 8 + d) % points for j in range(8) for d in (-2, -1, 0, 1, 2)}
    between = np.random.default_rng(points).integers(0, points, 400)
    return np.array(sorted(at | set(between.tolist())))


@pytest.mark.parametrize("code", ULPS)
@pytest.mark.parametrize("points", POINTS)
def test_roots_are_exact_to_an_ulp(points, code):
    """Law: both parts of each root are off by little more than an ulp of their own, and quarters of a turn by nothing.

    Against 50 decimal digits. The pow of a rounded root would be off by as many ulps as the exponent says.
    """
    numerators = chosen(points)
    found = roots(numerators, points, np.dtype(code))
    with localcontext(prec=DIGITS):
        for k, root in zip(numerators.tolist(), found, strict=True):
            for part, wanted in zip((root.real, root.imag), exact(k, points), strict=True):
                if 4 * k % points == 0:
                    assert part == int(wanted.to_integral_value())
                    continue
                size = abs(found.real.dtype.type(wanted))
                assert abs(as_decimal(part) - wanted) <= Decimal(ULPS[code]) * as_decimal(np.spacing(size)), (k, part)


@pytest.mark.parametrize("points", POINTS[3:12])
def test_roots_are_symmetric(points):
    """Law: the root of -k is the conjugate to the last bit, but at an eighth of a turn, where cosine and sine meet."""
    k = np.arange(1, points)
    k = k[8 * k % points != 0]
    found = roots(k, points, np.dtype("D"))
    assert np.array_equal(found, found[::-1].conj())


def test_powers_of_a_root_would_be_seen():
    """The comparison can fail: repeated multiplication is off by hundreds of ulps."""
    points = 4096
    powers = np.cumprod(np.full(points, roots(np.array([1]), points, np.dtype("D"))[0]))[:-1]
    assert np.abs(powers - roots(np.arange(1, points), points, np.dtype("D"))).max() > 100 * 2**-53


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("modes", [(0, 1), (1, 0), (0, 2), (2, 1)])
def test_factors_are_the_roots_of_their_indices(modes, back):
    """Law: a rank's factor is exp(-+2 pi i step a b / points) at the global indices a and b that it holds."""
    dist = rote.parse("[(0),(1:block),()]").on((6, 12, 5), (2, 3))
    twiddle = Twiddle(*modes, weight=2, size=3, step=7, points=360, back=back)
    for rank in range(6):
        held = np.meshgrid(*dist.indices(rank), indexing="ij")
        a, b = held[modes[0]], held[modes[1]] // 2 % 3
        wanted = np.exp((2j if back else -2j) * np.pi * (7 * a * b % 360) / 360)
        found = factor(twiddle, dist, rank, np.dtype("D"))
        assert np.abs(found * np.ones(dist.local_shape(rank)) - wanted).max() < 1e-15
        assert found.size == np.prod([dist.local_shape(rank)[m] for m in modes])
