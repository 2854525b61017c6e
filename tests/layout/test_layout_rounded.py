"""Blocks that are rounded, cyclic tiles from another coordinate on: in texts, algebra, plans, runs and FFTs."""

from __future__ import annotations

import pickle
from itertools import product

import numpy as np
import pytest
from layout import definition

import rote
from rote import L, block, cyclic, parse, partial, root, simulate
from rote.errors import LayoutError
from rote.grammar import parse_walk, unparse_walk
from rote.plot.text import draw

NAMES = {"rote": rote, "L": L, "block": block, "cyclic": cyclic, "root": root, "partial": partial}
SHAPE, GRID = (7, 5), (2, 3)
NEW = (
    "block(ceil)[(0),(1)]",
    "block(floor)[(1),(0)]",
    "[(0:cyclic(2,at=1)),(1:cyclic(at=2))]",
    "[(1:block(ceil),0:cyclic(at=1)),()]",
    "[(),(1:cyclic(3,at=2),0:block(floor))]",
    "(a b): [(1:block(floor),0:block(ceil))]",
    "[(1:block(ceil)),()]|(0@1)",
    "[(),(0:block(floor))]+(1)",
)
OLD = ("[(0),(1)]", "block[(1),(0)]", "block(4)[(),(0)]", "[(),()]")


def on(text):
    return parse(text).on(SHAPE, GRID)


@pytest.mark.parametrize("text", NEW)
def test_the_new_kinds_are_layouts_like_any_other(text):
    """Text, code and pickles say the same; every rank holds what is dealt out to it one by one; pictures are drawn."""
    dist = on(text)
    layout = dist.layout
    assert parse(str(layout)) == layout == eval(repr(layout), dict(NAMES))
    again = pickle.loads(pickle.dumps(dist))
    assert again == dist and hash(again.layout) == hash(layout) == hash(eval(repr(layout), dict(NAMES)))
    held = definition.held(layout, dist.view_shape, GRID)
    for rank, lists in enumerate(held):
        assert [found.tolist() for found in dist.indices(rank)] == lists
    for index, owners in definition.owners(layout, dist.view_shape, GRID).items():
        assert dist.owners(index) == owners
    assert str(dist) in draw(dist)


@pytest.mark.parametrize("text", NEW)
def test_tensors_move_from_and_to_the_new_kinds(text):
    """Plans are proved when compiled, travel as text and JSON, and move every element where the definition has it."""
    for ends in (*((text, other) for other in (*OLD, *NEW)), *((other, text) for other in OLD)):
        plan = rote.compile(*map(on, ends))
        assert rote.Plan.from_text(str(plan)) == plan == rote.Plan.from_json(plan.to_json())
        array, blocks = definition.numbered(plan.source.layout, SHAPE, GRID)
        found = simulate.run(plan, blocks)
        assert definition.wrong(plan.target.layout, GRID, found, array) == "", plan


def test_ranks_move_tensors_in_the_new_kinds():
    """In-process ranks hold after a redistribution what a tensor laid out there at once holds."""
    array = np.arange(35.0).reshape(SHAPE)

    def program(comm):
        x = rote.DistTensor.from_global(array, NEW[0], comm, GRID)
        same = True
        for text in (*NEW[1:6], NEW[0]):
            x = x.redistribute(text)
            same &= np.array_equal(x.local, rote.DistTensor.from_global(array, text, comm, GRID).local)
        return same and np.array_equal(x.to_global(), array)

    assert rote.run(program, ranks=6) == [True] * 6


