"""FFTW's interface, which FFTW and MKL have: plans of a shape, made once, which run on any arrays of that shape.

A library is loaded only for this file, because MKL defines FFTW's functions: otherwise a module that is imported later
and needs FFTW, such as mpi4py-fft, would run on MKL, or not at all. Plans are estimated, as those of pyfftw are.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from ctypes import CDLL, POINTER, c_char, c_int, c_ssize_t, c_uint, c_void_p
from functools import partial
from itertools import product, starmap
from operator import itemgetter
from typing import Any

import numpy as np

from rote.runtime.copies import run

from ...transforms import KINDS, TransformKind
from .library import PLANNING, Array, ArrayTransform, Axes, Ends, KernelConfig, Library

__all__ = ["FUNCTIONS", "PRECISIONS", "Interface"]

FUNCTIONS = {"neither": "dft", "input": "dft_r2c", "output": "dft_c2r", "both": "r2r"}
"""FFTW's names of transforms, by the side on which numbers are real."""

PRECISIONS = {"d": "fftw", "f": "fftwf"}
"""The beginnings of FFTW's names, by the dtype of real numbers."""

_DESTROY_INPUT, _UNALIGNED, _ESTIMATE = 1 << 0, 1 << 1, 1 << 6
_ALIGNMENT = 16  # bytes: plans for arrays that begin at a multiple of them use vector instructions
_MOST = 7  # the most axes of one plan of MKL
_NEIGHBOURS = 8  # transforms side by side that take longer than a call


_Functions = tuple[Any, Any, Any]


class _Dimension(ctypes.Structure):
    """A dimension of a plan, `fftw_iodim64`: its extent, and its strides in the input and the output in elements."""

    _fields_ = (("extent", c_ssize_t), ("source", c_ssize_t), ("target", c_ssize_t))


class Interface(Library):
    """A library that has FFTW's interface.

    Attributes:
        repeats: the most modes along which a plan repeats; other modes cost a call for each index.
    """

    repeats = 1

    def opened(self) -> Mapping[str, CDLL] | str:
        """The library, by the `PRECISIONS` that it has; or why there is none."""
        raise NotImplementedError

    def load(self) -> Mapping[str, CDLL]:
        opened = self.opened()
        if isinstance(opened, str):
            raise ImportError(opened)
        return opened

    def does(self, kind: str, dtype: np.dtype[Any]) -> bool:
        opened = self.opened()
        return not isinstance(opened, str) and PRECISIONS.get(dtype.char.lower()) in opened

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
            functions = _functions(self.load(), along, ends[begin].dtype)
            plans.append((_Plan(functions, self.repeats, along, group, ends[begin], ends[end]), begin, end))
        return plans[0][0] if len(plans) == 1 else partial(_in_turn, plans)


def _functions(libraries: Mapping[str, CDLL], row: TransformKind, dtype: np.dtype[Any]) -> _Functions:
    """FFTW's functions that plan transforms, run them on any arrays, and destroy plans."""
    precision, name = PRECISIONS[dtype.char.lower()], FUNCTIONS[row.real]
    interface = libraries[precision]

    plan = getattr(interface, f"{precision}_plan_guru64_{name}")
    dimensions = (c_int, POINTER(_Dimension)) * 2
    more = {"neither": (c_int,), "both": (POINTER(c_int),)}.get(row.real, ())  # a sign, or a kind for each axis
    plan.argtypes = (*dimensions, c_void_p, c_void_p, *more, c_uint)
    plan.restype = c_void_p

    execute = getattr(interface, f"{precision}_execute_{name}")
    destroy = getattr(interface, f"{precision}_destroy_plan")
    execute.argtypes, execute.restype = (c_void_p,) * 3, None
    destroy.argtypes, destroy.restype = (c_void_p,), None
    return plan, execute, destroy


class _Handle(c_void_p):
    """A plan that is destroyed with its last reference, by whatever thread drops it, while no other one plans."""

    _planning = PLANNING  # the module may have ended before the last plan

    def __init__(self, plan: int, destroy: Callable[[int], None]) -> None:
        super().__init__(plan)
        self._destroy = destroy

    def __del__(self) -> None:
        if self.value:
            with self._planning:
                self._destroy(self.value)


class _Begin(c_void_p):
    """The address at which a plan begins in an array, which it keeps alive."""

    def __init__(self, array: Array, offset: int) -> None:
        super().__init__(_address(array) + offset)
        self._array = array


class _Plan:
    """A plan, and its starts in both arrays: a plan repeats along `repeats` modes, this class along the others."""

    __slots__ = ("_execute", "_handle", "_starts")

    def __init__(
        self, functions: _Functions, repeats: int, row: TransformKind, axes: Axes, source: Array, target: Array
    ) -> None:
        points = source.shape if row.real == "input" else target.shape
        steps = [n // source.itemsize for n in source.strides]
        out_steps = [n // target.itemsize for n in target.strides]
        every = list(zip(points, steps, out_steps, strict=True))

        repeated = _merged([every[m] for m in range(source.ndim) if m not in axes and points[m] > 1]) or [(1, 0, 0)]
        inner = repeated if len(repeated) <= repeats else [_longest(repeated)]
        outer = [dimension for dimension in repeated if dimension not in inner]

        self._starts: list[tuple[int, int]] = []
        for at in product(*(range(extent) for extent, *_ in outer)):
            begin = sum(n * step for n, (_, step, _) in zip(at, outer, strict=True))
            out_begin = sum(n * step for n, (*_, step) in zip(at, outer, strict=True))
            self._starts.append((begin * source.itemsize, out_begin * target.itemsize))

        plan, self._execute, destroy = functions
        along = [every[axis] for axis in axes]
        more: tuple[object, ...] = ()
        if row.real == "neither":
            more = (row.fftw_number,)
        elif row.real == "both":
            more = ((c_int * len(axes))(*[row.fftw_number] * len(axes)),)

        flags = _ESTIMATE
        if row.real == "output":
            flags |= _DESTROY_INPUT  # without it, one axis is slower
        begins = (_address(source), _address(target), *[start for pair in self._starts for start in pair])
        if any(begin % _ALIGNMENT for begin in begins):
            flags |= _UNALIGNED

        with PLANNING:
            handle = plan(*_dimensions(along), *_dimensions(inner), *begins[:2], *more, flags)
        if not handle:
            raise RuntimeError(f"there is no plan for {row.name} along {axes} of {source.shape}")
        self._handle = _Handle(handle, destroy)

    def __call__(self, source: Array, target: Array) -> Callable[[], object]:
        calls = []
        for start, out_start in self._starts:
            calls.append(partial(self._execute, self._handle, _Begin(source, start), _Begin(target, out_start)))
        return calls[0] if len(calls) == 1 else partial(run, calls)


def _dimensions(dimensions: Sequence[tuple[int, int, int]]) -> tuple[int, ctypes.Array[_Dimension]]:
    return len(dimensions), (_Dimension * len(dimensions))(*starmap(_Dimension, dimensions))


def _longest(repeated: Sequence[tuple[int, int, int]]) -> tuple[int, int, int]:
    """The mode along which a plan repeats: neighbours, which share cache lines, or the longest if those are few."""
    neighbours = min(repeated, key=itemgetter(1))
    return neighbours if neighbours[0] >= _NEIGHBOURS else max(repeated)


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
