"""Contractions: sums of products of tensors over the modes that the result lacks.

Labels name the modes of all operands together; subscripts such as "ij,jk->ik" are read into them. A layout of labels
says which grid modes split which label. An operand is split by its own labels, and replicated over the grid modes of
the others. If a label that the result lacks is split, each rank computes a contribution, and the result is partial:

    ij,jk->ik   label i over grid mode 0      first block[(0),()]   second [(),()]        result block[(0),()]
                label j over grid mode 0      first block[(),(0)]   second block[(0),()]  result [(),()]+(0)

So one search for a layout of labels (`chosen`) finds the layouts of all operands, and the cost of a candidate is that
of its moves. The contributions of a partial operand act as a further mode, split over a grid mode and summed: its label
is below 0.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain, permutations, takewhile
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..caches import memoized
from ..compiler.compile import compile
from ..errors import LayoutError
from ..grammar.nodes import BLOCK, MAX_GRID_MODES, Entry
from ..layout.distribution import Distribution
from ..layout.grid import Grid
from ..layout.layout import Layout, layout_or_none
from ..runtime.comm.agreement import collective_errors
from .alignment import plain, replicated
from .distributed import Array, Distributed
from .moves import agree_on_call, moved, redistributed

__all__ = ["Matrices", "Term", "aligned", "as_matrices", "as_text", "common_operands", "contract", "diagonal_of"]
__all__ += ["extents_of", "layout_of", "narrowed", "read_subscripts", "stackwise"]

Term = tuple[int, ...]
"""One label per mode; modes of one label share an index."""

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Subscripts(NamedTuple):
    """A contraction, without sizes."""

    terms: tuple[Term, ...]  # per operand, the labels of its modes
    result: Term  # the labels of the result's modes; all others are summed over


@memoized(1024)
def read_subscripts(text: str, orders: tuple[int, ...]) -> Subscripts:
    """Read the text of `numpy.einsum`; letters are labels from 0 on, an ellipsis has those from 52 on, last mode first.

    Args:
        text: one letter per mode, with commas between terms, and the result behind `->`. Without `->` the result has
            the modes of the ellipsis, then the letters that occur once, in alphabetical order.
        orders: the orders of the operands.

    Raises:
        LayoutError: the text is invalid, or does not fit the operands.

    >>> read_subscripts("ij,jk", (2, 2))
    Subscripts(terms=((8, 9), (9, 10)), result=(8, 10))
    >>> read_subscripts("...i->...", (3,))
    Subscripts(terms=((53, 52, 8),), result=(53, 52))
    """
    left, arrow, right = text.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) != len(orders):
        raise LayoutError(f"{text!r} has subscripts for {len(parts)} operands, not {len(orders)}; part them by commas")
    terms = tuple(_labels(text, part, order) for part, order in zip(parts, orders, strict=True))
    labels = [*chain(*terms)]
    loose = sorted({label for label in labels if label >= len(_LETTERS)}, reverse=True)
    if not arrow:
        once = [_LETTERS.index(letter) for letter in sorted(_LETTERS) if labels.count(_LETTERS.index(letter)) == 1]
        return Subscripts(terms, (*loose, *once))
    result = _labels(text, right, len(loose) + len(right.replace("...", "")))
    for n, label in enumerate(result):
        if label in result[:n] or label not in labels:
            why = "comes twice" if label in result[:n] else "belongs to no operand"
            raise LayoutError(f"the letter {_LETTERS[label]!r} of the result of {text!r} {why}")
    return Subscripts(terms, result)


def _labels(text: str, part: str, order: int) -> Term:
    """The labels of one operand, or of the result."""
    before, dots, after = part.partition("...")
    if any(letter not in _LETTERS for letter in before + after):
        wrong = next(letter for letter in before + after if letter not in _LETTERS)
        raise LayoutError(
            f"{wrong!r} in the subscripts {text!r} is no letter; write one letter per mode, as 'ij,jk->ik'"
        )
    loose = order - len(before) - len(after)
    if loose < 0 or (loose and not dots):
        raise LayoutError(f"{part!r} in the subscripts {text!r} is for an operand of another order, which has {order}")
    dotted = (len(_LETTERS) + n for n in reversed(range(loose)))
    return (*map(_LETTERS.index, before), *dotted, *map(_LETTERS.index, after))


def _letter(label: Any) -> str:
    return "..." if label is Ellipsis else _LETTERS[label]


def as_text(given: Sequence[Any]) -> tuple[str, list[Any]]:
    """The subscripts and operands of a call with lists of labels, `einsum(x, [0, 1], y, [1, 2], [0, 2])`.

    >>> as_text(("x", [0, 1], "y", [1, ...], [0, ...]))
    ('ab,b...->a...', ['x', 'y'])
    """
    pairs = len(given) // 2
    lists = [*given[1 : 2 * pairs : 2], *given[2 * pairs :]]
    try:
        texts = ["".join(map(_letter, labels)) for labels in lists]
    except (TypeError, IndexError):
        raise LayoutError(
            f"einsum takes text such as 'ij,jk->ik' and operands, or operands each with a list of labels from 0 to "
            f"{len(_LETTERS) - 1}, not {lists}"
        ) from None
    return "->".join([",".join(texts[:pairs]), *texts[pairs:]]), [*given[0 : 2 * pairs : 2]]


# --- layouts of labels -----------------------------------------------------------------------------------------------


Splits = dict[int, tuple[Entry, ...]]
"""A layout of labels: the entries of each split label."""

_COMPILED = 3  # the number of candidates, by least volume, that are priced by plans
_MOST_ORDERS = 3  # the most operands whose orders are all tried


class Placement(NamedTuple):
    """Everything on which the choice of a layout of labels depends; `hidden` are the labels of contributions."""

    terms: tuple[Term, ...]
    result: Term
    extents: tuple[tuple[int, int], ...]
    dists: tuple[Distribution, ...]
    dtypes: tuple[np.dtype[Any], ...]
    grid: Grid
    target: Layout | None
    whole: Term
    hidden: tuple[Term, ...]


def projected(splits: Splits, extents: dict[int, int], term: Term, shape: tuple[int, ...], hidden: Term = ()) -> Layout:
    """The layout of one operand, which stays partial for hidden labels that are split; a broadcast mode is whole."""
    modes = [splits.get(label, ()) if n == extents[label] else () for label, n in zip(term, shape, strict=True)]
    partial = [entry.grid_mode for entry in chain(*(splits.get(label, ()) for label in hidden))]
    return Layout(tuple(modes), partial=tuple(partial))


def contributions(dists: Sequence[Distribution], dtypes: Sequence[np.dtype[Any]], grid: Grid) -> tuple[Term, ...]:
    """Per operand, the labels of contributions that can be multiplied: those to sums, in the dtype of the products."""
    dtype = np.result_type(*dtypes)
    labels: list[Term] = []
    for number, (dist, own) in enumerate(zip(dists, dtypes, strict=True)):
        lay = dist.layout
        usable = lay.op == "sum" and lay.view is None and (dist.grid, own) == (grid, dtype)
        grid_modes = lay.partial if usable else ()
        labels.append(tuple([-1 - number * MAX_GRID_MODES - g for g in grid_modes]))
    return tuple(labels)


def layout_of(result: Term, splits: Splits) -> Layout:
    """The layout of a result with some labels, partial over the grid modes of all others."""
    others = chain(*(entries for label, entries in splits.items() if label not in result))
    modes = tuple([splits.get(label, ()) for label in result])
    return Layout(modes, partial=tuple(entry.grid_mode for entry in others))


@memoized(1024, once=True)
def chosen(request: Placement) -> tuple[tuple[int, tuple[Entry, ...]], ...]:
    """The layout of labels whose moves take the least time; among equals, the one with the least work per rank."""
    candidates = _candidates(request)
    cheapest = sorted(candidates, key=lambda splits: (_volume(request, splits), _work(request, splits)))[:_COMPILED]
    if len(cheapest) > 1 and _volume(request, cheapest[0]):
        cheapest.sort(key=lambda splits: (_seconds(request, splits), _work(request, splits)))
    return tuple(cheapest[0].items())


def _candidates(request: Placement) -> list[Splits]:
    """The candidates: labels split as in some operands, also with all free grid modes given to one label."""
    extents = dict(request.extents)
    operands = zip(request.dists, request.terms, request.hidden, strict=True)
    seeds = [_seed(*each, extents) if each[0].grid == request.grid else {} for each in operands]
    if request.target is not None and request.target.view is None:
        seeds.insert(0, dict(zip(request.result, request.target.modes, strict=True)))
    if len(seeds) > _MOST_ORDERS:
        orders = [[*seeds[n:], *seeds[:n]] for n in range(len(seeds))]
    else:
        orders = [*map(list, permutations(seeds))]
    mergers: list[Splits] = []
    for order in orders:
        free, summed = list[Splits](), list[Splits]()
        for seed in order:
            free.append({label: seed[label] for label in seed if label in request.result})
            summed.append({label: seed[label] for label in seed if label not in request.result})
        mergers += [_merged(each, request.whole) for each in (order, [*free, *summed], [*summed, *free])]
    mergers += [{label: splits[label] for label in splits if label >= 0} for splits in mergers]
    used = sorted({g for dist in request.dists if dist.grid == request.grid for g in _grid_modes(dist)})
    spread = []
    for base in [*mergers, {}]:
        over = {entry.grid_mode for entry in chain(*base.values())}
        added = tuple([Entry(g, BLOCK) for g in used if g not in over])
        for label in extents:
            if added and label not in request.whole:
                spread.append({**base, label: (*base.get(label, ()), *added)})
    different = dict.fromkeys(tuple(each.items()) for each in (*mergers, *spread, {}))
    return [*map(dict, different)]


def _seed(dist: Distribution, term: Term, hidden: Term, extents: dict[int, int]) -> Splits:
    """The entries of an operand's labels; none if the operand has a view."""
    if dist.layout.view is not None:
        return {}
    modes = zip(term, dist.layout.modes, dist.shape, strict=True)
    seed = {label: entries for label, entries, n in modes if entries and n == extents[label]}
    return {**seed, **{label: (Entry(g, BLOCK),) for label, g in zip(hidden, dist.layout.partial, strict=False)}}


