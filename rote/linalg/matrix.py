"""Tensors as ScaLAPACK sees them: a block, a descriptor, and a grid of processes in BLACS.

A layout `[(0:cyclic(b)),(1:cyclic(b))]` is a descriptor with tiles of b x b. But a block is in C order, and ScaLAPACK
reads columns: in the same memory it sees the transposed matrix, on the transposed grid.

    Rote: m x n, grid r x c, rank k at (k div c, k mod c)     ScaLAPACK: n x m, grid c x r, rank k at (k mod c, k div c)

Nothing is copied for this. Routines are called for the transposed matrix instead: with "U" for the lower triangle, from
the other side, or with another factor of the same name.
"""

from __future__ import annotations

from ctypes import CDLL, byref, c_int
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ..functions.distributed import Distributed
from ..layout.grid import Grid
from ..runtime.comm.cache import cached
from ..runtime.comm.protocol import Comm, MpiHandle
from .library import handle_of, library

__all__ = ["LIMIT", "arguments"]

LIMIT = 1 << 31
"""Extents and elements of a block are below this: ScaLAPACK counts by 32 bits."""


class _Grid:
    """A grid of processes in BLACS, which is released when its communicator is freed."""

    __slots__ = ("_library", "_system", "context")

    def __init__(self, scalapack: CDLL, comm: MpiHandle, grid: Grid) -> None:
        rows, columns = grid.shape
        self._library = scalapack
        self._system: int = scalapack.Csys2blacs_handle(handle_of(comm.native))

        context = c_int(self._system)
        scalapack.Cblacs_gridinit(byref(context), b"C", columns, rows)
        self.context: int = context.value

    def Free(self) -> None:
        """Release the grid, and the communicators that BLACS has made for it."""
        self._library.Cblacs_gridexit(self.context)
        self._library.Cfree_blacs_system_handle(self._system)


class _Held:
    """What keeps a grid of BLACS: the cache of its communicator."""

    __slots__ = ("__weakref__", "context")

    def __init__(self, context: int) -> None:
        self.context: int = context


def _context(comm: Comm, grid: Grid) -> int:
    """The number of a grid in BLACS, made at the first call, which is collective."""

    def make() -> _Held:
        handle = cast(MpiHandle, comm)
        made = _Grid(cast(CDLL, library(comm)), handle, grid)
        held = _Held(made.context)
        handle.frees(held, made)
        return held

    return cached(comm, "BLACS", grid, make, 8).context


def arguments(x: Distributed) -> tuple[Any, int, int, npt.NDArray[np.int32]]:
    """The arguments that a routine has for a matrix: its memory, where it begins, and the descriptor, transposed."""
    dist = x.distribution
    (m, n), width = dist.shape, dist.layout.modes[0][0].kind.sizes[0]
    leading = max(1, x.local.shape[1])

    numbers = (1, _context(x.comm, dist.grid), n, m, width, width, 0, 0, leading)
    return x.local, 1, 1, np.array(numbers, np.int32)
