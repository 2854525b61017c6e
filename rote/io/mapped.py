"""Reading by memory-mapped pages, for the ranks of one node: short runs, and views that reorder the modes of a file.

The pages are in memory once, however many ranks map them. A rank copies its elements from the pages straight into its
block, by tiles that are transposed in the cache if the block's order differs from the file's. No data is exchanged, and
no buffer is needed. Threads share one mapping, because finding a page costs as much as copying half of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ..errors import CommError
from ..layout.indexset import EMPTY, IndexSet
from ..layout.layout import Distribution
from ..runtime.comm.collective_errors import collective_errors
from ..runtime.comm.protocol import Array, Comm, Path
from ..runtime.comm.rawfile import LONG_RUN, check_file_part, copy_part
from ..runtime.copy.transposed import transposed
from .positions import LARGE, file_parts, is_reordered, run_length, storage_shape

__all__ = ["on_one_node", "picks_from_pages", "read_pages"]

WINDOW = 1 << 26
"""Bytes of a file that are read at a time; after each window, progress is reported."""


def on_one_node(comm: Comm) -> bool:
    """Whether all ranks are on one node, and so share the pages of files."""
    return len(set(comm.nodes())) == 1


def picks_from_pages(dist: Distribution, itemsize: int, fortran_order: bool, comm: Comm) -> bool:
    """Whether `read_pages` reads the blocks: large ones, all on one node, that are not long runs of the file.

    >>> from rote.layout.layout import parse
    >>> from rote.runtime import world
    >>> [picks_from_pages(parse(text).on((512, 512), 1), 8, False, world()) for text in ("[(0),()]", "b a: [(0),()]")]
    [False, True]
    """
    if not dist.shape or prod(dist.max_local_shape()) * itemsize < LARGE or not on_one_node(comm):
        return False
    return fortran_order or is_reordered(dist) or run_length(dist) * itemsize < LONG_RUN


def read_pages(
    path: Path,
    offset: int,
    block: Array,
    dist: Distribution,
    fortran_order: bool,
    comm: Comm,
    advance: Callable[[int], None],
) -> None:
    """Read this rank's block of the array that begins at byte `offset` of a file. Collective, for ranks of one node.

    Reading a mapped page beyond the end of the file would kill the process, so the file's length is checked before each
    window. If the tensor is partial, a block that the reduction ignores is not changed.

    Args:
        block: C-contiguous, of the file's dtype, in either byte order.
        fortran_order: whether mode 0 runs fastest in the file.
        advance: called with the number of bytes of the block that were read since the last call.

    Raises (the same on all ranks):
        OSError: the file cannot be opened.
        CommError: the file is too short, or becomes too short while it is read.
    """
    shape = storage_shape(dist, fortran_order)
    with ExitStack() as files:
        with collective_errors(comm):
            nothing = (EMPTY,) * len(shape), np.empty((0,) * len(shape), block.dtype)
            check_file_part(path, offset, shape, *nothing, writing=False)
            file = files.enter_context(open(path, "rb", buffering=0))
            pages: Any = np.memmap(file, block.dtype, "r", offset, shape)
        shared = comm.share_reference(pages)
        pages = pages if shared is None else shared[0]
        with collective_errors(comm):
            if dist.holds(comm.rank) and dist.contributes(comm.rank) and block.size:
                for index, target in file_parts(block, dist, comm.rank, fortran_order):
                    for picked, place in _windows(shape, index, target):
                        if os.fstat(file.fileno()).st_size < offset + prod(shape) * block.dtype.itemsize:
                            raise CommError(
                                f"file too short: {os.fspath(path)} lost its end while it was read\n"
                                "give a whole copy of the file, and leave it as it is meanwhile"
                            )
                        copy_part(pages, picked, target[place], False, _copy)
                        advance(target[place].nbytes)


def _windows(
    shape: tuple[int, ...], index: tuple[IndexSet, ...], target: Array
) -> Iterator[tuple[tuple[IndexSet, ...], tuple[slice, ...]]]:
    """The windows of a part: for each, its positions in the file and its place in the target.

    The axis that is cut leaves long runs in the file, and of such axes it leaves the longest runs in the target.
    """
    total = prod(shape) * target.itemsize

    def step(axis: int) -> int:
        return max(WINDOW * shape[axis] // total, 1)

    long = []
    for axis in range(1, len(shape)):
        run = step(axis) * prod(shape[axis + 1 :]) * target.itemsize
        if total <= WINDOW * shape[axis] and run >= LONG_RUN:
            long.append(axis)
    cut = max([0, *long], key=lambda axis: step(axis) * abs(target.strides[axis]))
    held = index[cut]
    for start in range(0, shape[cut], step(cut)):
        stop = start + step(cut)
        picked = held & IndexSet.interval(start, stop)
        place = *(slice(None),) * cut, slice(held.count_below(start), held.count_below(stop))
        if picked:
            yield (*index[:cut], picked, *index[cut + 1 :]), place


def _copy(target: Array, source: Array) -> None:
    """Copy an array, by tiles if source and target have different orders."""
    (transposed(source, target) or partial(np.copyto, target, source))()
