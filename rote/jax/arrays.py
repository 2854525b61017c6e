"""Layouts as shardings of JAX, and arrays in *stored order*: the blocks of all ranks side by side.

Each axis of the mesh is a mode of the grid, in order, and each device has the block of one rank. The shape of a stored
array is a whole number of blocks, and its sharding says only which axes of the mesh split which mode. So a block
distribution is stored as it is, padded at the end where blocks would differ, and a cyclic one is stored by rank.

    layout                 PartitionSpec on a mesh with axes x, y       stored order of 0 1 2 3 4 5 6 7 on 2 ranks
    block[(0),(1)]         P("x", "y")                                  0 1 2 3 | 4 5 6 7
    [(0),(1)]              P("x", "y")                                  0 2 4 6 | 1 3 5 7
    block[(0,1),()]        P(("x", "y"), None)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from ..layout.distribution import Distribution
from .meshes import check_dtype, check_mesh, library

__all__ = ["check_sharded", "from_global", "grown", "sharding", "stored_shape", "to_global"]

_FROM = "write from_global(array, dist, mesh)"


def sharding(dist: Distribution, mesh: Any) -> Any:
    """The `NamedSharding` of an array in the stored order of a distribution.

    Raises:
        PlanError: the mesh is not the grid, or the distribution is partial or rooted, for which there is no sharding.
    """
    check_mesh(mesh, dist.grid)
    if dist.partial or dist.layout.rooted:
        raise PlanError(
            f"{dist.layout} has no sharding, because blocks of contributions or roots are no parts of one array\n"
            "write a layout without + and |, or call `local` of a lowered plan inside shard_map"
        )
    kinds = library().sharding
    axes = [tuple([mesh.axis_names[split.grid_mode] for split in splits]) for splits in dist.splits]
    return kinds.NamedSharding(mesh, kinds.PartitionSpec(*axes))


def stored_shape(dist: Distribution) -> tuple[int, ...]:
    """The shape of an array in the stored order of a distribution: the largest block, once for each part of a mode.

    >>> from rote import parse
    >>> stored_shape(parse("[(0),()]").on((5, 3), 2))
    (6, 3)
    """
    parts = [prod([split.parts for split in splits]) for splits in dist.splits]
    return tuple([n * extent for n, extent in zip(parts, dist.max_local_shape(), strict=True)])


def from_global(array: Any, dist: Distribution, mesh: Any) -> Any:
    """An array of JAX in the stored order of a distribution, from a whole array on the host.

    Args:
        array: an array of the distribution's shape, or a smaller one, which is padded with zeros at the end.
        dist: the distribution, such as `source` of a lowered plan.
        mesh: the mesh of its grid.

    Raises:
        PlanError: there is no such sharding, the array is larger, or JAX would change its dtype.
    """
    jax = library()
    whole, where = np.asarray(array), sharding(dist, mesh)
    if whole.ndim != len(dist.shape) or any(m > n for m, n in zip(whole.shape, dist.shape, strict=True)):
        raise PlanError(f"an array of shape {whole.shape} does not fit in {dist.shape}\nwrite one of at most that")
    check_dtype(whole.dtype)

    whole, ranks = grown(whole, dist.shape), {device: rank for rank, device in enumerate(mesh.devices.flat)}
    shards = []
    for device in mesh.local_devices:
        block = whole[dist.tensor_indices(ranks[device])]
        shards.append(jax.device_put(grown(block, dist.max_local_shape()), device))
    return jax.make_array_from_single_device_arrays(stored_shape(dist), where, shards)


def to_global(x: Any, dist: Distribution, shape: Sequence[int] | None = None) -> npt.NDArray[Any]:
    """A whole array on the host, from one in the stored order of a distribution.

    Args:
        x: an array of JAX whose blocks are all on devices of this process.
        dist: the distribution, such as `target` of a lowered plan.
        shape: the shape without padding; that of the distribution if None.

    Raises:
        PlanError: the array is not sharded as the distribution says.
    """
    mesh = x.sharding.mesh
    check_sharded(x, dist, mesh)
    ranks = {device: rank for rank, device in enumerate(mesh.devices.flat)}
    whole = np.empty(dist.shape, x.dtype)
    for shard in x.addressable_shards:
        rank = ranks[shard.device]
        whole[dist.tensor_indices(rank)] = np.asarray(shard.data)[tuple(map(slice, dist.local_shape(rank)))]
    return whole[tuple(map(slice, dist.shape if shape is None else shape))]


# --- checks ----------------------------------------------------------------------------------------------------------


def check_sharded(x: Any, dist: Distribution, mesh: Any) -> None:
    """Refuse an array of another shape than the stored one, or one that is known to be sharded otherwise.

    Raises:
        PlanError: the array is not what the distribution says.
    """
    where, shape = sharding(dist, mesh), stored_shape(dist)
    if x.shape != shape:
        raise PlanError(f"the array has shape {x.shape}, and {dist} is stored in {shape}\n{_FROM}")
    if not isinstance(x, library().core.Tracer) and not x.sharding.is_equivalent_to(where, x.ndim):
        raise PlanError(f"the array is sharded as {x.sharding}, and {dist} as {where}\n{_FROM}")


def grown(array: npt.NDArray[Any], shape: Sequence[int]) -> npt.NDArray[Any]:
    """An array at the front of one of a larger shape, with zeros behind it."""
    larger = np.zeros(shape, array.dtype)
    larger[tuple(map(slice, array.shape))] = array
    return larger
