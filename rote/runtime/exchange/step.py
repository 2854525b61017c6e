"""One step of a plan on one rank: by a method of exchange, or by the collective that the step is named after."""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from typing import Any

import numpy as np

from ...compiler.step import LOCAL, Step
from ...errors import CommError
from ..comm.protocol import Comm
from .collectives import Allgather, Local, ReduceScatter, Whole
from .messages import WHOLE, Messages, Transfer
from .registry import METHODS, Method, method_of

__all__ = ["Exchange"]


class Exchange:
    """One step, bound to this rank. Collective.

    Args:
        step, dtype: what moves.
        comm: of the whole grid.
        method: of `METHODS`, or "auto". What is reduced or broadcast goes by MPI's own collectives.

    Attributes:
        messages: what moves.
        method: how it moves, of `METHODS`; empty where a collective of MPI's does it, or no rank needs another.
        sizes: the elements that are packed before they travel, and those that have arrived before they are unpacked.
        held: bytes of memory of its own that the method holds.

    Raises:
        CommError: these ranks cannot have the method.
    """

    __slots__ = ("_comm", "_run", "held", "messages", "method", "sizes")

    def __init__(self, step: Step, dtype: np.dtype[Any], comm: Comm, method: str = "auto") -> None:
        self._comm = comm
        self.messages = Messages.of(step, dtype, comm)
        self.method, self._run = _bound(self.messages, method)
        self.sizes, self.held = self._run.sizes, self._run.held

    def carrying(self) -> Exchange:
        """The exchange with messages that carry what the rank keeps as well; for a method to which messages arrive.

        A rank may do so alone: to make such a method, it needs no other.
        """
        if not self.method:
            return self
        carrier = copy(self)
        carrier.messages = Messages.of(self.messages.step, self.messages.dtype, self._comm, carried=True)
        carrier._run = METHODS[self.method](carrier.messages)
        carrier.sizes, carrier.held = carrier._run.sizes, carrier._run.held
        return carrier

    @property
    def unpacks(self) -> bool:
        """Whether blocks are made of messages alone, each of which is unpacked into places of its own."""
        return self._run.unpacks and not self.messages.ordered

    def run(self, transfer: Transfer) -> None:
        """Run the step; the transfer is of its messages, and has workspace of its sizes."""
        self._run(transfer)


def _bound(messages: Messages, method: str) -> tuple[str, Method]:
    """The method that runs a step, bound, and its name if it has one."""
    kind = messages.step.kind
    if kind in LOCAL:
        return "", Local()
    if kind in WHOLE:
        return "", Whole(messages)
    if kind == "reduce_scatter":
        return "", ReduceScatter(messages)
    if kind != "allgather":
        return method_of(method, messages)
    with suppress(CommError):
        if method in ("auto", "shared"):
            return "", METHODS["shared"](messages)
    return "", Allgather(messages)
