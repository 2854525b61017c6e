"""Plans as functions of arrays of JAX: XLA runs them, on the devices of a mesh.

`plan.digits()` says which operations a plan has; a compiled function has these collectives, and no others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..caches import memoized
from ..compiler.digits import DigitOperation, Digits, StepDigits, Table
from ..compiler.plan import Plan
from ..errors import PlanError
from ..layout.distribution import Distribution
from ..layout.layout import Op, identity
from .arrays import check_sharded, cropped, padded, sharding
from .collectives import exchanged, forwarded, gathered, rank_of, summed
from .meshes import as_planned, check_dtype, check_mesh, library

__all__ = ["Lowered", "applied", "check_block", "has_tables", "jitted", "lower_plan"]

Argument = tuple[Any, Distribution, np.dtype[Any]]
"""An array, the distribution in whose stored order it must be, and the dtype that it must have."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)  # `jit` finds a function by its identity
class Lowered:
    """A plan as a function of arrays of JAX, for use in `jit`. `lower` makes it.

    Arrays are in the stored order of `source` and `target`. `pad` makes one of an array of the tensor's shape, and
    `crop` goes back.

    Attributes
    ----------
    digits : Digits
        The operations.
    mesh : jax.sharding.Mesh
        The mesh.

    Examples
    --------
    >>> import jax, numpy as np, rote
    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> plan = rote.jax.lower(rote.compile("block[(0)] -> [(0)]", shape=5, grid=1, dtype="f4"), mesh)
    >>> x = jax.numpy.arange(5, dtype="f4")
    >>> plan.crop(plan(plan.pad(x)))
    Array([0., 1., 2., 3., 4.], dtype=float32)
    >>> print(plan)
    block[(0)] -> [(0)] of (5,) on grid 1
    """

    digits: Digits
    mesh: Any

    @property
    def plan(self) -> Plan:
        """The plan that runs, for the padded tensor if there is padding; it explains itself, and is predicted."""
        return self.digits.plan

    @property
    def source(self) -> Distribution:
        """The distribution of the argument."""
        return self.plan.source

    @property
    def target(self) -> Distribution:
        """The distribution of the result."""
        return self.plan.target

    def __call__(self, x: Any) -> Any:
        """The array in the stored order of the target, from one in the stored order of the source.

        Raises:
            PlanError: the array has another shape, dtype or sharding than the source; or an end has no sharding.
        """
        return applied(self, [(x, self.source, self.plan.dtype)], self.target)

    def local(self, block: Any) -> Any:
        """The block of a rank in the target, from its block in the source, where a `shard_map` over the mesh calls it.

        Parameters
        ----------
        block : jax.Array
            The block.

        Examples
        --------
        >>> import jax, rote
        >>> mesh, spec = jax.make_mesh((1,), ("x",)), jax.sharding.PartitionSpec("x")
        >>> plan = rote.jax.lower(rote.compile("block[(0)] -> [()]", shape=4, grid=1, dtype="f4"), mesh)
        >>> jax.shard_map(lambda block: 2 * plan.local(block), mesh=mesh, in_specs=spec, out_specs=spec)(
        ...     jax.device_put(jax.numpy.ones(4, "f4"), jax.sharding.NamedSharding(mesh, spec))
        ... )
        Array([2., 2., 2., 2.], dtype=float32)
        """
        check_block(block, self.source)
        for step in self.digits.steps:
            block = _by_table(step, block, self.mesh) if isinstance(step, Table) else _moved(step, block, self.mesh)
        return block

    def pad(self, x: Any) -> Any:
        """The argument from an array of the tensor's shape: padded with zeros, in stored order, and sharded.

        XLA moves elements where blocks grow.

        Parameters
        ----------
        x : jax.Array
            The array, in any sharding.

        Examples
        --------
        >>> import jax, rote
        >>> plan = rote.compile("block[(0)] -> [(0)]", shape=5, grid=1, dtype="f4")
        >>> rote.jax.lower(plan, jax.make_mesh((1,), ("x",))).pad(jax.numpy.ones(5)).shape
        (5,)
        """
        return padded(x, self.source, self.mesh)

    def crop(self, x: Any) -> Any:
        """The array of the tensor's shape from a result. Modes that do not divide into equal blocks are whole.

        Parameters
        ----------
        x : jax.Array
            The result.

        Examples
        --------
        >>> import jax, rote
        >>> plan = rote.compile("block[(0)] -> [(0)]", shape=5, grid=1, dtype="f4")
        >>> rote.jax.lower(plan, jax.make_mesh((1,), ("x",))).crop(jax.numpy.ones(5)).shape
        (5,)
        """
        return cropped(x, self.target, self.digits.shape, self.mesh)

    def __str__(self) -> str:
        return str(self.digits)


def lower_plan(plan: Plan, mesh: Any, pad: bool = True) -> Lowered:
    """A plan as a function of arrays of JAX, as `lower` says.

    Raises:
        PlanError: the plan and the mesh do not fit, or JAX does not have what the plan needs.
    """
    for dist in (plan.source, plan.target):
        check_mesh(mesh, dist.grid)
    if any(step.wire is not None for step in plan.steps):
        raise PlanError("this plan rounds elements in messages, which no function of JAX does\ncompile it without wire")
    check_dtype(plan.dtype)
    return _lowered(plan, mesh, pad)


@memoized(256)
def _lowered(plan: Plan, mesh: Any, pad: bool) -> Lowered:
    return Lowered(plan.digits(pad), mesh)


