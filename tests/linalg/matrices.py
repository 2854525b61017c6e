"""Matrices that are hard for solvers, and what solvers must do with them, as functions of a communicator.

Each answer is as good as NumPy's: its backward error is at most three times that of NumPy for the same matrix, or of
rounding alone; and where NumPy raises an error, all ranks raise that one. Run as a program, `python matrices.py
some|rest|FIRST:LAST`, it makes the checks of that part on the world, by walks, and prints one line. FIRST:LAST are
seeds of cases that are drawn at random, for each check one of each seed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tensor"))

from parts import report_checks, share
from tensors import agreed_error

import rote
import rote.array_api as xp
from rote import DistTensor
from rote.runtime import Comm, world

Array = NDArray[Any]
GRIDS: dict[int, tuple[int, ...]] = {1: (1, 1), 2: (1, 2), 3: (3, 1), 4: (2, 2), 6: (3, 2)}
LAYOUTS = (
    "block[(0),(1)]",
    "block[(0,1),()]",
    "[(),(0,1)]",
    "[(1),(0)]",
    "[(0:cyclic(3)),(1:block)]",
    "[(0:block),()]+(1)",
    "b a: [(0),(1)]",
    "(a b): block[(0,1)]",
)
EXTENTS = (0, 1, 2, 5, 17, 40, 66, 130)
SHAPES = ((5, 5), (17, 17), (40, 66), (66, 40), (130, 100), (0, 4), (3, 1))
MOST = 700  # rows or columns of a matrix that is drawn
DTYPES = ("f8", "c16", "f4", "c8")


# --- matrices ---------------------------------------------------------------------------------------------------------


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    generator = np.random.default_rng((seed, *shape))
    values = generator.standard_normal(shape)
    return np.asarray(values + 1j * generator.standard_normal(shape) if dtype[0] == "c" else values, dtype)


def with_values(values: Array, dtype: str) -> Array:
    """A Hermitian matrix with these eigenvalues."""
    n = len(values)
    q, _ = np.linalg.qr(numbers((n, n), dtype[0] + str(max(8, int(dtype[1:])))))
    a = (q * values) @ q.conj().T
    return ((a + a.conj().T) / 2).astype(dtype)


def graded(n: int, dtype: str) -> Array:
    """Rows from large to small, over a range of half the digits."""
    sizes = np.logspace(0, np.log10(np.finfo(dtype).eps) / 2, n)
    return (sizes[:, None] * numbers((n, n), dtype)).astype(dtype)


def wilkinson(n: int, dtype: str) -> Array:
    """The matrix whose factors grow the most by row exchanges: by 2 in each column, here up to 2^10."""
    lower = np.tril(-np.ones((n, n)), -1) * (np.arange(n) < 10)
    a = np.eye(n) + lower
    a[:, -1:] = 1
    return a.astype(dtype)


GENERAL: dict[str, Callable[[int, str], Array]] = {
    "random": lambda n, dtype: numbers((n, n), dtype),
    "graded": graded,
    "ill-conditioned": lambda n, dtype: (
        with_values(np.logspace(0, 0.8 * np.log10(np.finfo(dtype).eps), n), dtype) @ np.eye(n, dtype=dtype)[::-1]
    ),
    "wilkinson": wilkinson,
}
POSITIVE: dict[str, Callable[[int, str], Array]] = {
    "definite": lambda n, dtype: with_values(np.linspace(1, 2, n), dtype),
    "graded": lambda n, dtype: with_values(np.logspace(0, np.log10(np.finfo(dtype).eps) / 2, n), dtype),
}
HERMITIAN: dict[str, Callable[[int, str], Array]] = {
    **POSITIVE,
    "indefinite": lambda n, dtype: with_values(np.linspace(-1, 1, n), dtype),
    "repeated": lambda n, dtype: with_values(np.where(np.arange(n) % 2, 1.0, -2.0), dtype),
    "of low rank": lambda n, dtype: with_values(np.where(np.arange(n) % 3, 0.0, 1.0), dtype),
}


# --- comparison -------------------------------------------------------------------------------------------------------


def laid(array: Any, text: str, comm: Comm) -> DistTensor:
    return DistTensor.from_global(array, text, comm, GRIDS[comm.size])


def size(a: Array) -> float:
    return float(np.linalg.norm(a)) or 1.0


def as_good(error: Array, numpys: Array, scale: float, what: object, summed: int = 1) -> None:
    """An error, relative to a scale, is at most 3 times NumPy's, or 3 times that of rounding all sums of n numbers.

    The n is the longest extent of the error, or `summed`: that of the matrix whose factors are orthogonal.
    """
    eps = float(np.finfo(error.dtype).eps) * max(summed, *error.shape) ** 0.5
    got, want = float(np.linalg.norm(error)) / scale, float(np.linalg.norm(numpys)) / scale
    assert got <= 3 * max(want, eps), (what, got, want)


def whole(x: Any, like: Any = None) -> Array:
    """The elements of a result, which is a tensor, of the dtype and the shape of NumPy's."""
    assert isinstance(x, DistTensor) and not x.distribution.partial, x
    array = x.to_global()
    if like is not None:
        want = np.asarray(like)
        assert (array.dtype, array.shape) == (want.dtype, want.shape), (array.dtype, array.shape, want.shape)
    return array


