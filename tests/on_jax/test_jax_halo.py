"""Halos on devices: the ghosts are those of the whole array, padded, wherever blocks end; and so are gradients."""

from __future__ import annotations

import random

import jax
import numpy as np
import pytest
from devices import compiled, mesh_of
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from marks import examples

import rote
from rote.compiler.halo import HaloPlan
from rote.jax import from_global, lower, to_global


def plan_of(layout, shape, grid, widths, periodic, dtype="f8"):
    """The plan of a halo."""
    return HaloPlan(rote.parse(layout).on(shape, grid), widths, periodic, np.dtype(dtype))


def cells_of(plan, rank):
    """Per mode, the indices of a rank's halo, and -1 beyond the ends: a cut of all indices, padded."""
    cuts = []
    own = plan.source.indices(rank)
    for n, (low, high), wraps, indices in zip(plan.source.shape, plan.widths, plan.periodic, own, strict=True):
        options = {"mode": "wrap"} if wraps else {"constant_values": -1}
        padded = np.pad(np.arange(n), (low, high), **options)
        cuts.append(padded[indices[0] : indices[-1] + 1 + low + high] if len(indices) else padded[:0])
    return np.ix_(*cuts)


def blocks_of(x):
    """The blocks of an array, in the order of the devices."""
    return [np.array(shard.data) for shard in sorted(x.addressable_shards, key=lambda shard: shard.device.id)]


def check(plan, fill=0):
    """Law: halos are cuts of the whole array, padded; and gradients add what is in the cells of all halos."""
    lowered, rng = lower(plan, mesh_of(plan.source.grid.shape)), np.random.default_rng(0)
    whole = rng.integers(1, 99, plan.source.shape).astype("f8")
    x = from_global(whole, plan.source, lowered.mesh)
    halos, pull = jax.jit(lambda x: jax.vjp(lambda x: lowered(x, fill), x))(x)

    weights, sums = rng.integers(-9, 9, halos.shape).astype("f8"), np.zeros(whole.shape)
    weights = jax.device_put(weights, halos.sharding)
    for rank, (block, weight) in enumerate(zip(blocks_of(halos), blocks_of(weights), strict=True)):
        cells = cells_of(plan, rank)
        inside = np.logical_and.reduce(np.broadcast_arrays(*[indices >= 0 for indices in cells]))
        of_rank = tuple(map(slice, inside.shape))
        np.testing.assert_array_equal(block[of_rank], np.where(inside, whole[cells], fill))
        np.add.at(sums, cells, np.where(inside, weight[of_rank], 0))

    # Replicas have equal cells, and each has a part of the gradient.
    (gradient,) = jax.jit(pull)(weights)
    copies = plan.source.grid.size // np.prod(
        [split.parts for splits in plan.source.splits for split in splits], dtype=int
    )
    np.testing.assert_allclose(to_global(gradient, plan.source), sums / copies, rtol=1e-14)
    return lowered, x


def case(pick):
    """A halo around blocks whose extents divide or not; few are wider than a block."""
    grid = pick([(2,), (4,), (8,), (2, 2), (2, 3), (4, 2), (2, 2, 2)])
    shape = tuple(pick([4, 8, 12, 13, 7, 3]) for _ in range(pick([1, 2, 2, 3])))
    modes = [list[str]() for _ in shape]
    for g in range(len(grid)):
        if pick([True, True, True, False]):
            pick(modes).append(f"{g}:{pick(['block', 'block', 'block(ceil)'])}")

    layout = "[" + ",".join(f"({','.join(mode)})" for mode in modes) + "]"
    widths = tuple((pick([0, 1, 1, 2, 5]), pick([0, 1, 1, 2, 9])) for _ in shape)
    return plan_of(layout, shape, grid, widths, tuple(pick([True, False]) for _ in shape)), pick([0, -1.5])


