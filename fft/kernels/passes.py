"""The passes of a kernel over a block: one call where FFTW's estimated plans are good, else axis by axis, tile by tile.

Estimated plans are several times too slow if the distance between the points of a transform is a multiple of a large
power of two of bytes, because all points then share a few sets of the cache. Along such an axis a tile of columns is
copied to scratch with padded strides, transformed in cache, and copied out. This is as fast as the plans that FFTW
finds in seconds of timing. It is the default; a kernel's config may name no tiles or another library, if these were
faster for a sample of the block.

FFTW's estimated plans are also slow in columns of most lengths, whatever their strides. There the transform writes
contiguous lines, and the copy out turns them back into columns. See `in_lines` of kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from math import gcd, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from rote.runtime.comm.protocol import Array
from rote.runtime.comm.segments import at_line
from rote.runtime.copies import Copy, run
from rote.runtime.operations import BlockWork, Scratch

from ..transforms import HALVING, KINDS, RESTORING, complex_dtype, real_dtype
from .backends.library import ArrayTransform
from .kernel import ALIGNMENT, Kernel, Scale, copies_first, in_lines, is_bad, padded, padded_lines, view

__all__ = ["BoundKernel", "TileMemory", "composed", "prepare"]

_FEW = 16  # parts of a block: with more, calls are not prepared one by one


class BoundKernel(BlockWork):
    """A kernel with its transforms and tiles, ready for any arrays. One thread uses it.

    A block is cut into parts along the modes before the first axis, and each part goes through all passes while it is
    in cache.

    Args:
        kernel: the kernel. Its library may use several threads, if it has any, for a part.
        scratch: memory to plan on.
        ortho: whether the first or last planes of cosine and sine transforms are weighted, which makes these transforms
            orthogonal up to a scale.
        scale: a real number by which the result is multiplied.
    """

    __slots__ = ("_begins", "_copies", "_ortho", "_parts", "_passes", "_rest", "_scale", "_shapes", "_stays", "kernel")

    kernel: Kernel

    def __init__(self, kernel: Kernel, scratch: Scratch, ortho: bool = False, scale: Scale = 1) -> None:
        self.kernel, self._scale = kernel, scale
        self._ortho = kernel.row.ortho if ortho and any(kernel.row.ortho) else None
        self._parts = parts = kernel.of_parts()
        self._copies = copies_first(parts, scale != 1)
        self._stays = parts.row.real == "output"  # complex until the last pass

        # The modes before the first axis are one mode of rows. Parts are as many rows as the cache holds, and begin
        # where FFTW's plans can, so that every part but the last has the same plan:
        #
        #     | part 0 | part 1 | part 2 | rest |        each through all passes before the next one
        first = min(parts.axes)
        outer = prod(parts.shape[:first])
        ends = (parts.shape, parts.dtype), (parts.out_shape, parts.out_dtype)
        row_bytes = [prod(shape[first:]) * dtype.itemsize for shape, dtype in ends]  # bytes along the other modes

        aligned = ALIGNMENT // gcd(ALIGNMENT, *row_bytes)  # rows: parts begin where FFTW's plans can
        number = max(1, min(outer, parts.part_bytes // max(*row_bytes, 1)))
        number = min(-(-number // aligned) * aligned, max(outer, 1))
        self._shapes = [(outer, *shape[first:]) for shape, _ in ends]
        self._begins = range(0, outer, number)

        def passes_of_rows(count: int) -> list[_Pass]:
            shape, out_shape = ((count, *extents[first:]) for extents in (parts.shape, parts.out_shape))
            axes = tuple(axis - first + 1 for axis in parts.axes)
            return _passes(replace(parts, axes=axes, shape=shape, out_shape=out_shape), scratch)

        last = outer % number
        self._passes = passes_of_rows(number) if prod(kernel.out_shape) else []
        self._rest = passes_of_rows(last) if last else []

    def bound(self, source: Array, target: Array) -> list[Copy]:
        """The calls, in order, that transform a plain array into another, or into itself if `kernel.in_place`."""
        calls = list[Copy]()
        if not self._passes:
            return calls

        (sources, targets), parts = self._rows(source, target), self._parts
        if self._ortho:
            calls.append(partial(_weigh, sources, parts, self._ortho[0], np.sqrt(np.longdouble(2))))

        for at in self._begins:
            if len(self._begins) > _FEW:  # to save memory, the views of a part are made when it runs
                calls.append(partial(self._do, sources, targets, at))
            else:
                calls += self._calls(sources, targets, at)

        if self._ortho:
            calls.append(partial(_weigh, targets, parts, self._ortho[1], np.sqrt(np.longdouble(0.5))))
        return calls

    def steps(self, source: Array, target: Array) -> list[tuple[int, Copy]]:
        """The work in steps along the kernel's `step_axis`, each with the index up to which it is done; or as one."""
        parts = self._parts
        one_pass = self._passes[0] if len(self._passes) == 1 else None
        if self._ortho or not self._passes:
            pass
        elif min(parts.axes) > 0:
            rows, (sources, targets) = prod(parts.shape[1 : min(parts.axes)]), self._rows(source, target)
            run_part, step = partial(self._do, sources, targets), self._begins.step
            return [(min(at + step, len(sources)) // rows, partial(run_part, at)) for at in self._begins]
        elif isinstance(one_pass, _TiledPass) and parts is self.kernel and self._scale == 1:
            return one_pass.steps(source, target, prod(parts.shape[2:]))
        return [(source.shape[parts.step_axis], partial(self, source, target))]

    def _rows(self, source: Array, target: Array) -> tuple[Array, Array]:
        """The two blocks as rows: the modes before the first axis become one mode."""
        parts = self._parts
        if parts is not self.kernel:
            source, target = source.view(parts.dtype), target.view(parts.out_dtype)
        return source.reshape(self._shapes[0]), target.reshape(self._shapes[1])

    def _do(self, sources: Array, targets: Array, at: int) -> None:
        run(self._calls(sources, targets, at))

    def _calls(self, sources: Array, targets: Array, at: int) -> list[Copy]:
        """The calls that transform one part of a block; the last part may be shorter than the others."""
        part, calls = slice(at, at + self._begins.step), list[Copy]()
        passes = self._rest if part.stop > self._shapes[0][0] else self._passes
        begin, end = sources[part], targets[part]
        if self._copies:
            calls.append(partial(_scaled, begin, self._scale, end))
            begin = end

        # The first pass writes the target, and the others work in place; but a block that stays complex stays where it
        # is, too, until its last pass: the real target is too small for it.
        for one_pass in passes:
            stop = begin if self._stays and one_pass is not passes[-1] else end
            calls += one_pass.bound(begin, stop)
            begin = stop

        if self._scale != 1 and not self._copies:
            calls.append(partial(_scaled, end, self._scale, end))
        return calls


def _scaled(source: Array, scale: Scale, target: Array) -> None:
    """Store the product of a block, whose last mode is contiguous, and a real number in the same or another block."""
    if scale != 1:
        parts, out = (block.view(real_dtype(block.dtype)) for block in (source, target))
        np.multiply(parts, parts.dtype.type(scale), out=out)
    elif not np.may_share_memory(source, target):
        target[...] = source


def _weigh(block: Array, kernel: Kernel, places: tuple[int, ...], weight: np.floating[Any]) -> None:
    """Multiply the planes at some indices along the axes of a block; the modes before the first axis are one mode."""
    for axis in kernel.axes:
        for place in places:
            face = np.moveaxis(block, axis - min(kernel.axes) + 1, 0)[place, ...]
            face *= block.dtype.type(weight)


def _passes(kernel: Kernel, scratch: Scratch) -> list[_Pass]:
    """One pass for all good axes, then one for each bad axis; backward to real numbers in reversed order.

    So the real axis of a real transform is in the first pass forward, and in the last one backward.
    """
    spectrum, backward = kernel.out_shape, kernel.row.real == "output"
    if backward:
        spectrum = kernel.shape

    dtype, tiled, kind = kernel.wide_dtype, kernel.config.tiled, kernel.row.others
    along = replace(kernel, kind=kind, shape=spectrum, out_shape=spectrum, dtype=dtype)
    bad = [axis for axis in kernel.axes if composed(kernel) or (tiled and is_bad(along, axis))]
    good = tuple(axis for axis in kernel.axes if axis not in bad)

    passes: list[_Pass] = []
    if kernel.kind != kind:
        real = kernel.axes[-1]
        if real in bad:
            passes.append(_TiledPass(replace(kernel, axes=(real,))))
            bad.remove(real)
        else:
            passes.append(_MultiAxisPass(replace(kernel, axes=good), scratch))
            good = ()

    if good:
        passes.append(_MultiAxisPass(replace(along, axes=good), scratch))
    passes += [_TiledPass(replace(along, axes=(axis,))) for axis in bad]

    if backward:
        passes.reverse()
    return passes


class _MultiAxisPass(BlockWork):
    """All axes in one call of the library. It is planned on scratch, so that it keeps no user's block alive."""

    __slots__ = ("_in_place", "_kernel", "_parked", "_transforms")

    def __init__(self, kernel: Kernel, scratch: Scratch) -> None:
        self._kernel, self._in_place = kernel, kernel.in_place
        source = _columns(scratch[0], kernel.shape, kernel.pitch, kernel.dtype)
        self._parked = source, _columns(scratch[1], kernel.out_shape, kernel.pitch, kernel.out_dtype)
        self._transforms: dict[bool, ArrayTransform] = {}

    def _transform(self, source: Array, target: Array) -> ArrayTransform:
        in_place = self._in_place and np.may_share_memory(source, target)
        if in_place not in self._transforms:
            kernel, (source, target) = self._kernel, self._parked
            end = source if in_place else target
            self._transforms[in_place] = prepare(kernel, kernel.axes, source, end, kernel.config.threads)
        return self._transforms[in_place]

    def bound(self, source: Array, target: Array) -> list[Copy]:
        return [self._transform(source, target)(source, target)]


def _columns(scratch: npt.NDArray[np.uint8], shape: tuple[int, ...], pitch: int, dtype: np.dtype[Any]) -> Array:
    """The start of scratch memory as a block, whose rows are `pitch` elements apart if that is not 0."""
    return view(scratch, (*shape[:-1], pitch or shape[-1]), dtype)[..., : shape[-1]]


class _TiledPass(BlockWork):
    """One axis with unfavourable strides, by tiles of columns; the block is read as (outer, points, inner)."""

    __slots__ = ("_shapes", "_step", "_tile", "_tiles")

    def __init__(self, kernel: Kernel) -> None:
        (axis,) = kernel.axes
        outer, inner = prod(kernel.shape[:axis]), prod(kernel.shape[axis + 1 :])
        points, out_points = kernel.shape[axis], kernel.out_shape[axis]

        columns = max(8, kernel.tile_bytes // (max(points, out_points) * kernel.wide_dtype.itemsize))
        wide = min(inner, columns)
        wide = -(-inner // -(-inner // wide))  # tiles of equal width, as far as possible
        deep = min(outer, max(1, columns // inner))

        self._shapes = (outer, points, inner), (outer, out_points, inner)
        self._step = (deep, wide)
        self._tiles = list(product(range(0, outer, deep), range(0, inner, wide)))

        kernel = replace(kernel, axes=(1,), shape=self._shapes[0], out_shape=self._shapes[1])
        self._tile = TileMemory(kernel, 1, (deep, points, wide))

    def bound(self, source: Array, target: Array) -> list[Copy]:
        blocks, calls = self._blocks(source, target), list[Copy]()
        if len(self._tiles) > _FEW:
            return [partial(self._do, blocks, at) for at in self._tiles]
        for at in self._tiles:
            calls += self._calls(blocks, at)
        return calls

    def steps(self, source: Array, target: Array, row: int) -> list[tuple[int, Copy]]:
        """The tiles of columns of one part, each with the number of whole rows (of `row` columns) done after it."""
        blocks, inner, wide = self._blocks(source, target), self._shapes[0][2], self._step[1]
        return [(min(at[1] + wide, inner) // row, partial(self._do, blocks, at)) for at in self._tiles]

    def _blocks(self, source: Array, target: Array) -> tuple[Array, Array]:
        return source.reshape(self._shapes[0]), target.reshape(self._shapes[1])

    def _calls(self, blocks: tuple[Array, Array], at: tuple[int, int]) -> tuple[Copy, Copy, Copy]:
        """The calls that transform one tile: copy it in, transform it in cache, and copy it out."""
        (deep, wide), tile = self._step, self._tile
        place = np.s_[at[0] : at[0] + deep, :, at[1] : at[1] + wide]
        part, out = blocks[0][place], blocks[1][place]
        filled = np.s_[: part.shape[0], :, : part.shape[2]]  # tiles at the ends are filled only in part
        return partial(np.copyto, tile.filled[filled], part), tile.run, partial(np.copyto, out, tile.stored[filled])

    def _do(self, blocks: tuple[Array, Array], at: tuple[int, int]) -> None:
        run(self._calls(blocks, at))


class TileMemory:
    """Memory for a tile, and the transform of one axis in it, `run`: from what was `filled` to what is `stored`.

    The modes before the axis are one mode in memory, and so are those after it: libraries repeat a transform faster
    along one long row than along many rows with a padding each. After a move of 32⁴ points this takes a quarter of the
    time with FFTW and half of it with MKL, and of 128³ points 0.8 to 0.9.

    `flat` is the memory with its padding. If the tile `stays`, it is as long after the transform as before it.
    """

    __slots__ = ("filled", "flat", "run", "stored")

    def __init__(self, kernel: Kernel, axis: int, shape: tuple[int, ...], stays: bool = False) -> None:
        outer, points, inner = prod(shape[:axis]), shape[axis], shape[axis + 1 :]
        folded = (outer, points, prod(inner)) if inner else (outer, points)
        memory = padded(folded, kernel.dtype)
        source = memory[..., : folded[-1]]

        target = source
        if in_lines(kernel, axis):
            target = padded_lines(folded, 1, kernel.dtype)
        elif not kernel.in_place and not stays:
            out_folded = (outer, kernel.out_shape[axis], *folded[2:])
            target = padded(out_folded, kernel.out_dtype)[..., : out_folded[-1]]

        # Views of the memory: modes are only cut.
        self.flat: Array = memory.reshape(-1)
        self.filled: Array = source.reshape(shape)
        self.stored: Array = target.reshape((*shape[:axis], target.shape[1], *inner))

        if kernel.row.real == "both" and kernel.dtype.kind == "c":
            kernel = kernel.of_parts()
            source = target = source.view(kernel.dtype).reshape(*source.shape, 2)
        self.run: Callable[[], object] = prepare(kernel, (1,), source, target, 1)(source, target)


_Pass = _MultiAxisPass | _TiledPass


# --- the transform of a kernel's arrays by its backend ----------------------------------------------------------------


def composed(kernel: Kernel) -> bool:
    """Whether a kernel's backend has no function for its kind, so that it is done by parts, one axis at a time."""
    return kernel.row.parts != "" and not kernel.backend.does(kernel.kind, kernel.dtype)


def prepare(kernel: Kernel, axes: tuple[int, ...], source: Array, target: Array, threads: int) -> ArrayTransform:
    """A transform by the kernel's backend on at most `threads` threads; see `Library`.

    By parts, a transform between real numbers is made of the real and imaginary parts of half a Fourier spectrum.
    """
    config = replace(kernel.config, threads=threads)
    if not composed(kernel):
        real = source.dtype == target.dtype  # which only one pass of a real kernel is not
        row = KINDS[kernel.row.others] if real else kernel.row
        return kernel.backend.prepare(row, axes, (source, target), config)

    (axis,), back, dtype = axes, kernel.row.backward, complex_dtype(source.dtype)
    shape = (*source.shape[:axis], source.shape[axis] // 2 + 1, *source.shape[axis + 1 :])
    half = view(at_line(prod(shape) * dtype.itemsize), shape, dtype)

    row, ends = (KINDS[RESTORING[0]], (half, target)) if back else (KINDS[HALVING[0]], (source, half))
    transform = kernel.backend.prepare(row, axes, ends, config)
    spectrum, differs = np.moveaxis(half, axis, 0), kernel.row.parts == "difference"

    def bound(source: Array, target: Array) -> Copy:
        calls: list[Copy]
        if back:
            calls = [partial(_join, np.moveaxis(source, axis, 0), spectrum), transform(half, target)]
        else:
            calls = [transform(source, half), partial(_part, spectrum, np.moveaxis(target, axis, 0), differs)]
        return partial(run, calls)

    return bound


def _part(spectrum: Array, out: Array, differs: bool) -> None:
    """Store the parts of half a spectrum in order, and then those of the other half, in reversed order.

    The other half of the spectrum of real numbers is the conjugate of this one: its imaginary part has the other sign.
    """
    mirrored = spectrum[len(out) - len(spectrum) : 0 : -1]
    if differs:
        np.subtract(spectrum.real, spectrum.imag, out=out[: len(spectrum)])
        np.add(mirrored.real, mirrored.imag, out=out[len(spectrum) :])
    else:
        out[: len(spectrum)], out[len(spectrum) :] = spectrum.real, mirrored.imag


def _join(parts: Array, spectrum: Array) -> None:
    """Make half a spectrum of its real parts, and the imaginary parts that are not zero, from the last to the first."""
    count = len(parts) - len(spectrum)
    spectrum.real = parts[: len(spectrum)]
    spectrum.imag = 0  # that of the first harmonic, and of an even extent's last one
    spectrum.imag[1 : count + 1] = parts[len(spectrum) :][::-1]
