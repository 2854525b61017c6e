"""Sums and contractions that are rounded once: with the same bits in any layout, on any number of ranks.

A double is an integer of at most 53 bits times a power of two. It is cut into digits of 32 bits at fixed places, and
the digits of each place are summed as integers, which is exact in any order (a small superaccumulator: Neal 2015):

    digits of 32 bits        | k + 2 | k + 1 |   k   | k - 1 |
    a mantissa of 53 bits         [--------------]              overlaps three places at most
    sums of digits             +=      +=      +=               each an int64, which has room for 2**31 digits

Ranks add up the digits of their elements, carry what is beyond 32 bits to the next place, and add up each other's sums
by a reduction; then each integer is rounded to the nearest number, as `math.fsum` does. A product is two numbers: the
rounded product and its rounding error (Dekker 1971). Both are computed from fractions, so that none overflows or
underflows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..layout.distribution import Distribution, distribute
from ..layout.layout import Layout, layout_or_none
from ..runtime.comm.agreement import gathered
from .contraction.local import matrices_of, squeezed
from .contraction.operands import Term, aligned, common_operands, lettered
from .contraction.run import contract
from .contraction.subscripts import Subscripts, spanning
from .distributed import Array, Distributed, Ints
from .moves import agree_on_call, redistributed

__all__ = ["PRODUCTS", "SUMS", "Places", "chunks", "digit_products", "digit_sums", "exact_contract", "exact_sum"]
__all__ += ["exact_sums_by_bin", "rounded", "rounds_once"]

_BITS = 32  # per digit
_SPECIAL = 3  # places after the digits: the counts of NaN, inf and -inf
_CHUNK = 1 << 14  # elements whose digits are made at once, in cache
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


def _places(smallest: int, largest: int) -> Places:
    """The places of numbers that have exponents of `frexp` from the smallest to the largest."""
    least = smallest - 53
    return Places(least, (largest - 53 - least) // _BITS + 3)


SUMS = _places(-1073, 1024)
"""The places of any double."""

PRODUCTS = _places(2 * -1073 - 105, 2 * 1024)
"""The places of the product of any two doubles, and of its rounding error."""


def exact_sum(x: Distributed, axes: tuple[int, ...], ends: Ends, dtype: np.dtype[Any], layout: Layout | None) -> Any:
    """The sum of each block over some of its modes, added up over the ranks and rounded once. Collective.

    It takes 568 bytes per element of the result while it runs.
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
    tensors = common_operands(operands)
    dtype = np.result_type(*(x.local.dtype for x in tensors))
    if dtype.kind not in "fc":
        return contract(operands, terms, result, cause, layout)

    wide = np.promote_types(_checked(dtype), "f8")
    *letters, free = lettered(*terms, result)
    joint = aligned(tensors, Subscripts(tuple(letters), free), cause)
    a_term, b_term = (spanning(x, y.distribution.shape, joint.extents) for x, y in zip(letters, tensors, strict=True))
    a, b = map(squeezed, [x.astype(wide, copy=False) for x in joint.blocks], letters, (a_term, b_term))

    # Each operand as a stack of matrices, of shape (s, rows, columns): the result is a stack of their products.
    matrices = matrices_of(a, b, a_term, b_term, free)
    stacks = matrices.first.of(a), matrices.second.of(b)
    first, second = (_parts(stack.reshape(prod(stack.shape[:-2]), *stack.shape[-2:])) for stack in stacks)
    if wide.kind == "f":
        pairs = [[(first[0], second[0])]]
    else:
        real = [(first[0], second[0]), (-first[1], second[1])]
        pairs = [real, [(first[0], second[1]), (first[1], second[0])]]

    shape = matrices.product.shape
    digits = [digit_products(terms).reshape(*shape, PRODUCTS.length) for terms in pairs]
    sums = np.stack([matrices.restored(part) for part in digits], axis=-2)
    partial = joint.result(free)
    total = replace(partial, layout=replace(partial.layout, partial=()))
    return _rounded(cause, tensors[0], sums, PRODUCTS, (partial, total), dtype, layout_or_none(layout))


def exact_sums_by_bin(name: str, x: Distributed, weights: Array, bins: Callable[[slice], Ints], number: int) -> Any:
    """The sums of the weights in each bin, rounded once, and replicated. Collective if the tensor is split.

    Args:
        x: the tensor whose elements have the weights.
        weights: those of this rank's block, in one mode, of a dtype that `rounds_once`.
        bins: from a slice of the weights, the bin of each; `number` for a weight that is in none.
        number: the number of bins.
    """
    wide = np.promote_types(weights.dtype, "f8")
    split = tuple([split.grid_mode for split in chain(*x.distribution.splits)])
    places = _places_of(name, x, weights, bool(split))

    sums = np.zeros((number + 1, len(_parts(wide.type())), places.length), np.int64)
    for chunk in chunks(len(weights)):
        at = bins(chunk)
        for part, numbers in enumerate(_parts(weights[chunk].astype(wide, copy=False))):
            _add(places, sums.reshape(-1), (at * sums.shape[1] + part) * places.length, *np.frexp(numbers))

    ends = [Layout(((),), partial=modes).on(number, x.distribution.grid) for modes in (split, ())]
    return _rounded(name, x, sums[:-1], places, (ends[0], ends[1]), weights.dtype, None)


