"""The builds of the libraries that are measured: their versions, and the instructions that they were compiled for."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from ..caches import memoized

__all__ = ["build", "fftw_text"]

_WITHIN = {"pyfftw": "pyfftw.pyfftw", "mpi4py-fft": "mpi4py_fft.fftw."}  # the modules that FFTW is linked to


@memoized(64)
def build(package: str) -> str:
    """A package that has been imported: name, version, and which FFTW or MKL it runs, of which instruction set.

    >>> import pyfftw
    >>> build("pyfftw").startswith("pyfftw 0."), "with FFTW 3." in build("pyfftw")
    (True, True)
    """
    try:
        text = f"{package} {version(package)}"
    except PackageNotFoundError:
        return package
    if package in _WITHIN:
        text += "".join(f" with {fftw}" for fftw in _linked(_WITHIN[package]))
    if package == "mkl_fft":
        with suppress(PackageNotFoundError):
            text += f" with MKL {version('mkl')}"
    return text


def fftw_text(said: str) -> str:
    """FFTW's own version string in words.

    >>> fftw_text("fftw-3.3.5-sse2-avx"), fftw_text("fftw-3.3.10")
    ('FFTW 3.3.5 (sse2, avx)', 'FFTW 3.3.10')
    """
    _, _, rest = said.partition("-")
    number, *sets = rest.split("-")
    instructions = f" ({', '.join(sets)})" if sets else ""
    return f"FFTW {number}{instructions}" if number else said


def _linked(modules: str) -> list[str]:
    """The FFTW of the first imported module of some names that is linked to one; double precision, if it says which."""
    files = {name: getattr(module, "__file__", None) for name, module in [*sys.modules.items()]}
    for name, path in sorted(files.items()):
        if name.startswith(modules) and path is not None:
            for symbol in ("fftw_version", "fftwf_version"):
                with suppress(OSError, ValueError):
                    return [fftw_text((ctypes.c_char * 128).in_dll(ctypes.CDLL(path), symbol).value.decode("ascii"))]
    return []
