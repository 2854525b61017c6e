"""MPI datatypes for elements at given offsets, in their order. They are built from other datatypes by their methods.

As many are built as there are lattices, or runs in one period, that describe the offsets. MPI gets strides; it gets
lists of offsets only if the transition has no better description.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...layout.grid import row_major
from ...layout.indexset import IndexSet, Ints, Strided
from .protocol import Array

__all__ = ["Datatype", "file_view"]


class Datatype:
    """An MPI datatype, and the datatypes that it is made of.

    Attributes:
        kind: the MPI datatype; at first, that of one element.
        made: all datatypes that were made for it. The holder frees them, the last one first.
        start: the bytes before the first element, which `kind` leaves out.
    """

    __slots__ = ("__weakref__", "kind", "made", "start")

    def __init__(self, kind: Any) -> None:
        self.kind: Any = kind
        self.made: list[Any] = []
        self.start: int = 0

    @classmethod
    def product(cls, kind: Any, modes: Sequence[tuple[Strided, ...] | Ints], most: int) -> Datatype:
        """Elements at the sums of one offset of each mode, in bytes; the last mode runs fastest. Committed.

        The offsets of a mode are a sequence of strided parts, or a list. (MPI_Type_create_darray would cover only
        uniform block-cyclic layouts.)

        Args:
            most: the largest `start`. A kind that begins with a gap is 3 times as slow under MPICH.
        """
        datatype, start = cls(kind), 0
        for places in reversed(modes):
            if isinstance(places, np.ndarray):
                start += datatype._list(places)
            else:
                start += datatype._strided(places)
        if start <= most:
            datatype.start, start = start, 0
        return datatype._commit(start)

    @classmethod
    def within(cls, kind: Any, index: Sequence[IndexSet], rows: Sequence[int]) -> Datatype:
        """The elements at the positions `index` along modes whose indices are `rows` bytes apart. Committed."""
        datatype, start = cls(kind), 0
        for held, row in zip(reversed(index), reversed(rows), strict=True):
            start += datatype._periodic(held, row)
        return datatype._commit(start)

    def _strided(self, places: tuple[Strided, ...]) -> int:
        """Repeat the kind at strided offsets, part after part; the offset of the whole."""
        inner = self.kind
        return self._join([(start, self._repeat(inner, shape, steps)) for start, shape, steps in places])

    def _periodic(self, held: IndexSet, row: int) -> int:
        """Repeat the kind at the indices of a set, `row` bytes apart; the offset of the whole."""
        inner, parts = self.kind, []
        for start, count, period, runs in held.cycles():
            first = runs[0][0]
            cycle = self._runs(inner, [(a - first) * row for a, _ in runs], [b - a for a, b in runs], row)
            parts.append(((start + first) * row, self._repeat(cycle, (count,), (period * row,))))
        return self._join(parts)

    def _list(self, places: Ints) -> int:
        """Repeat the kind at listed offsets, in as few runs as possible; the offset of the whole."""
        extent = self.kind.Get_extent()[1]
        starts = np.append(0, np.flatnonzero(np.diff(places) != extent) + 1)
        lengths = np.diff(starts, append=len(places))
        self.kind = self._runs(self.kind, (places[starts] - places[0]).tolist(), lengths.tolist(), extent)
        return int(places[0])

    def _runs(self, kind: Any, starts: list[int], lengths: list[int], step: int) -> Any:
        """Repeat a kind in runs with `step` bytes from one copy to the next; the first run starts at 0."""
        if len(starts) == 1:
            return self._repeat(kind, lengths, (step,))
        return self._keep(self._keep(kind.Create_resized(0, step)).Create_hindexed(lengths, starts))

    def _repeat(self, kind: Any, shape: Sequence[int], steps: Sequence[int]) -> Any:
        """Repeat a kind along digits with the extents `shape`; the last digit runs fastest."""
        for n, step in zip(reversed(shape), reversed(steps), strict=True):
            if n != 1:
                together = kind.Get_extent()[1] == step
                kind = self._keep(kind.Create_contiguous(n) if together else kind.Create_hvector(n, 1, step))
        return kind

    def _join(self, parts: list[tuple[int, Any]]) -> int:
        """Join datatypes at offsets, one after the other; the offset of the whole."""
        starts, kinds = zip(*parts, strict=True)
        self.kind = kinds[0]
        if len(parts) > 1:
            offsets = [start - starts[0] for start in starts]
            self.kind = self._keep(type(self.kind).Create_struct([1] * len(parts), offsets, kinds))
        return int(starts[0])

    def _keep(self, kind: Any) -> Any:
        self.made.append(kind)
        return kind

    def _commit(self, start: int) -> Datatype:
        if start:
            self.kind = self._keep(self.kind.Create_hindexed_block(1, [start]))
        if not self.made:
            self.kind = self._keep(self.kind.Dup())
        self.kind.Commit()
        return self


@contextmanager
def file_view(byte: Any, shape: Sequence[int], index: Sequence[IndexSet], block: Array) -> Iterator[tuple[Any, Any]]:
    """The datatype of the positions `index` of a C-ordered array in a file, and that of an element of the block."""
    element = byte.Create_contiguous(block.dtype.itemsize).Commit()
    rows = [block.dtype.itemsize * n for n in row_major(shape)]
    if not block.size:
        index, rows = (), []
    positions = Datatype.within(element, index, rows)
    try:
        yield positions.kind, element
    finally:
        for kind in reversed([element, *positions.made]):
            kind.Free()
