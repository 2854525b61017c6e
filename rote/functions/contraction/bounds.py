"""Lower bounds on the words that some rank of a contraction must receive.

A product of tensors is a set of points, one per tuple of indices, and each operand (and the result) sees the projection
of this set onto its letters. A rank that computes V points needs projections of x_j elements with

    V <= x_1^s_1 · x_2^s_2 · …      for all s >= 0 in which each letter has a sum of at least 1 over the terms with it

(Hölder, Brascamp, Lieb; Christ et al. 2013). For a matrix product each s is 1/2, which is the inequality of Loomis and
Whitney. Two bounds follow.

    ij,jk->ik     x_ij · x_jk · x_ik >= V²

Whatever the memory, V points take at least F(V) elements, the least sum of projections, of which those need not come
that a rank holds at the beginning; nor need those of the result be sent that it holds at the end. For matrix products
this is the bound of Al Daas et al. (2022).

With a memory of S words, a rank that receives T words of the operands, or begins to add up T elements of the result,
sees at most S + T elements meanwhile. So it computes at most the greatest product of powers under this sum (Irony,
Toledo and Tiskin 2004): ((S + T) / 3)^(3/2) points of a matrix product. With T = 2 S, V points take 2 V / sqrt(S) words
(Kwasniewski et al. 2019; for other contractions see Ziogas et al. 2022), less a part of S, for what is in memory first,
and what is held of the result in the end.

What one rank sends of the result another one receives, so that the sums over all ranks bound the mean that a rank
receives, and so the most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import exp, log, prod
from typing import Any, NamedTuple

from ...layout.distribution import Distribution
from .diagonals import distinct
from .stages import Move, Stage
from .subscripts import spanning

__all__ = ["Bound", "contraction_bound", "exponents", "memory_dependent", "memory_independent"]

Term = Sequence[Any]  # letters


class Bound(NamedTuple):
    """A lower bound, in words, and the paper that it is from."""

    words: float
    source: str


def exponents(terms: Sequence[Term]) -> tuple[Fraction, ...]:
    """The exponents s of least sum: one per term, with a sum of at least 1 over the terms of each label.

    They are the dual solution of the linear program: maximize the sum of y over labels, where y >= 0 has a sum of at
    most 1 over the labels of each term. It is solved exactly, by the simplex method with Bland's rule.

    >>> exponents([(0, 1), (1, 2), (0, 2)])
    (Fraction(1, 2), Fraction(1, 2), Fraction(1, 2))
    >>> exponents([(0, 1), (1,), (0,)])
    (Fraction(1, 1), Fraction(0, 1), Fraction(0, 1))
    """
    labels = sorted({label for term in terms for label in term})
    count, width = len(terms), len(labels)

    # Row j of the tableau: the labels of term j, its slack variable, and the right-hand side 1.
    rows = [[Fraction(label in term) for label in labels] for term in terms]
    table = [[*row, *(Fraction(j == other) for other in range(count)), Fraction(1)] for j, row in enumerate(rows)]
    gains = [Fraction(1)] * width + [Fraction(0)] * (count + 1)
    basis = [width + j for j in range(count)]

    while True:
        entering = next((n for n in range(width + count) if gains[n] > 0), None)
        if entering is None:  # the dual solution: what a slack variable would cost
            return tuple(-gains[width + j] for j in range(count))

        # Bland's rule: of the rows that limit most, the one of the first variable, so that no basis comes again.
        limits = [(row[-1] / row[entering], basis[j], j) for j, row in enumerate(table) if row[entering] > 0]
        leaving = min(limits)[2]

        pivot = table[leaving][entering]
        table[leaving] = [value / pivot for value in table[leaving]]
        for j, row in enumerate(table):
            if j != leaving and row[entering]:
                factor = row[entering]
                table[j] = [a - factor * b for a, b in zip(row, table[leaving], strict=True)]

        factor = gains[entering]
        gains = [a - factor * b for a, b in zip(gains, table[leaving], strict=True)]
        basis[leaving] = entering


def memory_independent(
    terms: Sequence[Term],
    extents: Mapping[Any, int],
    ranks: int,
    most: int | None = None,
    local: int | None = None,
) -> Bound:
    """The least words that some rank must receive, whatever its memory.

    Args:
        terms: the letters of the operands, and of the result.
        most: the most points that any rank computes; if None, all compute equally many. If some compute none, the
            others need more elements, but fewer ranks share these.
        local: the elements that need not come because ranks hold them, added up over all ranks and tensors; one copy of
            each tensor if None.

    >>> sizes = {"i": 64, "j": 64, "k": 64}
    >>> bound = memory_independent(["ij", "jk", "ik"], sizes, 8)
    >>> round(bound.words, 6), 3 * 64**2 / 4 - 3 * 64**2 / 8, bound.source
    (1536.0, 1536.0, 'Al Daas et al. (2022)')
    """
    sizes = [prod(extents[letter] for letter in term) for term in terms]
    total = prod(extents[letter] for letter in {letter for term in terms for letter in term})
    powers = exponents(terms)
    source = "Al Daas et al. (2022)" if _is_matrix_product(powers) else "Christ et al. (2013)"
    if not total:
        return Bound(0.0, source)

    of_one = max(total / ranks, most or 0)
    # F(V) / V does not grow with V, so the sum of F over ranks is least if few of them compute as much as one may.
    needed = total / of_one * _least_sum([float(s) for s in powers], of_one, [size * of_one / total for size in sizes])
    words = (needed * (1 - _ROUNDING) - (sum(sizes) if local is None else local)) / ranks
    return Bound(max(0.0, words), source)


def _least_sum(powers: Sequence[float], points: float, least: Sequence[float]) -> float:
    """The least sum of x_j, each at least `least[j]`, whose product of powers is at least a number of points.

    The sum is least where x_j is proportional to s_j. Those that would be too small are at their least.
    """
    fixed = [not power for power in powers]
    while True:
        free = [j for j, at in enumerate(fixed) if not at]
        rest = log(points) - sum([powers[j] * log(least[j]) for j, at in enumerate(fixed) if at and powers[j]])
        sum_of_powers = sum([powers[j] for j in free])
        scale = exp((rest - sum([powers[j] * log(powers[j]) for j in free])) / sum_of_powers) if free else 0.0

        low = [j for j in free if scale * powers[j] < least[j]]
        if not low:
            return sum([least[j] if at else scale * powers[j] for j, at in enumerate(fixed)])
        for j in low:
            fixed[j] = True


def memory_dependent(
    terms: Sequence[Term], extents: Mapping[Any, int], ranks: int, memory: float, added: int | None = None
) -> Bound:
    """The least words that some rank must receive if it holds at most `memory` words at once.

    Args:
        terms: the letters of the operands, and of the result.
        added: the contributions to the result that need not be received, over all ranks; one per element if None.

    >>> sizes = dict.fromkeys("ijk", 4096)
    >>> bound = memory_dependent(["ik", "kj", "ij"], sizes, 1024, 2**16)
    >>> round(bound.words), 2 * 4096**3 // 1024 // 2**8, bound.source      # 2 V/sqrt(S), less 2 S/3^(3/2) and n²/P
    (482679, 524288, 'Kwasniewski et al. (2019)')
    """
    powers = exponents(terms)
    source = "Kwasniewski et al. (2019)" if _is_matrix_product(powers) else "Ziogas et al. (2022)"
    total = prod(extents[letter] for letter in {letter for term in terms for letter in term})
    degree = float(sum(powers))
    if not total or memory <= 0 or degree <= 1:
        return Bound(0.0, source)

    # Most words per point: T = S / (degree - 1). The points of W < T words are at most W / T of those of T words, and
    # those of no words besides, which the memory alone allows: (S / (S + T))^degree of them.
    received = memory / (degree - 1)
    logs = [float(s) * log((memory + received) * float(s) / degree) for s in powers if s]
    phases = exp(log(total) - log(ranks) - sum(logs))
    words = received * (phases * (1 - _ROUNDING) - ((degree - 1) / degree) ** degree)

    if added is None:
        added = prod(extents[letter] for letter in terms[-1])
    return Bound(max(0.0, words - added / ranks), source)


_ROUNDING = 1e-12  # relative; a bound must not be too large


def _is_matrix_product(powers: Sequence[Fraction]) -> bool:
    return [*powers] == [Fraction(1, 2)] * 3


def contraction_bound(
    stages: Sequence[Stage], values: Sequence[Distribution], extents: Mapping[str, int], memory: float
) -> Bound:
    """The words that some rank must receive in any contraction with the same products.

    It is the larger bound of the one product that needs most: any contraction with this product receives as much, if no
    rank computes more of it, or holds more, than the busiest one here, its operands are as often there at the
    beginning, and the result is where it is to be.

    Args:
        stages: the moves and products of a contraction.
        values: how each tensor lies: the operands, and what each stage makes.
        memory: the most words that a rank holds.
    """
    count = len(values) - len(stages)
    first = [*range(len(values))]  # per tensor, the one that it was before it moved
    last = [*values]  # per tensor, how it lies when it is multiplied, or in the end
    for number, stage in enumerate(stages, count):
        if isinstance(stage, Move):
            first[number] = first[stage.value]
            last[first[number]] = stage.plan.target
        else:
            for value, plans in zip(stage.values, stage.plans, strict=False):
                if plans:
                    last[first[value]] = plans[0].target

    bounds = [Bound(0.0, "")]
    for number, stage in enumerate(stages, count):
        if isinstance(stage, Move) or stage.is_diagonal:
            continue

        terms, local = [], 0
        for value, term in zip(stage.values, stage.terms, strict=True):
            dist = values[first[value]]
            terms.append(spanning(term, dist.shape, extents))
            if last[first[value]].partial or not dist.partial:  # else no rank has an element before contributions come
                roles = zip(dist.roles, dist.grid.shape, strict=True)
                local += prod(dist.shape) * prod([n for role, n in roles if role.name in ("replicated", "partial")])
        letters, end = distinct("".join(terms)), last[number]
        terms.append("".join([letter for letter in stage.term if letter in letters]))

        # If t ranks contribute to an element, t - 1 contributions are received before they are one. Ranks may compute
        # the same contribution, and keep it; but one of them is enough for the sum, and is counted.
        added = prod(stage.result.shape) * prod([end.grid.shape[g] for g in end.partial])
        most, ranks = stage.points([values[value].shape for value in stage.values], extents), stage.result.grid.size
        bounds.append(memory_independent(terms, extents, ranks, most, local + added))
        bounds.append(memory_dependent(terms, extents, ranks, memory, added))

    best = max(bounds, key=lambda bound: bound.words)
    return best if best.words else bounds[0]
