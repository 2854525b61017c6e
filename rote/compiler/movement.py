"""What each rank sends and receives when a tensor goes from one distribution to another.

A transition falls into components: the smallest groups of view modes on both sides that read the same digits of the
tensor. In each component a rank's local indices are grouped by the coordinates that hold them on the other side; a
message is the product of one group per component. Grid modes that split nothing on the other side follow `meets`.
Between two grids over the same ranks the coordinates of either side are those of its own grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from ..layout.distribution import Distribution, Role, mode_set
from ..layout.view import Digit, from_tensor, to_tensor

__all__ = ["Component", "Group", "Message", "components", "groups", "meets", "receives", "sends"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Component:
    """View modes of the source and of the target that read the same digits of the tensor."""

    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Local indices of one component that lie at the same coordinates on the other side.

    Attributes:
        coordinates: those coordinates, as pairs (grid mode, coordinate).
        positions: one array of local indices per view mode of the component; elements in ascending tensor order.
    """

    coordinates: tuple[tuple[int, int], ...]
    positions: tuple[Ints, ...]

    def __len__(self) -> int:
        return len(self.positions[0]) if self.positions else 1


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A product of groups that goes to, or comes from, one rank.

    Attributes:
        peer: the rank on the other side.
        groups: one group per component, in the order of `components`.
        combine: whether the receiver reduces it into what has come before it (else it is the first to come).
    """

    peer: int
    groups: tuple[Group, ...]
    combine: bool

    def __len__(self) -> int:
        return prod(len(group) for group in self.groups)


@lru_cache(maxsize=256)
def meets(source: Role, target: Role, op_changes: bool, number: int) -> npt.NDArray[np.bool_]:
    """Whether data goes from coordinate a to coordinate b, at [a, b], of a grid mode of `number` with these roles.

    A rooted side holds data at its root alone. Each of several replicas serves its own coordinate. Into a partial
    target every element is contributed once: where it lies, or at coordinate 0 if it lies everywhere. From a partial
    source every coordinate contributes, unless the target stays partial. Read-only.
    """
    a, b = np.ogrid[:number, :number]
    met = np.ones((number, number), bool)
    if source.name == "rooted":
        met &= a == source.at
    if target.name == "rooted":
        met &= b == target.at
    if source.name == "replicated":
        met &= a == b
    if target.name == "partial":
        met &= b == 0 if source.name == "replicated" or (source.name == "partial" and op_changes) else a == b
    met.flags.writeable = False
    return met


@lru_cache(maxsize=4096)
def components(source: Distribution, target: Distribution) -> tuple[Component, ...]:
    """The components of a transition, ordered by the first digit of the tensor that they read."""
    before, after = source.digits, target.digits
    shared = {digits: m for m, digits in enumerate(after)}
    if all(digits in shared for digits in before) and len(set(before)) == len(before) == len(after):
        pairs = sorted(((digits, m) for m, digits in enumerate(before)), key=lambda pair: _first(pair[0]))
        return tuple(Component((m,), (shared[digits],)) for digits, m in pairs)
    groups: list[set[int]] = []
    for digits in (*before, *after):
        modes = {digit.mode for digit in digits}
        joined = [g for g in groups if g & modes]
        groups = [g for g in groups if not g & modes] + [modes.union(*joined)]
    found = []
    for modes in sorted(groups, key=min):
        one_before = [m for m, digits in enumerate(before) if digits[0].mode in modes]
        one_after = [m for m, digits in enumerate(after) if digits[0].mode in modes]
        by_digits = {before[m]: m for m in one_before}
        if len(by_digits) == len(one_before) == len(one_after) and set(by_digits) == {after[m] for m in one_after}:
            ordered = sorted(one_after, key=lambda m: _first(after[m]))
            found += [Component((by_digits[after[m]],), (m,)) for m in ordered]
        else:
            found.append(Component(tuple(one_before), tuple(one_after)))
    return tuple(found)


def sends(source: Distribution, target: Distribution, rank: int) -> Iterator[Message]:
    """The messages that a rank sends, ordered by receiver; one to itself is what it keeps."""
    return _messages(source, target, rank, sending=True)


def receives(source: Distribution, target: Distribution, rank: int) -> Iterator[Message]:
    """The messages that a rank receives, ordered by sender."""
    return _messages(source, target, rank, sending=False)


def _messages(source: Distribution, target: Distribution, rank: int, sending: bool) -> Iterator[Message]:
    mine, other = (source, target) if sending else (target, source)
    across = source.grid != target.grid
    if not mine.holds(rank) or (across and not sending and not target.contributes(rank)):
        return
    me = mine.grid.coordinates(rank)
    mates = (_mates_across if across else _mates)(source, target, rank, sending)
    stays = () if across or source.layout.op != target.layout.op else target.partial
    reduced = [g for g in source.partial if g not in stays]
    strides = [prod(other.grid.shape[g + 1 :]) for g in range(other.grid.order)]
    split = {s.grid_mode for mode in other.splits for s in mode}
    # Products are put together as sums: a peer's number is the sum of what its coordinates add to it.
    found: list[tuple[int, tuple[Group, ...], bool]] = [(0, (), sending and any(me[g] for g in reduced))]
    for g in range(other.grid.order):
        if g not in split:
            later = not sending and g in reduced
            met = [(strides[g] * c, later and c != 0) for c, meet in enumerate(mates[g]) if meet]
            found = [(peer + more, some, combine or late) for peer, some, combine in found for more, late in met]
    for part in components(source, target):
        options = [
            (sum(strides[g] * c for g, c in group.coordinates), group)
            for group in groups(mine, other, part, me, sending)
            if all(mates[g][c] for g, c in group.coordinates)
        ]
        found = [(peer + more, (*some, group), combine) for peer, some, combine in found for more, group in options]
    if across and sending:
        serves = [g for g, role in enumerate(source.roles) if role.name == "replicated"]
        found = [each for each in found if all(source.grid.coordinates(each[0])[g] == me[g] for g in serves)]
    yield from (Message(*each) for each in sorted(found, key=itemgetter(0)))


def _mates(source: Distribution, target: Distribution, rank: int, sending: bool) -> list[list[bool]]:
    """Per grid mode and coordinate of a peer, whether a rank meets it."""
    op_changes = source.layout.op != target.layout.op
    found: list[list[bool]] = []
    for g, (me, p) in enumerate(zip(source.grid.coordinates(rank), source.grid.shape, strict=True)):
        met = meets(source.roles[g], target.roles[g], op_changes, p)
        found.append((met[me] if sending else met[:, me]).tolist())
    return found


def _mates_across(source: Distribution, target: Distribution, rank: int, sending: bool) -> list[list[bool]]:
    """The same for peers at a coordinate of the other side's grid, where that is another grid.

    Of replicas, that one serves a rank which has its coordinates along the replicated grid modes of the source. All
    contributions to a partial target enter at its coordinate 0.
    """
    here = source.grid.coordinates(rank)

    def only(g: int, role: Role) -> int | None:
        if role.name == "rooted" or (role.name == "partial" and sending):
            return role.at
        return here[g] if role.name == "replicated" and not sending else None

    other = target if sending else source
    return [
        [only(g, role) in (None, peer) for peer in range(other.grid.shape[g])] for g, role in enumerate(other.roles)
    ]


def groups(
    mine: Distribution, other: Distribution, part: Component, me: tuple[int, ...], sending: bool
) -> tuple[Group, ...]:
    """One component of what the rank at coordinates `me` holds in `mine`, grouped by where it lies in `other`."""
    here, there = (part.before, part.after) if sending else (part.after, part.before)
    held = tuple(tuple(me[s.grid_mode] for s in mine.splits[m]) for m in here)
    if len(here) == len(there) == 1 and mine.digits[here[0]] == other.digits[there[0]]:
        return _along_mode(mine, other, here[0], there[0], held[0])
    return _across_modes(mine, other, here, there, held)


@lru_cache(maxsize=16384)
def _along_mode(
    mine: Distribution, other: Distribution, here: int, there: int, coordinates: tuple[int, ...]
) -> tuple[Group, ...]:
    """Both sides read the mode alike: local order is tensor order."""
    indices = _held(mine, here, coordinates)
    lies, _ = other.locate(there, indices)
    return _grouped(other.grid.shape, lies, None, (len(indices),))


def _across_modes(
    mine: Distribution,
    other: Distribution,
    here: tuple[int, ...],
    there: tuple[int, ...],
    coordinates: tuple[tuple[int, ...], ...],
) -> tuple[Group, ...]:
    """The sides read the digits differently: go through the tensor's own indices, element by element."""
    held = [_held(mine, mode, at) for mode, at in zip(here, coordinates, strict=True)]
    local_shape = tuple(len(indices) for indices in held)
    tensor = _tensor_indices(mine, here, held)
    lies: dict[int, Ints] = {}
    for mode in there:
        lies |= other.locate(mode, from_tensor(other.digits[mode], tensor))[0]
    lies = {g: np.broadcast_to(c, local_shape).reshape(-1) for g, c in lies.items()}
    flat: Ints = np.zeros((), np.int64)
    for m in sorted(tensor):
        flat = flat * mine.shape[m] + tensor[m]
    return _grouped(other.grid.shape, lies, np.broadcast_to(flat, local_shape).reshape(-1), local_shape)


