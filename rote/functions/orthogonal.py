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
from typing import Any, Generic, Literal, NamedTuple, overload

import numpy as np

from ..errors import LayoutError
from ..layout.distribution import Distribution
from ..layout.kinds import part_extents
from ..layout.layout import Layout
from ..lazy import late
from . import reductions
from .alignment import as_tensor, one_per_part, part_number, plain, whole_along
from .contraction.operands import Term, stackwise
from .contraction.run import contract
from .creation import astype
from .distributed import Array, Distributed, T
from .elementwise import elementwise
from .indexing import fetch, getitem
from .moves import attributed_to, solver
from .products import conjugate, matmul, stack_labels
from .rearranging import expand_dims, reordered
from .reductions import LayoutLike, in_layout
from .rules import follows, of_one

__all__ = ["MATRIX", "SMALL", "QRFactors", "SingularValues", "adjoint", "floating", "is_split", "lstsq"]
__all__ += ["matrix_rank", "matrix_transpose", "of_matrices", "pinv", "qr", "singular", "stack_of", "svd", "svdvals"]

MATRIX = ROWS, COLUMNS = 0, 1
"""Labels of the modes of a matrix; those of its stack are `stack_labels`."""
_OTHER = 2  # the label of the columns of an orthogonal factor
SMALL = 256
"""Rows or columns below which a matrix is small: one rank factors it faster than all."""
_FACTORS = (ROWS, 3), (_OTHER,), (4, COLUMNS)  # labels of left vectors, singular values, right vectors


class QRFactors(NamedTuple, Generic[T]):
    """An orthogonal factor and a triangular one, whose product is the matrix."""

    Q: T
    R: T


class SingularValues(NamedTuple, Generic[T]):
    """Left singular vectors in columns, singular values in descending order, right singular vectors in rows."""

    U: T
    S: T
    Vh: T


def stack_of(cause: str, x: Any) -> Term:
    """The labels of a stack of matrices; refused if the order of `x` is less than 2."""
    if np.ndim(x) < 2:
        raise LayoutError(f"{cause} takes matrices, or stacks of them, not a tensor of order {np.ndim(x)}")
    return stack_labels(np.ndim(x) - 2)


def floating(x: Distributed) -> Distributed:
    """The tensor with elements of a real or complex floating dtype, which NumPy's linear algebra needs."""
    return x if x.local.dtype.kind in "fc" else x.astype("f8")


def is_split(x: Any) -> bool:
    """Whether a value is one matrix, no stack, that no rank has whole: it is split, or a sum over ranks."""
    if not isinstance(x, Distributed) or len(x.distribution.shape) != 2:
        return False
    return any(x.distribution.splits) or bool(x.distribution.partial)


def of_matrices(
    cause: str, function: Callable[..., Any], x: Any, *results: Term, extents: dict[int, int] | None = None
) -> list[Any]:
    """Apply a function of matrices to a stack of them; `extents` are of labels that only results have."""
    stack = stack_of(cause, x)
    terms = [(*stack, *labels) for labels in (MATRIX, *results)]
    return stackwise(function, (x,), terms[:1], terms[1:], cause, MATRIX, extents)


@of_one
@follows("relabelled", np.linalg.matrix_transpose, np.matrix_transpose)
def matrix_transpose(x: Distributed, /) -> Any:
    """The tensor with its last two modes exchanged; blocks are views. From a view or a partial layout it moves first.

    Parameters
    ----------
    x : DistTensor
        The tensor.

    Examples
    --------
    >>> import rote, rote.array_api as xp
    >>> print(xp.matrix_transpose(rote.DistTensor.zeros((4, 6), "block[(0),()]")).layout)
    block[(),(0)]
    """
    order = len(stack_of("matrix_transpose", x))
    return reordered(x, (*range(order), order + 1, order), "matrix_transpose")


@of_one
def adjoint(x: Distributed) -> Any:
    """The conjugate transposes of matrices."""
    return conjugate(matrix_transpose(x))


