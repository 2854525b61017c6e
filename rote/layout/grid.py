"""The process grid: ranks numbered in row-major order, as MPI Cartesian communicators are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, product
from math import isqrt, prod
from operator import mul
from typing import Any, SupportsIndex

from ..caches import memoized
from ..errors import CommError, LayoutError, counted
from ..grammar.nodes import exact

__all__ = ["MOST_PROCESSES", "Grid", "Printed", "check_grid", "divisors", "factorings", "grid_shape", "integer"]
__all__ += ["integers", "ranks_at", "smooth_numbers", "tensor_shape"]


MOST_PROCESSES = 1 << 22
"""The most ranks of a grid: plans for so many are made in seconds, within 2 GB."""

_PRODUCT = re.compile(r"\d+(x\d+)*")


class Printed:
    """A value that IPython and Hypothesis print by its `repr`; of other dataclasses they list the fields."""

    __slots__ = ()

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(repr(self))


@dataclass(frozen=True, slots=True)
class Grid(Printed):
    """A grid of processes; `shape[g]` is the number of coordinates along grid mode g.

    Ranks are numbered in row-major order, as in MPI's Cartesian communicators.

    Raises
    ------
    LayoutError
        An extent is not a positive integer, or there are more than `MOST_PROCESSES` processes.

    Notes
    -----
    Source: Dalcin et al. (2019, section 3.4).

    Examples
    --------
    >>> import rote
    >>> grid = rote.Grid((2, 3))
    >>> grid.order, grid.size, grid.coordinates(4), grid.rank((1, 1))
    (2, 6, (1, 1), 4)
    """

    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        shape = grid_shape(self.shape)
        object.__setattr__(self, "shape", shape)
        if (ranks := prod(shape)) > MOST_PROCESSES:
            raise _too_many(ranks)

    @staticmethod
    def of(nprocs: int, order: int | Sequence[int]) -> Grid:
        """The most balanced grid of `order` modes over `nprocs` processes, the largest first (as MPI_Dims_create).

        Parameters
        ----------
        nprocs : int
            The number of processes.
        order : int | Sequence[int]
            The number of modes, or their extents, where -1 stands for an extent to be chosen.

        Raises
        ------
        LayoutError
            `nprocs` is below 1 or above `MOST_PROCESSES`, `order` below 0, or 0 for several processes; or the extents
            do not divide the number of processes.

        Examples
        --------
        >>> from rote import Grid
        >>> Grid.of(12, 2), Grid.of(8, 3), Grid.of(12, (2, -1)), Grid.of(24, (-1, 2, -1))
        (Grid((4, 3)), Grid((2, 2, 2)), Grid((2, 6)), Grid((4, 2, 3)))
        """
        nprocs = integer(nprocs, "a number of processes")
        if nprocs > MOST_PROCESSES:
            raise _too_many(nprocs)
        if isinstance(order, Iterable):
            grid = Grid(grid_shape(order, nprocs))
            if grid.size != nprocs:
                raise LayoutError(f"{counted(nprocs, 'process makes', 'processes make')} no grid of shape {order!r}")
            return grid

        order = integer(order, "the order of a grid")
        if nprocs < 1 or order < 0 or (order == 0 and nprocs > 1):
            raise LayoutError(f"{counted(nprocs, 'process makes', 'processes make')} no grid of order {order}")
        return Grid(min(factorings(nprocs, order)))

    @property
    def order(self) -> int:
        """The number of grid modes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of ranks."""
        return prod(self.shape)

    def refine(self, other: Grid) -> Grid:
        """The grid over the same ranks whose modes are digits of the coordinates on both grids.

        Modes that do not divide each other are one mode of it.

        Examples
        --------
        >>> from rote import Grid
        >>> Grid((4, 6)).refine(Grid((2, 12))), Grid((2, 3, 5)).refine(Grid((3, 2, 5)))
        (Grid((2, 2, 6)), Grid((6, 5)))
        """
        if self.shape == other.shape:
            return self

        # A digit is what lies between two strides. Strides that both grids have are strides of the result. Those of one
        # grid between them are, too, if each divides the next.
        ends = [set(accumulate(reversed(grid.shape), mul, initial=1)) for grid in (self, other)]
        shape: list[int] = []
        for low, high in pairwise(sorted(ends[0] & ends[1])):
            between = [n for n in sorted(ends[0] | ends[1]) if low <= n <= high]
            if any(above % below for below, above in pairwise(between)):
                between = [low, high]
            shape += [above // below for below, above in pairwise(between)]

        return Grid(tuple(reversed(shape)) or (1,))

    def coordinates(self, rank: int) -> tuple[int, ...]:
        """The coordinates of a rank, one per grid mode.

        Raises
        ------
        LayoutError
            The grid has no such rank.

        Examples
        --------
        >>> import rote
        >>> rote.Grid((2, 3)).coordinates(4)
        (1, 1)
        """
        left, coordinates = integer(rank, "a rank"), tuple[int, ...]()
        for p in reversed(self.shape):  # a loop is fastest, and every query about a rank runs it
            left, coordinates = left // p, (left % p, *coordinates)

        if left:
            raise LayoutError(f"grid {self} has ranks 0 to {self.size - 1}, not {rank}")
        return coordinates

    def rank(self, coordinates: Sequence[int]) -> int:
        """The rank at some coordinates, one per grid mode.

        Raises
        ------
        LayoutError
            The grid has no such coordinates.

        Examples
        --------
        >>> import rote
        >>> rote.Grid((2, 3)).rank((1, 1))
        4
        """
        try:
            at = integers(coordinates, least=0)
            if all(c < p for c, p in zip(at, self.shape, strict=True)):
                return ravel(at, self.shape)
        except (TypeError, ValueError):  # not integers, negative, or not one for each grid mode
            pass
        raise LayoutError(f"grid {self} has no coordinates {coordinates!r}")

    def __str__(self) -> str:
        return "x".join(map(str, self.shape)) or "()"  # a grid of order 0 differs from one of a single coordinate

    def __repr__(self) -> str:
        return f"Grid({self.shape})"


def grid_shape(grid: Grid | Iterable[int] | int, nprocs: int | None = None) -> tuple[int, ...]:
    """The shape of a grid, which is given as a `Grid` or as its shape.

    Args:
        nprocs: the number of processes, if known; then extents of -1 are replaced by the most balanced ones.

    >>> grid_shape((3, -1), 12)
    (3, 4)
    """
    if isinstance(grid, Grid):
        return grid.shape
    try:
        extents = integers(grid, least=-1)
        if 0 in extents:
            raise ValueError
    except (TypeError, ValueError):
        if hasattr(grid, "rank"):  # a communicator, of mpi4py or Rote; arrays and tensors have none
            raise LayoutError(
                f"a grid is expected here, not the communicator {grid!r}\n"
                "write comm=comm, as in rote.fft.FFT(shape, layout, comm=comm)"
            ) from None
        meant = tuple(map(int, grid.split("x"))) if isinstance(grid, str) and _PRODUCT.fullmatch(grid) else (2, 3)
        raise LayoutError(
            f"a grid has at least one process along each mode, not {grid!r}\nwrite Grid({meant}), or grid={meant}"
        ) from None
    if -1 not in extents:
        return extents

    if nprocs is None:
        raise LayoutError(f"-1 in {grid!r} is found from the number of processes; write Grid.of(processes, {grid!r})")
    known = prod(n for n in extents if n != -1)
    if nprocs < 1 or nprocs % known:
        raise LayoutError(
            f"{counted(nprocs, 'process makes', 'processes make')} no grid of shape {grid!r}, "
            f"for {known} of them lie along the modes that are given"
        )

    rest = iter(Grid.of(nprocs // known, extents.count(-1)).shape)
    return tuple(next(rest) if n == -1 else n for n in extents)


def _too_many(ranks: int) -> LayoutError:
    return LayoutError(
        f"a grid has at most {MOST_PROCESSES:,} processes, not {ranks:,}\nwrite a grid of the ranks that run"
    )


def ranks_at(grid: Grid, fixed: Mapping[int, int]) -> Iterator[int]:
    """The ranks with given coordinates along some grid modes, in ascending order."""
    choices: list[Iterable[int]] = list(map(range, grid.shape))
    for g, coordinate in fixed.items():
        choices[g] = (coordinate,)
    return map(grid.rank, product(*choices))


def check_grid(grid: Grid, ranks: int) -> None:
    """Refuse a grid whose number of ranks differs from that of a communicator."""
    if grid.size != ranks:
        raise CommError(
            f"grid {grid} has {grid.size} ranks, but the communicator has {ranks}; "
            f"start {grid.size} ranks or give another grid"
        )


def tensor_shape(shape: Iterable[int] | int) -> tuple[int, ...]:
    """The shape of a tensor as a tuple of plain integers."""
    try:
        extents = integers(shape, least=0)
    except TypeError:
        if len(of_array := getattr(shape, "shape", ())) > 1:
            rule = "a shape is made of integers, not an array or tensor"
            raise LayoutError(f"{rule}\nwrite its shape, {of_array}") from None
        layout = f"\nwrite shape=(…) and layout={shape!r}" if isinstance(shape, str) and "[" in shape else ""
        raise LayoutError(f"a shape is made of integers, not {shape!r}{layout}") from None
    except ValueError:
        raise LayoutError(f"the extents of a shape are 0 or more, not {shape!r}") from None

    if extents and max(extents) >= 2**63:
        raise LayoutError(f"the extents of a shape are below 2**63, not {extents}")
    if prod(extents) >= 2**512:  # so that all times are numbers
        raise LayoutError(f"a tensor has fewer than 2**512 elements, which {extents} has not")
    return extents


def integer(value: SupportsIndex, name: str) -> int:
    """One integer as a plain one; `name` is its name in the error text."""
    try:
        return exact(value)
    except TypeError:
        raise LayoutError(f"{name} is an integer, not {value!r}") from None


def integers(values: Iterable[int] | int, least: int) -> tuple[int, ...]:
    """One integer, or several, as a tuple of plain ones."""
    if isinstance(values, bytes):  # its items are integers, but it is not meant as a list of them
        raise TypeError(f"{values!r} is text")
    several = isinstance(values, Iterable) and getattr(values, "shape", None) != ()  # no array or tensor of order 0
    numbers = tuple(map(exact, values)) if several else (exact(values),)  # type: ignore[arg-type]
    for n in numbers:  # for a few, a loop is fastest, and every compile from text runs it
        if n < least:
            raise ValueError(f"{n} is less than {least}")
    return numbers


def ravel(digits: Sequence[int], shape: Sequence[int]) -> int:
    """The row-major number of a tuple of digits."""
    number = 0
    for digit, size in zip(digits, shape, strict=True):
        number = number * size + digit
    return number


def unravel(number: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The digits of a row-major number."""
    digits = []
    for size in reversed(shape):
        number, digit = divmod(number, size)
        digits.append(digit)
    return tuple(reversed(digits))


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a shape in row-major order, in elements.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    strides, stride = [], 1
    for size in reversed(shape):
        strides.append(stride)
        stride *= size
    return tuple(reversed(strides))


