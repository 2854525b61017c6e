"""The table of the methods of exchange, by which messages reach their receivers. All methods give the same bits.

Sums of floats on three or more ranks of several nodes are the exception: where MPI's own collectives reduce, MPI
chooses the order. Ranks that share memory add in rank order by every method.

If a plan rounds elements in messages, all methods that send messages round them; "shared" sends none and rounds none.

"shared" is for ranks of one node (in one process it is `Direct`); "nodes" and "two-level" are for ranks of several
nodes; the other methods send messages between any ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import inf, prod
from typing import NamedTuple

from ...compiler.step import LOCAL, Step
from ...errors import CommError
from ...machines.machine import DEFAULT
from ..comm.protocol import Comm, MpiHandle
from .collective import Allgather, Alltoallv, Alltoallw, Local, Nonblocking, Persistent, Put, ReduceScatter, Whole
from .messages import WHOLE, Messages, Method
from .point_to_point import Isend, Pipelined, Waitsome
from .shared import Direct, Nodes, Shared

__all__ = ["METHODS", "Method", "bind_method", "check_method", "make_method", "methods", "same_method"]
__all__ += ["MemoryUse", "memory_use"]

_AT_ONCE = 32  # ranks per round, in the methods by blocks (Duy and Ozaki 2015, section 3.2.1)
_OF_THREADS = ("shared", "alltoallv")  # the methods that need no MPI
_COUNTED = ("alltoallv", "nonblocking", "persistent", "put", "waitsome", "waitsome-32")


def _shared(messages: Messages) -> Method:
    """The method within a node: threads read the others' blocks; processes read blocks or packed messages."""
    return Shared(messages) if messages.comm.share_reference(None) is None else Direct(messages)


METHODS: dict[str, Callable[..., Method]] = {
    "shared": _shared,
    "alltoallv": Alltoallv,
    "alltoallw": Alltoallw,
    "nonblocking": Nonblocking,
    "persistent": Persistent,
    "put": Put,
    "isend": Isend,
    "isend-32": partial(Isend, at_once=_AT_ONCE),
    "waitsome": Waitsome,
    "waitsome-32": partial(Waitsome, at_once=_AT_ONCE),
    "sendrecv": partial(Isend, at_once=1),
    "pipelined": Pipelined,
    "nodes": partial(Nodes, joined=False),
    "two-level": partial(Nodes, joined=True),
}
"""The function that makes each method, from the messages of a step."""

_COLLECTIVES = {"allgather": Allgather, "reduce_scatter": ReduceScatter}


class MemoryUse(NamedTuple):
    """The memory of a method, in packed messages and in arrived ones.

    Attributes:
        workspace: in the workspace of the program.
        beyond: in memory of the method itself.
        shared: whether the ranks share the latter, which may have two halves.
    """

    workspace: tuple[int, int]
    beyond: tuple[int, int] = (0, 0)
    shared: bool = False


_USUAL = MemoryUse((1, 1))
_USES = {  # of methods with memory of their own
    "shared": MemoryUse((0, 0), (1, 0), shared=True),
    "nodes": MemoryUse((0, 0), (1, 1), shared=True),
    "two-level": MemoryUse((0, 0), (1, 1), shared=True),
    "persistent": MemoryUse((0, 0), (1, 1)),
    "put": MemoryUse((1, 0), (0, 1)),
}

methods: tuple[str, ...] = ("auto", *METHODS)
"""The names that `method=` accepts; "auto" picks one of the others."""


def check_method(name: str) -> None:
    """Refuse a name that is not that of a method, by a CommError."""
    if name not in methods:
        raise CommError(f"method is one of {', '.join(methods)}; not {name!r}")


def memory_use(name: str, kind: str, comm: Comm) -> MemoryUse:
    """The memory of a method, or of the collective of a kind of step. Collective for "auto"."""
    if name == "auto":
        name = "shared" if len(set(comm.nodes())) == 1 else "nodes"
    if kind in WHOLE or (kind in _COLLECTIVES and name != "shared"):
        return _USUAL
    return _USES.get(name, _USUAL)


def same_method(name: str, step: Step, comm: Comm) -> str:
    """The method of a step over all ranks of a grid; not "auto" if that could make copies of an element differ.

    Shared memory rounds nothing. So on several nodes, all groups of ranks that hold copies must use one method.
    """
    copies = step.wire is not None and any(role.name == "replicated" for role in step.after.roles)
    if name == "auto" and copies and len(set(comm.nodes())) > 1:
        return "alltoallv"
    return name


def bind_method(name: str, messages: Messages) -> Method:
    """Bind a step to the named method, or for "auto" to the usual one on these ranks. Collective.

    Reductions of whole blocks and broadcasts have no name. Another method is taken if the named one cannot do the step.

    Raises:
        CommError: the method cannot work on these ranks.
    """
    kind = messages.step.kind
    if kind in LOCAL:
        return Local(messages)
    if kind in WHOLE:
        return Whole(messages)
    if kind in _COLLECTIVES:
        with suppress(CommError):
            if name in ("auto", "shared"):
                return _shared(messages)
        return _COLLECTIVES[kind](messages)
    if name == "auto":
        for usual in _usual(messages):
            with suppress(CommError):
                return make_method(usual, messages)
        name = "alltoallv"

    if name == "alltoallw" and (messages.step.before.partial or messages.step.after.partial):
        name = "alltoallv"  # MPI's datatypes move elements, but do not reduce them
    if name in _COUNTED and _beyond(messages):
        name = "isend"  # it sends a message in several parts
    return make_method(name, messages)


def make_method(name: str, messages: Messages, *args: object) -> Method:
    """The named method of a step between pairs of ranks; raises CommError if it cannot work on these."""
    if name not in _OF_THREADS and not isinstance(messages.comm, MpiHandle):
        raise CommError(
            f"{name} is a method of MPI's, and these ranks are threads of one process\n"
            "start them with mpiexec, or write method='auto'"
        )
    method = METHODS[name](messages, *args)
    method.name = name
    return method


def _beyond(messages: Messages) -> bool:
    """Whether some rank has more elements to send or to receive than one call can count. The same on all ranks."""
    comm, tensor = messages.comm, prod(messages.step.before.view_shape)
    most = comm.most if isinstance(comm, MpiHandle) else inf  # threads have no limit
    return tensor * comm.size > most and max(comm.allgather_object(max(messages.sizes))) > most


def _usual(messages: Messages) -> tuple[str, ...]:
    """The methods to try first: those that use shared memory, if ranks share nodes."""
    comm = messages.comm
    if comm.size == 1:
        return ()
    nodes = comm.nodes()
    if len(set(nodes)) == 1:
        return ("shared",)
    if len(set(nodes)) == comm.size:
        return ()

    # joining the messages between nodes pays only if they are small: it saves latency, but costs copies
    largest = max(comm.allgather_object(max(messages.sends, default=0))) * messages.wire.itemsize
    return ("two-level",) if largest * DEFAULT.byte_time < DEFAULT.latency else ("nodes",)
