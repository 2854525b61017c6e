"""Where blocks and messages lie while a program runs: in workspace, or in the user's own two blocks."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..comm.protocol import Array

__all__ = ["FIRST", "IN", "OUT", "SECOND", "Memories", "Scratch", "Slot", "route"]

Memory = npt.NDArray[np.uint8]
Scratch = tuple[Memory, Memory]

FIRST, SECOND, IN, OUT = range(4)
"""The memories of a program: two pieces of workspace, the user's input and output."""


class Memories(NamedTuple):
    """The memories of one run, by number; the user's own are contiguous."""

    at: tuple[Memory, Memory, Array, Array]


class Slot(NamedTuple):
    """A place for a block or message: the number of its memory, and the bytes before it there."""

    memory: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int = 0

    @property
    def end(self) -> int:
        """The bytes of its memory up to its end."""
        return self.offset + prod(self.shape) * self.dtype.itemsize

    def of(self, memories: Memories) -> Array:
        """The block that lies here."""
        memory = memories.at[self.memory]
        if memory.shape == self.shape and memory.dtype == self.dtype and not self.offset:
            return memory
        if not prod(self.shape):  # MPI refuses two buffers at one address
            return np.empty(self.shape, self.dtype)
        return np.ndarray(self.shape, self.dtype, memory, self.offset)


def route(in_place: Sequence[bool]) -> list[tuple[int, int]]:
    """The memories in which the block lies before and after each of some sweeps, given whether they work in place.

    From the last sweep on that does not work in place it lies in the output.

    >>> route([False, True, False, True])
    [(2, 0), (0, 0), (0, 3), (3, 3)]
    """
    last = max((n for n, stays in enumerate(in_place) if not stays), default=0)
    ways, source = list[tuple[int, int]](), IN
    for n, stays in enumerate(in_place):
        if n >= last:
            target = OUT
        elif source == IN:
            target = FIRST
        else:
            target = source if stays else 1 - source
        ways.append((source, target))
        source = target
    return ways
