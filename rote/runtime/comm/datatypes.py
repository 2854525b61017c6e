"""MPI's datatypes of elements that lie at offsets, in their order. Made by the methods of other datatypes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from .protocol import Array

__all__ = ["Datatype", "FileView"]

Ints = npt.NDArray[np.int64]


class Datatype:
    """A datatype, and those that it is made of.

    Attributes:
        kind: MPI's; that of one element to begin with.
        made: all that were made for it, which whoever has it frees, the last one first.
    """

    __slots__ = ("__weakref__", "kind", "made")

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.made: list[Any] = []

    @classmethod
    def product(cls, kind: Any, offsets: Sequence[Ints]) -> Datatype:
        """Elements at the sums of one offset of each of some modes, in bytes; the last mode runs fastest. Committed.

        There is one datatype per mode, innermost first: copies of the one before. Evenly spaced ones are a vector, of
        which MPI needs no list. (MPI_Type_create_darray would cover uniform block-cyclic layouts only.)
        """
        made, start = cls(kind), 0
        for places in reversed(offsets):
            start += int(places[0])
            made._repeat(places - places[0])
        if start:
            made._now(made.kind.Create_hindexed_block(1, [start]))
        if not made.made:
            made._now(kind.Dup())
        made.kind.Commit()
        return made

    def _repeat(self, places: Ints) -> None:
        """Copies at some offsets, the first of which is 0."""
        gaps = np.diff(places)
        if not len(gaps):
            return
        apart = int(np.abs(gaps).min())
        if (gaps == apart).all():
            self._now(self.kind.Create_resized(0, apart))
            self._now(self.kind.Create_contiguous(len(places)))
            return
        edges = np.flatnonzero(gaps != apart) + 1  # of runs that are as close as any
        starts = np.append(0, edges)
        lengths = np.diff(starts, append=len(places))
        if (lengths == lengths[0]).all() and lengths[0] > 1:
            self._repeat(places[: lengths[0]])
            self._repeat(places[starts])
            return
        self._now(self.kind.Create_resized(0, apart))
        self._now(self.kind.Create_hindexed(lengths.tolist(), places[starts].tolist()))

    def _now(self, kind: Any) -> None:
        self.kind = kind
        self.made.append(kind)


class FileView:
    """The positions `index` of a C-ordered array in a file, as a datatype. A context, at whose end it is freed.

    Attributes:
        filetype: that of the positions.
        element: that of one element of the block, of which `count` are moved.
    """

    def __init__(self, byte: Any, shape: Sequence[int], index: Sequence[Array], block: Array) -> None:
        self.count = block.size
        self.element = byte.Create_contiguous(block.dtype.itemsize).Commit()
        rows = [block.dtype.itemsize * prod(shape[mode + 1 :]) for mode in range(len(shape))]
        places = [positions.astype(np.int64) * row for positions, row in zip(index, rows, strict=True)]
        self._type = Datatype.product(self.element, places if block.size else ())
        self.filetype = self._type.kind

    def __enter__(self) -> FileView:
        return self

    def __exit__(self, *failure: object) -> None:
        for kind in reversed([self.element, *self._type.made]):
            kind.Free()
