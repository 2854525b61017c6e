"""Expectations of a plan in users' own tests, so that a change that makes it costlier is noticed."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import PlanError
from .plan import Plan
from .step import as_kind

__all__ = ["expect"]


def expect(
    plan: Plan,
    *,
    steps: Sequence[str] | None = None,
    max_bytes: int | None = None,
    max_messages: int | None = None,
    max_peak_bytes: int | None = None,
) -> None:
    """Assert that a plan is as a test expects. Arguments that are left out are not checked.

    Args:
        plan: the plan.
        steps: the kinds of its steps, in order; () for a plan with nothing to do.
        max_bytes, max_messages: the most that any one rank may receive.
        max_peak_bytes: the most that any one rank may hold at once.

    Raises:
        AssertionError: the plan differs; the text says how, and explains the plan.
        PlanError: `steps` names a kind that does not exist.
        TypeError: `plan` is not a plan.

    >>> from rote.compiler.compile import compile
    >>> plan = compile("block[(0),()] -> block[(),(0)]", shape=(6, 4), grid=2)
    >>> expect(plan, steps=("alltoall",), max_bytes=plan.lower_bound)
    >>> expect(plan, steps=("allgather", "slice"), max_messages=1, max_bytes=40)
    Traceback (most recent call last):
    AssertionError: the plan is not as expected
      steps: allgather, slice expected, but it has alltoall
      bytes: at most 40 expected, but it has 48
    <BLANKLINE>
    block[(0),()] -> block[(),(0)]   (6, 4) float64 on grid 2
      step  kind      over  layout         received  rounds   peak  rule
                            block[(0),()]
      1     alltoall  0     block[(),(0)]      48 B       1  288 B  move entries
    each rank receives at most 48 B in 1 message, lower bound 48 B (ratio 1.00)
    peak 288 B on a rank, about 12 us on the default machine; optimal
    runner-up: allgather over 0, slice over 0
      about 22 us, 1.83 times as long: a rank receives 96 B (not 48 B), holds 672 B (not 288 B)
    """
    __tracebackhide__ = True  # pytest then shows the caller's line, not this file's
    if not isinstance(plan, Plan):
        raise TypeError(f"rote.expect takes a plan, not {plan!r}\nwrite rote.compile(…) for one")
    wrong = []
    if steps is not None:
        wanted, kinds = _kinds(steps), tuple(step.kind for step in plan.steps)
        if wanted != kinds:
            wrong.append(f"  steps: {_listed(wanted)} expected, but it has {_listed(kinds)}")
    cost = plan.cost
    for name, most, has in (
        ("bytes", max_bytes, cost.bytes),
        ("messages", max_messages, cost.messages),
        ("peak bytes", max_peak_bytes, cost.peak_bytes),
    ):
        if most is not None and has > most:
            wrong.append(f"  {name}: at most {most} expected, but it has {has}")
    if wrong:
        raise AssertionError("\n".join(["the plan is not as expected", *wrong, "", plan.explain()]))


def _kinds(steps: Sequence[str]) -> tuple[str, ...]:
    if isinstance(steps, str):
        raise PlanError(f"the kinds of a plan's steps must be a sequence, not {steps!r}\nwrite steps=({steps!r},)")
    return tuple(as_kind(kind) for kind in steps)


def _listed(kinds: tuple[str, ...]) -> str:
    return ", ".join(kinds) or "none"
