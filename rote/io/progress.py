"""Progress of long reads and writes, on a terminal or through a callback; and slabs, the steps of progress."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod

from ..layout.indexset import IndexSet
from ..runtime.comm.collective_errors import collective_errors
from ..runtime.comm.protocol import Array, Comm, Path
from ..runtime.tuning.autotune import Progress

__all__ = ["progress", "slabs", "telling"]


LONG, SLAB = 1 << 28, 1 << 26  # bytes: the least that a bar is shown for, and the most of a slab


_listener: ContextVar[Progress | None] = ContextVar("listener", default=None)


@contextmanager
def telling(comm: Comm, listener: Progress | None) -> Iterator[None]:
    """Let `progress` call `listener` on this rank with the fraction done, from 0 to 1; with None it shows a bar.

    The last call is with 1, if nothing failed. An exception of `listener` is raised on all ranks, but only at the end,
    because the other ranks need this one until then. Collective.

    >>> from rote.runtime import world
    >>> with telling(world(), print), progress(world(), "reading", "volume.h5", 200) as advance:
    ...     advance(50)
    0.25
    1.0
    """
    failures: list[Exception] = []
    last = 0.0

    def tell(part: float) -> None:
        nonlocal last
        if listener is not None and not failures and part > last:
            last = part
            try:
                listener(part)
            except Exception as failure:
                failures.append(failure)

    token = _listener.set(None if listener is None else tell)
    try:
        yield
        tell(1.0)
    finally:
        _listener.reset(token)
    with collective_errors(comm):
        if failures:
            raise failures[0]


@contextmanager
def progress(comm: Comm, verb: str, path: Path, nbytes: int) -> Iterator[Callable[[int], None]]:
    """Show a bar, on rank 0's terminal for 256 MiB or more; yield a function to call with the bytes just moved.

    Inside `telling` with a function, that function is called instead.

    >>> from rote.runtime import world
    >>> with progress(world(), "reading", "volume.h5", 100) as advance:
    ...     advance(100)
    """
    tell, done = _listener.get(), 0

    def advance(moved: int) -> None:
        nonlocal done
        done += moved
        if tell is not None and done < nbytes:
            tell(done / nbytes)

    if tell is not None:
        yield advance
        return
    if comm.rank or nbytes < LONG or not sys.stderr.isatty():
        yield lambda moved: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(True), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{verb} {os.path.basename(os.fspath(path))}", total=nbytes)
        yield lambda moved: bar.advance(task, moved)


def slabs(
    index: tuple[IndexSet, ...], block: Array, largest: Sequence[int]
) -> Iterator[tuple[tuple[IndexSet, ...], Array]]:
    """The slabs of a block along its first mode, at most about 64 MiB each, with indices; equally many on every rank.

    `index` has the global indices of the block, and `largest` the extents of the largest block of all ranks.

    >>> import numpy as np
    >>> index = IndexSet.interval(0, 5), IndexSet.interval(0, 2**21)
    >>> [part.shape for _, part in slabs(index, np.empty((5, 2**21)), (9, 2**21))]
    [(4, 2097152), (1, 2097152), (0, 2097152)]
    """
    if not index:
        yield index, block
        return
    step = max(SLAB // max(prod(largest[1:]) * block.dtype.itemsize, 1), 1)
    for start in range(0, largest[0], step):
        yield (index[0].select(IndexSet.interval(start, start + step)), *index[1:]), block[start : start + step]
