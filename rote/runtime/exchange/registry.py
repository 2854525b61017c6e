"""Methods of exchange: how the messages of a step reach their receivers. All of them give the same bits.

Sums of floats on three ranks and more are the exception: ranks that share memory add in their order, MPI in its own.

Elements that are rounded while they travel are so by all that send messages; "shared" sends none, and rounds none.

"shared" is for ranks of one node (of one process: "direct"); "nodes" and "two-level" for ranks of several nodes; the
others send messages between any ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import inf, prod

from ...compiler.machine import DEFAULT
from ...compiler.step import LOCAL, Step
from ...errors import CommError
from ..comm.protocol import Comm, MpiHandle
from .collective import Allgather, Alltoallv, Alltoallw, Local, Nonblocking, Persistent, ReduceScatter, Whole
from .hierarchical import Nodes
from .messages import WHOLE, Messages
from .method import Method
from .one_sided import Put
from .pipelined import Pipelined
from .point_to_point import Isend, Sendrecv, Waitsome
from .processes import Shared
from .shared import Direct

__all__ = ["METHODS", "Method", "alike", "bind_method", "check_method", "methods"]

_TOGETHER = 32  # ranks, in the methods by blocks (Duy and Ozaki 2014, section 3.2.1)
_COUNTED = ("alltoallv", "nonblocking", "persistent", "put", "waitsome", "waitsome-32", "sendrecv")


def _shared(messages: Messages) -> Method:
    """The method within a node: threads read the others' very blocks; processes read these, or what the others pack."""
    return Shared(messages) if messages.comm.share_reference(None) is None else Direct(messages)


METHODS: dict[str, Callable[[Messages], Method]] = {
    "shared": _shared,
    "alltoallv": Alltoallv,
    "alltoallw": Alltoallw,
    "nonblocking": Nonblocking,
    "persistent": Persistent,
    "put": Put,
    "isend": Isend,
    "isend-32": partial(Isend, together=_TOGETHER),
    "waitsome": Waitsome,
    "waitsome-32": partial(Waitsome, together=_TOGETHER),
    "sendrecv": Sendrecv,
    "pipelined": Pipelined,
    "nodes": partial(Nodes, together=False),
    "two-level": partial(Nodes, together=True),
}
"""What makes each method."""

_COLLECTIVES = {"allgather": Allgather, "reduce_scatter": ReduceScatter}

methods: tuple[str, ...] = ("auto", *METHODS)
"""The names that `method=` takes; "auto" takes one of the others."""


def check_method(name: str) -> None:
    """Refuse what is no method.

    Raises:
        CommError: it is none.
    """
    if name not in methods:
        raise CommError(f"method is one of {', '.join(methods)}; not {name!r}")


def alike(name: str, step: Step, comm: Comm) -> str:
    """The method of a step over a whole grid's ranks, named where what is usual could make copies of elements differ.

    Ranks of one node share memory, which rounds nothing; on several nodes, groups of ranks with copies go one way.
    """
    copies = step.wire is not None and any(role.name == "replicated" for role in step.after.roles)
    return "alltoallv" if name == "auto" and copies and len(set(comm.nodes())) > 1 else name


def bind_method(name: str, messages: Messages) -> tuple[str, Method]:
    """Bind a step to a method, and name this; no name for a collective of MPI's, or where no other rank is needed.

    Args:
        name: of a method, or "auto". What is reduced or broadcast goes by MPI's own collectives.

    Raises:
        CommError: these ranks cannot have the method.
    """
    kind = messages.step.kind
    if kind in LOCAL:
        return "", Local()
    if kind in WHOLE:
        return "", Whole(messages)
    collective = _COLLECTIVES.get(kind)
    if collective is None:
        return _of_pairs(name, messages)
    with suppress(CommError):
        if name in ("auto", "shared"):
            return "", METHODS["shared"](messages)
    return "", collective(messages)


def _of_pairs(name: str, messages: Messages) -> tuple[str, Method]:
    """The method of a name, or the usual one on these ranks if that is "auto", bound to messages. Collective.

    Another one where the method cannot do the step; so the name comes with it.

    Raises:
        CommError: these ranks cannot have it.
    """
    usual = _usual(messages) if name == "auto" else ()
    for first in usual:
        with suppress(CommError):
            return first, METHODS[first](messages)
    step = messages.step
    if name == "auto" or (name == "alltoallw" and (step.before.partial or step.after.partial)):
        name = "alltoallv"  # MPI's datatypes move, and do not reduce
    if name in _COUNTED and _beyond(messages):
        name = "isend"  # which goes in several parts
    return name, METHODS[name](messages)


def _beyond(messages: Messages) -> bool:
    """Whether some rank has more elements to send or to receive than one call can count. The same on all ranks."""
    comm, tensor = messages.comm, prod(messages.step.before.view_shape)
    most = comm.most if isinstance(comm, MpiHandle) else inf  # threads count on
    return tensor * comm.size > most and max(comm.allgather_object(max(messages.sizes))) > most


def _usual(messages: Messages) -> tuple[str, ...]:
    """The methods to try first: shared memory, as far as it reaches."""
    comm = messages.comm
    if comm.size == 1:
        return ()
    nodes = comm.nodes()
    if len(set(nodes)) == 1:
        return ("shared",)
    if len(set(nodes)) == comm.size:
        return ()
    # few large messages between nodes cost more to put together than to send, many small ones less
    largest = max(comm.allgather_object(max(messages.sends, default=0))) * messages.wire.itemsize
    return ("two-level",) if largest * DEFAULT.byte_time < DEFAULT.latency else ("nodes",)
