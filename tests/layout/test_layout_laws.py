"""Layouts and distributions agree with the definition: exhaustively when small, then by Hypothesis."""

from __future__ import annotations

from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from cases import all_layouts, kinds_for, later_kinds
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.vendor.pretty import pretty
from layout import definition
from marks import PARTS, examples
from parts import share
from strategies import distributions, layouts

import rote
from rote import L, block, cyclic, partial, root
from rote.errors import LayoutError
from rote.layout.grid import Grid, divisors
from rote.layout.view import from_tensor, to_tensor

NAMES = {"rote": rote, "L": L, "block": block, "cyclic": cyclic, "partial": partial, "root": root}


def check_text(layout):
    """parse(str(x)) == x and eval(repr(x)) == x; equal values hash alike."""
    again, code = rote.parse(str(layout)), eval(repr(layout), dict(NAMES))
    assert layout == again == code, (str(layout), repr(layout))
    assert hash(layout) == hash(again) == hash(code)
    assert str(again) == str(layout) and repr(again) == repr(layout)


def check_holdings(dist):
    """Local shapes and indices are those dealt out one by one; each index lies where `locate` says."""
    held = definition.held(dist.layout, dist.view_shape, dist.grid.shape)
    for rank, (at, lists) in enumerate(zip(definition.coordinates(dist.grid.shape), held, strict=True)):
        assert dist.grid.coordinates(rank) == at and dist.grid.rank(at) == rank
        assert dist.holds(rank) == definition.holds(dist.layout, at)
        if not lists and not dist.holds(rank):
            lists = [[]]  # the block of order 0 outside the root has one mode, of no index
        assert [index.tolist() for index in dist.indices(rank)] == lists, (dist, rank)
        assert [list(found) for found in dist.index_sets(rank)] == lists
        assert dist.local_shape(rank) == tuple(map(len, lists))
    for mode, n in enumerate(dist.view_shape):
        for at, cards in definition.hands(definition.chain(dist.layout.modes[mode], dist.grid.shape), n).items():
            coordinates, local = dist.locate(mode, np.array(cards, np.int64))
            assert local.tolist() == list(range(len(cards)))
            for entry, c in zip(dist.layout.modes[mode], at, strict=True):
                if dist.grid.shape[entry.grid_mode] > 1:
                    assert (coordinates[entry.grid_mode] == c).all()
    largest = tuple(max(len(lists[m]) for lists in held) for m in range(dist.order))
    assert dist.max_local_shape() == largest


def check_owners(dist):
    """Every element is owned by exactly its replicas: as many ranks as the layout leaves free, by definition."""
    grid, layout = dist.grid.shape, dist.layout
    split = {e.grid_mode for mode in layout.modes for e in mode} | {g for g, _ in layout.rooted}
    replicas = int(np.prod([p for g, p in enumerate(grid) if g not in split], dtype=int))
    for index, owners in definition.owners(layout, dist.view_shape, grid).items():
        assert dist.owners(index) == owners, (dist, index)
        assert len(owners) == replicas


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("grid", [(), (1,), (2,), (3,), (1, 2), (2, 2), (2, 3)], ids=str)
def test_every_small_layout(grid, part):
    """Layouts of order <= 2 on all grids <= 2x3, all kinds, extents <= 5: text, holdings, owners.

    All of them on grids of order 1, one in three on larger ones; of the rest of these, one in five.
    """
    shapes = [shape for order in (0, 1, 2) for shape in product(range(6), repeat=order)]
    world = [(shape, layout) for shape in shapes for layout in all_layouts(shape, grid)]
    seen = set()
    for shape, layout in share(world[:: 3 if len(grid) > 1 else 1], part, 31, of=5 if len(grid) > 1 else 1):
        dist = layout.on(shape, grid)
        assert dist.shape == dist.view_shape == shape
        check_holdings(dist)
        check_owners(dist)
        if layout not in seen:
            check_text(layout)
        seen.add(layout)
    assert len({str(layout) for layout in seen}) == len(seen)
    assert len(world) > {0: 40, 1: 600, 2: 15000}[len(grid)]


