"""Solvers of matrices that are split, by ScaLAPACK on MPI ranks; `.ci/run engines` runs them with the extra `fast`."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import engines
import numpy as np
import pytest
from launch import RANKS
from marks import examples, make_checks, mpi_parts
from tensors import agreed_error

import rote
from rote.host import mkl_files
from rote.linalg import routines
from rote.linalg.library import files_for

PROGRAM = Path(__file__).with_name("engines.py")
ORBITALS = Path(__file__).parents[2] / "notebooks" / "apps" / "orbitals.py"

needs_mkl = pytest.mark.skipif("scalapack_lp64" not in mkl_files(), reason="expected: the extra fast is not installed")


@needs_mkl
@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize(("job", "part"), mpi_parts(2, 3, 4, 6), indirect=["job"])
def test_on_mpi_ranks(job, part):
    """On MPI ranks no solver is worse than NumPy's."""
    make_checks(job, PROGRAM, engines.CHECKS, part)


@needs_mkl
@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("job", RANKS, indirect=True)
def test_drawn_cases_on_mpi_ranks(job):
    """Nor is any of 45 cases of each law that seeds draw, others on each number of ranks: 2,025 in all.

    CI tries 5 of them under each MPI, and the others if it is told to try all examples.
    """
    first = 100 * job.ranks
    make_checks(job, PROGRAM, engines.CHECKS, f"{first}:{first + examples(45)}", timeout=900)


@needs_mkl
@pytest.mark.mpi
@pytest.mark.slow
def test_a_chemists_program(mpirun):
    """The program of the page: a generalised eigenproblem of 2,000 functions on 4 ranks, where nothing is gathered."""
    done = mpirun(4, ORBITALS, "--n", 2000, timeout=600)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.startswith("1000.000000 electrons")


def test_what_is_missing_is_said():
    """Ranks of one process have no ScaLAPACK, nor has an unknown MPI: it is refused with what to install."""

    def program(comm):
        x = rote.DistTensor.from_global(np.eye(9), "block[(0),()]", comm)
        with rote.config(linalg="scalapack", implicit="allow"), pytest.raises(rote.CommError, match="pip install mkl"):
            np.linalg.inv(x)
        with rote.config(linalg="auto", implicit="allow"):
            return np.linalg.inv(x).to_global().tolist() == np.eye(9).tolist()

    assert rote.run(program, 2) == [True, True]
    assert "handles of 8 bytes" in files_for(8, "MPICH", "libmpi_abi.so.1")
    assert "no BLACS" in files_for(8, "Another MPI", "libmpi.so")
    assert "/proc" in files_for(4, "MPICH", "")


def test_one_rank_with_a_whole_matrix_is_warned_of(monkeypatch):
    """Law: where eigenvalues gather a large matrix on one rank, the warning says what to install; it may be refused."""
    monkeypatch.setattr("rote.functions.moves._GATHER", 1000)
    monkeypatch.setattr("rote.functions.moves._warned", set())

    def program(comm):
        x = rote.DistTensor.from_function(lambda i, j: 1.0 * (i == j), (300, 300), "block[(0),()]", comm)
        return np.linalg.eigvalsh(x).to_global().tolist() == [1.0] * 300

    with rote.config(implicit="allow"):
        with pytest.warns(rote.GatherWarning, match="on one rank.*\n.*pip install mkl"):
            assert rote.run(program, 2) == [True, True]
        with rote.config(gather="error"), pytest.raises(rote.LayoutError, match="pip install mkl"):
            rote.run(program, 2)


def test_sizes_of_workspaces_are_not_rounded_down():
    """Law: a routine answers in the dtype of the workspace, in which a large number may be less than it is."""
    for dtype, words in product(("f4", "f8", "c8", "c16"), (1, 100, (1 << 24) + 1, (1 << 30) + 33)):
        assert words <= routines._words(np.dtype(dtype).type(words)) <= words * (1 + 1e-6) + 2
    assert routines._words(np.int32(7)) == 7


def test_an_unknown_solver_is_refused():
    """Law: with the names that there are."""
    with pytest.raises(ValueError, match="'auto', 'scalapack', 'walk', 'gather'"):
        rote.config(linalg="lapack")


def test_ranks_with_several_solvers_are_refused():
    """Law: all ranks raise the error, and none waits."""

    def program(comm):
        x = rote.DistTensor.from_global(np.eye(9), "block[(0),()]", comm)
        with rote.config(linalg=("auto", "walk")[comm.rank], implicit="allow"):
            agreed_error(comm, "auto, walk", np.linalg.inv, x)

    rote.run(program, 2)
