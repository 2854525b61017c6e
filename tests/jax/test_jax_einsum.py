"""Contractions on devices: NumPy's sums, whatever is in the padding, with the collectives of their moves."""

from __future__ import annotations

from collections import Counter

import jax
import numpy as np
import pytest
from contraction.contractions import blocks_of, contraction
from devices import collectives, compiled, mesh_of
from jax.sharding import PartitionSpec

import rote
from rote.functions.contraction.stages import Product
from rote.jax import from_global, lower, to_global


def spoiled(array, shape, rng):
    """An array at the front of one of a larger shape, with numbers behind it that must not matter."""
    larger = rng.integers(1, 99, shape).astype(array.dtype)
    larger[tuple(map(slice, array.shape))] = array
    return larger


def stacked(function, mesh):
    """A function of a rank's blocks as a compiled one of the blocks of all ranks, stacked in order."""
    spec = PartitionSpec(mesh.axis_names)

    def local(*stacks):
        return function(*[stack[0] for stack in stacks])[None]

    return jax.jit(jax.shard_map(local, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))


def inside(block, dist, rank, shape):
    """The elements of a block that are in a tensor of some shape, and their indices."""
    places = [np.flatnonzero(indices < n) for indices, n in zip(dist.indices(rank), shape, strict=True)]
    indices = [along[at] for along, at in zip(dist.indices(rank), places, strict=True)]
    return block[np.ix_(*places)], np.ix_(*indices)


def collectives_of(lowered):
    """How often a program has each collective, as the moves of all panels say."""
    count = Counter()
    for stage, moves in zip(lowered.plan.stages, lowered.moves, strict=False):
        panels = stage.panels.count if isinstance(stage, Product) and stage.panels else 1
        for of_tensor in filter(None, moves):
            for panel in range(panels):
                count += collectives(of_tensor[panel % len(of_tensor)].digits)
    return count


def check(plan, seed=0):
    """Law: blocks of all ranks make up NumPy's sum of products, with the collectives of the moves."""
    lowered, rng = lower(plan, mesh_of(plan.result.grid.shape)), np.random.default_rng(seed)
    arrays = [rng.integers(-(2**62), 2**62, dist.shape) for dist in plan.operands]

    stacks = []
    for array, dist in zip(arrays, lowered.operands, strict=True):
        blocks = blocks_of(spoiled(array, dist.shape, rng), dist, rng)
        stacks.append(np.stack([spoiled(block, dist.max_local_shape(), rng) for block in blocks]))
    program = stacked(lowered.local, lowered.mesh)

    dist, expected = lowered.result, np.asarray(np.einsum(str(plan.subscripts), *arrays))
    sums = dict[tuple[int, ...], list]()
    for rank, block in enumerate(np.asarray(program(*stacks))):
        alone = tuple(c for g, c in enumerate(dist.grid.coordinates(rank)) if g not in dist.partial)
        sums.setdefault(alone, []).append(inside(block, dist, rank, plan.result.shape))
    for parts in sums.values():
        np.testing.assert_array_equal(sum(block for block, _ in parts), expected[parts[0][1]])

    if not lowered.has_tables:
        count, planned = compiled(program, *stacks), collectives_of(lowered)
        sums, planned_sums = count.pop("all-reduce", 0), planned.pop("all-reduce", 0)
        assert count == planned
        assert min(1, planned_sums) <= sums <= planned_sums  # XLA makes one of several that do not depend on each other
    return lowered


def check_many(seeds):
    """The law, for random contractions."""
    for seed in seeds:
        plan = contraction(seed)
        try:
            check(plan, seed)
        except Exception as error:
            raise AssertionError(f"{plan}\nseed {seed}") from error


MATRICES = ("ik,kj->ij", [(64, 64), (64, 64)], ["block[(0),(1)]"] * 2)

KINDS = {
    "SUMMA": (*MATRICES, (2, 4), None, {}),
    "panels": (*MATRICES, (2, 2), None, {"max_bytes": 40_000}),
    "3-D": ("ik,kj->ij", [(64, 512), (512, 64)], ["block[(0),(1)]"] * 2, (2, 2, 2), None, {}),
    "chain": ("ab,bc,cd->ad", [(16, 32), (32, 32), (32, 8)], ["block[(0),(1)]"] * 3, (2, 4), None, {}),
    "inner": ("ij,ij->", [(64, 64)] * 2, ["block[(0),(1)]", "block[(1),(0)]"], (2, 4), None, {}),
    "batch": ("bik,bkj->bij", [(8, 4, 6), (8, 6, 4)], ["block[(0),(),()]", "block[(),(0),()]"], (4,), None, {}),
    "partial": (*MATRICES, (2, 4), "block[(0),()]+(1)", {}),
    "diagonal": ("iij->ij", [(12, 12, 5)], ["block[(0),(1),()]"], (2, 2), None, {}),
    "odd": ("ik,kj->ij", [(13, 17), (17, 29)], ["block[(0),(1)]", "[(0),(1)]"], (2, 4), None, {}),
    "odd panels": ("ik,kj->ij", [(50, 53), (53, 47)], ["block[(0),(1)]"] * 2, (2, 2), None, {"max_bytes": 26_000}),
    "tables": ("ik,k->i", [(13, 5), (5,)], ["block[(0:cyclic(2)),(1)]", "[(0:cyclic(3))]"], (2, 3), None, {}),
}


