"""Plans of FFTW's interface, which transform by Rote, and what FFTW offers beside plans."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import rote

from ..pencil import ALONE, Array, axes_of
from .utilities import FFTW_FORWARD, FFTW_HC2R, FFTW_MEASURE, flag_dict

__all__ = ["FFT", "Plan", "cleanup", "export_wisdom", "fftlib", "forget_wisdom", "get_fftw_lib", "get_planned_FFT"]
__all__ += ["fftw_numbers", "import_wisdom", "real_kinds", "set_timelimit"]

fftw_numbers: Final[dict[str, int]] = {name: flag_dict[kind.fftw] for name, kind in rote.fft.kinds.items()}
"""FFTW's number of each kind of Rote."""

real_kinds: Final = {fftw_numbers[name]: kind for name, kind in rote.fft.kinds.items() if kind.real == "both"}
"""Rote's kinds between real numbers by FFTW's number."""


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

        # "forward" divides on the way there, so on the way back it leaves the sum as it is.
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
        axes = axes_of(axes, input_array.ndim)
        numbers: list[int] = np.broadcast_to(kind, len(axes)).tolist()
        real = input_array.dtype.kind == output_array.dtype.kind == "f"
        if real and not {*numbers} <= {*real_kinds}:
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
            rows = [real_kinds[number] for number in numbers]
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


def get_fftw_lib(dtype: npt.DTypeLike) -> Any:
    """The package, for each precision with complex numbers; else None."""
    return fftlib.get(np.dtype(dtype).char.upper())


def cleanup(limit: float = -1) -> None:
    """Do nothing: plans are made from a model. To forget measurements, call `rote.wisdom.forget`."""


forget_wisdom: Final = cleanup
set_timelimit: Final = cleanup
export_wisdom: Final = rote.wisdom.export
import_wisdom: Final = rote.wisdom.include
fftlib: dict[str, ModuleType] = dict.fromkeys("FDG", sys.modules[__package__])
