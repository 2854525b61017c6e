"""Linear algebra of stacks of matrices that are whole on ranks, by NumPy's functions on the blocks; diagonals; norms.

Modes before the last two are a stack, which may be split. If the matrices of a stack are split, the cheapest plan makes
them whole on some ranks; that is an implicit move. One matrix that is split, `rote.linalg` factors where it is.
"""

from __future__ import annotations

from functools import partial
from operator import index
from typing import Any, Generic, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import LayoutError
from ..layout.layout import Layout
from ..lazy import late
from . import reductions
from .alignment import plain
from .contraction.operands import Term, diagonal_of, stackwise
from .contraction.run import contract
from .distributed import Distributed, T, linked
from .elementwise import elementwise
from .indexing import getitem, relabelled
from .moves import attributed_to
from .orthogonal import COLUMNS, MATRIX, ROWS, floating, is_split, of_matrices, stack_of, svdvals
from .products import conjugate, matmul
from .rearranging import expand_dims, pad, permute_dims, squeeze
from .reductions import Axis, LayoutLike, finished, in_layout, normal_axes
from .rules import follows, of_one, of_two

__all__ = ["Eigensystem", "SignAndLog", "cholesky", "cond", "det", "diag", "diagonal", "eigh", "eigvalsh", "inv"]
__all__ += ["matrix_norm", "matrix_power", "norm", "numpy_diagonal", "numpy_trace", "slogdet", "solve", "trace"]
__all__ += ["vector_norm"]


class SignAndLog(NamedTuple, Generic[T]):
    """The sign of a determinant, and the logarithm of its magnitude."""

    sign: T
    logabsdet: T


class Eigensystem(NamedTuple, Generic[T]):
    """Eigenvalues in ascending order, and eigenvectors in columns."""

    eigenvalues: T
    eigenvectors: T


@of_one
@follows("contracted", np.linalg.cholesky)
def cholesky(x: Distributed, /, *, upper: bool = False, layout: LayoutLike = None) -> Any:
    """The triangular factors of positive definite matrices, of x's shape. Collective.

    Parameters
    ----------
    x : DistTensor
        A stack of positive definite matrices, of which the lower triangles are read.
    upper : bool, default False
        Whether factors are upper triangles.
    layout : Layout | str, optional
        The layout of the result; that of `x` if None.

    Raises
    ------
    numpy.linalg.LinAlgError
        Some matrix is not positive definite; raised on all ranks.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.linalg.cholesky(xp.asarray([[4.0, 2.0], [2.0, 5.0]])).to_global()
    array([[2., 0.],
           [1., 2.]])
    """
    if is_split(x):
        return late("linalg.dense:cholesky")(x, upper, layout)
    (factors,) = of_matrices("cholesky", partial(np.linalg.cholesky, upper=upper), x, MATRIX)
    return in_layout("cholesky", factors, layout)


@of_one
@follows("contracted", np.linalg.det)
def det(x: Distributed, /) -> Any:
    """The determinants of square matrices, in the shape of their stack. Collective.

    Parameters
    ----------
    x : DistTensor
        A stack of matrices, in the last two modes.

    Examples
    --------
    >>> import rote, rote.array_api as xp
    >>> x = rote.DistTensor.from_global([[[2.0, 1.0], [1.0, 3.0]]], "block[(0),(),()]")
    >>> xp.linalg.det(x).to_global()
    array([5.])
    """
    if is_split(x):
        return late("linalg.dense:det")(x)
    return of_matrices("det", np.linalg.det, x, ())[0]


@follows("contracted", np.linalg.slogdet)
def slogdet(x: T, /) -> SignAndLog[T]:
    """Signs of determinants, and the logarithms of their magnitudes, both in the shape of the stack. Collective.

    Parameters
    ----------
    x : DistTensor
        A stack of matrices, in the last two modes.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> [float(part) for part in xp.linalg.slogdet(xp.asarray([[1.0, 0.0], [0.0, -1.0]]))]
    [-1.0, 0.0]
    """
    if is_split(x):
        return SignAndLog(*late("linalg.dense:slogdet")(x))
    return SignAndLog(*of_matrices("slogdet", np.linalg.slogdet, x, (), ()))


