"""Factors and triangular solves of one matrix that is split over a grid of ranks, as walks along its diagonal.

The matrix is block-cyclic, `[(0:cyclic(b)),(1:cyclic(b))]`. A step of a walk factors one block of the diagonal and what
is below it, moves this panel along the rows and the columns of the grid, and subtracts a product from the rest, each
rank from its own block. So does Cholesky's:

    | done                |     panel  `[(0:cyclic(b)),()]|(1@t)`    on the ranks of one column of the grid
    |      +---+--------- |       -> `[(0:cyclic(b)),()]`            on each rank, for the rows of its block
    |      | L |          |       -> `[(1:cyclic(b)),()]`            on each rank, for the columns of its block
    |      +---+--------- |
    |      | P | the rest |     rest -= (P of its rows) (P of its columns)'
    |      | P |          |

LU has the panel factored by one rank, exchanges rows, and multiplies by the solved rows of U, not by P'. Triangular
solves have no panel to factor, and subtract from right sides.

As tiles are dealt in turn, all ranks have a part of the rest until the end. Panels keep the height of the matrix, so
that all steps have the same few plans.

Source: Poulson, Marker, van de Geijn, Hammond, Romero 2013, "Elemental: a new framework for distributed memory dense
matrix computations", whose layouts these are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from ..functions.distributed import Array, Distributed, Ints
from ..functions.indexing import getitem
from ..functions.moves import redistributed
from ..layout.distribution import distribute
from ..layout.layout import Entry, Layout

__all__ = ["Trans", "cholesky", "diagonal", "factor", "inv", "op", "order_of", "pivoted", "solve", "solved"]
__all__ += ["triangular_solve", "width_of"]


Trans = Literal["N", "T", "C"]
"""Whether a matrix is meant as it is, transposed, or with its conjugate transposed, as in LAPACK."""

_SLAB = 256  # columns that are updated together
_NARROW = 8  # columns of a panel that are factored one by one


class _Step(NamedTuple):
    """A step along the diagonal of a matrix: one tile of it, on which rank it is, and where it is in this rank's block.

    Attributes:
        start, stop: its global indices.
        at: its coordinates on the grid.
        rows, columns: the local indices that are in the tile; each slice is empty if there are none along its mode.
    """

    start: int
    stop: int
    at: tuple[int, int]
    rows: slice
    columns: slice


def _steps(x: Distributed) -> list[_Step]:
    """The steps along the diagonal of a block-cyclic matrix."""
    dist = x.distribution
    width = width_of(x)
    rows, columns = dist.indices(x.comm.rank)

    steps = []
    for start in range(0, min(dist.shape), width):
        ends = start, min(start + width, *dist.shape)
        tile = start // width
        at = tile % dist.grid.shape[0], tile % dist.grid.shape[1]
        local = [slice(*np.searchsorted(indices, ends).tolist()) for indices in (rows, columns)]
        steps.append(_Step(*ends, at, *local))
    return steps


def width_of(x: Distributed) -> int:
    """The number b of a layout of tiles of b."""
    (entry,) = x.distribution.layout.modes[0]
    return entry.kind.sizes[0] if entry.kind.sizes else 1


# --- what moves -----------------------------------------------------------------------------------------------------


def _split_over(x: Distributed, grid_mode: int) -> tuple[Entry, ...]:
    """The entries that deal one mode in tiles over a grid mode, as those of the matrix."""
    return x.distribution.layout.modes[grid_mode]


def _moved(x: Distributed, block: Array, shape: tuple[int, int], source: Layout, target: Layout) -> Array:
    """This rank's block of a part of a matrix, after a move; `block` is that before it, where the rank has any."""
    start = distribute(source, shape, x.distribution.grid)
    if not start.holds(x.comm.rank):
        block = np.empty(start.local_shape(x.comm.rank), block.dtype)
    return redistributed(x._on(np.ascontiguousarray(block), start), target, "a step of a walk").local


def _from_rank(
    x: Distributed, make: Callable[[], list[Array]], like: Sequence[tuple[int, ...]], rank: int
) -> list[Array]:
    """Arrays that one rank makes, of the dtype of a matrix and these shapes, on all ranks."""
    sizes = [int(np.prod(shape)) for shape in like]
    buffer = np.empty(sum(sizes), x.local.dtype)
    if x.comm.rank == rank:
        np.concatenate([array.ravel() for array in make()], out=buffer)

    x.comm.bcast_in_place(buffer, rank)
    parts = np.split(buffer, np.cumsum(sizes)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, like, strict=True)]


