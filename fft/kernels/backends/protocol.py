"""The protocol of libraries of local transforms, and of what they make: transforms of arrays, without any scaling."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..kernel import Kernel

__all__ = ["Array", "ArrayTransform", "Called", "Library"]

Array = npt.NDArray[Any]


class ArrayTransform(Protocol):
    """A transform of arrays of one shape, one dtype and certain strides."""

    __slots__ = ()

    def __call__(self, source: Array, target: Array) -> None:
        """Transform some arrays; it keeps no hold of them."""

    def bound(self, source: Array, target: Array) -> Callable[[], object]:
        """A call that transforms some arrays, again and again."""
        return partial(self, source, target)


class Library(Protocol):
    """A library: every file of this folder is one, but this and `by_parts`.

    Of cosine and sine transforms it takes real arrays only. A transform to real numbers may destroy its input.
    """

    def version(self) -> str:
        """The library's version; empty if it is not installed."""

    def does(self, kind: str, dtype: np.dtype[Any]) -> bool:
        """Whether it transforms arrays of a dtype so, and exactly."""

    def prepare(
        self, kernel: Kernel, axes: tuple[int, ...], source: Array, target: Array, threads: int
    ) -> ArrayTransform:
        """A transform of the kernel's kind along some axes, on as many threads at most.

        Source and target are the same array, or have no memory in common; what lies in them is lost.
        """


class Called(ArrayTransform):
    """A transform by a function that plans nothing."""

    __slots__ = ("_run",)

    def __init__(self, run: Callable[[Array, Array], object]) -> None:
        self._run = run

    def __call__(self, source: Array, target: Array) -> None:
        self._run(source, target)