def in_place_of(result: DistTensor, x: DistTensor) -> None:
    """A result is where its operand is, if that is in a plain layout."""
    if x.layout.view is None and not x.layout.partial and any(x.distribution.splits):
        assert (result.layout, result.grid) == (x.layout, x.grid), (result.layout, x.layout)


def cases(names: Any, part: str, comm: Comm, extents: Any = EXTENTS, every: int = 120) -> Any:
    """Cases (name, n, dtype, layout), some or the rest, or those that seeds draw."""
    if ":" not in part:
        return share(product(names, extents, DTYPES, LAYOUTS), part, every, comm.size, of=3)
    return [drawn(seed, (*names,), extents) for seed in range(*map(int, part.split(":")))]


def drawn(seed: int, names: Any, extents: Any) -> tuple[Any, ...]:
    """A case of a seed; its extents are any up to 700, small ones more often."""
    generator = np.random.default_rng(seed)
    name, dtype, text = (choices[generator.integers(len(choices))] for choices in (names, DTYPES, LAYOUTS))
    rows, columns = ((MOST + 1) ** generator.random(2)).astype(int) - 1
    return name, (int(rows), int(columns)) if extents is SHAPES else int(rows), dtype, text


# --- laws -------------------------------------------------------------------------------------------------------------


def check_cholesky(comm: Comm, part: str) -> None:
    """Cholesky factors, lower and upper, of which one triangle is read."""
    for name, n, dtype, text in cases(POSITIVE, part, comm):
        a = POSITIVE[name](n, dtype)
        for upper in (False, True):
            read = np.triu(a) if upper else np.tril(a)
            x = laid(read, text, comm)
            got, want = np.linalg.cholesky(x, upper=upper), np.linalg.cholesky(read, upper=upper)
            in_place_of(got, x)
            f, k = whole(got, want), want
            assert not (np.tril(f, -1) if upper else np.triu(f, 1)).any()
            if upper:
                f, k = f.conj().T, k.conj().T
            as_good(f @ f.conj().T - a, k @ k.conj().T - a, size(a), (name, n, dtype, text))


def check_solutions(comm: Comm, part: str) -> None:
    """Solutions of systems, of one right side and of several, and inverses."""
    for name, n, dtype, text in cases(GENERAL, part, comm):
        a, b = GENERAL[name](n, dtype), numbers((n, 3), dtype, 1)
        x = laid(a, text, comm)
        y = laid(b, LAYOUTS[n % 4], comm)
        growth = 8 if name == "wilkinson" else 1  # of rounding; NumPy's own solution happens to be exact
        got, want = np.linalg.solve(x, y), np.linalg.solve(a, b)
        in_place_of(got, y)
        z = whole(got, want)
        as_good(a @ z - b, a @ want - b, size(a) * size(want) * growth, (name, n, dtype, text))
        z, want = whole(np.linalg.solve(x, b[:, 0]), want[:, 0]), want[:, 0]
        as_good(a @ z - b[:, 0], a @ want - b[:, 0], size(a) * size(want) * growth, (name, n, dtype, text))

        got, want = np.linalg.inv(x), np.linalg.inv(a)
        in_place_of(got, x)
        z, unit = whole(got, want), np.eye(n, dtype=dtype)
        as_good(a @ z - unit, a @ want - unit, size(a) * size(want), (name, n, dtype, text))


