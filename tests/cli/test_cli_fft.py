"""`rote fft` on in-process ranks: the file that it writes is numpy.fft's, and its phases are the time that it takes."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from hurry import hurry
from runner import run

import rote
import rote.cli.transform
import rote.fft.plan
import rote.io.npy
import rote.tensor.files
from rote.cli import output
from rote.cli.options import refuse_too_many
from rote.cli.output import Watch, progress
from rote.cli.transform import available_memory, largest_error
from rote.host import memory
from rote.runtime import Comm

RNG = np.random.default_rng(7)
REAL = RNG.standard_normal((6, 7, 9))
COMPLEX = REAL + 1j * RNG.standard_normal(REAL.shape)
HALF = np.fft.rfftn(REAL)


@pytest.fixture(autouse=True)
def in_a_folder() -> None:
    """Each test has real.npy, complex.npy and half.npy, and no other file."""
    for name, array in (("real", REAL), ("complex", COMPLEX), ("half", HALF)):
        np.save(f"{name}.npy", array)


@pytest.mark.parametrize("ranks", ["1", "3"])
@pytest.mark.parametrize("name", ["in.npy", "in.zarr", "in.h5", "in.nc", "in.xdmf", "in.nxs"])
def test_every_format_is_read(ranks: str, name: str) -> None:
    """Law: of any file that `rote.load` reads, the transform is that of its elements, and --check finds it right."""
    written = "in.h5" if name == "in.nxs" else name
    rote.save(written, rote.DistTensor.from_global(REAL, "block[(0),(),()]"))
    Path(written).rename(name)

    for target in ("out.npy", "out.h5", "out.zarr"):
        done = run("fft", name, target, "--ranks", ranks, "--check")
        assert done.exit_code == 0 and "below 1e-10" in done.output, done.output
        assert largest_error(rote.load(target).to_global(), HALF) < 1e-12


def test_packed_numbers() -> None:
    """Packed numbers are transformed as stored, of which a line warns, or by --decode as what they stand for."""
    packed = np.arange(-12, 12, dtype="i2").reshape(4, 6)
    with h5py.File("packed.nc", "w") as file:
        file["t"] = packed
        file["t"].attrs.update(scale_factor=0.5, add_offset=np.float64(273))

    for options, values, lines in (((), packed, 1), (("--decode",), packed * 0.5 + 273, 0)):
        done = run("fft", "packed.nc", "out.npy", "--ranks", "2", "--check", "--force", *options)
        assert done.exit_code == 0 and done.stderr.count("--decode unpacks them\n") == lines, done.output
        np.testing.assert_allclose(np.load("out.npy"), np.fft.rfftn(values), atol=1e-9)

    done = run("fft", "real.npy", "out.npy", "--decode", "--force")
    assert done.exit_code == 0 and "Warning" not in done.stderr


@pytest.mark.parametrize("name", ["in.h5", "in.zarr"])
def test_one_tensor_and_one_step_of_a_file(name: str) -> None:
    """--name and --step choose as in `rote.load`; without a name, a file of several tensors lists them."""
    x = rote.DistTensor.from_global(REAL, "block[(0),(),()]")
    for step in (0, 4):
        rote.save(name, {"u": step * x, "v": x + step}, step=step)

    for options, expected in (("--name v", REAL + 4), ("--name u --step 0", 0 * REAL), ("--step 0 --name v", REAL)):
        done = run("fft", name, "out.npy", "--ranks", "2", "--force", "--check", *options.split())
        assert done.exit_code == 0, done.output
        np.testing.assert_allclose(np.load("out.npy"), np.fft.rfftn(expected), atol=1e-12)

    for options, message in (
        ("", "step 4, holds 'u', 'v'\nwrite --name …"),
        ("--name w", "no tensor 'w': it holds 'u', 'v'"),
        ("--name u --step 3", "has the steps 0, 4, not 3"),
    ):
        done = run("fft", name, "none.npy", "--ranks", "2", *options.split())
        assert done.exit_code == 1 and message in done.stderr and not Path("none.npy").exists()


@pytest.mark.parametrize(
    ("options", "ranks", "told"),
    [
        ("--layout block[(1),(2),()]", "4", "over grid mode 0: 2, block[(0),(1),()]"),
        ("--layout [(2),(),(1)]", "4", "over grid mode 0: 2, [(1),(),(0)]"),
        ("--layout [(3),(),()]", "4", "over grid modes 0, 1: 4, [(0),(),()]"),
        ("--layout block[(1),(),()]", "2", "over grid mode 0: 2, block[(0),(),()]"),
        ("--layout block[(1),(),()]", "1", ""),  # nothing is stored twice
        ("--layout block[(1),(2),()] --grid 2x2x1", "4", ""),  # on purpose
        ("--layout [(),(),()]", "4", ""),
        ("--layout block[(1),(0),()]", "4", ""),
        ("", "4", ""),
    ],
)
def test_a_grid_mode_that_a_layout_leaves_out(options: str, ranks: str, told: str) -> None:
    """Where Rote chooses the grid, a layout that jumps over a grid mode is warned of on one line."""
    done = run("fft", "real.npy", "out.npy", "--ranks", ranks, *options.split())
    assert (done.exit_code, done.stderr.count("\n")) == (0, bool(told)), done.output
    modes, _, rest = told.partition(": ")
    copies, _, right = rest.partition(", ")
    if told:
        assert f"is replicated {modes}: each block is stored on {copies} ranks; write {right}, or" in done.stderr
        assert f"  the input is replicated {modes}: each block is stored on {copies} ranks\n" in done.stdout


@pytest.mark.parametrize("ranks", ["1", "2", "4", "6"])
@pytest.mark.parametrize(
    ("source", "options", "expected"),
    [
        ("real", "", HALF),
        ("real", "--real --algorithm pencil", HALF),
        ("real", "--complex", np.fft.fftn(REAL)),
        ("real", "--axes 2,0 --norm ortho", np.fft.rfftn(REAL, axes=(2, 0), norm="ortho")),
        ("complex", "", np.fft.fftn(COMPLEX)),
        ("complex", "--axes -1", np.fft.fftn(COMPLEX, axes=(-1,))),
        ("complex", "--output [(),(),(0)] --algorithm slab", np.fft.fftn(COMPLEX)),
        ("complex", "--inverse --norm forward", np.fft.ifftn(COMPLEX, norm="forward")),
        ("complex", "--layout [(),(0),()] --inverse", np.fft.ifftn(COMPLEX)),
        ("half", "--inverse --real --length 9", REAL),
        ("half", "--inverse --real --length 8 --norm ortho", np.fft.irfftn(HALF, norm="ortho")),
    ],
)
def test_the_file_is_what_numpy_says(ranks: str, source: str, options: str, expected: np.ndarray) -> None:
    """For any ranks and options the result is one valid .npy file with what numpy.fft computes, and --check agrees."""
    done = run("fft", f"{source}.npy", "out.npy", "--ranks", ranks, "--check", *options.split())
    assert done.exit_code == 0, done.output
    found = np.load("out.npy")
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    assert ", below 1e-10\n" in done.output
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["complex.npy", "half.npy", "out.npy", "real.npy"]


SHAPES = [(1,), (5,), (2, 3), (1, 1, 1), (3, 1, 2), (2, 3, 4, 5)]  # any order; more ranks than points as well
DTYPES = ["?", "i2", "f4", "f8", "g", "F", "D", "G", ">f8"]


@pytest.mark.parametrize(("shape", "dtype"), [*((shape, "f8") for shape in SHAPES), *((REAL.shape, d) for d in DTYPES)])
def test_shapes_and_dtypes(shape: tuple[int, ...], dtype: str) -> None:
    """Every dtype that numpy.fft takes; single precision stays single and is checked to 1e-4."""
    array = (10 * RNG.standard_normal(shape)).astype(dtype)
    np.save("in.npy", array)
    done = run("fft", "in.npy", "out.npy", "--ranks", 4, "--check")
    assert done.exit_code == 0, done.output
    expected = np.fft.rfftn(array) if array.dtype.kind != "c" else np.fft.fftn(array)
    assert np.load("out.npy").dtype.char == ("F" if dtype in "f4F" else "G" if dtype in "gG" else "D")
    assert largest_error(np.load("out.npy"), expected) < (1e-5 if dtype in "f4F" else 1e-12)
    assert f"below {'1e-04' if dtype in 'f4F' else '1e-10'}" in done.output


def test_what_is_printed() -> None:
    """The input, the plan as `print(FFT)` says it, the output, then times; and nothing else."""
    done = run("fft", "real.npy", "out.npy", "--layout", "block[(0),(1),()]", "--ranks", "4")
    plan = rote.run(lambda comm: str(rote.fft.FFT(REAL.shape, "block[(0),(1),()]", comm=comm, dtype="f8")), 4)[0]
    head = "real.npy: (6, 7, 9) float64, real, so half a spectrum as by numpy.fft.rfftn"
    assert done.output.startswith(f"{head}\n{plan}\nout.npy: (6, 7, 5) complex128, 3.3 KiB\n\n")
    times = ["start", "plan", "read", "transform", "write", "total"]
    assert [line.split()[0] for line in done.output.splitlines()[-6:]] == times
    for inverse in ((), ("--inverse",)):  # with a change of layout at the end there is one more
        done = run("fft", "complex.npy", "out.npy", *inverse, "--output", "[(),(),(0)]", "--ranks", 2, "--force")
        assert [line.split()[0] for line in done.output.splitlines()[-7:]] == [*times[:4], "output", *times[4:]]


@pytest.mark.parametrize("inverse", [(), ("--inverse",)])
@pytest.mark.parametrize(("shape", "ranks"), [((32,), 4), ((64,), 2), ((16,), 4), ((81,), 3)])
def test_files_are_read_in_blocks(shape: tuple[int, ...], ranks: int, inverse: tuple[str, ...]) -> None:
    """Without --layout, a file is read in contiguous blocks, even where the model finds a cyclic walk cheaper; with a
    cyclic algorithm, in that one's own layout."""
    array = RNG.standard_normal(shape) + 1j
    np.save("in.npy", array)
    usual = rote.run(lambda comm: rote.fft.FFT(shape, comm=comm).input_layout, ranks)[0]
    assert "block" not in str(usual)  # so that this test can fail
    every = (((), "block["), (("--algorithm", "cyclic"), "["), (("--layout", str(usual)), "["))
    for options, kind in every:
        done = run("fft", "in.npy", "out.npy", "--ranks", str(ranks), "--force", *inverse, *options)
        assert done.exit_code == 0, done.output
        assert done.output.splitlines()[2].strip().startswith(f"{kind}(0)")
        np.testing.assert_allclose(np.load("out.npy"), (np.fft.ifftn if inverse else np.fft.fftn)(array), atol=1e-11)
    assert "blocks, the cheapest" in " ".join(run("fft", "--help").output.split())


