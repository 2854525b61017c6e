"""MKL, through its FFTW interface: Fourier transforms in single and double precision, on one thread.

Through this interface MKL transforms columns as fast as lines, in half the time that they take through its own
interface, which mkl_fft calls. MKL is loaded from the wheel `mkl`.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping
from ctypes import CDLL
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from rote.host import dlopen, mkl_files

from ...transforms import KINDS
from .interface import FUNCTIONS, PRECISIONS, Interface

__all__ = ["Mkl"]

_LOADED = 4  # a flag of dlopen(3) on Linux: open the library only if the process has it
_BELOW, _INTERFACE, _ALL = ("core", "sequential"), "intel_lp64", "rt"  # MKL's libraries; the last one opens the others
_ANYWHERE = "def"  # kernels for any processor: MKL ends the process if it finds neither these nor this processor's


class Mkl(Interface):
    """MKL. On Intel's processors it is the fastest at every length, and on others at none."""

    name = "mkl"
    timed = True
    threaded = False
    processors = "Intel"
    prefers_tiles = False

    def opened(self) -> Mapping[str, CDLL] | str:
        return _opened()

    def version(self) -> str:
        """The library's version; empty if MKL cannot be loaded."""
        interface = _opened()
        if isinstance(interface, str):
            return ""
        text = ctypes.create_string_buffer(200)
        interface["fftw"].MKL_Get_Version_String(text, len(text))  # "… Version 2026.2-Product Build …"
        return text.value.decode().partition("Version ")[2].partition("-")[0]

    def does(self, kind: str, dtype: np.dtype[Any]) -> bool:
        return KINDS[kind].real != "both" and super().does(kind, dtype)


@cache
def _opened() -> dict[str, CDLL] | str:
    """The interface, or why there is none; if the program runs MKL already, that one is used."""
    if sys.platform != "linux":
        return "MKL is loaded on Linux only"
    try:
        os.getcwd()
    except OSError:  # MKL does not find its own libraries, and ends the process
        return "the working folder is gone"

    paths = mkl_files()
    missing = [name for name in (*_BELOW, _INTERFACE, _ALL, _ANYWHERE) if not os.path.isfile(paths.get(name, ""))]
    if missing:
        return f"no file {', '.join([f'libmkl_{name}.so' for name in missing])} is where the package mkl has its files"

    try:
        name, handle = _ALL, dlopen(paths[_ALL], _LOADED)
    except OSError:
        try:
            for below in _BELOW:  # they define no functions of FFTW
                dlopen(paths[below], os.RTLD_GLOBAL)
            name, handle = _INTERFACE, dlopen(paths[_INTERFACE])
        except OSError as error:
            return str(error)

    interface = CDLL(paths[name], handle=handle)
    for precision, function in product(PRECISIONS.values(), FUNCTIONS.values()):
        if function != "r2r" and not hasattr(interface, f"{precision}_plan_guru64_{function}"):
            return f"{paths[name]} has no {precision}_plan_guru64_{function}"
    for precision in PRECISIONS.values():
        getattr(interface, f"{precision}_plan_with_nthreads")(1)
    return dict.fromkeys(PRECISIONS.values(), interface)
