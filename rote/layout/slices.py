"""The layout under which every rank holds given slices of a tensor.

The digits of the rank on which the slices of each mode depend are found first, then per mode the chain of splits over
these digits. The time is proportional to the ranks and modes, whatever the extents are.

    rank             0 1 2 3 4 5 6 7
    digit at 4       0 0 0 0 1 1 1 1    the slice of mode 1 depends on it
    digit at 2       0 0 1 1 0 0 1 1    no slice depends on it: ranks hold replicas
    digit at 1       0 1 0 1 0 1 0 1    the slice of mode 0 depends on it
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from operator import and_
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import LayoutError, counted
from ..grammar.nodes import CYCLIC, Entry, Kind
from . import kinds
from .grid import Grid, divisors
from .indexset import IndexSet, Ints
from .layout import Layout

__all__ = ["Progression", "as_runs", "find_layout"]

Progression = tuple[int, int, int]
_READINGS = 1024  # ways to read ranks as digits to try; few are needed if a layout exists and no rank is idle


def as_runs(slices: Sequence[slice], shape: tuple[int, ...]) -> tuple[Progression, ...]:
    """Start, length and step of each slice of a block, one per mode, with the meaning that they have in indexing.

    >>> as_runs((slice(2, None), slice(-3, None, 2)), (8, 9))
    ((2, 6, 1), (6, 2, 2))
    """
    if not isinstance(slices, Sequence) or not all(isinstance(part, slice) for part in slices):
        raise LayoutError(f"a block is a tuple of slices, one per mode, not {slices!r}\nwrite (slice(0, 4), …)")
    if len(slices) != len(shape):
        raise LayoutError(f"a tensor of shape {shape} has {counted(len(shape), 'mode')}, not {len(slices)} slices")

    runs = []
    for part, extent in zip(slices, shape, strict=True):
        try:
            indices = range(*part.indices(extent))
        except (TypeError, ValueError):
            raise LayoutError(f"{part} is no slice of integers with a step") from None
        if indices.step < 0:
            raise LayoutError(f"{part} goes backwards; give the block in ascending order, block[::-1]")

        n = len(indices)
        runs.append((indices.start if n else 0, n, indices.step if n > 1 else 1))

    return tuple(runs)


def find_layout(shape: tuple[int, ...], blocks: Sequence[Sequence[Progression]]) -> tuple[Layout, Grid]:
    """The layout and the grid under which every rank holds the given runs, one per mode.

    The grid has as few modes as possible. Any empty run stands for a rank that holds nothing.

    >>> blocks = [as_runs((slice(a, a + 2), slice(b, b + 3)), (4, 6)) for b in (0, 3) for a in (0, 2)]
    >>> print(*find_layout((4, 6), blocks))
    block[(1),(0)] 2x2
    """
    order, ranks = len(shape), len(blocks)
    runs = np.array(blocks, np.int64).reshape(ranks, order, 3).swapaxes(0, 1)

    # Per mode, the different runs, and for each rank the number of its own among them, which is its key.
    tables, keys = [], np.zeros((order, ranks), np.int64)
    for mode in range(order):
        table, keys[mode] = np.unique(runs[mode], axis=0, return_inverse=True)
        tables.append(table)

    empty = (runs[..., 1] == 0).any(axis=0)
    void = (runs[..., 1] == 0).all(axis=0) if order else empty

    unchained: set[int] = set()
    # First as given: an empty run may say at which part of its mode a rank is. Else any rank without data says nothing.
    for known, idle in ((keys, void), (np.where(empty, -1, keys), empty)):  # the runs of an idle rank may fit no digit
        for reading in islice(_readings(known, idle, 1), _READINGS):
            layout = _layout(shape, ranks, tables, reading, empty, unchained)
            if layout is not None:
                return layout
        if not empty.any():
            break

    raise LayoutError(f"no layout gives these blocks: {_why(shape, runs, unchained)}")


class _Digit(NamedTuple):
    """A digit of the rank, which decides the run of `mode` or which ranks hold data (`root`), or nothing."""

    axis: _Axis
    mode: int | None = None
    root: int | None = None


# The rank read as digits, and per mode and rank the number of its run, which these digits alone determine.
_Reading = tuple[tuple[_Digit, ...], Ints]


def _readings(keys: Ints, idle: npt.NDArray[np.bool_], stride: int) -> Iterator[_Reading]:
    """The ways to read ranks as digits from some stride on, such that each digit affects the runs of at most one mode.

    A key of -1 is unknown, and is taken from the ranks that differ in other modes' digits.
    """
    left = keys.shape[1] // stride
    if left == 1:
        yield (), keys
        return

    # The largest digit without effect comes first: it leaves the fewest digits to explain.
    size = max([p for p in divisors(left) if not _decides(keys, stride, p)])
    choices: list[tuple[int | None, int]] = [(None, size)] if size > 1 else []
    if size == 1 or idle.any():  # a digit that seems to decide nothing may decide which ranks are idle
        choices += [(mode, size) for mode in range(len(keys)) for size in _sizes(keys, stride, mode)]

    for mode, size in choices:
        filled = _filled(keys, stride, size, mode)
        for digits, known in _readings(filled, idle, stride * size):
            yield (_Digit(_Axis(stride, size), mode), *digits), known

    # Or a digit has a root, the only one of its values at which ranks have data.
    if len(keys) and idle.any() and not idle.all():
        for size in divisors(left)[1:]:
            where = np.unique(np.flatnonzero(~idle) // stride % size)
            if len(where) == 1:
                at = int(where[0])
                # Beyond the root all ranks are idle; that they are is explained, so they may count as those at it.
                same, spread = _all_as(keys, stride, size, at), _all_as(idle[None], stride, size, at)[0]
                for digits, known in _readings(same, spread, stride * size):
                    yield (_Digit(_Axis(stride, size), root=at), *digits), known


def _sizes(keys: Ints, stride: int, mode: int) -> list[int]:
    """The sizes of digits that affect one mode alone: those followed by a digit without effect, and the largest.

    If some keys are unknown there may be several largest ones, none of which is a multiple of another.
    """
    others, of_mode = np.delete(keys, mode, axis=0), keys[mode : mode + 1]  # both with an axis for modes
    sizes = [p for p in divisors(keys.shape[1] // stride)[1:] if not _decides(others, stride, p)]

    chosen = []
    for p in sizes:
        primes = [q // p for q in sizes if q % p == 0 and len(divisors(q // p)) == 2]
        if not primes or not all(_decides(of_mode, stride * p, prime) for prime in primes):
            chosen.append(p)
    return chosen


def _shaped(values: npt.NDArray[Any], stride: int, size: int) -> npt.NDArray[Any]:
    """Rows of values, one per rank, as an array over rows, higher digits of the rank, the digit, and lower digits."""
    return values.reshape(len(values), values.shape[1] // (stride * size), size, stride)


def _decides(keys: Ints, stride: int, size: int) -> bool:
    """Whether known keys differ between ranks that differ in this digit alone."""
    shaped = _shaped(keys, stride, size)
    return bool(((shaped != shaped.max(axis=2, keepdims=True)) & (shaped >= 0)).any())


def _filled(keys: Ints, stride: int, size: int, mode: int | None) -> Ints:
    """The keys, with unknown ones of all modes but `mode` taken from ranks with other values of the digit."""
    shaped = _shaped(keys, stride, size)
    filled = np.broadcast_to(shaped.max(axis=2, keepdims=True), shaped.shape).reshape(keys.shape).copy()
    if mode is not None:
        filled[mode] = keys[mode]
    return filled


def _all_as(values: npt.NDArray[Any], stride: int, size: int, at: int) -> npt.NDArray[Any]:
    """The values, with those of ranks where the digit is `at` for all of its values."""
    shaped = _shaped(values, stride, size)
    return np.broadcast_to(shaped[:, :, at : at + 1], shaped.shape).reshape(values.shape)


def _layout(
    shape: tuple[int, ...],
    ranks: int,
    tables: Sequence[Ints],
    reading: _Reading,
    empty: npt.NDArray[np.bool_],
    unchained: set[int],
) -> tuple[Layout, Grid] | None:
    """The layout and the grid of a reading, if each mode has a chain; else a mode without one joins `unchained`."""
    (digits, keys), numbers = reading, np.arange(ranks)
    holding = np.ones(ranks, bool)  # whether this reading gives a rank data
    for digit in digits:
        if digit.root is not None:
            holding &= numbers // digit.axis.stride % digit.axis.size == digit.root

    chains: list[_Chain] = []
    for mode, (extent, table) in enumerate(zip(shape, tables, strict=True)):
        runs = np.where(keys[mode, :, None] >= 0, table[keys[mode]], (0, 0, 1))
        holding &= runs[:, 1] > 0

        axes = tuple(digit.axis for digit in reversed(digits) if digit.mode == mode)
        where = np.array(0)  # the ranks whose other digits are 0
        for stride, size in axes:
            where = np.add.outer(where, stride * np.arange(size))

        chain = _find_chain(axes, extent, *np.moveaxis(runs[where], -1, 0))
        if chain is None:
            unchained.add(mode)
            return None
        chains.append(chain)
    if shape and not np.array_equal(holding, ~empty):
        return None

    # Grid modes are the digits, from the slowest to the fastest, because ranks are numbered in row-major order.
    others = [digit for digit in digits if digit.mode is None]
    grid_modes = [axis for chain in chains for axis, _ in chain] + [digit.axis for digit in others]
    grid_modes.sort(reverse=True)

    modes = []
    for chain in chains:
        modes.append(tuple([Entry(grid_modes.index(axis), kind) for axis, kind in chain]))
    rooted = tuple([(grid_modes.index(digit.axis), digit.root) for digit in others if digit.root is not None])
    return Layout(tuple(modes), rooted=rooted), Grid(tuple([axis.size for axis in grid_modes]) or (1,))


def _why(shape: tuple[int, ...], runs: Ints, unchained: set[int]) -> str:
    """What is wrong with the blocks, the nearest cause first, and what to do."""
    sizes = runs[..., 1].prod(axis=0)
    blocks, first = np.unique(runs[:, sizes > 0].swapaxes(0, 1), axis=0, return_index=True)
    ranks = np.flatnonzero(sizes > 0)[first]
    pair = _overlap(blocks)
    if pair is not None:
        a, b = sorted(int(ranks[k]) for k in pair)
        return f"those of ranks {a} and {b} overlap, and are not the same\ngive blocks that are disjoint, or replicas"

    number, total = int(blocks[..., 1].prod(axis=1).sum()), prod(shape)
    if number < total:
        return f"they leave a gap: together they hold {number} of {total} elements\ngive every element to some rank"

    parts = [len(np.unique(blocks[:, mode], axis=0)) for mode in range(len(shape))]
    if prod(parts) != len(blocks):
        return (
            f"they are no grid: the {len(blocks)} different ones are not the product of the parts of each mode, "
            f"{' x '.join(map(str, parts))}\ngive blocks that lie in rows and columns, all of a row alike"
        )

    if unchained:
        mode = min(unchained)
        starts = ", ".join(map(str, dict.fromkeys(runs[mode, :, 0].tolist())))
        return (
            f"along mode {mode} the parts, which begin at {starts} in the order of the ranks, are those of no block "
            "and cyclic entries, one after the other\nnumber ranks in the order of their parts, by comm.Split(0, key)"
        )

    return (
        f"they lie on a grid of {' x '.join(map(str, parts))} parts, but ranks are not numbered in row-major order "
        "over its modes, in any order of these\nnumber them so, by comm.Split(0, key)"
    )


def _overlap(blocks: Ints) -> tuple[int, int] | None:
    """Two blocks that share an element, or None; among very many blocks, only near neighbours are compared."""
    ends = blocks[..., 0] + (blocks[..., 1] - 1) * blocks[..., 2]
    for ahead in range(1, min(len(blocks), max(1, 200_000 // max(len(blocks), 1)))):
        # Boxes around two blocks must meet; only then are their indices compared, which may lie between each other.
        low = np.maximum(blocks[:-ahead, :, 0], blocks[ahead:, :, 0])
        meets = (low <= np.minimum(ends[:-ahead], ends[ahead:])).all(axis=1)
        for k in np.flatnonzero(meets).tolist():
            if all(map(and_, _sets(blocks[k]), _sets(blocks[k + ahead]))):
                return k, k + ahead

    return None


def _sets(block: Ints) -> list[IndexSet]:
    return [IndexSet.of_runs([(a, a + 1)], step, a + (n - 1) * step + 1) for a, n, step in block.tolist()]


# --- the chain of splits of one mode ----------------------------------------------------------------------------------

_TRIES = 3000  # digits to try before giving up; if a chain exists, few are needed


class _Axis(NamedTuple):
    """A digit of the rank: `rank // stride % size`."""

    stride: int
    size: int


_Chain = tuple[tuple[_Axis, Kind], ...]
"""The splits of a mode, the outermost first: the digit of the rank over which each splits, and its kind."""


@dataclass(frozen=True, slots=True)
class _Question:
    """The runs to explain: mode 0 of the arrays counts the parts of the known splits, and each axis is another mode."""

    axes: tuple[_Axis, ...]
    extents: Ints
    start: Ints
    length: Ints
    step: Ints

    @property
    def answered(self) -> bool:
        """Whether every run fills its extent."""
        extents = self.extents.reshape(-1, *(1,) * len(self.axes))
        whole = (self.start == 0) & ((self.step == 1) | (self.length <= 1))
        return bool(((self.length == extents) & (whole | (self.length == 0))).all())

    def outer(self, at: int, size: int, low: int) -> _Question:
        """The question with one digit of an axis moved to mode 1; the digits above and below it stay as axes."""
        stride, total = self.axes[at]
        high = total // (size * low)
        axes = (*self.axes[:at], _Axis(stride * low * size, high), _Axis(stride, low), *self.axes[at + 1 :])

        def moved(values: Ints) -> Ints:
            shape = (*values.shape[: at + 1], high, size, low, *values.shape[at + 2 :])
            return np.moveaxis(values.reshape(shape), at + 2, 1)

        return _Question(axes, self.extents, moved(self.start), moved(self.length), moved(self.step))

    def within(self, kind: Kind) -> _Question | None:
        """The question that remains after a split over mode 1, or None if some run does not lie in its part."""
        size = self.start.shape[1]
        ones = (1,) * (self.start.ndim - 2)  # the axes that are left

        # All runs of a part together fill it.
        extents = self.extents.reshape(-1, 1, *ones)
        parts = kinds.extent(kind, size, self.extents[:, None], np.arange(size)[None, :])
        lengths = self.length.reshape(*self.length.shape[:2], -1).sum(axis=2)
        if not np.array_equal(np.broadcast_to(parts, lengths.shape), lengths):
            return None

        # The first index of a run, the second and the last lie in the part. If their local indices are evenly spaced,
        # so are those of all between.
        digit = np.arange(size).reshape(1, -1, *ones)
        some, more = self.length > 0, self.length > 1
        last = self.start + (self.length - 1) * self.step
        places = []
        for index, exists in ((self.start, some), (self.start + self.step, more), (last, some)):
            owner, local = kinds.split(kind, size, extents, np.where(exists, index, 0))
            if (exists & (owner != digit)).any():
                return None
            places.append(local)

        first, second, end = places
        step = np.where(more, second - first, 1)
        if (some & (end != first + (self.length - 1) * step)).any() or (step < 1).any():
            return None

        rest = self.start.shape[2:]
        start, length, step = (v.reshape(-1, *rest) for v in (np.where(some, first, 0), self.length, step))
        return _Question(self.axes, lengths.reshape(-1), start, length, step)

    def kinds(self) -> Iterator[Kind]:
        """The possible kinds of a split over mode 1, from the lengths of its parts."""
        size = self.start.shape[1]
        lengths = self.length.reshape(*self.length.shape[:2], -1).sum(axis=2)
        yield from (*kinds.CONSECUTIVE, CYCLIC)

        widest = int(lengths[:, 0].max(initial=0))
        if widest and (self.extents <= size * widest).all():
            yield kinds.block_kind(widest)
        if len(lengths) and (lengths == lengths[0]).all() and (self.extents == lengths[0].sum()).all():
            yield kinds.block_kind(*lengths[0].tolist())

        zero = ((self.start == 0) & (self.length > 0)).reshape(*lengths.shape, -1).any(axis=(0, 2))
        at = int(zero.argmax())  # where the first tile lies; the start of the second is the length of a tile
        beside = (at + 1) % size
        starts = self.start[:, beside][self.length[:, beside] > 0]
        tile = int(starts.min()) if starts.size else max(int(self.extents.max(initial=1)), 1)
        if tile:
            yield kinds.cyclic_kind(tile, at)


def _find_chain(axes: tuple[_Axis, ...], extent: int, start: Ints, length: Ints, step: Ints) -> _Chain | None:
    """The splits of a mode that give each coordinate its run; None if there are none.

    The runs are arrays with one mode per axis. The outermost split is found first, from the digit of the rank that
    decides in which part a run is. The same question then remains for local indices, among which the runs are runs.
    """
    tries = 0

    def solve(question: _Question) -> _Chain | None:
        nonlocal tries
        if all(axis.size == 1 for axis in question.axes):
            return () if question.answered else None

        for at, size, low in _digits(question.axes):  # large digits first, so that the grid has few modes
            tries += 1
            if tries > _TRIES:
                return None

            outer = question.outer(at, size, low)
            for kind in outer.kinds():
                left = outer.within(kind)
                if left is not None:  # another kind would leave the same question
                    rest = solve(left)
                    if rest is not None:
                        return ((_Axis(question.axes[at].stride * low, size), kind), *rest)
                    break

        return None

    return solve(_Question(axes, np.array([extent]), start[None], length[None], step[None]))


def _digits(axes: tuple[_Axis, ...]) -> list[tuple[int, int, int]]:
    """All digits of all axes, the largest first, as (axis, size, size of the digits below)."""
    digits = []
    for at, axis in enumerate(axes):
        for size in divisors(axis.size)[1:]:
            digits += [(at, size, low) for low in divisors(axis.size // size)]
    return sorted(digits, key=lambda digit: -digit[1])
