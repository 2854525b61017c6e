"""Walks lowered to the operations of one rank. Where possible, moves apply twiddles while they copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from rote.compiler.movement.components import components
from rote.compiler.movement.messages import sends
from rote.compiler.plan import Plan
from rote.compiler.step import Step
from rote.layout.grid import row_major
from rote.layout.layout import Distribution
from rote.runtime.comm.cache import gathered
from rote.runtime.comm.protocol import Array, Comm
from rote.runtime.executor.operations import Factors, Operation, lowered

from ..kernels.kernel import Kernel
from ..kernels.speeds import with_usual_configs
from ..kernels.threads import SHARED, Pool, helpers
from ..kernels.turns import Position
from ..request.arguments import Options
from ..transforms import CASTS, KINDS
from ..walk.walk import Action, Convolve, Resize, Stage, Twiddle, Walk, dtype_after
from .twiddles import chirp_spectrum, factor
from .work import BoundResize, Cast, KernelWork

__all__ = ["operations"]


_LARGE = 1 << 22  # bytes: in larger blocks the first mode is transformed separately, before or after all others


def operations(
    walk: Walk, comm: Comm, ortho: bool, options: Options, run_once: Callable[[Walk, Array], Array]
) -> list[Operation]:
    """The operations of a rank in a walk, in order. Collective.

    Args:
        ortho: whether cosine and sine transforms are orthogonal, up to the scale.
        run_once: runs the walk of another tensor on a block, for the spectra of chirps.
    """
    run_list: list[Operation] = []
    due: Factors = ()  # factors that the next move applies
    dtypes, moves, rank = walk.dtypes(), walk.transitions, comm.rank
    stays = _stays_everywhere(moves, comm)
    lowering = _Lowering(comm, ortho, helpers(comm, options.threads), run_once)
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
            carried = _refined(due, shape, block_shape)
            if due and (carried is None or leading or last >= 0):
                run_list.append(Operation.multiply(shape, dtype, due))
                carried = ()
            due = carried or ()
            _lead(run_list, leading, block_shape, dtype)
        shape = block_shape
        for action in stage.done[first : last + 1]:
            for operation in lowering.of(action, stage, shape, dtype):
                run_list.append(operation)
                shape, dtype = operation.out_shape, operation.out_dtype
        due += _factors(stage, stage.done[last + 1 :], rank, dtype)
    if due:
        run_list.append(Operation.multiply(shape, dtypes[-1], due))
    return _with_configs(run_list, comm, options)


@dataclass(frozen=True, slots=True)
class _Lowering:
    """The lowering of actions to a rank's operations; other attributes are arguments of `operations`.

    Attributes:
        pool: the kernels' threads, if there are several.
    """

    comm: Comm
    ortho: bool
    pool: Pool
    run_once: Callable[[Walk, Array], Array]

    def of(self, action: Action, stage: Stage, shape: tuple[int, ...], dtype: np.dtype[Any]) -> list[Operation]:
        """The operations of an action on a block of some shape and dtype."""
        rank = self.comm.rank
        if isinstance(action, Twiddle):
            return [Operation.multiply(shape, dtype, (factor(action, stage.before, rank, dtype),))]
        if isinstance(action, Convolve):
            spectrum = chirp_spectrum(action, stage.before, self.comm, dtype, self.run_once)
            return [Operation.multiply(shape, dtype, (spectrum,))]
        if isinstance(action, Resize):
            ends = zip((stage.before, stage.after), action.extents, strict=True)
            begun, ended = (_held(dist, action.mode, n, rank) for dist, n in ends)
            out = _with(shape, action.mode, len(ended))
            return [Operation(BoundResize.of(action, begun, ended, dtype), shape, out, dtype, dtype)]
        if action.kind in CASTS:
            return [Operation(Cast(), shape, shape, dtype, dtype_after(action.kind, dtype))]
        out = shape
        if action.length:
            n = KINDS[action.kind].given(action.length)
            out = _with(shape, action.modes[-1], n * stage.before.holds(rank))
        run_list = []
        alone = self.pool is None
        for kernel in _in_turn(Kernel(KINDS[action.kind].name, action.modes, shape, out, dtype), stage, alone):
            run = KernelWork(kernel, self.ortho, self.pool)
            run_list.append(Operation(run, kernel.shape, kernel.out_shape, kernel.dtype, kernel.out_dtype))
        return run_list


def _in_turn(kernel: Kernel, stage: Stage, alone: bool) -> tuple[Kernel, ...]:
    """The kernels that replace a stage's kernel, equally many on all ranks: two if blocks are large, else itself.

    Threads can share each of the two, so they count smaller blocks as large than a thread `alone` does.
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
        behind = n > 0 and isinstance(run_list[n - 1].run, Step)
        places.append(Position(behind, stays=n > 0 and not behind and work.in_place))
    made = with_usual_configs([work.kernel for work in transforms.values()], places, comm, options.threads)
    if options.tune != "model":
        from ..kernels.timing import tuned

        made = tuned(made, places, comm, options)
    for (n, transform), kernel in zip(transforms.items(), made, strict=True):
        run_list[n] = replace(run_list[n], run=replace(transform, kernel=kernel))
    return run_list


def _held(dist: Distribution, mode: int, extent: int, rank: int) -> Array:
    """A rank's indices along a mode; `extent` is the mode's extent at this point of the walk."""
    return dist.indices(rank)[mode] if dist.splits[mode] else np.arange(extent * dist.holds(rank))


def _with(shape: tuple[int, ...], mode: int, extent: int) -> tuple[int, ...]:
    """A shape with another extent of one mode."""
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
        for n, kept, row in zip(shape, values.shape, rows, strict=True):
            extents += row if kept == n else [1] * len(row)
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
    mine = [local and _stays(move, comm.rank) for local, move in zip(maybe, moves, strict=True)]
    return tuple(map(all, zip(*gathered(comm, "a bound walk", mine), strict=True)))


def _stays(move: Plan, rank: int) -> bool:
    """Whether a move leaves a rank's block in memory as it is, so that only its shape changes."""
    source, target = move.source, move.target
    shapes = source.local_shape(rank), target.local_shape(rank)
    kept = [message for message in sends(source, target, rank) if message.peer == rank]
    if prod(shapes[0]) != prod(shapes[1]) or sum(map(len, kept)) != prod(shapes[0]):
        return False
    before, after = map(row_major, shapes)
    for message in kept:
        for part, group in zip(components(source, target), message.groups, strict=True):
            if not group.lies([before[m] for m in part.before], [after[m] for m in part.after]):
                return False
    return True
