"""Halos of arrays of JAX: blocks with the cells of their neighbours around them, by permutations.

A halo grows mode by mode, so what comes along one mode has the ghosts of the modes before, and corners need no messages
of their own. Along a mode, all blocks pass cells to the part that is one further, then two, as far as a halo reaches:

    width 1 on 3 parts        . a a .    . b b .    . c c .
    from the part before        a a .    a b b .    b c c .        a -> b, b -> c
    from the part behind        a a b    a b b c    b c c .        b -> a, c -> b
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..compiler.halo import HaloPlan, flags_of, widths_of
from ..errors import LayoutError
from ..layout.distribution import Distribution
from ..layout.grid import row_major
from .arrays import distribution_of, sharding
from .collectives import forwarded, rank_of
from .lowering import applied, check_block
from .meshes import check_dtype, library
from .positions import Positions

__all__ = ["LoweredHalo", "halo", "lower_halo"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class LoweredHalo:
    """A halo as a function of arrays of JAX, for use in `jit`. `lower` makes it.

    Attributes
    ----------
    plan : HaloPlan
        The plan.
    mesh : jax.sharding.Mesh
        The mesh.

    Examples
    --------
    >>> import jax, numpy as np, rote
    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> plan = rote.DistTensor.zeros(3, "block[(0)]", dtype="f4").halo_plan(1, periodic=True)
    >>> rote.jax.lower(plan, mesh)(rote.jax.from_global(np.arange(3, dtype="f4"), plan.source, mesh)).tolist()
    [2.0, 0.0, 1.0, 2.0, 0.0]
    """

    plan: HaloPlan
    mesh: Any

    def __call__(self, x: Any, fill: Any = 0) -> Any:
        """The blocks with their ghosts, side by side, from an array in the stored order of `plan.source`.

        Args:
            fill: the value of ghosts beyond the ends of modes that are not periodic, and behind shorter blocks.

        Raises:
            PlanError: the array has another shape, dtype or sharding than the source; or that has no sharding.
        """
        value, source = library().numpy.asarray(fill, self.plan.dtype), self.plan.source
        if value.ndim:
            raise LayoutError(f"fill is one value, not an array of shape {value.shape}")
        return applied(self, [(x, source, self.plan.dtype)], source, value)

    def local(self, block: Any, fill: Any = 0) -> Any:
        """A rank's block with its ghosts, from the block, where a `shard_map` over the mesh calls it.

        Parameters
        ----------
        block : jax.Array
            The block.
        fill : scalar, default 0
            The value of ghosts beyond the ends of modes that are not periodic.

        Examples
        --------
        >>> import jax, numpy as np, rote
        >>> zeros = lambda comm: rote.DistTensor.zeros(4, "block[(0)]", comm, dtype="f4")
        >>> plan = rote.run(lambda comm: zeros(comm).halo_plan(1, periodic=True), ranks=2)[0]
        >>> lowered = rote.jax.lower(plan, jax.sharding.AbstractMesh((2,), ("x",)))
        >>> rote.jax.virtual(lowered)(np.array([[0, 1], [2, 3]], "f4")).tolist()
        [[3.0, 0.0, 1.0, 2.0], [1.0, 2.0, 3.0, 0.0]]
        """
        check_block(block, self.plan.source)
        jax, rank = library(), rank_of(self.mesh)
        halos = [self.plan.wanted(number) for number in range(self.mesh.size)]

        for mode, (low, high) in enumerate(self.plan.widths):
            longer = (*block.shape[:mode], block.shape[mode] + low + high, *block.shape[mode + 1 :])
            grown = jax.numpy.full(longer, fill, block.dtype)

            for step in _passes(self.plan.source, mode, low, [halo[mode] for halo in halos]):
                cells = step.sent.taken(block, mode, rank)
                if any(sender != receiver for sender, receiver in step.senders.items()):
                    cells = forwarded(cells, step.senders, self.mesh)
                arrives = np.isin(np.arange(self.mesh.size), [*step.senders.values()])
                if not arrives.all():  # elsewhere, what is there stays
                    there = step.received.taken(grown, mode, rank)
                    cells = jax.numpy.where(jax.numpy.asarray(arrives)[rank], cells, there)
                grown = step.received.put(grown, mode, rank, cells)
            block = grown
        return block


def lower_halo(plan: HaloPlan, mesh: Any) -> LoweredHalo:
    """A halo as a function of arrays of JAX; see `lower`."""
    sharding(plan.source, mesh)  # or the error that says why there is none
    check_dtype(plan.dtype)
    return LoweredHalo(plan, mesh)


def halo(x: Any, width: Any, periodic: Any = False, fill: Any = 0, *, layout: Any = None, mesh: Any = None) -> Any:
    """The blocks of a sharded array of JAX with their neighbours' cells around them, side by side.

    It is sharded as the array is, so a function that `jax.shard_map` calls has the block with its ghosts: faces, edges
    and corners of the neighbours. A halo may be wider than the neighbour.

    Parameters
    ----------
    x : jax.Array
        An array of JAX, or what stands for one under `jit`.
    width : int | Sequence[int | tuple[int, int]]
        Ghost cells on both sides of every mode; or per mode a number, or a pair (below, above).
    periodic : bool | Sequence[bool], default False
        Whether ghosts beyond an end come from the other end; for all modes, or per mode.
    fill : scalar, default 0
        The value of ghosts beyond the ends of modes that are not periodic.
    layout : Layout | str | PartitionSpec, optional
        The layout, or the PartitionSpec, of `x`, where JAX does not know it: under `jit` if axes of the mesh are Auto.
    mesh : jax.sharding.Mesh, optional
        The mesh of `x`, where JAX does not know it.

    Raises
    ------
    LayoutError
        Blocks are not boxes; there is not one width per mode.
    PlanError
        The sharding of `x` is not known, or another one than `layout`.

    Examples
    --------
    >>> import jax, rote
    >>> mesh, P = jax.make_mesh((1,), ("x",)), jax.sharding.PartitionSpec
    >>> x = jax.device_put(jax.numpy.arange(1, 5), jax.sharding.NamedSharding(mesh, P("x")))
    >>> rote.jax.halo(x, [(2, 1)], periodic=True).tolist()
    [3, 4, 1, 2, 3, 4, 1]
    """
    source, mesh = distribution_of(x, layout, mesh)
    widths, flags = widths_of(width, x.ndim), flags_of(periodic, x.ndim)
    return LoweredHalo(HaloPlan(source, widths, flags, np.dtype(x.dtype)), mesh)(x, fill)


class _Pass(NamedTuple):
    """Cells along a mode that go from each part to the one that is some parts further.

    Attributes:
        senders: for each rank that sends, the one that receives, which may be itself.
        sent, received: where the cells are in the sender's block, and in the receiver's halo.
    """

    senders: dict[int, int]
    sent: Positions
    received: Positions


def _passes(dist: Distribution, mode: int, low: int, halos: Sequence[Ints]) -> list[_Pass]:
    """The passes along a mode that fill halos.

    Args:
        low: how many ghosts are below a block.
        halos: for each rank, the indices in its halo along the mode; -1 beyond the ends.
    """
    weights, splits = row_major(dist.grid.shape), dist.splits[mode]
    parts = prod([split.parts for split in splits])
    senders = defaultdict[int, dict[int, int]](dict)
    sent, received = defaultdict[int, dict[int, Ints]](dict), defaultdict[int, dict[int, Ints]](dict)

    for rank, indices in enumerate(halos):
        places, at = np.flatnonzero(indices >= 0), dist.grid.coordinates(rank)
        owners, local = dist.locate(mode, indices[places])

        # Which rank has each cell, and how many parts further this rank is.
        holders, distances = np.full(len(places), rank), np.zeros(len(places), np.int64)
        for split in splits:
            further = at[split.grid_mode] - owners[split.grid_mode]
            holders -= further * weights[split.grid_mode]
            distances = distances * split.parts + further

        # A cell from beyond an end is one round further, so that cells of one pass are adjacent.
        if len(places):
            beyond = indices[low] - low + places - indices[places]
            distances -= beyond // dist.shape[mode] * parts

        for distance in {*distances.tolist()}:
            here = distances == distance
            holder = int(holders[here][0])
            senders[distance][holder] = rank
            sent[distance][holder], received[distance][rank] = local[here], places[here]

    size = dist.grid.size
    return [
        _Pass(senders[distance], _positions(sent[distance], size), _positions(received[distance], size))
        for distance in sorted(senders)
    ]


def _positions(rows: dict[int, Ints], size: int) -> Positions:
    """The positions of some ranks; the others have the same ones if these are equal, for they do not matter."""
    first, *more = rows.values()
    others = first if all(np.array_equal(row, first) for row in more) else first[:0]
    return Positions([rows.get(rank, others) for rank in range(size)])
