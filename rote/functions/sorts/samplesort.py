"""Sample sort: the keys of all ranks in ascending order, a run of them on each rank and all of them on none.

Ranks sort their own keys. Regular samples, p from each of p ranks, give the p - 1 splitters that cut every rank's keys
into p parts, one for each rank (sorting by regular sampling: Shi and Schaeffer 1992).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...runtime.comm.protocol import Array, Comm

__all__ = ["SampleSort", "sorting_order"]

Ints = npt.NDArray[np.int64]


def sorting_order(keys: Sequence[Array]) -> Ints:
    """The indices that sort rows of keys by the first key, then by the next, and so on; NaN sorts after all numbers.

    >>> sorting_order([np.array([2, 1, 2]), np.array([5, 6, 4])]).tolist()
    [1, 2, 0]
    """
    order: Ints = np.lexsort(tuple(reversed(keys)))
    return order


class SampleSort:
    """An exchange of sorted keys after which the runs of keys ascend with the ranks. Collective.

    If all n keys differ, a rank receives at most about 3 n/p of them, however unevenly they lie. While it cuts its own
    keys, it also holds some p² samples. Rows of equal keys go to one rank. Keys are arrays of one length, sorted as by
    `sorting_order`, the most significant first.

    >>> from rote import run
    >>> def program(comm):
    ...     keys = np.array([[1, 4, 7, 8], [2, 3, 5, 9]][comm.rank])
    ...     return SampleSort([keys], comm)(keys).tolist()
    >>> run(program, ranks=2)
    [[1, 4, 2, 3], [7, 8, 5, 9]]
    """

    __slots__ = ("_comm", "_receives", "_sends", "received", "returned", "sizes")

    def __init__(self, keys: Sequence[Array], comm: Comm) -> None:
        self._comm = comm
        cuts = [_place(keys, splitter) for splitter in _splitters(keys, comm)]
        ends = [0, *(cuts or [0] * (comm.size - 1)), len(keys[0])]
        counts = _gathered(np.diff(np.array(ends)), comm).reshape(comm.size, comm.size)
        self._sends: list[int] = counts[comm.rank].tolist()
        self._receives: list[int] = counts[:, comm.rank].tolist()
        self.sizes: list[int] = counts.sum(axis=0).tolist()  # per rank, the number of keys after the exchange
        own = counts.diagonal()
        self.received: int = int((counts.sum(axis=0) - own).max())  # the most that any rank receives from others
        self.returned: int = int((counts.sum(axis=1) - own).max())  # the most that any rank sends to others

    def __call__(self, array: Array) -> Array:
        """Send one value with each of this rank's keys; return those received, by source rank and not merged."""
        arrived = np.empty(sum(self._receives), array.dtype)
        self._comm.alltoallv(np.ascontiguousarray(array), self._sends, arrived, self._receives)
        return arrived

    def back(self, array: Array) -> Array:
        """Return values to the ranks from which their keys came: the inverse of the call. Collective."""
        arrived = np.empty(sum(self._sends), array.dtype)
        self._comm.alltoallv(np.ascontiguousarray(array), self._receives, arrived, self._sends)
        return arrived


def _splitters(keys: Sequence[Array], comm: Comm) -> list[list[Array]]:
    """The rows of keys that cut the keys of all ranks into one part per rank; none if there are no keys.

    A sample stands for the keys up to the next sample of its rank, so samples of ranks with more keys weigh more.
    """
    lengths = _gathered(np.array([len(keys[0])]), comm)
    numbers = np.minimum(lengths, comm.size)
    mine = np.arange(numbers[comm.rank]) * len(keys[0]) // max(numbers[comm.rank], 1)
    samples = [_gathered(key[mine], comm, numbers.tolist()) for key in keys]
    order = sorting_order(samples)
    weights = np.repeat(lengths / np.maximum(numbers, 1), numbers)[order]
    before = np.cumsum(weights) - weights
    wanted = np.arange(1, comm.size) * (lengths.sum() / comm.size)
    if not len(order):
        return []
    rows = []
    for place in order[np.searchsorted(before, wanted).clip(max=len(order) - 1)]:
        rows.append([sample[place : place + 1] for sample in samples])
    return rows


def _place(keys: Sequence[Array], splitter: Sequence[Array]) -> int:
    """The number of rows of sorted keys before a splitter."""
    low, high = 0, len(keys[0])
    for key, value in zip(keys, splitter, strict=True):
        left, right = (int(np.searchsorted(key[low:high], value, side)[0]) for side in ("left", "right"))
        low, high = low + left, low + right
    return low


def _gathered(array: Array, comm: Comm, numbers: Sequence[int] | None = None) -> Array:
    """The concatenated arrays of all ranks, of the lengths `numbers`, or all of this one's length."""
    counts = [len(array)] * comm.size if numbers is None else list(numbers)
    result = np.empty(sum(counts), array.dtype)
    comm.allgatherv(np.ascontiguousarray(array), result, counts)
    return result
