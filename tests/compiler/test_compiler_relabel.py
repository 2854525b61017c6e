"""Relabelling is exact: against all permutations, against exchanges of pairs, and against what really travels."""

from __future__ import annotations

import sys
from itertools import permutations

import numpy as np
import pytest
from cases import factorings, pick_grid, pick_layout, pick_shape
from hypothesis import given, settings
from hypothesis import strategies as st
from layout import definition

import rote
from rote.compiler.movement import movement
from rote.compiler.relabel import assign, common_elements

ITEM = 8


def kept(common, ranks):
    """The elements that stay where they are if `ranks[r]` plays rank r."""
    return sum(int(common[s][r]) for r, s in enumerate(ranks))


def exchanged(common):
    """COSTA's greedy choice: pairs of ranks change places, the most gainful first, each rank at most once."""
    size = len(common)
    gains = [
        (int(common[s][r] + common[r][s] - common[s][s] - common[r][r]), s, r) for s in range(size) for r in range(s)
    ]
    ranks, free = list(range(size)), set(range(size))
    for gain, s, r in sorted(gains, reverse=True):
        if gain > 0 and {s, r} <= free:
            ranks[s], ranks[r] = r, s
            free -= {s, r}
    return tuple(ranks)


def best(common):
    """By trying all: the most that can stay, and the most ranks that can keep their numbers then."""
    return max((kept(common, ranks), stay(ranks)) for ranks in permutations(range(len(common))))


def stay(ranks):
    return sum(r == s for r, s in enumerate(ranks))


@st.composite
def ends(draw):
    """Two distributions of one tensor on one number of ranks, on one grid or on two."""

    def pick(options):
        return draw(st.sampled_from(options))

    grid, shape = pick_grid(pick), pick_shape(pick)
    other = pick([grid, pick(factorings(int(np.prod(grid)), 2))])
    found = []
    for p in (grid, other):
        layout = pick_layout(pick, shape, p)
        found.append(rote.Layout(layout.modes, layout.view, "sum", (), layout.rooted).on(shape, p))
    return tuple(found)


def blocks(dist):
    """Per rank, the flat indices of its elements, by definition."""
    return definition.block_indices(dist.layout, dist.shape, dist.grid.shape)


# --- the assignment ---------------------------------------------------------------------------------------------------


def test_a_cycle_of_three():
    """Three blocks in a ring all come to rest; an exchange of a pair brings one home, and two travel."""
    ring = 5 * np.roll(np.eye(3, dtype=np.int64), 1, axis=1)
    assert (kept(ring, range(3)), kept(ring, exchanged(ring)), kept(ring, assign(ring))) == (0, 5, 15)


@given(st.integers(1, 6), st.data())
def test_no_permutation_is_better(size, data):
    """Law: what stays is the most over all permutations, and then the fewest ranks change their numbers.

    So no numbers are worse than the present ones, and those are kept if they are as good.
    """
    most = data.draw(st.sampled_from([1, 2, 9, 1000]))
    row = st.lists(st.integers(0, most), min_size=size, max_size=size)
    common = np.array(data.draw(st.lists(row, min_size=size, max_size=size)), np.int64)
    found = assign(common)
    assert sorted(found) == list(range(size)) and all(type(rank) is int for rank in found)
    assert (kept(common, found), stay(found)) == best(common)
    assert kept(common, found) >= kept(common, exchanged(common))


def test_exact_for_large_blocks():
    """Law: sums that differ by one element are told apart, however large they are; or the error says that they are not.

    The tie is broken too while that is exact; beyond, the present numbers are kept wherever they are as good.
    """
    rng = np.random.default_rng(3)
    for bits in (20, 40, 44, 45, 46, 47):
        for _ in range(40):
            common = 2**bits + rng.integers(-1, 2, (4, 4))
            found = assign(common)
            assert kept(common, found) == best(common)[0]
            assert bits > 46 or stay(found) == best(common)[1]
            assert found == (0, 1, 2, 3) or kept(common, found) > kept(common, range(4))
    with pytest.raises(rote.PlanError, match=r"too large to be compared exactly among 2 ranks\nrelabel for a smaller"):
        assign(np.array([[2**51, 1], [0, 2**51 - 1]]))
    assert assign(2**60 * np.array([[0, 1], [1, 1]])) == (1, 0)  # their common divisor does not matter


# --- between distributions --------------------------------------------------------------------------------------------


