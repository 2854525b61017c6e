"""The interface of a distributed tensor that functions of tensors use: block, distribution and ranks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self
from weakref import ref

import numpy.typing as npt

from ..layout.grid import Grid
from ..layout.layout import Distribution, Layout
from ..runtime.comm.protocol import Comm

__all__ = ["Array", "Distributed", "PartKind", "Sharing"]

Array = npt.NDArray[Any]

PartKind = Literal["view", "block", "copy"]
"""How a part has its elements: in the memory of the tensor; in a copy of the tensor's block, which this rank keeps up
to date alone, because the block lies in memory as the part's cannot; or in a copy of elements from any ranks."""


class Distributed(ABC):
    """A tensor as functions use it: this rank's block, the distribution of the elements, and the ranks."""

    __slots__ = ("_local", "_sharing")

    _local: Array  # the block; not set in a part that is outdated
    _sharing: Sharing | None  # None for a tensor that is no part, and that has none

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
    def _store(self, axes: Sequence[Any] | None, part: Distributed) -> None:
        """Write a part back to the elements that it has copies of; None for all of them, reshaped. Collective."""

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


class Sharing:
    """What a tensor shares: the tensor that it is a part of, if any, and its own parts."""

    __slots__ = ("axes", "fixed", "kind", "parts", "source")

    def __init__(
        self,
        source: Distributed | None = None,
        axes: Sequence[Any] | None = None,
        kind: PartKind = "view",
        fixed: Callable[[Array], Array] | None = None,
    ) -> None:
        self.source = source
        self.axes = axes  # NumPy's key of the part, in any order of modes; None for all elements, reshaped
        self.kind = kind
        self.fixed = fixed  # of what is not written into: NumPy's function that takes it
        self.parts: dict[int, ref[Distributed]] = {}  # by the number of the reference, in their order
