"""Contractions on devices: NumPy's sums, whatever is in the padding, with the collectives of their moves."""

from __future__ import annotations

from collections import Counter

import jax
import numpy as np
import pytest
from contraction.contractions import blocks_of, contraction
from devices import collectives, compiled, mesh_of
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from marks import examples

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
    spec = P(mesh.axis_names)

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
        np.testing.assert_array_equal(rote.jax.virtual(lowered)(*stacks), program(*stacks))
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
    check_many(range(12, 12 + examples(188)))


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
    cropped = jax.jit(lambda *arrays: lowered.crop(lowered(*lowered.pad(*arrays))))(*arrays)
    np.testing.assert_array_equal(cropped, product)

    for call in (lowered, lowered.pad, lowered.local):
        with pytest.raises(rote.LayoutError, match="has 2 operands, not 1\nwrite one array for each"):
            call(a)
    with pytest.raises(rote.PlanError, match=r"the array has shape .*\nwrite rote.jax.from_global"):
        lowered(b, a)
    with pytest.raises(rote.PlanError, match="the array is of float32, and the plan of float64"):
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


# --- einsum of sharded arrays ----------------------------------------------------------------------------------------

CALLS = [
    ("ik,kj->ij", [(8, 16), (16, 4)], [P("x", "y"), P("x", "y")], P("x", "y")),
    ("ik,kj", [(8, 16), (16, 4)], [P("x", "y"), P("y", "x")], None),
    ("...ij,...jk->...ik", [(4, 8, 8), (8, 8)], [P("x", "y", None), P(None, "y")], None),
    ("ii->i", [(8, 8)], [P("x", "y")], P(("x", "y"))),
    ("iij,jk->ki", [(8, 8, 4), (4, 6)], [P("x", None, "y"), P()], None),
    ("ij,jk,kl->il", [(8, 8), (8, 8), (8, 8)], [P("x", "y"), P("y", "x"), P(("y", "x"))], "[(0),(1)]"),
    ("ij,ij->", [(8, 8), (8, 8)], [P("x", "y"), P("y", "x")], None),
    ("ij->ji", [(8, 6)], [P("y", "x")], P("x", None)),
    ("ik,kj->ij", [(8, 3), (3, 5)], [P("x"), P()], None),
]


@pytest.mark.parametrize(("text", "shapes", "specs", "layout"), CALLS)
def test_sums_of_sharded_arrays(text, shapes, specs, layout):
    """Law: `rote.jax.einsum` is `numpy.einsum`, in the layout that is asked for, also under jit."""
    mesh, rng = mesh_of((2, 4)), np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, shape).astype("f8") for shape in shapes]
    sharded = [jax.device_put(x, NamedSharding(mesh, spec)) for x, spec in zip(arrays, specs, strict=True)]
    expected = np.einsum(text, *arrays)

    product = rote.jax.einsum(text, *sharded, layout=layout)
    jitted = jax.jit(lambda *xs: rote.jax.einsum(text, *xs, layout=layout, layouts=specs, mesh=mesh))(*sharded)
    for result in (product, jitted):
        if isinstance(layout, str):
            dist = rote.parse(layout).on(expected.shape, (2, 4))
            np.testing.assert_array_equal(to_global(result, dist), expected)
            continue
        np.testing.assert_array_equal(np.asarray(result), expected)
        if layout is not None:
            assert result.sharding.is_equivalent_to(NamedSharding(mesh, layout), result.ndim)


def test_einsum_takes_what_numpys_takes():
    """Lists of labels, arrays of NumPy, other dtypes, paths, explicit meshes, and a bound on memory."""
    mesh = mesh_of((2, 4), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (2, 64, 64)).astype("f8")
    x = jax.device_put(a, NamedSharding(mesh, P("x", "y")))
    y = jax.device_put(b.astype("i4"), NamedSharding(mesh, P("x", "y")))

    by_path = rote.jax.einsum("ij,jk,kl->il", x, y, x, optimize=["einsum_path", (1, 2), (0, 1)])
    np.testing.assert_array_equal(by_path, a @ b @ a)
    np.testing.assert_array_equal(rote.jax.einsum(x, [0, 1], b, [1, 2], [2, 0]), (a @ b).T)
    np.testing.assert_array_equal(rote.jax.einsum("ij,jk", x, b.tolist()), a @ b)
    np.testing.assert_array_equal(rote.jax.einsum("ij,jk", x, y, max_bytes=24_000), a @ b)
    np.testing.assert_array_equal(jax.jit(lambda x, y: rote.jax.einsum("ij,kj,kl", x, y, a))(x, y), a @ b.T @ a)


def test_what_einsum_refuses():
    """Operands and results that are no sharded arrays are refused with what to write, before anything runs."""
    mesh = mesh_of((2, 4))
    x = jax.device_put(np.ones((8, 6)), NamedSharding(mesh, P("x", None)))
    other = jax.device_put(np.ones((8, 6)), NamedSharding(mesh_of((4, 2)), P("x", None)))
    with pytest.raises(rote.PlanError, match=r"no operand is an array of JAX\nwrite rote\.jax\.from_global"):
        rote.jax.einsum("ij->i", np.ones((2, 2)))
    with pytest.raises(rote.PlanError, match="is sharded as"):
        rote.jax.einsum("ij,ij->i", x, other)
    with pytest.raises(rote.PlanError, match=r"does not have equal blocks.*\nwrite product = rote\.jax\.lower"):
        rote.jax.einsum("ij->ij", x, layout="block[(),(1)]")
    with pytest.raises(rote.PlanError, match="has no sharding"):
        rote.jax.einsum("ij->i", x, layout="block[()]+(0)")
    with pytest.raises(rote.PlanError, match=r"JAX does not know the sharding.*\npass mesh= and layout="):
        jax.jit(lambda x: rote.jax.einsum("ij->i", x))(x)
    with pytest.raises(rote.LayoutError, match=r"1 layout for 2 operands\nwrite one for each"):
        rote.jax.einsum("ij,ij->i", x, x, layouts=[None])
