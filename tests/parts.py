"""Worlds of cases in two parts: some of them, spread over the world, in every run of the tests; the rest when asked.

A test whose cases are many takes `@pytest.mark.parametrize("part", PARTS)` and looks at `share(cases, part, every)`.
The two parts together are the whole world, and nothing is looked at twice. Programs for MPI take the part's name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

__all__ = ["REST", "SOME", "share"]

Case = TypeVar("Case")

SOME, REST = "some", "rest"


def share(cases: Iterable[Case], part: str, every: int, first: int = 0) -> list[Case]:
    """Every `every`-th case from number `first` on (modulo `every`), or all others.

    Another `first` for each number of ranks lets a quick run see all cases, each on some ranks.

    >>> share("abcdefg", SOME, 3), share("abcdefg", REST, 3), share("abcdefg", SOME, 3, first=4)
    (['a', 'd', 'g'], ['b', 'c', 'e', 'f'], ['b', 'e'])
    """
    if part not in (SOME, REST):
        raise ValueError(f"a part of the cases is {SOME!r} or {REST!r}, not {part!r}")
    return [case for number, case in enumerate(cases) if ((number - first) % every == 0) == (part == SOME)]
