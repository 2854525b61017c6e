"""Transforms of this rank's arrays, which are walks of Rote on one rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import rote

from .fftw.factory import Plan
from .fftw.xfftn import kind_of
from .pencil import ALONE, Array, axes_of

Transforms = Mapping[tuple[int, ...], tuple[Callable[..., Any], Callable[..., Any]]] | None


class FFT:
    """A transform of arrays of one shape; unless a call gives `normalize`, forward is normalized and backward is not.

    >>> FFT((4, 6), padding=1.5).forward(np.ones((4, 6))).shape  # 6 is 4 points, and padding
    (4, 3)
    """

    def __init__(self, shape: Any, axes: Any = None, dtype: npt.DTypeLike = float, padding: Any = False,
                 backend: str = "fftw", transforms: Transforms = None, **kw: Any) -> None:  # fmt: skip
        self.shape: list[int] = np.atleast_1d(shape).tolist()
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        order = len(self.shape)
        self.axes: list[int] = axes_of(range(order) if axes is None else axes, order)

        last, cut = self.axes[-1], dict[int, int]()
        if padding:
            cut[last] = round(self.shape[last] / factors_of(padding, order)[last])
        actions, _ = actions_of(self.axes, self.dtype.kind == "f", transforms, cut)

        walk = f"[{','.join(['()'] * order)}]: {actions}"
        self.forward: Plan
        self.backward: Plan
        self.forward, self.backward = plans(self.shape, 1, ALONE, self.dtype, self.axes, walk, kw)


def factors_of(padding: Any, order: int) -> Array:
    """The factor of each axis, from one for all or one for each."""
    factors = np.asarray(padding or 1.0)
    if factors.shape not in ((), (order,)):
        raise rote.LayoutError(f"padding is one factor, or one for each of {order} axes; not {padding!r}")
    return np.broadcast_to(factors, order)


def actions_of(axes: Sequence[int], real: bool, transforms: Transforms, cut: Mapping[int, int]) -> tuple[str, bool]:
    """The actions of a walk's stage that transforms along axes and cuts spectra; and whether numbers stay real."""
    onward, back = map(kind_of, (transforms or {}).get(tuple(axes), (np.fft.fftn, np.fft.ifftn)))
    kind = rote.fft.kinds["rfft" if real and onward == "fft" else onward]
    if back not in (kind.inverse, rote.fft.kinds[onward].inverse):
        raise rote.PlanError(f"{back} does not undo {onward}, and a transform goes back by what undoes it")

    words = [(axis, kind.name if axis == axes[-1] else kind.others) for axis in reversed(axes)]
    cuts = {axis: f", resample({axis}={n})" for axis, n in cut.items()}
    return ", ".join(f"{word}({axis}){cuts.get(axis, '')}" for axis, word in words), real and kind.real == "both"


def plans(shape: Sequence[int], grid: Any, comm: Any, dtype: Any, axes: Sequence[int], walk: str,
          kw: Mapping[str, Any]) -> tuple[Plan, Plan]:  # fmt: skip
    """Plans for both directions of a walk along axes, between two new arrays."""
    f = rote.fft.FFT(shape, None, grid, comm, dtype, axes, walk, threads=kw.get("threads", 1))
    x, X = f.empty_input().local, f.empty_output().local
    return Plan(f, False, x, X, normalize=True, implicit=False), Plan(f, True, X, x, implicit=False)
