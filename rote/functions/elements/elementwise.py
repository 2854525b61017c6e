"""Element-wise functions, under the names of the array API standard; NumPy's ufuncs use the same mechanism."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..distributed import Distributed
from ..rules import ANSWERS, Function, fails_together, follows
from ..sharing import changed, linked, writable
from .blockwise import elementwise
from .operands import together

# The names of the standard, all of which `rote.array_api` offers; in a form that type checkers read.
__all__ = ["abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert"]
__all__ += ["bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj"]
__all__ += ["copysign", "cos", "cosh", "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater"]
__all__ += ["greater_equal", "hypot", "imag", "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log1p"]
__all__ += ["log2", "log10", "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum"]
__all__ += ["minimum", "multiply", "negative", "nextafter", "not_equal", "positive", "pow", "real", "reciprocal"]
__all__ += ["remainder", "round", "sign", "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh"]
__all__ += ["trunc", "where"]


def _unary(function: Function, name: str = "") -> Function:
    """A function of one tensor, under the standard's name, which is NumPy's unless another one is given."""
    name = name or function.__name__

    def called(x: Distributed, /) -> Any:
        return elementwise(name, function, (x,), {})

    return _named(name, called, function, 1)


def _binary(function: Function, name: str = "") -> Function:
    """A function of two operands, at least one of them a tensor; its name is NumPy's unless another one is given."""
    name = name or function.__name__

    def called(x1: Any, x2: Any, /) -> Any:
        return elementwise(name, function, (x1, x2), {})

    return _named(name, called, function, 2)


_SHOWN = {"acosh": "[1.5, 2.0]"}  # for functions that are not defined at the usual values of the example

_DOC = """The `numpy.{numpy}` of each element, with NumPy's rules for dtypes and special values.

{about}

Raises:
    TypeError: NumPy's function does not accept the dtype.
    LayoutError: shapes do not broadcast, or an implicit move is needed but refused.

>>> import numpy as np, rote.array_api as xp
>>> values = np.asarray({values})
>>> bool(np.array_equal(xp.{name}(xp.asarray(values){more}).to_global(), np.{numpy}(values{more})))
True
"""


def _named(name: str, called: Function, function: Function, operands: int) -> Function:
    called.__name__ = called.__qualname__ = name
    values = "[6, 5]" if name.startswith("bitwise") else _SHOWN.get(name, "[0.5, 0.25]")
    about = "The result has x's layout." if operands == 1 else "Operands are tensors, arrays or scalars that broadcast."
    called.__doc__ = _DOC.format(
        name=name, numpy=function.__name__, values=values, about=about, more=", 2" * (operands - 1)
    )
    return follows("elementwise")(called)


abs: Function = _unary(np.abs, "abs")
acos: Function = _unary(np.arccos, "acos")
acosh: Function = _unary(np.arccosh, "acosh")
asin: Function = _unary(np.arcsin, "asin")
asinh: Function = _unary(np.arcsinh, "asinh")
atan: Function = _unary(np.arctan, "atan")
atanh: Function = _unary(np.arctanh, "atanh")
bitwise_invert: Function = _unary(np.invert, "bitwise_invert")
ceil: Function = _unary(np.ceil)
conj: Function = _unary(np.conj, "conj")
cos: Function = _unary(np.cos)
cosh: Function = _unary(np.cosh)
exp: Function = _unary(np.exp)
expm1: Function = _unary(np.expm1)
floor: Function = _unary(np.floor)
isfinite: Function = _unary(np.isfinite)
isinf: Function = _unary(np.isinf)
isnan: Function = _unary(np.isnan)
log: Function = _unary(np.log)
log10: Function = _unary(np.log10)
log1p: Function = _unary(np.log1p)
log2: Function = _unary(np.log2)
logical_not: Function = _unary(np.logical_not)
negative: Function = _unary(np.negative)
positive: Function = _unary(np.positive)
reciprocal: Function = _unary(np.reciprocal)
round: Function = _unary(np.round)
sign: Function = _unary(np.sign)
signbit: Function = _unary(np.signbit)
sin: Function = _unary(np.sin)
sinh: Function = _unary(np.sinh)
sqrt: Function = _unary(np.sqrt)
square: Function = _unary(np.square)
tan: Function = _unary(np.tan)
tanh: Function = _unary(np.tanh)
trunc: Function = _unary(np.trunc)

