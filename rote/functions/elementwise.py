"""Element-wise functions of tensors: operands are brought to matching layouts, then NumPy's function computes blocks.

`elementwise` is the one mechanism. NumPy's ufuncs use it, and so do the functions below it, which have the names of the
array API standard.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar, overload

import numpy as np

from ..compiler.step import as_dtype
from ..errors import LayoutError
from ..layout.distribution import Distribution
from ..runtime.arrays import as_array
from ..runtime.comm.agreement import collective_errors
from ..runtime.placement import check_values
from .alignment import as_plain_operands, assign, matched, no_tensor
from .distributed import Distributed, T, changed, comm_of, linked, shape_of, writable
from .moves import warn_of_copies
from .reshaping import nonzero
from .rules import ANSWERS, Function, OfOne, OfTwo, call_collectively, follows, of_one, of_two

# The names of the standard, all of which `rote.array_api` offers; in a form that type checkers read.
__all__ = ["abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert"]
__all__ += ["bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj"]
__all__ += ["copysign", "cos", "cosh", "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater"]
__all__ += ["greater_equal", "hypot", "imag", "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log10"]
__all__ += ["log1p", "log2", "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum"]
__all__ += ["minimum", "multiply", "negative", "nextafter", "not_equal", "positive", "pow", "real", "reciprocal"]
__all__ += ["remainder", "round", "sign", "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh"]
__all__ += ["trunc", "where"]

F = TypeVar("F", bound=Function)
Unary = OfOne[[]]
Binary = OfTwo[[]]

_NUMBERS = (float, int, bool, complex, type(None))  # types of scalars, known without a look at their shape
_SETTINGS = frozenset(("out", "dtype", "casting", "order", "subok", "signature", "sig", "equal_nan"))  # no operands
_USUAL = "?bhilqBHILQfdFD"  # codes of dtypes that need no check


def elementwise(name: str, function: Function, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    """A function of each element of tensors, arrays and scalars, computed block by block.

    Tensors in other layouts, or of other shapes, are moved to matching layouts first. Every rank holds arrays whole,
    and takes its part of them. Operands of one distribution, and scalars, are used as they are.

    Args:
        name: the name of the function, for errors and for the record of moves.
        function: a function of NumPy, which is called with blocks in place of tensors.
        operands: its positional arguments.
        options: its other arguments; `out` is a tensor, or a tuple of tensors and None, which keep their layouts.

    Returns:
        A tensor, or as many as the function returns; the tensors of `out` if they are given.

    Raises:
        LayoutError: shapes do not broadcast, tensors have several communicators, or `out` cannot be written.
        PlanError: Rote does not move elements of the result's dtype.
    """
    if function is np.power:
        function = _power_of(operands, options)
    result = call_collectively(name, partial(_answered, name, function), operands, options)
    if options.get("out") is not None:
        for out in result if isinstance(result, tuple) else (result,):
            if out._sharing is not None:
                changed(out)
    return result


def _answered(name: str, function: Function, /, *operands: Any, **options: Any) -> Any:
    into = options.get("out")
    out = into[0] if type(into) is tuple and len(into) == 1 else into

    for option in options:  # `where=` and the bounds of `clip` are operands, too
        if option not in _SETTINGS and type(options[option]) not in _NUMBERS:
            return _general(name, function, operands, options)

    first = None if isinstance(out, tuple) else _alike(operands if out is None else (*operands, out))
    if first is not None:
        blocks = [x.local if isinstance(x, Distributed) else x for x in operands]
        if out is None:
            return _wrapped(first, first.distribution, function(*blocks, **options))
        if isinstance(out, Distributed):
            function(*blocks, **{**options, "out": out.local if out._sharing is None else writable(out)})
            return out
    return _general(name, function, operands, options)


def _power_of(operands: Sequence[Any], options: dict[str, Any]) -> Function:
    """The power of blocks. NumPy refuses negative powers of integers: such a call fails on all ranks or on none.

    Collective if it may fail.
    """
    exponent = operands[-1]
    kinds = {x.local.dtype.kind if isinstance(x, Distributed) else as_array(x).dtype.kind for x in operands}
    comm = comm_of("power", (*operands, *options.values()))
    if comm is None or "i" not in kinds or not kinds <= {*"biu"} or (isinstance(exponent, int) and exponent >= 0):
        return np.power

    def power(*blocks: Any, **options: Any) -> Any:
        with collective_errors(comm):
            return np.power(*blocks, **options)

    return power


def _alike(operands: Sequence[Any]) -> Distributed | None:
    """The first tensor, if all others are numbers or tensors of its distribution, and it is not partial; else None."""
    first: Distributed | None = None
    for x in operands:
        if isinstance(x, Distributed):
            if first is None:
                first = x
            elif x.distribution != first.distribution or x.comm is not first.comm:
                return None
        elif type(x) not in _NUMBERS and not isinstance(x, np.generic):
            return None  # an array
    return None if first is None or first.distribution.partial else first


def _general(name: str, function: Function, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    into = options.get("out")
    outs = into if isinstance(into, tuple) else (into,)
    written = _written(name, outs)
    if written is not None and written.distribution.partial:
        comm_of(name, (*operands, written))
        if "where" in options or len(outs) > 1:
            check_values(name, written.distribution)
        others = {key: value for key, value in options.items() if key != "out"}
        assign(written, elementwise(name, function, operands, others), name, options.get("casting", "same_kind"))
        return written

    # Options such as `where=` broadcast as operands do, so they are matched with them.
    named = {option: value for option, value in options.items() if option not in _SETTINGS}
    keys, values = list(named), as_plain_operands([*operands, *named.values()])
    arrays = tuple([None if out is None else writable(out) for out in outs])
    target, blocks = matched(name, values, written, options)
    arguments = {**options, **dict(zip(keys, blocks[len(operands) :], strict=True))}
    if written is not None:
        arguments["out"] = arrays
        if not isinstance(function, np.ufunc) or not isinstance(into, tuple):
            arguments["out"] = arrays[0]

    result = function(*blocks[: len(operands)], **arguments)
    first = next(x for x in (written, *values) if isinstance(x, Distributed))
    owners = {id(array): out for array, out in zip(arrays, outs, strict=True) if out is not None}
    parts = result if isinstance(result, tuple) else (result,)
    results = [owners[id(part)] if id(part) in owners else _wrapped(first, target, part) for part in parts]
    if written is None and all(shape_of(x) != target.shape for x in values):
        warn_of_copies(name, values, results)
    return results[0] if len(results) == 1 else tuple(results)


def _written(name: str, outs: Sequence[Any]) -> Distributed | None:
    """The first tensor that is written, if any; refused if one is an array, or they have several distributions."""
    tensors = [out for out in outs if out is not None]
    if len(tensors) > 1:
        comm_of(name, tensors)
    for out in tensors:
        if not isinstance(out, Distributed):
            raise no_tensor(name)
        if out.distribution != tensors[0].distribution:
            raise LayoutError(
                f"{name} wants out= of one distribution, not {tensors[0].distribution} and {out.distribution}"
            )
    return tensors[0] if tensors else None


def _wrapped(first: Distributed, target: Distribution, result: Any) -> Any:
    """Tensors made of the blocks that a function returns; they share no memory with the operand."""
    if isinstance(result, tuple):
        return tuple([_wrapped(first, target, part) for part in result])

    block = np.asarray(result)
    if block.dtype.char not in _USUAL:
        as_dtype(block.dtype)
    if np.may_share_memory(block, first.local):
        block = block.copy()
    return first._on(block, target)


def outer(ufunc: np.ufunc, a: Any, b: Any, /, **options: Any) -> Any:
    """The method `outer` of a ufunc: the function of each element of one operand and each of the other."""
    standing = np.reshape(a, (*shape_of(a), *[1] * len(shape_of(b))))
    return elementwise(f"{ufunc.__name__}.outer", ufunc, (standing, b), options)


_EXAMPLES = {"acosh": "[1.5, 2.0]"}  # for functions that are not defined at the usual values of the example

_DOC = """The `numpy.{numpy}` of each element, with NumPy's rules for dtypes and special values.

