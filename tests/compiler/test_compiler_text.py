"""Plans as text: what a plan prints is read back, and nothing else is."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import examples
from strategies import pairs

import rote
from rote.compiler.rules import RULES
from rote.compiler.step import KINDS

DTYPES = ["?", "i1", "u4", "q", "f4", "f8", "g", "c8", "c16", "G"]

HEAD = "block[(0),()] -> block[(),(0)] of (6, 4) float64 on grid 2"
STEP = "  1. alltoall over 0: block[(0),()] -> block[(),(0)]"
NOTHING = "  nothing to do: every rank holds its block already"


def compiled(pair, dtype):
    try:
        return rote.compile(*pair, dtype=dtype)
    except rote.PlanError:  # complex numbers have no max
        return rote.compile(*pair, dtype="f8")


@settings(max_examples=examples(250))
@given(pairs(), st.sampled_from(DTYPES))
def test_what_a_plan_prints_is_read_back(pair, dtype):
    """Law: from_text(str(plan)) == plan on the default machine; mixed kinds, views, partial, rooted, any dtype."""
    plan = compiled(pair, dtype)
    again = rote.Plan.from_text(str(plan))
    assert again == plan and str(again) == str(plan) and again.cost == plan.cost
    assert again.steps == plan.steps and again.dtype == plan.dtype


@pytest.mark.parametrize(
    ("text", "shape", "grid"),
    [
        ("[] -> []+(0)", (), (2,)),
        ("[] -> []", (), ()),
        ("[]+(0) -> []|(0@1)", (), (3,)),
        ("[(0)] -> [()]", (5,), (2,)),
        ("[(0)] -> [(0)]", (0,), (1,)),
        ("[(),()] -> [(0),()]", (4, 4), (2, 2)),
        ("[(),()] -> [(),()]+max(0,1)", (4, 4), (2, 2)),
        ("[(0:block(3,5,2))] -> [(0:cyclic(4))]", (10,), (3,)),
        # the words of a plan's first line are names of views as well
        ("of on grid: [(0),(),()] -> (on of) grid: [(0),()]", (2, 3, 4), (2,)),
    ],
)
def test_corners_are_read_back(text, shape, grid):
    """Order 0 of tensor and grid, one mode, no elements, local steps, words of the plan as names."""
    plan = rote.compile(text, shape=shape, grid=grid, dtype="f4")
    again = rote.Plan.from_text(str(plan))
    assert again == plan and again.source.grid.shape == grid
    assert rote.Plan.from_text(f"{plan}\n") == plan, "a newline may end it"


def test_several_steps_are_read_back():
    """A plan that somebody put together, with the same result as its parts."""
    layouts = ["block[(0),(1),()]", "block[(0),(),(1)]", "block[(),(0),(1)]"]
    one, two = (rote.compile(f"{a} -> {b}", shape=(5, 6, 7), grid=(2, 3)) for a, b in pairwise(layouts))
    both = rote.Plan(one.source, two.target, one.dtype, one.steps + two.steps)
    again = rote.Plan.from_text(str(both))
    assert again == both
    array = np.arange(210.0).reshape(5, 6, 7)
    blocks = rote.simulate.run(again, rote.simulate.scatter(array, again.source))
    assert np.array_equal(rote.simulate.gather(blocks, again.target), array)
    for missing, rule in ((1, "step 1 starts from"), (2, "the steps end in")):
        lines = str(both).split("\n")
        del lines[missing]
        with pytest.raises(rote.PlanError, match=rule):
            rote.Plan.from_text("\n".join(lines).replace("  2. ", "  1. "))


def test_steps_may_join_under_other_names():
    """Layouts that say the same on a grid join: here grid mode 1 has a single coordinate."""
    one = rote.compile("block[(0),()] -> block[(),(0)]", shape=(4, 6), grid=(2, 1))
    two = rote.compile("block[(),(0,1)] -> block[(0),()]", shape=(4, 6), grid=(2, 1))
    both = rote.Plan(one.source, two.target, one.dtype, one.steps + two.steps)
    assert rote.Plan.from_text(str(both)) == both


def test_a_text_knows_no_machine():
    """The machine is told beside it; without one it is the default."""
    machine = rote.Machine(latency=1.0)
    plan = rote.compile("[(0)] -> [()]", shape=4, grid=2, machine=machine)
    assert rote.Plan.from_text(str(plan), machine) == plan == rote.Plan.from_text(str(plan), machine=machine)
    assert rote.Plan.from_text(str(plan)).machine == rote.Machine()
    assert rote.Plan.from_text(str(plan)) != plan


def test_layouts_are_read_in_any_spelling():
    """They are the language's own; what comes back prints as ever."""
    plan = rote.Plan.from_text(f"{HEAD}\n{STEP}".replace("block[(0),()]", "[ (0 : block) () ]"))
    assert str(plan) == f"{HEAD}\n{STEP}"


