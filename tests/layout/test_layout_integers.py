"""Integers are exact at every door: what is equal to an integer, and hashes alike, is not taken for one."""

from __future__ import annotations

import pytest
from layout.integers import check_door

import rote
from rote import Grid, L, block, cyclic, parse, partial, root
from rote.errors import RoteError
from rote.grammar import ActionSyntax, Entry, Kind, LayoutSyntax, StageSyntax, Tile
from rote.layout.distribution import Distribution
from rote.layout.layout import Layout
from rote.layout.view import View

LAYOUT = L(0, (1, 2))
DIST = L(0, 1).on((4, 6), (2, 2))


# Every door that takes an integer, with 1 as an integer that it takes.
DOORS = {
    "L": lambda n: L(n),
    "L in a tuple": lambda n: L((0, n)),
    "block": lambda n: block(n),
    "block's size": lambda n: block(0, n),
    "block's sizes": lambda n: block(0, 3, n),
    "cyclic": lambda n: cyclic(n),
    "cyclic's size": lambda n: cyclic(0, n),
    "cyclic's first coordinate": lambda n: cyclic(0, 4, at=n),
    "partial": lambda n: partial(n),
    "partial of two": lambda n: partial(0, n),
    "root": lambda n: root(n),
    "root's coordinate": lambda n: root(0, at=n),
    "move": lambda n: LAYOUT.move(n, to=0),
    "move to": lambda n: LAYOUT.move(0, to=n),
    "drop": lambda n: LAYOUT.drop(n),
    "split": lambda n: LAYOUT.split(n, 3),
    "split over": lambda n: L(0).split(0, n),
    "whole": lambda n: LAYOUT.whole(n),
    "Layout's partial": lambda n: Layout(((),), partial=(n,)),
    "Layout's rooted": lambda n: Layout(((),), rooted=((n, 0),)),
    "Layout's root": lambda n: Layout(((),), rooted=((0, n),)),
    "Grid": lambda n: Grid((n, 2)),
    "Grid of one mode": lambda n: Grid(n),
    "Grid.of": lambda n: Grid.of(n, 2),
    "Grid.of an order": lambda n: Grid.of(4, n),
    "coordinates": lambda n: DIST.grid.coordinates(n),
    "rank": lambda n: DIST.grid.rank((0, n)),
    "shape": lambda n: L(0).on((n,), 2),
    "shape of one mode": lambda n: L(0).on(n, 2),
    "grid": lambda n: L(0).on(4, (n,)),
    "grid of one mode": lambda n: L(0).on(4, n),
    "Distribution's shape": lambda n: Distribution(L(0), (n,), Grid((2,))),
    "local_shape": lambda n: DIST.local_shape(n),
    "indices": lambda n: DIST.indices(n),
    "index_sets": lambda n: DIST.index_sets(n),
    "tensor_indices": lambda n: DIST.tensor_indices(n),
    "holds": lambda n: DIST.holds(n),
    "contributes": lambda n: DIST.contributes(n),
    "owners": lambda n: DIST.owners((3, n)),
    "owners of one mode": lambda n: L(0).on(4, 2).owners(n),
    "compile's shape": lambda n: rote.compile("[(0)] -> [()]", shape=n, grid=2),
    "compile's grid": lambda n: rote.compile("[(0)] -> [()]", shape=4, grid=n),
    "compile's bytes": lambda n: rote.compile("[(0)] -> [(0)]", shape=0, grid=2, max_bytes=n),
    "run": lambda n: rote.run(lambda comm: comm.rank, ranks=n),
}
# Nodes of the grammar are made by hand too; what they refuse is a TypeError.
NODES = {
    "Entry": lambda n: Entry(n),
    "Kind's size": lambda n: Kind("cyclic", (n,)),
    "Kind's sizes": lambda n: Kind("block", (3, n)),
    "Kind's first coordinate": lambda n: Kind("cyclic", (4,), n),
    "LayoutSyntax's partial": lambda n: LayoutSyntax(((),), partial=(n,)),
    "LayoutSyntax's rooted": lambda n: LayoutSyntax(((),), rooted=((n, n),)),
    "Tile": lambda n: View((Tile((("r", None), ("s", n))),)),
    "ActionSyntax's modes": lambda n: ActionSyntax("fft", (n,)),
    "ActionSyntax's extents": lambda n: ActionSyntax("resize", (0,), (n,)),
    "StageSyntax": lambda n: StageSyntax(LayoutSyntax(()), (n,)),
}


@pytest.mark.parametrize("door", [*DOORS, *NODES])
def test_only_integers_are_taken(door):
    """A bool, a float, a text is refused at every door; NumPy's integers are plain ones from there on."""
    if door in DOORS:
        check_door(DOORS[door], RoteError)
    else:
        check_door(NODES[door], TypeError)


def test_no_cache_answers_with_what_is_no_integer():
    """What was refused leaves nothing behind: right layouts print and plan as ever after."""
    for wrong in (True, 1.0):
        for make in (lambda n: L(block(n)), lambda n: L(cyclic(0, n)), lambda n: DIST.local_shape(n)):
            with pytest.raises(rote.LayoutError):
                make(wrong)
    assert repr(L(block(1))) == "rote.parse('block[(1)]')" and str(L(cyclic(0, 1))) == "[(0)]"
    assert all(type(n) is int for n in DIST.local_shape(1))
    assert {type(n) for found in DIST.index_sets(1) for n in (found.start, found.stop, found.period)} == {int}
    assert str(parse("block[(1)]")) == str(L(block(1)))


def test_nodes_say_only_what_a_text_can_say():
    """A kind of another name, a tile of nothing, sizes that no text may have: refused where the node is made."""
    for make in (
        lambda: Kind("blocks"),
        lambda: Kind("cyclic", (0,)),
        lambda: Kind("cyclic", (2, 3)),
        lambda: Kind("block", (-1,)),
        lambda: Kind("block", (2**63,)),
        lambda: Kind("ceil", (3,)),
        lambda: Kind("block", (3,), 1),
        lambda: Kind("cyclic", (3,), -1),
        lambda: Kind("cyclic", (3,), 2**63),
        lambda: Tile((("r", None), ("s", 0))),
    ):
        with pytest.raises(ValueError, match=r"a kind is|integers of at least|one size|no sizes|at is 0"):
            make()
