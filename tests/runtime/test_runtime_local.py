"""In-process ranks: conformance, results and errors of run, ranks that cannot meet, and what is left afterwards."""

from __future__ import annotations

import gc
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from functools import partial
from types import SimpleNamespace

import comm_conformance
import numpy as np
import pytest

import rote
from rote.errors import CommError
from rote.runtime import as_comm, collective_errors, world
from rote.runtime.comm import threads as local
from rote.runtime.plans import bind


@pytest.mark.parametrize("ranks", (1, 2, 3, 4, *(pytest.param(ranks, marks=pytest.mark.slow) for ranks in (6, 8))))
@pytest.mark.parametrize("check", comm_conformance.CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_conforms(tmp_path, ranks, check):
    """In-process ranks do what every communicator must do."""
    rote.run(check, ranks, (tmp_path,))


def test_alone_conforms(tmp_path):
    """The communicator of one process, outside rote.run, does too."""
    comm_conformance.check_all(world(), tmp_path)


def test_results_come_in_rank_order():
    """run returns fn(comm, *args) of rank 0, 1, ...; each in a thread with a name of its own."""
    names = rote.run(lambda comm, word: (comm.rank, word, threading.current_thread().name), 5, ("x",))
    assert names == [(rank, "x", f"rote rank {rank}") for rank in range(5)]


@pytest.mark.parametrize("args", [3, "ab", None])
def test_arguments_are_a_tuple(args):
    """A value alone is refused with the tuple to write; a text is not taken for its letters."""
    with pytest.raises(TypeError, match=r"args is a tuple of what .*\nwrite rote.run\(fn, 2, \(value,\)\)"):
        rote.run(lambda comm, value: value, 2, args)


class Program:
    """What may be given as a program, with and without a communicator."""

    def __init__(self, comm, number=0):
        self.number = comm.rank + number

    def takes(self, comm):
        return comm.rank

    def takes_none(self):
        return 0

    def __call__(self):
        return 0


PROGRAMS = {
    "a lambda": (lambda comm: comm.rank, ()),
    "any arguments": (lambda *args: args[0].rank, (1,)),
    "a default": (lambda comm, more=2: comm.rank, ()),
    "a bound method": (Program(SimpleNamespace(rank=0)).takes, ()),
    "a partial": (partial(lambda comm, word: comm.rank, word="a"), ()),
    "a function in C": (repr, ()),
    "a class": (Program, (1,)),
}
NO_PROGRAMS = {
    "what a call returns": (0, (), r"a function of a communicator, not int\nwrite rote.run\(program, ranks\), not the"),
    "nothing": (None, (), "not NoneType\nwrite"),
    "a text": ("program", (), "not str\nwrite"),
    "an array": (np.zeros(2), (), "not ndarray\nwrite"),
    "no communicator": (
        lambda: 1,
        (),
        r"calls <lambda>\(comm\), but <lambda>\(\) does not take that.*\nwrite a function",
    ),
    "by its name alone": (lambda *, comm: 1, (), r"but <lambda>\(\*, comm\) does not take that"),
    "named arguments": (lambda **options: 1, (), "does not take that"),
    "too few arguments": (lambda comm, word: 1, (), "missing a required argument: 'word'\nwrite a function"),
    "too many arguments": (lambda comm: 1, (1, 2), r"calls <lambda>\(comm, args\[0\], args\[1\]\), but"),
    "a bound method": (Program(SimpleNamespace(rank=0)).takes_none, (), r"calls takes_none\(comm\)"),
    "an object": (Program(SimpleNamespace(rank=0)), (), r"calls Program\(comm\)"),
    "a class": (Program, (1, 2), "too many positional arguments"),
    "a partial": (partial(lambda comm: 1, 1), (), r"calls partial\(comm\)"),
}


@pytest.mark.parametrize(("program", "args"), PROGRAMS.values(), ids=PROGRAMS)
def test_what_is_a_program(program, args):
    """Law: whatever can be called with a communicator and the arguments."""
    assert len(rote.run(program, 2, args)) == 2 == len(rote.run(program, 2, iter(args)))


@pytest.mark.parametrize(("program", "args", "text"), NO_PROGRAMS.values(), ids=NO_PROGRAMS)
def test_what_is_no_program(program, args, text):
    """Law: it is refused before any rank starts, with what to write."""
    with pytest.raises(TypeError, match=text) as caught:
        rote.run(program, 2, args)
    assert not hasattr(caught.value, "__notes__")


def test_an_error_of_the_programs_own_calls_is_the_programs():
    """Law: only the call of the program itself is checked."""
    with pytest.raises(TypeError, match=r"takes 0 positional arguments but 1 was given") as caught:
        rote.run(lambda comm: (lambda: 1)(comm), 2)
    assert caught.value.__notes__ == ["raised on rank 0 of 2"]


def test_world_inside_is_the_ranks_communicator():
    """world() and as_comm(None) are the rank's own communicator inside run, and run may run inside run."""

    def program(comm):
        assert world() is comm and as_comm(None) is comm and as_comm(comm) is comm
        inner = rote.run(lambda own: (world() is own, own.size), 2)
        comm.barrier()
        return inner, world() is comm

    outside = world()
    assert rote.run(program, 3) == [([(True, 2)] * 2, True)] * 3
    assert world() is outside


def test_context_is_the_callers():
    """NumPy's error state, a context variable, holds on the ranks as well."""
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        rote.run(lambda comm: np.ones(1) / 0, 2)


@pytest.mark.parametrize("ranks", (0, -1))
def test_no_ranks(ranks):
    with pytest.raises(CommError, match="at least one rank"):
        rote.run(lambda comm: None, ranks)


def test_a_program_in_the_place_of_the_ranks_is_told_its_place():
    with pytest.raises(TypeError, match=r"the program comes first.*\nwrite rote.run\(program, 4\)"):
        rote.run(4, lambda comm: None)


def test_more_ranks_than_there_can_be():
    """Law: they are refused before memory is taken for them."""
    with pytest.raises(CommError, match="at most 4,194,304 ranks, not 4,611,686,018,427,387,904\nwrite"):
        rote.run(lambda comm: None, 2**62)


@pytest.mark.parametrize("ranks", (1.5, "4", None))
def test_ranks_must_be_a_number(ranks):
    with pytest.raises(rote.LayoutError, match="the number of ranks is an integer, not"):
        rote.run(lambda comm: None, ranks)


@pytest.mark.parametrize("what", (object(), 3, "world", LookupError, [1]))
def test_what_is_no_communicator(what):
    with pytest.raises(CommError, match="intra-communicator of mpi4py"):
        as_comm(what)


def test_a_grid_in_the_place_of_a_communicator_is_told_its_place():
    with pytest.raises(CommError, match=r"not Grid\(\(2, 3\)\)\nwrite grid=\(2, 3\)"):
        as_comm(rote.Grid((2, 3)))


CALLS = {
    "barrier": lambda comm: comm.barrier(),
    "bcast": lambda comm: comm.bcast_in_place(np.zeros(3), 0),
    "allreduce": lambda comm: comm.allreduce_in_place(np.zeros(3), "sum"),
    "allgather_object": lambda comm: comm.allgather_object(0),
    "split": lambda comm: comm.split(0, 0),
    "sub": lambda comm: comm.cache["sub"].barrier(),
}


@pytest.mark.parametrize("call", CALLS)
def test_error_of_one_rank_is_the_runs(call):
    """The original error of a rank that raises ends the run, whatever the others wait in, and names the rank."""
    lost = ValueError("lost")

    def program(comm):
        comm.cache["sub"] = comm.split(0, 0)
        if comm.rank == 2:
            raise lost
        CALLS[call](comm)

    with pytest.raises(ValueError, match="lost") as caught:
        rote.run(program, 4)
    assert caught.value is lost and lost.__notes__ == ["raised on rank 2 of 4"]


def test_lowest_failing_rank_wins():
    """Of several errors that ranks raise on their own, the lowest rank's is raised."""

    def program(comm):
        if comm.rank == 0:
            comm.barrier()
        time.sleep(0.02 * (4 - comm.rank))
        raise KeyError(comm.rank)

    with pytest.raises(KeyError, match="1") as caught:
        rote.run(program, 4)
    assert caught.value.__notes__ == ["raised on rank 1 of 4"]


def test_consequences_are_dropped():
    """What a released rank raises on its way out is not the run's error, nor can it catch the release by accident."""
    passed = []

    def program(comm):
        if comm.rank == 1:
            time.sleep(0.05)
            raise ValueError("first")
        try:
            comm.barrier()
        except Exception:
            passed.append("a release is no Exception")
        finally:
            raise RuntimeError("on the way out")

    with pytest.raises(ValueError, match="first"):
        rote.run(program, 3)
    assert passed == []


def test_agreed_error_keeps_its_traceback():
    """Where the ranks agree on an error, the run raises the one of the rank that has its traceback."""

    def deep():
        raise LookupError("deep")

    def program(comm):
        with collective_errors(comm):
            if comm.rank == 2:
                deep()

    with pytest.raises(LookupError, match="deep") as caught:
        rote.run(program, 4)
    assert caught.traceback[-1].name == "deep" and caught.value.__notes__ == ["raised on rank 2 of 4"]


def test_system_exit_of_a_rank_ends_the_run():
    """SystemExit is not agreed on: it ends the run at once."""

    def program(comm):
        with collective_errors(comm):
            if comm.rank == 1:
                sys.exit(3)

    with pytest.raises(SystemExit) as caught:
        rote.run(program, 3)
    assert caught.value.code == 3


def test_different_calls_are_refused():
    """Ranks that make different calls are told which rank called what."""
    with pytest.raises(CommError, match=r"rank 0 bcast from 0, rank 1 barrier, rank 2 barrier.*\n.*same order"):
        rote.run(lambda comm: comm.barrier() if comm.rank else comm.bcast_in_place(np.zeros(2), 0), 3)
    with pytest.raises(CommError, match="rank 0 bcast from 0, rank 1 bcast from 1"):
        rote.run(lambda comm: comm.bcast_in_place(np.zeros(2), comm.rank), 2)
    with pytest.raises(CommError, match="allreduce sum, rank 1 allreduce max"):
        rote.run(lambda comm: comm.allreduce_in_place(np.zeros(2), "max" if comm.rank else "sum"), 2)


OLD = {
    'allreduce(u, "max")': (lambda comm, u: comm.allreduce(u, "max"), "allreduce"),
    'allreduce(u, op="sum")': (lambda comm, u: comm.allreduce(u, op="sum"), "allreduce"),
    'reduce(u, "sum", 0)': (lambda comm, u: comm.reduce(u, "sum", 0), "reduce"),
    'Allreduce(u, u, "mean")': (lambda comm, u: comm.Allreduce(u, u, "mean"), "allreduce"),
}


@pytest.mark.parametrize("call", OLD)
def test_an_old_spelling_is_refused_and_the_array_is_as_it_was(call):
    """Rote's own calls had mpi4py's names: the texts of their operations are refused, and both ways to go are named."""
    made, own = OLD[call]

    def program(comm):
        u = np.arange(3.0) + comm.rank
        with pytest.raises(CommError, match=rf"(?s)op=MPI.MAX.*comm\.{own}_in_place\(array, .max."):
            made(comm, u)
        comm.barrier()
        return u.tolist()

    for ranks in (1, 2):
        assert rote.run(program, ranks)[-1] == [ranks - 1, ranks, ranks + 1]


MISFITS = {
    "no operation of Rote's": (lambda comm: comm.allreduce_in_place(np.ones(2), "mean"), "\"prod\", not 'mean'"),
    "different calls": (
        lambda comm: comm.allgather(0) if comm.rank else comm.bcast(0),
        "rank 0 bcast from 0, rank 1 all",
    ),
    "different roots": (lambda comm: comm.gather(0, root=comm.rank), "rank 0 gather to 0, rank 1 gather to 1"),
    "different operations": (
        lambda comm: comm.Allreduce(np.ones(2), np.ones(2), np.maximum if comm.rank else np.add),
        "rank 0 Allreduce by add, rank 1 Allreduce by maximum",
    ),
    "no such root": (lambda comm: comm.bcast(0, root=2), "no rank 2 of 2"),
    "too few objects": (lambda comm: comm.scatter([1]), "one object to each of 2 ranks, not 1"),
    "nothing to scatter": (lambda comm: comm.scatter(None), "not None"),
    "sizes": (lambda comm: comm.Allreduce(np.ones(2 + comm.rank), np.ones(2 + comm.rank)), "2 float64, for 3"),
    "dtypes": (lambda comm: comm.Bcast(np.ones(2, "f4" if comm.rank else "f8")), "2 float32, for 2 float64"),
    "parts": (lambda comm: comm.Alltoall(np.ones(3), np.ones(3)), "no equal parts for 2"),
    "gaps": (lambda comm: comm.Bcast(np.ones(6)[::2]), "an array with gaps"),
    "no buffer": (lambda comm: comm.Allgather(None, np.ones(2)), "not None"),
    "no operation on buffers": (lambda comm: comm.Allreduce(np.ones(2), np.ones(2), max), "MPI's SUM, PROD"),
}


@pytest.mark.parametrize("fault", MISFITS)
def test_what_does_not_fit_in_mpi4pys_calls_is_refused(fault):
    """In-process ranks refuse what hangs or is undefined under MPI, and say what is wrong."""
    call, text = MISFITS[fault]
    with pytest.raises(CommError, match=text):
        rote.run(call, 2)


def test_objects_that_cannot_be_pickled_are_refused_as_under_mpi():
    """Every rank gets its own copy of an object, so it must be one that can be pickled."""
    with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
        rote.run(lambda comm: comm.bcast(lambda: None), 2)


PLAN = rote.compile("block[(0)] -> [()]", shape=8, grid=2)


def test_the_line_of_a_call_that_one_rank_makes_alone_is_named():
    """A plan that moves calls the communicator by itself: the error names the line of the program."""

    def program(comm, wait):
        move = bind(PLAN, comm)
        if comm.rank == 1:
            move(np.zeros(4))
        elif wait:
            comm.barrier()

    line = r"`move\(np\.zeros\(4\)\)` \(test_runtime_local\.py:\d+\)"
    with pytest.raises(CommError, match=rf"rank 1 of 2 waits in {line} for rank 0, which has"):
        rote.run(program, 2, (False,))
    with pytest.raises(CommError, match=rf"rank 0 barrier, rank 1 {line}"):
        rote.run(program, 2, (True,))


def test_what_is_left_of_a_run_that_has_ended_says_so():
    """A communicator that is used after its run raises a CommError, and so does a plan that is bound to it."""
    left = []

    def failing(comm):
        left.append((comm, bind(PLAN, comm)))
        comm.barrier()
        raise ValueError("lost")

    with pytest.raises(ValueError, match="lost"):
        rote.run(failing, 2)
    for comm, move in (*rote.run(lambda comm: (comm, bind(PLAN, comm)), 2), *left):
        for use in (comm.barrier, lambda comm=comm: comm.allgather(1), lambda move=move: move(np.zeros(4))):
            with pytest.raises(CommError, match=r"run of rote\.run .* has ended"):
                use()


@pytest.mark.parametrize("late", (0.0, 0.05))
def test_rank_that_returned_is_named(late):
    """A rank that returns while others wait for it, or will, ends the run."""

    def program(comm):
        if comm.rank == 1:
            time.sleep(0.05 - late)
            return
        time.sleep(late)
        comm.barrier()

    with pytest.raises(CommError, match=r"of 3 waits? in barrier for rank 1, which has returned"):
        rote.run(program, 3)


def test_ranks_that_wait_for_each_other_are_named():
    """Nobody returned, nobody raised, and every rank waits in another communicator: refused, not hung."""

    def program(comm):
        pair = comm.split(comm.rank // 2, 0)
        (comm if comm.rank in (0, 3) else pair).barrier()

    with pytest.raises(CommError, match="every rank waits for another: rank 0 in barrier with ranks 1, 2, 3"):
        rote.run(program, 4)


def test_counts_that_differ_are_named():
    """A rank that expects another number of elements than is sent says so."""
    with pytest.raises(CommError, match="expects 3 elements from rank 1, which sends 2"):
        rote.run(lambda comm: comm.allgatherv(np.zeros(2), np.zeros(5), (2, 3)), 2)


def test_reductions_do_not_depend_on_timing():
    """Reductions go in rank order: floats come out bit for bit as a loop over the ranks gives them."""

    def program(comm):
        data = np.random.default_rng(comm.rank).standard_normal(1001) * 10.0 ** (comm.rank * 3)
        mine = data.copy()
        comm.allreduce_in_place(mine, "sum")
        return data, mine

    results = rote.run(program, 6)
    total = results[0][0].copy()
    for data, _ in results[1:]:
        total += data
    for _, mine in results:
        assert mine.tobytes() == total.tobytes()


def test_nothing_is_left():
    """Communicators, what they cache and what the ranks held go with the run, also with one that failed."""
    before = threading.enumerate()  # other tests may have ranks that wait for their next part
    gc.collect()
    gc.disable()
    try:
        seen = []

        def program(comm, fail):
            comm.cache["sub"] = comm.split(comm.rank % 2, 0)
            seen.extend((weakref.ref(comm), weakref.ref(comm.cache["sub"])))
            comm.barrier()
            if fail and comm.rank == 1:
                raise ValueError("late")
            comm.barrier()

        rote.run(program, 4, (False,))
        assert len(seen) == 8 and [each() for each in seen] == [None] * 8
        with pytest.raises(ValueError, match="late"):
            rote.run(program, 4, (True,))
    finally:
        gc.enable()
    gc.collect()
    assert len(seen) == 16 and [each() for each in seen] == [None] * 16
    left = [thread for thread in threading.enumerate() if thread not in before]
    assert not [thread for thread in left if thread.name.startswith("rote rank")]


@pytest.mark.slow
def test_twenty_thousand_collectives_and_splits_leave_nothing():
    """A long run keeps no meeting and no dropped split."""

    def teams(comm):
        gc.collect()
        comm.barrier()
        return sum(isinstance(each, local.ThreadedRanks) for each in gc.get_objects()) if comm.rank == 0 else 0

    def program(comm):
        before = teams(comm)
        for _ in range(2_000):
            comm.split(0, 0).barrier()
        return teams(comm) - before

    assert rote.run(program, 2)[0] <= 2


@pytest.mark.perf
def test_barrier_is_quick():
    """Four ranks meet in a few times what four threads take to meet at Python's own barrier (10 to 20 µs)."""

    def meetings(meet):
        times = []
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(20):
                meet()
            times.append(time.perf_counter() - start)
        return min(times)

    bare = threading.Barrier(4)
    ours, theirs = zip(*rote.run(lambda comm: (meetings(comm.barrier), meetings(bare.wait)), 4), strict=True)
    assert min(ours) < 10 * min(theirs)


def test_interrupt_ends_the_run():
    """Ctrl-C ends a run whose ranks wait or compute, promptly, as KeyboardInterrupt in the caller."""
    code = """
    import signal, time, rote
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is started to ignore it
    def program(comm):
        if comm.rank == 0:
            print("ready", flush=True)
            while True:
                time.sleep(0.01)
        comm.barrier()
    try:
        rote.run(program, 3)
    except KeyboardInterrupt:
        print("interrupted")
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True) as started:
        try:
            assert started.stdout.readline() == "ready\n"
            time.sleep(0.1)
            started.send_signal(signal.SIGINT)
            out, _ = started.communicate(timeout=20)
        finally:
            started.kill()
    assert (out, started.returncode) == ("interrupted\n", 0)


def test_signals_are_heard_whichever_thread_they_reach():
    """A handler runs soon, though the thread that waits for the ranks is not the one that the signal wakes."""
    heard = []

    def program(comm):
        if comm.rank == 0:
            time.sleep(0.1)  # until the caller waits for its ranks
            signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        until = time.monotonic() + 30
        while not heard and time.monotonic() < until:
            time.sleep(0.01)
        return bool(heard)

    before = signal.signal(signal.SIGUSR1, lambda number, frame: heard.append(number))
    try:
        assert rote.run(program, 2) == [True, True]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_interrupt_waits_for_all_ranks_together(monkeypatch):
    """Ranks that go on computing delay an interrupt by a moment in all, not by one each; here of 20 ranks."""
    ended, started = threading.Event(), threading.Barrier(21)
    waits: list[float] = []
    join = threading.Thread.join

    def joined(thread, timeout=None):
        """A rank does not end within any wait after the interrupt, and the clock goes on by as much."""
        if timeout in (None, local._SLICE):
            join(thread, timeout)
        else:
            waits.append(timeout)

    monkeypatch.setattr(threading.Thread, "join", joined)
    monkeypatch.setattr(local, "time", SimpleNamespace(monotonic=lambda: sum(waits)))

    def program(comm):
        started.wait()
        ended.wait()

    def interrupt():
        started.wait()
        time.sleep(0.1)  # until the caller waits for its ranks
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    helper = threading.Thread(target=interrupt)
    helper.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            rote.run(program, 20)
        assert waits == [local._MOMENT] + [0.0] * 19
    finally:
        signal.signal(signal.SIGINT, before)
        ended.set()
        helper.join()
