"""Pieces: elements in two arrays as strided views of both; each is copied once, and layouts give few of them."""

from __future__ import annotations

import gc
import tracemalloc
from math import prod

import numpy as np
import pytest

import rote
from rote.compiler.factor import Group
from rote.compiler.movement import movement
from rote.lattice import Lattice
from rote.layout.grid import row_major
from rote.runtime import copies, regions
from rote.runtime.copies import Factor, IndexedCopy, StridedCopy, times
from rote.runtime.regions import REDUCE, direct_regions, receive_regions, send_regions

# --- copies -------------------------------------------------------------------------------------------------------


def pick_side(rng, runs, number):
    """Rows of all runs along one or two modes of an array, each element at a place of its own; and their extents."""
    modes = int(rng.integers(1, 3))
    rows, starts = [[] for _ in runs], [int(n) for n in rng.integers(0, 3, modes)]
    for rank in rng.permutation(len(runs)).tolist():
        steps = [[0] * modes for _ in runs[rank]]
        reach = [0] * modes
        for digit in rng.permutation(len(runs[rank])).tolist():
            mode = int(rng.integers(modes))
            steps[digit][mode] = reach[mode] + int(rng.integers(1, 3))
            reach[mode] += steps[digit][mode] * (runs[rank][digit] - 1)
        rows[rank] = [(starts[m], *(step[m] for step in steps)) for m in range(modes)]
        starts = [start + far + 1 for start, far in zip(starts, reach, strict=True)]
    return [tuple(each) for each in rows], [start + int(rng.integers(2)) for start in starts]


def pick_parts(rng, order, listed):
    """Components of random modes: runs, or some of them indices one by one; and the shapes of the two arrays."""
    parts, shapes = [], ([], [])
    for k in range(order):
        runs = [tuple(rng.integers(1, 5, rng.integers(0, 3)).tolist()) for _ in range(rng.integers(1, 4))]
        sides, modes = [], []
        for shape in shapes:
            rows, extents = pick_side(rng, runs, k)
            modes.append(tuple(range(len(shape), len(shape) + len(extents))))
            shape += extents
            sides.append(rows)
        rows = [sum(each, ()) for each in zip(*sides, strict=True)]
        lattices = tuple(Lattice(run, row) for run, row in zip(runs, rows, strict=True))
        if listed and rng.random() < 0.3:
            every = Lattice.listing(lattices)
            lattices = (every.take(rng.permutation(every.size)),)
        parts.append(regions.copied_factor(group_of(lattices, len(modes[0])), (modes[0], 0), (modes[1], 1)))
    return parts, *map(tuple, shapes)


def group_of(lattices, modes):
    """A group of lattices whose first rows are indices along so many modes of the block on its own side."""
    return Group((), lattices, slice(0, modes), slice(modes, len(lattices[0].rows)))


def views_of(*lattices):
    """The pieces of lattices with one row on either side, as shapes and rows."""
    return [
        (part.lattice.shape, part.lattice.rows)
        for part in regions.copied_factor(group_of(lattices, 1), ((0,), 0), ((0,), 1))
    ]


def listed(parts, side, shape):
    """Where the elements of a product lie in an array's memory, by definition."""
    places = np.zeros((1,) * len(parts), int)
    for k, part in enumerate(parts):
        every = part[0]._replace(lattice=Lattice.listing([each.lattice for each in part]))
        for mode, (_, index) in zip(part[0][1 + side], every.rows(side), strict=True):
            along = [-1 if axis == k else 1 for axis in range(len(parts))]
            places = places + index.reshape(along) * prod(shape[mode + 1 :])
    return places.reshape(-1)


@pytest.mark.parametrize("few", [16, 10**9, 0])
def test_copies_are_what_indices_say(few, monkeypatch):
    """In pieces of either kind: values times factors, stored or reduced; of the target, nothing else is touched."""
    monkeypatch.setattr(copies, "_FEW", few)
    monkeypatch.setattr(copies, "_SMALL", 10**9)
    monkeypatch.setattr(copies, "TILE", 9)  # so that several tiles are made
    rng, kinds = np.random.default_rng(few % 17), set()
    for turn in range(300):
        parts, here, there = pick_parts(rng, turn % 4 or bool(not few), few < 10**9)
        first, last = (listed(parts, *end) for end in ((0, here), (1, there)))
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
        for piece in copies.pieces(parts, (row_major(here), row_major(there))):
            kinds.add(type(piece))
            piece.bound(source, target, op, *given)()
        assert np.array_equal(target.reshape(-1), right)
    assert kinds == {16: {StridedCopy, IndexedCopy}, 10**9: {StridedCopy}, 0: {IndexedCopy}}[few]


