"""Plans on real ranks, in-process and MPI: bit-identical to `simulate`, and they leave nothing behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from execute import moves
from execute.recording import Recording
from marks import mpi_parts, parts_on

import rote
from rote.compiler.movement import movement
from rote.errors import CommError, LayoutError
from rote.runtime.plans import bind

PROGRAM = Path(moves.__file__)


@pytest.mark.parametrize(("ranks", "number"), parts_on(1, 2, 3, 4, 6, 8, some=25, rest=120))
def test_in_process_ranks_are_right(ranks, number):
    """Some hundred transitions on threads: blocks equal `simulate`'s, bit for bit, and the definition's."""
    kinds = rote.run(moves.check, ranks, (number if ranks < 6 else number // 2,))
    assert all(found == kinds[0] for found in kinds)
    assert len(kinds[0]) >= (1 if ranks == 1 else 9 if number == 120 else 5)
    rote.run(moves.check_refusals, ranks)


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "number"), mpi_parts(some=16, rest=120), indirect=["job"])
def test_mpi_ranks_are_right(job, number):
    """The same transitions on MPI ranks."""
    done = job.run(PROGRAM, number, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("right") == job.ranks


@pytest.mark.slow
def test_transitions_show_every_kind_of_step():
    """The seeded transitions prove something of every collective."""
    seen = set()
    for ranks in (2, 3, 4, 6, 8):
        for source, target, dtype in moves.transitions(ranks, 300 if ranks < 6 else 150):
            seen.update(step.kind for step in rote.compile(source, target, dtype).steps)
    from rote.compiler.rules import RULES

    assert seen == {rule.kind for rule in RULES}


REDUCING = rote.Machine(latency=1e-6, byte_time=1e-9, copy_time=0, reduce_time=1.0, step_time=0)


@pytest.mark.parametrize(("ranks", "number"), parts_on(1, 2, 3, 4, 6, 8, some=20, rest=80))
def test_in_process_ranks_go_to_other_grids(ranks, number):
    """From one grid to another, in one or several steps: the block of `simulate`, in the memory that is claimed.

    Where it is one step, that is one exchange of all ranks, of what the matrix says, or no call at all.
    """

    def program(comm):
        seen = set()
        for seed, (source, target, dtype) in enumerate(moves.transitions_across(comm.size, number, seed=1)):
            plan, recording = rote.compile(source, target, dtype, machine=REDUCING), Recording(comm)
            seen.add(len(plan.steps))
            blocks = moves.blocks_of(source, dtype, seed)[1]
            mine, bound = blocks[comm.rank], bind(plan, recording)
            recording.take()  # binding may split
            found = bound(mine)
            assert moves.same(found, rote.simulate.run(plan, blocks)[comm.rank]), plan
            held = comm.allgather_object(mine.nbytes + found.nbytes + bound.workspace_bytes)
            assert max(held) == plan.cost.peak_bytes, plan
            if len(plan.steps) == 1:
                matrix = movement(source, target).matrix()
                sent, heard = (
                    {rank: size for rank, size in enumerate(sizes.tolist()) if size and rank != comm.rank}
                    for sizes in (matrix[comm.rank], matrix[:, comm.rank])
                )
                called = [(call.name, call.sent, call.heard) for call in recording.take()]
                assert called == ([] if plan.steps[0].kind == "relayout" else [("alltoallv", sent, heard)]), plan
        return seen

    found = rote.run(program, ranks)
    assert all(seen == found[0] for seen in found) and found[0] >= ({1, 2} if ranks > 1 and number == 80 else {1})


def test_the_check_can_fail(monkeypatch):
    """A block that differs from `simulate`'s in one element is found out, and the text names the transition."""
    right = rote.simulate.run

    def wrong(plan, blocks):
        found = right(plan, blocks)
        for block in found:
            block[...] = np.roll(block, 1)
        return found

    monkeypatch.setattr(rote.simulate, "run", wrong)
    with pytest.raises(AssertionError, match=r"-> .* of \(.*\) .*, rank [01], by auto:\n"):
        rote.run(moves.check, 2)


@pytest.mark.parametrize("rounds", (2_000, pytest.param(6_000, marks=pytest.mark.slow)))
def test_thousands_of_redistributions_in_process(rounds):
    """10,000 binds and calls of more plans than are kept leave no memory and no communicators behind."""
    rote.run(moves.check_no_leak, 2, (rounds,))


def test_a_leak_is_found_out(monkeypatch):
    """A program that keeps what it returns is found out after some thousand calls."""
    kept = []

    def leaking(plan, comm):
        kept.append(np.ones(1000))
        return bind(plan, comm)

    monkeypatch.setattr(moves, "bind", leaking)
    with pytest.raises(AssertionError, match="leak"):
        rote.run(moves.check_no_leak, 2, (2000,))


@pytest.mark.mpi
@pytest.mark.slow
def test_thousands_of_redistributions_under_mpi(mpirun):
    """And under MPI, where communicators run out after some thousand."""
    done = mpirun(2, PROGRAM, "leak", timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("no leak") == 2


def test_every_rank_is_told_of_a_wrong_grid():
    """A grid that does not match the ranks is a CommError on all ranks, before any message."""
    plan = rote.compile("[(0)] -> [()]", shape=4, grid=2)

    def program(comm):
        with pytest.raises(CommError) as caught:
            bind(plan, comm)
        return str(caught.value)

    texts = rote.run(program, 3)
    assert set(texts) == {
        "grid 2 has 2 ranks, but the communicator has 3; start 2 ranks or give another grid",
    }


def test_a_wrong_block_is_refused_before_any_message():
    """A wrong block on every rank is a LayoutError on every rank; the program still works afterwards."""
    plan = rote.compile("[(0)] -> [()]", shape=4, grid=2)

    def program(comm):
        bound = bind(plan, comm)
        with pytest.raises(LayoutError):
            bound(np.zeros(3))
        return bound(np.array([comm.rank, comm.rank + 2.0]))

    assert [found.tolist() for found in rote.run(program, 2)] == [[0.0, 1.0, 2.0, 3.0]] * 2


@pytest.mark.parametrize("dtype", ["f4", "f8", "g", "c8", "c16", "G"])
def test_special_floats_move_unchanged(dtype):
    """Pure movement keeps every bit: not-a-number with its payload, infinities, signed zeros, denormals."""
    plan = rote.compile("[(0),()] -> block[(),(0)]", shape=(4, 4), grid=2, dtype=dtype)
    rng = np.random.default_rng(0)
    array = np.zeros((4, 4), dtype)
    array[:2] = rng.standard_normal((2, 4))
    array[2] = [np.nan, -np.inf, -0.0, np.finfo(dtype).tiny / 4]
    blocks = rote.simulate.scatter(array, plan.source)
    wanted = [array[:, :2], array[:, 2:]]

    def program(comm):
        return bind(plan, comm)(blocks[comm.rank])

    for found, simulated, right in zip(rote.run(program, 2), rote.simulate.run(plan, blocks), wanted, strict=True):
        assert dtype in "gG" or found.tobytes() == simulated.tobytes() == right.tobytes()
        for part in (np.real, np.imag):
            assert np.array_equal(part(found), part(right), equal_nan=True)
            assert np.array_equal(np.signbit(part(found)), np.signbit(part(right)))
