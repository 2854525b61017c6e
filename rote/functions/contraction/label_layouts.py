"""Layouts of labels: the search for the best joint layout of several operands.

Labels name the modes of all operands together. A layout of labels says which grid modes split which label. An operand
is split by its own labels, and replicated over the grid modes of the others. If a label that the result lacks is split,
each rank computes a contribution, and the result is partial. So one search for a layout of labels finds the layouts of
all operands, and the cost of a candidate is that of its moves.

The contributions of a partial operand act as a further mode, split over a grid mode and summed: its label is below 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, permutations, takewhile
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...caches import memoized
from ...compiler.compile import compile
from ...grammar.nodes import BLOCK, MAX_GRID_MODES, Entry
from ...layout.grid import Grid
from ...layout.layout import Distribution, Layout
from .subscripts import Term

__all__ = ["Placement", "Splits", "chosen", "contributions", "layout_of", "projected"]

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
    seeming = sorted(candidates, key=lambda splits: (_volume(request, splits), _work(request, splits)))[:_COMPILED]
    if len(seeming) > 1 and _volume(request, seeming[0]):
        seeming.sort(key=lambda splits: (_seconds(request, splits), _work(request, splits)))
    return tuple(seeming[0].items())


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
    used = sorted({g for dist in request.dists if dist.grid == request.grid for g in _named(dist)})
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


def _named(dist: Distribution) -> tuple[int, ...]:
    """The grid modes that split a tensor."""
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
        lies = projected(splits, extents, term, dist.shape, hidden)
        yield dist, Distribution(lies, dist.shape, request.grid), dtype
    lies = layout_of(request.result, splits)
    result = Distribution(lies, tuple([extents[label] for label in request.result]), request.grid)
    final = replace(lies, partial=()) if request.target is None else request.target
    yield result, replace(result, layout=final), np.result_type(*request.dtypes)


def _volume(request: Placement, splits: Splits) -> float:
    """The approximate number of bytes that a rank receives, estimated from the layouts alone."""
    total = 0.0
    for source, target, dtype in _sides(request, splits):
        if source == target or (source.grid == target.grid and source.layout.is_prefix_of(target.layout)):
            continue
        replicas = 1 + bool(source.partial)
        parts = prod(target.grid.shape[g] for g in _named(target))
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
