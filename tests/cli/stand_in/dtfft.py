"""What `rote bench` uses of dtFFT 3.2, done by NumPy: its names, its blocks, and the order of these in memory."""

from __future__ import annotations

from enum import Enum
from math import prod
from types import SimpleNamespace

import numpy as np

Precision = Enum("Precision", "SINGLE DOUBLE")
Backend = Enum("Backend", "MPI_A2A MPI_P2P_FUSED")
Executor = Enum("Executor", "NONE FFTW3")
Execute = Enum("Execute", "FORWARD BACKWARD")
Layout = Enum("Layout", "X_PENCILS Y_PENCILS Z_PENCILS")
Config = SimpleNamespace


class PlanC2C:
    """Extents begin with x, whose elements are neighbours; those of a spectrum with its last mode. The last is cut."""

    real = False
    aux_size = 0

    def __init__(self, dims, comm, precision, executor, config):
        assert executor is Executor.FFTW3
        assert config.backend in Backend
        self.dims, self.comm, self.dtype = [*dims], comm, np.dtype("c8" if precision is Precision.SINGLE else "c16")
        if self.real:
            self.dtype = self.dtype.type().real.dtype
        first = dims[0] // 2 + 1 if self.real else dims[0]
        self.spectrum = [dims[-1], first, *dims[1:-1]]
        self.alloc_size = prod(self.spectrum) * (1 + self.real)

    def get_pencil(self, layout):
        """The part of the input, or of the spectrum, whose whole mode is y or z, whichever is the last."""
        assert layout is not Layout.Y_PENCILS or len(self.dims) == 2
        return self._pencil(self.dims if layout is Layout.X_PENCILS else self.spectrum)

    def _pencil(self, extents):
        start, stop = (extents[-1] * rank // self.comm.size for rank in (self.comm.rank, self.comm.rank + 1))
        return SimpleNamespace(starts=[0] * (len(extents) - 1) + [start], counts=[*extents[:-1], stop - start])

    def get_ndarray(self, size):
        """Memory of some elements."""
        return np.empty(size, self.dtype)

    def execute(self, source, target, direction, scratch):
        """Transform; nothing is scaled."""
        values, shape = np.result_type(self.dtype, "c8"), self.dims[::-1]
        if direction is Execute.FORWARD:
            found = (np.fft.rfftn if self.real else np.fft.fftn)(self._whole(source, self.dims))
            self._leave(np.moveaxis(found, 0, -1), target.view(values), self.spectrum)
        else:
            spectrum = np.moveaxis(self._whole(source.view(values), self.spectrum), -1, 0)
            axes = tuple(range(len(shape)))
            back = np.fft.irfftn(spectrum, shape, axes) if self.real else np.fft.ifftn(spectrum)
            self._leave(prod(shape) * back, target, self.dims)

    def _whole(self, block, extents):
        parts = self.comm.allgather(block[: prod(self._pencil(extents).counts)])
        return np.concatenate(parts).reshape(extents[::-1])

    def _leave(self, whole, block, extents):
        held = self._pencil(extents)
        part = whole[held.starts[-1] : held.starts[-1] + held.counts[-1]]
        block[: part.size] = part.ravel()


class PlanR2C(PlanC2C):
    """Half a spectrum: of x."""

    real = True
