"""Transforms of this rank's arrays, and the texts of walks that all transforms of this package are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import rote

from .fftw import ArrayPlan, aligned, kind_of
from .pencil import ALONE

Transforms = Mapping[tuple[int, ...], tuple[Callable[..., Any], Callable[..., Any]]] | None
_BACK = {"fft": "ifft", "rfft": "irfft", "dct2": "dct3", "dct3": "dct2", "dst2": "dst3", "dst3": "dst2"}


class FFT:
    """A transform of arrays of one shape, there with a factor and back without, unless `normalize` says otherwise.

    >>> FFT((4, 6), padding=1.5).forward(np.ones((4, 6))).shape  # 6 is 4 points, and padding
    (4, 3)
    """

    dtype: np.dtype[Any]
    backend: str
    axes: list[Any]
    padding_factor: float
    forward: ArrayPlan
    backward: ArrayPlan

    def __init__(self, shape: Any, axes: Any = None, dtype: npt.DTypeLike = float, padding: Any = False,
                 backend: str = "fftw", transforms: Transforms = None, **kw: Any) -> None:  # fmt: skip
        self.shape: list[int] = np.atleast_1d(shape).tolist()
        order, self.dtype, self.backend = len(self.shape), np.dtype(dtype), backend
        self.axes = [range(order)[axis] for axis in np.atleast_1d(range(order) if axes is None else axes)]
        self.padding_factor = float(np.broadcast_to(padding or 1.0, order)[self.axes[-1]])
        kept = {self.axes[-1]: round(self.shape[self.axes[-1]] / self.padding_factor)} if padding else {}
        actions, _ = texts(self.axes, self.dtype.kind == "f", transforms, kept)
        walk = f"[{','.join(['()'] * order)}]: {actions}"
        self.forward, self.backward = plans(self.shape, rote.Grid((1,)), ALONE, self.dtype, self.axes, walk, kw)


def texts(axes: Sequence[int], real: bool, transforms: Transforms, kept: Mapping[int, int]) -> tuple[str, bool]:
    """The actions of a walk that transforms along axes and cuts their spectra, and whether numbers stay real."""
    onward, back = (
        map(kind_of, transforms[tuple(axes)]) if transforms and tuple(axes) in transforms else ("fft", "ifft")
    )
    kind = "rfft" if real and onward == "fft" else onward
    if back not in (_BACK.get(onward, onward), _BACK.get(kind, kind)):
        raise rote.PlanError(f"{back} does not undo {onward}, and a transform goes back by what undoes it")
    words = [(axis, "fft" if kind == "rfft" and axis != axes[-1] else kind) for axis in reversed(axes)]
    cuts = {axis: f", resample({axis}={n})" for axis, n in kept.items()}
    return ", ".join(f"{word}({axis}){cuts.get(axis, '')}" for axis, word in words), real and kind != "rfft"


def plans(shape: Sequence[int], grid: rote.Grid, comm: Any, dtype: Any, axes: Sequence[int], walk: str,
          kw: Mapping[str, Any]) -> tuple[ArrayPlan, ArrayPlan]:  # fmt: skip
    """Both directions of a walk along axes, between two new arrays of zeros."""
    f = rote.fft.FFT(shape, None, grid, comm, dtype, axes, walk, threads=kw.get("threads", 1))
    x, X = (
        aligned(dist.local_shape(f.comm.rank), dtype=dtype, fill=0)
        for dist, dtype in ((f.input_distribution, f.input_dtype), (f.output_distribution, f.output_dtype))
    )
    return ArrayPlan(f, False, x, X, (True, False)), ArrayPlan(f, True, X, x, (False, False))
