"""A walk bound to ranks: kernels, moves and factors, one after the other, between two blocks of scratch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from rote.compiler.step import LOCAL
from rote.runtime.comm import Comm
from rote.runtime.exchange import Exchange
from rote.runtime.pieces import Factor

from .gather import Gather, gathers, whole
from .kernels import ALIGNMENT, Kernel, is_plain, plain, real_dtype, scratch_bytes, view
from .operations import Multiply, Operation, operations
from .padding import BoundResize
from .passes import BoundKernel
from .read import ReadWalk, SharedScratch
from .tuning import USUAL, Tuning
from .walk import Walk

__all__ = ["BoundWalk", "bind_walks"]

Array = npt.NDArray[Any]
Scratch = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]


_FIRST, _SECOND, _IN, _OUT = range(4)  # where a block or its messages lie: in scratch, or in the user's own blocks


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the block lies before and after an operation, and where its messages are packed and arrive."""

    here: int
    there: int
    packed: int = _FIRST
    arrived: int = _FIRST


class BoundWalk:
    """A walk bound to a communicator: a flat list of operations between the user's blocks and two blocks of scratch.

    Messages lie where no block does: in scratch, or in the output as long as the result is not there.

    Args:
        walk: itself.
        comm: of its ranks.
        scale: what the result is multiplied by.
        ortho: whether cosine and sine transforms are orthogonal, but for the scale.
        tuning: how it is made fast.

    Attributes:
        dtypes: at the start, and after every stage.
        needed: bytes of the largest block; see `bind_walks`.
    """

    def __init__(
        self,
        walk: Walk,
        comm: Comm,
        scale: np.floating[Any] | float = 1.0,
        ortho: bool = False,
        tuning: Tuning = USUAL,
    ) -> None:
        self.walk, self.dtypes = walk, walk.dtypes()
        self._ortho = ortho
        self._comm = comm
        self._found = found = _scaled(operations(walk, comm, tuning), scale)
        if not found or _spoils(found[0], ortho):
            shape, dtype = walk.stages[0].before.local_shape(comm.rank), walk.dtype
            found.insert(0, Operation(Multiply(), shape, shape, dtype, dtype))
        # FFTW's plans are made on scratch, and rest there between two calls
        self.needed = max(one.nbytes for one in found)
        self._run: ReadWalk | SentWalk | None = None

    @property
    def talks(self) -> bool:
        """Whether ranks need anything of each other."""
        return any(isinstance(one.run, Exchange) and one.run.step.kind not in LOCAL for one in self._found)

    def read(self, scratch: SharedScratch) -> None:
        """Run in scratch that ranks share."""
        self._run = ReadWalk(self._found, scratch, self._ortho)

    def send(self) -> SentWalk:
        """Run in scratch of this rank alone, which the answer must be bound to."""
        out = prod(self.walk.target.local_shape(self._comm.rank)) * self.dtypes[-1].itemsize
        self._run = SentWalk(self._found, self._ortho, out, self._comm)
        return self._run

    def __call__(self, block: Array, out: Array) -> None:
        """Walk a block from the walk's source to its target, into `out`; the input is preserved."""
        assert self._run is not None, "a walk is bound to scratch before it runs"
        fits = is_plain(out) and out.flags.writeable
        target = plain(out) if fits else plain(np.empty(out.shape, out.dtype))
        self._run(plain(block), target)
        if not fits:
            out[...] = target


class SentWalk:
    """The operations of a walk in scratch of this rank alone: what others need is sent to them.

    Attributes:
        needed: bytes that each of two blocks of scratch must have; `bind` it to them before the first call.
    """

    def __init__(self, found: list[Operation], ortho: bool, out: int, comm: Comm) -> None:
        self._placed, self._ortho = _placed(found, out, comm), ortho
        self.needed = max(n for one, _ in self._placed for n in (one.nbytes, *one.messages))
        self._calls: list[_Call] = []

    def bind(self, scratch: Scratch) -> None:
        """Take two blocks of scratch, which other walks of the communicator may have as well."""
        behind = [False, *(isinstance(one.run, Exchange) for one, _ in self._placed)]
        self._calls = [
            _Call(operation, places, scratch, self._ortho, moved)
            for (operation, places), moved in zip(self._placed, behind, strict=False)
        ]

    def __call__(self, source: Array, target: Array) -> None:
        """Walk a block into another; both are plain."""
        for call in self._calls:
            call(source, target)