def check_many(seeds):
    """The law, for random halos."""
    for seed in seeds:
        plan, fill = case(random.Random(seed).choice)
        try:
            check(plan, fill)
        except Exception as error:
            raise AssertionError(f"{plan}, fill {fill}, seed {seed}") from error


def test_halos_are_cuts_of_the_padded_array():
    """Law: on all ranks, a halo is a cut of the whole array, padded by its other end or by a value."""
    check_many(range(8))


@pytest.mark.slow
def test_more_halos_are_cuts_of_the_padded_array():
    """The same for more of them."""
    check_many(range(8, 8 + examples(142)))


@pytest.mark.parametrize(
    ("layout", "widths", "messages"),
    [
        ("block[(0),(1)]", ((1, 1), (2, 2)), 4),
        ("block[(0),(1)]", ((1, 0), (0, 0)), 1),
        ("block[(0,1),()]", ((2, 1), (3, 3)), 2),
        ("block[(0,1),()]", ((3, 0), (0, 0)), 2),
    ],
)
def test_halos_of_equal_blocks_are_permutations(layout, widths, messages):
    """Law: along a mode, one permutation brings the cells of each part that a halo reaches, corners included.

    One device that stands for all ranks gives the same.
    """
    plan = plan_of(layout, (16, 16), (2, 4), widths, (True, False))
    lowered, x = check(plan)
    program = jax.jit(lowered)
    on_one = rote.jax.virtual(lowered)(np.stack(blocks_of(x)))
    np.testing.assert_array_equal(on_one, blocks_of(program(x)))
    assert compiled(program, x) == {"collective-permute": messages}
    assert " gather(" not in program.lower(x).compile().as_text()


def test_what_has_no_halo_is_refused():
    """Roots have no halo on devices, nor has another array than that of the plan."""
    rooted = plan_of("block[(0)]|(1)", (8,), (2, 2), ((1, 1),), (False,))
    with pytest.raises(rote.PlanError, match=r"has no sharding.*\nwrite a layout without \+ and \|"):
        lower(rooted, mesh_of((2, 2)))

    lowered = lower(plan_of("block[(0)]", (8,), (4,), ((1, 1),), (False,)), mesh_of((4,)))
    with pytest.raises(rote.PlanError, match="the array is of float32, and the plan of float64"):
        lowered(from_global(np.zeros(8, "f4"), lowered.plan.source, lowered.mesh))


def test_halos_of_sharded_arrays():
    """Law: a stencil of blocks with ghosts, in shard_map and jit, is that of the whole array; gradients, too."""
    mesh, spec = mesh_of((2, 4)), P("x", "y")
    whole = np.random.default_rng(0).random((8, 12))
    x = jax.device_put(whole, NamedSharding(mesh, spec))

    def stencil(h):
        return h[:-2, 1:-1] + h[2:, 1:-1] + h[1:-1, :-2] + h[1:-1, 2:] - 4 * h[1:-1, 1:-1]

    @jax.jit
    def laplacian(x):
        halos = rote.jax.halo(x, 1, (True, False), layout=spec, mesh=mesh)
        return jax.shard_map(stencil, mesh=mesh, in_specs=spec, out_specs=spec)(halos)

    def of_whole(x):
        padded = jax.numpy.pad(x, ((1, 1), (0, 0)), mode="wrap")
        return stencil(jax.numpy.pad(padded, ((0, 0), (1, 1))))

    np.testing.assert_allclose(laplacian(x), of_whole(whole), rtol=0, atol=1e-14)
    gradients = [jax.grad(lambda x, f=f: (f(x) ** 2).sum())(y) for f, y in ((laplacian, x), (of_whole, whole))]
    np.testing.assert_allclose(*gradients, rtol=0, atol=1e-12)
    with pytest.raises(rote.LayoutError, match="is no width of ghost cells"):
        rote.jax.halo(x, -1)
    with pytest.raises(rote.LayoutError, match=r"fill is one value, not an array of shape \(3,\)"):
        rote.jax.halo(x, 1, fill=np.ones(3))
