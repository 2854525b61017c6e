"""Parts of no indices: `block(4,2,0,0)` is as good a layout as any, wherever its empty blocks lie."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from layout import definition

import rote
from rote import parse, simulate
from rote.errors import LayoutError

SHAPE, RANKS = (6, 5), 4
EMPTY = tuple(
    f"block({','.join(map(str, sizes))}){modes}"
    for modes, cuts in (
        ("[(0),()]", ((4, 2, 0, 0), (0, 0, 6, 0), (0, 4, 0, 2), (0, 0, 0, 6))),
        ("[(),(0)]", ((3, 2, 0, 0), (0, 1, 0, 4), (0, 0, 0, 5))),
    )
    for sizes in cuts
)
OTHERS = (
    *("[(0),()]", "block[(),(0)]", "block(5)[(0),()]", "cyclic(4)[(),(0)]", "[(),()]"),
    *("[(),()]|(0@3)", "[(),()]+(0)", "[(),()]+max(0)"),
    *("(a b): block(0,1,0,29)[(0)]", "(r=2 s=3) b: [(),(0:block(0,0,3,0)),()]"),
)


def arrive(plan):
    """The tensor that a plan moves is the tensor that was there."""
    x = np.arange(1.0, 1 + np.prod(plan.source.shape)).reshape(plan.source.shape)
    moved = simulate.gather(simulate.run(plan, simulate.scatter(x, plan.source)), plan.target)
    assert moved.dtype == x.dtype and np.array_equal(moved, x), plan
    assert plan.cost.bytes >= plan.lower_bound and rote.Plan.from_text(str(plan)) == plan


@pytest.mark.parametrize("text", EMPTY)
def test_a_part_of_no_indices_holds_none(text):
    """Shapes, indices, index sets and owners are those dealt out one by one; the empty ranks own nothing."""
    dist = parse(text).on(SHAPE, RANKS)
    assert str(dist.layout) == text
    held = definition.held(dist.layout, SHAPE, (RANKS,))
    empty = [rank for rank, lists in enumerate(held) if not all(lists)]
    assert empty and all(dist.holds(rank) for rank in empty)
    for rank, lists in enumerate(held):
        assert [index.tolist() for index in dist.indices(rank)] == lists
        assert [list(found) for found in dist.index_sets(rank)] == lists
        assert dist.local_shape(rank) == tuple(map(len, lists))
    for index in np.ndindex(*SHAPE):
        (owner,) = dist.owners(index)
        assert all(i in of for i, of in zip(index, held[owner], strict=True)) and owner not in empty
    assert dist.max_local_shape() == tuple(max(len(lists[m]) for lists in held) for m in range(2))


@pytest.mark.parametrize("text", EMPTY)
def test_tensors_move_from_and_to_empty_parts(text):
    """Every plan between a layout with empty parts and any other, proved when it is compiled, moves the tensor."""
    for other in (*OTHERS, *EMPTY):
        for pair in {(text, other), (other, text)}:
            arrive(rote.compile(*(parse(side).on(SHAPE, RANKS) for side in pair)))


def test_empty_parts_move_to_another_grid():
    """The ranks of empty blocks take part in a step from one grid to another."""
    across = ("[(0:block(0,6)),(1)]", "[(1:block(6,0)),(0:block(0,5))]", "[(0,1),()]")
    for text, other in product(EMPTY, across):
        ends = parse(text).on(SHAPE, RANKS), parse(other).on(SHAPE, (2, 2))
        arrive(rote.compile(*ends))
        arrive(rote.compile(*reversed(ends)))


def test_what_refines_an_empty_part_is_empty():
    """Entries within a part of no indices deal out nothing; sizes would have to fit all parts, and are refused."""
    refined = parse("[(0:block(6,0),1),()]").on(SHAPE, (2, 2))
    assert [refined.local_shape(rank) for rank in range(4)] == [(3, 5), (3, 5), (0, 5), (0, 5)]
    arrive(rote.compile(refined, parse("[(1,0),()]").on(SHAPE, (2, 2))))
    with pytest.raises(LayoutError, match="but 0 indices must be placed on 2 ranks"):
        parse("[(0:block(6,0),1:block(4,2)),()]").on(SHAPE, (2, 2))


def test_a_tensor_of_no_elements_moves():
    """No extent is too small: a mode of 0 indices is dealt out by every kind."""
    texts = ("block(0,0)[(0)]", "block(0)[(0)]", "block(2)[(0)]", "[(0)]", "[()]+(0)")
    dists = [parse(text).on(0, 2) for text in texts]
    for source, target in product(dists, repeat=2):
        arrive(rote.compile(source, target))


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_sizes_given_part_by_part_may_all_be_nothing(ranks):
    """Sizes made of what each rank holds are a layout, on one rank too: on an extent of 0 all of them may be 0."""
    for sizes in ((0,) * ranks, (0,)):
        dist = rote.L(rote.block(0, *sizes), ()).on((0, 3), ranks)
        assert parse(str(dist.layout)) == dist.layout and eval(repr(dist.layout), {"rote": rote}) == dist.layout
        assert [dist.local_shape(rank) for rank in range(ranks)] == [(0, 3)] * ranks
        assert [found.tolist() for found in dist.indices(ranks - 1)] == [[], [0, 1, 2]]
        assert dist.max_local_shape() == (0, 3) and dist.locate(0, np.arange(0))[1].tolist() == []
        for other in ("[(0),()]", "block[(),(0)]", "[(),()]"):
            arrive(rote.compile(dist, parse(other).on((0, 3), ranks)))
            arrive(rote.compile(parse(other).on((0, 3), ranks), dist))


def test_blocks_of_nothing_hold_nothing():
    """`block(0)` is refused wherever something must be placed, with what to write; a tile of 0 is never one."""
    with pytest.raises(
        LayoutError, match=re.escape("block(0) over 2 ranks holds 0 indices, but 5 must be placed; write")
    ):
        parse("block(0)[(0)]").on(5, 2)
    for make in (lambda: rote.cyclic(0, 0), lambda: parse("[(0:cyclic(0))]"), lambda: parse("(r s=0): [(),()]")):
        with pytest.raises((LayoutError, rote.NotationError), match="at least 1"):
            make()
