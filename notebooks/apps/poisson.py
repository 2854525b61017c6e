"""Poisson's equation in a box of mixed boundary conditions: one kind of transform per axis, and one division between.

    python poisson.py --ranks 4                 four ranks, which are threads of one process
    mpiexec -n 4 python poisson.py --ranks 4    four processes

-laplace(u) = f on [0, 1]^3. u is zero on the two sides in x (Dirichlet), its normal derivative is zero on the two sides
in y (Neumann), and it repeats in z. Points lie in the middle of cells, so sines and cosines of type II fit them.
"""

from __future__ import annotations

import argparse

import numpy as np

import rote
from rote.fft import FFT


def solve(f, fft):
    """Solve for u where `fft` has the kinds of the boundary conditions; with mean zero where they leave that open."""
    spectrum = fft.forward(f)
    k2 = sum(k**2 for k in fft.wavenumbers(L=1.0))
    spectrum /= np.where(k2 == 0, 1, k2)
    return fft.backward(spectrum)


def exact(x, y, z):
    """A solution of the boundary conditions that is made of few modes, and its -laplace."""
    waves = [(1, 0, 1), (2, 3, 0), (5, 1, 2)]
    parts = [np.sin(a * np.pi * x) * np.cos(b * np.pi * y) * np.cos(2 * c * np.pi * z) for a, b, c in waves]
    factors = [np.pi**2 * (a**2 + b**2 + 4 * c**2) for a, b, c in waves]
    return sum(parts), sum(factor * part for factor, part in zip(factors, parts, strict=True))


def program(comm, shape):
    """Solve on one rank; return the largest error on any rank."""
    kinds = {0: "dst2", 1: "dct2", 2: "rfft"}
    fft = FFT(shape, comm=comm, dtype="f8", kinds=kinds, norm="forward")

    def at_points(number):
        def value(i, j, k):
            return exact((i + 0.5) / shape[0], (j + 0.5) / shape[1], k / shape[2])[number]

        return rote.DistTensor.from_function(value, shape, fft.input_layout, comm, fft.grid)

    u, f = at_points(0), at_points(1)
    error = np.array([np.max(abs(solve(f, fft).local - u.local), initial=0)])
    comm.allreduce_in_place(error, "max")
    if comm.rank == 0:
        print(f"{fft.walk}\nlargest error {error[0]:.1e}")
    return float(error[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", type=int, nargs=3, default=(32, 24, 40))
    parser.add_argument("--ranks", type=int, default=1)
    options = parser.parse_args()
    rote.run(program, options.ranks, (tuple(options.shape),))