@of_one
@follows("contracted", np.linalg.inv)
def inv(x: Distributed, /, *, layout: LayoutLike = None) -> Any:
    """The inverses of square matrices. Collective.

    Parameters
    ----------
    x : DistTensor
        A stack of matrices, in the last two modes.
    layout : Layout | str, optional
        The layout of the result; that of `x` if None.

    Raises
    ------
    numpy.linalg.LinAlgError
        Some matrix is singular; raised on all ranks.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.linalg.inv(xp.asarray([[2.0, 0.0], [0.0, 4.0]])).to_global()
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    if is_split(x):
        return late("linalg.dense:inv")(x, layout)
    return in_layout("inv", of_matrices("inv", np.linalg.inv, x, MATRIX)[0], layout)


@of_two
@follows("contracted", np.linalg.solve)
def solve(x1: Any, x2: Any, /, *, layout: LayoutLike = None) -> Any:
    """The solutions of linear systems; right-hand sides may stay split over their columns. Collective.

    Parameters
    ----------
    x1 : DistTensor | array_like
        Square matrices, of shape (…, n, n).
    x2 : DistTensor | array_like
        Right-hand sides, of shape (n,) or (…, n, k), whose stack broadcasts with that of `x1`.
    layout : Layout | str, optional
        The layout of the result; that of `x2` if None.

    Raises
    ------
    LayoutError
        Sizes do not fit. numpy.linalg.LinAlgError: some matrix is singular; raised on all ranks.

    Examples
    --------
    >>> import rote, rote.array_api as xp
    >>> x = rote.DistTensor.from_global([[2.0, 0.0], [0.0, 4.0]], "[(),()]")
    >>> xp.linalg.solve(x, rote.DistTensor.from_global([2.0, 2.0], "[()]")).to_global()
    array([1. , 0.5])
    """
    stack = stack_of("solve", x1)
    first = (*stack, ROWS, COLUMNS)
    second: Term = (ROWS,)
    result: Term = (*stack, COLUMNS)
    if np.ndim(x2) != 1:
        other = stack_of("solve", x2)
        second, result = (*other, ROWS, 2), (*max(stack, other, key=len), COLUMNS, 2)

    if not np.shape(x1)[-2] == np.shape(x1)[-1] == np.shape(x2)[-min(np.ndim(x2), 2)]:
        raise LayoutError(
            f"solve takes square matrices and as many rows of right-hand sides, not {np.shape(x1)} and {np.shape(x2)}"
        )
    if is_split(x1) and np.ndim(x2) <= 2:
        return late("linalg.dense:solve")(x1, x2, layout)
    (solutions,) = stackwise(np.linalg.solve, (x1, x2), (first, second), (result,), "solve", MATRIX)
    return in_layout("solve", solutions, layout)


@follows("contracted", np.linalg.eigh)
def eigh(x: T, /, UPLO: Literal["L", "U"] = "L", *, layout: LayoutLike = None) -> Eigensystem[T]:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices; only one triangle is read. Collective.

    Parameters
    ----------
    x : DistTensor
        A stack of matrices, in the last two modes.
    UPLO : {'L', 'U'}, default 'L'
        The triangle, "L" for the lower one, or "U".
    layout : Layout | str, optional
        The layout of the eigenvectors; that of `x` if None.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.linalg.eigh(xp.asarray([[2.0, 0.0], [0.0, 3.0]])).eigenvalues.to_global()
    array([2., 3.])
    """
    if is_split(x):
        return Eigensystem(*late("linalg.dense:eigh")(x, UPLO, layout=layout))
    values, vectors = of_matrices("eigh", partial(np.linalg.eigh, UPLO=UPLO), x, (ROWS,), MATRIX)
    return Eigensystem(values, in_layout("eigh", vectors, layout))


