"""What several test files mark alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from parts import REST, SOME, has_parts

__all__ = ["PARTS", "parts_of"]

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
