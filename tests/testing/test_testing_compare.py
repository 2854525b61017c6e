"""`assert_equal` finds exactly the wrong elements, and says where the first of them lies."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import examples

import rote
from rote.testing import assert_equal, dist_tensors, distributions, grids


@settings(max_examples=examples(120))
@given(dist_tensors(distributions(grid=grids(6)), "int64"), st.data())
def test_the_first_wrong_element_is_named(case, data):
    """What is equal passes, in every layout; else all ranks name the wrong element of the lowest index, an owner of it
    and where it lies in that rank's block."""
    wanted, dist = case.array.copy(), case.distribution
    assert case.run(lambda x: assert_equal(x, case.array)) == [None] * case.ranks
    if not wanted.size:
        return
    wrong = data.draw(st.lists(st.integers(0, wanted.size - 1), min_size=1, max_size=3))
    wanted.flat[wrong] += 100
    first = np.unravel_index(min(wrong), wanted.shape)

    def said(x):
        with pytest.raises(AssertionError) as error:
            assert_equal(x, wanted)
        return str(error.value)

    texts = case.run(said)
    assert len(set(texts)) == 1
    found = re.match(r"x\[(.*?)\] is (-?\d+), not (-?\d+): rank (\d+) holds it at \[(.*?)\]", texts[0])
    index, place = (tuple(map(int, text.split(", "))) if text else () for text in (found[1], found[5]))
    rank = int(found[4])
    assert index == tuple(map(int, first))
    assert (int(found[2]), int(found[3])) == (int(case.array[index]), int(wanted[index]))
    if not dist.partial:
        held = np.broadcast_arrays(*dist.tensor_indices(rank), np.empty(dist.local_shape(rank)))[:-1]
        assert tuple(int(each[place]) for each in held) == index
        assert case.run(lambda x: x.local)[rank][place] == case.array[index]


def test_nan_tolerance_and_shape():
    """NaN equals NaN; values as far apart as the tolerance pass, farther ones do not; other shapes are refused."""

    def program(comm):
        x = rote.DistTensor.from_global(np.array([1.0, np.nan, 3.0]), "[(0)]", comm)
        assert_equal(x, [1.0, np.nan, 3.0])
        assert_equal(x, [1.0, np.nan, 3.0 + 1e-9], rtol=1e-6)
        assert_equal(x * 0 + 2, [2, np.nan, 2], atol=0.1)
        with pytest.raises(AssertionError, match=r"x\[2\] is 3.0, not 3.1"):
            assert_equal(x, [1.0, np.nan, 3.1], atol=0.05)
        with pytest.raises(AssertionError, match="2 elements are wrong on 2 ranks"):
            assert_equal(x, 1.0)
        with pytest.raises(AssertionError, match=r"shape \(3,\), the array \(2,\)"):
            assert_equal(x, [1.0, 2.0])
        with pytest.raises(TypeError, match="a tensor is compared, not ndarray"):
            assert_equal(np.ones(3), np.ones(3))
        assert_equal(rote.DistTensor.from_global(np.ones((2, 2)), "[(0),()]", comm), 1)

    rote.run(program, ranks=2)
