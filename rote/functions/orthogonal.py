"""Orthogonal factors of tall matrices, whose rows are split over ranks (TSQR; Demmel, Grigori, Hoemmen, Langou 2012).

Each rank factors its rows. Then, in rounds, pairs of groups of ranks put their triangles one above the other and factor
these again. After log2(p) rounds (rounded up) on p ranks, all have the triangle of the whole matrix, and each has its
rows of the orthogonal factor. In a round a rank sends one triangle:

    rank 0    A0 = Q0 R0  --+
                            +--  [R0]    Q R01  --+
    rank 1    A1 = Q1 R1  --+    [R1]  =          |
                                                  +--  [R01]    Q R    each rank multiplies its rows of the
    rank 2    A2 = Q2 R2  --+                     |    [R23]  =        orthogonal factors along its path
                            +--  [R2]    Q R23  --+
    rank 3    A3 = Q3 R3  --+    [R3]  =
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np

from ..errors import LayoutError
from ..grammar.nodes import BLOCK, Entry
from ..layout.distribution import Distribution
from ..layout.grid import ravel
from ..layout.layout import Layout
from .alignment import made_whole, plain
from .contraction import Term, contract, stackwise
from .distributed import Array, Distributed
from .matrices import COLUMNS, ROWS, adjoint, floating, of_matrices, stack_of
from .products import conjugate, matmul
from .rearranging.indexing import fetch
from .rules import follows

__all__ = ["QRFactors", "SingularValues", "matrix_rank", "pinv", "qr", "svd", "svdvals"]

_OTHER = 2  # the label of the columns of an orthogonal factor
_FACTORS = (ROWS, 3), (_OTHER,), (4, COLUMNS)  # labels of left vectors, singular values, right vectors


class QRFactors(NamedTuple):
    """An orthogonal factor and a triangular one, whose product is the matrix."""

    Q: Any
    R: Any


class SingularValues(NamedTuple):
    """Left singular vectors in columns, singular values in descending order, right singular vectors in rows."""

    U: Any
    S: Any
    Vh: Any


@follows("contracted", np.linalg.qr)
def qr(x: Distributed, /, mode: Literal["reduced", "complete", "r"] = "reduced") -> Any:
    """Orthogonal and triangular factors of matrices, or of stacks of them. Collective.

    Rows may stay split; split columns are made whole. The diagonal of R is not negative, so that the factors of a
    matrix of full rank are the same in all layouts, up to rounding.

    Args:
        x: of shape (…, m, n).
        mode: "reduced" gives factors of shapes (…, m, k) and (…, k, n) with k = min(m, n); "complete" gives those with
            k = m, and makes the matrix whole; "r" gives the triangle alone, of shape (…, k, n).

    Raises:
        LayoutError: `mode` is none of these.

    >>> import numpy as np, rote
    >>> def program(comm):
    ...     x = rote.DistTensor.from_global(np.arange(12.0).reshape(6, 2) ** 2, "block[(0),()]", comm)
    ...     Q, R = qr(x)
    ...     return str(Q.layout), str(R.layout), np.allclose((Q @ R).to_global(), x.to_global())
    >>> with rote.config(implicit="allow"):
    ...     rote.run(program, ranks=2)[0]
    ('block[(0),()]', '[(),()]', True)
    """
    stack_of("qr", x)
    if mode in ("reduced", "r"):
        factors = _tall_factors(floating(x), "qr")
        return factors if mode == "reduced" else factors.R
    if mode != "complete":
        raise LayoutError(f"qr has the modes 'reduced', 'complete' and 'r', not {mode!r}")

    def complete(block: Array) -> tuple[Array, Array]:
        return _signed(*np.linalg.qr(block, mode="complete"))

    sizes = {_OTHER: x.distribution.shape[-2]}
    return QRFactors(*of_matrices("qr", complete, x, (ROWS, _OTHER), (_OTHER, COLUMNS), extents=sizes))


@follows("contracted", np.linalg.svd)
def svd(x: Distributed, /, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Singular values and vectors of matrices, or of stacks of them. Collective.

    Without `full_matrices`, or for square matrices, either rows or columns may stay split: a tall matrix is factored by
    QR first, and its triangle by SVD.

    Args:
        x: of shape (…, m, n).
        full_matrices: whether to compute all m and n singular vectors, for which the matrix is made whole, or only
            min(m, n) of each.
        compute_uv: whether to compute singular vectors at all.
        hermitian: accepted for compatibility with NumPy; it has no effect.

    >>> import rote.array_api as xp
    >>> xp.linalg.svd(xp.asarray([[0.0, 4.0], [3.0, 0.0]])).S.to_global()
    array([4., 3.])
    """
    stack_of("svd", x)
    if not compute_uv:
        return svdvals(x)
    m, n = x.distribution.shape[-2:]
    if not full_matrices or m == n:
        return _thin_svd(floating(x))
    sizes = {_OTHER: min(m, n), 3: m, 4: n}
    return SingularValues(*of_matrices("svd", partial(_singular, full_matrices=True), x, *_FACTORS, extents=sizes))


