"""Every method of exchange, bit for bit the same: the conformance suite that each of them passes."""

from __future__ import annotations

from pathlib import Path

import pytest
from execute import methods, sums
from marks import mpi_parts

import rote
from rote.errors import CommError
from rote.runtime.exchange.registry import METHODS, check_method
from rote.runtime.plans import bind

PROGRAM = Path(methods.__file__)


@pytest.mark.parametrize("ranks", (2, 3, 4))
def test_in_process_ranks_are_right_by_every_method(ranks):
    """Threads read each other's blocks or copy messages; what only MPI can do is refused, on all ranks alike."""
    found = rote.run(methods.check, ranks, (30,))
    assert found == [["shared", "alltoallv"]] * ranks


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "number"), mpi_parts(some=2, rest=16), indirect=["job"])
def test_mpi_ranks_are_right_by_every_method(job, number):
    """The transitions and factors of the other tests, by each method: `simulate`'s block, bit for bit."""
    done = job.run(PROGRAM, number, 0, 0, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    names, _, usual = done.stdout.partition(" | usual:")
    missing = {*METHODS} - {*names.split()}
    assert missing <= {"persistent"}  # which came with MPI 4
    assert usual.split() == ["shared"] * (2 * (job.ranks > 1))


@pytest.mark.parametrize("ranks", (2, 4))
def test_in_process_ranks_sum_in_rank_order(ranks):
    """Sums, products and maxima of floats have the bits of `simulate`, by every method."""
    assert rote.run(sums.check, ranks)[0] >= 36


@pytest.mark.mpi
@pytest.mark.parametrize("job", (3, *(pytest.param(each, marks=pytest.mark.slow) for each in (2, 4))), indirect=True)
def test_mpi_ranks_of_one_node_sum_in_rank_order(job):
    """So three transports, simulation, threads and processes, give the same bits, by all methods."""
    done = job.run(Path(sums.__file__), timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) >= 36


ON_NODES = [  # ranks, ranks of a node, and what is usual then
    (3, 2, ["two-level", "nodes"]),
    (4, 2, ["two-level", "nodes"]),
    (6, 4, ["two-level", "nodes"]),
    (3, 1, ["alltoallv"] * 2),
]


@pytest.mark.mpi
@pytest.mark.parametrize(
    "number, job, each, usual",
    [(10, *ON_NODES[0]), (10, *ON_NODES[3]), *(pytest.param(20, *each, marks=pytest.mark.slow) for each in ON_NODES)],
    indirect=["job"],
)
def test_ranks_of_several_nodes_are_right(job, number, each, usual):
    """Nodes of two, two and two, four and two, or one rank: by the methods that know of nodes, and by the usual one."""
    done = job.run(PROGRAM, number, each, 0, "auto", "nodes", "two-level", timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["auto", "nodes", "two-level", "|", "usual:", *usual]


@pytest.mark.mpi
@pytest.mark.parametrize("number", (4, pytest.param(16, marks=pytest.mark.slow)))
@pytest.mark.parametrize("each", (0, 2))
@pytest.mark.parametrize("job", (3,), indirect=True)
def test_more_elements_than_mpi_can_count_are_right(job, each, number):
    """Where one call counts 7 elements at most, as MPI before 4 does 2**31 - 1, large messages go in parts."""
    done = job.run(PROGRAM, number, each, 7, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert {*METHODS} - {*done.stdout.split()} == ({"shared"} if each else set())


@pytest.mark.mpi
@pytest.mark.parametrize("job", (2,), indirect=True)
def test_ranks_of_several_nodes_share_no_memory(job):
    """Then "shared" is refused."""
    done = job.run(PROGRAM, 1, 1, 0, "shared", "alltoallv")
    assert (done.returncode, done.stderr, done.stdout.split()[:2]) == (0, "", ["alltoallv", "|"])


NO_SHARED_MEMORY = f"""
import sys
from unittest.mock import patch
sys.path.insert(0, {str(PROGRAM.parents[1])!r})
from execute import methods, sums
from marks import mpi_parts
from rote.runtime import world
from rote.runtime.comm.mpi import MpiComm

comm, share = world().split(0, 0), MpiComm.allocate_shared
on_some = lambda self, nbytes: share(self, nbytes) if comm.rank > 1 else None
with methods.on_nodes(2), patch.object(MpiComm, "allocate_shared", on_some):
    print(methods.absent(comm, "nodes"), methods.absent(comm, "two-level"), *methods.taken(comm))
"""


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("job", (4,), indirect=True)
def test_where_one_node_shares_no_memory_none_does(job):
    """A system that refuses shared memory on one node is an answer to all ranks, and messages go another way."""
    done = job.run(NO_SHARED_MEMORY)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["shared shared alltoallv alltoallv"] * 4


def test_an_unknown_method_is_refused():
    """By a text that names them all, even where nothing moves."""
    with pytest.raises(CommError, match=r"method is one of auto, shared, alltoallv, .*; not 'fast'"):
        check_method("fast")
    plan = rote.compile("block[(0),()] -> block[(0),()]", shape=(4, 4), grid=1)
    with pytest.raises(CommError, match="not 'fast'"):
        bind(plan, rote.runtime.world(), "fast")


def test_a_step_that_comes_twice_may_move_by_two_methods():
    """Methods belong to places in a plan: there, back and there again is the same step twice."""
    there = rote.compile("block[(0),()] -> block[(),(0)]", shape=(4, 6), grid=2)
    back = rote.compile("block[(),(0)] -> block[(0),()]", shape=(4, 6), grid=2)
    plan = rote.Plan(there.source, there.target, there.dtype, (*there.steps, *back.steps, *there.steps))
    names = ("shared", "alltoallv", "alltoallv")
    assert rote.run(lambda comm: bind(plan, comm, names).methods, 2) == [names, names]
    for few in (names[:2], (*names, "auto")):
        with pytest.raises(CommError, match="one for each"):
            rote.run(lambda comm, given=few: bind(plan, comm, given), 2)
