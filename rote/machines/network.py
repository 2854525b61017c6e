"""A network: what a message and a byte cost along each mode of a grid, from where the ranks of the mode lie.

Ranks are placed on nodes in order, so a grid mode lies inside the nodes, between them, or partly both. All nodes
exchange at once along a mode, which takes as long as the slowest of a node's injection and the network's narrowest cut:

    torus       a mode of q nodes is a line of links; half of its bytes cross the cut in its middle, so a node that has
                B bytes takes B q / (4 lanes link), and half as long if the line is closed to the whole ring

                    o--o--o--o | o--o--o--o        q/2 nodes send half of B: q/2 B/2 over `lanes` links

    dragonfly   what leaves a group of nodes shares the global links of the group
    fat tree    what leaves a switch shares its links upwards, which may be fewer than those downwards
    flat        a node's injection is the only limit
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from math import ceil, prod
from typing import Literal, get_args

from ..caches import memoized
from ..errors import PlanError, counted
from ..layout.grid import Grid

__all__ = ["Network"]

Topology = Literal["torus", "dragonfly", "fat tree", "flat"]
Order = Literal["block", "cyclic"]
_WORDS = {"topology": get_args(Topology), "order": get_args(Order)}


@dataclass(frozen=True, slots=True)
class Network:
    """The levels and the topology of a network, in seconds. A time of 0 sets no limit.

    Attributes:
        topology: "torus", "dragonfly", "fat tree" or "flat".
        nodes: the nodes of the machine; 0 if they have no end.
        ranks_per_node, threads: the ranks of a node, and the threads of a rank.
        order: "block" if ranks in a row share a node, so that the last grid modes lie inside it; "cyclic" if they go to
            the nodes in turn, so that the first ones do.
        near_latency, near_byte_time: of a message between two ranks of a node, and of a byte that a rank receives.
        latency, message_time: of a message between two nodes, and between two messages that a node sends.
        byte_time: of a byte that enters or leaves a node; its ranks share it.
        dims, lanes, link_time: of a torus: nodes along each dimension, links side by side, and a link's time of a byte.
        group, far_latency, far_time: nodes of a group (of a dragonfly, or under a switch); of a message that leaves it;
            and of a byte that leaves it, for each node.

    >>> Network("torus", byte_time=3, dims=(8, 8, 8), link_time=6).along(Grid((4, 8)))[1]
    (8.0, 6.857142857142857)
    """

    topology: Topology = "flat"
    nodes: int = 0
    ranks_per_node: int = 1
    threads: int = 1
    order: Order = "block"
    near_latency: float = 0.0
    near_byte_time: float = 0.0
    latency: float = 0.0
    message_time: float = 0.0
    byte_time: float = 0.0
    dims: tuple[int, ...] = ()
    lanes: int = 1
    link_time: float = 0.0
    group: int = 0
    far_latency: float = 0.0
    far_time: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.dims, list | tuple):
            raise PlanError(f"the dims of a network are the nodes along each dimension of a torus, not {self.dims!r}")
        object.__setattr__(self, "dims", tuple(self.dims))  # a list in JSON

        for number in fields(self):
            name, value = number.name, getattr(self, number.name)
            if name in _WORDS:
                if value not in _WORDS[name]:
                    raise PlanError(f"the {name} of a network is one of {', '.join(_WORDS[name])}, not {value!r}")
                continue

            least = int(name in ("ranks_per_node", "threads", "lanes", "dims"))
            for entry in value if name == "dims" else (value,):
                real = isinstance(entry, float) and isinstance(number.default, float)
                if isinstance(entry, bool) or not (real or isinstance(entry, int)) or not least <= entry <= 1e100:
                    raise PlanError(f"the {name} of a network is a number from {least} on, not {entry!r}")

        if (self.topology == "torus") != bool(self.dims):
            raise PlanError(f"a torus, and no other network, has dims, not {self.dims!r}")

    def holds(self, ranks: int) -> bool:
        """Whether the machine has nodes for so many ranks.

        >>> Network(nodes=3, ranks_per_node=2).holds(6), Network(nodes=3, ranks_per_node=2).holds(7)
        (True, False)
        """
        return not self.nodes or ranks <= self.nodes * self.ranks_per_node

    def along(self, grid: Grid) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The latency of a message, and the time to receive a byte, along every mode of a grid.

        Raises:
            PlanError: the machine has fewer nodes than the grid needs.
        """
        modes = self._modes(grid) or [_Mode(1, 1, 1, 1)]
        return tuple(map(self._latency, modes)), tuple(map(self._byte_time, modes))

    def placement(self, grid: Grid) -> str:
        """Where each mode of a grid lies, in words.

        >>> print(Network("torus", dims=(48, 54, 32)).placement(Grid((32, 16))))
        grid mode 0: 32 nodes in a line of the torus
        grid mode 1: 16 nodes in a line of the torus
        >>> print(Network(ranks_per_node=4).placement(Grid((8, 2))))
        grid mode 0: 4 nodes, 2 ranks inside each
        grid mode 1: inside a node
        """
        lines = []
        for g, mode in enumerate(self._modes(grid)):
            where, unit = "", "group" if self.topology == "dragonfly" else "switch"
            if mode.box:
                where = f" in the job's compact box of {' x '.join(map(str, mode.box))}"
            elif mode.cuts:
                where = f" in {'the whole ring' if mode.cuts == 2 else 'a line'} of the torus"
            elif self.group:
                groups = ceil(mode.nodes / mode.near)
                where = f" of {counted(groups, unit, 'switches' if unit == 'switch' else '')}"

            inside = f", {counted(mode.inside, 'rank')} inside each" if mode.inside > 1 else ""
            lies = "inside a node" if mode.nodes == 1 else f"{counted(mode.nodes, 'node')}{where}{inside}"
            lines.append(f"grid mode {g}: {lies}")
        return "\n".join(lines)

    def _modes(self, grid: Grid) -> list[_Mode]:
        """Where each mode lies. A node has a box of ranks, and a group one of nodes, which the nearest modes fill."""
        if not self.holds(grid.size):
            raise PlanError(
                f"the machine has {counted(self.nodes, 'node')}, on which grid {grid} has no room at "
                f"{counted(self.ranks_per_node, 'rank')} a node\ntake fewer ranks, or more ranks per node"
            )

        inside = self._nearest(grid.shape, self.ranks_per_node)
        nodes = tuple(ceil(p / i) for p, i in zip(grid.shape, inside, strict=True))
        near = self._nearest(nodes, self.group) if self.group else nodes
        modes = [*map(_Mode, grid.shape, inside, nodes, near)]

        spread = [g for g, q in enumerate(nodes) if q > 1]
        if self.topology != "torus" or not spread:
            return modes

        longest = sorted(spread, key=lambda g: -nodes[g])
        lines = dict(zip(longest, sorted(self.dims, reverse=True), strict=False))  # the longest mode, the longest line
        box: tuple[int, ...] = ()
        if len(spread) == 1 or any(nodes[g] > lines.get(g, 0) for g in spread):
            box = _compact(prod(nodes), tuple(sorted(self.dims, reverse=True)))

        for g in spread:
            modes[g] = replace(modes[g], box=box, cuts=2 if not box and nodes[g] == lines[g] else 1)
        return modes

    def _nearest(self, shape: tuple[int, ...], size: int) -> tuple[int, ...]:
        """How much of each mode shares one of the boxes of so many that follow each other in the order of ranks."""
        nearest_first = shape[::-1] if self.order == "block" else shape
        shared, left = list[int](), size
        for p in nearest_first:
            shared.append(max(min(p, left), 1))
            left = left // p
        return tuple(shared[::-1] if self.order == "block" else shared)

    def _latency(self, mode: _Mode) -> float:
        """The latency of a message, on average over those of a mode."""
        beyond = (mode.nodes - mode.near) * mode.inside  # ranks of other groups
        between, sent = mode.ranks - mode.inside - beyond, self.ranks_per_node * self.message_time

        seconds = (mode.inside - 1) * self.near_latency + between * max(self.latency, sent)
        seconds += beyond * max(self.far_latency, self.latency, sent)
        return seconds / max(mode.ranks - 1, 1)

    def _byte_time(self, mode: _Mode) -> float:
        """The time of a byte that a rank receives, when all ranks exchange blocks along a mode at once."""
        if mode.ranks == 1:
            return 0.0
        line = max(mode.box, default=mode.nodes) / (4 * self.lanes * mode.cuts) if mode.cuts else 0.0

        between = (mode.ranks - mode.inside) / mode.ranks * self.byte_time
        far = (mode.nodes - mode.near) / mode.nodes * self.far_time

        seconds = (mode.inside - 1) / mode.ranks * self.near_byte_time  # of a block of one byte
        seconds += self.ranks_per_node * max(between, line * self.link_time, far)
        return seconds * mode.ranks / (mode.ranks - 1)


