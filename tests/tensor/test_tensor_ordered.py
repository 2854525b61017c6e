"""Scans, sorts, sets and exact products of split tensors, compared with NumPy on random layouts."""

from __future__ import annotations

import math
import subprocess
import sys
import time
import tracemalloc
import warnings
from fractions import Fraction
from itertools import chain
from pathlib import Path

import keyed
import numpy as np
import ordered
import pytest
from cases import pick_grid
from effort import calls
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from marks import examples
from rearranged import pick_case
from strategies import picker

import rote
import rote.array_api
from rote import DistTensor
from rote.functions import exact, products


@pytest.fixture(autouse=True)
def silent():
    with rote.config(implicit="allow"):
        yield


@given(st.data())
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.large_base_example])
def test_scans_by_a_ufunc_are_numpys(data):
    """Law: `ufunc.accumulate` of a tensor in any layout is that of the array, NaN, dtype and all."""
    pick = picker(data.draw)
    dist, function = pick_case(pick, pick([2, 1, 3, 4]), ordered.accumulate)
    array = ordered.values(dist.shape, pick(["i8", "f8", "u1", "?", "f4"]))
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        rote.run(ordered.check_call, dist.grid.size, (dist, function, array))


@given(st.data())
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.large_base_example])
def test_methods_are_numpys(data):
    """Law: `dot`, `trace`, `diagonal` and the scans, as methods, are those of the array in any layout."""
    pick = picker(data.draw)
    dist, function = pick_case(pick, pick([2, 1, 3, 4]), ordered.methods)
    rote.run(ordered.check_call, dist.grid.size, (dist, function, keyed.numbered(dist.shape)))


def test_a_scan_writes_where_it_is_to():
    """`out=` is written where it lies, and returned; a scan of several modes at once, or of order, is refused."""

    def program(comm):
        x = DistTensor.from_global(np.array([3, 1, 2]), "block[(0)]", comm)
        out = DistTensor.zeros(3, "[()]", comm, dtype="i8")
        assert np.maximum.accumulate(x, out=out) is out
        assert out.local.tolist() == [3, 3, 3]
        assert x.cumsum(out=out) is out
        assert out.local.tolist() == [3, 4, 6]
        with pytest.raises(ValueError, match="needs axis="):
            np.add.accumulate(DistTensor.zeros((2, 2), "block[(0),()]", comm), axis=None)
        with pytest.raises(TypeError, match="complex"):
            np.maximum.accumulate(x.astype("c16"))
        with pytest.raises(TypeError, match="is not answered"):
            np.subtract.accumulate(x)

    rote.run(program, 2)


@given(st.data(), st.sampled_from(["f8", "f4", "c16", "c8"]))
@settings(max_examples=examples(24), suppress_health_check=[HealthCheck.large_base_example])
def test_exact_products_are_the_true_ones(data, dtype):
    """Law: `exact=True` rounds the true sum of products once, whatever the layouts of both, sizes and cancellation."""
    pick = picker(data.draw)
    ranks, rows, depth, columns = pick([2, 1, 3, 4]), pick([1, 3, 0]), pick([5, 1, 0, 7]), pick([2, 1])
    grid = pick_grid(pick, ranks)
    dists = [ordered.pick_summable(pick, shape, grid) for shape in ((rows, depth), (depth, columns))]
    rote.run(ordered.check_exact_products, ranks, (dists, dtype))


