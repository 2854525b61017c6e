"""The methods of a tensor that NumPy's arrays have, too: its shape, its elements and its reductions.

Their names, arguments and errors are NumPy's. The work is done by functions of other modules, whose rules of layout say
where a result is stored and what moves.
"""

from __future__ import annotations

from typing import Any, Final, Literal, Self

import numpy as np
import numpy.typing as npt

from .. import functions
from ..functions.distributed import Distributed
from ..lazy import method
from .protocols import ArrayProtocols

__all__ = ["ArrayMethods"]


class ArrayMethods(ArrayProtocols):
    """A tensor with the methods of NumPy's arrays."""

    __slots__ = ()

    @property
    def T(self) -> Self:
        """The tensor with its modes in reverse order; the block is a view.

        Examples
        --------
        >>> from rote import DistTensor
        >>> DistTensor.zeros((2, 3), "block[(0),()]").T.shape
        (3, 2)
        """
        return functions.rearranging.permute_dims(self)

    @property
    def mT(self) -> Self:
        """The tensor with its last two modes exchanged; the block is a view.

        Raises
        ------
        LayoutError
            Its order is less than 2.

        Examples
        --------
        >>> from rote import DistTensor
        >>> DistTensor.zeros((4, 2, 3), "block[(0),(),()]").mT.shape
        (4, 3, 2)
        """
        if len(self.distribution.shape) < 2:
            raise AttributeError  # after which Python asks `__getattr__`
        return functions.rearranging.swapaxes(self, -2, -1)

    def transpose(self, *axes: Any) -> Self:
        """The tensor with its modes in another order, by default reversed: `x.transpose(1, 0)`, `x.transpose((1, 0))`.

        Parameters
        ----------
        *axes : int
            The modes in their new order, one by one or as a tuple; reversed if none is given.

        Raises
        ------
        ValueError
            The modes are not all named, each once.

        Examples
        --------
        >>> from rote import DistTensor
        >>> DistTensor.zeros((2, 3, 4), "block[(0),(),()]").transpose(2, 0, 1).shape
        (4, 2, 3)
        """
        if not axes:
            return self.T
        order = axes if len(axes) > 1 or isinstance(axes[0], int) else axes[0]
        return functions.rearranging.permute_dims(self, order)

    def reshape(self, *shape: Any, order: Literal["C"] = "C", copy: bool | None = None) -> Self:
        """The elements in row-major order in another shape: `x.reshape(2, -1)`. Nothing moves if digits allow.

        Raises
        ------
        ValueError
            The new shape has another number of elements; or no view has it, and `copy` is false; or the order is that
            of columns.

        Examples
        --------
        >>> from rote import DistTensor
        >>> print(DistTensor.zeros((4, 6), "block[(0),()]").reshape(24).layout)
        block[(0)]
        """
        return functions.reshaping.reshape(self, shape[0] if len(shape) == 1 else shape, order, copy=copy)

    def flatten(self, order: Literal["C"] = "C") -> Self:
        """A copy of the elements as a tensor of order 1, in row-major order.

        Raises
        ------
        ValueError
            The order is that of columns.

        Examples
        --------
        >>> from rote import DistTensor
        >>> DistTensor.zeros((2, 3), "block[(0),()]").flatten().shape
        (6,)
        """
        return functions.reshaping.reshape(self, -1, order, copy=True)

    def sort(self, axis: int = -1, kind: str | None = None, order: None = None, *, stable: bool | None = None) -> None:
        """Sort the elements in place along a mode. The layout stays; along a split mode, ranks exchange elements.

        Parameters
        ----------
        axis : int, default -1
            The mode.
        kind : str, optional
            Checked as by `numpy.sort`; a sort is always stable.
        order : None, optional
            None; tensors have no fields.
        stable : bool, optional
            Checked as by `numpy.sort`.

        Raises
        ------
        AxisError, TypeError
            There is no such mode, or none is named.
        ValueError
            There is no such kind, it is given with `stable`, or an order of fields is given.

        Examples
        --------
        >>> from rote import DistTensor
        >>> x = DistTensor.from_global([3, 1, 2], "block[(0)]")
        >>> x.sort()
        >>> x.to_global()
        array([1, 2, 3])
        """
        from ..functions.alignment import into

        if axis is None:
            raise TypeError("x.sort sorts along a mode\nwrite numpy.sort(x, axis=None) for all elements as one line")
        into(self, functions.sorting.sort(self, axis, kind, order, stable=stable), "sort")

    def searchsorted(self, v: Any, side: Literal["left", "right"] = "left", sorter: Any = None) -> Any:
        """The indices at which elements would be inserted into this sorted tensor of order 1.

        Parameters
        ----------
        v : array_like
            The elements to insert, as a tensor or an array.
        side : {'left', 'right'}, default 'left'
            "left" of equal elements, or "right" of them.
        sorter : array_like, optional
            The indices that sort this tensor, if it is not sorted.

        Raises
        ------
        ValueError
            This tensor is not of order 1.

        Examples
        --------
        >>> from rote import DistTensor
        >>> DistTensor.from_global([1, 2, 4], "block[(0)]").searchsorted([3, 0]).to_global()
        array([2, 0])
        """
        return functions.sorting.searchsorted(self, v, side, sorter)

    def conj(self) -> Self:
        """The complex conjugate, as a new tensor.

        Examples
        --------
        >>> from rote import DistTensor
        >>> DistTensor.from_global([1 + 2j, 3], "block[(0)]").conj().to_global()
        array([1.-2.j, 3.-0.j])
        """
        if self.local.dtype.kind != "c":
            return self.copy()
        values: Self = functions.elementwise.conj(self)
        return values

    conjugate = conj

    def round(self, decimals: int = 0, out: Distributed | None = None) -> Self:
        """The tensor with each element rounded to so many decimals, half to even.

        Parameters
        ----------
        decimals : int, default 0
            The number of decimals.
        out : DistTensor, optional
            A tensor to write into; it keeps its layout.

        Raises
        ------
        TypeError
            `decimals` is not an integer.

        Examples
        --------
        >>> from rote import DistTensor
        >>> DistTensor.from_global([0.126, 1.5], "block[(0)]").round(2).to_global()
        array([0.13, 1.5 ])
        """
        values: Self = functions.elementwise.elementwise("round", np.round, (self, decimals), {"out": out})
        return values

    def clip(self, min: Any = None, max: Any = None, out: Distributed | None = None) -> Self:
        """The tensor with each element limited to the bounds.

        Parameters
        ----------
        min : float | array_like, optional
            The lower bound: a tensor, an array, a number, or None for no bound.
        max : float | array_like, optional
            The upper bound.
        out : DistTensor, optional
            A tensor to write into; it keeps its layout.

        Raises
        ------
        LayoutError
            The bounds do not broadcast to the tensor.

        Examples
        --------
        >>> from rote import DistTensor
        >>> DistTensor.from_global([1, 5, 9], "block[(0)]").clip(2, 8).to_global()
        array([2, 5, 8])
        """
        values: Self = functions.elementwise.elementwise("clip", np.clip, (self, min, max), {"out": out})
        return values

    def astype(self, dtype: npt.DTypeLike, copy: bool = True) -> Self:
        """The tensor in another dtype; the tensor itself if it has that dtype and `copy` is false.

        Raises
        ------
        PlanError
            Rote does not move elements of this dtype.

        Examples
        --------
        >>> from rote import DistTensor
        >>> DistTensor.zeros(3, "block[(0)]").astype("c8").dtype
        dtype('complex64')
        """
        return functions.creation.astype(self, dtype, copy=copy)

    def nonzero(self) -> tuple[Self, ...]:
        """The global indices of the elements that are not zero, one tensor per mode, in row-major order.

        Raises
        ------
        ValueError
            The tensor is of order 0.

        Examples
        --------
        >>> from rote import DistTensor
        >>> DistTensor.from_global([0, 3, 0, 4], "block[(0)]").nonzero()[0].to_global()
        array([1, 3])
        """
        return functions.reshaping.nonzero(self)

    # Methods that are functions as they stand. Each imports its module when it is first called, and type checkers look
    # through the lambda to the parameters of the function.
    sum: Final = method(lambda: functions.reductions.sum)
    prod: Final = method(lambda: functions.reductions.prod)
    max: Final = method(lambda: functions.reductions.max)
    min: Final = method(lambda: functions.reductions.min)
    any: Final = method(lambda: functions.reductions.any)
    all: Final = method(lambda: functions.reductions.all)
    argmax: Final = method(lambda: functions.reductions.argmax)
    argmin: Final = method(lambda: functions.reductions.argmin)

    mean: Final = method(lambda: functions.statistics.mean)
    var: Final = method(lambda: functions.statistics.var)
    std: Final = method(lambda: functions.statistics.std)
    cumsum: Final = method(lambda: functions.scans.cumsum)
    cumprod: Final = method(lambda: functions.scans.cumprod)

    dot: Final = method(lambda: functions.products.dot)
    trace: Final = method(lambda: functions.matrices.numpy_trace)
    diagonal: Final = method(lambda: functions.matrices.numpy_diagonal)

    ravel: Final = method(lambda: functions.reshaping.ravel)
    squeeze: Final = method(lambda: functions.rearranging.squeeze)
    swapaxes: Final = method(lambda: functions.rearranging.swapaxes)
    repeat: Final = method(lambda: functions.rearranging.repeat)
    argsort: Final = method(lambda: functions.sorting.argsort)
    take: Final = method(lambda: functions.sorting.take)
