"""How often a walk moves, and how much: the laws of the families, and bytes counted by a recording communicator."""

from __future__ import annotations

from dataclasses import replace
from math import log, prod

import families
import numpy as np
import pytest
from execute.recording import Recording
from families import moves_of
from marks import PARTS
from parts import SOME, share

import rote
from rote import DistTensor
from rote.compiler.step import LOCAL
from rote.fft import FFT
from rote.fft.families.choose import walk_of
from rote.fft.families.cyclic import levels
from rote.fft.request import as_request

pytestmark = pytest.mark.filterwarnings("ignore::rote.GatherWarning")  # slabs of one axis, asked for by name

D = np.dtype("D")


def walk(algorithm, layout, shape, grid, kind="fft", axes=None, output=None):
    source = rote.parse(layout).on(shape, grid)
    named = tuple(range(len(shape))) if axes is None else axes
    wanted = as_request(shape, named, kind, np.dtype("d") if kind == "rfft" else D)
    return walk_of(source, wanted, algorithm, output)


def kinds(found):
    """The steps of each move in which ranks talk, where messages cost nothing: more steps would have fewer of them."""
    moves = replace(found, machine=rote.Machine(latency=0)).moves
    return [[step.kind for step in plan.steps if step.kind not in LOCAL] for plan in moves]


MOVES = [
    ("slab", "block[(0),(),()]", (8, 9, 10), (4,), 1),
    ("slab", "[(),(0:cyclic(2)),(),()]", (5, 9, 4, 3), (3,), 1),
    ("pencil", "block[(0),(1),()]", (8, 9, 10), (2, 3), 2),
    ("pencil", "[(0),(),(1:block),()]", (8, 9, 10, 3), (2, 3), 2),
    ("auto", "block[(0),(1),(2),()]", (5, 6, 7, 8), (2, 3, 2), 3),
    ("auto", "block[(0),(1),(2),(3),()]", (4, 4, 3, 3, 4), (2, 2, 1, 3), 3),  # one coordinate splits nothing
    ("auto", "block[(0),(1),(2),(3),()]", (4, 4, 3, 3, 4), (2, 2, 3, 3), 4),
    ("rows", "(a b) c: block[(0),()]", (8, 8, 8), (2,), 1),
    ("rows", "(a b) c: block[(0),()]", (8, 8, 8), (8,), 1),
    ("rows", "(a b) c: block[(0),()]", (8, 8, 8), (16,), 2),
    ("rows", "(a b) c: block[(0),()]", (8, 8, 8), (64,), 2),
    ("volumetric", "[(0)]", (256,), (4,), 1),
    ("volumetric", "[(0),(),()]", (16, 5, 6), (4,), 1),
    ("volumetric", "[(0),(1),()]", (16, 9, 6), (4, 3), 2),
    ("volumetric", "[(0),(1),(2)]", (16, 9, 4), (4, 3, 2), 3),
    ("volumetric", "[(2),(0),(1),(3)]", (4, 4, 4, 9), (2, 2, 2, 3), 4),
    ("volumetric", "[(0,1),()]", (36, 5), (2, 3), 1),
    ("cyclic", "[(0)]", (256,), (4,), 1),
    ("cyclic", "[(0),(1),(2)]", (16, 9, 4), (4, 3, 2), 1),
    ("cyclic", "[(2),(0),(1),(3)]", (4, 4, 4, 9), (2, 2, 2, 3), 1),
    ("cyclic", "[(0,1),(2)]", (36, 4), (2, 3, 2), 1),
]


@pytest.mark.parametrize(("algorithm", "layout", "shape", "grid", "number"), MOVES)
def test_how_often_ranks_talk(algorithm, layout, shape, grid, number):
    """Law: slab 1, pencil 2, m on a grid of m modes; rows 1 up to n ranks, then 2; volumetric one per mode, cyclic 1.

    Each is one step, there and back, complex and real where the last axis is whole.
    """
    order = len(shape)
    for found in (walk(algorithm, layout, shape, grid), walk(algorithm, layout, shape, grid).inverse()):
        assert [len(steps) for steps in kinds(found)] == [1] * number
    if algorithm == "rows" or all(not mode for mode in rote.parse(layout).modes[-1:]):
        assert len(walk(algorithm, layout, shape, grid, "rfft").moves) == number
    assert walk(algorithm, layout, shape, grid).source.order == (2 if algorithm == "rows" else order)


@pytest.mark.parametrize("algorithm", ["cyclic", "volumetric"])
def test_six_steps_between_blocks(algorithm):
    """Law: blocked in, blocked out takes three all-to-alls; cyclic in, cyclic out one."""
    assert [len(steps) for steps in kinds(walk(algorithm, "block[(0)]", (256,), (4,), output="block[(0)]"))] == [1] * 3
    assert kinds(walk(algorithm, "[(0)]", (256,), (4,), output="[(0)]")) == [["alltoall"]]


def test_axes_that_are_not_transformed_do_not_move():
    """Law: a batch mode, distributed or not, adds no move, and lies at the end as at the beginning."""
    for algorithm in ("cyclic", "volumetric"):
        found = walk(algorithm, "[(0),(1:block),(2:cyclic(2)),()]", (16, 7, 6, 5), (4, 2, 2), axes=(3, 0))
        assert len(found.moves) == 1 and found.target == found.source
    assert not walk("auto", "block[(0),(1),()]", (6, 7, 5), (2, 3), axes=(2,)).moves
    assert len(walk("pencil", "block[(0),(1),()]", (6, 7, 5), (2, 3), axes=(2, 1)).moves) == 1


# --- group-cyclic ---------------------------------------------------------------------------------------------------


