"""Both directions of a transform, bound to ranks, and their runs on tensors and on fields, with components in front."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from rote.errors import LayoutError
from rote.functions.distributed import changed, check_out
from rote.functions.moves import announce
from rote.layout.distribution import Distribution
from rote.layout.refine import with_components
from rote.runtime.comm import segments
from rote.runtime.comm.agreement import CHECKS, agree, gathered
from rote.runtime.comm.protocol import Array, Comm
from rote.runtime.copy.strided import Copy
from rote.runtime.ends import bound_without_overlap, is_small, run_without_overlap
from rote.runtime.operations import Scratch
from rote.tensor import DistTensor

from ..request import Norm, Options, scale
from ..walk.walk import Walk
from .program import BoundWalk, Workspace, bind_walks

__all__ = ["BoundField", "Fields", "Pair", "bind_pair", "empty", "list_moves", "transformed"]

_SMALL = 1 << 20  # bytes: for larger blocks one exchange of several components is no faster than one exchange each
_MOST = 16  # components of a batch: more save next to nothing

_Batch = tuple[slice | int, BoundWalk]  # the components that go at once, and their walk; a number if one goes alone


class BoundField:
    """A walk of the components of a field, bound to the walk's ranks: one batch of components after the other.

    Args:
        bound: the walk of one component.
        components: the extents of the modes in front.
        batches: all components, in order.

    Attributes:
        source, target, dtypes, reads_first, prepares, prepared: those of a `BoundWalk`, for fields.
    """

    __slots__ = ("_batches", "_count", "_orders", "dtypes", "prepared", "prepares", "reads_first", "source", "target")

    def __init__(self, bound: BoundWalk, components: tuple[int, ...], batches: list[_Batch]) -> None:
        self._batches, self._count = batches, prod(components)
        self._orders = len(bound.source.layout.modes), len(bound.target.layout.modes)  # of the blocks
        self.source: Distribution = with_components(bound.source, components)
        self.target: Distribution = with_components(bound.target, components)
        self.dtypes: tuple[np.dtype[Any], ...] = bound.dtypes
        self.reads_first: bool = bound.reads_first and len(batches) == 1
        small = is_small((self.source, self.dtypes[0]), (self.target, self.dtypes[-1]))
        self.prepares: bool = small and (self.reads_first or bound.alone)
        self.prepared = bound.prepared

    def __call__(self, block: Array, out: Array) -> None:
        """Walk all components of a block into `out`; a rank without elements takes part."""
        sources, targets = self._by_component(block, 0), self._by_component(out, 1)
        for part, batch in self._batches:
            batch(sources[part], targets[part])
        if not np.may_share_memory(targets, out):  # reshaping made a copy, because `out` is not contiguous
            out[...] = targets.reshape(out.shape)

    def bound(self, block: Array, out: Array) -> list[Copy]:
        """The calls, in order, that walk `block` into `out`; see `BoundWalk.bound`."""
        if not (block.flags.c_contiguous and out.flags.c_contiguous):
            return [partial(self, block, out)]
        sources, targets, calls = self._by_component(block, 0), self._by_component(out, 1), list[Copy]()
        for part, batch in self._batches:
            calls += batch.bound(sources[part], targets[part])
        return calls

    def _by_component(self, block: Array, end: int) -> Array:
        """A field's block with all components along the first mode."""
        return block.reshape(self._count, *block.shape[block.ndim - self._orders[end] :])


