"""One rank alone gives another argument, fails, or makes another call: no rank is left waiting."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from calls import MATRIX
from failing import FUNCTIONS, OTHER_CALLS, RANKS, Case, Outcome, cases, judge, outcome
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


def judged(makes: Iterable[tuple[Case, Outcome]]) -> set[str]:
    """How the calls ended, all of them by law."""
    ends, wrong = set(), []
    for case, end in makes:
        try:
            ends.add(judge(case, end, right(case.function.name)))
        except AssertionError as error:
            wrong.append(f"{case}: {error}"[:300])
    assert not wrong, "\n".join([f"{len(wrong)} calls", *wrong])
    return ends


FIRST_OR_SECOND = pytest.mark.parametrize("warm", [False, True], ids=["first", "second"])


@FIRST_OR_SECOND
@pytest.mark.parametrize("part", PARTS)
def test_another_argument_on_one_rank(part, warm):
    """Law: that of `judge`, for the first call of a function, and for one that is prepared: of each four values that
    one rank may give, the rest of the cases gives one to a first call and another to a prepared one."""
    chosen = share(islice(cases(), 2 * int(warm), None), part, every=20, of=4)
    assert judged((case, outcome(case, warm)) for case in chosen) == {"together", "alone", "apart", "same"}


@FIRST_OR_SECOND
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("way", OTHER_CALLS)
def test_another_call_on_one_rank(way, part, warm):
    """Law: that of `judge`, for a rank that leaves, makes another call, has no memory or is interrupted: in the rest of
    the functions, half of them when they are first called, the others when they are prepared."""
    functions = islice(FUNCTIONS.values(), int(warm), None)
    chosen = [Case(function, "") for function in share(functions, part, every=4, first=len(way), of=2)]
    ends = judged((case, outcome(case, warm, partial(OTHER_CALLS[way], case.function))) for case in chosen)
    assert len(ends) > 1
