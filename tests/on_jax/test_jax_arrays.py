"""Arrays of JAX: layouts as shardings, stored order, and redistribution under every transformation."""

from __future__ import annotations

import random
from itertools import permutations, product

import jax
import numpy as np
import pytest
from devices import collectives, compiled, mesh_of, set_mesh
from jax import numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from marks import examples

import rote
from rote.jax import from_global, layout_of, lower, redistribute, sharding, stored_shape, to_global

KINDS = [AxisType.Auto, AxisType.Explicit]


def numbers(shape, dtype="f8"):
    """Different elements."""
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def sharded(array, mesh, *spec):
    return jax.device_put(array, NamedSharding(mesh, P(*spec)))


def on(text, shape, mesh):
    return rote.parse(text).on(shape, mesh.axis_sizes)


# --- layouts and shardings -------------------------------------------------------------------------------------------


def specs():
    """All ways to split three modes over three axes, or over some of them."""
    for places in product([None, 0, 1, 2], repeat=3):
        for order in permutations("xyz"):
            modes = [tuple(name for name in order if places["xyz".index(name)] == mode) for mode in range(3)]
            yield tuple(modes)


def test_layouts_are_shardings_and_back():
    """Law: a PartitionSpec is a layout of blocks, and this layout has the same sharding, on every device."""
    mesh, cases = mesh_of((2, 2, 2)), {*specs()}
    assert len(cases) == 106
    for modes in cases:
        where = NamedSharding(mesh, P(*modes))
        layout = layout_of(where, (8, 8, 8))
        dist = layout.on((8, 8, 8), (2, 2, 2))
        assert layout_of(P(*modes), (8, 8, 8), mesh) == layout
        assert sharding(dist, mesh).is_equivalent_to(where, 3)

        places = where.devices_indices_map((8, 8, 8))
        for rank, device in enumerate(mesh.devices.flat):
            ranges = [range(8)[part] for part in places[device]]
            assert [[*part] for part in ranges] == [index.tolist() for index in dist.indices(rank)]


def test_an_array_has_a_layout():
    """The layout of an array is that of its sharding; axes that are not named replicate."""
    mesh = mesh_of((2, 4))
    x = sharded(np.zeros((8, 4, 8)), mesh, "y", None, "x")
    assert str(layout_of(x)) == "block[(1),(),(0)]"
    assert str(layout_of(P("x"), (8, 4, 8), mesh)) == "block[(0),(),()]"


# --- stored order ----------------------------------------------------------------------------------------------------

STORED = [
    ("block[(0),(1)]", (8, 8)),
    ("[(0),(1)]", (8, 8)),
    ("[(0,1),()]", (17, 3)),
    ("block[(0),(1)]", (7, 9)),
    ("[(1:cyclic(2)),(0:block)]", (13, 6)),
    ("[(),()]", (3, 5)),
    ("(r s=4) c: [(1),(0),()]", (16, 3)),
    ("(a b): block[(0,1)]", (4, 6)),
    ("b a: block[(0),()]", (4, 6)),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("text", "shape"), STORED)
