"""Fusing: which operations are done in one sweep over the block."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ...compiler.step import Step
from ..copy.regions import Region
from .operations import LocalWork, MakeReader, Operation

__all__ = ["Move", "Sweep", "sweeps"]


class Move(Protocol):
    """A step, bound to a rank."""

    def readable(self, scaled: bool) -> Iterable[tuple[int, Region]] | None:
        """The regions that make up the new block, with the numbers of the memories that they are read from.

        None where work behind the move cannot read them: elements are reduced, say. `scaled` says whether the old
        block is multiplied by factors on the way.
        """
        ...


M = TypeVar("M", bound=Move)


@dataclass(frozen=True, slots=True, eq=False)
class Sweep(Generic[M]):
    """Operations that are done in one sweep: one, or a move and the work behind it.

    Attributes:
        first, last: the same, if it is one.
        move: of the first.
        reader: of the last, which does the move as well.
        behind: whether it stands behind a move.
    """

    first: Operation
    last: Operation
    move: M | None = None
    reader: MakeReader | None = None
    behind: bool = False

    @property
    def in_place(self) -> bool:
        """Whether the block may come out where it went in."""
        return self.move is None and self.last.in_place

    def parted(self) -> tuple[Sweep[M], Sweep[M]]:
        """The move by itself, and the work behind it."""
        return Sweep(self.first, self.first, self.move), Sweep(self.last, self.last, behind=True)


def sweeps(
    operations: Sequence[Operation],
    bind: Callable[[Operation], M],
    agree: Callable[[Collection[int]], Collection[int]] = lambda numbers: numbers,
) -> list[Sweep[M]]:
    """The sweeps of a rank's operations.

    Args:
        bind: makes the move of an operation that is a step.
        agree: on which moves to fuse, by their numbers: those of all ranks, if it matters that they do the same.
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
    swept: list[Sweep[M]] = []
    for n, operation in enumerate(operations):
        if n in fused:
            swept.append(Sweep(operation, operations[n + 1], moves[n], readers[n]))
        elif n - 1 not in fused:
            swept.append(Sweep(operation, operation, moves.get(n), behind=n - 1 in moves))
    return swept
