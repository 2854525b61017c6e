"""A walk bound to ranks: kernels, moves and factors, in order, between two blocks of scratch."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rote.compiler.step import LOCAL, Step
from rote.layout.distribution import Distribution
from rote.runtime.calibrate import known_links
from rote.runtime.comm.cache import DoubleBuffer
from rote.runtime.comm.protocol import Array, Comm, MpiHandle
from rote.runtime.comm.segments import at_line
from rote.runtime.copy.strided import Copy
from rote.runtime.ends import PreparedRuns, is_small
from rote.runtime.methods import chosen
from rote.runtime.operations import CHUNKS, LocalWork, Operation, Scratch, chunked
from rote.runtime.program import ReadProgram, SentProgram

from ..kernels.choose import is_sampled
from ..kernels.kernel import Kernel, is_plain, normal, plain
from ..request import USUAL, Options
from ..transforms import real_dtype
from ..walk.walk import Walk
from .operations import KernelWork, of_components, operations

__all__ = ["BoundWalk", "Workspace", "bind_walks"]


class BoundWalk:
    """A walk bound to a communicator: a flat list of operations between the user's blocks and two blocks of scratch.

    Args:
        walk: the walk.
        comm: the communicator of its ranks.
        scale: the factor by which the result is multiplied.
        ortho: whether cosine and sine transforms are orthogonal, up to the scale.
        options: tuning, threads and methods.

    Attributes:
        source, target: the distributions before and after the walk.
        dtypes: the dtype at the start, and after every stage.
        options: as in the arguments.
        needed: bytes of the largest block; see `bind_walks`.
        reads_first: whether all ranks have read their blocks before the first one writes its output.
        alone: whether this rank decides by itself whether to prepare a run, because no other rank takes part.
        prepared: prepared runs between two tensors.
    """

    walk: Walk
    source: Distribution
    target: Distribution
    dtypes: tuple[np.dtype[Any], ...]
    _program: ReadProgram | SentProgram  # made by `bind_walks`

    def __init__(
        self,
        walk: Walk,
        comm: Comm,
        scale: np.floating[Any] | float = 1.0,
        ortho: bool = False,
        options: Options = USUAL,
    ) -> None:
        if walk.wire != options.wire:
            walk = replace(walk, wire=options.wire)
        self.walk, self.source, self.target = walk, walk.source, walk.target
        self.dtypes = walk.dtypes()
        self.options = options
        self._comm = comm
        run_list = operations(walk, comm, ortho, options, partial(_once, comm))
        self._operations = run_list = _scaled(run_list, scale)
        # The user's input must stay as it is.
        if not run_list or (isinstance(run_list[0].run, LocalWork) and run_list[0].run.overwrites_input):
            run_list.insert(0, Operation.multiply(walk.stages[0].before.local_shape(comm.rank), walk.dtype))
        # FFTW's plans are made on scratch, and refer to it between two calls
        self.needed: int = max(max(operation.sizes) for operation in run_list)
        self._methods: tuple[str, ...] = ()  # of the moves, once they are chosen
        self.reads_first: bool = False
        self.prepared: PreparedRuns[list[Copy]] = PreparedRuns()
        self.alone: bool = comm.size == 1 or isinstance(comm, MpiHandle)
        self._is_small = is_small((self.source, self.dtypes[0]), (self.target, self.dtypes[-1]))

    @property
    def prepares(self) -> bool:
        """Whether to prepare runs between two tensors on this rank; ranks that must prepare together agree on it."""
        return self._is_small and (self.reads_first or self.alone)

    def of_components(self, count: int) -> BoundWalk:
        """The walk on `count` components of a field at once, in a mode in front; not bound to scratch yet."""
        batch = copy(self)
        batch._operations = [of_components(operation, count) for operation in self._operations]
        batch.needed, batch.prepared = count * self.needed, PreparedRuns()
        return batch

    @property
    def communicates(self) -> bool:
        """Whether ranks need data from each other."""
        steps = (operation.run for operation in self._operations)
        return any(isinstance(step, Step) and step.kind not in LOCAL for step in steps)

    @property
    def libraries(self) -> frozenset[str]:
        """The packages that transform this rank's blocks, by name."""
        return frozenset(kernel.config.library for kernel in self._kernels)

    @property
    def sampled(self) -> bool:
        """Whether timed samples have decided about this rank's kernels."""
        return any(is_sampled(kernel, self._comm) for kernel in self._kernels)

    @property
    def ways(self) -> tuple[object, ...]:
        """The walk, the config of each kernel, and the methods of the moves if messages travel."""
        return self.walk, tuple(kernel.config for kernel in self._kernels), self._methods

    @property
    def _kernels(self) -> list[Kernel]:
        works = [operation.run for operation in self._operations]
        return [work.kernel for work in works if isinstance(work, KernelWork)]

    def read(self, double_buffer: DoubleBuffer) -> None:
        """Run in memory that ranks share."""
        self._program = ReadProgram(self._operations, double_buffer)
        self.reads_first = self.communicates  # an exchange has barriers

    def send(self) -> SentProgram:
        """Run by messages, in scratch of this rank alone, to which the returned program must be bound."""
        comm, options, operations, known = self._comm, self.options, self._operations, iter(self._methods)
        named = options.method == "pipelined"
        if not self._methods and (named or (options.method == "auto" and len(set(comm.nodes())) > 1)):
            operations = chunked(operations, lambda: options.machine or known_links(comm), CHUNKS[0] * named)

        def method(operation: Operation) -> str:
            if self._methods:
                return next(known)
            if options.method != "auto" or operation.chunks or not isinstance(operation.run, Step):
                return options.method
            return chosen(operation.run, operation.dtype, comm, options.tune)

        self._program = program = SentProgram(operations, comm, method, tight=True)
        self.alone = self.alone and not any(move.method.reads_blocks for move in program.moves)
        names = (move.name or "auto" for move in program.moves)
        self._methods = tuple("isend" if name == "pipelined" else name for name in names)  # a batch's work has no steps
        return program

    def __call__(self, block: Array, out: Array) -> None:
        """Walk a block from the walk's source to its target, into `out`; the input is preserved.

        The blocks must not share memory, nor those of other ranks of this process, unless the walk `reads_first`.
        """
        block = normal(block) if is_plain(block) else plain(block)
        if is_plain(out) and out.flags.writeable:
            self._program(block, normal(out))
        else:
            target = plain(np.empty(out.shape, out.dtype))
            self._program(block, target)
            out[...] = target

    def bound(self, block: Array, out: Array) -> list[Copy]:
        """The calls, in order, that walk `block` into `out`; they may be repeated. Both are blocks as for a call.

        To make the calls is collective unless the walk `prepares`.
        """
        if is_plain(block) and is_plain(out) and out.flags.writeable:
            return self._program.bound(normal(block), normal(out))
        return [partial(self, block, out)]


