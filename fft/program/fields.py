"""Runs of bound walks on tensors of the walk's shape, or on fields, which have component modes in front."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from rote.errors import LayoutError
from rote.layout.layout import Distribution
from rote.layout.refine import with_components
from rote.runtime.comm import segments
from rote.runtime.comm.protocol import Array, Comm
from rote.runtime.copy.strided import Copy
from rote.runtime.executor.aliasing import bound_apart, run_apart
from rote.tensor import DistTensor

from .program import Batches, BoundWalk

__all__ = ["empty", "transformed"]


def empty(dist: Distribution, dtype: np.dtype[Any], comm: Comm) -> DistTensor:
    """A tensor whose elements are not set yet."""
    return DistTensor._wrap(segments.empty(dist.local_shape(comm.rank), dtype), dist, comm)


def transformed(bound: BoundWalk, x: DistTensor, out: DistTensor | None, batches: Batches) -> DistTensor:
    """Walk a tensor, into `out` if that is given. Collective.

    Args:
        batches: for fields, which have whole modes in front of the walk's own. Small components go together; large ones
            go one after the other, so that workspace for one is enough.

    Raises:
        LayoutError: x or `out` does not have the distribution and dtype of the walk's start or end, or `out` is
            read-only.
    """
    if out is not None:
        calls = bound.prepared.runs.get((id(x), id(out)))
        if calls is None and bound.prepares and x.distribution == bound.walk.source:
            calls = _prepare(bound, x, out)
        if calls is not None:
            for call in calls:
                call()
            return out
    source, target, dtypes, run = bound.walk.source, bound.walk.target, bound.dtypes, bound.__call__
    reads_first = bound.reads_first
    components = x.shape[: max(len(x.shape) - len(source.shape), 0)]
    if components:
        run, reads_first = partial(_each, bound, batches, prod(components)), False
        source, target = with_components(source, components), with_components(target, components)
    _check(x, source, dtypes[0], "the input")
    if out is None:
        out = empty(target, dtypes[-1], x.comm)
        run(x.local, out.local)
        return out
    _check_out(out, target, dtypes[-1])
    if reads_first:
        run(x.local, out.local)
    else:
        run_apart(x.comm, run, x.local, out.local)
    return out


def _each(bound: BoundWalk, batches: Batches, count: int, block: Array, out: Array) -> None:
    """Walk the components of a block, one batch at a time; a rank without elements takes part."""
    if not count:
        return
    sources = _by_component(block, count, bound.walk.source)
    targets = _by_component(out, count, bound.walk.target)
    for part, batch in batches.of(bound, count):
        alone = part.start if batch is bound else part
        batch(sources[alone], targets[alone])
    if not np.may_share_memory(targets, out):  # reshaping made a copy, because `out` is not contiguous
        out[...] = targets.reshape(out.shape)


def _by_component(block: Array, count: int, dist: Distribution) -> Array:
    """A field's block with all components along the first mode; each is a block of `dist`."""
    return block.reshape(count, *block.shape[block.ndim - len(dist.layout.modes) :])


def _prepare(bound: BoundWalk, x: DistTensor, out: DistTensor) -> list[Copy]:
    """The calls, in order, that walk a tensor into another, for a walk that `prepares`; kept for the next run."""
    _check(x, bound.walk.source, bound.dtypes[0], "the input")
    _check_out(out, bound.walk.target, bound.dtypes[-1])
    overlaps = not bound.reads_first and np.may_share_memory(x.local, out.local)
    calls = bound_apart(x.comm, bound.bound, x.local, out.local, overlaps)
    bound.prepared.keep((id(x), id(out)), x, out, calls)
    return calls


def _check(x: DistTensor, dist: Distribution, dtype: np.dtype[Any], name: str) -> None:
    if x.distribution != dist or x.dtype != dtype:
        cure = ""
        if x.shape == dist.shape and x.dtype != dtype:
            cure = f"\nwrite astype({str(dtype)!r}), or make the FFT for the dtype of its input"
        elif x.shape == dist.shape and x.grid == dist.grid:
            cure = f"\nwrite redistribute({str(dist.layout)!r})"
        raise LayoutError(f"{name} is {x.distribution} {x.dtype}, but the transform takes {dist} {dtype}{cure}")


def _check_out(out: DistTensor, dist: Distribution, dtype: np.dtype[Any]) -> None:
    _check(out, dist, dtype, "out")
    if not out.local.flags.writeable:
        raise LayoutError("out cannot be written to: its block is read-only\ngive a tensor of your own, or leave out=")
