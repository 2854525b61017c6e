"""What linear algebra of matrices must do, as functions of a communicator; `linear.py` runs them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from parts import share
from tensors import agreed_error

import rote
from rote import DistTensor
from rote.runtime import Comm

Array = NDArray[Any]
GRIDS: dict[int, tuple[int, ...]] = {1: (1, 1), 2: (1, 2), 3: (3, 1), 4: (2, 2), 6: (3, 2)}
LAYOUTS = {
    2: ("block[(0,1),()]", "[(),(0,1)]", "[(1),(0)]", "[(),()]", "[(0),()]+(1)", "b a: [(0),(1)]"),
    3: ("block[(0,1),(),()]", "[(0),(1),()]", "[(),(0),(1)]", "[(),(0,1),()]"),
    4: ("[(),(0),(1),()]", "block[(0),(),(),(1)]"),
}
SHAPES = ((7, 3), (3, 7), (5, 5), (2, 6, 2), (0, 3), (3, 0), (1, 1), (30, 2), (2, 0, 3, 2))


def matrices(shape: tuple[int, ...], dtype: str) -> Array:
    generator = np.random.default_rng((1, *shape))
    values = generator.standard_normal(shape)
    return np.asarray(values + 1j * generator.standard_normal(shape) if dtype[0] == "c" else values, dtype)


def laid(array: Any, text: str, comm: Comm) -> DistTensor:
    return DistTensor.from_global(array, text, comm, GRIDS[comm.size])


def close(got: Any, want: Any) -> None:
    """The same values up to rounding, of the same dtype and shape, and no contributions."""
    assert isinstance(got, DistTensor) and not got.distribution.partial, got
    near(got.to_global(), np.asarray(want))


def near(whole: Array, want: Array) -> None:
    assert (whole.dtype, whole.shape) == (want.dtype, want.shape), (whole.dtype, whole.shape, want.dtype, want.shape)
    precision = 1e-4 if whole.dtype.char in "fF" else 1e-9
    np.testing.assert_allclose(whole, want, rtol=precision, atol=precision)


def adjoint(a: Array) -> Array:
    return np.swapaxes(a.conj(), -1, -2)


def check_factors(comm: Comm, part: str) -> None:
    """QR: Q has orthonormal columns, R is triangular with a diagonal that is not negative, and Q R is the matrix."""
    for shape, turn, dtype in share(product(SHAPES, range(3), ("f8", "c16", "f4")), part, 13, comm.size, of=2):
        texts, a = LAYOUTS[len(shape)], matrices(shape, dtype)
        x = laid(a, texts[turn % len(texts)], comm)
        k = min(shape[-2:])
        Q, R = np.linalg.qr(x)
        assert not np.signbit(np.tril(R.to_global().real, -1)).any()
        q, r = Q.to_global(), R.to_global()
        assert (q.shape, r.shape) == ((*shape[:-1], k), (*shape[:-2], k, shape[-1]))
        near(q @ r, a)
        near(adjoint(q) @ q, np.broadcast_to(np.eye(k, dtype=dtype), (*shape[:-2], k, k)))
        diagonal = np.diagonal(r, axis1=-2, axis2=-1)
        assert not np.tril(r, -1).any() and (diagonal.real >= 0).all()
        np.testing.assert_allclose(diagonal.imag, 0, atol=1e-12)
        close(np.linalg.qr(x, "r"), r)
    zeros = np.linalg.qr(laid(np.zeros((6, 2)), "block[(0,1),()]", comm))  # of less than full rank
    near(adjoint(zeros.Q.to_global()) @ zeros.Q.to_global(), np.eye(2))
    Q, R = np.linalg.qr(x := laid(matrices((4, 2), "f8"), "block[(0,1),()]", comm), "complete")
    near(Q.to_global() @ R.to_global(), x.to_global())
    near(Q.to_global() @ Q.to_global().T, np.eye(4))
    agreed_error(comm, "not 'economic'", np.linalg.qr, x, "economic")


def check_what_factors_move(comm: Comm) -> None:
    """Of tall matrices rows stay where they are, and triangles travel: as many as the number of ranks has digits."""
    x = laid(matrices((400, 3), "f8"), "[(0,1),()]", comm)
    with rote.trace() as moves:
        Q, _ = np.linalg.qr(x)
    assert Q.layout == x.layout
    assert sum(move.nbytes for move in moves) <= 9 * 8 * (comm.size - 1).bit_length()
    with rote.trace() as moves:
        np.linalg.svdvals(x.T)
        np.linalg.trace(laid(matrices((40, 40), "f8"), "[(0),(1)]", comm))
    assert sum(move.nbytes for move in moves) <= (9 * 8 + 8) * 2 * comm.size


def check_singular_values(comm: Comm, part: str) -> None:
    """Singular values are NumPy's; vectors times values are the matrix; pseudoinverses and ranks follow."""
    for shape, turn, dtype in share(product(SHAPES, range(3), ("f8", "c16", "f4")), part, 13, comm.size + 3, of=2):
        texts, a = LAYOUTS[len(shape)], matrices(shape, dtype)
        x = laid(a, texts[turn % len(texts)], comm)
        for full in (True, False):
            U, S, Vh = np.linalg.svd(x, full_matrices=full)
            u, s, v = U.to_global(), S.to_global(), Vh.to_global()
            k = s.shape[-1]
            near((u[..., :k] * s[..., None, :]) @ v[..., :k, :], a)
            near(adjoint(u) @ u, np.broadcast_to(np.eye(u.shape[-1], dtype=dtype), (*shape[:-2], *u.shape[-1:] * 2)))
            assert full == ((u.shape[-2], v.shape[-1]) == (u.shape[-1], v.shape[-2])) or shape[-1] == shape[-2]
        close(np.linalg.svdvals(x), np.linalg.svdvals(a))
        close(np.linalg.pinv(x), np.linalg.pinv(a, rtol=max(shape[-2:]) * np.finfo(dtype).eps))
        if 0 not in shape:
            close(np.linalg.matrix_rank(x), np.linalg.matrix_rank(a))
    low = np.outer(np.arange(1.0, 7), [1.0, 2.0])
    close(np.linalg.matrix_rank(laid(low, "block[(0,1),()]", comm)), np.linalg.matrix_rank(low))
    close(np.linalg.matrix_rank(laid(low, "[(),(1)]", comm), rtol=2.0), np.linalg.matrix_rank(low, rtol=2.0))


