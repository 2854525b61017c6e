"""Contractions that used to be planned badly receive no more words than a better way, and hold little more."""

from __future__ import annotations

import pytest
from table import CASES, WORD, Case

MORE_MEMORY = {"AO to MO on 8x8": 1.3}  # it takes less time and about half of the words


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_better_way_is_found(case: Case) -> None:
    plan = case.plan()
    words, peak = case.better(case)
    assert plan.cost.bytes <= words * WORD
    assert plan.cost.peak_bytes <= MORE_MEMORY.get(case.name, 1.1) * peak
    plan.verify()
