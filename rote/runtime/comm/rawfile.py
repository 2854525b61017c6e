"""A part of an array that lies in a raw file: what both communicators need to know about it."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

import numpy as np

from ...errors import CommError
from .protocol import Array, Path

__all__ = ["check_file_part", "picks"]


def check_file_part(
    path: Path, offset: int, shape: Sequence[int], index: Sequence[Array], block: Array, writing: bool
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
    picked = tuple(len(positions) for positions in index)
    nothing = not shape and block.size == 0  # order 0 has no index to say that a rank holds nothing
    if len(picked) != len(shape) or (block.shape != picked and not nothing) or not block.flags.c_contiguous:
        raise CommError(
            f"a block of shape {block.shape} does not fit an index of shape {picked} into an array of shape "
            f"{tuple(shape)}\n"
            "give one index per mode, and a C-contiguous block of the index's shape"
        )


def picks(positions: Array) -> slice | Array:
    """Sorted positions (at least one) as a slice, where they are evenly spaced: NumPy copies slices much faster.

    >>> picks(np.array([1, 4, 7])), picks(np.array([0, 1, 4]))
    (slice(1, 8, 3), array([0, 1, 4]))
    """
    first, last = int(positions[0]), int(positions[-1])
    step = int(positions[1]) - first if len(positions) > 1 else 1
    even = last - first == step * (len(positions) - 1) and bool((np.diff(positions) == step).all())
    return slice(first, last + 1, step) if even else positions
