"""Plans on real ranks, in-process and MPI, move the messages and bytes that they claim, in the memory they claim."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from execute import claims
from execute.recording import Call, Recording
from marks import mpi_parts, parts_on

import rote
from rote.compiler.rules import RULES
from rote.runtime import plans as execute
from rote.runtime import program as executor
from rote.runtime.comm import reductions

PROGRAM = Path(claims.__file__)


@pytest.mark.parametrize(("ranks", "number"), parts_on(1, 2, 3, 4, 6, 8, some=15, rest=150))
def test_in_process_ranks_move_what_is_claimed(ranks, number):
    """Each step makes the one call it is named after, and local ones none; per rank it moves what the compiler counts.

    It comes from the ranks that the plan lists and from no other; the busiest ranks make up the cost of the plan.
    """
    seen = rote.run(claims.check, ranks, (number if ranks < 6 else number * 3 // 4,))
    assert all(found == seen[0] for found in seen)
    if number == 15:
        assert len(seen[0]) >= (3 if ranks == 1 else 8)
        return
    assert seen[0] >= ({0, 1, 2, 3, *(rule.kind for rule in RULES)} if ranks > 1 else {0, 1, 2, "relayout"})


@pytest.mark.mpi
@pytest.mark.parametrize(("ranks", "number"), mpi_parts(some=6, rest=150))
def test_mpi_ranks_move_what_is_claimed(mpirun, ranks, number):
    """The same plans on MPI ranks; and there, each a process of its own, they take the memory that is claimed.

    By messages they take just that, by shared memory and other methods no more.
    The processes start for this test: a block whose size an earlier program has shared would lie in a segment of it.
    """
    done = mpirun(ranks, PROGRAM, number, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("as claimed") == ranks


def test_the_plans_show_what_they_should():
    """Every operation, views, roots, ranks that hold nothing, sizes that do not divide, items of all sizes."""
    found = [plan for ranks in (2, 3, 4) for plan in claims.plans(ranks, 150)]
    steps = [step for plan in found for step in plan.steps]
    talking = [step.before for step in steps if step.kind in claims.CALLS]
    assert {dist.layout.op for dist in talking if dist.partial} == {"sum", "max", "min", "prod"}
    assert {plan.dtype.itemsize for plan in found} >= {1, 2, 4, 8, 16, 32}
    sizes = [{np.prod(dist.local_shape(rank), dtype=int) for rank in range(dist.grid.size)} for dist in talking]
    for number in (
        sum(dist.layout.view is not None for dist in talking),
        sum(bool(dist.layout.rooted) for dist in talking),
        sum(0 in each and len(each) > 1 for each in sizes),
        sum(len(each) > 2 for each in sizes),
        sum(plan.optimality != "as given" for plan in found),
        sum(len(plan.steps) > 2 for plan in found),
    ):
        assert number >= 10
    assert any(len(plan.steps) > 1 for plan in found if plan.optimality != "as given")


# --- memory -------------------------------------------------------------------------------------------------------

BLOCKS = "block[(0),()] -> block[(),(0)]"


def test_one_process_takes_the_memory_that_is_claimed():
    """As on MPI ranks, of one rank; its plans only arrange blocks anew."""
    rote.run(claims.measure, 1)


STEPS = ("block[(0),()] -> [(),()]", "block[(0),()] -> [(),()]|(0@1)", "[(),()]|(0) -> block[(0),()]")
SUMS = ("[(),()]+(0) -> [(),()]", "[(),()]+(0) -> block[(0),()]", "[(),()]+max(0) -> [(),()]|(0@2)")


@pytest.mark.parametrize("text", [BLOCKS, *STEPS, *SUMS])
def test_all_in_process_ranks_take_what_they_claim_together(text):
    """One step on four threads: all hold their blocks and buffers when they meet, so the sum is what the process takes.

    What they reduce, they reduce tile by tile.
    """
    plan = rote.compile(text, shape=(1000, 1000), grid=4)

    def program(comm):
        bound, block = claims.cold(comm, plan)
        if comm.rank == 0:
            tracemalloc.start()
        comm.barrier()
        found = bound(block)
        comm.barrier()
        if comm.rank == 0:
            taken.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        return found.nbytes + bound.workspace_bytes

    taken = []
    needed = sum(rote.run(program, 4))
    tiles = 8 * reductions._AT_ONCE if plan.source.partial else 0  # a rank holds the last one, too
    assert len(plan.steps) == 1 and needed <= taken[0] <= needed + 100_000 + tiles


def test_programs_share_their_workspace():
    """What a program needs beside its ends is lent, and lies idle for the next one: a second call takes its result."""
    plan = rote.compile("block[(0),()]+(1) -> block[(),(0)]|(1)", shape=(300, 200), grid=(2, 1))

    def program(comm):
        bound, block = claims.cold(comm, plan)
        bound(block)
        lent = [memory.nbytes for key, memory in comm.cache.items() if key == "workspace"]
        return lent, [bound.workspace_bytes]

    assert all(lent == needed for lent, needed in rote.run(program, 2))


class Other:
    """A program that says that it needs more than it does, or copies its block first."""

    def __init__(self, program, more, copies):
        self.program, self.copies = program, copies
        self.workspace_bytes = program.workspace_bytes + more

    def __call__(self, block):
        return self.program(block.copy() if self.copies else block)


@pytest.mark.parametrize("more, copies", [(100_000, False), (-100_000, False), (0, True)])
def test_other_memory_is_found_out(more, copies, monkeypatch):
    """A claim that is too high or too low, and a copy of a block that is held on the way."""
    monkeypatch.setattr(
        claims, "BoundPlan", lambda *given, **scaled: Other(execute.BoundPlan(*given, **scaled), more, copies)
    )
    with pytest.raises(AssertionError, match="took, needs"):
        rote.run(claims.measure, 1, (20,))


# --- the tests can fail -------------------------------------------------------------------------------------------


def claim(comm, plan, cost=None):
    return claims.run(Recording(comm), plan, cost=cost)


@pytest.mark.parametrize("name", ("bytes", "messages", "peak_bytes"))
@pytest.mark.parametrize("more", (1, -1))
def test_a_wrong_cost_is_found_out(name, more):
    """One byte or message more or less than there is."""
    plan = rote.compile(BLOCKS, shape=(5, 4), grid=3)
    assert rote.run(claim, 3, (plan,)) == [""] * 3
    for text in rote.run(claim, 3, (plan, replace(plan.cost, **{name: getattr(plan.cost, name) + more}))):
        assert "claims {" in text and f"'{name}': {getattr(plan.cost, name)}" in text


@pytest.mark.parametrize("name", ("elements", "messages", "send_buffer", "receive_buffer"))
def test_a_wrong_count_of_a_step_is_found_out(name, monkeypatch):
    """One element or message, more than there is, on one rank."""
    plan = rote.compile(BLOCKS, shape=(5, 4), grid=3)
    right = claims.flow(plan.steps[0])
    more = np.array([0, 0, 1])
    monkeypatch.setattr(claims, "flow", lambda step: replace(right, **{name: getattr(right, name) + more}))
    texts = rote.run(claim, 3, (plan,))
    assert texts[0] == texts[1] == texts[2] and "rank 2, alltoall" in texts[0] and "rank 0" not in texts[0]


MORE_CALLS = {
    "message": lambda comm: comm.bcast_in_place(np.zeros(1), 0),
    "empty message": lambda comm: comm.bcast_in_place(np.zeros(0), 0),
    "barrier": lambda comm: comm.barrier(),
    "object": lambda comm: comm.allgather_object(None),
    "split": lambda comm: comm.split(0, 0),
}


@pytest.mark.parametrize("more", MORE_CALLS)
@pytest.mark.parametrize("text", [BLOCKS, "[(),()] -> block[(0),()]"])
def test_one_more_call_is_found_out(more, text, monkeypatch):
    """An executor that meets once more than the plan says, after a collective or in a local step."""
    plan, right = rote.compile(text, shape=(5, 4), grid=3), executor._Sent.bound

    def bound(self, *args, **kwargs):
        return [*right(self, *args, **kwargs), lambda: MORE_CALLS[more](self.sweep.move.messages.comm)]

    monkeypatch.setattr(executor._Sent, "bound", bound)
    assert all("called" in text for text in rote.run(claim, 3, (plan,)))


def test_another_way_is_found_out(monkeypatch):
    """An executor that gathers everything, and then takes its part, gives right blocks and is found out."""
    plan = rote.compile(BLOCKS, shape=(5, 4), grid=3)
    parts = [
        rote.compile(text, shape=(5, 4), grid=3) for text in ("block[(0),()] -> [(),()]", "[(),()] -> block[(),(0)]")
    ]
    other = replace(plan, steps=tuple(step for part in parts for step in part.steps))
    assert rote.run(claim, 3, (other,)) == [""] * 3
    monkeypatch.setattr(claims, "bind", lambda _, comm: execute.bind(other, comm))
    assert all("called ['allgatherv']" in text for text in rote.run(claim, 3, (plan,)))


def test_a_message_from_a_stranger_is_found_out(monkeypatch):
    """The same number of elements and messages, from another rank than the plan lists."""
    plan, right = rote.compile("[()]|(0) -> [()]|(0@1)", shape=5, grid=3), claims.receives

    def receives(step, rank):
        return [replace(message, peer=2) for message in right(step, rank)]

    monkeypatch.setattr(claims, "receives", receives)
    assert all("rank 1, permute" in text and "hears {0: 5}" in text for text in rote.run(claim, 3, (plan,)))


def test_what_is_sent_and_not_heard_is_found_out():
    """Calls of which one side counts other elements than the other."""
    calls = [(Call("alltoallv", {1: 2}, {}),), (Call("alltoallv", {}, {0: 2}),)]
    assert claims.mismatched(calls) == []
    calls[0] = (Call("alltoallv", {1: 3}, {}),)
    assert claims.mismatched(calls) == [(0, 0, 1)]
    calls[0] = (Call("alltoallv", {}, {}),)
    assert claims.mismatched(calls) == [(0, 0, 1)]


# --- the recording ------------------------------------------------------------------------------------------------


def every_call(comm):
    """Each collective once, on a recording of three ranks; what was written down per rank."""
    recording, three = Recording(comm), np.zeros(3)
    recording.alltoallv(three, [1, 2, 0], np.zeros(counts := [1, 2, 0][comm.rank] * 3), [counts // 3] * 3)
    recording.allgatherv(np.zeros(comm.rank), three, [0, 1, 2])
    recording.bcast_in_place(three, 1)
    recording.allreduce_in_place(three, "sum")
    recording.reduce_in_place(three, "sum", 2)
    recording.reduce_scatter(three, np.zeros([0, 1, 2][comm.rank]), [0, 1, 2], "sum")
    return recording.take()


def test_calls_are_counted_as_their_caller_sees_them():
    """A rank hears from others alone, of nothing nothing; contributions come from all, or from those that add some."""
    found = [
        [(call.name, call.elements, call.messages, call.heard) for call in calls] for calls in rote.run(every_call, 3)
    ]
    assert found[0] == [
        *(("alltoallv", 2, 2, {1: 1, 2: 1}), ("allgatherv", 3, 2, {1: 1, 2: 2}), ("bcast", 3, 1, {1: 3})),
        *(("allreduce", 4, 2, {1: 3, 2: 3}), ("reduce", 2, 0, {}), ("reduce_scatter", 0, 0, {})),
    ]
    assert found[1] == [
        *(("alltoallv", 4, 2, {0: 2, 2: 2}), ("allgatherv", 2, 1, {2: 2}), ("bcast", 0, 0, {})),
        *(("allreduce", 4, 2, {0: 3, 2: 3}), ("reduce", 2, 0, {}), ("reduce_scatter", 2, 2, {0: 1, 2: 1})),
    ]
    assert found[2] == [
        *(("alltoallv", 0, 0, {}), ("allgatherv", 1, 1, {1: 1}), ("bcast", 3, 1, {1: 3})),
        *(("allreduce", 4, 2, {0: 3, 1: 3}), ("reduce", 3, 2, {0: 3, 1: 3}), ("reduce_scatter", 4, 2, {0: 2, 1: 2})),
    ]
    assert claims.mismatched(rote.run(every_call, 3)) == []


def test_splits_write_into_the_same_list():
    """A split of a split is a recording; it names ranks as the whole world does, and keeps nothing with the wrapped."""

    def program(comm):
        recording = Recording(comm)
        odd = recording.split(comm.rank % 2, -comm.rank)
        pair = odd.split(0, odd.rank)
        pair.bcast_in_place(np.zeros(2), 0)
        recording.cache["key"] = 1
        assert not comm.cache and not pair.cache
        return [(call.name, call.heard) for call in recording.take()], recording.take()

    found = rote.run(program, 4)
    heard = [{2: 2}, {3: 2}, {}, {}]
    assert found == [([("split", {}), ("split", {}), ("bcast", each)], ()) for each in heard]
