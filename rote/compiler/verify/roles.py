"""The second part of a certificate: which coordinates of a grid mode meet, proved from its roles on both sides."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...layout.distribution import Distribution, Role
from ..movement.messages import PeerRule, peer_rule
from .partition import RECEIVES, SENDS, ProvedComponent

__all__ = ["prove_grid_mode", "talk_over"]

Array = npt.NDArray[Any]

_ALIKE = 8  # coordinates of a grid mode that stand for all that no role names


def prove_grid_mode(source: Distribution, target: Distribution, g: int) -> PeerRule:
    """The rule of a grid mode, proved from the roles on both sides."""
    before, after, changes = source.roles[g], target.roles[g], source.layout.op != target.layout.op
    p = source.grid.shape[g]
    rule = peer_rule(before, after, changes, p)
    few = _representatives(rule, before, after, p)
    met = rule.table(few)
    holds, wants = (_taking_part(role, few) for role in (before, after))
    inside = met[np.ix_(holds, wants)]
    own = before.name in ("split", "partial")  # no two coordinates have the same data
    single = before.name == "partial" and changes  # the old reduction ends before the new one starts
    if after.name != "partial":
        number, some = (len(holds), "all") if own else (1, "one")
        right = (inside.sum(axis=0) == number).all()
        text = f"each of {_named(after, p)} hears from {some} of {_named(before, p)}"
    elif own:
        right = (inside.sum(axis=1) == 1).all() and (not single or inside.any(axis=0).sum() == 1)
        text = f"each contribution enters one accumulator{', the same for all' * single}"
    else:
        right, text = inside.sum() == 1, f"the value is contributed once, by one of {_named(before, p)}"
    if rule.number != p or not right or (inside.size < met.size and met.sum() != inside.sum()):
        pairs = [[few[a], few[b]] for a, b in np.argwhere(met).tolist()[:9]]
        raise PlanError(f"grid mode {g}, {before.name} to {after.name}: {pairs} meet, but {text}")
    return rule


def _representatives(rule: PeerRule, before: Role, after: Role, p: int) -> list[int]:
    """The coordinates that a rule or a role names, with some others: all others meet alike, so these few prove all."""
    named = {0, rule.sender or 0, rule.receiver or 0, before.at, after.at}
    others = (c for c in range(p) if c not in named)
    return sorted(c for c in {*named, *islice(others, _ALIKE)} if c < p)


def _taking_part(role: Role, coordinates: list[int]) -> list[int]:
    """The places, among some coordinates of a grid mode, of those that hold data."""
    return [k for k, c in enumerate(coordinates) if role.name != "rooted" or c == role.at]


def _named(role: Role, p: int) -> str:
    """The coordinates of a grid mode that hold data, in words."""
    return f"[{role.at}]" if role.name == "rooted" else str([*range(min(p, 30))])[:60]


def talk_over(parts: list[ProvedComponent], rule: PeerRule, g: int) -> bool:
    """Whether some message goes from one coordinate of a grid mode to another."""
    senders: Array = np.arange(rule.number)
    receivers = senders
    if not all(part.ranges is not None or len(part.sizes) for part in parts):
        return False
    for part in parts:
        if part.ranges is not None:
            if g in part.over[SENDS]:
                return part.ranges.talk()
            continue
        given, taken = part.at[SENDS].get(g), part.at[RECEIVES].get(g)
        if given is not None and taken is not None:  # no other component is split by it
            return bool((rule.at(given, taken) & (given != taken)).any())
        senders = senders if given is None else np.unique(given)
        receivers = receivers if taken is None else np.unique(taken)
    if rule.equal:
        return False
    senders = senders if rule.sender is None else senders[senders == rule.sender]
    receivers = receivers if rule.receiver is None else receivers[receivers == rule.receiver]
    if len(senders) == len(receivers) == 1:
        return bool(senders[0] != receivers[0])
    return bool(len(senders) and len(receivers))
