"""A program for any ranks: transitions on real ranks, bit-identical to `simulate` and right by definition.

Under mpiexec: `python moves.py NUMBER`, of transitions, or `python moves.py leak`. In one process: `rote.run(check,
ranks)`.
"""

from __future__ import annotations

import random
import sys
import tracemalloc
from itertools import chain
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from cases import pick_grid, pick_grids, pick_layout, pick_shape
from layout import definition

import rote
from rote.errors import CommError, LayoutError
from rote.runtime.plans import bind

DTYPES = ("i8", "i4", "u1", "?", "i2", "u8")
MOVED = ("f8", "c16", "f4", "g", "c8", "G")


def transitions(ranks, number, seed=0):
    """Seeded pairs of distributions over so many ranks, and a dtype: floats where nothing is reduced."""
    pick = random.Random(f"{seed} {ranks}").choice
    for _ in range(number):
        grid, shape = pick_grid(pick, ranks), pick_shape(pick)
        source, target = (pick_layout(pick, shape, grid).on(shape, grid) for _ in range(2))
        yield source, target, np.dtype(pick(DTYPES if source.partial or target.partial else DTYPES + MOVED))


def transitions_across(ranks, number, seed=0):
    """The same from one grid over so many ranks to another."""
    pick = random.Random(f"across {seed} {ranks}").choice
    for _ in range(number):
        grids, shape = pick_grids(pick, ranks), pick_shape(pick)
        source, target = (pick_layout(pick, shape, grid).on(shape, grid) for grid in grids)
        yield source, target, np.dtype(pick(DTYPES if source.partial or target.partial else DTYPES + MOVED))


def blocks_of(source, dtype, seed):
    """An array and its blocks: global indices where nothing is reduced, else random contributions."""
    shape, grid = source.shape, source.grid.shape
    if source.partial:
        # Nothing overflows: how an overflow ends is each MPI's own affair (Open MPI's sums of 8 bits saturate).
        low, high = (-50, 50) if dtype.kind == "i" and dtype.itemsize > 1 else (0, 8)
        if source.layout.op == "prod":
            low, high = (0, 4) if dtype.itemsize > 1 else (0, 2)
        array, blocks = definition.contribute(source.layout, shape, grid, np.random.default_rng(seed), low, high)
        return array.astype(dtype), [block.astype(dtype) for block in blocks]
    numbers = np.arange(int(np.prod(shape, dtype=int))).reshape(shape)
    array = numbers.astype(dtype) * (1 + 2j if dtype.kind == "c" else 1)
    return array.astype(dtype), definition.blocks(source.layout, grid, array.astype(dtype))


def same(found, right):
    """Whether two blocks are the same, bit for bit (the unused bytes of a long double apart)."""
    if (found.shape, found.dtype) != (right.shape, right.dtype):
        return False
    return np.array_equal(found, right) if found.dtype.char in "gG" else found.tobytes() == right.tobytes()


def move(comm, source, target, dtype, seed, method="auto"):
    """One transition on this rank, three times over the same program; what is wrong with it, if anything."""
    plan = rote.compile(source, target, dtype)
    array, blocks = blocks_of(source, dtype, seed)
    mine = blocks[comm.rank]
    before = mine.copy()
    program = bind(plan, comm, method)
    first = program(mine)
    second = program(mine)
    out = np.full((*first.shape, 2), 1, dtype)[..., 0]  # not contiguous
    given = program(mine, out=out)
    apart = np.full((*mine.shape, 2), 1, dtype)[..., 0]
    apart[...] = mine
    from_apart = program(apart)
    right = rote.simulate.run(plan, blocks)[comm.rank]
    grids = " to ".join(dict.fromkeys(str(dist.grid) for dist in (source, target)))
    what = f"{source.layout} -> {target.layout} of {source.shape} {dtype} on {grids}, rank {comm.rank}, by {method}"
    if given is not out:
        return f"{what}: out is not what is returned"
    if not np.array_equal(mine, before):
        return f"{what}: the input was changed"
    if bind(plan, comm, method) is not program:
        return f"{what}: bound twice"
    for found in (first, second, out, from_apart):
        if not same(found, right):
            return f"{what}:\n{found}\nis not\n{right}"
        if np.shares_memory(found, mine):
            return f"{what}: the result aliases the input"
    if np.shares_memory(first, second):
        return f"{what}: two results are one"
    if not (source.partial or target.partial) and first.size:
        expected = definition.blocks(target.layout, target.grid.shape, array)[comm.rank]
        if not np.array_equal(first, expected):
            return f"{what}: {first} is not {expected} by definition"
    return ""