@follows("contracted", np.linalg.svdvals)
def svdvals(x: Distributed, /) -> Any:
    """The singular values of matrices in descending order, of shape (…, min(m, n)). Collective.

    >>> import rote.array_api as xp
    >>> xp.linalg.svdvals(xp.asarray([[0.0, 4.0], [3.0, 0.0]])).to_global()
    array([4., 3.])
    """
    stack_of("svdvals", x)
    return _thin_svd(floating(x)).S


@follows("contracted", np.linalg.pinv)
def pinv(x: Distributed, /, rtol: Any = None) -> Any:
    """The pseudoinverses of matrices, of shape (…, n, m); rows are split as the columns of `x`, columns as its rows.

    Args:
        rtol: singular values up to `rtol` times the largest count as 0; max(m, n) times the precision if None.

    >>> import rote.array_api as xp
    >>> xp.linalg.pinv(xp.asarray([[2.0], [0.0]])).to_global().round(12)
    array([[0.5, 0. ]])
    """
    stack = stack_of("pinv", x)
    left, values, right = _thin_svd(floating(x))
    inverses = _compared(values, _tolerance(x, values, rtol), _inverted, (*stack, _OTHER), "pinv")
    terms = ((*stack, _OTHER, COLUMNS), (*stack, _OTHER), (*stack, ROWS, _OTHER))
    return contract((conjugate(right), inverses, conjugate(left)), terms, (*stack, COLUMNS, ROWS), "pinv")


def _inverted(values: Array, least: Array) -> Array:
    inverses: Array = np.divide(1, values, where=values > least, out=np.zeros_like(values))
    return inverses


@follows("contracted", np.linalg.matrix_rank)
def matrix_rank(x: Distributed, /, *, rtol: Any = None) -> Any:
    """The ranks of matrices: the numbers of singular values above `rtol` times the largest, with `pinv`'s default.

    >>> import rote.array_api as xp
    >>> int(xp.linalg.matrix_rank(xp.asarray([[1.0, 2.0], [2.0, 4.0]])))
    1
    """
    stack = stack_of("matrix_rank", x)
    values = svdvals(x)

    def counted(block: Array, least: Array) -> Array:
        return np.asarray(np.count_nonzero(block > least, axis=-1))

    return _compared(values, _tolerance(x, values, rtol), counted, stack, "matrix_rank")


def _tolerance(x: Distributed, values: Distributed, rtol: Any) -> Any:
    """The fraction of the largest singular value up to which others count as 0."""
    if rtol is not None:
        return rtol
    return max(x.distribution.shape[-2:]) * float(np.finfo(values.local.dtype).eps)


def _compared(values: Distributed, rtol: Any, function: Callable[..., Array], result: Term, cause: str) -> Any:
    """Call a function of singular values and of each matrix's threshold, above which they count."""
    stack = tuple([label for label in result if label != _OTHER])
    share: Any = rtol if isinstance(rtol, Distributed) else np.asarray(rtol, values.local.dtype)
    own = stack[len(stack) - np.ndim(share) :]

    def called(block: Array, part: Array) -> Array:
        return function(block, part[..., None] * block.max(axis=-1, keepdims=True, initial=0))

    return stackwise(called, (values, share), ((*stack, _OTHER), own), (result,), cause, (_OTHER,))[0]


def _singular(block: Array, full_matrices: bool = False) -> tuple[Array, ...]:
    """Singular values and vectors of a block's matrices."""
    if not np.isfinite(block).all():  # LAPACK may iterate on such matrices for ever
        raise np.linalg.LinAlgError("SVD did not converge: an element is infinite, or no number")
    return tuple(np.linalg.svd(block, full_matrices=full_matrices))


def _thin_svd(x: Distributed) -> SingularValues:
    """The thin SVD of a matrix whose rows or columns may be split, from the SVD of its triangle."""
    x = plain(x, "svd")
    rows, columns = (any(x.distribution.splits[mode]) for mode in (-2, -1))
    m, n = x.distribution.shape[-2:]
    if columns and (m < n or not rows):
        other = _thin_svd(made_whole(adjoint(x), (-1 % len(x.distribution.shape),), "svd"))
        return SingularValues(adjoint(other.Vh), other.S, adjoint(other.U))
    sizes = dict.fromkeys((_OTHER, 3, 4), min(m, n))
    if not (rows or columns):
        return SingularValues(*of_matrices("svd", _singular, x, *_FACTORS, extents=sizes))
    Q, R = _tall_factors(x, "svd")
    left, values, right = of_matrices("svd", _singular, R, *_FACTORS, extents=sizes)
    return SingularValues(matmul(Q, left), values, right)


