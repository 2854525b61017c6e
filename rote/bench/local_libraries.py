"""Libraries that transform an array in one process, on as many threads as there are ranks and cores."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ..runtime.comm import segments
from ..runtime.comm.protocol import Comm
from .arrays import Array, mesh, spectrum_shape, transform_job
from .contest import Contestant, Job, Missing, Round, Work, measure
from .machine import build

__all__ = ["LIBRARIES", "contestants"]

_Steps: TypeAlias = tuple[Callable[[], Array], Callable[[], Array]]
_Library: TypeAlias = Callable[[Work, Sequence[int], int, Array, Array, Array], tuple[_Steps, float]]

_LINGER = 0.3  # seconds for which OpenMP's threads may still occupy cores after a call
_wisdom: dict[str, Any] = {}  # pyFFTW's timed plans, separate from Rote's
_planning = threading.Lock()  # ranks that are threads share one planner


def contestants(work: Work, usable: int, single: bool) -> list[Contestant]:
    """One contestant per library; with `single`, MKL also on one thread, because several may slow each other down."""
    many = min(work.ranks, usable)  # cores

    def contestant(name: str, variant: str, count: int) -> Contestant:
        return Contestant(name, variant, "threads", count, work, None, partial(_run, name, count, work))

    contest = [contestant(name, "", many) for name in LIBRARIES]
    if single and many > 1:
        contest.append(contestant("mkl_fft", "on one", 1))
    return contest


def _run(name: str, threads: int, work: Work, comm: Comm) -> Round:
    try:
        return measure(partial(_prepare, name, threads), work, comm)
    except ImportError:
        raise Missing(f"is not installed; pip install {name}") from None
    finally:
        if name == "mkl_fft":
            time.sleep(_LINGER)


def _prepare(name: str, threads: int, comm: Comm, work: Work) -> Job:
    x, y = (segments.empty(work.shape, work.dtype) for _ in range(2))
    X = segments.empty(spectrum_shape(work), np.result_type(work.dtype, "c8"))
    steps, scale = LIBRARIES[name](work, (*range(x.ndim),), threads, x, X, y)
    return transform_job(work, steps, x, (mesh(x.shape), mesh(X.shape)), (1.0, scale), library=build(name))


def _pyfftw(work: Work, axes: Sequence[int], threads: int, x: Array, X: Array, y: Array) -> tuple[_Steps, float]:
    fftw: Any = import_module("pyfftw")
    options = {"axes": axes, "flags": ("FFTW_MEASURE",), "threads": threads}
    with _planning:
        kept = fftw.export_wisdom()
        fftw.import_wisdom(_wisdom.get("fftw", kept))
        onward = fftw.FFTW(x, X, direction="FFTW_FORWARD", **options)
        back = fftw.FFTW(X, y, direction="FFTW_BACKWARD", **options)
        _wisdom["fftw"] = fftw.export_wisdom()
        fftw.forget_wisdom()  # else it would override Rote's plans by estimate
        fftw.import_wisdom(kept)

    def forward() -> Array:
        onward.execute()
        return X

    def backward() -> Array:
        back.execute()
        return y

    return (forward, backward), float(prod(x.shape[axis] for axis in axes))


def _scipy(work: Work, axes: Sequence[int], threads: int, x: Array, X: Array, y: Array) -> tuple[_Steps, float]:
    fft: Any = import_module("scipy.fft")
    onward, back, spectrum = fft.fftn, fft.ifftn, X
    if work.real:
        onward, back = fft.rfftn, partial(fft.irfftn, s=[x.shape[axis] for axis in axes])

    def forward() -> Array:
        nonlocal spectrum
        spectrum = np.asarray(onward(x, axes=axes, workers=threads))
        return spectrum

    return (forward, lambda: back(spectrum, axes=axes, workers=threads)), 1.0


def _ducc0(work: Work, axes: Sequence[int], threads: int, x: Array, X: Array, y: Array) -> tuple[_Steps, float]:
    fft: Any = import_module("ducc0").fft
    onward = back = fft.c2c
    if work.real:
        onward, back = fft.r2c, partial(fft.c2r, lastsize=x.shape[axes[-1]])
    return (
        lambda: onward(x, list(axes), out=X, nthreads=threads),
        lambda: back(X, list(axes), forward=False, inorm=2, out=y, nthreads=threads),
    ), 1.0


def _mkl_fft(work: Work, axes: Sequence[int], threads: int, x: Array, X: Array, y: Array) -> tuple[_Steps, float]:
    fft: Any = import_module("mkl_fft")
    lengths = [x.shape[axis] for axis in axes]
    if len(axes) > 1:
        onward, back = (fft.rfftn, partial(fft.irfftn, s=lengths)) if work.real else (fft.fftn, fft.ifftn)
        along: dict[str, Any] = {"axes": axes}
    else:  # along one of several axes, fftn loops over lines in Python
        onward, back = (fft.rfft, partial(fft.irfft, n=lengths[0])) if work.real else (fft.fft, fft.ifft)
        along = {"axis": axes[0]}
    for number in (3, 2, 1):
        with suppress(OSError):
            ctypes.CDLL(f"libmkl_rt.so.{number}").MKL_Set_Num_Threads(threads)
            break
    return (lambda: onward(x, out=X, **along), lambda: back(X, out=y, **along)), 1.0


LIBRARIES: dict[str, _Library] = {"pyfftw": _pyfftw, "scipy": _scipy, "ducc0": _ducc0, "mkl_fft": _mkl_fft}
