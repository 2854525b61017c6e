"""One rank alone gives another argument, fails, or makes another call: no rank is left waiting."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from calls import MATRIX
from failing import FUNCTIONS, RANKS, Case, cases, check, outcome
from marks import PARTS
from parts import share


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test works in a folder with a file."""
    monkeypatch.chdir(tmp_path)
    np.save("matrix.npy", MATRIX)


@cache
def right(name: str) -> dict[int, object]:
    """The right results of a function, by rank."""
    results, error, hangs = outcome(Case(FUNCTIONS[name], ""))  # nothing is changed
    assert not hangs and error is None, (name, error)
    assert not any(isinstance(each, Exception) for each in results.values()), (name, results)
    return results


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_a_right_call(name):
    """A function whose parameters have new names is not tried below, until `calls.py` knows these names."""
    assert right(name).keys() == set(range(RANKS))


@pytest.mark.parametrize("warm", [False, True], ids=["first", "second"])
@pytest.mark.parametrize("part", PARTS)
def test_another_argument_on_one_rank(part, warm):
    """Law: that of `failing.check`, for the first call of a function, and for one that is prepared."""
    ends = {"together": 0, "alone": 0, "apart": 0, "same": 0, "": 0}
    wrong = []
    for case in share(cases(), part, every=10, first=warm):
        try:
            ends[check(case, warm, right(case.function.name))] += 1
        except AssertionError as error:
            wrong.append(f"{case}: {error}"[:300])
    assert not wrong, "\n".join([f"{len(wrong)} of {sum(ends.values())}", *wrong])
    assert min(ends[end] for end in ("alone", "same")) > 0 and (warm or ends["together"] > ends["apart"]), ends
