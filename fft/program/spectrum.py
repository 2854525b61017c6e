"""What is computed of a spectrum: its wavenumbers as tensors, and sums over shells of wavenumbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from rote.errors import LayoutError
from rote.layout.layout import Layout
from rote.layout.refine import with_components
from rote.runtime.comm.protocol import Array, Comm
from rote.tensor import DistTensor

from ..walk.walk import Walk
from ..walk.wavenumbers import Lengths, Nyquist, shells, wavenumbers

__all__ = ["Wavenumbers", "local_wavenumbers", "shell_sums", "wavenumber_tensors"]


class Wavenumbers(DistTensor):
    """A tensor of wavenumbers, or of functions of them, which combines with tensors and numbers.

    An array with as many modes is refused: a tensor takes it for a whole one, but next to wavenumbers it is most likely
    a block of a spectrum, which has the shape of the whole one where there is one rank.
    """

    __slots__ = ()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        given = (*inputs, *kwargs.get("out", ()))
        order = min(self.ndim, self.local.ndim)  # a view may have fewer modes
        if any(isinstance(x, np.ndarray) and x.ndim >= order > 0 for x in given):
            raise LayoutError(
                f"numpy.{ufunc.__name__} of an array and of the wavenumbers of a whole spectrum\n"
                "write f.local_wavenumbers() for those of a block such as X.local, or X * k of the tensor X itself\n"
                "make a tensor of an array that every rank has whole: DistTensor.from_global(array, layout)"
            )
        result = super().__array_ufunc__(ufunc, method, *inputs, **kwargs)
        return result if all(isinstance(x, Wavenumbers) for x in given if isinstance(x, DistTensor)) else _plain(result)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _plain(super().__array_function__(function, types, args, kwargs))


def _plain(result: Any) -> Any:
    """A result that is a tensor as any other."""
    if isinstance(result, Wavenumbers):
        return DistTensor._wrap(result.local, result.distribution, result.comm)
    return tuple(map(_plain, result)) if type(result) is tuple else result


def local_wavenumbers(walk: Walk, axes: tuple[int, ...], comm: Comm, L: Lengths, nyquist: Nyquist) -> tuple[Array, ...]:
    """The wavenumbers of this rank's block of a spectrum; see `FFT.local_wavenumbers`."""
    indices = walk.target.tensor_indices(comm.rank)
    return wavenumbers(walk, axes, [indices[axis] for axis in axes], L, nyquist)


def wavenumber_tensors(
    walk: Walk, axes: tuple[int, ...], comm: Comm, L: Lengths, nyquist: Nyquist
) -> tuple[Wavenumbers, ...]:
    """The wavenumbers of a spectrum as tensors that broadcast to it; see `FFT.wavenumbers`."""
    target = walk.target
    layout, order = target.layout, len(target.shape)
    if layout.view is not None:  # no tensor of one axis has blocks that broadcast to those of a view
        shape, blocks = target.local_shape(comm.rank), local_wavenumbers(walk, axes, comm, L, nyquist)
        return tuple([Wavenumbers(np.broadcast_to(block, shape).copy(), target, comm) for block in blocks])
    ends = []
    for axis in axes:
        modes = tuple([layout.modes[axis] if mode == axis else () for mode in range(order)])
        shape = tuple([target.shape[axis] if mode == axis else 1 for mode in range(order)])
        ends.append(Layout(modes, rooted=layout.rooted).on(shape, target.grid))
    indices = [end.indices(comm.rank)[axis] for end, axis in zip(ends, axes, strict=True)]
    blocks = wavenumbers(walk, axes, indices, L, nyquist)
    return tuple([Wavenumbers(k.reshape(e.local_shape(comm.rank)), e, comm) for k, e in zip(blocks, ends, strict=True)])


def shell_sums(walk: Walk, axes: tuple[int, ...], values: DistTensor, L: Lengths) -> Array:
    """The sums of values over the shells of a spectrum; see `FFT.shell_sums`."""
    target, comm = walk.target, values.comm
    front = values.ndim - len(target.shape)
    if front < 0 or values.distribution != with_components(target, values.shape[:front]):
        raise LayoutError(
            f"shell_sums takes a tensor in the layout of the spectrum, {target}, not in {values.distribution}\n"
            "write abs(X) ** 2 of a spectrum X of f.forward, or values.redistribute(f.output_layout)"
        )
    if values.dtype.kind not in "fiub":
        raise LayoutError(f"shell_sums takes real numbers, such as abs(X) ** 2, not {values.dtype}")
    indices = target.tensor_indices(comm.rank)
    numbers, stands_for, count = shells(walk, axes, [indices[axis] for axis in axes], L)
    block = values.local.sum(axis=tuple(range(front)), dtype=np.float64)
    numbers, weighted = np.broadcast_arrays(numbers, stands_for * block)
    sums = np.bincount(numbers.ravel(), weighted.ravel(), count).astype(np.float64)  # of nothing it counts integers
    # Each rank adds its own elements; a replica counts once.
    split = tuple(sorted({entry.grid_mode for mode in target.layout.modes for entry in mode}))
    partial = Layout(((),), partial=split, rooted=target.layout.rooted).on((count,), target.grid)
    return DistTensor(sums[: partial.local_shape(comm.rank)[0]], partial, comm).to_global()
