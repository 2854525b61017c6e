"""The FFTW of the machine: the shared libraries `libfftw3` and `libfftw3f` of a cluster, of conda or of Debian.

They are often built for newer processors than the FFTW in pyfftw's wheel. They are those that `ROTE_FFTW` names, else
those of this environment, else those on the loader's path.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping
from ctypes import CDLL, c_char
from functools import cache
from glob import escape, glob

from rote.host import dlopen

from .interface import FUNCTIONS, Interface

__all__ = ["SystemFftw"]

_STEMS = {"fftw": "libfftw3", "fftwf": "libfftw3f"}
_SUFFIX = ".3.dylib" if sys.platform == "darwin" else ".so.3"
_DEEP = getattr(os, "RTLD_DEEPBIND", 0)  # its functions call its own, though MKL is opened for the whole process


class SystemFftw(Interface):
    """The system's FFTW, on one thread. Of its estimated plans the same holds as of pyfftw's."""

    name = "fftw3"
    timed = True
    threaded = False
    line_to_line = True
    repeats = 64  # any number

    def opened(self) -> Mapping[str, CDLL] | str:
        return _opened(os.environ.get("ROTE_FFTW", ""))

    def installed(self) -> str:
        return self.version()

    def version(self) -> str:
        """Version and instruction sets, with the precisions, such as "3.3.10-sse2-avx double, single"."""
        opened = self.opened()
        if isinstance(opened, str):
            return ""
        (name, *_), precisions = (_name(*entry) for entry in opened.items()), {"fftw": "double", "fftwf": "single"}
        return f"{name.removeprefix('fftw-')} {', '.join(precisions[precision] for precision in opened)}"


@cache
def _opened(named: str) -> dict[str, CDLL] | str:
    """The libraries by precision; or why there is none where the user says."""
    if named:
        return _open(_files(named))

    why = ""
    for folder in (os.path.join(sys.prefix, "lib"), ""):
        opened = _open({precision: os.path.join(folder, stem + _SUFFIX) for precision, stem in _STEMS.items()})
        if not isinstance(opened, str):
            return opened
        why = opened
    return why


def _files(named: str) -> dict[str, str]:
    """The files that a path names, of a library in double precision or a folder; that in single lies beside it."""
    folder = named if os.path.isdir(named) else os.path.dirname(named)

    files = {}
    for precision, stem in _STEMS.items():
        paths = glob(os.path.join(escape(folder), f"{stem}[.-]*"))  # after "-" a wheel has a hash
        shared = sorted(path for path in paths if ".so" in path or path.endswith(".dylib"))
        if shared:
            files[precision] = shared[0]

    if folder != named:
        files["fftw"] = named
    return files


def _open(files: Mapping[str, str]) -> dict[str, CDLL] | str:
    """Open the libraries; that in double precision must be there, and all must be FFTW."""
    if "fftw" not in files:
        return "no shared library libfftw3 is in this folder"

    opened = {}
    for precision in [precision for precision in _STEMS if precision in files]:
        path = files[precision]
        try:
            library = CDLL(path, handle=dlopen(path, _DEEP))
        except OSError as error:
            if precision == "fftw" or os.path.exists(path):
                return str(error)
            continue  # FFTW is often installed in double precision alone

        names = [f"{precision}_plan_guru64_{function}" for function in FUNCTIONS.values()]
        missing = [name for name in (f"{precision}_version", *names) if not hasattr(library, name)]
        if missing:
            return f"{path} has no {missing[0]}"
        opened[precision] = library
    return opened


def _name(precision: str, library: CDLL) -> str:
    """The name that the library gives itself, such as "fftw-3.3.10-sse2-avx"."""
    start = c_char.in_dll(library, f"{precision}_version")
    return ctypes.string_at(ctypes.addressof(start)).decode()
