"""The certificate of a plan: every step is proved, then its figures. The package says how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress, islice, repeat, zip_longest
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...lattice import Lattice
from ...layout.distribution import Distribution, Role
from ...layout.grid import row_major
from ...layout.kinds import dealings
from ..factor import Group
from ..movement import Message, Movement
from ..peers import RECEIVES, SENDS, PeerRule, Rules
from ..step import LOCAL, Step
from .proof import Ends, ProvedComponent, prove, rank_at
from .recount import Recount, figures, recount

__all__ = ["LISTED", "verify"]

Array = npt.NDArray[Any]
At = tuple[int, ...]
Elements = list[Lattice]
Expected = tuple[int, tuple[Elements, ...], bool]  # a message: the other rank, elements per component, if it combines

WHOLE = 4096  # ranks; on larger grids, messages between some pairs of ranks stand for whole lists
LISTED = 256  # messages per side of a step that are compared one by one
ACROSS = 4096  # as LISTED, from one grid to another
_ALIKE = 8  # coordinates of a grid mode that stand for all that no role names
DOES = "sends", "receives"
ROLES = {  # the change of role that a collective makes on the grid modes over which data goes, or whose role changes
    "alltoall": "split to split",
    "allgather": "split to replicated",
    "reduce_scatter": "partial to split",
    "allreduce": "partial to replicated",
    "reduce": "partial to rooted",
    "broadcast": "rooted to replicated",
    "scatter": "rooted to split",
    "gather": "split to rooted",
}
AS_THEY_ARE = ("allreduce", "reduce", "broadcast")
TOGETHER = ("allgather", "reduce_scatter", *AS_THEY_ARE)  # no rank of the sub-grid may be idle


def verify(
    source: Distribution,
    target: Distribution,
    steps: tuple[Step, ...],
    dtype: np.dtype[Any],
    claimed: Callable[[], Any] | None = None,
) -> None:
    """Raise PlanError unless the steps join up, each delivers every element once, and the figures match the claim.

    The claim has `bytes`, `messages` and `peak_bytes`. It is computed once the steps are proved; without a claim, no
    figure is compared.
    """
    at, recounts = source, []
    for number, step in enumerate(steps, 1):
        if step.before != at and step.before.meaning != at.meaning:
            raise PlanError(f"step {number} starts from {step.before}, but the tensor lies as {at}")
        try:
            recounts.append((step, _verify_step(step, dtype)))
        except PlanError as error:
            raise PlanError(f"step {number} ({step}): {error}") from None
        at = step.after

    if at != target and at.meaning != target.meaning:
        raise PlanError(f"the plan ends in {at}, not in {target}")
    if claimed is None:
        return

    claim = claimed()
    for name, count in figures(source, target, recounts, dtype.itemsize).items():
        if getattr(claim, name) != count:
            raise PlanError(f"the plan claims {name}={getattr(claim, name)}, but its steps make it {count}")


def _verify_step(step: Step, dtype: np.dtype[Any]) -> Recount:
    if step.wire is not None:
        _check_wire(step, dtype)

    # The parts of the movement must be all modes of both sides, each once.
    move = step.movement
    before, after = [part.before for part in move.parts], [part.after for part in move.parts]
    for dist, modes in zip(move.ends, (before, after), strict=True):
        if dist.partial and dist.layout.op in ("max", "min") and dtype.kind == "c":
            raise PlanError(f"complex numbers have no {dist.layout.op}: {dist.layout} of {dtype}")
        if sorted(chain(*modes)) != list(range(dist.order)):
            raise PlanError(f"the components {modes} are not the modes of {dist.layout}, each once")

    parts, rules = [prove(move.ends, part) for part in move.parts], _proved_rules(move)
    sent, received = (_check_lists(move, parts, rules, side) for side in (SENDS, RECEIVES))
    if received is not None and sent is not None:
        _check_pairs(received, sent)

    if move.across:
        _check_kind_across(step)
    else:
        _check_kind(step, parts, rules[SENDS])

    moved = recount(step, parts, rules)
    if step.kind in LOCAL and any(counts.any() for counts in moved):
        raise PlanError(f"ranks exchange data, which a {step.kind} does not let them")
    return moved


def _check_wire(step: Step, dtype: np.dtype[Any]) -> None:
    """Refuse rounding if a rank's own copy would differ from those of others, or if MPI would reduce rounded values."""
    assert step.wire is not None, "others are not rounded"
    if (step.wire.kind, 2 * step.wire.itemsize) != (dtype.kind, dtype.itemsize) or dtype.itemsize < 8:
        raise PlanError(f"its elements are {dtype}, which are not rounded to {step.wire}")

    modes = range(step.after.grid.order) if step.across else step.grid_modes
    copied = any(step.after.roles[g].name == "replicated" and step.after.grid.shape[g] > 1 for g in modes)
    if step.kind in (*LOCAL, *AS_THEY_ARE, "reduce_scatter") or (copied and step.kind != "allgather"):
        raise PlanError(f"its elements may not be rounded to {step.wire}: copies would differ, or sums lose more")