def check_stacks(comm: Comm) -> None:
    """Functions of stacks of matrices answer as NumPy does, and move no stack that is split."""
    a = matrices((4, 3, 3), "f8")
    a = a @ adjoint(a) + np.eye(3)
    b, columns = matrices((4, 3, 2), "f8"), matrices((3, 2), "f8")
    functions: tuple[Callable[[Any], Any], ...] = (
        *(np.linalg.det, np.linalg.inv, np.linalg.cholesky, np.linalg.eigvalsh),
        *(lambda y: np.linalg.eigh(y).eigenvalues, lambda y: np.linalg.slogdet(y).logabsdet),
        *(lambda y: np.linalg.slogdet(y).sign, lambda y: np.linalg.cholesky(y, upper=True)),
        *(lambda y: np.linalg.matrix_power(y, 3), lambda y: np.linalg.matrix_power(y, -2)),
        *(lambda y: np.linalg.matrix_power(y, 0), lambda y: np.linalg.matrix_power(y, 1)),
    )
    for text in ("[(0,1),(),()]", "[(),(0),(1)]"):
        x = laid(a, text, comm)
        with rote.trace() as moves:
            for function in functions:
                close(function(x), function(a))
            values, vectors = (each.to_global() for each in np.linalg.eigh(x))
            near(a @ vectors, vectors * values[:, None])
        assert "(),()]" not in text or not any(move.implicit for move in moves)
        close(np.linalg.solve(x, laid(b, "[(0),(),(1)]", comm)), np.linalg.solve(a, b))
        close(np.linalg.solve(x, laid(columns, "[(),(0)]", comm)), np.linalg.solve(a, columns))
        close(np.linalg.solve(x, columns[:, 0]), np.linalg.solve(a, columns[:, 0]))
    singular = a.copy()
    singular[3] = 0
    x = laid(singular, "block[(0,1),(),()]", comm)  # on the last rank alone
    agreed_error(comm, "Singular matrix", np.linalg.inv, x)
    agreed_error(comm, "Singular matrix", np.linalg.solve, x, columns)
    agreed_error(comm, "square", np.linalg.det, laid(b, "[(0),(),()]", comm))
    agreed_error(comm, "square", np.linalg.solve, laid(b, "[(0),(),()]", comm), columns)
    agreed_error(comm, "square", np.linalg.matrix_power, laid(b, "[(0),(),()]", comm), 2)
    agreed_error(comm, "of order 1", np.linalg.det, laid(columns[0], "[(0)]", comm))
    if comm.size > 1:
        with rote.config(implicit="error"):
            agreed_error(comm, "redistribute", np.linalg.inv, laid(a[0], "[(0,1),()]", comm))
    close(np.linalg.inv(laid(a[0], "[(0),(1)]", comm)), np.linalg.inv(a[0]))


