"""ScaLAPACK's routines for matrices in tiles: one table, one way to call them, and what each does to a matrix.

The functions overwrite block-cyclic matrices, as `walks` does, and have the same names. A routine sees the transposed
matrix (see `matrix`), so its arguments are those for the transposed task.

Source: Blackford et al. 1997, ScaLAPACK Users' Guide. INFO is looked at after each call, on all ranks.
"""

from __future__ import annotations

from ctypes import CDLL, byref, c_char_p, c_int, c_void_p
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from ..functions.creation import astype
from ..functions.distributed import Array, Distributed, Ints
from ..host import memory
from ..runtime.comm.agreement import gathered
from ..units import in_bytes
from .library import library
from .matrix import LIMIT, arguments
from .walks import Trans, diagonal, width_of

__all__ = ["cholesky", "eigenvalues", "eigh", "inv", "pivoted", "qr", "solve", "svd", "triangular_solve"]


class _Routine(NamedTuple):
    """A row of the table.

    Attributes:
        real, complex: the names of the routine, without "p" and the letter of the dtype.
        work, work_complex: its workspaces, in order: of elements (x), of real numbers (r), of integers (i). Each is
            followed by its size; "R" is one that is not.
        has_info: whether INFO is its last argument.
    """

    real: str
    complex: str
    work: str = ""
    work_complex: str = ""
    has_info: bool = True


_ROUTINES = {
    "cholesky": _Routine("potrf", "potrf"),
    "lu": _Routine("getrf", "getrf"),
    "solve by lu": _Routine("getrs", "getrs"),
    "invert lu": _Routine("getri", "getri", "xi", "xi"),
    "triangular solve": _Routine("trsm", "trsm", has_info=False),
    "tridiagonal": _Routine("sytrd", "hetrd", "x", "x"),
    "eigenvectors of tridiagonal": _Routine("stedc", "stedc", "xi"),
    "eigenvectors": _Routine("ormtr", "unmtr", "x", "x"),
    "eigenvalues": _Routine("syevr", "heevr", "xi", "xri"),
    "singular values": _Routine("gesvd", "gesvd", "x", "xR"),
    "lq": _Routine("gelqf", "gelqf", "x", "x"),
    "q of lq": _Routine("orglq", "unglq", "x", "x"),
}
_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}


def _call(name: str, x: Distributed, *args: Any) -> int:
    """Call a routine of the table, and return INFO, the same on all ranks. Collective.

    Args:
        x: the matrix whose dtype and ranks the routine is for.
        args: its arguments before the workspaces: matrices, arrays, letters and integers.

    Raises:
        PlanError: the workspaces do not fit into the memory of some node; raised on all ranks, before they are there.
    """
    routine, element = _ROUTINES[name], x.local.dtype
    is_complex = element.kind == "c"
    scalapack = cast(CDLL, library(x.comm))
    function = scalapack[f"p{_LETTERS[element.char]}{routine.complex if is_complex else routine.real}_"]

    passed: list[Any] = []
    for arg in args:
        passed += arguments(arg) if isinstance(arg, Distributed) else (arg,)
    dtypes = {"x": element, "r": x.local.real.dtype, "R": x.local.real.dtype, "i": np.dtype(np.int32)}
    letters = routine.work_complex if is_complex else routine.work
    works = [np.zeros(1, dtypes[letter]) for letter in letters]

    def run(ask: bool) -> int:
        info, values = c_int(0), list(passed)
        for letter, work in zip(letters, works, strict=True):
            values += (work,) if letter == "R" else (work, -1 if ask else work.size)
        function(*map(_as_argument, values), *([byref(info)] if routine.has_info else []))
        return info.value

    if works:
        run(ask=True)
        sizes = [_words(work[0]) for work in works]
        _check_work(name, x, sum(size * work.itemsize for size, work in zip(sizes, works, strict=True)), max(sizes))
        works = [np.zeros(max(size, 1), work.dtype) for size, work in zip(sizes, works, strict=True)]

    infos = gathered(x.comm, name, run(ask=False))
    info = max(infos) if min(infos) >= 0 else min(infos)
    if info < 0:
        raise RuntimeError(f"ScaLAPACK's {function.__name__} refuses its argument {-info}; this is a fault of Rote")
    return info


def _as_argument(value: Any) -> Any:
    """An argument of Fortran: an address."""
    if isinstance(value, bytes):
        return c_char_p(value)
    return c_void_p(value.ctypes.data) if isinstance(value, np.ndarray) else byref(c_int(int(value)))


