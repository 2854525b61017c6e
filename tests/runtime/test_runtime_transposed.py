"""Copies by tiles between arrays of different order: every element of the view, and no other."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rote.runtime import copies as module
from rote.runtime.copies import transposed


@pytest.mark.parametrize("dtype", ("u1", "f4", "f8", "c16"))
def test_tiles_are_the_copy(monkeypatch, dtype):
    """For shapes of any order, sides with 1 among them, and views of larger arrays: what NumPy's assignment does."""
    monkeypatch.setattr(module, "SMALL", 0)
    monkeypatch.setattr(module, "_FAR", 0)
    monkeypatch.setattr(module, "_TRACKED", 1)
    monkeypatch.setattr(module, "_WAYS", 0)
    draw, tiled = random.Random(dtype), 0
    for case in range(60):
        order = draw.choice((2, 3, 3, 4))
        shape = [draw.choice((1, 2, 3, 17, 40)) for _ in range(order)]
        shape[draw.randrange(order)] = draw.choice((129, 200, 257))
        axes = draw.sample(range(order), order)
        around = [draw.choice((0, 0, 3)) for _ in range(order)]
        memory = np.random.default_rng(case).integers(1, 99, [n + k for n, k in zip(shape, around, strict=True)])
        source = memory.astype(dtype)[tuple(slice(n) for n in shape)].transpose(axes)
        target = np.zeros([n + draw.choice((0, 2)) for n in source.shape], dtype)
        view = target[tuple(slice(n) for n in source.shape)]
        copy = transposed(source, view)
        if copy is None:
            continue
        tiled += 1
        copy()
        assert np.array_equal(view, source), (shape, axes)
        assert np.count_nonzero(target) == source.size
    assert tiled > 10


def test_it_is_done_where_strides_drive_lines_out():
    """Between cubes of powers of two; not where elements follow each other alike, are few, wide, or lines are few."""

    def taken(shape, axes, dtype="f8"):
        source = np.zeros(shape, dtype)
        return transposed(source.transpose(axes), np.zeros([shape[axis] for axis in axes], dtype)) is not None

    assert taken((64, 128, 128), (2, 1, 0)) and taken((512, 512), (1, 0)) and taken((64, 128, 128), (1, 2, 0))
    assert not taken((64, 128, 128), (1, 0, 2)) and not taken((32, 32, 32), (2, 1, 0))
    assert not taken((64, 64, 64), (2, 1, 0), "G") and not taken((16, 128 * 128), (1, 0))
    assert not taken((61, 131, 123), (2, 1, 0))


def test_scratch_is_a_tile(monkeypatch):
    """A copy holds no more than a tile and the ends of its rows, whatever the arrays."""
    sizes, empty = [], np.empty

    def count(shape, dtype):
        sizes.append(int(np.prod(shape)))
        return empty(shape, dtype)

    monkeypatch.setattr(module.np, "empty", count)
    for shape, axes in (((64, 128, 128), (2, 1, 0)), ((4096, 64), (1, 0)), ((16384, 16), (1, 0))):
        copy = transposed(np.zeros(shape).transpose(axes), np.zeros([shape[axis] for axis in axes]))
        assert copy is not None
        copy()
    assert len(sizes) == 3 and 8 * max(sizes) <= module._TURNED * 9 // 8
