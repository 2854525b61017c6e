"""Plans of ghost cells: which ranks send the faces, edges and corners around a block, and the cost of that.

Along each mode, a halo is an interval of indices that extends the block by a width at each end. It is cut into pieces,
each with one owner. A rank receives the products of the pieces of its modes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..caches import memoized
from ..errors import LayoutError
from ..layout.distribution import Distribution, block_range
from ..layout.grid import integer, ravel, unravel
from ..layout.kinds import Split, mode_set
from ..machines.machine import DEFAULT, Machine, slowest_of
from .cost import Cost
from .overlaps import counting
from .verify.halo import Delivery, verify_deliveries

__all__ = ["HaloPlan", "flags_of", "widths_of"]

Ints = npt.NDArray[np.int64]
Width = tuple[int, int]


class _Run(NamedTuple):
    """Contiguous indices of a halo along one mode that one part holds."""

    place: int  # the position of the first index in the halo
    start: int  # the global index of the first index
    length: int
    owner: int  # the number of the part, row-major over the entries of the mode


@dataclass(frozen=True, slots=True, eq=False)
class _Mode:
    """A halo along one mode: per part its pieces, the extents of its block and halo, and what it takes and gives."""

    pieces: tuple[tuple[_Run, ...], ...]
    blocks: Ints
    extents: Ints
    received: Ints  # the number of indices that each part takes from all parts
    sent: Ints  # the number of indices that each part gives to all parts
    local: Ints  # those that it takes from itself
    sources: Ints  # the number of parts from which a part takes, and below, to which it gives
    targets: Ints


@dataclass(frozen=True, slots=True)
class HaloPlan:
    """The exchange that gives each rank its block with ghost cells around it; `x.halo_plan(width)` makes one.

    Attributes
    ----------
    source : Distribution
        The distribution of the tensor; every block is a box.
    widths : tuple[tuple[int, int], ...]
        Per mode, the number of ghost cells below and above the block.
    periodic : tuple[bool, ...]
        Per mode, whether ghosts beyond one end come from the other end; else they are filled.
    dtype : numpy.dtype
        The dtype of the elements.

    Raises
    ------
    LayoutError
        A block is not a box of contiguous indices.

    Examples
    --------
    >>> import rote
    >>> def program(comm):
    ...     return rote.DistTensor.zeros((8, 4), "block[(0),()]", comm).halo_plan((1, 0))
    >>> plan = rote.run(program, ranks=4)[0]
    >>> plan.shape(1), plan.cost.messages, plan.cost.bytes
    ((4, 4), 2, 64)
    >>> print(plan)
    halo of (1,1),(0,0) around block[(0),()] on (8, 4), grid 4: 2 messages, up to 64 bytes to each rank
    >>> plan.verify()
    """

    source: Distribution
    widths: tuple[Width, ...]
    periodic: tuple[bool, ...]
    dtype: np.dtype[Any]
    machine: Machine = DEFAULT

    def __post_init__(self) -> None:
        if len(self.widths) != len(self.source.shape) or len(self.periodic) != len(self.source.shape):
            raise LayoutError(
                f"{self.source} has {len(self.source.shape)} modes, but there are {len(self.widths)} widths, and "
                f"{len(self.periodic)} say whether they are periodic\ngive one of each per mode, or one for all"
            )
        for rank in range(self.source.grid.size):
            block_range(self.source, rank)

    def shape(self, rank: int) -> tuple[int, ...]:
        """The shape of a rank's block with its ghost cells; along a mode without indices there are no ghosts."""
        return tuple(int(mode.extents[k]) for mode, k in zip(self._modes(), self._parts(rank), strict=True))

    def wanted(self, rank: int) -> tuple[Ints, ...]:
        """Per mode, the global indices in the halo of a rank; -1 beyond the ends of a mode that is not periodic."""
        lists = []
        for mode, k in zip(self._modes(), self._parts(rank), strict=True):
            indices = np.full(int(mode.extents[k]), -1, np.int64)
            for piece in mode.pieces[k]:
                indices[piece.place : piece.place + piece.length] = np.arange(piece.start, piece.start + piece.length)
            lists.append(indices)
        return tuple(lists)

    def deliveries(self, rank: int) -> tuple[Delivery, ...]:
        """The boxes that make up the halo of a rank, including its own block, and the rank that holds each."""
        if 0 in self.source.local_shape(rank):
            return ()

        pieces = [mode.pieces[k] for mode, k in zip(self._modes(), self._parts(rank), strict=True)]
        boxes = []

        for box in product(*pieces):
            coordinates = list(self.source.grid.coordinates(rank))  # replicas have their own neighbours
            for piece, splits in zip(box, self.source.splits, strict=True):
                at = unravel(piece.owner, [split.parts for split in splits])
                for split, c in zip(splits, at, strict=True):
                    coordinates[split.grid_mode] = c

            places = tuple((piece.place, piece.place + piece.length) for piece in box)
            indices = tuple((piece.start, piece.start + piece.length) for piece in box)
            boxes.append(Delivery(self.source.grid.rank(coordinates), places, indices))
        return tuple(boxes)

    @property
    def cost(self) -> Cost:
        """The cost of `x.halo`: the model's seconds, and the most bytes and messages that one rank receives."""
        return self._cost("received", "sent", "sources")

    @property
    def accumulate_cost(self) -> Cost:
        """The cost of `x.accumulate_halo`, in which all messages travel in the opposite direction."""
        return self._cost("sent", "received", "targets")

    def verify(self, rank: int | None = None) -> None:
        """Prove from only the index sets that each ghost cell of a rank arrives exactly once, from its holder.

        If `rank` is None, prove it for all ranks, and recount the figures of `cost` and `accumulate_cost`.

        Raises
        ------
        PlanError
            The proof fails; the text says where.
        """
        item, claimed = self.dtype.itemsize, None
        if rank is None:
            claimed = tuple((cost.messages, cost.bytes // item) for cost in (self.cost, self.accumulate_cost))
        ranks = range(self.source.grid.size) if rank is None else (rank,)
        halos = {r: (self.shape(r), self.deliveries(r)) for r in ranks}
        verify_deliveries(self.source, self.widths, self.periodic, halos, claimed)

    def _modes(self) -> tuple[_Mode, ...]:
        dist = self.source
        modes = zip(dist.splits, dist.shape, self.widths, self.periodic, strict=True)
        return tuple([_mode(splits, extent, *width, around) for splits, extent, width, around in modes])

    def _parts(self, rank: int) -> tuple[int, ...]:
        """Per mode, the number of the part of a rank; outside a root, -1 for the empty part at the end."""
        if not self.source.holds(rank):
            return (-1,) * len(self.source.shape)
        at = self.source.grid.coordinates(rank)
        numbers = []
        for splits in self.source.splits:
            numbers.append(ravel([at[split.grid_mode] for split in splits], [split.parts for split in splits]))
        return tuple(numbers)

    def _cost(self, received: str, sent: str, partners: str) -> Cost:
        """The cost of an exchange; the arguments name the fields of `_Mode` that count what each rank moves."""
        modes = self._modes()

        def per_rank(table: str) -> Ints:
            along = [getattr(mode, table)[:-1] for mode in modes]
            most = prod([int(counts.max(initial=0)) for counts in along])
            return reduce(np.multiply.outer, along, np.array(1, counting(most)))

        def most(elements: Ints) -> int:
            return int(elements.max(initial=0)) * self.dtype.itemsize

        local, memory = per_rank("local"), per_rank("blocks") + per_rank("extents")
        arriving, leaving = per_rank(received) - local, per_rank(sent) - local

        messages = int((per_rank(partners) - (local > 0)).max(initial=0))
        nbytes, packed = most(arriving), arriving + leaving

        seconds = 0.0
        if messages:
            times = self.machine.along(self.source.grid)
            slowest = slowest_of(times, tuple([split.grid_mode for splits in self.source.splits for split in splits]))
            seconds = self.machine.step_time + slowest.latency * messages
            seconds = seconds + slowest.byte * nbytes + slowest.copy * most(packed)
        return Cost(seconds, nbytes, messages, most(memory + packed))

    def __str__(self) -> str:
        widths = ",".join([f"({low},{high})" for low, high in self.widths])
        halo = "periodic halo" if any(self.periodic) else "halo"
        cost = self.cost
        sent = f"{cost.messages} messages, up to {cost.bytes:,} bytes to each rank"
        return f"{halo} of {widths} around {self.source}: {sent}"


def widths_of(width: int | Sequence[int | Width], order: int) -> tuple[Width, ...]:
    """Per mode, the ghosts below and above, from what a caller writes.

    Raises:
        LayoutError: it is no number, nor a list of numbers or pairs.

    >>> widths_of([1, (2, 0)], 2)
    ((1, 1), (2, 0))
    """
    try:
        per_mode = tuple(width) if isinstance(width, Sequence) else (width,) * order
        pairs = [tuple(ghosts) if isinstance(ghosts, Sequence) else (ghosts, ghosts) for ghosts in per_mode]
        widths = tuple((integer(low, "a width"), integer(high, "a width")) for low, high in pairs)
        right = all(low >= 0 and high >= 0 for low, high in widths)
    except ValueError:  # not integers, or more than two
        right = False

    if not right:
        raise LayoutError(
            f"{width!r} is no width of ghost cells\nwrite a number, or per mode one or a pair (below, above)"
        )
    return widths


def flags_of(periodic: bool | Sequence[bool], order: int) -> tuple[bool, ...]:
    """Per mode, whether it is periodic, from what a caller writes.

    Raises:
        LayoutError: it is no truth value, nor a list of them; a text would have as many flags as letters.

    >>> flags_of(True, 2), flags_of([True, False], 2)
    ((True, True), (True, False))
    """
    flags: tuple[Any, ...] = (periodic,) * order
    if isinstance(periodic, Sequence | np.ndarray) and not isinstance(periodic, str | bytes):
        flags = tuple(periodic)

    for flag in flags:
        if not isinstance(flag, int | np.bool | np.integer) or flag not in (0, 1):
            raise LayoutError(
                f"periodic is True or False for all modes, or a list of one per mode, not {periodic!r}\n"
                f"write periodic=True, or periodic={[True] * order}"
            )
    return tuple(map(bool, flags))


@memoized(4096)
def _mode(splits: tuple[Split, ...], extent: int, low: int, high: int, periodic: bool) -> _Mode:
    """The halo of all parts of a mode, followed by an empty part."""
    blocks = []
    for coordinates in product(*[range(split.parts) for split in splits]):
        indices = mode_set(splits, extent, coordinates)
        blocks.append((indices.start, indices.stop))

    holders = sorted((start, stop, k) for k, (start, stop) in enumerate(blocks) if start < stop)
    starts = [start for start, _, _ in holders]

    pieces = []
    for first, last in (*blocks, (0, 0)):
        row: list[_Run] = []
        index, end = first - low, last + high

        while first < last and index < end:
            inside = index % extent if periodic else index
            if inside < 0:
                index = 0
                continue
            if inside >= extent:
                break

            _, stop, owner = holders[bisect_right(starts, inside) - 1]
            length = min(stop - inside, end - index)
            row.append(_Run(index - first + low, inside, length, owner))
            index += length
        pieces.append(tuple(row))

    lengths = np.array([stop - start for start, stop in (*blocks, (0, 0))])
    return _tables(tuple(pieces), lengths, np.where(lengths > 0, lengths + low + high, 0))


def _tables(pieces: tuple[tuple[_Run, ...], ...], blocks: Ints, extents: Ints) -> _Mode:
    """Count what each part takes from and gives to others."""
    received, sent, local, sources, targets = np.zeros((5, len(pieces)), np.int64)
    for k, row in enumerate(pieces):
        for piece in row:
            received[k] += piece.length
            sent[piece.owner] += piece.length
            if piece.owner == k:
                local[k] += piece.length

        owners = {piece.owner for piece in row}
        sources[k] = len(owners)
        targets[list(owners)] += 1
    return _Mode(pieces, blocks, extents, received, sent, local, sources, targets)