def check_determinants(comm: Comm, part: str) -> None:
    """Determinants, and the logarithms of large ones."""
    for name, n, dtype, text in cases(("random", "wilkinson"), part, comm):
        a = GENERAL[name](n, dtype)
        x = laid(a, text, comm)
        precision = 100 * max(n, 1) * float(np.finfo(dtype).eps) * (np.linalg.cond(a) if n else 1)
        for got, want in zip(np.linalg.slogdet(x), np.linalg.slogdet(a), strict=True):
            np.testing.assert_allclose(whole(got, want), want, rtol=precision, atol=precision)
        with np.errstate(over="ignore", invalid="ignore"):
            want = np.linalg.det(a)
        if np.isfinite(want):
            np.testing.assert_allclose(whole(np.linalg.det(x), want), want, rtol=precision, atol=abs(want) * precision)
    for n in (1, 5, 70):
        zeros = laid(np.zeros((n, n)), LAYOUTS[0], comm)
        assert [float(value) for value in np.linalg.slogdet(zeros)] == [0, -np.inf]
        assert float(np.linalg.det(zeros)) == 0


def check_eigenvalues(comm: Comm, part: str) -> None:
    """Eigenvalues and eigenvectors of Hermitian matrices, of which one triangle is read."""
    for name, n, dtype, text in cases(HERMITIAN, part, comm):
        a = HERMITIAN[name](n, dtype)
        for uplo in ("L", "U"):
            x = laid(np.tril(a) if uplo == "L" else np.triu(a), text, comm)
            got, want = np.linalg.eigh(x, uplo), np.linalg.eigh(a, uplo)
            in_place_of(got.eigenvectors, x)
            w, v = whole(got.eigenvalues, want.eigenvalues), whole(got.eigenvectors, want.eigenvectors)
            case, k = (name, n, dtype, text, uplo), want.eigenvectors
            as_good(a @ v - v * w, a @ k - k * want.eigenvalues, size(a), case)
            unit = np.eye(n, dtype=dtype)
            as_good(v.conj().T @ v - unit, k.conj().T @ k - unit, size(unit), case)
            assert (np.diff(w) >= 0).all()
            precision = 30 * max(n, 1) ** 0.5 * float(np.finfo(dtype).eps) * size(a)
            np.testing.assert_allclose(w, want.eigenvalues, rtol=0, atol=precision)
            np.testing.assert_allclose(whole(np.linalg.eigvalsh(x, uplo), w), w, rtol=0, atol=precision)


def check_singular_values(comm: Comm, part: str) -> None:
    """Singular values and vectors, of square and of other matrices; pseudoinverses, ranks and condition numbers."""
    for _, shape, dtype, text in cases(("random",), part, comm, SHAPES, 40):
        a = numbers(shape, dtype)
        x = laid(a, text, comm)
        for full in (False, True):
            got, want = np.linalg.svd(x, full_matrices=full), np.linalg.svd(a, full_matrices=full)
            u, s, v = (whole(part, like) for part, like in zip(got, want, strict=True))
            k = len(s)
            as_good((u[:, :k] * s) @ v[:k] - a, (want.U[:, :k] * want.S) @ want.Vh[:k] - a, size(a), (shape, dtype))
            for q, p in ((u, want.U), (v.conj().T, want.Vh.conj().T)):
                unit = np.eye(q.shape[1], dtype=dtype)
                as_good(q.conj().T @ q - unit, p.conj().T @ p - unit, size(unit), (shape, dtype, text), max(shape))
        precision = 30 * max(shape) ** 0.5 * float(np.finfo(dtype).eps) * size(a)
        np.testing.assert_allclose(s, want.S, rtol=0, atol=precision)
        np.testing.assert_allclose(whole(np.linalg.svdvals(x), want.S), want.S, rtol=0, atol=precision)
        if 0 not in shape:
            assert int(np.linalg.matrix_rank(x)) == min(shape)
            np.testing.assert_allclose(float(np.linalg.cond(x)), np.linalg.cond(a), rtol=1e-2)


