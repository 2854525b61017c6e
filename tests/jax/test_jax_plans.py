"""Plans as functions of arrays of JAX: they equal simulation, on eight devices that are this machine's processors."""

from __future__ import annotations

import random
import re
from collections import Counter

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from jax.sharding import PartitionSpec

import rote
from compiler.test_compiler_digits import blocks_of, cropped, grown, usual_pair
from rote.compiler.digits import Table
from rote.jax import from_global, lower, sharding, stored_shape, to_global

NAMES = ("x", "y", "z")
HLO = {"exchange": "all-to-all", "gather": "all-gather", "permute": "collective-permute"}


@pytest.fixture(autouse=True)
def wide():
    """Elements of 64 bits, which JAX has only if it is told to."""
    jax.config.update("jax_enable_x64", True)


def mesh_of(dist):
    """A mesh whose axes are the modes of the grid."""
    devices = np.array(jax.devices()[: dist.grid.size]).reshape(dist.grid.shape)
    return jax.sharding.Mesh(devices, NAMES[: dist.grid.order])


def stacked(function, mesh):
    """A function of a rank's block as one of the blocks of all ranks, one after the other."""
    spec = PartitionSpec(mesh.axis_names)
    mapped = jax.shard_map(lambda x: function(x[0])[None], mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    return jax.jit(mapped)


def collectives(lowered):
    """How often a program has each collective of XLA, as its operations say."""
    count = Counter()
    for step in lowered.digits.steps:
        for operation in step.operations:
            if operation.kind == "reduce":
                count["reduce-scatter" if operation.leaving else "all-reduce"] += 1
            elif operation.kind in HLO:
                count[HLO[operation.kind]] += 1
    return count


def compiled(program):
    """How often the text of a compiled program has each collective."""
    kinds = ["reduce-scatter", "all-reduce", *HLO.values()]
    return +Counter({kind: len(re.findall(rf" {kind}(?:-start)?\(", program)) for kind in kinds})


def check(source, target, seed):
    """Law: on all ranks, a lowered plan equals simulation bit for bit, with the collectives of its digits."""
    lowered = lower(rote.compile(source, target), mesh_of(source))
    padded, rng = lowered.digits.plan, np.random.default_rng(seed)
    numbers = [range(source.grid.shape[g]) for g in source.partial]
    contributions = {
        at: grown(rng.integers(-9, 9, source.shape).astype("f8"), padded.source.shape)
        for at in np.ndindex(*[len(some) for some in numbers])
    }

    blocks = blocks_of(padded.source, contributions)
    program = stacked(lowered.local, lowered.mesh).lower(np.stack(blocks)).compile()
    results = cropped([*np.asarray(program(np.stack(blocks)))], padded.target)
    if not target.partial:
        expected = rote.simulate.run(padded, cropped(blocks, padded.source))
        for result, block in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, block)
    whole = rote.simulate.gather(results, padded.target)[tuple(map(slice, source.shape))]
    np.testing.assert_array_equal(whole, sum(contributions.values())[tuple(map(slice, source.shape))])

    if not any(isinstance(step, Table) for step in lowered.digits.steps):
        assert compiled(program.as_text()) == collectives(lowered)
    return lowered


def check_many(seeds):
    for seed in seeds:
        ends = usual_pair(random.Random(seed).choice)
        try:
            check(*ends, seed)
        except Exception as error:
            raise AssertionError(f"{ends[0]} -> {ends[1]}, seed {seed}") from error


def test_lowered_plans_equal_simulation():
    """Law: on all ranks, lowered plans equal simulation bit for bit, with the collectives of their digits."""
    check_many(range(40))
