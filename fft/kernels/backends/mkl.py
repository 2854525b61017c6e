"""MKL, through its FFTW interface: Fourier transforms in single and double precision, on one thread.

Through this interface MKL transforms columns as fast as lines, in half the time that they take through its own
interface, which mkl_fft calls. MKL is loaded from the wheel `mkl`. Because the interface defines FFTW's functions, its
symbols stay private to this file. Otherwise a module that is imported later and needs FFTW, such as mpi4py-fft, would
run on MKL, or not at all.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Sequence
from ctypes import CDLL, POINTER, c_char, c_int, c_ssize_t, c_uint, c_void_p
from functools import cache, partial
from itertools import product, starmap
from operator import itemgetter
from typing import Any

import numpy as np

from rote.host import dlopen, mkl_files
from rote.runtime.copies import run

from ...transforms import KINDS, TransformKind
from .library import Array, ArrayTransform, Axes, Ends, KernelConfig, Library

__all__ = ["Mkl"]

_LOADED = 4  # a flag of dlopen(3) on Linux: open the library only if the process has it
_BELOW, _INTERFACE, _ALL = ("core", "sequential"), "intel_lp64", "rt"  # MKL's libraries; the last one opens the others
_ANYWHERE = "def"  # kernels for any processor: MKL ends the process if it finds neither these nor this processor's
_ESTIMATE = 1 << 6
_MOST = 7  # the most axes of one plan
_NEIGHBOURS = 8  # transforms side by side that take longer than a call
_FUNCTIONS = {"neither": "dft", "input": "dft_r2c", "output": "dft_c2r"}
_PRECISIONS = "fftw", "fftwf"  # double and single
_PLANNING = threading.Lock()


class _Dimension(ctypes.Structure):
    """A dimension of a plan, `fftw_iodim64`: its extent, and its strides in the input and the output in elements."""

    _fields_ = (("extent", c_ssize_t), ("source", c_ssize_t), ("target", c_ssize_t))


class Mkl(Library):
    """MKL. On Intel's processors it is the fastest at every length, and on others at none."""

    name = "mkl"
    timed = True
    threaded = False
    processors = "Intel"
    prefers_tiles = False

    def load(self) -> CDLL:
        interface = _interface()
        if interface is None:
            raise ImportError(_opened())
        return interface

    def version(self) -> str:
        """The library's version; empty if MKL cannot be loaded."""
        interface = _interface()
        if interface is None:
            return ""
        text = ctypes.create_string_buffer(200)
        interface.MKL_Get_Version_String(text, len(text))  # "… Version 2026.2-Product Build …"
        return text.value.decode().partition("Version ")[2].partition("-")[0]

    def does(self, kind: str, dtype: np.dtype[Any]) -> bool:
        return KINDS[kind].real != "both" and dtype.char in "fdFD" and self.loads

    def prepare(self, row: TransformKind, axes: Axes, ends: Ends, config: KernelConfig) -> ArrayTransform:
        back = row.real == "output"
        last = axes[-1:] if back and config.tiled else axes[-_MOST:]  # the real axis of a real transform is among these
        rest = axes[: -len(last)]
        groups = [rest[at : at + _MOST] for at in range(0, len(rest), _MOST)]

        if back:  # the complex axes in the source, then the real one to the target
            parts = [*((group, 0, 0) for group in groups), (last, 0, 1)]
        else:
            parts = [(last, 0, 1), *((group, 1, 1) for group in groups)]

        plans = []
        for group, begin, end in parts:
            along = row if group is last else KINDS[row.others]
            plans.append((_Plan(along, group, ends[begin], ends[end]), begin, end))
        return plans[0][0] if len(plans) == 1 else partial(_in_turn, plans)


def _interface() -> CDLL | None:
    """The interface, on one thread; None if MKL cannot be loaded."""
    opened = _opened()
    return None if isinstance(opened, str) else opened


@cache
def _opened() -> CDLL | str:
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
    for precision, function in product(_PRECISIONS, _FUNCTIONS.values()):
        if not hasattr(interface, f"{precision}_plan_guru64_{function}"):
            return f"{paths[name]} has no {precision}_plan_guru64_{function}"
    for precision in _PRECISIONS:
        getattr(interface, f"{precision}_plan_with_nthreads")(1)
    return interface


