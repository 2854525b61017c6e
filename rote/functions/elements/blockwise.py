"""Element-wise functions of NumPy on tensors: operands are brought to matching layouts, then computed by blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...compiler.step import as_dtype, refuse_mask
from ...errors import LayoutError
from ...layout.layout import Distribution
from ...runtime.comm.collective_errors import collective_errors, floating_errors_raise
from ..distributed import Distributed
from ..moves import asked, warn_of_copies
from ..rules import Function, comm_of, failing_together
from ..sharing import changed, writable
from .operands import as_plain_operands, together

__all__ = ["elementwise"]

_NUMBERS = (float, int, bool, complex, type(None))  # types of scalars, known without a look at their shape
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
    if floating_errors_raise():
        result = failing_together(
            name, lambda *values, **given: _answered(name, function, values, given), operands, options
        )
    else:
        result = _answered(name, function, operands, options)
    if options.get("out") is not None:
        for out in result if isinstance(result, tuple) else (result,):
            if out._sharing is not None:
                changed(out)
    return result


def _answered(name: str, function: Function, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    if "where" not in options:
        into = options.get("out")
        out = into[0] if type(into) is tuple and len(into) == 1 else into
        given = operands if out is None else (*operands, out)
        first = None if isinstance(out, tuple) else _alike(given)
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
    kinds = {x.local.dtype.kind if isinstance(x, Distributed) else np.asarray(x).dtype.kind for x in operands}
    comm = comm_of(operands, options)
    if comm is None or "i" not in kinds or not kinds <= {*"biu"} or (isinstance(exponent, int) and exponent >= 0):
        return np.power

    def power(*blocks: Any, **options: Any) -> Any:
        with collective_errors(comm):
            return np.power(*blocks, **options)

    return power


def _alike(operands: Sequence[Any]) -> Distributed | None:
    """The first tensor, if all others are scalars or tensors of its distribution, and it is not partial; else None."""
    first: Distributed | None = None
    for x in operands:
        if isinstance(x, Distributed):
            if first is None:
                first = x
            elif x.distribution != first.distribution or x.comm is not first.comm:
                return None
        elif type(x) not in _NUMBERS:
            if np.ndim(x):
                return None
            refuse_mask(type(x))
    return None if first is None or first.distribution.partial else first


def _general(name: str, function: Function, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    into = options.get("out")
    outs = into if isinstance(into, tuple) else (into,)
    written = _written(name, outs)
    if written is not None and written.distribution.partial:
        return _contributed(name, function, operands, options, written)
    named = {}  # operands such as `where=`
    for key, value in options.items():
        if key != "out" and (isinstance(value, Distributed) or np.ndim(value)):
            named[key] = value
    keys, values = list(named), as_plain_operands([*operands, *named.values()])
    target, blocks = together(name, values, written)
    given = {**options, **dict(zip(keys, blocks[len(operands) :], strict=True))}
    arrays: tuple[Any, ...] = (None,) * len(outs)
    if written is not None:
        given["out"] = arrays = tuple([None if out is None else writable(out) for out in outs])
        if not isinstance(function, np.ufunc) or not isinstance(into, tuple):
            given["out"] = given["out"][0]
    result = function(*blocks[: len(operands)], **given)
    first = next(x for x in (written, *values) if isinstance(x, Distributed))
    owners = {id(array): out for array, out in zip(arrays, outs, strict=True) if out is not None}
    parts = result if isinstance(result, tuple) else (result,)
    results = [owners[id(part)] if id(part) in owners else _wrapped(first, target, part) for part in parts]
    if written is None and all(np.shape(x) != target.shape for x in values):
        warn_of_copies(name, values, results)
    return results[0] if len(results) == 1 else tuple(results)


def _contributed(
    name: str, function: Function, operands: Sequence[Any], options: dict[str, Any], out: Distributed
) -> Any:
    """Write into a partial tensor: some ranks get the values, all others the identity of the reduction."""
    given = {key: value for key, value in options.items() if key != "out"}
    result = elementwise(name, function, operands, given)
    if "where" in given or isinstance(result, tuple) or result.distribution.shape != out.distribution.shape:
        raise LayoutError(
            f"{name} writes into {out.distribution.layout}, whose blocks are contributions, one whole result only\n"
            "give an out= whose layout has no +"
        )
    end = out.distribution
    np.copyto(writable(out), asked(result, end.layout, name, end.grid).local, casting="same_kind")
    return out


def _written(name: str, outs: Sequence[Any]) -> Distributed | None:
    """The first tensor that is written, if any; refused if one is an array, or they have several distributions."""
    given = [out for out in outs if out is not None]
    for out in given:
        if not isinstance(out, Distributed):
            raise LayoutError(
                f"{name} of a DistTensor writes no array; give a tensor as out=, or read the result's .local"
            )
        if out.distribution != given[0].distribution:
            raise LayoutError(
                f"{name} wants out= of one distribution, not {given[0].distribution} and {out.distribution}"
            )
    return given[0] if given else None


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
