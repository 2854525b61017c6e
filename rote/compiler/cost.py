"""The costs of plans: bytes, messages and peak memory, counted exactly, and seconds by a model of the machine.

Elements are counted as a good algorithm receives them, contributions to a sum included. Over p ranks, a reduce_scatter
brings a rank p - 1 contributions to each element of its part. An allreduce of blocks of n elements brings each rank
2 n (p - 1) / p, which no algorithm goes below (Chan et al. 2007), and a reduce to a root n elements to the root and
n (p - 2) / (p - 1) to the others. Messages are counted as the caller of a collective sees them: in a reduction, one
from each other rank. A rank that moves elements sends a message to each rank that needs some, as all methods do.

MPI's own collectives may have an algorithm with fewer rounds and one with fewer bytes (Popovici et al. 2019, eq. 18 to
21, with one port); the model takes the seconds of the cheaper one. It assumes that the MPI library chooses well among
them, and does not choose for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..caches import memoized
from ..layout.distribution import Distribution
from ..layout.grid import Grid
from ..machines.machine import Machine, Slowest, Times, slowest_of
from .movement import RECEIVES, SENDS, Movement
from .step import LOCAL, Step
from .volumes import block_sizes, largest_block, over_ranks

__all__ = ["Cost", "Duration", "Flow", "at_least", "at_least_in_two", "duration", "flow", "peak", "steps_cost"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating[Any]]
_ELEMENTS, _MESSAGES = 0, 1  # places in a `Traffic`
_OF_BLOCKS = ("allreduce", "reduce", "broadcast", "allgather", "reduce_scatter")  # collectives of whole blocks


@dataclass(frozen=True, slots=True)
class Cost:
    """The costs of a plan.

    Attributes
    ----------
    seconds : float
        The model's time (see `Machine`).
    bytes : int
        The most bytes that any one rank receives.
    messages : int
        The most messages that any one rank receives.
    peak_bytes : int
        The most that any one rank holds at once: input, output and every buffer. For elements that are rounded to
        travel, the buffers need only half of the bytes that are counted. Reductions of floats by MPI ranks of one node
        need up to 1 MiB more, in which they meet in rank order.

    Examples
    --------
    >>> import rote
    >>> cost = rote.compile("block[(0),()] -> block[(),(0)]", shape=(6, 4), grid=2).cost
    >>> cost.bytes, cost.messages, cost.peak_bytes
    (48, 1, 288)
    """

    seconds: float
    bytes: int
    messages: int
    peak_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """Elements and messages that each rank receives in a step, and the sizes of its two buffers.

    The arrays broadcast over the grid of `step.ranks`.
    """

    elements: Ints
    messages: Ints
    send_buffer: Ints
    receive_buffer: Ints


@dataclass(frozen=True, slots=True)
class Duration:
    """The duration of a step: the model's seconds, the rounds of messages, and the algorithm that takes them."""

    seconds: float
    rounds: int
    algorithm: str