def test_exact_products_of_many():
    """Law: dot, vecdot, vdot and tensordot have the bits of fractions in all layouts, in chunks of any size."""
    first, second = (ordered.wide((3, 12), "f8", seed) for seed in (1, 2))
    want = [
        ordered.nearest([(Fraction(a), Fraction(b)) for a, b in zip(*rows, strict=True)], "f8")
        for rows in zip(first.tolist(), second.tolist(), strict=True)
    ]

    def program(comm):
        for text in ("block[(),(0)]", "[(0),()]", "[(),()]", "a b: cyclic(2)[(),(0)]"):
            x, y = (DistTensor.from_global(each, text, comm) for each in (first, second))
            assert rote.array_api.vecdot(x, y, exact=True).to_global().tolist() == want
            assert rote.array_api.vecdot(x, second, exact=True).to_global().tolist() == want
            assert np.diagonal(x.dot(y.T, exact=True)).to_global().tolist() == want
            assert float(rote.array_api.tensordot(x[1], y[1], 1, exact=True)) == want[1]
            assert float(products.vdot(x[2], y[2], exact=True)) == want[2]

    for size in (exact._PRODUCTS, 16, 5):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(exact, "_PRODUCTS", size)
            rote.run(program, 2)


def test_exact_sums_of_many_rows_cost_few_calls():
    """Law: to round many sums takes as many calls as to round a few, and the order of elements does not matter."""
    rows = np.stack([ordered.wide((6,), "f8", seed) for seed in range(2000)])
    few, many = (DistTensor.from_global(part, "[(),()]") for part in (rows[:8], rows))
    counts = [calls(lambda x=x: x.sum(axis=1, exact=True)) for x in (few, many, few, many)]
    assert counts[2] == counts[3], counts
    assert many.sum(axis=1, exact=True).to_global().tolist() == [math.fsum(row) for row in rows.tolist()]
    assert (many.sum(axis=1, exact=True) == many[:, ::-1].sum(axis=1, exact=True)).all()


def test_exact_products_of_what_is_not_finite():
    """Infinities and NaN come out as of NumPy; what is too large on the way only is not; wide numbers are refused."""

    def program(comm):
        one = np.array([1.0, 2.0, np.inf, 1e300])
        x = DistTensor.from_global(one, "block[(0)]", comm)
        assert float(x.dot([1.0, 1.0, 1.0, 1e300], exact=True)) == np.inf
        assert np.isnan(float(x.dot([1.0, 1.0, 0.0, 1.0], exact=True)))
        assert np.isnan(float(x.dot([-np.inf, 1.0, 1.0, 1.0], exact=True)))
        y = DistTensor.from_global(np.array([1e300, 1e300, 3.0, 5e-324]), "[(0)]", comm)
        assert float(y.dot([1e300, -1e300, 2.0, 5e-324], exact=True)) == 6
        assert float(y.dot([0.0, 0.0, 5e-324, 0.25], exact=True)) == 3 * 5e-324
        z = DistTensor.from_global(np.array([3, 4]), "block[(0)]", comm)
        assert z.dot(z, exact=True).dtype == np.int64 and int(z.dot(z, exact=True)) == 25
        with pytest.raises(TypeError, match="at most 64 bits"):
            y.astype("g").dot(y, exact=True)

    rote.run(program, 2)


@given(st.data(), st.sampled_from([ordered.sorts, ordered.sets]))
@settings(max_examples=examples(80), suppress_health_check=[HealthCheck.large_base_example])
def test_orders_and_sets_are_numpys(data, call):
    """Law: sorts are stable, NaN last, and sets those of the array, in any layout; zeros keep their signs."""
    pick = picker(data.draw)
    dist, function = pick_case(pick, pick([2, 1, 3, 4, 6]), call)
    array = ordered.values(dist.shape, pick(["f8", "i8", "c8", "?", "f4", "u1", "c16"]))
    rote.run(ordered.check_call, dist.grid.size, (dist, function, array))


@given(st.data())
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.large_base_example])
def test_medians_are_numpys(data):
    """Law: medians of lines are bit for bit those of the array, in any layout, NaN and infinities among them."""
    pick = picker(data.draw)
    dist, function = pick_case(pick, pick([2, 1, 3, 4]), ordered.medians)
    array = ordered.values(dist.shape, pick(["f8", "i8", "?", "f4", "u1"]))
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        rote.run(ordered.check_call, dist.grid.size, (dist, function, array))


