"""Where blocks and messages lie while a program runs: in workspace, or in the user's own two blocks.

Runs between two tensors are prepared the first time and kept for the next, so that a call of small blocks costs little
more than what the ranks do. What is prepared holds views of both blocks, and of workspace: it is let go as soon as one
of the two tensors is, and blocks that are large are not prepared at all.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Sequence
from functools import partial
from math import prod
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ...layout.layout import Distribution
from ..comm.protocol import Array

__all__ = ["FIRST", "IN", "OUT", "SECOND", "Memories", "PreparedRuns", "Scratch", "Slot", "is_small", "route"]

_MOST = 32  # pairs of tensors
_SMALL = 1 << 23  # bytes of a block: to prepare what moves it takes a hundredth of the time that moving takes

R = TypeVar("R")
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
        elif stays:
            target = source
        else:
            target = 1 - source
        ways.append((source, target))
        source = target
    return ways


def is_small(*ends: tuple[Distribution, np.dtype[Any]]) -> bool:
    """Whether it pays to prepare runs between distributions: no rank has a large block in one; alike on all ranks."""
    return all(prod(dist.max_local_shape()) * dtype.itemsize <= _SMALL for dist, dtype in ends)


class PreparedRuns(Generic[R]):
    """The calls that were prepared for runs between two tensors; of `_MOST` pairs, the oldest go first.

    Attributes:
        runs: by a key that has the `id` of both. That of a pair goes with either of the two.
        kept: how many there were.

    >>> class Tensor: ...
    >>> x, y, prepared = Tensor(), Tensor(), PreparedRuns()
    >>> prepared.keep((id(x), id(y)), x, y, [lambda: None])
    >>> prepared.kept, (id(x), id(y)) in prepared.runs
    (1, True)
    >>> del x
    >>> len(prepared.runs)
    0
    """

    __slots__ = ("_newest", "_watches", "kept", "runs")

    def __init__(self) -> None:
        self.runs: dict[Hashable, R] = {}
        self.kept: int = 0
        self._newest: dict[Hashable, int] = {}  # by key: an `id` comes again when a tensor is gone
        self._watches: dict[int, tuple[Hashable, weakref.ref[object], weakref.ref[object]]] = {}  # beside: no cycle

    def keep(self, key: Hashable, x: object, out: object, run: R) -> None:
        """Keep what was prepared for a run from x into `out`; ranks that keep alike let go alike, whatever the ids."""
        oldest = self.kept - _MOST
        if oldest in self._watches:
            old, *_ = self._watches.pop(oldest)
            if self._newest[old] == oldest:
                del self._newest[old]
                self.runs.pop(old, None)
        forget = partial(self.runs.pop, key)  # called with the reference, which is the answer if there is none
        self._watches[self.kept] = key, weakref.ref(x, forget), weakref.ref(out, forget)
        self._newest[key] = self.kept
        self.runs[key] = run
        self.kept += 1
