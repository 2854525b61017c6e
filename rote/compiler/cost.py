"""What a plan costs: bytes, messages and peak memory, counted exactly from the index sets, for all ranks at once.

Counts factor over components and over free grid modes, so a table per component is enough; NumPy broadcasting over the
grid puts them together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..layout.distribution import Distribution, mode_set
from .machine import Machine
from .movement import Component, components, groups, meets
from .step import Step

__all__ = ["Cost", "Traffic", "lower_bound", "steps_cost", "traffic"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cost:
    """What a plan costs.

    Attributes:
        seconds: the model's time (see `Machine`).
        bytes, messages: the most that any one rank receives.
        peak_bytes: the most that any one rank holds at once: input, output and every buffer.
    """

    seconds: float
    bytes: int
    messages: int
    peak_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Per rank (arrays of the grid's shape): elements and messages to or from others, and all elements, its own too."""

    elements: Ints
    messages: Ints
    total: Ints


def block_sizes(dist: Distribution) -> Ints:
    """Per rank, the number of elements of its block."""
    sizes = np.ones(dist.grid.shape, np.int64)
    for mode, extent in zip(dist.splits, dist.view_shape, strict=True):
        grid_modes = [s.grid_mode for s in mode]
        table = np.empty([s.parts for s in mode], np.int64)
        for coordinates in np.ndindex(*table.shape):
            table[coordinates] = len(mode_set(mode, extent, coordinates))
        sizes = sizes * _over_grid(table, grid_modes, dist.grid.order)
    for g, at in dist.layout.rooted:
        sizes = sizes * _over_grid((np.arange(dist.grid.shape[g]) == at).astype(np.int64), [g], dist.grid.order)
    return sizes


@lru_cache(maxsize=1024)
def traffic(source: Distribution, target: Distribution, sending: bool = False) -> Traffic:
    """What each rank receives (or sends) in one movement."""
    mine, other = (source, target) if sending else (target, source)
    grid = source.grid
    roles = [(source.role(g), target.role(g)) for g in range(grid.order)]
    op_changes = source.layout.op != target.layout.op

    def meet(g: int, me: int, peer: int) -> bool:
        a, b = (me, peer) if sending else (peer, me)
        return meets(*roles[g], op_changes, a, b)

    tables = [_component_table(source, target, part, meet, sending) for part in components(source, target)]
    split = {s.grid_mode for mode in other.splits for s in mode}
    for g in range(grid.order):
        if g not in split:
            p = grid.shape[g]
            peers = np.array([sum(meet(g, me, peer) for peer in range(p)) for me in range(p)], np.int64)
            itself = np.array([meet(g, me, me) for me in range(p)], np.int64)
            over, kept = _over_grid(peers, [g], grid.order), _over_grid(itself, [g], grid.order)
            tables.append((over, over, kept))
    holds = np.ones(grid.shape, np.int64)
    for g, at in mine.layout.rooted:
        holds = holds * _over_grid((np.arange(grid.shape[g]) == at).astype(np.int64), [g], grid.order)
    total, messages, kept = holds, holds, holds
    for all_elements, all_messages, own in tables:
        total, messages, kept = total * all_elements, messages * all_messages, kept * own
    return Traffic(total - kept, messages - (kept > 0), total)


def _component_table(
    source: Distribution, target: Distribution, part: Component, meet: Callable[[int, int, int], bool], sending: bool
) -> tuple[Ints, Ints, Ints]:
    """Per coordinates of the component's grid modes: elements and groups of all peers, and elements a rank keeps."""
    mine, other = (source, target) if sending else (target, source)
    grid = source.grid
    grid_modes = sorted(
        {s.grid_mode for m in part.before for s in source.splits[m]}
        | {s.grid_mode for m in part.after for s in target.splits[m]}
    )
    elements, peers, own = (np.zeros([grid.shape[g] for g in grid_modes], np.int64) for _ in range(3))
    for at in np.ndindex(*elements.shape):
        me = [0] * grid.order
        for g, c in zip(grid_modes, at, strict=True):
            me[g] = c
        for group in groups(mine, other, part, tuple(me), sending):
            if all(meet(g, me[g], c) for g, c in group.coordinates):
                elements[at] += len(group)
                peers[at] += 1
                own[at] += len(group) * all(me[g] == c for g, c in group.coordinates)
    over = [_over_grid(table, grid_modes, grid.order) for table in (elements, peers, own)]
    return over[0], over[1], over[2]


def lower_bound(source: Distribution, target: Distribution) -> int:
    """Elements that some rank must receive, whatever the plan.

    A rank must be sent what it needs and lacks; of a reduction it must be sent at least one value per element.
    """
    received = traffic(source, target).elements
    return int(np.minimum(received, block_sizes(target)).max(initial=0))


@lru_cache(maxsize=1024)
def steps_cost(
    source: Distribution, target: Distribution, steps: tuple[Step, ...], item: int, machine: Machine
) -> Cost:
    """The cost of a plan: bytes and messages summed over its steps per rank, then the most of any rank.

    `item` is the size of an element in bytes.
    """
    zero = np.zeros(source.grid.shape, np.int64)
    received, messages, peak, seconds = zero, zero, block_sizes(source) + block_sizes(target), 0.0
    for number, step in enumerate(steps):
        step_in, step_out = traffic(step.before, step.after), traffic(step.before, step.after, sending=True)
        received, messages = received + step_in.elements, messages + step_in.messages
        seconds += _seconds(step, item, machine)
        held = block_sizes(step.before) + block_sizes(step.after)
        kept = block_sizes(source) if number else zero
        peak = np.maximum(peak, held + kept + step_in.elements + step_out.elements)
    return Cost(seconds, int(received.max()) * item, int(messages.max()), int(peak.max()) * item)


def _seconds(step: Step, item: int, machine: Machine) -> float:
    moved, sent = traffic(step.before, step.after), traffic(step.before, step.after, sending=True)
    reduces = step.kind in ("allreduce", "reduce", "reduce_scatter", "exchange") and bool(step.before.partial)
    times = [
        machine.seconds(messages=m, received=r * item, copied=c * item, reduced=r * item if reduces else 0)
        for m, r, c in {
            (int(m), int(r), int(c))
            for m, r, c in zip(moved.messages.flat, moved.elements.flat, (moved.total + sent.total).flat, strict=True)
        }
    ]
    return max(times)


def _over_grid(table: Ints, grid_modes: list[int], order: int) -> Ints:
    """A table over some grid modes as an array that broadcasts over the whole grid."""
    ascending = np.argsort(grid_modes)
    table = table.transpose(ascending)
    shape = [1] * order
    for g, p in zip(sorted(grid_modes), table.shape, strict=True):
        shape[g] = p
    return table.reshape(shape)