def check(comm, number=300, method="auto"):
    """A seeded set of transitions, and some from one grid to another; a failure on any rank is one on all.

    Returns the kinds of the steps taken.
    """
    kinds = set()
    moves = chain(transitions(comm.size, number), transitions_across(comm.size, number // 5))
    for seed, (source, target, dtype) in enumerate(moves):
        kinds.update(step.kind for step in rote.compile(source, target, dtype).steps)
        wrong = move(comm, source, target, dtype, seed, method)
        if wrong:
            raise AssertionError(wrong)
    return kinds


def raised(kind, call):
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")


def check_refusals(comm):
    """A block of another shape or dtype and a grid of other ranks are refused, with the same rule on every rank."""
    plan = rote.compile("[(0),()] -> [(),(0)]", shape=(2 * comm.size, 3), grid=comm.size)
    program = bind(plan, comm)
    block = np.zeros((2, 3))
    target = plan.target.local_shape(comm.rank)
    for wrong in (np.zeros((1, 3)), np.zeros((2, 3, 1)), np.zeros((2, 3), "f4"), np.zeros(6)):
        assert f"the block of rank {comm.rank} is {wrong.shape} {wrong.dtype}" in raised(
            LayoutError, lambda wrong=wrong: program(wrong)
        )
    text = raised(LayoutError, lambda: program(block, out=np.zeros((9, 9))))
    assert f"out of rank {comm.rank} is (9, 9) float64" in text and f"wants {target} float64" in text
    assert program(block).shape == target
    other = rote.compile("[(0)] -> [()]", shape=7, grid=comm.size + 1)
    text = raised(CommError, lambda: bind(other, comm))
    assert text == (
        f"grid {comm.size + 1} has {comm.size + 1} ranks, but the communicator has {comm.size}; "
        f"start {comm.size + 1} ranks or give another grid"
    )
    comm.barrier()


def resident():
    """Bytes of memory in use by this process (0 where /proc does not say)."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * 4096 if statm.exists() else 0


def check_no_leak(comm, rounds=12_000):
    """Many redistributions and binds, of more plans than are kept, neither leak nor exhaust communicators."""
    plans = [
        rote.compile(f"{a} -> {b}", shape=(n, 3), grid=(1, comm.size) if n % 2 else (comm.size, 1), dtype=dtype)
        for n in range(2, 22)
        for dtype in ("f8", "i4")
        for a, b in (("[(0),(1)]", "[(1),(0)]"), ("block[(0,1),()]", "[(),(0)]"))
    ]
    blocks = [np.zeros(plan.source.local_shape(comm.rank), plan.dtype) for plan in plans]
    assert len(plans) > 64  # more than a communicator keeps
    warm, cycle = rounds // 4, 4 * len(plans)  # after a cycle the same programs are kept as before it
    after_warm_up = 0
    for turn in range(rounds):
        at = turn // 4 % len(plans) if turn % 4 == 0 else turn % 3  # one in four is bound anew
        bind(plans[at], comm)(blocks[at])
        if turn == warm:
            comm.barrier()
            after_warm_up = resident()
            if comm.rank == 0:
                tracemalloc.start()
            comm.barrier()
        elif turn == warm + cycle:
            traced = tracemalloc.get_traced_memory()[0] if comm.rank == 0 else 0
        elif turn == warm + 2 * cycle:
            comm.barrier()
            if comm.rank == 0:
                grown = tracemalloc.get_traced_memory()[0] - traced
                tracemalloc.stop()
                assert grown < 200_000, f"{grown} bytes of Python objects leak"
            comm.barrier()
    assert resident() - after_warm_up < 20_000_000, "memory leaks"
    assert len([key for key in comm.cache if key != "programs"]) <= 12


if __name__ == "__main__":
    from rote.runtime import world

    here = world()
    if sys.argv[1:] == ["leak"]:
        check_no_leak(here)
        print("no leak")
    else:
        from execute import factors

        found = check(here, number := int(sys.argv[1]))
        check_refusals(here)
        factors.check(here, number // 5)
        print(f"right: {len(found)} kinds")
