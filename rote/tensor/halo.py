"""Ghost cells: a block with its neighbours' cells around it, and the transpose, which adds ghosts to their owners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from ..compiler.step import as_array, refuse_mask
from ..errors import LayoutError
from ..functions.distributed import Array, Distributed
from ..functions.moves import announce, implicit_cause, records_open
from ..layout.grid import integer
from ..runtime.comm.cache import cached
from ..runtime.comm.collective_errors import collective_errors

if TYPE_CHECKING:
    from ..compiler.halo import HaloPlan
    from ..runtime.indexed import IndexedMove

__all__ = ["Halos"]

Width = int | Sequence[int | tuple[int, int]]
Periodic = bool | Sequence[bool]

_KEPT = 64  # halos that one communicator keeps


class Halos(Distributed):
    """Ghost cells around the blocks of a tensor."""

    __slots__ = ()

    def halo(self, width: Width, periodic: Periodic = False, fill: Any = 0, out: Array | None = None) -> Array:
        """This rank's block with ghost cells around it: its neighbours' faces, edges and corners. Collective.

        The layout may be any in which every block is a box, even or uneven; a halo may be wider than the neighbour. The
        shape is that of the block plus the ghosts on both sides of each mode, at the ends of the tensor too, as for
        PETSc's DMDA with ghosted boundaries; so `h[1:-1]` is the block, and a stencil needs no special case for the
        ends. A block that is empty along a mode has no ghosts there. The communicator keeps the bound exchange for
        later calls.

        Args:
            width: ghost cells on both sides of every mode; or per mode a number, or a pair (below, above).
            periodic: whether ghosts beyond an end come from the other end; for all modes, or per mode.
            fill: the value of ghosts beyond the ends of modes that are not periodic.
            out: an array of that shape and of the tensor's dtype to write into; new if None. `x.local` may be the block
                inside it, which then stays as it is.

        Raises:
            LayoutError: blocks are not boxes; there is not one width per mode; `out` does not fit.

        >>> import numpy as np, rote
        >>> def program(comm):
        ...     x = rote.DistTensor.from_global(np.arange(1, 7), "block[(0)]", comm)
        ...     return x.halo(1).tolist(), x.halo([(2, 1)], periodic=True).tolist()
        >>> rote.run(program, ranks=2)
        [([0, 1, 2, 3, 4], [5, 6, 1, 2, 3, 4]), ([3, 4, 5, 6, 0], [2, 3, 4, 5, 6, 1])]
        """
        plan, move = self._bound_halo(width, periodic)
        refuse_mask(type(fill))
        value = np.full((), fill, self.local.dtype)  # on a bad fill, all ranks raise the same
        if out is not None:
            with collective_errors(self.comm):
                _check("out", out, move.shape, self.local.dtype)
                if not out.flags.writeable:
                    raise LayoutError("out cannot be written to\ngive an array of your own, or leave out=")
                if np.shares_memory(out, self.local) and not _is_inside(self.local, out, plan):
                    raise LayoutError("out shares memory with the block, but has it not inside\nleave out=, or copy x")
        if implicit_cause.get() or records_open.get():
            announce(self, plan.cost.bytes, lambda: str(plan), "halo")
        return move(self.local, value, out)

    def accumulate_halo(self, halo: npt.ArrayLike, width: Width, periodic: Periodic = False) -> Self:
        """The tensor with the ghost cells of all ranks added to the cells of their owners: the transpose of `halo`.

        Finite elements, particles and gradients of stencils compute values for cells of their neighbours; this adds
        them there. Ghosts beyond the ends of a mode that is not periodic are dropped. Replicas must give equal arrays.
        Collective. Law: the sum of `x.halo(w) * y` over all ranks is that of `x.local * x.accumulate_halo(y, w).local`.

        Args:
            halo: this rank's array, of the shape and dtype of `x.halo(width, periodic)`; `x` gives the layout.
            width, periodic: those of the halo.

        Raises:
            LayoutError: an array has another shape or dtype (raised on all ranks); or as `halo`.

        >>> import numpy as np, rote
        >>> def program(comm):
        ...     x = rote.DistTensor.zeros(6, "block[(0)]", comm)
        ...     return x.accumulate_halo(np.ones(5), 1).local.tolist()
        >>> rote.run(program, ranks=2)
        [[1.0, 1.0, 2.0], [2.0, 1.0, 1.0]]
        """
        plan, move = self._bound_halo(width, periodic)
        with collective_errors(self.comm):
            values = as_array(halo)
            _check("halo", values, move.shape, self.local.dtype)
        if implicit_cause.get() or records_open.get():
            announce(self, plan.accumulate_cost.bytes, lambda: f"back, of a {plan}", "accumulate_halo")
        block = np.zeros(self.local.shape, self.local.dtype)
        move.accumulate(values, block)
        return self._with(block)

    def halo_plan(self, width: Width, periodic: Periodic = False) -> HaloPlan:
        """The plan of `halo`: its messages, bytes and seconds, and its proof. It moves nothing, and is not collective.

        Raises:
            LayoutError: a width is negative, or there is not one for each mode; or as `halo`.

        >>> import rote
        >>> x = rote.DistTensor.zeros((8, 8), "block[(0),()]")
        >>> plan = x.halo_plan(1, periodic=True)
        >>> plan.cost.messages, plan.shape(0)
        (0, (10, 10))
        >>> plan.verify()
        """
        from ..compiler.halo import HaloPlan

        order = len(self.distribution.shape)
        return HaloPlan(self.distribution, _widths(width, order), _flags(periodic, order), self.local.dtype)

    def _bound_halo(self, width: Width, periodic: Periodic) -> tuple[HaloPlan, IndexedMove]:
        """The plan and the move of a halo; when they are made, each rank proves the plan for its own cells."""
        order = len(self.distribution.shape)
        key = (self.distribution, self.local.dtype, _widths(width, order), _flags(periodic, order))

        def make() -> tuple[HaloPlan, IndexedMove]:
            from ..runtime.indexed import IndexedMove

            with collective_errors(self.comm):
                plan = self.halo_plan(width, periodic)
                plan.verify(self.comm.rank)
            return plan, IndexedMove(plan.source, plan.wanted(self.comm.rank), self.comm)

        return cached(self.comm, "halos", key, make, _KEPT, ("halo", key))


def _widths(width: Width, order: int) -> tuple[tuple[int, int], ...]:
    """Per mode, the ghosts below and above."""
    try:
        per_mode = tuple(width) if isinstance(width, Sequence) else (width,) * order
        pairs = [tuple(each) if isinstance(each, Sequence) else (each, each) for each in per_mode]
        widths = tuple((integer(low, "a width"), integer(high, "a width")) for low, high in pairs)
        right = all(low >= 0 and high >= 0 for low, high in widths)
    except ValueError:  # not integers, or more than two
        right = False
    if not right:
        raise LayoutError(
            f"{width!r} is no width of ghost cells\nwrite a number, or per mode one or a pair (below, above)"
        )
    return widths


def _flags(periodic: Periodic, order: int) -> tuple[bool, ...]:
    """Per mode, whether it is periodic."""
    return (bool(periodic),) * order if isinstance(periodic, bool | np.bool) else tuple(map(bool, periodic))


def _check(name: str, array: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse an array that does not have the shape and dtype of a halo."""
    if not isinstance(array, np.ndarray) or (array.shape, array.dtype) != (shape, dtype):
        says = f"{array.shape} {array.dtype}" if isinstance(array, np.ndarray) else f"{array!r}"
        raise LayoutError(f"{name} is an array of {shape} {dtype}, not {says}\nwrite np.empty({shape}, {dtype.str!r})")


def _is_inside(block: Array, out: Array, plan: HaloPlan) -> bool:
    """Whether a block is, in memory, the interior of `out`, without the ghosts."""
    inside = out[tuple(slice(low, low + n) for (low, _), n in zip(plan.widths, block.shape, strict=True))]
    places = [(each.shape, each.strides, each.__array_interface__["data"][0]) for each in (block, inside)]
    return places[0] == places[1]