def test_levels_are_as_many_as_the_formula_says():
    """Law: p ranks and n points take ceil(log p / log(n / p)) levels, the least that moves of n / p can be.

    Each level's ranks divide what a rank holds, and together they are p. What is refused fits none.
    """
    refused = taken = 0
    for points in range(1, 300):
        for ranks in range(2, 40):
            wanted = moves_of(points, ranks)
            if not wanted:
                with pytest.raises(rote.LayoutError):
                    levels(points, ranks)
                refused += 1
                continue
            found = levels(points, ranks)
            each = points // ranks
            assert prod(found) == ranks and all(each % p == 0 for p in found) and len(found) == wanted
            assert wanted == -(-round(log(ranks) / log(each), 9) // 1)
            taken += 1
    assert refused > 10_000 and taken > 150


@pytest.mark.parametrize(("points", "ranks"), [(9, 4), (10, 4), (12, 6), (32, 12), (5, 5), (6, 4), (100, 15), (7, 3)])
def test_the_nearest_that_fit_are_named(points, ranks):
    """Law: a refusal says what does not divide, and the nearest points and ranks below and above that do."""
    with pytest.raises(rote.LayoutError) as error:
        levels(points, ranks)
    rule, cure = str(error.value).split("; ")
    assert f"{ranks} ranks" in rule and f"{points} points" in rule
    said = [[int(word) for word in part.split() if word.isdigit()] for part in cure.split(" points, or ")]
    fits = [[n for n in range(1, 4 * points + ranks**2) if moves_of(n, ranks)]]
    fits += [[p for p in range(1, points + 1) if p == 1 or moves_of(points, p)]]
    for found, legal, at in zip(said, fits, (points, ranks), strict=True):
        below, above = [n for n in legal if n < at][-1:], [n for n in legal if n > at][:1]
        assert found == below + above, cure


def test_a_refusal_is_quick():
    """Of a billion points, a prime number of them, and of very many more, the nearest choices are named at once."""
    with pytest.raises(rote.LayoutError, match="4 ranks do not divide 999999937 points; 999999936 or 999999952 points"):
        levels(999_999_937, 4)
    with pytest.raises(rote.LayoutError, match="; 999999999999999984 or 1000000000000000000 points, or 3 or 9 ranks,"):
        levels(10**18 - 1, 4)
    with pytest.raises(rote.LayoutError, match="; 8192 points, or 2 ranks,"):
        levels(12, 4096)


@pytest.mark.parametrize(
    ("shape", "grid"),
    [((8,), (4,)), ((16,), (8,)), ((32,), (8,)), ((8, 4), (4, 2)), ((16, 8), (8, 4)), ((64, 4), (8, 2))],
)
def test_levels_of_all_modes_are_merged(shape, grid):
    """Law: "cyclic" moves as often as the axis of most levels, "volumetric" once for each level of each axis."""
    layout = f"[{','.join(f'({g})' for g in range(len(grid)))}]"
    each = [moves_of(n, p) for n, p in zip(shape, grid, strict=True)]
    for algorithm, number in (("cyclic", max(each)), ("volumetric", sum(each))):
        found = walk(algorithm, layout, shape, grid)
        assert [len(steps) for steps in kinds(found)] == [1] * number
        assert found.target == found.source


# --- bytes ----------------------------------------------------------------------------------------------------------


def measured(comm, case, code):
    """What every rank heard in each move of a forward and of a backward run, and what the plans claim."""
    recording = Recording(comm)
    f = FFT(case.shape, case.layout, case.grid, recording, code, case.axes, case.family, None, case.output)
    x = DistTensor.from_global(families.numbers(case.shape, code), case.layout, recording, case.grid)
    found = []
    for run, given, moves in ((f.forward, x, f.moves), (f.backward, f.forward(x), f.walk.inverse().moves)):
        recording.take()
        run(given)
        calls = [call for call in recording.take() if call.buffers]
        for plan in moves:
            steps = [step for step in plan.steps if step.kind not in LOCAL]
            mine, calls = calls[: len(steps)], calls[len(steps) :]
            heard = plan.dtype.itemsize * sum(call.elements for call in mine), sum(call.messages for call in mine)
            found.append((heard, (plan.cost.bytes, plan.cost.messages)))
        assert calls == [], (case, calls)
    return found


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("ranks", [2, 4, 6, 8])
def test_measured_bytes_are_those_of_the_plans(ranks, part):
    """Law: who hears most in a move hears plan.cost.bytes, in plan.cost.messages; and nothing else is sent."""

    def program(comm):
        world = enumerate(families.cases(ranks, {2: 18, 4: 12, 6: 12, 8: 6}[ranks]))
        return [
            (str(case), measured(comm, case, code))
            for number, case in share(world, part, 2, ranks, of=2)
            for code in ("D", "d")[: 1 + (case.real and number % 2)]
        ]

    talked = 0
    for runs in zip(*rote.run(program, ranks), strict=True):
        for moves in zip(*(found for _, found in runs), strict=True):
            most = tuple(max(each) for each in zip(*(heard for heard, _ in moves), strict=True))
            assert {claimed for _, claimed in moves} == {most}, runs[0][0]
            talked += most[0] > 0
    assert talked > (4 if part == SOME else 8)


def test_what_all_moves_cost_together():
    """In a walk whose ranks all hear the same, its bytes are the sum over the moves, on every rank."""

    def program(comm):
        recording = Recording(comm)
        f = FFT((16, 16), "[(0),(1)]", (2, 2), recording, algorithm="volumetric")
        x = DistTensor.zeros((16, 16), "[(0),(1)]", recording, (2, 2), "D")
        recording.take()
        f.forward(x)
        return 16 * sum(call.elements for call in recording.take()), sum(plan.cost.bytes for plan in f.moves)

    assert rote.run(program, 4) == [(2 * 16 * 32, 2 * 16 * 32)] * 4
