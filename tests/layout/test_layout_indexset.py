"""Index sets are sets: every operation agrees with Python's, at a cost that does not know the extent."""

from __future__ import annotations

import time
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import examples

from rote.layout.grid import Grid
from rote.layout.indexset import EMPTY, IndexSet
from rote.layout.layout import parse


def small_sets():
    """Every periodic set below 8 with a period of at most 3, and some with two runs in a period."""
    found = {EMPTY}
    for start, stop in product(range(6), range(9)):
        found.add(IndexSet.interval(start, stop))
        for period in (2, 3):
            found.add(IndexSet.of_runs([(start, start + 1)], period, stop))
        found.add(IndexSet.of_runs([(start, start + 2)], 3, stop))
        found.add(IndexSet.of_runs([(start, start + 1), (start + 2, start + 4)], 5, stop))
    return sorted(found, key=list)


SMALL = small_sets()


@st.composite
def index_sets(draw):
    """Runs in one period, repeated: as `cyclic(b)` of `cyclic(c)` of `block` leaves them."""
    start = draw(st.integers(0, 12))
    cuts = sorted(draw(st.sets(st.integers(0, 12), max_size=6)))
    runs = [(start + a, start + b) for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    period = draw(st.integers(cuts[-1] - cuts[0], 20)) if runs else 1
    return IndexSet.of_runs(runs, max(period, 1), draw(st.integers(0, 60)))


def check_one(found):
    """What one set says of itself is what its elements say."""
    elements = list(found)
    assert elements == sorted(set(elements)) == found.to_array().tolist()
    assert len(found) == len(elements) and bool(found) == bool(elements)
    assert [i for i in range(-2, 70) if i in found] == elements
    if elements:
        assert (found.start, found.stop) == (elements[0], elements[-1] + 1)
    assert {i for a, b in found.unroll(found.stop) for i in range(a, b)} == set(elements)
    assert (found == EMPTY) == (not elements)


def check_two(one, two):
    """The algebra of two sets is Python's algebra of their elements; selection is indexing."""
    ours, theirs = list(one), list(two)
    assert list(one & two) == [i for i in ours if i in set(theirs)]
    assert list(one.select(two)) == [ours[i] for i in theirs if i < len(ours)]
    assert (one == two) == (ours == theirs)
    if ours == theirs:
        assert hash(one) == hash(two)


def test_small_sets_are_sets():
    """One by one and two by two, exhaustively."""
    assert len(SMALL) > 60 and len({tuple(s) for s in SMALL}) == len(SMALL)
    for one in SMALL:
        check_one(one)
        for two in SMALL:
            check_two(one, two)


@settings(max_examples=examples(300))
@given(index_sets(), index_sets(), index_sets())
def test_sets_are_sets(one, two, three):
    """And so are all others; what the algebra returns is as good a set as what it was given."""
    check_one(one)
    check_two(one, two)
    for found in (one & two, one.select(two)):
        check_one(found)
        check_two(found, three)
        assert found == IndexSet.of_runs(found.unroll(found.stop), max(1, found.stop), found.stop)


def test_equal_sets_written_differently_are_equal():
    """Equality is of elements, not of how they are written."""
    once = IndexSet(0, 7, 2, ((0, 1),))
    twice = IndexSet(0, 7, 4, ((0, 1), (2, 3)))
    assert once == twice and hash(once) == hash(twice) and len({once, twice}) == 1
    assert once != IndexSet(0, 8, 2, ((0, 2),)) and once != [0, 2, 4, 6]


def test_sets_print_what_they_hold():
    """The text is the runs, and says when it leaves some out."""
    assert str(EMPTY) == "{}"
    assert str(IndexSet.interval(2, 5)) == "{2..4}"
    assert str(IndexSet(0, 5, 2, ((0, 1),))) == "{0, 2, 4}"
    assert str(IndexSet(0, 10**12, 2, ((0, 1),))).endswith("14, …}")


def quickest(question, turns=7):
    times = []
    for _ in range(turns):
        start = time.process_time()
        question()
        times.append(time.process_time() - start)
    return min(times)


TEXTS = ("[(0)]", "cyclic(4)[(0)]", "block[(0)]", "[(0:block,1:cyclic(3))]", "[(0,1:cyclic(2))]")


@pytest.mark.parametrize("text", TEXTS)
def test_many_ranks_cost_as_few(text):
    """A question about 32,768 ranks and 10**12 elements costs the same as about 4 and 100 (wide margin: 30 times)."""

    def ask(extent, grid):
        layout, size = parse(text), Grid(grid).size
        ranks = iter(range(size * 3 // 4, size))  # another rank every time: answers are remembered

        def question():
            dist = layout.on(extent, grid)
            rank = next(ranks, size - 1)
            (mine,) = dist.index_sets(rank)
            (first,) = dist.index_sets(0)
            element = (mine.start,)
            assert dist.local_shape(rank) == (len(mine),) and rank in dist.owners(element) and element[0] in mine
            assert not mine & first and mine & mine == mine

        return quickest(question)

    many, few = ask(10**12, (256, 128)), ask(1000, (2, 4))
    assert many < 30 * few and many < 0.05, f"{many * 1e6:.0f} us against {few * 1e6:.0f} us"
