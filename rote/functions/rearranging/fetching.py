"""Blocks filled with elements from other indices, by indexed moves on which all ranks agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ...grammar.nodes import Entry
from ...layout.expressions import fitting
from ...layout.grid import Grid
from ...layout.layout import Distribution, Layout
from ...runtime.comm.cache import cached, refuse_unlike
from ...runtime.indexed import IndexedMove
from ..distributed import Array, Distributed
from ..moves import Implicit, agree_on_call, announce, implicit_cause

__all__ = ["fetch", "fetched", "moved_first"]

_KEPT = 64  # indexed moves that one communicator keeps

T = TypeVar("T", bound=Distributed)
Ints = npt.NDArray[np.int64]
Origin = Callable[[Ints], Ints]
"""A function from indices along one mode of the result to the operand's indices from which the elements come."""


def fetch(
    x: Distributed,
    target: Distribution,
    key: Any,
    wanted: Callable[[], Sequence[Ints]],
    name: str,
    fill: Any = 0,
    hint: str = "",
) -> Array:
    """The elements of a plain tensor for a block of another, by an indexed move that is cached. Collective.

    Args:
        key: all on which the wanted elements depend besides the name and the distributions; see `refuse_unlike`.
        wanted: a function that gives the indices that this rank needs, as for `IndexedMove`.
        fill: the value at negative indices.
        hint: if the move brings an operand to another layout, so that it is implicit, what to write instead.
    """
    source, comm = x.distribution, x.comm
    agree_on_call(comm)
    refuse_unlike(comm, name, key)
    move = cached(comm, "indexed", (source, target, name, key), lambda: IndexedMove(source, wanted(), comm), _KEPT)
    token = implicit_cause.set(Implicit(name, 0, hint) if hint else None)
    try:
        announce(x, move.received * x.local.itemsize, lambda: f"an indexed move {source} -> {target}", name)
    finally:
        implicit_cause.reset(token)
    return move(x.local, fill)


def moved_first(x: Distributed, grid: Grid, modes: Sequence[tuple[Entry, ...]]) -> str:
    """The hint for an operand whose elements would not only shift, because a result splits them otherwise; else "".

    Args:
        grid, modes: the grid of the result, and per mode of the operand the entries that split the result there.
    """
    ends = tuple([tuple(map(fitting, entries)) for entries in modes])
    given = [tuple(map(fitting, entries)) for entries in x.distribution.layout.modes]
    if x.distribution.grid == grid and all(own in ((), end) for own, end in zip(given, ends, strict=True)):
        return ""
    there = "" if x.distribution.grid == grid else f", grid={grid.shape}"
    return f"move it by x.redistribute({str(Layout(ends))!r}{there}) first"


def fetched(x: T, target: Distribution, origins: Sequence[Origin | None], key: Any, name: str, fill: Any = 0) -> T:
    """A tensor that takes its elements from other indices of a plain tensor of the same order. Collective.

    The origins are, per mode, the indices that elements come from; None if they do not change. Negative indices are
    filled. The other arguments are those of `fetch`.
    """

    def wanted() -> list[Ints]:
        held = target.indices(x.comm.rank)
        return [index if origin is None else origin(index) for index, origin in zip(held, origins, strict=True)]

    return x._on(fetch(x, target, key, wanted, name, fill), target)
