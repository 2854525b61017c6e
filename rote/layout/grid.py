"""The process grid: ranks numbered in row-major order, as MPI Cartesian communicators are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from ..errors import LayoutError

__all__ = ["Grid"]


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid of processes; `shape[g]` is the number of coordinates of grid mode g.

    Ranks are numbered in row-major order (Dalcin et al. 2019, section 3.4).

    Raises:
        LayoutError: an extent is not a positive integer.

    >>> grid = Grid((2, 3))
    >>> grid.size, grid.coordinates(4), grid.rank((1, 1))
    (6, (1, 1), 4)
    """

    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        shape = (self.shape,) if isinstance(self.shape, int) else tuple(self.shape)
        if any(isinstance(p, bool) or not hasattr(p, "__index__") or p < 1 for p in shape):
            raise LayoutError(f"a grid has at least one process along each mode, not {shape}; write Grid((2, 3))")
        object.__setattr__(self, "shape", tuple(p.__index__() for p in shape))

    @staticmethod
    def of(nprocs: int, order: int) -> Grid:
        """The most balanced grid of `order` modes over `nprocs` processes, largest mode first (as MPI_Dims_create).

        >>> Grid.of(12, 2), Grid.of(8, 3)
        (Grid((4, 3)), Grid((2, 2, 2)))
        """
        if nprocs < 1 or order < 0 or (order == 0 and nprocs > 1):
            raise LayoutError(f"{nprocs} processes make no grid of order {order}")
        return Grid(min(_factorings(nprocs, order, nprocs)))

    @property
    def order(self) -> int:
        """The number of grid modes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of ranks."""
        return prod(self.shape)

    def coordinates(self, rank: int) -> tuple[int, ...]:
        """The coordinates of a rank."""
        if not 0 <= rank < self.size:
            raise LayoutError(f"grid {self} has ranks 0 to {self.size - 1}, not {rank}")
        return unravel(rank, self.shape)

    def rank(self, coordinates: Sequence[int]) -> int:
        """The rank at some coordinates."""
        if len(coordinates) != self.order or any(not 0 <= c < p for c, p in zip(coordinates, self.shape, strict=True)):
            raise LayoutError(f"grid {self} has no coordinates {tuple(coordinates)}")
        return ravel(coordinates, self.shape)

    def __str__(self) -> str:
        return "x".join(map(str, self.shape)) or "()"  # a grid of order 0 is not one of a single coordinate

    def __repr__(self) -> str:
        return f"Grid({self.shape})"


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


def _factorings(n: int, order: int, largest: int) -> Iterator[tuple[int, ...]]:
    if order == 0:
        if n == 1:
            yield ()
        return
    for first in range(1, min(n, largest) + 1):
        if n % first == 0:
            for rest in _factorings(n // first, order - 1, first):
                yield (first, *rest)
