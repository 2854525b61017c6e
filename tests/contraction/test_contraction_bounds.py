"""The lower bounds: those of the papers, from the papers' own formulas; and no plan receives less."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations
from math import prod, sqrt

import numpy as np
import pytest
from contraction.contractions import contraction, request_of
from marks import PARTS
from parts import SOME, share

import rote
from rote.functions.contraction.bounds import exponents, memory_dependent, memory_independent
from rote.functions.contraction.plan import contraction_of
from rote.functions.contraction.stages import Product

MATRICES = ("ik", "kj", "ij")


def al_daas(m, n, k, ranks):
    """Theorem 3 of Al Daas, Ballard, Grigori, Kumar and Rouse (2022), for extents m >= n >= k."""
    m, n, k = sorted((m, n, k), reverse=True)
    if ranks <= m / n:
        least = (m * n + m * k) / ranks + n * k
    elif ranks <= m * n / k**2:
        least = 2 * sqrt(m * n * k**2 / ranks) + m * n / ranks
    else:
        least = 3 * (m * n * k / ranks) ** (2 / 3)
    return least - (m * n + m * k + n * k) / ranks


@pytest.mark.parametrize("seed", range(40))
def test_matrix_products_have_the_bound_of_al_daas(seed):
    """In all three regimes of the number of ranks, at their ends, and for every order of the extents."""
    rng = random.Random(seed)
    sizes = [rng.choice([64, 100, 128, 1000, 4096]) for _ in range(3)]
    m, n, k = sorted(sizes, reverse=True)
    for ranks in {1, 2, 8, 64, 1000, 4096, max(1, m // n), max(1, m * n // k**2), m * n * k}:
        bound = memory_independent(MATRICES, dict(zip("ijk", sizes, strict=True)), ranks)
        assert bound.words == pytest.approx(al_daas(m, n, k, ranks), rel=1e-9, abs=1e-6)
        assert bound.source == "Al Daas et al. (2022)"


def test_the_regimes_are_those_of_the_paper():
    """One dimension: (1 - 1/P) n k; two: 2 sqrt(m n k²/P) - (m k + n k)/P; three: 3 (m n k/P)^(2/3) less one copy."""
    sizes = {"i": 4096, "j": 256, "k": 64}
    one, two, three = [memory_independent(MATRICES, sizes, ranks).words for ranks in (8, 128, 1024)]
    assert one == pytest.approx((1 - 1 / 8) * 256 * 64)
    assert two == pytest.approx(2 * sqrt(4096 * 256 * 64**2 / 128) - (4096 + 256) * 64 / 128)
    assert three == pytest.approx(3 * (4096 * 256 * 64 / 1024) ** (2 / 3) - (4096 * 320 + 256 * 64) / 1024)


def least_by_vertices(terms):
    """The least sum of exponents, from all vertices of the polytope, by elimination in fractions."""
    letters = sorted({letter for term in terms for letter in term})
    rows = [([Fraction(letter in term) for term in terms], Fraction(1)) for letter in letters]
    rows += [([Fraction(j == other) for other in range(len(terms))], Fraction(0)) for j in range(len(terms))]
    best = None
    for chosen in combinations(rows, len(terms)):
        vertex = solved([row for row, _ in chosen], [right for _, right in chosen])
        if vertex is not None and all(
            sum(a * x for a, x in zip(row, vertex, strict=True)) >= right for row, right in rows
        ):
            best = sum(vertex) if best is None else min(best, sum(vertex))
    return best


def solved(rows, right):
    """The solution of a square system; None if there is not just one."""
    table = [[*row, b] for row, b in zip(rows, right, strict=True)]
    for column in range(len(table)):
        pivot = next((n for n in range(column, len(table)) if table[n][column]), None)
        if pivot is None:
            return None
        table[column], table[pivot] = table[pivot], table[column]
        table[column] = [value / table[column][column] for value in table[column]]
        for n, row in enumerate(table):
            if n != column and row[column]:
                table[n] = [a - row[column] * b for a, b in zip(row, table[column], strict=True)]
    return [row[-1] for row in table]


@pytest.mark.parametrize("seed", range(60))
def test_exponents_are_a_least_vertex(seed):
    """The simplex method finds exponents that every letter allows, whose sum is that of the best of all vertices."""
    rng = random.Random(seed)
    terms = ["".join(rng.sample("abcde", rng.randint(0, 4))) for _ in range(rng.randint(1, 5))]
    found = exponents(terms)
    assert all(isinstance(s, Fraction) and s >= 0 for s in found)
    for letter in {*"".join(terms)}:
        assert sum(s for s, term in zip(found, terms, strict=True) if letter in term) >= 1
    assert sum(found) == least_by_vertices(terms)


@pytest.mark.parametrize(
    ("terms", "sums"),
    [(MATRICES, "3/2"), (("ij", "j", "i"), "1"), (("ijk", "ja", "ka", "ia"), "5/3"), (("i", "j", "ij"), "1")],
)
def test_exponents_of_known_kernels(terms, sums):
    """Matrix product, matrix-vector product, MTTKRP (5/3: Ballard, Knight and Rouse 2018) and outer product."""
    assert sum(exponents(terms)) == Fraction(sums)


def test_the_bound_with_little_memory_is_that_of_kwasniewski():
    """But for what memory has first and last, 2 m n k / (P sqrt(S)); and never less than Irony, Toledo and Tiskin's."""
    rng = random.Random(0)
    for _ in range(200):
        sizes = {letter: rng.choice([64, 1000, 4096, 65536]) for letter in "ijk"}
        ranks = rng.choice([1, 4, 64, 1000])
        points, kept = prod(sizes.values()) / ranks, sizes["i"] * sizes["j"] / ranks
        memory = rng.choice([1, 4, 100]) * kept
        bound = memory_dependent(MATRICES, sizes, ranks, memory)
        assert bound.words == pytest.approx(max(0, 2 * points / sqrt(memory) - 2 * memory / 3**1.5 - kept), rel=1e-9)
        assert bound.words >= (points / (2 * sqrt(2) * sqrt(memory)) - memory) * (1 - 1e-9)
        assert bound.source == "Kwasniewski et al. (2019)"


