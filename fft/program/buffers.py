"""Where blocks lie while a walk runs: in scratch, or in the user's own two blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..kernels.kernel import view

__all__ = ["FIRST", "IN", "OUT", "SECOND", "Slot", "ways"]

Array = npt.NDArray[Any]

FIRST, SECOND, IN, OUT = range(4)
"""The places: two pieces of scratch, the user's input and output."""


def ways(in_place: Sequence[bool], begin: int = FIRST) -> list[tuple[int, int]]:
    """Where the block lies before and after each of some turns, given whether they can work in place.

    It begins in scratch at `begin`, and from the last turn on that cannot work in place it lies in the output.

    >>> ways([False, True, False, True])
    [(2, 0), (0, 0), (0, 3), (3, 3)]
    """
    last = max((n for n, stays in enumerate(in_place) if not stays), default=0)
    found, here = list[tuple[int, int]](), IN
    for n, stays in enumerate(in_place):
        there = OUT if n >= last else here if stays and here < IN else begin if here == IN else 1 - here
        found.append((here, there))
        here = there
    return found


class Slot(NamedTuple):
    """A block or message at one of the places; `at` says which, and `memory` is what it has in scratch."""

    at: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    memory: Array | None

    @classmethod
    def make(cls, at: int, shape: tuple[int, ...], dtype: np.dtype[Any], scratch: tuple[Array, Array]) -> Slot:
        """A block at a place."""
        return cls(at, shape, dtype, view(scratch[at], shape, dtype) if at < IN else None)

    def of(self, source: Array, target: Array) -> Array:
        """The block, given the user's two, which are plain."""
        if self.memory is not None:
            return self.memory
        array = source if self.at == IN else target
        if array.shape == self.shape and array.dtype == self.dtype:
            return array
        return np.ndarray(self.shape, self.dtype, array)
