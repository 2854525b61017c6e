"""The machine "here": what was measured on a host like this one, on the most ranks, the same on all ranks."""

from __future__ import annotations

import json

import pytest

import rote
from rote import wisdom
from rote.machines.machine import Machine
from rote.runtime import run
from rote.runtime.comm.agreement import from_root
from rote.runtime.tuning import keep_machine


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A folder of its own for each test."""
    monkeypatch.setenv("ROTE_WISDOM", str(tmp_path / "wisdom"))
    return tmp_path / "wisdom"


def keep(ranks, latency, hosts=1, mpi="", **others):
    """Keep a machine of some latency; by `others` under the key of another host or version."""
    key = json.loads(wisdom.key({"what": "machine", "ranks": ranks, "hosts": hosts}, mpi).text)
    for part, value in others.items():
        key[part] |= value
    assert wisdom.remember(wisdom.Key(wisdom.canonical(key)), Machine(latency=latency).as_dict())


@pytest.mark.parametrize("kept", [[], [{"machine": {"cpu": "another"}}], [{"versions": {"rote": "0.1"}}]])
def test_nothing_is_measured_here(kept):
    for key in kept:
        keep(2, 1e-6, **key)
    with pytest.raises(rote.PlanError, match='nothing is measured for the machine "here"\nrun `rote tune`'):
        Machine.load("here")


def test_the_most_ranks_count_then_the_most_hosts_then_mpi():
    for latency, args in enumerate([(1,), (2,), (2, 1, "MPI 5"), (2, 2, "MPI 5"), (3,)], 1):
        ranks, *more = args
        keep(ranks, float(latency), *more)
        assert Machine.load("here").latency == latency
    keep(2, 9.0, 2, "MPI 6")
    keep(4, 9.0, machine={"cores": 4096})
    assert Machine.load("here") == Machine(latency=5.0)
    assert str(Machine.load("here").name) == "here, measured on 3 threads"
    wisdom.forget("ranks=3")
    assert Machine.load("here").name == "here, measured on 2 MPI ranks of 2 hosts"


def test_what_the_ranks_measured_is_the_machine_here():
    """Law: the machine that is kept for a communicator, and no other, is the one that is loaded without one."""
    machine = Machine(latency=3e-6, fft_time=1e-10)
    assert run(lambda comm: keep_machine(comm, machine), ranks=2) == [True, True]
    assert Machine.load("here") == machine
    plan = rote.compile("[(0)] -> [()]", shape=8, grid=4, machine="here")
    assert plan.machine == machine and "on the machine here, measured on 2 threads" in plan.explain()
    assert rote.predict(plan).machine.name == "here, measured on 2 threads"
    assert rote.predict(plan, "here").range == (plan.cost.seconds,) * 2


def test_one_rank_reads_it_for_all(monkeypatch):
    """Ranks whose file systems differ get rank 0's machine, or its error."""
    reads, load = [], Machine.load

    def noted(name):
        reads.append(name)
        return load(name)

    monkeypatch.setattr(Machine, "load", noted)

    def make(comm):
        try:
            return from_root(comm, lambda: Machine.load("here"))
        except rote.PlanError as error:
            return str(error).splitlines()[0]

    assert run(make, ranks=3) == ['nothing is measured for the machine "here"'] * 3
    keep(2, 7.0)
    found = run(make, ranks=3)
    assert found == [Machine(latency=7.0)] * 3
    assert [machine.name for machine in found] == ["here, measured on 2 threads"] * 3
    assert reads == ["here"] * 2


@pytest.mark.parametrize("bad", [3, {"latency": -1.0}, {"latencies": 1.0}, {"latency": "x"}, None])
def test_a_kept_machine_without_times_is_passed_over_with_a_warning(bad):
    keep(2, 1.0)
    assert wisdom.remember(wisdom.key({"what": "machine", "ranks": 8, "hosts": 1}), bad)
    with pytest.warns(wisdom.WisdomWarning, match="is ignored"):
        assert Machine.load("here") == Machine(latency=1.0)


def test_it_has_no_profile():
    keep(2, 1.0)
    assert "here" not in Machine.names()  # whose machines have one
    assert Machine.load("here").at("slow") == Machine(latency=1.0)
    for given in ({"ranks_per_node": 2}, {"threads": 1}):
        with pytest.raises(rote.PlanError, match="leave out ranks_per_node and threads"):
            Machine.load("here", **given)