@pytest.mark.parametrize("part", PARTS)
def test_every_small_layout_of_rounded_blocks_and_offsets(part):
    """The same for blocks that are rounded and tiles from another coordinate on, in each other and in other kinds."""
    worlds = [
        (shape, (2, 3), lambda parts, _: later_kinds(parts)) for shape in ((0,), (1,), (2,), (5,), (8,), (5, 4), (0, 3))
    ]
    worlds += [((n,), (3, 2), kinds_for) for n in (1, 7)]
    cases = [
        (shape, grid, layout)
        for shape, grid, kinds in worlds
        for layout in all_layouts(shape, grid, kinds, rest=("replicated",))
    ]
    assert len(cases) > 400
    for shape, grid, layout in share(cases, part, 5):
        check_holdings(layout.on(shape, grid))
        check_owners(layout.on(shape, grid))
        check_text(layout)


@settings(max_examples=examples(150))
@given(distributions())
def test_every_layout(dist):
    """The same for mixed kinds, views, partial and rooted layouts, on grids of order up to 3."""
    check_text(dist.layout)
    check_holdings(dist)
    assert dist.view_shape == definition.view_shape(dist.layout, dist.shape)
    if int(np.prod(dist.view_shape)) <= 60:
        check_owners(dist)


@settings(max_examples=examples(150))
@given(distributions())
def test_views_read_digits(dist):
    """A view reads element by element what joining and taking apart digits says, and back."""
    if 0 in dist.shape:
        return
    for index in list(product(*map(range, dist.shape)))[:200]:
        view_index = definition.view_index(dist.layout, dist.shape, index)
        tensor = {m: np.array(i) for m, i in enumerate(index)}
        assert tuple(int(from_tensor(digits, tensor)) for digits in dist.digits) == view_index
        back = dict.fromkeys(range(len(index)), 0)
        for digits, i in zip(dist.digits, view_index, strict=True):
            for m, added in to_tensor(digits, np.array(i)).items():
                back[m] += int(added)
        assert tuple(back.values()) == index


@settings(max_examples=examples(150))
@given(distributions())
def test_scatter_is_the_definition_and_gather_its_inverse(dist):
    """Blocks of an array of distinct numbers hold what is defined; gathered, they are the array."""
    array, blocks = definition.numbered(dist.layout, dist.shape, dist.grid.shape)
    found = rote.simulate.scatter(array, dist)
    for rank, (block_, right) in enumerate(zip(found, blocks, strict=True)):
        assert block_.shape == right.shape and np.array_equal(block_, right), (dist, rank)
        assert block_.flags.c_contiguous and not np.shares_memory(block_, array)
    assert np.array_equal(rote.simulate.gather(found, dist), array)
    summed, parts = definition.contribute(dist.layout, dist.shape, dist.grid.shape, np.random.default_rng(1))
    assert np.array_equal(rote.simulate.gather(parts, dist), summed)
    assert definition.wrong(dist.layout, dist.grid.shape, parts, summed) == ""


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u4", "i8", "u8", "f4", "f8", "g", "c8", "c16", "G"])
@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
def test_blocks_keep_the_dtype(dtype, op):
    """Of any dtype: a partial distribution's other contributors hold, in the same dtype, what its operation ignores."""
    if dtype in ("c8", "c16", "G") and op in ("max", "min"):
        return  # complex numbers have none
    dist = (L(0) + partial(1, op=op)).on(5, (2, 2))
    array = np.array([1, 0, 1, 1, 0]).astype(dtype)
    blocks = rote.simulate.scatter(array, dist)
    assert [block_.dtype for block_ in blocks] == [array.dtype] * 4
    assert rote.simulate.gather(blocks, dist).dtype == array.dtype
    assert np.array_equal(rote.simulate.gather(blocks, dist), array)


def test_the_definition_can_tell_a_wrong_block():
    """The comparison that all tests stand on names a strayed element, and a block of a wrong shape."""
    layout = rote.parse("[(0),()]")
    array, blocks = definition.numbered(layout, (4, 3), (2,))
    assert definition.wrong(layout, (2,), blocks, array) == ""
    assert "not (2, 3)" in definition.wrong(layout, (2,), [blocks[0][:1], blocks[1]], array)
    blocks[1][1, 2] = 4
    assert "hold 4, not 13, at (1, 2)" in definition.wrong(layout, (2,), blocks, array)


def chains(depth):
    """Every mode of at most two entries of kinds that are legal on every extent."""
    entries = [
        f(*args) for g in (0, 1) for f, args in ((cyclic, (g,)), (cyclic, (g, 2)), (cyclic, (g, 3)), (block, (g,)))
    ]
    entries += [entry for g in (0, 1) for entry in (block(g, "ceil"), block(g, "floor"), cyclic(g, at=1))]
    found = [()] + [(e,) for e in entries]
    return found + [(a, b) for a in entries for b in entries if a.grid_mode != b.grid_mode and depth > 1]


