"""Kernels as work of a program: on a block, or on what a move reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy.typing as npt

from rote.runtime.copy.regions import Region
from rote.runtime.copy.strided import Copy
from rote.runtime.executor.buffers import Scratch
from rote.runtime.executor.operations import BlockWork, LocalWork, MakeReader

from ..kernels.boxes import boxes, whole
from ..kernels.gather import Gather, gathers
from ..kernels.kernel import Kernel
from ..kernels.passes import BoundKernel
from ..kernels.workers import Pool

__all__ = ["KernelWork"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class KernelWork(LocalWork):
    """A kernel as work of a program.

    Attributes:
        ortho: whether cosine and sine transforms are orthogonal, but for the scale.
        pool: for the kernel's threads, if they are several.
    """

    kernel: Kernel
    ortho: bool
    pool: Pool

    @property
    def in_place(self) -> bool:
        return self.kernel.in_place

    @property
    def overwrites_input(self) -> bool:
        return self.kernel.overwrites_input(self.ortho)

    @property
    def gathers(self) -> bool:
        """Whether the kernel may read its block out of boxes."""
        return gathers(self.kernel, self.ortho)

    @property
    def along(self) -> int | None:
        axes, order = self.kernel.axes, len(self.kernel.shape)
        if self.kernel.config.threads > 1 or order < 2:
            return None
        if axes == (0,):
            return 1
        return 0 if min(axes) > 0 else None

    def bind(self, scratch: Scratch, behind: bool) -> BlockWork:
        if behind and self.gathers:
            return _GatherOfBlock(Gather(self.kernel, whole(self.kernel.shape), (), scratch, self.pool))
        return BoundKernel(self.kernel, scratch, self.ortho, self.pool)

    def reader(self, regions: Iterable[tuple[int, Region]]) -> MakeReader | None:
        if not self.gathers:
            return None
        parts = boxes(regions, len(self.kernel.shape))
        return None if parts is None else partial(Gather, self.kernel, parts, pool=self.pool)


class _GatherOfBlock(BlockWork):
    """A kernel that reads one block, and rounds as if it read it out of several."""

    __slots__ = ("_gather",)

    def __init__(self, gather: Gather) -> None:
        self._gather = gather

    def __call__(self, source: Array, target: Array) -> None:
        self._gather(self._gather.reads([source.reshape(-1)]), target)

    def bound(self, source: Array, target: Array) -> list[Copy]:
        return self._gather.bound(self._gather.reads([source.reshape(-1)]), target)