def diagonal(x: Distributed) -> Array:
    """The diagonal of a matrix, as an array on every rank. Collective."""
    rows, columns = x.distribution.indices(x.comm.rank)
    common, at, beside = np.intersect1d(rows, columns, assume_unique=True, return_indices=True)

    values = np.zeros(min(x.distribution.shape), x.local.dtype)
    values[common] = x.local[at, beside]
    x.comm.allreduce_in_place(values, "sum")
    return values


def _part(values: Array, rows: slice) -> Array:
    """The values for the rows of one tile that are in this rank's block: all, or none."""
    return values[: rows.stop - rows.start]


def _slabs(start: int, stop: int) -> Iterator[slice]:
    """Slices of columns, so that a product takes little memory before it is subtracted."""
    for first in range(start, stop, _SLAB):
        yield slice(first, min(first + _SLAB, stop))


# --- factors ----------------------------------------------------------------------------------------------------------


def cholesky(x: Distributed) -> None:
    """Overwrite a block-cyclic matrix, of which the lower triangle is read, by its Cholesky factor. Collective.

    Raises:
        numpy.linalg.LinAlgError: the matrix is not positive definite; raised on all ranks.
    """
    block, grid = x.local, x.distribution.grid
    n = x.distribution.shape[0]
    rows, columns = x.distribution.indices(x.comm.rank)
    by_rows, by_columns = _split_over(x, 0), _split_over(x, 1)

    for step in _steps(x):
        width = step.stop - step.start
        below, right = slice(step.rows.stop, None), slice(step.columns.stop, None)

        def tile_factor(tile: Array = block[step.rows, step.columns]) -> list[Array]:
            try:
                return [np.linalg.cholesky(tile), np.zeros(1)]
            except np.linalg.LinAlgError:
                return [tile, np.ones(1)]

        tile, failed = _from_rank(x, tile_factor, [(width, width), (1,)], grid.rank(step.at))
        if failed[0]:
            raise np.linalg.LinAlgError("Matrix is not positive definite")

        # The panel: the ranks of its column of the grid solve for its rows.
        panel = np.zeros((len(rows), width), block.dtype)
        if step.columns.start < step.columns.stop:
            block[step.rows, step.columns] = _part(tile, step.rows)
            panel[below] = solved(tile, block[below, step.columns].conj().T, lower=True).conj().T
            block[below, step.columns] = panel[below]
        source = Layout((by_rows, ()), rooted=((1, step.at[1]),))
        left = _moved(x, panel, (n, width), source, Layout((by_rows, ())))
        above = _moved(x, panel, (n, width), source, Layout((by_columns, ()))).conj().T

        # The rest: of each slab of columns, what is above the diagonal is not wanted.
        for slab in _slabs(right.start, len(columns)):
            under = slice(np.searchsorted(rows, columns[slab.start]), None)
            block[under, slab] -= left[under] @ above[:, slab]

    block[np.less.outer(rows, columns)] = 0