@overload
def qr(x: T, /, mode: Literal["reduced", "complete"] = "reduced", *, layout: LayoutLike = None) -> QRFactors[T]: ...
@overload
def qr(x: T, /, mode: Literal["r"], *, layout: LayoutLike = None) -> T: ...
@follows("contracted", np.linalg.qr)
def qr(x: Distributed, /, mode: Literal["reduced", "complete", "r"] = "reduced", *, layout: LayoutLike = None) -> Any:
    """Orthogonal and triangular factors of matrices, or of stacks of them. Collective.

    Rows may stay split; split columns are made whole, unless ScaLAPACK factors a matrix that is not tall. The diagonal
    of R is not negative, so that the factors of a matrix of full rank are the same in all layouts, up to rounding.

    Parameters
    ----------
    x : DistTensor
        Of shape (…, m, n).
    mode : {'reduced', 'complete', 'r'}, default 'reduced'
        "reduced" gives factors of shapes (…, m, k) and (…, k, n) with k = min(m, n); "complete" gives those with k = m,
        and makes the matrix whole; "r" gives the triangle alone, of shape (…, k, n).
    layout : Layout | str, optional
        The layout of both factors; if None, rows of Q are split as those of `x`, and a small R is replicated.

    Raises
    ------
    LayoutError
        `mode` is none of these.

    Examples
    --------
    >>> import numpy as np, rote, rote.array_api as xp
    >>> def program(comm):
    ...     x = rote.DistTensor.from_global(np.arange(12.0).reshape(6, 2) ** 2, "block[(0),()]", comm)
    ...     Q, R = xp.linalg.qr(x)
    ...     return str(Q.layout), str(R.layout), np.allclose((Q @ R).to_global(), x.to_global())
    >>> with rote.config(implicit="allow"):
    ...     rote.run(program, ranks=2)[0]
    ('block[(0),()]', '[(),()]', True)
    """
    stack_of("qr", x)
    if mode in ("reduced", "r"):
        found = late("linalg.dense:qr")(x, layout) if _is_compact(x) else None
        Q, R = found or _tall_factors(floating(x), "qr")
        R = in_layout("qr", R, layout)
        return R if mode == "r" else QRFactors(in_layout("qr", Q, layout), R)
    if mode != "complete":
        raise LayoutError(f"qr has the modes 'reduced', 'complete' and 'r', not {mode!r}")

    def complete(block: Array) -> tuple[Array, Array]:
        return _signed(*np.linalg.qr(block, mode="complete"))

    sizes = {_OTHER: x.distribution.shape[-2]}
    factors = of_matrices("qr", complete, x, (ROWS, _OTHER), (_OTHER, COLUMNS), extents=sizes)
    return QRFactors(*[in_layout("qr", factor, layout) for factor in factors])


@overload
def svd(
    x: T,
    /,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    hermitian: bool = False,
    *,
    layout: LayoutLike = None,
) -> SingularValues[T]: ...
@overload
def svd(
    x: T,
    /,
    full_matrices: bool = True,
    *,
    compute_uv: Literal[False],
    hermitian: bool = False,
    layout: LayoutLike = None,
) -> T: ...
@follows("contracted", np.linalg.svd)
def svd(
    x: Distributed,
    /,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    *,
    layout: LayoutLike = None,
) -> Any:
    """Singular values and vectors of matrices, or of stacks of them. Collective.

    Without `full_matrices`, or for square matrices, either rows or columns may stay split: a tall matrix is factored by
    QR first, and its triangle by SVD.

    Parameters
    ----------
    x : DistTensor
        Of shape (…, m, n).
    full_matrices : bool, default True
        Whether to compute all m and n singular vectors, for which the matrix is made whole, or only min(m, n) of each.
    compute_uv : bool, default True
        Whether to compute singular vectors at all.
    hermitian : bool, default False
        Accepted for compatibility with NumPy; it has no effect.
    layout : Layout | str, optional
        The layout of U and of Vh; if None, they are split as `x` is, and a small one is replicated.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.linalg.svd(xp.asarray([[0.0, 4.0], [3.0, 0.0]])).S.to_global()
    array([4., 3.])
    """
    stack_of("svd", x)
    if not compute_uv:
        return svdvals(x)
    m, n = x.distribution.shape[-2:]
    if not full_matrices or m == n:
        U, S, Vh = _thin_svd(floating(x), layout)
    elif is_split(x):
        U, S, Vh = late("linalg.dense:svd")(x, full=True, layout=layout)
    else:
        sizes = {_OTHER: min(m, n), 3: m, 4: n}
        U, S, Vh = of_matrices("svd", partial(singular, full_matrices=True), x, *_FACTORS, extents=sizes)
    return SingularValues(in_layout("svd", U, layout), S, in_layout("svd", Vh, layout))