def inside(finer, coarser, shapes, grids):
    """Whether on all these shapes and grids every rank holds under `finer` only what it holds under `coarser`."""
    for grid in grids:
        for shape in shapes:
            ours, theirs = (definition.held(layout, shape, grid) for layout in (finer, coarser))
            for mine, wide in zip(ours, theirs, strict=True):
                elements = len(mine) and prod(map(len, mine))
                if elements and any(not set(a) <= set(b) for a, b in zip(mine, wide, strict=True)):
                    return False
    return True


def test_prefix_is_subset():
    """a is a prefix of b <=> on every shape and grid a rank's indices under b are among those under a.

    => holds for all kinds. <= needs kinds that are legal on every extent: `block(b)` and `cyclic(b)` hold the same
    wherever both are legal. It also needs more than one grid: digits may commute on one ([(0)] and [(1:cyclic(2),0)]
    when grid mode 0 has 2 coordinates). Grids 2x3, 3x2 and extents up to 14 tell all these layouts apart.
    """
    grids, shapes = ((2, 3), (3, 2)), [(n,) for n in range(14, 0, -1)]
    found = [L(mode) for mode in chains(2)] + [L(mode) | root(1, at) for mode in chains(1)[:5] for at in (0, 1)]
    prefixes = 0
    for a, b in product(found, repeat=2):
        assert a.is_prefix_of(b) == inside(b, a, shapes, grids), (a, b)
        prefixes += a.is_prefix_of(b)
    assert len(found) < prefixes < len(found) ** 2 / 10


def test_prefix_is_subset_in_two_modes():
    """The same law for order 2, where a grid mode may refine either mode."""
    grids, shapes = ((2, 3), (3, 2)), [(5, 4), (7, 7), (2, 9), (12, 13)]
    ones = [mode for mode in chains(1) if not mode or mode[0] in (cyclic(0), block(1), block(0))]
    found = [L(a, b) for a, b in product(ones, repeat=2) if not (a and b and a[0].grid_mode == b[0].grid_mode)]
    found += [L((cyclic(0), block(1)), ()), L((), (cyclic(0), block(1)))]
    for a, b in product(found, repeat=2):
        assert a.is_prefix_of(b) == inside(b, a, shapes, grids), (a, b)


def test_a_prefix_holds_more_for_all_kinds():
    """Dropping the last entries of a mode only merges what ranks own, for all kinds, on uneven and empty shapes."""
    grid, checked = (2, 3), 0
    for n in (0, 1, 5, 7):
        for layout in all_layouts((n,), grid, kinds_for, rest=("replicated",)):
            for keep in range(len(layout.modes[0])):
                shorter = L(layout.modes[0][:keep])
                assert shorter.is_prefix_of(layout) and not layout.is_prefix_of(shorter)
                assert inside(layout, shorter, [(n,)], [grid])
                checked += 1
    assert checked > 300


def test_what_is_no_prefix():
    """Another view, operation, set of contributors or order is never a prefix, whatever the entries."""
    for a, b in combinations(
        ["[(0)]", "[(0)]+(1)", "[(0)]+max(1)", "[(0),()]", "(r s=2): [(0),()]", "(a b): [(0)]"], 2
    ):
        assert not rote.parse(a).is_prefix_of(rote.parse(b)) and not rote.parse(b).is_prefix_of(rote.parse(a))


@given(layouts())
def test_algebra(layout):
    """drop undoes split; move is drop, then split; whole drops a mode's entries; what is split is a prefix."""
    free = max(layout.grid_modes, default=-1) + 1
    for m in range(layout.order):
        finer = layout.split(m, block(free))
        assert finer.drop(free) == layout and layout.is_prefix_of(finer) and not finer.is_prefix_of(layout)
        bare = layout
        for entry in layout.modes[m]:
            bare = bare.drop(entry.grid_mode)
        assert layout.whole(m) == bare and bare.modes[m] == ()
        for entry in (e for mode in layout.modes for e in mode):
            assert layout.move(entry.grid_mode, to=m) == layout.drop(entry.grid_mode).split(m, entry)
    for g in layout.grid_modes:
        assert g not in layout.drop(g).grid_modes
    transition = layout >> layout
    assert rote.parse_transition(str(transition)) == transition == (layout >> str(layout))
    assert eval(repr(transition), dict(NAMES)) == transition


