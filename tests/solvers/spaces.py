"""Spaces of real fields on n points per axis of a periodic box, and of their spectra, by several libraries.

A space has a rank's blocks of both, the transforms between them, with the scale on the way forward, the wavenumbers of
its block of the spectrum, and sums over all ranks. So each solver is one program of NumPy, whatever transforms there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["SPACES", "Space"]

Array = npt.NDArray[Any]


class Space:
    """One process that has it all; the libraries below give it transforms, and blocks to those that have ranks.

    Attributes:
        n: modes along each axis; points of the grid, too, but where it is padded: those are 3n/2.
        real, spectral: the slices of the whole grid, and of all modes, that this rank holds.
        library: its name and version.
        modules: what it imports.
    """

    modules: tuple[str, ...] = ()

    rank = 0
    library: str
    backward: Callable[[Array, Array], object]
    forward: Callable[[Array, Array], object]

    def __init__(self, n: int, padded: bool) -> None:
        self.n, self.points = n, 3 * n // 2 if padded else n
        self.real = (slice(0, self.points),) * 3
        self.spectral = (slice(0, n), slice(0, n), slice(0, n // 2 + 1))

    def empty(self, *components: int) -> Array:
        """A field of this rank, of vectors if they have components."""
        return np.empty((*components, *(s.stop - s.start for s in self.real)))

    def empty_spectrum(self, *components: int) -> Array:
        """A spectrum of this rank."""
        return np.empty((*components, *(s.stop - s.start for s in self.spectral)), complex)

    def grid(self) -> Sequence[Array]:
        """The coordinates of this rank's points, in [0, 2 pi), as an open mesh."""
        return [2 * np.pi / self.points * i for i in np.ogrid[self.real]]

    def modes(self) -> Sequence[Array]:
        """The wavenumbers of this rank's modes as an open mesh; that of Nyquist is negative on whole axes."""
        n, slices = self.n, self.spectral
        full = np.fft.fftfreq(n, 1 / n)
        return np.ix_(full[slices[0]], full[slices[1]], np.arange(n // 2 + 1.0)[slices[2]])

    def sum(self, value: float) -> float:
        """The sum over all ranks."""
        return float(value)

    def energy(self, spectrum: Array) -> float:
        """Half of the mean square of the field of a spectrum, by Parseval's theorem; of all its components."""
        last = self.modes()[2]
        weights = np.where((last == 0) | (last == self.n // 2), 1.0, 2.0)
        return self.sum(0.5 * np.sum(weights * (spectrum.real**2 + spectrum.imag**2)))


class Rote(Space):
    """Rote, on MPI's ranks."""

    modules = ("mpi4py.MPI", "rote.fft.plan")

    def __init__(self, n: int, padded: bool) -> None:
        from mpi4py import MPI

        import rote
        from rote.fft import FFT

        super().__init__(n, padded)
        self._comm, self.library = MPI.COMM_WORLD, f"rote {rote.__version__}"
        points = (self.points,) * 3
        extra = {"resample": (n, n, n)} if padded else {}
        fft = FFT(points, grid=self._comm.size, comm=self._comm, dtype="f8", norm="forward", **extra)
        self.rank, comm = fft.comm.rank, fft.comm
        source, target = fft.input_distribution, fft.output_distribution
        self.real, self.spectral = (
            tuple(slice(int(i.min()), int(i.max()) + 1) for i in (np.asarray(i) for i in each.indices(self.rank)))
            for each in (source, target)
        )
        self.forward = lambda x, X: fft.forward(rote.DistTensor(x, source, comm), out=rote.DistTensor(X, target, comm))
        self.backward = lambda X, x: fft.backward(
            rote.DistTensor(X, target, comm), out=rote.DistTensor(x, source, comm)
        )

    def sum(self, value: float) -> float:
        return float(self._comm.allreduce(value))


class Mpi4pyFft(Space):
    """mpi4py-fft, on MPI's ranks, with its defaults, on slabs as Rote's."""

    modules = ("mpi4py.MPI", "mpi4py_fft")

    def __init__(self, n: int, padded: bool) -> None:
        from importlib.metadata import version

        from mpi4py import MPI
        from mpi4py_fft import PFFT

        super().__init__(n, padded)
        self._comm, self.library = MPI.COMM_WORLD, f"mpi4py-fft {version('mpi4py-fft')}"
        self.rank = self._comm.rank
        padding = {"padding": [1.5] * 3} if padded else {}
        fft = PFFT(self._comm, (n, n, n), dtype=float, grid=(self._comm.size,), **padding)
        self.real, self.spectral = fft.local_slice(False), fft.local_slice(True)
        self.forward, self.backward = fft.forward, fft.backward

    def sum(self, value: float) -> float:
        return float(self._comm.allreduce(value))


class SciPy(Space):
    """SciPy in one process, on two threads."""

    modules = ("scipy.fft",)

    def __init__(self, n: int, padded: bool) -> None:
        import scipy
        from scipy import fft

        super().__init__(n, padded)
        self.library = f"scipy {scipy.__version__}"
        shape = (self.points,) * 3

        def forward(x: Array, X: Array) -> None:
            _cut(fft.rfftn(x, workers=2, norm="forward"), X)

        def backward(X: Array, x: Array) -> None:
            x[...] = fft.irfftn(_padded(X, self.points), shape, workers=2, norm="forward", overwrite_x=padded)

        self.forward, self.backward = forward, backward


class Ducc(Space):
    """ducc0 in one process, on two threads."""

    modules = ("ducc0",)

    def __init__(self, n: int, padded: bool) -> None:
        from importlib.metadata import version

        from ducc0 import fft

        super().__init__(n, padded)
        self.library = f"ducc0 {version('ducc0')}"

        def forward(x: Array, X: Array) -> None:
            spectrum = None if padded else X
            _cut(fft.r2c(x, axes=(0, 1, 2), inorm=2, nthreads=2, out=spectrum), X)

        def backward(X: Array, x: Array) -> None:
            spectrum = _padded(X, self.points)
            fft.c2r(spectrum, axes=(0, 1, 2), lastsize=self.points, nthreads=2, out=x, allow_overwriting_input=padded)

        self.forward, self.backward = forward, backward


SPACES: dict[str, type[Space]] = {"rote": Rote, "mpi4py-fft": Mpi4pyFft, "scipy": SciPy, "ducc0": Ducc}


def _corners(n: int) -> Sequence[tuple[slice, slice]]:
    """The corners of the first two axes in which n modes lie, of a longer spectrum and of theirs alike."""
    halves = slice(0, n // 2), slice(-(n // 2), None)
    return [(a, b) for a in halves for b in halves]


def _cut(long: Array, X: Array) -> None:
    """Keep so many modes of a spectrum as X has."""
    if long is not X:
        for corner in _corners(X.shape[0]) if long.shape != X.shape else [()]:
            X[corner] = long[(*corner, slice(0, X.shape[-1]))] if corner else long


def _padded(X: Array, points: int) -> Array:
    """The spectrum on more points that has these modes; that of Nyquist must be zero, for it would have a twin."""
    if X.shape[0] == points:
        return X
    long = np.zeros((points, points, points // 2 + 1), complex)
    for corner in _corners(X.shape[0]):
        long[(*corner, slice(0, X.shape[-1]))] = X[corner]
    return long
