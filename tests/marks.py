"""What several test files mark alike."""

from __future__ import annotations

import pytest
from parts import REST, SOME

__all__ = ["PARTS"]

PARTS = (SOME, pytest.param(REST, marks=pytest.mark.slow))  # of a world of cases; see parts.py
