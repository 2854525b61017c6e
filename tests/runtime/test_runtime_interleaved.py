"""Copies into one array whose elements lie among each other there: every element, and the array is swept once."""

from __future__ import annotations

import random
from itertools import product
from unittest.mock import patch

import numpy as np
from cases import pick_layout, pick_shape

import rote
from rote.compiler.movement import movement
from rote.runtime import copies as module
from rote.runtime import regions
from rote.runtime.copies import interleaved

KINDS = ("block", "cyclic", "cyclic(2)", "cyclic(3)", "block(1, 6)")
LAYOUTS = [f"[({left}),(),({right})]" for left, right in (("0:cyclic", ""), *(("", f"0:{kind}") for kind in KINDS))]


def cases():
    """Transitions of the last mode, and random ones."""
    yield from (((5, 2, 7), pair, (2,)) for pair in product(LAYOUTS, repeat=2))
    pick = random.Random(0).choice
    for _ in range(24):
        shape = pick_shape(pick)
        yield shape, [pick_layout(pick, shape, (2, 2)) for _ in range(2)], (2, 2)


def test_blocks_are_the_same():
    """Law: blocks that are read from others', part by part, are those that are read copy by copy."""
    number = 0
    for shape, pair, grid in cases():
        source, target = (rote.parse(str(layout)).on(shape, grid) for layout in pair)
        if source.partial or target.partial:
            continue
        blocks = [np.random.default_rng(rank).random(source.local_shape(rank)) for rank in range(source.grid.size)]
        for rank in range(len(blocks)):
            parts = [
                (region, blocks[region.peer], ()) for region in regions.read_regions(movement(source, target), rank)
            ]
            together, apart = (np.zeros(target.local_shape(rank)) for _ in range(2))
            with patch.object(regions, "LARGE", 0), patch.object(module, "_PART", 1):
                copies = regions.joined(parts, together, "sum")
            number += len(copies) < sum(len(region.pieces) for region, _, _ in parts)
            for copy in (*copies, *regions.joined(parts, apart, "sum")):
                copy()
            assert together.tobytes() == apart.tobytes(), (source, target, rank)
    assert number > 20


def test_what_lies_apart_is_copied_one_after_the_other():
    """Laws: elements that are dealt out are copied together, halves are not, nor what is turned."""

    def copies(text, shape=(64, 128, 128)):
        before, after = (rote.parse(each).on(shape, 2) for each in text.split(" -> "))
        parts = [
            (region, np.zeros(before.local_shape(region.peer)), ())
            for region in regions.read_regions(movement(before, after), 0)
        ]
        return len(regions.joined(parts, np.zeros(after.local_shape(0)), "sum"))

    assert copies("[(),(),(0)] -> block[(0),(),()]") == copies("[(),(),(0:cyclic(4))] -> block[(),(),(0)]") == 1
    assert copies("block[(0),(),()] -> [(),(),(0)]") == 2
    assert copies("[(),(),(0)] -> block[(0),(),()]", (4, 128, 128)) == 2
    assert copies("a b c: block[(0),(),()] -> c b a: [(),(0),()]", (128, 128, 128)) == 2


def test_views_without_axes_or_elements_are_left():
    """Single elements, and axes of one element, have no outermost axis to go along."""
    element = np.zeros(())
    assert interleaved([(element, element), (element, element)]) is None
    row = np.zeros((1, 1))
    assert interleaved([(row, row), (row, row)]) is None
