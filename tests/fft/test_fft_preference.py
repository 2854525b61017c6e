"""Which walk "auto" takes of those that cost about the same, what its plan says of it, and which axes are split."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import rote
from rote.compiler.tasks import transfers
from rote.fft import FFT, algorithms
from rote.fft.families.choose import NONE, Choice, Price, Prices, choices, choices_for, preferred, ranking, walk_for
from rote.fft.request import Arguments, as_arguments, as_request
from rote.fft.walk import single_step
from rote.machines.machine import DEFAULT

D = np.dtype("D")
CASES = [
    ((64, 64, 64), 4, "block[(0),(),()]"),
    ((64, 64, 64), 4, "[(0),(),()]"),
    ((32, 24, 16), 8, "block[(0),(),()]"),
    ((64, 60, 64), 8, None),
    ((16, 16, 16, 16), 16, None),
    ((32, 32), 4, None),
]


def ranked(shape, ranks, layout, machine=DEFAULT):
    """The choices for a complex transform of all axes."""
    axes = tuple(range(len(shape)))
    return choices_for(as_arguments(shape, as_request(shape, axes, "fft", D), ranks, layout, None, None), machine)


def kinds(end):
    """The kinds of the entries that split a distribution."""
    return {s.kind.name for mode in end.splits for s in mode}


def virtues(choice):
    """What speaks against a walk, the weightiest first."""
    before, after = kinds(choice.walk.source), kinds(choice.walk.target)
    return before != after, choice.price.moves, len(choice.walk.stages), before | after != {"block"}


@pytest.mark.parametrize(("shape", "ranks", "layout"), CASES)
def test_of_walks_that_cost_about_the_same(shape, ranks, layout):
    """Law: within 10 % of the cheapest, kept kinds come first, then fewer stages, then blocks; others go by time."""
    found = [choice for choice in ranked(shape, ranks, layout) if choice.plain]
    cheapest = min(choice.seconds for choice in found)
    near = [choice for choice in found if choice.seconds <= 1.1 * cheapest]
    assert near == found[: len(near)]
    assert [virtues(choice) for choice in near] == sorted(virtues(choice) for choice in near)
    later = [choice.seconds for choice in found[len(near) :]]
    assert later == pytest.approx(sorted(later), rel=1e-8)


def test_no_cyclic_spectrum_for_less_than_a_tenth():
    """On 8 ranks with a fast cache six-step walks of (64, 60, 64) seem cheaper by 2 %, and the slab is taken."""
    found = ranked((64, 60, 64), 8, None, rote.Machine(cache=1e9, cache_factor=100))
    assert found[0].name == "slab"
    assert min(choice.seconds for choice in found if choice.name == "cyclic") < found[0].seconds


def test_equal_times_are_decided_by_the_total():
    """Law: of two that keep the slowest rank as long, the one that moves less in all is first."""
    (some, *_) = ranked((32, 32), 4, None)
    more, less = (Choice("slab", some.source, Price(1.0, 1, 64, total), some.walk) for total in (200, 100))
    slow = (Choice("slab", some.source, Price(2.0, 1, 64, total), some.walk) for total in (20, 10))
    none = Choice("rows", some.source, NONE, None, "none")
    assert [c.price.total for c in preferred([none, *slow, more, less])] == [100, 200, 10, 20, 0]


@pytest.mark.parametrize(("shape", "ranks", "layout"), CASES)
def test_families_of_a_plan_are_algorithms(shape, ranks, layout):
    """Law: each family that a plan names is one that `algorithm=` takes from there, and the taken walk comes first."""

    def program(comm):
        f = FFT(shape, layout, comm=comm)
        return f.walk, str(f)

    (walk, text) = rote.run(program, ranks)[0]
    lines = [line.split() for line in text.splitlines() if "about" in line or "has no walk" in line]
    assert "taken" in lines[0] and not any("taken" in line for line in lines[1:])
    assert {line[0] for line in lines} <= {*algorithms} - {"auto"}
    (taken,) = [c for c in ranked(shape, ranks, layout) if c.walk == walk and c.name == lines[0][0]][:1]
    arguments = as_arguments(
        shape, as_request(shape, tuple(range(len(shape))), "fft", D), ranks, None, taken.source.grid, None
    )
    assert layout is not None or walk_for(arguments, taken.name) == walk


@pytest.mark.parametrize("ranks", (2, 3, 4, 6, 9))
@pytest.mark.parametrize("kind", ("fft", "ifft", "rfft"))
@pytest.mark.parametrize("shape", ((3, 8, 12, 10), (8, 12, 10, 3), (8, 3, 12, 10), (6, 8, 8)))
def test_components_stay_whole(shape, kind, ranks):
    """Law: where nobody asks for it, no walk lays an axis of components over ranks, at its ends or on its way."""
    axes = tuple(axis for axis, n in enumerate(shape) if n > 6)
    wanted = as_request(shape, axes, kind, np.dtype("d" if kind == "rfft" else "D"))
    found = [choice for choice in ranking(Arguments(shape, wanted, ranks)) if choice.plain]
    assert found
    for choice in found:
        for end in (choice.walk.source, choice.walk.target, *(stage.before for stage in choice.walk.stages)):
            if len(end.shape) == len(shape):  # not digits of axes
                read = zip(end.digits, end.splits, strict=True)
                assert all(digit.mode in axes for digits, splits in read if splits for digit in digits)


def test_components_are_split_when_asked():
    """A layout that splits them is kept, and nothing moves."""
    wanted = as_request((3, 8, 8, 8), (1, 2, 3), "fft", D)
    (first, *_) = choices(rote.parse("block[(0),(),(),()]").on((3, 8, 8, 8), 3), wanted)
    assert first.price.moves == 0


@pytest.mark.parametrize(("shape", "grid"), [((4, 6, 4, 5), (2, 2, 2)), ((4, 3, 4, 2, 3), (2, 1, 2, 2))])
@pytest.mark.parametrize("code", "Dd")
def test_pencils_of_any_order(shape, grid, code):
    """Law: a pencil takes a tensor of order d on a grid of up to d - 1 modes (Dalcin et al. 2019, eq. 26-32)."""

    def program(comm):
        f = FFT(shape, grid=grid, comm=comm, dtype=code, algorithm="pencil")
        array = np.random.default_rng(0).standard_normal(shape)
        x = rote.DistTensor.from_global(array.astype(code), f.input_layout, comm, f.grid)
        want = np.fft.fftn(array) if code == "D" else np.fft.rfftn(array)
        return np.abs(f.forward(x).to_global() - want).max(), len(f.moves)

    ranks = int(np.prod(grid))
    assert all(error < 1e-11 and moves == sum(p > 1 for p in grid) for error, moves in rote.run(program, ranks))


def test_alike_moves_have_one_price():
    """Law: the price of a move that only names axes and grid modes otherwise is its own, were it asked alone."""
    for shape, ranks in product(((16, 16, 16), (16, 9, 16)), (8,)):
        wanted = as_request(shape, (0, 1, 2), "fft", D)
        for choice in ranking(Arguments(shape, wanted, ranks)):
            if choice.walk is not None:
                alone = next((c for c in choices(choice.source, wanted) if c.walk == choice.walk), choice)
                assert alone.price == choice.price


def test_kinds_that_differ_in_their_first_tile_have_prices_of_their_own():
    """A move to tiles that begin at another coordinate sends them, whatever was priced before."""
    prices, before = Prices(rote.Machine()), rote.parse("[(0:cyclic(4)),()]").on((64, 8), 4)
    after = [rote.parse(f"[(0:{kind}),()]").on((64, 8), 4) for kind in ("cyclic(4)", "cyclic(4,at=1)")]
    moves = [transfers(single_step(before, end), D.itemsize) for end in after]
    assert [[prices._volumes(move)[0] for move in each] for each in moves] == [[], [2048]]
