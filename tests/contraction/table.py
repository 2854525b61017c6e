"""Contractions that used to be planned badly, each with a better way, which the planner must find or beat.

`rows()` gives the table. The better ways are written by hand: the products in order, each with its assignment; or pairs
of operands, planned one after the other; or the bound, where the planner also chooses the layouts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

import rote
from rote.functions.contraction.assignment import operand_in, read_assignment, result_in
from rote.functions.contraction.stages import Move, Product
from rote.functions.contraction.subscripts import Subscripts

__all__ = ["CASES", "Case", "Row", "rows"]

WORD = 8  # bytes
WORDS_ONLY = rote.Machine(latency=0, copy_time=0, reduce_time=0, step_time=0, flop_time=1e-13)


class Case(NamedTuple):
    """A contraction with a better way.

    Attributes:
        layouts: of the operands; None for those that the planner chooses.
        result: the layout of the result, or None.
        better: words and peak bytes of the better way.
        memory: the most bytes on a rank, in units of what operands and result take; None for any number.
    """

    name: str
    text: str
    shapes: Sequence[tuple[int, ...]]
    layouts: Sequence[str] | None
    grid: tuple[int, ...]
    result: str | None
    better: Callable[[Case], tuple[float, float]]
    machine: rote.Machine = rote.Machine()
    memory: float | None = None

    def plan(self) -> rote.Contraction:
        where = {"ranks": prod(self.grid)} if self.layouts is None else {"grid": self.grid}
        most = None if self.memory is None else int(self.memory * self.least())
        return rote.compile_einsum(
            self.text, self.shapes, self.layouts, layout=self.result, machine=self.machine, max_bytes=most, **where
        )

    def least(self) -> int:
        """The bytes of operands and result on the busiest rank, as they lie."""
        if self.layouts is None:
            return 0
        extents = Subscripts(*_terms(self.text)).extents(self.shapes)
        shapes = [*self.shapes, tuple(extents[x] for x in _terms(self.text)[1])]
        layouts = [*self.layouts, *([self.result] if self.result else [])]
        dists = [rote.parse(lay).on(shape, self.grid) for lay, shape in zip(layouts, shapes, strict=False)]
        return WORD * sum(prod(dist.max_local_shape()) for dist in dists)


class Row(NamedTuple):
    """A case as it is planned: words that the busiest rank receives, seconds of the model, and peak bytes."""

    case: str
    words: float
    better: float
    ratio: float
    seconds: float
    peak_over_least: float
    peak_over_better: float
    planning: float


def _terms(text: str) -> tuple[tuple[str, ...], str]:
    terms, result = text.split("->")
    return tuple(terms.split(",")), result


def products(*stages: tuple[tuple[int, ...], str]) -> Callable[[Case], tuple[float, float]]:
    """A way that multiplies tensors of these numbers in these assignments; products are numbered after operands."""

    def better(case: Case) -> tuple[float, float]:
        plan = by_hand(case, stages)
        plan.verify()
        return plan.cost.bytes / WORD, plan.cost.peak_bytes

    return better


def by_hand(case: Case, products: Sequence[tuple[tuple[int, ...], str]]) -> rote.Contraction:
    """A contraction of given products."""
    grid, (terms, result) = rote.Grid(case.grid), _terms(case.text)
    extents = Subscripts(terms, result).extents(case.shapes)
    operands = [rote.parse(lay).on(shape, grid) for lay, shape in zip(case.layouts or (), case.shapes, strict=True)]
    values = [*zip(range(len(terms)), terms, operands, strict=True)]  # the number of the tensor, its letters, where
    waiting, stages = {*range(len(terms))}, []

    def moved(value: int, source: rote.Distribution, target: rote.Distribution) -> int:
        if source.meaning == target.meaning:
            return value
        stages.append(Move(value, rote.compile(source, target, "f8", machine=case.machine)))
        return len(operands) + len(stages) - 1

    for chosen, text in products:
        waiting -= {*chosen}
        letters = "".join(dict.fromkeys("".join([values[n][1] for n in chosen])))
        needed = result + "".join([values[n][1] for n in waiting])
        term = "".join([letter for letter in letters if letter in needed]) if waiting else result
        assignment = read_assignment(text, letters, grid)
        taken = []
        for number in chosen:
            value, letters_of, dist = values[number]
            taken.append(moved(value, dist, operand_in(assignment, letters_of, dist.shape, extents, grid)))
        made = result_in(assignment, term, extents, grid)
        stages.append(Product(tuple(taken), tuple([values[n][1] for n in chosen]), term, made, assignment))
        waiting.add(len(values))
        values.append((len(operands) + len(stages) - 1, term, made))
    value, _, dist = values[-1]
    plain = rote.parse(str(dist.layout).partition("+")[0])
    final = rote.parse(case.result).on(dist.shape, grid) if case.result else plain.on(dist.shape, grid)
    moved(value, dist, final)
    dtypes = (np.dtype("f8"),) * len(terms)
    return rote.Contraction(Subscripts(terms, result), tuple(operands), dtypes, final, tuple(stages), case.machine)


def pairs(*path: tuple[int, int]) -> Callable[[Case], tuple[float, float]]:
    """A way that plans one pair of tensors after the other; products are numbered after the operands."""

    def better(case: Case) -> tuple[float, float]:
        terms, result = _terms(case.text)
        extents = Subscripts(terms, result).extents(case.shapes)
        values = [*zip(terms, case.layouts or (), strict=True)]
        waiting, words, peak = {*range(len(terms))}, 0.0, 0.0
        for pair in path:
            waiting -= {*pair}
            both = [values[n] for n in pair]
            letters = "".join(dict.fromkeys(both[0][0] + both[1][0]))
            needed = result + "".join([values[n][0] for n in waiting])
            term = "".join([letter for letter in letters if letter in needed]) if waiting else result
            text = f"{both[0][0]},{both[1][0]}->{term}"
            shapes = [tuple(extents[x] for x in each) for each, _ in both]
            layouts = [layout for _, layout in both]
            last = None if waiting else case.result
            plan = rote.compile_einsum(text, shapes, layouts, grid=case.grid, layout=last, machine=case.machine)
            held = sum([held_bytes(case, values[n], extents) for n in waiting])
            words, peak = words + plan.cost.bytes / WORD, max(peak, plan.cost.peak_bytes + held)
            waiting.add(len(values))
            values.append((term, str(plan.result.layout)))
        return words, peak

    return better


def held_bytes(case: Case, value: tuple[str, str], extents: dict[str, int]) -> int:
    """The bytes of a tensor that is not used yet."""
    term, layout = value
    dist = rote.parse(layout).on(tuple(extents[letter] for letter in term), case.grid)
    return WORD * prod(dist.max_local_shape())


def bound(times: float) -> Callable[[Case], tuple[float, float]]:
    """So many times the words of the lower bound."""
    return lambda case: (times * case.plan().lower_bound / WORD, float("inf"))


N = 4096
SQUARE = [(N, N)] * 2
GRID, ROWS = "block[(0),(1)]", "block[(0),()]"
REFINED = ["block[(0),(2,1)]", "block[(2,0),(1)]"]
LAST = "block[(),(),(0),(1)]"
SUMMA = products(((0, 1), "i:0,j:1"))

CASES = (
    Case("three matrices on 32x32", "ij,jk,kl->il", [(N, N)] * 3, [GRID] * 3, (32, 32), GRID,
         products(((0, 1), "i:0,k:1"), ((3, 2), "i:0,l:1"))),
    Case("A@B@v on 4x4", "ij,jk,k->i", [(256, 256), (256, 256), (256,)], [GRID, GRID, "block[(0)]"], (4, 4), None,
         pairs((1, 2), (0, 3)), WORDS_ONLY),
    Case("coupled-cluster doubles on 8x8", "klcd,ijcd,klab->ijab", [(16, 16, 128, 128)] * 3, [LAST] * 3, (8, 8), None,
         products(((0, 1), "c:0,d:1"), ((3, 2), "a:0,b:1"))),
    Case("AO to MO on 8x8", "pqrs,pi,qj,rk,sl->ijkl", [(64,) * 4, *[(64, 64)] * 4],
         ["block[(0),(1),(),()]", *[GRID] * 4], (8, 8), None, pairs((0, 3), (5, 4), (6, 1), (7, 2))),
    Case("MTTKRP on 4x4", "ijk,ja,ka->ia", [(256,) * 3, (256, 16), (256, 16)], ["block[(0),(1),()]", ROWS, ROWS],
         (4, 4), None, products(((1, 2), "j:1"), ((0, 3), "i:0,j:1"))),
    Case("Tucker on 4x4", "ijk,ia,jb,kc->abc", [(128,) * 3, *[(128, 8)] * 3], ["block[(0),(1),()]", *[ROWS] * 3],
         (4, 4), None, pairs((0, 3), (4, 2), (5, 1))),
    Case("refined layouts on 4x4x4", "ik,kj->ij", SQUARE, REFINED, (4, 4, 4), "block[(0,2),(1)]",
         products(((0, 1), "i:0,j:1,k:2"))),
    Case("refined layouts on 8x8x8", "ik,kj->ij", SQUARE, REFINED, (8, 8, 8), "block[(0,2),(1)]",
         products(((0, 1), "i:0,j:1,k:2"))),
    Case("blocks on 4x4", "ik,kj->ij", SQUARE, [GRID] * 2, (4, 4), GRID, SUMMA),
    Case("blocks on 32x16", "ik,kj->ij", SQUARE, [GRID] * 2, (32, 16), GRID, SUMMA),
    Case("inner 64x65536x64 on 2x2", "ik,kj->ij", [(64, 65536), (65536, 64)], [GRID] * 2, (2, 2), GRID,
         products(((0, 1), "k:01"))),
    Case("flat, layouts chosen on 4", "ik,kj->ij", [(256, 256), (256, 65536)], None, (4,), None, bound(1.10)),
    Case("inner, layouts chosen on 4", "ik,kj->ij", [(256, 65536), (65536, 256)], None, (4,), None, bound(1.10)),
)  # fmt: skip


def rows() -> list[Row]:
    """The table."""
    table = []
    for case in CASES:
        start = time.process_time()
        plan = case.plan()
        planning = time.process_time() - start
        (words, peak), taken, least = case.better(case), plan.cost.bytes / WORD, case.least()
        ratios = taken / words, plan.cost.peak_bytes / least if least else 1.0, plan.cost.peak_bytes / peak
        table.append(Row(case.name, taken, words, ratios[0], plan.cost.seconds, ratios[1], ratios[2], planning))
    return table


if __name__ == "__main__":
    for row in rows():
        memory = f"peak/least {row.peak_over_least:6.2f} peak/better {row.peak_over_better:6.2f}"
        print(f"{row.case:34s} {row.words:12.6g} {row.better:12.6g} {row.ratio:7.3f} {row.seconds:9.3g} s {memory}")