# --- between which coordinates data goes -------------------------------------------------------------------------


def _proved_rules(move: Movement) -> Rules:
    """Per side and grid mode, between which coordinates data goes, proved from the roles on both sides.

    Between two grids, a rule is about one side. Of a mode of the source's grid, a rank hears from all coordinates that
    have different data, as it would if the mode split the target; to one of the target's, ranks send contributions.
    """
    (source, target), rules = move.ends, (move.rules(SENDS), move.rules(RECEIVES))
    if source.grid == target.grid:
        rules = rules[SENDS], rules[SENDS]
        roles = [(source.roles, target.roles, source.layout.op != target.layout.op)]
    else:
        split, partial = (Role("split"),) * source.grid.order, (Role("partial"),) * target.grid.order
        roles = [(source.roles, split, True), (partial, target.roles, True)]

    for side, (before, after, changes) in enumerate(roles):
        modes = zip(rules[side], move.ends[side].grid.shape, before, after, strict=True)
        for g, (rule, p, old, new) in enumerate(modes):
            _prove_rule(g, rule, p, old, new, changes)
    return rules


def _prove_rule(g: int, rule: PeerRule, p: int, before: Role, after: Role, changes: bool) -> None:
    """Refuse a rule of grid mode `g`, of `p` coordinates, that does not do what its roles on both sides require.

    `changes` says whether the reduction of a partial tensor does.
    """
    # All coordinates that neither the rule nor a role names are alike, so a few of them prove all.
    named = {0, rule.sender or 0, rule.receiver or 0, before.at, after.at}
    others = (c for c in range(p) if c not in named)
    few = sorted(c for c in {*named, *islice(others, _ALIKE)} if c < p)
    table = rule.table(few)
    holds, wants = ([k for k, c in enumerate(few) if role.name != "rooted" or c == role.at] for role in (before, after))
    inside = table[np.ix_(holds, wants)]

    right = _is_right(inside, len(holds), before, after, changes)
    if rule.number != p or not right or (inside.size < table.size and table.sum() != inside.sum()):
        pairs = [[few[a], few[b]] for a, b in np.argwhere(table).tolist()[:9]]
        text = _required(p, before, after, changes)
        raise PlanError(f"grid mode {g}, {before.name} to {after.name}: {pairs} exchange data, but {text}")


def _is_right(table: Array, holders: int, before: Role, after: Role, changes: bool) -> bool:
    """Whether the coordinates that hold data (rows) and those that want some (columns) exchange what roles require."""
    differ = before.name in ("split", "partial")  # no two coordinates have the same data
    if after.name != "partial":
        return bool((table.sum(axis=0) == (holders if differ else 1)).all())
    if not differ:
        return bool(table.sum() == 1)
    if (table.sum(axis=1) != 1).any():
        return False
    single = before.name == "partial" and changes  # the old reduction ends before the new one starts
    return not single or bool(table.any(axis=0).sum() == 1)


