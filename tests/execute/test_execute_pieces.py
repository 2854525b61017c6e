"""Pieces: elements in two arrays as strided views of both; each is copied once, and layouts give few of them."""

from __future__ import annotations

import gc
import tracemalloc
from math import prod

import numpy as np
import pytest

import rote
from rote.runtime import nests, pieces
from rote.runtime.packing import REDUCE, direct_regions, receive_regions, send_regions
from rote.runtime.pieces import Factor, Listed, Strided


def expand(nest):
    """The places of a nest, one per column."""
    steps = np.array(nest.steps, int).reshape(len(nest.shape), len(nest.origin))
    return np.array(nest.origin)[:, None] + steps.T @ np.indices(nest.shape).reshape(len(nest.shape), prod(nest.shape))


def ordered(columns):
    return columns[:, np.lexsort(columns)].tolist()


@pytest.mark.parametrize("most", [1, 2, 5, 100])
def test_nests_hold_each_place_once(most):
    """Of any places, in any order, along one mode or several: as many nests as it takes, and none of them overlap."""
    rng = np.random.default_rng(most)
    for _ in range(200):
        columns = np.cumsum(rng.integers(-most, most + 1, rng.integers(1, [4, 60])), axis=1)
        found = np.concatenate([expand(nest) for nest in nests.nests(columns)], axis=1)
        assert ordered(found) == ordered(columns)


def digits(*sizes, keep=None):
    """The first numbers of evenly spaced digits, as a place and its number; the last ones may be left out."""
    steps = np.cumprod([1, *(size + 2 for size in sizes[:0:-1])])[::-1]
    places = np.ravel(sum(np.ix_(*(step * np.arange(size) for size, step in zip(sizes, steps, strict=True)))))
    return np.stack([places, np.arange(len(places))])[:, :keep]


@pytest.mark.parametrize("columns, number", [
    (digits(5), 1),
    (digits(4, 3), 1),
    (digits(4, 2, 3), 1),
    (digits(3, 2, 2, 2), 1),
    (digits(7, 3, keep=19), 2),
    (digits(7, 3)[:, 2:], 2),
    (digits(7, 3)[:, 2:-1], 3),
    (digits(5, 4, 3)[:, 14:-2], 5),
    (digits(4, 3)[:, ::-1], 1),
])  # fmt: skip
def test_digits_are_few_nests(columns, number):
    """Whole digits are one nest; where the first and the last tile are not whole, each digit adds two at most."""
    assert len(list(nests.nests(columns))) <= number


def test_irregular_places_are_given_up_in_time():
    """To see that random places are no few nests takes about as long as to sort them a few times."""
    columns = np.random.default_rng(0).permutation(200_000)[None]
    assert nests.places(((0, columns[0]),), ((0, np.arange(200_000)),)).views == ()


# --- copies -------------------------------------------------------------------------------------------------------


def pick_parts(rng, order):
    """Components of random modes: regular, ragged or irregular indices in two arrays, and the shapes of those."""
    parts, shapes = [], ([], [])
    for _ in range(order):
        number, along = int(rng.integers(1, 9)), ([], [])
        for side, shape in zip(along, shapes, strict=True):
            for _ in range(rng.integers(1, 3)):
                step, tile = rng.integers(1, 4, 2)
                index = np.arange(number) // tile * tile * step + np.arange(number) % tile
                side.append((len(shape), index if rng.random() < 0.7 else rng.permutation(number)))
                shape.append(int(side[-1][1].max()) + int(rng.integers(1, 3)))
        parts.append(nests.places(*map(tuple, along)))
    return parts, *map(tuple, shapes)


def listed(parts, side, shape):
    """Where the elements of a product lie in an array's memory, by definition."""
    places = np.zeros((1,) * len(parts), int)
    for k, part in enumerate(parts):
        for mode, index in getattr(part, side):
            along = [-1 if axis == k else 1 for axis in range(len(parts))]
            places = places + index.reshape(along) * prod(shape[mode + 1 :])
    return places.reshape(-1)


@pytest.mark.parametrize("few", [16, 10**9, 0])
def test_copies_are_what_indices_say(few, monkeypatch):
    """In pieces of either kind: values times factors, stored or reduced; of the target, nothing else is touched."""
    monkeypatch.setattr(pieces, "_FEW", few)
    monkeypatch.setattr(pieces, "_SMALL", 10**9)
    monkeypatch.setattr(pieces, "TILE", 9)  # so that several tiles are made
    rng, kinds = np.random.default_rng(few % 17), set()
    for turn in range(300):
        parts, here, there = pick_parts(rng, turn % 4 or bool(not few))
        first, last = (listed(parts, *end) for end in (("here", here), ("there", there)))
        if len(set(last.tolist())) < len(last):
            continue  # two elements for one place
        source, target = rng.integers(1, 9, here), rng.integers(1, 9, there)
        factors = [
            [rng.integers(1, 9, pick_shape(rng, shape)) for _ in range(rng.integers(3))] for shape in (here, there)
        ]
        op = [None, *REDUCE.values()][rng.integers(5)]
        values = source.reshape(-1)[first].copy()
        for found, shape, index in zip(factors, (here, there), (first, last), strict=True):
            for factor in found:
                values *= np.broadcast_to(factor, shape).reshape(-1)[index]
        right = target.reshape(-1).copy()
        right[last] = values if op is None else op(right[last], values)
        given = [
            [Factor(factor, np.broadcast_to(factor, shape).strides) for factor in found]
            for found, shape in zip(factors, (here, there), strict=True)
        ]
        for piece in pieces.pieces(parts, here, there):
            kinds.add(type(piece))
            piece.copy(source, target, op, *given)
        assert np.array_equal(target.reshape(-1), right)
    assert kinds == {16: {Strided, Listed}, 10**9: {Strided}, 0: {Listed}}[few]


