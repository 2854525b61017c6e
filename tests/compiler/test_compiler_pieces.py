"""Proofs of plans in many pieces: by differences, in time that grows as their number, and never for want of knowing."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from compiler.test_compiler_verify import ON_MOVEMENT, certify, plan_of, refused
from effort import calls
from hypothesis import assume, given
from hypothesis import strategies as st

import rote
from rote.compiler.movement import SENDS, movement
from rote.compiler.verify.elements import surplus
from rote.errors import PlanError
from rote.lattice import Lattice

MANY = "[(0:cyclic(7),1:cyclic(3))] -> [(1:cyclic(5))]"  # of tiles that share no factor
INTERLOCKED = {
    "cyclic(8)[(0,2:cyclic(3),1:cyclic(4))] -> [(0)]": (82731145982, (4, 3, 5)),
    "[(1:cyclic(9),2,0:block(floor))] -> block[(1,0:block(floor))]": (33944913097555, (2, 8, 4)),
}


def occurrences(boxes):
    """How often each number is in boxes, one by one."""
    return Counter(
        np.concatenate([np.zeros(0, int), *(Lattice(shape, (row,)).values(0) for shape, row in boxes)]).tolist()
    )


def first_wrong(boxes, number):
    """The least number that is not in one box, or not below `number`, and how many boxes too many have it."""
    times = occurrences(boxes)
    wrong = [k for k in {*times, *range(number)} if times[k] != (0 <= k < number)]
    return {min(wrong): times[min(wrong)] - (0 <= min(wrong) < number)} if wrong else {}


def first(differences):
    return dict([*differences.items()][:1])


def cut(box, axis, at):
    """A box in two: below a value of a digit, and from there on."""
    shape, row = box
    behind = (row[0] + at * row[axis + 1], *row[1:])
    return [
        ((*shape[:axis], at, *shape[axis + 1 :]), row),
        ((*shape[:axis], shape[axis] - at, *shape[axis + 1 :]), behind),
    ]


def in_two_digits(box, axis, n):
    """A box with a digit as two, the first of steps n times as long."""
    shape, row = box
    step = row[axis + 1]
    return (*shape[:axis], shape[axis] // n, n, *shape[axis + 1 :]), (*row[: axis + 1], n * step, *row[axis + 1 :])


@st.composite
def pieces(draw):
    """The numbers below one of some size, each in one of some boxes: they are cut, and digits are split, at random."""
    number = draw(st.integers(1, 200))
    boxes = [((number,), (0, 1))]
    for _ in range(draw(st.integers(0, 12))):
        box = boxes.pop(draw(st.integers(0, len(boxes) - 1)))
        shape = box[0]
        axis = draw(st.integers(0, len(shape) - 1))
        divisors = [n for n in range(2, shape[axis]) if shape[axis] % n == 0]
        if divisors and len(shape) < 4 and draw(st.booleans()):
            boxes.append(in_two_digits(box, axis, draw(st.sampled_from(divisors))))
        elif shape[axis] > 1:
            boxes += cut(box, axis, draw(st.integers(1, shape[axis] - 1)))
        else:
            boxes.append(box)
    return number, boxes


BOX = st.integers(0, 3).flatmap(
    lambda order: st.tuples(
        st.tuples(*[st.integers(1, 4)] * order),
        st.tuples(st.integers(0, 30), *[st.integers(1, 12)] * order),
    )
)


@given(pieces(), st.data())
def test_each_number_once_is_accepted_and_a_mistake_named(right, data):
    """Law: pieces of all numbers are right; if one is moved, lost, doubled or replaced, the first number is named."""
    number, boxes = right
    assert first_wrong(boxes, number) == surplus(boxes, number) == {}
    k = data.draw(st.integers(0, len(boxes) - 1))
    shape, (start, *steps) = boxes[k]
    changed = (shape, (start + data.draw(st.integers(1, 5)), *steps)), data.draw(st.sampled_from(boxes))
    for new in ([], [boxes[k]] * 2, *([box] for box in changed)):
        wrong = [*boxes[:k], *new, *boxes[k + 1 :]]
        assert first(surplus(wrong, number)) == first_wrong(wrong, number)


@given(st.lists(BOX, max_size=5), st.integers(0, 60))
def test_what_is_wrong_first_is_what_counting_says(boxes, number):
    """Law: of any boxes the first number that is not in one of them is named, with how often it is there."""
    for shape, (_, *steps) in boxes:
        long = [step for step, n in zip(steps, shape, strict=True) if n > 1]
        assume(len({*long}) == len(long))
    assert first(surplus(boxes, number)) == first_wrong(boxes, number)


@pytest.mark.parametrize("row", [(0, 3, 3), (0, 2, 0), (5, 1, -1)])
def test_digits_of_one_step_and_backward_ones_are_refused(row):
    """A box that has elements twice, or in descending order, is none that a plan is made of."""
    with pytest.raises(PlanError, match="two digits of one step, or one whose step is not positive"):
        surplus([((2, 3), row)], 6)


def test_many_pieces_are_not_compared_in_pairs():
    """Law: eight times the pieces of a period take some eight times the calls, and longer pieces no more of them."""

    def proved(number, turns):
        boxes = [((turns, 3), (3 * k, 3 * number, 1)) for k in range(number)]
        assert not surplus(boxes, 3 * number * turns)

    few = calls(lambda: proved(100, 10**6))
    assert calls(lambda: proved(800, 10**6)) < 10 * few
    assert calls(lambda: proved(100, 10**15)) < 1.1 * few


def test_a_plan_of_many_pieces_takes_so_many_calls_for_each():
    """Law: the proof of thousands of pieces takes less than 500 calls for each; their number is that of a period."""
    sizes = []
    for n in (2**30 - 1, 2**55 - 1):
        plan = plan_of(MANY, (n,), (4, 5))
        ends = plan.source, plan.target
        (part,) = movement(*ends).parts
        sizes.append(len(part.factor.lattices))
        rote.clear_caches()
        assert calls(lambda plan=plan: certify(plan)) < 500 * sizes[-1]
    assert 1000 < min(sizes) <= max(sizes) < 2 * min(sizes), sizes


def test_ranks_find_their_pieces_without_looking_through_all():
    """Law: the messages of all ranks take so many calls per piece; no rank looks at the pieces of others."""
    rote.clear_caches()
    plan = plan_of(MANY, (2**40 - 1,), (8, 8))
    ends = plan.source, plan.target
    (part,) = movement(*ends).parts
    number = len(part.factor.lattices)
    assert calls(lambda: [movement(*ends).messages(rank, SENDS) for rank in range(64)]) < 80 * number


@pytest.mark.parametrize("text", INTERLOCKED)
def test_pieces_that_lie_among_each_other_are_proved(text):
    """A right plan is accepted where pieces interlock, or where their period begins elsewhere in each block."""
    n, grid = INTERLOCKED[text]
    certify(plan_of(text, (n,), grid))


@pytest.mark.parametrize("name", [name for name in ON_MOVEMENT if name.startswith("box ")])
def test_a_wrong_piece_among_many_is_found(name):
    """A piece that is changed, lost, doubled or there in place of another is refused among thousands of long ones."""
    rng, plan = random.Random(12), plan_of(MANY, (2**40 - 1,), (4, 3))
    certify(plan)
    with pytest.MonkeyPatch.context() as patch:
        assert ON_MOVEMENT[name](rng, plan, patch)
        assert refused(plan)