# --- factors of rows that are split --------------------------------------------------------------------------------


class _Group(NamedTuple):
    """A group of consecutive parts of the rows."""

    start: int  # the number of its first part
    parts: int
    triangle: int  # rows of its triangle


def _tall_factors(x: Distributed, cause: str) -> QRFactors:
    """QR factors of matrices, whose columns are made whole: Q's rows are split as the matrix's, R is replicated."""
    x = made_whole(x, (len(x.distribution.shape) - 1,), cause)
    dist, (n, rank) = x.distribution, (x.distribution.shape[-1], x.comm.rank)
    splits = dist.splits[-2]
    counts = _row_counts(dist, rank)
    parts = [split.parts for split in splits]
    coordinates = dist.grid.coordinates(rank)
    mine = ravel([coordinates[s.grid_mode] for s in splits], parts) if parts else 0
    Q, R = np.linalg.qr(x.local)
    size = 1
    while size < len(counts):
        own, other = (_group(counts, n, size, number) for number in (mine // size, mine // size ^ 1))
        peer = other.start + (mine - own.start) % other.parts if other.parts else None
        arrived = _exchanged(x, R, peer, size, cause)
        if peer is not None:
            theirs = arrived[..., : other.triangle, :]
            above = own.start < other.start
            joined, R = np.linalg.qr(np.concatenate((R, theirs) if above else (theirs, R), axis=-2))
            Q = Q @ (joined[..., : own.triangle, :] if above else joined[..., other.triangle :, :])
        size *= 2
    Q, R = _signed(Q, R)
    lay, stack = dist.layout, dist.shape[:-2]
    k = min(dist.shape[-2:])
    triangle = Distribution(Layout((*lay.modes[:-2], (), ())), (*stack, k, n), dist.grid)
    return QRFactors(x._on(Q, replace(dist, shape=(*dist.shape[:-1], k))), x._on(R, triangle))


def _row_counts(dist: Distribution, rank: int) -> list[int]:
    """The number of rows of each part of the matrices of which this rank holds a part."""
    splits, coordinates = dist.splits[-2], list(dist.grid.coordinates(rank))
    counts = []
    for place in np.ndindex(*[split.parts for split in splits]):
        for split, c in zip(splits, place, strict=True):
            coordinates[split.grid_mode] = c
        counts.append(dist.local_shape(dist.grid.rank(coordinates))[-2])
    return counts


def _group(counts: list[int], n: int, size: int, number: int) -> _Group:
    """A group of `size` parts; the last group may have fewer parts, or none."""
    members = counts[number * size : (number + 1) * size]
    return _Group(number * size, len(members), min(sum(members), n))


def _exchanged(x: Distributed, R: Array, peer: int | None, size: int, cause: str) -> Array:
    """Fetch the triangle of the part `peer`, padded with zero rows, in the round with groups of `size`. Collective."""
    dist, n = x.distribution, x.distribution.shape[-1]
    over = tuple([Entry(split.grid_mode, BLOCK) for split in dist.splits[-2]])
    shape = (*dist.shape[:-2], prod(split.parts for split in dist.splits[-2]), n, n)
    target = Distribution(Layout((*dist.layout.modes[:-2], over, (), ())), shape, dist.grid)
    block = np.zeros(target.local_shape(x.comm.rank), R.dtype)
    block[..., 0, : R.shape[-2], :] = R

    def wanted() -> list[Any]:
        whole, stack = np.arange(n), dist.indices(x.comm.rank)[:-2]
        return [*stack, np.array([] if peer is None else [peer], np.int64), whole, whole]

    arrived = fetch(x._on(block, target), target, size, wanted, cause)
    return arrived if peer is None else arrived[..., 0, :, :]


def _signed(Q: Array, R: Array) -> tuple[Array, Array]:
    """The factors with signs, or phases, changed so that R's diagonal is not negative; below it are positive zeros."""
    diagonal = np.diagonal(R, axis1=-2, axis2=-1)
    size = np.abs(diagonal)
    phases = np.divide(diagonal, size, where=size > 0, out=np.ones_like(diagonal))
    k = phases.shape[-1]
    Q, R = Q.copy(), R.copy()
    Q[..., :k] *= phases[..., None, :]
    R[..., :k, :] *= phases.conj()[..., None]
    return Q, np.triu(R)