def _words(answer: Any) -> int:
    """The size of a workspace, which a routine rounds to a number of the workspace's dtype, perhaps down."""
    return int(answer if answer.dtype.kind == "i" else np.ceil(np.nextafter(answer.real, np.inf)))


def _check_work(name: str, x: Distributed, nbytes: int, words: int) -> None:
    """Refuse workspaces that would take all memory of some node, or have too many words to be counted. Collective."""
    if max(gathered(x.comm, name, words)) >= LIMIT:
        raise PlanError(f"{name} of a matrix of shape {x.distribution.shape} takes 2^31 words\nrun it on more ranks")

    needs, nodes = gathered(x.comm, name, (nbytes + x.local.nbytes, memory())), x.comm.nodes()
    for node in range(max(nodes) + 1):
        members = [need for need, number in zip(needs, nodes, strict=True) if number == node]
        total, has = sum(need for need, _ in members), min(has for _, has in members)
        if total > has:
            raise PlanError(
                f"{name} of a matrix of shape {x.distribution.shape} takes {in_bytes(total)} on one node, which has "
                f"{in_bytes(has)}\nrun it on more nodes"
            )


# --- factors and solutions --------------------------------------------------------------------------------------------


def cholesky(x: Distributed) -> None:
    """Overwrite a matrix, of which the lower triangle is read, by its Cholesky factor. Collective.

    Raises:
        numpy.linalg.LinAlgError: the matrix is not positive definite; raised on all ranks.
    """
    if _call("cholesky", x, b"U", x.distribution.shape[0], x) > 0:
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    x.local[np.less.outer(*x.distribution.indices(x.comm.rank))] = 0


def pivoted(x: Distributed) -> Ints:
    """Overwrite a matrix by the factors P L U of its transpose, transposed. Collective.

    Returns:
        The pivots, on every rank, as `walks.pivoted` returns them.
    """
    return _everywhere(x, _factored(x), 1)[: min(x.distribution.shape)].astype(np.int64) - 1


def _factored(x: Distributed, singular: bool = True) -> npt.NDArray[np.int32]:
    """The pivots of this rank's part of an LU factorisation; refused if it is to be of no `singular` matrix, and is."""
    pivots = np.zeros(sum(x.local.shape) + 2 * width_of(x), np.int32)
    _call("lu", x, *reversed(x.distribution.shape), x, pivots)

    # MKL's INFO is 0 for some matrices with a 0 on the diagonal of U.
    if not singular and not diagonal(x).all():
        raise np.linalg.LinAlgError("Singular matrix")
    return pivots


def _everywhere(x: Distributed, values: Array, mode: Literal[0, 1]) -> Array:
    """The values of all indices of a mode, on every rank, which has those of its own. Collective."""
    indices = x.distribution.indices(x.comm.rank)[mode]
    whole = np.zeros(x.distribution.shape[mode], values.dtype)
    if x.distribution.grid.coordinates(x.comm.rank)[1 - mode] == 0:  # ranks along the other grid mode have the same
        whole[indices] = values[: len(indices)]
    x.comm.allreduce_in_place(whole, "sum")
    return whole


def solve(x: Distributed, y: Any) -> Any:
    """The solutions of x z = y' in rows, for right sides y in rows; both are overwritten. Collective.

    Raises:
        numpy.linalg.LinAlgError: the matrix is singular; raised on all ranks.
    """
    pivots = _factored(x, singular=False)
    _call("solve by lu", x, b"T", *reversed(y.distribution.shape), x, pivots, y)
    return y


def inv(x: Any) -> Any:
    """The inverse of a matrix, which is overwritten. Collective.

    Raises:
        numpy.linalg.LinAlgError: the matrix is singular; raised on all ranks.
    """
    pivots = _factored(x, singular=False)
    _call("invert lu", x, x.distribution.shape[0], x, pivots)
    return x


def triangular_solve(x: Distributed, y: Distributed, lower: bool, trans: Trans = "N", unit: bool = False) -> None:
    """Overwrite y by the solutions of op(x) z = y, for a triangle of x, as `walks.triangular_solve`. Collective."""
    n, count = y.distribution.shape
    triangle, diagonal = b"U" if lower else b"L", b"U" if unit else b"N"
    one = np.ones(1, x.local.dtype)
    _call("triangular solve", x, b"R", triangle, trans.encode(), diagonal, count, n, one, x, y)


