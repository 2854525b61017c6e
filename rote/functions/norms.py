"""Norms of vectors and of matrices, by the names of the array API standard and of NumPy."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..errors import LayoutError
from . import reductions
from .alignment import plain
from .contraction import contract
from .distributed import Distributed
from .elementwise import elementwise
from .matrices import floating, of_matrices, stack_of
from .orthogonal import svdvals
from .products import conjugate
from .rearranging.indexing import getitem
from .rearranging.reshaping import expand_dims, permute_dims, squeeze
from .reductions import Axis, normal_axes
from .rules import follows

__all__ = ["cond", "matrix_norm", "norm", "vector_norm"]

MatrixOrder = float | Literal["fro", "nuc"]


@follows("reduction", np.linalg.vector_norm)
def vector_norm(
    x: Distributed, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2, exact: bool = False
) -> Any:
    """The norms of vectors along some modes, or of all elements. Collective where they are split.

    Args:
        axis: one mode, several modes taken together, or None for all.
        keepdims: whether these modes stay, with extent 1.
        ord: 2 for the root of the sum of squares; inf and -inf for the largest and smallest magnitude; 0 for the number
            of elements that are not 0; any other number p for the p-th root of the sum of the p-th powers.
        exact: add squares or powers so that the sum has the same bits in any layout, on any number of ranks.

    >>> import rote
    >>> vector_norm(rote.DistTensor.from_global([3.0, 4.0], "block[(0)]")).to_global()
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
        squares = _exact_squares(x, modes, keepdims) if exact else _squares(x, modes, keepdims)
        return elementwise("sqrt", np.sqrt, (squares,), {})
    powers = elementwise("pow", np.power, (_magnitudes(x), ord), {})
    total = reductions.sum(powers, modes, keepdims=keepdims, exact=exact)
    return elementwise("pow", np.power, (total, 1 / ord), {})


def _squares(x: Distributed, modes: tuple[int, ...], keepdims: bool) -> Any:
    """The sums of squared magnitudes, by contractions, which allocate no array of squares."""
    x = plain(x, "vector_norm")
    term = tuple(range(len(x.distribution.shape)))
    result = tuple([label for label in term if label not in modes])
    total = contract((conjugate(x), x), (term, term), result, "vector_norm")
    if x.local.dtype.kind == "c":
        total = elementwise("real", np.real, (total,), {})
    return expand_dims(total, modes) if keepdims else total


def _exact_squares(x: Distributed, modes: tuple[int, ...], keepdims: bool) -> Any:
    """The sums of squared magnitudes: squares are rounded, and each sum of them is rounded once."""
    if x.local.dtype.kind == "f":
        squares = elementwise("square", np.square, (x,), {})
    else:
        parts = elementwise("real", np.real, (x,), {}), elementwise("imag", np.imag, (x,), {})
        real, imaginary = [elementwise("square", np.square, (part,), {}) for part in parts]
        squares = elementwise("add", np.add, (real, imaginary), {})
    return reductions.sum(squares, modes, keepdims=keepdims, exact=True)


@follows("reduction", np.linalg.matrix_norm)
def matrix_norm(x: Distributed, /, *, keepdims: bool = False, ord: MatrixOrder | None = "fro") -> Any:
    """The norms of matrices, in the shape of their stack. Collective where they are split.

    Args:
        keepdims: whether the two modes stay, with extent 1.
        ord: "fro" (or None) for the root of the sum of squares; 1 and inf for the largest sum of magnitudes of a column
            and of a row, -1 and -inf for the smallest; 2, -2 and "nuc" for the largest, the smallest and the sum of the
            singular values.

    Raises:
        LayoutError: `ord` is none of these.

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
    if ord is None or ord == "fro":
        return vector_norm(x, axis=modes, keepdims=keepdims)
    others = [mode for mode in range(order) if mode not in modes]
    norms = matrix_norm(permute_dims(x, (*others, *modes)), ord=ord)
    return expand_dims(norms, modes) if keepdims else norms


@follows("contracted", np.linalg.cond)
def cond(x: Distributed, p: Any = None) -> Any:
    """The condition numbers of matrices, in the shape of their stack, as `numpy.linalg.cond`. Collective.

    Args:
        p: None, 2 or -2 for ratios of singular values; another order of `matrix_norm` makes matrices whole.

    Raises:
        LinAlgError: matrices are empty, or not square where an inverse is needed.

    >>> from rote import DistTensor
    >>> float(np.linalg.cond(DistTensor.from_global([[2.0, 0.0], [0.0, 1.0]], "block[(0),()]")))
    2.0
    """
    stack_of("cond", x)
    if 0 in x.distribution.shape:
        raise np.linalg.LinAlgError("cond is not defined on empty arrays")
    if p not in (None, 2, -2):
        return of_matrices("cond", lambda block: np.linalg.cond(block, p), x, ())[0]
    values = svdvals(x)
    ends = [getitem(values, (..., end)) for end in ((-1, 0) if p == -2 else (0, -1))]
    with np.errstate(all="ignore"):  # of singular matrices
        return elementwise("cond", lambda a, b: np.nan_to_num(a / b, nan=np.inf, posinf=np.inf), ends, {})


def _extreme(magnitudes: Any, modes: tuple[int, ...], keepdims: bool, ord: float) -> Any:
    """The largest magnitudes, or the smallest for a negative order; the largest of no elements is 0."""
    if ord > 0:
        return reductions.max(magnitudes, modes, keepdims=keepdims, initial=0)
    return reductions.min(magnitudes, modes, keepdims=keepdims)


def _magnitudes(x: Distributed) -> Any:
    return elementwise("abs", np.abs, (x,), {})
