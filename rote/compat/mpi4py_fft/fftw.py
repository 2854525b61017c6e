"""FFTW's plan interface: transforms of this rank's arrays by Rote, planned at once from a cost model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from types import ModuleType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import rote

from .pencil import ALONE, Array

FFTW_FORWARD, FFTW_R2HC, FFTW_BACKWARD, FFTW_HC2R, FFTW_DHT = -1, 0, 1, 1, 2
FFTW_REDFT00, FFTW_REDFT01, FFTW_REDFT10, FFTW_REDFT11 = 3, 4, 5, 6
FFTW_RODFT00, FFTW_RODFT01, FFTW_RODFT10, FFTW_RODFT11 = 7, 8, 9, 10
FFTW_MEASURE, FFTW_DESTROY_INPUT, FFTW_UNALIGNED, FFTW_CONSERVE_MEMORY, FFTW_EXHAUSTIVE = 0, 1, 2, 4, 8
FFTW_PRESERVE_INPUT, FFTW_PATIENT, FFTW_ESTIMATE, FFTW_WISDOM_ONLY = 16, 32, 64, 1 << 21
C2C_FORWARD, C2C_BACKWARD, R2C, C2R = -1, 1, -2, 2
flag_dict: dict[str, Any] = {name: flag for name, flag in globals().items() if name.startswith("FFTW_")}
_NUMBER: dict[str, int] = {name: flag_dict[kind.fftw] for name, kind in rote.fft.kinds.items()}
_REAL = {_NUMBER[name]: kind for name, kind in rote.fft.kinds.items() if kind.real == "both"}
_TYPES: list[dict[int, int]] = [
    {n: _NUMBER[f"{name}{n}"] for n in range(1, 5)} for name in ("dct", "idct", "dst", "idst")
]
dct_type, idct_type, dst_type, idst_type = _TYPES  # FFTW's numbers of their types, by SciPy's


def get_normalization(kind: Any, shape: Sequence[int], axes: Sequence[int]) -> float:
    """The factor that normalizes a transform and its inverse: 1 over the product of FFTW's logical lengths."""
    rows = [_REAL.get(number, rote.fft.kinds["fft"]) for number in np.broadcast_to(kind, len(axes)).tolist()]
    return 1 / prod(row.logical_size(shape[axis]) for row, axis in zip(rows, axes, strict=True))


def get_alignment(array: Array) -> int:
    """The largest power of two, up to 32, that divides the address."""
    return next(n for n in (32, 16, 8, 4, 2, 1) if array.ctypes.data % n == 0)


def aligned(shape: Any, n: int = 32, dtype: npt.DTypeLike = "d", fill: float | None = None) -> Array:
    """A new array at an address that is a multiple of n, filled with a value or zeros."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + n, np.uint8)
    start = -memory.ctypes.data % n
    array = memory[start : start + size].view(dtype).reshape(shape)
    array[...] = fill or 0
    return array


def aligned_like(z: Array, fill: float | None = None) -> Array:
    """A new array of the shape, dtype and alignment of another."""
    return aligned(z.shape, get_alignment(z), z.dtype, fill)


@dataclass(eq=False)
class Plan:
    """One direction of a transform of Rote, with an input and an output array of its own.

    `normalize` and `implicit` are defaults for calls: whether to scale, and whether to leave the own output unchanged
    if the call gives another. If `factor` is None, Rote scales as it transforms.
    """

    transform: rote.fft.FFT
    back: bool
    input_array: Array
    output_array: Array
    normalize: bool = False
    implicit: bool = True
    factor: float | None = None

    def __call__(self, input_array: Array | None = None, output_array: Array | None = None,
                 implicit: bool | None = None, normalize: bool | None = None, **kw: object) -> Array:  # fmt: skip
        """Transform the given array, which keeps its values, or the plan's own input."""
        f, source, target = self.transform, self.input_array, self.output_array
        scaled = self.normalize if normalize is None else normalize
        if input_array is not None and (input_array.shape, input_array.dtype) == (source.shape, source.dtype):
            source = input_array
        elif input_array is not None:
            source[...] = input_array
        if output_array is not None and (self.implicit if implicit is None else implicit):
            target = output_array
        ends = (target, source) if self.back else (source, target)
        signal, spectrum = map(np.asarray, ends)
        x = rote.DistTensor(signal, f.input_distribution, f.comm)
        X = rote.DistTensor(spectrum, f.output_distribution, f.comm)
        norm = "forward" if (scaled and self.factor is None) != self.back else "backward"
        if self.back:
            f.backward(X, x, norm)
        else:
            f.forward(x, X, norm)
        if scaled and self.factor is not None:
            target *= self.factor
        if output_array is None:
            return target
        if target is not output_array:
            output_array[...] = target
        return output_array


