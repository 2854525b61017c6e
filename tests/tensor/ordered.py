"""Scans, sorts, sets and exact products that are NumPy's, whatever the layout: picked by a shape.

Run as a program, `python ordered.py`, it makes every call on the ranks of MPI, and prints one line.
"""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import keyed
from cases import pick_layout
from rearranged import pick_case

import rote
from rote import DistTensor
from rote.functions import sorting
from rote.layout.distribution import Distribution
from rote.runtime import world

SCANS = (np.add, np.multiply, np.maximum, np.minimum, np.logical_or, np.logical_and)


def values(shape, dtype):
    """Numbers that come several times, in no order; NaN, infinities and zeros of both signs where there are such."""
    generator = np.random.default_rng((7, *shape))
    array = generator.integers(0, 9, shape).astype(dtype)
    if array.dtype.kind in "fc":
        array[generator.random(shape) < 0.2] = np.nan
        array[generator.random(shape) < 0.1] *= -1
        array[generator.random(shape) < 0.1] = np.inf
    return array


def accumulate(pick, shape):
    ufunc, axis = pick(SCANS), pick(range(-len(shape), len(shape)))
    dtype = None if ufunc in (np.logical_or, np.logical_and) else "f4"
    return lambda x: (ufunc.accumulate(x, axis), ufunc.accumulate(x, axis, dtype), ufunc.accumulate(x))


def methods(pick, shape):
    order, offset = len(shape), pick([-1, 0, 1, 2])
    first, second = pick([(0, order - 1), (-1, 0), (order - 1, -2)])
    if order < 2:
        return lambda x: (x.dot(x), x.cumsum(), x.cumprod(0, "i4"))
    return lambda x: (
        x.trace(offset, first, second),
        x.diagonal(offset, first, second),
        x.dot(np.ones((shape[-1], 2), int)),
    )


def sorts(pick, shape):
    axis = pick([None, *range(-len(shape), len(shape))])
    return lambda x: (
        np.sort(x, axis, kind="stable"),
        np.argsort(x, axis, kind="stable"),
        *descending(x, axis),
    )


def descending(x, axis):
    """The largest first, equal ones in their order: of an array by NumPy's ascending order from the other end."""
    if isinstance(x, DistTensor):
        return sorting.sort(x, axis, descending=True, stable=True), sorting.argsort(x, axis, descending=True)
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis)
    order = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    return np.take_along_axis(x, order, axis), order


def sets(pick, shape):
    return lambda x: (
        *np.unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=True),
        *np.unique_all(x),
        *np.unique_inverse(np.isnan(x)),
        np.unique(x, return_index=True)[0],
    )


def medians(pick, shape):
    axes = pick([None, *range(-len(shape), len(shape)), tuple(range(len(shape)))])
    return lambda x: (np.median(x, axes), np.median(x, axes, keepdims=True))