@pytest.mark.parametrize(
    "text, code",
    [
        ("[(0),(),(1)]", "L((0), (), (1))"),
        ("[(0,1),()]", "L((0, 1), ())"),
        ("[()(0)]", "L((), 0)"),
        ("[(0:block),(),(1:cyclic(4))]", "L(block(0), (), cyclic(1, 4))"),
        ("block[(0),(1),()]", "L((0), (1), (), kind='block')"),
        ("cyclic(4)[(0),(1:block)]", "L(0, block(1), kind='cyclic(4)')"),
        ("block[(0:block(3,5,2)),(1:block(4))]", "L(block(0, 3, 5, 2), block(1, 4))"),
        ("[(0),()]|(1)", "L((0), ()) | root(1)"),
        ("[(0),()]|(1@2)", "L((0), ()) | root(1, at=2)"),
        ("[(0),()]+(1)", "L((0), ()) + partial(1)"),
        ("[(0),()]+max(1,2)|(3)", "L((0), ()) + partial(2, 1, op='max') | root(3)"),
        ("a (r s=4): [(),(0),()]", "L((), (0), (), view='a (r s=4)')"),
        ("(a b) c: block[(0),()]", "L((0), (), kind='block', view='(a b) c')"),
        ("[(0, 1), ()] + (3)", "(L((0, 1), ()) + partial(3))"),
        ("[]", "L()"),
        ("a b: [(0),()]", "L((0), ())"),
    ],
)
def test_text_and_code_say_the_same(text, code):
    """A layout in Python equals the layout in text, prints alike and shares its hash."""
    layout = eval(code, dict(NAMES))
    assert rote.parse(text) == layout and hash(rote.parse(text)) == hash(layout)
    check_text(layout)
    assert repr(layout) == f"rote.parse({str(layout)!r})"
    assert repr(layout >> layout) == f"rote.parse_transition('{layout} -> {layout}')"
    for value in (layout, layout >> layout, Grid((2, 3)), rote.parse("block[(0),()]").on((5, 3), (2,))):
        assert pretty(value) == repr(value)  # as Hypothesis and IPython print it


def test_a_block_has_as_many_modes_as_indices():
    """The block of an empty scalar outside its root is of shape (0,), and has one list of indices, which is empty."""
    for text, grid in (("[]|(0@1)", (3,)), ("[]|(0,1@1)", (2, 2)), ("[]+(0)|(1)", (2, 2)), ("[]", (2,))):
        dist = rote.parse(text).on((), grid)
        blocks = rote.simulate.scatter(np.array(7.0), dist)
        for rank, block_ in enumerate(blocks):
            shape = () if dist.holds(rank) else (0,)
            assert block_.shape == dist.local_shape(rank) == shape, (text, rank)
            assert dist.indices(rank) == () if dist.holds(rank) else [*map(len, dist.indices(rank))] == [0]
            assert dist.tensor_indices(rank) == ()
        assert rote.simulate.gather(blocks, dist) == 7.0
    check_distribution = eval(repr(rote.parse("block[(0),()]").on((5, 3), (2,))), {"rote": rote})
    assert check_distribution == rote.parse("block[(0),()]").on((5, 3), 2)


def test_values_are_canonical_at_birth():
    """A view that changes nothing and an operation over no grid mode are not kept; orders of sets do not matter."""
    from rote.grammar.nodes import Name
    from rote.layout.layout import Layout
    from rote.layout.view import View

    assert Layout(((), ()), View((Name("x"), Name("y")))) == L((), ())
    assert Layout(((), ()), View((Name("y"), Name("x")))) != L((), ())
    assert Layout(((),), op="max") == L(())
    assert L(()) + partial(2, 1) == L(()) + partial(1) + partial(2)
    assert L(()) | root(2) | root(1, at=1) == rote.parse("[()]|(1@1,2)")


def test_grids_number_ranks_row_major():
    """Coordinates and ranks are inverse, the last grid mode fastest; `of` balances like MPI_Dims_create."""
    for shape in ((), (1,), (3,), (2, 3), (3, 1, 2)):
        grid = Grid(shape)
        assert [grid.coordinates(r) for r in range(grid.size)] == definition.coordinates(shape)
        assert [grid.rank(at) for at in definition.coordinates(shape)] == list(range(grid.size))
        assert eval(repr(grid), {"Grid": Grid}) == grid
    for n, order in product(range(1, 37), (1, 2, 3)):
        shape = Grid.of(n, order).shape
        assert int(np.prod(shape)) == n and len(shape) == order and list(shape) == sorted(shape, reverse=True)
        assert (
            shape[0] == min(max(s) for s in product(range(1, n + 1), repeat=order) if int(np.prod(s)) == n)
            if n <= 12
            else True
        )
    assert Grid.of(1, 0).shape == () and str(Grid((2, 3))) == "2x3" and str(Grid(())) == "()"


