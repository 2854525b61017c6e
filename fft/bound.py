"""A walk bound to ranks: kernels, moves and factors, one after the other, between two blocks of scratch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from rote.compiler.plan import Plan
from rote.layout.distribution import Distribution
from rote.runtime.comm import Comm
from rote.runtime.execute import Program, bind

from .kernels import Kernel, is_plain, plain, real_dtype, scratch_bytes, view
from .passes import BoundKernel
from .twiddles import factor
from .walk import Stage, Transform, Twiddle, Walk, dtype_after

__all__ = ["BoundWalk"]

Array = npt.NDArray[Any]
Factors = tuple[Array, ...]
Scratch = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]


@dataclass(frozen=True, slots=True)
class _Multiply:
    """Factors where no move takes them along."""

    factors: Factors

    def __call__(self, source: Array, target: Array) -> None:
        for number, one in enumerate(self.factors):
            np.multiply(target if number else source, one, out=target)


@dataclass(frozen=True, slots=True)
class _Move:
    """A program, and what it multiplies the tensor by on the way: as it packs, and as it unpacks."""

    program: Program
    before: Factors
    after: Factors

    def __call__(self, source: Array, target: Array) -> None:
        self.program(source, target, before=self.before, after=self.after)


@dataclass(frozen=True, slots=True)
class _Operation:
    """One operation of a bound walk, and the block that goes in and that comes out."""

    run: Callable[[Array, Array], None]
    shape: tuple[int, ...]
    out_shape: tuple[int, ...]
    out_dtype: np.dtype[Any]

    @property
    def in_place(self) -> bool:
        """Whether the block may come out where it went in."""
        return not isinstance(self.run, _Move) and (not isinstance(self.run, BoundKernel) or self.run.kernel.in_place)


class BoundWalk:
    """A walk bound to a communicator; its two scratch blocks are each as large as the largest block.

    A walk and its inverse may share their scratch. `dtypes` are those at the start and after every stage.
    """

    def __init__(self, walk: Walk, comm: Comm, scratch: Scratch | None = None) -> None:
        self.walk = walk
        self.dtypes = walk.dtypes()
        if scratch is None:
            blocks = [prod(d.local_shape(comm.rank)) for s in walk.stages for d in (s.before, s.after)]
            largest = max(blocks) * max(d.itemsize for d in self.dtypes)
            scratch = scratch_bytes(largest), scratch_bytes(largest)
        self.scratch = scratch
        self._operations = _operations(walk, comm, scratch)
        fresh = [i for i, operation in enumerate(self._operations) if not operation.in_place]
        self._last = max(fresh, default=0)  # from here on the block lies in `out`
        moves = [i for i, operation in enumerate(self._operations) if isinstance(operation.run, _Move)]
        self._scaled = moves[-1] if moves else None  # the move that takes a scaling along

    @property
    def programs(self) -> list[Program]:
        """The bound moves, in order."""
        return [operation.run.program for operation in self._operations if isinstance(operation.run, _Move)]

    def __call__(self, block: Array, out: Array, scale: np.floating[Any], ortho: bool = False) -> None:
        """Walk a block from the walk's source to its target, into `out`, times a scale; the input is preserved.

        With `ortho` cosine and sine transforms are orthogonal, but for the scale.
        """
        fits = is_plain(out) and out.flags.writeable
        target = plain(out) if fits else plain(np.empty(out.shape, out.dtype))
        here, taken = plain(block), -1  # the scratch block that `here` lies in
        if not self._operations:
            target[...] = here.reshape(target.shape)
        for number, operation in enumerate(self._operations):
            run, here = operation.run, here.reshape(operation.shape)
            if isinstance(run, BoundKernel) and run.spoils(ortho) and number == 0 and here.size:
                taken = 0
                copy = view(self.scratch[0], here.shape, here.dtype)
                copy[...] = here
                here = copy
            if number >= self._last:
                there = target.reshape(operation.out_shape)
            elif operation.in_place and taken >= 0:
                there = here
            else:
                taken = 1 if taken == 0 else 0
                there = view(self.scratch[taken], operation.out_shape, operation.out_dtype)
            if number == self._scaled and isinstance(run, _Move) and scale != 1:
                with_scale = np.array(scale, real_dtype(here.dtype))
                run.program(here, there, before=(with_scale, *run.before), after=run.after)
            elif isinstance(run, BoundKernel):
                run(here, there, ortho)
            else:
                run(here, there)
            here = there
        if self._scaled is None and scale != 1:
            target *= real_dtype(target.dtype).type(scale)
        if not fits:
            out[...] = target


def _operations(walk: Walk, comm: Comm, scratch: Scratch) -> list[_Operation]:
    found: list[_Operation] = []
    due: Factors = ()  # factors that the next move takes along
    dtypes, moves, rank = walk.dtypes(), walk.transitions, comm.rank
    shape: tuple[int, ...] = ()
    for number, stage in enumerate(walk.stages):
        dtype, last = dtypes[number], _last_transform(stage)
        leading, trailing = _leading(stage, rank, dtype), stage.done[last + 1 :]
        here = stage.before.local_shape(rank)
        if number and not _stays(moves[number - 1], rank):
            move = moves[number - 1]
            ends = move.source.local_shape(rank), move.target.local_shape(rank)
            found.append(_Operation(_Move(bind(move, comm), due, leading), *ends, dtype))
            due = ()
        else:
            carried = _refined(due, shape, here)
            if due and (carried is None or leading or last >= 0):
                found.append(_Operation(_Multiply(due), shape, shape, dtype))
                carried = ()
            due = carried or ()
            _lead(found, leading, here, dtype)
        shape = here
        for action in stage.done[len(leading) : last + 1]:
            if isinstance(action, Twiddle):
                run: Callable[[Array, Array], None] = _Multiply((factor(action, stage.before, rank, dtype),))
                found.append(_Operation(run, shape, shape, dtype))
            elif action.modes:
                out = _extents(shape, action, stage.after.local_shape(rank))
                kernel = Kernel(action.kind, action.modes, shape, out, dtype)
                dtype = dtype_after(action.kind, dtype)
                found.append(_Operation(BoundKernel(kernel, scratch), shape, out, dtype))
                shape = out
        due += tuple(factor(one, stage.before, rank, dtype) for one in trailing if isinstance(one, Twiddle))
    if due:
        found.append(_Operation(_Multiply(due), shape, shape, dtypes[-1]))
    return found


def _lead(found: list[_Operation], leading: Factors, here: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Factors before a stage's transforms, where the block has only been read otherwise: the last move takes them."""
    if not leading:
        return
    before = found[-1] if found else None
    if before is not None and isinstance(before.run, _Move):
        carried = _refined(leading, here, before.out_shape)
        if carried is not None:
            found[-1] = replace(before, run=replace(before.run, after=(*before.run.after, *carried)))
            return
    found.append(_Operation(_Multiply(leading), here, here, dtype))


