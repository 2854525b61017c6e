"""Elements at given places of lines in ascending order, found by counting: no rank sorts or receives a whole line.

In each round the ranks exchange a few elements, the pivots, and count how many elements lie below each. A place is then
at a pivot, or between two neighbouring pivots, and only the elements between these go on:

    below          pivot     between, kept      pivot          above
    ---------------|=========|---- place ----|==============|-----------

The first round takes its pivots from a sample around each place (Floyd and Rivest 1975), so that a few per cent of the
elements are left. The next rounds work on what is left, sorted on each rank. They also count at a weighted median of
the ranks' medians, which drops a quarter of the elements at least. The last few are gathered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...runtime.comm.protocol import Array, Comm

__all__ = ["chunks", "gathered_parts", "selected"]

Ints = npt.NDArray[np.int64]

_SAMPLES = 4096  # elements of all lines that the ranks exchange in a round
_FEW = 4096  # elements of all lines that are gathered
_MOST_PLACES = 32  # in more places the first round costs more than to sort the block
_CHUNK = 1 << 15  # elements that are compared at once: their masks stay in cache, and cost no memory


class _Run(NamedTuple):
    """Some elements of one line, and the places wanted among them."""

    line: int
    values: Array  # this rank's
    size: int  # the number of elements, NaN apart, on all ranks
    places: Ints  # ascending, from 0 for the smallest of these elements
    results: Ints  # where the elements at these places go in the result of the line


def selected(
    lines: Sequence[Array], sizes: Sequence[int], places: Sequence[Ints], comm: Comm
) -> tuple[list[Array], int]:
    """The elements at some places of each line in ascending order. Collective.

    A rank holds at most one copy of its elements beside them, and usually a tenth of one.

    Args:
        lines: this rank's elements of each line, in any order. NaNs are left out.
        sizes: per line, the number of elements that are not NaN, on all ranks.
        places: per line, places from 0 to its size - 1, in ascending order.

    Returns:
        Per line, the elements at its places; and the number of bytes that this rank received.

    >>> from rote import run
    >>> def program(comm):
    ...     return selected([np.array([[5, 1], [9, 3]][comm.rank])], [4], [np.array([1, 2])], comm)[0][0].tolist()
    >>> run(program, ranks=2)
    [[3, 5], [3, 5]]
    """
    results = [np.empty(len(each), line.dtype) for line, each in zip(lines, places, strict=True)]
    numbers = [np.arange(len(each)) for each in places]
    runs = [_Run(*each) for each in zip(range(len(lines)), lines, sizes, places, numbers, strict=True) if len(each[3])]
    few, received = _FEW + 16 * len(runs), 0
    total = sum(run.size for run in runs)
    if total > few:
        samples = min(_SAMPLES, total // 16) // len(runs)
        if samples >= 64 and max(len(run.places) for run in runs) <= _MOST_PLACES:
            pivots, nbytes = _sampled(runs, samples, comm)
            runs, more = _narrowed(runs, pivots, False, results, comm)
            received += nbytes + more
        else:
            runs = [run._replace(values=_ascending(run.values)) for run in runs]
    while sum(run.size for run in runs) > few:
        pivots, nbytes = _regular(runs, comm)
        runs, more = _narrowed(runs, pivots, True, results, comm)
        received += nbytes + more
    gathered, nbytes = gathered_parts([_numbers(run.values) for run in runs], comm)
    for run, values in zip(runs, gathered, strict=True):
        results[run.line][run.results] = np.sort(values)[run.places]
    return results, received + nbytes


def chunks(values: Array) -> Iterator[Array]:
    """An array of one mode in pieces that stay in cache."""
    return (values[start : start + _CHUNK] for start in range(0, len(values), _CHUNK))


def gathered_parts(arrays: Sequence[Array], comm: Comm) -> tuple[list[Array], int]:
    """For each of several arrays of one dtype, those of all ranks, joined; and the bytes received. Collective."""
    if not arrays:
        return [], 0
    lengths = np.empty((comm.size, len(arrays)), np.int64)
    comm.allgatherv(np.array([len(each) for each in arrays]), lengths.reshape(-1), [len(arrays)] * comm.size)
    counts = lengths.sum(axis=1)
    everything = np.empty(counts.sum(), arrays[0].dtype)
    comm.allgatherv(np.concatenate(arrays), everything, counts.tolist())
    number = np.repeat(np.tile(np.arange(len(arrays)), comm.size), lengths.reshape(-1))
    parts = np.split(everything[np.argsort(number, kind="stable")], np.cumsum(lengths.sum(axis=0))[:-1])
    return parts, everything.nbytes + lengths.nbytes


def _numbers(values: Array) -> Array:
    """The elements that are not NaN."""
    return values if values.dtype.kind != "f" else values[values == values]


def _ascending(values: Array) -> Array:
    """The elements that are not NaN, sorted."""
    copy = np.sort(values)
    return copy if copy.dtype.kind != "f" else copy[: np.searchsorted(copy, np.nan)]


def _sampled(runs: Sequence[_Run], number: int, comm: Comm) -> tuple[list[Array], int]:
    """Two pivots around each place of each run, between which it lies with high probability.

    The sample is drawn at multiples of the golden ratio, which are spread evenly and share no period with the data.
    """
    drawn = []
    for run in runs:
        some = -(-len(run.values) * number // run.size)
        drawn.append(
            _numbers(run.values[(np.arange(some) * 0.6180339887498949 % 1 * len(run.values)).astype(np.int64)])
        )
    samples, nbytes = gathered_parts(drawn, comm)
    pivots = []
    for run, sample in zip(runs, samples, strict=True):
        sample.sort()
        fraction = (run.places + 0.5) / run.size
        margin = 3 * np.sqrt(fraction * (1 - fraction) * len(sample)) + 2
        ends = np.concatenate([fraction * len(sample) - margin, fraction * len(sample) + margin]).astype(np.int64)
        pivots.append(np.unique(sample[ends[(ends >= 0) & (ends < len(sample))]]))
    return pivots, nbytes


def _regular(runs: Sequence[_Run], comm: Comm) -> tuple[list[Array], int]:
    """Pivots around each place of each run, and at its middle, from regular samples of the sorted values."""
    most = max(_SAMPLES // (comm.size * len(runs)), 2)
    drawn, weights = [], []
    for run in runs:
        number, held = min(most, len(run.values)), len(run.values)
        drawn.append(run.values[(2 * np.arange(number) + 1) * held // max(2 * number, 1)])
        weights.append(np.full(number, held / max(number, 1)))
    samples, nbytes = gathered_parts(drawn, comm)
    spans, more = gathered_parts(weights, comm)
    pivots = []
    for run, sample, span in zip(runs, samples, spans, strict=True):
        order = np.argsort(sample, kind="stable")
        sample, span = sample[order], span[order]
        middles = np.cumsum(span) - span / 2  # where each sample is expected among the elements
        margin = min(comm.size, 4 * np.sqrt(comm.size)) * span.max() / 2 + 1
        wanted = [run.places - margin, run.places, run.places + margin, [run.size / 2]]
        near = np.searchsorted(middles, np.concatenate(wanted)).clip(0, len(sample) - 1)
        pivots.append(np.unique(sample[near]))
    return pivots, nbytes + more


def _narrowed(
    runs: Sequence[_Run], pivots: Sequence[Array], ascending: bool, results: Sequence[Array], comm: Comm
) -> tuple[list[_Run], int]:
    """Enter the pivots at which places are into the results; return the runs between pivots that have the others."""
    counts = np.concatenate(
        [_counts(run.values, each, ascending) for run, each in zip(runs, pivots, strict=True)], axis=1, dtype=np.int64
    )
    comm.allreduce_in_place(counts.reshape(-1), "sum")
    found: list[_Run] = []
    start = 0
    for run, each in zip(runs, pivots, strict=True):
        # Below a pivot, and up to it: of the cells between these bounds, every other one is the pivot itself.
        bounds = counts[:, start : start + len(each)].T.reshape(-1)
        start += len(each)
        cells = np.searchsorted(bounds, run.places, "right")
        at = cells % 2 == 1
        results[run.line][run.results[at]] = each[cells[at] // 2]
        for cell in np.unique(cells[~at]).tolist():
            low, high = (each[i] if 0 <= i < len(each) else None for i in (cell // 2 - 1, cell // 2))
            before = int(bounds[cell - 1]) if cell else 0
            size = (int(bounds[cell]) if cell < len(bounds) else run.size) - before
            here = cells == cell
            values = _between(run.values, low, high, ascending)
            found.append(_Run(run.line, values, size, run.places[here] - before, run.results[here]))
    return found, counts.nbytes


def _counts(values: Array, pivots: Array, ascending: bool) -> Ints:
    """Of each pivot, how many elements are below it, and how many are not above it."""
    if ascending:
        return np.array([np.searchsorted(values, pivots, side) for side in ("left", "right")])
    counts = np.zeros((2, len(pivots)), np.int64)
    for chunk in chunks(values):
        for number, pivot in enumerate(pivots):
            counts[0, number] += np.count_nonzero(chunk < pivot)
            counts[1, number] += np.count_nonzero(chunk <= pivot)
    return counts


def _between(values: Array, low: Any, high: Any, ascending: bool) -> Array:
    """The elements above a pivot and below another, in ascending order; None stands for no bound."""
    if ascending:
        first = 0 if low is None else int(np.searchsorted(values, low, "right"))
        return values[first : None if high is None else int(np.searchsorted(values, high))]
    parts = []
    for chunk in chunks(values):
        chosen = chunk == chunk if low is None else chunk > low  # never NaN
        parts.append(chunk[chosen if high is None else chosen & (chunk < high)])
    found = np.concatenate(parts or [values[:0]])
    found.sort()
    return found
