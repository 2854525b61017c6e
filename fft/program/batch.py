"""Several components of a field at once: every stage does them one after the other, and one exchange moves them all.

They then cost as many messages and barriers as one component does. That pays if blocks are small. For large blocks the
bytes decide the time of an exchange, and one component after the other needs less workspace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rote.compiler.step import Step
from rote.runtime.comm.protocol import Array
from rote.runtime.copy.regions import Region
from rote.runtime.copy.strided import Copy
from rote.runtime.executor.buffers import Scratch
from rote.runtime.executor.operations import BlockWork, Factors, LocalWork, MakeReader, Operation

from ..kernels.gather import Gather, Reads
from ..kernels.kernel import ALIGNMENT, is_plain, plain
from ..kernels.tiles import Box, boxes
from .work import KernelWork

__all__ = ["of_components"]


def of_components(operation: Operation, count: int) -> Operation:
    """The operation on `count` components at once, in blocks with a mode of components in front.

    A step moves all components together. Factors are equal for all, and work is done on each component by itself.
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
        work: the work on one component.
        order: the number of modes of one component.
        aligned: whether all components are aligned for FFTW's plans if the first one is.
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
    """Work on blocks of any alignment: unaligned ones are copied, because other plans would round differently."""

    __slots__ = ("_work",)

    def __init__(self, work: BlockWork) -> None:
        self._work = work

    def __call__(self, source: Array, target: Array) -> None:
        end = target if is_plain(target) else plain(np.empty_like(target))
        self._work(plain(source), end)
        if end is not target:
            target[...] = end


class _GatherEach:
    """A kernel that reads one component's block after the other, out of memories that hold all components.

    Args:
        gather: the kernel of the first component.
        parts: the boxes that make up the blocks of all components.
        scratch: the rank's scratch, which contains most memories: views of these are made once.
    """

    __slots__ = ("_apart", "_begins", "_count", "_gather", "_reads", "_scratch")

    def __init__(self, gather: Gather, parts: Sequence[Box], scratch: Scratch) -> None:
        self._gather, self._scratch = gather, scratch
        self._count = parts[0].counts[0] if parts else 0
        self._apart = {box.peer: box.strides[0] for box in parts}  # elements between two components in a memory
        self._begins: list[int] = []
        self._reads: list[Reads] = []

    def reads(self, memories: Sequence[Array]) -> list[Reads]:
        """The reads of every component; see `Gather.reads`."""
        begins = [memory.__array_interface__["data"][0] for memory in memories]
        if begins == self._begins:
            return self._reads
        reads = []
        for component in range(self._count):
            behind = [memory[self._apart.get(n, 0) * component :] for n, memory in enumerate(memories)]
            reads.append(self._gather.reads(behind))
        if all(map(self._is_scratch, memories)):
            self._begins, self._reads = begins, reads  # views of a user's block are not kept: they would keep it alive
        return reads

    def _is_scratch(self, memory: Array) -> bool:
        return any(np.may_share_memory(memory, piece) for piece in self._scratch)

    def __call__(self, reads: Sequence[Reads], target: Array) -> None:
        """Read the components, and transform them into `target`."""
        for read, out in zip(reads, target, strict=False):
            self._gather(read, out)

    def bound(self, reads: Sequence[Reads], target: Array) -> list[Copy]:
        """The calls, in order, that read the components and transform them into `target`; they may be repeated."""
        calls: list[Copy] = []
        for read, out in zip(reads, target, strict=False):
            calls += self._gather.bound(read, out)
        return calls


def _of_first(box: Box) -> Box:
    """The part of a box that belongs to the first component."""
    return replace(box, strides=box.strides[1:], starts=box.starts[1:], steps=box.steps[1:], counts=box.counts[1:])
