"""Laws of the choice of a grid and of free layouts: what bounds skip is never better, and plans take seconds."""

from __future__ import annotations

from itertools import islice
from math import prod
from time import process_time

import pytest
from contraction.contractions import request_of

import rote
from rote.functions.contraction.search import Search
from rote.layout.grid import factorings, smooth_numbers
from rote.units import in_seconds

TEXTS = "ik,kj->ij", "ij,jk->k", "bik,bkj->bij", "ij,jk,kl->il", "ijk,ja,ka->ia"
ABOUT = 1.1  # times the least seconds that a plan may take to receive less

IAQ = "iaQ,jbQ->iajb", {"i": 50, "j": 50, "a": 500, "b": 500, "Q": 2000}
MTTKRP = "ijk,ja,ka->ia", {"i": 1024, "j": 1024, "k": 1024, "a": 32}
LADDER = "klcd,ikac,jlbd->ijab", {**dict.fromkeys("ijkl", 32), **dict.fromkeys("abcd", 128)}
INTEGRALS = "pqrs,pi,qj,rk,sl->ijkl", dict.fromkeys("pqrsijkl", 400)


def plan(text: str, extents: dict[str, int], **where: object) -> rote.Contraction:
    shapes = [tuple(extents[letter] for letter in term) for term in text.split("->")[0].split(",")]
    return rote.compile_einsum(text, shapes, **where)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("seed", [0, 6, 9, 12, 15, 18, 33, 36, 39, 48])
def test_bounds_are_never_above_prices(seed: int, free: bool) -> None:
    """Law: a complete contraction takes at least the seconds, and receives at least the bytes, of its bounds."""
    search = Search(request_of(seed, most=4, free=free))
    search.begin()

    for bound, node in islice(search.fastest(), 10):
        assert bound <= search.priced(node) * (1 + 1e-9)
    for bound, node in islice(search.sparest(lambda seconds, received: True), 10):
        search.priced(node)
        assert bound <= search.received(node)[0] * (1 + 1e-9)


@pytest.mark.parametrize("n", [5, 64])
@pytest.mark.parametrize("text", TEXTS)
def test_no_grid_alone_is_better(text: str, n: int) -> None:
    """Law: of the plans on all grids, none that takes about the least seconds receives less than the chosen one."""
    extents = {letter: n for letter in text if letter.isalpha()}
    chosen = plan(text, extents, ranks=8)
    plans = [plan(text, extents, grid=grid) for order in (1, 2, 3) for grid in factorings(8, order)]

    least = min(other.cost.seconds for other in plans)
    assert chosen.cost.seconds <= ABOUT * least
    assert all(chosen.cost.bytes <= other.cost.bytes for other in plans if other.cost.seconds < ABOUT * least)


@pytest.mark.parametrize("text", TEXTS)
def test_a_limit_that_does_not_bind_changes_nothing(text: str) -> None:
    """Law: a plan that holds no more than `max_bytes` is the plan without it, also if it holds just as much."""
    extents = {letter: 60 for letter in text if letter.isalpha()}
    free = plan(text, extents, ranks=4)
    assert plan(text, extents, ranks=4, max_bytes=free.cost.peak_bytes) == free
    assert plan(text, extents, ranks=4, max_bytes=2**42) == free


def test_grids_of_chains_have_three_modes() -> None:
    """The print says where four modes were not tried: for more than two operands that may lie anywhere."""
    chain, pair = plan(*MTTKRP, ranks=16), plan("ik,kj->ij", dict.fromkeys("ijk", 64), ranks=16)
    assert f"chosen: grid {chain.grid} (best found of at most 3 modes), A " in str(chain)
    assert f"chosen: grid {pair.grid}, A " in str(pair)


@pytest.mark.parametrize(
    ("case", "ranks", "most", "seconds"),
    [
        (IAQ, 64, 2**42, 1.0),
        (MTTKRP, 16, None, 2.0),
        *[
            pytest.param(*row, marks=pytest.mark.slow)
            for row in [
                (LADDER, 16, None, 4.0),
                (LADDER, 32, None, 6.0),
                (INTEGRALS, 16, None, 5.0),
                (INTEGRALS, 64, None, 10.0),
                (MTTKRP, 512, None, 5.0),
            ]
        ],
    ],
)
def test_free_layouts_are_planned_in_seconds(case, ranks, most, seconds) -> None:
    """Seconds of CPU where nothing else runs, and twice as many anywhere."""
    rote.clear_caches()
    begin = process_time()
    chosen = plan(*case, ranks=ranks, max_bytes=most)
    assert process_time() - begin <= 2 * seconds
    assert prod(chosen.grid.shape) == ranks


@pytest.mark.parametrize(("ranks", "fewer"), [(97, 96), (127, 126), (96, None), (125, None)])
def test_slightly_fewer_ranks_are_named_where_they_are_faster(ranks: int, fewer: int | None) -> None:
    """Law: `explain` and the scaling table name them with their plan's seconds; `print` and fixed layouts do not."""
    square = plan("ik,kj->ij", dict.fromkeys("ijk", 4096), ranks=ranks)
    hints = [line for line in square.explain().splitlines() if " ranks about " in line]
    if fewer is None:
        assert not hints
        return

    other = plan("ik,kj->ij", dict.fromkeys("ijk", 4096), ranks=fewer)
    times = f"about {in_seconds(other.cost.seconds)}, {square.cost.seconds / other.cost.seconds:.1f} times as fast"
    assert hints == [f"on {fewer} of the {ranks} ranks {times}: start {fewer}"]
    assert "start" not in str(square)

    said = list[str]()
    shapes = [dist.shape for dist in square.operands]
    table = rote.einsum_scaling("ik,kj->ij", shapes, ranks=[ranks], show=said.append)
    assert "\n".join(said) == str(table) and str(table).endswith(hints[0])

    lie = [str(dist.layout) for dist in square.operands]
    assert "start" not in plan("ik,kj->ij", dict.fromkeys("ijk", 4096), ranks=ranks, layouts=lie).explain()


@pytest.mark.parametrize("ranks", [*range(1, 130), 997, 1021, 1024, 2 * 509])
def test_smooth_numbers_have_the_least_sums_of_prime_factors(ranks: int) -> None:
    """Law: three of the last sixteenth, where the largest prime factor exceeds twice a cube's side."""

    def primes(number: int) -> list[int]:
        factor = next((d for d in range(2, number + 1) if number % d == 0), None)
        return [factor, *primes(number // factor)] if factor else []

    below = range(ranks - ranks // 16, ranks)
    rough = max(primes(ranks), default=1) ** 3 > 8 * ranks
    found = [sum(primes(number)) for number in smooth_numbers(ranks)]
    assert {*smooth_numbers(ranks)} <= {*below}
    assert found == sorted(sum(primes(number)) for number in below)[: 3 if rough else 0]