def _required(p: int, before: Role, after: Role, changes: bool) -> str:
    """What roles require, in words."""
    differ = before.name in ("split", "partial")
    whole = str([*range(min(p, 30))])[:60]
    holders = f"[{before.at}]" if before.name == "rooted" else whole
    receivers = f"[{after.at}]" if after.name == "rooted" else whole
    if after.name != "partial":
        return f"each of {receivers} hears from {'all' if differ else 'one'} of {holders}"
    if not differ:
        return f"the value is contributed once, by one of {holders}"
    same = ", the same for all" if before.name == "partial" and changes else ""
    return f"each contribution enters one accumulator{same}"


def _partners(ends: Ends, rules: Rules, rank: int, side: int) -> list[range]:
    """Per grid mode of the other side, the coordinates with which a rank exchanges data, if they share elements.

    Some are empty if the rank's coordinates on one of the sides exchange no data.
    """
    partners = list[range]()
    for end in (1 - side,) if rules[SENDS] is rules[RECEIVES] else (side, 1 - side):
        at = ends[end].grid.coordinates(rank)
        partners = [*map(PeerRule.peers, rules[end], at, repeat(side))]
        if not all(partners):
            break
    return partners


# --- the lists of messages ---------------------------------------------------------------------------------------


def _expected(
    ends: Ends, parts: list[ProvedComponent], rules: Rules, side: int, ranks: Iterable[tuple[int, int | None]]
) -> Iterator[tuple[int, int | None, list[Expected]]]:
    """The messages of some ranks, ascending by peer, as products of the proved elements.

    With each rank there may be the only peer that is asked for.
    """

    mine, other = ends[side].grid, ends[1 - side].grid
    strides = row_major(other.shape)
    split = {*chain(*[part.over[1 - side] for part in parts])}
    free = [g for g in range(other.order) if g not in split]
    serves = []  # each replica serves the ranks at its own coordinates
    if mine != other and side == SENDS:
        serves = [g for g, rule in enumerate(rules[SENDS]) if rule.equal]

    for rank, only in ranks:
        me, partners = mine.coordinates(rank), _partners(ends, rules, rank, side)
        if not all(partners):
            yield rank, only, []
            continue

        places = _free_places(free, partners, strides, other.coordinates(only) if only is not None else None)
        products: list[Expected] = [(place, (), late) for place, late in places]
        for part in parts:
            options = _options(part, side, me, partners, strides)
            products = [(at + more, (*some, e), late) for at, some, late in products for more, e in options]

        if serves:
            served = [all(mine.coordinates(peer)[g] == me[g] for g in serves) for peer, _, _ in products]
            products = [*compress(products, served)]
        yield rank, only, sorted(products, key=itemgetter(0))


def _free_places(
    free: Sequence[int], partners: list[range], strides: Sequence[int], only: At | None
) -> list[tuple[int, bool]]:
    """What coordinates along grid modes that split nothing add to the number of a peer, and whether it is a later one.

    If a peer's coordinates are given, all `partners` that are not its own are taken out.
    """
    first, places = 0, [0]
    for g in free:
        first += strides[g] * partners[g][0]

    for g, c in enumerate(only or ()):
        partners[g] = range(c, c + 1) if c in partners[g] else range(0)
    for g in free:
        places = [place + strides[g] * c for place in places for c in partners[g]]
    return [(place, place != first) for place in places]


def _options(
    part: ProvedComponent, side: int, me: At, partners: list[range], strides: Sequence[int]
) -> list[tuple[int, Elements]]:
    """The proved elements of a component for a rank, each with what its coordinates add to the number of the peer."""
    over, options = part.over[1 - side], []
    here = tuple(map(me.__getitem__, part.over[side]))
    for there, elements in part.proof.row(side, here, tuple(map(partners.__getitem__, over))).items():
        place = 0
        for g, c in zip(over, there, strict=True):
            place += strides[g] * c
        options.append((place, elements))
    return options


