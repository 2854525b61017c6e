"""The elements that two readings of some digits have in common, as lattices.

An index is a number with digits, and a layout assigns its digits to coordinates and local indices. So elements form a
few lattices, in which the coordinates and local indices of both sides are linear. The number of lattices depends on how
the tiles and extents of the two sides fit each other, not on the number of elements or ranks. Where tiles fit badly,
the elements are listed one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, islice, pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from ..grammar.nodes import Kind
from ..lattice import Lattice, Row
from ..layout.kinds import FLOOR, Split, Stretch, extent, locate, run_starts, split, stretches
from ..layout.view import Digit, from_tensor

__all__ = ["FEW", "Intervals", "ModeReading", "Reading", "TooManyPiecesError", "counting", "extents_of", "intervals"]
__all__ += ["number_of", "one_by_one", "overlaps", "overlaps_below", "splits_of"]

Ints = npt.NDArray[np.int64]
At = tuple[int, ...]

_COUNT, _LARGE_COUNT = np.dtype(np.int64), np.dtype(object)
_WORTH = 64  # elements that take as long one by one as one lattice, to plan, prove and move
_MOST = 1 << 19  # lattices, which take about a gigabyte

FEW = 64
"""Up to this number, lattices are used whatever the number of elements."""


class ModeReading(NamedTuple):
    """The data of a view mode that decide where elements lie along it.

    Attributes:
        digits: the digits of the tensor's modes that it reads.
        splits: its splits, the outermost first, over grid modes 0, 1, ….
        extent: the number of its indices.
    """

    digits: tuple[Digit, ...]
    splits: tuple[Split, ...]
    extent: int


Reading = tuple[ModeReading, ...]
"""How one side reads some digits: mode by mode."""


class TooManyPiecesError(PlanError):
    """Tiles that make more pieces than memory should hold."""


def extents_of(reading: Reading) -> dict[int, int]:
    """The extents of the tensor's modes that are read, in order."""
    extents: dict[int, int] = {}
    for digits, _, _ in reading:
        for digit in digits:
            extents[digit.mode] = extents.get(digit.mode, 1) * digit.size
    return dict(sorted(extents.items()))


def number_of(reading: Reading) -> int:
    """The number of elements of a reading."""
    return prod(extents_of(reading).values())


def counting(most: int) -> np.dtype[Any]:
    """The dtype of counts up to `most`: int64, or Python's integers if bytes or sums of them may not fit 64 bits.

    >>> counting(2**40), counting(2**80)
    (dtype('int64'), dtype('O'))
    """
    return _COUNT if most < 2**53 else _LARGE_COUNT


def one_by_one(reading: Reading, extents: dict[int, int]) -> tuple[tuple[Ints, ...], tuple[Ints, ...]]:
    """The coordinates and local indices of every element of some tensor modes, one by one in ascending order."""
    number = prod(extents.values())
    tensor = dict(zip(extents, np.indices(tuple(extents.values())).reshape(len(extents), number), strict=True))

    at: list[Ints] = []
    local: list[Ints] = []

    for digits, splits, n in reading:
        index, left = from_tensor(digits, tensor), np.full(number, n)
        for _, kind, parts in splits:
            coordinate, index = split(kind, parts, left, index)
            left = extent(kind, parts, left, coordinate)
            at.append(coordinate)
        local.append(index)
    return tuple(at), tuple(local)


def splits_of(*readings: Reading) -> list[int]:
    """The number of parts of each split, one side after the other."""
    return [parts for reading in readings for _, splits, _ in reading for _, _, parts in splits]


class Intervals(Sequence[Lattice]):
    """The lattices of a mode that both sides cut into one run of indices for each coordinate, in arrays.

    Each is an interval between two ends of runs, of either side. Coordinates ascend with the intervals:

        source     | 0     | 1     | 2     |
        target     | 0    | 1   | 2        |
        intervals  |      ||    |  |       |

    Attributes:
        lengths: the number of elements of each.
        rows: the coordinates on both sides, and the first local index on both sides, as in `overlaps`.
        shapes: the numbers of coordinates of the splits on both sides.
    """

    def __init__(self, lengths: Ints, rows: Ints, shapes: tuple[At, At]) -> None:
        self.lengths: Ints = lengths
        self.rows: Ints = rows
        self.shapes: tuple[At, At] = shapes

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, number: Any) -> Any:
        length, local = int(self.lengths[number]), len(self.rows) - 2
        starts = self.rows[:, number].tolist()
        if length == 1:
            return Lattice((), tuple([(start,) for start in starts]))
        return Lattice((length,), tuple([(start, int(k >= local)) for k, start in enumerate(starts)]))

    @cached_property
    def places(self) -> tuple[Ints, Ints]:
        """On both sides, the place of the coordinates in row-major order, ascending."""
        first, both = len(self.shapes[0]), len(self.rows) - 2
        sides = zip((self.rows[:first], self.rows[first:both]), self.shapes, strict=True)
        before, after = (np.ravel_multi_index(tuple(rows), shape) for rows, shape in sides)
        return before, after

    def near(self, side: int, at: Sequence[int]) -> range:
        """The numbers of the intervals at some coordinates of one side."""
        place, places = int(np.ravel_multi_index(tuple(at), self.shapes[side])), self.places[side]
        return range(int(places.searchsorted(place)), int(places.searchsorted(place, "right")))


