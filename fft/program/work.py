"""The local work of a program's operations: a kernel, also fused with a move; a change of extent or of dtype."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rote.runtime.comm.protocol import Array
from rote.runtime.copy.regions import Region
from rote.runtime.copy.strided import Copy
from rote.runtime.executor.buffers import Scratch
from rote.runtime.executor.operations import BlockWork, LocalWork, MakeReader

from ..kernels.gather import Gather, gathers
from ..kernels.kernel import Kernel
from ..kernels.threads import Pool, bind_kernel
from ..kernels.tiles import boxes, whole
from ..walk.walk import Resize
from .twiddles import chirp

__all__ = ["BoundResize", "Cast", "KernelWork"]


@dataclass(frozen=True, slots=True)
class KernelWork(LocalWork):
    """A kernel as work of a program.

    Attributes:
        ortho: whether cosine and sine transforms are orthogonal, up to the scale.
        pool: the kernel's threads, if there are several.
        scale: a real number by which the result is multiplied; 1 if a move comes before the kernel.
    """

    kernel: Kernel
    ortho: bool
    pool: Pool
    scale: np.floating[Any] | float = 1

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
        if min(axes) > 0:
            return 0
        return 1 if axes == (0,) else None

    def bind(self, scratch: Scratch, behind: bool) -> BlockWork:
        if behind and self.gathers:
            return _GatherOfBlock(Gather(self.kernel, whole(self.kernel.shape), (), scratch, self.pool))
        return bind_kernel(self.kernel, scratch, self.ortho, self.scale, self.pool)

    def reader(self, regions: Iterable[tuple[int, Region]]) -> MakeReader | None:
        if not self.gathers:
            return None
        parts = boxes(regions, len(self.kernel.shape))
        return None if parts is None else partial(Gather, self.kernel, parts, pool=self.pool)


class _GatherOfBlock(BlockWork):
    """A kernel that reads a single block, and rounds as it does when it reads boxes of several blocks."""

    __slots__ = ("_gather",)

    def __init__(self, gather: Gather) -> None:
        self._gather = gather

    def __call__(self, source: Array, target: Array) -> None:
        self._gather(self._gather.reads([source.reshape(-1)]), target)

    def bound(self, source: Array, target: Array) -> list[Copy]:
        return self._gather.bound(self._gather.reads([source.reshape(-1)]), target)


@dataclass(frozen=True, slots=True)
class BoundResize(LocalWork, BlockWork):
    """A change of extent, bound to a rank.

    For an even number of points, Nyquist's term stands for both signs of the highest frequency. On more points each
    sign has a term of its own, with half of the value. So a signal that fewer points resolve keeps its values there.

    Attributes:
        mode: the mode of the block.
        head, tail: the numbers of elements that are kept at both ends of the mode.
        twice: the places in the longer block of Nyquist's term of the shorter one; empty if there is none.
        half: whether the block is half a spectrum, which has only one of these two terms.
        cut: whether there are fewer points afterwards; the extents of half a spectrum do not tell.
        weights: the weights of the head, if it has any.
    """

    mode: int
    head: int
    tail: int
    twice: tuple[int, ...]
    half: bool
    cut: bool
    weights: Array | None = None

    @staticmethod
    def of(resize: Resize, indices: Array, new_indices: Array, dtype: np.dtype[Any]) -> BoundResize:
        """A change of extent on a rank, from the rank's indices along the mode before and after, and the dtype."""
        cut = resize.old > resize.new
        fewer, more = (new_indices, indices) if cut else (indices, new_indices)
        if resize.kind == "chirp":
            weights = chirp(fewer, min(resize.extents), dtype, resize.back)
            return BoundResize(resize.mode, len(fewer), 0, (), False, cut, weights)
        if resize.kind == "fold" and not cut:
            once = (fewer == 0) | (2 * fewer == resize.new)  # all other terms stand for the other half as well
            return BoundResize(resize.mode, len(fewer), 0, (), False, cut, np.where(once, 1, 2).astype(dtype))
        if resize.kind != "resample" or resize.old == resize.new:
            return BoundResize(resize.mode, len(fewer), 0, (), resize.half, cut)
        points, longer = sorted((resize.old, resize.new))
        head = int(np.searchsorted(fewer, (points + 1) // 2))
        tail = len(fewer) - int(np.searchsorted(fewer, points // 2 + 1))
        both = [points // 2] if resize.half else [points // 2, longer - points // 2]
        twice = tuple(map(int, np.searchsorted(more, both))) if head + tail < len(fewer) else ()
        return BoundResize(resize.mode, head, tail, twice, resize.half, cut)

    def bind(self, scratch: Scratch, behind: bool) -> BoundResize:
        return self

    def __call__(self, source: Array, target: Array) -> None:
        """Copy the kept elements of `source` into `target`, which is other memory."""
        extent, new_extent = (block.shape[self.mode] for block in (source, target))
        kept = ((0, 0, self.head), (extent - self.tail, new_extent - self.tail, self.tail))
        for start, end, count in kept:
            target[self._at(end, count)] = source[self._at(start, count)]
        if self.weights is not None:
            target[self._at(0, self.head)] *= self.weights.reshape(-1, *(1,) * (source.ndim - self.mode - 1))
        target[self._at(self.head, new_extent - self.tail - self.head)] = 0
        if self.twice and self.cut:
            terms = [source[self._at(place, 1)] for place in self.twice]
            target[self._at(self.head, 1)] = 2 * terms[0].real if self.half else terms[0] + terms[1]
        elif self.twice:
            term = source[self._at(self.head, 1)] / 2
            for place in self.twice:
                target[self._at(place, 1)] = term.real if self.half else term

    def _at(self, start: int, count: int) -> tuple[slice, ...]:
        return (*(slice(None),) * self.mode, slice(start, start + count))


@dataclass(frozen=True, slots=True)
class Cast(LocalWork, BlockWork):
    """A conversion from real to complex numbers, or from complex numbers to their real part."""

    def bind(self, scratch: Scratch, behind: bool) -> Cast:
        return self

    def __call__(self, source: Array, target: Array) -> None:
        target[...] = source if target.dtype.kind == "c" else source.real