def _check_lists(
    move: Movement, parts: list[ProvedComponent], rules: Rules, side: int
) -> list[tuple[int, list[Expected]]] | None:
    """Compare the messages of the first ranks, one by one, with the products of the proved elements.

    Returns:
        These products for all ranks; None if they are so many that some were not compared.
    """
    ends, size = move.ends, move.ends[side].grid.size

    most = LISTED if ends[SENDS].grid == ends[RECEIVES].grid else ACROSS
    first, seen = rank_at(ends[side], (), ()), 0  # the root, if the tensor is rooted

    equal: dict[Group, Elements] = {}
    compared = list[tuple[int, list[Expected]]]()
    ranks: Iterable[tuple[int, int | None]] = zip(chain((first,), range(first), range(first + 1, size)), repeat(None))

    for rank, peer, expected in _expected(
        ends, parts, rules, side, ranks if size <= WHOLE else _some_pairs(first, size)
    ):
        if seen and seen + len(expected) > most:
            return None
        seen += max(len(expected), 1)
        _compare(rank, side, move.messages(rank, side, peer), expected, equal)
        compared.append((rank, expected))
    return compared if size <= WHOLE else None


def _some_pairs(first: int, number: int) -> Iterator[tuple[int, int]]:
    """Some pairs of ranks all over a large grid, those of the first rank and of neighbours among them."""
    some = [*range(0, number, -(-number // 8)), number - 1]
    for rank in (first, *some):
        for peer in {first: None, rank: None} | dict.fromkeys(some):
            yield rank, peer


def _compare(
    rank: int, side: int, messages: list[Message], expected: list[Expected], equal: dict[Group, Elements]
) -> None:
    """Refuse messages of a rank that differ from the expected ones.

    `equal` has the elements to which a group was found equal, because a group is in many messages.
    """
    does, peers, right = DOES[side], [message.peer for message in messages], [peer for peer, _, _ in expected]
    if peers != right:
        text = f"rank {rank} {does} {len(peers)} messages, with ranks {str(peers)[:60]}"
        raise PlanError(f"{text}, not {len(right)}, with {str(right)[:60]}, each once and in ascending order")

    for message, (peer, elements, late) in zip(messages, expected, strict=True):
        alike = len(message.groups) == len(elements)
        for group, proved in zip(message.groups, elements, strict=False):
            if alike and (group not in equal or equal[group] is not proved):
                alike, equal[group] = _same(group, proved, side), proved
        if not alike:
            raise PlanError(f"rank {rank} {does} a message with rank {peer} that has other elements, or other order")

        if side == RECEIVES and message.combine != late:
            text = f"rank {rank} {does} a message from rank {peer} with combine={message.combine}"
            raise PlanError(f"{text}; the first assigns, the others combine")


def _same(group: Group, proved: Elements, side: int) -> bool:
    """Whether a group of a message has the proved elements, in the same order."""
    for lattice, right in zip_longest(group.lattices, proved):
        if lattice is None or right is None or lattice.shape != right.shape:
            return False

        mine, theirs = lattice.rows[group.own], lattice.rows[group.opposite]
        rows = (*mine, *theirs) if side == SENDS else (*theirs, *mine)
        if not right.listed:
            if lattice.listed or rows != right.rows:
                return False
        elif len(rows) != len(right.rows) or not all(map(np.array_equal, chain(*rows), chain(*right.rows))):
            return False
    return True


def _check_pairs(received: list[tuple[int, list[Expected]]], sent: list[tuple[int, list[Expected]]]) -> None:
    """Refuse messages of all ranks of which not both sides know."""
    heard = {(peer, rank) for rank, expected in received for peer, _, _ in expected}
    wrong = heard ^ {(rank, peer) for rank, expected in sent for peer, _, _ in expected}
    if wrong:
        text = "rank {} sends a message to rank {}, or should send one, but not both"
        raise PlanError(text.format(*min(wrong)))


# --- what a kind of step can do ----------------------------------------------------------------------------------


def _check_kind(step: Step, parts: list[ProvedComponent], rules: Sequence[PeerRule]) -> None:
    """Refuse a kind that does another movement; with one role change, allgather and reduce_scatter cut no block."""
    kind, before, after = step.kind, step.before, step.after
    roles = [*zip(before.roles, after.roles, strict=True)]

    # Where data goes, and where roles change: a collective does the same along all of these.
    crossed = {g for g, rule in enumerate(rules) if _goes_over(parts, rule, g)}
    changed = {g for g, (old, new) in enumerate(roles) if old != new}

    outside = crossed if kind in LOCAL else crossed - {*step.grid_modes}
    if outside:
        raise PlanError(f"ranks exchange data over grid modes {sorted(outside)}, which are not in the step's sub-grid")

    if kind in ROLES:
        idle = {g for g in step.grid_modes if kind in TOGETHER and rules[g].number > 1}
        _check_roles(kind, roles, crossed | changed | idle)
        if kind != "alltoall" and not changed:
            raise PlanError(f"no grid mode is {ROLES[kind]}, as in this kind")

    filled = any(old.name != "partial" == new.name for old, new in roles)
    if (kind, filled) in (("slice", True), ("zero_fill", False)):
        raise PlanError("a zero_fill, and no slice, makes tensors partial")

    if kind == "permute" and _cut(roles, parts, rules):
        raise PlanError("blocks must go whole to one rank, not cut or copied")
    if kind in AS_THEY_ARE:
        old, new = ((dist.digits, *map(dealings, dist.splits, dist.view_shape)) for dist in (before, after))
        if old != new:
            raise PlanError("blocks are not to be rearranged")


def _check_roles(kind: str, roles: Sequence[tuple[Role, Role]], modes: set[int]) -> None:
    """Refuse grid modes whose roles change in another way than in a collective."""
    others = []
    for g in sorted(modes):
        before, after = roles[g]
        name = f"{before.name} to {after.name}"
        if name != ROLES[kind]:
            others.append(f"{g} ({name})")
    if others:
        raise PlanError(f"grid mode {', '.join(others)} is not {ROLES[kind]}, as in this kind")


def _check_kind_across(step: Step) -> None:
    """Refuse a kind that does not lead from one grid to another, or one that is not over the whole grid."""
    if step.kind not in ("exchange", "relayout"):
        grids = f"from grid {step.before.grid} to {step.after.grid}"
        raise PlanError(f"a step {grids} is an exchange, or a relayout, no {step.kind}")
    if step.grid_modes != tuple(range(step.before.grid.order)):
        raise PlanError(
            f"its grid modes {step.grid_modes} are not all of grid {step.before.grid}, though it leads to another"
        )


def _goes_over(parts: list[ProvedComponent], rule: PeerRule, g: int) -> bool:
    """Whether some message goes from one coordinate of a grid mode to another."""
    senders = receivers = np.arange(rule.number)

    for part in parts:
        if not part.proof.lattices:
            return False
    for part in parts:
        at, to = ([part.row(side, g)] if g in part.over[side] else [] for side in (SENDS, RECEIVES))
        if at and to:  # no other component is split by it; between two splits, data goes anywhere
            itself = part.proof.shared({at[0]: senders, to[0]: senders})[1]
            return bool((itself < part.proof.shared({at[0]: senders})[1]).any())
        if at:
            senders = np.flatnonzero(part.proof.shared({at[0]: senders})[1])
        if to:
            receivers = np.flatnonzero(part.proof.shared({to[0]: receivers})[1])

    if rule.equal:
        return False
    senders = senders if rule.sender is None else senders[senders == rule.sender]
    receivers = receivers if rule.receiver is None else receivers[receivers == rule.receiver]

    some = len(senders) and len(receivers)
    return bool(some and (len(senders) + len(receivers) > 2 or senders[0] != receivers[0]))


def _cut(roles: list[tuple[Role, Role]], parts: list[ProvedComponent], rules: Sequence[PeerRule]) -> bool:
    """Whether some block goes to several ranks, comes from several, or changes its role."""
    for (before, after), rule in zip(roles, rules, strict=True):
        several = before.name != "split" and max(rule.counts(side).max() for side in (SENDS, RECEIVES)) > 1
        if several or before.name != after.name:
            return True

    for part in parts:
        for side in (SENDS, RECEIVES):
            places = np.ix_(*map(np.arange, part.proof.parts[part.proof.at[side]]))
            if (part.proof.shared(dict(enumerate(places, part.proof.at[side].start)))[1] > 1).any():
                return True
    return False
