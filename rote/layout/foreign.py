"""Import of distributions from the formats of other libraries.

Each method takes plain numbers for all ranks, so that all ranks make the same distribution or raise the same error. A
rank that knows only its own numbers gets the others by `comm.allgather`. None of these libraries is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any, Literal, Self, cast, get_args

import numpy as np

from ..errors import LayoutError, counted
from ..grammar.nodes import Entry, Kind, LayoutSyntax, Op
from .blocks import Blocks
from .chunks import chunk_sizes, dealt
from .grid import Grid, grid_shape, integer, integers, tensor_shape
from .slices import find_layout

__all__ = ["ForeignDoors", "Placement"]

Pair = Sequence[int]
Placement = int | str | None
"""For one mode of a torch mesh: dim for Shard(dim), None for Replicate(), the reduction for Partial(…)."""

# What torch's own placements hold, by the names of their classes, because torch is not imported; Replicate has no dim.
_TORCH = {"Shard": "dim", "Partial": "reduce_op", "Replicate": "dim"}


class ForeignDoors(Blocks):
    """Constructors of `Distribution` from ranges, pencils, chunks, descriptors, placements and shardings."""

    __slots__ = ()

    @classmethod
    def _of(cls, layout: LayoutSyntax, shape: tuple[int, ...], grid: Grid | Iterable[int] | int) -> Self:
        """Make a distribution from the syntax of a layout, a shape and a grid."""
        raise NotImplementedError

    @classmethod
    def from_ranges(cls, ranges: Sequence[Sequence[Pair]], shape: Iterable[int] | int | None = None) -> Self:
        """The distribution in which each rank holds, along each mode, the indices from its start up to its stop.

        PETSc's DMDA gives its blocks in this form, as `comm.allgather(da.getRanges())`.

        Args:
            ranges: per rank and mode, (start, stop); any empty range for a rank that holds nothing.
            shape: the shape of the tensor; if None, the largest stops.

        Raises:
            LayoutError: blocks overlap, leave a gap, or fit no layout; the text says which, and what to do.

        >>> from rote import Distribution
        >>> print(Distribution.from_ranges([((0, 2), (0, 6)), ((2, 4), (0, 6))]))
        block[(0),()] on (4, 6), grid 2
        """
        boxes = []
        for rank, held in enumerate(ranges):
            boxes.append([_pair(pair, rank, mode) for mode, pair in enumerate(held)])
        if not boxes:
            raise LayoutError("no rank says what it holds\nwrite ranges=comm.allgather(own), per mode (start, stop)")
        if shape is None:
            shape = [max(stop for _, stop in mode) for mode in zip(*boxes, strict=False)]
        return cls._of_boxes(boxes, tensor_shape(shape))

    @classmethod
    def from_pencil(cls, shape: Iterable[int] | int, blocks: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Self:
        """The distribution in which the block of each rank is given by its start and its shape, as in mpi4py-fft.

        Args:
            shape: the shape of the tensor: `pencil.shape`, or `u.global_shape` of a DistArray.
            blocks: per rank, (substart, subshape): `comm.allgather((pencil.substart, pencil.subshape))`.

        Raises:
            LayoutError: as for `from_ranges`.

        >>> from rote import Distribution
        >>> print(Distribution.from_pencil((5, 4), [((0, 0), (3, 4)), ((3, 0), (2, 4))]))
        block[(0),()] on (5, 4), grid 2
        """
        ranges = []
        for rank, (starts, lengths) in enumerate(blocks):
            if len(starts) != len(lengths):
                raise LayoutError(f"rank {rank} says start {starts} and shape {lengths}, which are of two orders")
            ranges.append([(start, start + length) for start, length in zip(starts, lengths, strict=True)])
        return cls.from_ranges(ranges, shape)

    @classmethod
    def from_chunks(
        cls, chunks: Sequence[Iterable[int]], grid: Sequence[int] | None = None, order: Literal["C", "F"] = "C"
    ) -> Self:
        """The distribution of Dask's chunks, or of PETSc's ownership ranges, over ranks.

        Args:
            chunks: per mode, the sizes of its chunks: `x.chunks` of Dask, `da.getOwnershipRanges()` of PETSc.
            grid: per mode, the number of ranks to which its chunks are dealt in turn; one rank per chunk if None.
            order: how ranks are numbered: "C", the last mode fastest, or "F", the first mode fastest, as in PETSc.

        Raises:
            LayoutError: a size is not an integer of at least 0, or there are more chunks of unequal sizes than ranks.

        >>> from rote import Distribution
        >>> print(Distribution.from_chunks(((4, 4, 1), (3, 3))))
        block(4)[(0),(1:block)] on (9, 6), grid 3x2
        >>> print(Distribution.from_chunks(((4, 4, 1), (3, 3)), grid=(2, 1)))
        cyclic(4)[(0),()] on (9, 6), grid 2
        >>> print(Distribution.from_chunks(((3, 2), (4, 4)), order="F"))
        block[(1),(0)] on (5, 8), grid 2x2
        """
        sizes = [chunk_sizes(each, mode) for mode, each in enumerate(chunks)]
        if order not in ("C", "F"):
            raise LayoutError(f"order={order!r} is no order of ranks\nwrite 'C' (last mode fastest) or 'F'")
        parts = tuple(len(each) for each in sizes) if grid is None else grid_shape(grid)
        if len(parts) != len(sizes):
            raise LayoutError(f"the grid {parts} is not one number of ranks for each of {counted(len(sizes), 'mode')}")
        split = [mode for mode, p in enumerate(parts) if p > 1]
        numbered = split if order == "C" else split[::-1]
        modes: list[tuple[Entry, ...]] = [()] * len(sizes)
        for g, mode in enumerate(numbered):
            modes[mode] = (Entry(g, dealt(sizes[mode], parts[mode], mode)),)
        return cls._of(LayoutSyntax(tuple(modes)), tuple(map(sum, sizes)), [parts[mode] for mode in numbered] or 1)

    @classmethod
    def from_scalapack(
        cls, desc: Sequence[int], grid: Sequence[int] | Grid, order: Literal["row", "column"] = "row"
    ) -> Self:
        """The distribution of a dense ScaLAPACK matrix: block-cyclic, beginning at the source process.

        The leading dimension describes the block in memory and is not part of the distribution. The block in a buffer
        is `buffer[: columns * lld].reshape(columns, lld).T[:rows]`, which `DistTensor.from_local` uses without a copy.

        Args:
            desc: the nine integers DTYPE, CTXT, M, N, MB, NB, RSRC, CSRC, LLD.
            grid: (NPROW, NPCOL).
            order: how BLACS_GRIDINIT numbers the processes, "row" or "column" major.

        Raises:
            LayoutError: the descriptor is of another type, or does not fit the grid.

        Source: Blackford et al. 1997, ScaLAPACK Users' Guide, section 4.3.3.

        >>> from rote import Distribution
        >>> print(Distribution.from_scalapack((1, 0, 9, 6, 2, 3, 1, 0, 5), (2, 2)))
        cyclic(2,at=1)[(0),(1:cyclic(3))] on (9, 6), grid 2x2
        """
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
        kinds = Kind("cyclic", (rows,), row), Kind("cyclic", (columns,), column)
        grid_modes = (0, 1)
        if order == "column":
            grid_modes, processes = (1, 0), processes[::-1]
        modes = [(Entry(g, kind),) for g, kind in zip(grid_modes, kinds, strict=True)]
        return cls._of(LayoutSyntax(tuple(modes)), tuple(shape), processes)

    @classmethod
    def from_torch(cls, shape: Iterable[int] | int, mesh: Any, placements: Sequence[Any] | Placement) -> Self:
        """The distribution of torch's chunks, `torch.chunk(x, p, dim)[rank]`, or of a DTensor of a shape on a mesh.

        Parts have ceil(n/p) indices, the last ones fewer or none. Modes of the mesh split a dim one after the other.

        Args:
            mesh: a DeviceMesh or its shape, or the number of chunks.
            placements: per mode of the mesh, torch's own placement, or dim for Shard(dim), None for Replicate(), "sum",
                "product", "min" or "max" for Partial(…); for chunks, their dim.

        Raises:
            LayoutError: there is no such dim or reduction, or not one placement per mode of the mesh.

        >>> from rote import Distribution
        >>> print(Distribution.from_torch((10, 6), 4, 0))
        block(ceil)[(0),()] on (10, 6), grid 4
        >>> print(Distribution.from_torch((10, 6), (2, 2, 2), (0, None, -1)))
        block(ceil)[(0),(2)] on (10, 6), grid 2x2x2
        """
        extents, ranks = tensor_shape(shape), grid_shape(mesh.shape if type(mesh).__name__ == "DeviceMesh" else mesh)
        each = (placements,) if isinstance(placements, str | int | None) else tuple(placements)
        if len(each) != len(ranks):
            raise LayoutError(f"{each} is not one placement for each of {counted(len(ranks), 'mode')} of a mesh")
        modes: list[tuple[Entry, ...]] = [()] * len(extents)
        partial, ops = list[int](), set[Op]()
        for g, own in enumerate(each):
            name = type(own).__name__
            placement = getattr(own, _TORCH[name], None) if name in _TORCH else own
            if isinstance(placement, str):
                partial.append(g)
                ops.add(_op(placement))
            elif placement is not None:
                dim = integer(placement, "a dim")
                if not -len(extents) <= dim < len(extents):
                    raise LayoutError(f"Shard({dim}) is of no dim of a tensor of shape {extents}")
                modes[dim] = (*modes[dim], Entry(g, Kind("ceil")))
        if len(ops) > 1:
            raise LayoutError(f"a tensor is partial under one operation, not {sorted(ops)}\nreduce it in torch first")
        return cls._of(LayoutSyntax(tuple(modes), None, (*ops, "sum")[0], tuple(partial)), extents, ranks)

    @classmethod
    def from_sharding(
        cls,
        shape: Iterable[int] | int,
        mesh: Mapping[str, int],
        spec: Sequence[str | Sequence[str] | None],
        devices: Any = None,
    ) -> Self:
        """The distribution of a JAX array with a `NamedSharding`: a mesh and a PartitionSpec.

        Args:
            shape: the shape of the array.
            mesh: the size of each axis of the mesh, in its order: `mesh.shape`.
            spec: `tuple(spec)`: per mode, None, an axis name or several; modes left out at the end are not split.
            devices: the ranks in the mesh, as `np.vectorize(lambda d: d.id)(mesh.devices)`; row-major order if None.

        Raises:
            LayoutError: an axis does not exist or is used twice; the parts are uneven, which JAX refuses too; or no
                layout has the devices in this order.

        >>> from rote import Distribution
        >>> print(Distribution.from_sharding((8, 6), {"x": 2, "y": 2}, (("x", "y"), None)))
        block[(0,1),()] on (8, 6), grid 2x2
        >>> print(Distribution.from_sharding((8, 6), {"x": 2, "y": 2}, ("x", "y"), [[0, 2], [1, 3]]))
        block[(1),(0)] on (8, 6), grid 2x2
        """
        extents, axes = tensor_shape(shape), tuple(mesh)
        grid = Grid(tuple(mesh.values()) or (1,))
        names = [_axes(each, axes) for each in spec]
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
            modes.append(tuple([Entry(axes.index(name), Kind("block")) for name in each]))
        dist = cls._of(LayoutSyntax(tuple(modes)), extents, grid)
        if devices is None:
            return dist
        places = np.asarray(devices)
        if places.shape != tuple(mesh.values()) or sorted(places.flat) != list(range(grid.size)):
            raise LayoutError(
                f"the devices of the mesh {dict(mesh)} are the ranks 0 to {grid.size - 1}, each once, not\n{devices}"
            )
        ranges: list[list[tuple[int, int]]] = [[]] * grid.size
        for number, rank in enumerate(places.flat):
            ranges[int(rank)] = [(held.start, held.stop) for held in dist.index_sets(number)]
        return cls._of_boxes(ranges, extents)

    @classmethod
    def _of_boxes(cls, ranges: Sequence[Sequence[tuple[int, int]]], shape: tuple[int, ...]) -> Self:
        """The distribution of one box per rank; each box must lie within the tensor."""
        held = []
        for rank, box in enumerate(ranges):
            if len(box) != len(shape):
                raise LayoutError(f"a tensor of shape {shape} is of order {len(shape)}, but rank {rank} says {box}")
            for mode, ((_, stop), extent) in enumerate(zip(box, shape, strict=True)):
                if stop > extent:
                    raise LayoutError(
                        f"rank {rank} holds indices up to {stop - 1} of mode {mode}, which has {extent}\n"
                        f"give a shape that has them, or ranges below {extent}"
                    )
            held.append([(start if stop > start else 0, stop - start, 1) for start, stop in box])
        layout, grid = find_layout(shape, held)
        return cls._of(layout, shape, grid)


def _pair(pair: Pair, rank: int, mode: int) -> tuple[int, int]:
    """A range as two integers."""
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


def _axes(entry: str | Sequence[str] | None, axes: tuple[str, ...]) -> tuple[str, ...]:
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


def _op(reduction: str) -> Op:
    """The operation of a partial placement."""
    op = {"product": "prod"}.get(reduction, reduction)
    if op not in get_args(Op):
        raise LayoutError(f"{reduction!r} is no reduction of Rote's\nreduce it in torch first, or take 'sum', 'max', …")
    return cast("Op", op)
