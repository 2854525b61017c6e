"""Plans as functions of arrays of JAX: XLA runs them, on the devices of a mesh.

`plan.digits()` says which operations a plan has; a compiled function has these collectives, and no others.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..compiler.digits import DigitOperation, Digits, StepDigits, Table
from ..compiler.halo import HaloPlan
from ..compiler.plan import Plan
from ..errors import PlanError
from ..functions.contraction.plan import Contraction
from ..layout.distribution import Distribution
from ..layout.layout import identity
from ..lazy import late
from .arrays import check_sharded, sharding
from .meshes import axes_of, check_dtype, check_mesh, library, rank_of

if TYPE_CHECKING:
    from .contraction import LoweredContraction
    from .halo import LoweredHalo

__all__ = ["Lowered", "lower"]


@dataclass(frozen=True, slots=True, weakref_slot=True)  # `jit` refers to it weakly
class Lowered:
    """A plan as a function of arrays of JAX, for use in `jit`. `lower` makes it.

    Attributes:
        digits: the operations; `digits.plan` is the plan that runs, for the padded tensor if there is padding.
        mesh: the mesh.
    """

    digits: Digits
    mesh: Any

    @property
    def source(self) -> Distribution:
        """The distribution of the argument."""
        return self.digits.plan.source

    @property
    def target(self) -> Distribution:
        """The distribution of the result."""
        return self.digits.plan.target

    def __call__(self, x: Any) -> Any:
        """The array in the stored order of the target, from one in the stored order of the source.

        Raises:
            PlanError: the array has another shape, dtype or sharding than the source; or an end has no sharding.
        """
        ends = [sharding(dist, self.mesh) for dist in (self.source, self.target)]
        check_sharded(x, self.source, self.mesh)
        if x.dtype != self.digits.plan.dtype:
            raise PlanError(f"the array is of {x.dtype}, the plan of {self.digits.plan.dtype}\ncompile for {x.dtype}")

        before, after = ends
        jax = library()
        moved = jax.shard_map(self.local, mesh=self.mesh, in_specs=before.spec, out_specs=after.spec, check_vma=False)
        return moved(x)

    def local(self, block: Any) -> Any:
        """A rank's block in the target, from its block in the source, where a `shard_map` over the mesh calls it."""
        for step in self.digits.steps:
            block = _by_table(step, block, self.mesh) if isinstance(step, Table) else _moved(step, block, self.mesh)
        return block


@overload
def lower(plan: Plan, mesh: Any) -> Lowered: ...
@overload
def lower(plan: Contraction, mesh: Any) -> LoweredContraction: ...
@overload
def lower(plan: HaloPlan, mesh: Any) -> LoweredHalo: ...
def lower(plan: Plan | Contraction | HaloPlan, mesh: Any) -> Lowered | LoweredContraction | LoweredHalo:
    """A plan as a function of arrays of JAX.

    Args:
        plan: a plan, a contraction, or the plan of a halo, whose grid is the mesh.
        mesh: a `jax.sharding.Mesh`, whose axes are the modes of the grid, in order.

    Raises:
        PlanError: the mesh is not the grid; the plan changes the grid, rounds messages, or has rooted layouts; or JAX
            would change its dtype.
    """
    if isinstance(plan, Contraction):
        contraction: LoweredContraction = late("jax.contraction:lower_contraction")(plan, mesh)
        return contraction
    if isinstance(plan, HaloPlan):
        halo: LoweredHalo = late("jax.halo:lower_halo")(plan, mesh)
        return halo

    for dist in (plan.source, plan.target):
        check_mesh(mesh, dist.grid)
    if any(step.wire is not None for step in plan.steps):
        raise PlanError("this plan rounds elements in messages, which no function of JAX does\ncompile it without wire")
    check_dtype(plan.dtype)
    return Lowered(plan.digits(), mesh)


# --- operations ------------------------------------------------------------------------------------------------------


