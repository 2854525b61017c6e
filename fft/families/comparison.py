"""The walks that an FFT may take on any number of ranks, priced without one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy.typing as npt

from rote.compiler.machine import Machine, as_machine
from rote.errors import LayoutError
from rote.layout.grid import Grid, grid_shape, integer, tensor_shape
from rote.layout.layout import Layout

from ..request.arguments import as_arguments, planned_request
from .choose import Choice
from .resolve import choices_for

__all__ = ["compare"]


def compare(
    shape: Sequence[int] | int,
    ranks: int,
    layout: Layout | str | None = None,
    grid: Grid | Sequence[int] | int | None = None,
    dtype: npt.DTypeLike = "c16",
    axes: Sequence[int] | int | None = None,
    output: Layout | str | None = None,
    kinds: Mapping[int, str] | str | None = None,
    s: Sequence[int] | int | None = None,
    resample: Sequence[int] | int | None = None,
    machine: Machine | None = None,
) -> tuple[Choice, ...]:
    """The walks of all families of FFTs on so many ranks, none of which need exist; the one that "auto" takes first.

    Where neither layout nor grid is given, all grids of so many ranks are looked at, which for tens of thousands of
    ranks takes seconds.

    Args:
        shape: of the whole tensor.
        ranks: how many.
        layout, grid, dtype, axes, output, kinds, s, resample: as `FFT` has them.
        machine: by whose times walks are priced; the usual one if None.

    Returns:
        One `Choice` per family and grid, with the attributes `name`, `source` (the distribution in which it begins),
        `price` (`seconds`, `moves`, `received` and `total` bytes) and `walk`, whose `moves` are the plans and whose
        `plot()` draws it. Where a family has no walk, `walk` is None and `why` says why not; these come last.

    Raises:
        LayoutError: shape, ranks, layout, grid, axes and kinds do not fit each other.

    >>> for choice in compare((64, 64, 64), ranks=4)[:3]:
    ...     print(choice.name, choice.source.grid, choice.price.moves, choice.price.received)
    slab 4 1 786432
    cyclic 4 1 786432
    cyclic 2x2 1 786432
    """
    extents, size = tensor_shape(shape), integer(ranks, "the number of ranks")
    if size < 1:
        raise LayoutError(f"an FFT runs on 1 rank or more, not {size}")
    on = None if grid is None else Grid(grid_shape(grid, size))
    if on is not None and on.size != size:
        raise LayoutError(f"grid {on} has {on.size} ranks, not {size}\nwrite ranks={on.size}, or -1 in the grid")
    request = planned_request(extents, dtype, axes, kinds, False, s, resample)
    arguments = as_arguments(extents, request, size, layout, on, output)
    return choices_for(arguments, as_machine(machine))