DAMAGED = [
    ("", "", "must name a grid"),
    (HEAD, HEAD.partition(" on ")[0], "must name a grid"),
    ("grid 2", "grid two", "'two' is no grid"),
    ("grid 2", "grid 2X2", "'2X2' is no grid"),
    ("grid 2", "grid 2 ", "'2 ' is no grid"),
    ("grid 2", "grid 02", "'02' is no grid"),
    ("float64", "f8", "'f8' is no dtype"),
    ("float64", "flaot64", "did you mean float64?"),
    ("float64", "float16", "'float16' is no dtype"),
    ("(6, 4)", "(6,4)", "must name a shape"),
    ("(6, 4)", "(6, 4,)", "must name a shape"),
    ("(6, 4)", "(6, -4)", "must name a shape"),
    ("(6, 4)", "6x4", "must name a shape"),
    (" of (6", " OF (6", "must name a shape"),
    (f"\n{STEP}", "", "must say its steps"),
    (STEP, "", "write the steps, or '  nothing to do: every"),
    ("  1. ", " 1. ", "must begin with"),
    ("  1. ", "  2. ", "number it as 1"),
    ("alltoall", "all-to-all", "did you mean alltoall?"),
    ("alltoall", "teleport", "'teleport' is no kind of step"),
    ("alltoall", "Alltoall", "did you mean alltoall?"),
    ("over 0", "over", "'alltoall over' is no kind of step"),
    ("over 0", "over zero", "'zero' are no grid modes"),
    ("over 0", "over 0, 1", "'0, 1' are no grid modes"),
    ("over 0", "over 1", "grid 2 has order 1"),
    ("over 0: ", "over 0 ", "from where to where"),
    (STEP, f"{STEP}\n", None),
    (STEP, f"{STEP}\n\n", "must begin with"),
    (STEP, f"{STEP}\n{NOTHING}", "must begin with"),
    (STEP, f"{STEP} ", None),
    (STEP, f"{STEP}\n{STEP.replace('1.', '2.')}", "starts from"),
    (STEP, "  nothing to do", "must begin with"),
    ("0: block[(0),()] -> block[(),(0)]", "0: block[(0),()] -> [(),(0)]", "the steps end in"),
    ("0: block[(0),()] -> block[(),(0)]", "0: block[(0),()]", "go from one layout to another"),
    ("\n", "\r\n", "'2\\r' is no grid"),
]


@pytest.mark.parametrize(("whole", "damaged", "says"), DAMAGED)
def test_a_damaged_text_is_refused(whole, damaged, says):
    """Every other wording: what is wrong and what to write; None for spaces that do not matter."""
    text = f"{HEAD}\n{STEP}".replace(whole, damaged) if whole else damaged
    if says is None:
        assert str(rote.Plan.from_text(text)) == f"{HEAD}\n{STEP}"
        return
    with pytest.raises(rote.PlanError) as found:
        rote.Plan.from_text(text)
    assert says in str(found.value)
    assert len(str(found.value).split("\n")) > 1, "a cure"


def test_the_caret_stands_under_the_culprit():
    """As it does for mistakes in layouts."""
    with pytest.raises(rote.PlanError) as found:
        rote.Plan.from_text(f"{HEAD}\n{STEP}".replace("alltoall", "altoall"))
    rule, line, caret, cure = str(found.value).split("\n")
    assert rule == "'altoall' is no kind of step" and cure == "did you mean alltoall?"
    assert line[caret.index("^") :].startswith("altoall over 0")


def test_mistakes_in_layouts_keep_their_names():
    """NotationError for the language, LayoutError for shape and grid."""
    with pytest.raises(rote.NotationError, match="block"):
        rote.Plan.from_text(f"{HEAD}\n{STEP}".replace("block", "blok"))
    with pytest.raises(rote.LayoutError, match="tensors of order 2"):
        rote.Plan.from_text(f"{HEAD}\n{STEP}".replace("(6, 4)", "(6, 4, 1)"))
    with pytest.raises(rote.LayoutError, match="at least one process"):
        rote.Plan.from_text(f"{HEAD}\n{STEP}".replace("grid 2", "grid 0"))


@settings(max_examples=examples(200))
@given(pairs(), st.data())
def test_damage_never_passes_for_another_answer(pair, data):
    """A character less or another one: one of Rote's errors, or a plan that prints itself so that it is read back."""
    text = str(rote.compile(*pair))
    place = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:place] + data.draw(st.sampled_from(["", " ", "0", "(", "x", "\n", "é"])) + text[place + 1 :]
    try:
        plan = rote.Plan.from_text(damaged)
    except rote.RoteError:
        return
    assert rote.Plan.from_text(str(plan)) == plan


def test_kinds_are_those_that_the_compiler_names():
    """The list by which texts and expectations are read is complete, each kind once."""
    assert set(KINDS) == {rule.kind for rule in RULES}
    assert len(set(KINDS)) == len(KINDS)


def test_what_is_no_plan_is_refused_as_such():
    """Law: numbers beyond all bounds in JSON, and what is no text at all."""
    plan = rote.compile("block[(0,1)] -> [()]", shape=5, grid=(5, 1))
    with pytest.raises(rote.PlanError, match="this text is no plan"):
        rote.Plan.from_json(plan.to_json().replace("[5]", "[1" + "0" * 30 + "]"))
    cyclic = rote.compile("[(0),()] -> [(),(0)]", shape=(5, 4), grid=2)
    with pytest.raises(rote.PlanError, match=r"no plan .*below 2\*\*63, not \(9223372036854775808, 4\)"):
        rote.Plan.from_json(cyclic.to_json().replace("[5, 4]", f"[{2**63}, 4]"))
    for other in (None, 3, b"[(0)]"):
        with pytest.raises(rote.PlanError, match="a plan is read from text"):
            rote.Plan.from_text(other)
