"""Runs between two tensors, prepared the first time and kept for the next: a loop calls them again and again.

So a call of small blocks costs little more than what the ranks do. What is prepared holds views of both blocks, and of
workspace: it is let go as soon as one of the two tensors is, and blocks that are large are not prepared at all.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from functools import partial
from math import prod
from typing import Any, Generic, TypeVar

import numpy as np

from ...layout.distribution import Distribution

__all__ = ["PreparedRuns", "is_small"]

_MOST = 32  # pairs of tensors
_SMALL = 1 << 20  # bytes of a block: to prepare what moves it takes a hundredth of the time that moving takes

R = TypeVar("R")


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

    __slots__ = ("_watches", "kept", "runs")

    def __init__(self) -> None:
        self.runs: dict[Hashable, R] = {}
        self.kept: int = 0
        self._watches: dict[Hashable, tuple[weakref.ref[object], weakref.ref[object]]] = {}  # beside: no cycle of them

    def keep(self, key: Hashable, x: object, out: object, run: R) -> None:
        """Keep what was prepared for a run from x into `out`."""
        if len(self._watches) >= _MOST:
            oldest = next(iter(self._watches))
            del self._watches[oldest]
            self.runs.pop(oldest, None)
        forget = partial(self.runs.pop, key)  # called with the reference, which is the answer if there is none
        self._watches[key] = weakref.ref(x, forget), weakref.ref(out, forget)
        self.runs[key] = run
        self.kept += 1
