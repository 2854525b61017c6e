"""Sums and contractions that are rounded once: with the same bits in any layout, on any number of ranks.

A double is an integer of at most 53 bits times a power of two. It is cut into digits of 32 bits at fixed places, and
the digits of each place are summed as integers, which is exact in any order (a small superaccumulator: Neal 2015):

    digits of 32 bits        | k + 2 | k + 1 |   k   | k - 1 |
    a mantissa of 53 bits         [--------------]              overlaps three places at most
    sums of digits             +=      +=      +=               each an int64, which has room for 2**31 digits

Ranks add up the digits of their elements by a reduction; then each integer is rounded to the nearest number, as
`math.fsum` does. A product is two numbers: the rounded product and its rounding error (Dekker 1971). Both are computed
from fractions, so that none overflows or underflows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, nan, nextafter, prod
from typing import Any

import numpy as np

from ..layout.distribution import Distribution, distribute
from ..layout.layout import Layout, layout_or_none
from .contraction.local import matrices_of, squeezed
from .contraction.operands import Term, aligned, common_operands, lettered
from .contraction.run import contract
from .contraction.subscripts import Subscripts, spanning
from .distributed import Array, Distributed
from .moves import redistributed

__all__ = ["PRODUCTS", "SUMS", "Places", "digit_products", "digit_sums", "exact_contract", "exact_sum", "rounded"]

_BITS = 32  # per digit
_DIGIT = np.uint64((1 << _BITS) - 1)
_SPECIAL = 3  # places after the digits: the counts of NaN, inf and -inf
_CHUNK = 1 << 20  # elements: their digits add up to less than 2**53, so that sums of doubles are exact
_PRODUCTS = 1 << 16  # products that are computed at once
_DOUBLE = np.dtype("f8")
_SPLITTER = float((1 << 27) + 1)


Ends = tuple[Distribution, Distribution]
"""The distributions of the ranks' contributions, and of their total, which is that of the result if none is named."""


@dataclass(frozen=True, slots=True)
class Places:
    """The places of digits."""

    least: int  # the exponent of the last bit of any mantissa
    count: int  # from the smallest number to the largest

    @property
    def length(self) -> int:
        """The length of a row of sums: the digits, and the counts of NaN, inf and -inf."""
        return self.count + _SPECIAL