def _functions(kind: str, single: bool) -> tuple[Any, Any, Any]:
    """FFTW's functions that plan transforms, run them on any arrays, and destroy plans."""
    interface, name = _interface(), _FUNCTIONS[kind]
    precision = _PRECISIONS[single]

    plan = getattr(interface, f"{precision}_plan_guru64_{name}")
    dimensions = (c_int, POINTER(_Dimension)) * 2
    sign = (c_int,) if kind == "neither" else ()
    plan.argtypes = (*dimensions, c_void_p, c_void_p, *sign, c_uint)
    plan.restype = c_void_p

    execute = getattr(interface, f"{precision}_execute_{name}")
    destroy = getattr(interface, f"{precision}_destroy_plan")
    execute.argtypes, execute.restype = (c_void_p,) * 3, None
    destroy.argtypes, destroy.restype = (c_void_p,), None
    return plan, execute, destroy


class _Handle(c_void_p):
    """A plan that is destroyed with its last reference."""

    def __init__(self, plan: int, destroy: Callable[[int], None]) -> None:
        super().__init__(plan)
        self._destroy = destroy

    def __del__(self) -> None:
        if self.value:
            self._destroy(self.value)


class _Begin(c_void_p):
    """The address at which a plan begins in an array, which it keeps alive."""

    def __init__(self, array: Array, offset: int) -> None:
        super().__init__(_address(array) + offset)
        self._array = array


class _Plan:
    """A plan of MKL, and its starts in both arrays: MKL's plans repeat along one mode, this class along the others."""

    __slots__ = ("_execute", "_handle", "_starts")

    def __init__(self, row: TransformKind, axes: Axes, source: Array, target: Array) -> None:
        points = source.shape if row.real == "input" else target.shape
        steps = [n // source.itemsize for n in source.strides]
        out_steps = [n // target.itemsize for n in target.strides]
        every = list(zip(points, steps, out_steps, strict=True))

        # A plan repeats along one mode, `inner`: neighbours, or if there are only a few, the longest mode.
        repeated = _merged([every[m] for m in range(source.ndim) if m not in axes and points[m] > 1])
        inner = min(repeated, key=itemgetter(1), default=(1, 0, 0))  # neighbours share cache lines
        if inner[0] < _NEIGHBOURS:
            inner = max(repeated, default=inner)
        outer = [dimension for dimension in repeated if dimension is not inner]

        self._starts: list[tuple[int, int]] = []
        for at in product(*(range(extent) for extent, *_ in outer)):
            begin = sum(n * step for n, (_, step, _) in zip(at, outer, strict=True))
            out_begin = sum(n * step for n, (*_, step) in zip(at, outer, strict=True))
            self._starts.append((begin * source.itemsize, out_begin * target.itemsize))

        plan, self._execute, destroy = _functions(row.real, source.dtype.char in "fF")
        along = [every[axis] for axis in axes]
        sign: tuple[int, ...] = ()
        if row.real == "neither":
            sign = (1,) if row.backward else (-1,)

        with _PLANNING:
            handle = plan(
                *(len(along), (_Dimension * len(along))(*starmap(_Dimension, along)), 1, _Dimension(*inner)),
                *(_address(source), _address(target), *sign, _ESTIMATE),
            )
        if not handle:
            raise RuntimeError(f"MKL has no plan for {row.name} along {axes} of {source.shape}")
        self._handle = _Handle(handle, destroy)

    def __call__(self, source: Array, target: Array) -> Callable[[], object]:
        calls = []
        for start, out_start in self._starts:
            calls.append(partial(self._execute, self._handle, _Begin(source, start), _Begin(target, out_start)))
        return calls[0] if len(calls) == 1 else partial(run, calls)


def _in_turn(plans: Sequence[tuple[_Plan, int, int]], source: Array, target: Array) -> Callable[[], object]:
    """Plans one after the other, each with the arrays that it reads and writes, 0 for the source and 1 for the target.

    A transform to real numbers along several axes does the complex axes in its input, unless its config asks for one
    call: MKL's own plan writes its output often, and takes up to twice as long if the output is in no cache. But it is
    faster where several threads call MKL for short work, because each call needs Python's lock. MKL also has no plans
    along more than `_MOST` axes.
    """
    ends = source, target
    return partial(run, [plan(ends[begin], ends[end]) for plan, begin, end in plans])


def _address(array: Array) -> int:
    """The address of an array. NumPy, which is slow, is asked only if the array is read-only or has gaps."""
    try:
        return ctypes.addressof(c_char.from_buffer(array.data))
    except (AttributeError, TypeError, ValueError, BufferError):
        return int(array.ctypes.data)


def _merged(dimensions: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Merge dimensions that continue each other in both arrays.

    >>> _merged([(2, 12, 24), (3, 4, 8), (4, 1, 2)])
    [(24, 1, 2)]
    """
    merged: list[tuple[int, int, int]] = []
    for extent, source, target in dimensions:
        if merged and merged[-1][1:] == (extent * source, extent * target):
            extent *= merged.pop()[0]
        merged.append((extent, source, target))
    return merged
