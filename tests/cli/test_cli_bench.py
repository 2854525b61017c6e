"""`rote bench`: everyone is measured or missing for a reason, a wrong result is none, and the files say it all."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runner import run

import rote
from rote.bench.cases import oversubscribed
from rote.plot import figures
from rote.runtime.comm.protocol import Comm
from rote.units import in_seconds

ROTE = Path(sys.executable).with_name("rote")
PEERS = {"mpi4py-fft", "dtfft", "fftw-mpi", "pfft", "pyfftw", "scipy", "ducc0", "mkl_fft"}


def entries(*args: str) -> list[dict[str, Any]]:
    """What `rote bench --json` leaves; it must succeed."""
    done = run("bench", *args, "--json", "bench.json", "--force")
    assert done.exit_code == 0, done.output
    found: list[dict[str, Any]] = json.loads(Path("bench.json").read_text())["entries"]
    return found


def test_everyone_is_measured_or_missing() -> None:
    """The table and the file name each contestant with positive times, or say why it is missing."""
    options = ("--shape", "8x8x8", "--dtype", "c16", "--ranks", "2", "--rounds", "2")
    done = run("bench", *options, "--json", "bench.json", "--png", "bench.png")
    assert done.exit_code == 0, done.output
    found = json.loads(Path("bench.json").read_text())
    assert {each["contestant"] for each in found["entries"]} == {"rote", *PEERS}
    assert {each["work"] for each in found["entries"]} == {"c2c 8x8x8 c16"}
    for each in found["entries"]:
        if "missing" in each:
            assert f"missing: {each['name']} {each['missing']}" in done.output
        else:
            assert f"\n  {each['name']} " in done.output
            assert len(each["seconds"]) == 2
            assert min(each["seconds"]) > 0
            assert each["median"] == np.median(each["seconds"])
            assert each["library"] and f" {each['library']}\n" in done.output.partition("libraries of these figures")[2]
    assert not [each for each in found["entries"] if "fails" in each.get("missing", "")]
    assert {"processor", "cores", "system", "versions"} <= set(found)
    assert {"rote", "python", "numpy"} <= set(found["versions"])
    assert done.output.startswith("transforms forward and backward on 2 threads, medians of 2 rounds\n")
    assert done.output.endswith("wrote bench.json\nwrote bench.png\n")
    assert Path("bench.png").read_bytes().startswith(b"\x89PNG")


def test_predicted_times_stand_beside_measured_ones() -> None:
    """With a machine, Rote's times are divided by the model's, of both directions; those of others are not."""
    common = ("--ranks", "2", "--rounds", "1", "--only", "rote", "--machine", "k-computer")
    work = ("--shape", "8x8x8", "--dtype", "f8", "--algorithm", "slab", "--only", "scipy")
    found = {each["contestant"]: each for each in entries(*common, *work)}
    ours = found["rote"]
    walk = next(c.walk for c in rote.fft.compare((8, 8, 8), 2, dtype="f8", machine="k-computer") if c.name == "slab")
    both = [rote.predict(each, "k-computer").seconds for each in (walk, walk.inverse())]
    assert ours["predicted"] == pytest.approx(sum(both), rel=0.2)  # tuning may take another layout
    assert ours["over_predicted"] == ours["median"] / ours["predicted"]
    assert found["scipy"]["predicted"] is None and found["scipy"]["over_predicted"] is None
    assert json.loads(Path("bench.json").read_text())["machine"] == "k-computer"
    done = run("bench", "--moves", "--shape", "16x8", "--dtype", "c16", *common)
    plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(16, 8), grid=2, dtype="c16", machine="k-computer")
    head, row = (line.split() for line in done.output.splitlines()[-2:])
    assert head[-3:] == ["predicted", "/", "predicted"] and " ".join(row[-3:-1]) == in_seconds(plan.cost.seconds, 3)


def test_more_ranks_than_cores_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where threads, or the MPI ranks of a host, outnumber the cores, the head says so, and the record, too."""
    head = "oversubscribed: 3 ranks on 2 cores of this machine; times include waiting for a core\n"
    monkeypatch.setattr("rote.bench.cases.cores", lambda: frozenset((0, 1)))
    moves = ("--json", "left.json", "--moves", "--shape", "8x8", *only("memcpy"))
    for ranks in (2, 3):
        done = run("bench", *moves, "--ranks", str(ranks), "--rounds", "1", "--force")
        assert done.exit_code == 0 and (head in done.output) == (ranks > 2)
        assert json.loads(Path("left.json").read_text())["oversubscribed"] is (ranks > 2)

    def told(comm: Comm) -> str:
        return oversubscribed(comm, comm.size, 2 - comm.rank % 2)

    for ranks in (1, 2, 5):
        (text,) = {*rote.run(told, ranks)}
        assert text.startswith(f"oversubscribed: {ranks} ranks on ") or (ranks == 1 and not text)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ("5x7", "f4"),
        ("4x3x5x2", "c16"),
        *(pytest.param(*more, marks=pytest.mark.slow) for more in (("6x5x4", "c8"), ("3x6x5", "f8"))),
    ],
)
def test_all_orders_and_dtypes(shape: str, dtype: str) -> None:
    """Rote and the libraries do each order and dtype, and their results are right."""
    options = ("--shape", shape, "--dtype", dtype, "--rounds", "1")
    found = entries(*options, "--ranks", "2", *only("rote", "scipy")) + entries(
        *options, "--ranks", "1", *only("pyfftw")
    )
    assert {each["dtype"] for each in found} == {dtype}
    assert [each["name"] for each in found if "missing" in each and "installed" not in each["missing"]] == []


