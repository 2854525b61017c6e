"""A walk bound to ranks: kernels, moves and factors, in order, between two blocks of scratch."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from rote.compiler.step import LOCAL, Step
from rote.runtime.comm.cache import DoubleBuffer, gathered, refuse_others
from rote.runtime.comm.protocol import Array, Comm
from rote.runtime.comm.segments import at_line
from rote.runtime.copy.strided import Copy
from rote.runtime.executor.buffers import PreparedRuns, Scratch, is_small
from rote.runtime.executor.messages import MessageTransport
from rote.runtime.executor.operations import LocalWork, Operation
from rote.runtime.executor.pipeline import CHUNKS, chunked
from rote.runtime.executor.shared import SharedTransport
from rote.runtime.tuning.calibrate import known_links
from rote.runtime.tuning.methods import chosen

from ..kernels.kernel import is_plain, normal, plain
from ..request.arguments import USUAL, Norm, Options, scale
from ..transforms import real_dtype
from ..walk.walk import Walk
from .operations import operations
from .work import KernelWork

__all__ = ["Batches", "BoundWalk", "Pair", "Workspace", "bind_pair", "bind_walks"]


_SMALL = 1 << 20  # bytes: for larger blocks one exchange of several components is no faster than one exchange each
_MOST = 16  # components of a batch: more save next to nothing


class BoundWalk:
    """A walk bound to a communicator: a flat list of operations between the user's blocks and two blocks of scratch.

    Args:
        walk: the walk.
        comm: the communicator of its ranks.
        scale: the factor by which the result is multiplied.
        ortho: whether cosine and sine transforms are orthogonal, up to the scale.
        options: tuning, threads and methods.

    Attributes:
        dtypes: the dtype at the start, and after every stage.
        options: as in the arguments.
        needed: bytes of the largest block; see `bind_walks`.
        reads_first: whether all ranks have read their blocks before the first one writes its output.
        prepared: prepared runs between two tensors.
    """

    walk: Walk
    dtypes: tuple[np.dtype[Any], ...]

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
        self.walk = walk
        self.dtypes = walk.dtypes()
        self.options = options
        self._comm = comm
        run_list = operations(walk, comm, ortho, options, partial(_once, comm))
        self._operations = run_list = _scaled(run_list, scale)
        if not run_list or (isinstance(run_list[0].run, LocalWork) and run_list[0].run.overwrites_input):
            run_list.insert(0, Operation.multiply(walk.stages[0].before.local_shape(comm.rank), walk.dtype))
        # FFTW's plans are made on scratch, and refer to it between two calls
        self.needed: int = max(max(operation.sizes) for operation in run_list)
        self._transport: SharedTransport | MessageTransport | None = None
        self._methods: tuple[str, ...] = ()  # of the moves, once they are chosen
        self.reads_first: bool = False
        self.prepared: PreparedRuns[list[Copy]] = PreparedRuns()
        self._is_small = is_small((walk.source, self.dtypes[0]), (walk.target, self.dtypes[-1]))

    @property
    def prepares(self) -> bool:
        """Whether preparing runs between two tensors pays, by each rank for itself; equal on all ranks."""
        return self._is_small and (self.reads_first or self._comm.size == 1)

    def of_components(self, count: int) -> BoundWalk:
        """The walk on `count` components of a field at once, in a mode in front; not bound to scratch yet."""
        from .batch import of_components

        batch = copy(self)
        batch._operations = [of_components(operation, count) for operation in self._operations]
        batch.needed, batch._transport, batch.prepared = count * self.needed, None, PreparedRuns()
        return batch

    @property
    def communicates(self) -> bool:
        """Whether ranks need data from each other."""
        steps = (operation.run for operation in self._operations)
        return any(isinstance(step, Step) and step.kind not in LOCAL for step in steps)

    @property
    def libraries(self) -> frozenset[str]:
        """The packages that transform this rank's blocks, by name."""
        works = (operation.run for operation in self._operations)
        return frozenset(work.kernel.config.library for work in works if isinstance(work, KernelWork))

    @property
    def ways(self) -> tuple[object, ...]:
        """The walk, the config of each kernel, and the methods of the moves if messages travel."""
        works = (operation.run for operation in self._operations)
        return self.walk, tuple(work.kernel.config for work in works if isinstance(work, KernelWork)), self._methods

    def read(self, double_buffer: DoubleBuffer) -> None:
        """Run in memory that ranks share."""
        self._transport = SharedTransport(self._operations, double_buffer)
        self.reads_first = self.communicates  # an exchange has barriers

    def send(self) -> MessageTransport:
        """Run by messages, in scratch of this rank alone, to which the returned transport must be bound."""
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

        self._transport = transport = MessageTransport(operations, comm, method, tight=True)
        names = (move.name or "auto" for move in transport.moves)
        self._methods = tuple("isend" if name == "pipelined" else name for name in names)  # a batch's work has no steps
        return transport

    def __call__(self, block: Array, out: Array) -> None:
        """Walk a block from the walk's source to its target, into `out`; the input is preserved.

        The blocks must not share memory, nor those of other ranks of this process, unless the walk `reads_first`.
        """
        assert self._transport is not None, "a walk is bound to scratch before it runs"
        block = normal(block) if is_plain(block) else plain(block)
        if is_plain(out) and out.flags.writeable:
            self._transport(block, normal(out))
        else:
            target = plain(np.empty(out.shape, out.dtype))
            self._transport(block, target)
            out[...] = target

    def bound(self, block: Array, out: Array) -> list[Copy]:
        """The calls, in order, that walk `block` into `out`; they may be repeated. Both are blocks as for a call.

        To make the calls is collective unless the walk `reads_first`.
        """
        assert self._transport is not None, "a walk is bound to scratch before it runs"
        if is_plain(block) and is_plain(out) and out.flags.writeable:
            return self._transport.bound(normal(block), normal(out))
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
    needed = max(max(transport.sizes) for transport in sent)
    if scratch is None or scratch[0].nbytes < needed:
        scratch = at_line(needed), at_line(needed)
    for transport in sent:
        transport.bind(scratch)
    return Workspace(2 * scratch[0].nbytes + max(transport.held for transport in sent), scratch)


