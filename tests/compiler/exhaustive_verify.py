"""A certificate that looks at every element: slow, plain, and independent of the algebra of `rote.compiler.verify`.

It asks each distribution which elements a rank holds, and follows the elements that the messages name. Its figures
are counted rank by rank and message by message.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from math import ceil, prod

import numpy as np
import numpy.typing as npt

from rote.compiler.movement import RECEIVES, SENDS, Message, movement
from rote.compiler.step import LOCAL, Step
from rote.errors import PlanError
from rote.layout.distribution import Distribution
from rote.layout.grid import Grid
from rote.layout.view import to_tensor

__all__ = ["Figures", "figures", "meaning", "verify"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Figures:
    """What a plan makes the busiest rank receive, and the fullest one hold."""

    bytes: int
    messages: int
    peak_bytes: int


def verify(source: Distribution, target: Distribution, steps: tuple[Step, ...]) -> None:
    """Raise PlanError unless the steps join up and every step delivers every element exactly once."""
    at = source
    for number, step in enumerate(steps, 1):
        if step.before != at:
            raise PlanError(f"step {number} starts from {step.before.layout}, but the tensor lies as {at.layout}")
        _verify_step(f"step {number} ({step})", step)
        at = step.after
    if at != target and meaning(at) != meaning(target):
        raise PlanError(f"the plan ends in {at.layout}, not in {target.layout}")


def _verify_step(name: str, step: Step) -> None:
    source, target, grid = step.before, step.after, step.before.grid
    lists = {rank: list(movement(source, target).messages(rank, SENDS)) for rank in range(grid.size)}
    sent = {rank: {m.peer: m for m in messages} for rank, messages in lists.items()}
    arrived = 0
    delivered = np.zeros(prod(source.shape), np.int64)
    contributions = prod(grid.shape[g] for g in source.partial if g not in target.partial)
    for rank in range(grid.size):
        needed = _elements(target, rank)
        times = np.zeros(needed.size, np.int64)
        first = np.zeros(needed.size, np.int64)
        for message in movement(source, target).messages(rank, RECEIVES):
            twin = sent[message.peer].get(rank)
            if twin is None or len(twin) != len(message):
                raise PlanError(f"{name}: rank {rank} waits for a message that rank {message.peer} does not send")
            if (step.kind in LOCAL or not _meet(step, rank, message.peer)) and message.peer != rank:
                raise PlanError(f"{name}: rank {rank} receives from rank {message.peer}, outside its sub-grid")
            here = _positions(source, target, message, rank, sending=False)
            there = _positions(source, target, twin, message.peer, sending=True)
            if not np.array_equal(needed[here], _elements(source, message.peer)[there]):
                raise PlanError(f"{name}: rank {message.peer} sends rank {rank} other elements than it waits for")
            if not message.combine:
                first[here] += 1
            elif (first[here] == 0).any():
                raise PlanError(f"{name}: rank {rank} reduces into elements that have not come yet")
            times[here] += 1
            arrived += 1
        delivered[needed] += times
        if not target.partial and (times != contributions).any():
            wrong = int(needed[np.flatnonzero(times != contributions)[0]])
            index = tuple(map(int, np.unravel_index(wrong, source.shape)))
            raise PlanError(f"{name}: element {index} does not arrive {contributions} time(s) at rank {rank}")
        if (first != (times > 0)).any():
            raise PlanError(f"{name}: rank {rank} is given an element twice")
    if target.partial:
        _once_per_reduction(name, step, delivered)
    if arrived != sum(map(len, lists.values())):
        raise PlanError(f"{name}: some message is sent that nobody receives")


def _once_per_reduction(name: str, step: Step, delivered: Ints) -> None:
    """Over all contributors to a partial target, each element is contributed as often as it has owners elsewhere."""
    source, target = step.before, step.after
    kept = [g for g in target.partial if g in source.partial and source.layout.op == target.layout.op]
    reduced = [g for g in source.partial if g not in kept]
    copies = prod(p for g, p in enumerate(target.grid.shape) if target.roles[g].name == "replicated")
    times = copies * prod(target.grid.shape[g] for g in (*kept, *reduced))
    if (delivered != times).any():
        wrong = int(np.flatnonzero(delivered != times)[0])
        index = tuple(map(int, np.unravel_index(wrong, source.shape)))
        raise PlanError(f"{name}: element {index} is contributed {int(delivered[wrong])} times, not {times}")


def _meet(step: Step, a: int, b: int) -> bool:
    ours, theirs = step.before.grid.coordinates(a), step.before.grid.coordinates(b)
    return all(x == y for g, (x, y) in enumerate(zip(ours, theirs, strict=True)) if g not in step.grid_modes)


@lru_cache(maxsize=65536)
def _sub_grid(grid: Grid, grid_modes: tuple[int, ...], rank: int) -> Ints:
    """The ranks that differ from one along the step's grid modes alone."""
    at = _coordinates(grid.shape)
    fixed = [g for g in range(grid.order) if g not in grid_modes]
    return np.flatnonzero((at[:, fixed] == at[rank, fixed]).all(axis=1))


