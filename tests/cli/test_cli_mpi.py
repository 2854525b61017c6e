"""The real `rote` under mpiexec: what it writes, what it prints once, and how it ends on all ranks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import launch
import numpy as np
import pytest

from rote.cli import doctor

pytestmark = pytest.mark.mpi
ROTE = Path(sys.executable).with_name("rote")
RNG = np.random.default_rng(3)


@pytest.mark.parametrize(
    ("job", "kind"),
    [(2, "r"), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((1, "c"), (3, "c"), (4, "r"), (4, "c")))],
    indirect=["job"],
)
def test_the_main_job(job, tmp_path, kind):
    """Real and complex volumes become numpy's spectra, each rank reading and writing its own part."""
    real = RNG.standard_normal((9, 10, 11))
    array, expected = (real, np.fft.rfftn(real)) if kind == "r" else (real + 1j, np.fft.fftn(real + 1j))
    volume, spectrum = tmp_path / "volume.npy", tmp_path / "spectrum.npy"
    np.save(volume, array)
    done = job.run(ROTE, "fft", volume, spectrum, "--layout", "block[(0),(1),()]", "--check")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("block[(0),(1),()]: ") == 1
    assert ", below 1e-10" in done.stdout
    np.testing.assert_allclose(np.load(spectrum), expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spectrum.npy", "volume.npy"]


@pytest.mark.parametrize("job", (2,), indirect=True)
def test_the_demo(job, tmp_path):
    """The demo runs on MPI's ranks as on in-process ones, and leaves the same files."""
    import matplotlib.font_manager

    fonts = matplotlib.get_cachedir()  # of this process: ranks that list the fonts themselves may say so
    done = job.run(ROTE, "demo", "--size", 16, "--dir", tmp_path, env={"MPLCONFIGDIR": fonts})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Taylor-Green vortices of all sizes, 16 x 16 x 16 points, 2 ranks\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo.png", "spectrum.npy", "volume.npy"]


@pytest.mark.slow
def test_the_doctor(tmp_path):
    """The line that it names starts two ranks; it counts them, and only rank 0 speaks, in plain text."""
    line = doctor.launch_line()
    assert line is not None
    done = subprocess.run(line, shell=True, env=launch.environment(), cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("2, started by mpiexec") == 1
    assert done.stdout.count("Python  ") == 1
    assert "\x1b" not in done.stdout


MANY = """
import os, sys
from unittest.mock import patch
from rote.cli import main, output
from rote.runtime import world
os.chdir(sys.argv[1])
for line in sys.argv[2:]:
    if world().rank == 0:
        print("@", line, file=sys.stderr)
    try:
        with patch.object(output, "_PATIENCE", 60):  # seconds, in which all ranks of a busy machine come to fail
            main(line.split())
    except SystemExit as error:
        codes = world().allgather_object(error.code)
        assert codes == [2 if " --ranks " in line else 1] * world().size, (line, codes)
"""
LINES = {
    "fft none.npy out.npy": "none.npy: No such file or directory",
    "fft short.npy out.npy": "short.npy is truncated",
    "fft text.npy out.npy": "text.npy is not a .npy file",
    "fft in.npy nowhere/out.npy": "nowhere: there is no such folder",
    "fft in.npy out.npy --layout block[(0),()]": "for tensors of order 2",
    "fft in.npy out.npy --layout block[(0),(),(1)": "brackets of the modes",
    "fft in.npy out.npy --grid 3": "grid 3 has 3 ranks",
    "fft in.npy out.npy --grid 2x1 --layout [(2),(),()]": "names grid mode 2",
    "fft in.npy out.npy --inverse --real": "of 6 or 7; say which with --length",
    "explain [(0)] --shape 4 --grid 2": "is one layout",
    "fft in.npy soft.npy --force": "is the input, and would be lost",
    "show [(0)": "not closed",
    "fft in.npy out.npy --ranks 3": "mpiexec has started 2 already",
    "bench --ranks 3": "--ranks is for threads, but mpiexec has started 2 ranks; leave --ranks out",
}


@pytest.mark.parametrize("job", (2,), indirect=True)
def test_every_error_is_said_once_and_ends_all(job, tmp_path):
    """Each command line that is wrong prints one text, from rank 0, and exits with one status on all ranks."""
    np.save(tmp_path / "in.npy", np.zeros((4, 4, 4)))
    (tmp_path / "short.npy").write_bytes((tmp_path / "in.npy").read_bytes()[:-1])
    (tmp_path / "text.npy").write_text("not an array")
    (tmp_path / "soft.npy").symlink_to("in.npy")
    done = job.run(MANY, tmp_path, *LINES)
    assert done.returncode == 0, done.stderr
    said = dict(each.split("\n", 1) for each in done.stderr.split("@ ")[1:])
    assert list(said) == list(LINES)
    for line, part in LINES.items():
        assert part in said[line]
        assert said[line].count("Error: ") == 1 and "Traceback" not in said[line], said[line]
    assert done.stdout.strip() == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.npy", "short.npy", "soft.npy", "text.npy"]


ALONE = """
import sys
import rote
from rote.cli import main
from rote.runtime import world

def forward(self, x):
    if x.comm.rank == 2:
        raise {error}
    x.comm.barrier()

rote.fft.FFT.forward = forward
main(["fft", *sys.argv[1:]])
"""


@pytest.mark.parametrize(
    ("error", "part"),
    [
        pytest.param(
            "rote.LayoutError('lost block')",
            "Error: lost block\nrank 2 of 3 fails alone, and ends the job\n",
            marks=pytest.mark.slow,
        ),
        ("ValueError('a bug')", "ValueError: a bug\n"),
    ],
)
def test_a_rank_that_fails_alone_ends_the_job(mpirun, tmp_path, error, part):
    """The others, who wait for it, are not left to hang; nothing is left under the name of the result."""
    np.save(tmp_path / "in.npy", np.zeros((4, 4, 4)))
    done = mpirun(3, ALONE.format(error=error), tmp_path / "in.npy", tmp_path / "out.npy")
    assert done.returncode != 0
    assert part in done.stderr
    assert ("Traceback" in done.stderr) == ("bug" in part)
    assert [path.name for path in tmp_path.iterdir()] == ["in.npy"]
