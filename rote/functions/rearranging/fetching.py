"""Blocks filled with elements from other indices, by indexed moves on which all ranks agree."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
import numpy.typing as npt

from ...errors import LayoutError
from ...layout.layout import Distribution
from ...runtime.comm.cache import cached
from ...runtime.comm.protocol import Comm
from ...runtime.indexed import IndexedMove
from ..distributed import Array, Distributed
from ..moves import agree_on_call, announce, because

__all__ = ["agree", "fetch", "fetched"]

_KEPT = 64  # indexed moves that one communicator keeps

T = TypeVar("T", bound=Distributed)
Ints = npt.NDArray[np.int64]
Origin = Callable[[Ints], Ints]
"""A function from indices along one mode of the result to the operand's indices from which the elements come."""


def agree(comm: Comm, name: str, key: Any) -> None:
    """Raise the same error on all ranks if they give a call different arguments. Collective.

    The key is made of numbers, text, bytes and tuples of them.
    """
    if comm.size == 1:
        return
    number = crc32(marshal.dumps(key, 0))
    ends = np.array([number, -number])
    comm.allreduce(ends, "max")
    if ends[0] != -ends[1]:
        raise LayoutError(
            f"{name} is one call of all ranks, but not all give it the same arguments\n"
            "give every rank the same, and take what differs from x.local"
        )


def fetch(
    x: Distributed,
    target: Distribution,
    key: Any,
    wanted: Callable[[], Sequence[Ints]],
    name: str,
    fill: Any = 0,
) -> Array:
    """The elements of a plain tensor for a block of another, by an indexed move that is cached. Collective.

    Args:
        key: all on which the wanted elements depend besides the name and the distributions; see `agree`.
        wanted: a function that gives the indices that this rank needs, as for `IndexedMove`.
        fill: the value at negative indices.
    """
    source, comm = x.distribution, x.comm
    agree_on_call(comm)
    agree(comm, name, key)
    move = cached(comm, "indexed", (source, target, name, key), lambda: IndexedMove(source, wanted(), comm), _KEPT)
    with because(name):
        announce(x, move.received * x.local.itemsize, lambda: f"an indexed move {source} -> {target}", name)
    return move(x.local, fill)


def fetched(x: T, target: Distribution, origins: Sequence[Origin | None], key: Any, name: str, fill: Any = 0) -> T:
    """A tensor that takes its elements from other indices of a plain tensor of the same order. Collective.

    The origins are, per mode, the indices that elements come from; None if they do not change. Negative indices are
    filled. The other arguments are those of `fetch`.
    """

    def wanted() -> list[Ints]:
        held = target.indices(x.comm.rank)
        return [index if origin is None else origin(index) for index, origin in zip(held, origins, strict=True)]

    return x._on(fetch(x, target, key, wanted, name, fill), target)
