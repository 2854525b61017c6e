"""Walks lowered to the operations of one rank. Where possible, moves apply twiddles while they copy.

The local work of an operation is a kernel, also fused with a move; a change of extent; or one of dtype. Several small
components of a field go at once: every stage does them one after the other, and one exchange moves them all. They then
cost as many messages and barriers as one component does. For large blocks the bytes decide the time of an exchange, and
one component after the other needs less workspace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from rote.compiler.plan import Plan
from rote.compiler.step import Step
from rote.layout.distribution import Distribution
from rote.runtime.comm.agreement import gathered
from rote.runtime.comm.protocol import Array, Comm
from rote.runtime.copies import Copy
from rote.runtime.operations import BlockWork, Factors, LocalWork, MakeReader, Operation, Scratch, lowered
from rote.runtime.regions import Region

from ..kernels.choose import Position, with_usual_configs
from ..kernels.gather import Gather, boxes, gathers, whole
from ..kernels.kernel import ALIGNMENT, Kernel, Scale, is_plain, plain
from ..kernels.threads import SHARED, Pool, bind_kernel, helpers
from ..request import Options
from ..transforms import CASTS, KINDS
from ..walk import Action, Convolve, Resize, Stage, Twiddle, Walk, dtype_after, keeps_order
from .twiddles import chirp, chirp_spectrum, factor

__all__ = ["BoundResize", "Cast", "KernelWork", "of_components", "operations"]


_LARGE = 1 << 22  # bytes: in larger blocks the first mode is transformed separately, before or after all others


def operations(
    walk: Walk, comm: Comm, ortho: bool, options: Options, run_once: Callable[[Walk, Array], Array]
) -> list[Operation]:
    """The operations of a rank in a walk, in order. Collective.

    Args:
        ortho: whether cosine and sine transforms are orthogonal, up to the scale.
        run_once: runs the walk of another tensor on a block, for the spectra of chirps.
    """
    # Factors are multiplied by the sweep of a move, which touches every element anyway: those after the last transform
    # of a stage wait (`due`) for the move after it, and those before the first one for the move before.
    #
    #     stage n: fft, twiddle  ->  move (pack x twiddle, unpack x leading)  ->  stage n + 1: leading, fft
    run_list: list[Operation] = []
    due: Factors = ()  # factors that the next move applies
    dtypes, moves, rank = walk.dtypes(), walk.transitions, comm.rank
    stays = _stays_everywhere(moves, comm)
    pool = helpers(comm, options.threads)
    shape: tuple[int, ...] = ()

    for number, stage in enumerate(walk.stages):
        dtype, first, last = dtypes[number], 0, -1
        acting = [k for k, action in enumerate(stage.done) if not isinstance(action, Twiddle)]
        if acting:
            first, last = acting[0], acting[-1]
        leading = _factors(stage, stage.done[:first], rank, dtype)
        block_shape = stage.before.local_shape(rank)

        if number and not stays[number - 1]:
            run_list += lowered(moves[number - 1], rank, due, leading)
            due = ()
        else:
            # The block stays in memory as it is, so there is no sweep: factors go on to the next move if they can.
            carried = _refined(due, shape, block_shape)
            if due and (carried is None or leading or last >= 0):
                run_list.append(Operation.multiply(shape, dtype, due))
                carried = ()
            due = carried or ()
            _lead(run_list, leading, block_shape, dtype)

        shape = block_shape
        for action in stage.done[first : last + 1]:
            for operation in _lowered(action, stage, shape, dtype, comm, ortho, pool, run_once):
                run_list.append(operation)
                shape, dtype = operation.out_shape, operation.out_dtype
        due += _factors(stage, stage.done[last + 1 :], rank, dtype)

    if due:
        run_list.append(Operation.multiply(shape, dtypes[-1], due))
    return _with_configs(run_list, comm, options)


def _lowered(
    action: Action,
    stage: Stage,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    comm: Comm,
    ortho: bool,
    pool: Pool,
    run_once: Callable[[Walk, Array], Array],
) -> list[Operation]:
    """The operations of an action on a rank's block of some shape and dtype."""
    if isinstance(action, Twiddle):
        return [Operation.multiply(shape, dtype, (factor(action, stage.before, comm.rank, dtype),))]
    if isinstance(action, Convolve):
        spectrum = chirp_spectrum(action, stage.before, comm, dtype, run_once)
        return [Operation.multiply(shape, dtype, (spectrum,))]
    if isinstance(action, Resize):
        ends = zip((stage.before, stage.after), action.extents, strict=True)
        begun, ended = (_indices(dist, action.mode, n, comm.rank) for dist, n in ends)
        out = _with(shape, action.mode, len(ended))
        return [Operation(BoundResize.of(action, begun, ended, dtype), shape, out, dtype, dtype)]
    if action.kind in CASTS:
        return [Operation(Cast(), shape, shape, dtype, dtype_after(action.kind, dtype))]

    out = shape
    if action.length:
        n = KINDS[action.kind].given(action.length)
        out = _with(shape, action.modes[-1], n * stage.before.holds(comm.rank))

    run_list = []
    for kernel in _in_turn(Kernel(KINDS[action.kind].name, action.modes, shape, out, dtype), stage, pool is None):
        run = KernelWork(kernel, ortho, pool)
        run_list.append(Operation(run, kernel.shape, kernel.out_shape, kernel.dtype, kernel.out_dtype))
    return run_list