class Fields:
    """The walks of fields, in common scratch; made at first use.

    Small components go at once; large ones go one after the other, so that workspace for one is enough.

    Args:
        comm: the communicator of the ranks.
    """

    __slots__ = ("_batches", "_comm", "_fields", "workspace")

    workspace: Workspace

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self._batches: dict[tuple[BoundWalk, int], BoundWalk] = {}
        self._fields: dict[tuple[BoundWalk, tuple[int, ...]], BoundField] = {}
        self.workspace = Workspace(0)

    def of(self, bound: BoundWalk, components: tuple[int, ...]) -> BoundField:
        """The walk of a field whose modes in front have these extents; collective the first time."""
        key = bound, components
        if key not in self._fields:
            count = prod(components)
            groups = -(-count // self._width(bound))
            parts = [(count * n // groups, count * (n + 1) // groups) for n in range(groups)]
            widths = sorted({stop - start for start, stop in parts}, reverse=True)  # the widest sets the scratch
            walks = {width: self._batch(bound, width) for width in widths}
            batches: list[_Batch] = []
            for start, stop in parts:
                batches.append((start if stop == start + 1 else slice(start, stop), walks[stop - start]))
            self._fields[key] = BoundField(bound, components, batches)
        return self._fields[key]

    def _width(self, bound: BoundWalk) -> int:
        """The number of components in a batch; equal on all ranks.

        A batch has as many as fit the scratch for small blocks. It has one if none fit, or if ranks need no data from
        each other.
        """
        if not bound.communicates:
            return 1
        most = max(gathered(self._comm, "a field", bound.needed))
        return min(max(_SMALL // max(most, 1), 1), _MOST)

    def _batch(self, bound: BoundWalk, count: int) -> BoundWalk:
        if count == 1:
            return bound
        if (bound, count) not in self._batches:
            batch, before = bound.of_components(count), self.workspace
            self.workspace = bind_walks(self._comm, batch, scratch=before.scratch)
            if any(gathered(self._comm, "a batch", self.workspace.scratch is not before.scratch)):
                self._batches.clear()  # so that the smaller scratch is freed; all ranks bind anew
                self._fields.clear()
            self.workspace = max(before, self.workspace, key=lambda workspace: workspace.nbytes)
            self._batches[bound, count] = batch
        return self._batches[bound, count]


@dataclass(frozen=True, slots=True)
class Pair:
    """Both directions of a transform, ready to run.

    Attributes:
        forward, backward: the walk, and its inverse.
        workspace: their scratch.
        fields: the walks of fields.
    """

    forward: BoundWalk
    backward: BoundWalk
    workspace: Workspace
    fields: Fields

    @property
    def sampled(self) -> bool:
        """Whether timed samples have decided which libraries transform this rank's blocks."""
        return self.forward.sampled or self.backward.sampled

    @property
    def ways(self) -> tuple[object, ...]:
        """The ways in which both directions run on this rank: pairs with equal ways are equally fast."""
        return self.forward.ways, self.backward.ways

    def there_and_back(self, x: Array, spectrum: Array) -> None:
        """Transform a block forward, and back into itself."""
        self.forward(x, spectrum)
        self.backward(spectrum, x)

    @property
    def nbytes(self) -> int:
        """Bytes of scratch, including that for fields once a field was transformed."""
        lone, shared = self.workspace, self.fields.workspace
        in_turn = lone.scratch is None and shared.scratch is None  # in shared memory
        return max(lone.nbytes, shared.nbytes) if in_turn else lone.nbytes + shared.nbytes


def bind_pair(walk: Walk, comm: Comm, norm: Norm, options: Options, scratch: Scratch | None = None) -> Pair:
    """Bind a walk, which all ranks give alike, and its inverse, in the scratch of another pair if given. Collective."""
    agree(comm, "FFT", (walk.source, walk.dtype, str(walk), norm, options.method))
    forward_scale, backward_scale = (scale(norm, walk.sizes, forward) for forward in (True, False))
    forward = BoundWalk(walk, comm, forward_scale, norm == "ortho", options)
    backward = BoundWalk(walk.inverse(), comm, backward_scale, norm == "ortho", options)
    return Pair(forward, backward, bind_walks(comm, forward, backward, scratch=scratch), Fields(comm))


def empty(dist: Distribution, dtype: np.dtype[Any], comm: Comm) -> DistTensor:
    """A tensor whose elements are not set yet."""
    return DistTensor._wrap(segments.empty(dist.local_shape(comm.rank), dtype), dist, comm)


def transformed(walk: BoundWalk, x: DistTensor, out: DistTensor | None, fields: Fields) -> DistTensor:
    """Walk a tensor, or a field, into `out` if that is given. Collective.

    Raises:
        LayoutError: x or `out` does not have the distribution and dtype of the walk's start or end, or `out` is
            read-only.
    """
    if CHECKS:
        agree(x.comm, "FFT", (walk.source, walk.target, str(walk.walk), walk.dtypes, out is None))
    if out is not None:
        calls = walk.prepared.runs.get((id(x), id(out)))
        if calls is not None:
            _ = x._local, out._local  # an error if one is an outdated part
            for call in calls:
                call()
            if out._sharing is not None:
                changed(out)
            return out
    components = x.shape[: max(len(x.shape) - len(walk.source.shape), 0)]
    bound = fields.of(walk, components) if components else walk
    _check(x, bound.source, bound.dtypes[0], "the input")
    if out is None:
        out = empty(bound.target, bound.dtypes[-1], x.comm)
        bound(x.local, out.local)
        return out
    _check_out(out, bound.target, bound.dtypes[-1])
    if bound.prepares:
        for call in _prepare(bound, x, out):
            call()
    elif bound.reads_first:
        bound(x.local, out.local)
    else:
        run_without_overlap(x.comm, bound, x.local, out.local)
    if out._sharing is not None:
        changed(out)
    return out


def list_moves(walk: Walk, x: DistTensor, cause: str) -> None:
    """Add the moves of a walk, of a tensor or of a field, to the lists of `rote.trace`."""
    components = prod(x.shape[: len(x.shape) - len(walk.source.shape)])
    for plan in walk.moves:
        announce(x, components * plan.cost.bytes, plan.__str__, cause)


def _prepare(bound: BoundWalk | BoundField, x: DistTensor, out: DistTensor) -> list[Copy]:
    """The calls, in order, that walk a tensor into another, for a walk that `prepares`; kept for the next run."""
    overlaps = not bound.reads_first and np.may_share_memory(x.local, out.local)
    calls = bound_without_overlap(x.comm, bound.bound, x.local, out.local, overlaps)
    bound.prepared.keep((id(x), id(out)), x, out, calls)
    return calls


def _check(x: DistTensor, dist: Distribution, dtype: np.dtype[Any], name: str) -> None:
    if x.distribution != dist or x.dtype != dtype:
        hint = ""
        if x.shape == dist.shape and x.dtype != dtype:
            hint = f"\nwrite astype({str(dtype)!r}), or make the FFT for the dtype of its input"
        elif x.shape == dist.shape and x.grid == dist.grid:
            hint = f"\nwrite redistribute({str(dist.layout)!r})"
        raise LayoutError(f"{name} is {x.distribution} {x.dtype}, but the transform takes {dist} {dtype}{hint}")


def _check_out(out: DistTensor, dist: Distribution, dtype: np.dtype[Any]) -> None:
    _check(out, dist, dtype, "out")
    check_out(out)