@pytest.mark.parametrize("seed", range(30))
def test_no_split_of_the_points_needs_less(seed):
    """On tiny worlds: however the points are dealt out evenly, the ranks together see what the bound says."""
    rng = random.Random(seed)
    terms = rng.choice([MATRICES, ("ijk", "ja", "ka", "ia"), ("ij", "j", "i"), ("bik", "bkj", "bij"), ("i", "j", "")])
    letters = sorted({*"".join(terms)})
    sizes = {letter: rng.choice([2, 3, 4]) for letter in letters}
    space = [dict(zip(letters, at, strict=True)) for at in np.ndindex(*[sizes[letter] for letter in letters])]
    ranks = rng.choice([n for n in range(1, len(space) + 1) if len(space) % n == 0])
    order = rng.choice([lambda at: rng.random(), lambda at: [at[x] // 2 for x in letters], lambda at: [*at.values()]])
    space.sort(key=order)
    of_one, seen = len(space) // ranks, 0
    for rank in range(ranks):
        mine = space[rank * of_one : (rank + 1) * of_one]
        seen += sum(len({tuple(at[letter] for letter in term) for at in mine}) for term in terms)
    one_copy = sum(prod(sizes[letter] for letter in term) for term in terms)
    assert (seen - one_copy) / ranks >= memory_independent(terms, sizes, ranks).words - 1e-9
    # The same with some ranks idle: those that work see what a bound with their number of points says.
    more = 2 * ranks
    bound = memory_independent(terms, sizes, more, most=of_one)
    assert (seen - one_copy) / more >= bound.words - 1e-9


@pytest.mark.parametrize("part", PARTS)
def test_no_plan_receives_less_than_its_bound(part):
    """Random contractions: operands where they lie best, or given, replicated and partial; at once and in panels."""
    positive = 0
    for seed in share(range(300), part, 60, of=16):
        free = contraction_of(request_of(seed, free=True))
        given = contraction(seed + 5000)
        for plan in (free, given):
            bound = plan.lower_bound
            assert plan.cost.bytes >= bound, plan.explain()
            assert bool(plan.bound_source) == (bound > 0)
            positive += bound > 0
    assert positive >= {SOME: 1}.get(part, 3)


def test_what_is_replicated_need_not_come():
    """Operands that all ranks hold need no words, and contributions that may stay apart need none."""
    shapes = [(64, 64)] * 2
    whole = rote.compile_einsum("ik,kj->ij", shapes, layouts=["[(),()]"] * 2, grid=(2, 2), layout="[(),()]")
    assert (whole.cost.bytes, whole.lower_bound, whole.bound_source) == (0, 0, "")
    inner = {"layouts": ["block[(),(0)]", "block[(0),()]"], "grid": 4}
    apart = rote.compile_einsum("ik,kj->ij", shapes, layout="[(),()]+(0)", **inner)
    assert (apart.cost.bytes, apart.lower_bound) == (0, 0)
    together = rote.compile_einsum("ik,kj->ij", shapes, layout="block[(0),()]", **inner)
    assert 64 * 64 * 8 / 3 < together.lower_bound <= together.cost.bytes == 64 * 64 * 8 * 3 / 4


def test_the_bound_that_decides_is_named():
    """With much memory that of Al Daas et al., with little that of Kwasniewski et al.; the ratio stands beside it."""
    shapes = [(4096, 4096)] * 2
    much = rote.compile_einsum("ik,kj->ij", shapes, grid=(4, 4, 4))
    assert much.bound_source == "Al Daas et al. (2022)"
    assert much.cost.bytes == pytest.approx(much.lower_bound, rel=1e-6)
    assert "(ratio 1.00)" in much.explain() and "Al Daas et al. (2022)" in much.explain()
    rows = {"layouts": ["block[(0),()]"] * 2, "layout": "block[(0),()]", "grid": 1024}
    within = int(3.8 * 4096 * 4096 * 8 / 1024)
    little = rote.compile_einsum("ik,kj->ij", shapes, max_bytes=within, **rows)
    assert any(isinstance(stage, Product) and stage.panels for stage in little.stages)
    assert little.bound_source == "Kwasniewski et al. (2019)"
    assert little.lower_bound > 1.1 * memory_independent(MATRICES, little.extents, 1024).words * 8