def _in_turn(kernel: Kernel, stage: Stage, alone: bool) -> tuple[Kernel, ...]:
    """The kernels that replace a stage's kernel, equally many on all ranks: two if blocks are large, else itself.

    Threads can share each of the two, so for them smaller blocks are large than for a thread `alone`.
    """
    if len(kernel.axes) == 1 or min(kernel.axes) > 0:
        return (kernel,)
    large = prod(stage.before.max_local_shape()) * kernel.dtype.itemsize > (_LARGE if alone else SHARED)
    return kernel.in_turn() if large else (kernel,)


def _with_configs(run_list: list[Operation], comm: Comm, options: Options) -> list[Operation]:
    """The operations with the configs of their kernels. Collective."""
    transforms = {n: operation.run for n, operation in enumerate(run_list) if isinstance(operation.run, KernelWork)}
    places = list[Position]()
    for n, work in transforms.items():
        after_move = n > 0 and isinstance(run_list[n - 1].run, Step)
        places.append(Position(after_move, stays=n > 0 and not after_move and work.in_place))

    made = with_usual_configs([work.kernel for work in transforms.values()], places, comm, options.threads)
    for (n, transform), kernel in zip(transforms.items(), made, strict=True):
        run_list[n] = replace(run_list[n], run=replace(transform, kernel=kernel))
    return run_list


def _indices(dist: Distribution, mode: int, extent: int, rank: int) -> Array:
    """A rank's indices along a mode; `extent` is the mode's extent at this point of the walk."""
    return dist.indices(rank)[mode] if dist.splits[mode] else np.arange(extent * dist.holds(rank))


def _with(shape: tuple[int, ...], mode: int, extent: int) -> tuple[int, ...]:
    return (*shape[:mode], extent, *shape[mode + 1 :])


