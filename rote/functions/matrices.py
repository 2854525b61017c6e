"""Linear algebra of stacks of matrices that are whole on ranks, by NumPy's functions on the blocks.

Modes before the last two are a stack, which may be split. If the matrices themselves are split, the cheapest plan makes
them whole on some ranks; that is an implicit move.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import index
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import LayoutError
from ..layout.layout import Layout
from .alignment import plain
from .contraction import Term, contract, diagonal_of, stackwise
from .distributed import Distributed, linked
from .moves import because
from .products import conjugate, matmul
from .rearranging.indexing import getitem, relabelled
from .rearranging.placing import pad
from .rearranging.reshaping import reordered
from .reductions import finished, normal_axes
from .rules import follows

__all__ = [
    "Eigensystem",
    "SignAndLog",
    "adjoint",
    "cholesky",
    "det",
    "diag",
    "diagonal",
    "eigh",
    "eigvalsh",
    "floating",
]
__all__ += [
    "inv",
    "matrix_power",
    "matrix_transpose",
    "numpy_diagonal",
    "numpy_trace",
    "of_matrices",
    "slogdet",
    "solve",
]
__all__ += ["stack_of", "trace"]

MATRIX = ROWS, COLUMNS = 0, 1
"""Labels of the modes of a matrix; those of its stack come after 10, counted from the last mode."""


class SignAndLog(NamedTuple):
    """The sign of a determinant, and the logarithm of its magnitude."""

    sign: Any
    logabsdet: Any


class Eigensystem(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors in columns."""

    eigenvalues: Any
    eigenvectors: Any


def stack_of(cause: str, x: Any) -> Term:
    """The labels of a stack of matrices; refused if the order of `x` is less than 2."""
    if np.ndim(x) < 2:
        raise LayoutError(f"{cause} takes matrices, or stacks of them, not a tensor of order {np.ndim(x)}")
    return tuple(range(10 + np.ndim(x) - 2, 10, -1))


def floating(x: Distributed) -> Distributed:
    """The tensor with elements of a real or complex floating dtype, which NumPy's linear algebra needs."""
    return x if x.local.dtype.kind in "fc" else x.astype("f8")


def of_matrices(
    cause: str, function: Callable[..., Any], x: Any, *results: Term, extents: dict[int, int] | None = None
) -> list[Any]:
    """Apply a function of matrices to a stack of them; `extents` are of labels that only results have."""
    stack = stack_of(cause, x)
    terms = [(*stack, *labels) for labels in (MATRIX, *results)]
    return stackwise(function, (x,), terms[:1], terms[1:], cause, MATRIX, extents)


@follows("contracted", np.linalg.cholesky)
def cholesky(x: Distributed, /, *, upper: bool = False) -> Any:
    """The triangular factors of positive definite matrices, of x's shape. Collective.

    Raises:
        numpy.linalg.LinAlgError: some matrix is not positive definite; raised on all ranks.

    >>> import rote.array_api as xp
    >>> xp.linalg.cholesky(xp.asarray([[4.0, 2.0], [2.0, 5.0]])).to_global()
    array([[2., 0.],
           [1., 2.]])
    """
    return of_matrices("cholesky", partial(np.linalg.cholesky, upper=upper), x, MATRIX)[0]


@follows("contracted", np.linalg.det)
def det(x: Distributed, /) -> Any:
    """The determinants of square matrices, in the shape of their stack. Collective.

    >>> import rote
    >>> det(rote.DistTensor.from_global([[[2.0, 1.0], [1.0, 3.0]]], "block[(0),(),()]")).to_global()
    array([5.])
    """
    return of_matrices("det", np.linalg.det, x, ())[0]


@follows("contracted", np.linalg.slogdet)
def slogdet(x: Distributed, /) -> SignAndLog:
    """Signs of determinants, and the logarithms of their magnitudes, both in the shape of the stack. Collective.

    >>> import rote.array_api as xp
    >>> [float(part) for part in xp.linalg.slogdet(xp.asarray([[1.0, 0.0], [0.0, -1.0]]))]
    [-1.0, 0.0]
    """
    return SignAndLog(*of_matrices("slogdet", np.linalg.slogdet, x, (), ()))


