"""SciPy's functions of matrices that are split over ranks: triangular solves, factors to be used again, eigenvalues.

Names, arguments and returns are those of `scipy.linalg`. A factor is a tensor, in the layout of its matrix, and pivots
are a tensor that every rank has whole. What `rote.linalg.dense` says of layouts, ways and errors holds here, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import index
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from ..errors import LayoutError
from ..functions.alignment import as_tensor, replicated
from ..functions.contraction.operands import common_operands, stackwise
from ..functions.creation import LayoutLike, astype, tril, triu
from ..functions.distributed import Array, Distributed, T
from ..functions.indexing import getitem, known
from ..functions.matrices import cholesky
from ..functions.moves import attributed_to, redistributed
from ..functions.orthogonal import adjoint, floating, is_split, matrix_transpose, of_matrices, stack_of
from ..functions.reductions import in_layout
from ..functions.rules import follows
from . import dense, walks
from .walks import Trans

__all__ = ["cho_factor", "cho_solve", "eigh", "lu_factor", "lu_solve", "solve_triangular"]


_TRANS: dict[object, Trans] = {0: "N", 1: "T", 2: "C", "N": "N", "T": "T", "C": "C"}


class _Triangle(NamedTuple):
    """A triangular system: which triangle, whether it is transposed, and whether its diagonal counts as ones."""

    lower: bool
    trans: Trans
    unit: bool = False


@follows("contracted", name="rote.linalg.solve_triangular")
def solve_triangular(
    a: T,
    b: Any,
    trans: Literal[0, 1, 2, "N", "T", "C"] = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    *,
    layout: LayoutLike = None,
) -> T:
    """The solutions of triangular systems, as `scipy.linalg.solve_triangular`. Collective.

    Parameters
    ----------
    a : DistTensor
        A square matrix, of which one triangle is read.
    b : DistTensor | array_like
        A right side of shape (n,), or several in columns.
    trans : {0, 1, 2, 'N', 'DistTensor', 'C'}, default 0
        Whether to solve with `a`, its transpose, or its conjugate transpose.
    lower : bool, default False
        Whether the lower triangle is read.
    unit_diagonal : bool, default False
        Whether the diagonal counts as ones.
    layout : Layout | str, optional
        The layout of the result; that of `b` if None.

    Raises
    ------
    numpy.linalg.LinAlgError
        There is a 0 on the diagonal, or the matrix is not square; raised on all ranks.
    LayoutError
        `b` has another number of rows.
    ValueError
        `trans` is none of these.

    Examples
    --------
    >>> import numpy as np, rote
    >>> def program(comm):
    ...     a = rote.DistTensor.from_global([[2.0, 0.0], [1.0, 4.0]], "block[(0),()]", comm)
    ...     return rote.linalg.solve_triangular(a, np.array([2.0, 5.0]), lower=True).to_global()
    >>> with rote.config(implicit="allow"):
    ...     rote.run(program, ranks=2)[0]
    array([1., 1.])
    """
    triangle = _Triangle(bool(lower), _trans_of(trans), bool(unit_diagonal))
    solutions: T = _by_triangles("solve_triangular", a, b, [triangle], layout)
    return solutions


@follows("contracted", name="rote.linalg.cho_factor")
def cho_factor(a: T, lower: bool = False, *, layout: LayoutLike = None) -> tuple[T, bool]:
    """A Cholesky factor for `cho_solve`, and whether it is the lower one, as `scipy.linalg.cho_factor`. Collective.

    Parameters
    ----------
    a : DistTensor
        A positive definite matrix, of which one triangle is read.
    lower : bool, default False
        Whether that and the factor are the lower one.
    layout : Layout | str, optional
        The layout of the factor; that of `a` if None.

    Raises
    ------
    numpy.linalg.LinAlgError
        The matrix is not positive definite; raised on all ranks.

    See Also
    --------
    rote.linalg.cho_solve : Solve systems by the factor.

    Examples
    --------
    >>> import rote
    >>> factor = rote.linalg.cho_factor(rote.DistTensor.from_global([[4.0, 2.0], [2.0, 5.0]], "block[(0),()]"))
    >>> rote.linalg.cho_solve(factor, [8.0, 12.0]).to_global()
    array([1., 2.])
    """
    return cholesky(a, upper=not lower, layout=layout), bool(lower)


@follows("contracted", name="rote.linalg.cho_solve")
def cho_solve(c_and_lower: tuple[T, bool], b: Any, *, layout: LayoutLike = None) -> T:
    """The solutions of systems by the factor of `cho_factor`. Collective.

    Parameters
    ----------
    c_and_lower : tuple[DistTensor, bool]
        What `cho_factor` returns.
    b : DistTensor | array_like
        A right side of shape (n,), or several in columns.
    layout : Layout | str, optional
        The layout of the result; that of `b` if None.

    Raises
    ------
    LayoutError
        `b` has another number of rows.
    numpy.linalg.LinAlgError
        There is a 0 on the diagonal; raised on all ranks.

    See Also
    --------
    rote.linalg.cho_factor : Factor the matrix.

    Examples
    --------
    >>> import rote
    >>> factor = rote.linalg.cho_factor(rote.DistTensor.from_global([[4.0, 0.0], [0.0, 9.0]], "block[(0),()]"))
    >>> rote.linalg.cho_solve(factor, [4.0, 18.0]).to_global()
    array([1., 2.])
    """
    factor, lower = c_and_lower
    plain, turned = _Triangle(lower, "N"), _Triangle(lower, "C")
    solutions: T = _by_triangles("cho_solve", factor, b, [plain, turned] if lower else [turned, plain], layout)
    return solutions


@follows("contracted", name="rote.linalg.lu_factor")
def lu_factor(a: T, *, layout: LayoutLike = None) -> tuple[T, T]:
    """The factors L and U in one matrix, and pivots, as `scipy.linalg.lu_factor`. Collective.

    Parameters
    ----------
    a : DistTensor
        A matrix of shape (m, n); `lu_solve` takes the factors of a square one.
    layout : Layout | str, optional
        The layout of the factors; that of `a` if None.

    Returns
    -------
    lu : DistTensor
        U, and below the diagonal L, whose diagonal is ones.
    piv : DistTensor
        Row i was exchanged with row piv[i], for i below min(m, n); every rank has all of them.

    Raises
    ------
    LayoutError
        `a` is a stack of matrices, or `layout` is of another order.

    See Also
    --------
    rote.linalg.lu_solve : Solve systems by the factors.

    Examples
    --------
    >>> import rote
    >>> lu, piv = rote.linalg.lu_factor(rote.DistTensor.from_global([[1.0, 2.0], [4.0, 4.0]], "block[(0),()]"))
    >>> lu.to_global().tolist(), piv.to_global().tolist()
    ([[4.0, 4.0], [0.25, 1.0]], [1, 1])
    """
    _check_matrix("lu_factor", a)
    x: Any = floating(a)
    target = dense.target_of(a, layout)
    if not is_split(x):
        factor, pivots = of_matrices("lu_factor", _lu, x, (0, 1), (2,), extents={2: min(a.distribution.shape)})
        return in_layout("lu_factor", factor, layout), pivots
    way = dense.way_of("lu_factor", [x])
    if way == "one rank":
        return tuple(dense.on_one_rank("lu_factor", _lu, [x], target))

    # ScaLAPACK factors the transpose of what it is given.
    factor = dense.arranged(x if way == "walk" else matrix_transpose(x), "lu_factor")
    with attributed_to("lu_factor", of_result=True):
        pivots = dense.ENGINES[way].pivoted(factor)
        factor = factor if way == "walk" else matrix_transpose(factor)
        return dense.returned(factor, target, "lu_factor"), replicated(pivots, x)


@follows("contracted", name="rote.linalg.lu_solve")
def lu_solve(lu_and_piv: tuple[T, Any], b: Any, trans: Literal[0, 1, 2] = 0, *, layout: LayoutLike = None) -> T:
    """The solutions of systems by the factors of `lu_factor`, as `scipy.linalg.lu_solve`. Collective.

    Parameters
    ----------
    lu_and_piv : tuple[DistTensor, DistTensor]
        What `lu_factor` returns.
    b : DistTensor | array_like
        A right side of shape (n,), or several in columns.
    trans : {0, 1, 2}, default 0
        Whether to solve with the matrix, its transpose, or its conjugate transpose.
    layout : Layout | str, optional
        The layout of the result; that of `b` if None.

    Raises
    ------
    numpy.linalg.LinAlgError
        The matrix is singular; raised on all ranks.
    LayoutError
        `b` has another number of rows.
    ValueError
        `trans` is none of these.

    See Also
    --------
    rote.linalg.lu_factor : Factor the matrix.

    Examples
    --------
    >>> import rote
    >>> factors = rote.linalg.lu_factor(rote.DistTensor.from_global([[1.0, 2.0], [4.0, 4.0]], "block[(0),()]"))
    >>> rote.linalg.lu_solve(factors, [5.0, 12.0]).to_global()
    array([1., 2.])
    """
    lu, pivots = lu_and_piv
    order = walks.order_of(np.atleast_1d(known(pivots)), lu.distribution.shape[0])
    op = _trans_of(trans)
    lower, upper = _Triangle(True, op, unit=True), _Triangle(False, op)

    solutions: T
    if op == "N":
        solutions = _by_triangles("lu_solve", lu, b, [lower, upper], layout, before=order)
    else:
        solutions = _by_triangles("lu_solve", lu, b, [upper, lower], layout, after=np.argsort(order))
    return solutions


@overload
def eigh(
    a: T,
    b: Any = None,
    *,
    lower: bool = True,
    eigvals_only: Literal[False] = False,
    subset_by_index: Sequence[int] | None = None,
    layout: LayoutLike = None,
) -> tuple[T, T]: ...
@overload
def eigh(
    a: T,
    b: Any = None,
    *,
    lower: bool = True,
    eigvals_only: Literal[True],
    subset_by_index: Sequence[int] | None = None,
    layout: LayoutLike = None,
) -> T: ...
@follows("contracted", name="rote.linalg.eigh")
def eigh(
    a: Distributed,
    b: Any = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    subset_by_index: Sequence[int] | None = None,
    layout: LayoutLike = None,
) -> Any:
    """Eigenvalues w and vectors v of a Hermitian matrix, or of a pair, a v = w b v, as `scipy.linalg.eigh`. Collective.

    The vectors of a pair are orthonormal for `b`: v' b v is the identity.

    Parameters
    ----------
    a : DistTensor
        A Hermitian matrix, of which one triangle is read.
    b : DistTensor | array_like, optional
        A positive definite matrix, of which the same triangle is read.
    lower : bool, default True
        Whether the lower triangles are read.
    eigvals_only : bool, default False
        Whether to return the eigenvalues alone.
    subset_by_index : Sequence[int], optional
        The numbers of the first eigenvalue and of the last one, in ascending order from 0; all if None.
    layout : Layout | str, optional
        The layout of the eigenvectors; that of `a` if None.

    Returns
    -------
    w : DistTensor
        Eigenvalues in ascending order, on every rank.
    v : DistTensor
        Eigenvectors in columns.

    Raises
    ------
    numpy.linalg.LinAlgError
        `b` is not positive definite, or eigenvalues do not converge; raised on all ranks.
    LayoutError
        The two matrices have different shapes.
    ValueError
        There are no such eigenvalues.

    Examples
    --------
    >>> import numpy as np, rote
    >>> a = rote.DistTensor.from_global(np.diag([3.0, 8.0]), "block[(0),()]")
    >>> b = rote.DistTensor.from_global(np.diag([1.0, 4.0]), "block[(0),()]")
    >>> rote.linalg.eigh(a, b, eigvals_only=True).to_global().tolist()
    [2.0, 3.0]
    """
    stack_of("eigh", a)
    dense.check_square(a)
    n = a.distribution.shape[-1]
    subset = None if subset_by_index is None else _subset(subset_by_index, n)
    if b is not None:
        b = as_tensor(b, a)
        _check_matrix("eigh of a pair", a)
        if b.distribution.shape != a.distribution.shape:
            raise LayoutError(
                f"eigh takes two matrices of one shape, not {a.distribution.shape} and {b.distribution.shape}"
            )

    x, count = floating(a), n if subset is None else subset[1] - subset[0] + 1
    if b is not None:
        y = floating(b)
        dtype = np.result_type(x.local.dtype, y.local.dtype)
        x, y = astype(x, dtype, copy=False), astype(y, dtype, copy=False)
        found = _of_pair(x, y, lower, subset, count, layout)
    elif is_split(x):
        found = dense.eigh(x, "L" if lower else "U", not eigvals_only, subset, layout)
    else:
        function = partial(dense.eigensystem, lower, subset)
        found = tuple(of_matrices("eigh", function, x, (2,), (0, 2), extents={2: count}))
    return found[0] if eigvals_only else (found[0], in_layout("eigh", found[1], layout))


# --- the parts --------------------------------------------------------------------------------------------------------


def _check_matrix(cause: str, a: Distributed) -> None:
    """Refuse what is no matrix, and stacks of them."""
    if len(a.distribution.shape) != 2:
        raise LayoutError(f"{cause} takes one matrix, not a tensor of order {len(a.distribution.shape)}")


def _by_triangles(
    cause: str,
    a: Distributed,
    b: Any,
    triangles: Sequence[_Triangle],
    layout: LayoutLike = None,
    before: Array | None = None,
    after: Array | None = None,
) -> Any:
    """The solutions of triangular systems, one after the other.

    Args:
        layout: that of the solutions; that of `b` if None.
        before, after: the order of rows of `b`, and of the solutions; as they are if None.
    """
    x, right = common_operands((a, np.asarray(b) if isinstance(b, list) else b))
    _check_matrix(cause, x)
    dense.check_square(x)
    if right.distribution.shape[:1] != x.distribution.shape[:1] or len(right.distribution.shape) > 2:
        raise LayoutError(f"{cause} takes as many rows as {x.distribution.shape} has, not {right.distribution.shape}")
    target = dense.target_of(right, layout)
    dtype = np.result_type(floating(x).local.dtype, floating(right).local.dtype)
    x, right = astype(x, dtype, copy=False), astype(right, dtype, copy=False)

    def solved(matrix: Array, values: Array) -> Array:
        values = values if before is None else values[before]
        for lower, trans, unit in triangles:
            triangle = np.tril(matrix, -unit) if lower else np.triu(matrix, unit)
            triangle = triangle + np.eye(len(matrix), dtype=dtype) if unit else triangle
            values = walks.solved(walks.op(triangle, trans), values, lower == (trans == "N"))
        return values if after is None else values[after]

    if not is_split(x):
        columns = (2,) * (len(right.distribution.shape) - 1)
        (solutions,) = stackwise(solved, (x, right), ((0, 1), (1, *columns)), ((0, *columns),), cause, (0, 1))
        return in_layout(cause, solutions, layout)
    way = dense.way_of(cause, [x, right])
    if way == "one rank":
        return dense.on_one_rank(cause, solved, [x, right], target)[0]

    tiles = dense.arranged(x, cause)
    if not (all(triangle.unit for triangle in triangles) or walks.diagonal(tiles).all()):
        raise np.linalg.LinAlgError("Singular matrix")
    with dense.in_columns(right, tiles, cause) as columns:
        columns = columns if before is None else getitem(columns, before)
        for lower, trans, unit in triangles:
            dense.ENGINES[way].triangular_solve(tiles, columns, lower, trans, unit)
        columns = columns if after is None else getitem(columns, after)
        return dense.out_of_columns(columns, target, cause)


def _of_pair(
    a: Any, b: Any, lower: bool, subset: tuple[int, int] | None, count: int, layout: LayoutLike
) -> tuple[Any, ...]:
    """Eigenvalues and vectors of a pair of matrices: with b = L L', those of L^-1 a L'^-1."""
    target = dense.target_of(a, layout)
    whole, function = [_hermitian(x, lower) for x in (b, a)], partial(_eigh_of_pair, subset)
    if not is_split(a):
        return tuple(stackwise(function, whole, [(0, 1)] * 2, ((2,), (0, 2)), "eigh", (0, 1), {2: count}))
    if dense.way_of("eigh", whole, has_walk=False) == "one rank":
        return tuple(dense.on_one_rank("eigh", function, whole, target))

    y, x = (dense.arranged(matrix, "eigh") for matrix in whole)
    with attributed_to("eigh", of_result=True):
        factor = cholesky(y)
        inner = _by_triangles("eigh", factor, x, [_Triangle(True, "N")])
        inner = redistributed(adjoint(inner), x.distribution.layout, "eigh")
        inner = _by_triangles("eigh", factor, inner, [_Triangle(True, "N")])
        values, vectors = dense.eigh(inner, "L", True, subset)
        vectors = _by_triangles("eigh", factor, vectors, [_Triangle(True, "C")])
        return values, dense.returned(vectors, target, "eigh")


def _hermitian(x: Any, lower: bool) -> Any:
    """The Hermitian matrix of one triangle of x."""
    with attributed_to("eigh", of_result=True):
        if lower:
            return tril(x) + adjoint(tril(x, -1))
        return triu(x) + adjoint(triu(x, 1))


def _eigh_of_pair(subset: tuple[int, int] | None, b: Array, a: Array) -> tuple[Array, Array]:
    """Eigenvalues and vectors of two whole arrays."""
    factor = np.linalg.cholesky(b)
    inner = walks.solved(factor, walks.solved(factor, a, lower=True).conj().T, lower=True)
    values, vectors = dense.eigensystem(True, subset, inner)
    return values, walks.solved(factor.conj().T, vectors, lower=False)


def _lu(a: Array) -> tuple[Array, Array]:
    """The factors of a whole array, in one, and its pivots."""
    factors, pivots = a.copy(), np.arange(min(a.shape))
    walks.factor(factors, pivots)
    return factors, pivots


def _trans_of(trans: object) -> Trans:
    if trans not in _TRANS:
        raise ValueError(f"trans is 0, 1, 2, 'N', 'T' or 'C', not {trans!r}")
    return _TRANS[trans]


def _subset(numbers: Sequence[int], n: int) -> tuple[int, int]:
    first, last = map(index, numbers)
    if not 0 <= first <= last < n:
        raise ValueError(f"subset_by_index is a pair of numbers from 0 to {n - 1}, in order, not {(first, last)}")
    return first, last
