"""Facts of shapes and dtypes: all ranks know them, so no message is sent."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..distributed import Distributed
from ..rules import ANSWERS, Function, follows

__all__ = ["can_cast", "finfo", "iinfo", "isdtype", "result_type"]


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

    >>> finfo("f4").bits, finfo("c16").eps
    (32, 2.220446049250313e-16)
    """
    info = np.finfo(_dtype(type))
    eps, most, least, normal = map(float, (info.eps, info.max, info.min, info.smallest_normal))
    return FloatInfo(info.bits, eps, most, least, normal, np.dtype(info.dtype))


@follows("fact")
def iinfo(type: npt.DTypeLike | Distributed, /) -> IntegerInfo:
    """The limits of an integer dtype.

    >>> iinfo("i1").min
    -128
    """
    info = np.iinfo(_dtype(type))
    return IntegerInfo(info.bits, int(info.max), int(info.min), np.dtype(info.dtype))


@follows("fact")
def isdtype(dtype: npt.DTypeLike, kind: Any) -> bool:
    """Whether a dtype is of a kind, such as "real floating", or is a given dtype; of any of several in a tuple.

    >>> isdtype("f4", ("integral", "real floating")), isdtype(np.dtype(bool), "numeric")
    (True, False)
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    named = [each if (isinstance(each, str) and " " in each) or each in _KINDS else np.dtype(each) for each in kinds]
    return any(np.isdtype(np.dtype(dtype), each) for each in named)


_KINDS = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric")


@follows("fact", np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The dtype to which tensors, dtypes and Python's numbers are promoted together.

    >>> result_type(np.dtype("f4"), 1)
    dtype('float32')
    """
    return np.result_type(*map(_dtype, arrays_and_dtypes))


@follows("fact", np.can_cast)
def can_cast(from_: Any, to: Any, /, casting: Any = "safe") -> bool:
    """Whether a dtype, or the dtype of a tensor, can be cast to another.

    >>> can_cast(np.dtype("f4"), np.dtype("f8"))
    True
    """
    return np.can_cast(_dtype(from_), _dtype(to), casting)


def _fact(function: Function, *args: Any, **options: Any) -> Any:
    """Answer from shape and dtype alone: arrays that take no memory stand in for tensors."""

    def shown(x: Any) -> Any:
        if not isinstance(x, Distributed):
            return x
        return np.broadcast_to(np.empty((), x.local.dtype), x.distribution.shape)

    return function(*map(shown, args), **{key: shown(value) for key, value in options.items()})


_FACTS: tuple[Function, ...] = (np.shape, np.ndim, np.size, np.common_type, np.iscomplexobj, np.isrealobj)
ANSWERS.update({function: partial(_fact, function) for function in _FACTS})