@follows("contracted", np.linalg.inv)
def inv(x: Distributed, /) -> Any:
    """The inverses of square matrices. Collective.

    Raises:
        numpy.linalg.LinAlgError: some matrix is singular; raised on all ranks.

    >>> import rote.array_api as xp
    >>> xp.linalg.inv(xp.asarray([[2.0, 0.0], [0.0, 4.0]])).to_global()
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    return of_matrices("inv", np.linalg.inv, x, MATRIX)[0]


@follows("contracted", np.linalg.solve)
def solve(x1: Any, x2: Any, /) -> Any:
    """The solutions of linear systems; right-hand sides may stay split over their columns. Collective.

    Args:
        x1: square matrices, of shape (…, n, n).
        x2: right-hand sides, of shape (n,) or (…, n, k), whose stack broadcasts with that of `x1`.

    Raises:
        LayoutError: sizes do not fit. numpy.linalg.LinAlgError: some matrix is singular; raised on all ranks.

    >>> import rote
    >>> x = rote.DistTensor.from_global([[2.0, 0.0], [0.0, 4.0]], "[(),()]")
    >>> solve(x, rote.DistTensor.from_global([2.0, 2.0], "[()]")).to_global()
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
    return stackwise(np.linalg.solve, (x1, x2), (first, second), (result,), "solve", MATRIX)[0]


@follows("contracted", np.linalg.eigh)
def eigh(x: Distributed, /, UPLO: Literal["L", "U"] = "L") -> Eigensystem:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices; only one triangle is read. Collective.

    >>> import rote.array_api as xp
    >>> xp.linalg.eigh(xp.asarray([[2.0, 0.0], [0.0, 3.0]])).eigenvalues.to_global()
    array([2., 3.])
    """
    return Eigensystem(*of_matrices("eigh", partial(np.linalg.eigh, UPLO=UPLO), x, (ROWS,), MATRIX))


@follows("contracted", np.linalg.eigvalsh)
def eigvalsh(x: Distributed, /, UPLO: Literal["L", "U"] = "L") -> Any:
    """Eigenvalues of symmetric or Hermitian matrices in ascending order; only one triangle is read. Collective.

    >>> import rote.array_api as xp
    >>> xp.linalg.eigvalsh(xp.asarray([[2.0, 0.0], [0.0, 3.0]])).to_global()
    array([2., 3.])
    """
    return of_matrices("eigvalsh", partial(np.linalg.eigvalsh, UPLO=UPLO), x, (ROWS,))[0]


@follows("contracted", np.linalg.matrix_power)
def matrix_power(x: Distributed, n: int, /) -> Any:
    """Powers of square matrices by repeated squaring; a negative `n` takes powers of the inverses. Collective.

    Raises:
        LayoutError: the matrices are not square.

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
    square, power, left = (inv(x) if n < 0 else x), None, abs(n)
    while left:
        if left % 2:
            power = square if power is None else matmul(power, square)
        left //= 2
        if left:
            square = matmul(square, square)
    return power


@follows("relabelled", np.linalg.matrix_transpose, np.matrix_transpose)
def matrix_transpose(x: Distributed, /) -> Any:
    """The tensor with its last two modes exchanged; blocks are views. From a view or a partial layout it moves first.

    >>> import rote
    >>> print(matrix_transpose(rote.DistTensor.zeros((4, 6), "block[(0),()]")).layout)
    block[(),(0)]
    """
    order = len(stack_of("matrix_transpose", x))
    return reordered(x, (*range(order), order + 1, order), "matrix_transpose")