def _grid_modes(dist: Distribution) -> tuple[int, ...]:
    return tuple([entry.grid_mode for entry in chain(*dist.layout.modes)])


def _merged(seeds: Iterable[Splits], whole: Term) -> Splits:
    """The entries for each label from the first layout that has it, as far as their grid modes are still free."""
    splits: Splits = {}
    taken: set[int] = set()
    for seed in seeds:
        for label, entries in seed.items():
            if label not in whole and label not in splits:
                free = tuple(takewhile(lambda entry: entry.grid_mode not in taken, entries))
                if free:
                    splits[label] = free
                    taken.update(entry.grid_mode for entry in free)
    return splits


def _sides(request: Placement, splits: Splits) -> Iterable[tuple[Distribution, Distribution, np.dtype[Any]]]:
    """The moves of operands and result that a layout of labels needs."""
    extents = dict(request.extents)
    for term, dist, dtype, hidden in zip(request.terms, request.dists, request.dtypes, request.hidden, strict=True):
        layout = projected(splits, extents, term, dist.shape, hidden)
        yield dist, Distribution(layout, dist.shape, request.grid), dtype
    layout = layout_of(request.result, splits)
    result = Distribution(layout, tuple([extents[label] for label in request.result]), request.grid)
    final = replace(layout, partial=()) if request.target is None else request.target
    yield result, replace(result, layout=final), np.result_type(*request.dtypes)