def pivoted(x: Distributed) -> Ints:
    """Overwrite a block-cyclic matrix by L and U of its factors P L U, where L has a unit diagonal. Collective.

    Returns:
        The pivots, on every rank: row i was exchanged with row pivots[i], one after the other. A column without a pivot
        has a 0 on the diagonal of U.
    """
    block, grid = x.local, x.distribution.grid
    m, n = x.distribution.shape
    rows, columns = x.distribution.indices(x.comm.rank)
    by_rows, by_columns = _split_over(x, 0), _split_over(x, 1)
    pivots = np.arange(min(m, n))

    for step in _steps(x):
        width = step.stop - step.start
        below, right = slice(step.rows.stop, None), slice(step.columns.stop, None)
        of_panel = step.columns.start < step.columns.stop

        # One rank factors the panel, so that all agree on its pivots.
        whole, root = Layout(((), ()), rooted=((0, 0), (1, step.at[1]))), grid.rank((0, step.at[1]))
        source = Layout((by_rows, ()), rooted=((1, step.at[1]),))
        panel = _moved(x, block[:, step.columns] if of_panel else block[:, :0], (m, width), source, whole)
        chosen = np.zeros(width, np.int64)
        if x.comm.rank == root:
            factor(panel[step.start :], chosen)
        x.comm.bcast_in_place(chosen, root)
        pivots[step.start : step.stop] = chosen + step.start

        (tile,) = _from_rank(x, partial(_rows_of, panel, step), [(width, width)], root)
        left = _moved(x, panel, (m, width), whole, Layout((by_rows, ())))

        # Rows change places: those that do are contributions of the rows of the grid, added up. Row places[k] becomes
        # what row order[places[k]] was; `arriving` has one row for each k, first those of the tile.
        order = order_of(pivots[step.start : step.stop], m, step.start)
        others = np.setdiff1d(np.flatnonzero(order != np.arange(m)), np.arange(step.start, step.stop))
        places = np.concatenate([np.arange(step.start, step.stop), others])

        arriving = np.zeros((2 * width, len(columns)), block.dtype)
        numbers, source_rows = _held(order[places], rows)
        arriving[numbers] = block[source_rows]
        contributed = Layout(((), by_columns), partial=(0,))
        arriving = _moved(x, arriving, (2 * width, n), contributed, Layout(((), by_columns)))

        numbers, target_rows = _held(places, rows)
        block[target_rows] = arriving[numbers]

        # The rows of U, and the rest.
        if of_panel:
            block[:, step.columns] = left
        above = solved(np.tril(tile, -1) + np.eye(width, dtype=tile.dtype), arriving[:width, right], lower=True)
        block[step.rows, right] = _part(above, step.rows)
        for slab in _slabs(right.start, len(columns)):
            block[below, slab] -= left[below] @ above[:, slab.start - right.start : slab.stop - right.start]

    return pivots


def _rows_of(panel: Array, step: _Step) -> list[Array]:
    """The rows of a panel that are on the diagonal."""
    return [panel[step.start : step.stop]]


def _held(indices: Ints, local: Ints) -> tuple[Ints, Ints]:
    """Which of some global indices this rank has, by their numbers, and their local indices."""
    at = np.searchsorted(local, indices)
    inside = at < len(local)
    inside[inside] = local[at[inside]] == indices[inside]
    return np.flatnonzero(inside), at[inside]


def order_of(pivots: Ints, n: int, start: int = 0) -> Ints:
    """The rows in the order to which exchanges bring them: the first with row pivots[0], and so on from `start`.

    >>> order_of(np.array([2, 2]), 3).tolist()
    [2, 0, 1]
    """
    order = np.arange(n)
    for row, other in enumerate(pivots.tolist(), start):
        order[row], order[other] = order[other], order[row]
    return order


def factor(a: Array, pivots: Ints) -> None:
    """Overwrite an array by its factors L and U; `pivots`, as many as its shorter side, becomes rows to exchange.

    >>> a, pivots = np.array([[1.0, 2.0], [4.0, 4.0]]), np.zeros(2, int)
    >>> factor(a, pivots)
    >>> a.tolist(), pivots.tolist()
    ([[4.0, 4.0], [0.25, 1.0]], [1, 1])
    """
    count = len(pivots)
    if count <= _NARROW:
        for column in range(count):
            below = a[column:, column]
            # LAPACK compares |re| + |im|.
            pivot = column + int(np.argmax(np.abs(below.real) + np.abs(below.imag)))
            pivots[column] = pivot
            if pivot != column:
                a[[column, pivot]] = a[[pivot, column]]
            if a[column, column] != 0:
                a[column + 1 :, column] /= a[column, column]
                a[column + 1 :, column + 1 :] -= np.outer(a[column + 1 :, column], a[column, column + 1 :])
        return

    # Half of the columns first, by the same rule: then most of the work is a product of matrices.
    half = count // 2
    factor(a[:, :half], pivots[:half])
    _exchange(a[:, half:], pivots[:half])
    unit = np.tril(a[:half, :half], -1) + np.eye(half, dtype=a.dtype)
    a[:half, half:] = solved(unit, a[:half, half:], lower=True)
    a[half:, half:] -= a[half:, :half] @ a[:half, half:]

    factor(a[half:, half:], pivots[half:])
    _exchange(a[half:, :half], pivots[half:])
    pivots[half:] += half


