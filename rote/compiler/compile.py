"""compile: the plan from any distribution to any other of the same tensor on the same grid.

Every transition is one movement of digits; its kind is the name of the collective that does it. What each grid mode did
before and does after decides the name (`RULES`); a mixture is a general exchange, so that compiling is total.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from ..layout.distribution import Distribution, Role, Split, distribute
from ..layout.grid import Grid
from ..layout.layout import Transition, parse
from .machine import Machine
from .movement import components
from .plan import Plan
from .step import LOCAL, Step, as_dtype

__all__ = ["RULES", "compile"]

RULES: dict[tuple[str, str], str] = {
    ("split", "replicated"): "allgather",
    ("split", "split"): "alltoall",
    ("split", "partial"): "zero_fill",
    ("split", "rooted"): "gather",
    ("replicated", "split"): "slice",
    ("replicated", "partial"): "zero_fill",
    ("replicated", "rooted"): "slice",
    ("partial", "replicated"): "allreduce",
    ("partial", "split"): "reduce_scatter",
    ("partial", "rooted"): "reduce",
    ("rooted", "replicated"): "broadcast",
    ("rooted", "split"): "scatter",
    ("rooted", "partial"): "zero_fill",
    ("rooted", "rooted"): "permute",
}
"""What the step is called when every changed grid mode goes from the one role to the other."""


def compile(
    source: Distribution | Transition | str,
    target: Distribution | None = None,
    dtype: npt.DTypeLike = "f8",
    *,
    shape: Iterable[int] | int | None = None,
    grid: Grid | Iterable[int] | int | None = None,
    machine: Machine | None = None,
    max_bytes: int | None = None,
) -> Plan:
    """The plan from one distribution to another.

    Args:
        source, target: two distributions; or `source` alone, a transition `"A -> B"`, with `shape` and `grid`.
        dtype: of the elements; a plan counts bytes.
        machine: whose times `plan.cost.seconds` uses.
        max_bytes: refuse a plan whose peak (input, output and buffers of the fullest rank) is above.

    Raises:
        PlanError: the distributions are of different tensors or grids, or the peak is above `max_bytes`.

    >>> compile("[(0),(1)] -> [(),(0,1)]", shape=(4, 6), grid=(2, 2)).steps[0].kind
    'alltoall'
    >>> [compile(f"[(0),()] -> {b}", shape=(4, 6), grid=2).steps[0].kind for b in ("[(),()]", "[(),()]|(0)")]
    ['allgather', 'gather']
    """
    if isinstance(source, Distribution):
        if target is None or shape is not None or grid is not None:
            raise PlanError("give two distributions, or one transition 'A -> B' with shape= and grid=")
    else:
        if target is not None or shape is None or grid is None:
            raise PlanError("a transition is compiled for a shape and a grid: compile('A -> B', shape=…, grid=…)")
        transition: object = parse(source) if isinstance(source, str) else source
        if not isinstance(transition, Transition):
            raise PlanError(f"{source!r} is no transition; write 'A -> B'")
        source, target = distribute(transition.source, shape, grid), distribute(transition.target, shape, grid)
    plan = _compile(source, target, as_dtype(dtype), machine or Machine())
    if max_bytes is not None and plan.cost.peak_bytes > max_bytes:
        raise PlanError(f"the plan needs {plan.cost.peak_bytes} bytes on some rank, more than max_bytes={max_bytes}")
    return plan


@lru_cache(maxsize=4096)
def _compile(source: Distribution, target: Distribution, dtype: np.dtype[Any], machine: Machine) -> Plan:
    if source.shape != target.shape:
        raise PlanError(f"a tensor keeps its shape: the source has {source.shape}, the target {target.shape}")
    if source.grid != target.grid:
        raise PlanError(f"a plan stays on one grid: the source is on {source.grid}, the target on {target.grid}")
    for dist in (source, target):
        if dist.partial and dist.layout.op in ("max", "min") and dtype.kind == "c":
            raise PlanError(f"complex numbers have no {dist.layout.op}: {dist.layout} of {dtype}")
    changed = tuple(g for g in range(source.grid.order) if _function(source, g) != _function(target, g))
    arranged = source.digits != target.digits
    if not changed and not arranged:
        return Plan(source, target, dtype, (), machine)
    return Plan(source, target, dtype, (Step(_kind(source, target, changed), source, target, changed),), machine)


def _kind(source: Distribution, target: Distribution, changed: tuple[int, ...]) -> str:
    """The name of the step in which these grid modes change what they do."""
    names = {_rule(source, target, g) for g in changed}
    if len(names) != 1:
        return "relayout" if names <= set(LOCAL) else "exchange"
    (name,) = names
    if name == "alltoall":
        if any(len(c.before) > 1 or len(c.after) > 1 for c in components(source, target)):
            return "exchange"
        return "permute" if _same_tiles(source, target) else "alltoall"
    if name in ("allreduce", "reduce", "broadcast") and source.digits != target.digits:
        return "exchange"  # these move whole blocks as they are, and the blocks are arranged anew
    return name


def _rule(source: Distribution, target: Distribution, g: int) -> str:
    before, after = source.role(g), target.role(g)
    return RULES.get((before.name, after.name), "exchange")


def _same_tiles(source: Distribution, target: Distribution) -> bool:
    """Whether every target tile is a source tile: the modes are split alike, only by other grid modes.

    Compared by the splits themselves, never by sizes: nested blocks of the same size need not be the same tiles.
    """

    def tiles(dist: Distribution) -> dict[object, object]:
        return {name: tuple((s.kind, s.parts) for s in mode) for name, mode in _modes(dist)}

    return tiles(source) == tiles(target)


def _function(dist: Distribution, g: int) -> tuple[object, ...]:
    """The coordinate function of a grid mode: equal values mean that the same elements have the same coordinate."""
    role: Role = dist.role(g)
    for name, mode in _modes(dist):
        for depth, split in enumerate(mode):
            if split.grid_mode == g:
                return (role, name, mode[: depth + 1])
    return (role, dist.layout.op if role.name == "partial" else "")


def _modes(dist: Distribution) -> Iterator[tuple[object, tuple[Split, ...]]]:
    """Per view mode, what names it and its splits: the digits that it reads, numbered, for tiles of 1 read the same."""
    for m, (digits, mode) in enumerate(zip(dist.digits, dist.splits, strict=True)):
        yield (digits, dist.digits[:m].count(digits)), mode
