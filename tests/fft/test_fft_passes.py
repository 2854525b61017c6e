"""Passes: a block that does not fit the cache is transformed axis by axis and tile by tile, as by numpy and scipy."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
import scipy.fft
from marks import PARTS
from parts import share

from rote.fft.kernels import kernel as kernels
from rote.fft.kernels import passes
from rote.fft.kernels.kernel import Kernel, plain
from rote.fft.transforms import KINDS, complex_dtype, real_dtype
from rote.runtime.comm.segments import at_line

TRIGONOMETRIC = [row.name for row in KINDS.values() if row.type]
SHAPES = [(7,), (5, 6), (6, 1), (3, 4, 5), (2, 9, 1, 11), (1, 17, 3)]


def transformed(kind: str, block: np.ndarray, axes: tuple[int, ...], length: int, in_place: bool) -> np.ndarray:
    """A block transformed by a bound kernel; what the kernel must not touch is checked."""
    out_shape = list(block.shape)
    if kind in ("rfft", "irfft"):
        out_shape[axes[-1]] = length // 2 + 1 if kind == "rfft" else length
    kernel = Kernel(kind, axes, block.shape, tuple(out_shape), block.dtype)
    size = max(block.nbytes, int(np.prod(out_shape)) * kernel.out_dtype.itemsize)
    bound = passes.BoundKernel(kernel, (at_line(size), at_line(size)))
    source = plain(block.copy())
    target = source if in_place else plain(np.empty(out_shape, kernel.out_dtype))
    for _ in range(2):  # the second time over tiles that hold what the first has left
        source[...] = block
        bound(source, target)
    assert in_place or kind == "irfft" or np.array_equal(source, block)
    return target


@pytest.mark.parametrize(("cached", "aliased"), [(1, 1), (700, 1), (1, 32), (700, 48), (1, 1 << 11)])
@pytest.mark.parametrize("char", "FDG")
def test_passes_are_numpy_fft(cached: int, aliased: int, char: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: whatever the size of a tile, every kind along every set of axes equals numpy.fft, in place or not."""
    monkeypatch.setattr(kernels, "CHUNK", 10 * cached)
    monkeypatch.setattr(kernels, "CACHED", cached)
    monkeypatch.setattr(kernels, "_ALIASED", aliased)
    random = np.random.default_rng(0)
    tolerance = 40 * float(np.finfo(real_dtype(char)).eps)
    for shape in SHAPES:
        real = random.standard_normal(shape).astype(real_dtype(char))
        block = (real + 1j * random.standard_normal(shape)).astype(char)
        for count in range(1, len(shape) + 1):
            for axes in combinations(range(len(shape)), count):
                s = [shape[a] for a in axes]
                half = np.fft.rfftn(real, axes=axes).astype(complex_dtype(char))
                for in_place in (False, True):
                    found = transformed("fft", block, axes, 0, in_place)
                    wanted = np.fft.fftn(block, axes=axes)
                    assert np.abs(found - wanted).max() <= tolerance * np.abs(wanted).max()
                    back = transformed("ifft", block, axes, 0, in_place)
                    wanted = np.fft.ifftn(block, axes=axes, norm="forward")
                    assert np.abs(back - wanted).max() <= tolerance * np.abs(wanted).max()
                found = transformed("rfft", real, axes, s[-1], False)
                assert np.abs(found - half).max() <= tolerance * np.abs(half).max()
                found = transformed("irfft", half, axes, s[-1], False)
                wanted = np.fft.irfftn(half, s=s, axes=axes, norm="forward")
                assert np.abs(found - wanted).max() <= tolerance * np.abs(wanted).max()


@pytest.mark.parametrize(("cached", "aliased"), [(1, 1), (700, 1), (1, 32), (700, 48), (1, 1 << 11)])
@pytest.mark.parametrize("char", "fdgFDG")
@pytest.mark.parametrize("part", PARTS)
def test_passes_are_scipy_fft(part: str, cached: int, aliased: int, char: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: whatever the size of a tile, every cosine and sine transform equals scipy.fft, in place or not."""
    monkeypatch.setattr(kernels, "CHUNK", 10 * cached)
    monkeypatch.setattr(kernels, "CACHED", cached)
    monkeypatch.setattr(kernels, "_ALIASED", aliased)
    random = np.random.default_rng(0)
    tolerance = 40 * float(np.finfo(real_dtype(char)).eps)
    world = product([(7,), (5, 6), (3, 4, 5), (2, 9, 3, 11)], TRIGONOMETRIC)
    for shape, kind in share(world, part, 5, cached + aliased + "fdgFDG".index(char)):
        block = random.standard_normal(shape).astype(char)
        block = block + block.dtype.type(1j) * block[::-1] if block.dtype.kind == "c" else block
        for count in range(1, len(shape) + 1):
            for axes in combinations(range(len(shape)), count):
                exact = block.astype("G" if block.dtype.kind == "c" else "g")
                wanted = getattr(scipy.fft, f"{kind[:3]}n")(exact, int(kind[3]), axes=axes)
                for in_place in (False, True):
                    found = transformed(kind, block, axes, 0, in_place)
                    assert np.abs(found - wanted).max() <= tolerance * np.abs(wanted).max()


def test_tiles_are_small_and_padded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tile is no larger than usual; its rows do not lie a power of two of bytes apart, in columns and in lines."""
    made = []
    tile = passes.padded
    for module in ("passes", "kernel"):  # in columns and in lines
        monkeypatch.setattr(
            f"rote.fft.kernels.{module}.padded",
            lambda shape, dtype: made.append((shape, tile(shape, dtype))) or made[-1][1],
        )
    shape = (64, 256, 512)
    kernel = Kernel("fft", (0, 1, 2), shape, shape, np.dtype("c16"))
    passes.BoundKernel(kernel, (at_line(1 << 27), at_line(1 << 27)))
    columns, longer, lines = (shape for shape, _ in made)
    assert (columns[1], longer[1], lines[-1]) == (64, 256, 256)
    for shape, memory in made:
        assert memory[tuple(map(slice, shape))].nbytes <= kernel.tile_bytes
        assert memory.strides[1] & (memory.strides[1] - 1)


@pytest.mark.parametrize("kind", ["fft", "rfft", "irfft", "dct2"])
@pytest.mark.parametrize("axis", range(4))
def test_a_tile_has_one_row_for_all_modes_after_its_axis(kind: str, axis: int) -> None:
    """Law: for each point memory is contiguous, and the transform is NumPy's or SciPy's along that axis."""
    extents, points = [3, 2, 4, 5], 8
    row = KINDS[kind]
    ends = [(*extents[:axis], n, *extents[axis + 1 :]) for n in (row.taken(points), row.given(points))]
    kernel = Kernel(kind, (axis,), *ends, np.dtype("f8" if kind in ("rfft", "dct2") else "c16"))
    tile = passes.TileMemory(kernel, axis, ends[0])

    assert (tile.filled.shape, tile.stored.shape) == tuple(ends)
    for memory in (tile.filled, tile.stored):
        assert np.moveaxis(memory, axis, 0)[0][(0,) * axis].flags.c_contiguous

    values = np.random.default_rng(axis).standard_normal(ends[0])
    tile.filled[...] = values
    tile.run()
    if kind == "irfft":
        want = np.fft.irfft(values, points, axis) * points
    else:
        want = getattr(scipy.fft, kind[:3] if row.type else kind)(values, axis=axis)
    assert np.allclose(tile.stored, want)
