"""Blocks that are rounded, cyclic tiles from another coordinate on: in texts, algebra, plans and runs."""

from __future__ import annotations

import pickle
from itertools import product

import pytest
from layout import definition

import rote
from rote import L, block, cyclic, parse, partial, root, simulate
from rote.errors import LayoutError

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
    """Text, code and pickles say the same; every rank holds what is dealt out to it one by one."""
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


@pytest.mark.parametrize("text", NEW)
def test_tensors_move_from_and_to_the_new_kinds(text):
    """Plans are proved when compiled, travel as text and JSON, and move every element where the definition has it."""
    for ends in (*((text, other) for other in (*OLD, *NEW)), *((other, text) for other in OLD)):
        plan = rote.compile(*map(on, ends))
        assert rote.Plan.from_text(str(plan)) == plan == rote.Plan.from_json(plan.to_json())
        array, blocks = definition.numbered(plan.source.layout, SHAPE, GRID)
        found = simulate.run(plan, blocks)
        assert definition.wrong(plan.target.layout, GRID, found, array) == "", plan


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