ERRORS = {
    "order": (lambda: rote.parse("[(0),()]").on((4,), (2,)), "for tensors of order 2, but the shape is (4,)"),
    "grid mode": (lambda: rote.parse("[(1)]").on((4,), (2,)), "names grid mode 1, but the grid 2 has order 1"),
    "root": (lambda: rote.parse("[()]|(0@2)").on((4,), (2,)), "rooted at coordinate 2, but grid mode 0 has 2"),
    "block too small": (lambda: rote.parse("block(3)[(0)]").on((7,), (2,)), "write block(4) or more"),
    "block inside": (
        lambda: rote.parse("[(0,1:block(1))]").on((7,), (2, 3)),
        "over 3 ranks holds 3 indices, but 4 must",
    ),
    "sizes": (
        lambda: rote.parse("block(3,5)[(0)]").on((7,), (2,)),
        "of 8 indices in all, but 7 indices must be placed",
    ),
    "parts": (lambda: rote.parse("block(3,4)[(0)]").on((7,), (3,)), "2 parts of 7 indices in all, but 7 indices"),
    "tile": (lambda: rote.parse("(r s=4): [(),(0)]").on((10,), (2,)), "(r s=4) does not divide; 8 or 12 would"),
    "exact tile": (lambda: rote.parse("(r=2 s=4): [(),(0)]").on((10,), (2,)), "(r=2 s=4) does not divide; 8 would"),
    "negative": (lambda: rote.parse("[()]").on((-1,), (2,)), "extents of a shape are 0 or more, not (-1,)"),
    "no shape": (lambda: rote.parse("[()]").on("ab", (2,)), "a shape is made of integers, not 'ab'"),
    "empty grid": (lambda: Grid((2, 0)), "at least one process along each mode, not (2, 0)\nwrite Grid((2, 3))"),
    "no grid": (lambda: Grid.of(4, 0), "4 processes make no grid of order 0"),
    "rank": (lambda: Grid((2, 3)).coordinates(6), "grid 2x3 has ranks 0 to 5, not 6"),
    "coordinates": (lambda: Grid((2, 3)).rank((0, 3)), "grid 2x3 has no coordinates (0, 3)"),
    "index": (lambda: rote.parse("[()]").on((4,), (2,)).owners((4,)), "(4,) is no index of a tensor of shape (4,)"),
    "index of a view": (
        lambda: rote.parse("(a b): [(0)]").on((3, 4), (2,)).owners((2, 3)),
        "(2, 3) is no index of the view of shape (12,) by which (a b): [(0)] reads a tensor of shape (3, 4)",
    ),
    "negative index": (lambda: rote.parse("[()]").on((4,), (2,)).owners((-1,)), "(-1,) is no index"),
    "text": (lambda: rote.Layout("[(0)]"), "not text\nwrite rote.parse('[(0)]')"),
    "twice": (lambda: L(0, 0), "grid mode 0 is used twice in [(0),(0)]; use each at most once"),
    "partial twice": (lambda: L(0) + partial(0), "grid mode 0 is used twice"),
    "rooted twice": (lambda: L(0) | root(0), "grid mode 0 is used twice"),
    "two operations": (lambda: L(0) + partial(1) + partial(2, op="max"), "partial under one operation"),
    "operation": (lambda: partial(0, op="mean"), "reduces by sum, max, min or prod, not 'mean'"),
    "below": (lambda: L(-1), "a grid mode is a number from 0 to 63, not -1"),
    "above": (lambda: L(64), "a grid mode is a number from 0 to 63, not 64"),
    "negative root": (lambda: L(()) | root(0, -1), "the coordinate of a root is 0 or more"),
    "view": (lambda: L((), (), view="(a b)"), "view"),
    "no number": (lambda: L("0"), "a mode is split over grid modes, which are numbers; not '0'"),
    "zero tile": (lambda: cyclic(0, 0), "the sizes of cyclic are integers of at least 1, below 2**63, not (0,)"),
    "zero block": (lambda: L(block(0, 0)).on(4, 2), "block(0) over 2 ranks holds 0 indices, but 4 must be placed"),
    "negative part": (lambda: block(0, 3, -1), "integers of at least 0, below 2**63, not (3, -1)"),
    "move": (lambda: L(0).move(1, to=0), "[(0)] splits no mode over grid mode 1; use .split to add it"),
    "drop": (lambda: L(0).drop(1), "[(0)] does not name grid mode 1"),
    "split": (lambda: L(0).split(1, 1), "[(0)] has modes 0 to 0, not 1"),
    "whole": (lambda: L(0).whole(-1), "[(0)] has modes 0 to 0, not -1"),
    "orders": (lambda: L(0) >> L((), ()), "[(0)] is for tensors of order 1, [(),()] for order 2"),
    "no layout": (lambda: L(0) >> np.zeros(4), "not ndarray\nwrite its text, as 'block[(0),()]', or L((0), ())"),
    "two layouts": (lambda: L(0) >> "[()] -> [()]", "one layout is expected here"),
    "scatter": (
        lambda: rote.simulate.scatter(np.zeros(3), L(0).on(4, 2)),
        "the array has shape (3,), the distribution (4,)",
    ),
    "gather": (
        lambda: rote.simulate.gather([np.zeros(2)] * 3, L(0).on(4, 2)),
        "grid 2 has 2 ranks, but there are 3 blocks",
    ),
    "block": (
        lambda: rote.simulate.gather([np.zeros(3)] * 2, L(0).on(4, 2)),
        "rank 0 holds a block of (2,) in [(0)] on (4,)",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_is_wrong(case):
    """Each rule refuses with its own text: rule, culprit, and what to write where there is a cure."""
    call, text = ERRORS[case]
    with pytest.raises((LayoutError, rote.NotationError)) as caught:
        call()
    assert text in str(caught.value), str(caught.value)


def test_operators_refuse_strangers():
    """Only a partial is added to a layout, only a root is joined to it."""
    for wrong in (lambda: L(0) + 1, lambda: L(0) | 1, lambda: L(0) + root(1), lambda: L(0) | partial(1)):
        with pytest.raises(TypeError):
            wrong()


@pytest.mark.parametrize(
    "make",
    [
        lambda: rote.L(64),
        lambda: rote.L(-1),
        lambda: rote.L(*((),) * 65),
        lambda: rote.L(()) | rote.root(0, at=2**63),
        lambda: rote.L(()) | rote.root(0, at=-1),
        lambda: rote.L(rote.cyclic(0, 2**63)),
        lambda: rote.L(rote.block(0, 2**63)),
    ],
)
def test_a_layout_says_only_what_a_text_can_say(make) -> None:
    """Every layout prints as a text that parses back: what no text may say is refused in Python as well."""
    with pytest.raises(rote.LayoutError):
        make()


def test_each_text_has_its_door():
    """`parse` reads layouts, `parse_transition` transitions; each refuses what the other reads, and names the other."""
    source, target = rote.parse("[(0),()]"), rote.parse("block[(),(0)]")
    assert isinstance(source, rote.Layout) and type(source >> target) is rote.Transition
    assert rote.parse_transition("[(0),()] -> block[(),(0)]") == (source >> target)
    with pytest.raises(rote.NotationError) as caught:
        rote.parse("[(0),()] -> block[(),(0)]")
    assert str(caught.value) == (
        "one layout is expected here, not a transition\n    [(0),()] -> block[(),(0)]\n             ^\n"
        "write the layout alone; rote.parse_transition reads A -> B"
    )
    for refused in (rote.parse_transition, lambda text: rote.compile(text, shape=(4, 4), grid=2)):
        with pytest.raises(rote.NotationError) as caught:
            refused("[(0),()] ")
        assert str(caught.value) == (
            "this is one layout, and transitions go from one layout to another\n    [(0),()] \n            ^\n"
            "write A -> B; rote.parse reads one layout"
        )
    for door in (rote.parse, rote.parse_transition):
        with pytest.raises(rote.NotationError, match="brackets of the modes are not closed"):
            door("[(0),() -> [()]")


@given(st.one_of(st.integers(1, 5000), st.sampled_from([2**40 - 1, 2**62, 1009**6, 3 * 1_000_000_007])))
def test_divisors_are_those_of_a_sweep(n):
    """Law: divisors ascend, divide, and come in pairs; up to 5000, they are all numbers that divide."""
    found = divisors(n)
    assert [n // d for d in found] == [*reversed(found)] and sorted({*found}) == [*found]
    if n <= 5000:
        assert [*found] == [d for d in range(1, n + 1) if n % d == 0]