@given(st.data())
@settings(max_examples=examples(80), suppress_health_check=[HealthCheck.large_base_example])
def test_quantiles_are_numpys(data):
    """Law: quantiles of lines, whole or split, by all methods, are bit for bit those of the array."""
    pick = picker(data.draw)
    dist, function = pick_case(pick, pick([2, 1, 3, 4, 6]), ordered.quantiles)
    array = ordered.values(dist.shape, pick(["f8", "i8", "f4", "u1", "g"]))
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        rote.run(ordered.check_call, dist.grid.size, (dist, function, array))


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        *(
            ("different", "f8"),
            ("NaN", "f4"),
            ("few", "i4"),
            ("few", "?"),
            ("wide", "f8"),
            ("sorted", "f4"),
            ("NaN", "f8"),
        )
    ],
)
def test_quantiles_of_many_are_numpys(kind, dtype):
    """Law: they are, too, of lines that are not gathered at once, however their elements come."""
    generator = np.random.default_rng(5)
    array = 100 * generator.standard_normal((20_000, 2))
    if kind == "few":
        array = np.where(array > 120, array, 0)
    elif kind == "sorted":
        array = np.sort(array, axis=None).reshape(array.shape)
    elif kind == "NaN":
        array[generator.random(array.shape) < 0.2] = np.nan
    elif kind == "wide":
        array = np.exp(array / 20)
    array = array.astype(dtype)
    few, many = [0.01, 0.5, 0.99], np.linspace(0, 1, 40)
    methods = ("inverted_cdf", "nearest") if dtype == "?" else ("linear", "inverted_cdf", "averaged_inverted_cdf")

    def calls(x):
        for name in ("quantile", "nanquantile"):
            function = getattr(np, name)
            for method in methods:
                yield function(x, few, method=method), function(x, few, axis=0, method=method)
            yield function(x, many, method="nearest"), function(x, many, axis=(1, 0), method="lower")
        yield np.median(x), np.nanmedian(x, axis=0, keepdims=True)

    wanted = [*map(np.asarray, chain(*calls(array)))]

    def program(comm):
        for text in ("block[(0),()]", "block(7,0,19993)[(0),()]", "[(0),()]"):
            x = DistTensor.from_global(array, text, comm)
            for got, want in zip(chain(*calls(x)), wanted, strict=True):
                np.testing.assert_array_equal(got.to_global(), want, strict=True)

    rote.run(program, 3)


@given(st.data())
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.large_base_example])
def test_quantiles_with_weights_are_numpys(data):
    """Law: with weights of the elements or of the indices along an axis, of any dtype; NaN as without weights."""
    pick = picker(data.draw)
    dist, function = pick_case(pick, pick([2, 1, 3, 4]), ordered.weighted)
    array = ordered.values(dist.shape, pick(["f8", "i8", "f4"]))
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        rote.run(ordered.check_call, dist.grid.size, (dist, function, array))


SELECTIONS = {"three": lambda x: np.percentile(x, [1, 50, 99]), "median": np.median}