class Workspace(NamedTuple):
    """The scratch of walks that are bound together.

    Attributes:
        nbytes: the number of its bytes on this rank.
        scratch: its two pieces, if they belong to this rank alone; None if ranks share the memory.
    """

    nbytes: int
    scratch: Scratch | None = None


def bind_walks(comm: Comm, *walks: BoundWalk, scratch: Scratch | None = None) -> Workspace:
    """Bind walks of one communicator to common scratch.

    Ranks of one node read each other's scratch, which all walks and exchanges of the communicator share, and send no
    messages; other ranks send. Collective.

    Args:
        scratch: the scratch of other walks, which take turns with these; it is used if it is large enough.
    """
    needed = max(walk.needed for walk in walks)
    if comm.size > 1 and any(walk.communicates and walk.options.method in ("auto", "shared") for walk in walks):
        double_buffer = DoubleBuffer.of(comm, needed)
        if double_buffer is not None:
            for walk in walks:
                walk.read(double_buffer)
            return Workspace(2 * needed)
    sent = [walk.send() for walk in walks]
    needed = max(max(program.sizes) for program in sent)
    if scratch is None or scratch[0].nbytes < needed:
        scratch = at_line(needed), at_line(needed)
    for program in sent:
        program.bind(scratch)
    return Workspace(2 * scratch[0].nbytes + max(program.held for program in sent), scratch)


def _once(comm: Comm, walk: Walk, block: Array) -> Array:
    """Walk one block, with scratch of its own. Collective."""
    bound = BoundWalk(walk, comm)
    bind_walks(comm, bound)
    out = np.empty(bound.target.local_shape(comm.rank), bound.dtypes[-1])
    bound(block, out)
    return out


def _scaled(run_list: list[Operation], scale: np.floating[Any] | float) -> list[Operation]:
    """The operations with a scale, which the last exchange applies, or else a kernel: one whose parts are in cache."""
    if scale == 1:
        return run_list
    moves = [n for n, operation in enumerate(run_list) if isinstance(operation.run, Step)]
    if moves:
        operation = run_list[moves[-1]]
        run_list[moves[-1]] = replace(operation, after=(np.array(scale, real_dtype(operation.dtype)), *operation.after))
        return run_list
    works = {n: operation.run for n, operation in enumerate(run_list) if isinstance(operation.run, KernelWork)}
    if works:
        n = max(works, key=lambda n: (min(works[n].kernel.axes) > 0, n))
        run_list[n] = replace(run_list[n], run=replace(works[n], scale=scale))
        return run_list
    last = run_list[-1]
    factor = np.array(scale, real_dtype(last.out_dtype)).astype(last.out_dtype)
    return [*run_list, Operation.multiply(last.out_shape, last.out_dtype, (factor,))]
