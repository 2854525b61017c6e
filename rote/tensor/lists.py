"""Lists of tensors, redistributed together."""

from __future__ import annotations

from collections.abc import Sequence

from ..compiler.compile import compile
from ..compiler.plan import Plan
from ..errors import LayoutError
from ..functions.moves import announce, implicit_cause, records_open
from ..layout.grid import grid_shape
from ..layout.layout import Layout, as_layout, distribute
from ..runtime.comm.cache import CHECKS, cached, refuse_others
from ..runtime.placement import GridLike
from ..runtime.together import BoundPlans
from .tensor import DistTensor

__all__ = ["redistribute"]

_KEPT = 16  # lists that one communicator keeps


def redistribute(
    tensors: Sequence[DistTensor],
    layout: Layout | str | Sequence[Layout | str],
    grid: GridLike = None,
    wire: str | None = None,
) -> list[DistTensor]:
    """Move tensors to other layouts together: one message per step goes from a rank to another. Collective.

    A hundred small tensors, of any shapes, dtypes and layouts, cost about as much as one. Each result equals that of
    `x.redistribute(layout)`, bit for bit. Tensors of more than 256 KiB, and those whose elements a collective of MPI
    adds up, are moved separately. The workspace is at most 32 MiB beside the tensors.

    Args:
        tensors: tensors of one communicator, in the same order on all ranks.
        layout: one new layout for all tensors, which must have its order; or one for each.
        grid: the grid of the new layouts, over the same ranks, as in `from_global`; if None, each tensor keeps its own.
        wire: "f4" rounds elements to single precision in messages, as in `x.redistribute`; all must be f8 or c16.

    Returns:
        The new tensors, in the same order.

    Raises:
        LayoutError: a layout does not fit, there are not as many layouts as tensors, the tensors have several
            communicators, or ranks give them in different orders.
        PlanError, CommError: as `x.redistribute`; or `wire` is given, and a tensor is not of double precision.
        TypeError: one of `tensors` is not a tensor.

    >>> import numpy as np, rote
    >>> def program(comm):
    ...     weights = rote.DistTensor.from_global(np.arange(6.0).reshape(2, 3), "block[(0),()]", comm)
    ...     counts = rote.DistTensor.from_global(np.arange(5), "block[(0)]", comm)
    ...     new = rote.redistribute([weights, counts], ["block[(),(0)]", "[(0)]"])
    ...     return [x.local.tolist() for x in new]
    >>> rote.run(program, ranks=2)[1]
    [[[2.0], [5.0]], [1, 3]]
    """
    if isinstance(layout, Layout | str):
        layouts = [as_layout(layout)] * len(tensors)
    else:
        layouts = [*map(as_layout, layout)]
    _check(tensors, layouts)
    if not tensors:
        return []
    comm = tensors[0].comm
    ends = tuple([(x.distribution, x.local.dtype, target) for x, target in zip(tensors, layouts, strict=True)])

    def make() -> BoundPlans:
        plans: list[Plan] = []
        for source, dtype, target in ends:
            on = source.grid if grid is None else grid_shape(grid, comm.size)
            plans.append(compile(source, distribute(target, source.shape, on), dtype, wire=wire))
        return BoundPlans(plans, comm)

    bound = cached(comm, "lists", (ends, wire), make, _KEPT) if grid is None else make()
    if CHECKS:
        refuse_others(comm, "redistribute of several tensors", ends)
    if implicit_cause.get() or records_open.get():
        for x, plan in zip(tensors, bound.plans, strict=True):
            announce(x, plan.cost.bytes, plan.__str__)
    blocks = bound([x.local for x in tensors])
    return [DistTensor(block, plan.target, comm) for block, plan in zip(blocks, bound.plans, strict=True)]


def _check(tensors: Sequence[DistTensor], layouts: Sequence[Layout]) -> None:
    if isinstance(tensors, DistTensor):
        raise TypeError("redistribute takes a list of tensors; write x.redistribute(layout) for one")
    for number, x in enumerate(tensors):
        if not isinstance(x, DistTensor):
            raise TypeError(f"redistribute takes a list of tensors, but the one at {number} is a {type(x).__name__}")
        if x.comm is not tensors[0].comm:
            raise LayoutError(
                f"tensors are redistributed together over one communicator, but the one at {number} has another; "
                "give the same comm to all"
            )
    if len(layouts) != len(tensors):
        raise LayoutError(f"{len(tensors)} tensors want as many layouts, or one for all; not {len(layouts)}")
