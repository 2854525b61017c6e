"""The protocols of libraries of local transforms, and of the transforms of arrays that they make, without scaling."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np

from rote.runtime.comm.protocol import Array

from ...transforms import TransformKind
from ..kernel import Kernel

__all__ = ["Array", "ArrayTransform", "Called", "Library", "lengths"]


class ArrayTransform(Protocol):
    """A transform of arrays of one shape, one dtype and certain strides."""

    __slots__ = ()

    def __call__(self, source: Array, target: Array) -> None:
        """Transform some arrays, and keep no reference to them."""

    def bound(self, source: Array, target: Array) -> Callable[[], object]:
        """A call that transforms these arrays; it may be repeated."""
        return partial(self, source, target)


class Library(Protocol):
    """A library: every file of this folder is one, but this and `by_parts`.

    Cosine and sine transforms take real arrays only. A transform to real numbers may destroy its input.
    """

    def version(self) -> str:
        """The library's version; empty if it is not installed."""

    def does(self, kind: str, dtype: np.dtype[Any]) -> bool:
        """Whether the library has a transform of this kind for arrays of a dtype, in full precision."""

    def prepare(
        self, kernel: Kernel, axes: tuple[int, ...], source: Array, target: Array, threads: int
    ) -> ArrayTransform:
        """A transform of the kernel's kind along some axes, on at most `threads` threads.

        Source and target are one array, or share no memory; their contents are overwritten.
        """


class Called(ArrayTransform):
    """A transform by a function that plans nothing."""

    __slots__ = ("_run",)

    def __init__(self, run: Callable[[Array, Array], object]) -> None:
        self._run = run

    def __call__(self, source: Array, target: Array) -> None:
        self._run(source, target)


def lengths(row: TransformKind, axes: tuple[int, ...], target: Array) -> dict[str, list[int]]:
    """The option `s` of NumPy's functions: only a real result does not follow from the extents of the input."""
    if row.real != "output":
        return {}
    return {"s": [target.shape[axis] for axis in axes]}