def _refined(factors: Factors, shape: tuple[int, ...], finer: tuple[int, ...]) -> Factors | None:
    """Factors of blocks of some shape, for the same blocks with modes cut in several; None if they are not cut so.

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
    return tuple(
        one.reshape(
            [m if kept == n else 1 for n, kept, row in zip(shape, one.shape, rows, strict=True) for m in row] + left
        )
        for one in factors
    )


def _last_transform(stage: Stage) -> int:
    """The place of the last transform of a stage; -1 if it has none."""
    return max((k for k, action in enumerate(stage.done) if isinstance(action, Transform)), default=-1)


def _leading(stage: Stage, rank: int, dtype: np.dtype[Any]) -> Factors:
    """The factors before a stage's first transform; of a stage without one they are all trailing."""
    first = next((k for k, action in enumerate(stage.done) if isinstance(action, Transform)), 0)
    return tuple(factor(a, stage.before, rank, dtype) for a in stage.done[:first] if isinstance(a, Twiddle))


def _extents(shape: tuple[int, ...], action: Transform, after: tuple[int, ...]) -> tuple[int, ...]:
    """The local shape after a transform: the extent of a real one is that at the end of the stage."""
    if action.kind not in ("rfft", "irfft"):
        return shape
    real = action.modes[-1]
    return (*shape[:real], after[real], *shape[real + 1 :])


def _stays(move: Plan, rank: int) -> bool:
    """Whether a rank's block stays as it is, and is only read otherwise."""
    if any(step.kind != "relayout" for step in move.steps):
        return False
    return np.array_equal(_order(move.source, rank), _order(move.target, rank))


def _order(dist: Distribution, rank: int) -> Array:
    """The elements of a rank's block, in its order, as row-major tensor indices."""
    flat = np.zeros(dist.local_shape(rank), np.int64)
    for index, extent in zip(dist.tensor_indices(rank), dist.shape, strict=True):
        flat *= extent
        flat += index
    return flat.reshape(-1)
