"""The law of each rule, as a function of what a step does to every rank.

The sets of elements are those of `layout.definition`, which shares no code with the compiler; values go through
messages. A law's docstring is its text in the table of rules.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import reduce
from itertools import product

import numpy as np
from compiler import by_messages
from layout import definition

import rote
from rote.compiler.movement import RECEIVES, movement
from rote.compiler.rules import ANY

__all__ = ["I8", "LAWS", "Seen", "key", "see"]

NOTHING = {"sum": 0, "prod": 1, "max": -(2**63), "min": 2**63 - 1}
I8 = np.dtype("i8")

LAWS = {}


def law(kind, before=ANY, after=ANY):
    """Take a function from what was seen of a step to whether the law holds as that of a rule."""

    def take(function):
        LAWS[kind, before, after] = function
        return function

    return take


def key(rule):
    return rule.kind, rule.before, rule.after


@dataclass(frozen=True)
class Seen:
    """A step, and what it does to every rank.

    Attributes:
        have, need: per rank, the elements that it holds before and after, by the definition.
        before, after: per rank, the value of each element that it holds.
        arrivals: per rank, (element, contribution) as they come in; a contribution is named by its coordinates.
        wrong: what the definition finds wrong with the blocks after it; "" if nothing.
        teams: the sub-grids over which it works: ranks that differ along the step's grid modes alone.
    """

    step: object
    have: list
    need: list
    before: list
    after: list
    arrivals: list
    wrong: str
    teams: list

    def at(self, team, layout):
        """The rank of a team at the roots of a layout, and at 0 where it has none."""
        roots, grid = dict(layout.rooted), self.step.before.grid
        coordinates = list(grid.coordinates(team[0]))
        for g in self.step.grid_modes:
            coordinates[g] = roots.get(g, 0)
        return grid.rank(coordinates)

    def old_root(self, team):
        return self.at(team, self.step.before.layout)

    def new_root(self, team):
        return self.at(team, self.step.after.layout)

    def only_new_root_holds(self, team):
        return not any(self.need[rank] for rank in team if rank != self.new_root(team))


def see(step, rng):
    """Run a step on random values of its own, none of which adds nothing."""
    source, target = step.before, step.after
    array, blocks = definition.contribute(source.layout, source.shape, source.grid.shape, rng, low=2)
    found = by_messages.run(rote.Plan(source, target, I8, (step,)), blocks)
    old, new = (definition.block_indices(dist.layout, dist.shape, dist.grid.shape) for dist in (source, target))
    teams = {}
    for rank, at in enumerate(definition.coordinates(source.grid.shape)):
        teams.setdefault(tuple(c for g, c in enumerate(at) if g not in step.grid_modes), []).append(rank)
    return Seen(
        step,
        *([set(numbers.reshape(-1).tolist()) for numbers in held] for held in (old, new)),
        *(
            [dict(zip(n.reshape(-1).tolist(), b.reshape(-1).tolist(), strict=True)) for n, b in zip(*both, strict=True)]
            for both in ((old, blocks), (new, found))
        ),
        [arriving(step, rank, numbers) for rank, numbers in enumerate(new)],
        definition.wrong(target.layout, target.grid.shape, found, array),
        list(teams.values()),
    )


def arriving(step, rank, numbers):
    """What the messages to a rank bring, one by one, its own to itself included."""
    source, target = step.before, step.after
    contribution = definition.contributors(source.layout, source.grid.shape)
    parts, found = movement(source, target).parts, []
    for message in movement(source, target).messages(rank, RECEIVES):
        index = [None] * numbers.ndim
        for axis, (part, group) in enumerate(zip(parts, message.groups, strict=True)):
            for mode, positions in zip(part.after, group.positions, strict=True):
                index[mode] = positions.reshape([-1 if k == axis else 1 for k in range(len(parts))])
        found += [(element, contribution[message.peer]) for element in np.ravel(numbers[tuple(index)]).tolist()]
    return found


def reduction(seen, team):
    """The reduction of what a team holds before, element by element; of different elements there is none."""
    op = definition.OPS[seen.step.before.layout.op]
    together = [seen.before[rank] for rank in team]
    if any(each.keys() != together[0].keys() for each in together):
        return None
    return {element: int(reduce(op, [np.int64(each[element]) for each in together])) for element in together[0]}


def union(sets):
    return set().union(*sets)


def disjoint(sets):
    return sum(map(len, sets)) == len(union(sets))


@law("slice", "replicated", "split")
def _(seen):
    """a new block is part of the old one"""
    return all(new <= old for old, new in zip(seen.have, seen.need, strict=True))


@law("slice", "replicated", "rooted")
def _(seen):
    """the root keeps its block, the others nothing"""
    return all(
        seen.after[seen.new_root(team)] == seen.before[seen.new_root(team)] and seen.only_new_root_holds(team)
        for team in seen.teams
    )


@law("zero_fill", "split", "partial")
def _(seen):
    """contributions are disjoint, and reduce to the tensor"""
    target = seen.step.after.layout
    nothing, op = NOTHING[target.op], definition.OPS[target.op]
    for team in seen.teams:
        values = reduce(lambda a, b: a | b, [seen.before[rank] for rank in team])
        given = [{e: v for e, v in seen.after[rank].items() if v != nothing} for rank in team]
        if not disjoint(given) or any(seen.after[rank].keys() != values.keys() for rank in team):
            return False
        if {e: int(reduce(op, [np.int64(seen.after[rank][e]) for rank in team])) for e in values} != values:
            return False
    return True


def only_one_contributes(seen):
    """Coordinate 0 along what was replicated, the root along what was rooted."""
    nothing = NOTHING[seen.step.after.layout.op]
    return all(
        seen.after[rank] == seen.before[rank]
        if rank == seen.old_root(team)
        else set(seen.after[rank].values()) <= {nothing}
        for team in seen.teams
        for rank in team
    )


@law("zero_fill", "replicated", "partial")
def _(seen):
    """coordinate 0 contributes the value, the others nothing"""
    return only_one_contributes(seen)


@law("zero_fill", "rooted", "partial")
def _(seen):
    """the root contributes the value, the others what adds nothing"""
    return only_one_contributes(seen)


@law("relayout")
def _(seen):
    """each rank already holds what it needs, in another order or role"""
    nothing = NOTHING[seen.step.after.layout.op] if seen.step.after.layout.partial else None
    return all(
        value == old.get(element) or value == nothing
        for old, new in zip(seen.before, seen.after, strict=True)
        for element, value in new.items()
    )


@law("allgather", "split", "replicated")
def _(seen):
    """an old block is part of each new one of its sub-grid"""
    return all(seen.have[old] <= seen.need[new] for team in seen.teams for old, new in product(team, repeat=2))


@law("alltoall", "split", "split")
def _(seen):
    """in each sub-grid an element has one owner before, one after"""
    for team in seen.teams:
        old, new = ([held[rank] for rank in team] for held in (seen.have, seen.need))
        if not (disjoint(old) and disjoint(new) and union(old) == union(new)):
            return False
    return True


@law("permute", "split", "split")
def _(seen):
    """every new block is an old one, whole: equal tiles, not sizes"""
    return all(
        Counter(frozenset(seen.have[rank]) for rank in team) == Counter(frozenset(seen.need[rank]) for rank in team)
        for team in seen.teams
    )


@law("permute", "rooted", "rooted")
def _(seen):
    """the new root's block is the old root's, whole"""
    return all(
        seen.after[seen.new_root(team)] == seen.before[seen.old_root(team)] and seen.only_new_root_holds(team)
        for team in seen.teams
    )


@law("gather", "split", "rooted")
def _(seen):
    """the root's block is the union of all, the others hold nothing"""
    return all(
        seen.need[seen.new_root(team)] == union(seen.have[rank] for rank in team) and seen.only_new_root_holds(team)
        for team in seen.teams
    )


