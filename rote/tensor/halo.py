"""Ghost cells: a block with its neighbours' cells around it, and the transpose, which adds ghosts to their owners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import LayoutError
from ..functions.distributed import Array, Distributed, T
from ..functions.moves import record_move, records_open
from ..runtime.arrays import as_array
from ..runtime.comm.agreement import collective_errors
from ..runtime.comm.cache import cached

if TYPE_CHECKING:
    from ..compiler.halo import HaloPlan
    from ..runtime.indexed import IndexedMove

__all__ = ["Periodic", "Width", "halo_plan", "with_halo", "without_halo"]

Width = int | Sequence[int | tuple[int, int]]
Periodic = bool | Sequence[bool]

_KEPT = 64  # halos that one communicator keeps


# Along one mode, of width (2, 1):   . . a a a a .    a: this rank's block, .: ghosts, cells of its neighbours


def with_halo(x: Distributed, width: Width, periodic: Periodic, fill: Any, out: Array | None) -> Array:
    """This rank's block with ghost cells around it; see `DistTensor.halo`."""
    plan, move = _bound("halo", x, width, periodic)
    value = np.full((), as_array(fill), x.local.dtype)  # on a bad fill, all ranks raise the same

    if out is not None:
        with collective_errors(x.comm):
            _check("out", out, move.shape, x.local.dtype)
            if not out.flags.writeable:
                raise LayoutError("out cannot be written to\ngive an array of your own, or leave out=")
            if np.shares_memory(out, x.local) and not _is_inside(x.local, out, plan):
                raise LayoutError("out shares memory with the block, but has it not inside\nleave out=, or copy x")

    if records_open.get():
        record_move(x, plan.cost.bytes, lambda: str(plan), "halo")
    return move(x.local, value, out)


def without_halo(x: T, halo: npt.ArrayLike, width: Width, periodic: Periodic) -> T:
    """The tensor with the ghost cells of all ranks added to the cells of their owners."""
    plan, move = _bound("accumulate_halo", x, width, periodic)
    with collective_errors(x.comm):
        values = as_array(halo)
        _check("halo", values, move.shape, x.local.dtype)

    if records_open.get():
        record_move(x, plan.accumulate_cost.bytes, lambda: f"back, of a {plan}", "accumulate_halo")

    block = np.zeros(x.local.shape, x.local.dtype)
    move.accumulate(values, block)
    return x._with(block)


def halo_plan(x: Distributed, width: Width, periodic: Periodic) -> HaloPlan:
    """The plan of a halo; it moves nothing."""
    from ..compiler.halo import HaloPlan, flags_of, widths_of

    order = len(x.distribution.shape)
    return HaloPlan(x.distribution, widths_of(width, order), flags_of(periodic, order), x.local.dtype)


def _bound(name: str, x: Distributed, width: Width, periodic: Periodic) -> tuple[HaloPlan, IndexedMove]:
    """The plan and the move of a halo, for a call; when they are made, each rank proves the plan for its own cells."""
    from ..compiler.halo import flags_of, widths_of

    order = len(x.distribution.shape)
    key = (name, x.distribution, x.local.dtype, widths_of(width, order), flags_of(periodic, order))

    def make() -> tuple[HaloPlan, IndexedMove]:
        from ..runtime.indexed import IndexedMove

        with collective_errors(x.comm):
            plan = halo_plan(x, width, periodic)
            plan.verify(x.comm.rank)
        return plan, IndexedMove(plan.source, plan.wanted(x.comm.rank), x.comm)

    return cached(x.comm, "halos", key, make, _KEPT, lambda: (name, key[1:]))


def _check(name: str, array: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse an array that does not have the shape and dtype of a halo."""
    if not isinstance(array, np.ndarray) or (array.shape, array.dtype) != (shape, dtype):
        says = f"{array.shape} {array.dtype}" if isinstance(array, np.ndarray) else f"{array!r}"
        raise LayoutError(f"{name} is an array of {shape} {dtype}, not {says}\nwrite np.empty({shape}, {dtype.str!r})")


def _is_inside(block: Array, out: Array, plan: HaloPlan) -> bool:
    """Whether a block is, in memory, the interior of `out`, without the ghosts."""
    inside = out[tuple(slice(low, low + n) for (low, _), n in zip(plan.widths, block.shape, strict=True))]
    places = [(array.shape, array.strides, array.__array_interface__["data"][0]) for array in (block, inside)]
    return places[0] == places[1]
