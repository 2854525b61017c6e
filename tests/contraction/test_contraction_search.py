"""Contractions of two operands are the cheapest of all block layouts of labels, by the prices of the compiler's plans.

The exhaustion below writes layouts as text, and knows nothing of the search.
"""

from __future__ import annotations

import random
from functools import cache
from itertools import chain, permutations, product
from math import prod
from typing import Any, NamedTuple

import pytest
from marks import PARTS
from parts import share

import rote

MACHINES = (
    rote.Machine(),
    rote.Machine(latency=0, copy_time=0, reduce_time=0, step_time=0, flop_time=1e-13),  # only words count
    rote.Machine(latency=1e-7, byte_time=1e-9, copy_time=1e-10, reduce_time=2e-10, step_time=1e-7, flop_time=1e-9),
)
GRIDS = ((2,), (3,), (4,), (2, 2), (3, 2), (1, 3), (4, 2), (2, 2), (2, 3), (2, 2, 2))
SAME = 1 + 1e-9

Way = dict[str, tuple[tuple[int, str], ...]]


class Case(NamedTuple):
    terms: tuple[str, str]
    result: str
    extents: dict[str, int]
    grid: tuple[int, ...]
    layouts: tuple[str, str]
    target: str | None
    machine: rote.Machine

    def shape(self, term: str) -> tuple[int, ...]:
        return tuple(self.extents[letter] for letter in term)

    def plan(self) -> rote.Contraction:
        return rote.compile_einsum(
            f"{','.join(self.terms)}->{self.result}",
            [*map(self.shape, self.terms)],
            layouts=self.layouts,
            grid=self.grid,
            layout=self.target,
            machine=self.machine,
        )


def text(modes: Any, partial: Any = ()) -> str:
    lists = ["(" + ",".join(f"{g}:{kind}" for g, kind in mode) + ")" for mode in modes]
    return f"[{','.join(lists)}]" + (f"+({','.join(map(str, partial))})" if partial else "")


def sizes(chance: random.Random, n: int, parts: int) -> str:
    cuts = sorted(chance.randint(0, n) for _ in range(parts - 1))
    return f"block({','.join(str(b - a) for a, b in zip([0, *cuts], [*cuts, n], strict=True))})"


def layout(chance: random.Random, shape: tuple[int, ...], grid: tuple[int, ...]) -> str:
    modes: list[list[tuple[int, str]]] = [[] for _ in shape]
    partial = []
    for g in chance.sample(range(len(grid)), len(grid)):
        role = chance.random()
        if role < 0.75 and shape:
            mode = chance.randrange(len(shape))
            kind = chance.choice(["block", "block", "block", "cyclic", "cyclic(3)", "sizes"])
            if kind == "sizes":
                kind = "block" if modes[mode] else sizes(chance, shape[mode], grid[g])
            modes[mode].append((g, kind))
        elif role > 0.93:
            partial.append(g)
    return text(modes, sorted(partial))


def case(seed: int) -> Case:
    chance = random.Random(seed)
    groups = [chance.choice("01112") for _ in range(4)]
    batch, rows, columns, summed = (
        "bc"[: int(groups[0]) // 2],
        "ij"[: int(groups[1])],
        "mn"[: int(groups[2])],
        "kl"[: int(groups[3])],
    )
    first, second = [*(batch + rows + summed)], [*(batch + columns + summed)]
    result = [*(batch + rows + columns)]
    for each in (first, second, result):
        chance.shuffle(each)
    most = chance.choice([7, 40, 300])
    extents = {x: chance.randint(1, most) for x in batch + rows + columns + summed}
    while prod(extents.values()) > 10_000_000:
        extents = {x: 1 + n // 3 for x, n in extents.items()}
    grid = chance.choice(GRIDS if len(extents) < 5 else GRIDS[:-1])
    terms = "".join(first), "".join(second)
    given = [layout(chance, tuple(extents[x] for x in term), grid) for term in terms]
    target = layout(chance, tuple(extents[x] for x in result), grid) if chance.random() < 0.6 else None
    return Case(terms, "".join(result), extents, grid, (given[0], given[1]), target, chance.choice(MACHINES))


def kinds(one: Case) -> dict[tuple[str, int], set[str]]:
    """The kinds of each letter and grid mode: block, and those that it has in operands and result."""
    found = {(x, g): {"block"} for x in one.extents for g in range(len(one.grid))}
    for term, given in zip((*one.terms, one.result), (*one.layouts, one.target), strict=True):
        for letter, mode in zip(term, rote.parse(given).modes if given else (), strict=False):
            for entry in mode:
                sized = f"({','.join(map(str, entry.kind.sizes))})" if entry.kind.sizes else ""
                found[letter, entry.grid_mode].add(entry.kind.name + sized)
    return found


def ways(one: Case) -> list[Way]:
    """Every assignment of grid modes to letters or none, in every order and every kind."""
    found, possible = [], kinds(one)
    for chosen in product((*one.extents, ""), repeat=len(one.grid)):
        every = []
        for letter in one.extents:
            modes = [g for g, each in enumerate(chosen) if each == letter]
            every.append(
                [
                    [*zip(order, kind, strict=True)]
                    for order in permutations(modes)
                    for kind in product(*[sorted(possible[letter, g]) for g in order])
                ]
            )
        found += [dict(zip(one.extents, each, strict=True)) for each in product(*every)]
    return found


def cheapest(one: Case) -> float:
    """The seconds of the cheapest contraction, by exhaustion."""

    def end(layout: str, term: str) -> rote.Distribution:
        return rote.parse(layout).on(one.shape(term), one.grid)

    @cache
    def price(source: str, target: str, term: str) -> float:
        return rote.compile(end(source, term), end(target, term), "f8", machine=one.machine).cost.seconds

    @cache
    def longest(entries: tuple[tuple[int, str], ...], n: int) -> int:
        dist = rote.parse(text([entries])).on((n,), one.grid)
        return max(dist.local_shape(rank)[0] for rank in range(dist.grid.size))

    given = [rote.parse(each).partial for each in one.layouts]
    best = float("inf")
    for way in ways(one):
        try:
            work = prod(longest(tuple(way[letter]), n) for letter, n in one.extents.items())
        except rote.LayoutError:  # sizes do not fit what another entry has left
            continue
        used = {g for entries in way.values() for g, _ in entries}
        summed = [g for letter, entries in way.items() if letter not in one.result for g, _ in entries]
        for stay in product(*[{(), each} for each in given]):
            kept = [*chain(*stay)]
            if used & {*kept} or len({*kept}) < len(kept):
                continue
            seconds = 2 * work * one.machine.flop_time
            for term, source, partial in zip(one.terms, one.layouts, stay, strict=True):
                seconds += price(source, text([way[x] for x in term], partial), term)
            lists = [way[x] for x in one.result]
            made = text(lists, sorted([*summed, *kept]))
            seconds += price(made, one.target or text(lists), one.result)
            best = min(best, seconds)
    return best


@pytest.mark.parametrize("part", PARTS)
def test_nothing_is_lost_against_the_best_of_all_layouts_of_labels(part: str) -> None:
    for seed in share(range(500), part, 60, of=24):
        one = case(seed)
        plan, best = one.plan(), cheapest(one)
        assert best / SAME <= plan.cost.seconds <= best * SAME, (seed, one, str(plan), plan.cost.seconds, best)
        plan.verify()
