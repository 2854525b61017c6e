"""NumPy's functions of distributed tensors: those in the table are answered; all others are refused with a cure.

NumPy hands every call of its functions that has a tensor among its arguments to the tensor (`__array_function__`, NEP
18). The functions themselves, and the table, are in `rote.tensor.functions`; `rote.fft` adds `numpy.fft`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .functions.rules import ANSWERS, Function

__all__ = ["ANSWERS", "answer", "refusal"]


def answer(function: Function, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """Call a function of NumPy on tensors.

    Raises:
        TypeError: it is none that is answered; the text says what to write instead.
        LayoutError: the tensors do not lie as it wants them.
    """
    method = ANSWERS.get(function)
    if method is None:
        raise TypeError(refusal(f"{_name(function)}({{}})", _reduction(function), _cure(function)))
    return method(*args, **options)


def refusal(call: str, op: str = "", cure: str = "") -> str:
    """The text that refuses a call.

    Args:
        call: as the user wrote it, with {} in the place of the tensor.
        op: if it is a reduction, by which `Comm.allreduce` combines what the ranks have; "" if it is none.
        cure: what to write instead, where there is more than the whole array to turn to.

    >>> print(refusal("numpy.sort({})"))
    numpy.sort(x) of a DistTensor x is not answered: nothing is gathered silently
    write numpy.sort(x.to_global()), or numpy.sort(x.local) for this rank's block alone
    """
    whole, block = call.format("x.to_global()"), call.format("x.local")
    why, usual = "nothing is gathered silently", f"{whole}, or {block} for this rank's block alone"
    if op:
        why = "reductions come in a later release"
        usual = (
            f"{whole}, or reduce x.local on every rank to an array and combine these in place by "
            f"x.comm.allreduce(array, {op!r}), where what is replicated counts once per replica"
        )
    return f"{call.format('x')} of a DistTensor x is not answered: {why}\nwrite {cure or usual}"


def _name(function: Function) -> str:
    return f"{function.__module__}.{function.__name__}"


def _reduction(function: Function) -> str:
    return REDUCTIONS.get(function.__name__, "") if _name(function) == f"numpy.{function.__name__}" else ""


def _cure(function: Function) -> str:
    if function.__module__ == "numpy.fft":
        return (
            f"rote.fft.{_TRANSFORMS[function.__name__]}, or import rote.fft.dispatch first, by which numpy.fft answers"
        )
    return _CURES.get(function, "")


REDUCTIONS = {
    **dict.fromkeys(("sum", "nansum", "mean", "nanmean", "average", "count_nonzero", "vdot", "add.reduce"), "sum"),
    **dict.fromkeys(("std", "nanstd", "var", "nanvar", "logical_or.reduce"), "sum"),
    **dict.fromkeys(("prod", "nanprod", "multiply.reduce", "logical_and.reduce"), "prod"),
    **dict.fromkeys(("max", "amax", "nanmax", "ptp", "any", "maximum.reduce"), "max"),
    **dict.fromkeys(("min", "amin", "nanmin", "all", "minimum.reduce"), "min"),
}
"""By the name of a reduction, how what the ranks have of it is combined."""

_TRANSFORMS = {
    **dict.fromkeys(("fft", "fft2", "fftn"), "fftn(x)"),
    **dict.fromkeys(("ifft", "ifft2", "ifftn"), "ifftn(X)"),
    **dict.fromkeys(("rfft", "rfft2", "rfftn", "ihfft"), "rfftn(x)"),
    **dict.fromkeys(("irfft", "irfft2", "irfftn", "hfft"), "irfftn(X)"),
    **{name: f"{name}(X)" for name in ("fftshift", "ifftshift")},
}
_CURES: dict[Function, str] = {
    np.convolve: "rote.fft.convolve(x, y)",
    np.correlate: "rote.fft.correlate(x, y)",
    np.save: "x.save(path)",
}
