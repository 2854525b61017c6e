"""Sums that are rounded once: with the same bits in any layout, on any number of ranks, in any order.

A number is an integer of at most 53 bits times a power of two. It is cut into digits of 32 bits at fixed places, and
the digits of each place are summed as integers, which is exact; ranks add theirs. The integer that comes out is
rounded to the nearest number, as `math.fsum` does (a small superaccumulator: Neal 2015).
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...layout.distribution import Distribution, distribute
from ...layout.layout import Layout, as_layout
from ..distributed import Array, Distributed
from ..moves import asked
from .reduction import Reduced, reduced, reducible, settled

__all__ = ["digit_sums", "exact_sum", "rounded"]

_BITS = 32  # of a digit
_DIGIT = np.uint64((1 << _BITS) - 1)
_LEAST = -1074 - 52  # the exponent of the last bit of any number's mantissa
_PLACES = -(-(1024 - 53 - _LEAST) // _BITS) + 2  # of digits, from the smallest number to the largest
_SPECIAL = 3  # places after those: how many are NaN, inf and -inf
_CHUNK = 1 << 20  # elements whose digits add up to less than 2**53, so that a sum of doubles is exact


def exact_sum(
    name: str,
    x: Distributed,
    modes: tuple[int, ...],
    dtype: np.dtype[Any],
    keepdims: bool = False,
    layout: Layout | str | None = None,
) -> Any:
    """The sum over some modes, rounded once. Collective where they are split.

    It takes 568 bytes per element of the result while it runs, and some microseconds each at the end.

    Args:
        name: of the function, for the record of moves.
        dtype: of the sum, real or complex. The other arguments as in `reduction`.

    Raises:
        TypeError: the numbers, or the parts of complex ones, are wider than 64 bits.
    """
    wide = np.promote_types(dtype, x.local.dtype)
    if wide.itemsize > (16 if wide.kind == "c" else 8):
        raise TypeError(f"exact=True is for numbers of at most 64 bits, not {wide}; write x.astype('f8') first")
    x = reducible(name, x, modes, "")
    where = reduced(x.distribution, modes, keepdims, "sum")
    block = x.local.astype(np.promote_types(wide, "f8"), copy=False)
    over = tuple(range(block.ndim)) if x.distribution.layout.view is not None else modes
    sums = np.stack([digit_sums(part, over) for part in _parts(block)], axis=-2)
    first, last = (_longer(end, sums.shape[-2:]) for end in (where.contributions, where.target))
    shape = first.local_shape(x.comm.rank)
    digits = sums.reshape(shape) if sums.size == prod(shape) else np.zeros(shape, np.int64)
    total = settled(name, x._on(digits, first), Reduced(first, last, where.moves)).local
    extents = where.target.local_shape(x.comm.rank)
    parts = len(_parts(block))
    values = rounded(total.reshape(*extents, *sums.shape[-2:])) if total.size else np.zeros((*extents, parts))
    numbers = values[..., 0] + 1j * values[..., 1] if parts == 2 else values[..., 0]
    result = x._on(np.asarray(numbers).astype(dtype), where.target)
    if layout is None or as_layout(layout) == where.target.layout:
        return result
    return asked(result, as_layout(layout), name)


def _parts(block: Array) -> tuple[Array, ...]:
    """The real part of a block, and the imaginary one if it has one."""
    return (block.real, block.imag) if block.dtype.kind == "c" else (block,)


def _longer(dist: Distribution, extents: tuple[int, ...]) -> Distribution:
    """A distribution with more modes, whole ones, at its end."""
    lay = dist.layout
    longer = Layout((*lay.modes, *[()] * len(extents)), op=lay.op, partial=lay.partial, rooted=lay.rooted)
    return distribute(longer, (*dist.shape, *extents), dist.grid)


def digit_sums(block: Array, over: tuple[int, ...]) -> Array:
    """The sums of the digits of doubles over some modes, as integers: one more mode, at the end, has their places.

    >>> digits = digit_sums(np.array([1.0, -1.0, 1.0]), (0,))
    >>> bool((digits == digit_sums(np.array([1.0]), (0,))).all())
    True
    """
    kept = [n for mode, n in enumerate(block.shape) if mode not in over]
    rows = np.moveaxis(block, over, range(-len(over), 0)).reshape(prod(kept), prod(block.shape[m] for m in over))
    sums = np.zeros((len(rows), _PLACES + _SPECIAL), np.int64)
    height = max(1, _CHUNK // max(rows.shape[1], 1))
    for top in range(0, len(rows), height):
        for left in range(0, rows.shape[1], _CHUNK):
            part = slice(top, top + height)
            _add_digits(sums[part], rows[part, left : left + _CHUNK])
    return sums.reshape(*kept, _PLACES + _SPECIAL)


def _add_digits(sums: Array, rows: Array) -> None:
    finite = np.isfinite(rows)
    if not finite.all():
        for kind, special in enumerate((np.isnan(rows), rows == np.inf, rows == -np.inf)):
            sums[:, _PLACES + kind] += special.sum(axis=1)
        rows = np.where(finite, rows, 0)
    fraction, exponent = np.frexp(rows)
    mantissa = np.ldexp(np.abs(fraction), 53).astype(np.uint64)
    place, shift = np.divmod(exponent - 53 - _LEAST, _BITS)
    shift = shift.astype(np.uint64)
    low = (mantissa & _DIGIT) << shift
    high = ((mantissa >> np.uint64(_BITS)) << shift) + (low >> np.uint64(_BITS))
    index = place + _PLACES * np.arange(len(rows))[:, None]
    for k, digit in enumerate((low & _DIGIT, high & _DIGIT, high >> np.uint64(_BITS))):
        weights = np.copysign(digit.astype(float), rows)
        counts = np.bincount((index + k).reshape(-1), weights.reshape(-1), len(rows) * _PLACES)
        sums[:, :_PLACES] += counts.reshape(len(rows), _PLACES).astype(np.int64)


def rounded(digits: Array) -> Array:
    """The doubles nearest to sums of digits, whose places are the last mode.

    >>> rounded(digit_sums(np.array([1e100, 1.0, -1e100]), (0,)))
    array(1.)
    """
    values = [_nearest(row) for row in digits.reshape(-1, digits.shape[-1])] if digits.size else []
    return np.array(values, float).reshape(digits.shape[:-1])


def _nearest(row: Array) -> float:
    nan, plus, minus = row[_PLACES:].tolist()
    if nan or (plus and minus):
        return float("nan")
    if plus or minus:
        return float("inf") if plus else float("-inf")
    places = np.flatnonzero(row[:_PLACES]).tolist()
    number = sum(int(row[place]) << (_BITS * place) for place in places)
    try:
        return number / (1 << -_LEAST)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