def _lead(run_list: list[Operation], leading: Factors, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Apply factors before a stage's transforms: by the last move if there is one, else by an operation."""
    if not leading:
        return
    before = run_list[-1] if run_list else None
    if before is not None and isinstance(before.run, Step):
        carried = _refined(leading, shape, before.out_shape)
        if carried is not None:
            run_list[-1] = replace(before, after=(*before.after, *carried))
            return
    run_list.append(Operation.multiply(shape, dtype, leading))


def _refined(factors: Factors, shape: tuple[int, ...], finer: tuple[int, ...]) -> Factors | None:
    """Factors for equal blocks whose modes are cut into several; None if `finer` is not such a shape.

    >>> [one.shape for one in _refined((np.ones((1, 6)),), (5, 6), (5, 1, 2, 3))]
    [(1, 1, 2, 3)]
    """
    rows: list[list[int]] = []  # the new extents, by the old ones
    left = list(finer)
    for extent in shape:
        row: list[int] = []
        while left and (prod(row) != extent or not row):
            row.append(left.pop(0))
        if prod(row) != extent:
            return None
        rows.append(row)
    if prod(left) != 1:
        return None

    refined = []
    for values in factors:
        extents: list[int] = []
        for n, extent, row in zip(shape, values.shape, rows, strict=True):
            extents += row if extent == n else [1] * len(row)  # an extent of 1 is broadcast to all of them
        refined.append(values.reshape([*extents, *left]))
    return tuple(refined)


def _factors(stage: Stage, actions: Sequence[Action], rank: int, dtype: np.dtype[Any]) -> Factors:
    """The factors of the twiddles among some actions of a stage."""
    return tuple(factor(action, stage.before, rank, dtype) for action in actions if isinstance(action, Twiddle))


def _stays_everywhere(moves: Sequence[Plan], comm: Comm) -> tuple[bool, ...]:
    """Per move, whether blocks on all ranks keep their memory order, so that all ranks decide alike. Collective."""
    maybe = [{step.kind for step in move.steps} <= {"relayout"} for move in moves]
    if not any(maybe):
        return tuple(maybe)
    mine = [
        local and keeps_order(move.source, move.target, comm.rank) for local, move in zip(maybe, moves, strict=True)
    ]
    return tuple(map(all, zip(*gathered(comm, "a bound walk", mine), strict=True)))


@dataclass(frozen=True, slots=True)
class KernelWork(LocalWork):
    """A kernel as work of a program.

    Attributes:
        ortho: whether cosine and sine transforms are orthogonal, up to the scale.
        pool: the kernel's threads, if there are several.
        scale: a real number by which the result is multiplied; 1 if a move comes before the kernel.
    """

    kernel: Kernel
    ortho: bool
    pool: Pool
    scale: Scale = 1

    @property
    def in_place(self) -> bool:
        return self.kernel.in_place

    @property
    def overwrites_input(self) -> bool:
        return self.kernel.overwrites_input(self.ortho)

    @property
    def gathers(self) -> bool:
        """Whether the kernel may read its block out of boxes."""
        return gathers(self.kernel, self.ortho)

    @property
    def along(self) -> int | None:
        kernel = self.kernel
        able = kernel.config.threads == 1 and len(kernel.shape) > 1 and (0 not in kernel.axes or kernel.axes == (0,))
        return kernel.step_axis if able else None

    def bind(self, scratch: Scratch, after_move: bool) -> BlockWork:
        if after_move and self.gathers:
            return _GatherOfBlock(Gather(self.kernel, whole(self.kernel.shape), (), scratch, self.pool))
        return bind_kernel(self.kernel, scratch, self.ortho, self.scale, self.pool)

    def reader(self, regions: Iterable[tuple[int, Region]]) -> MakeReader | None:
        if not self.gathers:
            return None
        parts = boxes(regions, len(self.kernel.shape))
        return None if parts is None else partial(Gather, self.kernel, parts, pool=self.pool)


class _GatherOfBlock(BlockWork):
    """A kernel that reads a single block, and rounds as it does when it reads boxes of several blocks."""

    __slots__ = ("_gather",)

    def __init__(self, gather: Gather) -> None:
        self._gather = gather

    def bound(self, source: Array, target: Array) -> list[Copy]:
        return self._gather.bound(self._gather.reads([source.reshape(-1)]), target)


@dataclass(frozen=True, slots=True)
class BoundResize(LocalWork, BlockWork):
    """A change of extent, bound to a rank.

    For an even number of points, Nyquist's term stands for both signs of the highest frequency. On more points each
    sign has a term of its own, with half of the value. So a signal that fewer points resolve keeps its values there.

    Attributes:
        mode: the mode of the block.
        head, tail: the numbers of elements that are kept at both ends of the mode.
        twice: the places in the longer block of Nyquist's term of the shorter one; empty if there is none.
        half: whether the block is half a spectrum, which has only one of these two terms.
        cut: whether there are fewer points afterwards; the extents of half a spectrum do not tell.
        weights: the weights of the head, if it has any.
    """

    mode: int
    head: int
    tail: int
    twice: tuple[int, ...]
    half: bool
    cut: bool
    weights: Array | None = None

    @staticmethod
    def of(resize: Resize, indices: Array, new_indices: Array, dtype: np.dtype[Any]) -> BoundResize:
        """A change of extent on a rank, from the rank's indices along the mode before and after, and the dtype."""
        cut = resize.old > resize.new
        fewer, more = (new_indices, indices) if cut else (indices, new_indices)

        if resize.kind == "chirp":
            weights = chirp(fewer, min(resize.extents), dtype, resize.back)
            return BoundResize(resize.mode, len(fewer), 0, (), False, cut, weights)
        if resize.kind == "fold" and not cut:
            once = (fewer == 0) | (2 * fewer == resize.new)  # all other terms stand for the other half as well
            return BoundResize(resize.mode, len(fewer), 0, (), False, cut, np.where(once, 1, 2).astype(dtype))
        if resize.kind != "resample" or resize.old == resize.new:
            return BoundResize(resize.mode, len(fewer), 0, (), resize.half, cut)

        # Frequencies 0, 1, ... are at the head of the longer block, and -1, -2, ... at its tail.
        points, longer = sorted((resize.old, resize.new))
        head = int(np.searchsorted(fewer, (points + 1) // 2))
        tail = len(fewer) - int(np.searchsorted(fewer, points // 2 + 1))
        both = [points // 2] if resize.half else [points // 2, longer - points // 2]
        twice = tuple(map(int, np.searchsorted(more, both))) if head + tail < len(fewer) else ()
        return BoundResize(resize.mode, head, tail, twice, resize.half, cut)

    def bind(self, scratch: Scratch, after_move: bool) -> BoundResize:
        return self

    def __call__(self, source: Array, target: Array) -> None:
        """Copy the kept elements of `source` into `target`, which is other memory."""
        extent, new_extent = (block.shape[self.mode] for block in (source, target))
        for start, end, count in ((0, 0, self.head), (extent - self.tail, new_extent - self.tail, self.tail)):
            target[self._at(end, count)] = source[self._at(start, count)]
        if self.weights is not None:
            target[self._at(0, self.head)] *= self.weights.reshape(-1, *(1,) * (source.ndim - self.mode - 1))
        target[self._at(self.head, new_extent - self.tail - self.head)] = 0

        if self.twice and self.cut:
            terms = [source[self._at(place, 1)] for place in self.twice]
            target[self._at(self.head, 1)] = 2 * terms[0].real if self.half else terms[0] + terms[1]
        elif self.twice:
            term = source[self._at(self.head, 1)] / 2
            for place in self.twice:
                target[self._at(place, 1)] = term.real if self.half else term

    def _at(self, start: int, count: int) -> tuple[slice, ...]:
        return (*(slice(None),) * self.mode, slice(start, start + count))


@dataclass(frozen=True, slots=True)
class Cast(LocalWork, BlockWork):
    """A conversion from real to complex numbers, or from complex numbers to their real part."""

    def bind(self, scratch: Scratch, after_move: bool) -> Cast:
        return self

    def __call__(self, source: Array, target: Array) -> None:
        target[...] = source if target.dtype.kind == "c" else source.real


def of_components(operation: Operation, count: int) -> Operation:
    """The operation on `count` components at once, in blocks with a mode of components in front.

    A step moves all components together. Factors are equal for all, and work is done on each component by itself.
    """
    run = operation.run
    if isinstance(run, Step):
        run = run.of_field((count,))
    else:
        aligned = not any(size % ALIGNMENT for size in operation.sizes)
        run = _Componentwise(run, aligned)
    return replace(operation, run=run, shape=(count, *operation.shape), out_shape=(count, *operation.out_shape))


@dataclass(frozen=True, slots=True)
class _Componentwise(LocalWork):
    """Work that is done on every component of a block.

    Attributes:
        work: the work on one component.
        aligned: whether all components are aligned for FFTW's plans if the first one is.
    """

    work: LocalWork
    aligned: bool

    @property
    def in_place(self) -> bool:
        return self.work.in_place

    @property
    def overwrites_input(self) -> bool:
        return self.work.overwrites_input

    def bind(self, scratch: Scratch, after_move: bool) -> BlockWork:
        copied = isinstance(self.work, KernelWork) and not self.aligned
        return _EachComponent(self.work.bind(scratch, after_move), copied)


class _EachComponent(BlockWork):
    """Work on one component after the other; unaligned ones are copied, because other plans would round differently."""

    __slots__ = ("_copied", "_work")

    def __init__(self, work: BlockWork, copied: bool) -> None:
        self._work, self._copied = work, copied

    def bound(self, source: Array, target: Array) -> list[Copy]:
        calls: list[Copy] = []
        for component, result in zip(source, target, strict=True):
            if self._copied:
                calls.append(partial(self._on_copies, component, result))
            else:
                calls += self._work.bound(component, result)
        return calls

    def _on_copies(self, source: Array, target: Array) -> None:
        end = target if is_plain(target) else plain(np.empty_like(target))
        self._work(plain(source), end)
        if end is not target:
            target[...] = end
