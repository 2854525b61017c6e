"""Worlds of cases in two parts: some of them, spread over the world, in every run of the tests; the rest when asked.

A test or a check whose cases are many takes a `part` and looks at `share(cases, part, every)`. The two parts together
are the whole world, or an even sample of one that repeats itself (`of`), and nothing is looked at twice. marks.py says
which part is slow; programs for MPI take its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from inspect import signature
from typing import Any, TypeVar

__all__ = ["REST", "SOME", "checks_in", "has_parts", "report_checks", "run_checks", "share"]

Case = TypeVar("Case")

SOME, REST = "some", "rest"


def share(cases: Iterable[Case], part: str, every: int, first: int = 0, of: int = 1) -> list[Case]:
    """Of each `2 every + 1` cases one, counted from number `first` on, or all others; of these, each `of`-th.

    The distance is odd, so that cases which alternate are all seen. Another `first` for each number of ranks lets a
    quick run see other cases on each. An `of` above 1 is for a world of far more cases than ways they can go wrong.

    >>> share("abcdefgh", SOME, 1), share("abcdefgh", REST, 1), share("abcdefgh", SOME, 1, first=4)
    (['a', 'd', 'g'], ['b', 'c', 'e', 'f', 'h'], ['b', 'e', 'h'])
    >>> share("abcdefgh", REST, 1, of=3)
    ['b', 'f']
    """
    if part not in (SOME, REST):
        raise ValueError(f"a part of the cases is {SOME!r} or {REST!r}, not {part!r}")
    apart = 2 * every + 1
    chosen = [case for number, case in enumerate(cases) if ((number - first) % apart == 0) == (part == SOME)]
    return chosen if part == SOME else chosen[::of]


def has_parts(check: Callable[..., object]) -> bool:
    """Whether a check of a communicator, `check(comm)`, looks at a part of its cases: `check(comm, part)`."""
    return "part" in signature(check).parameters


def checks_in(checks: Sequence[Callable[..., object]], part: str) -> list[Callable[..., object]]:
    """The checks that a part of the cases is for: all of them for the first, those that have parts for the rest."""
    return [check for check in checks if part == SOME or has_parts(check)]


def run_checks(checks: Sequence[Callable[..., object]], comm: Any, part: str) -> int:
    """Make the checks of a part on the ranks of a communicator; how many they are."""
    for check in (made := checks_in(checks, part)):
        check(comm, part) if has_parts(check) else check(comm)
    return len(made)


def report_checks(checks: Sequence[Callable[..., object]], comm: Any, part: str) -> None:
    """The main job of a program for MPI: make the checks of a part, and let rank 0 say how many on how many ranks."""
    made = run_checks(checks, comm, part)
    if comm.rank == 0:
        print(f"{made} checks on {comm.size} ranks")
