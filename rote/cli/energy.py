"""The field of the demo, and the energy spectrum of any field; each rank computes both on its own block."""

from __future__ import annotations

from collections.abc import Callable
from math import prod, sqrt

import numpy as np
import numpy.typing as npt

from ..io.positions import writes
from ..tensor import DistTensor

__all__ = ["exact_energy", "shell_energy", "vortices", "wave_numbers"]

Floats = npt.NDArray[np.float64]


def wave_numbers(size: int) -> list[tuple[int, int]]:
    """The vortices of the demo, one per shell from 2 to size/2 - 1: pairs (m, n) with sqrt(2 m² + n²) about the shell.

    >>> wave_numbers(12)
    [(1, 1), (2, 1), (2, 3), (3, 3)]
    """
    shells = range(2, size // 2)
    across = [round(k / sqrt(3)) for k in shells]
    return [(m, round(sqrt(max(k * k - 2 * m * m, 0)))) for k, m in zip(shells, across, strict=True)]


def vortices(size: int) -> Callable[..., Floats]:
    """The velocity u of Taylor-Green vortices of all sizes, at global indices (i, j, k) of a periodic cube (2 pi)³.

    Taylor and Green (Proc. R. Soc. A 158, 1937) start from u = sin x cos y cos z, v = -cos x sin y cos z, w = 0. Here
    a sin(m x) cos(m y) cos(n z) is added up for all pairs of `wave_numbers`, each moved by a phase of its own; with its
    v, each is divergence-free. The amplitudes a give shell k the energy k^(-5/3), as in Kolmogorov's turbulence.
    """
    pairs = wave_numbers(size)
    phase = 2 * np.pi * np.outer(np.arange(len(pairs)) ** 2, [0.618034, 0.414214, 0.732051])
    amplitude = 4 * np.arange(2.0, size // 2) ** (-5 / 6)  # the mean of a²/2 sin² cos² cos² is a²/16
    along = np.array([(m, m, n) for m, n in pairs])

    def velocity(*index: npt.NDArray[np.int64]) -> Floats:
        angle = []
        for axis, indices in enumerate(index):
            places = 2 * np.pi / size * indices.ravel()
            angle.append(np.outer(along[:, axis], places) + phase[:, axis, None])
        u: Floats = np.einsum(
            "ai,aj,ak->ijk", amplitude[:, None] * np.sin(angle[0]), np.cos(angle[1]), np.cos(angle[2]), optimize=True
        )
        return u

    return velocity


def exact_energy(size: int) -> Floats:
    """The energy of u in every shell, as `shell_energy` finds it: k^(-5/3) in the shells that have a vortex."""
    energy = np.zeros(size // 2 + 1)
    energy[2 : size // 2] = np.arange(2.0, size // 2) ** (-5 / 3)
    return energy


def shell_energy(spectrum: DistTensor, shape: tuple[int, ...]) -> Floats:
    """The energy in every shell of wave numbers: half the sum of |û(k)|² over k - 1/2 <= |k| < k + 1/2.

    û is the spectrum over the number of points, so that all shells together hold the mean of u²/2.
    Every rank sums up its own part of the half spectrum that `rote.fft.rfftn` gives of a field of this shape, in any
    layout, and the sums are added over the ranks. Wave numbers are integers, as for a cube of side 2 pi. All ranks get
    the energies of the shells 0 to min(shape)/2. Collective.
    """
    comm, dist = spectrum.comm, spectrum.distribution
    at = dist.tensor_indices(comm.rank)
    waves = [np.minimum(index, n - index) for index, n in zip(at, shape, strict=True)]
    shell = np.rint(np.sqrt(sum(wave.astype(float) ** 2 for wave in waves))).astype(np.int64)
    # The other half of the spectrum mirrors this one, except for the planes that are their own mirror image.
    twice = np.where((at[-1] == 0) | (2 * at[-1] == shape[-1]), 1.0, 2.0)
    power: Floats = twice * np.abs(spectrum.local) ** 2 / (2.0 * prod(shape) ** 2)
    count = min(shape) // 2 + 1
    energy = np.bincount(shell.ravel(), power.ravel() * writes(dist, comm.rank), minlength=count)[:count].astype(
        np.float64
    )
    comm.allreduce(energy, "sum")
    return energy
