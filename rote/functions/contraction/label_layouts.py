"""Layouts of labels: where operands that are taken together had best lie.

Labels name the modes of all operands together. A layout of labels says which grid modes split which label; an operand
lies in it by its own labels, and is replicated over the grid modes of the others. Where a label is split that the
result has not, what each rank computes is a contribution, and the result is partial. So the search for the layouts of
the operands is a search of one layout, and each candidate costs what its moves cost.

Contributions of an operand are as a mode more, which is split over a grid mode and summed over: it has a label below 0.
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
"""A layout of labels: the entries of each that is split."""

_COMPILED = 3  # candidates that are priced by plans, of those that seem to move least
_MOST_ORDERS = 3  # operands of which all orders are tried


class Placement(NamedTuple):
    """All that the choice of a layout of labels depends on; `hidden` are the labels of contributions."""

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
    """The layout of one operand; a mode of one element that is broadcast is whole.

    Args:
        hidden: the labels of its contributions, of which those stay that the layout of labels splits.
    """
    modes = [splits.get(label, ()) if n == extents[label] else () for label, n in zip(term, shape, strict=True)]
    partial = [entry.grid_mode for entry in chain(*(splits.get(label, ()) for label in hidden))]
    return Layout(tuple(modes), partial=tuple(partial))


def contributions(dists: Sequence[Distribution], dtypes: Sequence[np.dtype[Any]], grid: Grid) -> tuple[Term, ...]:
    """Per operand, the labels of contributions that products may be made of: sums, in the dtype of the products."""
    dtype = np.result_type(*dtypes)
    labels: list[Term] = []
    for number, (dist, own) in enumerate(zip(dists, dtypes, strict=True)):
        lay = dist.layout
        usable = lay.op == "sum" and lay.view is None and (dist.grid, own) == (grid, dtype)
        grid_modes = lay.partial if usable else ()
        labels.append(tuple([-1 - number * MAX_GRID_MODES - g for g in grid_modes]))
    return tuple(labels)


def layout_of(result: Term, splits: Splits) -> Layout:
    """The layout of a result with some labels: contributions over the grid modes of all others."""
    others = chain(*(entries for label, entries in splits.items() if label not in result))
    modes = tuple([splits.get(label, ()) for label in result])
    return Layout(modes, partial=tuple(entry.grid_mode for entry in others))


@memoized(1024, once=True)
def chosen(request: Placement) -> tuple[tuple[int, tuple[Entry, ...]], ...]:
    """The layout of labels whose moves take least time; of equal ones that with least work for a rank."""
    candidates = _candidates(request)
    seeming = sorted(candidates, key=lambda splits: (_volume(request, splits), _work(request, splits)))[:_COMPILED]
    if len(seeming) > 1 and _volume(request, seeming[0]):
        seeming.sort(key=lambda splits: (_seconds(request, splits), _work(request, splits)))
    return tuple(seeming[0].items())


def _candidates(request: Placement) -> list[Splits]:
    """Layouts of labels that split them as some operands do, and what is left over along any label."""
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
    """The entries of an operand's labels; none if its modes are read otherwise."""
    if dist.layout.view is not None:
        return {}
    modes = zip(term, dist.layout.modes, dist.shape, strict=True)
    seed = {label: entries for label, entries, n in modes if entries and n == extents[label]}
    return {**seed, **{label: (Entry(g, BLOCK),) for label, g in zip(hidden, dist.layout.partial, strict=False)}}


def _named(dist: Distribution) -> tuple[int, ...]:
    """The grid modes over which the elements of a tensor are dealt out."""
    return tuple([entry.grid_mode for entry in chain(*dist.layout.modes)])


def _merged(seeds: Iterable[Splits], whole: Term) -> Splits:
    """The entries of the first one that has a label, as far as their grid modes are not taken yet."""
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
    """The moves that a layout of labels wants: of the operands, and of the result."""
    extents = dict(request.extents)
    for term, dist, dtype, hidden in zip(request.terms, request.dists, request.dtypes, request.hidden, strict=True):
        lies = projected(splits, extents, term, dist.shape, hidden)
        yield dist, Distribution(lies, dist.shape, request.grid), dtype
    lies = layout_of(request.result, splits)
    result = Distribution(lies, tuple([extents[label] for label in request.result]), request.grid)
    final = replace(lies, partial=()) if request.target is None else request.target
    yield result, replace(result, layout=final), np.result_type(*request.dtypes)


def _volume(request: Placement, splits: Splits) -> float:
    """About how many bytes a rank receives, by a glance at the layouts."""
    total = 0.0
    for source, target, dtype in _sides(request, splits):
        if source == target or (source.grid == target.grid and source.layout.is_prefix_of(target.layout)):
            continue
        replicas = 2 if source.partial else 1
        total += replicas * dtype.itemsize * prod(target.shape) / _parts(target)
    return total


def _parts(dist: Distribution) -> int:
    return prod(dist.grid.shape[g] for g in _named(dist))


def _seconds(request: Placement, splits: Splits) -> float:
    sides = [(source, target, dtype) for source, target, dtype in _sides(request, splits) if source != target]
    return sum(compile(source, target, dtype).cost.seconds for source, target, dtype in sides)


def _work(request: Placement, splits: Splits) -> float:
    """Products that one rank computes."""
    entries = chain(*(each for label, each in splits.items() if label >= 0))
    parts = prod(request.grid.shape[entry.grid_mode] for entry in entries)
    return prod(n for _, n in request.extents) / parts
