"""Dispatch of NumPy's functions on tensors: those in a table are answered, all others are refused with a cure.

NumPy passes every call of its functions with a tensor among the arguments to the tensor (`__array_function__`, NEP 18).
The functions themselves, and the table, are in `rote.functions`; those for `numpy.fft` in `rote.fft`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import functions
from ..functions.rules import ANSWERS, UFUNC_METHODS, Function, fits
from ..late import late

__all__ = ["ANSWERS", "UFUNC_METHODS", "answer", "answering", "answering_method", "answers", "method_cure"]
__all__ += ["name_cure", "refusal"]


def answering(function: Function) -> Function | None:
    """The function that answers for one of NumPy; the module that has it is imported for this, and no other one."""
    if function not in ANSWERS:
        functions.load(functions.ANSWERING.get(function.__name__))
    return ANSWERS.get(function)


def answers() -> dict[Function, Function]:
    """The complete table of NumPy's functions that are answered; all functions are imported for it."""
    functions.load()
    return ANSWERS


def answering_method(ufunc: np.ufunc, method: str) -> Function | None:
    """The function that answers for a method of a ufunc; one module is imported for it, as for `answering`."""
    if (ufunc, method) not in UFUNC_METHODS:
        functions.load(functions.ANSWERING.get(f"ufunc.{method}"))
    return UFUNC_METHODS.get((ufunc, method))


def answer(function: Function, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """Call a function of NumPy on tensors.

    Raises:
        TypeError: the function is not answered; the text says what to write instead.
        LayoutError: the tensors do not have the layouts that the function needs.
    """
    method = answering(function)
    if method is None and function.__module__ == "numpy.fft":
        late("numpy.fft")
        method = ANSWERS.get(function)
    if method is None:
        raise TypeError(refusal(f"{_name(function)}({{}})", _CURES.get(function, "")))
    options = {name: value for name, value in options.items() if value is not np._NoValue}  # means: not given
    try:
        return method(*args, **options)
    except TypeError as error:
        if fits(method, args, options):
            raise
        name = _name(function)
        raise TypeError(f"{error} for a DistTensor\nwrite {name}(x.to_global(), …)") from error


def refusal(call: str, cure: str = "") -> str:
    """The text that refuses a call.

    Args:
        call: the user's call, with {} in the place of the tensor.
        cure: what to write instead; if empty, the call on the whole array.

    >>> print(refusal("numpy.kron({})"))
    numpy.kron(x) of a DistTensor x is not answered: nothing is gathered silently
    write numpy.kron(x.to_global()), or numpy.kron(x.local) for this rank's block alone
    """
    whole, block = call.format("x.to_global()"), call.format("x.local")
    usual = f"{whole}, or {block} for this rank's block alone"
    return f"{call.format('x')} of a DistTensor x is not answered: nothing is gathered silently\nwrite {cure or usual}"


def name_cure(name: str) -> str:
    """The replacement for an attribute that arrays, or tensors of other libraries, have; empty if there is none.

    >>> name_cure("full_tensor")
    'x.to_global()'
    """
    function = vars(np).get(name)
    return _NAMES.get(name, "") or (_CURES.get(function, "") if callable(function) else "")


def method_cure(ufunc: np.ufunc, method: str) -> str:
    """The replacement for a ufunc's method that is not answered; empty if only the whole array helps."""
    if method == "outer":
        return f"numpy.{ufunc.__name__}(x[(..., *[None] * y.ndim)], y)"
    if method == "at":
        return f"x[indices] = numpy.{ufunc.__name__}(x[indices], values) if no index is there twice, or numpy.bincount"
    return ""


def _name(function: Function) -> str:
    return f"{function.__module__}.{function.__name__}"


_NAMES = {
    "item": "float(x), int(x) or complex(x) of a tensor of order 0; x[i, j] is one",
    "fill": "x[...] = value",
    "nbytes": "x.size * x.dtype.itemsize, or x.local.nbytes for this rank's block",
    "itemsize": "x.dtype.itemsize",
    "view": "x.astype(dtype), or x.local.view(dtype) for this rank's block alone",
    "indices": "x.distribution.indices(x.comm.rank), or x.slices() of a layout in blocks",
    "placements": "x.layout",
    "device_mesh": "x.distribution.grid",
    "clone": "x.copy()",
    "unsqueeze": "x[None], or numpy.expand_dims(x, axis)",
    "permute": "x.transpose(axes)",
    "to": "x.astype(dtype)",
    "tofile": "x.save('x.npy'), or x.local.tofile(path) for this rank's block",
    "global_shape": "x.shape",
    "chunks": "x.distribution.to_chunks()",
    "rechunk": "x.redistribute(layout)",
    "to_local": "x.local",
    **dict.fromkeys(("full_tensor", "compute", "numpy", "gather"), "x.to_global()"),
}
_CURES: dict[Any, str] = {
    np.convolve: "rote.fft.convolve(x, y)",
    np.correlate: "rote.fft.correlate(x, y)",
    np.save: "x.save(path)",
    np.select: "numpy.where(condition, x, y), within one another for more",
    np.piecewise: "numpy.where(condition, f(x), g(x)), within one another for more",
    np.block: "numpy.concatenate of rows, each a numpy.concatenate",
    np.linalg.lstsq: "numpy.linalg.pinv(x) @ y",
    np.partition: "numpy.sort(x), which is ordered over all ranks",
    np.argpartition: "numpy.argsort(x), which is ordered over all ranks",
    np.compress: "x[mask], along mode 0, or x[:, mask]",
    np.fill_diagonal: "x[numpy.arange(n), numpy.arange(n)] = value",
    np.put: "x.reshape(-1)[indices] to read, x[numpy.unravel_index(indices, x.shape)] = values to write",
    np.putmask: "x[mask] = value, or numpy.copyto(x, values, where=mask)",
    np.place: "x[mask] = value, or numpy.copyto(x, values, where=mask)",
    np.choose: "numpy.where(condition, x, y), within one another for more",
    np.intersect1d: "u = numpy.unique(x), and u[numpy.isin(u, y)]",
    np.setdiff1d: "u = numpy.unique(x), and u[~numpy.isin(u, y)]",
    np.union1d: "numpy.unique(numpy.concatenate([x, y]))",
    np.trapezoid: "numpy.sum(0.5 * dx * (y[1:] + y[:-1]), axis=0), along mode 0",
    np.polyval: "DistTensor.from_local(numpy.polyval(p, x.local), x.distribution, comm=x.comm)",
    np.interp: "DistTensor.from_local(numpy.interp(x.local, xp, fp), x.distribution, comm=x.comm)",
    np.delete: "x[numpy.delete(numpy.arange(len(x)), indices)], along mode 0",
    np.insert: "numpy.concatenate([x[:i], values, x[i:]])",
    np.apply_along_axis: "the function of x.local, after x.redistribute to a layout that has the axis whole",
    np.atleast_1d: "x.reshape(-1), if x.ndim < 1",
    np.atleast_2d: "x[None], if x.ndim < 2",
    np.meshgrid: "rote.array_api.meshgrid(x, y)",
}
