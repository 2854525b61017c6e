"""The tests' own machinery: the MPI launcher ends what hangs, and a test that does not run fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import launch
import pytest

pytestmark = pytest.mark.slow
TESTS = Path(launch.__file__).parent


@pytest.mark.mpi
def test_hang_is_a_failure_and_leaves_nothing(mpirun, tmp_path):
    """A program that hangs is killed on all ranks; the failure holds its output so far, and where it hung."""
    code = """
import os, sys, time
from pathlib import Path
Path(sys.argv[1], str(os.getpid())).touch()
print("so far", flush=True)
time.sleep(600)
"""
    with pytest.raises(AssertionError, match=r'hangs: 2 ranks(.|\n)*so far(.|\n)*program.py", line 6'):
        mpirun(2, code, tmp_path, timeout=10)
    pids = [int(path.name) for path in tmp_path.iterdir()]
    assert len(pids) == 2 and not [pid for pid in pids if runs(pid)]


def runs(pid: int) -> bool:
    """Is there still such a process, other than as a zombie that nobody has buried?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.mpi
def test_programs_run_in_an_empty_folder(mpirun):
    """Programs start away from the checkout, with their arguments and their environment."""
    code = "import os, sys; print(os.listdir(), sys.argv[1:], os.environ['COLOUR'], os.environ['OMP_NUM_THREADS'])"
    done = mpirun(1, code, "a", 2, env={"COLOUR": "red"})
    assert (done.returncode, done.stdout) == (0, "['program.py'] ['a', '2'] red 1\n")
    assert mpirun(2, "import sys; sys.exit(5)").returncode != 0


def session(tmp_path: Path, *texts: str, **env: str) -> str:
    """The output of a pytest session of its own over some test files, under these tests' conftest."""
    for name in ("conftest.py", "launch.py", "marks.py", "parts.py"):
        shutil.copy(TESTS / name, tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for number, text in enumerate(texts):
        (tmp_path / f"test_{number}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    return subprocess.run(command, env={**os.environ, **env}, cwd=tmp_path, capture_output=True, text=True).stdout


NO_MPI = "import launch\nlaunch.launchers = list\ndef test_it(mpirun): pass\n"


def test_what_does_not_run_has_failed(tmp_path):
    """A skip fails, wherever it is said, unless its reason says that it is expected; so does a file that skips itself.

    Without MPI the tests that need it fail and say how to mend it.
    """
    skips = """
import pytest
def test_says_so(): pytest.skip("expected: there is no such thing here")
@pytest.mark.skipif(True, reason="expected: never")
def test_marked_says_so(): pass
def test_silent(): pytest.skip("no idea")
@pytest.mark.skip
def test_marked(): pass
@pytest.mark.xfail
def test_known(): assert False
"""
    said = session(tmp_path, skips, NO_MPI, ROTE_TESTS_NO_MPI="")
    assert "1 failed, 2 skipped, 1 xfailed, 2 errors" in said and "unexpected skip: no idea" in said, said
    assert "pip install" in said, said


def test_files_that_skip_fail(tmp_path):
    """A whole file that skips itself is an error; the documented switch skips the tests that need MPI."""
    said = session(tmp_path, "import pytest\npytest.importorskip('no_such_module')\n", NO_MPI, ROTE_TESTS_NO_MPI="1")
    assert "1 error" in said and "unexpected skip" in said, said


@pytest.mark.mpi
def test_a_job_runs_one_program_after_the_other(mpirun):
    """On the same ranks, each as if alone; what fails or hangs ends the job, and the next one starts another."""
    job = launch.Job(2)
    told = "import os, sys; print(os.listdir(), sys.argv[1:], os.environ.get('COLOUR'))"
    done = job.run(told, "a", 2, env={"COLOUR": "red"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "['program.py'] ['a', '2'] red\n" * 2, "")
    assert job.run(told).stdout == "['program.py'] [] None\n" * 2
    settings = "import warnings\nimport numpy as np\nprint(np.geterr(), len(warnings.filters))"
    before = job.run(settings).stdout
    changes = "import warnings\nimport numpy as np\nnp.seterr(all='ignore')\nwarnings.simplefilter('error')"
    assert job.run(changes).returncode == 0
    assert job.run(settings).stdout == before

    who = "import os; print(os.getpid())"
    first = job.run(who).stdout
    assert job.run(who).stdout == first

    alone = "from rote.runtime import world\ncomm = world()\nif comm.rank: raise ValueError('lost')\ncomm.barrier()"
    done = job.run(alone)
    assert done.returncode == 1 and "ValueError: lost" in done.stderr
    second = job.run(who).stdout
    assert not {*first.split()} & {*second.split()} and not [pid for pid in first.split() if runs(int(pid))]
    assert job.run("import sys; sys.exit(3)").returncode == 1

    third = job.run(who).stdout
    with pytest.raises(AssertionError, match=r'hangs: 2 ranks(.|\n)*so far(.|\n)*program.py", line 3'):
        job.run("import time\nprint('so far', flush=True)\ntime.sleep(600)", timeout=5)
    assert not [pid for pid in third.split() if runs(int(pid))]
    assert job.run(who).returncode == 0
    job.close()
