"""The two ends of a planned transform: their shapes, dtypes and layouts, and tensors for them.

Of a spectrum, also its wavenumbers as tensors, and sums over shells of wavenumbers.
"""

from __future__ import annotations

from typing import Any, NoReturn, Self

import numpy as np

from rote.errors import LayoutError
from rote.layout.distribution import Distribution
from rote.layout.grid import Grid
from rote.layout.layout import Layout
from rote.layout.refine import with_components
from rote.runtime.comm.protocol import Array, Comm
from rote.tensor import DistTensor

from ..walk.walk import Walk
from ..walk.wavenumbers import Lengths, Nyquist, shells, wavenumbers
from .fields import empty

__all__ = ["TransformEnds", "Wavenumbers", "local_wavenumbers", "shell_sums", "wavenumber_tensors"]


class TransformEnds:
    """The ends of a walk: the input of `forward`, which `backward` gives, and its output, which `backward` takes.

    Attributes:
        walk: from the input to the output.

    >>> from rote.fft import FFT
    >>> f = FFT((4, 6), "block[(0),()]", dtype="f8")
    >>> f.shape == f.input_shape, f.input_dtype, f.grid.shape, f.comm.size
    (True, dtype('float64'), (1,), 1)
    >>> print(f.input_distribution, f.output_distribution.shape, f.output_layout == f.output_distribution.layout)
    block[(0),()] on (4, 6), grid 1 (4, 4) True
    """

    walk: Walk
    _comm: Comm

    @property
    def comm(self) -> Comm:
        """The communicator of the ranks that transform together."""
        return self._comm

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what `forward` takes and `backward` gives, as `input_shape`."""
        return self.walk.source.shape

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of what `forward` takes and `backward` gives."""
        return self.walk.source.shape

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of what `forward` gives and `backward` takes.

        >>> from rote.fft import FFT
        >>> FFT((8, 9, 10), dtype="f8").output_shape
        (8, 9, 6)
        """
        return self.walk.target.shape

    @property
    def input_dtype(self) -> np.dtype[Any]:
        """The dtype of what `forward` takes and `backward` gives."""
        return self.walk.dtype

    @property
    def output_dtype(self) -> np.dtype[Any]:
        """The dtype of what `forward` gives and `backward` takes.

        >>> from rote.fft import FFT
        >>> FFT(8, dtype="f4").output_dtype
        dtype('complex64')
        """
        return self.walk.dtypes()[-1]

    @property
    def input_layout(self) -> Layout:
        """The layout that `forward` takes and `backward` gives."""
        return self.walk.source.layout

    @property
    def output_layout(self) -> Layout:
        """The layout that `forward` gives and `backward` takes."""
        return self.walk.target.layout

    @property
    def input_distribution(self) -> Distribution:
        """The input's layout on its shape and grid: `f.input_distribution.local_shape(rank)` is that of a block."""
        return self.walk.source

    @property
    def output_distribution(self) -> Distribution:
        """The output's layout on its shape and grid, which may be another grid than that of the input."""
        return self.walk.target

    @property
    def grid(self) -> Grid:
        """The grid of `input_layout`."""
        return self.walk.source.grid

    def empty_input(self, components: tuple[int, ...] = ()) -> DistTensor:
        """A new tensor of the shape, dtype and layout that `forward` takes, whose elements are not set yet.

        Args:
            components: the extents of whole modes in front of these, of a field; (3,) of vectors, (3, 3) of tensors.

        Raises:
            LayoutError: a component is not an extent.

        >>> from rote.fft import FFT
        >>> f = FFT((4, 6), "block[(0),()]", dtype="f8")
        >>> x = f.empty_input()
        >>> x.local[...] = 1
        >>> f.forward(x).to_global()[0, 0]
        np.complex128(24+0j)
        >>> f.empty_input((3,))
        DistTensor((3, 4, 6), float64, 'block[(),(0),()]', grid=(1,), rank=0, local=(3, 4, 6))
        """
        return empty(with_components(self.walk.source, components), self.input_dtype, self._comm)

    def empty_output(self, components: tuple[int, ...] = ()) -> DistTensor:
        """A new tensor of the shape, dtype and layout that `forward` gives, whose elements are not set yet.

        Args:
            components: as in `empty_input`.

        Raises:
            LayoutError: a component is not an extent.

        >>> from rote.fft import FFT
        >>> f = FFT((4, 6), "block[(0),()]", dtype="f8")
        >>> X = f.empty_output()
        >>> X.shape, f.forward(f.empty_input(), out=X) is X
        ((4, 4), True)
        """
        return empty(with_components(self.walk.target, components), self.output_dtype, self._comm)

    def __copy__(self) -> Self:
        return self  # a plan never changes, and keeps no values between two calls

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a transform is not pickled, for its communicator lives in this run only\n"
            f"keep its text, which makes it again: {self!r}"
        )


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
