"""The runner of the conformance suite sees what it is there to see: failures, and ranks that do not agree."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import run  # noqa: E402
import team  # noqa: E402

NAMESPACE = """
import numpy as np, rote
from rote.runtime.comm.resolve import world
__array_api_version__ = "2024.12"
float64 = np.dtype("float64")
def asarray(values, /):
    array = np.asarray(values)
    return rote.DistTensor.from_global(array, rote.functions.moves.default_layout(array.shape))
def split(x, /): return x.local.shape != x.shape
class Whatever: pass
def whatever(): return Whatever()
def rank(): return world().rank
def leave():
    if world().rank:
        world().barrier()
    raise ValueError("rank 0 stays away")
def refuse(): raise KeyError("no")
"""

SUITE = """
import lockstep as xp, pytest
def test_agrees():
    x = xp.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    y = 1.0 + x * 2.0
    assert (x.shape, x.dtype) == ((3, 2), xp.float64)
    assert repr(y).startswith("[[3.0, 5.0], [7.0, 9.0], [11.0, 13.0]]")
    large = xp.asarray([[0.5] * 6] * 6)
    assert (repr(large), repr(xp.whatever())) == ("(6, 6) float64 [(),(0)]", "Whatever")
    assert xp.split(x) and not hasattr(x, "nothing")
    with pytest.raises(KeyError):
        xp.refuse()
def test_ranks_differ():
    xp.rank()
def test_rank_stays_away():
    xp.leave()
def test_another_team():
    assert (xp.asarray([1.0, 2.0]) - 1.0).shape == (2,)
"""


@pytest.fixture(scope="module", autouse=True)
def _no_plugins():
    """The suites of this file need none, and each costs its import."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        yield


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory, _no_plugins):
    """What the runner says of a suite of four tests on two ranks."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "standin.py").write_text(NAMESPACE)
    (folder / "test_four.py").write_text(SUITE)
    return run.run_suite(folder, 2, "cyclic", [], "standin")


def test_a_disagreement_of_ranks_is_a_failure(outcomes):
    """What ranks do alike passes; a value that differs between ranks fails, and so does an error that one rank raises
    while another waits for it, which leaves no hang and no harm to the test after it."""
    said = {outcome.test: (outcome.kind, outcome.why) for outcome in outcomes}
    assert said["test_four::test_agrees"] == ("passed", "")
    assert said["test_four::test_another_team"] == ("passed", "")
    assert said["test_four::test_ranks_differ"][0] == "failed"
    assert "not the same on all ranks: [0, 1]" in said["test_four::test_ranks_differ"][1]
    assert said["test_four::test_rank_stays_away"][0] == "failed"
    assert "ranks disagree" in said["test_four::test_rank_stays_away"][1]


def test_every_failure_wants_a_reason(outcomes):
    """All is well exactly if each failed test has a reason and each reason a failed test; the table has all of it."""
    runs = {(2, "cyclic"): outcomes}
    text, good = run.table(runs, {"*::test_ranks_differ": "made so"})
    assert (
        not good
        and "| 2 | cyclic | 2 | 0 | 1 | 1 |" in text
        and "| `test_four::test_ranks_differ` | all | made so |" in text
    )
    text, good = run.table(runs, {"*::test_rank*": "made so"})
    assert good and "| 2 | cyclic | 2 | 0 | 2 | 0 |" in text
    text, good = run.table(runs, {"*::test_rank*": "made so", "*::test_agrees": "gone"})
    assert not good and "by the reason of `*::test_agrees`" in text


def test_a_suite_that_does_not_run_is_no_success(tmp_path):
    """A folder without tests is an error, not a run in which nothing failed."""
    with pytest.raises(RuntimeError, match="did not run"):
        run.run_suite(tmp_path, 1, "block", [], "standin")


def test_reasons_are_lines(tmp_path):
    """A line is `pattern = reason`; brackets of a test are not those of a pattern, and the first that fits counts."""
    path = tmp_path / "reasons.txt"
    path.write_text("# why\ntest_a::test_f[abs*] = first\ntest_a::* = second\n\n")
    reasons = run.read_reasons(path)
    assert run.reason_of("test_a::test_f[abs(x)]", reasons) == "first"
    assert run.reason_of("test_a::test_f[sin]", reasons) == "second"
    assert run.reason_of("test_b::test_f[sin]", reasons) == ""


@np.errstate(all="ignore")
def test_reasons_are_true():
    """NumPy gives in special cases what the reasons say; where it is mended, a reason goes."""
    inf, nan = np.inf, np.nan
    reasons = run.read_reasons(HERE / "reasons.txt").values()
    assert np.isnan(np.floor_divide([inf, inf, -inf, -inf], [3, -3, 3, -3])).all()
    assert np.floor_divide([3, -3], [-inf, inf]).tolist() == [-1, -1]
    given = {"nan+nanj": [(-inf, inf), (inf, inf), (-inf, nan), (inf, nan), (nan, 0)], "inf+nanj": [(inf, 0)]}
    given["-0+0j"] = [(-0.0, 0)]
    for text, numbers in given.items():
        assert {str(np.expm1(complex(*number))) for number in numbers} == {f"({text})"}
        assert sum(f"NumPy gives {text}" in reason for reason in reasons) == len(numbers)
    assert str(np.tanh(complex(inf, 2))) == "(1-0j)"


def test_team_raises_what_all_ranks_raise():
    """An error of all ranks is the caller's; different errors, or one of some ranks only, are a disagreement."""

    def of(errors):
        def work(rank):
            if errors[rank]:
                raise errors[rank]()
            return rank

        return work

    ranks = team.Team(3)
    assert ranks.call(of([None] * 3)) == [0, 1, 2]
    with pytest.raises(KeyError):
        ranks.call(of([KeyError] * 3))
    for errors in ([KeyError, ValueError, KeyError], [None, KeyError, KeyError]):
        with pytest.raises(team.Disagreement):
            ranks.call(of(errors))
    assert ranks.call(of([None] * 3)) == [0, 1, 2]
