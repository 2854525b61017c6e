"""A part of an array that lies in a raw file: what both communicators need to know about it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from ...errors import CommError
from ...layout.indexset import IndexSet, Strided
from .protocol import Array, Path

__all__ = ["check_file_part", "copy_part", "strided_parts"]

_FEW, _SMALL = 16, 128  # there are a few views of a part, or as many as have so many elements each


def check_file_part(
    path: Path, offset: int, shape: Sequence[int], index: Sequence[IndexSet], block: Array, writing: bool
) -> None:
    """Refuse a file or a block that a transfer cannot be made with. Knows this rank alone: use `collective_errors`.

    Raises: OSError when the file cannot be opened, CommError when it is too short or the block does not fit.
    """
    with open(path, "r+b" if writing else "rb") as file:
        has = os.fstat(file.fileno()).st_size
    needed = offset + math.prod(shape) * block.dtype.itemsize
    if has < needed:
        raise CommError(
            f"file too short: {os.fspath(path)} has {has} bytes, and an array of shape {tuple(shape)} and dtype "
            f"{block.dtype} from byte {offset} on ends at byte {needed}\n"
            "give the file's own shape and dtype, or a whole copy of the file"
        )
    picked = tuple(len(held) for held in index)
    nothing = not shape and block.size == 0  # order 0 has no index to say that a rank holds nothing
    if len(picked) != len(shape) or (block.shape != picked and not nothing) or not block.flags.c_contiguous:
        raise CommError(
            f"a block of shape {block.shape} does not fit an index of shape {picked} into an array of shape "
            f"{tuple(shape)}\n"
            "give one index per mode, and a C-contiguous block of the index's shape"
        )


def copy_part(array: Array, index: Sequence[IndexSet], block: Array, writing: bool) -> None:
    """Copy the elements at some positions of an array to a block of them, or back; both are C-contiguous.

    The runs of the index sets make a few strided views of both; where they would be too many, positions are listed.
    """
    if math.prod([len(held.runs) for held in index]) > max(_FEW, block.size // _SMALL):
        listed = np.ix_(*[held.to_array() for held in index])
        if writing:
            array[listed] = block
        else:
            block[...] = array[listed]
        return
    for places, inside in strided_parts(index, block):
        outside = _view(array, places)
        if writing:
            outside[...] = inside
        else:
            inside[...] = outside


def strided_parts(index: Sequence[IndexSet], block: Array) -> Iterator[tuple[list[Strided], Array]]:
    """A block by the runs of its index sets: where each part lies along the modes of the array, and a view of it.

    >>> parts = strided_parts([IndexSet(0, 9, 4, ((0, 2),))], np.arange(5))
    >>> [(places, part.tolist()) for places, part in parts]  # doctest: +NORMALIZE_WHITESPACE
    [([Strided(start=0, shape=(2, 2), steps=(4, 1))], [[0, 1], [2, 3]]),
     ([Strided(start=8, shape=(1, 1), steps=(4, 1))], 4)]
    """
    for pairs in product(*[list(_runs(held)) for held in index]):
        yield [place for place, _ in pairs], _view(block, [part for _, part in pairs])


def _runs(held: IndexSet) -> Iterator[tuple[Strided, Strided]]:
    """The elements of a set by their runs in a period: the integers themselves, and their places in the set."""
    first = 0
    for start, count, period, runs in held.cycles():
        width = sum([b - a for a, b in runs])
        for a, b in runs:
            shape = count, b - a
            yield Strided(start + a, shape, (period, 1)), Strided(first, shape, (width, 1))
            first += b - a
        first += (count - 1) * width


def _view(array: Array, modes: Sequence[Strided]) -> Array:
    """The elements of a C-contiguous array at strided places along its modes."""
    start, shape, strides = 0, list[int](), list[int]()
    for mode, stride in zip(modes, array.strides, strict=True):
        start += mode.start * stride
        for n, step in zip(mode.shape, mode.steps, strict=True):
            if n > 1:
                shape.append(n)
                strides.append(step * stride)
    view: Array = np.ndarray(shape, array.dtype, array, start, strides)
    return view