@dataclass(frozen=True, slots=True)
class _Mode:
    """Where a grid mode lies: its ranks, those inside a node, its nodes, and those inside a group.

    In a torus it lies in a box, or along a line if there is none, and that many links of each line cross its middle.
    """

    ranks: int
    inside: int
    nodes: int
    near: int
    box: tuple[int, ...] = ()
    cuts: int = 0


@memoized(256)
def _compact(count: int, dims: tuple[int, ...]) -> tuple[int, ...]:
    """The box of so many nodes whose longest side is the shortest, within the torus; with holes if none fits well.

    >>> _compact(32, (54, 48, 32)), _compact(31, (54, 48, 32)), _compact(4096, (54, 48, 32))
    ((4, 4, 2), (4, 4, 2), (16, 16, 16))
    """
    cube = next((n for n in range(1, count) if n ** len(dims) >= count), count)
    best = min(_boxes(count, dims, 2 * cube), key=lambda box: (prod(box), box), default=dims)
    return best if prod(best) <= 2 * count else dims


def _boxes(count: int, dims: tuple[int, ...], longest: int) -> Iterator[tuple[int, ...]]:
    """Boxes within the torus, whose sides descend from at most the longest, and whose last side holds the count."""
    if len(dims) == 1:
        yield from [(count,)] if count <= min(longest, dims[0]) else []
        return

    for side in range(1, min(longest, dims[0]) + 1):
        if side ** len(dims) >= count:  # else a side that follows would be longer
            for others in _boxes(-(-count // side), dims[1:], side):
                yield (side, *others)
