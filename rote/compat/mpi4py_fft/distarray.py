"""NumPy arrays that are this rank's block of a distributed array."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import rote

from .io import opened
from .pencil import Array, Pencil, Subcomm, Transfer, axes_of


class DistArray(np.ndarray[Any, Any]):
    """This rank's block of a field: components in the first `rank` axes, a pencil in the others.

    Parameters
    ----------
    global_shape : Sequence[int]
        The shape of the whole field, components first.
    subcomm : Sequence[Any], optional
        A `Subcomm`, or its `dims` over all ranks; if None, all axes but `alignment` are split.
    alignment : int, optional
        An axis of the pencil that is whole; if None, the last such axis.

    Examples
    --------
    >>> from rote.compat.mpi4py_fft import DistArray
    >>> u = DistArray((3, 4, 6), val=1, rank=1)
    >>> u.global_shape, u[0].rank, u.redistribute(0).alignment, float(u.sum())
    ((3, 4, 6), 0, 0, 72.0)
    """

    _p0: Pencil
    _rank: int

    def __new__(cls, global_shape: Sequence[int], subcomm: Sequence[Any] | None = None, val: Any = None,
                dtype: npt.DTypeLike = float, buffer: Any = None, strides: Any = None, alignment: int | None = None,
                rank: int = 0) -> DistArray:  # fmt: skip
        components, shape, pencil = tuple(global_shape)[:rank], tuple(global_shape)[rank:], None
        if not isinstance(subcomm, Sequence | None):
            raise rote.LayoutError(
                f"a DistArray takes a Subcomm, or the ranks along each axis; a {type(subcomm).__name__} does not say "
                f"which axes are split\nwrite subcomm=Subcomm(comm, {[0] * (len(shape) - 1) + [1]})"
            )

        if len(shape) > 1:
            if subcomm is None:
                subcomm = [0] * len(shape)
                subcomm[-1 if alignment is None else axes_of(alignment, len(shape))[0]] = 1
            if isinstance(subcomm[0], Integral):
                world = rote.runtime.world()
                subcomm = Subcomm(getattr(world, "handle", world), subcomm)  # mpi4py's communicator, if there is MPI

            # A pencil is whole along one axis at least; moves start from it.
            whole = [a for a, part in enumerate(subcomm) if part.size == 1]
            if alignment is None and not whole:
                raise rote.LayoutError("every axis is split\nwrite 1 for the ranks along an axis that is to be whole")

            pencil = Pencil(subcomm, shape, whole[-1] if alignment is None else alignment)
            shape = pencil.subshape

        made = super().__new__(cls, (*components, *shape), dtype, buffer, 0, strides)
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
    global_shape: Final = property(lambda self: self.shape[: self._rank] + self._p0.shape, doc="The field's shape.")
    substart: Final = property(lambda self: (0,) * self._rank + self._p0.substart, doc="Where the block begins.")
    commsizes: Final = property(lambda self: [part.size for part in self.subcomm], doc="The ranks along each axis.")
    v: Final = property(lambda self: self.view(np.ndarray), doc="The block as a plain array, of the same memory.")

    @property
    def subcomm(self) -> Subcomm:
        """The communicator of each axis; for component axes, the one of only this process."""
        return self._p0.subcomm.placed([()] * self._rank + [*self._p0.subcomm.modes])

    @property
    def tensor(self) -> rote.DistTensor:
        """The field as a tensor of Rote that shares its memory."""
        return rote.DistTensor(self.v, self._p0.on(*self.shape[: self._rank]), self._p0.subcomm.comm)

    def __getitem__(self, index: Any) -> Any:
        """A component as a `DistArray`; anything else as a plain array."""
        words = index if isinstance(index, tuple) else (index,)
        if self.ndim > 1 and (len(words) > self._rank or not all(isinstance(word, Integral | slice) for word in words)):
            return self.v[index]

        component: Any = super().__getitem__(index)
        if self.ndim > 1:
            component._rank = self._rank - (self.ndim - component.ndim)
        return component

    def local_slice(self) -> tuple[slice, ...]:
        """The slices of the whole field that this block holds."""
        return (*(slice(0, n) for n in self.shape[: self._rank]), *self._p0.slices)

    def part(self, gslice: Sequence[Any]) -> rote.DistTensor:
        """A part of the whole field as a tensor; the key has an index or slice(None) per axis. Collective."""
        with rote.config(implicit="allow"):
            return self.tensor[(..., *gslice)]

    def get(self, gslice: Sequence[Any]) -> Array | None:
        """A part of the whole field on rank 0, else None; the key has an index or slice(None) per axis. Collective."""
        part = self.part(gslice).to_global()
        return part if self._p0.subcomm.comm.rank == 0 else None

    def get_pencil_and_transfer(self, axis: int) -> tuple[Pencil, Transfer]:
        """The pencil in which `axis` is whole, and the move of one component to it."""
        pencil = self._p0.pencil(axis)
        return pencil, self._p0.transfer(pencil, self.dtype)

    def redistribute(self, axis: int | None = None, out: DistArray | None = None) -> DistArray:
        """The field with another axis whole: `out`, a new array, or this one if nothing has to move. Collective."""
        if out is None:
            pencil = self._p0.pencil(self.alignment if axis is None else axis)
            if pencil.subcomm == self._p0.subcomm:
                self._p0 = pencil
                return self
            out = DistArray(self.global_shape, pencil.subcomm, None, self.dtype, alignment=axis, rank=self._rank)

        self.tensor.redistribute(out.tensor.layout, out=out.tensor)
        return out

    def write(self, filename: Any, name: str = "darray", step: int = 0, global_slice: Any = None, domain: Any = None,
              as_scalar: bool = False) -> None:  # fmt: skip
        """Write the field, or a part of it, into a file; see `HDF5File.write`. Collective."""
        opened(filename, domain, "a").write(step, {name: [(self, global_slice or ())]}, as_scalar=as_scalar)

    def read(self, filename: Any, name: str = "darray", step: int = 0) -> None:
        """Read the whole field from a file. Collective."""
        opened(filename, None, "r").read(self, name, step=step)


def newDistArray(pfft: Any, forward_output: bool = True, val: Any = 0, rank: int = 0, view: bool = False) -> Any:
    """A new array for the spectrum or the signal of a `PFFT`; components have `rank` indices, each over all axes.

    Examples
    --------
    >>> import rote
    >>> from rote.compat.mpi4py_fft import PFFT, newDistArray
    >>> fft = PFFT(rote.runtime.world(), (4, 6))
    >>> newDistArray(fft).global_shape, newDistArray(fft, False, rank=1).global_shape
    ((4, 4), (2, 4, 6))
    """
    pencil, dtype = pfft.pencil[forward_output], pfft.dtype(forward_output)
    shape = (len(pencil.shape),) * rank + pencil.shape
    field = DistArray(shape, pencil.subcomm, val, dtype, alignment=pencil.axis, rank=rank)
    return field.v if view else field


def Function(*args: Any, tensor: bool = False, **kwargs: Any) -> Any:
    """The old name of `newDistArray`.

    Examples
    --------
    >>> import rote, warnings
    >>> from rote.compat.mpi4py_fft import PFFT, Function
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     Function(PFFT(rote.runtime.world(), (4, 6))).global_shape
    (4, 4)
    """
    warnings.warn("Function() is the old name of newDistArray()", FutureWarning, stacklevel=2)
    if tensor:
        kwargs["rank"] = 1
    return newDistArray(*args, **kwargs)