def test_stored_order_is_the_blocks_of_all_ranks(text, shape, kind):
    """Law: each device has the block of its rank, by definition; and the whole array comes back."""
    mesh = mesh_of((2, 4), axis_types=(kind,) * 2)
    dist, whole = on(text, shape, mesh), numbers(shape)
    x = from_global(whole, dist, mesh)
    assert x.shape == stored_shape(dist)

    ranks = {device: rank for rank, device in enumerate(mesh.devices.flat)}
    for shard in x.addressable_shards:
        rank = ranks[shard.device]
        front = tuple(map(slice, dist.local_shape(rank)))
        np.testing.assert_array_equal(np.asarray(shard.data)[front], whole[dist.tensor_indices(rank)])
    np.testing.assert_array_equal(to_global(x, dist), whole)
    np.testing.assert_array_equal(to_global(x, dist, (2,) * len(shape)), whole[(slice(2),) * len(shape)])
    np.testing.assert_array_equal(to_global(from_global(whole.astype(">f8"), dist, mesh), dist), whole)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("block[(0),(1)] -> block[(1),(0)]", (7, 9)),
        ("block[(0),(1)] -> [(0,1),()]", (5, 6)),
        ("[(0),()] -> [(),(1:cyclic(2))]", (13, 6)),
        ("cyclic(2)[(0),()] -> cyclic(3)[(0),()]", (12, 2)),
        ("(r s=4) c: [(1),(0),()] -> (r s=4) c: [(0),(1),()]", (16, 3)),
    ],
)
def test_pad_and_crop_are_inverse(text, shape, kind):
    """Law: an array of any extents, padded, moved and cropped, is itself; under jit too, and so is its gradient."""
    mesh = mesh_of((2, 4), axis_types=(kind,) * 2)
    plan, whole = lower(rote.compile(text, shape=shape, grid=(2, 4), dtype="f8"), mesh), numbers(shape)
    np.testing.assert_array_equal(plan.pad(whole), from_global(whole, plan.source, mesh))
    np.testing.assert_array_equal(to_global(plan(plan.pad(whole)), plan.target, shape), whole)

    through = jax.jit(lambda x: plan.crop(plan(plan.pad(x))))
    np.testing.assert_array_equal(through(jnp.asarray(whole)), whole)
    np.testing.assert_array_equal(plan.crop(plan(plan.pad(jnp.asarray(whole)))), whole)
    with set_mesh(mesh):
        slope = jax.jit(jax.grad(lambda x: (through(x) ** 2).sum()))(jnp.asarray(whole))
    np.testing.assert_array_equal(slope, 2 * whole)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (0, 8), (8, 0), (0, 3), (1, 1)])
def test_arrays_of_few_elements(shape, kind):
    """Arrays without modes, and without elements, whose sharding JAX forgets, go all ways that others go."""
    mesh, whole = mesh_of((2, 4), axis_types=(kind,) * 2), np.ones(shape)
    source, target = ("block[(0),(1)]", "[(),(0)]") if shape else ("[]", "[]")
    plan = lower(rote.compile(f"{source} -> {target}", shape=shape, grid=(2, 4), dtype="f8"), mesh)
    moved = plan(from_global(whole, plan.source, mesh))
    np.testing.assert_array_equal(to_global(moved, plan.target, shape), whole)
    with set_mesh(mesh):
        assert jax.jit(lambda x: plan.crop(plan(plan.pad(x))))(jnp.asarray(whole)).shape == shape
    if not whole.size:
        y = redistribute(sharded(whole, mesh), P("x"))
        assert y.sharding.is_equivalent_to(NamedSharding(mesh, P("x")), 2)
        assert np.asarray(y).shape == np.asarray(redistribute(y, P())).shape == shape


@pytest.mark.parametrize("kind", KINDS)
def test_pad_takes_arrays_that_are_on_one_device_and_on_none(kind):
    """What is padded may be a list, an array of NumPy, or an array of any sharding."""
    mesh = mesh_of((2, 4), axis_types=(kind,) * 2)
    plan = lower(rote.compile("block[(0),(1)] -> [(),(0)]", shape=(3, 5), grid=(2, 4), dtype="f8"), mesh)
    whole = numbers((3, 5))
    for array in (whole, whole.tolist(), jnp.asarray(whole), sharded(whole, mesh)):
        np.testing.assert_array_equal(plan.crop(plan(plan.pad(array))), whole)


# --- redistribute ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_are_redistributed(kind):
    """An array moves to a layout or a PartitionSpec, with the values that it had and the collectives of its digits."""
    mesh, whole = mesh_of((2, 4), axis_types=(kind,) * 2), numbers((8, 16, 4))
    x = sharded(whole, mesh, "x", "y", None)
    for target in (P(None, ("x", "y"), None), "block[(),(0,1),()]"):
        y = redistribute(x, target)
        assert y.sharding.is_equivalent_to(NamedSharding(mesh, P(None, ("x", "y"), None)), 3)
        np.testing.assert_array_equal(y, whole)

    plan = rote.compile("block[(0),(1),()] -> block[(),(0,1),()]", shape=whole.shape, grid=(2, 4))
    program = jax.jit(lambda x: redistribute(x, target, layout=P("x", "y", None), mesh=mesh))
    assert compiled(program, x) == collectives(plan.digits())


