"""FFTW, through pyfftw: every kind, in every precision of its build.

Only the compiled part of pyfftw is loaded, without the package's interfaces: they import SciPy, which would take half a
second of every program's start. The package itself is loaded lazily: it runs when somebody uses it, say after `import
pyfftw`, and then finds the compiled part that is in use.

Plans are estimated. FFTW's own search for plans by timing gains little where axes with unfavourable strides are
transformed in tiles (`rote.fft.kernels.passes`), and would let the last bits of results differ from run to run.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import LazyLoader, find_spec, module_from_spec
from typing import Any

import numpy as np

from rote.caches import memoized
from rote.host import installed

from ...transforms import KINDS, TransformKind, real_dtype
from .library import PLANNING, Array, ArrayTransform, Axes, Ends, KernelConfig, Library

__all__ = ["Fftw", "fftw_build", "fftw_core"]

_PACKAGE, _CORE = "pyfftw", "pyfftw.pyfftw"
_PRECISIONS = {"f": ("32", "single"), "d": ("64", "double"), "g": ("ld", "long double")}  # pyfftw's name, and ours
_importing = threading.Lock()  # in-process ranks import at the same time


class Fftw(Library):
    """FFTW. Its estimated plans are fast from line to line; at most lengths they take 1.2 to 1.9 times as long in
    columns, with all copies. By estimate it chooses the same transform on every rank and in every run.
    """

    name = _PACKAGE
    timed = True
    line_to_line = True

    def load(self) -> Any:
        return fftw_core()

    def version(self) -> str:
        package = super().version()
        return f"{package} {_fftw_version()}" if package else ""

    def does(self, kind: str, dtype: np.dtype[Any]) -> bool:
        known = KINDS[kind].real != "both" or _knows(KINDS[kind].fftw)
        return known and _PRECISIONS[real_dtype(dtype).char][0] in fftw_core()._supported_types

    def prepare(self, row: TransformKind, axes: Axes, ends: Ends, config: KernelConfig) -> ArrayTransform:
        direction = (row.fftw,) * len(axes) if row.real == "both" else row.fftw
        flags = ["FFTW_ESTIMATE"]
        if row.real == "output":
            flags.append("FFTW_DESTROY_INPUT")  # without it, one axis is slower

        with PLANNING:
            plan = fftw_core().FFTW(*ends, axes, direction, flags=flags, threads=config.threads)
        return _with_own_arrays(plan, ends)


def _with_own_arrays(plan: Any, ends: Ends) -> ArrayTransform:
    """A plan of FFTW. It would keep the last arrays alive, so it returns to its own after each call."""

    def run(source: Array, target: Array) -> None:
        plan.update_arrays(source, target)
        plan.execute()
        plan.update_arrays(*ends)

    def bound(source: Array, target: Array) -> Callable[[], object]:
        its_own = source is ends[0] and target is ends[1]
        return plan.execute if its_own else partial(run, source, target)

    return bound


@memoized(64)  # a trial plan takes longer than most transforms
def _knows(name: str) -> bool:
    """Whether pyfftw knows a kind of transform of real numbers, by FFTW's name; it does not know all."""
    with PLANNING:
        try:
            fftw_core().FFTW(np.zeros(2), np.zeros(2), direction=(name,), flags=("FFTW_ESTIMATE",))
        except ValueError:
            return False
    return True


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
    deep = getattr(os, "RTLD_DEEPBIND", 0)
    if not (deep and hasattr(ctypes.CDLL(None), "MKL_Get_Version")):
        yield
        return
    flags = sys.getdlopenflags()
    sys.setdlopenflags(flags | deep)
    try:
        yield
    finally:
        sys.setdlopenflags(flags)


def fftw_build() -> tuple[str, str, tuple[str, ...]]:
    """The version of pyFFTW, that of FFTW, and the precisions of its build."""
    precisions = tuple(name for key, name in _PRECISIONS.values() if key in fftw_core()._supported_types)
    return installed(_PACKAGE), _fftw_version(), precisions


def _fftw_version() -> str:
    numbers = re.search(r"\d+\.\d+\.\d+", fftw_core()._fftw_version_dict.get("64", ""))
    return numbers.group() if numbers else ""
