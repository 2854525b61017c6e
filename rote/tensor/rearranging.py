"""Methods that tensors share with NumPy's arrays: indexing, reshaping, sorting. Each calls the function of its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, Self

from .. import functions
from ..functions.distributed import Distributed
from ..functions.moves import asked
from ..functions.sharing import changed, writable
from ..runtime.placement import check_values

__all__ = ["Rearranging"]


class Rearranging(Distributed):
    """Methods of tensors that move elements to other indices; all are collective."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Self:
        """The tensor of the elements at a key: integers, slices, `...`, `None`, arrays, masks, or tensors of these.

        Sliced modes keep their splits; nothing moves if all split modes are taken whole.

        Raises:
            IndexError: an index is out of range, or is not one; raised on all ranks.

        >>> from rote import DistTensor
        >>> x = DistTensor.from_global([[0, 1, 2], [3, 4, 5]], "block[(),(0)]")
        >>> x[1, ::-2].to_global(), x[x > 3].to_global()
        (array([5, 3]), array([4, 5]))
        """
        return functions.indexing.getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write a scalar, an array that all ranks have, or a tensor to the elements at a key; it is broadcast.

        Raises:
            IndexError: an index is out of range, or is not one. ValueError: the value does not broadcast.
            LayoutError: this tensor is partial. All are raised on all ranks.

        >>> from rote import DistTensor
        >>> x = DistTensor.zeros((2, 3), "block[(),(0)]", dtype="i8")
        >>> x[:, 1:] = [4, 5]
        >>> x.to_global().tolist()
        [[0, 4, 5], [0, 4, 5]]
        """
        functions.assigning.setitem(self, key, value)

    def _store(self, axes: Sequence[Any] | None, part: Distributed) -> None:
        functions.assigning.store(self, axes, part)

    def __iter__(self) -> Iterator[Self]:
        """The tensors at each index of mode 0, which is made whole once for all.

        Raises:
            TypeError: the tensor is of order 0.
        """
        if not self.distribution.shape:
            raise TypeError("a tensor of order 0 is not iterated")
        return functions.joining.rows(self)

    @property
    def T(self) -> Self:
        """The tensor with its modes in reverse order; the block is a view.

        >>> from rote import DistTensor
        >>> DistTensor.zeros((2, 3), "block[(0),()]").T.shape
        (3, 2)
        """
        return functions.reshaping.permute_dims(self)

    @property
    def mT(self) -> Self:
        """The tensor with its last two modes exchanged; the block is a view.

        Raises:
            LayoutError: its order is less than 2.

        >>> from rote import DistTensor
        >>> DistTensor.zeros((4, 2, 3), "block[(0),(),()]").mT.shape
        (4, 3, 2)
        """
        if len(self.distribution.shape) < 2:
            raise AttributeError  # after which Python asks `__getattr__`
        return functions.reshaping.swapaxes(self, -2, -1)

    def transpose(self, *axes: Any) -> Self:
        """The tensor with its modes in another order, reversed if none is given: `x.transpose(1, 0)` or
        `x.transpose((1, 0))`.

        Raises:
            ValueError: the modes are not all named, each once.

        >>> from rote import DistTensor
        >>> DistTensor.zeros((2, 3, 4), "block[(0),(),()]").transpose(2, 0, 1).shape
        (4, 2, 3)
        """
        if not axes:
            return self.T
        order = axes if len(axes) > 1 or isinstance(axes[0], int) else axes[0]
        return functions.reshaping.permute_dims(self, order)

    def reshape(self, *shape: Any, order: Literal["C"] = "C", copy: bool | None = None) -> Self:
        """The elements in row-major order in another shape: `x.reshape(2, -1)`. Nothing moves if digits allow.

        Raises:
            ValueError: the new shape has another number of elements; or no view has it, and `copy` is false; or the
                order is that of columns.

        >>> from rote import DistTensor
        >>> print(DistTensor.zeros((4, 6), "block[(0),()]").reshape(24).layout)
        block[(0)]
        """
        return functions.reshaping.reshape(self, shape[0] if len(shape) == 1 else shape, order, copy=copy)

    def flatten(self, order: Literal["C"] = "C") -> Self:
        """A copy of the elements as a tensor of order 1, in row-major order.

        Raises:
            ValueError: the order is that of columns.

        >>> from rote import DistTensor
        >>> DistTensor.zeros((2, 3), "block[(0),()]").flatten().shape
        (6,)
        """
        return functions.reshaping.reshape(self, -1, order, copy=True)

    def nonzero(self) -> tuple[Self, ...]:
        """The global indices of the elements that are not zero, one tensor per mode, as `numpy.nonzero`.

        Raises:
            ValueError: the tensor is of order 0.

        >>> from rote import DistTensor
        >>> DistTensor.from_global([0, 5, 6], "block[(0)]").nonzero()[0].to_global()
        array([1, 2])
        """
        return functions.ordering.nonzero(self)

    def sort(self, axis: int = -1, kind: Any = None, order: None = None) -> None:
        """Sort the elements in place along a mode. The layout stays; along a split mode, ranks exchange elements.

        Raises:
            LayoutError: the tensor is partial.
            AxisError: there is no such mode.

        >>> from rote import DistTensor
        >>> x = DistTensor.from_global([3, 1, 2], "block[(0)]")
        >>> x.sort()
        >>> x.to_global()
        array([1, 2, 3])
        """
        check_values("sort", self.distribution)
        dist = self.distribution
        result = asked(functions.sorting.sort(self, axis, kind, order), dist.layout, "sort", dist.grid).local
        writable(self)[...] = result
        changed(self)

    def searchsorted(self, v: Any, side: Literal["left", "right"] = "left", sorter: Any = None) -> Any:
        """The indices at which elements would be inserted into this sorted tensor of order 1.

        Raises:
            ValueError: this tensor is not of order 1.

        >>> from rote import DistTensor
        >>> DistTensor.from_global([1, 2, 4], "block[(0)]").searchsorted([3, 0]).to_global()
        array([2, 0])
        """
        return functions.sorting.searchsorted(self, v, side, sorter)
