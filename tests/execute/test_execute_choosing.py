"""Methods of exchange chosen by timing: one for all ranks, found once, kept as wisdom."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from execute import methods
from hurry import hurry

import rote
from rote import wisdom
from rote.runtime import tuning
from rote.runtime.exchange.registry import METHODS

SWAP = rote.compile("block[(0),()] -> block[(),(0)]", shape=(12, 9), grid=3)
REDUCED = rote.compile("[()]+(0) -> [(0)]", shape=6, grid=3, dtype="i8")


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A folder for wisdom, and little time."""
    monkeypatch.setenv("ROTE_WISDOM", str(tmp_path))
    hurry(monkeypatch, 0.02, 0.04)
    return tmp_path


def test_all_ranks_choose_alike_and_once(kept, monkeypatch):
    """The fastest of the methods that these ranks have; the next time it is recalled, and nothing is timed."""
    found = rote.run(lambda comm: tuning.tuned(SWAP, comm, "measure"), 3)
    assert found == [found[0]] * 3 and {*found[0]} <= {"shared", "alltoallv"}
    (entry,) = wisdom.records()
    assert (entry.decision, entry.key.facts["what"]) == (found[0][0], "method")
    monkeypatch.setattr(tuning, "choose", None)
    assert rote.run(lambda comm: tuning.tuned(SWAP, comm, "measure"), 3) == found


def test_what_was_found_patiently_serves_all(kept, monkeypatch):
    """But not the other way round."""
    rote.run(lambda comm: tuning.tuned(SWAP, comm, "patient"), 3)
    timed = tuning.choose
    monkeypatch.setattr(tuning, "choose", None)
    rote.run(lambda comm: tuning.tuned(SWAP, comm, "measure"), 3)
    wisdom.forget(all=True)
    monkeypatch.setattr(tuning, "choose", timed)
    rote.run(lambda comm: tuning.tuned(SWAP, comm, "measure"), 3)
    monkeypatch.setattr(tuning, "choose", None)
    with pytest.raises(TypeError):
        rote.run(lambda comm: tuning.tuned(SWAP, comm, "patient"), 3)


def test_a_damaged_decision_is_ignored(kept):
    """With one warning; the methods are timed again."""
    rote.run(lambda comm: tuning.tuned(SWAP, comm, "measure"), 3)
    (path,) = Path(kept).glob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "decision": "telepathy"}))
    with pytest.warns(wisdom.WisdomWarning, match="a method is one of shared"):
        (found,) = rote.run(lambda comm: tuning.tuned(SWAP, comm, "measure"), 3)[0]
    assert found in METHODS


def test_the_model_and_reductions_time_nothing(kept, monkeypatch):
    """Nor does a rank alone."""
    monkeypatch.setattr(tuning, "choose", None)
    assert rote.run(lambda comm: tuning.tuned(SWAP, comm, "model"), 3) == [("auto",)] * 3
    assert rote.run(lambda comm: tuning.tuned(REDUCED, comm, "measure"), 3) == [("auto",)] * 3
    alone = rote.compile("block[(0),()] -> block[(),(0)]", shape=(12, 9), grid=1)
    assert {*tuning.tuned(alone, rote.runtime.world(), "measure")} <= {"auto"}
    assert wisdom.records() == ()


MPI = """
from unittest.mock import patch
import rote
from rote.runtime import world
from rote.runtime import choose, tuning

comm = world()
plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(300, 200), grid=comm.size)
with patch.dict(choose.SECONDS["method"], measure=0.1):
    print(tuning.tuned(plan, comm, "measure"))
"""


BETWEEN_NODES = {"persistent", "pipelined", "nodes", "two-level"}


@pytest.mark.mpi
@pytest.mark.parametrize("job", (3,), indirect=True)
def test_mpi_ranks_choose_alike(job, tmp_path):
    """Of all methods that may pay on one node."""
    done = job.run(MPI, env={"ROTE_WISDOM": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")
    (found,) = {*done.stdout.splitlines()}
    assert found in {f"('{name}',)" for name in {*METHODS} - BETWEEN_NODES - {"put"}}


TRIED = f"""
import sys
from contextlib import ExitStack
from unittest.mock import patch
sys.path.insert(0, {str(Path(methods.__file__).parents[1])!r})
from execute import methods
import rote
from rote.runtime import choose, tuning, world
from rote.runtime.exchange.registry import METHODS

plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(30, 20), grid=2)
for ranks_each in (2, 1):
    made = set()

    def recorded(name, make):
        def method(*args):
            made.add(name)
            return make(*args)
        return method

    changes = [patch.dict(METHODS, {{name: recorded(name, make) for name, make in METHODS.items()}})]
    changes += [patch.dict(choose.SECONDS["method"], measure=0.02), methods.on_nodes(ranks_each)]
    with ExitStack() as changed:
        for change in changes:
            changed.enter_context(change)
        comm = world().split(0, 0)
        tuning.tuned(plan, comm, "measure")
    if comm.rank == 0:
        print(*sorted(made))
"""


@pytest.mark.mpi
@pytest.mark.parametrize("job", (2,), indirect=True)
def test_methods_for_a_network_are_tried_between_nodes_only(job):
    """Law: on one node tuning times no method whose gain is in the network; between two it times them as well."""
    done = job.run(TRIED, env={"ROTE_WISDOM": ""})
    assert (done.returncode, done.stderr) == (0, "")
    near, far = (set(line.split()) for line in done.stdout.splitlines())
    assert near == {*METHODS} - BETWEEN_NODES - {"put", "isend-32", "waitsome-32"}
    assert BETWEEN_NODES - {"persistent"} <= far  # MPI before 4 has no persistent collectives
