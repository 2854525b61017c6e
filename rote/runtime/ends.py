"""The two ends of a run: whether they share memory, and runs that are prepared for two tensors.

An output may share memory with an input, such as two views of one buffer. Then it is written after all reads. In one
process, the output of one rank may also share memory with the input of another.

A run between two tensors is prepared the first time and kept for the next, so that a run of small blocks costs little
more than the ranks' own work. A prepared run holds views of both blocks and of workspace. So it is dropped as soon as
one of the tensors is, and no run is prepared for large blocks.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from itertools import accumulate
from math import prod
from typing import Any, Generic, TypeVar

import numpy as np

from ..layout.distribution import Distribution
from .comm.agreement import calls_differ
from .comm.protocol import Array, Comm
from .copies import Copy

__all__ = ["PreparedRuns", "bound_without_overlap", "is_small", "may_overlap", "run_without_overlap"]


Span = tuple[int, int]


def may_overlap(comm: Comm, block: Array, out: Array, number: int = 0) -> bool | None:
    """Whether an output may share memory with an input, by the addresses where they begin and end. Collective.

    In-process ranks compare the outputs and inputs of all, and get the same answer. An MPI rank compares only its own,
    since no other rank reads or writes its memory.

    Args:
        number: the number of the run that this rank has prepared between the two blocks; 0 if there is none.

    Returns:
        None if all ranks have prepared the run of this number, so that there is nothing to find out.

    >>> from rote.runtime import run
    >>> buffer = np.zeros(6)
    >>> run(lambda comm: may_overlap(comm, buffer[:3], buffer[3:]), ranks=2)
    [False, False]
    >>> run(lambda comm: may_overlap(comm, buffer[:3] if comm.rank else buffer[3:], buffer[3:]), ranks=2)
    [True, True]
    """
    ends = None if comm.size == 1 else comm.share_reference((number, block, out))
    if ends is None:
        return None if number else np.may_share_memory(block, out)
    try:
        if number and all(theirs == number for theirs, _, _ in ends):
            return None
        spans = [(_span(begin), _span(end)) for _, begin, end in ends]
    except (AttributeError, TypeError, ValueError):  # some rank has sent something else, in another call
        raise calls_differ() from None
    return _overlap(spans)


def _overlap(spans: Sequence[tuple[Span, Span]]) -> bool:
    """Whether some output overlaps some input; each pair has the spans of an input and an output."""
    inputs = sorted(span for span, _ in spans if span[0] < span[1])

    # reach[k] is the furthest end of the first k + 1 inputs: an input that begins early may end late.
    begins, reach = [begin for begin, _ in inputs], list(accumulate((end for _, end in inputs), max))
    for begin, end in (span for _, span in spans):
        before = bisect_left(begins, end)  # the number of inputs that begin before this output ends
        if begin < end and before and reach[before - 1] > begin:
            return True
    return False


def run_without_overlap(comm: Comm, run: Callable[[Array, Array], object], block: Array, out: Array) -> Array:
    """Call `run` to read a block and write an output, even if the two overlap; the output. Collective.

    `run` may make collective calls, and never gets arrays that overlap.
    """
    overlaps = may_overlap(comm, block, out)
    for call in bound_without_overlap(comm, lambda *ends: [partial(run, *ends)], block, out, overlaps):
        call()
    return out


def bound_without_overlap(
    comm: Comm, bind: Callable[[Array, Array], list[Copy]], block: Array, out: Array, overlaps: bool | None
) -> list[Copy]:
    """The calls that read a block and write an output, even if the two overlap: those of `bind` if not. Collective."""
    if not overlaps:
        return bind(block, out)

    values = np.empty(out.shape, out.dtype)
    all_have_read = partial(comm.share_reference, None)  # in-process ranks wait here for each other
    return [*bind(block, values), all_have_read, partial(out.__setitem__, ..., values)]


def _span(array: Array) -> Span:
    begin: int = array.__array_interface__["data"][0]
    if array.flags.c_contiguous or not array.size:
        return begin, begin + array.nbytes

    reaches = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    low = sum(reach for reach in reaches if reach < 0)
    return begin + low, begin + sum(reaches) - low + array.itemsize


_MOST = 32  # pairs of tensors
_SMALL = 1 << 23  # bytes of a block; to prepare its move takes a hundredth of the time of the move itself

R = TypeVar("R")


def is_small(*ends: tuple[Distribution, np.dtype[Any]]) -> bool:
    """Whether to prepare runs between distributions: no rank has a large block in any. The same on all ranks."""
    return all(prod(dist.max_local_shape()) * dtype.itemsize <= _SMALL for dist, dtype in ends)


class PreparedRuns(Generic[R]):
    """The calls prepared for runs between two tensors. It keeps `_MOST` pairs, and drops the oldest first.

    Attributes:
        runs: the prepared runs, by a key with the `id` of both tensors. A run is dropped with either of the two.
        kept: how many runs have been kept so far.

    >>> class Tensor: ...
    >>> x, y, prepared = Tensor(), Tensor(), PreparedRuns()
    >>> prepared.keep((id(x), id(y)), x, y, [lambda: None])
    >>> prepared.kept, (id(x), id(y)) in prepared.runs
    (1, True)
    >>> del x
    >>> len(prepared.runs)
    0
    """

    __slots__ = ("_newest", "_watches", "kept", "runs")

    def __init__(self) -> None:
        self.runs: dict[Hashable, R] = {}
        self.kept: int = 0
        self._newest: dict[Hashable, int] = {}  # by key: an `id` can recur after a tensor is gone
        self._watches: dict[int, tuple[Hashable, weakref.ref[object], weakref.ref[object]]] = {}  # in no cycle

    def keep(self, key: Hashable, x: object, out: object, run: R) -> None:
        """Keep a run from x to `out`. Ranks that keep the same runs drop the same runs, whatever the ids are."""
        oldest = self.kept - _MOST
        if oldest in self._watches:
            old, *_ = self._watches.pop(oldest)
            if self._newest[old] == oldest:
                del self._newest[old]
                self.runs.pop(old, None)

        forget = partial(self.runs.pop, key)  # the weak reference is passed as the default of `pop`
        self._watches[self.kept] = key, weakref.ref(x, forget), weakref.ref(out, forget)
        self._newest[key] = self.kept
        self.runs[key] = run
        self.kept += 1
