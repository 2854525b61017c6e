"""A walk bound to ranks: kernels, moves and factors, in order, between two blocks of scratch, and run on tensors."""

from __future__ import annotations

from collections.abc import Hashable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from rote.compiler.step import LOCAL, Step
from rote.errors import LayoutError
from rote.functions.distributed import changed, check_out, comm_of
from rote.functions.moves import record_move
from rote.layout.distribution import Distribution
from rote.layout.refine import with_components
from rote.runtime.chunking import CHUNKS, chunked
from rote.runtime.comm import segments
from rote.runtime.comm.agreement import CHECKS, agree, gathered
from rote.runtime.comm.cache import DoubleBuffer
from rote.runtime.comm.protocol import Array, Comm, MpiHandle
from rote.runtime.comm.segments import at_line
from rote.runtime.copies import Copy
from rote.runtime.ends import PreparedRuns, bound_without_overlap, is_small, run_without_overlap
from rote.runtime.operations import LocalWork, Operation, Scratch
from rote.runtime.program import ReadProgram, SentProgram
from rote.runtime.tuning import chosen, known_links
from rote.tensor import DistTensor

from ..kernels.choose import is_sampled
from ..kernels.kernel import Kernel, Scale, is_plain, normal, plain
from ..request import USUAL, Norm, Options, scale
from ..transforms import real_dtype
from ..walk import Walk
from .operations import KernelWork, of_components, operations

__all__ = ["BoundField", "BoundWalk", "Fields", "Pair", "Workspace", "bind_pair", "bind_walks", "empty"]
__all__ += ["list_moves", "transformed"]


class BoundWalk:
    """A walk bound to a communicator: a flat list of operations between the user's blocks and two blocks of scratch.

    Args:
        scale: the factor by which the result is multiplied.
        ortho: whether cosine and sine transforms are orthogonal, up to the scale.

    Attributes:
        source, target: the distributions before and after the walk.
        dtypes: the dtype at the start, and after every stage.
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
        self, walk: Walk, comm: Comm, scale: Scale = 1.0, ortho: bool = False, options: Options = USUAL
    ) -> None:
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
        self.agreed: set[Hashable] = set()  # what tells calls from each other that ranks have compared
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

        self.alone = self.alone and not any(move.reads_blocks for move in program.moves)
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
    """The scratch of walks that are bound together: its bytes on this rank, and its pieces unless ranks share it."""

    nbytes: int
    scratch: Scratch | None = None


def bind_walks(comm: Comm, *walks: BoundWalk, scratch: Scratch | None = None) -> Workspace:
    """Bind walks of one communicator to common scratch, or to that of other walks if it is large enough. Collective.

    Ranks of one node read each other's scratch, which all walks and exchanges of the communicator share, and send no
    messages; other ranks send.
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
    return Workspace(2 * scratch[0].nbytes + max(program.method_bytes for program in sent), scratch)


def _once(comm: Comm, walk: Walk, block: Array) -> Array:
    """Walk one block, with scratch of its own. Collective."""
    bound = BoundWalk(walk, comm)
    bind_walks(comm, bound)
    out = np.empty(bound.target.local_shape(comm.rank), bound.dtypes[-1])
    bound(block, out)
    return out


def _scaled(run_list: list[Operation], scale: Scale) -> list[Operation]:
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


# --- both directions, and their runs on tensors and on fields, which have components in front -------------------------

_SMALL = 1 << 20  # bytes: for larger blocks one exchange of several components is no faster than one exchange each
_MOST = 16  # components of a batch: more save next to nothing

_Batch = tuple[slice | int, BoundWalk]  # the components that go at once, and their walk; a number if one goes alone


