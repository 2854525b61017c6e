"""A program for any ranks: plans run over a recording communicator, and held to what they claim.

Under mpiexec: `python claims.py NUMBER`, of plans. In one process: `rote.run(check, ranks)`.
"""

from __future__ import annotations

import gc
import random
import sys
import tracemalloc
import weakref
from contextlib import contextmanager, suppress
from itertools import cycle, pairwise
from math import prod
from pathlib import Path
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from cases import pick_grid, pick_grids, pick_layout, pick_shape
from execute import methods, moves
from execute.recording import REDUCING, Recording

import rote
from rote.compiler.cost import flow
from rote.compiler.movement import RECEIVES
from rote.compiler.rules import one_step
from rote.compiler.step import LOCAL
from rote.errors import PlanError
from rote.runtime.comm import reductions, segments
from rote.runtime.copies import TILE
from rote.runtime.exchange.registry import METHODS
from rote.runtime.plans import BoundPlan, bind

CALLS = {
    "allgather": "allgatherv",
    "reduce_scatter": "reduce_scatter",
    "allreduce": "allreduce",
    "reduce": "reduce",
    "broadcast": "bcast",
    **dict.fromkeys(("alltoall", "permute", "scatter", "gather", "exchange"), "alltoallv"),
}
IN_PLACE = ("allreduce", "reduce", "broadcast")  # of these, a block is the buffer
MACHINES = (
    rote.Machine(),
    rote.Machine(latency=0, byte_time=1.0, copy_time=0, reduce_time=0, step_time=0),
    rote.Machine(latency=2e-6, byte_time=3e-9, copy_time=1e-9, step_time=1e-7),
)
LARGE = ((96, 84, 10), (211, 307), (60001,), (48, 36, 6, 8), (240, 240))
NOISE = 20_000  # bytes of Python's own objects during a call


def plans(ranks, number, seed=0, shapes=None):
    """Seeded plans over so many ranks: a third compiled, for several machines, a third of one step, the others of more.

    Those that are not compiled lead through layouts of any kind.
    """
    pick = random.Random(f"claims {seed} {ranks}").choice
    for _ in range(number):
        grid = pick_grid(pick, ranks)
        shape = pick(shapes) if shapes else pick_shape(pick)
        way = [pick_layout(pick, shape, grid).on(shape, grid) for _ in range(pick([2, 2, 3, 4]))]
        reduced = any(dist.partial for dist in way)
        dtype = np.dtype(pick(moves.DTYPES if reduced else moves.DTYPES + moves.MOVED))
        if pick([True, False, False]):
            yield rote.compile(way[0], way[-1], dtype, machine=pick(MACHINES))
        else:
            steps = tuple(step for ends in pairwise(way) if (step := one_step(*ends)))
            yield rote.Plan(way[0], way[-1], dtype, steps)


def compiled(ranks, number):
    """Seeded plans of larger blocks over so many ranks, a third from one grid to another; and with less memory."""
    pick = random.Random(f"compiled {ranks}").choice
    for _ in range(number):
        shape, one = pick(LARGE), pick_grid(pick, ranks)
        grids = pick([(one, one), (one, one), pick_grids(pick, ranks)])
        ends = [pick_layout(pick, shape, grid).on(shape, grid) for grid in grids]
        dtype = pick(("i8", "i4", "f8", "f4") if any(dist.partial for dist in ends) else ("f8", "c16", "i4"))
        fast = rote.compile(*ends, dtype, machine=pick(MACHINES))
        yield fast
        with suppress(PlanError):  # there is no leaner one
            yield rote.compile(*ends, dtype, machine=fast.machine, max_bytes=fast.cost.peak_bytes - 1)


def of_rank(array, grid, rank):
    """What an array that broadcasts over a grid says of one rank."""
    return int(np.broadcast_to(array, grid.shape)[grid.coordinates(rank)])


def receives(step, rank):
    """The messages that a rank receives in a step, as the compiler lists them."""
    return step.movement.messages(rank, RECEIVES)


def amiss(plan, rank, calls):
    """What is wrong with one rank's calls during a plan, step by step: "" if they are as the compiler counts them."""
    steps = [step for step in plan.steps if step.kind not in LOCAL]
    names = [call.name for call in calls]
    if names != [CALLS[step.kind] for step in steps]:
        return f"the steps {[step.kind for step in plan.steps]} called {names}"
    for step, call in zip(steps, calls, strict=True):
        claim, at = flow(step), (step.before.grid, rank)
        got = call.elements, call.messages
        if got != (of_rank(claim.elements, *at), of_rank(claim.messages, *at)):
            return f"{step}: {got} elements and messages, but {claim}"
        listed = {m.peer: prod(map(len, m.groups)) for m in receives(step, rank)}
        listed.pop(rank, None)
        if call.heard != {peer: size for peer, size in listed.items() if size}:
            return f"{step}: hears {call.heard}, but the plan lists {listed}"
        buffers = of_rank(claim.send_buffer, *at), of_rank(claim.receive_buffer, *at)
        if step.kind not in IN_PLACE and call.buffers != buffers:
            return f"{step}: buffers of {call.buffers} elements, but {buffers} are claimed"
    return ""


def mismatched(everyone):
    """Per call, pairs of ranks of which one sends what the other does not hear; given the calls of every rank."""
    return [
        (number, a, b)
        for number, calls in enumerate(zip(*everyone, strict=True))
        for a, mine in enumerate(calls)
        for b, theirs in enumerate(calls)
        if mine.sent.get(b) != theirs.heard.get(a)
    ]


def run(recording, plan, seed=0, cost=None):
    """Run a plan on this rank; what is wrong with it, if anything, the same on all ranks. `cost` is what it claims."""
    comm, cost = recording.comm, cost or plan.cost
    blocks = moves.blocks_of(plan.source, plan.dtype, seed)[1]
    mine = blocks[comm.rank]
    program = bind(plan, recording)
    recording.take()  # binding may split
    found = program(mine)
    calls = recording.take()
    wrong = amiss(plan, comm.rank, calls)
    if not wrong and not moves.same(found, rote.simulate.run(plan, blocks)[comm.rank]):
        wrong = "the block is not as simulated"
    held = mine.nbytes + found.nbytes + program.workspace_bytes
    everyone = comm.allgather_object((wrong, calls, held))
    if wrong := [f"rank {rank}, {wrong}" for rank, (wrong, _, _) in enumerate(everyone) if wrong]:
        return "\n".join([str(plan), *wrong])
    per_rank = [calls for _, calls, _ in everyone]
    if pairs := mismatched(per_rank):
        return f"{plan}\nnot heard as sent, in calls from rank to rank: {pairs}"
    figures = {
        "bytes": max(sum(call.nbytes for call in calls) for calls in per_rank),
        "messages": max(sum(call.messages for call in calls) for calls in per_rank),
        "peak_bytes": max(held for _, _, held in everyone),
    }
    claimed = {name: getattr(cost, name) for name in figures}
    return "" if figures == claimed else f"{plan}\nis {figures}, claims {claimed}"


def check(comm, number=150):
    """Seeded plans, each as claimed; a failure on any rank is one on all. Returns the kinds and numbers of steps."""
    recording, seen = Recording(comm), set()
    for seed, plan in enumerate(plans(comm.size, number)):
        seen.update((*(step.kind for step in plan.steps), len(plan.steps)))
        if wrong := run(recording, plan, seed):
            raise AssertionError(wrong)
    return seen


def cold(comm, plan, **scaled):
    """A plan bound to a communicator that lends no memory yet, and this rank's block, to run it on; by messages."""
    program, block = (
        BoundPlan(plan, comm, "alltoallv", **scaled),
        np.ones(plan.source.local_shape(comm.rank), plan.dtype),
    )
    program(block)  # what is made at the first call of all is not the plan's
    for key in [key for key in comm.cache if key == "workspace"]:
        del comm.cache[key]
    comm.barrier()
    return program, block


def factors(plan, rank):
    """A vector along the last mode and a scalar for either end of a plan, where a tensor may be multiplied."""
    ends = {"before": plan.source, "after": plan.target}
    return {
        name: (np.ones(dist.local_shape(rank)[-1:], plan.dtype), np.ones((), plan.dtype))
        for name, dist in ends.items()
        if not dist.partial or dist.layout.op == "sum"
    }


def taken(comm, plan, **scaled):
    """Bytes that this process takes to run a plan, its input among them, and those that it is said to need."""
    program, block = cold(comm, plan, **scaled)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    found = program(block)
    most = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    return block.nbytes + most, block.nbytes + found.nbytes + program.workspace_bytes


def measure(comm, number=60):
    """Seeded plans of larger blocks: a process takes the memory that it is said to need. Not for several threads.

    And nothing else, but a few tiles where it reduces or multiplies: copies of what is short, or buffers of NumPy's.
    """
    for plan in plans(comm.size, number, shapes=LARGE):
        reduces = any(step.before.partial for step in plan.steps)
        for scaled, tiles in (({}, 3 * reduces), (factors(plan, comm.rank), 4 + 2 * reduces)):
            more = tiles * TILE * plan.dtype.itemsize
            took, needs = taken(comm, plan, **scaled)
            everyone = comm.allgather_object((needs <= took <= needs + more + NOISE, took, needs))
            if not all(right for right, *_ in everyone) or max(n for *_, n in everyone) != plan.cost.peak_bytes:
                raise AssertionError(f"{plan}\ntook, needs: {everyone}, claims {plan.cost}")


UNEVEN = (  # some rank sends more than it receives
    ((131072, 1, 4), "block(0,0,1)[(),(0),()] -> cyclic(2)[(),(),(0)]"),
    ((300000,), "[()]|(0) -> block[(0)]"),
    ((500, 600), "[(),()]+(0) -> block[(0),()]"),
    ((300, 400), "block(299,1,0)[(0),()] -> block(1,0,399)[(),(0)]"),
)


def uneven():
    """Plans for three ranks in which some rank sends more than it receives."""
    for shape, text in UNEVEN:
        yield rote.compile(text, shape=shape, grid=3, dtype="c16")


@contextmanager
def shared_bytes():
    """The bytes of this process's own that other processes can map, as the first item of a list."""
    from rote.runtime.comm.mpi import MpiComm

    held, make, window = [0], segments._make_part, MpiComm.window

    def add(nbytes):
        held[0] += nbytes

    def counted(mark, nbytes):
        fd, part = make(mark, nbytes)
        base = part
        while isinstance(base, np.ndarray):
            base = base.base
        add(part.nbytes)
        weakref.finalize(base, add, -part.nbytes)
        return fd, part

    def counted_window(comm, nbytes):
        add(nbytes)
        return window(comm, nbytes)

    with patch.object(segments, "_make_part", counted), patch.object(MpiComm, "window", counted_window):
        yield held


def held_by(comm, plan, name, shared):
    """The bytes that this process holds to run a plan by a method, where it runs again; and those that it says."""
    shared[0] = 0
    block = np.ones(plan.source.local_shape(comm.rank), plan.dtype)
    program = BoundPlan(plan, team := comm.split(0, comm.rank), name)
    program(block)
    team.cache.pop("workspace", None)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    found = program(block)
    most = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    return block.nbytes + most + shared[0], block.nbytes + found.nbytes + program.workspace_bytes


def beside(plan):
    """The bytes that a rank may hold beside what its plan claims: Python's own, tiles, and floats in rank order."""
    reduces = any(step.before.partial for step in plan.steps)
    ordered = 2 * reductions._TILE * any(step.before.partial for step in plan.steps if step.kind in REDUCING)
    return NOISE + 3 * reduces * TILE * plan.dtype.itemsize + ordered * (plan.dtype.kind in "fc")


def hold(comm, number=60):
    """Law: no rank holds more than its plan claims, by the usual method and by any other, also within `max_bytes`.

    Each plan runs on a communicator of its own, by the usual method and by the others in turn.
    """
    names = cycle([name for name in METHODS if not methods.absent(comm, name)])
    with shared_bytes() as shared:
        for plan in (*(uneven() if comm.size == 3 else ()), *compiled(comm.size, number)):
            for name in ("auto", next(names)):
                both = comm.allgather_object(held_by(comm, plan, name, shared))
                took, says = (max(column) for column in zip(*both, strict=True))
                wrong = took > plan.cost.peak_bytes + beside(plan) or says > plan.cost.peak_bytes + NOISE
                assert not wrong, f"{plan}\nby {name} holds {took}, says {says}, claims {plan.cost.peak_bytes}"
                free(comm)


def free(comm):
    """Give back what ranks share, so that the next program finds none of it. Collective."""
    from rote.runtime.comm.mpi import _free_windows

    gc.collect()
    for each in comm._family:
        if each() is not None:
            _free_windows(each()._windows)
    segments._pool.cache_clear()
    segments._pool.sizes.clear()


if __name__ == "__main__":
    from rote.runtime import world

    here = world()
    check(here, number := int(sys.argv[1]))
    measure(here, number * 2 // 5)
    hold(here, number // 5)
    print("as claimed")