class _Call:
    """An operation with its memory, but for the user's own."""

    __slots__ = ("_after", "_arrays", "_before", "_places", "_run", "_shapes")

    def __init__(self, operation: Operation, places: _Places, scratch: Scratch, ortho: bool, moved: bool) -> None:
        run, dtype = operation.run, operation.dtype
        self._run: Multiply | BoundResize | Exchange | BoundKernel | Gather
        if not isinstance(run, Kernel):
            self._run = run
        elif moved and gathers(run):  # as where the move and the kernel are one: the same tiles, the same bits
            self._run = Gather(run, whole(run.shape), (), scratch)
        else:
            self._run = BoundKernel(run, scratch, ortho)
        self._before = [_factor(one, operation.shape) for one in operation.before]
        self._after = [_factor(one, operation.out_shape) for one in operation.after]
        shapes = [(places.here, operation.shape, dtype), (places.there, operation.out_shape, operation.out_dtype)]
        if isinstance(run, Exchange):
            shapes += [(at, (n,), dtype) for at, n in zip((places.packed, places.arrived), run.sizes, strict=True)]
        self._shapes = shapes
        self._arrays = [view(scratch[at], shape, of) if at < _IN else None for at, shape, of in shapes]

    def __call__(self, source: Array, target: Array) -> None:
        arrays = [
            np.ndarray(shape, dtype, source if at == _IN else target) if array is None else array
            for array, (at, shape, dtype) in zip(self._arrays, self._shapes, strict=True)
        ]
        if isinstance(self._run, Exchange):
            block, out, packed, arrived = arrays
            self._run.run(block, out, packed, arrived, self._before, self._after)
        elif isinstance(self._run, Gather):
            self._run([arrays[0].reshape(-1)], arrays[1])
        else:
            self._run(*arrays)


def bind_walks(comm: Comm, *walks: BoundWalk) -> int:
    """Bind walks of one communicator to scratch that they have together; how many bytes of it are this rank's.

    Ranks of one node read each other's scratch, and no message is sent; others send. Collective.
    """
    needed = max(walk.needed for walk in walks)
    if any(walk.talks for walk in walks):
        half = -(-needed // ALIGNMENT) * ALIGNMENT
        halves = comm.allgather_object(half)
        shared = comm.share(2 * half)
        if shared is not None:
            pairs = [(memory[:n], memory[n:]) for memory, n in zip(shared, halves, strict=True)]
            scratch = SharedScratch(comm, pairs)
            for walk in walks:
                walk.read(scratch)
            return 2 * half
    sent = [walk.send() for walk in walks]
    needed = max(one.needed for one in sent)
    own = scratch_bytes(needed), scratch_bytes(needed)
    for one in sent:
        one.bind(own)
    return 2 * needed


def _scaled(found: list[Operation], scale: np.floating[Any] | float) -> list[Operation]:
    """The operations with a scale, which the last exchange takes along if there is one."""
    if scale == 1:
        return found
    moves = [n for n, one in enumerate(found) if isinstance(one.run, Exchange)]
    if moves:
        one = found[moves[-1]]
        found[moves[-1]] = replace(one, after=(np.array(scale, real_dtype(one.dtype)), *one.after))
        return found
    last = found[-1]
    factor = np.array(scale, real_dtype(last.out_dtype))
    return [*found, Operation(Multiply((factor,)), *(last.out_shape,) * 2, *(last.out_dtype,) * 2)]


def _spoils(operation: Operation, ortho: bool) -> bool:
    """Whether an operation writes into the block that it takes."""
    return isinstance(operation.run, Kernel) and operation.run.spoils(ortho)


def _placed(wanted: list[Operation], out: int, comm: Comm) -> list[tuple[Operation, _Places]]:
    """Where the blocks and messages of operations lie, if the output has so many bytes.

    From the last operation on that cannot work in place, the block lies in the output. Where there is no third place
    for messages, an exchange carries what a rank keeps along with them: they may arrive where the block was then.
    """
    last = max((n for n, one in enumerate(wanted) if not one.in_place), default=0)
    found, here = list[tuple[Operation, _Places]](), _IN
    for number, one in enumerate(wanted):
        if number >= last:
            there = _OUT
        elif one.in_place and here < _IN:
            there = here
        else:
            there = _FIRST if here != _FIRST else _SECOND
        packed, arrived = there, _FIRST if there != _FIRST else _SECOND
        if isinstance(one.run, Exchange):
            packs, arrives = one.messages
            if there == _OUT:
                packed, arrived = (_SECOND, _FIRST) if here != _SECOND else (_FIRST, _SECOND)
                tight = here != _IN
                if tight and packs <= out:
                    packed, arrived, tight = _OUT, packed, False
            else:
                tight = here != _IN
                if tight and arrives <= out:
                    arrived, tight = _OUT, False
            if tight and arrives:
                one = replace(one, run=Exchange(one.run.step, one.dtype, comm, carried=True))
        found.append((one, _Places(here, there, packed, arrived)))
        here = there
    return found


def _factor(array: Array, shape: tuple[int, ...]) -> Factor:
    memory = np.asarray(array, order="C")
    return Factor(memory, np.broadcast_to(memory, shape).strides)
