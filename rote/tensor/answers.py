"""NumPy's functions of distributed tensors: one table of those that are answered; all others are refused with a cure.

NumPy hands every call of its functions that has a tensor among its arguments to the tensor (`__array_function__`, NEP
18). What acts on each element is computed block by block; what asks for shape or dtype alone is told them; what
compares whole tensors is agreed on by all ranks, so those calls are collective. `rote.fft` adds `numpy.fft`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..compiler.step import as_dtype
from ..errors import LayoutError
from ..layout.distribution import tensor_shape
from ..layout.layout import Op
from ..runtime.comm.protocol import Comm
from ..runtime.copy.regions import filled
from ..runtime.placement import check_values, same_place
from .distributed import Distributed
from .functions.rules import ANSWERS, Function

__all__ = ["ANSWERS", "answer", "elementwise", "refusal"]

Array = npt.NDArray[Any]


def elementwise(name: str, function: Function, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    """A function of each element of tensors that lie alike, and of scalars, computed block by block.

    Args:
        name: of the function, for errors.
        function: of NumPy, which takes blocks in the place of tensors.
        operands: its positional arguments.
        options: its other arguments; `out` is a tensor, or a tuple of tensors and None.

    Raises:
        LayoutError: tensors lie differently or are partial, or an array is among the arguments.
    """
    into = options.get("out")
    outs = into if isinstance(into, tuple) else (into,)
    first = _alike(name, (*operands, *outs, *(value for key, value in options.items() if key != "out")))
    given = {key: _local(value) for key, value in options.items()}
    if isinstance(into, tuple):
        given["out"] = tuple(map(_local, into))
    result = function(*map(_local, operands), **given)
    if result is None:  # of copyto, which only writes
        return None
    parts = result if isinstance(result, tuple) else (result,)
    owner = {id(out.local): out for out in outs if isinstance(out, Distributed)}
    results = [owner[id(part)] if id(part) in owner else _owned(first, np.asarray(part)) for part in parts]
    return results[0] if len(results) == 1 else tuple(results)


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


def _local(value: Any) -> Any:
    """The block of a tensor; anything else as it is."""
    return value.local if isinstance(value, Distributed) else value


def _owned(first: Distributed, block: Array) -> Distributed:
    """A tensor in the place of the first one, that shares no memory with it."""
    as_dtype(block.dtype)
    return first._with(block.copy() if np.may_share_memory(block, first.local) else block)


def _alike(name: str, given: Iterable[Any]) -> Distributed:
    """The first of some tensors that lie alike; what is among them and no tensor is a scalar."""
    values = list(given)
    tensors = [x for x in values if isinstance(x, Distributed)]
    same_place(name, [(x.distribution, x.comm) for x in tensors])
    if any(not isinstance(x, Distributed) and np.ndim(x) for x in values):
        raise LayoutError(f"{name} takes tensors and scalars; lay the array out with from_global first")
    check_values(name, tensors[0].distribution)
    return tensors[0]


# --- what is answered -----------------------------------------------------------------------------------------------


def _each(function: Function, *args: Any, **options: Any) -> Any:
    return elementwise(_name(function), function, args, options)


def _where(*args: Any) -> Any:
    if len(args) == 1:
        raise TypeError(refusal("numpy.where({})"))
    return elementwise("numpy.where", np.where, args, {})


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if not isinstance(dst, Distributed):
        raise TypeError(refusal("numpy.copyto(array, {})"))
    elementwise("numpy.copyto", np.copyto, (dst, src), {"casting": casting, "where": where})


def _fact(function: Function, *args: Any, **options: Any) -> Any:
    """Answer from shape and dtype alone: arrays of both stand in for tensors, and take no memory."""

    def shown(x: Any) -> Any:
        return np.broadcast_to(np.empty((), x.local.dtype), x.distribution.shape) if isinstance(x, Distributed) else x

    return function(*map(shown, args), **{key: shown(value) for key, value in options.items()})


def _on_all(function: Function, a: Any, b: Any, *args: Any, **options: Any) -> bool:
    """Whether it is so of the blocks of every rank; the same answer on all."""
    first = _alike(_name(function), (a, b, *args, *options.values()))
    blocks, given = map(_local, (a, b, *args)), {key: _local(value) for key, value in options.items()}
    so = not first.distribution.holds(first.comm.rank) or function(*blocks, **given)
    return bool(_combined(first.comm, so, "prod"))


def _on_any(function: Function, a: Any, b: Any, *args: Any, **options: Any) -> bool:
    """Whether it is so of the blocks of some rank; the same answer on all."""
    (first, *_) = (x for x in (a, b) if isinstance(x, Distributed))
    return bool(_combined(first.comm, function(_local(a), _local(b), *args, **options), "sum"))


def _combined(comm: Comm, value: bool, op: Op) -> Any:
    buffer = np.array([value], bool)
    comm.allreduce(buffer, op)
    return buffer[0]


def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    return np.shape(a1) == np.shape(a2) and _on_all(np.array_equal, a1, a2, equal_nan=equal_nan)


def _array_equiv(a1: Any, a2: Any) -> bool:
    shapes = np.shape(a1), np.shape(a2)
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return _on_all(np.array_equiv, a1, a2)


def _full_like(
    a: Distributed,
    fill_value: Any,
    dtype: npt.DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: str | None = None,
) -> Distributed:
    """A tensor of one value where another lies; blocks are in C order, whatever `order` says."""
    if shape is not None and tensor_shape(shape) != a.distribution.shape:
        raise LayoutError(
            f"a tensor like another has its shape, {a.distribution.shape}, not {shape}\n"
            "write DistTensor.zeros(shape, layout), or empty, from_function or from_global"
        )
    if np.ndim(fill_value):
        raise LayoutError("numpy.full_like takes one value; lay an array out with from_global")
    return a._with(filled(a.distribution, a.comm.rank, fill_value, a.local.dtype if dtype is None else as_dtype(dtype)))


def _like(value: int, a: Distributed, dtype: npt.DTypeLike | None = None, *args: Any, **options: Any) -> Distributed:
    return _full_like(a, value, dtype, *args, **options)


def _copy(a: Distributed, order: str = "K", subok: bool = False) -> Distributed:
    return a.copy()


def _astype(x: Distributed, dtype: npt.DTypeLike, /, *, copy: bool = True, device: str | None = None) -> Distributed:
    return x.astype(dtype)


_EACH: tuple[Function, ...] = (
    *(np.real, np.imag, np.angle, np.iscomplex, np.isreal, np.isneginf, np.isposinf, np.isclose),
    *(np.around, np.round, np.fix, np.clip, np.nan_to_num, np.sinc, np.i0),
)
_FACTS: tuple[Function, ...] = (
    *(np.shape, np.ndim, np.size, np.result_type, np.can_cast, np.common_type),
    *(np.iscomplexobj, np.isrealobj),
)

_ANSWERED: dict[Function, Function] = {
    **{function: partial(_each, function) for function in _EACH},
    **{function: partial(_fact, function) for function in _FACTS},
    **{function: partial(_on_any, function) for function in (np.shares_memory, np.may_share_memory)},
    np.where: _where,
    np.copyto: _copyto,
    np.allclose: partial(_on_all, np.allclose),
    np.array_equal: _array_equal,
    np.array_equiv: _array_equiv,
    np.zeros_like: partial(_like, 0),
    np.empty_like: partial(_like, 0),
    np.ones_like: partial(_like, 1),
    np.full_like: _full_like,
    np.copy: _copy,
    np.astype: _astype,
}
ANSWERS.update(_ANSWERED)

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