@pytest.mark.parametrize("kind", KINDS)
def test_cyclic_arrays_are_in_stored_order(kind):
    """To a cyclic layout and back; the second time the caller says which layout it is. No extent need be padded."""
    mesh, whole = mesh_of((8,), axis_types=(kind,)), numbers((24, 3))
    x = sharded(whole, mesh, "x", None)
    y = redistribute(x, "[(0),()]")
    np.testing.assert_array_equal(y, from_global(whole, on("[(0),()]", (24, 3), mesh), mesh))
    np.testing.assert_array_equal(redistribute(y, P(), layout="[(0),()]"), whole)
    z = redistribute(y, "cyclic(3)[(0),()]", layout="[(0),()]")
    np.testing.assert_array_equal(to_global(z, on("cyclic(3)[(0),()]", (24, 3), mesh)), whole)


def test_under_jit_explicit_axes_are_known():
    """Under jit the layout of an array on Explicit axes is known; on Auto axes it is passed by name."""
    whole = numbers((8, 8))
    for kind in KINDS:
        mesh = mesh_of((8,), axis_types=(kind,))
        x = sharded(whole, mesh, "x", None)
        known = {} if kind == AxisType.Explicit else {"layout": P("x", None), "mesh": mesh}
        y = jax.jit(lambda x, known=known: redistribute(x, P(None, "x"), **known))(x)
        assert y.sharding.is_equivalent_to(NamedSharding(mesh, P(None, "x")), 2)
        np.testing.assert_array_equal(y, whole)


@pytest.mark.parametrize("dtype", ["f2", jnp.bfloat16, jnp.float8_e4m3fn, "?", "u1", "c8"])
def test_elements_that_mpi_does_not_have(dtype):
    """Narrow numbers, which Rote plans for as integers of equal size, move, multiply, and have halos and gradients."""
    mesh, whole = mesh_of((2, 4)), (np.arange(64) % 3).reshape(8, 8).astype(dtype)
    x, known = sharded(whole, mesh, "x", "y"), {"layout": P("x", "y"), "mesh": mesh}
    y = redistribute(x, P("y", "x"))
    assert y.dtype == whole.dtype
    np.testing.assert_array_equal(y, whole)
    np.testing.assert_array_equal(np.asarray(rote.jax.halo(x, 1, periodic=True))[1:5, 1:3], whole[:4, :2])

    if np.dtype(dtype).itemsize == 2:
        slope = jax.grad(lambda x: (redistribute(x, P("y", "x"), **known) ** 2).sum())(x)
        np.testing.assert_array_equal(slope, 2 * whole)
        product = rote.jax.einsum("ij,jk", x, y)
        assert product.dtype == whole.dtype
        np.testing.assert_array_equal(product, whole.astype("f4") @ whole.astype("f4"))


def test_memory_is_bounded():
    """`max_bytes` chooses a plan of more steps, or says how much the smallest needs."""
    mesh, whole = mesh_of((2, 4)), numbers((16, 16, 16))
    x = sharded(whole, mesh, "x", "y", None)
    plans = rote.tradeoff("block[(0),(1),()] -> block[(1),(),(0)]", shape=whole.shape, grid=(2, 4), dtype="f8")
    for plan in plans:
        np.testing.assert_array_equal(redistribute(x, P("y", None, "x"), max_bytes=plan.cost.peak_bytes), whole)
    with pytest.raises(rote.PlanError, match="bytes"):
        redistribute(x, P("y", None, "x"), max_bytes=100)


