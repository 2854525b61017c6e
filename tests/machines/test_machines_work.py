"""Local work: the seconds of transforms, twiddles and products."""

from __future__ import annotations

from math import log2

import pytest

import rote
from rote.compiler.cost import duration
from rote.machines.machine import Machine
from rote.machines.work import Work, work_seconds

SLOW_MEMORY = Machine(copy_time=1e-9, fft_time=1e-12)
SLOW_CORES = Machine(copy_time=1e-12, fft_time=1e-9)


def test_a_transform_takes_its_arithmetic_or_its_memory():
    work = Work("fft", 1000, points=1024)
    assert work_seconds(work, SLOW_MEMORY) == pytest.approx(1000 * 1e-9)
    assert work_seconds(work, SLOW_CORES) == pytest.approx(1000 * 10 * 1e-9)


def test_the_formulas_of_a_profile():
    """For m points of 16 bytes, 5 m log2 n operations at a share of the peak and 32 m bytes; for twiddles 48 m."""
    machine, m = Machine.load("k-computer"), 10**7
    fft, twiddle = Work("fft", 16 * m, points=1024), Work("twiddle", 16 * m)
    assert work_seconds(fft, machine) == pytest.approx(5 * m * 10 / (0.1 * 0.45 * 128e9) + 32 * m / 64e9)
    assert work_seconds(Work("copy", 16 * m), machine) == pytest.approx(1.2 * 48 * m / 64e9)
    assert work_seconds(twiddle, machine) == pytest.approx(48 * m / 64e9)


def test_what_fits_into_the_cache_twice_is_faster():
    machine = Machine(copy_time=1e-9, fft_time=0, cache=2000, cache_factor=4)
    assert work_seconds(Work("fft", 1000, points=8), machine) == pytest.approx(1000 * 1e-9 / 4)
    assert work_seconds(Work("fft", 1001, points=8), machine) == pytest.approx(1001 * 1e-9)


def test_points_on_pages_of_their_own_take_longer():
    machine = Machine(copy_time=1e-9, fft_time=0, page_factor=3)
    near, far = (Work("fft", 10**6, points=64, stride=stride) for stride in (2048, 4096))
    few = Work("fft", 10**6, points=32, stride=4096)  # a core can read from so many pages side by side
    assert work_seconds(few, machine) == work_seconds(near, machine)
    assert work_seconds(far, machine) == pytest.approx(3 * work_seconds(near, machine))
    cached = Machine(copy_time=1e-9, fft_time=0, page_factor=3, cache=1e7)
    assert work_seconds(far, cached) == work_seconds(near, cached)


def test_times_per_grid_mode_count_with_the_slowest():
    assert work_seconds(Work("twiddle", 100), Machine(copy_time=(1e-9, 2e-9))) == pytest.approx(1.5 * 100 * 2e-9)


def test_a_product_takes_its_operations():
    assert work_seconds(Work("product", 0, flops=1000), Machine(flop_time=2e-9)) == pytest.approx(2e-6)


def test_packing_in_cache_is_faster():
    plan = rote.compile("block[(0),(),()] -> block[(),(0),()]", shape=(64, 64, 64), grid=8)
    block = 64**3 // 8 * 8
    base = {"latency": 0, "byte_time": 0, "step_time": 0, "copy_time": 1e-9, "cache_factor": 4}
    small, large = (duration(*plan.steps, 8, Machine(**base, cache=2 * block + more)).seconds for more in (-1, 0))
    assert small == pytest.approx((1 + 7 / 8) * block * 1e-9) and large == pytest.approx(small / 4)


def test_rough_lengths_take_more_arithmetic():
    """Lines with a prime factor above 13 take longer, where arithmetic decides; memory does not."""
    machine = Machine(copy_time=1e-12, fft_time=1e-9, rough_factor=8)
    smooth, rough = (work_seconds(Work("fft", 1000, points=points), machine) for points in (2**7 * 13, 17))
    assert smooth == pytest.approx(1000 * 1e-9 * log2(2**7 * 13)) and rough == pytest.approx(8000 * 1e-9 * log2(17))
    slow = Machine(copy_time=1e-9, fft_time=1e-15, rough_factor=8)
    assert work_seconds(Work("fft", 1000, points=17), slow) == pytest.approx(1000 * 1e-9)


def test_a_transposition_gains_nothing_from_the_cache():
    """In the cache it is as fast as a copy in memory; in memory each element of a row lies on a page of its own."""
    machine = Machine(copy_time=1e-9, page_factor=3, cache=2000, cache_factor=4)
    near, far = (work_seconds(Work("copy", nbytes), machine) for nbytes in (1000, 1001))
    assert (near, far) == pytest.approx((1000e-9, 3003e-9))


def test_sums_in_cache_are_faster():
    plan = rote.compile("[(),()]+(0) -> block[(0),()]", shape=(64, 64), grid=4)
    base = {"latency": 0, "byte_time": 0, "step_time": 0, "copy_time": 0, "reduce_time": 1e-9, "cache_factor": 4}
    small, large = (duration(*plan.steps, 8, Machine(**base, cache=cache)).seconds for cache in (1e6, 1e4))
    assert large == pytest.approx(3 * 64 * 64 // 4 * 8 * 1e-9) and small == pytest.approx(large / 4)