def _volume(request: Placement, splits: Splits) -> float:
    """The approximate number of bytes that a rank receives, estimated from the layouts alone."""
    total = 0.0
    for source, target, dtype in _sides(request, splits):
        if source == target or (source.grid == target.grid and source.layout.is_prefix_of(target.layout)):
            continue
        replicas = 1 + bool(source.partial)
        parts = prod(target.grid.shape[g] for g in _grid_modes(target))
        total += replicas * dtype.itemsize * prod(target.shape) / parts
    return total


def _seconds(request: Placement, splits: Splits) -> float:
    sides = [(source, target, dtype) for source, target, dtype in _sides(request, splits) if source != target]
    return sum(compile(source, target, dtype).cost.seconds for source, target, dtype in sides)


def _work(request: Placement, splits: Splits) -> float:
    """The number of products that one rank computes."""
    entries = chain(*(each for label, each in splits.items() if label >= 0))
    parts = prod(request.grid.shape[entry.grid_mode] for entry in entries)
    return prod(n for _, n in request.extents) / parts


# --- contractions of tensors -----------------------------------------------------------------------------------------


class Aligned(NamedTuple):
    """Operands in one layout of labels."""

    blocks: list[Array]  # this rank's; a broadcast mode keeps its one element
    splits: Splits  # the layout of labels
    grid: Grid  # of the largest operand