@pytest.mark.parametrize("kind", KINDS)
def test_moves_have_gradients_in_both_modes(kind):
    """Law: a move is linear: its derivative along v is the move of v, and its transpose is the move back."""
    mesh, rng = mesh_of((2, 4), axis_types=(kind,) * 2), np.random.default_rng(1)
    x, v = (sharded(rng.standard_normal((8, 16)), mesh, "x", "y") for _ in range(2))
    weights = sharded(rng.standard_normal((8, 16)), mesh, "y", "x")
    plan = lower(rote.compile("block[(0),(1)] -> block[(1),(0)]", shape=(8, 16), grid=(2, 4), dtype="f8"), mesh)

    with set_mesh(mesh):
        y, slope = jax.jit(lambda x, v: jax.jvp(plan, (x,), (v,)))(x, v)
        np.testing.assert_array_equal(y, x)
        np.testing.assert_array_equal(slope, v)
        gradient = jax.jit(jax.grad(lambda x: (plan(x) ** 2 * weights).sum()))(x)
    np.testing.assert_allclose(gradient, 2 * np.asarray(x) * np.asarray(weights), rtol=1e-14)


def test_batches_are_leading_modes():
    """A batch is a mode that is whole on all ranks, and costs no collective more."""
    mesh, whole = mesh_of((2, 4)), numbers((3, 8, 16))
    x = sharded(whole, mesh, None, "x", "y")
    y = redistribute(x, P(None, None, ("x", "y")))
    np.testing.assert_array_equal(y, whole)
    alone = rote.compile("block[(0),(1)] -> block[(),(0,1)]", shape=whole.shape[1:], grid=(2, 4))
    move = jax.jit(lambda x: redistribute(x, P(None, None, ("x", "y")), layout=P(None, "x", "y"), mesh=mesh))
    assert compiled(move, x) == collectives(alone.digits())


def test_buffers_can_be_donated():
    """A donated argument gives its memory away."""
    mesh, whole = mesh_of((8,)), numbers((16, 16))
    plan = lower(rote.compile("block[(0),()] -> block[(),(0)]", shape=(16, 16), grid=8, dtype="f8"), mesh)
    x = sharded(whole, mesh, "x", None)
    y = jax.jit(plan, donate_argnums=0)(x)
    np.testing.assert_array_equal(y, whole)
    assert x.is_deleted()


def test_a_program_is_planned_once():
    """A redistribution that is asked for again is compiled no more."""
    mesh = mesh_of((4,))
    x = sharded(numbers((8, 8)), mesh, "x", None)
    redistribute(x, "block[(),(0)]")
    before = rote.cache_info()["rote.jax.lowering.jitted"]
    redistribute(x, "block[(),(0)]")
    after = rote.cache_info()["rote.jax.lowering.jitted"]
    assert (after.hits, after.misses) == (before.hits + 1, before.misses)


def check_gradient(seed):
    """Law: the gradient of moves, and of local functions between them, is that of the functions alone."""
    pick, rng, mesh = random.Random(seed).choice, np.random.default_rng(seed), mesh_of((2, 4))
    texts = ["block[(0),(1)]", "block[(1),(0)]", "[(0,1),()]", "block[(),(1,0)]", "cyclic(2)[(0),()]", "[(),()]"]
    walk = [pick(texts) for _ in range(3)]

    def through(x):
        now = "block[(0),(1)]"
        for text in walk:
            x = jnp.sin(redistribute(x, text, layout=now, mesh=mesh))
            now = text
        return (redistribute(x, "block[(0),(1)]", layout=now, mesh=mesh) ** 2 * weights).sum()

    def alone(x):
        for _ in walk:
            x = jnp.sin(x)
        return (x**2 * weights).sum()

    x, weights = (rng.standard_normal((16, 32)) for _ in range(2))
    gradient = jax.jit(jax.grad(through))(sharded(x, mesh, "x", "y"))
    np.testing.assert_allclose(gradient, jax.grad(alone)(x), rtol=1e-12)


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 2 + examples(98)))]
)
def test_gradients_of_compositions_equal_those_of_one_device(seed):
    """The law of gradients, for random walks through layouts."""
    check_gradient(seed)
