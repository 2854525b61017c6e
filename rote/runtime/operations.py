"""The operations of a rank, in order: steps of plans, and work on its own block. A sweep fuses a step with work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..compiler.plan import Plan
from ..compiler.step import Step
from ..errors import LayoutError, PlanError
from ..layout.distribution import Distribution
from .comm.protocol import Array
from .copies import Copy, run, times
from .exchange.point_to_point import Chunks
from .regions import Region

__all__ = ["BlockWork", "Factors", "LocalWork", "MakeReader", "Multiply", "Operation", "Reader", "Sweep", "lowered"]
__all__ += ["sweeps"]

Factors = tuple[Array, ...]
Scratch = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]


class Reader(Protocol):
    """Work that reads its block from several memories, in one sweep with the move before it."""

    def reads(self, memories: Sequence[Array]) -> Any:
        """The elements to read from the memories, each of which is one-dimensional and of the block's dtype."""
        ...

    def bound(self, reads: Any, target: Array) -> list[Copy]:
        """The calls, in order, that do the work on the elements that are read, repeatedly."""
        ...


MakeReader = Callable[[Factors, Scratch], Reader]
"""Makes a reader, from the factors that multiply the block on the way, and from scratch memory to plan on."""


class BlockWork:
    """Work from one block to another, ready to run: a subclass defines the calls, or the work as one call."""

    __slots__ = ()

    def bound(self, source: Array, target: Array) -> list[Copy]:
        """The calls, in order, that do the work between these two blocks, repeatedly."""
        return [partial(self, source, target)]

    def __call__(self, source: Array, target: Array) -> None:
        """Do the work once."""
        run(self.bound(source, target))


class LocalWork(ABC):
    """Work on a rank's own block."""

    __slots__ = ()

    @property
    def in_place(self) -> bool:
        """Whether the output block may be the input block."""
        return False

    @property
    def overwrites_input(self) -> bool:
        """Whether the work writes into its input block."""
        return False

    @property
    def along(self) -> int | None:
        """The mode of its blocks along which the work can run in steps; None if it is done at once."""
        return None

    @abstractmethod
    def bind(self, scratch: Scratch, after_move: bool) -> BlockWork:
        """The work, planned on scratch memory and ready to run; after a move, it rounds as if it were fused with it."""

    def reader(self, regions: Iterable[tuple[int, Region]]) -> MakeReader | None:
        """A maker of a reader, for a block made of regions of numbered memories; None if the work cannot read them."""
        return None


@dataclass(frozen=True, slots=True)
class Multiply(LocalWork, BlockWork):
    """Multiplies a block by factors that no move can apply; without factors, it copies the block."""

    factors: Factors = ()

    @property
    def in_place(self) -> bool:
        return True

    def bind(self, scratch: Scratch, after_move: bool) -> Multiply:
        return self

    def bound(self, source: Array, target: Array) -> list[Copy]:
        if not self.factors:
            return [partial(target.__setitem__, ..., source)]
        first, *others = self.factors
        return [partial(times, source, first, target), *(partial(times, target, other, target) for other in others)]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a rank, with the shapes and dtypes of its input and output blocks.

    A step multiplies by factors of either block on the way. Its messages may be cut into chunks, so that the work
    before and after it goes on meanwhile.
    """

    run: Step | LocalWork
    shape: tuple[int, ...]
    out_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    out_dtype: np.dtype[Any]
    before: Factors = ()
    after: Factors = ()
    chunks: Chunks | None = None

    @classmethod
    def multiply(cls, shape: tuple[int, ...], dtype: np.dtype[Any], factors: Factors = ()) -> Operation:
        """An operation that multiplies the block by factors, or copies it if there are none."""
        return cls(Multiply(factors), shape, shape, dtype, dtype)

    @property
    def step(self) -> Step:
        """The step of an operation that is a move."""
        assert isinstance(self.run, Step)
        return self.run

    @property
    def in_place(self) -> bool:
        """Whether the output block may be the input block."""
        return isinstance(self.run, LocalWork) and self.run.in_place

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes of the two blocks."""
        return prod(self.shape) * self.dtype.itemsize, prod(self.out_shape) * self.out_dtype.itemsize