@pytest.mark.parametrize("inverse", [False, True])
def test_tuned(inverse: bool) -> None:
    """Timed walks give the same file, and are kept; one thread per rank is never too many."""
    args = ("half.npy", "out.npy", "--inverse", "--real", "--length", "9")
    if not inverse:  # which a slab and a cyclic walk can do
        args = ("real.npy", "out.npy", "--complex", "--layout", "[(),(),(0)]")
    for option, tune in (("--tune", "measure"), ("--effort", "patient")):
        done = run("fft", *args, "--ranks", "3", option, tune, "--force", "--threads", "1", "--check")
        assert (done.exit_code, done.stderr) == (0, "")
        assert ("there and back" in done.output) is not inverse  # the way back is that of the walk
        assert ", below 1e-10\n" in done.output
    np.testing.assert_allclose(np.load("out.npy"), REAL if inverse else np.fft.fftn(REAL), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("cores", "threads", "fits"),
    [
        ([{0}, {0}], 1, True),
        ([{0, 1, 2, 3}, {0, 1, 2, 3}], 2, True),
        ([{0, 1}, {2, 3}], 2, True),
        ([{0, 1}, {0, 1}], 2, False),
        ([{0, 1, 2, 3}, {0}], 2, False),
        ([{0}, {1}], 2, False),
    ],
)
def test_threads_are_no_more_than_cores(
    cores: list[set[int]], threads: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all ranks of a host together, and of each that is bound; all are refused alike, and told what would do."""
    asked = iter(cores)
    monkeypatch.setattr("rote.cli.options.cores", lambda: frozenset(next(asked)))

    def program(comm: Comm) -> str:
        try:
            refuse_too_many(comm, threads)
        except rote.RoteError as error:
            return str(error)
        return ""

    one, other = rote.run(program, 2)
    assert one == other and (one == "") is fits
    assert fits or "2 threads on each of 2 ranks are 4, and" in one


def test_check_refuses_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison is refused before any work when the arrays would not fit; the transform itself is not."""
    monkeypatch.setattr("rote.cli.transform.available_memory", lambda: 10_000)
    done = run("fft", "real.npy", "out.npy", "--check", "--ranks", "2")
    assert done.exit_code == 1
    assert "needs about 26.6 KiB of memory, but 9.8 KiB are available\nleave --check out" in done.output
    assert not Path("out.npy").exists()
    assert run("fft", "real.npy", "out.npy", "--ranks", "2").exit_code == 0


@pytest.mark.parametrize(("name", "library"), [("out.h5", "h5py"), ("out.nc", "h5py"), ("out.zarr", "zarr")])
def test_a_library_that_is_missing(monkeypatch: pytest.MonkeyPatch, name: str, library: str) -> None:
    """What cannot be written is refused before any work."""
    monkeypatch.setitem(sys.modules, library, None)
    done = run("fft", "real.npy", name, "--ranks", "2")
    assert done.exit_code == 1 and done.stdout == ""
    assert done.stderr.endswith(f"need {library}\npip install {library}\n")


@pytest.mark.parametrize("name", ["out.npy", "out.zarr", "half.npy"])
def test_a_disk_that_is_full(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """It is refused before any work, and what was there stays; a disk with just the room takes the result."""
    nbytes, half = HALF.nbytes, Path("half.npy").read_bytes()
    free = shutil.disk_usage(".")
    monkeypatch.setattr("shutil.disk_usage", lambda path: free._replace(free=nbytes - 1))
    done = run("fft", "real.npy", name, "--ranks", "2", "--force")
    assert done.exit_code == 1 and "read  " not in done.output
    assert re.fullmatch(f"Error: {name}: the result takes .* KiB, and the disk has .* KiB left\n", done.stderr)
    assert Path("half.npy").read_bytes() == half and not list(Path.cwd().glob(".rote*"))
    monkeypatch.setattr("shutil.disk_usage", lambda path: free._replace(free=nbytes))
    assert run("fft", "real.npy", name, "--ranks", "2", "--force").exit_code == 0


def test_memory_is_known() -> None:
    """What is available is something, and no more than there is."""
    assert 1 << 20 < available_memory() <= memory()


def test_error_of_arrays() -> None:
    """Relative to the largest value; other shapes and not-a-numbers are never right."""
    ones = np.ones((2, 2))
    assert largest_error(ones, ones) == 0
    assert largest_error(2 * ones, ones) == 1
    assert largest_error(ones[:0], ones[:0]) == 0
    assert largest_error(ones[0], ones) == np.inf
    assert not largest_error(np.nan * ones, ones) <= 1
    assert largest_error(0 * ones, 0 * ones) == 0


@pytest.mark.parametrize("failing", [0, 2])
def test_a_rank_that_raises(monkeypatch: pytest.MonkeyPatch, failing: int) -> None:
    """An error of one in-process rank ends all, is told with its rank, and leaves no file."""

    def program(x: rote.DistTensor, out: object = None) -> rote.DistTensor:
        if x.comm.rank == failing:
            raise rote.LayoutError("lost block")
        x.comm.barrier()
        return x

    monkeypatch.setattr("rote.fft.plan.FFT.forward", lambda self, x: program(x))
    done = run("fft", "real.npy", "out.npy", "--ranks", "4")
    note = "" if failing == 0 else "raised on rank 2 of 4\n"
    assert done.exit_code == 1
    assert done.output.endswith(f"Error: lost block\n{note}")
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["complex.npy", "half.npy", "real.npy"]


# --- phases -----------------------------------------------------------------------------------------------------------

PHASES = ["start", "plan", "read", "transform", "write"]
SAID = [*PHASES, "check", "total"]


class Clock:
    """A clock that goes on only by what is said to take time."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def during(self, seconds: float, call: Callable[..., object]) -> Callable[..., object]:
        """The call, which takes some seconds."""

        def slow(*args: object, **options: object) -> object:
            result = call(*args, **options)
            self.now += seconds
            return result

        return slow


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the phases, in a folder with in.npy."""
    monkeypatch.chdir(tmp_path)
    np.save("in.npy", np.random.default_rng(1).standard_normal((6, 5, 4)))
    found = Clock()
    monkeypatch.setattr("rote.cli.output.perf_counter", found)
    return found


def test_phases_are_the_time_that_it_takes(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading, planning, transforming, writing and the check each show what they took, and all of it is accounted for:
    the sum is the time from the beginning of the process to the end."""
    for owner, name, seconds in (
        (rote.io.npy, "read_header", 2.0),  # once for the plan, once to read
        (rote.fft.plan, "FFT", 30.0),
        (rote.tensor, "load", 5.0),
        (rote.fft.FFT, "forward", 7.0),
        (rote.tensor.files, "save", 11.0),
        (rote.cli.transform, "largest_error", 13.0),
    ):
        monkeypatch.setattr(owner, name, clock.during(seconds, getattr(owner, name)))
    done = run("fft", "in.npy", "out.npy", "--check", obj=60.0)
    assert done.exit_code == 0, done.output
    times = dict(line.split()[:2] for line in done.output.splitlines() if line.split() and line.split()[0] in SAID)
    assert times == dict(zip(SAID, ["40.00", "32.00", "7.00", "7.00", "11.00", "27.00", "124.00"], strict=True))
    assert clock.now - 60.0 == 124.0  # of the check, 14 are two files that are read


@pytest.mark.parametrize("ranks", [1, 3])
def test_no_time_is_lost_between_phases(ranks: int, clock: Clock) -> None:
    """Whatever happens between two phases belongs to the later one; nothing is counted twice."""

    def program(comm: Comm) -> dict[str, float]:
        watch = Watch(comm, 90.0)
        for number, name in enumerate(("one", "two", "one")):
            comm.barrier()
            if comm.rank == 0:
                clock.now += 10.0**number
            comm.barrier()
            with watch.phase(name):
                comm.barrier()
                if comm.rank == 0:
                    clock.now += 3 * 10.0**number
        comm.barrier()
        return watch.report()

    for slowest in rote.run(program, ranks):
        assert slowest == {"one": 10.0 + 4.0 + 400.0, "two": 40.0}
    assert clock.now - 90.0 == 454.0


def test_the_plan_shows_on_a_terminal(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """Each phase is a bar with its name from when it begins; planning fills it while walks are timed."""
    shown: list[str] = []

    def seen(comm: Comm, name: str):
        shown.append(name)
        return progress(comm, name)

    monkeypatch.setattr(output, "progress", seen)
    monkeypatch.setattr("rote.cli.output.animated", lambda: True)
    hurry(monkeypatch, 0.02, 0.1)
    parts: list[float] = []
    monkeypatch.setattr(
        "rich.progress.Progress.update", lambda bar, task, completed=0.0, **more: parts.append(completed)
    )
    done = run("fft", "in.npy", "out.npy", "--ranks", "2", "--effort", "measure")
    assert done.exit_code == 0, done.output
    assert [name for name in PHASES if name in shown] == PHASES
    assert parts and all(0 <= part <= 1 for part in parts)
