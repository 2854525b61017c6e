"""Random contractions, and what they compute by definition: every stage, rank by rank, from the indices of blocks.

Nothing here asks the planner, the proof or the costs. Elements are random integers of 64 bits, which wrap; so two
polynomials of the operands that agree on them are the same.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import product

import numpy as np

import rote
from rote.errors import PlanError
from rote.functions.contraction.plan import contraction_of
from rote.functions.contraction.stages import Move, Product
from rote.functions.contraction.subscripts import read_subscripts
from rote.functions.contraction.tree import Request
from rote.grammar.nodes import BLOCK, CYCLIC, Entry, Kind
from rote.layout.grid import Grid
from rote.layout.layout import Layout

__all__ = ["blocks_of", "contraction", "is_held", "is_product_right", "is_right", "pick_plain", "request_of", "results"]

GRIDS = (2,), (2, 2), (3,), (4,), (2, 3), (2, 2, 2), (1, 2)


def pick_plain(rng, order, grid, partial=True):
    """A layout without views and roots: its grid modes split, add contributions, or hold copies."""
    modes, added = [[] for _ in range(order)], []
    for g in range(len(grid)):
        chance = rng.random()
        if chance < 0.6 and order:
            rng.choice(modes).append(Entry(g, rng.choice([BLOCK, BLOCK, BLOCK, CYCLIC, Kind("cyclic", (2,))])))
        elif chance < 0.75 and partial:
            added.append(g)
    for entries in modes:
        rng.shuffle(entries)
    return Layout(tuple(map(tuple, modes)), partial=tuple(added))


def request_of(seed, most=3, free=False, partial=True, broadcast=True, large=False):
    """The request of a seed: extents of 0, 1 and primes, operands that broadcast, all plain layouts.

    Args:
        most: the most operands.
        free: whether the layouts of the operands are left to the planner.
        large: whether two operands have extents that can be cut into panels.
    """
    rng = random.Random(seed)
    grid = Grid(rng.choice(GRIDS))
    letters = "ijklm"[: rng.randint(2, 4) if large else rng.randint(1, 5)]
    usual = [6, 7, 8, 12, 13] if large else [2, 3, 4, 5, 6, 7, 8]
    extents = {letter: rng.choice([0, 1, 2, 3] if rng.random() < 0.1 and not large else usual) for letter in letters}
    count = 2 if large else rng.choice([n for n in (1, 2, 2, 2, 3, 3, 4) if n <= most])
    orders = [rng.randint(1, 3) if large else rng.randint(0, min(4, len(letters))) for _ in range(count)]
    terms = ["".join(rng.sample(letters, min(order, len(letters)))) for order in orders]
    used = "".join(dict.fromkeys("".join(terms)))
    result = "".join(rng.sample(used, rng.randint(0, min(3, len(used)))))
    shapes = [tuple(extents[letter] for letter in term) for term in terms]
    if broadcast and count <= 2 and rng.random() < 0.3:
        shapes = [tuple(1 if rng.random() < 0.2 else n for n in shape) for shape in shapes]
    subscripts = read_subscripts(f"{','.join(terms)}->{result}", [*map(len, terms)])
    sizes = subscripts.extents(shapes)
    dists = tuple(pick_plain(rng, len(shape), grid.shape, partial).on(shape, grid) for shape in shapes)
    target = None
    if rng.random() < 0.5:
        shape = tuple(sizes[letter] for letter in result)
        target = pick_plain(rng, len(shape), grid.shape, partial=False).on(shape, grid)
    dists = (None,) * count if free else dists
    kinds = (np.dtype("i8"),) * count
    return Request(subscripts, tuple(shapes), kinds, dists, grid, target, rng.random() < 0.3, None, rote.Machine())


def contraction(seed, **choices):
    """The contraction of a seed; that of an odd one runs in panels, if one with little memory does."""
    request = request_of(seed, large=seed % 2 == 1, **choices)
    plan = contraction_of(request)
    if seed % 2 == 0:
        return plan
    least = sum(
        np.prod(dist.max_local_shape(), dtype=int) * dtype.itemsize
        for dist, dtype in zip(plan.operands, plan.dtypes, strict=True)
    )
    for some in (0.4, 0.6, 0.8, 0.95):
        within = least + int((plan.cost.peak_bytes - least) * some)
        try:
            other = contraction_of(request._replace(layouts=plan.operands, max_bytes=within))
        except PlanError:
            continue
        if any(stage.panels is not None for stage in other.stages if isinstance(stage, Product)):
            return other
    return plan


# --- what a contraction computes ---------------------------------------------------------------------------------


def blocks_of(array, dist, rng):
    """The block of every rank; the contributions to a partial tensor are random numbers with the right sum."""
    if dist.partial and dist.layout.op != "sum":
        return rote.simulate.scatter(array, dist)
    at = [*product(*(range(dist.grid.shape[g]) for g in dist.partial))]
    parts = {where: rng.integers(-(2**62), 2**62, array.shape) for where in at[1:]}
    parts[at[0]] = array - sum(parts.values())
    blocks = []
    for rank in range(dist.grid.size):
        coordinates = dist.grid.coordinates(rank)
        part = parts[tuple(coordinates[g] for g in dist.partial)]
        blocks.append(
            np.array(part[dist.tensor_indices(rank)] if dist.holds(rank) else np.zeros(dist.local_shape(rank)))
        )
    return blocks


def is_held(blocks, dist, array):
    """Whether each copy of a tensor that blocks make up, with all its contributions, is an array."""
    sums = {}
    for rank, block in enumerate(blocks):
        if dist.holds(rank):
            alone = tuple(c for g, c in enumerate(dist.grid.coordinates(rank)) if g not in dist.partial)
            sums.setdefault(alone, (rank, []))[1].append(block)
    return all(np.array_equal(sum(parts), array[dist.tensor_indices(rank)]) for rank, parts in sums.values())


def results(plan, arrays, rng):
    """The blocks of the last tensor, by running every stage; an error if blocks do not fit."""
    extents = {}
    for term, shape in zip(plan.subscripts.terms, [array.shape for array in arrays], strict=True):
        for letter, n in zip(term, shape, strict=True):
            extents[letter] = n if n != 1 else extents.get(letter, 1)
    tensors = [blocks_of(array, dist, rng) for array, dist in zip(arrays, plan.operands, strict=True)]
    dists = [*plan.operands]
    for stage in plan.stages:
        if isinstance(stage, Move):
            if stage.plan.source.meaning != dists[stage.value].meaning:
                raise ValueError("a move starts elsewhere")
            tensors.append(rote.simulate.run(stage.plan, tensors[stage.value]))
            dists.append(stage.plan.target)
        else:
            given = [dists[value] for value in stage.values]
            tensors.append(_multiplied(stage, [tensors[value] for value in stage.values], given, extents))
            dists.append(stage.result)
    return tensors[-1], dists[-1]


def _multiplied(stage, tensors, dists, extents):
    result = stage.result
    made = [np.zeros(result.local_shape(rank), np.int64) for rank in range(result.grid.size)]
    spread = [
        [mode for mode, (letter, n) in enumerate(zip(term, dist.shape, strict=True)) if n == 1 != extents[letter]]
        for term, dist in zip(stage.terms, dists, strict=True)
    ]
    for panel in range(stage.panels.count if stage.panels else 1):
        blocks = [*tensors]
        for number, plans in enumerate(stage.plans[: len(tensors)]):
            if plans:
                mode = stage.terms[number].index(stage.panels.letter)
                at = [_places(dists[number], mode, rank, stage.panels, panel) for rank in range(result.grid.size)]
                moved = [np.take(block, where, mode) for block, where in zip(tensors[number], at, strict=True)]
                blocks[number] = rote.simulate.run(plans[panel if len(plans) > 1 else 0], moved)
        values = []
        for rank in range(result.grid.size):
            factors = []
            for number, term in enumerate(stage.terms):
                narrow = "".join(letter for mode, letter in enumerate(term) if mode not in spread[number])
                factors.append((narrow, blocks[number][rank].squeeze(tuple(spread[number]))))
            values.append(_einsum(factors, stage.term))
        for plans in stage.plans[len(tensors) :]:  # the product of the panel moves
            values = rote.simulate.run(plans[panel if len(plans) > 1 else 0], values)
        for rank, value in enumerate(values):
            if stage.panels and stage.panels.letter in stage.term:
                mode = stage.term.index(stage.panels.letter)
                where = _places(result, mode, rank, stage.panels, panel)
                fits = (*made[rank].shape[:mode], len(where), *made[rank].shape[mode + 1 :])
                made[rank][(*(slice(None),) * mode, where)] = _fits(value, fits)
            else:
                made[rank] = made[rank] + _fits(value, made[rank].shape)
    return made


def _places(dist, mode, rank, panels, panel):
    """The local indices of a rank along a mode whose global indices are in a panel."""
    return [n for n, k in enumerate(dist.indices(rank)[mode].tolist()) if k % panels.period // panels.tile == panel]


def _einsum(factors, term):
    """The sum of products of arrays, whose extents must be equal."""
    sizes = {}
    for letters, array in factors:
        for letter, n in zip(letters, array.shape, strict=True):
            if sizes.setdefault(letter, n) != n:
                raise ValueError("blocks do not fit")
    return np.einsum(f"{','.join(letters for letters, _ in factors)}->{term}", *[array for _, array in factors])


def _fits(value, shape):
    if value.shape != shape:
        raise ValueError("a product does not fit")
    return value


def is_right(plan, seed=0):
    """Whether a contraction computes what its subscripts say, where its result says, on random operands."""
    rng = np.random.default_rng(seed)
    arrays = [np.asarray(rng.integers(-(2**62), 2**62, dist.shape)) for dist in plan.operands]
    try:
        with np.errstate(over="ignore"):
            blocks, dist = results(plan, arrays, rng)
            want = np.asarray(np.einsum(str(plan.subscripts), *arrays))
            return dist.meaning == plan.result.meaning and is_held(blocks, dist, want)
    except (ArithmeticError, AttributeError, IndexError, ValueError):
        return False


# --- one product, as lists of points -----------------------------------------------------------------------------


def is_product_right(terms, dists, term, result):
    """Whether blocks that are multiplied where they are make a tensor, by counting the points of every element.

    A point is an index per letter, and per operand the contribution that is taken. Each element of the result must have
    each of its points once, in each group of ranks whose contributions are added.
    """
    grid, sums = result.grid, {}
    sizes = {
        letter: n for names, dist in zip(terms, dists, strict=True) for letter, n in zip(names, dist.shape, strict=True)
    }
    letters = [*dict.fromkeys("".join(terms))]
    for rank in range(grid.size):
        held = {}
        for names, dist in [*zip(terms, dists, strict=True), (term, result)]:
            for letter, indices in zip(names, dist.indices(rank), strict=True):
                if held.setdefault(letter, indices.tolist()) != indices.tolist():
                    return False
        coordinates = grid.coordinates(rank)
        taken = tuple(tuple(coordinates[g] for g in dist.partial) for dist in dists)
        alone = tuple(c for g, c in enumerate(coordinates) if g not in result.partial)
        for point in product(*(held[letter] for letter in letters)):
            at = dict(zip(letters, point, strict=True))
            sums.setdefault((alone, *(at[letter] for letter in term)), Counter())[point, taken] += 1
        for element in product(*(held[letter] for letter in term)):
            sums.setdefault((alone, *element), Counter())
    contributions = [[*product(*(range(grid.shape[g]) for g in dist.partial))] for dist in dists]
    for (_, *element), found in sums.items():
        at = dict(zip(term, element, strict=True))
        every = product(*([at[letter]] if letter in at else range(sizes[letter]) for letter in letters))
        if found != Counter((point, taken) for point in every for taken in product(*contributions)):
            return False
    return True