def pick_shape(rng, shape):
    return [n if rng.random() < 0.5 else 1 for n in shape]


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f4", "f8", "g", "c8", "c16", "G"])
def test_runs_are_copied_as_one_item(dtype):
    """Runs of any length and dtype, contiguous in both arrays: bit by bit."""
    for run in (1, 2, 3, 5, 64, 65, 1024, 1025):
        source = np.arange(4 * run * 2).reshape(4, 2, run).astype(dtype)
        part = regions.copied_factor(
            group_of((Lattice((4, run), ((0, 2 * run, 1), (0, run, 1))),), 1), ((0,), 0), ((0,), 1)
        )
        target = np.zeros(4 * run, dtype)
        for piece in copies.pieces([part], ((1,), (1,))):
            piece.bound(source, target, None, (), ())()
        assert np.array_equal(target, source[:, 0].reshape(-1))


@pytest.mark.parametrize("shape", [(), (3,), (4, 3), (2, 3, 4)])
def test_runs_that_go_on_are_one(shape):
    """Law: runs that are cut along any digit, at any place, are one view again, in whatever order they come."""
    rows = [(5, *np.cumprod([1, *(n + 1 for n in shape[:0:-1])])[::-1].tolist()[: len(shape)])] * 2
    whole = Lattice(shape, tuple(rows))
    for axis, n in enumerate(shape):
        for cut in range(1, n):
            parts = []
            for low, high in ((0, cut), (cut, n)):
                row = (rows[0][0] + low * rows[0][axis + 1], *rows[0][1:])
                length = (*shape[:axis], high - low, *shape[axis + 1 :])
                if high - low == 1:  # such a digit is left out
                    length, row = (*shape[:axis], *shape[axis + 1 :]), (*row[: axis + 1], *row[axis + 2 :])
                parts.append(Lattice(length, (row, row)))
            if n > 2 or len(parts[0].shape) == len(shape):
                assert views_of(*parts) == views_of(whole), (axis, cut)


def test_runs_of_other_steps_stay_apart():
    """A run that begins where another ends, but steps otherwise, is no part of it."""
    assert len(views_of(Lattice((2, 2), ((0, 0, 1), (4, 1, 2))), Lattice((2, 4), ((2, 0, 6), (8, 1, 0))))) == 2


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
        at = movement(plan.source, plan.target), rank
        for region in (*send_regions(*at), *receive_regions(*at), *sum(direct_regions(*at), ())):
            assert len(region.pieces) <= most and isinstance(region.pieces[0], StridedCopy), (rank, region.peer)


def test_views_keep_no_lists_of_indices():
    """A block of a million elements, read through another view: what is kept for it is a few kilobytes."""
    plan = rote.compile("(a b): block[(0)] -> a b: cyclic(3)[(),(0)]", shape=(1000, 1000), grid=2)
    for rank in range(2):
        direct_regions(movement(plan.source, plan.target), rank)
        gc.collect()
        tracemalloc.start()
        kept = direct_regions(movement(plan.source, plan.target), rank)
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
    outgoing, _ = direct_regions(movement(plan.source, plan.target), 0)
    assert all(isinstance(region.pieces[0], IndexedCopy) for region in outgoing)
    message = np.empty(outgoing[0].shape)
    tracemalloc.start()
    outgoing[0].copy(blocks[0], message)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * copies.TILE


def test_messages_that_are_alike_share_their_pieces():
    """Law: however many the ranks, a piece is made once of what lies alike in their blocks: here 64 for 4,096 messages.

    A rank has 64 elements, each for a rank of its own, and they lie in its block as in every other rank's.
    """
    transition = rote.parse_transition("[(0),(1),(2)] -> block[(0),(1),(2)]")
    source, target = (layout.on((16,) * 3, (4,) * 3) for layout in (transition.source, transition.target))
    for side in (send_regions, receive_regions):
        regions = [region for rank in range(64) for region in side(movement(source, target), rank)]
        assert len(regions) == 64 * 64
        assert len({piece for region in regions for piece in region.pieces}) == 64


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_the_product_of_a_single_number_is_that_among_others(dtype):
    """Law: in place or not, to the last bit."""
    rng = np.random.default_rng(8)
    values, factors = (rng.standard_normal((2, 500)).view("c16").astype(dtype) for _ in range(2))
    together = times(values, factors, np.empty_like(values))
    for index in np.ndindex(*values.shape):
        alone, factor = np.full((1, 1), values[index]), np.full(1, factors[index])
        assert times(alone, factor, np.empty_like(alone)).tobytes() == together[index].tobytes()
        assert times(alone[:], factor, alone).tobytes() == together[index].tobytes()
