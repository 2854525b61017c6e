"""Calls that were prepared for arrays, and run again where arrays lie there again; they keep none of them alive."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["AtAddresses"]

Array = npt.NDArray[Any]
T = TypeVar("T")

_MOST = 32  # places of which the calls are kept: blocks of a loop take turns in fewer


class AtAddresses(Generic[T]):
    """Calls prepared for C-contiguous arrays, by where these lie; of `_MOST` places, the oldest go first.

    It knows the addresses alone. So it is good for all arrays of the same shapes and dtypes that ever lie there, and
    nobody's memory waits for it; whoever asks holds the arrays until the calls have run.

    >>> prepared, block = AtAddresses(), np.zeros(2)
    >>> fill = prepared([block], lambda arrays: lambda: arrays[0].fill(1))
    >>> fill()
    >>> block, prepared([block], lambda arrays: None) is fill
    (array([1., 1.]), True)
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[Hashable, T] = {}

    def __call__(self, arrays: Sequence[Array], make: Callable[[list[Array]], T], state: Hashable = None) -> T:
        """The result of `make` for arrays that lie where these do, and in some state; it must not keep others."""
        place = (state, *[array.__array_interface__["data"][0] for array in arrays])
        prepared = self._kept.get(place)
        if prepared is None:
            prepared = make([np.asarray(_Lying(array.__array_interface__)) for array in arrays])
            if len(self._kept) >= _MOST:
                del self._kept[next(iter(self._kept))]
            self._kept[place] = prepared
        return prepared

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()


class _Lying:
    """The place, shape and dtype of an array, without its memory."""

    __slots__ = ("__array_interface__",)

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface
