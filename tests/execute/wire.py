"""A program for any ranks: elements that are rounded to single precision while they travel, by every method.

Under mpiexec: `python wire.py NUMBER RANKS-PER-NODE`. In one process: `rote.run(check, ranks, (NUMBER,))`.
"""

from __future__ import annotations

import random
import sys
from contextlib import ExitStack
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from cases import pick_grid, pick_grids, pick_layout, pick_shape
from execute import methods, moves
from execute.recording import REDUCING, Recording
from layout import definition

import rote
from rote.compiler.step import LOCAL
from rote.errors import CommError
from rote.runtime.exchange.registry import METHODS
from rote.runtime.plans import BoundPlan

UNIT = 2.0**-24


def pairs(ranks, number):
    """Seeded pairs of distributions over so many ranks, a fifth of them from one grid to another, and a dtype."""
    pick = random.Random(f"wire {ranks}").choice
    for n in range(number):
        shape = pick_shape(pick)
        grids = pick_grids(pick, ranks) if n % 5 == 4 else (pick_grid(pick, ranks),) * 2
        ends = [pick_layout(pick, shape, grid).on(shape, grid) for grid in grids]
        real = any(dist.partial and dist.layout.op in ("max", "min") for dist in ends)
        yield *ends, np.dtype("f8" if real else pick(("f8", "c16")))


def blocks_of(source, dtype, seed):
    """A block for each rank, of an array or of contributions; hardly a number is one of single precision."""
    rng, shape = np.random.default_rng(seed), source.shape
    if source.partial:
        blocks = definition.contribute(source.layout, shape, source.grid.shape, rng, 1, 4)[1]
        return [(block * rng.uniform(-2, 2, block.shape)).astype(dtype) for block in blocks]
    scale = 2.0 ** rng.integers(-90, 90, shape)
    array = (rng.uniform(1, 2, (*shape, 2)) @ [1, -1j if dtype.kind == "c" else 0] * scale).astype(dtype)
    return definition.blocks(source.layout, source.grid.shape, array)


def by_definition(step, blocks):
    """Per rank, the block after a step of values, given those before: what the rank held is exact, all else rounded."""
    source, target = step.before, step.after
    dtype, numbers = blocks[0].dtype, np.arange(prod(source.shape)).reshape(source.shape)
    had, has = (definition.blocks(dist.layout, dist.grid.shape, numbers) for dist in (source, target))
    values = np.zeros(numbers.size, dtype)
    for index, block in zip(had, blocks, strict=True):
        values[index.reshape(-1)] = block.reshape(-1)
    travelled = values if step.wire is None else values.astype(step.wire).astype(dtype)
    keeps = step.kind != "allgather"  # in which all copies are rounded
    return [
        np.where(np.isin(index, mine) & keeps, values[index], travelled[index])
        for index, mine in zip(has, had, strict=True)
    ]


def close(found, exact, magnitude, plan):
    """Whether numbers are as near as is said: one rounding for each contribution in each step that rounds."""
    ops = {step.before.layout.op for step in plan.steps if step.before.partial}
    times = sum(step.wire is not None for step in plan.steps) * (plan.source.grid.size if "prod" in ops else 1)
    bound = np.where(found == exact, 0, magnitude * (times * UNIT + 64 * 2.0**-53) * (1 + 1e-6))
    difference = np.where(found == exact, 0, found) - np.where(
        found == exact, 0, exact
    )  # infinite where nothing enters
    return bool((np.abs(difference) <= bound).all())


def copies_agree(comm, dist, block):
    """Whether ranks that hold copies of one block hold the same bits."""
    at = dist.grid.coordinates(comm.rank)
    place = tuple(c for role, c in zip(dist.roles, at, strict=True) if role.name != "replicated")
    return len({text for there, text in comm.allgather_object((place, block.tobytes())) if there == place}) == 1


def amiss(comm, plan, name, seed):
    """What is wrong with a plan by one method on this rank, if anything."""
    entire = replace(plan, steps=tuple(replace(step, wire=None) for step in plan.steps))
    blocks = blocks_of(plan.source, plan.dtype, seed)
    mine = blocks[comm.rank].copy()
    program = BoundPlan(plan, comm, name)
    found = program(mine)
    again = program(mine)
    if not moves.same(found, again) or not moves.same(mine, blocks[comm.rank]):
        return "two runs differ, or the input was changed"
    exact = rote.simulate.run(entire, blocks)[comm.rank]
    reduced = [step for step in plan.steps if step.before.partial]
    largest = max(np.abs(block).max(initial=0) for block in blocks)
    magnitude = np.abs(exact)
    if reduced:
        op = reduced[0].before.layout.op
        magnitude = largest
        if op in ("sum", "prod"):
            positive = [np.abs(block).astype(plan.dtype) for block in blocks]
            magnitude = rote.simulate.run(entire, positive)[comm.rank].real
    if not close(found, exact, magnitude, plan):
        return f"{found} is not near {exact}"
    if name == "auto":  # some groups of ranks read shared memory, others send
        return "" if copies_agree(comm, plan.target, found) else "copies differ"
    if any(step.kind in REDUCING for step in plan.steps):
        return ""  # MPI adds in an order of its own
    right = exact if name == "shared" else rote.simulate.run(plan, blocks)[comm.rank]
    if not moves.same(found, right):
        return f"{found} is not {right}"
    if reduced or plan.target.partial:
        return ""
    if len(plan.steps) == 1 and name != "shared":
        right = by_definition(plan.steps[0], blocks)[comm.rank]
        if not moves.same(found, right):
            return f"{found} is not {right} by definition"
    scaled = BoundPlan(plan, comm, name, (np.array(0.3), np.array(0.9)), (np.array(0.7), np.array(1.1)))(mine)
    way = entire if name == "shared" else plan
    right = rote.simulate.run(way, [block * 0.3 * 0.9 for block in blocks])[comm.rank] * 0.7 * 1.1
    return "" if moves.same(scaled, right) else f"{scaled} is not {right}, multiplied before and after"


def check(comm, number, names=()):
    """Seeded plans by every method that these ranks can have; how many were rounded. A failure is one on all ranks."""
    rounded = 0
    names = [name for name in names or METHODS if name != "alltoallw" and not methods.absent(comm, name)]
    for seed, (source, target, dtype) in enumerate(pairs(comm.size, number)):
        plan = rote.compile(source, target, dtype, wire="f4")
        rounded += any(step.wire is not None for step in plan.steps)
        for name in names:
            wrong = amiss(comm, plan, name, seed)
            for rank, text in enumerate(comm.allgather_object(wrong)):
                assert not text, f"{plan}\nby {name} on rank {rank}: {text}"
    return rounded


def check_bytes(comm, number):
    """Over a communicator that counts: ranks receive the bytes that a plan claims, half where all its steps round."""
    recording, halved = Recording(comm), 0
    for seed, (source, target, dtype) in enumerate(pairs(comm.size, number)):
        plan = rote.compile(source, target, dtype, wire="f4")
        program = BoundPlan(plan, recording, "alltoallv")
        block = blocks_of(source, dtype, seed)[comm.rank]
        recording.take()
        held = block.nbytes + program(block).nbytes + program.workspace_bytes
        received = sum(call.nbytes for call in recording.take())
        everyone = comm.allgather_object((received, held))
        assert max(received for received, _ in everyone) == plan.cost.bytes, plan
        assert max(held for _, held in everyone) <= plan.cost.peak_bytes, plan
        steps = tuple(replace(step, wire=None) for step in plan.steps)
        if plan.cost.bytes and all(step.wire is not None or step.kind in LOCAL for step in plan.steps):
            assert 2 * plan.cost.bytes == replace(plan, steps=steps).cost.bytes, plan
            halved += 1
    return halved


def check_refusal(comm):
    """MPI cannot round what it picks out of blocks by datatypes, and says so on all ranks."""
    plan = rote.compile("[(0),()] -> [(),(0)]", shape=(2 * comm.size, 3), grid=comm.size, wire="f4")
    try:
        BoundPlan(plan, comm, "alltoallw")
    except CommError as error:
        return "write method='auto' or 'alltoallv', or leave wire out" in str(error)
    return False


if __name__ == "__main__":
    number, ranks_each = map(int, sys.argv[1:])
    with ExitStack() as changed:
        if ranks_each:
            changed.enter_context(methods.on_nodes(ranks_each))
        here = rote.runtime.world().split(0, 0)  # which keeps nothing of what others bound
        names = ("auto", "nodes", "two-level") if ranks_each else ()
        print("rounded", check(here, number, names), "refused", check_refusal(here))