@of_one
@follows("contracted", np.linalg.svdvals)
def svdvals(x: Distributed, /) -> Any:
    """The singular values of matrices in descending order, of shape (…, min(m, n)). Collective.

    Parameters
    ----------
    x : DistTensor
        A stack of matrices, in the last two modes.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.linalg.svdvals(xp.asarray([[0.0, 4.0], [3.0, 0.0]])).to_global()
    array([4., 3.])
    """
    stack_of("svdvals", x)
    if _is_compact(x):
        return late("linalg.dense:svd")(x, vectors=False)[0]
    return _thin_svd(floating(x)).S


@of_one
@follows("contracted", np.linalg.pinv)
def pinv(
    x: Distributed,
    /,
    rcond: Any = None,
    hermitian: bool = False,
    *,
    rtol: Any = None,
    layout: LayoutLike = None,
) -> Any:
    """The pseudoinverses of matrices, of shape (…, n, m); rows are split as the columns of `x`, columns as its rows.

    Parameters
    ----------
    x : DistTensor
        A stack of matrices, in the last two modes.
    rcond : float | array_like, optional
        Singular values up to this part of the largest count as 0; max(m, n) times the precision if None.
    hermitian : bool, default False
        Accepted for compatibility with NumPy; it has no effect.
    rtol : float | array_like, optional
        The same as `rcond`: NumPy has both names.
    layout : Layout | str, optional
        The layout of the result, if another one.

    Raises
    ------
    TypeError
        `hermitian` is an array.
    ValueError
        Both `rcond` and `rtol` are given.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.linalg.pinv(xp.asarray([[2.0], [0.0]])).to_global().round(12)
    array([[0.5, 0. ]])
    """
    stack = stack_of("pinv", x)
    part = _either("rcond", rcond, rtol, hermitian)
    left, values, right = _thin_svd(floating(x))

    inverses = elementwise("pinv", _inverted, (values, _threshold(x, values, part)), {})
    terms = ((*stack, _OTHER, COLUMNS), (*stack, _OTHER), (*stack, ROWS, _OTHER))
    return contract((conjugate(right), inverses, conjugate(left)), terms, (*stack, COLUMNS, ROWS), "pinv", layout)


@follows("contracted", np.linalg.lstsq)
def lstsq(
    a: Distributed, b: Any, rcond: float | None = None, *, layout: LayoutLike = None
) -> tuple[Any, Any, Any, Any]:
    """The least-squares solutions of a x = b, as `numpy.linalg.lstsq`: solutions, residuals, rank, singular values.

    Parameters
    ----------
    a : DistTensor
        Of shape (m, n).
    b : DistTensor | array_like
        A right side of shape (m,), or several in columns.
    rcond : float, optional
        Singular values up to `rcond` times the largest count as 0; max(m, n) times the precision of f8 if None, that
        precision if -1.
    layout : Layout | str, optional
        The layout of the solutions, if another one.

    Raises
    ------
    numpy.linalg.LinAlgError
        `a` is no matrix, or `b` has another number of rows.

    Examples
    --------
    >>> import numpy as np, rote
    >>> x = rote.DistTensor.from_global([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], "block[(0),()]")
    >>> np.linalg.lstsq(x, np.array([1.0, 3.0, 5.0]))[0].to_global().round(12)
    array([1., 2.])
    """
    shape = a.distribution.shape
    if len(shape) != 2 or np.shape(b)[:1] != shape[:1] or np.ndim(b) > 2:
        raise np.linalg.LinAlgError(f"lstsq takes a matrix and as many rows, not {shape} and {np.shape(b)}")
    m, n = shape

    # Both in the precision of the wider one, as in NumPy.
    b = as_tensor(b, a)
    dtype = np.result_type(floating(a).local.dtype, floating(b).local.dtype)
    a, b = astype(a, dtype, copy=False), astype(b, dtype, copy=False)

    left, values, right = _thin_svd(a)
    if rcond is None or rcond == -1:  # NumPy takes the precision of f8, of singles, too
        rcond = float(np.finfo("f8").eps) * (max(m, n) if rcond is None else 1)
    least = _threshold(a, values, rcond)
    rank = np.int32(int(reductions.count_nonzero(elementwise("greater", np.greater, (values, least), {}))))

    columns = (3,) * (np.ndim(b) - 1)
    parts = contract((conjugate(left), b), ((ROWS, _OTHER), (ROWS, *columns)), (_OTHER, *columns), "lstsq")
    with attributed_to("lstsq", of_result=True):
        inverses = elementwise("lstsq", _inverted, (values, least), {})
        terms = (_OTHER, COLUMNS), (_OTHER,), (_OTHER, *columns)
        x = contract((conjugate(right), inverses, parts), terms, (COLUMNS, *columns), "lstsq")
        rest = elementwise("subtract", np.subtract, (b, matmul(a, x)), {})
        squares = elementwise("square", lambda block: block.real**2 + block.imag**2, (rest,), {})
        sums = reductions.sum(squares, 0, keepdims=not columns)
    return in_layout("lstsq", x, layout), sums if m > n == rank else getitem(sums, slice(0, 0)), rank, values