def only(*names: str) -> list[str]:
    """The options that choose some contestants."""
    return [part for name in names for part in ("--only", name)]


def test_moves() -> None:
    """A swap is measured against a copy; what needs MPI's ranks says so."""
    found = {each["name"]: each for each in entries("--moves", "--shape", "6x5", "--ranks", "3", "--rounds", "1")}
    assert set(found) == {"rote", "mpi4py-fft", "alltoallw", "memcpy"}
    assert found["memcpy"]["ratio"] == found["memcpy"]["median"] / found["rote"]["median"]
    assert "start rote bench by mpiexec" in found["alltoallw"]["missing"]
    assert found["rote"]["work"] == "slab swap 6x5 c16"


@pytest.mark.parametrize(("kind", "extents"), [("strong", [4, 4, 4]), ("weak", [4, 8, 12])])
def test_scaling(kind: str, extents: list[int]) -> None:
    """The same array on 1, 2, ... ranks, or one that grows with them."""
    options = ["--shape", "4x3x5", "--dtype", "f8", "--algorithm", "slab", "--ranks", "3", "--rounds", "1"]
    found = entries("--scaling", kind, *options, "--png", "scaling.png", *only("rote", "scipy"))
    ours = [each for each in found if each["contestant"] == "rote"]
    assert [each["ranks"] for each in ours] == [1, 2, 3]
    assert [each["shape"][0] for each in ours] == extents
    assert Path("scaling.png").exists()


def test_restored_spectra() -> None:
    """Algorithms can be compared where the spectrum lies as the input does."""
    options = ("--algorithm", "slab", "--algorithm", "volumetric", "--restore", "--real", "--ranks", "2")
    found = entries("--shape", "8x8x8", "--rounds", "1", *options, *only("rote"))
    assert [(each["name"], each["dtype"]) for each in found] == [("rote slab", "f8"), ("rote volumetric", "f8")]


# --- who cannot take part -------------------------------------------------------------------------------------------


def small(*args: str) -> str:
    """The output of a contest of few; if nobody ran, that is its error. Programs are compiled anew."""
    rote.clear_caches()
    done = run("bench", "--shape", "4x4", "--dtype", "c16", "--ranks", "2", "--rounds", "1", *args)
    ran = "median" in done.output.partition("\n\n")[2]
    assert done.exit_code == (0 if ran else 1), done.output
    assert ("Error: no contestant could run, and no file is written\n" in done.output) is not ran
    return done.output


def test_a_package_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cure is said, and the others go on."""
    monkeypatch.setitem(sys.modules, "ducc0", None)
    assert "\nmissing: ducc0 is not installed; pip install ducc0\n" in small(*only("rote", "ducc0"))


def test_a_wrong_result_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that computes something else is not timed; Rote's own error ends the contest."""
    monkeypatch.setattr("scipy.fft.ifftn", lambda X, axes, workers: X)
    assert "missing: scipy fails: the results of c2c 4x4 c16 are wrong, by" in small(*only("scipy"))
    monkeypatch.setattr("rote.fft.plan.FFT.backward", lambda self, X, y=None: y)
    monkeypatch.setattr("rote.fft.plan.FFT.forward", lambda self, x, y=None: x)
    done = run("bench", "--shape", "4x4", "--ranks", "1", *only("rote"))
    assert done.exit_code == 1
    assert "Error: the results of c2c 4x4 c16 are wrong, by" in done.output


