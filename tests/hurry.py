"""Little time for the autotuner."""

from __future__ import annotations

import pytest

from rote.runtime.choose import SECONDS

__all__ = ["hurry"]


def hurry(monkeypatch: pytest.MonkeyPatch, measure: float, patient: float) -> None:
    """For the rest of a test, time every sort of candidates for so many seconds at most."""
    for seconds in SECONDS.values():
        monkeypatch.setitem(seconds, "measure", measure)
        monkeypatch.setitem(seconds, "patient", patient)
