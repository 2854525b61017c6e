"""A user's program, for type checkers: each value that a function of Rote makes has a type, and it is the right one."""

from __future__ import annotations

from typing import assert_type, cast

import numpy as np
import numpy.typing as npt

import rote
import rote.array_api as xp
from rote import DistTensor
from rote.compat.mpi4py_fft import fftw
from rote.runtime import Comm

lay: rote.Layout = rote.parse("block[(0),(),(1)]")
same: rote.Layout = rote.L((0), (), (1), kind="block") | rote.root(2)
other: rote.Layout = rote.L(rote.block(0), (), rote.cyclic(1, 4)) + rote.partial(3)
move: rote.Transition = lay >> other
read: rote.Transition = rote.parse_transition("block[(0),(1)] -> block[(),(0)]")
dist: rote.Distribution = lay.on((8, 9, 10), rote.Grid((2, 2)))
plan: rote.Plan = rote.compile(dist, dist, machine=rote.Machine())
owners: tuple[int, ...] = dist.owners((3, 4, 5))
flags: tuple[int, ...] = (fftw.FFTW_MEASURE, fftw.xfftn.FFTW_PATIENT)
errors: tuple[type[rote.RoteError], ...] = (rote.NotationError, rote.LayoutError, rote.PlanError, rote.CommError)


def spectrum(x: DistTensor) -> DistTensor:
    """The FFT of a filtered tensor, by functions of Rote: their results are tensors."""
    damped = assert_type(xp.exp(-xp.abs(x)), DistTensor)
    X = assert_type(rote.fft.fftn(damped, norm="ortho"), DistTensor)
    power = assert_type(xp.real(X * xp.conj(X)), DistTensor)
    return assert_type(xp.where(power > 1e-6, xp.log(power), 0.0), DistTensor)


def reductions(x: DistTensor) -> tuple[DistTensor, float]:
    """A sum keeps the type whether it is a method or a function; of all elements it is a tensor of order 0."""
    assert_type(xp.sum(x, axis=0, keepdims=True), DistTensor)
    assert_type(xp.mean(x) + xp.cumulative_sum(x, axis=1).max(), DistTensor)
    assert_type(rote.array_api.sort(x, axis=-1) == x, DistTensor)
    return xp.std(x, axis=1), float(x.sum())


def products(a: DistTensor, b: DistTensor, matrix: npt.NDArray[np.float64]) -> list[DistTensor]:
    """Contractions, whichever operand is a tensor; and matrices, with results of several parts."""
    left, values, right = xp.linalg.svd(a, full_matrices=False)
    eigenvalues, vectors = rote.linalg.eigh(a @ a.T)
    assert_type((left * values) @ right, DistTensor)
    assert_type(xp.linalg.qr(a).R, DistTensor)
    assert_type(rote.linalg.cho_solve(rote.linalg.cho_factor(a @ a.T), b), DistTensor)
    assert_type(rote.einsum("ik,kj->ij", a, b, layout="block[(0),()]"), DistTensor)
    return [xp.matmul(matrix, b), xp.tensordot(a, b, axes=1), xp.concat([a, b]), xp.multiply(2.0, vectors), eigenvalues]


def program(comm: Comm) -> npt.NDArray[np.float64]:
    """What each rank runs."""

    def field(i: npt.NDArray[np.int64], j: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        return i + 2.0 * j

    x = assert_type(DistTensor.from_function(field, (8, 6), "block[(0),()]", comm), DistTensor)
    assert_type(rote.load("x.npy").redistribute("[(),(0)]"), DistTensor)
    wave = cast(DistTensor, np.sin(x))  # to NumPy's annotations any result is an array; `xp.sin(x)` needs no cast
    return assert_type(wave.redistribute("block[(),(0)]"), DistTensor).to_global()


results: list[npt.NDArray[np.float64]] = rote.run(program, ranks=4)

# A misspelt name is an error: were it none, the comment that forgives it would be one.
rote.Lay0ut  # type: ignore[attr-defined]  # noqa: B018
