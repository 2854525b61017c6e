"""What a transform needs beyond input and output: two of the largest blocks on the way, messages and all."""

from __future__ import annotations

from math import prod

import pytest
from families import numbers
from workspace import bytes_taken

import rote
from rote import DistTensor
from rote.fft import FFT
from rote.runtime.comm import segments
from rote.runtime.copies import TILE

NOISE = 40_000 + 5 * 16 * TILE  # bytes of Python's own objects, and of tiles that NumPy works on, of a rank in a call

CASES = [
    # ranks, shape, layout, grid, dtype, algorithm
    (4, (96, 80, 120), "block[(0),(),()]", 4, "D", "auto"),
    (4, (120, 128, 60), "block[(0),(1),()]", (2, 2), "d", "auto"),
    (4, (128, 128, 60), "[(0),(1),()]", (2, 2), "D", "cyclic"),
    (4, (144, 88, 80), "(a b) c: block[(0),()]", 4, "D", "rows"),
    (4, (120, 128, 60), "block[(0),(1),()]", (2, 2), "d", "dct2"),
    (3, (1211, 907), "block[(0),()]", 3, "D", "auto"),
]
MORE = [
    (1, (96, 80, 100), "block[(0),(),()]", 1, "D", "auto"),
    (2, (96, 80, 100), "block[(0),(),()]", 2, "D", "auto"),
    (4, (96, 80, 120), "block[(0),(),()]", 4, "d", "auto"),
    (4, (120, 128, 60), "block[(0),(1),()]", (2, 2), "D", "auto"),
    (6, (120, 128, 60), "block[(0),(1),()]", (3, 2), "D", "auto"),
    (4, (128, 128, 60), "[(0),(1),()]", (2, 2), "D", "volumetric"),
    (4, (128, 128, 60), "[(0),(1),()]", (2, 2), "d", "cyclic"),
    (4, (1 << 20,), "[(0)]", 4, "D", "cyclic"),
]


def largest(walk, rank):
    """The bytes of the largest block of a rank at the ends and on the way, in and out of every stage."""
    blocks = [
        prod(dist.local_shape(rank)) * dtype.itemsize
        for stage, before, after in zip(walk.stages, walk.dtypes(), walk.dtypes()[1:], strict=False)
        for dist, dtype in ((stage.before, before), (stage.after, after))
    ]
    return max(blocks)


@pytest.mark.parametrize(
    ("ranks", "shape", "layout", "grid", "code", "algorithm"),
    [*CASES, *(pytest.param(*case, marks=pytest.mark.slow) for case in MORE)],
)
def test_two_blocks_are_enough(ranks, shape, layout, grid, code, algorithm):
    """Law: scratch is at most two of the largest blocks on the way, and a call takes nothing else.

    Memory is counted by tracemalloc: while a transform runs on all ranks at once, with given output, hardly anything
    is allocated beside what was there before: a small part of a block.
    """
    kinds = "dct2" if algorithm == "dct2" else None
    named = "auto" if algorithm == "dct2" else algorithm

    def program(comm):
        f = FFT(shape, layout, grid, comm, code, algorithm=named, kinds=kinds)
        x = DistTensor.from_global(numbers(shape, code), layout, comm, grid)
        peak = bytes_taken(f, x)
        return f.workspace_bytes, 2 * largest(f.walk, comm.rank), peak

    found = rote.run(program, ranks)
    for used, room, peak in found:
        assert used <= room, (used, room)
        assert peak < NOISE * ranks < room * ranks / 4, peak


def test_blocks_begin_at_a_cache_line():
    """Law: those of tensors, of what they are moved to, of spectra, and of what comes back do."""

    def program(comm):
        x = rote.DistTensor.from_function(lambda i, j, k: i + j + k, (16, 18, 20), "block[(0),(),()]", comm)
        y = x.redistribute("block[(),(),(0)]")
        transformed = rote.fft.fftn(y)
        return [x.local, y.local, transformed.local, rote.fft.ifftn(transformed).local]

    blocks = [block for blocks in rote.run(program, 3) for block in blocks]
    assert [block.ctypes.data % segments.LINE for block in blocks] == [0] * len(blocks)
