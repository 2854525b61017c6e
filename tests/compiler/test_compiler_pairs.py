"""Pairs of coordinates are counted by digits, and runs in arrays, as tables and lattices count them one by one."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest
from compiler.test_compiler_verify import certify, figures, plan_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import pairs, pairs_across

import rote
from rote.compiler import pairs as digits
from rote.compiler import volumes
from rote.compiler.factor import Factor
from rote.compiler.movement import RECEIVES, SENDS, movement
from rote.compiler.overlaps import FEW, Intervals, extents_of, intervals, one_by_one, overlaps_below, splits_of
from rote.compiler.verify import certificate, proof
from rote.errors import PlanError
from rote.lattice import Lattice

RUNS = st.sampled_from(["block", "block(ceil)", "block(floor)"])


def sizes(source, target):
    """The number of elements at each pair of coordinates, one by one: an axis per split, the source's first."""
    extents, shape = extents_of(source), splits_of(source, target)
    rows = [row for side in (source, target) for row in one_by_one(side, extents)[0]]
    cells = np.zeros(prod(extents.values()), np.int64)
    for number, at in zip(shape, rows, strict=True):
        cells = cells * number + at
    return np.bincount(cells, minlength=prod(shape)).reshape(shape)


@given(st.one_of(pairs(), pairs_across()), st.sampled_from([0, 4, 4096]))
def test_sums_over_peers_are_those_of_the_matrix(ends, large):
    """Law: elements and messages of all ranks, from all others and from some, are sums of the matrix of all pairs."""
    source, target = ends
    ranks = source.grid.refine(target.grid).shape or (1,)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digits, "_LARGE", large)
        rote.clear_caches()
        others = movement(source, target).matrix() * (1 - np.eye(source.grid.size, dtype=np.int64))
        same = [at[:, None] == at for at in volumes.coordinates(np.arange(len(others)), source.grid)]
        some = [(g,) for g in range(source.grid.order)] if source.grid == target.grid else []
        for equal in [(), *some]:
            sent = others * np.all([same[g] for g in equal], axis=0)
            for side, axis in ((SENDS, 1), (RECEIVES, 0)):
                found = movement(source, target).traffic(side, equal)
                expected = sent.sum(axis=axis), np.count_nonzero(sent, axis=axis)
                for counts, right in zip(found, expected, strict=True):
                    assert np.broadcast_to(counts, ranks).reshape(-1).tolist() == right.tolist()
    rote.clear_caches()


@given(st.one_of(pairs(), pairs_across()))
def test_pairs_have_the_elements_of_the_table(ends):
    """Law: so has each pair of coordinates."""
    for part in movement(*ends).parts:
        table = sizes(*part.factor.sides)
        elements, pairs = part.factor.pairs.met(dict(enumerate(np.indices(part.factor.parts, sparse=True))))
        assert np.array_equal(elements, table) and np.array_equal(pairs, table > 0)


@given(st.lists(RUNS, min_size=1, max_size=3), st.lists(RUNS, min_size=1, max_size=3), st.integers(0, 200), st.data())
def test_intervals_are_the_lattices_of_runs(before, after, n, data):
    """Law: the intervals of nested runs have the coordinates and local indices of all elements, each in its place."""
    ends = []
    for kinds in (before, after):
        grid = [data.draw(st.integers(2, 5)) for _ in kinds]
        text = ",".join(f"{g}:{kind}" for g, kind in enumerate(kinds))
        ends.append(rote.parse(f"[({text})]").on((n,), grid))
    (part,) = movement(*ends).parts
    sides = part.factor.sides
    found = intervals(*sides)
    assert found is not None and len(found) <= n
    if n:
        rows = [table for _, table in Lattice.listing([*found]).rows]
        (at, local), (other_at, other_local) = (one_by_one(side, {0: n}) for side in sides)
        assert np.array_equal(rows, [*at, *other_at, *local, *other_local])
        for side, number in ((0, 0), (1, len(before))):
            for k in range(len(found)):
                place = found.rows[number : number + len(found.shapes[side]), k]
                assert k in found.near(side, place.tolist())


@given(st.one_of(pairs(), pairs_across()))
def test_proofs_by_digits_count_the_same(ends):
    """Law: a proof that lists no pairs of coordinates counts as one that lists them all."""
    step = rote.compiler.rules.one_step(*ends)
    if step is None:
        return
    counted = []
    for most, large in ((1 << 18, 1 << 12), (0, 0)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(proof, "_MANY", most)
            patch.setattr(proof, "_LARGE", large)
            rote.clear_caches()
            counted.append([each.tolist() for each in certificate._verify_step(step, np.dtype("f8"))])
    rote.clear_caches()
    assert counted[0] == counted[1]


def test_wrong_intervals_are_refused(monkeypatch):
    """Law: the proof refuses intervals that are shorter, elsewhere, or at another coordinate."""
    plan = plan_of("block(floor)[(0)] -> block(ceil)[(0)]", (1234,), (101,))
    (part,) = movement(plan.source, plan.target).parts
    found, rng = part.factor.lattices, random.Random(1)
    assert isinstance(found, Intervals) and overlaps_below(*part.factor.sides, FEW) is None
    certify(plan, figures(plan))
    for row in (-1, 0, 1, 2, 3):
        for _ in range(5):
            lengths, rows, k = found.lengths.copy(), found.rows.copy(), rng.randrange(len(found))
            line = lengths if row < 0 else rows[row]
            line[k] += -1 if line[k] > 0 else 1
            wrong = Intervals(lengths, rows, found.shapes)
            monkeypatch.setattr(Factor, "lattices", property(lambda self, wrong=wrong: wrong))
            rote.clear_caches()
            with pytest.raises(PlanError):
                certify(plan, None)
    rote.clear_caches()
