"""Subsets of the ranks: the communicators of grid modes, and tensors that only some ranks hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from ..errors import LayoutError
from ..functions.distributed import Distributed
from ..functions.sharing import linked
from ..layout.layout import Distribution, Layout
from ..layout.refine import without_roots
from ..runtime.comm.cache import gathered
from ..runtime.comm.collective_errors import collective_errors
from ..runtime.comm.protocol import Comm
from ..runtime.comm.resolve import as_comm
from ..runtime.exchange.messages import sub_comm
from ..runtime.placement import GridLike, place, same_everywhere

__all__ = ["Subsets"]


class Subsets(Distributed):
    """The methods of tensors for subsets of their ranks."""

    __slots__ = ()

    def grid_comm(self, *grid_modes: int) -> Comm:
        """The communicator of the ranks that differ from this one only along some grid modes. Collective; made once.

        For example, `x.grid_comm(1)` is this rank's row of a grid of order 2: the ranks with equal coordinates along
        grid mode 0.

        Args:
            grid_modes: modes of the tensor's grid, in any order; none for a communicator of this rank alone.

        Returns:
            A communicator in which ranks are numbered in row-major order of their coordinates along these grid modes.

        Raises:
            LayoutError: the grid has no such mode, or a mode is given twice.

        >>> import numpy as np, rote
        >>> def row_sums(comm):
        ...     x = rote.DistTensor.from_global(np.arange(6.0).reshape(2, 3), "block[(0),(1)]", grid=(2, -1))
        ...     sums = x.local.sum(axis=1)
        ...     x.grid_comm(1).allreduce_in_place(sums, "sum")
        ...     return sums.tolist()
        >>> rote.run(row_sums, ranks=4)
        [[3.0], [3.0], [12.0], [12.0]]
        """
        grid = self.distribution.grid
        if {*grid_modes} - {*range(grid.order)} or len({*grid_modes}) < len(grid_modes):
            raise LayoutError(f"grid {grid} has the modes {(*range(grid.order),)}, each of them once; not {grid_modes}")
        return sub_comm(self.comm, grid, tuple(sorted(grid_modes)))

    def on_roots(self) -> Self | None:
        """The tensor on the communicator of the ranks that hold it; None on all other ranks. Collective.

        The rooted layout names these ranks. Blocks are shared with this tensor, not copied. Operations on the result
        are collective over these ranks only, so that the others can do other work meanwhile. `from_roots` is the
        inverse.

        Raises:
            LayoutError: the layout is not rooted, so that all ranks hold a part.

        >>> import rote
        >>> def program(comm):
        ...     x = rote.DistTensor.zeros(6, "block[(0)]|(1)", grid=(2, 2)).on_roots()
        ...     return None if x is None else (x.comm.rank, x.local.shape, str(x.layout))
        >>> rote.run(program, ranks=4)
        [(0, (3,), 'block[(0)]'), None, (1, (3,), 'block[(0)]'), None]
        """
        dist = self.distribution
        _check_rooted(dist)
        comm = self.grid_comm(*_others(dist))
        if not dist.holds(self.comm.rank):
            return None
        return linked(self._wrap(self.local, without_roots(dist), comm), self)

    @classmethod
    def from_roots(
        cls,
        x: Self | None,
        layout: Layout | str,
        shape: Iterable[int] | int,
        comm: object | None = None,
        grid: GridLike = None,
    ) -> Self:
        """The tensor on all ranks from one that only some of them hold: the inverse of `on_roots`. Blocks are not
        copied.

        Args:
            x: the tensor on the ranks that hold data, numbered in row-major order of their coordinates; None on all
                others.
            layout: the rooted layout of the whole tensor, which equals that of x except for its roots.
            shape: the shape of the whole tensor.
            comm, grid: those of all ranks, as in `from_global`.

        Raises:
            LayoutError: on all ranks, if the layout is not rooted, or x does not fit it on some rank.

        >>> import numpy as np, rote
        >>> def program(comm):
        ...     half = comm.split(color=comm.rank % 2, key=comm.rank)
        ...     even = comm.rank % 2 == 0
        ...     x = rote.DistTensor.from_global(np.arange(6), "block[(0)]", half) if even else None
        ...     y = rote.DistTensor.from_roots(x, "block[(0)]|(1)", 6, comm, (2, 2))
        ...     return y.redistribute("block[(0,1)]").local
        >>> [block.tolist() for block in rote.run(program, ranks=4)]
        [[0, 1], [2], [3, 4], [5]]
        """
        ranks = as_comm(comm)
        with collective_errors(ranks):
            dist = place(shape, layout, ranks, grid)
            _check_rooted(dist)
            _check_part(x, dist, ranks.rank)
        dtypes: list[np.dtype[Any] | None] = gathered(ranks, "from_roots", None if x is None else x.local.dtype)
        element = next(dtype for dtype in dtypes if dtype is not None)
        block = np.empty(dist.local_shape(ranks.rank), element) if x is None else x.local
        same_everywhere(ranks, dist, block.dtype)
        return cls._wrap(block, dist, ranks)


def _others(dist: Distribution) -> tuple[int, ...]:
    """The grid modes that are not rooted."""
    rooted = {g for g, _ in dist.layout.rooted}
    return tuple(g for g in range(dist.grid.order) if g not in rooted)


def _check_rooted(dist: Distribution) -> None:
    if not dist.layout.rooted:
        raise LayoutError(
            f"{dist.layout} is not rooted, so all ranks hold a part\n"
            "write a layout such as 'block[(0),()]|(1)', by which only coordinate 0 of grid mode 1 holds data"
        )


def _check_part(x: Distributed | None, dist: Distribution, rank: int) -> None:
    """Refuse a tensor that is not this rank's part of the rooted one, a missing part, and one too many."""
    if (x is not None) != dist.holds(rank):
        has, given = ("a part", "none is given") if x is None else ("nothing", "a tensor is given")
        raise LayoutError(f"rank {rank} holds {has} of {dist}, but {given}\nwrite None on the ranks that hold nothing")
    if x is None:
        return
    wanted, others = without_roots(dist), _others(dist)
    coordinates = dist.grid.coordinates(rank)
    number = wanted.grid.rank([coordinates[g] for g in others])
    if x.distribution != wanted or x.comm.rank != number:
        raise LayoutError(
            f"rank {rank} gives {x.distribution} as rank {x.comm.rank} of those that hold it, but {dist} is "
            f"{wanted} there, as rank {number}"
        )
