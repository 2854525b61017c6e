"""The compiled part of pyfftw, without the package's interfaces, which import SciPy.

SciPy would take half a second of every program's start. So the package itself is loaded lazily: it runs when somebody
uses it, say after `import pyfftw`, and then finds the compiled part that is in use.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import LazyLoader, find_spec, module_from_spec
from typing import Any

__all__ = ["fftw_core", "fftw_version"]

_PACKAGE, _CORE = "pyfftw", "pyfftw.pyfftw"
_importing = threading.Lock()  # in-process ranks import at the same time


@cache
def fftw_core() -> Any:
    """The module `pyfftw.pyfftw`.

    Raises:
        ImportError: pyfftw is not installed, or its FFTW cannot be loaded.

    >>> import pyfftw
    >>> fftw_core() is sys.modules["pyfftw.pyfftw"], fftw_core().FFTW is pyfftw.FFTW
    (True, True)
    """
    with _importing:
        package = None if {_PACKAGE, _CORE} & sys.modules.keys() else find_spec(_PACKAGE)
        if package is None or package.loader is None:
            return import_module("pyfftw.pyfftw")
        core = PathFinder.find_spec(_CORE, package.submodule_search_locations)
        if core is None or core.loader is None:
            return import_module("pyfftw.pyfftw")
        with _by_its_own_functions():
            module = sys.modules[_CORE] = module_from_spec(core)
        try:
            core.loader.exec_module(module)
        except BaseException:
            del sys.modules[_CORE]
            raise
        loader = package.loader = LazyLoader(package.loader)
        whole = module_from_spec(package)
        vars(whole)["pyfftw"] = module  # as an import binds a module in its package
        loader.exec_module(whole)
        sys.modules[_PACKAGE] = whole
        return module


@contextmanager
def _by_its_own_functions() -> Iterator[None]:
    """Bind a library that is loaded to its own FFTW functions, and not to MKL's.

    MKL has functions of the same names, which plan less. If a module such as mkl_fft has opened MKL for the whole
    process, libraries that are loaded later would be bound to MKL's functions.
    """
    apart = getattr(os, "RTLD_DEEPBIND", 0)
    if not (apart and hasattr(ctypes.CDLL(None), "MKL_Get_Version")):
        yield
        return
    flags = sys.getdlopenflags()
    sys.setdlopenflags(flags | apart)
    try:
        yield
    finally:
        sys.setdlopenflags(flags)


def fftw_version() -> str:
    """The version of FFTW that pyfftw runs.

    >>> fftw_version().startswith("3.")
    True
    """
    numbers = re.search(r"\d+\.\d+\.\d+", fftw_core()._fftw_version_dict.get("64", ""))
    return numbers.group() if numbers else ""
