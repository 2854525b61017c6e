"""What a library of local transforms is: its traits, what it can do, and the transforms of arrays that it makes.

A new library is a class in this folder and a line in `rote.fft.kernels.backends`. Its traits say where it is fast; they
are measured, and replace rules about its name elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np

from rote.host import installed
from rote.runtime.comm.protocol import Array

from ...transforms import TransformKind
from ..config import KernelConfig, Study

__all__ = ["Array", "ArrayTransform", "Axes", "Called", "Ends", "Library"]

Axes = tuple[int, ...]

Ends = tuple[Array, Array]
"""The arrays of a transform, source and target."""


class ArrayTransform(Protocol):
    """A transform of arrays of one shape, one dtype and certain strides, without scaling."""

    __slots__ = ()

    def __call__(self, source: Array, target: Array) -> None:
        """Transform some arrays, and keep no reference to them."""

    def bound(self, source: Array, target: Array) -> Callable[[], object]:
        """A call that transforms these arrays; it may be repeated."""
        return partial(self, source, target)


class Called(ArrayTransform):
    """A transform by a function that plans nothing."""

    __slots__ = ("_run",)

    def __init__(self, run: Callable[[Array, Array], object]) -> None:
        self._run = run

    def __call__(self, source: Array, target: Array) -> None:
        self._run(source, target)


class Library:
    """A library of transforms. Those of real numbers to real numbers take real arrays only.

    Attributes:
        name: of its package.
        timed: whether it is the fastest somewhere, so that its speed is sampled, and tuning tries tiles for it.
        plans: whether it searches for plans by timing; see `Study`.
        threaded: whether a call may run on several threads.
        processors: the maker of the processors on which it is taken without any timing.
        prefers_tiles: whether columns far apart are faster when they are copied to tiles; else it gathers them itself.
        line_to_line: whether it is fast only from contiguous lines to other contiguous lines. Small powers of two are
            the exception, in columns and in place too.
    """

    name: str
    timed = False
    plans = False
    threaded = True
    processors = ""
    prefers_tiles = True
    line_to_line = False

    def version(self) -> str:
        """The library's version; empty if it is not installed."""
        return installed(self.name)

    def does(self, kind: str, dtype: np.dtype[Any]) -> bool:
        """Whether the library has a transform of this kind for arrays of a dtype, in full precision."""
        raise NotImplementedError

    def prepare(
        self, row: TransformKind, axes: Axes, ends: Ends, config: KernelConfig, study: Study | None
    ) -> ArrayTransform:
        """A transform along some axes, as the config says.

        Args:
            row: the kind of the last of the axes.
            ends: the source and the target, which are one array, or share no memory; their contents are overwritten. A
                transform to real numbers may destroy its input.
            study: the search for plans, while it goes on.
        """
        raise NotImplementedError