Parameters
----------
{operands}

Returns
-------
DistTensor
    {about}

Raises
------
TypeError
    NumPy's function does not accept the dtype.
LayoutError
    Shapes do not broadcast, or an implicit move is needed but refused.

Examples
--------
>>> import numpy as np, rote.array_api as xp
>>> values = np.asarray({values})
>>> bool(np.array_equal(xp.{name}(xp.asarray(values){more}).to_global(), np.{numpy}(values{more})))
True
"""


def _unary(function: Function, name: str = "") -> Unary:
    """A function of one operand under the standard's name, which is NumPy's unless another one is given."""

    def called(x: Distributed, /) -> Any:
        return elementwise(called.__name__, function, (x,), {})

    return of_one(_entered(called, function, name, "x : DistTensor\n    The elements.", "A tensor in x's layout."))


def _binary(function: Function, name: str = "") -> Binary:
    """A function of two operands, as `_unary` makes those of one."""

    def called(x1: Any, x2: Any, /) -> Any:
        return elementwise(called.__name__, function, (x1, x2), {})

    operands = "x1, x2 : DistTensor | array_like\n    Tensors, arrays or scalars that broadcast."
    about = "A tensor in the layout of an operand of its shape, to which moving the others costs least."
    return of_two(_entered(called, function, name, operands, about, more=", 2"))


def _entered(called: F, function: Function, name: str, operands: str, about: str, more: str = "") -> F:
    """The function with its name and docstring, in the table of rules."""
    name = name or function.__name__
    values = "[6, 5]" if name.startswith("bitwise") else _EXAMPLES.get(name, "[0.5, 0.25]")
    called.__name__ = called.__qualname__ = name
    words = {"operands": operands, "about": about, "values": values, "more": more}
    called.__doc__ = _DOC.format(name=name, numpy=function.__name__, **words)
    return follows("elementwise")(called)


abs: Unary = _unary(np.abs, "abs")
acos: Unary = _unary(np.arccos, "acos")
acosh: Unary = _unary(np.arccosh, "acosh")
asin: Unary = _unary(np.arcsin, "asin")
asinh: Unary = _unary(np.arcsinh, "asinh")
atan: Unary = _unary(np.arctan, "atan")
atanh: Unary = _unary(np.arctanh, "atanh")
bitwise_invert: Unary = _unary(np.invert, "bitwise_invert")
ceil: Unary = _unary(np.ceil)
conj: Unary = _unary(np.conj, "conj")
cos: Unary = _unary(np.cos)
cosh: Unary = _unary(np.cosh)
exp: Unary = _unary(np.exp)
expm1: Unary = _unary(np.expm1)
floor: Unary = _unary(np.floor)
isfinite: Unary = _unary(np.isfinite)
isinf: Unary = _unary(np.isinf)
isnan: Unary = _unary(np.isnan)
log: Unary = _unary(np.log)
log10: Unary = _unary(np.log10)
log1p: Unary = _unary(np.log1p)
log2: Unary = _unary(np.log2)
logical_not: Unary = _unary(np.logical_not)
negative: Unary = _unary(np.negative)
positive: Unary = _unary(np.positive)
reciprocal: Unary = _unary(np.reciprocal)
round: Unary = _unary(np.round)
sign: Unary = _unary(np.sign)
signbit: Unary = _unary(np.signbit)
sin: Unary = _unary(np.sin)
sinh: Unary = _unary(np.sinh)
sqrt: Unary = _unary(np.sqrt)
square: Unary = _unary(np.square)
tan: Unary = _unary(np.tan)
tanh: Unary = _unary(np.tanh)
trunc: Unary = _unary(np.trunc)

add: Binary = _binary(np.add)
atan2: Binary = _binary(np.arctan2, "atan2")
bitwise_and: Binary = _binary(np.bitwise_and)
bitwise_left_shift: Binary = _binary(np.left_shift, "bitwise_left_shift")
bitwise_or: Binary = _binary(np.bitwise_or)
bitwise_right_shift: Binary = _binary(np.right_shift, "bitwise_right_shift")
bitwise_xor: Binary = _binary(np.bitwise_xor)
copysign: Binary = _binary(np.copysign)
divide: Binary = _binary(np.divide)
equal: Binary = _binary(np.equal)
floor_divide: Binary = _binary(np.floor_divide)
greater: Binary = _binary(np.greater)
greater_equal: Binary = _binary(np.greater_equal)
hypot: Binary = _binary(np.hypot)
less: Binary = _binary(np.less)
less_equal: Binary = _binary(np.less_equal)
logaddexp: Binary = _binary(np.logaddexp)
logical_and: Binary = _binary(np.logical_and)
logical_or: Binary = _binary(np.logical_or)
logical_xor: Binary = _binary(np.logical_xor)
maximum: Binary = _binary(np.maximum)
minimum: Binary = _binary(np.minimum)
multiply: Binary = _binary(np.multiply)
nextafter: Binary = _binary(np.nextafter)
not_equal: Binary = _binary(np.not_equal)
pow: Binary = _binary(np.power, "pow")
remainder: Binary = _binary(np.remainder)
subtract: Binary = _binary(np.subtract)


@follows("elementwise", np.real)
def real(x: T, /) -> T:
    """The real parts: a view, so that what is written into them is in the tensor; of a `+prod` layout, read-only.

    Parameters
    ----------
    x : DistTensor
        The tensor.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.real(xp.asarray([1 + 2j, 3])).to_global()
    array([1., 3.])
    """
    return _part_of_complex("real", x)


@follows("elementwise", np.imag)
def imag(x: T, /) -> T:
    """The imaginary parts: a view where the real parts are one; those of real numbers are read-only zeros.

    Parameters
    ----------
    x : DistTensor
        The tensor.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.imag(xp.asarray([1 + 2j, 3])).to_global()
    array([2., 0.])
    """
    return _part_of_complex("imag", x)


def _part_of_complex(name: str, x: T) -> T:
    if isinstance(x, Distributed) and x.distribution.partial and x.distribution.layout.op != "sum":
        # The real part of a product is no product of real parts.
        values: T = elementwise(name, getattr(np, name), (x,), {})
        return linked(values, x, None, "copy", fixed=lambda array: getattr(array, name))
    zeros = name == "imag" and x.local.dtype.kind != "c"
    return linked(x._with(getattr(x.local, name)), x, fixed=(lambda array: array) if zeros else None)


@of_one
@follows("elementwise")
def clip(x: Distributed, /, min: Any = None, max: Any = None) -> Any:
    """The elements limited to bounds, which are tensors, arrays, scalars or None.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    min : float | array_like, optional
        The lower bound.
    max : float | array_like, optional
        The upper bound.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.clip(xp.asarray([1, 5, 9]), 2, 8).to_global()
    array([2, 5, 8])
    """
    return elementwise("clip", np.clip, (x, min, max), {})


@overload
def where(condition: T, /) -> tuple[T, ...]: ...
@overload
def where(condition: T, x1: Any, x2: Any, /) -> T: ...
@overload
def where(condition: Any, x1: T, x2: Any, /) -> T: ...
@overload
def where(condition: Any, x1: Any, x2: T, /) -> T: ...
@follows("elementwise", np.where)
def where(condition: Any, x1: Any = np._NoValue, x2: Any = np._NoValue, /) -> Any:
    """The elements of the first operand where the condition holds, and of the second elsewhere.

    Of only a condition, the indices where it holds, as by `nonzero`.

    Parameters
    ----------
    condition : array_like
        A tensor or an array of truth values.
    x1, x2 : DistTensor | array_like, optional
        Tensors, arrays or scalars that broadcast with it; both or none.

    Raises
    ------
    TypeError
        There is one value beside the condition.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.where(xp.asarray([True, False]), xp.asarray([1, 2]), 0).to_global()
    array([1, 0])
    """
    if x1 is np._NoValue:
        return nonzero(condition)
    if x2 is np._NoValue:
        raise TypeError("where takes a condition alone, or a condition and two values\nwrite where(x, y, z)")
    return elementwise("where", np.where, (condition, x1, x2), {})


@follows("elementwise", np.copyto)
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
    call_collectively("copyto", assign, (dst, src, "copyto", casting, where), {})


def _nan_to_num(x: Any, copy: bool = True, *args: Any, **options: Any) -> Any:
    """Replace NaNs and infinities; without a copy, the result is written into the tensor."""
    result = elementwise("nan_to_num", _numbers_of, (x, *args), options)
    if copy:
        return result
    copyto(x, result)
    return x


def _numbers_of(block: Any, *args: Any, **options: Any) -> Any:
    return np.nan_to_num(block, True, *args, **options)


def _answer(function: Function, *args: Any, **options: Any) -> Any:
    return elementwise(function.__name__, function, args, options)


# Functions of NumPy, none of them ufuncs, that are called with blocks in place of tensors.
_ANSWERED: tuple[Function, ...] = (
    *(np.angle, np.iscomplex, np.isreal, np.isneginf, np.isposinf, np.isclose),
    *(np.around, np.round, np.fix, np.clip, np.sinc, np.i0),
)

ANSWERS.update({function: partial(_answer, function) for function in _ANSWERED} | {np.nan_to_num: _nan_to_num})
