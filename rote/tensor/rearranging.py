"""Methods of NumPy's arrays that tensors have: indexing, other shapes, sorting, scans. Each is a function's."""

from __future__ import annotations

from typing import Any, Self

from .distributed import Distributed
from .functions.assigning import setitem
from .functions.indexing import getitem
from .functions.ordering import nonzero

__all__ = ["Rearranging"]


class Rearranging(Distributed):
    """Methods that move elements to other indices, for what lies distributed; all are collective."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Self:
        """The elements at a key, a tensor: integers, slices, `...`, `None`, arrays, masks, tensors of these.

        Modes that are sliced keep what splits them; nothing moves where modes that are split are taken whole.

        Raises:
            IndexError: an index is out of range, or none; on all ranks.

        >>> from rote import DistTensor
        >>> x = DistTensor.from_global([[0, 1, 2], [3, 4, 5]], "block[(),(0)]")
        >>> x[1, ::-2].to_global(), x[x > 3].to_global()
        (array([5, 3]), array([4, 5]))
        """
        return getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write a scalar, an array that all ranks have, or a tensor at a key; it is broadcast.

        Raises:
            IndexError: an index is out of range, or none. ValueError: the value does not broadcast.
            LayoutError: this tensor is partial. All are raised on all ranks.

        >>> from rote import DistTensor
        >>> x = DistTensor.zeros((2, 3), "block[(),(0)]", dtype="i8")
        >>> x[:, 1:] = [4, 5]
        >>> x.to_global().tolist()
        [[0, 4, 5], [0, 4, 5]]
        """
        setitem(self, key, value)

    def nonzero(self) -> tuple[Self, ...]:
        """The global indices of the elements that are not zero, one tensor per mode, as `numpy.nonzero`."""
        return nonzero(self)