def _moved(step: StepDigits, block: Any, mesh: Any) -> Any:
    """A block after a step. Between operations it has one axis for each digit, which are transposed when needed."""
    axes = [digit for mode in step.before for digit in mode]
    block = block.reshape([step.sizes[digit] for digit in axes])

    for operation in step.operations:
        if operation.leaving:
            rest = [digit for digit in axes if digit not in operation.leaving]
            block = block.transpose([axes.index(digit) for digit in (*operation.leaving, *rest)])
            block = block.reshape(-1, *[step.sizes[digit] for digit in rest])
            axes = rest

        block = _operate(operation, block, step.ops, mesh)
        if operation.coming:
            block = block.reshape(*[size for _, size in operation.over], *block.shape[1:])
            axes = [*operation.coming, *axes]

    order = [digit for mode in step.after for digit in mode]
    shape = [prod([step.sizes[digit] for digit in mode]) for mode in step.after]
    return block.transpose([axes.index(digit) for digit in order]).reshape(shape)


def _operate(operation: DigitOperation, block: Any, ops: tuple[str, str], mesh: Any) -> Any:
    """A block after one operation; digits that leave it are its first axis, and so are those that come."""
    jax = library()
    lax, jnp = jax.lax, jax.numpy

    names, groups = axes_of(operation.over, mesh)
    kind, op = operation.kind, ops[0]
    if kind == "exchange":
        return lax.all_to_all(block, names, 0, 0, **groups)
    if kind == "gather":
        return lax.all_gather(block, names, **groups)
    if kind == "permute":
        ranks = range(mesh.size)
        return lax.ppermute(block, mesh.axis_names, [(rank, operation.receiver(rank)) for rank in ranks])
    if kind == "slice":
        return lax.dynamic_index_in_dim(block, _number(operation, mesh), 0, keepdims=False)

    if kind == "fill":
        neutral = identity(ops[1], np.dtype(block.dtype))
        if not operation.coming:
            return jnp.where(_number(operation, mesh) == 0, block, neutral)
        places = jnp.full((prod([size for _, size in operation.over]), *block.shape), neutral, block.dtype)
        return lax.dynamic_update_index_in_dim(places, block, _number(operation, mesh), 0)

    # Sums have collectives of their own, with derivatives; others are combined after the parts have arrived.
    if op == "sum" and block.dtype != bool:
        summed: Any = lax.psum_scatter if operation.leaving else lax.psum
        return summed(block, names, **groups)
    if operation.leaving:
        parts = lax.all_to_all(block, names, 0, 0, **groups)
    else:
        parts = lax.all_gather(block, names, **groups)
    combine = {"sum": jnp.any, "max": jnp.max, "min": jnp.min, "prod": jnp.prod}[op]
    return combine(parts, axis=0).astype(block.dtype)


def _by_table(table: Table, block: Any, mesh: Any) -> Any:
    """A block after a step by places: all elements go in messages of one length for each pair of ranks."""
    jax = library()
    lax, jnp = jax.lax, jax.numpy

    before, after = table.step.before, table.step.after
    sent, received = (jnp.asarray(places)[rank_of(mesh)] for places in table.places())
    arrived = lax.all_to_all(block.reshape(-1)[sent], mesh.axis_names, 0, 0)

    # Where contributions arrive they begin with what is neutral for their reduction, elsewhere with the target's.
    dtype, size = np.dtype(block.dtype), prod(after.max_local_shape())
    result = jnp.full(size, identity(after.layout.op, dtype) if after.partial else 0, dtype)
    if not before.partial:
        return result.at[received].set(arrived, mode="drop").reshape(after.max_local_shape())
    result = result.at[received].set(identity(before.layout.op, dtype), mode="drop")
    way = {"sum": "add", "max": "max", "min": "min", "prod": "multiply"}[before.layout.op]
    return getattr(result.at[received], way)(arrived, mode="drop").reshape(after.max_local_shape())


def _number(operation: DigitOperation, mesh: Any) -> Any:
    """The number of this rank in the digits of an operation."""
    return operation.number(rank_of(mesh))
