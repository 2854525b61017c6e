"""The interface of a distributed tensor that functions of tensors use: block, distribution and ranks."""

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
    """A tensor as functions use it: this rank's block, the distribution of the elements, and the ranks."""

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
        """A tensor with another block, in this distribution."""

    @abstractmethod
    def _on(self, block: Array, distribution: Distribution) -> Self:
        """A tensor of another distribution over the same ranks."""

    @classmethod
    @abstractmethod
    def _wrap(cls, block: Array, distribution: Distribution, comm: Comm) -> Self:
        """A tensor made of this rank's block in a distribution, over any ranks."""

    @abstractmethod
    def redistribute(self, layout: Layout | str, *, grid: Grid | None = None) -> Self:
        """The tensor in another layout, on this grid or another grid of the same ranks."""

    @abstractmethod
    def to_global(self) -> Array:
        """The whole array, on every rank."""

    @abstractmethod
    def copy(self) -> Self:
        """A copy of the tensor, with its own block."""

    @abstractmethod
    def astype(self, dtype: npt.DTypeLike) -> Self:
        """The tensor in another dtype."""
