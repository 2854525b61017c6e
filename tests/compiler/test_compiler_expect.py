"""What users' tests expect of a plan: passes, or a failed assertion that tells all."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from strategies import pairs

import rote


@pytest.fixture
def plan():
    return rote.compile("block[(0),()] -> block[(),(0)]", shape=(6, 4), grid=2)


@settings(max_examples=8)
@given(pairs())
def test_a_plan_is_as_it_says(pair):
    """Law: every plan meets what it claims itself, and one less of anything is too little."""
    check_claims(rote.compile(*pair))


@pytest.mark.slow
@given(pairs())
def test_more_plans_are_as_they_say(pair):
    """The same of more of them."""
    check_claims(rote.compile(*pair))


def check_claims(plan):
    """`rote.expect` takes what a plan claims, and refuses one less."""
    cost, kinds = plan.cost, [step.kind for step in plan.steps]
    limits = {"max_bytes": cost.bytes, "max_messages": cost.messages, "max_peak_bytes": cost.peak_bytes}
    rote.expect(plan, steps=kinds, **limits)
    for name, most in limits.items():
        with pytest.raises(AssertionError):
            rote.expect(plan, **{name: most - 1})
    with pytest.raises(AssertionError):
        rote.expect(plan, steps=[*kinds, "slice"])


def test_what_is_not_given_is_not_asked(plan):
    """No expectation, no failure; None is no expectation."""
    rote.expect(plan)
    rote.expect(plan, steps=None, max_bytes=None, max_messages=None, max_peak_bytes=None)


def test_a_failure_tells_all(plan):
    """Each expectation that is not met, what the plan has instead, and the plan explained."""
    with pytest.raises(AssertionError) as found:
        rote.expect(plan, steps=["gather", "scatter"], max_bytes=47, max_messages=0, max_peak_bytes=1000)
    text = str(found.value)
    assert text.split("\n")[:4] == [
        "the plan is not as expected",
        "  steps: gather, scatter expected, but it has alltoall",
        "  bytes: at most 47 expected, but it has 48",
        "  messages: at most 0 expected, but it has 1",
    ]
    assert text.endswith(plan.explain()) and "peak bytes" not in text


def test_nothing_to_do_can_be_expected(plan):
    """() is a plan without steps, and differs from one that has some."""
    rote.expect(rote.compile(plan.source, plan.source), steps=())
    with pytest.raises(AssertionError, match="steps: none expected, but it has alltoall"):
        rote.expect(plan, steps=())


def test_unknown_kinds_are_mistakes_of_the_test(plan):
    """Not a failed assertion, which would read as if the plan were at fault; the text says what was meant."""
    with pytest.raises(rote.PlanError, match=re.compile("'all-to-all' is no kind.*did you mean alltoall", re.DOTALL)):
        rote.expect(plan, steps=["all-to-all"])
    with pytest.raises(rote.PlanError, match=re.compile("'teleport' is no kind.*write one of slice, ", re.DOTALL)):
        rote.expect(plan, steps=["teleport"])
    with pytest.raises(rote.PlanError, match=r"write steps=\('alltoall',\)"):
        rote.expect(plan, steps="alltoall")
    with pytest.raises(TypeError, match="takes a plan or a contraction, not int"):
        rote.expect(3)


@pytest.mark.slow
def test_pytest_shows_the_line_of_the_test(run_pytest):
    """The failure stands at the caller's line, not inside Rote."""
    answer = run_pytest(
        "import rote\n\n\ndef test_it():\n"
        "    plan = rote.compile('[(0)] -> [()]', shape=4, grid=2)\n"
        "    rote.expect(plan, steps=['slice'])  # here\n"
    )
    assert "> " in answer and "# here" in answer and "steps: slice expected, but it has allgather" in answer
    assert "def expect(" not in answer


@pytest.fixture
def run_pytest(tmp_path):
    """Run a text as a test file in a Python of its own; what pytest prints."""

    def run(text):
        (tmp_path / "test_it.py").write_text(text)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "."]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60).stdout

    return run