def _inverted(values: Array, least: Array) -> Any:
    """The inverses of singular values, and 0 for those that count as 0."""
    return np.divide(1, values, where=values > least, out=np.zeros_like(values))


@of_one
@follows("contracted", np.linalg.matrix_rank)
def matrix_rank(x: Distributed, /, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """The ranks of matrices: the numbers of singular values above `rtol` times the largest, with `pinv`'s default.

    Parameters
    ----------
    x : DistTensor
        A stack of matrices, in the last two modes.
    tol : float | array_like, optional
        The size up to which singular values count as 0, in the place of `rtol`.
    hermitian : bool, default False
        Accepted for compatibility with NumPy; it has no effect.
    rtol : float | array_like, optional
        Singular values up to this part of the largest count as 0.

    Raises
    ------
    TypeError
        `hermitian` is an array.
    ValueError
        Both `tol` and `rtol` are given.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> int(xp.linalg.matrix_rank(xp.asarray([[1.0, 2.0], [2.0, 4.0]])))
    1
    """
    stack_of("matrix_rank", x)
    _either("tol", tol, rtol, hermitian)
    values = svdvals(x)

    least = _threshold(x, values, rtol) if tol is None else _in_last_mode(tol)
    return reductions.count_nonzero(elementwise("greater", np.greater, (values, least), {}), -1)


def _either(name: str, size: Any, rtol: Any, hermitian: object) -> Any:
    """The one of two arguments that is given, beside a truth value; None if none is."""
    if isinstance(hermitian, Distributed | np.ndarray):
        raise TypeError(f"hermitian is one truth value, not {hermitian!r}\nwrite hermitian=True or hermitian=False")
    if size is not None and rtol is not None:
        raise ValueError(f"{name} and rtol can't be both set.")
    return rtol if size is None else size


def _in_last_mode(sizes: Any) -> Any:
    """Sizes, one for each matrix of a stack, that broadcast to the matrices' singular values."""
    return expand_dims(sizes, -1) if isinstance(sizes, Distributed) else np.asarray(sizes)[..., None]


def _threshold(x: Distributed, values: Distributed, rtol: Any) -> Any:
    """The size up to which singular values count as 0, for each matrix."""
    if rtol is None:
        rtol = max(x.distribution.shape[-2:]) * float(np.finfo(values.local.dtype).eps)
    fraction = _in_last_mode(rtol if isinstance(rtol, Distributed) else np.asarray(rtol, values.local.dtype))
    return elementwise("multiply", np.multiply, (fraction, reductions.max(values, -1, keepdims=True, initial=0)), {})


def singular(block: Array, full_matrices: bool = False) -> tuple[Array, ...]:
    """Singular values and vectors of a block's matrices.

    Raises:
        numpy.linalg.LinAlgError: an element is infinite, or no number.
    """
    if not np.isfinite(block).all():  # LAPACK may iterate on such matrices for ever
        raise np.linalg.LinAlgError("SVD did not converge: an element is infinite, or no number")
    return tuple(np.linalg.svd(block, full_matrices=full_matrices))


def _is_compact(x: Distributed) -> bool:
    """Whether a matrix is split, and so short and narrow that a triangle of it is no smaller than a block.

    A small one is no matter: all ranks may have its triangle.
    """
    if not is_split(x) or (solver() == "auto" and min(x.distribution.shape) < SMALL):
        return False
    return max(x.distribution.shape) < x.comm.size * min(x.distribution.shape)


def _thin_svd(x: Distributed, layout: LayoutLike = None) -> SingularValues[Any]:
    """The thin SVD of a matrix whose rows or columns may be split, from the SVD of its triangle."""
    if _is_compact(x):
        return SingularValues(*late("linalg.dense:svd")(x, layout=layout))
    x = plain(x, "svd")
    rows, columns = (any(x.distribution.splits[mode]) for mode in (-2, -1))
    m, n = x.distribution.shape[-2:]
    if columns and (m < n or not rows):
        other = _thin_svd(whole_along(adjoint(x), (-1 % len(x.distribution.shape),), "svd"))
        return SingularValues(adjoint(other.Vh), other.S, adjoint(other.U))
    sizes = dict.fromkeys((_OTHER, 3, 4), min(m, n))
    if not (rows or columns):
        return SingularValues(*of_matrices("svd", singular, x, *_FACTORS, extents=sizes))
    Q, R = _tall_factors(x, "svd")
    left, values, right = of_matrices("svd", singular, R, *_FACTORS, extents=sizes)
    return SingularValues(matmul(Q, left), values, right)


# --- factors of rows that are split --------------------------------------------------------------------------------


def _tall_factors(x: Distributed, cause: str) -> QRFactors[Any]:
    """QR factors of matrices, whose columns are made whole: Q's rows are split as the matrix's, R is replicated."""
    x = whole_along(x, (len(x.distribution.shape) - 1,), cause)
    dist, n = x.distribution, x.distribution.shape[-1]
    counts = part_extents(dist.splits[-2], dist.shape[-2]).reshape(-1).tolist()  # the number of rows of each part
    mine = part_number(dist, x.comm.rank, -2)

    Q, R = np.linalg.qr(x.local)
    size = 1  # of the groups of parts that are joined in pairs
    while size < len(counts):
        number, other = mine // size, mine // size ^ 1
        members = counts[other * size : (other + 1) * size]  # of the other group; the last one may have fewer, or none
        peer = other * size + mine % size % len(members) if members else None

        # All ranks exchange, those without a peer too: the move is collective.
        arrived = _exchanged(x, R, peer, size, cause)
        if peer is not None:
            rows, theirs = R.shape[-2], arrived[..., : min(sum(members), n), :]
            above = number < other
            joined, R = np.linalg.qr(np.concatenate((R, theirs) if above else (theirs, R), axis=-2))
            Q = Q @ (joined[..., :rows, :] if above else joined[..., theirs.shape[-2] :, :])
        size *= 2

    Q, R = _signed(Q, R)
    stack, k = dist.shape[:-2], min(dist.shape[-2:])
    triangle = Distribution(Layout((*dist.layout.modes[:-2], (), ())), (*stack, k, n), dist.grid)
    return QRFactors(x._on(Q, replace(dist, shape=(*dist.shape[:-1], k))), x._on(R, triangle))


def _exchanged(x: Distributed, R: Array, peer: int | None, size: int, cause: str) -> Array:
    """Fetch the triangle of the part `peer`, padded with zero rows, in the round with groups of `size`. Collective."""
    n, order = x.distribution.shape[-1], len(x.distribution.shape)
    rows = one_per_part(x.distribution, order - 2)
    lay = rows.layout
    target = Distribution(Layout((*lay.modes, ())), (*rows.shape[:-1], n, n), rows.grid)
    block = np.zeros(target.local_shape(x.comm.rank), R.dtype)
    block[..., 0, : R.shape[-2], :] = R

    def needed() -> list[Any]:
        whole, stack = np.arange(n), x.distribution.indices(x.comm.rank)[:-2]
        return [*stack, np.array([] if peer is None else [peer], np.int64), whole, whole]

    arrived = fetch(x._on(block, target), target, size, needed, cause)
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