def _once(comm: Comm, walk: Walk, block: Array) -> Array:
    """Walk one block, with scratch of its own. Collective."""
    bound = BoundWalk(walk, comm)
    bind_walks(comm, bound)
    out = np.empty(walk.target.local_shape(comm.rank), bound.dtypes[-1])
    bound(block, out)
    return out


def _scaled(run_list: list[Operation], scale: np.floating[Any] | float) -> list[Operation]:
    """The operations with a scale, which the last exchange applies if there is one."""
    if scale == 1:
        return run_list
    moves = [n for n, operation in enumerate(run_list) if isinstance(operation.run, Step)]
    if moves:
        operation = run_list[moves[-1]]
        run_list[moves[-1]] = replace(operation, after=(np.array(scale, real_dtype(operation.dtype)), *operation.after))
        return run_list
    last = run_list[-1]
    factor = np.array(scale, real_dtype(last.out_dtype)).astype(last.out_dtype)
    return [*run_list, Operation.multiply(last.out_shape, last.out_dtype, (factor,))]


class Batches:
    """Walks of several components of a field at once, in common scratch; made at first use.

    Args:
        comm: the communicator of the ranks.
    """

    __slots__ = ("_comm", "_walks", "_widths", "workspace")

    workspace: Workspace

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self._walks: dict[tuple[BoundWalk, int], BoundWalk] = {}
        self._widths: dict[BoundWalk, int] = {}
        self.workspace = Workspace(0)

    def of(self, bound: BoundWalk, count: int) -> list[tuple[slice, BoundWalk]]:
        """The batches of a field of `count` components, in order; collective the first time.

        A batch has as many components as fit the scratch for small blocks. It has one if none fit, or if ranks need no
        data from each other.
        """
        groups = -(-count // self._width(bound))
        ends = [count * n // groups for n in range(groups + 1)]
        return [(slice(*pair), self._batch(bound, pair[1] - pair[0])) for pair in pairwise(ends)]

    def _width(self, bound: BoundWalk) -> int:
        """The number of components in a batch; equal on all ranks."""
        if not bound.communicates:
            return 1
        if bound not in self._widths:
            most = max(gathered(self._comm, "a field", bound.needed))
            self._widths[bound] = min(max(_SMALL // max(most, 1), 1), _MOST)
        return self._widths[bound]

    def _batch(self, bound: BoundWalk, count: int) -> BoundWalk:
        if count == 1:
            return bound
        if (bound, count) not in self._walks:
            batch, before = bound.of_components(count), self.workspace
            self.workspace = bind_walks(self._comm, batch, scratch=before.scratch)
            if any(gathered(self._comm, "a batch", self.workspace.scratch is not before.scratch)):
                self._walks.clear()  # so that the smaller scratch is freed; all ranks bind anew together
            self.workspace = max(before, self.workspace, key=lambda workspace: workspace.nbytes)
            self._walks[bound, count] = batch
        return self._walks[bound, count]


@dataclass(frozen=True, slots=True)
class Pair:
    """Both directions of a transform, ready to run.

    Attributes:
        forward, backward: the walk, and its inverse.
        workspace: their scratch.
        batches: the batches of components of fields.
    """

    forward: BoundWalk
    backward: BoundWalk
    workspace: Workspace
    batches: Batches

    @property
    def ways(self) -> tuple[object, ...]:
        """The ways in which both directions run on this rank: pairs with equal ways are equally fast."""
        return self.forward.ways, self.backward.ways

    def there_and_back(self, x: Array, spectrum: Array) -> None:
        """Transform a block forward, and back into itself."""
        self.forward(x, spectrum)
        self.backward(spectrum, x)

    @property
    def nbytes(self) -> int:
        """Bytes of scratch, including that for fields once a field was transformed."""
        lone, shared = self.workspace, self.batches.workspace
        together = lone.scratch is None and shared.scratch is None  # in shared memory, which they use in turn
        return max(lone.nbytes, shared.nbytes) if together else lone.nbytes + shared.nbytes


def bind_pair(walk: Walk, comm: Comm, norm: Norm, options: Options, scratch: Scratch | None = None) -> Pair:
    """Bind a walk, which all ranks give alike, and its inverse, in the scratch of another pair if given. Collective."""
    refuse_others(comm, "FFT", (walk.source, walk.dtype, str(walk), norm, options.method))
    forward_scale, backward_scale = (scale(norm, walk.sizes, forward) for forward in (True, False))
    forward = BoundWalk(walk, comm, forward_scale, norm == "ortho", options)
    backward = BoundWalk(walk.inverse(), comm, backward_scale, norm == "ortho", options)
    return Pair(forward, backward, bind_walks(comm, forward, backward, scratch=scratch), Batches(comm))