@law("scatter", "rooted", "split")
def _(seen):
    """the blocks partition the root's"""
    return all(
        disjoint([seen.need[rank] for rank in team])
        and union(seen.need[rank] for rank in team) == seen.have[seen.old_root(team)]
        for team in seen.teams
    )


@law("broadcast", "rooted", "replicated")
def _(seen):
    """every block is the root's"""
    return all(seen.after[rank] == seen.before[seen.old_root(team)] for team in seen.teams for rank in team)


@law("reduce", "partial", "rooted")
def _(seen):
    """the root's block is the reduction of all, element by element"""
    return all(
        seen.after[seen.new_root(team)] == reduction(seen, team) and seen.only_new_root_holds(team)
        for team in seen.teams
    )


@law("allreduce", "partial", "replicated")
def _(seen):
    """every block is the reduction of all, element by element"""
    return all(seen.after[rank] == reduction(seen, team) for team in seen.teams for rank in team)


@law("reduce_scatter", "partial", "split")
def _(seen):
    """a block is its part of the reduction of all"""
    return all(
        disjoint([seen.need[rank] for rank in team])
        and reduce(lambda a, b: a | b, [seen.after[rank] for rank in team]) == reduction(seen, team)
        for team in seen.teams
    )


@law("exchange")
def _(seen):
    """each needed element arrives once, each contribution enters once"""
    source, target = seen.step.before, seen.step.after
    contributions = set(definition.contributors(source.layout, source.grid.shape))
    teams = {}  # the ranks whose values a new reduction takes together
    for rank, at in enumerate(definition.coordinates(target.grid.shape)):
        teams.setdefault(tuple(c for g, c in enumerate(at) if g not in target.layout.partial), []).append(rank)
    return all(
        Counter(arrival for rank in team for arrival in seen.arrivals[rank])
        == Counter(product(seen.need[team[0]], contributions))
        for team in teams.values()
    )
