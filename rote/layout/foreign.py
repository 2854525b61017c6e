"""What the formats of other libraries say, as layouts say it: chunks of Dask, placements of torch, axes of JAX."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np

from ..errors import LayoutError, counted
from ..grammar.nodes import Entry, Kind, Op
from . import kinds
from .expressions import block, cyclic
from .grid import Grid, grid_shape, integer, integers, tensor_shape
from .kinds import Split, mode_set
from .layout import Layout
from .slices import find_layout

__all__ = ["Placement", "ScalapackArray", "ShardedArray", "of_chunks", "of_ranges", "of_scalapack", "of_sharding"]
__all__ += ["of_torch", "parts_in_turn", "tile_in_turn"]

Placement = int | str | None
"""For one mode of a torch mesh: dim for Shard(dim), None for Replicate(), the reduction for Partial(…)."""

_TORCH = {"Shard": "dim", "Partial": "reduce_op", "Replicate": "dim"}  # which has none


Placed = tuple[Layout, tuple[int, ...], Grid]
"""What makes a distribution: a layout, a shape and a grid."""


class ScalapackArray(NamedTuple):
    """A descriptor of a ScaLAPACK matrix and the grid of its processes.

    Attributes:
        desc: DTYPE, CTXT, M, N, MB, NB, RSRC, CSRC, LLD.
        grid: (NPROW, NPCOL).
        order: how the processes are numbered, for BLACS_GRIDINIT.
    """

    desc: tuple[int, ...]
    grid: tuple[int, int]
    order: Literal["row", "column"]


class ShardedArray(NamedTuple):
    """A mesh and a PartitionSpec of JAX: the size of each axis, and per mode the axes that split it."""

    mesh: dict[str, int]
    spec: tuple[str | tuple[str, ...] | None, ...]


def of_ranges(ranges: Sequence[Sequence[Sequence[int]]], shape: Iterable[int] | int | None) -> Placed:
    """Find what gives each rank its ranges, one per mode."""
    boxes = []
    for rank, held in enumerate(ranges):
        boxes.append([_as_range(pair, rank, mode) for mode, pair in enumerate(held)])
    if not boxes:
        raise LayoutError("no rank says what it holds\nwrite ranges=comm.allgather(own), per mode (start, stop)")
    if shape is None:
        shape = [max(stop for _, stop in mode) for mode in zip(*boxes, strict=False)]
    extents, runs = tensor_shape(shape), []
    for rank, box in enumerate(boxes):
        if len(box) != len(extents):
            raise LayoutError(f"a tensor of shape {extents} is of order {len(extents)}, but rank {rank} says {box}")
        for mode, ((_, stop), extent) in enumerate(zip(box, extents, strict=True)):
            if stop > extent:
                raise LayoutError(
                    f"rank {rank} holds indices up to {stop - 1} of mode {mode}, which has {extent}\n"
                    f"give a shape that has them, or ranges below {extent}"
                )
        runs.append([(start if stop > start else 0, stop - start, 1) for start, stop in box])
    layout, grid = find_layout(extents, runs)
    return layout, extents, grid


def of_chunks(chunks: Sequence[Iterable[int]], grid: Sequence[int] | None, order: str) -> Placed:
    """Find what deals the chunks of Dask or PETSc."""
    sizes = [_chunk_sizes(each, mode) for mode, each in enumerate(chunks)]
    if order not in ("C", "F"):
        raise LayoutError(f"order={order!r} is no order of ranks\nwrite 'C' (last mode fastest) or 'F'")
    parts = tuple(len(each) for each in sizes) if grid is None else grid_shape(grid)
    if len(parts) != len(sizes):
        raise LayoutError(f"the grid {parts} is not one number of ranks for each of {counted(len(sizes), 'mode')}")
    split = [mode for mode, p in enumerate(parts) if p > 1]
    numbered = split if order == "C" else split[::-1]
    modes: list[tuple[Entry, ...]] = [()] * len(sizes)
    for g, mode in enumerate(numbered):
        modes[mode] = (Entry(g, _dealt(sizes[mode], parts[mode], mode)),)
    grid = [parts[mode] for mode in numbered] or [1]
    return Layout(tuple(modes)), tuple(map(sum, sizes)), Grid(tuple(grid))


def of_scalapack(desc: Sequence[int], grid: Sequence[int] | Grid, order: str) -> Placed:
    """Read a descriptor of ScaLAPACK and the grid of its processes."""
    numbers = tuple(integer(each, "a number of a descriptor") for each in desc)
    if len(numbers) != 9 or numbers[0] != 1:
        raise LayoutError(
            f"{numbers} is no descriptor of a dense matrix, which is nine integers, the first of them 1\n"
            "write (1, CTXT, M, N, MB, NB, RSRC, CSRC, LLD); copy a band matrix into a dense one"
        )
    _, _, *shape, rows, columns, row, column, leading = numbers
    if min(rows, columns, leading) < 1 or min(*shape, row, column) < 0:
        raise LayoutError(
            f"the descriptor {numbers} has MB={rows}, NB={columns}, LLD={leading}, which are 1 or more, and "
            f"M={shape[0]}, N={shape[1]}, RSRC={row}, CSRC={column}, which are 0 or more"
        )
    processes = grid_shape(grid)
    if len(processes) != 2 or order not in ("row", "column"):
        raise LayoutError(
            f"a grid of BLACS is (NPROW, NPCOL) in row or column order, not {processes} in {order!r} order\n"
            "write grid=(NPROW, NPCOL), order='row' or 'column'"
        )
    g, h = 0, 1
    if order == "column":
        g, h, processes = 1, 0, processes[::-1]
    modes = (cyclic(g, rows, at=row),), (cyclic(h, columns, at=column),)
    return Layout(modes), tuple(shape), Grid(processes)


def of_torch(shape: Iterable[int] | int, mesh: Any, placements: Sequence[Any] | Placement) -> Placed:
    """Read the placements of torch on a mesh."""
    extents, ranks = tensor_shape(shape), grid_shape(mesh.shape if type(mesh).__name__ == "DeviceMesh" else mesh)
    each = (placements,) if isinstance(placements, str | int | None) else tuple(placements)
    if len(each) != len(ranks):
        raise LayoutError(f"{each} is not one placement for each of {counted(len(ranks), 'mode')} of a mesh")
    modes: list[tuple[Entry, ...]] = [()] * len(extents)
    partial, ops = list[int](), set[Op]()
    for g, own in enumerate(each):
        placement = _dim_or_op(own)
        if isinstance(placement, str):
            partial.append(g)
            ops.add(_op_of(placement))
        elif placement is not None:
            dim = integer(placement, "a dim")
            if not -len(extents) <= dim < len(extents):
                raise LayoutError(f"Shard({dim}) is of no dim of a tensor of shape {extents}")
            modes[dim] = (*modes[dim], block(g, "ceil"))
    if len(ops) > 1:
        raise LayoutError(f"a tensor is partial under one operation, not {sorted(ops)}\nreduce it in torch first")
    return Layout(tuple(modes), None, (*ops, "sum")[0], tuple(partial)), extents, Grid(ranks)


def of_sharding(
    shape: Iterable[int] | int, mesh: Mapping[str, int], spec: Sequence[str | Sequence[str] | None]
) -> Placed:
    """Read the mesh and the PartitionSpec of JAX."""
    extents, axes = tensor_shape(shape), tuple(mesh)
    grid = Grid(tuple(mesh.values()) or (1,))
    names = [_axes_of(each, axes) for each in spec]
    if len(names) > len(extents):
        raise LayoutError(f"the spec {tuple(spec)} has more modes than a tensor of shape {extents}")
    names += [()] * (len(extents) - len(names))
    for mode, (each, extent) in enumerate(zip(names, extents, strict=True)):
        parts = prod(mesh[name] for name in each)
        if extent % parts:
            raise LayoutError(
                f"mode {mode} of {extents} is split over {each} into {parts} uneven parts, which JAX refuses\n"
                "pad the array, or name fewer axes"
            )
    modes = []
    for each in names:
        modes.append(tuple([block(axes.index(name)) for name in each]))
    return Layout(tuple(modes)), extents, grid


def _dim_or_op(placement: Any) -> Placement:
    """What torch's own placement holds, by the name of its class, because torch is not imported; or what is given."""
    name = type(placement).__name__
    return getattr(placement, _TORCH[name], None) if name in _TORCH else placement