def _grouped(
    grid: tuple[int, ...], lies: dict[int, Ints], flat: Ints | None, local_shape: tuple[int, ...]
) -> tuple[Group, ...]:
    if 0 in local_shape:
        return ()
    grid_modes = tuple(sorted(lies))
    peer = np.zeros(prod(local_shape), np.int64)
    for g in grid_modes:
        peer = peer * grid[g] + lies[g]
    order = np.argsort(peer, kind="stable") if flat is None else np.lexsort((flat, peer))
    bounds = [0, *(np.flatnonzero(np.diff(peer[order])) + 1).tolist(), len(order)]
    first = order[bounds[:-1]]
    along = [[(g, c) for c in lies[g][first].tolist()] for g in grid_modes]
    positions = np.unravel_index(order, local_shape) if len(local_shape) > 1 else (order,)
    return tuple(
        Group(coordinates, tuple(p[start:end] for p in positions))
        for coordinates, start, end in zip(
            zip(*along, strict=True) if along else [()], bounds[:-1], bounds[1:], strict=True
        )
    )


def _held(dist: Distribution, mode: int, coordinates: tuple[int, ...]) -> Ints:
    return mode_set(dist.splits[mode], dist.view_shape[mode], coordinates).to_array()


def _tensor_indices(dist: Distribution, modes: tuple[int, ...], held: list[Ints]) -> dict[int, Ints]:
    """The tensor indices of the outer product of some view modes' indices, broadcast over that product."""
    tensor: dict[int, Ints] = {}
    for axis, (mode, indices) in enumerate(zip(modes, held, strict=True)):
        along = indices.reshape([-1 if k == axis else 1 for k in range(len(modes))])
        for m, added in to_tensor(dist.digits[mode], along).items():
            tensor[m] = tensor.get(m, 0) + added
    return tensor


def _first(digits: tuple[Digit, ...]) -> tuple[int, int]:
    return digits[0].mode, -digits[0].weight
