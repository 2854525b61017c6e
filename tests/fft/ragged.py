"""Checks of transforms of one split axis, for any number of points and ranks: in this process, and on MPI ranks.

Run as a program, `python ragged.py some|rest`, it makes the checks of that part on the world and prints how many.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from families import numbers
from parts import report_checks, share

from rote import DistTensor
from rote.fft import FFT, fftfreq, fftn, ifftn, irfftn, rfftn
from rote.runtime import world

LARGE = {1: 97, 2: 1009, 3: 3**6 * 5, 4: 2 * 1009, 6: 2**12, 8: 4099}  # by ranks: primes, twice a prime, powers
PRECISE = {"f": 3e-6, "F": 3e-6, "d": 3e-15, "D": 3e-15, "g": 3e-18, "G": 3e-18}  # relative to the largest element


def near(found, wanted, code):
    """Whether a tensor is an array, but for rounding."""
    found = found.to_global()
    assert found.shape == wanted.shape and found.dtype.char == np.asarray(wanted, wanted.dtype.char).dtype.char
    most = np.abs(wanted).max()
    assert np.abs(found - wanted).max() <= PRECISE[code] * most * max(1, np.log2(wanted.size)), (wanted.size, code)


def lengths(ranks):
    """Every sixth length up to 40, and a large one; together all ranks take every one."""
    first = {1: 1, 2: 2, 3: 3, 4: 4, 8: 5, 6: 6}[ranks]
    return (*range(first, 41, 6), LARGE[ranks])


def check_lengths(comm, part):
    """Forward and backward are those of numpy.fft, from cyclic layouts and from blocks, real and complex."""
    for number, n in share(enumerate(lengths(comm.size)), part, 4, comm.size):
        layout = ("[(0)]", "block[(0)]")[number % 2]
        code = "Dd"[number // 2 % 2]
        array = numbers((n,), code)
        x = DistTensor.from_global(array, layout, comm)
        f = FFT(n, layout, comm=comm, dtype=code, algorithm="ragged")
        X = f.forward(x)
        near(X, (np.fft.rfft if code == "d" else np.fft.fft)(array), "D")
        near(f.backward(X), array, code)
        turns = (np.fft.rfftfreq if code == "d" else np.fft.fftfreq)(n)
        assert np.allclose(fftfreq(f)[0], turns[X.distribution.tensor_indices(comm.rank)[0]], 1e-15)
        if code == "D":  # the inverse of the other kind
            array = numbers((n // 2 + 1,), "D")
            near(
                irfftn(DistTensor.from_global(array, layout, comm), s=n, algorithm="ragged"),
                np.fft.irfft(array, n),
                "d",
            )
        else:
            near(ifftn(x, algorithm="ragged"), np.fft.ifft(array), "D")


def check_options(comm, part):
    """Norms, dtypes, lengths of the transform, outputs and methods of exchange are as for every family."""
    methods = ("auto", "alltoallv", "put" if hasattr(comm, "handle") else "auto")
    norms, points = ("ortho", "forward", "backward") * 2, (30, 23, 11, 60, 12, 13)
    world = zip("fFdDgG", norms, points, methods * 2, strict=True)
    for code, norm, n, method in share(world, part, 3, comm.size):
        array = numbers((n,), code)
        real = array.dtype.kind == "f"
        x = DistTensor.from_global(array, "block[(0)]", comm)
        f = FFT(
            n, "block[(0)]", comm=comm, dtype=code, algorithm="ragged", norm=norm, output="block[(0)]", method=method
        )
        X = f.forward(x)
        assert str(X.layout) == "block[(0)]" and X.dtype.char == code.upper()
        near(X, (np.fft.rfft if real else np.fft.fft)(array, norm=norm), code)
        near(f.backward(X), array, code)
        for s in (n - 4, n + 5):
            near(
                (rfftn if real else fftn)(x, s=s, algorithm="ragged"),
                (np.fft.rfft if real else np.fft.fft)(array, s),
                code,
            )
        near(ifftn(X, s=n + 3, norm=norm, algorithm="ragged"), np.fft.ifft(X.to_global(), n + 3, norm=norm), code)


def check_tensors(comm, part):
    """One split axis of a tensor whose other axes are too short to take the ranks, and all axes of it."""
    world = (((26, 3), (0,), "D"), ((30, 3), (0, 1), "d"), ((3, 23), (1, 0), "D"), ((2, 40), (0, 1), "d"))
    for shape, axes, code in share(world, part, 3, comm.size):
        split = shape.index(max(shape))
        layout = f"[{','.join('(0)' if m == split else '()' for m in range(2))}]"
        array = numbers(shape, code)
        f = FFT(shape, layout, comm=comm, dtype=code, axes=axes, algorithm="ragged")
        X = f.forward(DistTensor.from_global(array, layout, comm))
        near(X, (np.fft.rfftn if code == "d" else np.fft.fftn)(array, axes=axes), "D")
        near(f.backward(X), array, code)
        held = [stage.before.local_shape(comm.rank)[1 - split] for stage in f.walk.stages[:1]]
        assert held == [min(shape)]


CHECKS = (check_lengths, check_options, check_tensors)


if __name__ == "__main__":
    report_checks(CHECKS, world(), sys.argv[1])
