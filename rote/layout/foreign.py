"""Distributions in the formats of other libraries: ScaLAPACK, Dask and PETSc, mpi4py-fft, torch and JAX.

Functions `of_…` read a format and give a layout, a shape and a grid; functions `to_…` write a distribution, as far as
the format can describe its blocks. `Distribution.from_…` and `.to_…` are their public names, with examples.
None of the libraries is imported. Everything is plain numbers for all ranks, so that all ranks make the same
distribution or raise the same error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product
from math import prod
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np

from ..errors import LayoutError, counted
from ..grammar.nodes import Entry, Kind, Op
from . import kinds
from .distribution import PLAIN, Distribution, plain
from .expressions import block, cyclic
from .grid import Grid, grid_shape, integer, integers, tensor_shape
from .kinds import Split, mode_set
from .layout import Layout
from .slices import find_layout

__all__ = ["Placement", "ScalapackArray", "ShardedArray", "of_chunks", "of_pencil", "of_ranges", "of_scalapack"]
__all__ += ["of_sharding", "of_torch", "to_chunks", "to_scalapack", "to_sharding"]

Placement = int | str | None
"""For one mode of a torch mesh: dim for Shard(dim), None for Replicate(), the reduction for Partial(…)."""

_TORCH = {"Shard": "dim", "Partial": "reduce_op", "Replicate": "dim"}  # which has none

Placed = tuple[Layout, tuple[int, ...], Grid]
"""What makes a distribution: a layout, a shape and a grid."""


class ScalapackArray(NamedTuple):
    """A descriptor of a ScaLAPACK matrix and the grid of its processes.

    Attributes
    ----------
    desc : tuple[int, ...]
        DTYPE, CTXT, M, N, MB, NB, RSRC, CSRC, LLD.
    grid : tuple[int, int]
        (NPROW, NPCOL).
    order : ForwardRef("{'row', 'column'}")
        How the processes are numbered, for BLACS_GRIDINIT.

    Examples
    --------
    >>> import rote
    >>> matrix = rote.parse("cyclic(2)[(0),(1)]").on((8, 4), (2, 1)).to_scalapack(0)
    >>> matrix.desc, matrix.grid, matrix.order
    ((1, 0, 8, 4, 2, 4, 0, 0, 4), (2, 1), 'row')
    """

    desc: tuple[int, ...]
    grid: tuple[int, int]
    order: Literal["row", "column"]


class ShardedArray(NamedTuple):
    """A mesh and a PartitionSpec of JAX.

    Attributes
    ----------
    mesh : dict[str, int]
        The size of each axis by name.
    spec : tuple[str | tuple[str, ...] | None, ...]
        Per mode of the tensor, the axis or the axes that split it; None for a whole one.

    Examples
    --------
    >>> import rote
    >>> rote.parse("block[(0),()]").on((8, 4), 2).to_sharding()
    ShardedArray(mesh={'g0': 2}, spec=('g0', None))
    """

    mesh: dict[str, int]
    spec: tuple[str | tuple[str, ...] | None, ...]


# --- reading --------------------------------------------------------------------------------------------------------


def of_ranges(ranges: Sequence[Sequence[Sequence[int]]], shape: Iterable[int] | int | None) -> Placed:
    """Find what gives each rank its ranges, one per mode."""
    boxes = []
    for rank, pairs in enumerate(ranges):
        boxes.append([_as_range(pair, rank, mode) for mode, pair in enumerate(pairs)])
    if not boxes:
        raise LayoutError("no rank says what it holds\nwrite ranges=comm.allgather(own), per mode (start, stop)")

    if shape is None:
        shape = [max(stop for _, stop in mode) for mode in zip(*boxes, strict=False)]
    extents = tensor_shape(shape)

    runs = []
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


def of_pencil(shape: Iterable[int] | int, blocks: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Placed:
    """Find what gives each rank its block of mpi4py-fft: per rank, where it starts and its shape."""
    ranges = []
    for rank, (starts, lengths) in enumerate(blocks):
        if len(starts) != len(lengths):
            raise LayoutError(f"rank {rank} says start {starts} and shape {lengths}, which are of two orders")
        ranges.append([(start, start + length) for start, length in zip(starts, lengths, strict=True)])

    return of_ranges(ranges, shape)


def of_chunks(chunks: Sequence[Iterable[int]], grid: Sequence[int] | None, order: str) -> Placed:
    """Find what deals the chunks of Dask or PETSc."""
    sizes = [_chunk_sizes(chunks_of_mode, mode) for mode, chunks_of_mode in enumerate(chunks)]
    if order not in ("C", "F"):
        raise LayoutError(f"order={order!r} is no order of ranks\nwrite 'C' (last mode fastest) or 'F'")
    parts = tuple(map(len, sizes)) if grid is None else grid_shape(grid)
    if len(parts) != len(sizes):
        raise LayoutError(f"the grid {parts} is not one number of ranks for each of {counted(len(sizes), 'mode')}")

    # A mode that is dealt to one rank needs no grid mode.
    split = [mode for mode, p in enumerate(parts) if p > 1]
    numbered = split if order == "C" else split[::-1]
    modes: list[tuple[Entry, ...]] = [()] * len(sizes)
    for g, mode in enumerate(numbered):
        modes[mode] = (Entry(g, _dealt(sizes[mode], parts[mode], mode)),)

    grid = [parts[mode] for mode in numbered] or [1]
    return Layout(tuple(modes)), tuple(map(sum, sizes)), Grid(tuple(grid))


def of_scalapack(desc: Sequence[int], grid: Sequence[int] | Grid, order: str) -> Placed:
    """Read a descriptor of ScaLAPACK and the grid of its processes."""
    numbers = tuple(integer(number, "a number of a descriptor") for number in desc)
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

    # Rote numbers ranks in row-major order: in column order, the columns of processes are the first grid mode.
    g, h = 0, 1
    if order == "column":
        g, h, processes = 1, 0, processes[::-1]
    modes = (cyclic(g, rows, at=row),), (cyclic(h, columns, at=column),)
    return Layout(modes), tuple(shape), Grid(processes)


def of_torch(shape: Iterable[int] | int, mesh: Any, placements: Sequence[Any] | Placement) -> Placed:
    """Read the placements of torch on a mesh."""
    extents = tensor_shape(shape)
    ranks = grid_shape(mesh.shape if type(mesh).__name__ == "DeviceMesh" else mesh)
    per_mode = (placements,) if isinstance(placements, str | int | None) else tuple(placements)
    if len(per_mode) != len(ranks):
        raise LayoutError(f"{per_mode} is not one placement for each of {counted(len(ranks), 'mode')} of a mesh")

    modes: list[tuple[Entry, ...]] = [()] * len(extents)
    partial, ops = list[int](), set[Op]()
    for g, placement in enumerate(map(_dim_or_op, per_mode)):
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
    shape: Iterable[int] | int, mesh: Mapping[str, int], spec: Sequence[str | Sequence[str] | None], devices: Any
) -> Placed:
    """Read the mesh and the PartitionSpec of JAX, and the ranks in the mesh."""
    extents, axes = tensor_shape(shape), tuple(mesh)
    grid = Grid(tuple(mesh.values()) or (1,))  # which refuses extents of 0
    names = [_axes_of(entry, axes) for entry in spec]
    if len(names) > len(extents):
        raise LayoutError(f"the spec {tuple(spec)} has more modes than a tensor of shape {extents}")
    names += [()] * (len(extents) - len(names))

    for mode, (axes_of_mode, extent) in enumerate(zip(names, extents, strict=True)):
        parts = prod(mesh[name] for name in axes_of_mode)
        if extent % parts:
            raise LayoutError(
                f"mode {mode} of {extents} is split over {axes_of_mode} into {parts} uneven parts, which JAX refuses\n"
                "pad the array, or name fewer axes"
            )

    modes = []
    for axes_of_mode in names:
        modes.append(tuple([block(axes.index(name)) for name in axes_of_mode]))
    placed = Layout(tuple(modes)), extents, grid

    return placed if devices is None else _renumbered(placed, mesh, devices)


def _renumbered(placed: Placed, mesh: Mapping[str, int], devices: Any) -> Placed:
    """The same blocks, but each on the rank that the mesh has in its place."""
    dist, places = Distribution(*placed), np.asarray(devices)
    ranks = dist.grid.size
    if places.shape != tuple(mesh.values()) or sorted(places.flat) != list(range(ranks)):
        raise LayoutError(
            f"the devices of the mesh {dict(mesh)} are the ranks 0 to {ranks - 1}, each once, not\n{devices}"
        )

    ranges: list[list[tuple[int, int]]] = [[]] * ranks
    for number, rank in enumerate(places.flat):
        ranges[int(rank)] = [(indices.start, indices.stop) for indices in dist.index_sets(number)]
    return of_ranges(ranges, dist.shape)


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
    if len(sizes) > p:  # only tiles of one size go round again
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


# --- writing --------------------------------------------------------------------------------------------------------


def to_chunks(dist: Distribution) -> tuple[tuple[int, ...], ...]:
    """The chunks of each mode, in the form of Dask."""
    dist, chunks = plain(dist), []
    for mode, (splits, extent) in enumerate(zip(dist.splits, dist.view_shape, strict=True)):
        parts = _parts_in_turn(splits, extent)
        if parts is None:
            kind = _tile_in_turn(splits, extent)
            if kind is None:
                rule = f"mode {mode} of {dist} is of no blocks, and its tiles of no single size"
                raise LayoutError(f"{rule}\n{PLAIN}")
            parts = tuple([min(kind.tile, extent - start) for start in range(0, extent, kind.tile)])
        chunks.append(parts)

    return tuple(chunks)


def to_scalapack(dist: Distribution, rank: int, context: int) -> ScalapackArray:
    """The descriptor of a matrix on a rank."""
    dist = plain(dist)
    hint = "redistribute to [(0:cyclic(32)),(1:cyclic(32))] on a grid of two modes first"
    if len(dist.shape) != 2 or any(len(splits) > 1 for splits in dist.splits):
        raise LayoutError(f"{dist} is no matrix whose modes are split by one grid mode each\n{hint}")
    grid_modes = [split.grid_mode for split in chain(*dist.splits)]
    if len(grid_modes) < sum(p > 1 for p in dist.grid.shape):
        raise LayoutError(f"{dist} has replicas, or ranks outside its root, of which ScaLAPACK knows nothing\n{hint}")
    local_rows, _ = dist.local_shape(rank)

    sizes, sources, processes = [], [], []
    for mode, (splits, extent) in enumerate(zip(dist.splits, dist.shape, strict=True)):
        kind = _tile_in_turn(splits, extent)
        if kind is None:
            raise LayoutError(f"mode {mode} of {dist} is not dealt out in turn, in tiles of one size\n{hint}")
        sizes.append(kind.tile)
        sources.append(kind.at)
        processes.append(prod([split.parts for split in splits]))

    # The leading dimension is at least 1, also of a block without rows.
    desc = (1, context, *dist.shape, *sizes, *sources, max(1, local_rows))
    rows, columns = processes
    return ScalapackArray(desc, (rows, columns), "row" if grid_modes == sorted(grid_modes) else "column")


def to_sharding(dist: Distribution, names: Sequence[str] | None) -> ShardedArray:
    """The mesh and the PartitionSpec of JAX, whose axes are the grid modes."""
    dist = plain(dist)
    axes = tuple(f"g{g}" for g in range(dist.grid.order)) if names is None else tuple(names)
    if len(axes) != dist.grid.order or len(set(axes)) < len(axes):
        raise LayoutError(f"{axes} are not {counted(dist.grid.order, 'different name')}, one for each grid mode")
    if any(role.name == "rooted" for role in dist.roles):
        raise LayoutError(f"{dist} is rooted, which no sharding says\nredistribute to a layout without | first")

    spec: list[str | tuple[str, ...] | None] = []
    for mode, (splits, extent) in enumerate(zip(dist.splits, dist.shape, strict=True)):
        total = prod(split.parts for split in splits)
        if _parts_in_turn(splits, extent) != (extent // total,) * total:
            raise LayoutError(
                f"mode {mode} of {dist} is not in {total} even parts, one after the other, as JAX wants them\n"
                "pad the tensor, or redistribute to block[…] over grid modes that divide it"
            )

        # JAX writes None for no axis, and one axis without a tuple.
        axes_of_mode = tuple([axes[split.grid_mode] for split in splits])
        if not axes_of_mode:
            spec.append(None)
        elif len(axes_of_mode) == 1:
            spec.append(axes_of_mode[0])
        else:
            spec.append(axes_of_mode)

    return ShardedArray(dict(zip(axes, dist.grid.shape, strict=True)), tuple(spec))


def _parts_in_turn(splits: tuple[Split, ...], extent: int) -> tuple[int, ...] | None:
    """The sizes of the parts of a mode, in the order of its coordinates, or None if the parts are not consecutive."""
    sizes, end = [], 0
    for coordinates in product(*(range(split.parts) for split in splits)):
        part = mode_set(splits, extent, coordinates)
        if part and (part.start != end or part.stop - part.start != len(part)):
            return None
        sizes.append(len(part))
        end += len(part)

    return tuple(sizes)


def _tile_in_turn(splits: tuple[Split, ...], extent: int) -> Kind | None:
    """The equivalent cyclic kind of a mode, or None if it has several splits or tiles of several sizes."""
    if not splits or not extent:
        return kinds.cyclic_kind(max(extent, 1))
    if len(splits) > 1:
        return None

    # Only the kind that begins as the split does can be equal to it.
    (split,) = splits
    first = kinds.stretches(split.kind, split.parts, extent)[0]
    kind = kinds.cyclic_kind(first.tile, first.first)
    for c in range(split.parts):
        indices = kinds.local_positions(split.kind, split.parts, extent, c)
        if indices != kinds.local_positions(kind, split.parts, extent, c):
            return None
    return kind