def pick_shape(rng, shape):
    return [n if rng.random() < 0.5 else 1 for n in shape]


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f4", "f8", "g", "c8", "c16", "G"])
def test_runs_are_copied_as_one_item(dtype):
    """Runs of any length and dtype, contiguous in both arrays: bit by bit."""
    for run in (1, 2, 3, 5, 64, 65, 1024, 1025):
        source = np.arange(4 * run * 2).reshape(4, 2, run).astype(dtype)
        places = tuple(np.ix_(np.arange(4) * 2 * run, np.arange(run)))
        index = sum(places).reshape(-1)
        part = nests.places(((0, index),), ((0, np.arange(4 * run)),))
        target = np.zeros(4 * run, dtype)
        for piece in pieces.pieces([part], (8 * run,), (4 * run,)):
            piece.copy(source, target, None, (), ())
        assert np.array_equal(target, source[:, 0].reshape(-1))


# --- layouts ------------------------------------------------------------------------------------------------------

FEW = [
    ("[(0),()] -> [(),(0)]", (101, 103), (4,), 1),
    ("block[(0),(1),()] -> block[(1),(),(0)]", (31, 32, 33), (2, 3), 1),
    ("cyclic(3)[(0),()] -> [(),(0)]", (101, 103), (2,), 2),
    ("cyclic(3)[(0),()] -> cyclic(4)[(),(0)]", (101, 103), (4,), 4),
    ("cyclic(3)[(0),(1)] -> cyclic(4)[(1),(0)]", (101, 103), (2, 2), 16),
    ("[(0:cyclic(64)),()] -> [(0:cyclic(48)),()]", (2000, 10), (2,), 5),
    ("(t s=4): [(),(0)] -> [(0)]", (4000,), (4,), 1),
    ("a (b r=4 s=4): [(),(),(),(0)] -> a (b r=4 s=4): [(),(),(0),()]", (7, 160), (4,), 1),
    ("(s b r): [(0)] -> (r b s): [(0)]", (8, 12, 10), (4,), 3),
    ("(a b) c: block[(0),()] -> a b c: block[(),(0),()]", (40, 41, 42), (3,), 3),
    ("(a b) c: block[(0),()] -> (b c) a: block[(0),()]", (40, 41, 43), (3,), 5),
    ("(a b): block[(0)] -> a b: cyclic(3)[(),(0)]", (200, 301), (3,), 6),
]


@pytest.mark.parametrize("text, shape, grid, most", FEW)
def test_layouts_give_few_views(text, shape, grid, most):
    """Kinds and views of all sorts, of extents that they do not divide: a few strided views for each message."""
    plan = rote.compile(text, shape=shape, grid=grid)
    for rank in range(plan.source.grid.size):
        at = plan.source, plan.target, rank
        for region in (*send_regions(*at), *receive_regions(*at), *sum(direct_regions(*at), ())):
            assert len(region.pieces) <= most and isinstance(region.pieces[0], Strided), (rank, region.peer)


def test_views_keep_no_lists_of_indices():
    """A block of a million elements, read through another view: what is kept for it is a few kilobytes."""
    plan = rote.compile("(a b): block[(0)] -> a b: cyclic(3)[(),(0)]", shape=(1000, 1000), grid=2)
    for rank in range(2):
        direct_regions(plan.source, plan.target, rank)
        gc.collect()
        tracemalloc.start()
        kept = direct_regions(plan.source, plan.target, rank)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert taken < 50_000 and kept


def test_where_there_are_too_many_views_elements_are_picked():
    """Tiles of 7 and of 5 in two orders: lists of indices, and few elements at a time; as `simulate` has it or not."""
    plan = rote.compile("(a b): cyclic(7)[(0)] -> (b a): cyclic(5)[(0)]", shape=(499, 391), grid=7)
    array = np.arange(499 * 391.0).reshape(499, 391)
    blocks = rote.simulate.scatter(array, plan.source)
    found = rote.simulate.run(plan, blocks)
    for block, right in zip(found, rote.simulate.scatter(array, plan.target), strict=True):
        assert np.array_equal(block, right)
    outgoing, _ = direct_regions(plan.source, plan.target, 0)
    assert all(isinstance(region.pieces[0], Listed) for region in outgoing)
    message = np.empty(outgoing[0].shape)
    tracemalloc.start()
    outgoing[0].copy(blocks[0], message)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * pieces.TILE
