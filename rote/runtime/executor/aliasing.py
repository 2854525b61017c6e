"""Outputs that share memory with inputs, such as two views of one buffer: they are written after all reads.

In one process, the output of one rank may also share memory with the input of another.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from ..comm.collective_errors import ranks_apart
from ..comm.protocol import Array, Comm
from ..copy.strided import Copy

__all__ = ["bound_apart", "may_overlap", "meet", "run_apart"]

Span = tuple[int, int]


class RunsAgreed(NamedTuple):
    """The result of asking the ranks that are about to run.

    Attributes:
        agreed: whether all ranks are about to do the run that they have prepared under the same number.
        overlaps: whether an output may share memory with an input; False if `agreed`.
        together: whether the ranks have waited for each other, as in-process ranks do.
    """

    agreed: bool
    overlaps: bool
    together: bool


def meet(comm: Comm, block: Array, out: Array, number: int = 0) -> RunsAgreed:
    """Ask the ranks of this process for their inputs and outputs, and whether they have prepared this run. Collective.

    An MPI rank answers for itself, since no other rank reads or writes its memory.

    Args:
        number: the number of the run that this rank has prepared between the two blocks; 0 if there is none.
    """
    ends = None if comm.size == 1 else comm.share_reference((number, block, out))
    if ends is None:
        return RunsAgreed(number > 0, not number and np.may_share_memory(block, out), False)
    try:
        if number and all(theirs == number for theirs, _, _ in ends):
            return RunsAgreed(True, False, True)
        spans = [(_span(begin), _span(end)) for _, begin, end in ends]
    except (AttributeError, TypeError, ValueError):  # some rank has shown something else, in another call
        raise ranks_apart() from None
    return RunsAgreed(False, _overlap(spans), True)


def may_overlap(comm: Comm, block: Array, out: Array) -> bool:
    """Whether an output may share memory with an input, by the addresses where they begin and end. Collective.

    In-process ranks compare the outputs and inputs of all, and get the same answer. An MPI rank compares only its own,
    since no other rank reads or writes its memory.

    >>> from rote.runtime import run
    >>> buffer = np.zeros(6)
    >>> run(lambda comm: may_overlap(comm, buffer[:3], buffer[3:]), ranks=2)
    [False, False]
    >>> run(lambda comm: may_overlap(comm, buffer[:3] if comm.rank else buffer[3:], buffer[3:]), ranks=2)
    [True, True]
    """
    return meet(comm, block, out).overlaps


def _overlap(spans: Sequence[tuple[Span, Span]]) -> bool:
    """Whether some output overlaps some input; each pair has the spans of an input and an output."""
    inputs = sorted(span for span, _ in spans if span[0] < span[1])
    begins, reach = [begin for begin, _ in inputs], list(accumulate((end for _, end in inputs), max))
    for begin, end in (span for _, span in spans):
        before = bisect_left(begins, end)  # the number of inputs that begin before this output ends
        if begin < end and before and reach[before - 1] > begin:
            return True
    return False


def run_apart(comm: Comm, run: Callable[[Array, Array], object], block: Array, out: Array) -> Array:
    """Call `run` to read a block and write an output, even if the two overlap; the output. Collective.

    Args:
        run: takes both arrays, and may make collective calls; it never gets arrays that overlap.
    """
    if not may_overlap(comm, block, out):
        run(block, out)
        return out
    values = np.empty(out.shape, out.dtype)
    run(block, values)
    comm.share_reference(None)  # in-process ranks wait here until all have read
    out[...] = values
    return out


def bound_apart(
    comm: Comm, bind: Callable[[Array, Array], list[Copy]], block: Array, out: Array, overlaps: bool
) -> list[Copy]:
    """The calls, in order, that read a block and write an output, even if the two overlap. Collective.

    Args:
        bind: makes the calls for both arrays; it never gets arrays that overlap.
    """
    if not overlaps:
        return bind(block, out)
    values = np.empty(out.shape, out.dtype)
    return [*bind(block, values), partial(comm.share_reference, None), partial(out.__setitem__, ..., values)]


def _span(array: Array) -> Span:
    """The addresses at which the memory of an array begins and ends."""
    begin: int = array.__array_interface__["data"][0]
    if array.flags.c_contiguous or not array.size:
        return begin, begin + array.nbytes
    reaches = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    low = sum(reach for reach in reaches if reach < 0)
    return begin + low, begin + sum(reaches) - low + array.itemsize