class BoundField:
    """A walk of the components of a field: one batch after the other. Its attributes are those of a `BoundWalk`."""

    __slots__ = ("_batches", "_count", "_orders", "dtypes", "prepared", "prepares", "reads_first", "source", "target")

    def __init__(self, bound: BoundWalk, components: tuple[int, ...], batches: list[_Batch]) -> None:
        self._batches, self._count = batches, prod(components)
        self._orders = len(bound.source.layout.modes), len(bound.target.layout.modes)  # of the blocks
        self.source: Distribution = with_components(bound.source, components)
        self.target: Distribution = with_components(bound.target, components)
        self.dtypes: tuple[np.dtype[Any], ...] = bound.dtypes
        self.reads_first: bool = bound.reads_first and len(batches) == 1
        small = is_small((self.source, self.dtypes[0]), (self.target, self.dtypes[-1]))
        self.prepares: bool = small and (self.reads_first or bound.alone)
        self.prepared: PreparedRuns[list[Copy]] = bound.prepared

    def __call__(self, block: Array, out: Array) -> None:
        """Walk all components of a block into `out`; a rank without elements takes part."""
        sources, targets = self._by_component(block, 0), self._by_component(out, 1)
        for part, batch in self._batches:
            batch(sources[part], targets[part])
        if not np.may_share_memory(targets, out):  # reshaping made a copy, because `out` is not contiguous
            out[...] = targets.reshape(out.shape)

    def bound(self, block: Array, out: Array) -> list[Copy]:
        """The calls, in order, that walk `block` into `out`; see `BoundWalk.bound`."""
        if not (block.flags.c_contiguous and out.flags.c_contiguous):
            return [partial(self, block, out)]
        sources, targets, calls = self._by_component(block, 0), self._by_component(out, 1), list[Copy]()
        for part, batch in self._batches:
            calls += batch.bound(sources[part], targets[part])
        return calls

    def _by_component(self, block: Array, end: int) -> Array:
        """A field's block with all components along the first mode."""
        return block.reshape(self._count, *block.shape[block.ndim - self._orders[end] :])


