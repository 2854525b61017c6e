"""What each rank sends and receives when a tensor goes from one distribution to another.

A transition falls into components: the smallest groups of view modes on both sides that read the same digits of the
tensor. In each component a rank's local indices are grouped by the coordinates that hold them on the other side; a
message is the product of one group per component. Grid modes that split nothing on the other side follow `meets`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

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


def meets(source: Role, target: Role, op_changes: bool, a: int, b: int) -> bool:
    """Whether data goes from coordinate `a` to coordinate `b` of a grid mode that has these roles.

    A rooted side holds data at its root alone. Each of several replicas serves its own coordinate. Into a partial
    target every element is contributed once: where it lies, or at coordinate 0 if it lies everywhere. From a partial
    source every coordinate contributes, unless the target stays partial.
    """
    if (source.name == "rooted" and a != source.at) or (target.name == "rooted" and b != target.at):
        return False
    if target.name == "partial":
        if source.name == "partial" and op_changes:
            return b == 0
        return a == b and (source.name != "replicated" or b == 0)
    return source.name != "replicated" or a == b


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
    if not mine.holds(rank):
        return
    me = source.grid.coordinates(rank)
    order = range(source.grid.order)
    roles = [*zip(source.roles, target.roles, strict=True)]
    op_changes = source.layout.op != target.layout.op

    def meet(g: int, peer: int) -> bool:
        a, b = (me[g], peer) if sending else (peer, me[g])
        return meets(*roles[g], op_changes, a, b)

    per_component = [
        [group for group in groups(mine, other, part, me, sending) if all(meet(g, c) for g, c in group.coordinates)]
        for part in components(source, target)
    ]
    split = {s.grid_mode for mode in other.splits for s in mode}
    free = [g for g in order if g not in split]
    choices = [[c for c in range(source.grid.shape[g]) if meet(g, c)] for g in free]
    found = []
    for chosen_groups in product(*per_component):
        fixed = {g: c for group in chosen_groups for g, c in group.coordinates}
        for chosen in product(*choices):
            at = fixed | dict(zip(free, chosen, strict=True))
            sender = me if sending else tuple(at[g] for g in order)
            combine = any(
                source_role.name == "partial" and (target_role.name != "partial" or op_changes) and sender[g] != 0
                for g, (source_role, target_role) in enumerate(roles)
            )
            found.append(Message(source.grid.rank(tuple(at[g] for g in order)), chosen_groups, combine))
    yield from sorted(found, key=lambda message: message.peer)


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
    return _grouped(mine.grid.shape, lies, None, (len(indices),))


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
    return _grouped(mine.grid.shape, lies, np.broadcast_to(flat, local_shape).reshape(-1), local_shape)


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
    bounds = np.flatnonzero(np.diff(peer[order])) + 1
    return tuple(
        Group(
            tuple((g, int(lies[g][chosen[0]])) for g in grid_modes),
            tuple(np.unravel_index(chosen, local_shape)) if len(local_shape) > 1 else (chosen,),
        )
        for chosen in np.split(order, bounds)
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
