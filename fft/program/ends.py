"""The two ends of a planned transform: their shapes, dtypes and layouts, and tensors for them."""

from __future__ import annotations

from typing import Any, NoReturn, Self

import numpy as np

from rote.layout.grid import Grid
from rote.layout.layout import Distribution, Layout
from rote.layout.refine import with_components
from rote.runtime.comm.protocol import Comm
from rote.tensor import DistTensor

from ..walk.walk import Walk
from .fields import empty

__all__ = ["TransformEnds"]


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