@of_one
@follows("contracted", np.linalg.eigvalsh)
def eigvalsh(x: Distributed, /, UPLO: Literal["L", "U"] = "L") -> Any:
    """Eigenvalues of symmetric or Hermitian matrices in ascending order; only one triangle is read. Collective.

    Parameters
    ----------
    x : DistTensor
        A stack of matrices, in the last two modes.
    UPLO : {'L', 'U'}, default 'L'
        The triangle that is read, "L" or "U".

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.linalg.eigvalsh(xp.asarray([[2.0, 0.0], [0.0, 3.0]])).to_global()
    array([2., 3.])
    """
    if is_split(x):
        return late("linalg.dense:eigh")(x, UPLO, vectors=False)[0]
    return of_matrices("eigvalsh", partial(np.linalg.eigvalsh, UPLO=UPLO), x, (ROWS,))[0]


@of_one
@follows("contracted", np.linalg.matrix_power)
def matrix_power(x: Distributed, n: int, /) -> Any:
    """Powers of square matrices by repeated squaring; a negative `n` takes powers of the inverses. Collective.

    Parameters
    ----------
    x : DistTensor
        A stack of matrices, in the last two modes.
    n : int
        The exponent.

    Raises
    ------
    LayoutError
        The matrices are not square.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.linalg.matrix_power(xp.asarray([[1.0, 1.0], [0.0, 1.0]]), 3).to_global()
    array([[1., 3.],
           [0., 1.]])
    """
    stack_of("matrix_power", x)
    shape = x.distribution.shape
    if shape[-1] != shape[-2]:
        raise LayoutError(f"matrix_power takes square matrices, not {shape[-2:]}")

    if (n := index(n)) == 0:
        y = plain(x, "matrix_power")
        rows, columns = y.distribution.indices(y.comm.rank)[-2:]
        return y._with(np.broadcast_to(rows[:, None] == columns, y.local.shape).astype(y.local.dtype))

    # A product for each bit of n that is 1, of the square that stands for it; the last square would be for no bit.
    square, power, bits = (inv(x) if n < 0 else x), None, abs(n)
    while bits:
        if bits % 2:
            power = square if power is None else matmul(power, square)
        bits //= 2
        if bits:
            square = matmul(square, square)
    return power


@of_one
@follows("contracted", np.linalg.trace)
def trace(x: Distributed, /, *, offset: int = 0, dtype: npt.DTypeLike | None = None) -> Any:
    """The sums of the diagonals of matrices, in the shape of their stack. Matrices do not move. Collective.

    Parameters
    ----------
    x : DistTensor
        A stack of matrices, in the last two modes.
    offset : int, default 0
        The offset of the diagonal, above the main one if it is positive.
    dtype : DTypeLike, optional
        The dtype of the sum; if None, that of the elements, but of 64 bits at least for integers.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> int(xp.linalg.trace(xp.asarray([[1, 2], [3, 4]])))
    5
    """
    stack = stack_of("trace", x)
    return numpy_trace(x, offset, len(stack), len(stack) + 1, dtype)


