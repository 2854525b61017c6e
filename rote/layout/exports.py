"""Export of distributions to the formats of other libraries, as far as these can describe the blocks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import prod
from typing import Literal, NamedTuple

from ..errors import LayoutError, counted
from .blocks import Blocks
from .chunks import parts_in_turn, tile_in_turn

__all__ = ["Exports", "ScalapackArray", "ShardedArray", "block_range"]

_PLAIN = "redistribute to plain blocks first, such as block[(0),()]"


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


class Exports(Blocks):
    """The export methods of `Distribution`; each refuses a distribution that the other format cannot describe."""

    __slots__ = ()

    def to_ranges(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Per rank and mode, start and stop of the indices that it holds; (0, 0) along a mode without any.

        Raises:
            LayoutError: a block is not a box of contiguous indices (cyclic entries, views), or is partial.

        >>> from rote import parse
        >>> parse("block[(0),()]").on((5, 4), 2).to_ranges()
        (((0, 3), (0, 4)), ((3, 5), (0, 4)))
        """
        return tuple(block_range(self, rank) for rank in range(self.grid.size))

    def to_chunks(self) -> tuple[tuple[int, ...], ...]:
        """Per mode, the sizes of the contiguous chunks, in the form of Dask, and of PETSc's ownership ranges.

        A block split gives one chunk per part, in the order of the parts; `cyclic(b)` gives one per tile.

        Raises:
            LayoutError: a mode has neither consecutive parts nor equal tiles, or the layout has a view or is partial.

        >>> from rote import parse
        >>> parse("[(0:block),(1:cyclic(4))]").on((5, 10), (2, 2)).to_chunks()
        ((3, 2), (4, 4, 2))
        """
        dist = _plain(self)
        chunks = []
        for mode, (splits, extent) in enumerate(zip(dist.splits, dist.view_shape, strict=True)):
            parts, tiles = parts_in_turn(splits, extent), tile_in_turn(splits, extent)
            if parts is None:
                if tiles is None:
                    rule = f"mode {mode} of {dist} is of no blocks, and its tiles of no single size"
                    raise LayoutError(f"{rule}\n{_PLAIN}")
                tile = tiles.sizes[0]
                parts = tuple([min(tile, extent - start) for start in range(0, extent, tile)])
            chunks.append(parts)
        return tuple(chunks)

    def to_scalapack(self, rank: int, context: int = 0) -> ScalapackArray:
        """The ScaLAPACK descriptor of a matrix, with the leading dimension of a rank's block in Fortran order.

        Law: `Distribution.from_scalapack(*dist.to_scalapack(rank))` has the indices of `dist` on every rank.

        Args:
            rank: the rank whose block, `numpy.asfortranarray(x.local)`, the descriptor describes.
            context: the handle of the BLACS grid.

        Raises:
            LayoutError: the tensor is not a matrix, or its modes are not dealt in equal tiles over a grid of all ranks.

        >>> from rote import parse
        >>> parse("[(0:cyclic(2,at=1)),(1:block(ceil))]").on((9, 6), (2, 2)).to_scalapack(0)
        ScalapackArray(desc=(1, 0, 9, 6, 2, 3, 1, 0, 4), grid=(2, 2), order='row')
        """
        dist = _plain(self)
        cure = "redistribute to [(0:cyclic(32)),(1:cyclic(32))] on a grid of two modes first"
        if len(dist.shape) != 2 or any(len(splits) > 1 for splits in dist.splits):
            raise LayoutError(f"{dist} is no matrix whose modes are split by one grid mode each\n{cure}")
        grid_modes = [split.grid_mode for split in chain(*dist.splits)]
        if len(grid_modes) < sum(p > 1 for p in dist.grid.shape):
            raise LayoutError(
                f"{dist} has replicas, or ranks outside its root, of which ScaLAPACK knows nothing\n{cure}"
            )
        held = dist.local_shape(rank)
        sizes, sources = [], []
        for mode, (splits, extent) in enumerate(zip(dist.splits, dist.shape, strict=True)):
            tiles = tile_in_turn(splits, extent)
            if tiles is None:
                raise LayoutError(f"mode {mode} of {dist} is not dealt out in turn, in tiles of one size\n{cure}")
            sizes.append(tiles.sizes[0])
            sources.append(tiles.at)
        rows, columns = (prod([split.parts for split in splits]) for splits in dist.splits)
        desc = (1, context, *dist.shape, *sizes, *sources, max(1, held[0]))
        order: Literal["row", "column"] = "row" if grid_modes == sorted(grid_modes) else "column"
        return ScalapackArray(desc, (rows, columns), order)

    def to_sharding(self, names: Sequence[str] | None = None) -> ShardedArray:
        """The mesh and the PartitionSpec of the tensor for JAX, with one axis of the mesh per grid mode.

        `NamedSharding(jax.make_mesh(tuple(mesh.values()), tuple(mesh)), PartitionSpec(*spec))` puts the block of rank r
        on device r, if the mesh has the devices in the order of their numbers.

        Args:
            names: the names of the axes; "g0", "g1", … if None.

        Raises:
            LayoutError: parts are uneven or not contiguous, or there is a view, a root or a partial grid mode.

        >>> from rote import parse
        >>> parse("block[(0,1),()]").on((8, 6), (2, 2)).to_sharding(("x", "y"))
        ShardedArray(mesh={'x': 2, 'y': 2}, spec=(('x', 'y'), None))
        """
        dist = _plain(self)
        axes = tuple(f"g{g}" for g in range(dist.grid.order)) if names is None else tuple(names)
        if len(axes) != dist.grid.order or len(set(axes)) < len(axes):
            raise LayoutError(f"{axes} are not {counted(dist.grid.order, 'different name')}, one for each grid mode")
        if any(role.name == "rooted" for role in dist.roles):
            raise LayoutError(f"{dist} is rooted, which no sharding says\nredistribute to a layout without | first")
        spec: list[str | tuple[str, ...] | None] = []
        for mode, (splits, extent) in enumerate(zip(dist.splits, dist.shape, strict=True)):
            total = prod(split.parts for split in splits)
            if parts_in_turn(splits, extent) != (extent // total,) * total:
                raise LayoutError(
                    f"mode {mode} of {dist} is not in {total} even parts, one after the other, as JAX wants them\n"
                    "pad the tensor, or redistribute to block[…] over grid modes that divide it"
                )
            named = tuple([axes[split.grid_mode] for split in splits])
            if not named:
                spec.append(None)
            elif len(named) == 1:
                spec.append(named[0])
            else:
                spec.append(named)
        return ShardedArray(dict(zip(axes, dist.grid.shape, strict=True)), tuple(spec))


def block_range(dist: Blocks, rank: int) -> tuple[tuple[int, int], ...]:
    """Per mode, start and stop of the indices that a rank holds; (0, 0) along a mode without any.

    Raises:
        LayoutError: the indices are not contiguous, or the layout has a view or is partial.
    """
    box = []
    for mode, held in enumerate(_plain(dist).index_sets(rank)):
        if held and held.stop - held.start != len(held):
            raise LayoutError(f"rank {rank} holds {held} of mode {mode} in {dist}, which is no range\n{_PLAIN}")
        box.append((held.start, held.stop))
    return tuple(box)


def _plain(dist: Blocks) -> Blocks:
    """The distribution itself, if its blocks are parts of the tensor: no views, no contributions."""
    if dist.layout.view is not None:
        raise LayoutError(f"{dist.layout} reads the tensor by a view, of which only Rote knows\n{_PLAIN}")
    if dist.partial:
        raise LayoutError(f"the blocks of {dist.layout} are contributions, no parts of the tensor\n{_PLAIN}")
    if not dist.shape and any(role.name == "rooted" for role in dist.roles):
        raise LayoutError(f"{dist} is of order 0 and rooted, which no range says\nwrite x.to_global()")
    return dist
