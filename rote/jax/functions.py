"""Functions of arrays of JAX: plans, contractions and halos that are lowered, and redistribution."""

from __future__ import annotations

from typing import Any, overload

from ..compiler.compile import compile
from ..compiler.halo import HaloPlan
from ..compiler.plan import Plan
from ..errors import PlanError
from ..functions.contraction.plan import Contraction
from .arrays import check_equal_blocks, distribution_of, on_mesh
from .contraction import LoweredContraction, lower_contraction
from .halos import LoweredHalo, lower_halo
from .lowering import Lowered, lower_plan
from .meshes import as_planned

__all__ = ["lower", "redistribute"]


@overload
def lower(plan: Plan, mesh: Any, pad: bool = True) -> Lowered: ...
@overload
def lower(plan: Contraction, mesh: Any, pad: bool = True) -> LoweredContraction: ...
@overload
def lower(plan: HaloPlan, mesh: Any) -> LoweredHalo: ...
def lower(
    plan: Plan | Contraction | HaloPlan, mesh: Any, pad: bool = True
) -> Lowered | LoweredContraction | LoweredHalo:
    """A plan as a function of arrays of JAX.

    Parameters
    ----------
    plan : Plan | Contraction | HaloPlan
        A plan, a contraction, or the plan of a halo, whose grid is the mesh.
    mesh : jax.sharding.Mesh
        A `jax.sharding.Mesh`, whose axes are the modes of the grid, in order; an `AbstractMesh` for `virtual`.
    pad : bool, default True
        Whether tensors may be padded. If not, steps whose digits do not fit move by tables, which takes longer.

    Raises
    ------
    PlanError
        The mesh is not the grid; the plan changes the grid, rounds messages, or has rooted layouts; or JAX would change
        its dtype.

    Examples
    --------
    >>> import jax, rote
    >>> plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(6, 6), grid=4, dtype="f4")
    >>> print(rote.jax.lower(plan, jax.sharding.AbstractMesh((4,), ("x",))))
    block[(0),()] -> block[(),(0)] of (6, 6) on grid 4, padded to (8, 8)
      1. alltoall: exchange a for c (ranks 4 at 1)
         a | b, cd  ->  c | ab, d   a=4 b=2 c=4 d=2
    """
    if isinstance(plan, Contraction):
        return lower_contraction(plan, mesh, pad)
    if isinstance(plan, HaloPlan):
        return lower_halo(plan, mesh)
    if not isinstance(plan, Plan):
        raise PlanError(f"{type(plan).__name__} is no plan\nwrite rote.compile(text, shape=shape, grid=grid) first")
    return lower_plan(plan, mesh, pad)


def redistribute(x: Any, target: Any, *, layout: Any = None, mesh: Any = None, max_bytes: int | None = None) -> Any:
    """An array of JAX in another layout, by a plan of Rote.

    Parameters
    ----------
    x : jax.Array
        An array of JAX, or what stands for one under `jit`.
    target : Layout | str | PartitionSpec
        The layout, or the PartitionSpec, of the result. A result that is not in blocks is in stored order.
    layout : Layout | str | PartitionSpec, optional
        The layout, or the PartitionSpec, of `x`, where JAX does not know it: under `jit` if axes of the mesh are Auto,
        and if `x` is in the stored order of a layout that is not in blocks.
    mesh : jax.sharding.Mesh, optional
        The mesh of `x`, where JAX does not know it.
    max_bytes : int, optional
        The most bytes of the argument, the result and buffers on any device.

    Raises
    ------
    PlanError
        The sharding of `x` is not known, or another one than `layout`; blocks are not equal; a layout is rooted or
        partial; or no plan is within `max_bytes`.
    LayoutError
        A layout does not fit the shape or the mesh.

    Examples
    --------
    >>> import jax, rote
    >>> mesh, P = jax.make_mesh((1,), ("x",)), jax.sharding.PartitionSpec
    >>> x = jax.device_put(jax.numpy.ones((4, 4)), jax.sharding.NamedSharding(mesh, P("x", None)))
    >>> rote.jax.redistribute(x, "block[(),(0)]").shape
    (4, 4)
    """
    source, mesh = distribution_of(x, layout, mesh)
    goal = on_mesh(target, source.shape, mesh)
    instead = "plan = rote.jax.lower(rote.compile(source, target), mesh), and plan.crop(plan(plan.pad(x)))"
    check_equal_blocks(goal, mesh, instead)
    return lower_plan(compile(source, goal, as_planned(x.dtype), max_bytes=max_bytes), mesh, pad=False)(x)