def qr(x: Any) -> tuple[Any, Any]:
    """The factors of a matrix: Q in the first columns of what overwrites it, and R in the first rows of a copy.

    The diagonal of R is not negative. Collective.
    """
    m, n = x.distribution.shape
    rows, columns = x.distribution.indices(x.comm.rank)
    factors = np.zeros(sum(x.local.shape) + 1, x.local.dtype)
    _call("lq", x, n, m, x, factors)

    values = diagonal(x)
    sizes = np.abs(values)
    phases = np.ones(max(m, n), values.dtype)
    np.divide(values, sizes, where=sizes > 0, out=phases[: len(values)])
    triangle = x._with(x.local * phases[rows, None].conj())
    triangle.local[np.greater.outer(rows, columns)] = 0

    _call("q of lq", x, min(m, n), m, min(m, n), x, factors)
    x.local[...] *= phases[columns]
    return x, triangle


# --- eigenvalues and singular values ----------------------------------------------------------------------------------


def eigh(x: Distributed, lower: bool) -> tuple[Array, Any]:
    """All eigenvalues of a Hermitian matrix, on every rank, and its eigenvectors in rows, conjugate. Collective.

    Raises:
        numpy.linalg.LinAlgError: they do not converge; raised on all ranks.
    """
    n, real = x.distribution.shape[0], x.local.real.dtype
    factor = _scaled(x, lower)
    triangle = b"U" if lower else b"L"
    diagonals, factors = np.zeros((2, len(x.local) + 1), real), np.zeros(len(x.local) + 1, x.local.dtype)

    # One routine for the three, `p?syevd`, has workspaces of more than 5 blocks in MKL; the longest of these has 2.
    _call("tridiagonal", x, triangle, n, x, *diagonals, factors)
    values, beside = [_everywhere(x, numbers, 0) for numbers in diagonals]
    beside = np.roll(beside, -1) if lower else beside

    vectors: Any = x._with(np.zeros(x.local.shape, real))
    if _call("eigenvectors of tridiagonal", vectors, b"I", n, values, beside, vectors):
        raise np.linalg.LinAlgError("Eigenvalues did not converge")
    x.comm.bcast_in_place(values, 0)  # of a matrix of one tile, the others have none

    vectors = astype(vectors, x.local.dtype, copy=False)
    _call("eigenvectors", x, b"L", triangle, b"N", n, n, x, factors, vectors)
    return values / factor, vectors


def _scaled(x: Distributed, lower: bool) -> Any:
    """Clear the triangle that is not read, and multiply the other by a power of 2, so that no square overflows.

    Returns:
        The factor, by which no element is rounded. Collective.
    """
    unread = np.less if lower else np.greater
    x.local[unread.outer(*x.distribution.indices(x.comm.rank))] = 0

    numbers = x.local.view(x.local.real.dtype)
    largest = np.array([max(numbers.max(initial=0), -numbers.min(initial=0))])
    x.comm.allreduce_in_place(largest, "max")

    most = np.finfo(numbers.dtype).maxexp - 2
    factor = numbers.dtype.type(2.0 ** -np.clip(np.frexp(largest[0])[1], -most, most))
    numbers *= factor
    return factor


def eigenvalues(x: Distributed, lower: bool) -> Array:
    """All eigenvalues of a Hermitian matrix, on every rank. Collective.

    Raises:
        numpy.linalg.LinAlgError: they do not converge; raised on all ranks.
    """
    # This routine finds vectors of some eigenvalues, too, but of repeated ones they are not orthogonal, and its
    # workspace is too small for them.
    n, values, found = x.distribution.shape[0], np.zeros(x.distribution.shape[0], x.local.real.dtype), np.zeros(2, "i4")
    bound = np.zeros(1, values.dtype)
    bounds = bound, bound, 1, n, found[:1], found[1:]

    info = _call("eigenvalues", x, b"N", b"A", b"U" if lower else b"L", n, x, *bounds, values, x)
    if info or found[0] != n:
        raise np.linalg.LinAlgError("Eigenvalues did not converge")
    x.comm.bcast_in_place(values, 0)
    return values


def svd(x: Distributed, left: Any, right: Any) -> Array:
    """The singular values of a matrix, on every rank; fills `left` (m, k) and `right` (k, n), unless they are None.

    Raises:
        numpy.linalg.LinAlgError: they do not converge; raised on all ranks.
    """
    m, n = x.distribution.shape
    values = np.zeros(min(m, n), x.local.real.dtype)
    job = b"N" if left is None else b"V"

    ends = (x, x) if left is None else (right, left)
    info = _call("singular values", x, job, job, n, m, x, values, *ends)
    if info:
        raise np.linalg.LinAlgError("SVD did not converge")
    x.comm.bcast_in_place(values, 0)
    return values
