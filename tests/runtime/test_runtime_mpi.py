"""MPI ranks: conformance, the life of communicators, errors that end the job, and the way into MPI's world."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.mpi
PROGRAM = Path(__file__).with_name("comm_conformance.py")


def test_conforms(job, tmp_path):
    """MPI ranks do what every communicator must do."""
    done = job.run(PROGRAM, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"checks on <MPI rank 0 of {job.ranks}>" in done.stdout


def test_mpi4pys_programs_run_on_every_communicator(job):
    """A program for mpi4py has equal results on MPI's world, on the communicator of `rote.run`, and on threads."""
    done = job.run(PROGRAM.with_name("mpi4py_program.py"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"52 results on {job.ranks} ranks"]


LIVES = """
import gc
from mpi4py import MPI
from rote.errors import CommError
from rote.runtime import as_comm, world
from rote.runtime.comm.mpi import set_abort

def refused(call, part):
    try:
        call()
    except CommError as error:
        assert part in str(error), error
    else:
        raise AssertionError(f"not refused: {part}")

# One communicator of the user's has one wrapper, over a communicator of its own.
comm = world()
assert comm.handle != MPI.COMM_WORLD
assert comm is as_comm(MPI.COMM_WORLD) is as_comm(MPI.Intracomm(MPI.COMM_WORLD))
for turn in range(20_000):
    assert as_comm(None) is comm and as_comm(MPI.COMM_WORLD) is comm and world() is comm
    if "rows" not in comm.cache:
        comm.cache["rows"] = comm.split(comm.rank % 2, 0)
    comm.cache["rows"].rank

# Freed with the user's communicator, splits of splits included, kept ones and dropped ones.
kept = []
for turn in range(5_000):
    user = MPI.COMM_WORLD.Dup()
    ours = as_comm(user)
    assert as_comm(user) is ours
    if turn % 10 == 0:
        ours.cache["part"] = ours.split(0, 0)
        ours.cache["inner"] = ours.cache["part"].split(0, 0)
        ours.split(0, 0)
        kept = [ours.cache["inner"], ours]
    user.Free()
for each in kept:
    refused(each.barrier, "has been freed")
    refused(lambda: each.split(0, 0), "has been freed")

# A split nobody holds is freed: there are only some thousand communicators in MPICH.
for turn in range(3_000):
    comm.split(0, 0)
assert len(comm._family) < 10

refused(lambda: as_comm(MPI.COMM_NULL), "COMM_NULL")
refused(lambda: as_comm(MPI.GROUP_EMPTY), "Group")
if comm.size > 1:
    half = MPI.COMM_WORLD.Split(comm.rank % 2, 0)
    inter = half.Create_intercomm(0, MPI.COMM_WORLD, 1 - comm.rank % 2)
    refused(lambda: as_comm(inter), "Intercomm")
    cart = MPI.COMM_WORLD.Create_cart([comm.size])
    assert as_comm(cart).size == comm.size and as_comm(cart) is not comm
set_abort(SystemExit(0))
print("lived")
"""


@pytest.mark.parametrize("ranks", (1, pytest.param(2, marks=pytest.mark.slow)))
def test_communicators_live_and_die_with_the_users(mpirun, ranks):
    """One wrapper per communicator for ever; freed with it; nothing leaks over 20,000 uses and 5,000 lives."""
    done = mpirun(ranks, LIVES, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("lived") == ranks


GARBAGE = """
import gc
from rote.runtime import world
comm = world()
if {disabled} and comm.rank == 0:
    gc.disable()
for turn in range({turns}):
    part = comm.split(0, 0)
    part.cache["itself"] = part
    if not {disabled}:
        gc.set_threshold(turn % 200 + 1)  # so that each allocation of what follows has its turn
        assert part.nodes() == comm.nodes()
print("freed")
"""


@pytest.mark.parametrize(("disabled", "turns"), ((False, 400), pytest.param(True, 2_300, marks=pytest.mark.slow)))
def test_communicators_in_cycles_are_freed_whenever_garbage_is_collected(mpirun, disabled, turns):
    """The collector may come in the middle of mpi4py's calls, or never on a rank that makes more than MPI has."""
    done = mpirun(2, GARBAGE.format(disabled=disabled, turns=turns))
    assert (done.returncode, done.stdout.count("freed")) == (0, 2), done.stderr


ENDS = """
import sys
import numpy as np
from rote.runtime import world
from rote.runtime.comm.mpi import set_abort
comm = world()
row = comm.split(0, 0)
if comm.rank == comm.size - 1:
    {end}
{wait}
"""
WAITS = {
    "barrier": "row.barrier()",
    "allreduce": "comm.allreduce_in_place(np.zeros(100_000), 'sum')",
    "alltoallv": "k = [50_000] * comm.size; comm.alltoallv(np.zeros(sum(k)), k, np.zeros(sum(k)), k)",
    "split": "comm.split(0, 0)",
}


@pytest.mark.parametrize("wait", WAITS)
def test_uncaught_error_ends_the_job(mpirun, wait):
    """An exception that nobody catches on one rank ends all ranks, whatever they wait in, with its traceback shown."""
    done = mpirun(3, ENDS.format(end="raise ValueError('lost block')", wait=WAITS[wait]))
    assert done.returncode != 0
    assert "ValueError: lost block" in done.stderr


ERRORS = """
import sys
import rote
from rote.runtime import collective_errors, world
from rote.runtime.comm import mpi
comm = world()
last = comm.rank == comm.size - 1
mpi._MOMENT = {moment}
{body}
comm.barrier()
"""
ENDINGS = {
    "all ranks raise it": ("rote.parse('nonsense')", 1, ["rote.NotationError"]),
    "all raise what one has raised": (
        "with collective_errors(comm):\n    if last: raise ValueError('lost block')",
        2,  # rank 2's own, as the cause of rank 0's
        ["ValueError: lost block"],
    ),
    "one raises it alone": ("if last: raise ValueError('lost block')", 1, ["ValueError: lost block", "rank 2 of 3"]),
    "each raises its own": ("raise ValueError(f'mine {comm.rank}')", 3, [f"ValueError: mine {n}" for n in range(3)]),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_all_ranks_raise_is_printed_once(mpirun, ending):
    """Rank 0 prints the traceback of an error by which all ranks end, the others one line; any other one is printed."""
    body, tracebacks, texts = ENDINGS[ending]
    moment = 1 if ending.startswith("one") else 20  # seconds, in which all ranks of a busy machine come to their ends
    done = mpirun(3, ERRORS.format(body=body, moment=moment))
    assert done.returncode != 0
    assert done.stderr.count("Traceback (most recent call last)") == tracebacks, done.stderr
    for text in texts:
        assert text in done.stderr
    assert done.stderr.count("as rank 0") == (2 if ending.startswith("all") else 0), done.stderr


def test_set_abort_ends_the_job_with_the_status_given(mpirun):
    """A program that ends by SystemExit on one rank can end the others too, with its own status."""
    end = "error = SystemExit(7); set_abort(error); raise error"
    assert mpirun(2, ENDS.format(end=end, wait=WAITS["barrier"])).returncode == 7


def test_error_caught_on_one_rank_is_no_end(mpirun):
    """Only what nobody catches ends the job; errors that all agree on are caught like any other."""
    code = """
    from rote.runtime import collective_errors, world
    comm = world()
    try:
        with collective_errors(comm):
            1 / comm.rank
    except ZeroDivisionError as error:
        comm.barrier()
        print(f"{comm.rank} {error.__notes__}")
    """
    done = mpirun(3, textwrap.dedent(code))
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [f"{rank} ['raised on rank 0 of 3']" for rank in range(3)]


@pytest.mark.parametrize("job", (2,), indirect=True)
def test_ranks_of_run_inside_mpi_are_their_own_world(job):
    """rote.run works on an MPI rank: world() is the in-process one inside, MPI's outside."""
    code = """
    import rote
    from rote.runtime import world
    inner = rote.run(lambda comm: (world() is comm, world().size), ranks=3, on="threads")
    assert inner == [(True, 3)] * 3 and world().size == 2 and "MPI" in repr(world())
    """
    done = job.run(textwrap.dedent(code))
    assert (done.returncode, done.stderr) == (0, "")


def alone(code: str, **env: str) -> str:
    """Run a program in one process without a launcher; what it prints."""
    outer = ("PMI_", "PMIX_", "OMPI_", "PRTE_", "MPI_LOCAL")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, env={**clean, **env}, capture_output=True, text=True, check=True).stdout.strip()


WORLD = """
import sys
{before}
from rote.errors import CommError
from rote.runtime import world
try:
    print(repr(world()))
except CommError as error:
    print(error)
print([name for name in sys.modules if name == "mpi4py.MPI"])
"""


def test_no_launcher_no_mpi():
    """Without a launcher the world is this process, and no MPI is started."""
    assert alone(WORLD.format(before="")).splitlines() == ["<in-process rank 0 of 1>", "[]"]


def test_launcher_without_mpi4py():
    """A rank among several that has no mpi4py is told how to get it; a single one does without."""
    hide = "sys.modules['mpi4py'] = None"
    assert "pip install mpich" in alone(WORLD.format(before=hide), PMI_SIZE="2", PMI_RANK="0")
    assert "pip install mpich" in alone(WORLD.format(before=hide), PMIX_RANK="0")
    assert "in-process rank 0 of 1" in alone(WORLD.format(before=hide), PMI_SIZE="1", PMI_RANK="0")


def test_launcher_of_another_mpi():
    """Ranks that each see themselves alone are not taken for a job of one: launcher and library do not match."""
    said = alone(WORLD.format(before=""), MV2_COMM_WORLD_SIZE="4")
    assert "started 4 ranks" in said and "different MPIs" in said


def test_mpi_once_imported_is_the_world(mpirun):
    """A program that has imported mpi4py.MPI means MPI, launched or not."""
    code = WORLD.format(before="from mpi4py import MPI")
    assert alone(code).startswith("<MPI rank 0 of 1>")


def readme_program() -> str:
    """The first program of README.md."""
    page = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    return page.split("```python\n")[1].split("```")[0]


@pytest.mark.slow
@pytest.mark.parametrize("job", (4,), indirect=True)
def test_one_program_runs_both_ways(job):
    """README's program prints a line, and once, as `python program.py` and by `mpiexec -n 4 python program.py`."""
    program = readme_program()
    assert "rote.run(program, ranks=4)" in program
    launched = job.run(program + "assert 'MPI' in repr(rote.runtime.world())\n")
    assert (launched.returncode, launched.stderr) == (0, "")
    assert launched.stdout.splitlines() == [alone(program)] and launched.stdout.count("True") == 1


RUNS = """
import numpy as np
import rote
from rote.runtime import world

def refused(call, part):
    try:
        call()
    except rote.CommError as error:
        assert part in str(error), error
    else:
        raise AssertionError(f"not refused: {part}")

def program(comm, word):
    inner = rote.run(lambda own: (own.size, world() is own), ranks=3)
    assert comm is world() and inner == [(3, True)] * 3
    return comm.rank, word, np.full(100, comm.rank)

results = rote.run(program, ranks=2, args=("x",))
assert [(rank, word, block.tolist()) for rank, word, block in results] == [(r, "x", [r] * 100) for r in range(2)]
mine = object.__new__(type("Mine", (), {}))
refused(lambda: rote.run(lambda comm: mine if comm.rank else 1, ranks=2), "what rank 1 returns cannot be sent")
for part in ("has started as 2 ranks", "start it as 4, write ranks=2", 'on="threads" for 4 threads'):
    refused(lambda: rote.run(program, ranks=4, args=("x",)), part)
assert rote.run(lambda comm: "in-process" in repr(comm), ranks=4, on="threads") == [True] * 4
refused(lambda: rote.run(program, ranks=2, on="mpi"), "on is")
print("ran")
"""


@pytest.mark.parametrize("job", (2,), indirect=True)
def test_run_takes_the_launchers_ranks(job):
    """Under a launcher each process runs the program once and gets all results; another number of ranks is refused."""
    done = job.run(RUNS)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "ran\n" * 2)


def test_run_on_one_launched_rank_is_on_threads(mpirun):
    """One launched process is no reason to refuse threads; nor is a process that has imported MPI by itself."""
    code = "import rote\nprint(rote.run(lambda comm: (comm.rank, comm.size), ranks=2))"
    assert mpirun(1, code).stdout == alone("from mpi4py import MPI\n" + code) + "\n" == "[(0, 2), (1, 2)]\n"


BY_ONE = """
import os
{before}
import sys
import rote

rank = next(int(os.environ[name]) for name in ("PMI_RANK", "OMPI_COMM_WORLD_RANK") if name in os.environ)
if rank == 2:
    for ranks in (1, 2, 3, 5):
        try:
            rote.run(lambda comm: comm.size, ranks=ranks)
        except rote.CommError as error:
            assert "has started as 4 ranks" in str(error) and f'on="threads" for {{ranks}} threads' in str(error), error
        else:
            raise AssertionError(f"not refused: {{ranks}}")
    print(rote.run(lambda comm: comm.size, ranks=2, on="threads"), "mpi4py.MPI" in sys.modules)
"""


@pytest.mark.parametrize("before", ["", "from mpi4py import MPI"])
def test_a_run_of_one_process_alone_is_refused(mpirun, before):
    """Law: a process that alone calls `run` for another number of ranks waits for nobody, with MPI or without it."""
    done = mpirun(4, BY_ONE.format(before=before))
    assert (done.returncode, done.stderr, done.stdout) == (0, "", f"[2, 2] {bool(before)}\n")


FUTURES = """
from mpi4py import MPI
from mpi4py.futures import MPICommExecutor
import rote

def work(on):
    try:
        return rote.run(lambda comm: comm.size, ranks=2, on=on)
    except rote.CommError as error:
        return str(error)

with MPICommExecutor(MPI.COMM_WORLD, root=0) as pool:
    if pool is not None:
        said, done = pool.map(work, ["auto", "threads"])
        assert 'on="threads" for 2 threads in each process' in said, said
        print(done)
"""


def test_workers_of_futures_learn_to_run_threads(mpirun):
    """Law: a worker of mpi4py.futures is told what to write, and what it is told works."""
    done = mpirun(3, FUTURES)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "[2, 2]\n")