def has_tables(moves: Iterable[Lowered]) -> bool:
    """Whether a step goes by a table of places, because its digits do not fit."""
    return any(isinstance(step, Table) for move in moves for step in move.digits.steps)


# --- calls -----------------------------------------------------------------------------------------------------------


def applied(program: Any, arguments: Iterable[Argument], target: Distribution, *scalars: Any) -> Any:
    """What a lowered plan makes of arrays.

    Args:
        program: the plan, which has a function `local` of blocks, and a `mesh`.
        arguments: the arrays.
        target: the distribution of the result.
        scalars: more arguments of `local`, which are the same on all devices.

    Raises:
        PlanError: an array has another shape, dtype or sharding; or the target has no sharding.
    """
    jax, where = library(), sharding(target, program.mesh)
    arrays, before = list[Any](), list[Any]()
    for x, dist, dtype in arguments:
        arrays.append(x)
        before.append(check_sharded(x, dist, program.mesh))
        if dtype not in (x.dtype, as_planned(x.dtype)):
            raise PlanError(f"the array is of {x.dtype}, and the plan of {dtype}\nmake a plan for {x.dtype}")

    before += [jax.sharding.PartitionSpec()] * len(scalars)
    function = jitted(program, tuple(before), where.spec)

    # XLA replicates what has no elements, and JAX then has blocks of other shapes than it says.
    if 0 in target.shape:
        result = jax.eval_shape(function, *arrays, *scalars)
        if 0 in result.shape:
            return jax.device_put(np.zeros(result.shape, result.dtype), where)
    return function(*arrays, *scalars)


def check_block(block: Any, dist: Distribution) -> None:
    """Refuse an argument of `local` that is no block of a distribution.

    Raises:
        PlanError: it has another shape.
    """
    if block.shape != dist.max_local_shape():
        raise PlanError(
            f"the block has shape {block.shape}, and those of {dist} have {dist.max_local_shape()}\n"
            "call `local` in a shard_map over all axes of the mesh, whose argument is in stored order"
        )


@memoized(256)
def jitted(program: Any, before: tuple[Any, ...], after: Any) -> Any:
    """A lowered plan as a function of sharded arrays, which is compiled once where it is called without `jit`."""
    jax = library()
    return jax.jit(jax.shard_map(program.local, mesh=program.mesh, in_specs=before, out_specs=after, check_vma=False))


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


def _operate(operation: DigitOperation, block: Any, ops: tuple[Op, Op], mesh: Any) -> Any:
    """A block after one operation; digits that leave it are its first axis, and so are those that come."""
    lax, jnp = library().lax, library().numpy
    kind, op = operation.kind, ops[0]
    if kind == "exchange":
        return exchanged(block, operation, mesh)
    if kind == "gather":
        return gathered(block, operation, mesh)
    if kind == "permute":
        return forwarded(block, {rank: operation.receiver(rank) for rank in range(mesh.size)}, mesh)
    if kind == "slice":
        return lax.dynamic_index_in_dim(block, operation.number(rank_of(mesh)), 0, keepdims=False)

    if kind == "fill":
        number = operation.number(rank_of(mesh))
        neutral = identity(ops[1], np.dtype(block.dtype))
        if not operation.coming:
            return jnp.where(number == 0, block, neutral)
        places = jnp.full((prod([size for _, size in operation.over]), *block.shape), neutral, block.dtype)
        return lax.dynamic_update_index_in_dim(places, block, number, 0)

    # Sums have collectives of their own, with derivatives; others are combined after the parts have arrived.
    if op == "sum" and block.dtype != bool:
        return summed(block, operation, mesh)
    parts = (exchanged if operation.leaving else gathered)(block, operation, mesh)
    combine = {"sum": jnp.any, "max": jnp.max, "min": jnp.min, "prod": jnp.prod}[op]
    return combine(parts, axis=0).astype(block.dtype)


def _by_table(table: Table, block: Any, mesh: Any) -> Any:
    """A block after a step by places: all elements go in messages of one length for each pair of ranks."""
    jax = library()
    lax, jnp = jax.lax, jax.numpy

    # Places are added up on the device, so that the program has the tables of modes, and none of all elements.
    before, after = table.step.before, table.step.after
    ends = list[Any]()
    for parts in table.places():
        places = jnp.zeros((mesh.size, 1), jnp.int32)
        for part in parts:
            added = jnp.asarray(part, jnp.int32)[rank_of(mesh)]
            places = (places[:, :, None] + added[:, None, :]).reshape(mesh.size, -1)
        ends.append(places)
    sent, received = ends
    arrived = lax.all_to_all(block.reshape(-1)[sent], mesh.axis_names, 0, 0)

    # Where contributions arrive they begin with what is neutral for their reduction, elsewhere with the target's.
    dtype, size = np.dtype(block.dtype), prod(after.max_local_shape())
    result = jnp.full(size, identity(after.layout.op, dtype) if after.partial else 0, dtype)
    if not before.partial:
        return result.at[received].set(arrived, mode="drop").reshape(after.max_local_shape())
    result = result.at[received].set(identity(before.layout.op, dtype), mode="drop")
    ways = {"sum": "add", "max": "max", "min": "min", "prod": "multiply"}
    if dtype.kind == "b":  # `or` and `and`
        ways = ways | {"sum": "max", "prod": "min"}
    return getattr(result.at[received], ways[before.layout.op])(arrived, mode="drop").reshape(after.max_local_shape())
