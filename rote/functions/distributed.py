"""A distributed tensor as functions of tensors see it: blocks, distributions, ranks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy.typing as npt

from ..layout.grid import Grid
from ..layout.layout import Distribution, Layout
from ..runtime.comm.protocol import Comm

__all__ = ["Array", "Distributed"]

Array = npt.NDArray[Any]


class Distributed(ABC):
    """A tensor as answers see it: this rank's block, the distribution that says what it is, and the ranks."""

    __slots__ = ()

    @property
    @abstractmethod
    def local(self) -> Array:
        """This rank's block."""

    @property
    @abstractmethod
    def distribution(self) -> Distribution:
        """The layout on the tensor's shape and grid."""

    @property
    @abstractmethod
    def comm(self) -> Comm:
        """The communicator of the ranks."""

    @abstractmethod
    def _with(self, block: Array) -> Self:
        """The tensor that has another block in this one's place."""

    @abstractmethod
    def _on(self, block: Array, distribution: Distribution) -> Self:
        """A tensor of another distribution over the same ranks."""

    @classmethod
    @abstractmethod
    def _wrap(cls, block: Array, distribution: Distribution, comm: Comm) -> Self:
        """A tensor of a block that lies where it belongs, over any ranks."""

    @abstractmethod
    def redistribute(self, layout: Layout | str, *, grid: Grid | None = None) -> Self:
        """The tensor in another layout, on this grid or another one of the same ranks."""

    @abstractmethod
    def to_global(self) -> Array:
        """The whole array, on every rank."""

    @abstractmethod
    def copy(self) -> Self:
        """The tensor with a block of its own."""

    @abstractmethod
    def astype(self, dtype: npt.DTypeLike) -> Self:
        """The tensor in another dtype."""