def test_cycles_between_layouts():
    """On a grid of 2x4, the transposed grid modes send blocks round two cycles of three: none need travel.

    Exchanges of pairs leave two of three travelling.
    """
    found = rote.relabel("block[(0,1)] -> block[(1,0)]", shape=8, grid=(2, 4))
    pairs = exchanged(common_elements(found.source, found.target))
    moved = 8 - kept(common_elements(found.source, found.target), pairs)
    assert (found.bytes_before, moved * ITEM, found.bytes, found.saved) == (6 * ITEM, 4 * ITEM, 0, 6 * ITEM)
    assert found.ranks == (0, 2, 4, 6, 1, 3, 5, 7)


@given(ends())
def test_common_elements_are_counted(pair):
    """Law: an entry is the number of elements that two blocks have in common, replicas and all."""
    before, after = (list(map(np.ravel, blocks(dist))) for dist in pair)
    common = [[len(np.intersect1d(a, b)) for b in after] for a in before]
    assert common_elements(*pair).tolist() == common


@given(ends())
def test_bytes_are_the_fewest(pair):
    """Law: bytes are what each rank lacks of the block that it plays; no numbering has fewer, and never more than none.

    Without new numbers they are those of the message matrix.
    """
    found = rote.relabel(*pair, dtype="f8")
    before, after = ([set(block.ravel().tolist()) for block in blocks(dist)] for dist in pair)

    def travel(ranks):
        return ITEM * sum(len(after[r] - before[s]) for r, s in enumerate(ranks))

    numbers = range(len(before))
    assert (found.bytes, found.bytes_before) == (travel(found.ranks), travel(numbers))
    assert found.saved >= 0 and (found.saved > 0) == (found.ranks != tuple(numbers))
    if len(before) <= 6:
        assert found.bytes == min(map(travel, permutations(numbers)))
    if pair[0].grid == pair[1].grid:
        matrix = movement(*pair).matrix()
        assert found.bytes_before == ITEM * int(matrix.sum() - matrix.trace())


@given(ends())
def test_the_messages_move_the_tensor(pair):
    """Law: `sends` and `receives` agree; each element of a rank's new block comes once, and `bytes` of them travel."""
    found = rote.relabel(*pair, dtype="i8")
    ranks, (before, after) = range(len(found.ranks)), map(blocks, pair)
    mail = {(rank, peer): before[rank][index] for rank in ranks for peer, index in found.sends(rank).items()}
    assert ITEM * sum(np.size(values) for (rank, peer), values in mail.items() if rank != peer) == found.bytes
    for rank in ranks:
        wanted = after[found.key(rank)]
        block, times = np.full(wanted.shape, -1), np.zeros(wanted.shape, int)
        for peer, index in found.receives(rank).items():
            values = mail.pop((peer, rank))
            assert np.shape(values) == np.shape(block[index])
            block[index] = values
            times[index] += 1
        assert np.array_equal(block, wanted) and (times == 1).all()
    assert mail == {}


@settings(max_examples=20)
@given(ends())
def test_on_ranks_that_run(pair):
    """Law: the new communicator's rank r is the old rank `ranks[r]`; the tensor moves there, by `bytes` in all."""
    found = rote.relabel(*pair, dtype="f8")
    source, target = pair
    array = np.random.default_rng(5).random(source.shape)

    def program(comm):
        block = definition.blocks(source.layout, source.grid.shape, array)[comm.rank]
        new = comm.split(0, found.key(comm.rank))
        wanted = definition.blocks(target.layout, target.grid.shape, array)[new.rank]
        out = np.empty_like(wanted)
        sends, receives = found.sends(comm.rank), found.receives(comm.rank)
        outgoing = {peer: block[index].reshape(-1) for peer, index in sends.items()}
        incoming = {peer: out[index].shape for peer, index in receives.items()}
        sent = [outgoing[peer].size if peer in outgoing else 0 for peer in range(comm.size)]
        into = [int(np.prod(incoming[peer])) if peer in incoming else 0 for peer in range(comm.size)]
        packed, arrived = np.concatenate([np.empty(0), *outgoing.values()]), np.empty(sum(into))
        comm.alltoallv(packed, sent, arrived, into)
        ends = np.cumsum([0, *into])
        for peer, index in receives.items():
            out[index] = arrived[ends[peer] : ends[peer + 1]].reshape(incoming[peer])
        travelled = ITEM * (sum(sent) - sent[comm.rank])
        return new.allgather_object(comm.rank), travelled, np.array_equal(out, wanted)

    played, travelled, right = zip(*rote.run(program, ranks=len(found.ranks)), strict=True)
    assert all(tuple(each) == found.ranks for each in played)
    assert sum(travelled) == found.bytes and all(right)


