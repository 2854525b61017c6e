"""Solvers of one matrix that is split over ranks: which way each call takes, and the moves before and after.

There are three ways. *ScaLAPACK*, where all ranks have it, or a *walk* of Rote's own overwrites the matrix, which moves
to tiles on the squarest grid of all ranks; the result moves back. Small matrices, matrices with infinities or NaNs, and
eigenvalues and singular values without ScaLAPACK go to *one rank*, where NumPy answers. No other rank holds a whole
matrix.

Results are in the layout that a call names, else in that of the operand. Errors are NumPy's, and all ranks raise them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import isqrt, prod
from typing import Any, Literal

import numpy as np

from ..errors import CommError, LayoutError
from ..functions.alignment import in_blocks, replicated
from ..functions.contraction.operands import common_operands
from ..functions.creation import LayoutLike, astype
from ..functions.distributed import Array, Distributed
from ..functions.indexing import getitem
from ..functions.moves import agree_on_call, attributed_to, moved, redistributed, solver, warn_of_root
from ..functions.orthogonal import SMALL, adjoint, floating, matrix_transpose, singular
from ..layout.distribution import Distribution, distribute
from ..layout.expressions import cyclic, fitting
from ..layout.grid import Grid
from ..layout.layout import Layout, as_layout
from ..runtime.comm.agreement import collective_errors, gathered
from . import routines, walks
from .library import INSTALL, library
from .matrix import LIMIT

__all__ = ["ENGINES", "arranged", "check_square", "cholesky", "det", "eigensystem", "eigh", "in_columns", "inv"]
__all__ += ["on_one_rank", "out_of_columns", "qr", "returned", "slogdet", "solve", "squarest", "svd", "target_of"]
__all__ += ["tiles_on", "way_of"]

Way = Literal["scalapack", "walk", "one rank"]

ENGINES: dict[str, Any] = {"scalapack": routines, "walk": walks}  # with functions of the same names
_WIDTH = 64  # rows and columns of a tile, of a matrix that has enough of them


# --- which way ------------------------------------------------------------------------------------------------------


def way_of(cause: str, operands: Sequence[Distributed], has_walk: bool = True) -> Way:
    """The way that a call takes, the same on all ranks. Collective.

    Args:
        cause: the name of the function.
        operands: the matrix that is factored, and right sides.
        has_walk: whether there is a walk.
    """
    x, wanted = operands[0], solver()
    shape, ranks = x.distribution.shape, x.comm.size
    agree_on_call(x.comm)

    # Under a name of its own, for a rank whose call is another one still compares that under the name of the function.
    facts = all(_is_finite(y.local) for y in operands), wanted
    finite, solvers = zip(*gathered(x.comm, f"the solver of {cause}", facts), strict=True)
    if len({*solvers}) > 1:
        raise LayoutError(f"ranks have several solvers, {', '.join(solvers)}\nset rote.config(linalg=…) alike on all")
    usual = all(y.local.dtype.char in "fdFD" for y in operands)  # NumPy's own error refuses others
    least = SMALL if wanted == "auto" else 1
    if wanted == "gather" or min(shape) < least or not (all(finite) and usual):
        return "one rank"

    if wanted != "walk":
        found = library(x.comm)
        if not isinstance(found, str) and max(max(shape), prod(shape) // ranks * 2) < LIMIT:
            return "scalapack" if min(shape) >= _least(min(shape), ranks) else "one rank"
        if wanted == "scalapack":
            text = found if isinstance(found, str) else f"it has no 64-bit counts for a matrix of shape {shape}"
            raise CommError(f"linalg='scalapack' finds no ScaLAPACK: {text}\nwrite {INSTALL}; or linalg='auto'")
    if has_walk:
        return "walk"

    warn_of_root(x, cause, f"ScaLAPACK would spread it: {INSTALL}")
    return "one rank"


def _least(n: int, ranks: int) -> int:
    """The fewest rows of which all ranks own some, as matrices and as vectors: `p?gesvd` returns an error for fewer."""
    longest = max(squarest(ranks).shape)
    return max(ranks, (longest - 1) * _width(n, longest) + 1)


def _width(n: int, longest: int) -> int:
    """The rows of a tile, so that each of the ranks along the longest mode of a grid has one."""
    return max(1, min(_WIDTH, -(-n // longest)))


def _is_finite(block: Array) -> bool:
    """Whether all elements of a block are finite; their sum most often says so."""
    with np.errstate(all="ignore"):
        return block.dtype.kind not in "fc" or bool(np.isfinite(block.sum()) or np.isfinite(block).all())


def check_square(x: Distributed) -> None:
    """Refuse matrices that are not square, by NumPy's error."""
    if x.distribution.shape[-2] != x.distribution.shape[-1]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")