add: Function = _binary(np.add)
atan2: Function = _binary(np.arctan2, "atan2")
bitwise_and: Function = _binary(np.bitwise_and)
bitwise_left_shift: Function = _binary(np.left_shift, "bitwise_left_shift")
bitwise_or: Function = _binary(np.bitwise_or)
bitwise_right_shift: Function = _binary(np.right_shift, "bitwise_right_shift")
bitwise_xor: Function = _binary(np.bitwise_xor)
copysign: Function = _binary(np.copysign)
divide: Function = _binary(np.divide)
equal: Function = _binary(np.equal)
floor_divide: Function = _binary(np.floor_divide)
greater: Function = _binary(np.greater)
greater_equal: Function = _binary(np.greater_equal)
hypot: Function = _binary(np.hypot)
less: Function = _binary(np.less)
less_equal: Function = _binary(np.less_equal)
logaddexp: Function = _binary(np.logaddexp)
logical_and: Function = _binary(np.logical_and)
logical_or: Function = _binary(np.logical_or)
logical_xor: Function = _binary(np.logical_xor)
maximum: Function = _binary(np.maximum)
minimum: Function = _binary(np.minimum)
multiply: Function = _binary(np.multiply)
nextafter: Function = _binary(np.nextafter)
not_equal: Function = _binary(np.not_equal)
pow: Function = _binary(np.power, "pow")
remainder: Function = _binary(np.remainder)
subtract: Function = _binary(np.subtract)


@follows("elementwise", np.real)
def real(x: Distributed, /) -> Any:
    """The real parts: a view, so that what is written into them is in the tensor.

    >>> import rote.array_api as xp
    >>> xp.real(xp.asarray([1 + 2j, 3])).to_global()
    array([1., 3.])
    """
    return _part_of_complex("real", x)


@follows("elementwise", np.imag)
def imag(x: Distributed, /) -> Any:
    """The imaginary parts: a view, as the real parts are; those of real numbers are read-only zeros.

    >>> import rote.array_api as xp
    >>> xp.imag(xp.asarray([1 + 2j, 3])).to_global()
    array([2., 0.])
    """
    return _part_of_complex("imag", x)


def _part_of_complex(name: str, x: Distributed) -> Any:
    summed = isinstance(x, Distributed) and not (x.distribution.partial and x.distribution.layout.op != "sum")
    if not summed:  # the real part of a product is no product of real parts
        return elementwise(name, getattr(np, name), (x,), {})
    zeros = name == "imag" and x.local.dtype.kind != "c"
    return linked(x._with(getattr(x.local, name)), x, fixed=(lambda array: array) if zeros else None)


@follows("elementwise")
def clip(x: Distributed, /, min: Any = None, max: Any = None) -> Any:
    """The elements limited to bounds, which are tensors, arrays, scalars or None.

    >>> import rote.array_api as xp
    >>> xp.clip(xp.asarray([1, 5, 9]), 2, 8).to_global()
    array([2, 5, 8])
    """
    return elementwise("clip", np.clip, (x, min, max), {})


@follows("elementwise")
def where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """The elements of the first operand where the condition holds, and of the second elsewhere.

    >>> import rote.array_api as xp
    >>> xp.where(xp.asarray([True, False]), xp.asarray([1, 2]), 0).to_global()
    array([1, 0])
    """
    return elementwise("where", np.where, (condition, x1, x2), {})


@follows("elementwise", np.copyto)
@fails_together("copyto")
def copyto(dst: Distributed, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Write values into a tensor, which keeps its layout.

    Raises:
        TypeError: `dst` is an array.
    """
    if not isinstance(dst, Distributed):
        raise TypeError(
            "numpy.copyto(array, x) of a DistTensor x is not answered: nothing is gathered silently\n"
            "write numpy.copyto(array, x.to_global())"
        )
    _, (_, values, mask) = together("copyto", (dst, src, where), dst)
    np.copyto(writable(dst), values, casting=casting, where=mask)
    changed(dst)


@follows("elementwise", np.where, name="numpy.where")
def _where(condition: Any, /, *values: Any) -> Any:
    """Choose as `where` does; given a condition alone, do as `nonzero`."""
    if not values:
        return np.nonzero(condition)
    if len(values) != 2:
        raise TypeError("numpy.where of a DistTensor takes a condition and two values\nwrite numpy.where(x, y, z)")
    return where(condition, *values)


def _nan_to_num(x: Any, copy: bool = True, *args: Any, **options: Any) -> Any:
    """Replace NaNs and infinities; without a copy, the result is written into the tensor."""
    result = elementwise("nan_to_num", lambda block: np.nan_to_num(block, True, *args, **options), (x,), {})
    if copy:
        return result
    copyto(x, result)
    return x


def _answer(function: Function, *args: Any, **options: Any) -> Any:
    return elementwise(function.__name__, function, args, options)


_ANSWERED: tuple[Function, ...] = (
    *(np.angle, np.iscomplex, np.isreal, np.isneginf, np.isposinf, np.isclose),
    *(np.around, np.round, np.fix, np.clip, np.sinc, np.i0),
)
"""Functions of NumPy, none of them ufuncs, that are called with blocks in place of tensors."""

ANSWERS.update({function: partial(_answer, function) for function in _ANSWERED} | {np.nan_to_num: _nan_to_num})
