"""Contractions, linear algebra and random numbers on in-process ranks and on MPI ranks."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import linear
import numpy as np
import pytest
from marks import make_checks, mpi_parts, parts_of
from tensors import agreed_error

import rote
from rote import DistTensor

PROGRAM = Path(__file__).with_name("linear.py")


@pytest.mark.parametrize(("ranks", "check", "args"), parts_of(linear.CHECKS, 1, 2, 4, whole=(3,)))
def test_on_ranks_of_this_process(ranks, check, args):
    """On in-process ranks every function answers as NumPy does on whole arrays."""
    with rote.config(implicit="allow"):
        rote.run(check, ranks, args)


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "part"), mpi_parts(3)[:1], indirect=["job"])
def test_on_mpi_ranks(job, part):
    """On MPI ranks they do too."""
    make_checks(job, PROGRAM, linear.CHECKS, part)


@pytest.mark.parametrize("layout", ["block[(0),(),()]", "[(),(0),()]", "block[(),(),(0)]"])
def test_condition_numbers_are_numpys(layout):
    """Law: by all orders, of stacks with a singular matrix, too; of matrices without elements they are refused."""
    stack = np.random.default_rng(0).standard_normal((3, 4, 4))
    stack[1] = 0

    def program(comm):
        x = DistTensor.from_global(stack, layout, comm)
        for p in (None, 2, -2, 1, "fro", np.inf, -1):
            np.testing.assert_allclose(np.linalg.cond(x, p).to_global(), np.linalg.cond(stack, p), 1e-9)
            assert np.linalg.cond(x[:0], p).to_global().shape == (0,)
        with pytest.raises(np.linalg.LinAlgError):
            np.linalg.cond(x[:, :, :0])

    with rote.config(implicit="allow"), np.errstate(all="ignore"):
        rote.run(program, 2)


@pytest.mark.parametrize("layout", ["block[(0),()]", "[(),(0)]", "[(),()]+(0)", "(a b): block[(0)]"])
def test_condition_numbers_of_a_split_matrix_gather_nothing(layout):
    """Law: by the norms of the matrix and its inverse, of singular matrices and of infinities, too."""
    usual = np.random.default_rng(0).standard_normal((5, 5))
    singular = np.outer(usual[0], [1, 1, 0, 0, 0])
    matrices = [usual, usual.astype("f4"), usual * (1 + 1j), (9 * usual).astype("i4"), singular, 0 * usual]
    for bad in (np.nan, np.inf):
        matrices.append(usual.copy())
        matrices[-1][1, 2] = bad

    def program(comm):
        for a, p in product(matrices, (1, -1, np.inf, -np.inf, "fro")):
            got, want = np.linalg.cond(DistTensor.from_global(a, layout, comm), p).to_global(), np.linalg.cond(a, p)
            np.testing.assert_allclose(got, want, 1e-3 if a.dtype == "f4" else 1e-9)
            assert got.dtype == want.real.dtype  # of a complex matrix, NumPy 2.1 gives a complex number

        x = DistTensor.from_global(np.ones((4, 6)), "block[(0),()]", comm)
        agreed_error(comm, "must be square", np.linalg.cond, x, 1)
        agreed_error(comm, "norms of matrices", np.linalg.cond, x[:, :4], 3)

        large = DistTensor.from_function(lambda i, j: 1.0 + (i == j), (300, 300), "block[(0),()]", comm)
        with rote.config(linalg="walk"), rote.trace() as moves:
            assert float(np.linalg.cond(large, 1)) == pytest.approx(np.linalg.cond(large.to_global(), 1))
        assert max(move.nbytes for move in moves if move.cause == "cond") <= large.local.nbytes

    with rote.config(implicit="allow"), np.errstate(all="ignore"):
        rote.run(program, 2)


@pytest.mark.parametrize("layout", ["block[(0)]", "[(0)]", "[()]"])
@pytest.mark.parametrize("k", [0, 2, -3])
def test_diagonal_matrices_are_numpys(layout, k):
    """Law: `diag` makes a matrix of a vector, infinities and NaN among it, and a vector of a matrix."""
    vector = np.array([1, np.inf, np.nan, 2, -np.inf])

    def program(comm):
        x = DistTensor.from_global(vector, layout, comm)
        np.testing.assert_array_equal(np.diag(x, k).to_global(), np.diag(vector, k), strict=True)
        np.testing.assert_array_equal(np.diag(np.diag(x, k), k).to_global(), vector, strict=True)
        with pytest.raises(ValueError, match="vector or a matrix"):
            np.diag(x[None, None])

    with rote.config(implicit="allow"):
        rote.run(program, 3)


@pytest.mark.parametrize("layout", ["block[(0),()]", "[(),(0)]"])
@pytest.mark.parametrize("shape, rank", [((7, 3), 3), ((3, 7), 3), ((5, 5), 5), ((6, 4), 2), ((0, 2), 0)])
def test_least_squares_are_numpys(layout, shape, rank):
    """Law: solutions, residuals, rank and singular values, of one right side and of several, real and complex."""
    generator = np.random.default_rng(0)
    for dtype in ("f8", "c16", "f4")[: 3 - (rank == 2)]:  # the rank of singles is noise to NumPy
        sizes = (shape[0], rank), (rank, shape[1]), (shape[0], 2)
        first, second, b = [generator.standard_normal(size) for size in sizes]
        a, b = (first @ second * (1 + 1j if dtype == "c16" else 1)).astype(dtype), b.astype(dtype)

        def program(comm, a=a, b=b):
            x, precision = DistTensor.from_global(a, layout, comm), 1e4 * np.finfo(a.dtype).eps
            for right in (b, b[:, 0]):
                got = np.linalg.lstsq(x, DistTensor.from_global(right, "[()]" if right.ndim == 1 else layout, comm))
                want = np.linalg.lstsq(a, right)
                assert got[2] == want[2]
                for one, other in zip((got[0], got[1], got[3]), (want[0], want[1], want[3]), strict=True):
                    np.testing.assert_allclose(one.to_global(), other, rtol=precision, atol=precision)
            with pytest.raises(np.linalg.LinAlgError):
                np.linalg.lstsq(x, np.ones(shape[0] + 1))

        with rote.config(implicit="allow"):
            rote.run(program, 2)


@pytest.mark.parametrize("layout", ["block[(0),()]", "[(),()]"])
def test_thresholds_and_precisions_are_numpys(layout):
    """Law: `tol`, `rcond` and `rtol` say which singular values count; the wider of two dtypes is computed in."""
    a = np.diag([3.0, 1.0, 1e-3])[[2, 0, 1]]
    stack, b = np.stack([a, 5 * a]), np.random.default_rng(0).standard_normal(3)

    def program(comm):
        x, y = DistTensor.from_global(a, layout, comm), DistTensor.from_global(stack, "block[(),(0),()]", comm)
        for call in (
            lambda a, s: np.linalg.matrix_rank(a, 0.01),
            lambda a, s: np.linalg.matrix_rank(a @ a.T, tol=2, hermitian=True),
            lambda a, s: np.linalg.matrix_rank(s, np.array([2.0, 1e-4])),
            lambda a, s: np.linalg.matrix_rank(a, rtol=0.5),
            lambda a, s: np.linalg.pinv(a, 0.01),
            lambda a, s: np.linalg.pinv(a, rcond=0.5),
            lambda a, s: np.linalg.pinv(a, rtol=0.5),
            lambda a, s: np.linalg.cond(s[:0]),
            lambda a, s: np.linalg.lstsq(a.astype("f4"), b)[0],
        ):
            got, want = call(x, y), call(a, stack)
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got.to_global(), want, rtol=1e-12, atol=1e-12)
        for call in (np.linalg.matrix_rank, np.linalg.pinv):
            with pytest.raises(ValueError, match="both"):
                call(x, 0.1, rtol=0.1)

        # The Cholesky factor of the narrower one of a pair, too.
        narrow = DistTensor.from_global(np.diag([3.0, 7.0, 11.0]).astype("f4"), layout, comm)
        values = rote.linalg.eigh(DistTensor.from_global(np.diag([1.0, 2.0, 3.0]), layout, comm), narrow)[0]
        np.testing.assert_allclose(values.to_global(), [3 / 11, 2 / 7, 1 / 3], rtol=1e-14)
        values = rote.linalg.eigh(narrow, np.eye(3), eigvals_only=True)
        np.testing.assert_allclose(values.to_global(), [3, 7, 11], rtol=1e-14)

    with rote.config(implicit="allow"):
        rote.run(program, 2)
