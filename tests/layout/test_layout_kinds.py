"""Kinds of splits: the arithmetic agrees with dealing indices out one by one."""

from __future__ import annotations

import re

import numpy as np
import pytest
from layout.definition import deal, hands, legal

from rote.errors import LayoutError
from rote.grammar.nodes import Kind
from rote.layout import kinds

PARTS = range(1, 6)
EXTENTS = range(13)


def all_kinds(p, n):
    """Every kind, and of the generalized blocks some lopsided ones and ones with empty parts."""
    yield Kind("block")
    yield Kind("ceil")
    yield Kind("floor")
    yield Kind("block", (0,))
    for at in (1, p - 1, p):
        yield Kind("cyclic", (1,), at)
        yield Kind("cyclic", (3,), at)
    for b in (1, 2, 3, 5, 20):
        yield Kind("cyclic", (b,))
        yield Kind("block", (b,))
    if p > 1:
        yield Kind("block", (n, *(0,) * (p - 1)))
        yield Kind("block", (*(0,) * (p - 1), n))
        yield Kind("block", (n // 3, *(0,) * (p - 2), n - n // 3))


CASES = [(kind, p, n) for p in PARTS for n in EXTENTS for kind in all_kinds(p, n)]
LEGAL = [(kind, p, n) for kind, p, n in CASES if legal(kind.name, kind.sizes, p, n, kind.at)]


def test_split_is_dealing():
    """The coordinate is who was dealt the index; the local index is how many that one was dealt before."""
    for kind, p, n in LEGAL:
        players = deal(kind.name, kind.sizes, p, n, kind.at)
        before = [players[:i].count(c) for i, c in enumerate(players)]
        coordinate, local = kinds.split(kind, p, n, np.arange(n))
        assert (coordinate.tolist(), local.tolist()) == (players, before), (kind, p, n)


def test_extent_and_positions_are_the_hands_dealt():
    """A coordinate's extent is the size of its hand, its positions are the cards in it."""
    for kind, p, n in LEGAL:
        dealt = hands(((kind.name, kind.sizes, p, kind.at),), n)
        extents = kinds.extent(kind, p, n, np.arange(p))
        for c in range(p):
            found = kinds.local_positions(kind, p, n, c)
            assert list(found) == dealt[c,] and len(found) == extents[c], (kind, p, n, c)


def test_stretches_are_the_hands_dealt():
    """Stretches follow each other up to n, and tile q of one is at coordinate `first + q mod parts`, cyclically."""
    for kind, p, n in LEGAL:
        every = kinds.stretches(kind, p, n)
        assert [0, *(each.stop for each in every)] == [*(each.start for each in every), n]
        dealt = [(s.first + i // s.tile % s.parts) % p for s in every for i in range(s.stop - s.start)]
        assert dealt == deal(kind.name, kind.sizes, p, n, kind.at), (kind, p, n)
        assert len(every) == 1 or all(s.stop - s.start == s.parts * s.tile for s in every), "several have one turn"
        assert sum(s.parts for s in every) <= p


def test_digit_formula():
    """Tiles of b: with q = l div b, the coordinate is q mod p, and (q div p)*b + l mod b stays."""
    for p in PARTS:
        for b in (1, 2, 3, 5):
            coordinate, local = kinds.split(Kind("cyclic", (b,)), p, 60, np.arange(60))
            for index in range(60):
                q = index // b
                assert (coordinate[index], local[index]) == (q % p, q // p * b + index % b)


def test_extents_may_be_arrays():
    """One question about many extents is the same as many questions: inner entries split what outer ones left."""
    for p in PARTS:
        found = Kind("block"), Kind("cyclic", (1,)), Kind("cyclic", (3,)), Kind("ceil"), Kind("floor")
        for kind in (*found, Kind("cyclic", (2,), p - 1)):
            n = np.repeat(np.arange(1, 13), 12)
            index = np.tile(np.arange(12), 12) % n
            together = kinds.split(kind, p, n, index)
            for k in range(len(n)):
                alone = kinds.split(kind, p, int(n[k]), index[k])
                assert [x[k] for x in together] == [int(x) for x in alone]
            c = np.arange(len(n)) % p
            assert kinds.extent(kind, p, n, c).tolist() == [
                int(kinds.extent(kind, p, int(n[k]), int(c[k]))) for k in range(len(n))
            ]


def test_check_refuses_exactly_what_cannot_be_dealt():
    """`check` answers for legal splits and raises for all others."""
    refused = 0
    for kind, p, n in [*CASES, *((Kind("block", (2, 3)), p, n) for p in PARTS for n in EXTENTS)]:
        if legal(kind.name, kind.sizes, p, n, kind.at):
            kinds.check_kind(kind, p, n)
        else:
            refused += 1
            with pytest.raises(LayoutError):
                kinds.check_kind(kind, p, n)
    assert refused > 100


@pytest.mark.parametrize(
    "kind, p, n, text",
    [
        (Kind("block", (3,)), 2, 7, "over 2 ranks holds 6 indices, but 7 must be placed; write block(4) or more"),
        (Kind("block", (3, 5)), 2, 7, "2 parts of 8 indices in all, but 7 indices must be placed on 2 ranks"),
        (Kind("block", (3, 4)), 3, 7, "2 parts of 7 indices in all, but 7 indices must be placed on 3 ranks"),
    ],
)
def test_refusals_state_rule_and_values(kind, p, n, text):
    """The text gives what the kind holds, what must be placed, and what to write."""
    with pytest.raises(LayoutError, match=re.escape(text)):
        kinds.check_kind(kind, p, n)


def test_rounded_blocks_are_their_sentences():
    """block(ceil): parts of ceil(n/p), as `torch.chunk` cuts; block(floor): part i is [i*n//p, (i+1)*n//p)."""
    for p, n in ((p, n) for p in range(1, 9) for n in range(40)):
        each = -(-n // p)
        chunks = [range(n)[c * each : (c + 1) * each] for c in range(p)]
        shares = [range(c * n // p, (c + 1) * n // p) for c in range(p)]
        for name, parts in (("ceil", chunks), ("floor", shares)):
            found = [kinds.local_positions(Kind(name), p, n, c) for c in range(p)]
            assert [list(part) for part in found] == [list(part) for part in parts], (name, p, n)


def test_an_offset_only_renames_coordinates():
    """cyclic(b,at=k) is cyclic(b) with every coordinate k further round: ScaLAPACK's RSRC."""
    for p, b, n in ((p, b, n) for p in PARTS for b in (1, 2, 5) for n in EXTENTS):
        for k in range(p):
            moved, plain = Kind("cyclic", (b,), k), Kind("cyclic", (b,))
            where, left = kinds.split(moved, p, n, np.arange(n))
            first, same = kinds.split(plain, p, n, np.arange(n))
            assert np.array_equal(where, (first + k) % p) and np.array_equal(left, same)
            for c in range(p):
                assert kinds.local_positions(moved, p, n, (c + k) % p) == kinds.local_positions(plain, p, n, c)


def test_large_extents_are_exact():
    """Parts, extents and positions agree with plain integers up to extents near 2**63, where products overflow."""
    for n in (2**40 + 7, 2**53 + 1, 2**62 - 1, 2**63 - 1):
        for p in (3, 7, 1000):
            for kind in (Kind("floor"), Kind("ceil"), Kind("cyclic", (2**40,), 2), Kind("block")):
                cuts = [kinds.local_positions(kind, p, n, c) for c in (0, 1, p // 2, p - 1)]
                for c, found in zip((0, 1, p // 2, p - 1), cuts, strict=True):
                    assert int(kinds.extent(kind, p, n, c)) == len(found)
                    if not found:
                        continue
                    ends = np.array([found.start, found.stop - 1])
                    where, left = kinds.split(kind, p, n, ends)
                    assert where.tolist() == [c, c] and left.tolist() == [0, len(found) - 1]


@pytest.mark.parametrize(
    "kind, p, text",
    [
        (
            Kind("cyclic", (4,), 2),
            2,
            "coordinate 2, but there are 2 coordinates, from 0 on; write at=1 or less, or cyclic(4)",
        ),
        (
            Kind("cyclic", (1,), 1),
            1,
            "cyclic(at=1) lies at coordinate 1, but there is 1 coordinate, from 0 on; write cyclic",
        ),
    ],
)
def test_a_first_tile_lies_on_the_grid(kind, p, text):
    """The coordinate of the first tile is one of the grid mode's, on one coordinate too."""
    with pytest.raises(LayoutError, match=re.escape(text)):
        kinds.check_kind(kind, p, 8)
