"""FFTW's halfcomplex order: spectra of real numbers as real numbers, on ranks of all kinds, by every library."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import halfcomplex
import numpy as np
import pytest
from marks import make_checks, mpi_parts, parts_of

import rote
from rote.fft.kernels import kernel as kernels
from rote.fft.kernels import passes
from rote.fft.kernels.backends import NAMES, library, transforms
from rote.fft.kernels.backends.library import KernelConfig
from rote.fft.kernels.kernel import Kernel, plain
from rote.fft.transforms import real_dtype
from rote.runtime.comm.segments import at_line

pytestmark = pytest.mark.filterwarnings("ignore::rote.GatherWarning")  # transforms of one axis

PROGRAM = Path(__file__).with_name("halfcomplex.py")


@pytest.mark.parametrize(("ranks", "check", "args"), parts_of(halfcomplex.CHECKS, 1, 2, 4, whole=(3,)))
def test_on_ranks_of_this_process(ranks, check, args):
    """Transforms to the halfcomplex order on in-process ranks do what they must."""
    rote.run(check, ranks, args)


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "part"), mpi_parts(3)[:1], indirect=["job"])
def test_on_mpi_ranks(job, part):
    """On MPI ranks they do too."""
    make_checks(job, PROGRAM, halfcomplex.CHECKS, part)


@pytest.mark.parametrize("name", [name for name in NAMES if library(name).version()])
def test_every_library_does_it_there_and_back(name, monkeypatch):
    """Law: in tiles of any size, along any axes, in place or not: the definition, and back, n times the input."""
    monkeypatch.setattr(kernels, "CACHED", 700)
    for code in "dfD":
        assert transforms(name, "r2hc", real_dtype(code)) and transforms(name, "hc2r", real_dtype(code))
        for shape in ((5,), (1, 6), (3, 8, 4)):
            block = halfcomplex.values(shape, code)
            for axes in (axes for count in range(1, len(shape) + 1) for axes in combinations(range(len(shape)), count)):
                want, source = halfcomplex.halfcomplex(block, axes, None), plain(block.copy())
                for kind, given, expected in (
                    ("r2hc", block, want),
                    ("hc2r", want, block * np.prod([shape[axis] for axis in axes])),
                ):
                    kernel = Kernel(kind, axes, shape, shape, block.dtype, KernelConfig(library=name))
                    run = passes.BoundKernel(kernel, (at_line(block.nbytes), at_line(block.nbytes)))
                    source, target = plain(given.copy()), plain(np.empty_like(block))
                    run(source, target)
                    assert np.array_equal(source, given)
                    run(source, source)
                    for result in (source, target):
                        bound = 60 * np.finfo(real_dtype(code)).eps * max(np.abs(expected).max(), np.abs(want).max())
                        assert np.abs(result - expected).max() <= bound