def plan_of(kind):
    """The contraction of a kind."""
    text, shapes, layouts, grid, layout, options = KINDS[kind]
    return rote.compile_einsum(text, shapes, layouts, grid=grid, dtype="i8", layout=layout, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_contractions_equal_numpy(kind):
    """Law: contractions of each kind equal NumPy's, with the collectives of their moves; clashing tiles have tables."""
    plan = plan_of(kind)
    assert any(stage.panels for stage in plan.stages if isinstance(stage, Product)) == ("panels" in kind)
    assert check(plan).has_tables == (kind == "tables")


def test_random_contractions_equal_numpy():
    """Law: on all ranks, lowered contractions equal NumPy's, with the collectives of their moves."""
    check_many(range(12))


@pytest.mark.slow
def test_more_random_contractions_equal_numpy():
    """The same for more of them."""
    check_many(range(12, 200))


def test_contractions_of_arrays_in_stored_order():
    """A contraction takes arrays of the shapes of its padded operands, in jit, and refuses others."""
    plan = rote.compile_einsum(
        "ik,kj->ij", [(13, 17), (17, 29)], ["block[(0),(1)]"] * 2, grid=(2, 4), layout="[(0),(1)]"
    )
    lowered, rng = lower(plan, mesh_of((2, 4))), np.random.default_rng(0)
    arrays = [rng.random(dist.shape) for dist in plan.operands]
    a, b = (from_global(x, dist, lowered.mesh) for x, dist in zip(arrays, lowered.operands, strict=True))

    product = to_global(jax.jit(lowered)(a, b), lowered.result, plan.result.shape)
    np.testing.assert_allclose(product, arrays[0] @ arrays[1], rtol=1e-14)

    with pytest.raises(rote.LayoutError, match="has 2 operands, not 1\nwrite one array for each"):
        lowered(a)
    with pytest.raises(rote.PlanError, match=r"the array has shape .*\nwrite rote.jax.from_global"):
        lowered(b, a)
    with pytest.raises(rote.PlanError, match="an array is of float32, its operand of float64"):
        lowered(a.astype("f4"), b)
    with pytest.raises(rote.PlanError, match=r"the mesh is 4x2 devices, and the grid is 2x4"):
        lower(plan, mesh_of((4, 2)))
    rooted = rote.compile_einsum("i->", [(4,)], ["[()]|(0)"], grid=2)
    with pytest.raises(rote.PlanError, match=r"is rooted, .*\nwrite a layout without"):
        lower(rooted, mesh_of((2,)))


def test_padding_holds_anything():
    """Law: not even what is no number gets out of the padding of operands."""
    plan = rote.compile_einsum("ik,kj->ij", [(5, 7), (7, 5)], ["block[(0),(1)]"] * 2, grid=(2, 2))
    lowered, arrays = lower(plan, mesh_of((2, 2))), [np.ones((5, 7)), np.ones((7, 5))]
    longer = [np.full(dist.shape, np.nan) for dist in lowered.operands]
    for larger, array in zip(longer, arrays, strict=True):
        larger[tuple(map(slice, array.shape))] = array

    a, b = (from_global(x, dist, lowered.mesh) for x, dist in zip(longer, lowered.operands, strict=True))
    assert a.shape == (6, 8)
    np.testing.assert_array_equal(to_global(jax.jit(lowered)(a, b), lowered.result, (5, 5)), np.full((5, 5), 7.0))


@pytest.mark.parametrize("options", [{}, {"max_bytes": 3_000}], ids=["whole", "panels"])
def test_gradients_of_contractions(options):
    """Law: gradients of a lowered contraction are those of one device, with padding."""
    ends = {"layouts": ["block[(0),(1)]"] * 2, "layout": "block[(0),(1)]"}
    plan = rote.compile_einsum("ik,kj->ij", [(13, 17), (17, 11)], grid=(2, 2), **ends, **options)
    assert any(stage.panels for stage in plan.stages if isinstance(stage, Product)) == bool(options)

    lowered, rng = lower(plan, mesh_of((2, 2))), np.random.default_rng(0)
    arrays = [rng.random(dist.shape) for dist in plan.operands]
    stored = [from_global(x, dist, lowered.mesh) for x, dist in zip(arrays, lowered.operands, strict=True)]
    gradients = jax.jit(jax.grad(lambda a, b: jax.numpy.sum(lowered(a, b) ** 2), (0, 1)))(*stored)

    expected = jax.grad(lambda a, b: jax.numpy.sum((a @ b) ** 2), (0, 1))(*arrays)
    for gradient, dist, right in zip(gradients, lowered.operands, expected, strict=True):
        np.testing.assert_allclose(to_global(gradient, dist, right.shape), right, rtol=1e-13)