@pytest.mark.parametrize("dtype", ["f8", "i8", "f4", "u1"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_a_selection_takes_little(dtype, ranks):
    """Law: 1.3 blocks of memory, and 150,000 bytes of messages for any number of elements."""
    array = (1000 * np.random.default_rng(1).standard_normal((1200, 900))).astype(dtype)

    def program(comm):
        x = DistTensor.from_global(array, "block[(0),()]", comm)
        for name, call in SELECTIONS.items():
            call(x)
            with rote.trace() as moves:
                call(x)
            assert [(move.cause, move.implicit) for move in moves] == [(name.replace("three", "percentile"), False)]
            assert moves[0].nbytes < 150_000
            comm.barrier()
            if comm.rank == 0:
                tracemalloc.start()
            comm.barrier()
            call(x)
            comm.barrier()
            if comm.rank == 0:
                most = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
                assert most < 1.3 * array.nbytes, name
            comm.barrier()

    rote.run(program, ranks)


@pytest.mark.perf
@pytest.mark.parametrize("dtype", ["f8", "i8", "f4", "u1"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_selection_takes_as_long_as_numpys(dtype, ranks):
    """Law: 1.2 times the time that NumPy takes on one rank; on two, which also wait for each other, 2 times."""
    array = (1000 * np.random.default_rng(1).standard_normal((1200, 900))).astype(dtype)
    parts = np.array_split(array, ranks)

    def program(comm):
        x = DistTensor.from_global(array, "block[(0),()]", comm)
        for name, call in SELECTIONS.items():
            call(x)
            times, numpys = [], []
            for _ in range(20):  # in turns, for the machine's speed changes; and the least, for others only add time
                comm.barrier()
                before = time.process_time()
                call(x)
                comm.barrier()
                times.append(time.process_time() - before)
                if comm.rank == 0:
                    numpys.append(sum(_seconds(call, part) for part in parts))
            assert comm.rank or min(times) < (1.2, 2)[ranks - 1] * min(numpys), name
            comm.barrier()

    rote.run(program, ranks)


@pytest.mark.parametrize("dtype", ["f8", "i4"])
def test_unique_takes_three_blocks(dtype):
    """Law: unique elements alone take at most three blocks, if all differ, too; NaNs are one."""
    array = np.random.default_rng(0).permutation(400_000).reshape(500, 800).astype(dtype)
    if dtype == "f8":
        array[array % 7 == 0] = np.nan

    def program(comm):
        x = DistTensor.from_global(array, "block[(),(0)]", comm)
        np.unique(x[:9])
        comm.barrier()
        if comm.rank == 0:
            tracemalloc.start()
        comm.barrier()
        found = np.unique(x)
        comm.barrier()
        if comm.rank == 0:
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert most < 3.1 * array.nbytes
        comm.barrier()  # the other rank takes no more before it is counted
        np.testing.assert_array_equal(found.to_global(), np.unique(array), strict=True)

    rote.run(program, 2)


PEAK = """
import resource, numpy as np, rote
array = np.random.default_rng(0).integers(-(2**62), 2**62, 4_000_000)
x = rote.DistTensor.from_local(array, "block[(0)]", shape=array.shape)
np.unique(x[:9])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
np.unique(x)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / array.nbytes)
"""


def test_unique_integers_take_no_hash_table():
    """Law: so do integers from a wide range, counted with what NumPy allocates where Python does not see it."""
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, timeout=60, check=True)
    assert float(done.stdout) < 3.2


def _seconds(call, array):
    """The time that this process computes."""
    before = time.process_time()
    call(array)
    return time.process_time() - before


@pytest.mark.parametrize(
    "array", [[1, 2, np.inf], [np.inf, 1, np.inf, np.inf], [-np.inf, 1, 2, 3, 4], [-np.inf, np.inf]]
)
@pytest.mark.parametrize("method", ["linear", "lower", "higher", "nearest", "midpoint", "weibull", "hazen"])
def test_quantiles_beside_infinity_are_numpys(array, method):
    """Law: where lines are split, infinity beside a quantile makes of it what it does in the array, NaN or not."""

    def program(comm):
        x = DistTensor.from_global(np.array(array), "block[(0)]", comm)
        for q in (0, 1, 0.0, 1.0, 0.5, 0.25, 0.1, [0, 1], [0.0, 0.5, 1.0], [0.01, 0.99]):
            np.testing.assert_allclose(
                np.quantile(x, q, method=method).to_global(), np.quantile(array, q, method=method)
            )
            percents = np.multiply(q, 100.0)
            got = np.percentile(x, percents, method=method)
            np.testing.assert_allclose(got.to_global(), np.percentile(array, percents, method=method))

    with np.errstate(all="ignore"):
        rote.run(program, 2)


def test_quantiles_refuse_what_numpy_does():
    """Complex numbers, q beyond 1, unknown methods and weights that are none; a fraction is a number."""

    def program(comm):
        x = DistTensor.from_global(np.arange(12.0), "block[(0)]", comm)
        with pytest.raises(ValueError, match="range"):
            np.quantile(x, 1.5)
        with pytest.raises(ValueError, match="not a valid method"):
            np.quantile(x, 0.5, method="middle")
        with pytest.raises(TypeError, match=r"numpy\.median"):
            np.median(x.astype("c16"))
        with pytest.raises(ValueError, match="supports weights"):
            np.quantile(x, 0.5, weights=x)
        with pytest.raises(ValueError, match="not negative"):
            np.quantile(x, 0.5, weights=x - 1, method="inverted_cdf")
        with pytest.raises(ValueError, match="not zero"):
            np.quantile(x, 0.5, weights=x * 0, method="inverted_cdf")
        with pytest.raises(TypeError, match="boolean subtract"):
            np.quantile(x > 2, 0.5)
        assert float(np.quantile(x, Fraction(1, 3))) == np.quantile(np.arange(12.0), 1 / 3)
        with pytest.raises(np.exceptions.AxisError):
            np.median(x, 1)

    rote.run(program, 2)
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        assert np.isnan(float(np.nanmedian(DistTensor.from_global([np.nan, np.nan], "block[(0)]"))))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (4, 0, 2), (5,), (4, 3)], ids=str)
def test_selections_of_read_only_blocks_are_numpys(shape):
    """Law: blocks that nobody may write, such as those of a file, have the values and errors of others; empty ones too.

    Nothing is written into a tensor whose elements are selected, whatever `overwrite_input` says.
    """
    array, axes = np.arange(np.prod(shape, dtype=float))[::-1].reshape(shape), (None, *range(len(shape)))
    layouts = {f"block[{','.join(['()'] * mode + ['(0)'] + ['()'] * (len(shape) - mode - 1))}]" for mode in axes[1:]}
    calls = [lambda x, axis: np.median(x, axis, overwrite_input=True)]
    calls += [lambda x, axis, f=f: f(x, axis=axis) for f in (np.median, np.nanmedian, np.sort, np.argsort)]
    calls += [lambda x, axis, f=f: f(x, [20, 50], axis) for f in (np.percentile, np.nanpercentile)]
    calls += [lambda x, axis: np.quantile(x, 0.3, axis, method="inverted_cdf")]

    def result(call, x, axis):
        try:
            found = call(x, axis)
        except (ValueError, IndexError) as error:
            return str(error).splitlines()[0]
        return found.to_global() if isinstance(found, DistTensor) else found

    def program(comm):
        for layout in [*sorted(layouts), f"[{','.join(['()'] * len(shape))}]"]:
            x = DistTensor.from_global(array, layout, comm)
            x.local.flags.writeable = False
            for call in calls:
                for axis in axes:
                    np.testing.assert_array_equal(result(call, x, axis), result(call, array.copy(), axis))
            np.testing.assert_array_equal(x.to_global(), array)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ranks in (1, 2, 3):
            rote.run(program, ranks)


@pytest.mark.parametrize("rule", ["auto", "fd", "doane", "scott", "sqrt", "rice", "sturges"])
def test_bins_by_rules_are_numpys(rule):
    """Law: rules for the number of bins see the elements of all ranks, integers and equal ones among them."""
    generator = np.random.default_rng(0)
    arrays = [
        generator.standard_normal(500),
        generator.integers(0, 9, 300),
        np.zeros(5),
        np.repeat([0.0, 1.0], [99, 1]),
        np.arange(7) % 2 == 0,
    ]

    def program(comm):
        for array in arrays:
            x = DistTensor.from_global(array, "block[(0)]", comm)
            array = array.astype(np.uint8) if array.dtype == bool else array  # of which NumPy warns
            for limits in (None, (0, 2)):
                for got, want in zip(np.histogram(x, rule, limits), np.histogram(array, rule, limits), strict=True):
                    np.testing.assert_allclose(got.to_global(), want, 1e-14)
        with pytest.raises(TypeError, match="without weights"):
            np.histogram(x, rule, weights=x)
        with pytest.raises(ValueError, match="'auto'"):
            np.histogram(x, "none")

    rote.run(program, 3)


@pytest.mark.parametrize("text", ["block[(0),()]", "[(),(0)]"])
def test_weights_of_quantiles_are_checked_as_numpys(text):
    """Law: sums of weights that are no numbers, or zero, are refused, of lines with a NaN, too; and other methods."""
    array = np.array([[1.0, np.nan, 2.0], [3.0, 0.0, 1.0]])
    wrong = [np.zeros((2, 3)), np.full((2, 3), np.inf), np.array([[1, np.nan, 1], [1, 1, 1]]), -np.ones((2, 3))]

    def program(comm):
        x = DistTensor.from_global(array, text, comm)
        for weights in (np.ones((2, 3)), np.array([[1.0, 2, 3], [0, 1, 0]])):
            for axis in (None, 0, 1):
                got = np.quantile(x, [0.2, 0.9], axis, weights=weights, method="inverted_cdf").to_global()
                want = np.quantile(array, [0.2, 0.9], axis, weights=weights, method="inverted_cdf")
                np.testing.assert_array_equal(got, want)
        for weights in wrong:
            with pytest.raises(ValueError, match=r"[Ww]eights"):
                np.quantile(x, 0.5, weights=weights, method="inverted_cdf")
        for method in ("linear", "averaged_inverted_cdf", "hazen"):
            with pytest.raises(ValueError, match="Only method 'inverted_cdf' supports weights"):
                np.quantile(x, 0.5, weights=np.ones((2, 3)), method=method)

    with rote.config(implicit="allow"):
        rote.run(program, 2)


SLICES = {
    "few": np.random.default_rng(0).integers(0, 2, (9, 3)),
    "NaN": np.where(
        np.random.default_rng(1).random((7, 2)) < 0.3, np.nan, np.random.default_rng(2).integers(0, 2, (7, 2))
    ),
    "complex": np.random.default_rng(3).integers(0, 2, (8, 2)) * (1 - 1j),
    "signs": np.array([[0.0, -0.0], [-0.0, 0.0], [1, -0.0], [1, 0.0], [-1, 0.0]]),
    "no slices": np.zeros((0, 3)),
    "no elements": np.zeros((5, 0)),
    "cube": np.random.default_rng(4).integers(0, 2, (5, 2, 6)),
    "bytes": np.random.default_rng(5).integers(0, 3, (30, 2)).astype("u1"),
    "bool": np.random.default_rng(6).random((6, 4)) < 0.5,
}


@pytest.mark.parametrize("kind", SLICES)
def test_unique_slices_are_numpys(kind):
    """Law: unique slices along any axis are NumPy's, in the order of NumPy, with indices, inverse and counts."""
    array = SLICES[kind]

    def program(comm):
        layouts = ["block[(0),()]", "[(),(0)]", "block[(1),(0:cyclic(2))]", "[(),()]"]
        for text in layouts if array.ndim == 2 else ["block[(0),(1),()]", "[(1),(),(0)]"]:
            grid = (comm.size,) if "1" not in text else (comm.size // 2, 2) if comm.size % 2 == 0 else (1, comm.size)
            x = DistTensor.from_global(array, text, comm, grid=grid)
            for axis in range(-1, array.ndim):
                for got, want in zip(
                    np.unique(x, True, True, True, axis), np.unique(array, True, True, True, axis), strict=True
                ):
                    np.testing.assert_array_equal(got.to_global(), want)
                    assert got.dtype == want.dtype
                alone = np.unique(x, axis=axis).to_global()
                np.testing.assert_array_equal(alone, np.unique(array, axis=axis))

    with rote.config(implicit="allow"):
        for ranks in (1, 2, 3, 4):
            rote.run(program, ranks)


@pytest.mark.parametrize("text", ["block[(0)]", "[(0)]", "block(0,1,4000,95)[(0)]", "cyclic(7)[(0)]"])
@pytest.mark.parametrize("kind", ["different", "equal", "few", "sorted"])
def test_no_rank_has_all_of_a_sort(text, kind):
    """Law: of n elements, however they lie and come, a rank receives at most 3 n/p + p, and the layout stays."""
    n, p = 4096, 4
    generator = np.random.default_rng(3)
    numbers = {"different": generator.permutation(n), "equal": np.full(n, 7), "few": generator.integers(0, 3, n)}
    array = numbers.get(kind, np.arange(n))

    def program(comm):
        x = DistTensor.from_global(array, text, comm)
        with rote.trace() as moves:
            y = np.sort(x)
            rote.array_api.unique_all(x)
        assert y.layout == x.layout and all("allgather" not in move.plan for move in moves)
        np.testing.assert_array_equal(y.to_global(), np.sort(array))
        return [move.nbytes for move in moves if "sample sort" in move.plan and move.cause == "sort"]

    assert all(nbytes <= 16 * (3 * n // p + p) for nbytes in rote.run(program, p)[0])


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("text", ["block[(0)]", "[(0)]", "block(0,300,1,0)[(0)]", "[()]+(0)"])
def test_one_line_is_sorted_by_its_values(ranks, text):
    """Law: a sort that need not be stable sends the values of a split line, and no places with them."""
    generator = np.random.default_rng(5)
    numbers = generator.integers(-4, 5, 301)
    arrays = [numbers, numbers > 0, numbers.astype("u1"), generator.random(301), numbers + 1j * numbers[::-1]]
    arrays.append(np.where(numbers == 0, np.nan, generator.random(301)))
    if text.startswith("block(0") and ranks != 4:
        text = "block[(0)]"

    def program(comm):
        for array in arrays[: 1 if "+" in text else None]:
            x = DistTensor.from_global(array, text, comm)
            with rote.trace() as moves:
                y = np.sort(x, axis=None)
            np.testing.assert_array_equal(y.to_global(), np.sort(array))
            np.testing.assert_array_equal(rote.array_api.sort(x, descending=True).to_global(), np.sort(array)[::-1])
            sent = [move.nbytes for move in moves if "sample sort" in move.plan]
            assert all(nbytes <= array.itemsize * (3 * 301 // ranks + ranks) for nbytes in sent)
            back = [move for move in moves if move.cause == "sort" and "sample sort" not in move.plan]
            if text.startswith("block"):  # runs become blocks without a list of indices
                assert {move.plan for move in back} <= {"runs of 301 elements to blocks"}
                assert all(move.nbytes <= array.itemsize * 301 for move in back)

    rote.run(program, ranks)


def test_a_sort_says_what_it_moves():
    """An exchange is the sort's own: recorded twice, there and back, and never refused; of one rank it is no move."""

    def program(comm):
        x = DistTensor.from_global(np.arange(12)[::-1].copy(), "block[(0)]", comm)
        with rote.trace() as moves:
            np.argsort(x)
        with rote.config(implicit="error"):
            np.testing.assert_array_equal(np.sort(x).to_global(), np.arange(12))
        return [(move.cause, move.implicit, move.plan.split()[1]) for move in moves]

    assert rote.run(program, 3) == [[("argsort", False, "sample"), ("argsort", False, "indexed")]] * 3
    assert rote.run(program, 1) == [[]]


@pytest.mark.mpi
@pytest.mark.parametrize("job", (3,), indirect=True)
def test_on_mpi_ranks(job):
    """All calls are NumPy's on ranks of MPI."""
    done = job.run(Path(ordered.__file__))
    assert (done.returncode, done.stdout) == (0, "ordered\n"), done.stderr
