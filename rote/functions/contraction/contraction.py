"""Contractions: sums of products of tensors over the modes that the result lacks, computed on blocks."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...errors import LayoutError
from ...layout.grid import Grid
from ...layout.layout import Distribution, Layout, layout_or_none
from ..alignment import plain, replicated
from ..distributed import Array, Distributed
from ..moves import asked, moved
from .label_layouts import Placement, Splits, chosen, contributions, layout_of, projected
from .subscripts import Term

__all__ = ["Aligned", "Matrices", "aligned", "as_matrices", "common_operands", "contract", "diagonal_of", "extents_of"]
__all__ += ["narrowed"]


class Aligned(NamedTuple):
    """Operands in one layout of labels."""

    blocks: list[Array]  # this rank's; a broadcast mode keeps its one element
    splits: Splits  # the layout of labels
    grid: Grid  # of the largest operand


def contract(
    operands: Sequence[Any],
    terms: Sequence[Term],
    result: Term,
    cause: str,
    layout: Layout | str | None = None,
) -> Any:
    """The sum of the products of operands over all labels that the result lacks. Collective.

    Args:
        operands: at least one tensor, and arrays that are the same on all ranks.
        terms: per operand, a label for each mode. Modes of one label have equal extents, or one element.
        result: the labels of the result's modes, each once.
        cause: the function that contracts.
        layout: the layout of the result; None follows the operands, and is never partial.

    Raises:
        LayoutError: extents of one label differ, or operands lie on other ranks.
    """
    tensors = common_operands(operands, cause)
    tensors, terms = _without_repeats(tensors, terms, cause)
    extents = extents_of(tensors, terms, cause)
    wanted = layout_or_none(layout)
    together = aligned(tensors, terms, result, extents, cause, wanted, linear=True)
    dtype = np.result_type(*(x.local.dtype for x in tensors))
    empty = any(each.size == 0 for each in together.blocks)  # then the sum is empty: 0, whatever the other blocks hold
    factors = [np.zeros(each.shape, dtype) if empty else each.astype(dtype, copy=False) for each in together.blocks]
    block = _products(*narrowed(factors, tensors, terms, extents), result)
    if any(np.may_share_memory(block, x.local) for x in tensors):
        block = block.copy()
    shape = tuple([extents[label] for label in result])
    lies = layout_of(result, together.splits)
    product = tensors[0]._on(block, Distribution(lies, shape, together.grid))
    final = Distribution(replace(lies, partial=()) if wanted is None else wanted, shape, together.grid)
    if product.distribution.meaning == final.meaning:
        return product._on(block, final)
    return asked(product, final.layout, cause)


def common_operands(operands: Sequence[Any], cause: str) -> list[Distributed]:
    """The operands as tensors over the same ranks; arrays become replicated tensors."""
    tensors = [x for x in operands if isinstance(x, Distributed)]
    first = max(tensors, key=lambda x: prod(x.distribution.shape))
    if any(x.comm is not first.comm for x in tensors):
        raise LayoutError(f"{cause} wants tensors of one communicator; give the same comm to all")
    return [x if isinstance(x, Distributed) else replicated(x, first) for x in operands]


def extents_of(tensors: Sequence[Distributed], terms: Sequence[Term], cause: str) -> dict[int, int]:
    """The extent of each label; refused if two operands have different ones, neither of which is 1."""
    extents: dict[int, int] = {}
    for x, term in zip(tensors, terms, strict=True):
        for label, n in zip(term, x.distribution.shape, strict=True):
            if n != extents.setdefault(label, n) and 1 not in (n, extents[label]):
                shapes = " and ".join(str(y.distribution.shape) for y in tensors)
                raise LayoutError(
                    f"{cause} takes modes of equal extents together, not {extents[label]} and {n} of {shapes}"
                )
            if n != 1:
                extents[label] = n
    return extents


def aligned(
    tensors: Sequence[Distributed],
    terms: Sequence[Term],
    result: Term,
    extents: dict[int, int],
    cause: str,
    target: Layout | None = None,
    whole: Iterable[int] = (),
    linear: bool = False,
) -> Aligned:
    """Bring operands over the same ranks to the layout of labels that costs least. Collective.

    Args:
        terms: per operand, its labels, each once.
        target: the layout of the result; if None, it follows the layout of labels.
        whole: labels that are not to be split.
        linear: whether contributions to one operand make contributions to the result.
    """
    dists = tuple([x.distribution for x in tensors])
    grid = max(dists, key=lambda dist: prod(dist.shape)).grid
    dtypes = tuple([x.local.dtype for x in tensors])
    hidden = contributions(dists, dtypes, grid) if linear else ((),) * len(dists)
    sizes = tuple(extents.items())
    splits = dict(chosen(Placement(tuple(terms), result, sizes, dists, dtypes, grid, target, tuple(whole), hidden)))
    blocks = []
    for n, (x, term, own) in enumerate(zip(tensors, terms, hidden, strict=True)):
        layout = projected(splits, extents, term, x.distribution.shape, own)
        blocks.append(moved(x, layout, cause, grid, which=n if len(tensors) > 1 else None).local)
    return Aligned(blocks, splits, grid)


def diagonal_of(x: Distributed, rows: int, columns: int, offset: int, cause: str) -> Any:
    """The elements x[…, i, …, i + offset, …] for all rows i, zero where there is no such column. No data moves.

    The result lacks the mode `columns`, and is partial over the grid modes that split it.
    """
    x = plain(x, cause)
    dist = x.distribution
    rows, columns = (operator.index(mode) % len(dist.shape) for mode in (rows, columns))
    offset = operator.index(offset)
    along, across = dist.indices(x.comm.rank)[rows] + offset, dist.indices(x.comm.rank)[columns]
    order = np.argsort(across, kind="stable")
    places = np.searchsorted(across, along, sorter=order)
    held = np.flatnonzero(places < len(across))
    held = held[across[order[places[held]]] == along[held]]
    chosen = order[places[held]]
    block = np.moveaxis(x.local, (rows, columns), (0, 1))
    result = np.zeros((len(along), *block.shape[2:]), block.dtype)
    result[held] = block[held, chosen]
    lay = dist.layout
    modes = tuple([entries for mode, entries in enumerate(lay.modes) if mode != columns])
    partial = tuple([entry.grid_mode for entry in lay.modes[columns]])
    shape = tuple([n for mode, n in enumerate(dist.shape) if mode != columns])
    place = rows - (columns < rows)
    lies = Distribution(Layout(modes, partial=partial), shape, dist.grid)
    return x._on(np.ascontiguousarray(np.moveaxis(result, 0, place)), lies)


# --- blocks --------------------------------------------------------------------------------------------------------


def _without_repeats(
    tensors: Sequence[Distributed], terms: Sequence[Term], cause: str
) -> tuple[list[Distributed], tuple[Term, ...]]:
    """The operands without repeated labels: operands that repeat one are replaced by their diagonals."""
    operands, labels = list(tensors), list(terms)
    for n, term in enumerate(labels):
        while len(set(term)) < len(term):
            second = next(m for m, label in enumerate(term) if label in term[:m])
            first = term.index(term[second])
            operands[n] = diagonal_of(operands[n], first, second, 0, cause)
            term = labels[n] = (*term[:second], *term[second + 1 :])
    return operands, tuple(labels)


def narrowed(
    blocks: Sequence[Array], tensors: Sequence[Distributed], terms: Sequence[Term], extents: dict[int, int]
) -> tuple[list[Array], list[Term]]:
    """The blocks and their labels without broadcast modes of one element."""
    narrow, labels = [], []
    for block, x, term in zip(blocks, tensors, terms, strict=True):
        spread = [m for m, label in enumerate(term) if x.distribution.shape[m] != extents[label]]
        narrow.append(block.squeeze(tuple(spread)))
        labels.append(tuple([label for m, label in enumerate(term) if m not in spread]))
    return narrow, labels


def _products(blocks: Sequence[Array], terms: Sequence[Term], result: Term) -> Array:
    """The sum of products of arrays; two arrays are multiplied as matrices."""
    if len(blocks) == 2:
        matrices = as_matrices(blocks[0], blocks[1], terms[0], terms[1], result)
        return matrices.restored(np.matmul(matrices.first, matrices.second))
    numbers = {label: n for n, label in enumerate(dict.fromkeys(chain(*terms)))}
    given: list[Any] = []
    for block, term in zip(blocks, terms, strict=True):
        given += [block, [numbers[label] for label in term]]
    optimize: Any = "greedy" if len(blocks) > 2 else False
    return np.asarray(np.einsum(*given, [numbers[m] for m in result], optimize=optimize))


class Matrices(NamedTuple):
    """Two arrays as stacks of matrices, of shapes (s, m, k) and (s, k, n)."""

    first: Array
    second: Array
    extents: tuple[int, ...]  # of the product's modes
    order: tuple[int, ...]  # the positions in the product of the result's modes

    def restored(self, product: Array) -> Array:
        """A product of shape (s, m, n, …) with the modes of the result, and further ones behind them."""
        more = product.shape[3:]
        shaped = product.reshape((*self.extents, *more))
        return shaped.transpose([*self.order, *range(len(self.order), len(self.order) + len(more))])


def as_matrices(a: Array, b: Array, a_term: Term, b_term: Term, result: Term) -> Matrices:
    """Two arrays as stacks of matrices whose products sum over the labels that the result lacks."""
    a, a_term = _summed_alone(a, a_term, (*b_term, *result))
    b, b_term = _summed_alone(b, b_term, (*a_term, *result))
    stack = [label for label in a_term if label in b_term and label in result]
    summed = [label for label in a_term if label in b_term and label not in result]
    rows = [label for label in a_term if label not in b_term]
    columns = [label for label in b_term if label not in a_term]
    a = a.transpose([*map(a_term.index, (*stack, *rows, *summed))])
    b = b.transpose([*map(b_term.index, (*stack, *summed, *columns))])
    extents = dict(zip((*stack, *rows, *summed), a.shape, strict=True))
    extents.update(zip((*stack, *summed, *columns), b.shape, strict=True))
    stacked, high, deep, wide = (prod(extents[label] for label in labels) for labels in (stack, rows, summed, columns))
    kept = (*stack, *rows, *columns)
    return Matrices(
        a.reshape(stacked, high, deep),
        b.reshape(stacked, deep, wide),
        tuple([extents[label] for label in kept]),
        tuple(map(kept.index, result)),
    )


def _summed_alone(a: Array, term: Term, others: Term) -> tuple[Array, Term]:
    """The array summed over the labels that only it has."""
    alone = [label for label in term if label not in others]
    if not alone:
        return a, term
    add: Callable[..., Array] = np.logical_or.reduce if a.dtype == bool else np.add.reduce
    axes = tuple(map(term.index, alone))
    return np.asarray(add(a, axis=axes, dtype=a.dtype)), tuple([label for label in term if label not in alone])
