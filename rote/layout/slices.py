"""Slices and layouts: the slices of a block in a given layout, and the layout whose blocks are given slices.

To find a layout, the digits of the rank on which the slices of each mode depend are found first, then per mode the
chain of splits over these digits. The time is proportional to the ranks and modes, whatever the extents are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from operator import and_

import numpy as np
import numpy.typing as npt

from ..errors import LayoutError, counted
from ..grammar.nodes import Entry, LayoutSyntax
from .blocks import Blocks
from .chain import Axis, Link, find_chain
from .divisors import divisors, prime_factors
from .grid import Grid
from .indexset import IndexSet, Ints

__all__ = ["Progression", "as_runs", "as_slices", "find_layout"]

Progression = tuple[int, int, int]
_READINGS = 1024  # ways to read ranks as digits to try; few are needed if a layout exists and no rank is idle


def as_slices(dist: Blocks, rank: int) -> tuple[slice, ...]:
    """Per mode of the tensor, the slice that a rank's block covers.

    Raises:
        LayoutError: the layout has a view or is partial, or the indices of some rank are not a slice.

    >>> from .layout import parse
    >>> as_slices(parse("[(0),(1:block)]").on((5, 4), (2, 2)), 3)
    (slice(1, 4, 2), slice(2, 4, None))
    """
    if dist.layout.view is not None:
        raise LayoutError(f"{dist.layout} reads the tensor by a view, so its blocks are no slices\n{_CURE}")
    if dist.partial:
        raise LayoutError(f"the blocks of {dist.layout} are contributions, no slices\n{_CURE}")
    if not dist.shape and not dist.holds(rank):
        raise LayoutError(f"rank {rank} holds nothing in {dist}, which no slice of a tensor of order 0 says\n{_CURE}")
    return tuple(_as_slice(held, dist, rank, mode) for mode, held in enumerate(dist.index_sets(rank)))


_CURE = "redistribute to plain blocks first, such as block[(0),()]"


def _as_slice(held: IndexSet, dist: Blocks, rank: int, mode: int) -> slice:
    if not held:
        return slice(0, 0)
    first = held.start
    step = held.at(1) - first if len(held) > 1 else 1
    if held != IndexSet.of_runs([(first, first + 1)], step, held.stop):
        raise LayoutError(f"rank {rank} holds {held} of mode {mode} in {dist}, which is no slice\n{_CURE}")
    return slice(first, held.stop, step if step > 1 else None)


def as_runs(slices: Sequence[slice], shape: tuple[int, ...]) -> tuple[Progression, ...]:
    """Start, length and step of each slice of a block, one per mode, with the meaning that they have in indexing.

    Raises:
        LayoutError: there is not one slice per mode, or a step goes backwards.

    >>> as_runs((slice(2, None), slice(-3, None, 2)), (8, 9))
    ((2, 6, 1), (6, 2, 2))
    """
    if not isinstance(slices, Sequence) or not all(isinstance(each, slice) for each in slices):
        raise LayoutError(f"a block is a tuple of slices, one per mode, not {slices!r}\nwrite (slice(0, 4), …)")
    if len(slices) != len(shape):
        raise LayoutError(f"a tensor of shape {shape} has {counted(len(shape), 'mode')}, not {len(slices)} slices")
    runs = []
    for each, extent in zip(slices, shape, strict=True):
        try:
            indices = range(*each.indices(extent))
        except (TypeError, ValueError):
            raise LayoutError(f"{each} is no slice of integers with a step") from None
        if indices.step < 0:
            raise LayoutError(f"{each} goes backwards; give the block in ascending order, block[::-1]")
        n = len(indices)
        runs.append((indices.start if n else 0, n, indices.step if n > 1 else 1))
    return tuple(runs)


def find_layout(shape: tuple[int, ...], held: Sequence[Sequence[Progression]]) -> tuple[LayoutSyntax, Grid]:
    """The layout and the grid under which every rank holds the given runs, one per mode.

    The grid has as few modes as possible. Any empty run stands for a rank that holds nothing.

    Raises:
        LayoutError: no layout gives these blocks; the text says why.

    >>> held = [as_runs((slice(a, a + 2), slice(b, b + 3)), (4, 6)) for b in (0, 3) for a in (0, 2)]
    >>> from ..grammar.text import unparse
    >>> layout, grid = find_layout((4, 6), held)
    >>> print(unparse(layout), grid)
    block[(1),(0)] 2x2
    """
    order, ranks = len(shape), len(held)
    runs = np.array(held, np.int64).reshape(ranks, order, 3).swapaxes(0, 1)
    tables, keys = [], np.zeros((order, ranks), np.int64)
    for mode in range(order):
        table, keys[mode] = np.unique(runs[mode], axis=0, return_inverse=True)
        tables.append(table)
    empty = (runs[..., 1] == 0).any(axis=0)
    void = (runs[..., 1] == 0).all(axis=0) if order else empty
    unchained: set[int] = set()
    for known, idle in ((keys, void), (np.where(empty, -1, keys), empty)):  # the runs of an idle rank may fit no digit
        for reading in islice(_readings(known, idle, 1), _READINGS):
            layout = _layout(shape, ranks, tables, reading, empty, unchained)
            if layout is not None:
                return layout
        if not empty.any():
            break
    raise LayoutError(f"no layout gives these blocks: {_why(shape, runs, unchained)}")


@dataclass(frozen=True, slots=True)
class _Digit:
    """A digit of the rank, which decides the run of `mode` or which ranks hold data (`root`), or nothing."""

    axis: Axis
    mode: int | None = None
    root: int | None = None


@dataclass(frozen=True, slots=True)
class _Reading:
    """The rank read as digits, and per mode and rank the number of its run, which these digits alone determine."""

    digits: tuple[_Digit, ...]
    keys: Ints


def _readings(keys: Ints, idle: npt.NDArray[np.bool_], stride: int) -> Iterator[_Reading]:
    """The ways to read ranks as digits from some stride on, such that each digit affects the runs of at most one mode.

    A key of -1 is unknown, and is taken from the ranks that differ in other modes' digits.
    """
    left = keys.shape[1] // stride
    if left == 1:
        yield _Reading((), keys)
        return
    size = _reach(keys, stride)
    choices: list[tuple[int | None, int]] = [(None, size)] if size > 1 else []
    if size == 1 or idle.any():  # a digit that seems to decide nothing may decide which ranks are idle
        choices += [(mode, size) for mode in range(len(keys)) for size in _sizes(keys, stride, mode)]
    for mode, size in choices:
        filled = _filled(keys, stride, size, mode)
        yield from _prefixed(_Digit(Axis(stride, size), mode), _readings(filled, idle, stride * size))
    if len(keys) and idle.any() and not idle.all():
        for size in _divisors(left):
            where = np.unique(np.flatnonzero(~idle) // stride % size)
            if len(where) == 1:
                at = int(where[0])
                shaped = keys.reshape(len(keys), -1, size, stride)
                same = np.broadcast_to(shaped[:, :, at : at + 1], shaped.shape).reshape(keys.shape)
                spread = np.repeat(idle.reshape(-1, size, stride)[:, at : at + 1], size, axis=1).reshape(-1)
                digit = _Digit(Axis(stride, size), root=at)
                yield from _prefixed(digit, _readings(same, spread, stride * size))


def _prefixed(digit: _Digit, readings: Iterator[_Reading]) -> Iterator[_Reading]:
    for reading in readings:
        yield _Reading((digit, *reading.digits), reading.keys)


def _sizes(keys: Ints, stride: int, mode: int) -> list[int]:
    """The sizes of digits that affect one mode alone: those followed by a digit without effect, and the largest.

    If some keys are unknown there may be several largest ones, none of which is a multiple of another.
    """
    others, own = np.delete(keys, mode, axis=0), keys[mode : mode + 1]
    sizes = [p for p in _divisors(keys.shape[1] // stride) if not _decides(others, stride, p)]
    kept = []
    for p in sizes:
        primes = [q // p for q in sizes if q > p and q % p == 0 and q // p in _primes(q // p)]
        if not primes or not all(_decides(own, stride * p, prime) for prime in primes):
            kept.append(p)
    return kept


def _reach(keys: Ints, stride: int) -> int:
    """The size of the largest digit at a stride that affects none of these modes."""
    size = 1
    while True:
        left = keys.shape[1] // (stride * size)
        prime = next((p for p in _primes(left) if not _decides(keys, stride * size, p)), None)
        if prime is None:
            return size
        size *= prime


def _decides(keys: Ints, stride: int, size: int) -> bool:
    """Whether some run depends on a digit."""
    if not len(keys):
        return False
    shaped = keys.reshape(len(keys), -1, size, stride)
    return bool(((shaped != shaped.max(axis=2, keepdims=True)) & (shaped >= 0)).any())


def _filled(keys: Ints, stride: int, size: int, mode: int | None) -> Ints:
    """The keys, with unknown ones of all modes but `mode` taken from ranks with other values of the digit."""
    if not len(keys):
        return keys
    shaped = keys.reshape(len(keys), -1, size, stride)
    filled = np.broadcast_to(shaped.max(axis=2, keepdims=True), shaped.shape).reshape(keys.shape).copy()
    if mode is not None:
        filled[mode] = keys[mode]
    return filled


def _divisors(n: int) -> tuple[int, ...]:
    """The divisors above 1."""
    return divisors(n)[1:]


def _primes(n: int) -> list[int]:
    return [prime for prime, _ in prime_factors(n)]


def _layout(
    shape: tuple[int, ...],
    ranks: int,
    tables: Sequence[Ints],
    reading: _Reading,
    empty: npt.NDArray[np.bool_],
    unchained: set[int],
) -> tuple[LayoutSyntax, Grid] | None:
    """The layout and the grid of a reading, if each mode has a chain; else a mode without one joins `unchained`."""
    numbers = np.arange(ranks)
    holding = np.ones(ranks, bool)
    for digit in reading.digits:
        if digit.root is not None:
            holding &= numbers // digit.axis.stride % digit.axis.size == digit.root
    chains: list[tuple[Link, ...]] = []
    for mode, (extent, table) in enumerate(zip(shape, tables, strict=True)):
        runs = np.where(reading.keys[mode, :, None] >= 0, table[reading.keys[mode]], (0, 0, 1))
        holding &= runs[:, 1] > 0
        axes = tuple(digit.axis for digit in reversed(reading.digits) if digit.mode == mode)
        where = np.array(0)  # the ranks whose other digits are 0
        for stride, size in axes:
            where = np.add.outer(where, stride * np.arange(size))
        chain = find_chain(axes, extent, *np.moveaxis(runs[where], -1, 0))
        if chain is None:
            unchained.add(mode)
            return None
        chains.append(chain)
    if shape and not np.array_equal(holding, ~empty):
        return None
    others = [digit for digit in reading.digits if digit.mode is None]
    grid_modes = [link.axis for chain in chains for link in chain] + [digit.axis for digit in others]
    grid_modes.sort(reverse=True)
    modes = []
    for chain in chains:
        modes.append(tuple([Entry(grid_modes.index(link.axis), link.kind) for link in chain]))
    rooted = tuple([(grid_modes.index(digit.axis), digit.root) for digit in others if digit.root is not None])
    return LayoutSyntax(tuple(modes), rooted=rooted), Grid(tuple([axis.size for axis in grid_modes]) or (1,))


def _why(shape: tuple[int, ...], runs: Ints, unchained: set[int]) -> str:
    """Why no layout has these blocks, and what to do."""
    sizes = runs[..., 1].prod(axis=0)
    blocks, first = np.unique(runs[:, sizes > 0].swapaxes(0, 1), axis=0, return_index=True)
    ranks = np.flatnonzero(sizes > 0)[first]
    pair = _overlap(blocks)
    if pair is not None:
        a, b = sorted(int(ranks[k]) for k in pair)
        return f"those of ranks {a} and {b} overlap, and are not the same\ngive blocks that are disjoint, or replicas"
    held, total = int(blocks[..., 1].prod(axis=1).sum()), prod(shape)
    if held < total:
        return f"they leave a gap: together they hold {held} of {total} elements\ngive every element to some rank"
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
        low = np.maximum(blocks[:-ahead, :, 0], blocks[ahead:, :, 0])
        meets = (low <= np.minimum(ends[:-ahead], ends[ahead:])).all(axis=1)
        for k in np.flatnonzero(meets).tolist():
            if all(map(and_, _sets(blocks[k]), _sets(blocks[k + ahead]))):
                return k, k + ahead
    return None


def _sets(block: Ints) -> list[IndexSet]:
    """Per mode, the indices of a block of runs."""
    return [IndexSet.of_runs([(a, a + 1)], step, a + (n - 1) * step + 1) for a, n, step in block.tolist()]
