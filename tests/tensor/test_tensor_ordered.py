"""Scans, sorts, sets and exact products of split tensors, compared with NumPy on random layouts."""

from __future__ import annotations

import warnings

import keyed
import numpy as np
import ordered
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from marks import examples
from rearranged import pick_case

import rote
from rote import DistTensor


@pytest.fixture(autouse=True)
def silent():
    with rote.config(implicit="allow"):
        yield


@given(st.data())
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.large_base_example])
def test_scans_by_a_ufunc_are_numpys(data):
    """Law: `ufunc.accumulate` of a tensor in any layout is that of the array, NaN, dtype and all."""

    def pick(options):
        return data.draw(st.sampled_from(options))

    dist, function = pick_case(pick, pick([2, 1, 3, 4]), ordered.accumulate)
    array = ordered.values(dist.shape, pick(["i8", "f8", "u1", "?", "f4"]))
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        rote.run(ordered.check_call, dist.grid.size, (dist, function, array))


@given(st.data())
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.large_base_example])
def test_methods_are_numpys(data):
    """Law: `dot`, `trace`, `diagonal` and the scans, as methods, are those of the array in any layout."""

    def pick(options):
        return data.draw(st.sampled_from(options))

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
        with pytest.raises(ValueError, match="wants axis="):
            np.add.accumulate(DistTensor.zeros((2, 2), "block[(0),()]", comm), axis=None)
        with pytest.raises(TypeError, match="complex"):
            np.maximum.accumulate(x.astype("c16"))
        with pytest.raises(TypeError, match="to_global"):
            np.subtract.accumulate(x)

    rote.run(program, 2)
