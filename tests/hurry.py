"""Little time for the autotuner."""

from __future__ import annotations

import pytest

from rote.runtime.tuning.limits import LIMITS

__all__ = ["hurry"]


def hurry(monkeypatch: pytest.MonkeyPatch, measure: float, patient: float) -> None:
    """For the rest of a test, time every sort of candidates for so many seconds at most."""
    for limits in LIMITS.values():
        monkeypatch.setitem(limits.seconds, "measure", measure)
        monkeypatch.setitem(limits.seconds, "patient", patient)
