"""The planning functions of FFTW's interface, by the names of NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import numpy as np

import rote

from ..pencil import Array, axes_of
from . import utilities
from .factory import FFT, fftw_numbers, get_planned_FFT, real_kinds
from .utilities import *  # noqa: F403 - programs also import its names from here
from .utilities import aligned, flag_dict, get_alignment

__all__ = ["dct_type", "dctn", "dst_type", "dstn", "fftn", "get_normalization", "get_planned_FFT", "hfftn", "idct_type"]
__all__ += ["idctn", "idst_type", "idstn", "ifftn", "ihfftn", "inverse", "irfftn", "kind_of", "rfftn"]
__all__ += utilities.__all__


def _types(name: str) -> dict[int, int]:
    """FFTW's numbers of the types of a transform, by SciPy's."""
    return {n: fftw_numbers[f"{name}{n}"] for n in range(1, 5)}


dct_type: dict[int, int] = _types("dct")
dst_type: dict[int, int] = _types("dst")
idct_type: dict[int, int] = _types("idct")
idst_type: dict[int, int] = _types("idst")


def get_normalization(kind: Any, shape: Sequence[int], axes: Sequence[int]) -> float:
    """The factor that normalizes a transform and its inverse: 1 over the product of FFTW's logical lengths."""
    axes = axes_of(axes, len(shape))
    rows = [real_kinds.get(number, rote.fft.kinds["fft"]) for number in np.broadcast_to(kind, len(axes)).tolist()]
    return 1 / prod(row.logical_size(shape[axis]) for row, axis in zip(rows, axes, strict=True))


_FOURIER = {"fftn": "fft", "ifftn": "ifft", "rfftn": "rfft", "irfftn": "irfft", "ihfftn": "rfft", "hfftn": "irfft"}


def _planner(name: str) -> Callable[..., FFT]:
    """The planning function of a kind; for real transforms, it takes their `type` after `axes`."""
    words = [*([] if name in _FOURIER else ["type"]), "threads", "flags", "output_array"]

    def plan(input_array: Array, s: Any = None, axes: Sequence[int] = (-1,), *more: Any, **kw: Any) -> FFT:
        options, shape = dict(zip(words, more, strict=False)) | kw, list(input_array.shape)
        axes = axes_of(axes, len(shape))
        if not axes:
            raise rote.LayoutError("a transform is along one axis or more, not along ()\nwrite axes=(-1,)")

        last = axes[-1]
        kind = _FOURIER.get(name) or f"{name[:-1]}{options.pop('type', 2)}"
        if kind not in rote.fft.kinds:
            raise rote.PlanError(f"Rote has no transform {kind}\ngive a type from 1 to 4")

        row, dtype = rote.fft.kinds[kind], str(input_array.dtype.char)
        # The spectrum's array is half as long; without `s`, an even length is taken, as by NumPy.
        if row.real == "output":
            shape[last] = 2 * shape[last] - 2 if s is None else int(s[-1])
            dtype = dtype.lower()
        elif row.real == "input":
            shape[last], dtype = row.given(shape[last]), dtype.upper()

        target = options.pop("output_array", None)
        if target is None:
            target = aligned(shape, get_alignment(input_array), dtype)

        signal_shape = shape if row.backward else input_array.shape
        factor = get_normalization(fftw_numbers[kind], signal_shape, axes)
        return FFT(input_array, target, axes, fftw_numbers[kind], normalization=factor, **options)

    plan.__name__ = name
    return plan


fftn: Final = _planner("fftn")
ifftn: Final = _planner("ifftn")
rfftn: Final = _planner("rfftn")
irfftn: Final = _planner("irfftn")
ihfftn: Final = _planner("ihfftn")
hfftn: Final = _planner("hfftn")
dctn: Final = _planner("dctn")
idctn: Final = _planner("idctn")
dstn: Final = _planner("dstn")
idstn: Final = _planner("idstn")
_PAIRS = (fftn, ifftn), (rfftn, irfftn), (hfftn, ihfftn), (dctn, idctn), (dstn, idstn)
inverse: dict[Any, Any] = {number: flag_dict[rote.fft.kinds[row.inverse].fftw] for number, row in real_kinds.items()}
inverse |= dict(_PAIRS) | {back: onward for onward, back in _PAIRS}


def kind_of(plan: Callable[..., Any]) -> str:
    """Rote's kind for a planning function, or for one of another library by its name; `partial` may give its `type`.

    >>> kind_of(np.fft.rfftn), kind_of(idctn)
    ('rfft', 'dct3')
    """
    number = getattr(plan, "keywords", {}).get("type", 2)
    name = getattr(getattr(plan, "func", plan), "__name__", "")
    row = rote.fft.kinds.get(_FOURIER.get(name, f"{name[:-1]}{number}"))
    if row is None:
        raise rote.PlanError(f"{plan!r} is no transform of Rote\ngive one of fftw, as functools.partial(dctn, type=3)")
    return row.name
