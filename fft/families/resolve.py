"""The walks for a user's arguments: of one algorithm, of all families, or one that was chosen before.

No function here needs a running rank, so walks can be compared for any number of ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy.typing as npt

from rote.compiler.machine import DEFAULT, Machine, as_machine
from rote.errors import LayoutError
from rote.layout.grid import Grid, grid_shape, integer, tensor_shape
from rote.layout.layout import Distribution, Layout, distribute

from ..request.arguments import as_arguments, planned_request
from ..request.request import Arguments
from ..walk.walk import Walk
from .choose import Choice, best, choices, ranking, walk_of
from .registry import SPLITS, check_algorithm, is_text, read_lines, start

__all__ = ["choices_for", "compare", "reread", "walk_for"]


def choices_for(arguments: Arguments, machine: Machine = DEFAULT) -> tuple[Choice, ...]:
    """The walks of all families in order of preference on a machine; then the families without one, and why."""
    request, output = arguments.request, arguments.output
    if arguments.layout is None:
        return ranking(arguments.shape, arguments.ranks, request, arguments.grid, output, machine)
    return choices(_source(arguments, "auto"), request, output, machine)


def walk_for(arguments: Arguments, algorithm: str) -> Walk:
    """The walk of a family, the walk that a text describes, or the cheapest on the default machine.

    Raises:
        LayoutError: the algorithm does not fit the arguments.
    """
    if algorithm == "auto":
        return best(choices_for(arguments))
    return walk_of(_source(arguments, algorithm), arguments.request, algorithm, arguments.output)


def reread(arguments: Arguments, text: str, grid: Grid) -> Walk:
    """Read the text of a walk that was chosen earlier for equal arguments.

    Raises:
        LayoutError: it does not fit the arguments: another transform, grid, or layout at either end.
    """
    walk = walk_of(distribute(read_lines(text)[0].layout, arguments.shape, grid), arguments.request, text)
    if grid.size != arguments.ranks or arguments.grid not in (None, grid):
        raise LayoutError(f"a walk on grid {grid} is not on the grid that is asked for")
    for asked, layout in ((arguments.layout, walk.source.layout), (arguments.output, walk.target.layout)):
        if asked not in (None, layout):
            raise LayoutError(f"the walk is in {layout} where {asked} is asked for")
    return walk


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
    """Compare the walks of all families of FFTs on any number of ranks, which need not exist.

    If neither layout nor grid is given, all grids of so many ranks are compared, which takes seconds for tens of
    thousands of ranks.

    Args:
        shape: the shape of the whole tensor.
        ranks: the number of ranks.
        layout, grid, dtype, axes, output, kinds, s, resample: as for `FFT`.
        machine: the machine whose times price the walks, and for which their moves are compiled; the default one if
            None.

    Returns:
        One `Choice` per family and grid; the first is the one that "auto" takes. Its attributes are `name`, `source`
        (the distribution in which it begins), `price` (`seconds`, `moves`, `received` and `total` bytes), `peak_bytes`
        (approximate memory on a rank) and `walk`, whose `moves` are the plans and whose `plot()` draws it. If a family
        has no walk, `walk` is None and `why` gives the reason; these come last.

    Raises:
        LayoutError: shape, ranks, layout, grid, axes and kinds do not fit together.

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


def _source(arguments: Arguments, algorithm: str) -> Distribution:
    """The distribution in which the walk starts: the requested layout, or the one in which the algorithm begins."""
    layout, grid, shape, request = arguments.layout, arguments.grid, arguments.shape, arguments.request
    if layout is None and is_text(algorithm):
        layout = read_lines(algorithm)[0].layout
    if layout is not None:
        if grid is None:
            grid = Grid.of(arguments.ranks, max((*layout.grid_modes, 0)) + 1)
        return distribute(layout, shape, grid)
    check_algorithm(algorithm)
    if grid is None:
        split = [axis for axis in request.axes if axis != request.real]
        grid = Grid.of(arguments.ranks, {"rows": 1, "ragged": 1, **SPLITS}.get(algorithm, max(len(split), 1)))
    return distribute(start(algorithm, shape, grid, request), shape, grid)
