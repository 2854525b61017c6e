"""What plans for JAX refuse: one clear error, with what to write, before anything is planned or run."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from devices import mesh_of
from jax import numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import rote
from rote.jax import from_global, layout_of, lower, redistribute, sharding, to_global, virtual

MOVE = "block[(0),()] -> block[(),(0)]"


def plan_of(text=MOVE, shape=(8, 8), grid=8, dtype="f8", **options):
    return rote.compile(text, shape=shape, grid=grid, dtype=dtype, **options)


def rows(mesh, shape=(8, 8), dtype="f8"):
    return jax.device_put(np.zeros(shape, dtype), NamedSharding(mesh, P(mesh.axis_names[0])))


def test_a_mesh_of_another_size_is_refused():
    """The mesh has another number of devices than the grid, or another shape; or it is no mesh."""
    for shape in ((4,), (2, 4)):
        with pytest.raises(rote.PlanError, match=r"the mesh is .* devices, and the grid is 8\nmake a mesh with"):
            lower(plan_of(), mesh_of(shape))
    with pytest.raises(rote.PlanError, match=r"\(8,\) is no mesh\nwrite one, as jax\.make_mesh"):
        lower(plan_of(), (8,))
    with pytest.raises(rote.PlanError, match="is no mesh"):
        layout_of(P("x"), (8,))
    with pytest.raises(rote.PlanError, match=r"the mesh is 4 devices, and the grid is 8"):
        sharding(rote.parse("[(0)]").on(8, 8), mesh_of((4,)))


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_an_array_that_is_sharded_otherwise_is_refused(kind):
    """By other modes, over other devices, on one device, or of another shape or dtype."""
    mesh = mesh_of((8,), axis_types=(kind,))
    plan = lower(plan_of(), mesh)
    columns = jax.device_put(np.zeros((8, 8)), NamedSharding(mesh, P(None, "x")))
    backwards = rows(jax.sharding.Mesh(mesh.devices[::-1], ("x",), axis_types=(kind,)))
    for x in (columns, backwards, jnp.zeros((8, 8)), rows(mesh_of((4,)))):
        with pytest.raises(rote.PlanError, match=r"the array is sharded as .*, and block\[\(0\),\(\)\].* as "):
            plan(x)
    with pytest.raises(rote.PlanError, match=r"the array has shape \(16, 8\), .* is stored in \(8, 8\)\nwrite"):
        plan(rows(mesh, (16, 8)))
    with pytest.raises(rote.PlanError, match=r"the array is of float32, and the plan of float64\nmake a plan for"):
        plan(rows(mesh, dtype="f4"))


def test_an_array_on_explicit_axes_is_checked_under_jit():
    """What is known under jit is checked as well."""
    mesh = mesh_of((8,), axis_types=(AxisType.Explicit,))
    columns = jax.device_put(np.zeros((8, 8)), NamedSharding(mesh, P(None, "x")))
    with pytest.raises(rote.PlanError, match="the array is sharded as"):
        jax.jit(lower(plan_of(), mesh))(columns)
    with pytest.raises(rote.PlanError, match="the array is sharded as"):
        jax.jit(lambda x: redistribute(x, P(), layout=P("x"), mesh=mesh))(columns)


def test_auto_axes_under_jit_are_not_believed():
    """Under jit and grad JAX says of Auto axes that they split nothing, so the layout is asked for by name."""
    x = rows(mesh_of((8,)))
    for function in (lambda x: redistribute(x, P()), lambda x: layout_of(x) and x):
        with pytest.raises(rote.PlanError, match=r"axes of its mesh are Auto\npass mesh= and layout="):
            jax.jit(function)(x)
    with pytest.raises(rote.PlanError, match=r"pass mesh= and layout="):
        jax.grad(lambda x: redistribute(x, P()).sum())(x)
    with pytest.raises(rote.PlanError, match=r"pass mesh= and layout="):
        jax.jit(lambda x: redistribute(x, P(), layout=P("x")))(x)


def test_arrays_of_one_device_and_of_numpy_are_refused():
    """An array without a NamedSharding has no layout; the text says how it gets one."""
    with pytest.raises(rote.PlanError, match=r"names no axes of a mesh\nwrite jax\.device_put\(array, jax\.sharding"):
        redistribute(jnp.zeros(8), "[(0)]")
    with pytest.raises(rote.PlanError, match=r"ndarray is no array of JAX\nwrite"):
        redistribute(np.zeros(8), "[(0)]")
    with pytest.raises(rote.PlanError, match="names no axes of a mesh"):
        layout_of(jnp.zeros(8))


def test_layouts_without_a_sharding_are_refused():
    """Rooted and partial layouts are no parts of one array, and blocks of several shapes are no array of JAX."""
    mesh = mesh_of((8,))
    with pytest.raises(rote.PlanError, match=r"is rooted, .*\nwrite a layout without \|"):
        lower(plan_of("block[(0),()] -> [(),()]|(0)"), mesh)
    for target in ("[(),()]|(0)", "[(),()]+(0)"):
        with pytest.raises(rote.PlanError, match=r"has no sharding, .*\nwrite a layout without \+ and \|"):
            redistribute(rows(mesh), target)
    with pytest.raises(rote.PlanError, match=r"has no sharding"):
        lower(plan_of("[(),()]+(0) -> block[(0),()]"), mesh)(jnp.zeros((8, 8)))
    with pytest.raises(rote.PlanError, match=r"does not have equal blocks, .*\nwrite plan = rote\.jax\.lower"):
        redistribute(rows(mesh, (8, 6)), "block[(),(0)]")
    with pytest.raises(rote.PlanError, match=r"has a view, .*\nwrite rote\.jax\.lower\(plan, mesh\)"):
        redistribute(rows(mesh), P(), layout="b a: block[(),(0)]")


def test_what_no_plan_for_jax_has_is_refused():
    """A grid that changes, and elements that are rounded in messages."""
    mesh = mesh_of((8,))
    ends = rote.parse("block[(0),(1)]").on((8, 8), (2, 4)), rote.parse("block[(0),()]").on((8, 8), 8)
    with pytest.raises(rote.PlanError, match=r"the mesh is 8 devices, and the grid is 2x4"):
        lower(rote.compile(*ends), mesh)
    with pytest.raises(rote.PlanError, match=r"rounds elements in messages, .*\ncompile it without wire"):
        lower(plan_of(wire="f4"), mesh)


@pytest.mark.parametrize("dtype", ["c16", "f8", "i8", "u8"])
def test_dtypes_that_jax_has_switched_off_are_refused(dtype):
    """Without 64 bits JAX rounds doubles, and lets large integers overflow, without a word."""
    mesh = mesh_of((8,))
    jax.config.update("jax_enable_x64", False)
    try:
        for refused in (
            lambda: lower(plan_of(dtype=dtype), mesh),
            lambda: from_global(np.zeros(8, dtype), rote.parse("[(0)]").on(8, 8), mesh),
            lambda: lower(plan_of(dtype="c8"), mesh).pad(np.zeros((8, 8), dtype)),
            lambda: rote.jax.einsum("ij,ij", rows(mesh, dtype="f4"), np.zeros((8, 8), dtype)),
        ):
            with pytest.raises(rote.PlanError, match=r'call jax\.config\.update\("jax_enable_x64", True\) first'):
                refused()
        lower(plan_of(dtype="c8"), mesh)
    finally:
        jax.config.update("jax_enable_x64", True)


@pytest.mark.parametrize("dtype", [object, "g", "M8[s]", "U3"])
def test_dtypes_that_jax_does_not_have_are_refused(dtype):
    """Objects, times, texts, and long doubles."""
    with pytest.raises(rote.PlanError, match=r"JAX has no elements of .*\nwrite array\.astype"):
        from_global(np.zeros(8, dtype), rote.parse("[(0)]").on(8, 8), mesh_of((8,)))


def test_what_is_no_argument_is_refused():
    """What is no plan, no sharding of a mesh, a sharding without a shape, and no array of JAX."""
    mesh, dist = mesh_of((8,)), rote.parse("[(0),()]").on((8, 8), 8)
    with pytest.raises(rote.PlanError, match=r"str is no plan\nwrite rote\.compile"):
        lower(MOVE, mesh)
    with pytest.raises(rote.PlanError, match="names no axes of a mesh"):
        layout_of(jnp.zeros(8).sharding, (8,))
    with pytest.raises(rote.PlanError, match=r"of arrays of any shape\npass the shape"):
        layout_of(NamedSharding(mesh, P("x")))
    with pytest.raises(rote.PlanError, match=r"key<fry> is no dtype; write"):
        redistribute(jax.device_put(jax.random.split(jax.random.key(0), 8), NamedSharding(mesh, P("x"))), P())
    with pytest.raises(rote.PlanError, match=r"ndarray is no array of JAX\nwrite"):
        to_global(np.zeros((8, 8)), dist)
    with pytest.raises(rote.PlanError, match="names no axes of a mesh"):
        to_global(jnp.zeros((8, 8)), dist)
    with pytest.raises(rote.PlanError, match=r"no device of the mesh .*\nmake a mesh of jax\.devices"):
        from_global(np.zeros((8, 8)), dist, jax.sharding.AbstractMesh((8,), ("x",)))


def test_blocks_are_no_arrays():
    """Within shard_map an array is a block, which `local` takes, if it has the shape of one."""
    mesh, spec = mesh_of((8,)), P("x")
    plan, within = lower(plan_of(), mesh), {"mesh": mesh, "in_specs": spec, "out_specs": P(None, "x")}
    for function in (plan, rote.jax.fftn, lambda x: redistribute(x, P(), layout=spec, mesh=mesh)):
        with pytest.raises(rote.PlanError, match=r"within shard_map a device has a block, .*\nwrite plan = .*local"):
            jax.shard_map(function, **within)(rows(mesh))

    with pytest.raises(rote.PlanError, match=r"the block has shape \(8, 8\), .* have \(1, 8\)\ncall `local` in"):
        plan.local(jnp.zeros((8, 8)))
    with pytest.raises(rote.PlanError, match=r"the block has shape \(2, 8\), .* have \(1, 8\)"):
        virtual(plan)(np.zeros((8, 2, 8)))


def test_whole_arrays_of_other_shapes_are_refused():
    """An array that is larger than the tensor, or of another order; and blocks that are not as many as ranks."""
    mesh, dist = mesh_of((8,)), rote.parse("[(0),()]").on((8, 8), 8)
    for shape in ((9, 8), (8,)):
        with pytest.raises(rote.PlanError, match=r"does not fit in \(8, 8\)\nwrite one of at most that"):
            from_global(np.zeros(shape), dist, mesh)
        with pytest.raises(rote.PlanError, match=r"does not fit in \(8, 8\)\nwrite one of at most that"):
            to_global(from_global(np.zeros((8, 8)), dist, mesh), dist, shape)
    with pytest.raises(rote.PlanError, match=r"the array has shape \(16, 8\), .* is stored in \(8, 8\)"):
        lower(plan_of(), mesh).crop(jnp.zeros((16, 8)))
    with pytest.raises(rote.PlanError, match="the array is sharded as"):
        to_global(jax.device_put(np.zeros((8, 8)), NamedSharding(mesh, P(None, "x"))), dist)
    with pytest.raises(rote.PlanError, match=r"are not the blocks of 8 ranks\nstack one block for each rank"):
        virtual(lower(plan_of(), mesh))(np.zeros((4, 1, 8)))
