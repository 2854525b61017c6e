"""The points of an axis as products: two factors for six steps, smooth numbers, and the levels of a cyclic axis."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from math import isqrt

from rote.caches import memoized
from rote.errors import LayoutError
from rote.layout.divisors import divisors

__all__ = ["Factors", "best_factors", "levels", "padded_factors", "smooth"]


@dataclass(frozen=True, slots=True)
class Factors:
    """The points of an axis as a matrix of r rows and s columns, split over ranks by columns or by rows.

    Attributes:
        r, s: the numbers of rows and of columns.
        ranks: the number of ranks.

    >>> Factors(5, 8, 3).largest
    16
    """

    r: int
    s: int
    ranks: int

    @property
    def points(self) -> int:
        """The number of points."""
        return self.r * self.s

    @property
    def largest(self) -> int:
        """The most elements that a rank holds, split by columns or by rows."""
        return max(self.r * -(-self.s // self.ranks), self.s * -(-self.r // self.ranks))


@memoized(1024)
def best_factors(points: int, ranks: int, cyclic: bool = False, ends: bool = False) -> Factors | None:
    """The factors of a number of points with which ranks hold and move the least; None for a prime.

    Args:
        cyclic: whether the axis is elementwise cyclic at first: then nothing moves if the ranks divide s.
        ends: whether the spectrum may be elementwise cyclic: then nothing moves if the ranks divide r.

    >>> best_factors(48, 4), best_factors(24, 4, cyclic=True), best_factors(24, 4, ends=True), best_factors(47, 4)
    (Factors(r=4, s=12, ranks=4), Factors(r=6, s=4, ranks=4), Factors(r=4, s=6, ranks=4), None)
    """
    share = -(-points // ranks)

    def worth(factors: Factors) -> tuple[int, int, int]:
        moves = (not cyclic or factors.s % ranks > 0) + (not ends or factors.r % ranks > 0)
        return factors.largest + moves * share, abs(factors.r - factors.s), factors.r

    rows = divisors(points)[1:-1] if points else ()
    return min((Factors(r, points // r, ranks) for r in rows), key=worth, default=None)


@memoized(1024)
def padded_factors(points: int, ranks: int) -> Factors:
    """The factors of a convolution on 2 points - 1 or more; they have no large primes but those of the ranks.

    >>> padded_factors(47, 4)
    Factors(r=12, s=8, ranks=4)
    """
    least = 2 * points - 1
    columns = [ranks * t for t in smooth(4 * isqrt(least) // ranks + 2)]
    rows = smooth(8 * max(isqrt(least), 16))  # longer ones do not help: the smallest blocks are nearly square
    pairs = []
    for s in columns:
        first = bisect_left(rows, max(2, -(-least // s)))
        if s > 1 and first < len(rows):
            pairs.append(Factors(rows[first], s, ranks))
    return min(pairs, key=lambda factors: (factors.largest, factors.points, abs(factors.r - factors.s)))


@memoized(64)
def smooth(most: int) -> tuple[int, ...]:
    """All numbers up to `most` with no prime factors but 2, 3, 5 and 7, ascending.

    >>> smooth(16)
    (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16)
    """
    numbers = [1]
    for prime in (2, 3, 5, 7):
        more = numbers
        while more:
            more = [n * prime for n in more if n * prime <= most]
            numbers = numbers + more
    return tuple(sorted(numbers))


def levels(points: int, ranks: int) -> tuple[int, ...]:
    """The sizes of the all-to-alls of one axis, in ranks. They number log(ranks) / log(points / ranks), rounded up.

    Raises:
        LayoutError: the ranks do not divide the points, or do not fit; the message says which numbers do.

    >>> levels(64, 8), levels(32, 8), levels(4096, 1024)
    ((8,), (4, 2), (4, 4, 4, 4, 4))
    """
    sizes = _levels(points, ranks)
    if sizes is not None:
        return sizes
    rule = f"{ranks} ranks do not divide {points} points"
    if points % ranks == 0:
        rule = (
            f"{ranks} ranks leave {points // ranks} of {points} points each: no multiple of {ranks}, and {ranks} is no "
            "power of that times a divisor of it"
        )
    fits = [p for p in divisors(points) if _levels(points, p) is not None]
    below, above = max(p for p in fits if p < ranks), min((p for p in fits if p > ranks), default=None)
    multiple = points // ranks * ranks
    fewer = next((n for n in range(multiple, 0, -ranks) if n < points and _levels(n, ranks) is not None), None)
    more = next(n for n in range(multiple + ranks, points + ranks**2 + 1, ranks) if _levels(n, ranks) is not None)
    near_points = " or ".join([str(n) for n in (fewer, more) if n])
    near_ranks = " or ".join([str(p) for p in (below, above) if p])
    raise LayoutError(f"{rule}; {near_points} points, or {near_ranks} rank{'s' * (near_ranks != '1')}, would do")


def _levels(points: int, ranks: int) -> tuple[int, ...] | None:
    """The result of `levels`; None if the ranks do not fit the points."""
    if ranks == 1:
        return ()
    each, rest = divmod(points, ranks)
    if rest or each < 2:
        return None
    if each % ranks == 0:
        return (ranks,)
    sizes: list[int] = []
    while ranks > each:
        ranks, rest = divmod(ranks, each)
        if rest:
            return None
        sizes.append(each)
    return (*sizes, ranks) if each % ranks == 0 else None
