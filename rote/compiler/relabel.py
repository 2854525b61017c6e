"""A renumbering of the ranks with which the fewest bytes travel, as an assignment problem.

If the target layout may be on the same ranks under other numbers, each rank should get the block of which it already
holds as much as possible. COSTA (Kabić et al. 2021) exchanges pairs of ranks, those with the largest gain first, and so
misses the gain of a cycle of three. Here the assignment is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from ..layout.distribution import Distribution
from ..layout.grid import ranks_at
from ..layout.layout import Transition
from ..units import in_bytes
from .compile import Ranks, Shape, check_ends, ends
from .movement import RECEIVES, SENDS, Movement, movement
from .step import as_dtype
from .volumes import block_sizes, coordinates

__all__ = ["Relabelling", "assign", "common_elements", "relabel"]

Ints = npt.NDArray[np.int64]
Index = tuple[Ints, ...]

_EXACT = 2**53  # scipy solves in floating point, where integers below this are exact
_SHOWN = 16  # the most ranks that a text lists


@dataclass(frozen=True, slots=True)
class Relabelling:
    """A renumbering: which rank plays which of the target's ranks. `relabel` makes it.

    All ranks are given by their present numbers, those of the source; only `ranks` is indexed by the new ones.

    Attributes
    ----------
    source : Distribution
        The distribution before the move.
    target : Distribution
        The distribution after it.
    dtype : numpy.dtype
        The dtype of the elements.
    ranks : tuple[int, ...]
        `ranks[r]` is the rank that plays the target's rank r.
    bytes : int
        The bytes that travel between different ranks, summed over all of them, if each element that a rank lacks comes
        to it once. (`plan.cost.bytes`, in contrast, is the most that any one rank receives.)
    bytes_before : int
        The bytes that would travel if all ranks kept their numbers.

    Examples
    --------
    To use it, number the ranks anew, send what `sends` tells and store it where `receives` tells. (Here all hear all;
    large mail goes by `alltoallv`.)

    >>> import numpy as np, rote
    >>> r = rote.relabel("block[(0),(1)] -> block[(1),(0)]", shape=(4, 6), grid=(2, 3))
    >>> array = np.arange(24.0).reshape(4, 6)
    >>> def program(comm):
    ...     x = rote.DistTensor.from_global(array, r.source.layout, comm, r.source.grid)
    ...     new = comm.split(0, r.key(comm.rank))
    ...     y = rote.DistTensor.empty(array.shape, r.target.layout, new, r.target.grid)
    ...     mail = comm.allgather_object({peer: x.local[index] for peer, index in r.sends(comm.rank).items()})
    ...     for peer, index in r.receives(comm.rank).items():
    ...         y.local[index] = mail[peer][comm.rank]
    ...     return comm.rank, new.rank, np.array_equal(y.to_global(), array)
    >>> rote.run(program, ranks=6)
    [(0, 0, True), (1, 1, True), (2, 3, True), (3, 2, True), (4, 4, True), (5, 5, True)]
    """

    source: Distribution
    target: Distribution
    dtype: np.dtype[Any]
    ranks: tuple[int, ...]
    bytes: int
    bytes_before: int

    @property
    def saved(self) -> int:
        """The bytes that need not travel if ranks change their numbers; never below 0."""
        return self.bytes_before - self.bytes

    def key(self, rank: int) -> int:
        """The new number of a rank, which is its key in a split that makes a communicator with the new numbers.

        This communicator is `comm.split(0, relabelling.key(comm.rank))`, or mpi4py's `comm.Split(0, …)`.

        Raises
        ------
        LayoutError
            The grid has no such rank.
        """
        self.source.grid.coordinates(rank)
        return self.ranks.index(rank)

    def sends(self, rank: int) -> dict[int, Index]:
        """The messages of a rank: `block[index]` of its source block goes to each peer, and what it keeps to itself.

        `index` is an open mesh of positions in the block. If the source is replicated, each rank is served by the
        replica at its own coordinates, which is the rank itself for all elements that it holds.

        Raises
        ------
        LayoutError
            The grid has no such rank.
        """
        source, target = self.source, self.target
        me = source.grid.coordinates(rank)
        serves = [g for g, role in enumerate(source.roles) if role.name == "replicated"]
        roots = {g: role.at for g, role in enumerate(target.roles) if role.name == "rooted"}
        indices = {}
        for where, index in _meshes(movement(source, target), rank, SENDS):
            for number in ranks_at(target.grid, roots | where):
                peer = self.ranks[number]
                if all(source.grid.coordinates(peer)[g] == me[g] for g in serves):
                    indices[peer] = index
        return dict(sorted(indices.items()))

    def receives(self, rank: int) -> dict[int, Index]:
        """The messages to a rank: the values from each peer are stored in `block[index]` of its target block.

        They have the shape of `block[index]`, as in `sends`.

        Raises
        ------
        LayoutError
            The grid has no such rank.
        """
        source = self.source
        me = source.grid.coordinates(rank)
        indices = {}
        for where, index in _meshes(movement(source, self.target), self.key(rank), RECEIVES):
            sender = dict(enumerate(me)) | dict(source.layout.rooted) | where
            indices[source.grid.rank([*sender.values()])] = index
        return dict(sorted(indices.items()))

    def __str__(self) -> str:
        source, target = self.source, self.target
        grid = source.grid if source.grid == target.grid else f"{source.grid} -> {target.grid}"
        head = f"{source.layout} -> {target.layout} of {source.shape} {self.dtype} on grid {grid}"
        if self.ranks == tuple(range(len(self.ranks))):
            return f"{head}: {in_bytes(self.bytes)} travel, and no other numbers of the ranks save any"
        played = ", ".join(map(str, self.ranks[:_SHOWN])) + ", …" * (len(self.ranks) > _SHOWN)
        return (
            f"{head}: {in_bytes(self.bytes)} travel, not {in_bytes(self.bytes_before)}\n"
            f"  ranks that play the target's ranks 0, 1, 2, …: {played}"
        )


def relabel(
    source: Distribution | Transition | str,
    target: Distribution | None = None,
    dtype: npt.DTypeLike = "f8",
    *,
    shape: Shape = None,
    grid: Ranks = None,
) -> Relabelling:
    """The numbering of the ranks with which the fewest bytes travel from one distribution to another.

    Use it if the target layout may be on the same ranks under other numbers. No numbering sends fewer bytes. If several
    are equally good, as many ranks as possible keep their numbers. All ranks find the same numbering. On P ranks this
    takes memory for P² numbers and time for up to P³ operations, so it is for a few thousand ranks at most.

    Parameters
    ----------
    source : Distribution | Transition | str
        The first distribution; or a transition `"A -> B"`, with `shape` and `grid`.
    target : Distribution, optional
        The second distribution; None after a transition.
    dtype : DTypeLike, default 'f8'
        The dtype of the elements, which gives their size in bytes.
    shape : Iterable[int] | int, optional
        With a transition, the tensor's extents.
    grid : Grid | Iterable[int] | int, optional
        With a transition, the grid of ranks, or their number.

    Raises
    ------
    PlanError
        The distributions are of different tensors or numbers of ranks; one of them is partial; blocks are too large to
        be compared exactly (more than some 2**53 / 4P elements in common); or scipy is missing.

    See Also
    --------
    rote.compile : Plan a move that keeps the numbers of ranks.

    Notes
    -----
    Source: Kabić, Pintarelli, Kozhevnikov, VandeVondele, "COSTA: Communication-Optimal Shuffle and Transpose Algorithm
    with Process Relabeling", ISC 2021 (arXiv 2106.06601), for the assignment problem; their program exchanges pairs.

    Examples
    --------
    >>> import rote
    >>> print(rote.relabel("block[(0,1)] -> block[(1,0)]", shape=8, grid=(2, 4)))
    block[(0,1)] -> block[(1,0)] of (8,) float64 on grid 2x4: 0 B travel, not 48 B
      ranks that play the target's ranks 0, 1, 2, …: 0, 2, 4, 6, 1, 3, 5, 7
    >>> rote.relabel("[(0),()] -> [(),(0)]", shape=(6, 6), grid=3).saved
    0
    """

    source, target = ends(source, target, shape, grid)
    kind = as_dtype(dtype)
    check_ends(source, target, kind)

    for dist, name, hint in ((source, "source", "reduce it first, to"), (target, "target", "relabel instead into")):
        if dist.partial:
            whole = replace(dist.layout, partial=(), op="sum")
            raise PlanError(
                f"the {name} {dist.layout} is partial: its contributions may be reduced on any rank, so that what a "
                f"rank keeps depends on the plan\n{hint} {whole}"
            )

    common = common_elements(source, target)
    ranks = assign(common)

    sizes = block_sizes(target)
    needed = int(sizes.sum(dtype=object)) * (target.grid.size // sizes.size)
    after, before = needed - _kept(common, ranks), needed - _kept(common, range(len(ranks)))
    return Relabelling(source, target, kind, ranks, after * kind.itemsize, before * kind.itemsize)


def common_elements(source: Distribution, target: Distribution) -> Ints:
    """Count the elements that each rank's block (row) has in common with each block of the target (column).

    Unlike in a message matrix, all replicas count. Neither distribution may be partial.

    >>> from rote.layout.layout import parse
    >>> common_elements(parse("[()]").on(5, 2), parse("block[(0)]").on(5, 2)).tolist()
    [[3, 2], [3, 2]]
    """
    ranks = np.arange(source.grid.size)
    holds, wants = [*map(source.holds, ranks.tolist())], [*map(target.holds, ranks.tolist())]
    at = coordinates(ranks, source.grid), coordinates(ranks, target.grid)
    common: Ints = movement(source, target).common(*at)
    common = common * np.outer(holds, wants)
    return common


def assign(common: Ints) -> tuple[int, ...]:
    """The permutation that assigns a row to each column so that the sum of the entries is the largest.

    If there are several, it is the one that leaves the most rows in place. (If the entries, divided by their common
    divisor, exceed some 2**53 / 4P², exact sums would need more digits, and the solver chooses.)

    Raises:
        PlanError: the entries are too large to be added exactly, or scipy is missing.

    >>> assign(np.array([[0, 5, 0], [0, 0, 5], [5, 0, 0]]))
    (2, 0, 1)
    """
    try:
        from scipy.optimize import linear_sum_assignment
    except ImportError:
        raise PlanError("ranks are relabelled by scipy, which is not installed; pip install scipy") from None

    size = len(common)
    gain = common // max(1, int(np.gcd.reduce(common, axis=None)))
    most = int(gain.max())
    # The solver adds up to `size` of the entries along a path, and compares sums of up to four such paths.

    if 4 * (size + 1) * most >= _EXACT:
        raise PlanError(
            f"blocks that have {int(common.max())} elements in common are too large to be compared exactly among "
            f"{size} ranks\nrelabel for a smaller tensor of the same layouts"
        )

    gain = gain.astype(np.int64)
    # Each rank that stays gets a bonus; the sum of all is too small to change which assignments are best.
    if 4 * (size + 1) * ((size + 1) * most + 1) < _EXACT:
        gain = gain * (size + 1) + np.eye(size, dtype=np.int64)

    solution = tuple(linear_sum_assignment(gain.T, maximize=True)[1].tolist())
    return max(tuple(range(size)), solution, key=lambda numbers: _kept(common, numbers))


def _kept(common: Ints, numbers: Sequence[int]) -> int:
    """Count the elements that ranks with these numbers already hold."""
    return int(common[numbers, np.arange(len(numbers))].sum(dtype=object))


def _meshes(move: Movement, rank: int, side: int) -> Iterator[tuple[dict[int, int], Index]]:
    """The parts of a rank's block that are together on the other side: their coordinates there, and their index."""
    mine = move.ends[side]
    if not mine.holds(rank):
        return

    me = mine.grid.coordinates(rank)
    options = [part.factor.at(side, tuple([me[g] for g in part.over[side]])) for part in move.parts]

    for groups in product(*options):
        where: dict[int, int] = {}
        along: dict[int, Ints] = {}
        for axis, (part, group) in enumerate(zip(move.parts, groups, strict=True)):
            where |= dict(zip(part.over[1 - side], group.coordinates, strict=True))
            shape = [1] * len(move.parts)
            shape[axis] = -1

            modes = part.before if side == SENDS else part.after
            for mode, positions in zip(modes, group.positions, strict=True):
                along[mode] = positions.reshape(shape)
        yield where, tuple(along[mode] for mode in range(mine.order))
