"""Arrays of NumPy that are this rank's block of a larger one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import rote

from .io import FileBase, HDF5File, NCFile
from .pencil import Array, Pencil, Subcomm, Transfer


class DistArray(np.ndarray[Any, Any]):
    """This rank's block of a field: components in the first `rank` axes, a pencil in the others.

    Args:
        global_shape: of the whole field, components first.
        subcomm: communicators, one per axis of the pencil, or `dims` of such; if None all but `alignment` are split.
        alignment: an axis of the pencil that is whole; the last one if None.

    >>> u = DistArray((3, 4, 6), val=1, rank=1)
    >>> u.global_shape, u[0].rank, u.redistribute(0).alignment, float(u.sum())
    ((3, 4, 6), 0, 0, 72.0)
    """

    _p0: Pencil
    _rank: int

    def __new__(cls, global_shape: Sequence[int], subcomm: Sequence[Any] | None = None, val: Any = None,
                dtype: npt.DTypeLike = float, buffer: Any = None, strides: Any = None, alignment: int | None = None,
                rank: int = 0) -> DistArray:  # fmt: skip
        components, whole, pencil = tuple(global_shape)[:rank], tuple(global_shape)[rank:], None
        if len(whole) > 1:
            if subcomm is None:
                subcomm = [0] * len(whole)
                subcomm[-1 if alignment is None else alignment] = 1
            if isinstance(subcomm[0], Integral):
                world = rote.runtime.world()
                subcomm = Subcomm(getattr(world, "handle", world), subcomm)  # of MPI's own, where there is MPI
            undivided = [axis for axis, part in enumerate(subcomm) if part.size == 1]
            pencil = Pencil(subcomm, whole, undivided[-1] if alignment is None else alignment)
        made = super().__new__(cls, (*components, *(pencil.subshape if pencil else whole)), dtype, buffer, 0, strides)
        if buffer is None and val is not None:
            made.fill(val)
        made.__dict__.update(_p0=pencil, _rank=rank)
        return made

    def __array_finalize__(self, obj: Any) -> None:
        self.__dict__.update(_p0=getattr(obj, "_p0", None), _rank=getattr(obj, "_rank", 0))

    rank: Final = property(lambda self: self._rank, doc="The number of indices of a component.")
    pencil: Final = property(lambda self: self._p0, doc="Where the blocks of each component lie.")
    alignment: Final = property(lambda self: self._p0.axis, doc="The axis of the pencil that is whole.")
    dimensions: Final = property(lambda self: len(self._p0.shape), doc="The number of axes of the pencil.")
    global_shape: Final = property(
        lambda self: self.shape[: self._rank] + self._p0.shape, doc="The shape of the whole field."
    )
    substart: Final = property(
        lambda self: (0,) * self._rank + self._p0.substart, doc="The global index of the first element."
    )
    commsizes: Final = property(lambda self: [part.size for part in self.subcomm], doc="The ranks along each axis.")
    v: Final = property(lambda self: self.view(np.ndarray), doc="The block as a plain array, of the same memory.")

    @property
    def subcomm(self) -> Subcomm:
        """The communicator of each axis, of this process alone for components."""
        return self._p0.subcomm.placed([*[None] * self._rank, *range(self.dimensions)])

    def __getitem__(self, index: Any) -> Any:
        """A component, of this class; anything else as a plain array."""
        words = index if isinstance(index, tuple) else (index,)
        if self.ndim > 1 and (len(words) > self._rank or not all(isinstance(word, Integral | slice) for word in words)):
            return self.v[index]
        component: Any = super().__getitem__(index)
        if self.ndim > 1:
            component._rank = self._rank - (self.ndim - component.ndim)
        return component

    def local_slice(self) -> tuple[slice, ...]:
        """Where the block lies in the whole field."""
        return (*(slice(0, n) for n in self.shape[: self._rank]), *self._p0.slices)

    def part(self, gslice: Sequence[Any]) -> tuple[bool, Array, tuple[slice, ...]]:
        """Whether this rank has some of a part of the whole field; what it has, and where that lies in the part."""
        pairs = list(zip(gslice, self.local_slice(), strict=True))
        held = tuple(own for index, own in pairs if isinstance(index, slice))
        if all(isinstance(index, slice) or index in range(own.start, own.stop) for index, own in pairs):
            return True, self.v[tuple(i if isinstance(i, slice) else i - own.start for i, own in pairs)], held
        return False, np.empty((0,) * len(held), self.dtype), (slice(0, 0),) * len(held)

    def get(self, gslice: Sequence[Any]) -> Array | None:
        """A part of the whole field, with an index or slice(None) per axis, on rank 0; None elsewhere. Collective."""
        extents = [n for n, index in zip(self.global_shape, gslice, strict=True) if isinstance(index, slice)]
        some, block, held = self.part(gslice)
        block, held = block[np.newaxis][: int(some)], (slice(0, int(some)), *held)  # in front, an axis of all ranks
        x = rote.DistTensor.from_slices(block, held, [1, *extents], self._p0.subcomm.comm)
        root = x.redistribute(f"[{','.join(['()'] * x.ndim)}]|(0)", grid=x.comm.size)
        return root.local[0] if x.comm.rank == 0 else None

    def get_pencil_and_transfer(self, axis: int) -> tuple[Pencil, Transfer]:
        """The pencil that leaves another axis whole, and the move of one component to it."""
        pencil = self._p0.pencil(axis)
        return pencil, self._p0.transfer(pencil, self.dtype)

    def redistribute(self, axis: int | None = None, out: DistArray | None = None) -> DistArray:
        """The field with another axis whole: `out`, or a new array, or this one if nothing has to move. Collective."""
        axis = (self if out is None else out).alignment if axis is None else axis
        if out is None and self._p0.subcomm[axis].size == 1:
            self._p0 = Pencil(self._p0.subcomm, self._p0.shape, axis)
            return self
        pencil = self._p0.pencil(axis)
        if out is None:
            out = DistArray(self.global_shape, pencil.subcomm, None, self.dtype, alignment=axis, rank=self._rank)
        if out.commsizes == self.commsizes:
            out[...] = self
        else:
            self._p0.transfer(pencil, self.dtype, self.shape[: self._rank]).forward(self, out)
        return out

    def write(self, filename: Any, name: str = "darray", step: int = 0, global_slice: Any = None, domain: Any = None,
              as_scalar: bool = False) -> None:  # fmt: skip
        """Write the field, or a part of it, into a file; see `HDF5File.write`. Collective."""
        field = self if global_slice is None else (self, global_slice)
        _opened(filename, domain, "a").write(step, {name: [field]}, as_scalar=as_scalar)

    def read(self, filename: Any, name: str = "darray", step: int = 0) -> None:
        """Read the whole field from a file. Collective."""
        _opened(filename, None, "r").read(self, name, step=step)


def newDistArray(pfft: Any, forward_output: bool = True, val: Any = 0, rank: int = 0, view: bool = False) -> Any:
    """A new array for the spectrum of a `PFFT`, or its signal, with a component per axis for each index of `rank`."""
    pencil, dtype = pfft.pencil[forward_output], pfft.dtype(forward_output)
    shape = (len(pencil.shape),) * rank + pencil.shape
    field = DistArray(shape, pencil.subcomm, val, dtype, alignment=pencil.axis, rank=rank)
    return field.v if view else field


def Function(*args: Any, tensor: bool = False, **kwargs: Any) -> Any:
    """Old name of `newDistArray`."""
    warnings.warn("Function() is the old name of newDistArray()", FutureWarning, stacklevel=2)
    return newDistArray(*args, **kwargs | ({"rank": 1} if tensor else {}))


def _opened(file: Any, domain: Any, mode: str) -> Any:
    kind = HDF5File if str(file).endswith(".h5") else NCFile
    return file if isinstance(file, FileBase) else kind(file, domain, mode)
