"""Plans as functions of arrays of JAX: they equal simulation, with the collectives of their digits."""

from __future__ import annotations

import random

import numpy as np
from compiler.test_compiler_digits import blocks_of, cropped, grown, usual_pair
from devices import collectives, compiled, mesh_of, stacked

import rote
from rote.compiler.digits import Table
from rote.jax import lower


def check(source, target, seed):
    """Law: on all ranks, a lowered plan equals simulation bit for bit, with the collectives of its digits."""
    lowered = lower(rote.compile(source, target), mesh_of(source.grid.shape))
    padded, rng = lowered.digits.plan, np.random.default_rng(seed)
    numbers = [source.grid.shape[g] for g in source.partial]
    contributions = {
        at: grown(rng.integers(-9, 9, source.shape).astype("f8"), padded.source.shape) for at in np.ndindex(*numbers)
    }

    blocks = blocks_of(padded.source, contributions)
    program = stacked(lowered.local, lowered.mesh)
    results = cropped([*np.asarray(program(np.stack(blocks)))], padded.target)
    if not target.partial:
        expected = rote.simulate.run(padded, cropped(blocks, padded.source))
        for result, block in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, block)

    front = tuple(map(slice, source.shape))
    whole = rote.simulate.gather(results, padded.target)[front]
    np.testing.assert_array_equal(whole, sum(contributions.values())[front])

    if not any(isinstance(step, Table) for step in lowered.digits.steps):
        assert compiled(program, np.stack(blocks)) == collectives(lowered.digits)


def check_many(seeds):
    """The law, for random pairs."""
    for seed in seeds:
        ends = usual_pair(random.Random(seed).choice)
        try:
            check(*ends, seed)
        except Exception as error:
            raise AssertionError(f"{ends[0]} -> {ends[1]}, seed {seed}") from error


def test_lowered_plans_equal_simulation():
    """Law: on all ranks, lowered plans equal simulation bit for bit, with the collectives of their digits."""
    check_many(range(40))