@follows("contracted", np.linalg.trace)
def trace(x: Distributed, /, *, offset: int = 0, dtype: npt.DTypeLike | None = None) -> Any:
    """The sums of the diagonals of matrices, in the shape of their stack. Matrices do not move. Collective.

    Args:
        offset: the offset of the diagonal, above the main one if it is positive.
        dtype: the dtype of the sum; if None, that of the elements, but of 64 bits at least for integers.

    >>> import rote.array_api as xp
    >>> int(xp.linalg.trace(xp.asarray([[1, 2], [3, 4]])))
    5
    """
    stack = stack_of("trace", x)
    return _summed_diagonal(x, len(stack), len(stack) + 1, offset, dtype)


@follows("contracted", np.trace, name="numpy.trace")
def numpy_trace(
    a: Distributed, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Any:
    """The sums of the elements on a diagonal of two modes, as `numpy.trace`; errors as for `diagonal`. Collective.

    Args:
        offset, dtype: as for the trace of matrices.
        axis1, axis2: the modes of the diagonal.
        out: a tensor of the result's shape to write into.

    >>> from rote import DistTensor
    >>> DistTensor.from_global([[1, 2], [3, 4]], "block[(0),()]").trace().to_global()
    array(5)
    """
    rows, columns = normal_axes((axis1, axis2), len(a.distribution.shape))
    return finished("trace", _summed_diagonal(a, rows, columns, offset, dtype), out)


def _summed_diagonal(x: Distributed, rows: int, columns: int, offset: int, dtype: npt.DTypeLike | None) -> Any:
    diag = diagonal_of(x, rows, columns, offset, "trace")
    if dtype is None:
        dtype = np.add.reduce(np.empty(0, diag.local.dtype)).dtype
    order = len(diag.distribution.shape)
    along = rows - (columns < rows)
    result = tuple([label for label in range(order) if label != along])
    return contract((diag._with(diag.local.astype(dtype)),), (tuple(range(order)),), result, "trace")


@follows("contracted", np.linalg.diagonal, views=True)
def diagonal(x: Distributed, /, *, offset: int = 0) -> Any:
    """The diagonals of matrices, of shape (…, length); only the diagonals move. Collective.

    Args:
        offset: the offset of the diagonal, above the main one if it is positive.

    >>> import rote.array_api as xp
    >>> xp.linalg.diagonal(xp.asarray([[1, 2], [3, 4]])).to_global()
    array([1, 4])
    """
    stack = stack_of("diagonal", x)
    return numpy_diagonal(x, offset, len(stack), len(stack) + 1)


@follows("contracted", np.diagonal, name="numpy.diagonal", views=True)
def numpy_diagonal(a: Distributed, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The elements on a diagonal of two modes, which is the result's last mode, as `numpy.diagonal`. Collective.

    Args:
        offset: the offset of the diagonal, above the main one if it is positive.
        axis1, axis2: the modes of the diagonal, which the result does not have.

    Raises: AxisError if there is no such mode, ValueError if the two are one.

    >>> from rote import DistTensor
    >>> DistTensor.from_global([[1, 2], [3, 4]], "block[(0),()]").diagonal(1).to_global()
    array([2])
    """
    order = len(a.distribution.shape)
    axis1, axis2 = normal_axes((axis1, axis2), order)
    rows, columns = a.distribution.shape[axis1], a.distribution.shape[axis2]
    diag = diagonal_of(a, axis1, axis2, offset, "diagonal")
    place = axis1 - (axis2 < axis1)
    modes = [*(mode for mode in range(order - 1) if mode != place), place]
    first, length = max(-offset, 0), max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    with because("diagonal", owns=True):
        values = relabelled(plain(diag, "diagonal"), modes)
    if (first, length) != (0, rows):
        values = getitem(values, (..., slice(first, first + length)))
    return linked(values, a, None, "copy", fixed=lambda array: np.diagonal(array, offset, axis1, axis2))


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


def adjoint(x: Distributed) -> Any:
    """The conjugate transposes of matrices."""
    return conjugate(matrix_transpose(x))
