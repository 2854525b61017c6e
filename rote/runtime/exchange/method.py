"""The protocol that each method of exchange follows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import ClassVar

from ...errors import CommError
from ..comm.protocol import Array, Comm, MpiHandle
from ..copy.strided import Copy, run
from .messages import Messages, Transfer

__all__ = ["Method", "Packed", "mpi_comm"]


class Method(ABC):
    """A way for the messages of a step to reach their receivers, bound to one rank's `Messages`; binding is collective.

    All methods give the same blocks, bit for bit, but for sums between nodes (`registry`).

    Attributes:
        sizes: elements of workspace for packed messages, and for messages that arrive.
        held: bytes of memory that the method itself holds, such as shared memory.
        unpacks: whether it unpacks only by the transfer's `unpacking` or `unpacking_after`.
        overlaps: whether messages travel while work on blocks goes on, so that they need memory apart from the blocks.
        meets: whether the ranks meet when calls are made, because they read each other's blocks.

    Raises (when one is made, the same on all ranks): CommError if it cannot work on these ranks.
    """

    sizes: tuple[int, int] = (0, 0)
    held: int = 0
    unpacks: ClassVar[bool] = True
    overlaps: ClassVar[bool] = False
    meets: ClassVar[bool] = False

    @abstractmethod
    def bound(self, transfer: Transfer) -> list[Copy]:
        """Calls that run the step between the given blocks of a transfer, repeatedly. Each run is collective.

        To make the calls is collective only if the method `meets`, or if blocks are large (see `in_pieces`).
        """

    def __call__(self, transfer: Transfer) -> None:
        """Run the step once. Collective over the communicator of the messages."""
        run(self.bound(transfer))


class Packed(Method):
    """A method that packs all messages, exchanges them between two pieces of workspace, and then unpacks them."""

    def __init__(self, messages: Messages) -> None:
        self.messages: Messages = messages
        self.sizes: tuple[int, int] = messages.sizes

    def bound(self, transfer: Transfer) -> list[Copy]:
        copies = transfer.packing(transfer.packed), transfer.unpacking(self.received(transfer))
        return [*copies[0], partial(self.carry, transfer), *copies[1]]

    def received(self, transfer: Transfer) -> list[Array]:
        """The messages at the places where they have arrived."""
        return transfer.where()

    @abstractmethod
    def carry(self, transfer: Transfer) -> None:
        """Exchange the packed messages, so that those for this rank are in `arrived`."""


def mpi_comm(comm: Comm, name: str) -> MpiHandle:
    """Check that a communicator is one of MPI.

    Raises:
        CommError: these ranks do not use MPI, which the method `name` needs.
    """
    if not isinstance(comm, MpiHandle):
        raise CommError(
            f"{name} is a method of MPI's, and these ranks are threads of one process\n"
            "start them with mpiexec, or write method='auto'"
        )
    return comm