class Fields:
    """The walks of fields, in common scratch; made at first use.

    Small components go at once; large ones go one after the other, so that workspace for one is enough.
    """

    __slots__ = ("_batches", "_comm", "_fields", "workspace")

    workspace: Workspace

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self._batches: dict[tuple[BoundWalk, int], BoundWalk] = {}
        self._fields: dict[tuple[BoundWalk, tuple[int, ...]], BoundField] = {}
        self.workspace = Workspace(0)

    def of(self, bound: BoundWalk, components: tuple[int, ...]) -> BoundField:
        """The walk of a field whose modes in front have these extents; collective the first time."""
        key = bound, components
        if key not in self._fields:
            count = prod(components)
            groups = -(-count // self._width(bound))
            parts = [(count * n // groups, count * (n + 1) // groups) for n in range(groups)]

            widths = sorted({stop - start for start, stop in parts}, reverse=True)  # the widest sets the scratch
            walks = {width: self._batch(bound, width) for width in widths}

            batches: list[_Batch] = []
            for start, stop in parts:
                batches.append((start if stop == start + 1 else slice(start, stop), walks[stop - start]))
            self._fields[key] = BoundField(bound, components, batches)
        return self._fields[key]

    def _width(self, bound: BoundWalk) -> int:
        """The number of components in a batch; equal on all ranks.

        A batch has as many as fit the scratch for small blocks. It has one if none fit, or if ranks need no data from
        each other.
        """
        if not bound.communicates:
            return 1
        most = max(gathered(self._comm, "a field", bound.needed))
        return min(max(_SMALL // max(most, 1), 1), _MOST)

    def _batch(self, bound: BoundWalk, count: int) -> BoundWalk:
        if count == 1:
            return bound

        if (bound, count) not in self._batches:
            batch, before = bound.of_components(count), self.workspace
            self.workspace = bind_walks(self._comm, batch, scratch=before.scratch)
            if any(gathered(self._comm, "a batch", self.workspace.scratch is not before.scratch)):
                # The other batches are bound to the smaller scratch; it is freed, and all ranks bind them anew.
                self._batches.clear()
                self._fields.clear()
            self.workspace = max(before, self.workspace, key=lambda workspace: workspace.nbytes)
            self._batches[bound, count] = batch
        return self._batches[bound, count]


@dataclass(frozen=True, slots=True)
class Pair:
    """Both directions of a transform, with their scratch and the walks of fields, ready to run."""

    forward: BoundWalk
    backward: BoundWalk
    workspace: Workspace
    fields: Fields

    @property
    def sampled(self) -> bool:
        """Whether timed samples have decided which libraries transform this rank's blocks."""
        return self.forward.sampled or self.backward.sampled

    def there_and_back(self, x: Array, spectrum: Array) -> None:
        """Transform a block forward, and back into itself."""
        self.forward(x, spectrum)
        self.backward(spectrum, x)

    @property
    def nbytes(self) -> int:
        """Bytes of scratch, including that for fields once a field was transformed."""
        lone, shared = self.workspace, self.fields.workspace
        in_turn = lone.scratch is None and shared.scratch is None  # in shared memory
        return max(lone.nbytes, shared.nbytes) if in_turn else lone.nbytes + shared.nbytes


def bind_pair(walk: Walk, comm: Comm, norm: Norm, options: Options, scratch: Scratch | None = None) -> Pair:
    """Bind a walk, which all ranks give alike, and its inverse, in the scratch of another pair if given. Collective."""
    agree(comm, "FFT", (walk.source, walk.dtype, str(walk), walk.machine, norm, options.method))
    forward_scale, backward_scale = (scale(norm, walk.sizes, forward) for forward in (True, False))
    forward = BoundWalk(walk, comm, forward_scale, norm == "ortho", options)
    backward = BoundWalk(walk.inverse(), comm, backward_scale, norm == "ortho", options)
    return Pair(forward, backward, bind_walks(comm, forward, backward, scratch=scratch), Fields(comm))


def empty(dist: Distribution, dtype: np.dtype[Any], comm: Comm) -> DistTensor:
    """A tensor whose elements are not set yet."""
    return DistTensor._wrap(segments.empty(dist.local_shape(comm.rank), dtype), dist, comm)


def transformed(walk: BoundWalk, x: DistTensor, out: DistTensor | None, fields: Fields) -> DistTensor:
    """Walk a tensor, or a field, into `out` if that is given. Collective.

    Raises:
        LayoutError: x or `out` does not have the distribution and dtype of the walk's start or end, or `out` is
            read-only.
    """
    if CHECKS:
        _compare(walk, x, out)

    if out is not None:
        # A small transform takes less time than the checks below, so the calls between two tensors are kept.
        calls = walk.prepared.runs.get((id(x), id(out)))
        if calls is not None:
            _ = x._local, out._local  # an error if one is an outdated part
            for call in calls:
                call()
            if out._sharing is not None:
                changed(out)
            return out

    components = x.shape[: max(len(x.shape) - len(walk.source.shape), 0)]
    if not CHECKS and (components, out is None) not in walk.agreed:
        if walk.communicates:
            _compare(walk, x, out)
        walk.agreed.add((components, out is None))

    bound = fields.of(walk, components) if components else walk
    _check(x, bound.source, bound.dtypes[0], "the input")
    if out is None:
        out = empty(bound.target, bound.dtypes[-1], x.comm)
        bound(x.local, out.local)
        return out

    comm_of("a transform", (x, out))
    _check(out, bound.target, bound.dtypes[-1], "out")
    check_out(out)

    if bound.prepares:
        for call in _prepare(bound, x, out):
            call()
    elif bound.reads_first:
        bound(x.local, out.local)
    else:
        run_without_overlap(x.comm, bound, x.local, out.local)
    if out._sharing is not None:
        changed(out)
    return out


def _compare(walk: BoundWalk, x: DistTensor, out: DistTensor | None) -> None:
    """Refuse a transform to which ranks give other tensors, or of which some go back. Collective."""
    ends = [None if tensor is None else (tensor.distribution, tensor.dtype) for tensor in (x, out)]
    agree(x.comm, "FFT", (walk.source, walk.target, str(walk.walk), walk.dtypes, *ends))


def list_moves(walk: Walk, x: DistTensor, cause: str) -> None:
    """Add the moves of a walk, of a tensor or of a field, to the lists of `rote.trace`."""
    components = prod(x.shape[: len(x.shape) - len(walk.source.shape)])
    for plan in walk.moves:
        record_move(x, components * plan.cost.bytes, plan.__str__, cause)


def _prepare(bound: BoundWalk | BoundField, x: DistTensor, out: DistTensor) -> list[Copy]:
    """The calls, in order, that walk a tensor into another, for a walk that `prepares`; kept for the next run."""
    overlaps = not bound.reads_first and np.may_share_memory(x.local, out.local)
    calls = bound_without_overlap(x.comm, bound.bound, x.local, out.local, overlaps)
    bound.prepared.keep((id(x), id(out)), x, out, calls)
    return calls


def _check(x: DistTensor, dist: Distribution, dtype: np.dtype[Any], name: str) -> None:
    if x.distribution != dist or x.dtype != dtype:
        hint = ""
        if x.shape == dist.shape and x.dtype != dtype:
            hint = f"\nwrite astype({str(dtype)!r}), or make the FFT for the dtype of its input"
        elif x.shape == dist.shape and x.grid == dist.grid:
            hint = f"\nwrite redistribute({str(dist.layout)!r})"
        raise LayoutError(f"{name} is {x.distribution} {x.dtype}, but the transform takes {dist} {dtype}{hint}")