# --- the moves before and after ---------------------------------------------------------------------------------------


def squarest(ranks: int) -> Grid:
    """The squarest grid of two modes: (2, 3) of 6 ranks, (1, 7) of 7.

    >>> squarest(6).shape, squarest(7).shape
    ((2, 3), (1, 7))
    """
    rows = max(p for p in range(1, isqrt(ranks) + 1) if ranks % p == 0)
    return Grid((rows, ranks // rows))


def tiles_on(grid: Grid, n: int) -> Layout:
    """The layout in which a matrix is solved, whose shorter mode has n indices.

    >>> print(tiles_on(Grid((2, 3)), 100))
    cyclic(34)[(0),(1)]
    """
    width = _width(n, max(grid.shape))
    return Layout(((cyclic(0, width),), (cyclic(1, width),)))


def arranged(x: Distributed, cause: str, like: Distributed | None = None) -> Any:
    """A copy of a matrix in tiles dealt out over the squarest grid, to be overwritten.

    Args:
        like: a matrix in such a layout whose tiles it has, too.
    """
    if like is not None:
        layout, grid = like.distribution.layout, like.distribution.grid
    else:
        grid = squarest(x.comm.size)
        layout = tiles_on(grid, min(x.distribution.shape))

    y = moved(x, layout, cause, grid)
    return y.copy() if y is x or not y.local.flags.c_contiguous else y


def target_of(x: Distributed, layout: LayoutLike) -> Distribution:
    """The distribution of a result as large as x: in the layout that a call names, or in that of x, on its grid.

    Raises:
        LayoutError: no result can have that layout; before anything moves.
    """
    dist = x.distribution
    if layout is not None:
        return distribute(as_layout(layout), dist.shape, dist.grid)
    if dist.layout.view is not None:
        return distribute(in_blocks(len(dist.shape), dist.grid)[0], dist.shape, dist.grid)
    modes = tuple([tuple(map(fitting, entries)) for entries in dist.layout.modes])
    return distribute(Layout(modes, rooted=dist.layout.rooted), dist.shape, dist.grid)


def returned(y: Distributed, target: Distribution, cause: str) -> Any:
    """A result, which may be smaller than the target says, in the target's layout and on its grid."""
    return redistributed(y, target.layout, cause, target.grid)


def on_one_rank(
    cause: str, function: Callable[..., Any], operands: Sequence[Distributed], target: Distribution
) -> list[Any]:
    """The results of a function of whole arrays, which rank 0 calls. Collective.

    Results of the order of the target come in its layout, others are replicated.

    Raises:
        Exception: what the function raises; on all ranks.
    """
    x = operands[-1]
    comm, grid = x.comm, target.grid
    arrays = []
    for y in operands:
        order = len(y.distribution.shape)
        hint = f"move it by x.redistribute({str(Layout(((),) * order))!r}) first"
        arrays.append(moved(y, _at_root(y.distribution.grid, order), cause, hint=hint).local)

    values: list[Array] = []
    with collective_errors(comm):
        if comm.rank == 0:
            made = function(*arrays)
            values = [np.asarray(value, order="C") for value in (made if isinstance(made, tuple) else (made,))]

    results = []
    for number, (shape, dtype) in enumerate(gathered(comm, cause, [(v.shape, v.dtype) for v in values])[0]):
        start = Distribution(_at_root(grid, len(shape)), shape, grid)
        block = values[number] if comm.rank == 0 else np.empty(start.local_shape(comm.rank), dtype)
        result = x._on(block.reshape(start.local_shape(comm.rank)), start)
        if len(shape) == len(target.shape):
            results.append(returned(result, target, cause))
        else:
            results.append(redistributed(result, Layout(((),) * len(shape)), cause))
    return results


def _at_root(grid: Grid, order: int) -> Layout:
    """The layout that has all of a tensor on rank 0."""
    return Layout(((),) * order, rooted=tuple([(g, 0) for g in range(grid.order)]))


# --- factors and solutions --------------------------------------------------------------------------------------------


def cholesky(x: Distributed, upper: bool = False, layout: LayoutLike = None) -> Any:
    """The Cholesky factor of a matrix, of which one triangle is read. Collective."""
    check_square(x)
    x, target = floating(x), target_of(x, layout)
    way = way_of("cholesky", [x])
    if way == "one rank":
        return on_one_rank("cholesky", partial(np.linalg.cholesky, upper=upper), [x], target)[0]

    factor = arranged(adjoint(x) if upper else x, "cholesky")
    with attributed_to("cholesky", of_result=True):
        ENGINES[way].cholesky(factor)
        return returned(adjoint(factor) if upper else factor, target, "cholesky")


def solve(x1: Any, x2: Any, layout: LayoutLike = None) -> Any:
    """The solutions of linear systems with one matrix; `x2` is a tensor or an array of one or more right sides."""
    a, b = common_operands((x1, x2))
    target = target_of(b, layout)
    dtype = np.result_type(floating(a).local.dtype, floating(b).local.dtype)
    a, b = astype(a, dtype, copy=False), astype(b, dtype, copy=False)
    way = way_of("solve", [a, b])
    if way == "one rank":
        return on_one_rank("solve", np.linalg.solve, [a, b], target)[0]

    factor = arranged(a, "solve")
    with in_columns(b, factor, "solve", turned=way == "scalapack") as right:
        return out_of_columns(ENGINES[way].solve(factor, right), target, "solve", turned=way == "scalapack")


@contextmanager
def in_columns(b: Any, like: Distributed, cause: str, turned: bool = False) -> Iterator[Any]:
    """Right sides in tiles like those of a matrix, to be overwritten; in the block, all moves are the function's own.

    Args:
        turned: whether right sides are rows, of the transposed matrix.
    """
    vector = len(b.distribution.shape) == 1
    columns = getitem(b, (slice(None), None)) if vector else b
    with attributed_to(cause, of_result=vector):
        right = arranged(matrix_transpose(columns) if turned else columns, cause, like)
    with attributed_to(cause, of_result=True):
        yield right


def out_of_columns(solution: Any, target: Distribution, cause: str, turned: bool = False) -> Any:
    """Solutions that stand as `in_columns` has put right sides, in the layout and of the order of a target."""
    solution = matrix_transpose(solution) if turned else solution
    if len(target.shape) == 1:
        modes = target.layout.modes if target.layout.view is None else in_blocks(1, target.grid)[0].modes
        solution = getitem(redistributed(solution, Layout((*modes, ())), cause, target.grid), (..., 0))
    return returned(solution, target, cause)


def inv(x: Distributed, layout: LayoutLike = None) -> Any:
    """The inverse of a matrix. Collective."""
    check_square(x)
    x, target = floating(x), target_of(x, layout)
    way = way_of("inv", [x])
    if way == "one rank":
        return on_one_rank("inv", np.linalg.inv, [x], target)[0]

    factor = arranged(x, "inv")
    with attributed_to("inv", of_result=True):
        return returned(ENGINES[way].inv(factor), target, "inv")


def slogdet(x: Distributed) -> tuple[Any, Any]:
    """The sign of the determinant of a matrix, and the logarithm of its magnitude. Collective."""
    sign, logarithm = _determinant("slogdet", x)
    return replicated(sign, x), replicated(logarithm, x)


def det(x: Distributed) -> Any:
    """The determinant of a matrix. Collective."""
    with np.errstate(over="ignore", under="ignore"):
        sign, logarithm = _determinant("det", x)
        return replicated(sign * np.exp(logarithm), x)


def _determinant(cause: str, x: Distributed) -> tuple[Any, Any]:
    """The sign and the logarithm of the magnitude, as numbers on every rank."""
    check_square(x)
    x = floating(x)
    way = way_of(cause, [x])
    if way == "one rank":
        sign, logarithm = on_one_rank(cause, lambda a: tuple(np.linalg.slogdet(a)), [x], x.distribution)
        return sign.local[()], logarithm.local[()]

    factor = arranged(x, cause)
    with attributed_to(cause, of_result=True):
        pivots = ENGINES[way].pivoted(factor)
        diagonal = walks.diagonal(factor)

    sizes = np.abs(diagonal)
    if not sizes.all():
        return diagonal.dtype.type(0), sizes.dtype.type(-np.inf)
    exchanges = np.count_nonzero(pivots != np.arange(len(pivots)))
    sign = np.prod(diagonal / sizes) * (-1) ** exchanges
    return diagonal.dtype.type(sign), np.log(sizes).sum(dtype=sizes.dtype)


# --- eigenvalues and singular values ----------------------------------------------------------------------------------


def eigh(
    x: Distributed,
    UPLO: Literal["L", "U"] = "L",
    vectors: bool = True,
    subset: tuple[int, int] | None = None,
    layout: LayoutLike = None,
) -> tuple[Any, ...]:
    """Eigenvalues of a matrix of which one triangle is read, and its eigenvectors if they are asked for. Collective.

    Args:
        subset: the numbers of the first eigenvalue and of the last one, in ascending order from 0; all if None.
    """
    check_square(x)
    if UPLO not in ("L", "U", "l", "u"):
        raise ValueError(f"UPLO argument must be 'L' or 'U', not {UPLO!r}")

    x, target = floating(x), target_of(x, layout)
    cause, lower = "eigh" if vectors else "eigvalsh", UPLO in ("L", "l")
    some = slice(None) if subset is None else slice(subset[0], subset[1] + 1)

    if way_of(cause, [x], has_walk=False) == "one rank":
        if vectors:
            return tuple(on_one_rank(cause, partial(eigensystem, lower, subset), [x], target))
        return tuple(on_one_rank(cause, lambda a: np.linalg.eigvalsh(a, UPLO)[some], [x], target))

    tiles = arranged(x, cause)
    with attributed_to(cause, of_result=True):
        if not vectors:
            return (replicated(routines.eigenvalues(tiles, lower)[some], x),)
        values, basis = routines.eigh(tiles, lower)
        return replicated(values[some], x), returned(adjoint(getitem(basis, some)), target, cause)


def eigensystem(lower: bool, subset: tuple[int, int] | None, a: Array) -> tuple[Array, Array]:
    """Some eigenvalues and vectors of an array, or of a stack in it."""
    values, vectors = np.linalg.eigh(a, "L" if lower else "U")
    some = slice(None) if subset is None else slice(subset[0], subset[1] + 1)
    return values[..., some], vectors[..., some]


def svd(x: Distributed, full: bool = False, vectors: bool = True, layout: LayoutLike = None) -> tuple[Any, ...]:
    """Singular values of a matrix in descending order, between its vectors if they are asked for. Collective."""
    cause = "svd" if vectors else "svdvals"
    x, target = floating(x), target_of(x, layout)
    m, n = x.distribution.shape
    if way_of(cause, [x], has_walk=False) == "one rank" or (full and m != n):
        if vectors:
            return tuple(on_one_rank(cause, partial(singular, full_matrices=full), [x], target))
        return tuple(on_one_rank(cause, lambda a: singular(a)[1], [x], target))

    tiles = arranged(x, cause)
    with attributed_to(cause, of_result=True):
        if not vectors:
            return (replicated(routines.svd(tiles, None, None), x),)
        left, right = _zeros(tiles, (m, min(m, n))), _zeros(tiles, (min(m, n), n))
        values = routines.svd(tiles, left, right)
        return returned(left, target, cause), replicated(values, x), returned(right, target, cause)


def _zeros(like: Any, shape: tuple[int, int]) -> Any:
    """A matrix of zeros in tiles, on the grid of another."""
    dist = replace(like.distribution, shape=shape)
    return like._on(np.zeros(dist.local_shape(like.comm.rank), like.local.dtype), dist)


def qr(x: Distributed, layout: LayoutLike = None) -> tuple[Any, Any] | None:
    """The factors Q and R of a matrix, both in one layout, by ScaLAPACK; None where that does not compute them."""
    x, target = floating(x), target_of(x, layout)
    if way_of("qr", [x]) != "scalapack":
        return None

    least, tiles = min(x.distribution.shape), arranged(x, "qr")
    with attributed_to("qr", of_result=True):
        orthogonal, triangle = routines.qr(tiles)
        columns, rows = getitem(orthogonal, (slice(None), slice(0, least))), getitem(triangle, slice(0, least))
        return returned(columns, target, "qr"), returned(rows, target, "qr")