def _exchange(a: Array, pivots: Ints) -> None:
    """Exchange rows of an array, one after the other."""
    for row, other in enumerate(pivots.tolist()):
        if row != other:
            a[[row, other]] = a[[other, row]]


def solve(x: Distributed, y: Distributed) -> Any:
    """The solutions of x z = y for right sides y in columns; x is overwritten. Collective.

    Raises:
        numpy.linalg.LinAlgError: the matrix is singular; raised on all ranks.
    """
    pivots = pivoted(x)
    if not diagonal(x).all():
        raise np.linalg.LinAlgError("Singular matrix")

    solution = getitem(y, order_of(pivots, len(pivots)))
    triangular_solve(x, solution, lower=True, unit=True)
    triangular_solve(x, solution, lower=False)
    return solution


def inv(x: Distributed) -> Any:
    """The inverse of a matrix, which is overwritten. Collective.

    Raises:
        numpy.linalg.LinAlgError: the matrix is singular; raised on all ranks.
    """
    unit = np.equal.outer(*x.distribution.indices(x.comm.rank))
    return solve(x, x._with(unit.astype(x.local.dtype)))


# --- triangular solves ------------------------------------------------------------------------------------------------


def triangular_solve(x: Distributed, y: Distributed, lower: bool, trans: Trans = "N", unit: bool = False) -> None:
    """Overwrite y by the solutions of op(x) z = y, for a triangle of x. Collective.

    Args:
        x: a square block-cyclic matrix without a zero on its diagonal.
        y: right sides in columns, in the same layout, on the same grid.
        lower: whether the triangle is the lower one of x; the other elements are not read.
        trans: what op(x) is: x, its transpose, or its conjugate transpose.
        unit: whether the diagonal counts as ones, and is not read.
    """
    block, grid = y.local, x.distribution.grid
    n, count = y.distribution.shape
    by_rows, by_columns = _split_over(x, 0), _split_over(x, 1)
    forward = lower == (trans == "N")

    for step, rows in _towards(x, y, forward):
        width = step.stop - step.start

        def triangle(tile: Array = x.local[step.rows, step.columns]) -> list[Array]:
            tile = np.tril(tile, -int(unit)) if lower else np.triu(tile, int(unit))
            return [op(tile + np.eye(len(tile), dtype=tile.dtype) if unit else tile, trans)]

        (tile,) = _from_rank(x, triangle, [(width, width)], grid.rank(step.at))

        # The rows of the solution, on all rows of the grid.
        source = Layout(((), by_columns), rooted=((0, step.at[0]),))
        found = _moved(y, block[rows], (width, count), source, Layout(((), by_columns)))
        found = solved(tile, found, lower=forward)
        block[rows] = _part(found, rows)

        # The column of op(x), which is a row of x if it is transposed.
        if trans == "N":
            panel, source = x.local[:, step.columns], Layout((by_rows, ()), rooted=((1, step.at[1]),))
        else:
            panel, source = op(x.local[step.rows], trans), Layout((by_columns, ()), rooted=((0, step.at[0]),))
        left = _moved(x, panel, (n, width), source, Layout((by_rows, ())))
        rest = slice(rows.stop, None) if forward else slice(0, rows.start)
        block[rest] -= left[rest] @ found


def _towards(x: Distributed, y: Distributed, forward: bool) -> Iterator[tuple[_Step, slice]]:
    """The steps along the diagonal of x, from either end, and the local rows of y in each."""
    (rows, _) = y.distribution.indices(y.comm.rank)
    steps = _steps(x)
    for step in steps if forward else reversed(steps):
        yield step, slice(*np.searchsorted(rows, (step.start, step.stop)).tolist())


def op(a: Array, trans: Trans) -> Array:
    """A matrix, its transpose, or its conjugate transpose."""
    return a if trans == "N" else a.conj().T if trans == "C" else a.T


def solved(triangle: Array, right: Array, lower: bool) -> Array:
    """The solutions of a small triangular system.

    With an upper triangle NumPy's solver finds its pivots on the diagonal; a lower one is an upper one from the end.
    """
    if lower:
        return np.asarray(np.linalg.solve(triangle[::-1, ::-1], right[::-1])[::-1])
    return np.asarray(np.linalg.solve(triangle, right))
