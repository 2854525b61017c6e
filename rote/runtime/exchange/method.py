"""The protocol that each method of exchange follows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import ClassVar

from ...errors import CommError
from ..comm.protocol import Array, Comm, MpiHandle
from ..copy.strided import Copy
from .messages import Messages, Transfer, run

__all__ = ["Method", "Packed", "mpi_comm"]


class Method(ABC):
    """How the messages of a step reach their receivers; bound to one rank's `Messages`, which is collective.

    The blocks that come out are the same by every method, bit for bit.

    Attributes:
        sizes: the elements of workspace in which it packs messages, and in which they arrive.
        held: bytes of memory of its own that it holds, such as what ranks share.
        unpacks: whether it unpacks by the transfer's `unpack` or `unpack_after` alone.
        overlaps: whether messages travel while blocks are worked on, so that they want memory apart from these.

    Raises (when one is made, the same on all ranks): CommError where it cannot work on these ranks.
    """

    sizes: tuple[int, int] = (0, 0)
    held: int = 0
    unpacks: ClassVar[bool] = True
    overlaps: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, transfer: Transfer) -> None:
        """Run the step. Collective over the communicator of the messages."""

    def bound(self, transfer: Transfer) -> list[Copy]:
        """The calls that do the step between the very blocks of a transfer, again and again; collective, like each run.

        A method that can prepare more than that says so itself.
        """
        return [partial(self, transfer)]


class Packed(Method):
    """A method that packs all messages, lets them travel between two pieces of workspace, and then unpacks them."""

    def __init__(self, messages: Messages) -> None:
        self.messages: Messages = messages
        self.sizes: tuple[int, int] = messages.sizes

    def __call__(self, transfer: Transfer) -> None:
        run(self.bound(transfer))

    def bound(self, transfer: Transfer) -> list[Copy]:
        copies = transfer.packing(transfer.packed), transfer.unpacking(self.received(transfer))
        return [*copies[0], partial(self.carry, transfer), *copies[1]]

    def received(self, transfer: Transfer) -> list[Array]:
        """The messages, where they have come."""
        return transfer.where()

    @abstractmethod
    def carry(self, transfer: Transfer) -> None:
        """Bring what is packed to where it is to arrive, and what comes to here."""


def mpi_comm(comm: Comm, name: str) -> MpiHandle:
    """A communicator as one of MPI's.

    Raises:
        CommError: these ranks do not talk through MPI; `name` is the method that wants it.
    """
    if not isinstance(comm, MpiHandle):
        raise CommError(
            f"{name} is a method of MPI's, and these ranks are threads of one process\n"
            "start them with mpiexec, or write method='auto'"
        )
    return comm
