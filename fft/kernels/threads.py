"""The threads of one rank: a pool that its communicator keeps, and kernels whose blocks the threads share.

Copies and the transforms of all libraries release Python's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import gcd, prod
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from rote.runtime.comm.cache import cached
from rote.runtime.comm.protocol import Array, Comm
from rote.runtime.comm.segments import LINE
from rote.runtime.copies import Copy, run
from rote.runtime.operations import BlockWork, Scratch

from .backends.library import WHOLE
from .kernel import Kernel, Scale
from .passes import BoundKernel

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["SHARED", "OnThreads", "Pool", "bind_kernel", "divisible", "helpers", "parallel_for", "run_at_once"]
__all__ += ["shared_by", "with_threads"]

SHARED = 1 << 20  # bytes of a block that one thread transforms in about the time that others take to wake up
_Worker = TypeVar("_Worker")
_Item = TypeVar("_Item")

_ONE_PART = 1 << 21  # bytes of a piece that is one part: between two calls, threads may wait for Python's lock
_KEPT = 4  # pools of different sizes that a communicator keeps

Pool: TypeAlias = "ThreadPoolExecutor | None"
"""The further threads of a rank; None if its main thread works alone."""


def helpers(comm: Comm, threads: int) -> Pool:
    """The further threads of a rank; its communicator keeps them, and they end with it."""
    if threads == 1:
        return None
    from concurrent.futures import ThreadPoolExecutor  # it imports logging, which one thread does not need

    return cached(comm, "threads", threads, lambda: ThreadPoolExecutor(threads - 1, "rote"), _KEPT)


def parallel_for(
    pool: Pool, do: Callable[[_Worker, _Item], object], workers: Sequence[_Worker], items: Sequence[_Item]
) -> None:
    """Do all items. Each worker does one item at a time, the first one on this thread; several workers need a pool."""
    number = len(workers)
    run_at_once(pool, [partial(_all, do, worker, items[n::number]) for n, worker in enumerate(workers)])


def run_at_once(pool: Pool, jobs: Sequence[Callable[[], object]]) -> None:
    """Run all jobs at the same time, the first one on this thread. Several jobs need a pool."""
    if len(jobs) == 1:
        jobs[0]()
        return

    assert pool is not None, "jobs without threads"
    # Also if the first job fails, no job may go on after the return: they work in the caller's memory.
    others = [pool.submit(job) for job in jobs[1:]]
    try:
        jobs[0]()
    finally:
        errors = [other.exception() for other in others]  # this waits
    for error in errors:
        if error is not None:
            raise error


def _all(do: Callable[[_Worker, _Item], object], worker: _Worker, items: Sequence[_Item]) -> None:
    for item in items:
        do(worker, item)


def bind_kernel(
    kernel: Kernel, scratch: Scratch, ortho: bool = False, scale: Scale = 1, pool: Pool = None
) -> BoundKernel | OnThreads:
    """A kernel on the threads of its config, which are this one and those of the pool; arguments as of `BoundKernel`.

    Threads share rows of the block before its first axis, or columns along its only axis. If it has neither, its
    library may have threads of its own. Small blocks are transformed by only this thread.
    """
    if shared_by(kernel) > 1:
        return OnThreads(kernel, scratch, ortho, scale, pool)
    if kernel.nbytes <= SHARED:
        kernel = with_threads(kernel, 1)
    return BoundKernel(kernel, scratch, ortho, scale)


def divisible(kernel: Kernel) -> bool:
    """Whether threads can share a block: it has several rows before its first axis, or columns along its only one."""
    first = min(kernel.axes)
    across = kernel.shape[:first] if first else kernel.shape[len(kernel.axes) :]
    return prod(across) > 1 and (first > 0 or len(kernel.axes) == 1)


def shared_by(kernel: Kernel) -> int:
    """The number of threads that share a block; 1 if it is small, or only its library can have threads."""
    return kernel.config.threads if kernel.nbytes > SHARED and divisible(kernel) else 1


def with_threads(kernel: Kernel, threads: int) -> Kernel:
    """The kernel on another number of threads."""
    if kernel.config.threads == threads:
        return kernel
    return replace(kernel, config=replace(kernel.config, threads=threads))


class OnThreads(BlockWork):
    """A kernel whose block is cut into as many pieces as there are threads, equal but for whole cache lines.

    A piece is some rows before the first axis, or some columns along the only axis:

        axes after the first mode    rows 0 to 4  |  rows 5 to 9  |  rows 10 to 14
        only axis 0                  all rows, but some columns each
    """

    __slots__ = ("_kernels", "_pool", "_shapes", "kernel")

    kernel: Kernel

    def __init__(self, kernel: Kernel, scratch: Scratch, ortho: bool, scale: Scale, pool: Pool) -> None:
        self.kernel, self._pool = kernel, pool

        parts = with_threads(kernel.of_parts(), 1)
        first = min(parts.axes)
        axes = tuple(axis - first + 1 for axis in parts.axes) if first else (0,)
        ends = parts.shape, parts.out_shape
        if first:
            self._shapes = [(prod(shape[:first]), *shape[first:]) for shape in ends]
        else:
            self._shapes = [(shape[0], prod(shape[1:])) for shape in ends]

        rows = replace(parts, axes=axes, shape=self._shapes[0], out_shape=self._shapes[1])
        self._kernels: list[tuple[Any, BoundKernel]] = []
        for extent in _cut(rows, kernel.config.threads):
            n = extent.stop - extent.start
            if first:
                piece = replace(rows, shape=(n, *rows.shape[1:]), out_shape=(n, *rows.out_shape[1:]))
                place: Any = extent
            else:
                piece = replace(rows, shape=(rows.shape[0], n), out_shape=(rows.out_shape[0], n), pitch=rows.shape[1])
                place = np.s_[:, extent]

            if piece.nbytes <= _ONE_PART and not piece.config.part:
                piece = replace(piece, config=replace(piece.config, part=WHOLE))
            self._kernels.append((place, BoundKernel(piece, scratch, ortho, scale)))

    def bound(self, source: Array, target: Array) -> list[Copy]:
        parts, calls = self.kernel.of_parts(), list[Copy]()
        sources = source.view(parts.dtype).reshape(self._shapes[0])
        targets = target.view(parts.out_dtype).reshape(self._shapes[1])
        for place, kernel in self._kernels:
            calls.append(partial(run, kernel.bound(sources[place], targets[place])))
        return [partial(run_at_once, self._pool, calls)]


def _cut(rows: Kernel, threads: int) -> list[slice]:
    """The pieces of rows before an axis, or of the columns along the first mode, for at most so many threads."""
    ends = (rows.shape, rows.dtype), (rows.out_shape, rows.out_dtype)
    if rows.axes == (0,):
        across, sizes = rows.shape[1], [dtype.itemsize for _, dtype in ends]
    else:
        across, sizes = rows.shape[0], [prod(shape[1:]) * dtype.itemsize for shape, dtype in ends]
    least = LINE // gcd(LINE, *sizes)  # pieces begin at a cache line
    places = [across * n // threads // least * least for n in range(threads)] + [across]
    return [slice(start, stop) for start, stop in pairwise(places) if start < stop]