def flow(step: Step) -> Flow:
    """Count what every rank receives in a step, and the buffers that it needs."""
    source, target = step.before, step.after
    if step.kind in LOCAL:
        zero = _zero(step)
        return Flow(zero, zero, zero, zero)

    move = step.movement
    if step.kind not in _OF_BLOCKS:  # a message for each pair of ranks, of which only the elements are in buffers
        elements, messages = move.traffic(RECEIVES)
        return Flow(elements, messages, move.traffic(SENDS).elements, elements)

    others = prod([source.grid.shape[g] for g in step.grid_modes]) - 1
    before, after = block_sizes(source), block_sizes(target)
    # The contributions to an element pass through all ranks one after another, and the sum passes back. Only the first
    # and the last rank receive nothing in one of the two, and each is so for its part of the elements.
    if step.kind == "allreduce":
        return Flow(2 * after - 2 * after // (others + 1), others * (after > 0), _zero(step), _zero(step))
    if step.kind == "reduce":  # the root is last for all, each other rank first for its part
        sent = before * (after == 0)
        return Flow(after + sent - sent // max(others, 1), others * (after > 0), sent, _zero(step))
    if step.kind == "broadcast":
        needed = after * (before == 0)
        return Flow(needed, (needed > 0).astype(np.int64), _zero(step), _zero(step))

    elements, messages = move.traffic(RECEIVES)  # of an allgather or a reduce_scatter
    return Flow(elements, messages, before, after)


def _zero(step: Step) -> Ints:
    return np.zeros((1,) * step.ranks.order, np.int64)


def peak(step: Step, source: Distribution, target: Distribution, first: bool, last: bool) -> int:
    """The most elements that a rank holds during a step. The plan's input and output are held throughout."""
    blocks = [source, target]
    if not first:
        blocks.append(step.before)
    if not last:
        blocks.append(step.after)

    moved = flow(step)
    sizes = [(dist.grid, block_sizes(dist)) for dist in blocks]
    return int(_total([*sizes, (step.ranks, moved.send_buffer + moved.receive_buffer)]).max())


def _total(counts: Sequence[tuple[Grid, Ints]]) -> Ints:
    """The sum of arrays that broadcast over grids: over the grid that refines all of them.

    >>> _total([(Grid((2, 2)), np.array([[1, 2], [3, 4]])), (Grid((4,)), np.array([10]))])
    array([[11, 12],
           [13, 14]])
    """
    if len({grid.shape for grid, _ in counts}) == 1:
        return np.asarray(sum([count for _, count in counts]))
    ranks = reduce(Grid.refine, [grid for grid, _ in counts])
    return np.asarray(sum([over_ranks(count, grid, ranks) for grid, count in counts]))


@memoized(16384)  # a search asks for the same bound at several places
def at_least(move: Movement, item: int, machine: Machine, sent: int = 0) -> float:
    """A lower bound on the seconds of any plan: one step and, on the slowest rank, a message, its bytes and its block.

    Elements have `item` bytes, and at least `sent` in a message if that is not 0.

    The bound never exceeds the cost of a plan, and is consistent: at_least(a, c) <= duration(a -> b) + at_least(b, c).
    """
    source, target = move.ends
    needed = move.needed
    if not needed.any() and source.meaning == target.meaning:
        return 0.0
    times, copied = machine.at_best_along(source.grid, target.grid), move.stored
    seconds = float(_arriving(needed, copied, times, item, sent).max())

    if source.partial:  # an average rank receives contributions and copies, adds contributions, and copies its block
        before, after = (prod([end.grid.shape[g] for g in end.partial]) for end in (source, target))
        added = prod(source.shape) * max(before - after, 0) / source.grid.size
        received = move.receipts / source.grid.size * (sent or item) * min(times.byte_time)
        copies = 0.0 if move.across else float(copied.mean())
        seconds = max(seconds, received + item * (added * min(times.reduce_time) + copies * min(times.copy_time)))
    return machine.step_time + seconds


def _arriving(needed: Ints, copied: Ints, times: Times, item: int, sent: int) -> Floats:
    """The seconds of each rank at the machine's best times: a message, the bytes that it needs, and its copies."""
    byte_time = min(times.byte_time) * ((sent or item) / item)
    seconds: Floats = min(times.latency) * (needed > 0) + item * (byte_time * needed + min(times.copy_time) * copied)
    return seconds


@memoized(16384)
def at_least_in_two(move: Movement, item: int, machine: Machine, sent: int = 0) -> float:
    """A lower bound on the seconds of any plan of two steps or more, on one grid.

    If the source splits along all grid modes, it has no replicas, so a rank packs what another one needs at least once:
    its whole block if the target has copies. The layout between the steps holds all elements too, so on average a rank
    copies its share once more.
    """
    source, target = move.ends
    least = machine.step_time + at_least(move, item, machine, sent)
    modes = [g for g, p in enumerate(source.grid.shape) if p > 1]
    if move.across or any(source.roles[g].name != "split" for g in modes):
        return least

    roles = {target.roles[g].name for g in modes}
    if not roles <= {"split", "replicated"}:
        return least

    # Every layout on the way holds all elements, so that blocks are no smaller than an average rank's share.
    along, ranks = machine.along(source.grid), source.grid.shape
    share, largest = prod(source.shape) // prod(ranks), largest_block(target)
    times, last = (machine.in_cache(along, item * (share + other)) for other in (share, largest))

    packed = block_sizes(source) - (0 if "replicated" in roles else move.kept)
    seconds = _arriving(move.needed, packed, times, item, sent) + item * min(last.copy_time) * block_sizes(target)
    again = item * min(times.copy_time) * prod(source.shape) / prod(ranks)
    farther = (sent or item) * _farther(move, times.byte_time, modes)
    mean = np.broadcast_to(seconds, ranks or 1).mean() + again + farther
    return 2 * machine.step_time + float(max(seconds.max(), mean))


def _farther(move: Movement, times: tuple[float, ...], modes: list[int]) -> float:
    """The seconds beyond the best time in which an average rank is sent elements of one byte, because modes are slow.

    Ranks that have equal coordinates along slow modes share what reaches them: to each such group, what no rank of it
    has at the beginning comes at least once along these modes. The source has no replicas.
    """
    target, total = move.target, 0.0
    for faster, slower in pairwise(sorted({times[g] for g in modes})):
        slow = tuple([g for g in modes if times[g] >= slower])
        arrived = move.received - move.traffic(RECEIVES, slow).elements

        copies = prod([target.grid.shape[g] for g in modes if g not in slow and target.roles[g].name == "replicated"])
        total += (slower - faster) * float(arrived.mean()) / copies
    return total


@memoized(65536)
def duration(step: Step, item: int, machine: Machine) -> Duration:
    """The model's time for a step whose elements have `item` bytes: its slowest rank, with its fastest algorithm.

    Rounding an element while it is packed takes as long as copying it.
    """
    times = machine.along(step.before.grid)
    if machine.cache:
        times = machine.in_cache(times, item * (largest_block(step.before) + largest_block(step.after)))
    seconds, rounds, algorithm = min(_algorithms(step, item, times))
    return Duration(machine.step_time + seconds, rounds, algorithm)


def _algorithms(step: Step, item: int, times: Times) -> list[tuple[float, int, str]]:
    """The algorithms that can do a step, as (seconds, rounds, name)."""
    source, move = step.before, step.movement
    modes = [g for g in step.grid_modes if source.grid.shape[g] > 1] or [*range(len(times.latency))]
    slowest = slowest_of(times, tuple(modes))
    copied = (flow(step).send_buffer + move.stored) * (item * slowest.copy)

    ranks = prod([source.grid.shape[g] for g in step.grid_modes])
    rounds = (ranks - 1).bit_length()
    if step.kind in LOCAL:
        return [(float(copied.max()), 0, "")]
    if step.kind in ("allreduce", "reduce", "broadcast"):
        return _of_whole_blocks(step.kind, item * int(block_sizes(source).max()), ranks, rounds, slowest)

    sent = step.sent(item)
    received = _weighted(move, sent, times.byte_time, modes, RECEIVES, _ELEMENTS)
    combined = 0.0 * received
    if source.partial and step.kind != "allgather":
        combined = move.received * (item * slowest.reduce)

    if step.kind in ("allgather", "reduce_scatter"):
        return [(rounds * slowest.latency + float((received + combined + copied).max()), rounds, "tree")]

    if "rooted" in [role.name for g, role in enumerate(source.roles) if g in modes]:  # the root has to send everything
        received = np.maximum(received, _weighted(move, sent, times.byte_time, modes, SENDS, _ELEMENTS))

    heard = _weighted(move, 1, times.latency, modes, RECEIVES, _MESSAGES)
    waits = np.maximum(heard, _weighted(move, 1, times.latency, modes, SENDS, _MESSAGES))
    most = max([int(move.traffic(side).messages.max()) for side in (SENDS, RECEIVES)])
    return [(float((waits + received + combined + copied).max()), most, "pairwise")]


def _of_whole_blocks(kind: str, block: int, ranks: int, rounds: int, slowest: Slowest) -> list[tuple[float, int, str]]:
    """Algorithms of collectives that move whole blocks of `block` bytes: in one piece along a tree, or in parts."""
    once = slowest.copy * block
    combine = 0.0 if kind == "broadcast" else slowest.reduce * block
    share = (ranks - 1) / ranks
    whole = once + rounds * (slowest.latency + slowest.byte * block + combine)
    parts = once + 2 * rounds * slowest.latency + 2 * share * slowest.byte * block + share * combine
    return [(whole, rounds, "tree"), (parts, 2 * rounds, "in parts")]


def _weighted(move: Movement, item: int, times: tuple[float, ...], modes: list[int], side: int, volume: int) -> Floats:
    """The time of elements or messages with other ranks, each at the slowest grid mode between the two ranks."""
    if move.across:  # no mode of either grid tells which ranks are far from each other
        return np.asarray(move.traffic(side)[volume] * (item * max(times)), np.float64)

    levels = sorted({times[g] for g in modes})
    if len(levels) == 1:  # all ranks are as far away: no arrays of differences
        return np.asarray(move.traffic(side)[volume] * (item * levels[0]), np.float64)

    total: Floats = np.zeros((1,) * len(move.source.grid.shape))
    below: Ints = np.zeros(total.shape, np.int64)
    for time in levels:
        slower = tuple([g for g in modes if times[g] > time])
        upto = move.traffic(side, slower)[volume]
        total = total + (upto - below) * (item * time)
        below = upto
    return total


@memoized(4096)
def steps_cost(
    source: Distribution, target: Distribution, steps: tuple[Step, ...], item: int, machine: Machine
) -> Cost:
    """The cost of a plan: bytes and messages are summed over its steps for each rank, and the largest sum counts.

    `item` is the size of an element in bytes.
    """
    start = (source.grid, np.zeros((1,) * source.grid.order, np.int64))
    received, messages, seconds = [start], [start], 0.0

    highest = int(_total([(dist.grid, block_sizes(dist)) for dist in (source, target)]).max())

    for number, step in enumerate(steps, 1):
        moved = flow(step)
        received.append((step.ranks, moved.elements * step.sent(item)))
        messages.append((step.ranks, moved.messages))
        highest = max(highest, peak(step, source, target, number == 1, number == len(steps)))
        seconds += duration(step, item, machine).seconds
    return Cost(seconds, int(_total(received).max()), int(_total(messages).max()), highest * item)