@of_one
@follows("contracted", np.trace, name="numpy.trace")
def numpy_trace(
    a: Distributed, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Any:
    """The sums of the elements on a diagonal of two modes, as `numpy.trace`; errors as for `diagonal`. Collective.

    Examples
    --------
    >>> from rote import DistTensor
    >>> DistTensor.from_global([[1, 2], [3, 4]], "block[(0),()]").trace().to_global()
    array(5)
    """
    rows, columns = normal_axes((axis1, axis2), len(a.distribution.shape))
    diag = diagonal_of(a, rows, columns, offset, "trace")
    if dtype is None:
        dtype = np.add.reduce(np.empty(0, diag.local.dtype)).dtype
    return finished("trace", reductions.sum(diag._with(diag.local.astype(dtype)), rows - (columns < rows)), out)


@of_one
@follows("contracted", np.linalg.diagonal, views=True)
def diagonal(x: Distributed, /, *, offset: int = 0) -> Any:
    """The diagonals of matrices, of shape (…, length); only the diagonals move. Collective.

    Parameters
    ----------
    x : DistTensor
        A stack of matrices, in the last two modes.
    offset : int, default 0
        The offset of the diagonal, above the main one if it is positive.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.linalg.diagonal(xp.asarray([[1, 2], [3, 4]])).to_global()
    array([1, 4])
    """
    stack = stack_of("diagonal", x)
    return numpy_diagonal(x, offset, len(stack), len(stack) + 1)


@of_one
@follows("contracted", np.diagonal, name="numpy.diagonal", views=True)
def numpy_diagonal(a: Distributed, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The elements on a diagonal of two modes, which is the result's last mode, as `numpy.diagonal`. Collective.

    Raises
    ------
    AxisError
        There is no such mode
    ValueError
        The two are one.

    Examples
    --------
    >>> from rote import DistTensor
    >>> DistTensor.from_global([[1, 2], [3, 4]], "block[(0),()]").diagonal(1).to_global()
    array([2])
    """
    order = len(a.distribution.shape)
    axis1, axis2 = normal_axes((axis1, axis2), order)
    rows, columns = a.distribution.shape[axis1], a.distribution.shape[axis2]
    diag = diagonal_of(a, axis1, axis2, offset, "diagonal")

    # It has as many indices as there are rows: leave out those whose column is outside of the matrix.
    place = axis1 - (axis2 < axis1)
    modes = [*(mode for mode in range(order - 1) if mode != place), place]
    first, length = max(-offset, 0), max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    with attributed_to("diagonal", of_result=True):
        values = relabelled(plain(diag, "diagonal"), modes)
    if (first, length) != (0, rows):
        values = getitem(values, (..., slice(first, first + length)))
    return linked(values, a, None, "copy", fixed=lambda array: np.diagonal(array, offset, axis1, axis2))


@of_one
@follows("contracted", np.diag)
def diag(v: Distributed, k: int = 0) -> Any:
    """The k-th diagonal of a matrix, or the matrix with a vector on it, whose rows are split as the vector is.

    Raises:
        ValueError: the tensor is neither a matrix nor a vector.

    >>> from rote import DistTensor
    >>> np.diag(DistTensor.from_global([1, 2], "block[(0)]")).to_global().tolist()
    [[1, 0], [0, 2]]
    """
    order, k = len(v.distribution.shape), index(k)
    if order == 2:
        return numpy_diagonal(v, k)
    if order != 1:
        raise ValueError(f"diag takes a vector or a matrix, not a tensor of order {order}")

    n, first = v.distribution.shape[0], max(-k, 0)
    x = pad(v, (first, max(k, 0)))
    (rows,) = x.distribution.indices(x.comm.rank)
    (filled,) = np.nonzero((rows >= first) & (rows < first + n))
    block = np.zeros((len(rows), n + abs(k)), x.local.dtype)
    block[filled, rows[filled] + k] = x.local[filled]
    dist = x.distribution
    return x._on(block, Layout((*dist.layout.modes, ())).on((*dist.shape, n + abs(k)), dist.grid))


# --- norms ----------------------------------------------------------------------------------------------------


MatrixOrder = float | Literal["fro", "nuc"]


@of_one
@follows("reduction", np.linalg.vector_norm)
def vector_norm(
    x: Distributed, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2, exact: bool = False
) -> Any:
    """The norms of vectors along some modes, or of all elements. Collective where they are split.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    axis : int | tuple[int, ...], optional
        One mode, several modes taken together, or None for all.
    keepdims : bool, default False
        Whether these modes stay, with extent 1.
    ord : float, default 2
        2 for the root of the sum of squares; inf and -inf for the largest and smallest magnitude; 0 for the number of
        elements that are not 0; any other number p for the p-th root of the sum of the p-th powers.
    exact : bool, default False
        Add squares or powers so that the sum has the same bits in any layout, on any number of ranks.

    Examples
    --------
    >>> import rote, rote.array_api as xp
    >>> xp.linalg.vector_norm(rote.DistTensor.from_global([3.0, 4.0], "block[(0)]")).to_global()
    array(5.)
    """
    modes = normal_axes(axis, len(x.distribution.shape))
    x = floating(x)
    if ord in (np.inf, -np.inf):
        return _extreme(_magnitudes(x), modes, keepdims, ord)
    if ord == 0:
        counts = reductions.count_nonzero(x, modes, keepdims=keepdims)
        return counts.astype(_magnitudes(x).local.dtype)
    if ord == 2:
        return elementwise("sqrt", np.sqrt, (_squares(x, modes, keepdims, exact),), {})

    powers = elementwise("pow", np.power, (_magnitudes(x), ord), {})
    total = reductions.sum(powers, modes, keepdims=keepdims, exact=exact)
    return elementwise("pow", np.power, (total, 1 / ord), {})


def _squares(x: Distributed, modes: tuple[int, ...], keepdims: bool, exact: bool) -> Any:
    """The sums of squared magnitudes, by contractions, which allocate no array of squares; if exact, rounded once."""
    if exact:
        squares = elementwise("square", lambda block: np.square(block.real), (x,), {})
        if x.local.dtype.kind == "c":
            squares = elementwise("add", lambda square, block: square + np.square(block.imag), (squares, x), {})
        return reductions.sum(squares, modes, keepdims=keepdims, exact=True)

    x = plain(x, "vector_norm")
    term = tuple(range(len(x.distribution.shape)))
    result = tuple([label for label in term if label not in modes])
    total = contract((conjugate(x), x), (term, term), result, "vector_norm")
    if x.local.dtype.kind == "c":
        total = elementwise("real", np.real, (total,), {})
    return expand_dims(total, modes) if keepdims else total


@of_one
@follows("reduction", np.linalg.matrix_norm)
def matrix_norm(x: Distributed, /, *, keepdims: bool = False, ord: MatrixOrder | None = "fro") -> Any:
    """The norms of matrices, in the shape of their stack. Collective where they are split.

    Parameters
    ----------
    x : DistTensor
        A stack of matrices, in the last two modes.
    keepdims : bool, default False
        Whether the two modes stay, with extent 1.
    ord : float | {'fro', 'nuc'} | None, default 'fro'
        "fro" (or None) for the root of the sum of squares; 1 and inf for the largest sum of magnitudes of a column and
        of a row, -1 and -inf for the smallest; 2, -2 and "nuc" for the largest, the smallest and the sum of the
        singular values.

    Raises
    ------
    LayoutError
        `ord` is none of these.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> float(xp.linalg.matrix_norm(xp.asarray([[3.0, 0.0], [0.0, 4.0]])))
    5.0
    """
    stack = stack_of("matrix_norm", x)
    x = floating(x)
    rows, columns = len(stack), len(stack) + 1

    if ord is None or ord == "fro":
        return vector_norm(x, axis=(rows, columns), keepdims=keepdims)
    if ord in (1, -1, np.inf, -np.inf):
        added, compared = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = reductions.sum(_magnitudes(x), added, keepdims=True)
        norms = _extreme(sums, (compared,), True, ord)
        return norms if keepdims else squeeze(norms, (rows, columns))
    if ord not in (2, -2, "nuc"):
        raise LayoutError(f"the norms of matrices are 'fro', 'nuc', 1, -1, 2, -2, inf and -inf, not {ord!r}")

    values = svdvals(x)
    if ord == "nuc":
        norms = reductions.sum(values, rows)
    else:
        norms = _extreme(values, (rows,), False, ord)
    return expand_dims(norms, (rows, columns)) if keepdims else norms


@of_one
@follows("reduction", np.linalg.norm)
def norm(x: Distributed, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> Any:
    """`numpy.linalg.norm`: of a vector, a matrix, or all elements, depending on `ord` and `axis`. Collective."""
    order = len(x.distribution.shape)
    if axis is None and ord is None:
        return vector_norm(x, keepdims=keepdims)

    modes = normal_axes(axis, order)
    if len(modes) == 1:
        if isinstance(ord, str):
            raise ValueError(f"{ord!r} is the norm of a matrix; write a number, or name two modes")
        return vector_norm(x, axis=modes, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(modes) != 2:
        raise LayoutError(f"norm takes vectors and matrices, not {len(modes)} modes; write vector_norm for more")
    others = [mode for mode in range(order) if mode not in modes]
    norms = matrix_norm(permute_dims(x, (*others, *modes)), ord=ord)
    return expand_dims(norms, modes) if keepdims else norms


@of_one
@follows("contracted", np.linalg.cond)
def cond(x: Distributed, p: Any = None) -> Any:
    """The condition numbers of matrices, in the shape of their stack, as `numpy.linalg.cond`. Collective.

    Parameters
    ----------
    x : DistTensor
        A stack of matrices, in the last two modes.
    p : float | str, optional
        None, 2 or -2 for ratios of singular values; other orders of `matrix_norm` for the norm times that of the
        inverse. Of these, "nuc", and stacks of split matrices, make matrices whole.

    Raises
    ------
    LinAlgError
        Matrices are empty, or not square where an inverse is needed.

    Examples
    --------
    >>> import numpy as np, rote
    >>> float(np.linalg.cond(rote.DistTensor.from_global([[2.0, 0.0], [0.0, 1.0]], "block[(0),()]")))
    2.0
    """
    stack_of("cond", x)
    if 0 in x.distribution.shape[-2:]:
        raise np.linalg.LinAlgError("cond is not defined on empty arrays")
    if p not in (None, 2, -2):
        if is_split(x) and p != "nuc":
            return _product_of_norms(x, p)
        return of_matrices("cond", lambda block: np.linalg.cond(block, p), x, ())[0]
    values = svdvals(x)
    ends = [getitem(values, (..., end)) for end in ((-1, 0) if p == -2 else (0, -1))]
    with np.errstate(all="ignore"):  # of singular matrices
        return elementwise("cond", lambda a, b: np.nan_to_num(a / b, nan=np.inf, posinf=np.inf), ends, {})


def _product_of_norms(x: Distributed, p: MatrixOrder) -> Any:
    """The product of the norms of a split matrix and its inverse; inf for a singular one, NaN if an element is."""
    late("linalg.dense:check_square")(x)
    with np.errstate(all="ignore"):
        first = matrix_norm(x, ord=p)
        second: Any
        try:
            second = matrix_norm(inv(x), ord=p)
        except np.linalg.LinAlgError:  # on all ranks
            second = np.inf

        def product(a: Any, b: Any) -> Any:
            return np.where(np.isnan(a), a, np.nan_to_num(a * b, nan=np.inf, posinf=np.inf))

        return elementwise("cond", product, (first, second), {})


def _extreme(magnitudes: Any, modes: tuple[int, ...], keepdims: bool, ord: float) -> Any:
    """The largest magnitudes, or the smallest for a negative order; the largest of no elements is 0."""
    if ord > 0:
        return reductions.max(magnitudes, modes, keepdims=keepdims, initial=0)
    return reductions.min(magnitudes, modes, keepdims=keepdims)


def _magnitudes(x: Distributed) -> Any:
    return elementwise("abs", np.abs, (x,), {})
