"""Sums and contractions that are rounded once: with the same bits in any layout, on any number of ranks.

Ranks add the digits of their elements, which are integers, and round the total; see `accumulator`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ...layout.layout import Distribution, Layout, as_layout, distribute
from ..contraction.contraction import aligned, as_matrices, common_operands, contract, extents_of, narrowed
from ..contraction.label_layouts import layout_of
from ..contraction.subscripts import Term
from ..distributed import Array, Distributed
from ..moves import asked
from .accumulator import PRODUCTS, SUMS, Places, digit_products, digit_sums, rounded
from .reduction import Over, Reduced, reduced, reducible, settled

__all__ = ["exact_contract", "exact_sum"]


def exact_sum(x: Distributed, over: Over, dtype: np.dtype[Any]) -> Any:
    """The sum over some modes, rounded once. Collective if they are split.

    It takes 568 bytes per element of the result while it runs, and some microseconds per element at the end.
    """
    wide = _checked(np.promote_types(dtype, x.local.dtype))
    x = reducible("sum", x, over.modes, "")
    where = reduced(x.distribution, over._replace(layout=None), "sum")
    axes = over.modes if x.distribution.layout.view is None else tuple(range(x.local.ndim))
    parts = _parts(x.local.astype(np.promote_types(wide, "f8"), copy=False))
    sums = np.stack([digit_sums(part, axes) for part in parts], axis=-2)
    return _rounded("sum", x, sums, SUMS, where, dtype, over.layout)


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
    extents = extents_of(tensors, terms, cause)
    together = aligned(tensors, terms, result, extents, cause)
    factors = [each.astype(wide, copy=False) for each in together.blocks]
    blocks, labels = narrowed(factors, tensors, terms, extents)
    matrices = as_matrices(blocks[0], blocks[1], labels[0], labels[1], result)
    first, second = _parts(matrices.first), _parts(matrices.second)
    if wide.kind == "f":
        pairs = [[(first[0], second[0])]]
    else:
        pairs = [
            [(first[0], second[0]), (-first[1], second[1])],
            [(first[0], second[1]), (first[1], second[0])],
        ]
    sums = np.stack([matrices.restored(digit_products(each)) for each in pairs], axis=-2)
    lies, shape = layout_of(result, together.splits), tuple([extents[label] for label in result])
    contributions, target = (Distribution(each, shape, together.grid) for each in (lies, replace(lies, partial=())))
    where = Reduced(contributions, target, bool(lies.partial))
    return _rounded(cause, tensors[0], sums, PRODUCTS, where, dtype, layout)


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
    name: str,
    x: Distributed,
    sums: Array,
    places: Places,
    where: Reduced,
    dtype: np.dtype[Any],
    layout: Layout | str | None,
) -> Any:
    """The numbers rounded from sums of digits, which have two more modes: real and imaginary part, and places."""
    first, last = (_longer(end, sums.shape[-2:]) for end in (where.contributions, where.target))
    shape = first.local_shape(x.comm.rank)
    digits = sums.reshape(shape) if sums.size == prod(shape) else np.zeros(shape, np.int64)
    total = settled(name, x._on(digits, first), Reduced(first, last, where.moves)).local
    extents = where.target.local_shape(x.comm.rank)
    part = np.empty(0, dtype).real.dtype
    values = rounded(total.reshape(*extents, *sums.shape[-2:]), places, part)
    numbers = np.ascontiguousarray(values).view(dtype).reshape(extents)
    result = x._on(numbers, where.target)
    if layout is None or as_layout(layout) == where.target.layout:
        return result
    return asked(result, as_layout(layout), name)


def _longer(dist: Distribution, extents: tuple[int, ...]) -> Distribution:
    """A distribution with additional modes at the end, which are whole."""
    lay = dist.layout
    longer = Layout((*lay.modes, *[()] * len(extents)), op=lay.op, partial=lay.partial, rooted=lay.rooted)
    return distribute(longer, (*dist.shape, *extents), dist.grid)
