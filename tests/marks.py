"""What several test files mark alike."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from launch import RANKS, Job
from parts import REST, SOME, checks_in, has_parts

__all__ = ["PARTS", "examples", "make_checks", "mpi_parts", "parts_of", "parts_on"]

PARTS = (SOME, pytest.param(REST, marks=pytest.mark.slow))  # of a world of cases; see parts.py


def parts_on(*ranks: int, some: object = SOME, rest: object = REST) -> list[Any]:
    """Numbers of in-process ranks and parts of a world: some of it on each, the rest on one, the largest up to six.

    `@pytest.mark.parametrize(("ranks", "part"), parts_on(1, 2, 3, 4, 6, 8))`. MPI ranks see the rest on three. More
    than four are slow, and so are three beside four, for MPI ranks are three in every quick run. Parts may have other
    names, as numbers of cases have.
    """
    few = [pytest.param(each, some, marks=_slow(each, ranks)) for each in ranks]
    return [*few, pytest.param(_most(ranks), rest, marks=pytest.mark.slow)]


def parts_of(checks: Sequence[Callable[..., object]], *ranks: int, whole: Sequence[int] = ()) -> list[Any]:
    """Checks on ranks, with what they take beside a communicator: `parametrize(("ranks", "check", "args"), ...)`.

    Where a check has parts, they are those of `parts_on`, or the rest is on other numbers of ranks, `whole`.
    """
    cases = []
    for check in checks:
        name = check.__name__.removeprefix("check_")
        for each in ranks:
            args = (SOME,) if has_parts(check) else ()
            cases.append(pytest.param(each, check, args, id=f"{name}-{each}", marks=_slow(each, ranks)))
        for each in (whole or [_most(ranks)]) if has_parts(check) else ():
            cases.append(pytest.param(each, check, (REST,), id=f"{name}-{REST}-{each}", marks=pytest.mark.slow))
    return cases


def _slow(each: int, ranks: Sequence[int]) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] * (each > 4 or (each == 3 and 4 in ranks))


def _most(ranks: Sequence[int]) -> int:
    """The largest number up to six: more threads on few cores see the same world for more time."""
    return max(each for each in ranks if each <= 6)


def mpi_parts(*ranks: int, some: object = SOME, rest: object = REST) -> list[Any]:
    """Numbers of MPI ranks and parts of a world: some of it on each number, the rest on three, an uneven number.

    `@pytest.mark.parametrize(("job", "part"), mpi_parts(), indirect=["job"])`, on 1, 2, 3, 4 and 6 ranks if none are
    named: the quick tests start three of these, or those that are named.
    """
    named = [pytest.param(each, some, marks=() if ranks or each == 3 else pytest.mark.slow) for each in ranks or RANKS]
    return [*named, pytest.param(3, rest, marks=pytest.mark.slow)]


def make_checks(
    job: Job, program: Path, checks: Sequence[Callable[..., object]], part: str, timeout: float = 150
) -> None:
    """Run a program that ends in `parts.report_checks` on MPI ranks: it makes every check of the part, and no more."""
    done = job.run(program, part, timeout=timeout)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout == f"{len(checks_in(checks, part))} checks on {job.ranks} ranks\n"


def examples(number: int) -> int:
    """How many examples Hypothesis tries of a law: all in the run of the slow tests, otherwise a few of them.

    `@settings(max_examples=examples(100))`; a law that says nothing gets `examples(60)`.
    """
    return number if os.environ.get("ROTE_TESTS_EXAMPLES") == "all" else max(5, number // 8)
