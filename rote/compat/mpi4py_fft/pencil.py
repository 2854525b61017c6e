"""Pencils: tensors whose axes are each split over at most one communicator, and the moves between two pencils."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

import rote

ALONE = rote.runtime.alone()  # the communicator of this process alone, for transforms of its blocks
Array = npt.NDArray[Any]


def axes_of(axes: Any, order: int) -> list[int]:
    """Axes, or one axis by itself, as numbers from 0.

    >>> axes_of(-1, 3), axes_of((0, -2), 3)
    ([2], [0, 1])
    """
    try:
        return [range(order)[index(axis)] for axis in (axes if isinstance(axes, Iterable) else (axes,))]
    except (IndexError, TypeError):
        raise rote.LayoutError(
            f"axes {axes!r} are not all axes of a tensor of order {order}\nwrite integers from {-order} to {order - 1}"
        ) from None


class Subcomm(tuple[Any, ...]):
    """A communicator per axis, of the ranks along one mode of a grid of all ranks; mpi4py's or Rote's, like `comm`.

    `dims` has the ranks along each axis, 0 for any number; or it is the number of axes. A communicator with a Cartesian
    topology has dims of its own, which take the place of these. `reorder` is mpi4py-fft's and not used: ranks keep
    their numbers.
    """

    comm: Any  # the communicator of all ranks
    grid: rote.Grid
    lines: tuple[Any, ...]  # the communicators along each mode of the grid
    modes: tuple[Any, ...]  # per axis, the mode of the grid that splits it; () for a whole axis

    def __new__(cls, comm: Any, dims: Sequence[int] | int | None = None, reorder: bool = True) -> Subcomm:
        if dims is None or isinstance(dims, int):
            dims = [0] * (dims or 1)

        sizes = getattr(comm, "dims", None) or dims
        grid = rote.Grid.of(comm.size, [n if n > 0 else -1 for n in sizes])

        where, split = grid.coordinates(comm.rank), getattr(comm, "Split", None) or comm.split
        # A line of ranks goes by its first one: ranks that name the same one are together.
        first = [grid.rank((*where[:g], 0, *where[g + 1 :])) for g in range(grid.order)]

        made = super().__new__(cls, map(split, first, where))
        made.comm, made.grid, made.lines = comm, grid, tuple(made)
        return made.placed([g if n > 1 else () for g, n in enumerate(grid.shape)])

    def placed(self, modes: Sequence[Any]) -> Subcomm:
        """The communicators of axes that are split by these modes of the grid; for a whole axis, this process alone."""
        alone = getattr(sys.modules[type(self.comm).__module__], "COMM_SELF", ALONE)  # from the same library
        made = super().__new__(Subcomm, [alone if mode == () else self.lines[mode] for mode in modes])
        made.comm, made.grid, made.lines, made.modes = self.comm, self.grid, self.lines, tuple(modes)
        return made

    def destroy(self) -> None:
        """Free the communicators, if they are MPI's."""
        for line in self.lines:
            if hasattr(line, "Free") and line:
                line.Free()


