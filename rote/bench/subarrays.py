"""The swap of slabs by one `Alltoallw` of subarrays, as in Dalcin et al. (2019), listings 2 and 3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..runtime.comm.protocol import Array, MpiHandle

__all__ = ["Swap"]


class Swap:
    """From blocks of mode 0 to blocks of mode 1; the datatypes are made once."""

    def __init__(self, comm: MpiHandle, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        n0, n1, *rest = shape
        rank, ranks = comm.rank, comm.size
        rows, columns = self.ends(n0, ranks), self.ends(n1, ranks)
        self._handle = comm.handle
        self.before = (rows[rank + 1] - rows[rank], n1, *rest)
        self.after = (n0, columns[rank + 1] - columns[rank], *rest)
        element = comm.datatype(dtype)
        self.sends = [self.subarray(element, self.before, 1, columns[r], columns[r + 1]) for r in range(ranks)]
        self.receives = [self.subarray(element, self.after, 0, rows[r], rows[r + 1]) for r in range(ranks)]
        self.one_each = ([1] * ranks, [0] * ranks)

    @staticmethod
    def ends(extent: int, parts: int) -> list[int]:
        """Where balanced blocks begin and end: the first ones hold one more."""
        return [part * (extent // parts) + min(part, extent % parts) for part in range(parts + 1)]

    @staticmethod
    def subarray(element: Any, shape: tuple[int, ...], mode: int, start: int, stop: int) -> Any:
        """The part of a block between two indices of a mode; nothing, where that is empty."""
        part, starts = [*shape], [0] * len(shape)
        part[mode], starts[mode] = stop - start, start
        if 0 in part:
            return element.Create_contiguous(0).Commit()
        return element.Create_subarray(shape, part, starts).Commit()

    def __call__(self, source: Array, target: Array) -> None:
        """Move a block of shape `before` into one of shape `after`. Collective."""
        self._handle.Alltoallw([source, self.one_each, self.sends], [target, self.one_each, self.receives])

    def free(self) -> None:
        """Free the datatypes."""
        for datatype in (*self.sends, *self.receives):
            datatype.Free()
