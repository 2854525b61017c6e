"""`compile_einsum`: a contraction from text, shapes and layouts, on a grid that is given or chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy.typing as npt

from ...compiler.step import as_dtype
from ...errors import LayoutError, PlanError, counted
from ...layout.distribution import Distribution, distribute
from ...layout.grid import Grid, factorings, grid_shape, integer, smooth_numbers, tensor_shape
from ...layout.layout import Layout, as_layout
from ...machines.machine import Machine, as_machine
from ...prediction import TIE
from ...scaling import Candidates, Scaling, scaling_of
from ...units import in_seconds
from .cheapest import cheapest_of
from .plan import Contraction, contraction_of, from_tree
from .search import Search
from .subscripts import as_text, read_subscripts
from .tree import MOST_OF_CHAINS, Node, Request, UnplannedProduct, unplanned

__all__ = ["compile_einsum", "einsum_scaling", "on_fewer_ranks"]

_MOST_GRID_MODES = 4  # of a grid that the planner chooses
_FAMILIES = ("1-D", "2-D", "2.5-D", "3-D", "other")

OperandLayout = Layout | str | Distribution | None
Labels = Sequence[Any]


def compile_einsum(
    subscripts: str | Sequence[Labels],
    shapes: Sequence[Sequence[int] | int],
    layouts: Sequence[OperandLayout] | None = None,
    grid: Grid | Iterable[int] | int | None = None,
    ranks: int | None = None,
    dtype: npt.DTypeLike | Sequence[npt.DTypeLike] = "f8",
    layout: Layout | str | None = None,
    max_bytes: int | None = None,
    machine: Machine | str | None = None,
) -> Contraction:
    """Plan a contraction that takes the least time, without data and without ranks.

    Parameters
    ----------
    subscripts : str | Sequence[Sequence[Any]]
        Text as `numpy.einsum` takes it, "ik,kj->ij" or "...ii->..."; or a list of labels (integers, and `...`) per
        operand, and one more for the result.
    shapes : Sequence[Sequence[int] | int]
        The shapes of the operands; extents of 1 broadcast.
    layouts : Sequence[Layout | str | Distribution], optional
        Per operand its layout on `grid`, its distribution, or None if it may lie where the contraction costs least.
        None leaves all operands free.
    grid : Grid | Iterable[int] | int, optional
        The grid of the products, of the layouts and of the result. Give either it or `ranks`.
    ranks : int, optional
        The number of ranks, on the grid of one to four modes that costs least; if all layouts are free, of at most one
        mode for each letter, and of at most three modes for more than two operands.
    dtype : DTypeLike | Sequence[DTypeLike], default 'f8'
        The dtype of all operands, or a list of one for each.
    layout : Layout | str, optional
        The layout of the result, or "cheapest". None means "cheapest" if `layouts` is None, and otherwise the splits
        that its letters have in the last product, where contributions are added up on all ranks.
    max_bytes : int, optional
        The most bytes that a rank may hold at once: operands, result, intermediate tensors and buffers. A number that
        the plan without it keeps changes nothing.
    machine : Machine | str, optional
        The times from which the cost is computed.

    Returns
    -------
    Contraction
        The contraction, which is the same on every rank. It prints itself, with what was chosen; `explain` compares it
        with a lower bound, `verify` proves it, `bound` runs it on tensors.

    Raises
    ------
    NotationError, LayoutError
        The subscripts are no such text, or do not fit the shapes; a layout is not in the language, or does not fit its
        shape or the grid; there are not as many layouts or dtypes as operands.
    PlanError
        Both or neither of `grid` and `ranks` are given; every contraction needs more than `max_bytes`.
    TypeError
        Tensors are given instead of shapes.

    See Also
    --------
    rote.einsum : Contract tensors in one call.
    rote.einsum_scaling : Predict a contraction on many numbers of ranks.

    Notes
    -----
    Source: the assignments of grid modes to letters contain SUMMA (van de Geijn and Watts 1997), the three-dimensional
    algorithm (Agarwal et al. 1995), the 2.5-dimensional one (Solomonik and Demmel 2011), and what is between them.

    Examples
    --------
    >>> import rote
    >>> plan = rote.compile_einsum("ik,kj->ij", [(64, 64), (64, 64)], ["block[(0),()]"] * 2, grid=4)
    >>> print(plan)
    ik,kj->ij on grid 4: A block[(0),()] of (64, 64) float64, B block[(0),()] of (64, 64) float64
      1. move B: block[(0),()] -> [(),()], allgather over 0
      2. multiply A and 1: ik,kj->ij with i:0
    >>> print(rote.compile_einsum("ik,kj->ij", [(64, 64), (64, 64)], ranks=4))
    ik,kj->ij on grid 4: A block[(0),()] of (64, 64) float64, B block[(0),()] of (64, 64) float64
      chosen: grid 4, A block[(0),()], B block[(0),()], result block[(0),()]
      1. move B: block[(0),()] -> [(),()], allgather over 0
      2. multiply A and 1: ik,kj->ij with i:0
    """
    if isinstance(layouts, list | tuple) and layouts and all(isinstance(entry, int) for entry in layouts):
        raise LayoutError(
            f"compile_einsum takes the shapes of all operands in one list, not {shapes} and {layouts}\n"
            f"write shapes=[{shapes}, {layouts}]"
        )

    return contraction_of(*_requests(subscripts, shapes, layouts, grid, ranks, dtype, layout, max_bytes, machine))


def _requests(
    subscripts: str | Sequence[Labels],
    shapes: Sequence[Sequence[int] | int],
    layouts: Sequence[OperandLayout] | None,
    grid: Grid | Iterable[int] | int | None,
    ranks: int | None,
    dtype: npt.DTypeLike | Sequence[npt.DTypeLike],
    layout: Layout | str | None,
    max_bytes: int | None,
    machine: Machine | str | None,
) -> list[Request]:
    """The requests of `compile_einsum`, one for each grid that may be chosen."""
    tensors = _shapes(shapes)
    count = len(tensors)
    if not isinstance(subscripts, str):
        subscripts = _text(subscripts, count)
    letters = read_subscripts(subscripts, [*map(len, tensors)])
    extents = letters.extents(tensors, "compile_einsum")

    several = isinstance(dtype, list | tuple) or (isinstance(dtype, str) and "," in dtype)
    dtypes = tuple(map(as_dtype, _one_per_operand(dtype if several else [dtype] * count, count, "dtype")))
    ends = _one_per_operand([None] * count if layouts is None else layouts, count, "layout")
    ends = [end if isinstance(end, Distribution | None) else as_layout(end) for end in ends]

    most = None if max_bytes is None else integer(max_bytes, "max_bytes")
    if most is not None and most < 0:
        raise PlanError(f"max_bytes is a number of bytes that a rank may hold, not {most}")

    cheapest = layout == "cheapest" or (layout is None and layouts is None)
    of_result = None if layout is None or cheapest else as_layout(layout)
    shape = tuple([extents[letter] for letter in letters.result])
    times = as_machine(machine)

    def request(on: Grid) -> Request:
        pairs = enumerate(zip(ends, tensors, strict=True), 1)
        dists = tuple([_operand_dist(end, sizes, on, number) for number, (end, sizes) in pairs])
        target = None if of_result is None else distribute(of_result, shape, on)
        return Request(letters, tensors, dtypes, dists, on, target, cheapest, most, times.on(on.size))

    if grid is None and ranks is not None:
        # If no layout names grid modes, grids of the same extents in another order are alike.
        ordered = any(end is not None for end in (of_result, *ends))
        grids = _grids(ranks, len(extents), count, ordered)
    elif grid is not None and ranks is None:
        grids = [grid_shape(grid)]
    else:
        raise PlanError("a contraction is planned for a grid or for a number of ranks; give one, grid=… or ranks=…")

    requests, refused = list[Request](), list[LayoutError]()
    for sizes in grids:
        try:
            requests.append(request(Grid(sizes)))
        except LayoutError as error:  # a layout names more modes than this grid has
            refused.append(error)
    if not requests:
        raise refused[-1]
    return requests


def einsum_scaling(
    subscripts: str | Sequence[Labels],
    shapes: Sequence[Sequence[int] | int],
    ranks: Sequence[int],
    dtype: npt.DTypeLike = "f8",
    machine: Machine | str | None = None,
    show: Callable[[str], object] | None = None,
) -> Scaling:
    """Predict the best contraction of each family of products on several numbers of ranks, which need not exist.

    Parameters
    ----------
    subscripts : str | Sequence[Sequence[Any]]
        As for `compile_einsum`.
    shapes : Sequence[Sequence[int] | int]
        As for `compile_einsum`.
    ranks : Sequence[int]
        The numbers of ranks, in ascending order.
    dtype : DTypeLike, default 'f8'
        As for `compile_einsum`.
    machine : Machine | str, optional
        As for `compile_einsum`.
    show : Callable[[str], object], optional
        Is called with the lines of the table as soon as they are known, for example `print`.

    Returns
    -------
    Scaling
        A table that prints itself. A contraction belongs to the family of its largest product, and each is the cheapest
        on its grid, so a family that is the cheapest on no grid is left out.

    Raises
    ------
    LayoutError, PlanError, TypeError
        As for `compile_einsum`.

    See Also
    --------
    rote.compile_einsum : Plan a contraction on one grid.

    Examples
    --------
    >>> import rote
    >>> table = rote.einsum_scaling("ik,kj->ij", [(64, 64), (64, 64)], ranks=[4, 16])
    >>> [(row.ranks, row.taken) for row in table.rows]
    [(4, '1-D'), (16, '1-D')]
    """

    hints = list[str]()

    def candidates(count: int) -> Candidates:
        requests = _requests(subscripts, shapes, None, None, count, dtype, None, None, machine)
        cheapest = [cheapest_of([request]) for request in requests]
        # Of grids that take as long, the first one has the fewest modes: sums in another order are the same.
        cheapest.sort(key=lambda found: float(f"{found[0].priced(found[1]):.9g}"))

        fastest = from_tree(*cheapest[0])
        hints.extend(on_fewer_ranks(fastest, lambda plan: plan.prediction.seconds))

        # Only the fastest of a family is planned, or the next one while it does not fit into memory.
        done = set[str]()
        for search, node in cheapest:
            family = _family(search, node)
            if family not in done:
                prediction = from_tree(search, node).prediction
                yield family, prediction
                if prediction.fits:
                    done.add(family)

        yield from dict.fromkeys(_FAMILIES, "on each grid another family is cheaper").items()

    what = f"{subscripts} of {', '.join(map(str, shapes))} {as_dtype(dtype).str[1:]}"
    table = Scaling(what, as_machine(machine), _FAMILIES)
    table = scaling_of(table, [(count, candidates(count)) for count in ranks], show)
    if show and hints:
        show("\n".join(hints))
    return replace(table, hints=tuple(hints))


def _family(search: Search, node: Node) -> str:
    """The family of the largest product of a contraction."""
    largest, family = -1, ""
    for _, stage in unplanned(search.original, node, search.final(node.dist)):
        if isinstance(stage, UnplannedProduct):
            product, shapes = stage.product, [move.target.shape for move in stage.takes]
            computes = not product.is_diagonal and not product.is_rearrangement
            points = product.points(shapes, search.extents) if computes else 0
            if points > largest:
                largest, family = points, product.family

    family = "2-D" if family.startswith("stationary") else family.split(",")[0]
    return family if family in _FAMILIES else "other"


def on_fewer_ranks(plan: Contraction, seconds: Callable[[Contraction], float]) -> list[str]:
    """A line that names slightly fewer ranks on which a contraction is faster; [] if there are none.

    Only free operands and results can lie on other numbers of ranks. There a rank holds no more than in the plan, which
    may have been planned within a limit.

    Args:
        plan: the contraction.
        seconds: gives the seconds of a contraction.

    >>> plan = compile_einsum("ik,kj->ij", [(4096, 4096)] * 2, ranks=97)
    >>> on_fewer_ranks(plan, lambda plan: plan.cost.seconds)
    ['on 96 of the 97 ranks about 76 ms, 1.3 times as fast: start 96']
    """
    if not {*plan.ends()} <= {*plan.chosen}:
        return []

    ranks, shapes = plan.grid.size, [dist.shape for dist in plan.operands]
    others = [
        compile_einsum(str(plan.subscripts), shapes, ranks=number, dtype=plan.dtypes, machine=plan.machine)
        for number in smooth_numbers(ranks)
    ]
    others = [other for other in others if other.cost.peak_bytes <= plan.cost.peak_bytes]
    if not others:
        return []

    best = min(others, key=seconds)
    if seconds(best) * TIE >= seconds(plan):
        return []
    number, ratio = best.grid.size, seconds(plan) / seconds(best)
    times = f"about {in_seconds(seconds(best))}, {ratio:.1f} times as fast"
    return [f"on {number} of the {ranks} ranks {times}: start {number}"]


def _shapes(shapes: Any) -> tuple[tuple[int, ...], ...]:
    """The shapes of the operands, which are not tensors."""
    several = [*shapes] if isinstance(shapes, Iterable) and not hasattr(shapes, "dtype") else [shapes]
    if any(hasattr(shape, "dtype") for shape in several):
        raise TypeError(
            "compile_einsum takes shapes, not tensors\n"
            "write rote.einsum(subscripts, A, B) to contract them, or shapes=[A.shape, B.shape] to plan it"
        )
    if not isinstance(shapes, list | tuple):
        raise LayoutError(f"one shape per operand is given, as in [(4, 6), (6, 8)], not {shapes!r}")
    return tuple(map(tensor_shape, several))


def _text(labels: Sequence[Labels], count: int) -> str:
    """The text of lists of labels: one per operand, and one more for the result."""
    lists = [*labels]
    if len(lists) not in (count, count + 1):
        raise LayoutError(
            f"{counted(len(lists), 'list')} of labels for {counted(count, 'operand')}\n"
            "write one for each operand, and one for the result"
        )

    arguments: list[Any] = []  # as a call of `einsum` has them, with nothing in the place of the operands
    for labels_of_operand in lists[:count]:
        arguments += [None, labels_of_operand]
    return as_text((*arguments, *lists[count:]))[0]


def _one_per_operand(values: Any, count: int, name: str) -> list[Any]:
    if isinstance(values, str | Layout | Distribution) or not isinstance(values, Iterable):
        raise LayoutError(f"one {name} per operand is given, in a list, not {values!r}")
    several = [*values]
    if len(several) != count:
        raise LayoutError(f"{counted(len(several), name)} for {counted(count, 'operand')}; give one for each operand")
    return several


def _operand_dist(
    end: Layout | Distribution | None, shape: tuple[int, ...], grid: Grid, number: int
) -> Distribution | None:
    """The distribution of an operand; None if it may lie anywhere."""
    if end is None or isinstance(end, Layout):
        return None if end is None else distribute(end, shape, grid)
    if end.shape != shape or end.grid.size != grid.size:
        raise LayoutError(
            f"operand {number} has shape {shape} on {grid.size} ranks, and its distribution {end.shape} on "
            f"{end.grid.size}"
        )
    return end


def _grids(ranks: int, letters: int, operands: int, ordered: bool = False) -> list[tuple[int, ...]]:
    """The grids of a number of ranks that are tried, those of few modes first; if modes are not ordered, each once.

    Of operands that may lie anywhere, a letter over two grid modes lies as over one of as many ranks, but for rounding.
    Four modes multiply the ways in which a chain of products can be split, and no chain is known that chooses them.
    """
    count = integer(ranks, "ranks")
    if count < 1:
        raise LayoutError(f"there must be at least one rank, not {count}")

    most = _MOST_GRID_MODES
    if not ordered:
        most = min(MOST_OF_CHAINS if operands > 2 else most, max(letters, 1))
    shapes = [shape for order in range(1, most + 1) for shape in factorings(count, order)]
    shapes = [shape for shape in shapes if 1 not in shape or len(shape) == 1]
    if ordered:
        every = {permuted for shape in shapes for permuted in permutations(shape)}
        shapes = sorted(every, key=lambda shape: (len(shape), shape))
    return shapes
