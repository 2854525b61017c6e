"""The interface of mpi4py-fft, implemented with Rote: to run a program, change its import.

    from rote.compat.mpi4py_fft import PFFT, newDistArray

Redistributions are plans of Rote, and a parallel transform is one of its walks. The modules have the names of
mpi4py-fft's, which programs import, too. `notebooks/from-mpi4py-fft.md` lists the differences and the missing features.

>>> import numpy as np, rote
>>> from rote.compat.mpi4py_fft import PFFT, newDistArray
>>> def program(comm):
...     fft = PFFT(comm, (8, 9, 10))
...     u = newDistArray(fft, False)
...     u[:] = np.random.default_rng(comm.rank).random(u.shape)
...     return np.allclose(fft.backward(fft.forward(u)), u)
>>> rote.run(program, ranks=4)
[True, True, True, True]
"""

from __future__ import annotations

from . import fftw, libfft
from .distarray import DistArray, Function, newDistArray
from .fftw.factory import fftlib
from .io import HDF5File, NCFile, generate_xdmf
from .mpifft import PFFT

__all__ = ["PFFT", "DistArray", "Function", "HDF5File", "NCFile", "fftlib", "fftw", "generate_xdmf", "libfft"]
__all__ += ["newDistArray"]
