"""The fixed set of moves that checks the model, and how well its times rank the moves, by measured times."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod, sqrt
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..compiler.explain import table
from ..layout.expressions import block, cyclic
from ..layout.layout import Distribution, Entry, Layout, distribute
from ..runtime.comm.protocol import Array, Comm
from .answers import Answer

if TYPE_CHECKING:
    from ..compiler.machine import Machine
    from ..compiler.plan import Plan

__all__ = ["calls", "moves", "ranked", "ranks_of", "spearman"]

_SHAPES = ((128, 96), (40, 30, 24), (24, 20, 18, 16), (1000, 250), (96, 80, 64), (1500, 1200), (128, 125, 124))
_SPLITS = (block, block, cyclic, partial(cyclic, b=4))
_MOVES = 60


def moves(ranks: int) -> list[Plan]:
    """Plans of a fixed set of moves: between layouts of all kinds, on all grids of order 1 and 2 of some ranks (not 1).

    >>> moves(2)[0].steps[0].kind, len(set(moves(2)))
    ('alltoall', 60)
    """
    from ..compiler.compile import compile

    draw = Random(1)
    grids = [(ranks,), *((p, ranks // p) for p in range(2, ranks) if ranks % p == 0)]
    plans: dict[Plan, None] = {}
    while len(plans) < _MOVES:
        shape, grid = _SHAPES[len(plans) % len(_SHAPES)], draw.choice(grids)
        source = distribute(_layout(draw, len(shape), len(grid), True), shape, grid)
        target = distribute(_layout(draw, len(shape), len(grid), False), shape, grid)
        plan = compile(source, target, draw.choice(("f8", "c16")))
        if plan.steps:
            plans[plan] = None
    return [*plans]


def _layout(draw: Random, order: int, grid_order: int, first: bool) -> Layout:
    """A layout that splits over most grid modes; one to begin with may be partial."""
    modes: list[tuple[Entry, ...]] = [()] * order
    partial: tuple[int, ...] = ()
    rooted: tuple[tuple[int, int], ...] = ()
    for g in range(grid_order):
        role = draw.random()
        if role < 0.75:
            m = draw.randrange(order)
            modes[m] += (draw.choice(_SPLITS)(g),)
        elif role < 0.85 and first:
            partial += (g,)
        elif role < 0.9:
            rooted += ((g, 0),)
    return Layout(tuple(modes), None, "sum", partial, rooted)


def calls(plans: list[Plan], comm: Comm) -> list[Callable[[], object]]:
    """The moves of this rank, all between the same two pieces of memory."""
    from ..runtime.program import BoundPlan

    most = 0
    for plan in plans:
        for end in (plan.source, plan.target):
            most = max(most, prod(end.local_shape(comm.rank)) * plan.dtype.itemsize)
    memory: Array = np.ones((2, -(-most // 16) * 2))

    def memory_of(half: int, end: Distribution, dtype: np.dtype[Any]) -> Array:
        shape = end.local_shape(comm.rank)
        elements: Array = memory[half].view(dtype)[: prod(shape)]
        return elements.reshape(shape)

    calls: list[Callable[[], object]] = []
    for plan in plans:
        source, target = memory_of(0, plan.source, plan.dtype), memory_of(1, plan.target, plan.dtype)
        calls.append(partial(BoundPlan(plan, comm), source, target))
    return calls


def ranks_of(plans: list[Plan], times: list[float], machines: dict[str, Machine]) -> Answer:
    """How well the model's times for some machines rank the moves as measured times do, as values."""
    from ..compiler.cost import steps_cost

    sizes = sorted(prod(plan.source.shape) for plan in plans)
    rows = []
    for name, machine in machines.items():
        predicted = [steps_cost(p.source, p.target, p.steps, p.dtype.itemsize, machine).seconds for p in plans]
        low, middle, high = np.quantile(np.array(times) / np.array(predicted), (0.1, 0.5, 0.9)).tolist()
        rows.append({"machine": name, "rho": spearman(predicted, times), "low": low, "median": middle, "high": high})
    return {"moves": len(plans), "elements": [sizes[0], sizes[-1]], "machines": rows}


def ranked(check: Answer) -> str:
    """The table of the findings of `ranks_of`."""
    rows = [("", "Spearman's rho", "measured / predicted")]
    for row in check["machines"]:
        span = f"{row['median']:.2f} (most {row['low']:.2f} to {row['high']:.2f})"
        rows.append((row["machine"], f"{row['rho']:.3f}", span))
    least, most = check["elements"]
    return "\n".join([f"{check['moves']} moves of {least} to {most} elements", *table(rows, {1})])


def spearman(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Spearman's rank correlation of two rows of numbers; equal ones share their ranks. 0 if all of a row are equal.

    >>> spearman([1, 2, 3], [10, 20, 15]), spearman([1, 1, 2], [1, 1, 5])
    (0.5, 1.0)
    """
    ranks = []
    for row in (first, second):
        _, place, often = np.unique(np.asarray(row), return_inverse=True, return_counts=True)
        rank = np.cumsum(often)[place] - (often[place] - 1) / 2
        ranks.append(rank - rank.mean())
    a, b = ranks
    size = sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / size if size else 0.0
