"""ScaLAPACK: where its libraries are, how they are opened, and why there are none.

MKL's wheel, `pip install mkl`, has it for Linux on x86-64, with a BLACS for MPICH and one for Open MPI; elsewhere a
system's ScaLAPACK serves, which stands beside the system's MPI. Nothing is opened before its first use.

A library of MPI programs is opened in the right order, or the process ends without an error of Python:

- mpi4py opens its MPI only for itself. BLACS, which calls MPI, finds it only if that very file is opened once more,
  for the whole process. Another file would be a second MPI, which was never started.
- MKL's libraries need each other, in a circle. They are opened for the whole process, and names are bound as they are
  called. So modules that need FFTW and are imported later, such as mpi4py-fft, run on MKL's FFTW functions.
- A handle of a communicator is a number in MPICH and an address in Open MPI. Each MKL BLACS is for one of them. Where
  MPI has the common interface of MPI 5, or another vendor, there is none.
- Integers are of 32 bits (LP64): with those of 64 bits, BLACS ends the process under Open MPI.
"""

from __future__ import annotations

import os
from ctypes import CDLL, c_int, c_void_p
from glob import glob
from typing import Any

from ..caches import memoized
from ..host import dlopen, mkl_files
from ..runtime.comm.agreement import gathered
from ..runtime.comm.cache import cached
from ..runtime.comm.protocol import Comm, MpiHandle, NativeMpi

__all__ = ["INSTALL", "files_for", "handle_of", "library", "opened"]

INSTALL = "pip install mkl, which the extra rote-tensor[fast] has, on Linux x86-64; elsewhere a ScaLAPACK of the system"
"""What brings ScaLAPACK."""

_MKL = "core", "sequential", "intel_lp64", "blacs_{}_lp64", "scalapack_lp64"  # each needs those before it
_KERNELS = "def"  # for any processor; MKL ends the process if it finds neither these nor this processor's
_BLACS = {("MPICH", 4): "intelmpi", ("Intel MPI", 4): "intelmpi", ("Open MPI", 8): "openmpi"}  # by vendor and handle
_SYSTEM = {"intelmpi": "mpich", "openmpi": "openmpi"}


def library(comm: Comm) -> CDLL | str:
    """ScaLAPACK for all ranks of a communicator, or why some rank has none. Collective at the first call."""

    def make() -> CDLL | str:
        mine = opened(comm.native) if isinstance(comm, MpiHandle) else "ranks of one process have no MPI"
        texts = gathered(comm, "ScaLAPACK", mine if isinstance(mine, str) else "")
        missing = [f"rank {rank}: {text}" for rank, text in enumerate(texts) if text]
        return missing[0] if missing else mine

    return cached(comm, "ScaLAPACK", None, make, 1)


def opened(mpi: NativeMpi) -> CDLL | str:
    """ScaLAPACK, opened in this process for its MPI; or why there is none."""
    return _opened(mpi.size, mpi.vendor, mpi.file)


@memoized(1)
def _opened(size: int, vendor: str, file: str) -> CDLL | str:
    paths = files_for(size, vendor, file)
    if isinstance(paths, str):
        return paths
    try:
        os.getcwd()  # MKL does not find its own libraries where there is no folder, and ends the process
        for path in (file, *paths):
            dlopen(path, os.RTLD_GLOBAL)
    except OSError as error:
        return str(error)

    scalapack = CDLL(None)
    names = "pdpotrf_", "pdstedc_", "Csys2blacs_handle", "Cblacs_gridinit"
    missing = [name for name in names if not hasattr(scalapack, name)]
    if missing:
        return f"{paths[-1]} has no {missing[0]}"
    scalapack.Csys2blacs_handle.restype = c_int
    return scalapack


def files_for(size: int, vendor: str, file: str) -> tuple[str, ...] | str:
    """The files of ScaLAPACK for an MPI, in the order in which they are opened; or why there are none.

    Args:
        size, vendor, file: see `NativeMpi`.

    >>> files_for(8, "MPICH", "libmpi_abi.so.1")
    'no BLACS is known for MPICH with handles of 8 bytes'
    """
    blacs = _BLACS.get((vendor, size))
    if blacs is None:
        return f"no BLACS is known for {vendor} with handles of {size} bytes"
    if not file:
        return f"the file of {vendor} is not found in /proc"

    mkl = mkl_files()
    names = [name.format(blacs) for name in _MKL]
    if all(os.path.isfile(mkl.get(name, "")) for name in (*names, _KERNELS)):
        return tuple([mkl[name] for name in names])

    # A ScaLAPACK from another place would bring an MPI of its own.
    folder = os.path.dirname(os.path.realpath(file))
    for place in (os.path.dirname(file), folder, os.path.dirname(os.path.dirname(folder))):
        for name in (f"libscalapack-{_SYSTEM[blacs]}.so*", "libscalapack.so*"):
            paths = sorted(glob(os.path.join(place, name)))
            if paths:
                return (paths[0],)
    return f"neither MKL's ScaLAPACK nor one beside {file} is installed"


def handle_of(mpi: NativeMpi) -> Any:
    """A communicator as an argument of BLACS: a number, or an address."""
    return c_void_p(mpi.handle) if mpi.size == 8 else c_int(mpi.handle)
