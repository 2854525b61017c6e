"""Where blocks and messages lie while a program runs: in workspace, or in the user's own two blocks.

A run between two tensors is prepared the first time and kept for the next, so that a run of small blocks costs little
more than the ranks' own work. A prepared run holds views of both blocks and of workspace. So it is dropped as soon as
one of the tensors is, and no run is prepared for large blocks.
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
_SMALL = 1 << 23  # bytes of a block; to prepare its move takes a hundredth of the time of the move itself

R = TypeVar("R")
Memory = npt.NDArray[np.uint8]
Scratch = tuple[Memory, Memory]

FIRST, SECOND, IN, OUT = range(4)
"""The numbers of a program's memories: two pieces of workspace, the user's input, and the user's output."""


class Memories(NamedTuple):
    """The memories of one run, by number. The user's blocks are contiguous."""

    at: tuple[Memory, Memory, Array, Array]


class Slot(NamedTuple):
    """A place for a block or message: the number of its memory, and the bytes before it there."""

    memory: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int = 0

    @property
    def end(self) -> int:
        """The bytes of the memory up to the end of this place."""
        return self.offset + prod(self.shape) * self.dtype.itemsize

    def of(self, memories: Memories) -> Array:
        """The block at this place."""
        memory = memories.at[self.memory]
        if memory.shape == self.shape and memory.dtype == self.dtype and not self.offset:
            return memory
        if not prod(self.shape):  # MPI refuses two buffers at one address
            return np.empty(self.shape, self.dtype)
        return np.ndarray(self.shape, self.dtype, memory, self.offset)


def route(in_place: Sequence[bool]) -> list[tuple[int, int]]:
    """The memories of the block before and after each sweep, given which sweeps work in place.

    After the last sweep that does not work in place, the block stays in the output.

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
    """Whether to prepare runs between distributions: no rank has a large block in any. The same on all ranks."""
    return all(prod(dist.max_local_shape()) * dtype.itemsize <= _SMALL for dist, dtype in ends)


class PreparedRuns(Generic[R]):
    """The calls prepared for runs between two tensors. It keeps `_MOST` pairs, and drops the oldest first.

    Attributes:
        runs: the prepared runs, by a key with the `id` of both tensors. A run is dropped with either of the two.
        kept: how many runs have been kept so far.

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
        self._newest: dict[Hashable, int] = {}  # by key: an `id` can recur after a tensor is gone
        self._watches: dict[int, tuple[Hashable, weakref.ref[object], weakref.ref[object]]] = {}  # apart: no cycle

    def keep(self, key: Hashable, x: object, out: object, run: R) -> None:
        """Keep a run from x to `out`. Ranks that keep the same runs drop the same runs, whatever the ids are."""
        oldest = self.kept - _MOST
        if oldest in self._watches:
            old, *_ = self._watches.pop(oldest)
            if self._newest[old] == oldest:
                del self._newest[old]
                self.runs.pop(old, None)
        forget = partial(self.runs.pop, key)  # the weak reference is passed as the default of `pop`
        self._watches[self.kept] = key, weakref.ref(x, forget), weakref.ref(out, forget)
        self._newest[key] = self.kept
        self.runs[key] = run
        self.kept += 1
