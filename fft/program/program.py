"""A walk bound to ranks: kernels, moves and factors, one after the other, between two blocks of scratch."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from rote.compiler.step import LOCAL, Step
from rote.runtime.comm.double_buffer import DoubleBuffer
from rote.runtime.comm.protocol import Comm

from ..kernels.kernel import Kernel, is_plain, normal, plain, real_dtype, scratch_bytes
from ..tuning import USUAL, Tuning
from ..walk.walk import Walk
from .bluestein import spectra
from .operations import Multiply, Operation, operations
from .read import ReadWalk
from .send import SentWalk

__all__ = ["BoundWalk", "bind_walks"]

Array = npt.NDArray[Any]
Scratch = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]


class BoundWalk:
    """A walk bound to a communicator: a flat list of operations between the user's blocks and two blocks of scratch.

    Args:
        walk: itself.
        comm: of its ranks.
        scale: what the result is multiplied by.
        ortho: whether cosine and sine transforms are orthogonal, but for the scale.
        tuning: how it is made fast.

    Attributes:
        dtypes: at the start, and after every stage.
        tuning: how it is made fast.
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
        self.tuning = tuning
        self._ortho = ortho
        self._comm = comm
        self._found = found = _scaled(operations(walk, comm, tuning, spectra(walk, comm, partial(_once, comm))), scale)
        if not found or _overwrites_input(found[0], ortho):
            shape, dtype = walk.stages[0].before.local_shape(comm.rank), walk.dtype
            found.insert(0, Operation(Multiply(), shape, shape, dtype, dtype))
        # FFTW's plans are made on scratch, and rest there between two calls
        self.needed = max(one.nbytes for one in found)
        self._run: ReadWalk | SentWalk | None = None

    @property
    def communicates(self) -> bool:
        """Whether ranks need anything of each other."""
        return any(isinstance(one.run, Step) and one.run.kind not in LOCAL for one in self._found)

    @property
    def reads_first(self) -> bool:
        """Whether all ranks have read their blocks when the first writes its output."""
        return self.communicates and isinstance(self._run, ReadWalk)  # which meet in between

    @property
    def libraries(self) -> frozenset[str]:
        """The packages that transform this rank's blocks, by name."""
        return frozenset(one.run.config.library for one in self._found if isinstance(one.run, Kernel))

    def read(self, double_buffer: DoubleBuffer) -> None:
        """Run in memory that ranks share."""
        self._run = ReadWalk(self._found, double_buffer, self._ortho)

    def send(self) -> SentWalk:
        """Run in scratch of this rank alone, which the answer must be bound to."""
        out = prod(self.walk.target.local_shape(self._comm.rank)) * self.dtypes[-1].itemsize
        self._run = SentWalk(self._found, self._comm, out, self._ortho, self.tuning)
        return self._run

    def __call__(self, block: Array, out: Array) -> None:
        """Walk a block from the walk's source to its target, into `out`; the input is preserved.

        The two share no memory, nor do those of other ranks of this process, unless the walk `reads_first`.
        """
        assert self._run is not None, "a walk is bound to scratch before it runs"
        if is_plain(out) and out.flags.writeable:
            self._run(plain(block), normal(out))
        else:
            target = plain(np.empty(out.shape, out.dtype))
            self._run(plain(block), target)
            out[...] = target


def bind_walks(comm: Comm, *walks: BoundWalk) -> int:
    """Bind walks of one communicator to scratch that they have together; how many bytes of it are this rank's.

    Ranks of one node read each other's scratch, which is that of all walks and exchanges of the communicator, and no
    message is sent; others send. Collective.
    """
    needed = max(walk.needed for walk in walks)
    if comm.size > 1 and any(walk.communicates and walk.tuning.method in ("auto", "shared") for walk in walks):
        double_buffer = DoubleBuffer.of(comm, needed)
        if double_buffer is not None:
            for walk in walks:
                walk.read(double_buffer)
            return 2 * needed
    sent = [walk.send() for walk in walks]
    needed = max(one.needed for one in sent)
    own = scratch_bytes(needed), scratch_bytes(needed)
    for one in sent:
        one.bind(own)
    return 2 * needed + max(one.held for one in sent)


def _once(comm: Comm, walk: Walk, block: Array) -> Array:
    """Walk one block, with scratch of its own. Collective."""
    bound = BoundWalk(walk, comm)
    bind_walks(comm, bound)
    out = np.empty(walk.target.local_shape(comm.rank), bound.dtypes[-1])
    bound(block, out)
    return out


def _scaled(found: list[Operation], scale: np.floating[Any] | float) -> list[Operation]:
    """The operations with a scale, which the last exchange takes along if there is one."""
    if scale == 1:
        return found
    moves = [n for n, one in enumerate(found) if isinstance(one.run, Step)]
    if moves:
        one = found[moves[-1]]
        found[moves[-1]] = replace(one, after=(np.array(scale, real_dtype(one.dtype)), *one.after))
        return found
    last = found[-1]
    factor = np.array(scale, real_dtype(last.out_dtype)).astype(last.out_dtype)
    return [*found, Operation(Multiply((factor,)), *(last.out_shape,) * 2, *(last.out_dtype,) * 2)]


def _overwrites_input(operation: Operation, ortho: bool) -> bool:
    """Whether an operation writes into the block that it takes."""
    return isinstance(operation.run, Kernel) and operation.run.overwrites_input(ortho)