def check_diagonals(comm: Comm, part: str) -> None:
    """Diagonals and traces of any offset are NumPy's; so are transposed matrices."""
    for shape, turn, dtype in share(product(SHAPES, range(3), ("f8", "i4", "?")), part, 13, comm.size, of=2):
        a = (3 * matrices(shape, "f8")).astype(dtype)
        x = laid(a, LAYOUTS[len(shape)][turn % len(LAYOUTS[len(shape)])], comm)
        for offset in (-4, -1, 0, 2):
            close(np.linalg.diagonal(x, offset=offset), np.linalg.diagonal(a, offset=offset))
            close(np.linalg.trace(x, offset=offset), np.linalg.trace(a, offset=offset))
        close(np.diagonal(x, 1, 1, 0), np.diagonal(a, 1, 1, 0))
        close(np.trace(x, -1, 1, 0), np.trace(a, -1, 1, 0))
        close(np.trace(x, dtype="f4"), np.trace(a, dtype="f4"))
        close(np.linalg.matrix_transpose(x), np.linalg.matrix_transpose(a))


def check_norms(comm: Comm, part: str) -> None:
    """Norms of every order, of vectors and matrices, along any modes, are NumPy's."""
    a = matrices((4, 3, 2), "c16")
    orders = (2, 1, 0, 3, np.inf, -np.inf, -1, 0.5)
    texts = ("[(0),(1),()]", "block[(),(0),(1)]", "[(0),(),()]+(1)", "b a c: [(0),(1),()]")
    for text, axis, keepdims in share(product(texts, (None, 0, -1, (0, 2)), (False, True)), part, 13, comm.size, of=2):
        for dtype in ("c16", "i8"):
            values = (a if dtype == "c16" else 5 * a.real).astype(dtype)
            x = laid(values, text, comm)
            for order in orders if dtype == "c16" else (2, np.inf):
                options: dict[str, Any] = {"ord": order, "axis": axis, "keepdims": keepdims}
                close(np.linalg.vector_norm(x, **options), np.linalg.vector_norm(values, **options))
        for kind in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
            options = {"ord": kind, "keepdims": keepdims}
            close(np.linalg.matrix_norm(x, **options), np.linalg.matrix_norm(values, **options))
            close(np.linalg.norm(x, kind, (2, 0), keepdims), np.linalg.norm(values, kind, (2, 0), keepdims))
        close(np.linalg.norm(x), np.linalg.norm(values))
    agreed_error(comm, "not 5", np.linalg.matrix_norm, laid(a, texts[0], comm), ord=5)
    exact = rote.array_api.linalg.vector_norm
    bits = [exact(laid(a.real, text, comm), exact=True).to_global().tobytes() for text in texts]
    assert len({*bits, exact(laid(a.real, "[(),(),()]", comm), exact=True).to_global().tobytes()}) == 1


CHECKS: list[Callable[..., None]] = [check for name, check in globals().items() if name.startswith("check_")]
