"""The floor of a transform: the time of its lines in cache, plus a copy of the block for each sweep through memory.

If no cache holds the block, no program can be faster: it must read and write the block before each move and after the
last one, and at best it computes in between as if the points were in cache. Both times are measured in the same rounds
as the contestants, on all ranks at once. For tensors that fit into caches the floor is only a yardstick, no bound.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import NamedTuple

import numpy as np

from ..layout.grid import Grid
from ..runtime.comm import segments
from ..runtime.comm.protocol import Array, Comm
from .arrays import check_values, fill, mesh, spectrum_shape
from .contest import Contestant, Job, Missing, Round, Work, measure, on_all
from .local_libraries import LIBRARIES
from .machine import build
from .rote_cases import slabs

__all__ = ["Lines", "axes", "in_cache", "kernels", "sweeps"]

_TILE = 1 << 17  # bytes of the lines that are transformed at once; input and output fit into any second-level cache
_SPAN = 0.05  # seconds for which the lines of one axis are transformed in a round
_FASTEST = ("pyfftw", "ducc0", "mkl_fft")  # at every length, the fastest library is one of these


class Lines(NamedTuple):
    """The lines along one axis of a block: points per line, dtype, and elements of the block."""

    points: int
    dtype: np.dtype[np.generic]
    elements: float


def axes(work: Work) -> list[Lines]:
    """The axes of a rank's part of a transform; of a real one, all but the last are axes of half the spectrum.

    >>> [(axis.points, axis.dtype.char, axis.elements) for axis in axes(Work((8, 9, 10), np.dtype("f8"), 2))]
    [(8, 'D', 216.0), (9, 'D', 216.0), (10, 'd', 360.0)]
    """
    spectral = prod(spectrum_shape(work)) / work.ranks
    *others, last = work.shape
    wide = np.result_type(work.dtype, "c8")
    lines = [Lines(n, wide, spectral) for n in others]
    return [*lines, Lines(last, work.dtype, prod(work.shape) / work.ranks)]


def sweeps(work: Work, order: int) -> int:
    """The least number of sweeps over the block, forward and backward, on a grid of the given order.

    >>> [sweeps(Work((8, 8, 8), np.dtype("c16"), ranks), order) for ranks, order in ((1, 1), (2, 1), (2, 2), (4, 2))]
    [2, 4, 4, 6]
    """
    return 2 * (1 + sum(parts > 1 for parts in Grid.of(work.ranks, order).shape))


def in_cache(work: Work, mpi: bool) -> list[Contestant]:
    """One contestant per library: it transforms as many lines as a rank's part has, contiguous and in cache."""
    return [on_all("in-cache", name, partial(_run, name, work), work, mpi) for name in _FASTEST]


def kernels(work: Work, mpi: bool) -> Contestant:
    """The bare local transforms of a slab walk, without the move between them."""
    return on_all("kernels", "", partial(measure, _kernels, work), work, mpi)


def _run(name: str, work: Work, comm: Comm) -> Round:
    """One round: the time of each axis is the time of one tile of lines, times the number of tiles."""
    times: dict[tuple[int, np.dtype[np.generic]], float] = {}  # per element
    total = 0.0
    for points, dtype, elements in axes(work):
        if (points, dtype) not in times:
            tile = Work((max(_TILE // (points * dtype.itemsize), 1), points), dtype, 1)
            try:
                seconds = measure(partial(_lines, name), tile, comm, _SPAN).seconds
            except ImportError:
                raise Missing(f"is not installed; pip install {name}") from None
            times[points, dtype] = seconds / prod(tile.shape)
        total += times[points, dtype] * elements
    return Round(total, build(name))


def _lines(name: str, comm: Comm, work: Work) -> Job:
    return _local(name, work, [(work.shape, (1,))])


def _kernels(comm: Comm, work: Work) -> Job:
    order = len(work.shape)
    if comm.size == 1:
        return _local("pyfftw", work, [(work.shape, tuple(range(order)))])
    before, after = (each.local_shape(comm.rank) for each in slabs(work))
    return _local("pyfftw", work, [(before, tuple(range(1, order))), (after, (0,))])


def _local(name: str, work: Work, parts: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> Job:
    """Transforms of blocks along some of their axes, one block after the other, and back in reverse order."""
    prepared = []
    for shape, along in parts:
        block = Work(shape, work.dtype, 1)
        x, y = (segments.empty(shape, work.dtype) for _ in range(2))
        X = segments.empty(spectrum_shape(block), np.result_type(work.dtype, "c8"))
        steps, scale = LIBRARIES[name](block, along, 1, x, X, y)
        fill(block, mesh(shape), x)
        prepared.append((block, steps, scale))
    block, _, scale = prepared[0]
    onward = [steps[0] for _, steps, _ in prepared]
    back = [steps[1] for _, steps, _ in reversed(prepared)]

    def called(steps: list[Callable[[], Array]]) -> Array:
        return [step() for step in steps][-1]

    def check(y: Array) -> None:
        check_values(block, mesh(block.shape), y / scale)

    return Job((partial(called, onward), partial(called, back)), (lambda X: None, check))
