"""Histograms: bins are NumPy's, and what is in a bin depends neither on other bins nor on the ranks."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import rote
from rote import DistTensor

LAYOUTS = ("block[(0)]", "[(0)]", "block(1,9,0,2)[(0)]", "[()]")
VALUES = np.array([0.5, 1.5, 2.5, 0.25, 1.0, 3.0, 2.0, 0.0, np.nan, 7.0, 2.75, 1.25])
BINS = np.array([0, 1, 2, 0, 1, 2, 2, 0, -1, -1, 2, 1])  # of the edges 0, 1, 2 and 3, of which the last is in a bin

HUGE = np.array([1e20, 1, 1, 3, -1e20, -1e20, 1e20, 1e-3, 4, 5, 1e-20, 2])
WEIGHTS = {
    "far apart": np.array([1e20, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
    "cancelling": HUGE,
    "subnormal and largest": HUGE * 1e288 + 5e-324,
    "single": (np.arange(12) - 5.3).astype("f4") * np.float32(10) ** np.arange(-6, 6).astype("f4"),
    "complex": HUGE + 1j * HUGE[::-1],
    "single complex": (HUGE + 1j * HUGE[::-1]).astype("c8"),
    "special": np.array([np.nan, 1, np.inf, 2, 3, 4, 5, 6, np.nan, np.inf, 9, -2]),
    "opposite": np.array([np.inf, 1, 1, 2, 3, 4, 5, -np.inf, 7, 8, 9, 10]),
    "integers": np.arange(12) + 2**60,
    "small": np.arange(12, dtype="u1") * 23,
    "bool": np.arange(12) % 4 == 1,
    "zeros": np.zeros(12),
}


def total(weights):
    """The sum of the weights of one bin, by definition: rounded once."""
    if weights.dtype.kind == "c":
        return complex(total(weights.real), total(weights.imag))
    if weights.dtype.kind != "f":
        return weights.any() if weights.dtype.kind == "b" else weights.sum(dtype=weights.dtype)
    if not np.isfinite(weights).all():
        return weights.sum()
    exact = sum(map(Fraction, weights.tolist()))
    double = exact.numerator / exact.denominator
    nearby = [np.nextafter(weights.dtype.type(double), to, dtype=weights.dtype) for to in (-np.inf, np.inf)]
    return min([weights.dtype.type(double), *nearby], key=lambda one: abs(Fraction(float(one)) - exact))


def totals(weights, numbers, count):
    """The sums of the weights of each bin, by definition."""
    with np.errstate(invalid="ignore"):
        return np.array([total(weights[numbers == number]) for number in range(count)], weights.dtype)


@pytest.mark.parametrize("ranks", (1, 2, 3, 4))
@pytest.mark.parametrize("kind", WEIGHTS)
def test_a_bin_has_the_sum_of_its_weights(kind, ranks):
    """Law: each bin is the sum of its own weights, rounded once, of equal bins and of any, in all layouts."""
    weights = WEIGHTS[kind]
    want = totals(weights, BINS, 3)

    def program(comm):
        for layout in LAYOUTS:
            if layout.startswith("block(") and ranks != 4:
                continue
            x = DistTensor.from_global(VALUES, layout, comm)
            w = DistTensor.from_global(weights, layout, comm)
            for options in ({"bins": 3, "range": (0, 3)}, {"bins": [0, 1, 2, 3]}, {"bins": np.array([0, 1, 2, 3.0])}):
                np.testing.assert_array_equal(np.histogram(x, **options, weights=w)[0].to_global(), want, strict=True)
            np.testing.assert_array_equal(np.histogram(x, [0, 1, 2, 3], weights=weights)[0].to_global(), want)
            unequal = np.histogram(x, [0, 1, 3], weights=w)[0].to_global()
            np.testing.assert_array_equal(unequal, totals(weights, BINS.clip(max=1), 2), strict=True)

    rote.run(program, ranks)


@pytest.mark.parametrize("dtype", ("f4", "f8", "g", "i1", "u1", "i8", "u8"))
def test_values_at_edges_are_in_numpys_bins(dtype):
    """Law: a value that equals an edge, or is next to one, is in NumPy's bin; with weights as without."""
    integers, kind = np.random.default_rng(1).integers(0, 20, 50).astype(dtype), np.dtype(dtype).type
    cases = [(integers, count, ends) for count in (1, 3, 7, 100) for ends in (None, (3, 12))]
    if np.dtype(dtype).kind == "f":
        edges = np.linspace(-0.3, 0.7, 11).astype(dtype)
        near = np.concatenate([np.nextafter(edges, to, dtype=dtype) for to in (kind(-9), kind(9), edges)])
        cases += [(near, 10, (-0.3, 0.7)), (near, edges, None), (near * kind(1e6) + kind(1e7), 50, None)]
    elif np.dtype(dtype).itemsize == 8:  # doubles do not tell these apart
        cases.append((2**53 + np.arange(8).astype(dtype), 2, (2**53 + 1, 2**53 + 5)))

    def program(comm):
        for values, bins, ends in cases:
            x = DistTensor.from_global(values, "[(0)]", comm)
            want, edges = np.histogram(values, bins, ends)
            for weights in (None, np.ones(len(values))):
                counts, found = np.histogram(x, bins, ends, weights=weights)
                np.testing.assert_array_equal(counts.to_global(), want)
                np.testing.assert_array_equal(found.to_global(), edges, strict=True)

    rote.run(program, 3)