def intervals(source: Reading, target: Reading) -> Intervals | None:
    """The intervals of one mode that both sides cut into a run of indices for each coordinate; None if it is not so."""
    if len(source) != 1 or len(target) != 1 or source[0].digits != target[0].digits:
        return None
    sides = source[0].splits, target[0].splits
    if not all(sides):
        return None

    n = source[0].extent
    starts = [run_starts(side, n) for side in sides]
    if starts[0] is None or starts[1] is None:
        return None

    edges = np.unique(np.concatenate([start for start in starts if start is not None]))
    edges = edges[edges < n]
    (at, local), (other_at, other_local) = (locate(side, n, edges) for side in sides)
    rows = np.array([*at.values(), *other_at.values(), local, other_local], np.int64)
    shapes = [tuple([split.parts for split in side]) for side in sides]
    return Intervals(np.diff(edges, append=n), rows, (shapes[0], shapes[1]))


def overlaps(source: Reading, target: Reading) -> Sequence[Lattice]:
    """The elements of two readings, each in one lattice; a single list if lattices would be many.

    The rows of a lattice are the coordinate along each split of the source's modes, then of the target's; the local
    index along each mode of the source, then of the target. Elements ascend in the tensor. If a coordinate depends on
    several digits, each step is larger than all smaller ones can add up to.

    >>> from .movement import movement
    >>> from rote.layout.layout import parse
    >>> ends = (parse(text).on(2**40, 4) for text in ("[(0)]", "block[(0)]"))
    >>> overlaps(*movement(*ends).parts[0].factor.sides)
    (Lattice(shape=(4, 68719476736, 4), rows=((0, 0, 0, 1), (0, 1, 0, 0), (0, 68719476736, 1, 0), (0, 0, 4, 1))),)

    Raises:
        TooManyPiecesError: the tiles of the two sides fit each other too badly.
    """
    fitting: Sequence[Lattice] | None = overlaps_below(source, target, FEW)
    if fitting is None:
        fitting = intervals(source, target)
    if fitting is not None:
        return fitting

    extents = extents_of(source)

    # Beyond the few that are always worth it, one lattice must stand for many elements.
    worth = FEW + prod(extents.values()) // _WORTH
    fitting = overlaps_below(source, target, min(worth, _MOST))
    if fitting is not None:
        return fitting
    if worth > _MOST:
        raise TooManyPiecesError(
            f"the tiles of the two layouts fit each other so badly that they make more than {_MOST} pieces\n"
            "write tiles or extents that divide each other, or a layout between the two, or use fewer ranks"
        )

    (at, local), (other_at, other_local) = one_by_one(source, extents), one_by_one(target, extents)
    tables = (*at, *other_at, *local, *other_local)
    return (Lattice((len(tables[-1]),), tuple([(0, table) for table in tables])),)


def overlaps_below(source: Reading, target: Reading, most: int) -> tuple[Lattice, ...] | None:
    """The elements of two readings as lattices; None if these are more than `most`."""
    extents = extents_of(source)
    if 0 in extents.values():
        return ()
    for mode in (*source, *target):
        if _has_lengths(mode) and min(mode.splits[0].parts, mode.extent) > most:
            return None  # each part has another length than some before it, and makes a lattice

    sides = (source,) if source == target else (source, target)
    places = {mode: k for k, mode in enumerate(extents)}
    indices = np.eye(len(extents), len(extents) + 1, 1, np.int64).tolist()  # the digits are those of the tensor's modes
    lattices = [Lattice(tuple(extents.values()), tuple(map(tuple, indices)))]
    for mode in chain(*sides):
        dealt: list[Lattice] = []
        for lattice in lattices:
            for read in _read(lattice, mode.digits, places):
                dealt += islice(_deal(read, mode.splits, mode.extent), most + 1)
                if len(dealt) > most:
                    return None
        lattices = dealt

    order = _order_of_rows(sides, len(places))
    joined = [lattice.join() for lattice in lattices]
    return tuple([Lattice(lattice.shape, tuple([lattice.rows[k] for k in order])) for lattice in joined])


