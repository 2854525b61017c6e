"""Transports: how what a rank needs of others comes to it, and where blocks lie meanwhile.

Ranks that share memory read each other's blocks there, with one barrier per move (`shared`). Others send
messages, by the methods of exchange; a rank packs and unpacks in workspace of its own (`messages`).
"""

from __future__ import annotations

from typing import Any, Protocol

from ...compiler.step import Step
from ..comm.protocol import Array
from ..copy.strided import Copy
from .buffers import Scratch
from .operations import LocalWork, Operation, Sweep

__all__ = ["Transport", "bind_work", "step_of"]


class Transport(Protocol):
    """A binding of operations to ranks. Making one is collective."""

    def __call__(self, block: Array, out: Array) -> None:
        """Take a block to another; both are C-contiguous, and share no memory with each other or another rank's."""
        ...

    def bound(self, block: Array, out: Array) -> list[Copy]:
        """The calls, in order, that take one very block to another, again and again. Making them is collective."""
        ...


def bind_work(sweep: Sweep[Any], scratch: Scratch) -> Any:
    """Bind the work beside a move, if any: from a block to another, or from what is read to a block."""
    if sweep.reader is not None:
        return sweep.reader(sweep.first.after, scratch)
    work = sweep.last.run
    return work.bind(scratch, sweep.behind) if isinstance(work, LocalWork) else None


def step_of(operation: Operation) -> Step:
    """The step of an operation that moves."""
    assert isinstance(operation.run, Step)
    return operation.run
