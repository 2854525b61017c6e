"""Several components of a field at once: every stage does them one after the other, and one exchange moves them all.

So they cost as many messages and barriers as one component does. That pays where blocks are small; of large ones the
exchange takes as long as its bytes do, and one component after the other needs less workspace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rote.compiler.step import Step
from rote.runtime.copy.regions import Region
from rote.runtime.copy.strided import Copy
from rote.runtime.executor.buffers import Scratch
from rote.runtime.executor.operations import BlockWork, Factors, LocalWork, MakeReader, Operation

from ..kernels.boxes import Box, boxes
from ..kernels.gather import Gather, Reads
from ..kernels.kernel import ALIGNMENT, is_plain, plain
from .work import KernelWork

__all__ = ["of_components"]

Array = npt.NDArray[Any]


def of_components(operation: Operation, count: int) -> Operation:
    """The operation of so many components at once, in blocks with a mode of them in front.

    A step moves all of them; factors are the same for each, and work is done on each by itself, as without the others.
    """
    run = operation.run
    if isinstance(run, Step):
        run = run.of_field((count,))
    else:
        aligned = not any(size % ALIGNMENT for size in operation.sizes)
        run = _Componentwise(run, len(operation.shape), aligned)
    return replace(operation, run=run, shape=(count, *operation.shape), out_shape=(count, *operation.out_shape))


@dataclass(frozen=True, slots=True)
class _Componentwise(LocalWork):
    """Work that is done on every component of a block.

    Attributes:
        work: on one of them, which has so many modes (`order`).
        aligned: whether each begins where FFTW's plans may, if the first does.
    """

    work: LocalWork
    order: int
    aligned: bool

    @property
    def in_place(self) -> bool:
        return self.work.in_place

    @property
    def overwrites_input(self) -> bool:
        return self.work.overwrites_input

    def bind(self, scratch: Scratch, behind: bool) -> BlockWork:
        work = self.work.bind(scratch, behind)
        if isinstance(self.work, KernelWork) and not self.aligned:
            work = _Aligned(work)
        return _EachComponent(work)

    def reader(self, regions: Iterable[tuple[int, Region]]) -> MakeReader | None:
        if not (self.aligned and isinstance(self.work, KernelWork) and self.work.gathers):
            return None
        parts, work = boxes(regions, self.order + 1), self.work
        if parts is None:
            return None

        def make(factors: Factors, scratch: Scratch) -> _GatherEach:
            gather = Gather(work.kernel, tuple(map(_of_first, parts)), factors, scratch, work.pool)
            return _GatherEach(gather, parts, scratch)

        return make


class _EachComponent(BlockWork):
    """Work on one component after the other."""

    __slots__ = ("_work",)

    def __init__(self, work: BlockWork) -> None:
        self._work = work

    def __call__(self, source: Array, target: Array) -> None:
        for component, result in zip(source, target, strict=True):
            self._work(component, result)

    def bound(self, source: Array, target: Array) -> list[Copy]:
        calls: list[Copy] = []
        for component, result in zip(source, target, strict=True):
            calls += self._work.bound(component, result)
        return calls


class _Aligned(BlockWork):
    """Work whose blocks may begin anywhere: others are copied, for other plans would round otherwise."""

    __slots__ = ("_work",)

    def __init__(self, work: BlockWork) -> None:
        self._work = work

    def __call__(self, source: Array, target: Array) -> None:
        end = target if is_plain(target) else plain(np.empty_like(target))
        self._work(plain(source), end)
        if end is not target:
            target[...] = end


class _GatherEach:
    """A kernel that reads the block of one component after the other out of memories that have all of them.

    Args:
        gather: of the first component.
        parts: the boxes that make up the blocks of all.
        scratch: of the rank, where most memories lie: views of those are made once.
    """

    __slots__ = ("_apart", "_begins", "_count", "_gather", "_reads", "_scratch")

    def __init__(self, gather: Gather, parts: Sequence[Box], scratch: Scratch) -> None:
        self._gather, self._scratch = gather, scratch
        self._count = parts[0].counts[0] if parts else 0
        self._apart = {box.peer: box.strides[0] for box in parts}  # elements between two components in a memory
        self._begins: list[int] = []
        self._reads: list[Reads] = []

    def reads(self, memories: Sequence[Array]) -> list[Reads]:
        """The views that every component reads, as `Gather` has them."""
        begins = [memory.__array_interface__["data"][0] for memory in memories]
        if begins == self._begins:
            return self._reads
        reads = []
        for component in range(self._count):
            behind = [memory[self._apart.get(n, 0) * component :] for n, memory in enumerate(memories)]
            reads.append(self._gather.reads(behind))
        if all(map(self._is_scratch, memories)):
            self._begins, self._reads = begins, reads  # nobody's own block stays alive for it
        return reads

    def _is_scratch(self, memory: Array) -> bool:
        return any(np.may_share_memory(memory, piece) for piece in self._scratch)

    def __call__(self, reads: Sequence[Reads], target: Array) -> None:
        """Transform what is read into `target`."""
        for read, out in zip(reads, target, strict=False):
            self._gather(read, out)

    def bound(self, reads: Sequence[Reads], target: Array) -> list[Copy]:
        """The calls, in order, that transform what is read by then into `target`, again and again."""
        calls: list[Copy] = []
        for read, out in zip(reads, target, strict=False):
            calls += self._gather.bound(read, out)
        return calls


def _of_first(box: Box) -> Box:
    """The part of a box that is of the first component."""
    return replace(box, strides=box.strides[1:], starts=box.starts[1:], steps=box.steps[1:], counts=box.counts[1:])