def test_replicas_count():
    """A rank keeps what any replica of its holds: all of a rank's part of a tensor that lies everywhere."""
    found = rote.relabel("[()] -> block[(0,1)]", shape=6, grid=(2, 3))
    assert (found.bytes, found.ranks) == (0, tuple(range(6)))


def test_the_root_moves_to_the_data():
    """A target on another root need not travel: the rank that holds it plays the root."""
    found = rote.relabel("[()]|(0@1) -> [()]|(0@2)", shape=5, grid=3)
    assert (found.bytes, found.bytes_before, found.ranks) == (0, 5 * ITEM, (0, 2, 1))


def test_two_grids_over_the_same_ranks():
    """A pencil on 2x3 becomes the same pencil on 3x2 with the modes exchanged: only numbers change."""
    source = rote.parse("block[(0),(1)]").on((4, 6), (2, 3))
    found = rote.relabel(source, rote.parse("block[(1),(0)]").on((4, 6), (3, 2)))
    assert (found.bytes, found.ranks) == (0, (0, 3, 1, 4, 2, 5))
    assert "on grid 2x3 -> 3x2: 0 B travel, not " in str(found)


# --- what it says -----------------------------------------------------------------------------------------------------


def test_bytes_are_of_the_dtype():
    """The same numbers for all dtypes, and bytes in proportion."""
    small, large = (
        rote.relabel("block[(0,1)] -> [(1,0)]", shape=11, grid=(2, 2), dtype=dtype) for dtype in ("f4", "c16")
    )
    assert small.ranks == large.ranks and small.dtype == np.dtype("f4")
    assert (4 * small.bytes, 4 * small.saved) == (large.bytes, large.saved)


def test_texts():
    """Bytes before and after, and who plays whom; that nothing can be saved; not all of very many ranks."""
    assert str(rote.relabel("[()]|(0) -> [()]|(0@1)", shape=5, grid=2)) == (
        "[()]|(0) -> [()]|(0@1) of (5,) float64 on grid 2: 0 B travel, not 40 B\n"
        "  ranks that play the target's ranks 0, 1, 2, …: 1, 0"
    )
    assert str(rote.relabel("[(0),()] -> [(),(0)]", shape=(4, 4), grid=2)) == (
        "[(0),()] -> [(),(0)] of (4, 4) float64 on grid 2: 64 B travel, and no other numbers of the ranks save any"
    )
    assert str(rote.relabel("block[(0,1)] -> block[(1,0)]", shape=32, grid=(4, 8))).endswith(
        ": 0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29, …"
    )


WRONG = {
    "partial source": (
        lambda: rote.relabel("block[(0)]+(1) -> block[(1)]", shape=4, grid=(2, 2)),
        r"the source block\[\(0\)\]\+\(1\) is partial: .*\nreduce it first, to block\[\(0\)\]",
    ),
    "partial target": (
        lambda: rote.relabel("[(0)] -> [()]+max(0)", shape=4, grid=2),
        r"the target \[\(\)\]\+max\(0\) is partial: .*\nrelabel instead into \[\(\)\]",
    ),
    "no grid": (lambda: rote.relabel("[(0)] -> [()]", shape=4), "give 'A -> B' with shape=… and grid=…"),
    "one layout": (lambda: rote.relabel(rote.L(0), shape=4, grid=2), "is no transition; write 'A -> B'"),
    "other shapes": (
        lambda: rote.relabel(rote.parse("[(0)]").on(4, 2), rote.parse("[(0)]").on(5, 2)),
        "a tensor keeps its shape",
    ),
    "other ranks": (
        lambda: rote.relabel(rote.parse("[(0)]").on(4, 2), rote.parse("[(0)]").on(4, 3)),
        "a plan stays on",
    ),
    "dtype": (lambda: rote.relabel("[(0)] -> [()]", shape=4, grid=2, dtype="f2"), "not float16"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name):
    """The rule, the culprit and the cure."""
    call, text = WRONG[name]
    with pytest.raises(rote.PlanError, match=text):
        call()


def test_no_such_rank():
    """A rank outside the grid is refused by all that take one."""
    found = rote.relabel("[(0)] -> [()]", shape=4, grid=2)
    for call in (found.key, found.sends, found.receives):
        with pytest.raises(rote.LayoutError, match="ranks 0 to 1, not 2"):
            call(2)


def test_a_partial_mode_of_one_coordinate_is_none():
    """There is nothing to reduce over a single coordinate."""
    assert rote.relabel("[(0)]+(1) -> [()]", shape=4, grid=(2, 1)).bytes == 4 * ITEM


def test_without_scipy(monkeypatch):
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(rote.PlanError, match="scipy, which is not installed; pip install scipy"):
        rote.relabel("[(0)] -> [()]", shape=4, grid=2)