def factorings(n: int, order: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    """The ways to write a number as a product of so many factors, which descend from at most `largest`.

    >>> [*factorings(12, 2)]
    [(4, 3), (6, 2), (12, 1)]
    """
    if order == 0:
        if n == 1:
            yield ()
        return

    for first in divisors(n):
        if largest is None or first <= largest:
            for rest in factorings(n // first, order - 1, first):
                yield (first, *rest)


def smooth_numbers(ranks: int) -> tuple[int, ...]:
    """Up to three numbers of ranks, at most a sixteenth fewer, with the most balanced grids; none if these have some.

    They are the numbers with the least sums of prime factors. A number of ranks needs none if its largest prime factor
    is at most twice the side of a cube of so many ranks.

    >>> smooth_numbers(1021), smooth_numbers(97), smooth_numbers(1000)
    ((972, 960, 1000), (96, 91, 95), ())
    """
    least = ranks - ranks // 16
    left, sums, largest = [*range(least, ranks + 1)], [0] * (ranks - least + 1), [1] * (ranks - least + 1)

    # What smaller numbers have left is divided by no product of them.
    for factor in range(2, isqrt(ranks) + 1):
        for n in range(-least % factor, len(left), factor):
            while left[n] % factor == 0:
                left[n], sums[n], largest[n] = left[n] // factor, sums[n] + factor, factor

    for n, prime in enumerate(left):
        if prime > 1:
            sums[n], largest[n] = sums[n] + prime, prime
    if largest[-1] ** 3 <= 8 * ranks:
        return ()
    rows = sorted(zip(sums[:-1], largest[:-1], range(least, ranks), strict=True))
    return tuple([number for _, _, number in rows[:3]])


@memoized(1024)
def divisors(n: int) -> tuple[int, ...]:
    """All divisors of a positive number, ascending.

    >>> divisors(12), divisors(1), len(divisors(2**40 * 3))
    ((1, 2, 3, 4, 6, 12), (1,), 82)
    """
    numbers, prime = [1], 2
    while n > 1:
        if prime * prime > n:  # what is left has no smaller factor
            prime = n

        powers = [1]
        while n % prime == 0:
            n //= prime
            powers.append(powers[-1] * prime)
        numbers = [d * power for d in numbers for power in powers]
        prime += 1

    return tuple(sorted(numbers))
