"""Pencils: tensors of which every axis is split over one communicator at most, and the moves between two of them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import rote

ALONE = rote.runtime.alone()  # this process, which transforms its blocks without the others
Array = npt.NDArray[Any]


class Subcomm(tuple[Any, ...]):
    """One communicator per axis, of the ranks along one mode of a grid of all ranks; mpi4py's, or Rote's, as `comm` is.

    `dims` has the ranks along each axis, 0 where any number will do, or says how many axes. Ranks keep their numbers.
    """

    comm: Any  # of all ranks; None if nobody knows it
    grid: rote.Grid
    modes: tuple[int | None, ...]  # of the grid, per axis; None where this process is alone

    def __new__(cls, comm: Any, dims: Sequence[int] | int | None = None, reorder: bool = True) -> Subcomm:
        named = [0] * (dims or 1) if dims is None or isinstance(dims, int) else dims
        cartesian = getattr(comm, "dims", None)
        grid = (
            rote.Grid(tuple(cartesian)) if cartesian else rote.Grid.of(comm.size, [n if n > 0 else -1 for n in named])
        )
        where, split = grid.coordinates(comm.rank), getattr(comm, "Split", None) or comm.split
        first = [grid.rank((*where[:g], 0, *where[g + 1 :])) for g in range(grid.order)]
        return cls.of(map(split, first, where), range(grid.order), comm, grid)

    @classmethod
    def of(cls, parts: Iterable[Any], modes: Iterable[int | None], comm: Any, grid: rote.Grid) -> Subcomm:
        """Communicators that are there already."""
        made = tuple.__new__(cls, parts)
        made.modes, made.comm, made.grid = tuple(modes), comm, grid
        return made

    def placed(self, axes: Sequence[int | None]) -> Subcomm:
        """The communicators of these axes, in this order, and of this process alone in place of None."""
        alone = getattr(sys.modules[type(self[0]).__module__], "COMM_SELF", ALONE)  # of the library of the others
        parts = [alone if axis is None else self[axis] for axis in axes]
        return self.of(parts, [None if axis is None else self.modes[axis] for axis in axes], self.comm, self.grid)

    def destroy(self) -> None:
        """Free the communicators, if MPI has made them."""
        for part, mode in zip(self, self.modes, strict=True):
            if mode is not None and hasattr(part, "Free") and part:
                part.Free()


class Pencil:
    """The blocks of a tensor that is whole along `axis`: balanced ones along each axis of several ranks.

    >>> pencil = Pencil(Subcomm(rote.runtime.world(), [0, 1]), (4, 6))
    >>> pencil.subshape, pencil.substart, pencil.pencil(0).axis, str(pencil.layout)
    ((4, 6), (0, 0), 0, '[(),()]')
    """

    shape: tuple[int, ...]
    axis: int
    subshape: tuple[Any, ...]
    substart: tuple[Any, ...]
    slices: tuple[slice[Any, Any, Any], ...]

    def __init__(self, subcomm: Sequence[Any], shape: Sequence[int], axis: int = -1) -> None:
        if not isinstance(subcomm, Subcomm):
            subcomm = Subcomm.of(subcomm, range(len(subcomm)), None, rote.Grid(tuple(part.size for part in subcomm)))
        self.shape, order, self.axis = tuple(map(int, shape)), len(shape), range(len(shape))[axis]
        if len(subcomm) < order:  # they leave the axis whole, and then the last ones
            axes = [*range(len(subcomm)), *[None] * (order - 1 - len(subcomm))]
            subcomm = subcomm.placed([*axes[: self.axis], None, *axes[self.axis :]])
        if subcomm[self.axis].size > 1:
            raise rote.LayoutError(f"axis {self.axis} is split over {subcomm[self.axis].size} ranks; align a whole one")
        self.subcomm = subcomm
        dealt = [(*divmod(n, part.size), part.rank) for n, part in zip(self.shape, subcomm, strict=True)]
        self.subshape = tuple(n + (rank < more) for n, more, rank in dealt)
        self.substart = tuple(n * rank + min(rank, more) for n, more, rank in dealt)
        self.slices = tuple(slice(a, a + n) for a, n in zip(self.substart, self.subshape, strict=True))

    @property
    def layout(self) -> rote.Layout:
        """The layout over the grid of all ranks."""
        parts = zip(self.subcomm.modes, self.subcomm, strict=True)
        return rote.parse(f"block[{','.join(f'({mode})' if part.size > 1 else '()' for mode, part in parts)}]")

    def pencil(self, axis: int) -> Pencil:
        """The pencil that leaves another axis whole; the ranks of that axis split this one."""
        axes = list(range(len(self.shape)))
        axes[self.axis], axes[axis] = axes[axis], axes[self.axis]
        return Pencil(self.subcomm.placed(axes), self.shape, axis)

    def transfer(self, pencil: Pencil, dtype: npt.DTypeLike, components: Sequence[int] = ()) -> Transfer:
        """The move to such a pencil, of one tensor or of all components of a field at once."""
        if self.pencil(pencil.axis).subcomm != pencil.subcomm or self.shape != pencil.shape or self.axis == pencil.axis:
            raise rote.LayoutError("one move leads from a pencil to its pencil(axis), for another axis")
        shape, ends = list(self.subshape), [(each.subshape, each.axis) for each in (self, pencil)]
        shape[pencil.axis] = self.shape[pencil.axis]
        a, b = [((*components, *block), axis + len(components)) for block, axis in ends]
        return Transfer(self.subcomm[pencil.axis], (*components, *shape), dtype, *a, *b)


class Transfer:
    """A move between blocks that are whole along axis A and such that are whole along axis B, over the ranks of `comm`.

    `shape` is that of what these ranks hold together, `subshapeA` and `subshapeB` are those of this rank's blocks.
    """

    comm: Any
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    subshapeA: tuple[int, ...]
    axisA: int
    subshapeB: tuple[int, ...]
    axisB: int

    def __init__(self, comm: Any, shape: Sequence[int], dtype: npt.DTypeLike, subshapeA: Sequence[int], axisA: int,
                 subshapeB: Sequence[int], axisB: int) -> None:  # fmt: skip
        self.comm, self.shape, self.dtype = comm, tuple(shape), np.dtype(dtype)
        self.subshapeA, self.axisA, self.subshapeB, self.axisB = tuple(subshapeA), axisA, tuple(subshapeB), axisB
        ranks = rote.runtime.as_comm(comm) if comm.size > 1 else ALONE
        modes = [[("()", "(0)")[axis == split] for axis in range(len(self.shape))] for split in (axisB, axisA)]
        before, after = [rote.parse(f"block[{','.join(each)}]").on(self.shape, comm.size) for each in modes]
        self._ends = (before, ranks), (after, ranks)

    def forward(self, arrayA: Array, arrayB: Array, back: bool = False) -> None:
        """Fill B from A."""
        x, y = (
            rote.DistTensor(np.asarray(arrayA), *self._ends[back]),
            rote.DistTensor(np.asarray(arrayB), *self._ends[not back]),
        )
        x.redistribute(y.layout, out=y)

    def backward(self, arrayB: Array, arrayA: Array) -> None:
        """Fill A from B."""
        self.forward(arrayB, arrayA, back=True)

    def destroy(self) -> None:
        """Free nothing: what a move needs is kept with its communicator."""