class FFT(Plan):
    """A plan with FFTW's arguments. The dtypes of the arrays say which side is real, if any, or whether both are.

    `kind` is the direction, or, between real arrays, the kind along all axes or each; `normalization` is the factor of
    calls with `normalize`.
    """

    def __init__(self, input_array: Array, output_array: Array, axes: Sequence[int] = (-1,), kind: Any = FFTW_FORWARD,
                 threads: int = 1, flags: Any = FFTW_MEASURE, normalization: float = 1.0) -> None:  # fmt: skip
        numbers: list[int] = np.broadcast_to(kind, len(axes)).tolist()
        real = input_array.dtype.kind == output_array.dtype.kind == "f"
        if real and not {*numbers} <= {*_REAL}:
            raise rote.PlanError(
                f"{kind} is no kind between real arrays\ngive complex ones, or FFTW_R2HC or FFTW_REDFT10"
            )
        back = FFTW_HC2R in numbers if real else numbers[0] > 0
        if real and back and {*numbers} != {FFTW_HC2R}:
            raise rote.PlanError(
                "halfcomplex spectra lead back along all axes or none\nplan the other axes by themselves"
            )
        signal, other = (output_array, input_array) if back else (input_array, output_array)
        what: dict[str, Any] = {"axes": axes}
        if real:
            rows = [_REAL[number] for number in numbers]
            names = [row.inverse if back else row.name for row in rows]
            what = {"kinds": dict(zip(axes, names, strict=True))}
        f = rote.fft.FFT(signal.shape, None, 1, ALONE, signal.dtype, threads=threads, **what)
        if (spectrum := (f.output_shape, f.output_dtype)) != (other.shape, other.dtype):
            raise rote.LayoutError(f"the spectrum is {spectrum}, the array given for it {other.shape} {other.dtype}")
        super().__init__(f, back, input_array, output_array, factor=normalization)

    def get_normalization(self) -> float | None:
        """The factor of calls with `normalize`."""
        return self.factor

    def update_arrays(self, input_array: Array, output_array: Array) -> None:
        """Replace the plan's own arrays."""
        self.input_array, self.output_array = input_array, output_array


get_planned_FFT = FFT
_FOURIER = {"fftn": "fft", "ifftn": "ifft", "rfftn": "rfft", "irfftn": "irfft", "ihfftn": "rfft", "hfftn": "irfft"}


def _planner(name: str) -> Callable[..., FFT]:
    """The planning function of a kind; for real transforms, it takes their `type` after `axes`."""
    words = [*([] if name in _FOURIER else ["type"]), "threads", "flags", "output_array"]

    def plan(input_array: Array, s: Any = None, axes: Sequence[int] = (-1,), *more: Any, **kw: Any) -> FFT:
        options, shape, last = dict(zip(words, more, strict=False)) | kw, list(input_array.shape), axes[-1]
        kind = _FOURIER.get(name) or f"{name[:-1]}{options.pop('type', 2)}"
        if kind not in rote.fft.kinds:
            raise rote.PlanError(f"Rote has no transform {kind}\ngive a type from 1 to 4")
        row, dtype = rote.fft.kinds[kind], str(input_array.dtype.char)
        if row.real == "output":
            shape[last] = 2 * shape[last] - 2 if s is None else int(s[-1])
            dtype = dtype.lower()
        elif row.real == "input":
            shape[last], dtype = row.given(shape[last]), dtype.upper()
        target = options.pop("output_array", None)
        if target is None:
            target = aligned(shape, get_alignment(input_array), dtype)
        signal_shape = shape if row.backward else input_array.shape
        factor = get_normalization(_NUMBER[kind], signal_shape, axes)
        return FFT(input_array, target, axes, _NUMBER[kind], normalization=factor, **options)

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
inverse: dict[Any, Any] = {number: flag_dict[rote.fft.kinds[row.inverse].fftw] for number, row in _REAL.items()}
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


def get_fftw_lib(dtype: npt.DTypeLike) -> Any:
    """This module, for each precision with complex numbers; else None."""
    return fftlib.get(np.dtype(dtype).char.upper())


def cleanup(limit: float = -1) -> None:
    """Do nothing: plans are made from a model. To forget measurements, call `rote.wisdom.forget`."""


forget_wisdom: Final = cleanup
set_timelimit: Final = cleanup
export_wisdom: Final = rote.wisdom.export
import_wisdom: Final = rote.wisdom.include
utilities: Final = sys.modules[__name__]  # programs also import from this name and the next two
xfftn: Final = utilities
factory: Final = utilities
sys.modules |= dict.fromkeys([f"{__name__}.{part}" for part in ("utilities", "xfftn", "factory")], utilities)
fftlib: dict[str, ModuleType] = dict.fromkeys("FDG", utilities)