METHODS = (
    *("linear", "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen"),
    *("weibull", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest"),
)


def quantiles(pick, shape):
    """NumPy has none of no elements."""
    if 0 in shape:
        return lambda x: []
    axis = pick([None, *range(-len(shape), len(shape)), tuple(range(len(shape)))])
    name, options = pick(["quantile", "nanquantile"]), {"method": pick(METHODS), "keepdims": pick([False, True])}
    q = pick([0.3, 0, 1.0, [0.0, 0.25, 1.0], [0, 1], np.float32(0.7), np.array([0.1, 0.9], "f4")])
    percents = q * 100 if np.ndim(q) == 0 else np.multiply(q, 100, dtype=getattr(q, "dtype", None))
    return lambda x: (
        getattr(np, name)(x, q, axis, **options),
        getattr(np, name.replace("quantile", "percentile"))(x, percents, axis, **options),
        getattr(np, name.replace("quantile", "median"))(x, axis),
    )


SEVERAL = np.quantile([[0, 1], [2, 3]], 0.5, (0, 1), weights=[[1, 9], [5, 1]], method="inverted_cdf") == 1


def weighted(pick, shape):
    """By NumPy's one method. NumPy fails of no elements, and of weights along an axis if NaNs are left out.

    NumPy 2.1 gives the weights to other elements if several axes are named.
    """
    if 0 in shape:
        return lambda x: []
    several = [tuple(range(len(shape)))[::-1]] if SEVERAL else []
    axis = pick([None, *range(len(shape)), *several])
    along = axis if isinstance(axis, tuple) else (axis,)
    extents = shape if axis is None or pick([True, False]) else tuple([shape[mode] for mode in along])
    names = ("quantile", *(("nanquantile",) if extents == shape else ()))
    generator = np.random.default_rng(len(shape))
    weights = pick([lambda: 1 + generator.integers(0, 4, extents), lambda: generator.random(extents)])()
    options = {"weights": weights, "method": "inverted_cdf", "keepdims": pick([False, True])}
    return lambda x: [getattr(np, name)(x, q, axis, **options) for name in names for q in (0.5, [0.0, 0.3, 1.0])]


CALLS = [accumulate, methods, sorts, sets, medians, quantiles, weighted]


def pick_summable(pick, shape, grid):
    """A distribution that any numbers have: contributions are those to sums, for complex numbers have no largest."""
    layout = pick_layout(pick, shape, grid)
    return Distribution(replace(layout, op="sum"), shape, rote.Grid(grid))


def same(result, wanted):
    """Equal values, order and dtype, zeros of either sign apart."""
    assert isinstance(result, DistTensor), result
    whole = result.to_global()
    np.testing.assert_array_equal(whole, wanted, strict=True)
    for part in (np.real, np.imag) if whole.dtype.kind in "fc" else ():
        numbers = ~np.isnan(whole)
        np.testing.assert_array_equal(np.signbit(part(whole)[numbers]), np.signbit(part(wanted)[numbers]))


def check_call(comm, dist, call, array):
    """A call on a tensor gives what it gives on the array, and leaves the tensor as it was."""
    if array.dtype.kind in "fc":  # zero and infinity, which contributions are made of, are among the numbers
        dist = replace(dist, layout=replace(dist.layout, partial=()))
    x = keyed.laid(array, dist, comm)
    results, wanted = call(x), call(array)
    for result, want in zip(results, wanted, strict=True):
        same(result, np.asarray(want))
    np.testing.assert_array_equal(x.to_global(), array, strict=True)


def nearest(products, dtype):
    """The number of a dtype nearest to a sum of products of fractions, one rounding and no more."""
    total = sum((a * b for a, b in products), start=Fraction(0))
    near = np.dtype(dtype).type(float(total))
    for other in (np.nextafter(near, near.dtype.type(-np.inf)), np.nextafter(near, near.dtype.type(np.inf))):
        if np.isfinite(other) and abs(Fraction(float(other)) - total) < abs(Fraction(float(near)) - total):
            near = other
    return near


def wide(shape, dtype, seed):
    """Numbers of all sizes that a dtype has, some of them subnormal, among which sums cancel."""
    generator = np.random.default_rng((seed, *shape))
    kind = np.empty(0, dtype).real.dtype
    low, high = (-149, 60) if kind == "f4" else (-1074, 500)
    parts = [
        np.ldexp(generator.standard_normal(shape), generator.integers(low, high, shape)).astype(kind) for _ in range(2)
    ]
    return parts[0] if np.dtype(dtype).kind == "f" else (parts[0] + 1j * parts[1]).astype(dtype)


def check_exact_products(comm, dists, dtype):
    """A product of matrices with exact=True is the true one, rounded once, by fractions; in the dtype of both."""
    arrays = [wide(dist.shape, dtype, seed) for seed, dist in enumerate(dists)]
    got = keyed.laid(arrays[0], dists[0], comm).dot(keyed.laid(arrays[1], dists[1], comm), exact=True).to_global()
    assert got.dtype == dtype
    for i, j in np.ndindex(got.shape):
        row, column = arrays[0][i].tolist(), arrays[1][:, j].tolist()
        real, imag = [], []
        for a, b in zip(row, column, strict=True):
            x, y, u, v = (Fraction(each) for each in (a.real, a.imag, b.real, b.imag))
            real += [(x, u), (-y, v)]
            imag += [(x, v), (y, u)]
        assert got[i, j].real == nearest(real, got.real.dtype)
        assert got[i, j].imag == nearest(imag, got.real.dtype)


def main() -> None:
    comm = world()
    pick = random.Random(comm.size).choice
    with rote.config(implicit="allow"):
        for call in CALLS:
            for dtype in ("i8", "f8"):
                dist, function = pick_case(pick, comm.size, call)
                array = keyed.numbered(dist.shape) if call is methods else values(dist.shape, dtype)
                check_call(comm, dist, function, array)
    if comm.rank == 0:
        print("ordered")


if __name__ == "__main__":
    main()
