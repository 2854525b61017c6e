"""Questions with one answer on all ranks.

Facts of shapes and dtypes are known to every rank, so no message is sent. For comparisons of whole tensors each rank
compares its blocks, and the ranks combine their answers.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..layout.layout import Op
from ..runtime.comm.protocol import Comm
from .alignment import matched
from .distributed import Distributed, shape_of
from .moves import agree_on_call
from .rules import ANSWERS, Function, follows

__all__ = ["allclose", "array_equal", "array_equiv", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]


class FloatInfo(NamedTuple):
    """The limits of a floating-point dtype, as plain numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


class IntegerInfo(NamedTuple):
    """The limits of an integer dtype, as plain numbers."""

    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


def _dtype(value: Any) -> Any:
    """The dtype of a tensor; anything else as it is."""
    return value.local.dtype if isinstance(value, Distributed) else value


@follows("fact")
def finfo(type: npt.DTypeLike | Distributed, /) -> FloatInfo:
    """The limits of a floating-point dtype, or of the parts of a complex one.

    Parameters
    ----------
    type : DTypeLike | DistTensor
        A dtype, or a tensor.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.finfo("f4").bits, xp.finfo("c16").eps
    (32, 2.220446049250313e-16)
    """
    info = np.finfo(_dtype(type))
    eps, most, least, normal = map(float, (info.eps, info.max, info.min, info.smallest_normal))
    return FloatInfo(info.bits, eps, most, least, normal, np.dtype(info.dtype))


@follows("fact")
def iinfo(type: npt.DTypeLike | Distributed, /) -> IntegerInfo:
    """The limits of an integer dtype.

    Parameters
    ----------
    type : DTypeLike | DistTensor
        A dtype, or a tensor.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.iinfo("i1").min
    -128
    """
    info = np.iinfo(_dtype(type))
    return IntegerInfo(info.bits, int(info.max), int(info.min), np.dtype(info.dtype))


@follows("fact")
def isdtype(dtype: npt.DTypeLike, kind: Any) -> bool:
    """Whether a dtype is of a kind, such as "real floating", or is a given dtype; of any of several in a tuple.

    Examples
    --------
    >>> import numpy as np, rote.array_api as xp
    >>> xp.isdtype("f4", ("integral", "real floating")), xp.isdtype(np.dtype(bool), "numeric")
    (True, False)
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    asked = [name if (isinstance(name, str) and " " in name) or name in _KINDS else np.dtype(name) for name in kinds]
    return any(np.isdtype(np.dtype(dtype), kind) for kind in asked)


_KINDS = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric")


@follows("fact", np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The dtype to which tensors, dtypes and Python's numbers are promoted together.

    Parameters
    ----------
    *arrays_and_dtypes : DistTensor | DTypeLike
        Tensors, dtypes and numbers.

    Examples
    --------
    >>> import numpy as np, rote.array_api as xp
    >>> xp.result_type(np.dtype("f4"), 1)
    dtype('float32')
    """
    return np.result_type(*map(_dtype, arrays_and_dtypes))


@follows("fact", np.can_cast)
def can_cast(from_: Any, to: Any, /, casting: Any = "safe") -> bool:
    """Whether a dtype, or the dtype of a tensor, can be cast to another.

    Parameters
    ----------
    from_ : DTypeLike | DistTensor
        A dtype, or a tensor.
    to : DTypeLike
        A dtype.
    casting : str, default 'safe'
        The rule, as for `numpy.can_cast`.

    Examples
    --------
    >>> import numpy as np, rote.array_api as xp
    >>> xp.can_cast(np.dtype("f4"), np.dtype("f8"))
    True
    """
    return np.can_cast(_dtype(from_), _dtype(to), casting)


def _fact(function: Function, *args: Any, **options: Any) -> Any:
    """Answer from shape and dtype alone: arrays that take no memory stand in for tensors."""

    def stand_in(x: Any) -> Any:
        if not isinstance(x, Distributed):
            return x
        return np.broadcast_to(np.empty((), x.local.dtype), x.distribution.shape)

    return function(*map(stand_in, args), **{key: stand_in(value) for key, value in options.items()})


_FACTS: tuple[Function, ...] = (np.size, np.common_type, np.iscomplexobj, np.isrealobj)
ANSWERS.update({function: partial(_fact, function) for function in _FACTS})
ANSWERS.update({np.shape: lambda a: a.distribution.shape, np.ndim: lambda a: len(a.distribution.shape)})


@follows("agreed", np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close, in the sense of `numpy.allclose`. Collective."""
    return _on_all("allclose", partial(np.allclose, equal_nan=equal_nan), a, b, rtol, atol)


@follows("agreed", np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether shapes and all elements are equal. Collective, unless shapes differ."""
    same = partial(np.array_equal, equal_nan=equal_nan)
    return shape_of(a1) == shape_of(a2) and _on_all("array_equal", same, a1, a2)


@follows("agreed", np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether all elements are equal after broadcasting. Collective, unless shapes do not broadcast."""
    shapes = shape_of(a1), shape_of(a2)
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return _on_all("array_equiv", np.array_equiv, a1, a2)


def _on_all(name: str, function: Function, *operands: Any) -> bool:
    """Whether a comparison holds on every rank, for blocks in matching layouts; the answer is equal on all ranks."""
    first = next(x for x in operands if isinstance(x, Distributed))
    target, blocks = matched(name, operands)
    return _agreed(first.comm, not target.holds(first.comm.rank) or function(*blocks), "prod")


def _on_any(function: Function, a: Any, b: Any, *args: Any, **options: Any) -> bool:
    """Whether a comparison holds for the blocks of some rank; the answer is equal on all ranks."""
    first = next(x for x in (a, b) if isinstance(x, Distributed))
    blocks = [x.local if isinstance(x, Distributed) else x for x in (a, b)]
    return _agreed(first.comm, function(*blocks, *args, **options), "sum")


for _function in (np.shares_memory, np.may_share_memory):
    follows("agreed", _function, name=_function.__name__)(partial(_on_any, _function))


def _agreed(comm: Comm, value: bool, op: Op) -> bool:
    agree_on_call(comm)
    buffer = np.array([value], bool)
    comm.allreduce_in_place(buffer, op)
    return bool(buffer[0])
