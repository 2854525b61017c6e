"""Strategies draw everything that there is, what they draw fits, and it shrinks to little more than what is sought."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from marks import examples

import rote
from rote.errors import CommError, LayoutError
from rote.grammar.nodes import Fuse, Tile
from rote.testing import dist_tensors, distributions, grids, layouts, shapes


def entries(dist):
    return [entry for mode in dist.layout.modes for entry in mode]


def kind(dist, name, sizes=None, at=None):
    return any(
        e.kind.name == name and (sizes is None or len(e.kind.sizes) == sizes) and (at is None or (e.kind.at > 0) == at)
        for e in entries(dist)
    )


def item(dist, kind):
    return dist.layout.view is not None and any(isinstance(each, kind) for each in dist.layout.view)


# What is sought, and of the least that has it: elements, ranks and modes.
DRAWN = {
    "nothing": (lambda dist: True, 1, 1, 0),
    "block": (lambda dist: kind(dist, "block", 0), 0, 1, 1),
    "a block of a size": (lambda dist: kind(dist, "block", 1), 0, 1, 1),
    "blocks of sizes": (lambda dist: kind(dist, "block", 2), 0, 2, 1),
    "cyclic": (lambda dist: kind(dist, "cyclic", 1, False), 0, 1, 1),
    "cyclic from a rank": (lambda dist: kind(dist, "cyclic", 1, True), 0, 2, 1),
    "ceil": (lambda dist: kind(dist, "ceil"), 0, 1, 1),
    "floor": (lambda dist: kind(dist, "floor"), 0, 1, 1),
    "two splits of a mode": (lambda dist: any(len(mode) > 1 for mode in dist.layout.modes), 0, 1, 1),
    "partial": (lambda dist: dist.partial, 1, 2, 0),
    "rooted": (lambda dist: dist.layout.rooted, 1, 1, 0),
    "fuse": (lambda dist: item(dist, Fuse), 0, 1, 2),
    "tile": (lambda dist: item(dist, Tile), 0, 1, 1),
    "different blocks": (lambda dist: len({dist.local_shape(r) for r in range(dist.grid.size)}) > 1, 1, 2, 1),
    "order 4": (lambda dist: len(dist.shape) == 4, 0, 1, 4),
    "extent 1": (lambda dist: 1 in dist.shape, 1, 1, 1),
    "12 ranks": (lambda dist: dist.grid.size == 12, 1, 12, 0),
}
# `find` explains what it has found by hundreds of other examples, of which it tells nothing.
SEARCHED = settings(
    max_examples=1000,
    derandomize=True,
    database=None,
    phases=[phase for phase in Phase if phase is not Phase.explain],
)
SLOW = [each for each in DRAWN if each not in ("nothing", "block", "partial")]


@pytest.mark.parametrize(
    "sought", [pytest.param(each, marks=pytest.mark.slow if each in SLOW else ()) for each in DRAWN]
)
def test_everything_is_drawn_and_shrinks(sought):
    """Each kind, role and view is drawn; the example that is shown of it has no more elements than it needs and at most
    one mode more, on at most twice the ranks that it needs. Grid modes of one rank may be left over."""
    predicate, elements, ranks, order = DRAWN[sought]
    example = find(distributions(), predicate, settings=SEARCHED)
    assert predicate(example)
    assert prod(example.shape) <= max(elements, 1) and len(example.shape) <= order + 1, example
    assert example.grid.size <= 2 * ranks, example


@settings(max_examples=examples(60))
@given(grids(6), shapes(30), st.data())
def test_what_is_asked_for_is_drawn(grid, shape, data):
    """Sizes are bounded by what is said, and a distribution has the shape and the grid that are given, or fit them."""
    assert grid.size <= 6 and int(np.prod(shape)) <= 30
    dist = data.draw(distributions(shape, grid, views=False, whole=True))
    assert dist.shape == shape and dist.grid == grid and dist.layout.view is None
    assert not dist.partial and not dist.layout.rooted
    assert data.draw(layouts(order=2)).tensor_order == 2
    assert data.draw(distributions(shapes(4), grids(2))).grid.size <= 2
    dist = data.draw(distributions(5, (2, 1)))
    assert (dist.shape, dist.grid.shape) == ((5,), (2, 1))


@settings(max_examples=examples(80))
@given(dist_tensors())
def test_a_case_is_the_tensor_on_its_ranks(case):
    """On as many ranks as its grid has, a case is a tensor of its layout and values; blocks are those of its layout."""
    blocks = case.run(lambda x: (x.layout, x.to_global(), x.local.shape))
    for rank, (layout, whole, shape) in enumerate(blocks):
        assert layout == case.distribution.layout and shape == case.distribution.local_shape(rank)
        assert whole.dtype == case.array.dtype and np.array_equal(whole, case.array)


PAIR = rote.parse("block[(0),()]").on((4, 3), 2)


@settings(max_examples=3)
@given(dist_tensors(PAIR, "float32"), dist_tensors(st.just(PAIR), st.sampled_from(["int32", "bool"])))
def test_cases_of_a_dtype_on_a_distribution(case, other):
    """Dtype and distribution are those that are given, as values or as strategies; a case on other ranks is refused."""
    assert case.distribution == other.distribution == PAIR
    assert case.array.dtype == np.float32 and other.array.dtype in (np.int32, np.bool_)
    assert str(case).startswith("block[(0),()] on (4, 3), grid 2, float32: [[")
    with pytest.raises(CommError):
        rote.run(case.on, ranks=3)


def test_an_order_that_none_has_is_refused():
    """A strategy that could draw nothing says so when it is made, with what may be written."""
    for order in (5, -1, 1.5):
        with pytest.raises(LayoutError, match="an order from 0 to 4"):
            layouts(order=order)
    with pytest.raises(LayoutError, match="tensors have a distribution, not 'block"):
        dist_tensors("block[(0)]")
