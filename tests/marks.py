"""What several test files mark alike."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from launch import RANKS, Job
from parts import REST, SOME, checks_in, has_parts

__all__ = ["PARTS", "examples", "make_checks", "mpi_parts", "parts_of"]

PARTS = (SOME, pytest.param(REST, marks=pytest.mark.slow))  # of a world of cases; see parts.py


def parts_of(checks: Sequence[Callable[..., object]]) -> list[Any]:
    """Checks, each with what it takes beside a communicator: `@pytest.mark.parametrize(("check", "args"), ...)`."""
    found = []
    for check in checks:
        name = check.__name__.removeprefix("check_")
        found.append(pytest.param(check, (SOME,) if has_parts(check) else (), id=name))
        if has_parts(check):
            found.append(pytest.param(check, (REST,), id=f"{name}-{REST}", marks=pytest.mark.slow))
    return found


def mpi_parts(*ranks: int) -> list[Any]:
    """Numbers of MPI ranks and parts of a world: some of it on each number, the rest on three, an uneven number.

    `@pytest.mark.parametrize(("job", "part"), mpi_parts(), indirect=["job"])`, on 1, 2, 3, 4 and 6 ranks if none are
    named: the quick tests start three of these, or those that are named. Ranks of this process see the rest on each
    number: they plan once for all.
    """
    some = [pytest.param(each, SOME, marks=() if ranks or each == 3 else pytest.mark.slow) for each in RANKS]
    return [*([(each, SOME) for each in ranks] or some), pytest.param(3, REST, marks=pytest.mark.slow)]


def make_checks(job: Job, program: Path, checks: Sequence[Callable[..., object]], part: str) -> None:
    """Run a program that ends in `parts.report_checks` on MPI ranks: it makes every check of the part, and no more."""
    done = job.run(program, part, timeout=150)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout == f"{len(checks_in(checks, part))} checks on {job.ranks} ranks\n"


def examples(number: int) -> int:
    """How many examples Hypothesis tries of a law: all in the run of the slow tests, otherwise a few of them.

    `@settings(max_examples=examples(100))`; a law that says nothing gets `examples(60)`.
    """
    return number if os.environ.get("ROTE_TESTS_EXAMPLES") == "all" else max(5, number // 8)