@pytest.mark.parametrize("density", (None, False, True))
@pytest.mark.parametrize("kind", ("far apart", "single", "complex", "integers", "bool"))
def test_densities_are_numpys(kind, density):
    """Law: a density is the sum of the weights in each bin over its width and over all weights in bins."""
    weights = np.abs(WEIGHTS[kind]) if kind == "single" else WEIGHTS[kind]
    sums = totals(weights, BINS, 3)
    want = sums / np.array([1.0, 1, 1]) / sums.sum() if density else sums

    def program(comm):
        x = DistTensor.from_global(VALUES, "block[(0)]", comm)
        np.testing.assert_array_equal(np.histogram(x, 3, (0, 3), density, weights)[0].to_global(), want, strict=True)

    rote.run(program, 2)


def test_ends_of_bins_are_checked_on_all_ranks():
    """Law: a range is refused as by NumPy, for a number of bins and for a rule; tensors of order 0 are numbers."""
    array = np.arange(8.0)

    def program(comm):
        x = DistTensor.from_global(array, "block[(0)]", comm)
        for ends in (3, (1,), (1, 2, 3), (2, 0), (0, np.inf), (0, np.nan), "ab"):
            for bins in (4, "auto"):
                with pytest.raises((TypeError, ValueError)) as numpys:
                    np.histogram(array, bins, ends)
                with pytest.raises(numpys.type):
                    np.histogram(x, bins, ends)
        with pytest.raises(TypeError, match="range is two numbers, the ends of all bins, not 3"):
            np.histogram(x, "auto", range=3)
        for bins in (4, "auto", "fd"):
            for ends in ((1, 1), (2.5, 2.5), (1, 6)):
                for mine, theirs in zip(np.histogram(x, bins, ends), np.histogram(array, bins, ends), strict=True):
                    np.testing.assert_array_equal(mine.to_global(), theirs, strict=True)
        counts, _ = np.histogram(x, 4, (x.min(), x.max()))
        np.testing.assert_array_equal(counts.to_global(), np.histogram(array, 4)[0])

    rote.run(program, 2)


def test_no_element_and_no_weight():
    """Law: bins of empty tensors, and of ranks that hold nothing, are 0 in the dtype of the weights."""

    def program(comm):
        for extent in (0, 1):
            x = DistTensor.from_global(np.full(extent, 9.0), "block[(0)]", comm)
            for dtype in ("f8", "f4", "c16", "i8", "?"):
                for bins in (2, [0, 1, 2]):
                    sums = np.histogram(x, bins, (0, 2), weights=np.ones(extent, dtype))[0].to_global()
                    np.testing.assert_array_equal(sums, np.zeros(2, dtype), strict=True)

    rote.run(program, 3)


def test_sums_by_bin_take_the_memory_of_few_digits():
    """Law: many bins take some ten numbers each while they are summed, not a place for any double."""
    import tracemalloc

    values, weights = np.arange(100_000.0), np.linspace(0.5, 2, 100_000)
    x = DistTensor.from_global(values, "[()]")
    tracemalloc.start()
    np.histogram(x, len(values), weights=weights)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * values.nbytes, peak / values.nbytes
    assert math.fsum(weights) == float(np.histogram(x, 1, weights=weights)[0].sum())