def chunks(length: int) -> Iterator[slice]:
    """The slices of an array in which it stays in cache."""
    return (slice(start, start + _CHUNK) for start in range(0, length, _CHUNK))


def _places_of(name: str, x: Distributed, weights: Array, split: bool) -> Places:
    """The places of the digits of all ranks' weights: a few, so that sums of them take little memory."""
    exponents: list[int] = []
    for chunk in chunks(len(weights)):
        for part in _parts(weights[chunk]):
            sizes = abs(part[np.isfinite(part) & (part != 0)].astype(_DOUBLE, copy=False))
            exponents += np.frexp([sizes.min(), sizes.max()])[1].tolist() if sizes.size else []

    if split:
        agree_on_call(x.comm)
        ends = [min(exponents), max(exponents)] if exponents else []
        exponents = [*chain(*gathered(x.comm, name, ends))]
    return _places(min(exponents, default=0), max(exponents, default=0))


def rounds_once(dtype: np.dtype[Any]) -> bool:
    """Whether doubles hold the floating-point numbers of a dtype, or their parts."""
    return dtype.kind in "fc" and dtype.itemsize <= (16 if dtype.kind == "c" else 8)


def _checked(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype, if its sums are rounded once; refused otherwise."""
    if not rounds_once(dtype):
        raise TypeError(f"exact=True is for numbers of at most 64 bits, not {dtype}; write x.astype('f8') first")
    return dtype


def _parts(block: Any) -> tuple[Array, ...]:
    """The real part of a block, and the imaginary part of a complex one."""
    return (block.real, block.imag) if block.dtype.kind == "c" else (block,)


def _rounded(
    name: str, x: Distributed, sums: Array, places: Places, ends: Ends, dtype: np.dtype[Any], layout: Layout | None
) -> Any:
    """The numbers rounded from sums of digits, which have two more modes: real and imaginary part, and places."""
    more = sums.shape[-2:]
    first, last = (_longer(end, more) for end in ends)

    # What is beyond 32 bits of each digit is carried to the next place, which leaves room for the sums of other ranks.
    carried = sums[..., : places.count - 1] >> _BITS
    sums[..., : places.count - 1] -= carried << _BITS
    sums[..., 1 : places.count] += carried

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
    extents = [n for mode, n in enumerate(block.shape) if mode not in over]
    rows = np.moveaxis(block, over, range(-len(over), 0)).reshape(prod(extents), prod(block.shape[m] for m in over))
    sums = np.zeros((len(rows), SUMS.length), np.int64)

    height = max(1, _CHUNK // max(rows.shape[1], 1))
    for top in range(0, len(rows), height):
        for columns in chunks(rows.shape[1]):
            part = rows[top : top + height, columns]
            starts = np.repeat(np.arange(top, top + len(part)) * SUMS.length, part.shape[1])
            _add(SUMS, sums.reshape(-1), starts, *np.frexp(part.reshape(-1)))
    return sums.reshape(*extents, SUMS.length)


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

    # In boxes of at most _PRODUCTS products, whose digits are in memory at once: deep first, then wide, then high.
    deep = min(max(depth, 1), _PRODUCTS)
    wide = min(max(columns, 1), max(1, _PRODUCTS // deep))
    high = max(1, _PRODUCTS // (deep * wide))
    for s, top, left, start in np.ndindex(stack, -(-rows // high), -(-columns // wide), -(-depth // deep)):
        row, column = slice(top * high, (top + 1) * high), slice(left * wide, (left + 1) * wide)
        inner = slice(start * deep, (start + 1) * deep)
        part = np.zeros((*sums[s, row, column].shape[:2], PRODUCTS.length), np.int64)
        for a, b in pairs:
            _add_products(part.reshape(-1), a[s, row, None, inner], b[s, inner, column].T[None])
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

    depth = product.shape[-1]
    starts = np.repeat(np.arange(product.size // max(depth, 1)) * PRODUCTS.length, depth)
    for part in (product, np.where(np.isfinite(product), lost, 0)):
        fraction, more = np.frexp(part)
        _add(PRODUCTS, sums, starts, fraction.reshape(-1), (exponent + more).reshape(-1))


def _halves(fraction: Array) -> tuple[Array, Array]:
    """The fraction as a sum of two numbers of half as many bits, whose products are exact (Veltkamp)."""
    scaled = _SPLITTER * fraction
    high = scaled - (scaled - fraction)
    return high, fraction - high


def _add(places: Places, sums: Ints, starts: Ints, fraction: Array, exponent: Array) -> None:
    """Add the digits of numbers, given in the form of `frexp`, to their rows of sums, given by where these start."""
    finite = np.isfinite(fraction)
    if not finite.all():
        for kind, special in enumerate((np.isnan(fraction), fraction == np.inf, fraction == -np.inf)):
            np.add.at(sums, starts[special] + places.count + kind, 1)
        starts, fraction, exponent = starts[finite], fraction[finite], exponent[finite]

    # A mantissa of 53 bits is shifted by 31 bits at most, and begins at the topmost of its three places.
    shift = np.where(fraction == 0, 0, exponent - (places.least + 53))
    rest = np.ldexp(fraction, (shift & (_BITS - 1)) + (53 - 2 * _BITS))
    index = starts + shift // _BITS + 2
    for _ in range(3):
        digit = np.trunc(rest)
        np.add.at(sums, index, digit.astype(np.int64))
        rest = (rest - digit) * 2.0**_BITS
        index -= 1


# --- rounding ---------------------------------------------------------------------------------------------------------


def rounded(digits: Array, places: Places, dtype: np.dtype[Any] = _DOUBLE) -> Array:
    """The numbers, single or double, nearest to sums of digits, whose places are the last mode.

    >>> rounded(digit_sums(np.array([1e100, 1.0, -1e100]), (0,)), SUMS)
    array(1.)
    """
    rows = digits.reshape(prod(digits.shape[:-1]), digits.shape[-1])
    values = np.empty(len(rows))
    for chunk in chunks(len(rows)):
        values[chunk] = _nearest(rows[chunk, : places.count], places.least, dtype.itemsize < 8)

    undefined, plus, minus = (rows[:, places.count :] > 0).T
    values[plus], values[minus] = np.inf, -np.inf
    values[undefined | (plus & minus)] = np.nan
    return values.reshape(digits.shape[:-1]).astype(dtype)


def _nearest(digits: Ints, least: int, again: bool) -> npt.NDArray[np.float64]:
    """The doubles nearest to sums; if `again`, those that can be rounded once more, to single precision.

    These are *rounded to odd*: the last bit is 1 if any bit is lost (Boldo and Melquiond 2008).
    """
    if not digits.any():
        return np.zeros(len(digits))
    negative, mantissa, exponent = _topmost(digits, least)

    # All but 53 bits are dropped, or more of a number so small that a double has fewer.
    drop = np.clip(-1074 - exponent, 11, 64).astype(np.uint64)
    integer = mantissa >> drop
    rest, half = mantissa - (integer << drop), np.uint64(1) << (drop - np.uint64(1))

    odd = (integer & np.uint64(1)).astype(bool)
    up = (rest > 0) & ~odd if again else (rest > half) | ((rest == half) & odd)
    with np.errstate(over="ignore"):
        values: Array = np.ldexp((integer + up).astype(float), exponent + drop.astype(np.int64))
    values[negative] *= -1
    return values


def _topmost(digits: Ints, least: int) -> tuple[npt.NDArray[np.bool], npt.NDArray[np.uint64], Ints]:
    """The signs of sums that are not all 0, the topmost 64 bits of each, and their exponents.

    The lowest bit is set if any lower bit is, so that these are rounded as if they had all bits:

        digits      0 0 1 . . . | . . . . . . | . . . . . . | . . . . . .
        bits            1 . . .   . . . . . .   . . *           *: is any bit from here on set?
    """
    # Three more places below, so that each sum has three digits below its first; and one above for what is carried.
    used = np.flatnonzero(digits.any(axis=0))
    first, stop = int(used[0]), int(used[-1]) + 1
    number = np.zeros((stop - first + 4, len(digits)), np.int64)
    number[3:-1] = digits[:, first:stop].T

    _carry(number)
    negative = number[-1] < 0
    number[:, negative] *= -1
    _carry(number)

    nonzero, column = number != 0, np.arange(len(digits))
    top = len(number) - 1 - nonzero[::-1].argmax(axis=0)
    high, middle, low = (number[top - place, column].astype(np.uint64) for place in range(3))
    free = _BITS - np.frexp(high.astype(float))[1]

    shift, digit = free.astype(np.uint64), np.uint64(_BITS)
    bits = (high << (digit + shift)) | (middle << shift) | (low >> (digit - shift))
    lost = np.logical_or.accumulate(nonzero)[top - 3, column] | ((low << (digit + shift)) != 0)
    return negative, bits | lost.astype(np.uint64), least + _BITS * (first - 3 + top - 1) - free


def _carry(number: Ints) -> None:
    """Carry what is beyond 32 bits of each digit to the next, so that all but the topmost are from 0 to 2**32 - 1."""
    for place in range(len(number) - 1):
        carried = number[place] >> _BITS
        number[place] -= carried << _BITS
        number[place + 1] += carried
