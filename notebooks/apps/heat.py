"""The heat equation on a periodic square, by a stencil with ghost cells and by Fourier modes.

    python heat.py --ranks 4                 four ranks, which are threads of one process
    mpiexec -n 4 python heat.py --ranks 4    four processes

Explicit Euler steps of the five-point stencil multiply every Fourier mode by a number that is known. So the field that
the ranks step to with their neighbours' ghost cells is the one that two transforms give at once, to rounding.
"""

from __future__ import annotations

import argparse

import numpy as np

import rote
from rote.fft import FFT


def by_stencil(u, steps, r):
    """Step by step: every rank reads a cell beyond its block, and replaces each point by itself and its neighbours."""
    for _ in range(steps):
        h = u.halo(1, periodic=True)
        around = h[:-2, 1:-1] + h[2:, 1:-1] + h[1:-1, :-2] + h[1:-1, 2:]
        u.local[...] += r * (around - 4 * u.local)
    return u


def by_modes(u, steps, r):
    """All steps at once: a mode of k waves along an axis of n points shrinks by 4 r sin(pi k / n)**2 each step."""
    fft = FFT(u.shape, u.layout, u.grid, u.comm, dtype="f8")
    spectrum = fft.forward(u)
    waves = zip(fft.wavenumbers(L=1.0), u.shape, strict=True)
    shrink = sum(4 * r * np.sin(k / (2 * n)) ** 2 for k, n in waves)
    spectrum *= (1 - shrink) ** steps
    return fft.backward(spectrum)


def program(comm, shape, steps, r):
    """Solve both ways on one rank; return the largest difference on any rank."""
    grid = rote.Grid.of(comm.size, 2)
    u = rote.DistTensor.from_function(lambda i, j: (i * j) % 7 - 3.0, shape, "block[(0),(1)]", comm, grid)
    modes = by_modes(u, steps, r)
    with rote.trace() as moves:
        stencil = by_stencil(u, steps, r)
    difference = np.array([np.max(abs(stencil.local - modes.local), initial=0)])
    comm.allreduce_in_place(difference, "max")
    if comm.rank == 0:
        print(f"grid {grid}: {sum(move.nbytes for move in moves) // steps} bytes of ghost cells reach a rank in a step")
        print(f"largest difference {difference[0]:.1e}")
    return float(difference[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", type=int, nargs=2, default=(96, 80))
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--r", type=float, default=0.2, help="time step over squared spacing, up to 1/4")
    parser.add_argument("--ranks", type=int, default=1)
    options = parser.parse_args()
    rote.run(program, options.ranks, (tuple(options.shape), options.steps, options.r))
