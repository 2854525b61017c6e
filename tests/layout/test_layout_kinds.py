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
    yield Kind("block", (0,))
    for b in (1, 2, 3, 5, 20):
        yield Kind("cyclic", (b,))
        yield Kind("block", (b,))
    if p > 1:
        yield Kind("block", (n, *(0,) * (p - 1)))
        yield Kind("block", (*(0,) * (p - 1), n))
        yield Kind("block", (n // 3, *(0,) * (p - 2), n - n // 3))


CASES = [(kind, p, n) for p in PARTS for n in EXTENTS for kind in all_kinds(p, n)]
LEGAL = [(kind, p, n) for kind, p, n in CASES if legal(kind.name, kind.sizes, p, n)]


def test_split_is_dealing():
    """The coordinate is who was dealt the index; the local index is how many that one was dealt before."""
    for kind, p, n in LEGAL:
        players = deal(kind.name, kind.sizes, p, n)
        before = [players[:i].count(c) for i, c in enumerate(players)]
        coordinate, local = kinds.split(kind, p, n, np.arange(n))
        assert (coordinate.tolist(), local.tolist()) == (players, before), (kind, p, n)


def test_extent_and_positions_are_the_hands_dealt():
    """A coordinate's extent is the size of its hand, its positions are the cards in it."""
    for kind, p, n in LEGAL:
        dealt = hands(((kind.name, kind.sizes, p),), n)
        extents = kinds.extent(kind, p, n, np.arange(p))
        for c in range(p):
            found = kinds.local_positions(kind, p, n, c)
            assert list(found) == dealt[c,] and len(found) == extents[c], (kind, p, n, c)


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
        for kind in (Kind("block"), Kind("cyclic", (1,)), Kind("cyclic", (3,))):
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
        if legal(kind.name, kind.sizes, p, n):
            kinds.check(kind, p, n)
        else:
            refused += 1
            with pytest.raises(LayoutError):
                kinds.check(kind, p, n)
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
        kinds.check(kind, p, n)
