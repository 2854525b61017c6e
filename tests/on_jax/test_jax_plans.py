"""Plans as functions of arrays of JAX: they equal simulation, with the collectives of their digits."""

from __future__ import annotations

import random

import jax
import numpy as np
import pytest
from compiler.test_compiler_digits import blocks_of, cropped, grown, usual_pair
from devices import collectives, compiled, mesh_of, stacked
from marks import examples

import rote
from rote.compiler.digits import Table
from rote.jax import lower, virtual


def check(source, target, seed):
    """Law: on all ranks, a lowered plan equals simulation bit for bit, with the collectives of its digits.

    On one device, which runs all ranks, it gives the same.
    """
    lowered = lower(rote.compile(source, target), mesh_of(source.grid.shape))
    padded, rng = lowered.digits.plan, np.random.default_rng(seed)
    numbers = [source.grid.shape[g] for g in source.partial]
    contributions = {
        at: grown(rng.integers(-9, 9, source.shape).astype("f8"), padded.source.shape) for at in np.ndindex(*numbers)
    }

    blocks = blocks_of(padded.source, contributions)
    program = stacked(lowered.local, lowered.mesh)
    stack = np.asarray(program(np.stack(blocks)))
    results = cropped([*stack], padded.target)
    if not target.partial:
        expected = rote.simulate.run(padded, cropped(blocks, padded.source))
        for result, block in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, block)

    front = tuple(map(slice, source.shape))
    whole = rote.simulate.gather(results, padded.target)[front]
    np.testing.assert_array_equal(whole, sum(contributions.values())[front])

    np.testing.assert_array_equal(jax.jit(virtual(lowered))(np.stack(blocks)), stack)
    if not any(isinstance(step, Table) for step in lowered.digits.steps):
        assert compiled(program, np.stack(blocks)) == collectives(lowered.digits)


@pytest.mark.parametrize(
    "part", [*range(4), *(pytest.param(part, marks=pytest.mark.slow) for part in range(4, 4 + examples(196)))]
)
def test_lowered_plans_equal_simulation(part):
    """The law, for random pairs: blocks, cyclic, nested, replicated and partial, on grids of 2 to 8 devices."""
    for seed in range(10 * part, 10 * (part + 1)):
        ends = usual_pair(random.Random(seed).choice)
        try:
            check(*ends, seed)
        except Exception as error:
            raise AssertionError(f"{ends[0]} -> {ends[1]}, seed {seed}") from error


@pytest.mark.parametrize("op", ["max", "min", "prod", "sum"])
@pytest.mark.parametrize("dtype", ["i4", "?", "f8"])
def test_contributions_combine_by_their_reduction(op, dtype):
    """Every reduction, to whole and to split modes and by a table, equals simulation; and so does a filled target."""
    rng = np.random.default_rng(0)
    for source, target in ((f"[()]+{op}(0)", "[()]"), (f"[()]+{op}(0)", "[(0)]"), ("block[(0)]", f"[()]+{op}(0)")):
        for extent in (8, 9):
            plan = rote.compile(f"{source} -> {target}", shape=extent, grid=4, dtype=dtype)
            lowered = lower(plan, mesh_of((4,)), pad=False)
            shapes = [lowered.source.local_shape(rank) for rank in range(4)]
            blocks = [rng.integers(0, 3, shape).astype(dtype) for shape in shapes]
            stack = np.stack([grown(block, lowered.source.max_local_shape()) for block in blocks])
            results = cropped([*np.asarray(stacked(lowered.local, lowered.mesh)(stack))], lowered.target)
            whole, expected = (
                rote.simulate.gather(some, lowered.target) for some in (results, rote.simulate.run(plan, blocks))
            )
            np.testing.assert_array_equal(whole, expected)