class Pencil:
    """The blocks of a tensor that is whole along `axis`; along each split axis, blocks are balanced.

    >>> pencil = Pencil(Subcomm(rote.runtime.world(), [0, 1]), (4, 6))
    >>> pencil.subshape, pencil.substart, pencil.pencil(0).axis, str(pencil.on())
    ((4, 6), (0, 0), 0, '[(),()] on (4, 6), grid 1x1')
    """

    def __init__(self, subcomm: Any, shape: Sequence[int], axis: int = -1) -> None:
        if not isinstance(subcomm, Subcomm):
            raise rote.LayoutError("communicators alone do not say how ranks are numbered\nwrite Subcomm(comm, dims)")
        self.shape: tuple[int, ...] = tuple(map(int, shape))
        (self.axis,) = axes_of(axis, len(shape))

        modes = list(subcomm.modes)
        if len(modes) < len(shape):  # `axis` stays whole, and then the last axes
            modes += [()] * (len(shape) - 1 - len(modes))
            modes.insert(self.axis, ())

        if modes[self.axis] != ():
            raise rote.LayoutError(f"axis {self.axis} is split over {subcomm[self.axis].size} ranks; align a whole one")

        self.subcomm: Subcomm = subcomm.placed(modes)
        sets = self.on().index_sets(subcomm.comm.rank)
        self.subshape: tuple[int, ...] = tuple(map(len, sets))
        self.substart: tuple[int, ...] = tuple(indices.start for indices in sets)
        self.slices: tuple[slice, ...] = tuple(map(slice, self.substart, np.add(self.substart, self.subshape).tolist()))

    def on(self, *components: int) -> rote.Distribution:
        """The distribution of all blocks; for a field, its first modes are the components, which are whole."""
        layout = rote.L(*[()] * len(components), *self.subcomm.modes, kind="block")
        return layout.on((*components, *self.shape), self.subcomm.grid)

    def pencil(self, axis: int) -> Pencil:
        """The pencil with another axis whole; the ranks that split that axis now split this one."""
        modes = list(self.subcomm.modes)
        (axis,) = axes_of(axis, len(modes))
        modes[self.axis], modes[axis] = modes[axis], modes[self.axis]
        return Pencil(self.subcomm.placed(modes), self.shape, axis)

    def transfer(self, pencil: Pencil, dtype: npt.DTypeLike) -> Transfer:
        """The move to a pencil with another axis whole."""
        if self.pencil(pencil.axis).subcomm != pencil.subcomm or self.shape != pencil.shape or self.axis == pencil.axis:
            raise rote.LayoutError("one move leads from a pencil to its pencil(axis), for another axis")

        shape, axis = list(self.subshape), pencil.axis
        shape[axis] = self.shape[axis]
        return Transfer(self.subcomm[axis], shape, dtype, self.subshape, self.axis, pencil.subshape, axis)


class Transfer:
    """A move over the ranks of `comm` between blocks that are whole along axis A and blocks whole along axis B.

    `shape` is the shape that these ranks hold together. `dtype`, and `subshapeA` and `subshapeB`, the shapes of this
    rank's blocks, are mpi4py-fft's and not used here: arrays say theirs, and `shape` says how long blocks are.
    """

    #   A = 1: rows     B = 0: columns
    #   +---------+       +----+----+
    #   |  rank 0 |       |    |    |
    #   +---------+  -->  | 0  | 1  |     A is whole before the move and split after it, B the other way round
    #   |  rank 1 |       |    |    |
    #   +---------+       +----+----+

    def __init__(self, comm: Any, shape: Sequence[int], dtype: npt.DTypeLike, subshapeA: Sequence[int], axisA: int,
                 subshapeB: Sequence[int], axisB: int) -> None:  # fmt: skip
        self.comm: Any = comm
        self.axisA: int
        self.axisB: int
        self.axisA, self.axisB = axes_of((axisA, axisB), len(shape))
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.shape: tuple[int, ...] = tuple(shape)
        self.subshapeA: tuple[int, ...] = tuple(subshapeA)
        self.subshapeB: tuple[int, ...] = tuple(subshapeB)

        self._ends = []
        for split in (self.axisB, self.axisA):
            modes: list[Any] = [()] * len(shape)
            modes[split] = 0
            self._ends.append(rote.L(*modes, kind="block").on(self.shape, comm.size))

    def forward(self, arrayA: Array, arrayB: Array, back: bool = False) -> None:
        """Fill B from A."""
        begin, end = self._ends[::-1] if back else self._ends
        x = rote.DistTensor(np.asarray(arrayA), begin, self.comm)
        y = rote.DistTensor(np.asarray(arrayB), end, self.comm)
        x.redistribute(y.layout, out=y)

    def backward(self, arrayB: Array, arrayA: Array) -> None:
        """Fill A from B."""
        self.forward(arrayB, arrayA, back=True)

    def destroy(self) -> None:
        """Do nothing: the communicator owns the resources of the move."""