def check_factors(comm: Comm, part: str) -> None:
    """SciPy's factors and solutions: packed LU with its pivots, Cholesky, triangles of every kind."""
    for name, n, dtype, text in cases(("random", "graded"), part, comm):
        a, b = GENERAL[name](n, dtype), numbers((n, 2), dtype, 2)
        x, y, case = laid(a, text, comm), laid(b, LAYOUTS[n % 4], comm), (name, n, dtype, text)
        lu, piv = rote.linalg.lu_factor(x)
        packed, pivots = whole(lu, a), whole(piv)
        in_place_of(lu, x)
        lower, upper = np.tril(packed, -1) + np.eye(n, dtype=dtype), np.triu(packed)
        rows = np.arange(n)
        for row, other in enumerate(pivots.tolist()):
            rows[[row, other]] = rows[[other, row]]
        assert (abs(lower.real) + abs(lower.imag) <= 1 + 1e-5).all() or dtype[0] == "c"
        as_good(lower @ upper - a[rows], np.zeros((1, 1), dtype), size(a) * max(n, 1) ** 0.5, case)
        for trans, op in ((0, a), (1, a.T), (2, a.conj().T)):
            z = whole(rote.linalg.lu_solve((lu, piv), y, trans), b)
            want = np.linalg.solve(op, b)
            as_good(op @ z - b, op @ want - b, size(a) * size(want) * 3, (*case, trans))

        triangle = np.tril(a) + 2 * np.eye(n, dtype=dtype) * n**0.5
        for lower, unit, trans in product((True, False), (False, True), ("N", "T", "C")):
            t = triangle if lower else triangle.T
            t = t / (np.diagonal(t) if unit else 1) if n else t
            op = t if trans == "N" else t.T if trans == "T" else t.conj().T
            got = rote.linalg.solve_triangular(laid(t, text, comm), y, trans, lower, unit)
            in_place_of(got, y)
            z, want = whole(got, b), np.linalg.solve(op, b)
            as_good(op @ z - b, op @ want - b, size(t) * size(want) + size(b), (*case, lower, unit, trans))

        positive = with_values(np.linspace(1, 3, n), dtype)
        for lower in (False, True):
            factor = rote.linalg.cho_factor(laid(positive, text, comm), lower)
            for right in (b, b[:, 0]):
                z, want = whole(rote.linalg.cho_solve(factor, right), right), np.linalg.solve(positive, right)
                as_good(positive @ z - right, positive @ want - right, size(positive) * size(want), case)


def check_factors_of_oblong_matrices(comm: Comm, part: str) -> None:
    """Factors L and U of matrices that are not square, with SciPy's shapes: of m x n there are min(m, n) pivots."""
    shapes = ((90, 70), (70, 90), (210, 150), (150, 210), (5, 3), (3, 5), (130, 1), (1, 130), (66, 65), (0, 4), (4, 0))
    for _, shape, dtype, text in cases(("random",), part, comm, SHAPES if ":" in part else shapes, 12):
        a, least = numbers(shape, dtype), min(shape)
        x = laid(a, text, comm)
        lu, piv = rote.linalg.lu_factor(x)
        packed, pivots = whole(lu, a), whole(piv)
        in_place_of(lu, x)
        assert pivots.shape == (least,)

        rows = np.arange(shape[0])
        for row, other in enumerate(pivots.tolist()):
            assert row <= other < shape[0]
            rows[[row, other]] = rows[[other, row]]
        lower = np.tril(packed, -1)[:, :least] + np.eye(shape[0], least, dtype=dtype)
        assert (abs(lower.real) + abs(lower.imag) <= 1 + 1e-5).all() or dtype[0] == "c"
        as_good(lower @ np.triu(packed)[:least] - a[rows], np.zeros((1, 1), dtype), size(a), (shape, dtype, text))


def check_stacks(comm: Comm) -> None:
    """Eigenvalues of stacks are those of each matrix, some of them, too; other functions of one matrix refuse them."""
    a = numbers((3, 4, 4), "c16")
    a = a + a.conj().transpose(0, 2, 1)
    for text in ("[(0,1),(),()]", "[(),(0),(1)]", "[(),(),()]"):
        x = laid(a, text, comm)
        values, vectors = (z.to_global() for z in rote.linalg.eigh(x, subset_by_index=(1, 2)))
        np.testing.assert_allclose(values, np.linalg.eigvalsh(a)[:, 1:3], 0, 1e-12)
        np.testing.assert_allclose(a @ vectors, vectors * values[:, None], 0, 1e-12)
        for call in (
            lambda x: rote.linalg.eigh(x, x),
            lambda x: rote.linalg.lu_factor(x),
            lambda x: rote.linalg.solve_triangular(x, np.ones((3, 2))),
        ):
            agreed_error(comm, "one matrix, not a tensor of order 3", call, x)
        agreed_error(comm, "must be square", rote.linalg.eigh, x[:, :3])

    whole_one = laid(np.diag([1.0, 2.0, 3.0, 4.0]), "[(),()]", comm)
    for others in ((), (whole_one,)):
        values, vectors = rote.linalg.eigh(whole_one, *others, subset_by_index=(1, 2))
        assert (values.shape, vectors.shape) == ((2,), (4, 2))
        np.testing.assert_allclose(values.to_global(), [1, 1] if others else [2, 3], 0, 1e-12)


