"""Libraries of local transforms, each a small file behind the protocol of `rote.fft.kernels.backends.protocol`.

All but pyfftw and numpy are optional: they are imported when they transform, and one that is not installed is none.
"""

from __future__ import annotations

from .protocol import Library

__all__ = ["NAMES", "library", "versions"]

NAMES = ("pyfftw", "ducc0", "mkl_fft", "scipy", "numpy")
"""The libraries by the names of their packages, the usual one first."""


def library(name: str) -> Library:
    """A library by its name."""
    if name == "ducc0":
        from . import ducc

        return ducc
    if name == "mkl_fft":
        from . import mkl

        return mkl
    if name == "scipy":
        from . import scipyfft

        return scipyfft
    if name == "numpy":
        from . import numpyfft

        return numpyfft
    from . import fftw

    return fftw


def versions() -> dict[str, str]:
    """The version of each library that is installed.

    >>> [name in versions() for name in ("pyfftw", "numpy")]
    [True, True]
    """
    every = {name: library(name).version() for name in NAMES}
    return {name: version for name, version in every.items() if version}