def _chunk_sizes(chunks: Iterable[int], mode: int) -> tuple[int, ...]:
    """The sizes of the chunks of a mode; without chunks, one of size 0."""
    try:
        return integers(chunks, least=0) or (0,)
    except (TypeError, ValueError):
        raise LayoutError(
            f"the chunks of mode {mode} are sizes, integers of 0 or more, not {chunks!r}\n"
            "write x.compute_chunk_sizes() first where Dask does not know them"
        ) from None


def _dealt(sizes: tuple[int, ...], p: int, mode: int) -> Kind:
    """The kind, in its shortest form, that deals chunks of these sizes to p coordinates in turn."""
    tile, extent = max(sizes), sum(sizes)
    if len(sizes) > p:
        if any(size != tile for size in sizes[:-1]):
            raise LayoutError(
                f"mode {mode} has {len(sizes)} chunks of sizes {sizes} for {counted(p, 'rank')}, which no layout deals "
                "in turn\nrechunk into equal ones, or give each chunk a rank of its own: grid=None"
            )
        return kinds.cyclic_kind(max(tile, 1))
    lengths = (*sizes, *(0,) * (p - len(sizes)))
    candidates: list[Kind] = [*kinds.CONSECUTIVE]
    if 0 < extent <= p * tile:
        candidates.append(kinds.block_kind(tile))
    for kind in candidates:
        if tuple(kinds.extent(kind, p, extent, np.arange(p)).tolist()) == lengths:
            return kind
    return kinds.block_kind(*lengths)


