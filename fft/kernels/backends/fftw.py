"""FFTW, through pyfftw: every kind, in every precision of its build.

FFTW remembers plans for the whole process, and would use them even when it is asked to estimate. So timed plans are
kept as text by their users, and after planning FFTW itself knows no more than before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from rote.caches import memoized
from rote.host import installed

from ...transforms import KINDS, real_dtype
from ..fftw_core import fftw_core, fftw_version
from ..kernel import Kernel
from .protocol import Array, ArrayTransform

__all__ = ["does", "merged", "prepare", "version"]

EFFORTS = {"measure": "FFTW_MEASURE", "patient": "FFTW_PATIENT"}
"""FFTW's flags for how thoroughly it searches for plans."""

_PLANNING = threading.Lock()  # a process has one planner of FFTW, and in-process ranks plan at the same time
_PLACES = {"d": 0, "f": 1, "g": 2}  # the place of each precision in the wisdom that pyfftw exports


def version() -> str:
    package = installed("pyfftw")
    return f"{package} {fftw_version()}" if package else ""


def does(kind: str, dtype: np.dtype[Any]) -> bool:
    names = {"f": "32", "d": "64", "g": "ld"}
    known = KINDS[kind].real != "both" or _knows(KINDS[kind].fftw)
    return known and names[real_dtype(dtype).char] in fftw_core()._supported_types


@memoized(64)
def _knows(name: str) -> bool:
    """Whether pyfftw knows a kind of transform of real numbers, by FFTW's name; it does not know all."""
    with _PLANNING:
        try:
            fftw_core().FFTW(np.zeros(2), np.zeros(2), direction=(name,), flags=("FFTW_ESTIMATE",))
        except ValueError:
            return False
    return True


def prepare(kernel: Kernel, axes: tuple[int, ...], source: Array, target: Array, threads: int) -> ArrayTransform:
    """A transform between two arrays; see `Library`.

    With the same timed plans, or by estimate, FFTW chooses the same transform on every rank and in every run.
    """
    row = kernel.row_between(source, target)
    direction = (row.fftw,) * len(axes) if row.real == "both" else row.fftw
    destroys = ("FFTW_DESTROY_INPUT",) if row.real == "output" else ()  # without it, one axis is slower

    def plan(effort: str = "FFTW_ESTIMATE", seconds: float | None = None) -> _Plan:
        made = fftw_core().FFTW(
            *(source, target, axes, direction), flags=(effort, *destroys), threads=threads, planning_timelimit=seconds
        )
        return _Plan(made, source, target)

    study = kernel.study
    with _PLANNING:
        if study is not None:
            left = study.left
            with _wisdom(study.plans, source.dtype) as known:
                made = plan(EFFORTS[study.effort], left) if left > 0 else plan()
                study.plans = known()
            return made
        if kernel.config.plans:
            with _wisdom(kernel.config.plans, source.dtype):
                return plan()
        return plan()


class _Plan(ArrayTransform):
    """A plan of FFTW. It would keep the last arrays alive, so it returns to its own after each call."""

    __slots__ = ("_ends", "_plan")

    def __init__(self, plan: Any, source: Array, target: Array) -> None:
        self._plan, self._ends = plan, (source, target)

    def __call__(self, source: Array, target: Array) -> None:
        self._plan.update_arrays(source, target)
        self._plan.execute()
        self._plan.update_arrays(*self._ends)

    def bound(self, source: Array, target: Array) -> Callable[[], object]:
        its_own = source is self._ends[0] and target is self._ends[1]
        return self._plan.execute if its_own else partial(self, source, target)


def merged(plans: list[str], dtype: np.dtype[Any]) -> str:
    """Merge plans of one precision into one text; if two solve one problem, the later one is taken."""
    texts = sorted({*plans} - {""})
    if len(texts) < 2:
        return "".join(texts)
    with _PLANNING, _wisdom(texts[0], dtype) as known:
        for each in texts[1:]:
            fftw_core().import_wisdom(_as_wisdom(each, dtype))
        texts[0] = known()
    return texts[0]


@contextmanager
def _wisdom(plans: str, dtype: np.dtype[Any]) -> Iterator[Callable[[], str]]:
    """Let FFTW know only these plans; yield a function that exports the plans of their precision."""
    kept = fftw_core().export_wisdom()
    fftw_core().forget_wisdom()
    place = _PLACES[real_dtype(dtype).char]
    try:
        if plans:
            fftw_core().import_wisdom(_as_wisdom(plans, dtype))
        yield lambda: str(fftw_core().export_wisdom()[place], "ascii")
    finally:
        fftw_core().forget_wisdom()
        fftw_core().import_wisdom(kept)


def _as_wisdom(plans: str, dtype: np.dtype[Any]) -> tuple[bytes, ...]:
    wisdom = [b"", b"", b""]
    wisdom[_PLACES[real_dtype(dtype).char]] = plans.encode("ascii")
    return tuple(wisdom)
