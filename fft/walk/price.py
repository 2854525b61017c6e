"""The cost of a walk by the model, without compiling a plan: a move is priced as one step."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from math import inf, log2, prod
from typing import Any

import numpy as np

from rote.compiler.cost import duration, flow
from rote.compiler.machine import Machine
from rote.compiler.rules import one_step
from rote.compiler.step import LOCAL
from rote.layout.layout import Distribution

from .walk import Walk

__all__ = ["NONE", "Price", "Prices"]

_TRANSFORMED = 0.25  # a transform's time, in times of a copy, per doubling of the points


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of a walk by the model.

    Attributes:
        seconds: the model's time of its moves and transforms, on the slowest rank.
        moves: the number of moves in which ranks communicate.
        received: the most bytes that a rank receives in a move, summed over all moves.
        total: bytes that all ranks receive.
    """

    seconds: float
    moves: int
    received: int
    total: int

    @property
    def order(self) -> tuple[float, int]:
        """The sort key of walks: the slowest rank's time, as far as it tells them apart, then the total."""
        return float(f"{self.seconds:.9g}"), self.total


NONE = Price(inf, 0, 0, 0)
"""The price if there is no walk."""

_FREE = Price(0.0, 0, 0, 0)


class Prices:
    """The prices of walks on one machine; equivalent moves are priced once.

    Attributes:
        machine: the times of the machine.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._known: dict[Hashable, Price] = {}

    def __call__(self, walk: Walk) -> Price:
        """The price of a walk."""
        copy_time = max(self.machine.along(walk.source.grid.order).copy_time)
        moves = [self._move(*end) for end in walk.ends]
        seconds = sum(move.seconds for move in moves)
        for stage, dtype in zip(walk.stages, walk.dtypes(), strict=False):
            points = prod(stage.before.view_shape[m] for m in stage.acted_modes)
            block_bytes = prod(stage.before.max_local_shape()) * dtype.itemsize
            seconds += block_bytes * log2(max(points, 1)) * _TRANSFORMED * copy_time
        received, total = sum(move.received for move in moves), sum(move.total for move in moves)
        return Price(seconds, sum(move.moves for move in moves), received, total)

    def _move(self, before: Distribution, after: Distribution, dtype: np.dtype[Any]) -> Price:
        """The price of a move, as one step."""
        key = dtype.itemsize, _likeness(before, after, self.machine)
        if key not in self._known:
            self._known[key] = _FREE
            step = one_step(before, after)
            if step is not None and step.kind not in LOCAL:
                elements = flow(step).elements
                received = int(elements.max())
                total = int(elements.sum(dtype=object)) * (step.ranks.size // elements.size)
                seconds = duration(step, dtype.itemsize, self.machine).seconds
                self._known[key] = Price(seconds, 1, received * dtype.itemsize, total * dtype.itemsize)
        return self._known[key]


def _likeness(before: Distribution, after: Distribution, machine: Machine) -> Hashable:
    """A key that is equal only for moves that differ in the names of axes and grid modes alone, and cost the same.

    Names are given in an order that the properties of axes and grid modes determine. Where these leave a choice, two
    equivalent moves may have different keys.
    """
    if before.grid != after.grid or any(end.layout.partial or end.layout.rooted for end in (before, after)):
        return before, after
    shape, grid = before.shape, before.grid.shape
    sides = [[*zip(end.digits, end.splits, strict=True)] for end in (before, after)]
    along = machine.along(len(grid))
    times = [*zip(along.latency, along.byte_time, along.copy_time, along.reduce_time, strict=True)]
    places: dict[int, list[tuple[object, ...]]] = {g: [] for g, p in enumerate(grid) if p > 1}
    for side, modes in enumerate(sides):
        for digits, splits in modes:
            if splits:
                read = [(shape[d.mode], d.weight, d.size) for d in digits]
                for depth, s in enumerate(splits):
                    places[s.grid_mode].append((side, depth, s.kind, read))
    ranked = sorted([(grid[g], times[g], sorted(held), g) for g, held in places.items()])
    number = {g: n for n, (*_, g) in enumerate(ranked)}
    over = []
    for modes in sides:
        entries_of = []
        for _, splits in modes:
            entries_of.append(tuple([(number[s.grid_mode], s.kind) for s in splits]))
        over.append(entries_of)
    read_by: list[list[tuple[object, ...]]] = [[] for _ in shape]
    for side, modes in enumerate(sides):
        for (digits, _), entries in zip(modes, over[side], strict=True):
            for place, d in enumerate(digits):
                read_by[d.mode].append((side, place, d.weight, d.size, entries))
    by_readers = sorted([(shape[m], sorted(readers), m) for m, readers in enumerate(read_by)])
    named = {m: n for n, (*_, m) in enumerate(by_readers)}
    said: list[tuple[object, ...]] = []
    for modes, entries_of in zip(sides, over, strict=True):
        lines = []
        for (digits, _), entries in zip(modes, entries_of, strict=True):
            lines.append((tuple([(named[d.mode], d.weight, d.size) for d in digits]), entries))
        said.append(tuple(sorted(lines)))
    return tuple(sorted(shape)), tuple([(grid[g], times[g]) for *_, g in ranked]), tuple(said)