def parts_in_turn(splits: tuple[Split, ...], extent: int) -> tuple[int, ...] | None:
    """The sizes of the parts of a mode, in the order of its coordinates, or None if the parts are not consecutive."""
    sizes, end = [], 0
    for coordinates in product(*(range(split.parts) for split in splits)):
        held = mode_set(splits, extent, coordinates)
        if held and (held.start != end or held.stop - held.start != len(held)):
            return None
        sizes.append(len(held))
        end += len(held)
    return tuple(sizes)


def tile_in_turn(splits: tuple[Split, ...], extent: int) -> Kind | None:
    """The equivalent cyclic kind of a mode, or None if it has several splits or tiles of several sizes."""
    if not splits or not extent:
        return kinds.cyclic_kind(max(extent, 1))
    if len(splits) > 1:
        return None
    (split,) = splits
    first = kinds.stretches(split.kind, split.parts, extent)[0]
    kind = kinds.cyclic_kind(first.tile, first.first)
    for c in range(split.parts):
        held = kinds.local_positions(split.kind, split.parts, extent, c)
        if held != kinds.local_positions(kind, split.parts, extent, c):
            return None
    return kind


def _as_range(pair: Sequence[int], rank: int, mode: int) -> tuple[int, int]:
    try:
        start, stop = integers(pair, least=0)
    except (TypeError, ValueError):
        start, stop = 1, 0
    if stop < start:
        raise LayoutError(
            f"rank {rank} says {pair!r} of mode {mode}, which is no range of indices\n"
            "write (start, stop), with 0 <= start <= stop"
        )
    return start, stop


def _axes_of(entry: str | Sequence[str] | None, axes: tuple[str, ...]) -> tuple[str, ...]:
    """The axes of a mesh that an entry of a PartitionSpec names."""
    try:
        names = (entry,) if isinstance(entry, str) else tuple(entry or ())
    except TypeError:
        raise LayoutError(
            f"{entry!r} is no axis of a mesh\nwrite the sharding that the array has, x.sharding"
        ) from None
    unknown = [name for name in names if name not in axes]
    if unknown:
        raise LayoutError(f"the mesh has axes {axes}, not {unknown[0]!r}\nname one of them, or None")
    return names


def _op_of(reduction: str) -> Op:
    op = {"product": "prod"}.get(reduction, reduction)
    if op not in get_args(Op):
        raise LayoutError(f"{reduction!r} is no reduction of Rote's\nreduce it in torch first, or take 'sum', 'max', …")
    return cast("Op", op)