def check_pairs(comm: Comm, part: str) -> None:
    """Eigenvalues of pairs of matrices, and some of the eigenvalues of one."""
    for name, n, dtype, text in cases(("indefinite", "repeated"), part, comm):
        a, b = HERMITIAN[name](n, dtype), with_values(np.linspace(1, 2, n), dtype)
        eps = float(np.finfo(dtype).eps) * max(n, 1)
        for lower in (True, False):
            x, y = (laid(np.tril(z) if lower else np.triu(z), text, comm) for z in (a, b))
            w, v = rote.linalg.eigh(x, y, lower=lower)
            values, vectors = whole(w), whole(v, a)
            in_place_of(v, x)
            assert np.linalg.norm(a @ vectors - b @ vectors * values) <= 10 * eps * (size(a) + size(b))
            assert np.linalg.norm(vectors.conj().T @ b @ vectors - np.eye(n)) <= 10 * eps * size(b)
            alone = whole(rote.linalg.eigh(x, y, lower=lower, eigvals_only=True))
            np.testing.assert_allclose(alone, values, rtol=0, atol=10 * eps)
            if n < 2:
                continue
            some = (n // 3, n // 2)
            w, v = rote.linalg.eigh(x, lower=lower, subset_by_index=some)
            values, vectors = whole(w), whole(v)
            assert vectors.shape == (n, some[1] - some[0] + 1)
            np.testing.assert_allclose(values, np.linalg.eigvalsh(a)[some[0] : some[1] + 1], rtol=0, atol=10 * eps)
            assert np.linalg.norm(a @ vectors - vectors * values) <= 10 * eps * size(a)


def check_layouts(comm: Comm, part: str) -> None:
    """Matrices of a result are in the layout that a call names, with the elements and by as many moves as without."""
    targets = "[(),(0,1)]", "[(0:cyclic(3)),(1:block)]", LAYOUTS[6], "[(),()]"
    worlds = product((70, 5), (LAYOUTS[1], LAYOUTS[2], LAYOUTS[7]), targets)
    for n, source, target in share(worlds, part, 6, 3 * comm.size) if ":" not in part else ():
        a, b = with_values(np.linspace(1, 2, n), "f8"), numbers((n, 3), "f8")
        x, y, e = laid(a, source, comm), laid(b, LAYOUTS[1], comm), laid(np.eye(n), source, comm)
        for function, operands in (
            (xp.linalg.cholesky, (x,)),
            (xp.linalg.inv, (x,)),
            (xp.linalg.solve, (x, y)),
            (xp.linalg.eigh, (x,)),
            (xp.linalg.qr, (x,)),
            (xp.linalg.svd, (x,)),
            (xp.linalg.pinv, (x,)),
            (xp.linalg.lstsq, (x, b)),
            (rote.linalg.eigh, (x,)),
            (rote.linalg.eigh, (x, e)),
            (rote.linalg.cho_factor, (x,)),
            (rote.linalg.lu_factor, (x,)),
            (rote.linalg.cho_solve, ((x, True), y)),
            (rote.linalg.lu_solve, ((x, np.arange(n)), y)),
            (rote.linalg.solve_triangular, (x, y)),
        ):
            wants, gots = parts(function(*operands)), parts(function(*operands, layout=target))
            for got, want in zip(gots, wants, strict=True):
                if np.ndim(want) == 2 and want.shape[0] == n:
                    assert (got.layout, got.grid) == (rote.parse(target), x.grid), (function, got.layout)
                # ScaLAPACK chooses signs of vectors anew in each call.
                np.testing.assert_allclose(abs(got.to_global()), abs(want.to_global()), 0, 1e-9)

        with rote.trace() as moves:
            xp.linalg.inv(x)
        with rote.trace() as moves_there:
            xp.linalg.inv(x, layout=target)
        assert len(moves_there) <= len(moves)

        z = laid(b[:, 0], "(b s=5): [(0),(1)]", comm)
        for layout in ("block[(0,1)]", "(b s=5): [(0),(1)]", "[()]|(0)"):
            solution = xp.linalg.solve(x, z, layout=layout)
            assert solution.layout == rote.parse(layout)
            np.testing.assert_allclose(solution.to_global(), np.linalg.solve(a, b[:, 0]), 0, 1e-12)
        assert np.linalg.solve(x, z).layout == rote.parse("block[(0,1)]")

        with rote.trace() as moves:
            agreed_error(comm, "order 1", lambda x: xp.linalg.inv(x, layout="block[(0)]"), x)
        assert not moves


def parts(result: Any) -> list[Any]:
    """The tensors of a result."""
    return [part for part in (result if isinstance(result, tuple) else (result,)) if isinstance(part, DistTensor)]


def check_failures(comm: Comm, part: str) -> None:
    """Matrices that NumPy refuses, all ranks refuse with its words; those with a NaN or an infinity are as in NumPy."""
    for name, n, dtype, text in cases(("column", "row", "indefinite", "nan", "inf"), part, comm):
        if not n:
            continue
        a, at = with_values(np.linspace(1, 2, n), dtype), n // 2
        if name == "column":
            a[:, at] = 0
        elif name == "row":
            a[at] = 0
        else:
            a[at, at] = {"indefinite": -3, "nan": np.nan, "inf": np.inf}[name]

        x = laid(a, text, comm)
        for function, others in (
            (np.linalg.cholesky, ()),
            (np.linalg.inv, ()),
            (np.linalg.solve, (np.ones(n, dtype),)),
            (np.linalg.eigvalsh, ()),
        ):
            with np.errstate(all="ignore"):
                try:
                    want = function(a, *others)
                except np.linalg.LinAlgError as error:
                    agreed_error(comm, str(error), function, x, *others)
                else:
                    got = whole(function(x, *others), want)
                    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want), str((name, n, dtype, text)))