def contract(
    operands: Sequence[Any], terms: Sequence[Term], result: Term, cause: str, layout: Layout | str | None = None
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
    target = layout_or_none(layout)
    joint = aligned(tensors, terms, result, extents, cause, target, linear=True)
    dtype = np.result_type(*(x.local.dtype for x in tensors))
    empty = any(each.size == 0 for each in joint.blocks)  # then the sum is empty: 0, whatever the other blocks hold
    factors = [np.zeros(each.shape, dtype) if empty else each.astype(dtype, copy=False) for each in joint.blocks]
    block = _products(*narrowed(factors, tensors, terms, extents), result)
    if any(np.may_share_memory(block, x.local) for x in tensors):
        block = block.copy()
    shape = tuple([extents[label] for label in result])
    computed = layout_of(result, joint.splits)
    product = tensors[0]._on(block, Distribution(computed, shape, joint.grid))
    final = Distribution(replace(computed, partial=()) if target is None else target, shape, joint.grid)
    if product.distribution.meaning == final.meaning:
        return product._on(block, final)
    return redistributed(product, final.layout, cause)


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
    found = order[places[held]]
    block = np.moveaxis(x.local, (rows, columns), (0, 1))
    result = np.zeros((len(along), *block.shape[2:]), block.dtype)
    result[held] = block[held, found]
    lay = dist.layout
    modes = tuple([entries for mode, entries in enumerate(lay.modes) if mode != columns])
    partial = tuple([entry.grid_mode for entry in lay.modes[columns]])
    shape = tuple([n for mode, n in enumerate(dist.shape) if mode != columns])
    place = rows - (columns < rows)
    target = Distribution(Layout(modes, partial=partial), shape, dist.grid)
    return x._on(np.ascontiguousarray(np.moveaxis(result, 0, place)), target)


def stackwise(
    function: Callable[..., Any],
    operands: Sequence[Any],
    terms: Sequence[Term],
    results: Sequence[Term],
    cause: str,
    whole: Iterable[int],
    extents: dict[int, int] | None = None,
) -> list[Any]:
    """Bring operands to one layout of labels, in which some labels are whole, and call a function on the blocks.

    Args:
        function: takes arrays with the modes of `terms`; returns an array, or a tuple of them, with those of `results`.
            All ranks raise an error that it raises on one.
        operands: at least one tensor, and arrays that are the same on all ranks.
        extents: the extents of labels that no operand has.
    """
    tensors = common_operands(operands, cause)
    new = extents or {}
    sizes = {**extents_of(tensors, terms, cause), **new}
    joint = aligned(tensors, terms, max(results, key=len), sizes, cause, whole=(*whole, *new))
    agree_on_call(tensors[0].comm)
    with collective_errors(tensors[0].comm):
        made = function(*joint.blocks)
        values = list(map(np.asarray, made)) if isinstance(made, tuple) else [np.asarray(made)]
    outcomes = []
    for value, result in zip(values, results, strict=True):
        shape = tuple([sizes[label] for label in result])
        if any(np.may_share_memory(value, x.local) for x in tensors):
            value = value.copy()
        outcomes.append(tensors[0]._on(value, Distribution(layout_of(result, joint.splits), shape, joint.grid)))
    return outcomes


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
