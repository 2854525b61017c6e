"""Libraries of local transforms, each a class with its traits; see `rote.fft.kernels.backends.library`.

All but numpy are optional, and are imported only when they are used.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from rote.errors import RoteError
from rote.host import processor

from ...transforms import HALVING, KINDS
from .library import Library

__all__ = ["NAMES", "common_versions", "fault", "library", "timed_libraries", "transforms", "usual_library"]

NAMES = ("pyfftw", "fftw3", "ducc0", "mkl", "scipy", "numpy")
"""The libraries by the names of their packages, the usual one first; `fftw3` is the system's FFTW."""


@cache
def library(name: str) -> Library:
    """A library by its name."""
    if name == "pyfftw":
        from .fftw import Fftw

        return Fftw()
    if name == "fftw3":
        from .system import SystemFftw

        return SystemFftw()
    if name == "mkl":
        from .mkl import Mkl

        return Mkl()
    from .library import Ducc, NumPy, SciPy

    return next(backend() for backend in (Ducc, SciPy, NumPy) if backend.name == name)


def fault() -> str:
    """What is wrong with the library that `ROTE_FFTW` names; empty if nothing is, or it names none."""
    named = os.environ.get("ROTE_FFTW")
    if not named:
        return ""
    try:
        library("fftw3").load()
    except ImportError as error:
        return f"ROTE_FFTW={named} is no FFTW: {error}\nname a file libfftw3.so.3 or its folder, or unset ROTE_FFTW"
    return ""


def timed_libraries() -> tuple[str, ...]:
    """The libraries that are the fastest somewhere."""
    return tuple(name for name in NAMES if library(name).timed)


def transforms(name: str, kind: str, dtype: np.dtype[Any]) -> bool:
    """Whether a library can transform arrays of a dtype: by a function of its own, or by parts."""
    backend = library(name)
    return backend.does(kind, dtype) or (KINDS[kind].parts != "" and backend.does(HALVING[0], dtype))


def usual_library(kind: str, dtype: np.dtype[Any], threaded: bool = False) -> str:
    """The library that is taken if none was timed: that of the processor's maker, if it is installed, else FFTW.

    Without pyfftw, which has no wheels for some versions of Python and some processors, the next one of `NAMES` is
    taken that can be loaded: the system's FFTW if there is one. A `threaded` one has threads of its own.

    Raises:
        RoteError: pyfftw cannot be loaded, and no other library that can has these transforms.
    """
    for name in NAMES:
        backend = library(name)
        made_here = backend.processors and backend.processors in processor()
        if made_here and (backend.threaded or not threaded) and backend.does(kind, dtype) and backend.version():
            return name

    if _is_usable(NAMES[0]):
        return NAMES[0]
    for name in NAMES:
        if not library(name).processors and _is_usable(name) and transforms(name, kind, dtype):
            return name

    raise RoteError(f"no installed library has {kind} of {dtype}\npip install pyfftw, or ducc0, or SciPy")


def _is_usable(name: str) -> bool:
    return bool(library(name).installed()) and library(name).loads


def common_versions(replies: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The libraries that all ranks have in one version, with it."""
    common = set.intersection(*(set(of_rank.items()) for of_rank in replies))
    return {name: version for name, version in replies[0].items() if (name, version) in common}
