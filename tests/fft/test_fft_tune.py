"""Timed plans: as exact as estimated ones, and the same on all ranks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from families import numbers
from launch import RANKS

import rote
from rote import DistTensor
from rote.fft import FFT
from rote.runtime import world


def check(comm):
    """Transforms with timed plans are numpy.fft's there and back, and replicas of a spectrum have the same bits."""
    for shape, layout in (((12, 10, 14), "block[(0),(),()]"), ((7, 6), "[(0),()]")):
        whole = f"[{','.join(['()'] * len(shape))}]"
        for code in "Dd":
            for kinds in (None, "dct2") if code == "d" else (None,):
                f = FFT(shape, layout, comm.size, comm, code, kinds=kinds, output=whole, tune="measure")
                array = numbers(shape, code)
                x = DistTensor.from_global(array, layout, comm, comm.size)
                X = f.forward(x)
                if kinds is None:
                    want = np.fft.fftn(array) if code == "D" else np.fft.rfftn(array)
                    assert np.abs(X.local - want).max() <= 1e-13 * np.abs(want).max()
                assert np.abs(f.backward(X).local - x.local).max(initial=0) <= 1e-13
                assert len(set(comm.allgather_object(X.local.tobytes()))) == 1
    with pytest.raises(rote.LayoutError, match="tune is one of model, measure, patient; not 'fast'"):
        FFT((4, 4), comm=comm, tune="fast")


@pytest.mark.parametrize("ranks", (1, 2, 4))
def test_on_ranks_of_this_process(ranks):
    """Timed plans on in-process ranks."""
    rote.run(check, ranks)


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", RANKS[1:4])
def test_on_mpi_ranks(mpirun, ranks):
    """Timed plans on MPI ranks, each of which times by itself."""
    done = mpirun(ranks, Path(__file__), timeout=120)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "right\n")


if __name__ == "__main__":
    check(world())
    if world().rank == 0:
        print("right")
