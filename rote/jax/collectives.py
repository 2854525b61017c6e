"""Collectives of a rank within `shard_map`, over digits of the rank number; and all ranks on one device instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from math import prod
from typing import Any

import numpy as np

from ..compiler.digits import DigitOperation
from ..errors import PlanError
from ..layout.grid import row_major
from .meshes import check_mesh, library

__all__ = ["exchanged", "forwarded", "gathered", "rank_of", "summed", "virtual"]

# Where vmap runs all ranks, collectives go another way: it has no groups, and gathers along one axis at a time.
_VIRTUAL = ContextVar("_VIRTUAL", default=False)


def rank_of(mesh: Any) -> Any:
    """The number of the rank that asks."""
    return library().lax.axis_index(mesh.axis_names)


def exchanged(block: Any, operation: DigitOperation, mesh: Any) -> Any:
    """What a rank has received when each has sent entry k of its block to rank k of its group."""
    names, groups = _axes_of(operation, mesh)
    if _VIRTUAL.get() and groups is not None:
        return gathered(block, operation, mesh)[:, operation.number(rank_of(mesh))]
    return library().lax.all_to_all(block, names, 0, 0, axis_index_groups=groups)


def gathered(block: Any, operation: DigitOperation, mesh: Any) -> Any:
    """The blocks of all ranks of a group."""
    lax, jnp = library().lax, library().numpy
    names, groups = _axes_of(operation, mesh)
    if not _VIRTUAL.get():
        return lax.all_gather(block, names, axis_index_groups=groups)

    shape = block.shape
    for name in reversed(names):
        block = lax.all_gather(block, name)
    block = block.reshape(-1, *shape)
    if groups is None:
        return block

    members = np.zeros((len(block), len(groups[0])), np.int32)
    members[np.array(groups)] = np.array(groups)[:, np.newaxis]
    return block[jnp.asarray(members)[lax.axis_index(names)]]


def forwarded(block: Any, receivers: Mapping[int, int], mesh: Any) -> Any:
    """The block of the rank that sends its own to this one, or zeros if none does.

    Args:
        receivers: for each rank that sends, the one that receives.
    """
    jax = library()
    if not _VIRTUAL.get():
        return jax.lax.ppermute(block, mesh.axis_names, [*receivers.items()])

    senders = np.full(mesh.size, mesh.size, np.int32)
    senders[[*receivers.values()]] = [*receivers]
    blocks = gathered(block, DigitOperation("gather", ((1, mesh.size),)), mesh)
    return jax.numpy.take(blocks, jax.numpy.asarray(senders)[rank_of(mesh)], axis=0, mode="fill", fill_value=0)


def summed(block: Any, operation: DigitOperation, mesh: Any) -> Any:
    """The sum of the blocks of a group; or entry k of the sum on its rank k, if digits leave the block."""
    lax = library().lax
    names, groups = _axes_of(operation, mesh)
    if _VIRTUAL.get():
        parts = exchanged if operation.leaving else gathered
        return parts(block, operation, mesh).sum(0)
    if operation.leaving:
        return lax.psum_scatter(block, names, axis_index_groups=groups)
    return lax.psum(block, names, axis_index_groups=groups)


def _axes_of(operation: DigitOperation, mesh: Any) -> tuple[tuple[str, ...], list[list[int]] | None]:
    """The axes of a mesh that an operation is over, and groups along them if it is over parts of them."""
    over, axes = operation.over, zip(mesh.axis_names, row_major(mesh.axis_sizes), mesh.axis_sizes, strict=True)
    names = [n for n, weight, parts in axes if any(weight < w * s and w < weight * parts for w, s in over)]
    members = prod([size for _, size in over])
    if prod([mesh.shape[name] for name in names]) == members:
        return tuple(names), None

    # Ranks are numbered along these axes alone, and each group is in the order of its digits.
    ranks = np.arange(mesh.size).reshape(mesh.axis_sizes)
    ranks = ranks[tuple([slice(None) if name in names else 0 for name in mesh.axis_names])].ravel()
    others = ranks - sum([ranks // weight % size * weight for weight, size in over])
    numbers = np.lexsort((operation.number(ranks), others))
    return tuple(names), numbers.reshape(-1, members).tolist()


# --- all ranks on one device -----------------------------------------------------------------------------------------


def virtual(program: Any, mesh: Any = None) -> Callable[..., Any]:
    """A function of the blocks of all ranks, stacked by rank, which runs them all on one device.

    It shows what a program for many devices computes, not how fast it is.

    Parameters
    ----------
    program : Callable
        A lowered plan, or another value with a function `local` and a `mesh`; or a function of a rank's block.
    mesh : jax.sharding.Mesh, optional
        The mesh, for a function. One without devices has any size: `jax.sharding.AbstractMesh((2, 4), names)`.

    Raises
    ------
    PlanError
        There is no mesh; or, when it is called, blocks are not as many as ranks.

    Examples
    --------
    >>> import jax, numpy as np, rote
    >>> mesh = jax.sharding.AbstractMesh((4,), ("x",))
    >>> plan = rote.compile("block[(0)] -> [()]", shape=8, grid=4, dtype="i4")
    >>> rote.jax.virtual(rote.jax.lower(plan, mesh))(np.arange(8, dtype="i4").reshape(4, 2))[3]
    Array([0, 1, 2, 3, 4, 5, 6, 7], dtype=int32)
    """
    mesh = getattr(program, "mesh", None) if mesh is None else mesh
    check_mesh(mesh)
    mapped = getattr(program, "local", program)
    for name in reversed(mesh.axis_names):
        mapped = library().vmap(mapped, axis_name=name)

    def run(*stacks: Any) -> Any:
        blocks = list[Any]()
        for stack in map(library().numpy.asarray, stacks):
            if stack.shape[:1] != (mesh.size,):
                raise PlanError(f"{stack.shape} are not the blocks of {mesh.size} ranks\nstack one block for each rank")
            blocks.append(stack.reshape(*mesh.axis_sizes, *stack.shape[1:]))

        token = _VIRTUAL.set(True)
        try:
            result = mapped(*blocks)
        finally:
            _VIRTUAL.reset(token)
        return result.reshape(mesh.size, *result.shape[len(mesh.axis_sizes) :])

    return run
