"""How planning and proving grow with the number of ranks: counted in calls and in bytes, never in seconds."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from effort import calls
from hypothesis import given
from hypothesis import strategies as st
from marks import PARTS
from parts import share

import rote
from rote.compiler import overlaps
from rote.compiler.movement import Movement
from rote.compiler.peers import RECEIVES, SENDS, PeerRule
from rote.compiler.verify import certificate

# Transitions over one long grid mode. No component is split by it on both sides, or nothing moves along it.
ALONG_ONE_GRID_MODE = {
    "transpose": "[(0),()] -> [(),(0)]",
    "transpose of blocks": "block[(0),()] -> block[(),(0)]",
    "gather everywhere": "[(0),()] -> [(),()]",
    "slice": "[(),()] -> block[(0),()]",
    "reduce and split": "[(),()]+(0) -> block[(0),()]",
    "reduce everywhere": "[(),()]+(0) -> [(),()]",
    "reduce to a root": "[(),()]+(0) -> [(),()]|(0@1)",
    "deal out": "[(),()]|(0) -> block[(0),()]",
    "fill up": "[(0),()] -> [(),()]+(0)",
}


def planned(text, ranks):
    rote.compile(text, shape=(8191, 8193), grid=(ranks,)).verify()


def bytes_at_once(text, ranks):
    """The most bytes that are allocated while a transition is planned and proved."""
    rote.clear_caches()
    tracemalloc.start()
    try:
        planned(text, ranks)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("part", PARTS)
def test_memory_does_not_grow_as_the_square_of_the_ranks(part):
    """Law: four times the ranks along one grid mode take less than eight times the bytes: there is no table."""
    for text in share(ALONG_ONE_GRID_MODE.values(), part, 1):
        planned(text, 8)
        few, many = (bytes_at_once(text, ranks) for ranks in (256, 1024))
        assert many < 8 * few, text


def test_a_slice_looks_at_its_own_part_alone():
    """Law: where each rank meets only itself, calls grow in proportion to the ranks, and not to their square."""
    counts = []
    for ranks in (64, 512):
        planned("[(),()] -> block[(0),()]", 8)
        rote.clear_caches()
        counts.append(calls(lambda ranks=ranks: planned("[(),()] -> block[(0),()]", ranks)))
    assert counts[1] < 9 * counts[0]


@st.composite
def rules(draw):
    number = draw(st.integers(1, 6))
    one = st.none() | st.integers(0, number - 1)
    return PeerRule(number, draw(one), draw(one), draw(st.booleans()))


@given(rules())
def test_a_rule_is_its_table(rule):
    """Law: counts, peers and the diagonal of a rule are those of the table of all pairs, which no plan makes."""
    table = rule.table(range(rule.number))
    assert rule.itself().tolist() == table.diagonal().tolist()
    assert rule.counts(SENDS).tolist() == table.sum(axis=1).tolist()
    assert rule.counts(RECEIVES).tolist() == table.sum(axis=0).tolist()
    for c in range(rule.number):
        assert [*rule.peers(c, SENDS)] == np.flatnonzero(table[c]).tolist()
        assert [*rule.peers(c, RECEIVES)] == np.flatnonzero(table[:, c]).tolist()
    assert not rule.everywhere or table.all()


def test_too_many_pieces_are_an_error_that_says_what_to_do(monkeypatch):
    """Law: tiles that make more pieces than memory should hold are refused with a cure, before they are made."""
    monkeypatch.setattr(overlaps, "_MOST", 2000)
    ends = [rote.parse(text).on((2**40 - 1,), (64, 64)) for text in ("[(0,1:cyclic(7,at=9))]", "[(1:cyclic(11),0)]")]
    rote.clear_caches()
    with pytest.raises(rote.PlanError, match="more than 2000 pieces\\nwrite tiles or extents that divide each other"):
        rote.compile(*ends)
    rote.clear_caches()


@pytest.mark.parametrize("text", ALONG_ONE_GRID_MODE.values(), ids=ALONG_ONE_GRID_MODE)
def test_messages_between_some_pairs_prove_a_large_world(text, monkeypatch):
    """Law: the proof of a large world accepts a right plan, and refuses one whose messages are lost."""
    plan = rote.compile(text, shape=(60, 70), grid=(12,))
    monkeypatch.setattr(certificate, "WHOLE", 11)
    plan.verify()
    messages = Movement.messages
    monkeypatch.setattr(Movement, "messages", lambda *asked: [] if asked[2] == RECEIVES else messages(*asked))
    with pytest.raises(rote.PlanError, match="receives 0 messages"):
        plan.verify()