def test_ffts_start_from_the_new_kinds():
    """Spectra are NumPy's, whatever kinds the signal lies in, in families that want another kind too."""
    array = np.random.default_rng(3).standard_normal((16, 6))

    def program(comm):
        for text in ("[(0:block(ceil)),()]", "[(),(0:block(floor))]", "[(0:cyclic(at=1)),()]"):
            x = rote.DistTensor.from_global(array.astype("c16"), text, comm)
            X = rote.fft.fftn(x)
            assert np.allclose(X.to_global(), np.fft.fftn(array)), text
            assert np.allclose(rote.fft.ifftn(X).to_global(), array), text
        f = rote.fft.FFT((16, 6), "[(0:block(ceil)),()]", comm=comm, resample=(8, 6), s=(12, 6))  # its blocks are cut
        x = rote.DistTensor.from_global(array.astype("c16"), f.input_layout, comm, f.grid)
        g = rote.fft.FFT((16, 6), "[(),()]", comm=comm, resample=(8, 6), s=(12, 6))
        y = rote.DistTensor.from_global(array.astype("c16"), g.input_layout, comm, g.grid)
        assert np.allclose(f.forward(x).to_global(), g.forward(y).to_global())
        f = rote.fft.FFT((16, 6), "[(0:cyclic(at=1)),()]", comm=comm, algorithm="cyclic")
        x = rote.DistTensor.from_global(array.astype("c16"), f.input_layout, comm, f.grid)
        return np.allclose(f.forward(x).to_global(), np.fft.fftn(array))

    assert rote.run(program, ranks=2) == [True] * 2


def test_walks_take_the_new_kinds():
    """The layouts of a walk's lines are layouts: `[(0:block(ceil)),()]: fft(1)` is a stage."""
    text = "block(ceil)[(0),()]: fft(1)\n[(),(0:cyclic(2,at=1))]: fft(0)"
    assert unparse_walk(parse_walk(text.replace("=1", " = 1 "))) == "\n".join(
        ["block(ceil)[(0),()]: fft(1)", "cyclic(2,at=1)[(),(0)]: fft(0)"]
    )
    array = np.random.default_rng(4).standard_normal((7, 6)).astype("c16")

    def program(comm):
        f = rote.fft.FFT((7, 6), comm=comm, algorithm=text)
        return np.allclose(
            f.forward(rote.DistTensor.from_global(array, f.input_layout, comm)).to_global(), np.fft.fftn(array)
        )

    assert rote.run(program, ranks=3) == [True] * 3


def test_the_algebra_knows_kinds_apart():
    """Entries keep their kind when they move; a kind, or its first coordinate, that differs is another entry."""
    layout = L(block(0, "ceil"), cyclic(1, 4, at=2))
    assert layout.move(1, to=0) == parse("[(0:block(ceil),1:cyclic(4,at=2)),()]")
    assert layout.drop(0).split(1, block(0, "floor")) == parse("[(),(1:cyclic(4,at=2),0:block(floor))]")
    assert layout.drop(1).is_prefix_of(layout) and not layout.is_prefix_of(layout.drop(1))
    entries = [
        block(0),
        block(0, "ceil"),
        block(0, "floor"),
        block(0, 4),
        cyclic(0),
        cyclic(0, at=1),
        cyclic(0, 4, at=1),
    ]
    for a, b in product(entries, repeat=2):
        assert L(a).is_prefix_of(L((b, 1))) == (a is b)
    assert cyclic(0, 4, at=0) == cyclic(0, 4) and parse("[(0:cyclic(4,at=0))]") == L(cyclic(0, 4))
    assert L(0, kind="block(ceil)") == L(block(0, "ceil"))


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: parse("[(0:cyclic(4,at=2))]").on(9, 2), "write at=1 or less, or cyclic(4)"),
        (lambda: parse("[(0:cyclic(at=1))]").on(9, 1), "there is 1 coordinate, from 0 on; write cyclic"),
        (lambda: block(0, "ceil", 3), "the sizes of block are integers, not ('ceil', 3)"),
        (lambda: block(0, "round"), "the sizes of block are integers, not ('round',)"),
        (lambda: cyclic(0, "ceil"), "the sizes of cyclic are integers, not ('ceil',)"),
        (lambda: cyclic(0, at=-1), "at is 0 or more"),
        (lambda: cyclic(0, at=True), "coordinates of a first tile are integers, not (True,)"),
        (lambda: cyclic(0, at=1.0), "coordinates of a first tile are integers, not (1.0,)"),
        (lambda: block("0", "ceil"), "a grid mode is an integer, not '0'"),
    ],
)
def test_what_the_new_kinds_refuse(make, text):
    """A first tile off the grid, sizes beside a rounding, words and numbers that are none: rule, culprit, cure."""
    with pytest.raises(LayoutError) as caught:
        make()
    assert text in str(caught.value)
