"""Libraries of local transforms, each a small file behind the protocol of `rote.fft.kernels.backends.protocol`.

All but numpy are optional, and are imported only when they are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rote.errors import RoteError
from rote.host import installed, processor

from ...transforms import HALVING, KINDS
from ..kernel import Kernel
from .by_parts import ByParts, OfHalves
from .protocol import Array, ArrayTransform, Library

__all__ = [
    "NAMES",
    "common_versions",
    "composed",
    "library",
    "prepare",
    "transforms",
    "usual_library",
    "usual_library_but_mkl",
    "versions",
]

NAMES = ("pyfftw", "ducc0", "mkl", "scipy", "numpy")
"""The libraries by the names of their packages, the usual one first."""


def library(name: str) -> Library:
    """A library by its name."""
    if name == "ducc0":
        from . import ducc

        return ducc
    if name == "mkl":
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


def transforms(name: str, kind: str, dtype: np.dtype[Any]) -> bool:
    """Whether a library can transform arrays of a dtype: by a function of its own, or by parts."""
    own = library(name).does(kind, dtype)
    return own or (KINDS[kind].parts != "" and library(name).does(HALVING[0], dtype))


def usual_library(kind: str, dtype: np.dtype[Any]) -> str:
    """The library that is taken if none was timed: MKL on Intel's processors, if it is installed, else FFTW.

    There MKL is faster at every length, and on other processors at none. Without pyfftw, which has no wheels for some
    versions of Python and some processors, the next one of `NAMES` is taken that is installed.
    """
    if "Intel" in processor() and library("mkl").does(kind, dtype) and library("mkl").version():
        return "mkl"
    return usual_library_but_mkl(kind, dtype)


def usual_library_but_mkl(kind: str, dtype: np.dtype[Any]) -> str:
    """The usual library where MKL would not be faster.

    Raises:
        RoteError: pyfftw is not installed, and no other installed library has these transforms.
    """
    if installed("pyfftw"):
        return "pyfftw"
    for name in ("ducc0", "scipy", "numpy"):
        if installed(name) and transforms(name, kind, dtype):
            return name
    raise RoteError(f"no installed library has {kind} of {dtype}\npip install pyfftw, or ducc0, or SciPy")


def composed(kernel: Kernel) -> bool:
    """Whether a kernel's library has no function for its kind, so that it is done by parts, one axis at a time."""
    return kernel.row.parts != "" and not library(kernel.config.library).does(kernel.kind, kernel.dtype)


def prepare(kernel: Kernel, axes: tuple[int, ...], source: Array, target: Array, threads: int) -> ArrayTransform:
    """A transform by the kernel's library; see `Library`."""
    backend = library(kernel.config.library)
    if not composed(kernel):
        return backend.prepare(kernel, axes, source, target, threads)
    (axis,) = axes
    made = OfHalves if kernel.row.backward else ByParts
    return made(backend, kernel, axis, source, target, threads)


def common_versions(replies: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The libraries that all ranks have in one version, with it.

    >>> common_versions([{"pyfftw": "0.14", "numpy": "2.1"}, {"pyfftw": "0.15", "numpy": "2.1"}])
    {'numpy': '2.1'}
    """
    alike = set.intersection(*(set(each.items()) for each in replies))
    return {name: version for name, version in replies[0].items() if (name, version) in alike}


def versions() -> dict[str, str]:
    """The versions of the installed libraries.

    >>> [name in versions() for name in ("pyfftw", "numpy")]
    [True, True]
    """
    every = {name: library(name).version() for name in NAMES}
    return {name: version for name, version in every.items() if version}
