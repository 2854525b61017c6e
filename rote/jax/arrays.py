"""Layouts as shardings of JAX, and arrays in *stored order*: the blocks of all ranks side by side.

The shape of a stored array is a whole number of blocks, and its sharding says only which axes of the mesh split which
mode. So a block distribution is stored as it is, and a cyclic one is stored by rank:

    layout              PartitionSpec on a mesh with axes x, y       stored order of 0 1 2 3 4 5 6 7 on 2 ranks
    block[(0),(1)]      P("x", "y")                                  0 1 2 3 | 4 5 6 7
    [(0),(1)]           P("x", "y")                                  0 2 4 6 | 1 3 5 7
    block[(0,1),()]     P(("x", "y"), None)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from ..layout.distribution import Distribution
from ..layout.grid import Grid
from ..layout.layout import Layout, as_layout
from .meshes import check_dtype, check_mesh, check_process, library, on_host

__all__ = ["check_equal_blocks", "check_sharded", "cropped", "distribution_of", "from_global", "from_stored"]
__all__ += ["has_equal_blocks", "layout_of", "on_mesh", "padded", "sharding", "stored_shape", "to_global", "to_stored"]

Array = npt.NDArray[Any]

_STORE = "write rote.jax.from_global(array, dist, mesh), which stores it so"


# --- layouts and shardings -------------------------------------------------------------------------------------------


def layout_of(where: Any, shape: Sequence[int] | None = None, mesh: Any = None) -> Layout:
    """The layout of an array of JAX, of a `NamedSharding`, or of a PartitionSpec on a mesh.

    Parameters
    ----------
    where : jax.Array | jax.sharding.Sharding | PartitionSpec
        An array, whose sharding is known; or a sharding, or a PartitionSpec.
    shape : Sequence[int], optional
        The shape of the array, which a sharding and a PartitionSpec need.
    mesh : jax.sharding.Mesh, optional
        The mesh, for a PartitionSpec.

    Raises
    ------
    PlanError
        The sharding is no `NamedSharding`, or is not known; or there is no shape.
    LayoutError
        Parts are uneven, which JAX refuses, too.

    Examples
    --------
    >>> import jax, rote
    >>> mesh = jax.sharding.AbstractMesh((2, 2, 2), ("x", "y", "z"))
    >>> spec = jax.sharding.PartitionSpec("x", None, ("y", "z"))
    >>> print(rote.jax.layout_of(spec, (8, 8, 8), mesh))
    block[(0),(),(1,2)]
    """
    kinds = library().sharding
    if not isinstance(where, kinds.PartitionSpec | kinds.Sharding):
        return distribution_of(where)[0].layout

    if isinstance(where, kinds.Sharding):
        where, mesh = _named(where).spec, where.mesh
    if shape is None:
        raise PlanError(f"{where} is of arrays of any shape\npass the shape, as rote.jax.layout_of(spec, (8, 8), mesh)")
    return on_mesh(where, shape, mesh).layout


def on_mesh(layout: Any, shape: Sequence[int], mesh: Any) -> Distribution:
    """The distribution of a layout, or of a PartitionSpec, on the devices of a mesh.

    Raises:
        PlanError: there is no mesh.
        LayoutError: the layout does not fit the shape or the mesh.
    """
    check_mesh(mesh)
    if isinstance(layout, library().sharding.PartitionSpec):
        return Distribution.from_sharding(shape, mesh.shape, tuple(layout))
    return as_layout(layout).on(shape, mesh.axis_sizes)


def sharding(dist: Distribution, mesh: Any) -> Any:
    """The `NamedSharding` of an array in the stored order of a distribution.

    Parameters
    ----------
    dist : Distribution
        The distribution.
    mesh : jax.sharding.Mesh
        The mesh, whose axes are the modes of the grid.

    Raises
    ------
    PlanError
        The mesh is not the grid, or the distribution is partial or rooted, for which there is no sharding.

    Examples
    --------
    >>> import jax, rote
    >>> mesh = jax.sharding.AbstractMesh((2, 2), ("x", "y"))
    >>> rote.jax.sharding(rote.parse("[(0,1),()]").on((8, 8), (2, 2)), mesh).spec[0]
    ('x', 'y')
    """
    check_mesh(mesh, dist.grid)
    if dist.partial or dist.layout.rooted:
        raise PlanError(
            f"{dist.layout} has no sharding, because blocks of contributions or roots are no parts of one array\n"
            "write a layout without + and |, or call `local` of a lowered plan inside shard_map"
        )
    kinds = library().sharding
    axes = [tuple([mesh.axis_names[entry.grid_mode] for entry in entries]) for entries in dist.layout.modes]
    return kinds.NamedSharding(mesh, kinds.PartitionSpec(*axes))


def distribution_of(x: Any, layout: Any = None, mesh: Any = None) -> tuple[Distribution, Any]:
    """The distribution of an array, and its mesh.

    Args:
        x: an array of JAX, or what stands for one under `jit`.
        layout: its layout or PartitionSpec, if JAX does not know it, or if it is in the stored order of another layout.
        mesh: its mesh, if JAX does not know it.

    Raises:
        PlanError: the sharding is not known, or another one; or blocks are not all equal.
        LayoutError: the layout does not fit the shape or the mesh.
    """
    where = _known(x)
    mesh = _named(where).mesh if mesh is None else mesh
    dist = on_mesh(_named(where).spec if layout is None else layout, x.shape, mesh)
    if dist.layout.view is not None:
        raise PlanError(
            f"{dist.layout} has a view, so its tensor's shape is not known\nwrite rote.jax.lower(plan, mesh)"
        )
    check_sharded(x, dist, mesh)
    return dist, mesh


def has_equal_blocks(dist: Distribution) -> bool:
    """Whether all blocks are equal, so that an array is its own stored order but for cyclic indices."""
    return stored_shape(dist) == dist.view_shape


def check_equal_blocks(dist: Distribution, mesh: Any, instead: str) -> None:
    """Refuse a distribution of which no array of its shape can be, because blocks differ or make up no array.

    Raises:
        PlanError: there is no such array; the text says what to write instead.
    """
    if not has_equal_blocks(dist):
        raise PlanError(f"{dist} does not have equal blocks, as arrays of JAX have\nwrite {instead}")
    sharding(dist, mesh)


def check_sharded(x: Any, dist: Distribution, mesh: Any) -> Any:
    """Refuse an array of another shape than the stored one, or one that is known to be sharded otherwise.

    Returns:
        The PartitionSpec of the array, which must be that of `in_specs` where axes are Explicit.

    Raises:
        PlanError: the array is not what the distribution says.
    """
    where, expected = _known(x), sharding(dist, mesh)
    _check_stored(x, dist)
    if not x.size:  # JAX replicates arrays without elements, whatever is written
        return expected.spec
    if where is None:
        equal = True
    elif isinstance(x, library().core.Tracer):  # whose mesh has no devices
        equal = _axes(on_mesh(where.spec, x.shape, where.mesh)) == _axes(dist)
    else:
        equal = where.is_equivalent_to(expected, x.ndim)
    if not equal:
        raise PlanError(f"the array is sharded as {where}, and {dist} as {expected}\n{_STORE}")
    return getattr(where, "spec", expected.spec)


def _axes(dist: Distribution) -> tuple[Grid, list[list[int]]]:
    """The grid, and the modes of the grid that split each mode."""
    return dist.grid, [[split.grid_mode for split in splits] for splits in dist.splits]


def _known(x: Any) -> Any:
    """The sharding of an array, or None where JAX does not know it.

    Under `jit` it knows it if all axes of the mesh are Explicit. With Auto axes it says that nothing is split, whatever
    is.

    Raises:
        PlanError: it is no array of JAX; or it is a block within `shard_map`.
    """
    jax = library()
    if not isinstance(x, jax.Array):
        raise PlanError(f"{type(x).__name__} is no array of JAX\n{_STORE}, or jax.device_put(array, sharding)")
    if not isinstance(x, jax.core.Tracer):
        return x.sharding

    where, kinds = jax.typeof(x).sharding, jax.sharding.AxisType
    if kinds.Manual in where.mesh.axis_types:
        raise PlanError(
            "within shard_map a device has a block, which is no sharded array\n"
            "write plan = rote.jax.lower(rote.compile(source, target), mesh) before, and plan.local(block)"
        )
    return where if {*where.mesh.axis_types} == {kinds.Explicit} else None


def _named(where: Any) -> Any:
    """A sharding, or None for one that is not known, as a `NamedSharding`.

    Raises:
        PlanError: it is none.
    """
    if where is None:
        raise PlanError(
            "under jit and grad JAX does not know the sharding of this array, because axes of its mesh are Auto\n"
            "pass mesh= and layout=, a layout or a PartitionSpec; or make the mesh with Explicit axes"
        )
    if not isinstance(where, library().sharding.NamedSharding):
        raise PlanError(
            f"the array is sharded as {where}, which names no axes of a mesh\n"
            "write jax.device_put(array, jax.sharding.NamedSharding(mesh, spec)) first"
        )
    return where


# --- stored order ----------------------------------------------------------------------------------------------------


def stored_shape(dist: Distribution) -> tuple[int, ...]:
    """The shape of an array in the stored order of a distribution: the largest block, once for each part of a mode.

    Parameters
    ----------
    dist : Distribution
        The distribution.

    Examples
    --------
    >>> import rote
    >>> rote.jax.stored_shape(rote.parse("[(0),()]").on((5, 3), 2))
    (6, 3)
    """
    parts = [prod([split.parts for split in splits]) for splits in dist.splits]
    return tuple([n * extent for n, extent in zip(parts, dist.max_local_shape(), strict=True)])


def from_global(array: Any, dist: Distribution, mesh: Any) -> Any:
    """An array of JAX in the stored order of a distribution, from a whole array on the host.

    Parameters
    ----------
    array : array_like
        An array of the distribution's shape, or a smaller one, which is padded with zeros at the end. Of several
        processes, each passes the same.
    dist : Distribution
        The distribution, such as `source` of a lowered plan.
    mesh : jax.sharding.Mesh
        The mesh, whose axes are the modes of the grid.

    Raises
    ------
    PlanError
        There is no such sharding, the array is larger, JAX would change its dtype, or the mesh has no device of this
        process.

    Examples
    --------
    >>> import jax, numpy as np, rote
    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> dist = rote.parse("[(0),()]").on((5, 3), 1)
    >>> rote.jax.from_global(np.ones((5, 3), "f4"), dist, mesh).shape
    (5, 3)
    """
    whole, where = np.asarray(array), sharding(dist, mesh)
    whole = whole.astype(whole.dtype.newbyteorder("="), copy=False)
    check_dtype(whole.dtype)
    check_process(mesh)
    stored = to_stored(whole, dist, np)
    return library().make_array_from_callback(stored.shape, where, lambda index: stored[index])


def to_global(x: Any, dist: Distribution, shape: Sequence[int] | None = None) -> Array:
    """A whole array on the host, from one in the stored order of a distribution.

    Parameters
    ----------
    x : jax.Array
        An array of JAX. Of several processes, each gets the whole.
    dist : Distribution
        The distribution, such as `target` of a lowered plan.
    shape : Sequence[int], optional
        The shape without padding; that of the distribution if None.

    Raises
    ------
    PlanError
        The array is not sharded as the distribution says.

    Examples
    --------
    >>> import jax, numpy as np, rote
    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> dist = rote.parse("[(0)]").on(5, 1)
    >>> rote.jax.to_global(rote.jax.from_global(np.arange(5, dtype="i4"), dist, mesh), dist)
    array([0, 1, 2, 3, 4], dtype=int32)
    """
    check_sharded(x, dist, _named(_known(x)).mesh)
    whole: Array = from_stored(on_host(x), dist, dist.shape if shape is None else shape, np)
    return whole


def to_stored(array: Any, dist: Distribution, xp: Any) -> Any:
    """An array in the stored order of a distribution, from one of its shape, or a smaller one; zeros are elsewhere.

    `xp` is NumPy, or that of JAX.
    """
    _check_fits(array.shape, dist)
    if not array.ndim:
        return array

    view = dist.layout.view
    if view is not None:
        array = xp.pad(array, [(0, n - m) for m, n in zip(array.shape, dist.shape, strict=True)])
        array = array.transpose(view.permutation()).reshape(dist.view_shape)

    # Where nothing is, an index leads behind the array, to a zero.
    indices = _stored_indices(dist)
    ends = [int(index.max(initial=-1)) + 1 for index in indices]
    array = xp.pad(array, [(0, max(end - m, 0)) for m, end in zip(array.shape, ends, strict=True)])
    for mode, index in enumerate(indices):
        array = _taken(array, index, mode, xp)
    return array


def padded(x: Any, dist: Distribution, mesh: Any) -> Any:
    """An array in the stored order of a distribution, from one of its shape, or of a smaller one."""
    if isinstance(x, np.ndarray):
        check_dtype(x.dtype)
    jnp = library().numpy
    return _placed(lambda x: to_stored(x, dist, jnp), jnp.asarray(x), sharding(dist, mesh))


def cropped(x: Any, dist: Distribution, shape: Sequence[int], mesh: Any) -> Any:
    """An array of a shape, from the stored order of a distribution; modes that have no equal blocks are whole."""
    kinds, axes = library().sharding, list[tuple[str, ...]]()
    for extent, splits in zip(shape, dist.splits, strict=False):
        names = tuple([mesh.axis_names[split.grid_mode] for split in splits])
        even = extent % prod([split.parts for split in splits]) == 0 and dist.layout.view is None
        axes.append(names if even else ())

    where = kinds.NamedSharding(mesh, kinds.PartitionSpec(*axes))
    return _placed(lambda x: from_stored(x, dist, shape, library().numpy), x, where)


def _placed(function: Callable[[Any], Any], x: Any, where: Any) -> Any:
    """What a function makes of an array, sharded in this way; XLA moves its elements."""
    jax = library()
    if jax.sharding.AxisType.Explicit not in where.mesh.axis_types:
        return jax.lax.with_sharding_constraint(function(x), where)

    # JAX 0.7 does not bring to these devices what is on others.
    if not isinstance(x, jax.core.Tracer) and x.sharding.device_set != where.device_set:
        x = jax.device_put(x, jax.sharding.NamedSharding(where.mesh, jax.sharding.PartitionSpec()))
    return jax.sharding.auto_axes(function, out_sharding=where)(x)


def from_stored(stored: Any, dist: Distribution, shape: Sequence[int], xp: Any) -> Any:
    """An array of a shape, or of the front of one, from its stored order."""
    _check_stored(stored, dist)
    _check_fits(shape, dist)
    view = dist.layout.view
    extents = dist.view_shape if view is not None else shape
    for mode, (index, extent) in enumerate(zip(_stored_indices(dist), extents, strict=True)):
        places = np.empty(max(dist.view_shape[mode], index.max(initial=-1) + 1), np.int64)
        places[index] = np.arange(len(index))
        stored = _taken(stored, places[:extent], mode, xp)

    if view is None:
        return stored
    order = view.permutation()
    whole = stored.reshape([dist.shape[mode] for mode in order]).transpose(np.argsort(order))
    return whole[tuple(map(slice, shape))]


def _check_stored(x: Any, dist: Distribution) -> None:
    """Refuse an array of another shape than the stored one."""
    if x.shape != stored_shape(dist):
        raise PlanError(f"the array has shape {x.shape}, and {dist} is stored in {stored_shape(dist)}\n{_STORE}")


def _check_fits(shape: Sequence[int], dist: Distribution) -> None:
    """Refuse the shape of an array that is larger than the tensor, or of another order."""
    if len(shape) != len(dist.shape) or any(m > n for m, n in zip(shape, dist.shape, strict=True)):
        raise PlanError(f"an array of shape {tuple(shape)} does not fit in {dist.shape}\nwrite one of at most that")


def _taken(array: Any, index: Array, mode: int, xp: Any) -> Any:
    """The elements at these indices along a mode."""
    if np.array_equal(index, np.arange(len(index))):
        return array[(slice(None),) * mode + (slice(len(index)),)]
    return xp.take(array, index, axis=mode)


def _stored_indices(dist: Distribution) -> list[Array]:
    """Per mode, the global index of each place in stored order; the extent, where nothing is."""
    indices = list[Array]()
    for mode, splits in enumerate(dist.splits):
        parts = []
        for at in product(*[range(split.parts) for split in splits]):
            coordinates = [0] * dist.grid.order
            for split, coordinate in zip(splits, at, strict=True):
                coordinates[split.grid_mode] = coordinate
            parts.append(dist.indices(dist.grid.rank(coordinates))[mode])

        longest = max(map(len, parts))
        rows = [np.pad(part, (0, longest - len(part)), constant_values=dist.view_shape[mode]) for part in parts]
        indices.append(np.concatenate(rows))
    return indices