def check_refusals(comm: Comm) -> None:
    """What NumPy refuses, all ranks refuse with its words; and elements that are no numbers are as in NumPy."""
    n = 70
    x = laid(numbers((n, n), "f8"), LAYOUTS[0], comm)
    indefinite, singular = np.eye(n), numbers((n, n), "f8")
    indefinite[66, 66] = -1
    singular[:, 67] = singular[:, 3]
    singular[:, 4] = 0
    agreed_error(comm, "Matrix is not positive definite", np.linalg.cholesky, laid(indefinite, LAYOUTS[1], comm))
    for text in LAYOUTS[:3]:
        agreed_error(comm, "Singular matrix", np.linalg.inv, laid(singular, text, comm))
        agreed_error(comm, "Singular matrix", np.linalg.solve, laid(singular, text, comm), np.ones(n))
    for function in (np.linalg.cholesky, np.linalg.inv, np.linalg.eigh, np.linalg.eigvalsh, np.linalg.det):
        agreed_error(comm, "must be square", function, laid(np.ones((4, 6)), LAYOUTS[0], comm))
        agreed_error(comm, "float128", function, laid(np.eye(4, dtype="g"), LAYOUTS[0], comm))
    for dtype, text in product(("f8", "c16"), LAYOUTS[1:3]):  # of several tiles, where MKL's INFO is 0
        for at in (np.s_[:, 75], np.s_[75], np.s_[:, 149]):
            several = numbers((150, 150), dtype)
            several[at] = 0
            agreed_error(comm, "Singular matrix", np.linalg.inv, laid(several, text, comm))
            agreed_error(comm, "Singular matrix", np.linalg.solve, laid(several, text, comm), np.ones(150))
    agreed_error(comm, "square matrices", np.linalg.solve, x, np.ones(3))
    for bad in (np.nan, np.inf):
        a = np.eye(n)
        a[3, 2] = bad
        for function in (np.linalg.inv, np.linalg.cholesky, np.linalg.eigvalsh):
            with np.errstate(all="ignore"):
                try:
                    want = function(a)
                except np.linalg.LinAlgError as error:
                    agreed_error(comm, str(error), function, laid(a, LAYOUTS[0], comm))
                else:
                    np.testing.assert_array_equal(whole(function(laid(a, LAYOUTS[0], comm))), want)


CHECKS: list[Callable[..., None]] = [check for name, check in globals().items() if name.startswith("check_")]


if __name__ == "__main__":
    rote.config(implicit="allow", linalg="walk")
    report_checks(CHECKS, world(), sys.argv[1])
