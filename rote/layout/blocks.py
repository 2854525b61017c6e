"""Blocks: which rank holds which elements of a tensor, given a layout, a shape and a grid.

Every answer is computed from digits alone, so nothing here costs more on 32,768 ranks than on 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Literal, NamedTuple

import numpy as np

from ..caches import memoized
from ..errors import LayoutError, counted
from .algebra import LayoutAlgebra
from .grid import Grid, Printed, integers, ranks_at, tensor_shape
from .indexset import EMPTY, IndexSet, Ints
from .kinds import Split, check_mode, local_extents, locate, mode_set
from .view import Digit, View, to_tensor

__all__ = ["Blocks", "Role"]

RoleName = Literal["split", "replicated", "partial", "rooted"]


class Role(NamedTuple):
    """The role of a grid mode in a distribution: "split", "replicated", "partial" or "rooted" (at a coordinate)."""

    name: RoleName
    at: int = 0


_REPLICATED = Role("replicated")


@dataclass(frozen=True, slots=True, repr=False)
class Blocks(Printed):
    """Which rank holds which elements of a tensor; the base of `Distribution`.

    It reads its layout, and never derives other layouts from it.
    """

    layout: LayoutAlgebra
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
        object.__setattr__(self, "shape", shape)
        if len(shape) != layout.tensor_order:
            raise LayoutError(
                f"{layout} is for tensors of order {layout.tensor_order}, but the shape is {shape}; "
                "write one pair of parentheses per mode"
            )
        unknown = [g for g in layout.grid_modes if g >= grid.order]
        if unknown:
            raise LayoutError(f"{layout} names grid mode {unknown[0]}, but the grid {grid} has order {grid.order}")
        for g, at in layout.rooted:
            if at >= grid.shape[g]:
                has = counted(grid.shape[g], "coordinate")
                raise LayoutError(f"{layout} is rooted at coordinate {at}, but grid mode {g} has {has}, from 0 on")
        view = layout.view or View.plain(len(shape))
        digits = view.digits(shape)
        extents, splits = list[int](), list[tuple[Split, ...]]()
        for entries, read in zip(layout.modes, digits, strict=True):
            mode = tuple([Split(entry.grid_mode, entry.kind, grid.shape[entry.grid_mode]) for entry in entries])
            extent = prod([digit.size for digit in read])
            if extent >= 2**63:
                raise LayoutError(f"{layout} reads {shape} with a mode of {extent} indices; extents are below 2**63")
            check_mode(mode, extent)
            extents.append(extent)
            splits.append(tuple([split for split in mode if split.parts > 1]))
        roles = [_role(layout, g) if p > 1 else _REPLICATED for g, p in enumerate(grid.shape)]
        object.__setattr__(self, "digits", digits)
        object.__setattr__(self, "view_shape", tuple(extents))
        object.__setattr__(self, "splits", tuple(splits))
        object.__setattr__(self, "roles", tuple(roles))
        object.__setattr__(self, "partial", tuple([g for g, role in enumerate(roles) if role.name == "partial"]))
        object.__setattr__(self, "_hash", hash((layout, shape, grid)))

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

        Raises:
            LayoutError: the grid has no such rank.

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

        Raises:
            LayoutError: the grid has no such rank.

        >>> from rote import parse
        >>> [parse("[()]+(0)").on(5, 2).contributes(rank) for rank in range(2)]
        [True, False]
        """
        coordinates = self.grid.coordinates(rank)
        return not any(coordinates[g] for g in self.partial)

    def index_sets(self, rank: int) -> tuple[IndexSet, ...]:
        """Per view mode, the set of global indices that a rank holds, stored as periodic runs.

        Outside the root, all sets are empty; a tensor of order 0 then has one, because its block is of shape (0,).

        Raises:
            LayoutError: the grid has no such rank.

        >>> from rote import parse
        >>> print(*parse("[(0),()]").on((5, 3), 2).index_sets(1))
        {1, 3} {0..2}
        """
        coordinates = self.grid.coordinates(rank)
        if not self._is_root(coordinates):
            return (EMPTY,) * max(self.order, 1)
        held = []
        for splits, extent in zip(self.splits, self.view_shape, strict=True):
            held.append(mode_set(splits, extent, tuple([coordinates[split.grid_mode] for split in splits])))
        return tuple(held)

    def indices(self, rank: int) -> tuple[Ints, ...]:
        """Per view mode, the global indices that a rank holds, in local order: one array of integers per mode.

        They are as many as `local_shape` says; outside the root of a tensor of order 0, that is one empty array.

        Raises:
            LayoutError: the grid has no such rank.

        >>> from rote import parse
        >>> [held.tolist() for held in parse("[(0),()]").on((5, 3), 2).indices(1)]
        [[1, 3], [0, 1, 2]]
        """
        return tuple(held.to_array() for held in self.index_sets(rank))

    def tensor_indices(self, rank: int) -> tuple[Ints, ...]:
        """Per mode of the tensor itself, the global indices of a rank's elements; they broadcast to the block's shape.

        Without a view, this is an open mesh of `indices`, as `np.ogrid` makes it.

        Raises:
            LayoutError: the grid has no such rank.

        >>> from rote import parse
        >>> [held.tolist() for held in parse("(a b): block[(0)]").on((2, 3), 2).tensor_indices(1)]
        [[1, 1, 1], [0, 1, 2]]
        """
        global_indices: list[Ints] = [np.zeros((1,) * self.order, np.int64) for _ in self.shape]
        for mode, (digits, index) in enumerate(zip(self.digits, self.indices(rank), strict=False)):
            along = index.reshape((1,) * mode + (-1,) + (1,) * (self.order - mode - 1))
            for m, added in to_tensor(digits, along).items():
                global_indices[m] = global_indices[m] + added
        return tuple(global_indices)

    @memoized(16384, typed=True)
    def local_shape(self, rank: int) -> tuple[int, ...]:
        """The shape of a rank's block, which is empty outside the root ((0,) for a tensor of order 0).

        Raises:
            LayoutError: the grid has no such rank.

        >>> from rote import parse
        >>> [parse("block[(0),()]").on((5, 3), 2).local_shape(rank) for rank in range(2)]
        [(3, 3), (2, 3)]
        """
        return tuple([len(held) for held in self.index_sets(rank)])

    def max_local_shape(self) -> tuple[int, ...]:
        """Per view mode, the largest local extent on any rank.

        >>> from rote import parse
        >>> parse("block[(0),()]").on((5, 3), 2).max_local_shape()
        (3, 3)
        """
        extents = map(local_extents, self.splits, self.view_shape)
        return tuple([max(each, default=0) for each in extents])

    def locate(self, mode: int, index: Ints) -> tuple[dict[int, Ints], Ints]:
        """Along one view mode, the coordinate per grid mode that holds each global index, and its local index there.

        Raises:
            IndexError: there is no such mode.

        >>> from rote import parse
        >>> parse("block[(0)]").on(5, 2).locate(0, np.array([0, 4]))
        ({0: array([0, 1])}, array([0, 1]))
        """
        return locate(self.splits[mode], self.view_shape[mode], index)

    @property
    def meaning(self) -> tuple[object, ...]:
        """A value that is equal for distributions under which every rank has the same elements in the same order."""
        return self.shape, self.grid, self.digits, self.splits, self.roles, self.partial and self.layout.op

    def owners(self, index: Sequence[int] | int) -> tuple[int, ...]:
        """The ranks that hold the element at a global index of the view, ascending; if partial, all contributors.

        Raises:
            LayoutError: the index is outside the tensor.

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
        fixed = dict(self.layout.rooted)
        for mode, i in enumerate(where):
            coordinates, _ = self.locate(mode, np.array(i))
            fixed.update({g: int(c) for g, c in coordinates.items()})
        return tuple(ranks_at(self.grid, fixed))

    def __str__(self) -> str:
        return f"{self.layout} on {self.shape}, grid {self.grid}"

    def __repr__(self) -> str:
        return f"{self.layout!r}.on({self.shape}, {self.grid.shape})"


def _role(layout: LayoutAlgebra, grid_mode: int) -> Role:
    """The role that a layout gives a grid mode."""
    if grid_mode in layout.partial:
        return Role("partial")
    at = dict(layout.rooted).get(grid_mode)
    if at is not None:
        return Role("rooted", at)
    return Role("split") if grid_mode in layout.grid_modes else _REPLICATED