NO_MPICC = "has no mpicc, with mpiexec beside it, on the PATH; "
PROGRAMS = [  # mpicc, mpiexec, and what is said of the program
    ("", "echo ranks 2 fftw-3; echo 0.25", "  2 MPI ranks  250 ms   250 ms       -\n"),
    ("", "echo ranks 1 fftw-3; echo 0.25", "has an mpiexec of another MPI than the mpicc beside"),
    ("", "echo 'program: no plan' >&2; exit 1", "does not run, by mpiexec: program: no plan"),
    ("echo 'x.c:1: fatal error: no header' >&2; exit 1", "", "by mpicc: x.c:1: fatal error: no header; "),
    (None, None, {"fftw-mpi": f"{NO_MPICC}on Debian, apt-get install", "pfft": f"{NO_MPICC}build PFFT"}),
]


@pytest.mark.parametrize("name", ["fftw-mpi", "pfft"])
@pytest.mark.parametrize(("mpicc", "mpiexec", "said"), PROGRAMS, ids=range(len(PROGRAMS)))
def test_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, mpicc: Any, mpiexec: Any, said: Any
) -> None:
    """They are compiled and launched with the programs of the PATH; where that fails, their words say why."""
    for program, text in (("mpicc", mpicc), ("mpiexec", mpiexec)):
        if text is not None:
            (tmp_path / program).write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    part = said[name] if isinstance(said, dict) else said
    assert [line for line in small(*only(name)).splitlines(keepends=True) if name in line and part in line]


def test_a_picture_needs_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is said before the work."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    figures._figure_class.cache_clear()
    done = run("bench", "--png", "bench.png")
    text = "Error: pictures are drawn by matplotlib, which is not installed; pip install matplotlib\n"
    assert (done.exit_code, done.output) == (1, text)


# --- on MPI's ranks -------------------------------------------------------------------------------------------------


@pytest.mark.mpi
@pytest.mark.parametrize("job", (2,), indirect=True)
def test_on_mpi_ranks(job, tmp_path):
    """Rote runs on MPI's ranks and on threads, in one contest, and rank 0 alone speaks."""
    options = ("--shape", "8x6x5", "--dtype", "f8", "--algorithm", "slab", "--rounds", 1, "--json", tmp_path / "b.json")
    done = job.run(ROTE, "bench", *options, *only("rote", "threads", "mpi4py-fft", "scipy"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("transforms forward and backward on 2 MPI ranks, medians of 1 round\n")
    found = {(each["name"], each["on"]): each for each in json.loads((tmp_path / "b.json").read_text())["entries"]}
    assert {("rote slab", "2 MPI ranks"), ("rote slab", "2 threads")} < set(found)
    assert all(found["rote slab", on]["median"] > 0 for on in ("2 MPI ranks", "2 threads"))


@pytest.mark.slow
@pytest.mark.mpi
def test_dtfft(mpirun):
    """Its results are found where it leaves them, here by a stand-in that has its names and its blocks."""
    path = {"PYTHONPATH": str(Path(__file__).with_name("stand_in"))}
    shapes = ("--shape", "6x5x4", "--shape", "3x8", "--dtype", "c8", "--dtype", "f8", "--rounds", 1)
    done = mpirun(2, ROTE, "bench", *shapes, *only("dtfft"), env=path)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [row.split()[:2] for row in done.stdout.splitlines() if " 2 MPI ranks " in row]
    assert rows == [["dtfft", "MPI_A2A"], ["dtfft", "MPI_P2P_FUSED"]] * 4
    assert "missing" not in done.stdout


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("job", (3,), indirect=True)
def test_moves_on_mpi_ranks(job, tmp_path):
    """Alltoallw moves the slabs to the same places; extents need not divide; some ranks hold nothing."""
    done = job.run(ROTE, "bench", "--moves", "--shape", "5x7x2", "--shape", "2x2", "--rounds", 1)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [row.split()[:4] for row in done.stdout.splitlines()]
    for name in ("rote", "alltoallw", "memcpy"):
        assert rows.count([name, "3", "MPI", "ranks"]) == 2
