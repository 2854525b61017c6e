"""The certificate of a step from one grid to another over the same ranks, message by message.

Between two grids, no grid mode says which ranks meet. So the lists of all ranks are read:
1. both sides list the same messages, each once, in ascending order;
2. a message has the groups of its receiver's block that lie at its sender's coordinates; these are proved to be the
   groups that its sender cuts out for its receiver; and its sender holds data;
3. a rank that needs data receives every product of groups from one sender per contribution, never from two replicas;
   the first assigns, the others combine; contributions to a partial target enter at its coordinate 0.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ...errors import PlanError
from ..movement.components import counting, splitting
from ..movement.messages import Message, receives, sends
from .partition import DOES, RECEIVES, SENDS, Array, At, Ends, ProvedComponent, same
from .recount import Recount

__all__ = ["prove_pairs"]


def prove_pairs(kind: str, ends: Ends, parts: list[ProvedComponent]) -> Recount:
    """Prove the messages of a step from one grid to another, and count what every rank receives and buffers.

    Raises:
        PlanError: they are not right; the text names the ranks.
    """
    source, target = ends
    if kind not in ("exchange", "relayout"):
        raise PlanError(f"a step from grid {source.grid} to {target.grid} is an exchange, or a relayout, no {kind}")
    ranks, splits = range(source.grid.size), splitting(source, range(source.order))
    places = [[*map(end.grid.coordinates, ranks)] for end in ends]
    outstanding: dict[tuple[int, int], Message] = {}
    for rank in ranks:
        for message in _listed(ends, rank, SENDS):
            outstanding[rank, message.peer] = message
    counter = counting(prod(source.shape) * len(ranks))
    counts: Array = np.zeros((3, len(ranks)), counter)  # elements and messages that arrive, elements that leave
    for rank in ranks:
        seen: set[tuple[At, At]] = set()
        begun: set[At] = set()
        for message in _listed(ends, rank, RECEIVES):
            peer = message.peer
            sent, at = outstanding.pop((peer, rank), None), (places[SENDS][peer], places[RECEIVES][rank])
            if sent is None or not source.holds(peer):
                raise PlanError(f"rank {rank} receives a message from rank {peer}, which sends none or holds nothing")
            for side, listed in ((SENDS, sent), (RECEIVES, message)):
                if not _right(listed, parts, at, side):
                    raise PlanError(f"rank {peer} to {rank}: {DOES[side]} a message that has other elements, or order")
            where = tuple([at[SENDS][g] for g in splits])
            if message.combine != (where in begun):
                raise PlanError(
                    f"rank {rank} receives a message from rank {peer} with combine={message.combine}; "
                    "the first assigns, the others combine"
                )
            begun.add(where)
            given = where, tuple([at[SENDS][g] for g in source.partial])
            if given in seen:
                raise PlanError(f"rank {rank} receives from rank {peer} what another replica has sent it")
            seen.add(given)
            if peer != rank:
                counts[:, rank] += len(message), 1, 0
                counts[2, peer] += len(message)
        wanted = _wanted(ends, parts, rank, places[RECEIVES][rank])
        if len(seen) != wanted:
            raise PlanError(f"rank {rank} receives {len(seen)} products of groups, but what it needs are {wanted}")
    if outstanding:
        raise PlanError("rank {} sends a message to rank {}, which awaits none".format(*min(outstanding)))
    if kind == "relayout" and counts.any():
        raise PlanError("ranks talk to each other, which a relayout does not let them")
    return Recount(counts[0], counts[1], counts[0] + counts[2])


def _wanted(ends: Ends, parts: list[ProvedComponent], rank: int, at: At) -> int:
    """The number of products of groups that a rank at some coordinates of the target must receive."""
    source, target = ends
    if not (target.holds(rank) and target.contributes(rank)):
        return 0
    wanted = prod(source.grid.shape[g] for g in source.partial)
    for part in parts:
        wanted *= len(part.proof.row(RECEIVES, _own(part, RECEIVES, at)))
    return wanted


def _listed(ends: Ends, rank: int, side: int) -> list[Message]:
    messages = [*(sends, receives)[side](*ends, rank)]
    peers = [message.peer for message in messages]
    if peers != sorted({*peers} & {*range(ends[side].grid.size)}):
        raise PlanError(f"rank {rank} {DOES[side]} messages, with ranks {str(peers)[:60]}, not in ascending order")
    return messages


def _right(message: Message, parts: list[ProvedComponent], at: tuple[At, At], side: int) -> bool:
    """Whether a message has, per component, the group that lies at the other rank's coordinates."""
    if len(message.groups) != len(parts):
        return False
    for group, part in zip(message.groups, parts, strict=True):
        away = tuple([(g, at[1 - side][g]) for g in sorted(part.over[1 - side])])
        cuts = dict(part.row(side, _own(part, side, at[side]))).get(away)
        if group.coordinates != away or cuts is None or not same(group, cuts):
            return False
    return True


def _own(part: ProvedComponent, side: int, at: At) -> At:
    """The coordinates of this side along the grid modes that split a component."""
    return tuple([at[g] for g in part.over[side]])
