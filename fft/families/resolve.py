"""The walks that do what a user asks: of an algorithm, of all families, or one that was chosen before."""

from __future__ import annotations

from rote.compiler.machine import DEFAULT, Machine
from rote.errors import LayoutError
from rote.layout.grid import Grid
from rote.layout.layout import Distribution, distribute

from ..request.request import Arguments
from ..walk.walk import Walk
from .choose import Choice, best, choices, ranking, walk_of
from .registry import SPLITS, check_algorithm, is_text, read_lines, start

__all__ = ["choices_for", "reread", "walk_for"]


def choices_for(arguments: Arguments, machine: Machine = DEFAULT) -> tuple[Choice, ...]:
    """The walks of all families, the cheapest on a machine first; then the families without, and why."""
    request, output = arguments.request, arguments.output
    if arguments.layout is None:
        return ranking(arguments.shape, arguments.ranks, request, arguments.grid, output, machine)
    return choices(_source(arguments, "auto"), request, output, machine)


def walk_for(arguments: Arguments, algorithm: str) -> Walk:
    """The walk of a family, of a text, or the cheapest on the usual machine.

    Raises:
        LayoutError: it does not do what is asked for.
    """
    if algorithm == "auto":
        return best(choices_for(arguments))
    return walk_of(_source(arguments, algorithm), arguments.request, algorithm, arguments.output)


def reread(arguments: Arguments, text: str, grid: Grid) -> Walk:
    """The walk that was chosen for equal arguments before, read from its text.

    Raises:
        LayoutError: it is another's: it does something else, or begins or ends elsewhere.
    """
    walk = walk_of(distribute(read_lines(text)[0].layout, arguments.shape, grid), arguments.request, text)
    if grid.size != arguments.ranks or arguments.grid not in (None, grid):
        raise LayoutError(f"a walk on grid {grid} is not on the grid that is asked for")
    for asked, layout in ((arguments.layout, walk.source.layout), (arguments.output, walk.target.layout)):
        if asked not in (None, layout):
            raise LayoutError(f"the walk is in {layout} where {asked} is asked for")
    return walk


def _source(arguments: Arguments, algorithm: str) -> Distribution:
    """The distribution in which the walk starts: the requested layout, or the one in which the algorithm begins."""
    layout, grid, shape, request = arguments.layout, arguments.grid, arguments.shape, arguments.request
    if layout is None and is_text(algorithm):
        layout = read_lines(algorithm)[0].layout
    if layout is not None:
        named = max((*layout.grid_modes, 0)) + 1
        return distribute(layout, shape, Grid.of(arguments.ranks, named) if grid is None else grid)
    check_algorithm(algorithm)
    if grid is None:
        split = [axis for axis in request.axes if axis != request.real]
        grid = Grid.of(arguments.ranks, {"rows": 1, "ragged": 1, **SPLITS}.get(algorithm, max(len(split), 1)))
    return distribute(start(algorithm, shape, grid, request), shape, grid)