def _has_lengths(mode: ModeReading) -> bool:
    """Whether its parts are of many lengths, in no simple order."""
    return bool(mode.splits) and mode.splits[0].kind == FLOOR and mode.extent % mode.splits[0].parts != 0


def _order_of_rows(sides: Sequence[Reading], first: int) -> list[int]:
    """Where the rows of `overlaps` come from: modes were read one by one, each with its coordinates and local index.

    If both sides read alike, they were read once.
    """
    at, local, k = list[list[int]](), list[list[int]](), first
    for side in sides:
        at.append([])
        local.append([])
        for mode in side:
            at[-1] += range(k, k + len(mode.splits))
            k += len(mode.splits) + 1
            local[-1].append(k - 1)
    return at[0] + at[-1] + local[0] + local[-1]


def _read(lattice: Lattice, digits: tuple[Digit, ...], places: dict[int, int]) -> list[Lattice]:
    """A lattice, in parts, with one more row: the index along a view mode that reads these digits of the tensor."""
    read = [lattice.having((0,) * (len(lattice.shape) + 1))]

    for digit in digits:
        k, modulus = places[digit.mode], digit.weight * digit.size
        parts = []
        for piece in read:
            for whole in piece.fit(k, modulus):
                for part in whole.fit(k, digit.weight):
                    *rows, index = part.rows
                    more = _digit(rows[k], digit.weight, modulus)
                    row = tuple([n * digit.size + d for n, d in zip(index, more, strict=True)])
                    parts.append(Lattice(part.shape, (*rows, row)))
        read = parts
    return read


def _deal(lattice: Lattice, splits: tuple[Split, ...], n: int) -> Iterator[Lattice]:
    """A lattice, in parts, with the coordinates of some splits and the local index in place of an index below n."""
    if not splits:
        yield lattice
        return
    (_, kind, parts), *inner = splits

    for stretch in stretches(kind, parts, n):
        for part in lattice.between(-1, stretch.start, stretch.stop):
            for dealt in _turns(part, stretch, parts):
                if not inner:
                    yield dealt
                    continue

                by_extent = _by_extent(dealt, kind, parts, n) if _uneven(inner) else [(dealt, n)]
                for piece, left in by_extent:
                    yield from _deal(piece, tuple(inner), left)


def _turns(lattice: Lattice, stretch: Stretch, parts: int) -> Iterator[Lattice]:
    """A lattice within a stretch, in parts, with the coordinate and the local index there in place of an index."""
    *rows, (begin, *steps) = lattice.rows

    shifted = Lattice(lattice.shape, (*rows, (begin - stretch.start, *steps)))
    tile, turn = stretch.tile, stretch.tile * stretch.parts

    for whole in shifted.fit(-1, turn):
        for part in whole.fit(-1, tile):
            *rows, index = part.rows
            first, *more = _digit(index, tile, turn)
            local = tuple([n // turn * tile + n % turn % tile for n in index])
            dealt = Lattice(part.shape, (*rows, (first + stretch.first, *more), local))

            below, others = dealt.cut(-2, parts)
            yield from below
            for wrapped in others:  # the first coordinate follows the last
                *rows, (first, *more), local = wrapped.rows
                yield Lattice(wrapped.shape, (*rows, (first - parts, *more), local))


def _digit(row: Row, weight: int, modulus: int) -> Row:
    """`row % modulus // weight` of a row that fits both divisors, so that it is linear as well."""
    return tuple([n % modulus // weight for n in row])


def _uneven(splits: list[Split]) -> bool:
    """Whether the coordinates of an index under some splits depend on the extent of the mode."""
    return not all(split.kind.tile for split in splits)


def _by_extent(lattice: Lattice, kind: Kind, parts: int, n: int) -> Iterator[tuple[Lattice, int]]:
    """A lattice that was split last, cut at each coordinate where the remaining extent changes."""
    left = extent(kind, parts, n, np.arange(parts))
    edges = [0, *(np.flatnonzero(np.diff(left)) + 1).tolist(), parts]
    for start, stop in pairwise(edges):
        for part in lattice.between(-2, start, stop):
            yield part, int(left[start])
