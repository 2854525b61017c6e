"""What refusals say, word for word: in the notation that a user writes, in grammar that counts, with a cure."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

import rote
from rote import Grid, L, Layout, parse, root
from rote.errors import LayoutError, counted

TEXTS = {
    "sizes": (
        lambda: parse("block(5,11)[(0)]").on(12, 2),
        "block(5,11) names 2 parts of 16 indices in all, but 12 indices must be placed on 2 ranks; "
        "write 2 sizes that add up to 12, or block for balanced parts",
    ),
    "sizes of more ranks": (
        lambda: parse("block(4,2,0,0)[(0)]").on(6, 3),
        "block(4,2,0,0) names 4 parts of 6 indices in all, but 6 indices must be placed on 3 ranks; "
        "write 3 sizes that add up to 6, or block for balanced parts",
    ),
    "sizes on one rank": (
        lambda: parse("block(1,0)[(0)]").on(1, 1),
        "block(1,0) names 2 parts of 1 index in all, but 1 index must be placed on 1 rank; "
        "write block for balanced parts",
    ),
    "sizes of a part": (
        lambda: parse("[(0:block(6,0),1:block(2,4))]").on(6, (2, 2)),
        "block(2,4) names 2 parts of 6 indices in all, but 0 indices must be placed on 2 ranks; "
        "write 2 sizes that add up to 0, or block for balanced parts",
    ),
    "size": (
        lambda: parse("block(3)[(0)]").on(7, 2),
        "block(3) over 2 ranks holds 6 indices, but 7 must be placed; "
        "write block(4) or more, or block for balanced parts",
    ),
    "size on one rank": (
        lambda: parse("block(1)[(0)]").on(7, 1),
        "block(1) over 1 rank holds 1 index, but 7 must be placed; write block(7) or more, or block for balanced parts",
    ),
    "order": (
        lambda: parse("[(0),()]").on(4, 2),
        "[(0),()] is for tensors of order 2, but the shape is (4,); write one pair of parentheses per mode",
    ),
    "order through a view": (
        lambda: parse("(a b): block[(0)]").on(4, 2),
        "(a b): block[(0)] is for tensors of order 2, but the shape is (4,); write one pair of parentheses per mode",
    ),
    "grid mode": (
        lambda: parse("[(0:cyclic(4),1)]").on(4, 2),
        "[(0:cyclic(4),1)] names grid mode 1, but the grid 2 has order 1\n"
        "write the grid (2, 1), or a layout without grid mode 1",
    ),
    "pencils on a grid of order 1": (
        lambda: parse("block[(0),(1),()]").on((4, 4, 4), 12),
        "block[(0),(1),()] names grid mode 1, but the grid 12 has order 1\n"
        "write the grid (4, 3), or a layout without grid mode 1",
    ),
    "grid mode of a grid of order 0": (
        lambda: parse("block[(0),(2)]").on((4, 4), ()),
        "block[(0),(2)] names grid mode 0, but the grid () has order 0\n"
        "write the grid (1, 1, 1), or a layout without grid mode 0",
    ),
    "root": (
        lambda: parse("[()]|(0@2)").on(4, 2),
        "[()]|(0@2) is rooted at coordinate 2, but grid mode 0 has 2 coordinates, from 0 on",
    ),
    "root of one": (
        lambda: parse("[()]|(0@2)").on(4, 1),
        "[()]|(0@2) is rooted at coordinate 2, but grid mode 0 has 1 coordinate, from 0 on",
    ),
    "tile": (
        lambda: parse("(r s=4): [(),(0)]").on(10, 2),
        "tensor mode 0 has extent 10, which (r s=4) does not divide; 8 or 12 would",
    ),
    "view": (
        lambda: Layout(((), ()), parse("(a b): [()]").view),
        "the view has 1 mode, but the layout has 2",
    ),
    "view of two": (
        lambda: Layout(((),), parse("(r s=2): [(),()]").view),
        "the view has 2 modes, but the layout has 1",
    ),
    "mode": (lambda: L(0).whole(1), "[(0)] has modes 0 to 0, not 1"),
    "mode of none": (lambda: L().whole(0), "[] has no modes, not 0"),
    "move": (
        lambda: L(rote.block(0)).move(1, to=0),
        "block[(0)] splits no mode over grid mode 1; use .split to add it",
    ),
    "a list": (
        lambda: rote.parse("[(0),()]") >> [[0], []],
        "one layout is expected here, not list\nwrite 'block[(0),()]'",
    ),
    "a tuple": (
        lambda: rote.parse("[(0),()]") >> (None, (1, 0)),
        "one layout is expected here, not tuple\nwrite 'block[(),(1,0)]'",
    ),
    "a grid": (
        lambda: rote.parse("[(0),()]") >> Grid((2, 1)),
        "one layout is expected here, not Grid\n"
        "write grid=Grid((2, 1)) if that is the grid, and a layout as 'block[(0),()]'",
    ),
    "the shape of a grid": (
        lambda: rote.parse("[(0),()]") >> (2, 1),
        "one layout is expected here, not tuple\n"
        "write grid=(2, 1) if that is the grid, and a layout as 'block[(0),()]'",
    ),
    "a list of something": (
        lambda: rote.parse("[(0),()]") >> ["x", 0.5],
        "one layout is expected here, not list\nwrite its text, as 'block[(0),()]', or L((0), ())",
    ),
    "twice": (lambda: L(rote.block(0), 0), "grid mode 0 is used twice in [(0:block),(0)]; use each at most once"),
    "shape": (lambda: L(()).on("ab", 2), "a shape is made of integers, not 'ab'"),
    "an array": (
        lambda: L((), ()).on(np.zeros((3, 4)), 2),
        "a shape is made of integers, not an array or tensor\nwrite its shape, (3, 4)",
    ),
    "shape of floats": (lambda: L(()).on((4.0,), 2), "a shape is made of integers, not (4.0,)"),
    "shape of bools": (lambda: L(()).on((True,), 2), "a shape is made of integers, not (True,)"),
    "negative extent": (lambda: L(()).on((-1,), 2), "the extents of a shape are 0 or more, not (-1,)"),
    "grid": (
        lambda: Grid((2, 0)),
        "a grid has at least one process along each mode, not (2, 0)\nwrite Grid((2, 3)), or grid=(2, 3)",
    ),
    "grid as text": (
        lambda: L(()).on(4, "2x1"),
        "a grid has at least one process along each mode, not '2x1'\nwrite Grid((2, 1)), or grid=(2, 1)",
    ),
    "number of processes as text": (
        lambda: L(()).on(4, "12"),
        "a grid has at least one process along each mode, not '12'\nwrite Grid((12,)), or grid=(12,)",
    ),
    "another text": (
        lambda: L(()).on(4, "2x"),
        "a grid has at least one process along each mode, not '2x'\nwrite Grid((2, 3)), or grid=(2, 3)",
    ),
    "too many processes": (
        lambda: Grid((2**31, 2**31)),
        "a grid has at most 4,194,304 processes, not 4,611,686,018,427,387,904\nwrite a grid of the ranks that run",
    ),
    "too many processes to factor": (
        lambda: Grid.of(2**61 - 1, 2),
        "a grid has at most 4,194,304 processes, not 2,305,843,009,213,693,951\nwrite a grid of the ranks that run",
    ),
    "grid of bools": (
        lambda: L(()).on(4, (True,)),
        "a grid has at least one process along each mode, not (True,)\nwrite Grid((2, 3)), or grid=(2, 3)",
    ),
    "grid of floats": (
        lambda: L(()).on(4, 2.5),
        "a grid has at least one process along each mode, not 2.5\nwrite Grid((2, 3)), or grid=(2, 3)",
    ),
    "a communicator": (
        lambda: Grid(rote.runtime.world()),
        "a grid is expected here, not the communicator <in-process rank 0 of 1>\n"
        "write comm=comm, as in rote.fft.FFT(shape, layout, comm=comm)",
    ),
    "processes": (lambda: Grid.of(1, -1), "1 process makes no grid of order -1"),
    "no processes": (lambda: Grid.of(0, 1), "0 processes make no grid of order 1"),
    "rank": (lambda: Grid((2, 3)).coordinates(6), "grid 2x3 has ranks 0 to 5, not 6"),
}


@pytest.mark.parametrize("refused, text", TEXTS.values(), ids=TEXTS)
def test_refusals_word_for_word(refused, text):
    """A refusal says the rule, the culprit as the user would write it, and the cure."""
    with pytest.raises(LayoutError) as found:
        refused()
    assert str(found.value) == text


PLURALS = re.compile(r"\b1 (ranks|indices|parts|modes|coordinates|processes|sizes|bytes)\b")
SYNTAX = re.compile(r"\w+\((name|sizes|grid_mode|items|modes|at)=")


def test_no_refusal_shows_a_syntax_node_or_counts_wrong():
    """Layouts, entries and kinds print as notation, and one is never plural, whatever does not fit what."""
    kinds = ("block(1)", "block(2,0)", "block(1,0,0)", "block(5,11)", "cyclic(3)", "block")
    modes = ("[(0)]", "[(0,1)]", "[(1,0)]", "[(0)]|(1)", "[()]|(1@3)", "[(0)]+(1)", "[(0),()]", "[]")
    views = ("", "(r s=2): ", "(a b): ")
    refusals = set()
    for kind, brackets, view, n, grid in product(kinds, modes, views, (0, 1, 3), (1, 2, (1, 1), (1, 2), (3, 2))):
        try:
            layout = parse(f"{view}{kind}{brackets}")
        except rote.NotationError:
            continue
        try:
            layout.on(n, grid)
        except LayoutError as error:
            refusals.add(str(error))
    assert len(refusals) > 100
    assert not [text for text in refusals if PLURALS.search(text) or SYNTAX.search(text)]


def test_one_is_counted_apart():
    """Exactly one takes the singular, NumPy's one as well."""
    assert [counted(n, "rank") for n in (0, 1, 2, np.int64(1))] == ["0 ranks", "1 rank", "2 ranks", "1 rank"]
    assert counted(11, "index", "indices") == "11 indices"


def test_a_root_that_fits_is_taken():
    """The coordinates that the refusal tells are those that a root may have."""
    for at in range(3):
        assert (L(()) | root(0, at)).on(4, 3).holds(at)


@pytest.mark.parametrize("other", [None, 3, "[(0)]"])
def test_a_prefix_is_of_a_layout(other):
    """Law: what is none is refused by name."""
    with pytest.raises(LayoutError, match="a layout is a prefix of a layout"):
        parse("[(0)]").is_prefix_of(other)
