"""A walk bound to ranks: kernels, moves and factors, one after the other, between two blocks of scratch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from rote.runtime.comm import Comm
from rote.runtime.exchange import Exchange
from rote.runtime.pieces import Factor

from .kernels import Kernel, is_plain, plain, real_dtype, scratch_bytes, view
from .operations import Multiply, Operation, operations
from .passes import BoundKernel
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

    Attributes:
        dtypes: at the start, and after every stage.
        needed: bytes that each block of scratch must have; `bind` it before the first call.
    """

    def __init__(self, walk: Walk, comm: Comm, scale: np.floating[Any] | float = 1.0, ortho: bool = False) -> None:
        self.walk, self.dtypes = walk, walk.dtypes()
        self._ortho = ortho
        found = _scaled(operations(walk, comm), scale)
        if not found or _spoils(found[0], ortho):
            shape, dtype = walk.stages[0].before.local_shape(comm.rank), walk.dtype
            found.insert(0, Operation(Multiply(), shape, shape, dtype, dtype))
        out = prod(walk.target.local_shape(comm.rank)) * self.dtypes[-1].itemsize
        self._operations, self._places = _placed(found, out, comm)
        # FFTW's plans are made on scratch, and rest there between two calls
        self.needed = max(n for one in self._operations for n in (one.nbytes, *one.messages))
        self._calls: list[_Call] = []

    def bind(self, scratch: Scratch) -> BoundWalk:
        """Take two blocks of scratch, which other walks of the communicator may have as well."""
        bound = zip(self._operations, self._places, strict=True)
        self._calls = [_Call(operation, places, scratch, self._ortho) for operation, places in bound]
        return self

    def __call__(self, block: Array, out: Array) -> None:
        """Walk a block from the walk's source to its target, into `out`; the input is preserved."""
        fits = is_plain(out) and out.flags.writeable
        target = plain(out) if fits else plain(np.empty(out.shape, out.dtype))
        source = plain(block)
        for call in self._calls:
            call(source, target)
        if not fits:
            out[...] = target


class _Call:
    """An operation with its memory, but for the user's own."""

    __slots__ = ("_after", "_arrays", "_before", "_places", "_run", "_shapes")

    def __init__(self, operation: Operation, places: _Places, scratch: Scratch, ortho: bool) -> None:
        run, dtype = operation.run, operation.dtype
        self._run = BoundKernel(run, scratch, ortho) if isinstance(run, Kernel) else run
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
        else:
            self._run(*arrays)


def bind_walks(*walks: BoundWalk) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Bind walks of one communicator to the scratch that they share, and return it."""
    needed = max(walk.needed for walk in walks)
    scratch = scratch_bytes(needed), scratch_bytes(needed)
    for walk in walks:
        walk.bind(scratch)
    return scratch


def _scaled(found: list[Operation], scale: np.floating[Any] | float) -> list[Operation]:
    """The operations with a scale, which the last exchange takes along if there is one."""
    if scale == 1:
        return found
    moves = [n for n, one in enumerate(found) if isinstance(one.run, Exchange)]
    if moves:
        one = found[moves[-1]]
        found[moves[-1]] = replace(one, before=(np.array(scale, real_dtype(one.dtype)), *one.before))
        return found
    last = found[-1]
    factor = np.array(scale, real_dtype(last.out_dtype))
    return [*found, Operation(Multiply((factor,)), *(last.out_shape,) * 2, *(last.out_dtype,) * 2)]


def _spoils(operation: Operation, ortho: bool) -> bool:
    """Whether an operation writes into the block that it takes."""
    return isinstance(operation.run, Kernel) and operation.run.spoils(ortho)


def _placed(wanted: list[Operation], out: int, comm: Comm) -> tuple[list[Operation], list[_Places]]:
    """Where the blocks and messages of operations lie, if the output has so many bytes.

    From the last operation on that cannot work in place, the block lies in the output. Where there is no third place
    for messages, an exchange carries what a rank keeps along with them: they may arrive where the block was then.
    """
    last = max((n for n, one in enumerate(wanted) if not one.in_place), default=0)
    done, found, here = list[Operation](), list[_Places](), _IN
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
        done.append(one)
        found.append(_Places(here, there, packed, arrived))
        here = there
    return done, found


def _factor(array: Array, shape: tuple[int, ...]) -> Factor:
    memory = np.asarray(array, order="C")
    return Factor(memory, np.broadcast_to(memory, shape).strides)
