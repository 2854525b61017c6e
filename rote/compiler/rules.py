"""The rules: how a step may change the roles of grid modes, the collective that does it, and the law that it obeys.

The name of a step follows from the roles of the changed grid modes before and after. If all change in one of the ways
below, the step is that collective over these grid modes. A mixture is a general exchange, so that every movement has
a name. No rule needs divisibility: "D is a prefix of D'" means that what a rank holds under D' is part of what it
holds under D, for every kind and every extent.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from ..layout.distribution import Distribution
from ..layout.kinds import Split, dealings
from .movement import Movement, movement
from .step import LOCAL, Step, StepKind

__all__ = ["ANY", "RULES", "Rule", "one_step", "rule_of", "step_of", "table"]

ANY = "any"
_KIND_AND_PARTS = attrgetter("kind", "parts")


@dataclass(frozen=True, slots=True)
class Rule:
    """A change of the roles of grid modes, and the step that makes it.

    Attributes:
        name: the change of the layout, in words.
        kind: the collective or the local step that makes the change.
        before, after: the role of every changed grid mode on both sides.
        law: a property of the blocks, which is tested.
    """

    name: str
    kind: StepKind
    before: str
    after: str
    law: str


RULES: tuple[Rule, ...] = (
    Rule("add entries", "slice", "replicated", "split", "a new block is part of the old one"),
    Rule("keep at a root", "slice", "replicated", "rooted", "the root keeps its block, the others nothing"),
    Rule("fill up", "zero_fill", "split", "partial", "contributions are disjoint, and reduce to the tensor"),
    Rule("fill up", "zero_fill", "replicated", "partial", "coordinate 0 contributes the value, the others nothing"),
    Rule("fill up", "zero_fill", "rooted", "partial", "the root contributes the value, the others what adds nothing"),
    Rule("rearrange", "relayout", ANY, ANY, "each rank already holds what it needs, in another order or role"),
    Rule("drop entries", "allgather", "split", "replicated", "an old block is part of each new one of its sub-grid"),
    Rule("move entries", "alltoall", "split", "split", "in each sub-grid an element has one owner before, one after"),
    Rule("swap tiles", "permute", "split", "split", "every new block is an old one, whole: equal tiles, not sizes"),
    Rule("change root", "permute", "rooted", "rooted", "the new root's block is the old root's, whole"),
    Rule("collect", "gather", "split", "rooted", "the root's block is the union of all, the others hold nothing"),
    Rule("deal out", "scatter", "rooted", "split", "the blocks partition the root's"),
    Rule("copy", "broadcast", "rooted", "replicated", "every block is the root's"),
    Rule("reduce", "reduce", "partial", "rooted", "the root's block is the reduction of all, element by element"),
    Rule("reduce", "allreduce", "partial", "replicated", "every block is the reduction of all, element by element"),
    Rule("reduce", "reduce_scatter", "partial", "split", "a block is its part of the reduction of all"),
    Rule("move anything", "exchange", ANY, ANY, "each needed element arrives once, each contribution enters once"),
)
"""The rules for every kind of step, in the order in which they are tried; ANY stands for a mixture of roles."""

_BY_ROLES = {(r.before, r.after): r.kind for r in reversed(RULES) if r.kind != "permute" or r.before == "rooted"}


def one_step(source: Distribution, target: Distribution) -> Step | None:
    """The single step from one distribution to another of the same tensor and ranks; None if there is nothing to do.

    >>> from rote.layout.layout import parse
    >>> print(one_step(parse("[(0,1),()]").on((4, 6), (2, 2)), parse("[(0),()]").on((4, 6), (2, 2))))
    allgather over 1: [(0,1),()] -> [(0),()]
    """
    return step_of(movement(source, target))


def step_of(move: Movement) -> Step | None:
    """The single step of a movement; None if there is nothing to do."""
    source, target = move.ends
    if move.across:
        kind: StepKind = "exchange" if move.received.any() else "relayout"
        return Step(kind, source, target, tuple(range(source.grid.order)))
    before, after = _functions(source), _functions(target)
    changed = tuple([g for g in range(source.grid.order) if before[g] != after[g]])
    if not changed and source.digits == target.digits:
        return None
    return Step(_kind(move, changed), source, target, changed)


def rule_of(step: Step) -> Rule:
    """The rule that a step follows."""
    ways = {(step.before.roles[g].name, step.after.roles[g].name) for g in step.grid_modes if not step.across}
    mine = [rule for rule in RULES if rule.kind == step.kind]
    return next((rule for rule in mine if (rule.before, rule.after) in ways), mine[0])


def table() -> str:
    """The rules as a table in Markdown."""
    rows = ["| every changed grid mode goes | rule | step | law |", "|---|---|---|---|"]
    for rule in RULES:
        local = " (local)" if rule.kind in LOCAL else ""
        rows.append(f"| {rule.before} → {rule.after} | {rule.name} | `{rule.kind}`{local} | {rule.law} |")
    return "\n".join(rows)


def _kind(move: Movement, changed: tuple[int, ...]) -> StepKind:
    """The kind of the step that changes these grid modes."""
    source, target = move.ends

    ways = [(source.roles[g].name, target.roles[g].name) for g in changed]
    names = {_BY_ROLES.get(way, "exchange") for way in ways}
    if len(names) != 1:
        return "relayout" if names <= set(LOCAL) else "exchange"

    (name,) = names
    if name == "alltoall":
        if any(len(part.before) > 1 or len(part.after) > 1 for part in move.parts):
            return "exchange" if move.received.any() else "relayout"  # in another view, all may stay
        return "permute" if _tiles(source) == _tiles(target) else "alltoall"

    if name in ("allreduce", "reduce", "broadcast") and source.digits != target.digits:
        return "exchange"  # these collectives move blocks unchanged, but here blocks are rearranged
    return name


def _tiles(dist: Distribution) -> dict[object, object]:
    """Per view mode, the kinds and parts of its splits, whichever grid modes split it.

    Sizes of blocks would not do, because nested blocks of the same size need not be the same tiles.
    """
    return {name: [*map(_KIND_AND_PARTS, splits)] for name, splits in _modes(dist)}


def _functions(dist: Distribution) -> list[tuple[object, ...]]:
    """The coordinate functions of grid modes: equal values mean that the same elements have the same coordinate."""
    functions: list[tuple[object, ...]] = []
    for role in dist.roles:
        functions.append((role, dist.layout.op if role.name == "partial" else ""))
    for m, (name, mode) in enumerate(_modes(dist)):
        for depth, split in enumerate(mode):
            function = dealings(mode[: depth + 1], dist.view_shape[m])
            functions[split.grid_mode] = dist.roles[split.grid_mode], name, function
    return functions


def _modes(dist: Distribution) -> list[tuple[object, tuple[Split, ...]]]:
    """Per view mode, its key and its splits. The key is its digits and a count, since tiles of 1 read equal digits."""
    modes: list[tuple[object, tuple[Split, ...]]] = []
    for m, (digits, mode) in enumerate(zip(dist.digits, dist.splits, strict=True)):
        modes.append(((digits, dist.digits[:m].count(digits)), mode))
    return modes