@cache
def _coordinates(grid: tuple[int, ...]) -> Ints:
    """The coordinates of every rank, a row each."""
    return np.array(list(np.ndindex(*grid)), np.int64).reshape(prod(grid), len(grid))


def _elements(dist: Distribution, rank: int) -> Ints:
    """The flat tensor index of every element of a rank's block, in the order of the block."""
    shape = dist.local_shape(rank)
    if not dist.holds(rank) or 0 in shape:
        return np.empty(0, np.int64)
    tensor = [np.zeros((), np.int64) for _ in dist.shape]
    for mode, index in enumerate(dist.indices(rank)):
        along = index.reshape([-1 if k == mode else 1 for k in range(dist.order)])
        for m, added in to_tensor(dist.digits[mode], along).items():
            tensor[m] = tensor[m] + added
    flat: Ints = np.zeros((), np.int64)
    for n, index in zip(dist.shape, tensor, strict=True):
        flat = flat * n + index
    return np.broadcast_to(flat, shape).reshape(-1)


def _positions(source: Distribution, target: Distribution, message: Message, rank: int, sending: bool) -> Ints:
    """The flat positions of a message in a rank's block, in the order of the message."""
    dist = source if sending else target
    parts = movement(source, target).parts
    local: list[Ints] = [np.zeros((), np.int64)] * dist.order
    for axis, (part, group) in enumerate(zip(parts, message.groups, strict=True)):
        modes = part.before if sending else part.after
        for mode, positions in zip(modes, group.positions, strict=True):
            local[mode] = positions.reshape([-1 if k == axis else 1 for k in range(len(parts))])
    flat: Ints = np.zeros((), np.int64)
    for n, index in zip(dist.local_shape(rank), local, strict=True):
        flat = flat * n + index
    return np.broadcast_to(flat, [len(group) for group in message.groups]).reshape(-1)


def meaning(dist: Distribution) -> tuple[object, ...]:
    return dist.splits, dist.digits, tuple(dist.roles[g] for g in range(dist.grid.order))


def figures(source: Distribution, target: Distribution, steps: tuple[Step, ...], item: int) -> Figures:
    """What a plan claims, counted as the caller of its steps sees it; an element has `item` bytes."""
    received, messages, peaks = [], [], []
    for rank in range(source.grid.size):
        counts = [_count(step, rank) for step in steps]
        received.append(sum(elements for elements, _, _, _ in counts))
        messages.append(sum(heard for _, heard, _, _ in counts))
        during = [0]
        for number, (step, (_, _, sending, receiving)) in enumerate(zip(steps, counts, strict=True)):
            before = 0 if number == 0 else _size(step.before, rank)
            after = 0 if number == len(steps) - 1 else _size(step.after, rank)
            during.append(before + after + sending + receiving)
        peaks.append(_size(source, rank) + _size(target, rank) + max(during))
    return Figures(max(received) * item, max(messages), max(peaks) * item)


def _count(step: Step, rank: int) -> tuple[int, int, int, int]:
    """Of one rank: elements received, ranks heard from, elements in its send buffer and in its receive buffer."""
    kind, before, after = step.kind, _size(step.before, rank), _size(step.after, rank)
    come, gone = (_others(side, step.before, step.after, rank) for side in (RECEIVES, SENDS))
    others = len(_sub_grid(step.before.grid, step.grid_modes, rank)) - 1
    if kind in LOCAL:
        return 0, 0, 0, 0
    if kind == "allreduce":
        return ceil(Fraction(2 * others * after, others + 1)), others if after else 0, 0, 0
    if kind == "reduce":
        root = step.after.holds(rank)
        come_by = after if root else ceil(Fraction((others - 1) * before, others))
        return come_by, others if after else 0, 0 if root else before, 0
    if kind == "broadcast":
        root = step.before.holds(rank)
        return (0, 0, 0, 0) if root else (after, 1 if after else 0, 0, 0)
    if kind == "allgather":
        return sum(come.values()), len(come), before, after
    if kind == "reduce_scatter":
        return others * after, len(come), before, after
    return sum(come.values()), len(come), sum(gone.values()), sum(come.values())


@lru_cache(maxsize=65536)
def _others(side: int, before: Distribution, after: Distribution, rank: int) -> dict[int, int]:
    """The elements of each message that is no rank's own: the same, whatever a step between the two is called."""
    return {m.peer: len(m) for m in movement(before, after).messages(rank, side) if m.peer != rank and len(m)}


@lru_cache(maxsize=65536)
def _size(dist: Distribution, rank: int) -> int:
    return prod(dist.local_shape(rank)) if dist.holds(rank) else 0
