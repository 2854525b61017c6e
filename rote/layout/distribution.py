"""Distributions: a layout with a shape and a grid, which say what each rank holds.

    block[(0),(1)] on (5, 6), grid 2x2                  [(0),(1)] on (5, 6), grid 2x2

        0 0 0 1 1 1   mode 0 over grid mode 0               0 1 0 1 0 1   the same, but cyclic:
        0 0 0 1 1 1   mode 1 over grid mode 1               2 3 2 3 2 3   the coordinate is the last
        0 0 0 1 1 1                                         0 1 0 1 0 1   digit of an index, and the
        2 2 2 3 3 3   rank 2 has coordinates (1, 0)         2 3 2 3 2 3   digits before it are local
        2 2 2 3 3 3                                         0 1 0 1 0 1

Every answer is computed from digits, so nothing here costs more on 32,768 ranks than on 4. The methods at the end
are the doors from and to the formats of other libraries; `foreign.py` knows these formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from ..caches import memoized
from ..errors import LayoutError, counted
from ..lazy import late
from .grid import Grid, Printed, grid_shape, integers, ranks_at, tensor_shape
from .indexset import EMPTY, IndexSet, Ints
from .kinds import Split, check_mode, dealings, local_extents, locate, mode_set
from .layout import Layout
from .view import Digit, View, to_tensor

if TYPE_CHECKING:
    from .foreign import Placement, ScalapackArray, ShardedArray

__all__ = ["PLAIN", "Distribution", "Role", "block_range", "distribute", "distribution_of", "plain", "replication"]

RoleName = Literal["split", "replicated", "partial", "rooted"]

PLAIN = "redistribute to plain blocks first, such as block[(0),()]"


class Role(NamedTuple):
    """The role of a grid mode in a distribution: "split", "replicated", "partial" or "rooted" (at a coordinate)."""

    name: RoleName
    at: int = 0


_REPLICATED = Role("replicated")


@dataclass(frozen=True, slots=True, repr=False)
class Distribution(Printed):
    """A layout with a shape and a grid, which says what each rank holds. `layout.on(shape, grid)` makes it.

    Grid modes of a single coordinate have no effect: `splits` omits them, and in `roles` they are "replicated".

    Attributes
    ----------
    shape : tuple[int, ...]
        The tensor's own shape.
    view_shape : tuple[int, ...]
        The extents of the view's modes, or `shape` without a view; blocks and indices have these modes.
    splits : tuple[tuple[Split, ...], ...]
        Per view mode, its entries on this grid, the outermost first.
    digits : tuple[tuple[Digit, ...], ...]
        Per view mode, the digits of the tensor's own modes that it reads.
    roles : tuple[Role, ...]
        Per grid mode, its role: "split", "replicated", "partial" or "rooted".
    partial : tuple[int, ...]
        The grid modes over which the value is a reduction of several contributions.

    Raises
    ------
    LayoutError
        The order, the grid, a view, a block size or a root does not fit. Methods that take a rank raise it if the grid
        has no such rank.

    Examples
    --------
    >>> from rote import Grid, parse
    >>> dist = parse("block[(0),(),(1)]").on((8, 9, 10), Grid((2, 3)))
    >>> dist.local_shape(0), dist.owners((3, 4, 5)), dist.indices(4)[0].tolist()
    ((4, 9, 4), (1,), [4, 5, 6, 7])
    >>> dist.order, dist.meaning == parse("block(4)[(0),(),(1)]").on((8, 9, 10), Grid((2, 3))).meaning
    (3, False)
    """

    layout: Layout
    shape: tuple[int, ...]
    grid: Grid
    view_shape: tuple[int, ...] = field(init=False, compare=False, repr=False)
    splits: tuple[tuple[Split, ...], ...] = field(init=False, compare=False, repr=False)
    digits: tuple[tuple[Digit, ...], ...] = field(init=False, compare=False, repr=False)
    roles: tuple[Role, ...] = field(init=False, compare=False, repr=False)
    partial: tuple[int, ...] = field(init=False, compare=False, repr=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        layout, shape, grid = self.layout, tensor_shape(self.shape), self.grid
        self._check(shape)

        view = layout.view or View.plain(len(shape))
        digits = view.digits(shape)
        extents, splits = list[int](), list[tuple[Split, ...]]()
        for entries, read in zip(layout.modes, digits, strict=True):
            extent = prod([digit.size for digit in read])
            if extent >= 2**63:
                raise LayoutError(f"{layout} reads {shape} with a mode of {extent} indices; extents are below 2**63")
            mode = tuple([Split(entry.grid_mode, entry.kind, grid.shape[entry.grid_mode]) for entry in entries])
            check_mode(mode, extent)  # also entries over one coordinate, whose sizes can be wrong, too
            extents.append(extent)
            splits.append(tuple([split for split in mode if split.parts > 1]))
        roles = [_role(layout, g) if p > 1 else _REPLICATED for g, p in enumerate(grid.shape)]

        # A frozen value sets what follows from its fields past its own `__setattr__`.
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "digits", digits)
        object.__setattr__(self, "view_shape", tuple(extents))
        object.__setattr__(self, "splits", tuple(splits))
        object.__setattr__(self, "roles", tuple(roles))
        object.__setattr__(self, "partial", tuple([g for g, role in enumerate(roles) if role.name == "partial"]))
        object.__setattr__(self, "_hash", hash((layout, shape, grid)))

    def _check(self, shape: tuple[int, ...]) -> None:
        """Refuse a shape of another order, and a grid that lacks a mode or a coordinate of the layout."""
        layout, grid = self.layout, self.grid
        if len(shape) != layout.tensor_order:
            raise LayoutError(
                f"{layout} is for tensors of order {layout.tensor_order}, but the shape is {shape}; "
                "write one pair of parentheses per mode"
            )

        unknown = [g for g in layout.grid_modes if g >= grid.order]
        if unknown:
            enough = Grid.of(grid.size, max(unknown) + 1).shape
            raise LayoutError(
                f"{layout} names grid mode {unknown[0]}, but the grid {grid} has order {grid.order}\n"
                f"write the grid {enough}, or a layout without grid mode {unknown[0]}"
            )

        for g, at in layout.rooted:
            if at >= grid.shape[g]:
                has = counted(grid.shape[g], "coordinate")
                raise LayoutError(f"{layout} is rooted at coordinate {at}, but grid mode {g} has {has}, from 0 on")

    def __hash__(self) -> int:
        return self._hash  # cached, because distributions are the keys of the compiler's caches

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.layout, self.shape, self.grid)  # hashes of text differ between processes

    @property
    def order(self) -> int:
        """The number of modes of a block."""
        return len(self.view_shape)

    def holds(self, rank: int) -> bool:
        """Whether a rank may hold data: false outside the root of a rooted layout.

        Examples
        --------
        >>> from rote import parse
        >>> [parse("[(),()]|(0@1)").on((5, 3), 2).holds(rank) for rank in range(2)]
        [False, True]
        """
        return self._is_root(self.grid.coordinates(rank))

    def _is_root(self, coordinates: tuple[int, ...]) -> bool:
        rooted = self.layout.rooted
        return not rooted or all(coordinates[g] == at for g, at in rooted)

    def contributes(self, rank: int) -> bool:
        """Whether a rank gets values when a tensor is distributed: along partial grid modes, coordinate 0 does.

        Other ranks get the neutral element of the reduction. Without partial grid modes, every rank contributes.

        Examples
        --------
        >>> from rote import parse
        >>> [parse("[()]+(0)").on(5, 2).contributes(rank) for rank in range(2)]
        [True, False]
        """
        coordinates = self.grid.coordinates(rank)
        return not any(coordinates[g] for g in self.partial)

    def index_sets(self, rank: int) -> tuple[IndexSet, ...]:
        """Per view mode, the set of global indices that a rank holds, stored as periodic runs.

        Outside the root, all sets are empty; a tensor of order 0 then has one, because its block is of shape (0,).

        Examples
        --------
        >>> from rote import parse
        >>> print(*parse("[(0),()]").on((5, 3), 2).index_sets(1))
        {1, 3} {0..2}
        """
        coordinates = self.grid.coordinates(rank)
        if not self._is_root(coordinates):
            return (EMPTY,) * max(self.order, 1)

        sets = []
        for splits, extent in zip(self.splits, self.view_shape, strict=True):
            sets.append(mode_set(splits, extent, tuple([coordinates[split.grid_mode] for split in splits])))
        return tuple(sets)

    def indices(self, rank: int) -> tuple[Ints, ...]:
        """Per view mode, the global indices that a rank holds, in local order: one array of integers per mode.

        They are as many as `local_shape` says; outside the root of a tensor of order 0, that is one empty array.

        Examples
        --------
        >>> from rote import parse
        >>> [index.tolist() for index in parse("[(0),()]").on((5, 3), 2).indices(1)]
        [[1, 3], [0, 1, 2]]
        """
        return tuple(indices.to_array() for indices in self.index_sets(rank))

    def tensor_indices(self, rank: int) -> tuple[Ints, ...]:
        """Per mode of the tensor itself, the global indices of a rank's elements; they broadcast to the block's shape.

        Without a view, this is an open mesh of `indices`, as `np.ogrid` makes it.

        Examples
        --------
        >>> from rote import parse
        >>> [index.tolist() for index in parse("(a b): block[(0)]").on((2, 3), 2).tensor_indices(1)]
        [[1, 1, 1], [0, 1, 2]]
        """
        global_indices: list[Ints] = [np.zeros((1,) * self.order, np.int64) for _ in self.shape]

        # A tensor of order 0 has no digits, and yet one empty index outside the root.
        for mode, (digits, index) in enumerate(zip(self.digits, self.indices(rank), strict=False)):
            along = index.reshape((1,) * mode + (-1,) + (1,) * (self.order - mode - 1))
            for m, added in to_tensor(digits, along).items():
                global_indices[m] = global_indices[m] + added

        return tuple(global_indices)

    @memoized(16384, typed=True)
    def local_shape(self, rank: int) -> tuple[int, ...]:
        """The shape of a rank's block, which is empty outside the root ((0,) for a tensor of order 0).

        Examples
        --------
        >>> from rote import parse
        >>> [parse("block[(0),()]").on((5, 3), 2).local_shape(rank) for rank in range(2)]
        [(3, 3), (2, 3)]
        """
        return tuple(map(len, self.index_sets(rank)))

    def max_local_shape(self) -> tuple[int, ...]:
        """Per view mode, the largest local extent on any rank.

        Examples
        --------
        >>> from rote import parse
        >>> parse("block[(0),()]").on((5, 3), 2).max_local_shape()
        (3, 3)
        """
        extents_of_modes = map(local_extents, self.splits, self.view_shape)
        return tuple([max(extents, default=0) for extents in extents_of_modes])

    def locate(self, mode: int, index: Ints) -> tuple[dict[int, Ints], Ints]:
        """Along one view mode, the coordinate per grid mode that holds each global index, and its local index there.

        Raises
        ------
        IndexError
            There is no such mode.

        Examples
        --------
        >>> import numpy as np, rote
        >>> rote.parse("block[(0)]").on(5, 2).locate(0, np.array([0, 4]))
        ({0: array([0, 1])}, array([0, 1]))
        """
        return locate(self.splits[mode], self.view_shape[mode], index)

    @property
    def meaning(self) -> tuple[object, ...]:
        """A value that is equal for distributions under which every rank has the same elements in the same order."""
        splits = tuple(map(dealings, self.splits, self.view_shape))
        return self.shape, self.grid, self.digits, splits, self.roles, self.partial and self.layout.op

    def owners(self, index: Sequence[int] | int) -> tuple[int, ...]:
        """The ranks that hold the element at a global index of the view, ascending; if partial, all contributors.

        Raises
        ------
        LayoutError
            The index is outside the tensor.

        Examples
        --------
        >>> from rote import parse
        >>> parse("block[(0),()]").on((5, 3), (2, 2)).owners((4, 0))
        (2, 3)
        """
        try:
            where = integers(index, least=0)
            inside = all(i < n for i, n in zip(where, self.view_shape, strict=True))
        except (TypeError, ValueError):  # no integers, negative ones, or not one for each mode
            inside = False
        if not inside:
            whole = f"a tensor of shape {self.shape}"
            if self.layout.view is not None:
                whole = f"the view of shape {self.view_shape} by which {self.layout} reads {whole}"
            raise LayoutError(f"{index!r} is no index of {whole}")

        # Along grid modes that neither split a mode nor have a root, all coordinates hold the element.
        fixed = dict(self.layout.rooted)
        for mode, i in enumerate(where):
            coordinates, _ = self.locate(mode, np.array(i))
            fixed.update({g: int(c) for g, c in coordinates.items()})

        return tuple(ranks_at(self.grid, fixed))

    def __str__(self) -> str:
        return f"{self.layout} on {self.shape}, grid {self.grid}"

    def __repr__(self) -> str:
        return f"{self.layout!r}.on({self.shape}, {self.grid.shape})"

    def _repr_html_(self) -> str:
        return str(late("html.page:distribution_card")(self))

    def to_ranges(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Per rank and mode, start and stop of the indices that it holds; (0, 0) along a mode without any.

        Raises
        ------
        LayoutError
            A block is not a box of contiguous indices (cyclic entries, views), or is partial.

        Examples
        --------
        >>> from rote import parse
        >>> parse("block[(0),()]").on((5, 4), 2).to_ranges()
        (((0, 3), (0, 4)), ((3, 5), (0, 4)))
        """
        return tuple(block_range(self, rank) for rank in range(self.grid.size))

    def to_chunks(self) -> tuple[tuple[int, ...], ...]:
        """Per mode, the sizes of the contiguous chunks, in the form of Dask, and of PETSc's ownership ranges.

        A block split gives one chunk per part, in the order of the parts; `cyclic(b)` gives one per tile.

        Raises
        ------
        LayoutError
            A mode has neither consecutive parts nor equal tiles, or the layout has a view or is partial.

        Examples
        --------
        >>> from rote import parse
        >>> parse("[(0:block),(1:cyclic(4))]").on((5, 10), (2, 2)).to_chunks()
        ((3, 2), (4, 4, 2))
        """
        chunks: tuple[tuple[int, ...], ...] = late("layout.foreign:to_chunks")(self)
        return chunks

    def to_scalapack(self, rank: int, context: int = 0) -> ScalapackArray:
        """The ScaLAPACK descriptor of a matrix, with the leading dimension of a rank's block in Fortran order.

        Law: `Distribution.from_scalapack(*dist.to_scalapack(rank))` has the indices of `dist` on every rank.

        Parameters
        ----------
        rank : int
            The rank whose block, `numpy.asfortranarray(x.local)`, the descriptor describes.
        context : int, default 0
            The handle of the BLACS grid.

        Raises
        ------
        LayoutError
            The tensor is not a matrix, or its modes are not dealt in equal tiles over a grid of all ranks.

        Examples
        --------
        >>> from rote import parse
        >>> parse("[(0:cyclic(2,at=1)),(1:block(ceil))]").on((9, 6), (2, 2)).to_scalapack(0)
        ScalapackArray(desc=(1, 0, 9, 6, 2, 3, 1, 0, 4), grid=(2, 2), order='row')
        """
        matrix: ScalapackArray = late("layout.foreign:to_scalapack")(self, rank, context)
        return matrix

    def to_sharding(self, names: Sequence[str] | None = None) -> ShardedArray:
        """The mesh and the PartitionSpec of the tensor for JAX, with one axis of the mesh per grid mode.

        `NamedSharding(jax.make_mesh(tuple(mesh.values()), tuple(mesh)), PartitionSpec(*spec))` puts the block of rank r
        on device r, if the mesh has the devices in the order of their numbers.

        Parameters
        ----------
        names : Sequence[str], optional
            The names of the axes; "g0", "g1", … if None.

        Raises
        ------
        LayoutError
            Parts are uneven or not contiguous, or there is a view, a root or a partial grid mode.

        Examples
        --------
        >>> from rote import parse
        >>> parse("block[(0,1),()]").on((8, 6), (2, 2)).to_sharding(("x", "y"))
        ShardedArray(mesh={'x': 2, 'y': 2}, spec=(('x', 'y'), None))
        """
        sharded: ShardedArray = late("layout.foreign:to_sharding")(self, names)
        return sharded

    @classmethod
    def from_ranges(cls, ranges: Sequence[Sequence[Sequence[int]]], shape: Iterable[int] | int | None = None) -> Self:
        """The distribution in which each rank holds, along each mode, the indices from its start up to its stop.

        PETSc's DMDA gives its blocks in this form, as `comm.allgather(da.getRanges())`.

        Parameters
        ----------
        ranges : Sequence[Sequence[Sequence[int]]]
            Per rank and mode, (start, stop); any empty range for a rank that holds nothing.
        shape : Iterable[int] | int, optional
            The shape of the tensor; if None, the largest stops.

        Raises
        ------
        LayoutError
            Blocks overlap, leave a gap, or fit no layout; the text says which, and what to do.

        Examples
        --------
        >>> from rote import Distribution
        >>> print(Distribution.from_ranges([((0, 2), (0, 6)), ((2, 4), (0, 6))]))
        block[(0),()] on (4, 6), grid 2
        """
        return cls(*late("layout.foreign:of_ranges")(ranges, shape))

    @classmethod
    def from_pencil(cls, shape: Iterable[int] | int, blocks: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Self:
        """The distribution in which the block of each rank is given by its start and its shape, as in mpi4py-fft.

        Parameters
        ----------
        shape : Iterable[int] | int
            The shape of the tensor: `pencil.shape`, or `u.global_shape` of a DistArray.
        blocks : Sequence[tuple[Sequence[int], Sequence[int]]]
            Per rank, (substart, subshape): `comm.allgather((pencil.substart, pencil.subshape))`.

        Raises
        ------
        LayoutError
            As for `from_ranges`.

        Examples
        --------
        >>> from rote import Distribution
        >>> print(Distribution.from_pencil((5, 4), [((0, 0), (3, 4)), ((3, 0), (2, 4))]))
        block[(0),()] on (5, 4), grid 2
        """
        return cls(*late("layout.foreign:of_pencil")(shape, blocks))

    @classmethod
    def from_chunks(
        cls, chunks: Sequence[Iterable[int]], grid: Sequence[int] | None = None, order: Literal["C", "F"] = "C"
    ) -> Self:
        """The distribution of Dask's chunks, or of PETSc's ownership ranges, over ranks.

        Parameters
        ----------
        chunks : Sequence[Iterable[int]]
            Per mode, the sizes of its chunks: `x.chunks` of Dask, `da.getOwnershipRanges()` of PETSc.
        grid : Sequence[int], optional
            Per mode, the number of ranks to which its chunks are dealt in turn; one rank per chunk if None.
        order : {'C', 'F'}, default 'C'
            How ranks are numbered: "C", the last mode fastest, or "F", the first mode fastest, as in PETSc.

        Raises
        ------
        LayoutError
            A size is not an integer of at least 0, or there are more chunks of unequal sizes than ranks.

        Examples
        --------
        >>> from rote import Distribution
        >>> print(Distribution.from_chunks(((4, 4, 1), (3, 3))))
        block(4)[(0),(1:block)] on (9, 6), grid 3x2
        >>> print(Distribution.from_chunks(((4, 4, 1), (3, 3)), grid=(2, 1)))
        cyclic(4)[(0),()] on (9, 6), grid 2
        >>> print(Distribution.from_chunks(((3, 2), (4, 4)), order="F"))
        block[(1),(0)] on (5, 8), grid 2x2
        """
        return cls(*late("layout.foreign:of_chunks")(chunks, grid, order))

    @classmethod
    def from_scalapack(
        cls, desc: Sequence[int], grid: Sequence[int] | Grid, order: Literal["row", "column"] = "row"
    ) -> Self:
        """The distribution of a dense ScaLAPACK matrix: block-cyclic, beginning at the source process.

        The leading dimension describes the block in memory and is not part of the distribution. The block in a buffer
        is `buffer[: columns * lld].reshape(columns, lld).T[:rows]`, which `DistTensor.from_local` uses without a copy.

        Parameters
        ----------
        desc : Sequence[int]
            The nine integers DTYPE, CTXT, M, N, MB, NB, RSRC, CSRC, LLD.
        grid : Sequence[int] | Grid
            (NPROW, NPCOL).
        order : {'row', 'column'}, default 'row'
            How BLACS_GRIDINIT numbers the processes, "row" or "column" major.

        Raises
        ------
        LayoutError
            The descriptor is of another type, or does not fit the grid.

        Notes
        -----
        Source: Blackford et al. 1997, ScaLAPACK Users' Guide, section 4.3.3.

        Examples
        --------
        >>> from rote import Distribution
        >>> print(Distribution.from_scalapack((1, 0, 9, 6, 2, 3, 1, 0, 5), (2, 2)))
        cyclic(2,at=1)[(0),(1:cyclic(3))] on (9, 6), grid 2x2
        """
        return cls(*late("layout.foreign:of_scalapack")(desc, grid, order))

    @classmethod
    def from_torch(cls, shape: Iterable[int] | int, mesh: Any, placements: Sequence[Any] | Placement) -> Self:
        """The distribution of torch's chunks, `torch.chunk(x, p, dim)[rank]`, or of a DTensor of a shape on a mesh.

        Parts have ceil(n/p) indices, the last ones fewer or none. Modes of the mesh split a dim one after the other.

        Parameters
        ----------
        mesh : DeviceMesh | Sequence[int] | int
            A DeviceMesh or its shape, or the number of chunks.
        placements : Sequence[Any] | Placement
            Per mode of the mesh, torch's own placement, or dim for Shard(dim), None for Replicate(), "sum", "product",
            "min" or "max" for Partial(…); for chunks, their dim.

        Raises
        ------
        LayoutError
            There is no such dim or reduction, or not one placement per mode of the mesh.

        Examples
        --------
        >>> from rote import Distribution
        >>> print(Distribution.from_torch((10, 6), 4, 0))
        block(ceil)[(0),()] on (10, 6), grid 4
        >>> print(Distribution.from_torch((10, 6), (2, 2, 2), (0, None, -1)))
        block(ceil)[(0),(2)] on (10, 6), grid 2x2x2
        """
        return cls(*late("layout.foreign:of_torch")(shape, mesh, placements))

    @classmethod
    def from_sharding(
        cls,
        shape: Iterable[int] | int,
        mesh: Mapping[str, int],
        spec: Sequence[str | Sequence[str] | None],
        devices: Any = None,
    ) -> Self:
        """The distribution of a JAX array with a `NamedSharding`: a mesh and a PartitionSpec.

        Parameters
        ----------
        shape : Iterable[int] | int
            The shape of the array.
        mesh : Mapping[str, int]
            The size of each axis of the mesh, in its order: `mesh.shape`.
        spec : Sequence[str | Sequence[str] | None]
            `tuple(spec)`: per mode, None, an axis name or several; modes left out at the end are not split.
        devices : Sequence, optional
            The ranks in the mesh, as `np.vectorize(lambda d: d.id)(mesh.devices)`; row-major order if None.

        Raises
        ------
        LayoutError
            An axis does not exist or is used twice; the parts are uneven, which JAX refuses too; or no layout has the
            devices in this order.

        Examples
        --------
        >>> from rote import Distribution
        >>> print(Distribution.from_sharding((8, 6), {"x": 2, "y": 2}, (("x", "y"), None)))
        block[(0,1),()] on (8, 6), grid 2x2
        >>> print(Distribution.from_sharding((8, 6), {"x": 2, "y": 2}, ("x", "y"), [[0, 2], [1, 3]]))
        block[(1),(0)] on (8, 6), grid 2x2
        """
        return cls(*late("layout.foreign:of_sharding")(shape, mesh, spec, devices))


def _role(layout: Layout, grid_mode: int) -> Role:
    if grid_mode in layout.partial:
        return Role("partial")
    at = dict(layout.rooted).get(grid_mode)
    if at is not None:
        return Role("rooted", at)

    return Role("split") if grid_mode in layout.grid_modes else _REPLICATED


def replication(dist: Distribution, *others: Distribution) -> str:
    """What it means for the ranks that no distribution, of some on one grid, names some of its modes; else empty.

    >>> from rote import parse
    >>> replication(parse("block[(1),()]").on((4, 4), (2, 3)))
    'replicated over grid mode 0: each block is stored on 2 ranks'
    """
    extents = dist.grid.shape
    roles = [*zip(*[one.roles for one in (dist, *others)], strict=True)]
    modes = [g for g, p in enumerate(extents) if p > 1 and {role.name for role in roles[g]} == {"replicated"}]
    if not modes:
        return ""

    names = f"grid mode{'s' * (len(modes) > 1)} {', '.join(map(str, modes))}"
    return f"replicated over {names}: each block is stored on {prod([extents[g] for g in modes])} ranks"


def block_range(dist: Distribution, rank: int) -> tuple[tuple[int, int], ...]:
    """Per mode, start and stop of the indices that a rank holds; (0, 0) along a mode without any."""
    box = []
    for mode, indices in enumerate(plain(dist).index_sets(rank)):
        if indices and indices.stop - indices.start != len(indices):
            raise LayoutError(f"rank {rank} holds {indices} of mode {mode} in {dist}, which is no range\n{PLAIN}")
        box.append((indices.start, indices.stop))

    return tuple(box)


def plain(dist: Distribution) -> Distribution:
    """The distribution itself, if its blocks are parts of the tensor: no views, no contributions."""
    if dist.layout.view is not None:
        raise LayoutError(f"{dist.layout} reads the tensor by a view, of which only Rote knows\n{PLAIN}")
    if dist.partial:
        raise LayoutError(f"the blocks of {dist.layout} are contributions, no parts of the tensor\n{PLAIN}")
    if not dist.shape and any(role.name == "rooted" for role in dist.roles):
        rule = f"{dist} is of order 0 and rooted, which no range or slice says"
        raise LayoutError(f"{rule}\nredistribute to [] first, or write x.to_global()")
    return dist


def distribute(layout: Layout, shape: Iterable[int] | int, grid: Grid | Iterable[int] | int) -> Distribution:
    """A layout on a shape and a grid, in any form that `Layout.on` takes: `distribute(layout, (8, 9), (2, 2))`."""
    return distribution_of(layout, tensor_shape(shape), grid_shape(grid))


@memoized(4096)
def distribution_of(layout: Layout, shape: tuple[int, ...], grid: tuple[int, ...]) -> Distribution:
    """As `distribute`, of shapes of plain integers: the cache would take 4.0 for 4."""
    return Distribution(layout, shape, Grid(grid))
