"""Several threads of a process that is one rank: all use its communicator at once, and each gets its own results."""

from __future__ import annotations

import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import rote
from rote import DistTensor
from rote.runtime import world

THREADS = 4
SHAPES = ((4, 6), (5, 3, 2), (12,))


@pytest.fixture(autouse=True)
def _often():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def work(thread, tensors, transforms, number):
    """So many calls of one thread, on tensors that all threads have; how many came out right."""
    right = 0
    for turn in range(number):
        n = (turn + thread) % len(SHAPES)
        array, x, spectrum = tensors[thread][n]
        kind = turn // len(SHAPES) % 4
        if kind == 0:
            right += near(rote.fft.fftn(x).local, spectrum)
        elif kind == 1:
            right += near(transforms[n].forward(x).local, spectrum)
        elif kind == 2:
            right += near(rote.fft.ifftn(transforms[n].forward(x)).local, array)
        else:
            there = x.redistribute(f"[{'(),' * (x.ndim - 1)}(0)]")
            right += np.array_equal(there.local, array)
    return right


def near(got, want):
    return got.shape == want.shape and abs(got - want).max() < 1e-12


def prepared():
    """Per thread and shape an array, its tensor, which is made here, and NumPy's spectrum of it."""
    rng = np.random.default_rng(5)
    tensors = []
    for _ in range(THREADS):
        arrays = [rng.standard_normal(shape) + 1j * rng.standard_normal(shape) for shape in SHAPES]
        layouts = [f"block[(0){',()' * (array.ndim - 1)}]" for array in arrays]
        tensors.append(
            [
                (array, DistTensor.from_global(array, layout), np.fft.fftn(array))
                for array, layout in zip(arrays, layouts, strict=True)
            ]
        )
    return tensors, [rote.fft.FFT(shape, x.layout) for shape, (_, x, _) in zip(SHAPES, tensors[0], strict=True)]


@pytest.mark.parametrize("number", (1_000, pytest.param(5_000, marks=pytest.mark.slow)))
def test_threads_get_their_own_results(number):
    """4,000, or 20,000, small transforms and redistributions on four threads of one process: each as NumPy's."""
    tensors, transforms = prepared()
    with ThreadPoolExecutor(THREADS) as pool:
        done = [pool.submit(work, thread, tensors, transforms, number) for thread in range(THREADS)]
        assert [each.result() for each in done] == [number] * THREADS


def test_threads_that_begin_together_have_one_world():
    """What the first threads make lies on one communicator, and may meet."""
    begin = threading.Barrier(THREADS)

    def make(value):
        begin.wait()
        return DistTensor.from_global(np.full((3, 2), value), "block[(0),()]")

    with ThreadPoolExecutor(THREADS) as pool:
        made = list(pool.map(make, range(THREADS)))
    assert all(x.comm is world() for x in made)
    assert (sum(made[1:], start=made[0])).to_global().tolist() == [[6, 6]] * 3


def test_a_thread_leaves_its_programs_to_the_next():
    """One after the other, 50 threads bind what they call once in all; and so does the one that made the tensor."""
    x = DistTensor.from_global(np.arange(6.0).reshape(2, 3), "block[(0),()]", rote.run(lambda comm: comm, ranks=1)[0])
    seen = []

    def call():
        rote.fft.fftn(x)
        seen.append(id(next(iter(x.comm.cache["walks"].values()))))

    for _ in range(50):
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    call()
    assert len(seen) == 51 and len(set(seen)) == 1


@pytest.mark.mpi
@pytest.mark.parametrize("job", (1,), indirect=True)
def test_threads_of_one_mpi_rank(job):
    """The same where the one rank is MPI's."""
    code = """
    import sys
    from concurrent.futures import ThreadPoolExecutor
    from mpi4py import MPI
    sys.path[:0] = sys.argv[1:]
    from test_fft_threads import THREADS, prepared, work
    tensors, transforms = prepared()
    assert "MPI" in repr(tensors[0][0][1].comm)
    with ThreadPoolExecutor(THREADS) as pool:
        done = [pool.submit(work, thread, tensors, transforms, 500) for thread in range(THREADS)]
        print([int(each.result()) for each in done])
    """
    done = job.run(textwrap.dedent(code), Path(__file__).parent)
    assert (done.stdout, done.stderr, done.returncode) == (f"{[500] * THREADS}\n", "", 0)


ON_THREADS = """
import sys
import threading
import mpi4py
level = mpi4py.rc.thread_level = sys.argv[1]
import numpy as np
import rote

def answer(call):
    try:
        return call()
    except rote.CommError as error:
        assert "mpi4py.rc.thread_level" in str(error), error
        return "refused"

def on_another_thread(call):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(answer(call)))
    thread.start()
    thread.join()
    return answers[0]

x = rote.DistTensor.from_global(np.arange(8.0), "block[(0)]")
starts = "refused" if level == "single" else [2, 2]
calls = "refused" if level in ("single", "funneled") else 28.0
assert answer(lambda: rote.run(lambda comm: comm.size, ranks=2, on="threads")) == starts
assert answer(lambda: rote.run(lambda comm: comm.size, ranks=1, on="threads")) == [1]
made = answer(lambda: rote.fft.FFT(8, "block[(0)]", threads=2).forward(x.astype("c16")).shape)
assert made == ("refused" if level == "single" else (8,)), made
assert rote.fft.FFT(8, "block[(0)]", threads=1).forward(x.astype("c16")).shape == (8,)
assert on_another_thread(lambda: float(x.sum())) == calls
assert on_another_thread(lambda: rote.run(lambda comm: comm.size, ranks=1, on="threads")) == [1]
assert float(x.sum()) == 28.0
"""


@pytest.mark.mpi
@pytest.mark.parametrize("level", ["single", "funneled", "serialized", "multiple"])
def test_threads_that_mpi_was_not_started_for_are_refused(mpirun, level):
    """Law: MPI's level says whether there may be several threads, and whether others than the first may send."""
    done = mpirun(2, ON_THREADS, level)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")
