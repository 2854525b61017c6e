"""Covariances, correlations, averages with weights along modes, and quarter turns are NumPy's, in any layout."""

from __future__ import annotations

import numpy as np
import pytest

import rote
from rote import DistTensor

RNG = np.random.default_rng(11)
ROWS = RNG.standard_normal((4, 9))
MORE = RNG.standard_normal((2, 9))
CUBE = RNG.standard_normal((3, 4, 5))
COUNTS, WEIGHTS = np.arange(9) % 4, np.linspace(0.5, 2, 9)

RANKS = pytest.mark.parametrize("ranks", [1, 3, *(pytest.param(each, marks=pytest.mark.slow) for each in (2, 4))])
LAYOUTS = pytest.mark.parametrize("layout", ["block[(0),()]", "block[(),(0)]", "[(0),(1)]", "[(),()]+(0)"])


def alike(call, array, layout, ranks):
    """Law: what a call gives for a tensor is what it gives for the array, in shape, dtype and values."""
    wanted = np.asarray(call(array))

    def program(comm):
        with rote.config(implicit="allow"):
            result = call(DistTensor.from_global(array, layout, comm))
        assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(result.to_global(), wanted, rtol=1e-12, atol=1e-13)
        return True

    assert rote.run(program, ranks) == [True] * ranks


@RANKS
@LAYOUTS
@pytest.mark.parametrize(
    "call",
    [
        np.cov,
        np.corrcoef,
        lambda x: np.cov(x.T, rowvar=False),
        lambda x: np.corrcoef(x.T, rowvar=False),
        lambda x: np.cov(x, bias=True),
        lambda x: np.cov(x, ddof=0, dtype="f4").astype("f8").round(5),
        lambda x: np.cov(x, MORE),
        lambda x: np.corrcoef(x, MORE[0]),
        lambda x: np.cov(x, fweights=COUNTS),
        lambda x: np.cov(x, aweights=WEIGHTS),
        lambda x: np.cov(x, fweights=COUNTS, aweights=WEIGHTS, ddof=2),
        lambda x: np.cov(x[0]),
        lambda x: np.corrcoef(x[0]),
        lambda x: np.cov(x + 1j * x[::-1]),
        lambda x: np.corrcoef(x + 1j * x[::-1]),
        lambda x: np.cov((10 * x).astype("i4")),
        lambda x: np.cov(x.astype("f4")).round(5),
        lambda x: np.cov(x[:1]),
    ],
)
def test_covariances(call, layout, ranks):
    """Law: variables are rows or columns, counted or weighted, of any dtype."""
    alike(call, ROWS, layout, ranks)


def test_few_observations():
    """Law: if nothing is left to divide by, there is no number."""
    for rows in (ROWS[:, :1], ROWS[:, :0]):
        x = DistTensor.from_global(rows, "block[(0),()]")
        with np.errstate(all="ignore"):
            assert np.isnan(np.cov(x).to_global()).all()


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"fweights": WEIGHTS}, TypeError, "integers"),
        ({"fweights": -COUNTS}, ValueError, "not negative"),
        ({"aweights": WEIGHTS[:3]}, ValueError, "one number for each of 9 observations"),
        ({"y": MORE[:, :4]}, rote.LayoutError, "9 and 4 observations"),
        ({"y": CUBE}, rote.LayoutError, "order 3"),
    ],
)
def test_what_has_no_covariance(options, error, says):
    """Law: weights that NumPy refuses are refused, and so are variables that do not fit."""
    with pytest.raises(error, match=says):
        np.cov(DistTensor.from_global(ROWS, "block[(0),()]"), **options)


@RANKS
@pytest.mark.parametrize("layout", ["block[(0),(),()]", "[(),(1),(0)]"])
@pytest.mark.parametrize("axis", [0, 1, -1, (0, 2), (2, 0)])
def test_averages_along_modes(axis, layout, ranks):
    """Law: weights of the extents of some modes belong to these, in the order in which they are named."""
    extents = [CUBE.shape[mode] for mode in np.atleast_1d(axis)]
    weights = np.arange(1.0, 1 + np.prod(extents)).reshape(extents)
    for part in (0, 1):
        alike(lambda x, part=part: np.average(x, axis, weights, returned=True)[part], CUBE, layout, ranks)


def test_averages_along_other_modes():
    """Law: weights that fit no named mode are refused, with the errors of NumPy."""
    x = DistTensor.from_global(CUBE, "block[(0),(),()]")
    with pytest.raises(TypeError, match="name axis="):
        np.average(x, weights=[1, 2, 3])
    with pytest.raises(ValueError, match=r"have the shape \(4,\), not \(3,\)"):
        np.average(x, axis=1, weights=[1, 2, 3])


@RANKS
@pytest.mark.parametrize("layout", ["block[(0),(),()]", "[(),(1),(0)]"])
def test_quarter_turns(layout, ranks):
    """Law: any number of quarters, between any two modes."""
    for quarters in range(-4, 6):
        for axes in ((0, 1), (2, 0), (-1, 1)):
            alike(lambda x, k=quarters, axes=axes: np.rot90(x, k, axes), CUBE, layout, ranks)


@pytest.mark.parametrize("layout", ["block[(0),()]", "block[(),(0)]"])
def test_correlations_of_nothing(layout):
    """Law: of no observations, correlations and covariances are NaN, as NumPy's are."""

    def program(comm):
        x = DistTensor.from_global(np.empty((2, 0)), layout, comm)
        for call in (np.corrcoef, np.cov):
            got = call(x).to_global()
            assert got.shape == (2, 2) and np.isnan(got).all()

    with np.errstate(all="ignore"):
        rote.run(program, 3)