def _places(least: int, largest: int) -> Places:
    return Places(least, -(-(largest - 53 - least) // _BITS) + 2)


SUMS = _places(-1073 - 53, 1024)
"""The places of any double."""

PRODUCTS = _places(2 * -1073 - 105 - 53, 2 * 1024)
"""The places of the product of any two doubles, and of its rounding error."""


def exact_sum(x: Distributed, axes: tuple[int, ...], ends: Ends, dtype: np.dtype[Any], layout: Layout | None) -> Any:
    """The sum of each block over some of its modes, added up over the ranks and rounded once. Collective.

    It takes 568 bytes per element of the result while it runs, and some microseconds per element at the end.
    """
    wide = _checked(np.promote_types(dtype, x.local.dtype))
    parts = _parts(x.local.astype(np.promote_types(wide, "f8"), copy=False))
    sums = np.stack([digit_sums(part, axes) for part in parts], axis=-2)
    return _rounded("sum", x, sums, SUMS, ends, dtype, layout)


def exact_contract(
    operands: Sequence[Any], terms: Sequence[Term], result: Term, cause: str, layout: Layout | str | None = None
) -> Any:
    """The contraction of two operands, rounded once; for integers it is exact in any case. Collective.

    It takes 1120 bytes per element of the result while it runs, and twice as many per complex element.
    """
    tensors = common_operands(operands, cause)
    dtype = np.result_type(*(x.local.dtype for x in tensors))
    if dtype.kind not in "fc":
        return contract(operands, terms, result, cause, layout)
    wide = np.promote_types(_checked(dtype), "f8")
    *letters, kept = lettered(*terms, result)
    joint = aligned(tensors, Subscripts(tuple(letters), kept), cause)
    a_term, b_term = (spanning(x, y.distribution.shape, joint.extents) for x, y in zip(letters, tensors, strict=True))
    a, b = map(squeezed, [x.astype(wide, copy=False) for x in joint.blocks], letters, (a_term, b_term))
    matrices = matrices_of(a, b, a_term, b_term, kept)
    stacks = matrices.first.of(a), matrices.second.of(b)
    first, second = (_parts(each.reshape(prod(each.shape[:-2]), *each.shape[-2:])) for each in stacks)
    if wide.kind == "f":
        pairs = [[(first[0], second[0])]]
    else:
        real = [(first[0], second[0]), (-first[1], second[1])]
        pairs = [real, [(first[0], second[1]), (first[1], second[0])]]
    shape = matrices.product.shape
    digits = [digit_products(each).reshape(*shape, PRODUCTS.length) for each in pairs]
    sums = np.stack([matrices.restored(each) for each in digits], axis=-2)
    partial = joint.result(kept)
    total = replace(partial, layout=replace(partial.layout, partial=()))
    return _rounded(cause, tensors[0], sums, PRODUCTS, (partial, total), dtype, layout_or_none(layout))


def _checked(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype, if doubles hold its numbers or their parts; refused otherwise."""
    widest = 16 if dtype.kind == "c" else 8
    if dtype.itemsize > widest:
        raise TypeError(f"exact=True is for numbers of at most 64 bits, not {dtype}; write x.astype('f8') first")
    return dtype


def _parts(block: Array) -> tuple[Array, ...]:
    """The real part of a block, and the imaginary part of a complex one."""
    return (block.real, block.imag) if block.dtype.kind == "c" else (block,)


def _rounded(
    name: str, x: Distributed, sums: Array, places: Places, ends: Ends, dtype: np.dtype[Any], layout: Layout | None
) -> Any:
    """The numbers rounded from sums of digits, which have two more modes: real and imaginary part, and places."""
    more = sums.shape[-2:]
    first, last = (_longer(end, more) for end in ends)
    shape, extents = first.local_shape(x.comm.rank), ends[1].local_shape(x.comm.rank)
    digits = x._on(sums.reshape(shape) if sums.size == prod(shape) else np.zeros(shape, np.int64), first)
    total = digits if ends[0].meaning == ends[1].meaning else redistributed(digits, last.layout, name)
    values = rounded(total.local.reshape(*extents, *more), places, np.empty(0, dtype).real.dtype)
    result = x._on(np.ascontiguousarray(values).view(dtype).reshape(extents), ends[1])
    return result if layout in (None, ends[1].layout) else redistributed(result, layout, name)


def _longer(dist: Distribution, extents: tuple[int, ...]) -> Distribution:
    """A distribution with additional modes at the end, which are whole."""
    lay = dist.layout
    longer = Layout((*lay.modes, *[()] * len(extents)), op=lay.op, partial=lay.partial, rooted=lay.rooted)
    return distribute(longer, (*dist.shape, *extents), dist.grid)


# --- digits -----------------------------------------------------------------------------------------------------------


def digit_sums(block: Array, over: tuple[int, ...]) -> Array:
    """The sums of the digits of doubles over some modes, as integers; one more mode, at the end, holds their places.

    >>> digits = digit_sums(np.array([1.0, -1.0, 1.0]), (0,))
    >>> bool((digits == digit_sums(np.array([1.0]), (0,))).all())
    True
    """
    kept = [n for mode, n in enumerate(block.shape) if mode not in over]
    rows = np.moveaxis(block, over, range(-len(over), 0)).reshape(prod(kept), prod(block.shape[m] for m in over))
    sums = np.zeros((len(rows), SUMS.length), np.int64)
    height = max(1, _CHUNK // max(rows.shape[1], 1))
    for top in range(0, len(rows), height):
        for left in range(0, rows.shape[1], _CHUNK):
            part = slice(top, top + height)
            _add(SUMS, sums[part], *np.frexp(rows[part, left : left + _CHUNK]))
    return sums.reshape(*kept, SUMS.length)


def digit_products(pairs: list[tuple[Array, Array]]) -> Array:
    """The sums of the digits of all products in a sum of matrix products.

    Args:
        pairs: two stacks of matrices of doubles each, of shapes (s, m, k) and (s, k, n), equal for all pairs.

    Returns:
        An array of integers of shape (s, m, n, places).

    >>> a, b = np.array([[[1e200, 1.0]]]), np.array([[[1e200], [3.0]]])
    >>> rounded(digit_products([(a, b), (-a, b), (a, b[:, ::-1])]), PRODUCTS).item() == 4 * 1e200
    True
    """
    (stack, rows, depth), columns = pairs[0][0].shape, pairs[0][1].shape[2]
    sums = np.zeros((stack, rows, columns, PRODUCTS.length), np.int64)
    deep = min(max(depth, 1), _PRODUCTS)
    wide = min(max(columns, 1), max(1, _PRODUCTS // deep))
    high = max(1, _PRODUCTS // (deep * wide))
    for s, top, left, start in np.ndindex(stack, -(-rows // high), -(-columns // wide), -(-depth // deep)):
        row, column = slice(top * high, (top + 1) * high), slice(left * wide, (left + 1) * wide)
        inner = slice(start * deep, (start + 1) * deep)
        part = np.zeros((*sums[s, row, column].shape[:2], PRODUCTS.length), np.int64)
        flat = part.reshape(-1, PRODUCTS.length)
        for a, b in pairs:
            _add_products(flat, a[s, row, None, inner], b[s, inner, column].T[None])
        sums[s, row, column] += part
    return sums


def _add_products(sums: Array, a: Array, b: Array) -> None:
    """Add the digits of products along the last mode of two arrays that broadcast."""
    (first, first_exponent), (second, second_exponent) = np.frexp(a), np.frexp(b)
    exponent = first_exponent + second_exponent
    with np.errstate(invalid="ignore"):
        product = first * second
        (a_high, a_low), (b_high, b_low) = _halves(first), _halves(second)
        lost = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    for part in (product, np.where(np.isfinite(product), lost, 0)):
        fraction, more = np.frexp(part)
        _add(PRODUCTS, sums, fraction.reshape(len(sums), -1), (exponent + more).reshape(len(sums), -1))


def _halves(fraction: Array) -> tuple[Array, Array]:
    """The fraction as a sum of two numbers of half as many bits, whose products are exact (Veltkamp)."""
    scaled = _SPLITTER * fraction
    high = scaled - (scaled - fraction)
    return high, fraction - high


def _add(places: Places, sums: Array, fraction: Array, exponent: Array) -> None:
    """Add the digits of each row of numbers, given in the form of `frexp`, to its row of sums."""
    finite = np.isfinite(fraction)
    if not finite.all():
        for kind, special in enumerate((np.isnan(fraction), fraction == np.inf, fraction == -np.inf)):
            sums[:, places.count + kind] += special.sum(axis=1)
        fraction = np.where(finite, fraction, 0)
    exponent = np.where(fraction == 0, 0, exponent)
    mantissa = np.ldexp(np.abs(fraction), 53).astype(np.uint64)
    place, shift = np.divmod(exponent - 53 - places.least, _BITS)
    shift = shift.astype(np.uint64)
    low = (mantissa & _DIGIT) << shift
    high = ((mantissa >> np.uint64(_BITS)) << shift) + (low >> np.uint64(_BITS))
    index = place + places.count * np.arange(len(sums))[:, None]
    for k, digit in enumerate((low & _DIGIT, high & _DIGIT, high >> np.uint64(_BITS))):
        weights = np.copysign(digit.astype(float), fraction)
        counts = np.bincount((index + k).reshape(-1), weights.reshape(-1), len(sums) * places.count)
        sums[:, : places.count] += counts.reshape(len(sums), places.count).astype(np.int64)


def rounded(digits: Array, places: Places, dtype: np.dtype[Any] = _DOUBLE) -> Array:
    """The numbers, single or double, nearest to sums of digits, whose places are the last mode.

    >>> rounded(digit_sums(np.array([1e100, 1.0, -1e100]), (0,)), SUMS)
    array(1.)
    """
    rows = digits.reshape(prod(digits.shape[:-1]), digits.shape[-1])
    values = [_nearest(row, places, dtype.itemsize < 8) for row in rows]
    return np.array(values, float).reshape(digits.shape[:-1]).astype(dtype)


def _nearest(row: Array, places: Places, again: bool) -> float:
    """The double nearest to a sum; if `again`, one that can be rounded once more, to single precision."""
    undefined, plus, minus = row[places.count :].tolist()
    if undefined or (plus and minus):
        return nan
    if plus or minus:
        return inf if plus else -inf
    number = sum(int(row[place]) << (_BITS * place) for place in np.flatnonzero(row[: places.count]).tolist())
    scale = 1 << -places.least
    try:
        value = number / scale
    except OverflowError:
        return inf if number > 0 else -inf
    return _odd(value, number, scale) if again else value


def _odd(value: float, number: int, scale: int) -> float:
    """The quotient number / scale rounded to odd: its last bit is 1 unless it is exact (Boldo and Melquiond 2008)."""
    numerator, denominator = value.as_integer_ratio()
    beyond = number * denominator - numerator * scale
    if beyond and not int(np.float64(value).view(np.int64)) & 1:
        return nextafter(value, inf if beyond > 0 else -inf)
    return value