def lowered(
    plan: Plan, rank: int, before: Sequence[npt.ArrayLike] = (), after: Sequence[npt.ArrayLike] = ()
) -> list[Operation]:
    """Lower a plan to operations: one per step, or one copy if there are no steps.

    Factors of the rank's block before the plan are applied on packing, and those of its block after it on unpacking.

    Raises:
        LayoutError: a factor does not fit its block or the plan's dtype.
        PlanError: a factor is for a partial tensor that is not a sum.
    """
    dtype, source, target = plan.dtype, plan.source, plan.target
    first = _factors(before, source, dtype, rank, "before")
    last = _factors(after, target, dtype, rank, "after")

    if not plan.steps:  # the same elements in the same order, but views may number their modes otherwise
        shape, out_shape = source.local_shape(rank), target.local_shape(rank)
        first = tuple(np.broadcast_to(factor, shape).reshape(out_shape) for factor in first)
        return [Operation.multiply(out_shape, dtype, (*first, *last))]

    operations = []
    for step in plan.steps:
        shapes = step.before.local_shape(rank), step.after.local_shape(rank)
        operations.append(Operation(step, *shapes, dtype, dtype))

    operations[0] = replace(operations[0], before=first)
    operations[-1] = replace(operations[-1], after=last)
    return operations


def _factors(
    arrays: Sequence[npt.ArrayLike], dist: Distribution, dtype: np.dtype[Any], rank: int, name: str
) -> Factors:
    """Factors of a rank's block, in the plan's dtype."""
    if not len(arrays):
        return ()
    if isinstance(arrays, np.ndarray):
        raise LayoutError(f"`{name}` is a sequence of factors, not an array; write {name}=(array,)")
    if dist.partial and dist.layout.op != "sum":
        raise PlanError(
            f"`{name}` multiplies each contribution, which is right for sums only, and {dist.layout} is not one; "
            "multiply where the tensor is not partial"
        )

    shape, factors = dist.local_shape(rank), []
    for number, array in enumerate(map(np.asarray, arrays)):
        fault = ""
        if not np.can_cast(array.dtype, dtype, "same_kind"):
            fault = f"is no factor of {dtype}; convert it first"
        elif not _broadcasts(array.shape, shape):
            fault = f"does not broadcast to the block of {shape} in {dist}"
        if fault:
            raise LayoutError(f"{name}[{number}] of rank {rank} is {array.shape} {array.dtype}, which {fault}")
        factors.append(np.asarray(array, dtype))
    return tuple(factors)


def _broadcasts(shape: tuple[int, ...], block: tuple[int, ...]) -> bool:
    return len(shape) <= len(block) and all(n in (1, m) for n, m in zip(shape[::-1], block[::-1], strict=False))


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """Operations that are done in one sweep: a single one, or a move and the work after it."""

    first: Operation
    last: Operation  # may be the first
    move: Any = None  # how a step of the first operation is done: a `DirectRead`, or a `Method`
    reader: MakeReader | None = None  # makes the reader that does the last operation and the move; None if not fused
    after_move: bool = False  # whether a move comes before the sweep

    @property
    def in_place(self) -> bool:
        """Whether the output block may be the input block."""
        return self.move is None and self.last.in_place

    def bind(self, scratch: Scratch) -> Any:
        """The local work of the sweep, if any: from block to block, or from the elements that are read to a block."""
        if self.reader is not None:
            return self.reader(self.first.after, scratch)
        return self.last.run.bind(scratch, self.after_move) if isinstance(self.last.run, LocalWork) else None

    def parted(self) -> tuple[Sweep, Sweep]:
        """The move by itself, and the work after it."""
        return Sweep(self.first, self.first, self.move), Sweep(self.last, self.last, after_move=True)


def sweeps(
    operations: Sequence[Operation],
    bind: Callable[[Operation], Any],
    agree: Callable[[Collection[int]], Collection[int]] = lambda numbers: numbers,
) -> list[Sweep]:
    """The sweeps of a rank's operations, with moves made by `bind`.

    A move and the work after it are fused if the work can read the `readable` regions of the move, and if `agree`,
    which may ask all ranks, has the move's number among those that it returns.
    """
    moves = {n: bind(operation) for n, operation in enumerate(operations) if isinstance(operation.run, Step)}
    readers = {}
    for n, move in moves.items():
        then = operations[n + 1] if n + 1 < len(operations) else None
        if then is not None and isinstance(then.run, LocalWork) and then.shape == operations[n].out_shape:
            regions = move.readable(bool(operations[n].before))
            reader = None if regions is None else then.run.reader(regions)
            if reader is not None:
                readers[n] = reader

    fused = agree(readers.keys())

    swept = list[Sweep]()
    for n, operation in enumerate(operations):
        if n in fused:
            swept.append(Sweep(operation, operations[n + 1], moves[n], readers[n]))
        elif n - 1 not in fused:
            swept.append(Sweep(operation, operation, moves.get(n), after_move=n - 1 in moves))
    return swept
