"""Slab transforms pass over a block twice in each direction, as the floor of tests/bench/suite.py counts."""

from __future__ import annotations

import numpy as np
import pytest
from bench import suite
from sweeps import sweeps

import rote
from rote.bench.cases import Work


@pytest.mark.parametrize("dtype", ["c16", "f8"])
def test_sweeps_are_those_of_the_floor(dtype):
    """Law: a slab transform makes no more sweeps than the floor has, and the profile times each of them."""
    (times, other) = rote.run(sweeps, 2, ((16, 18, 20), dtype == "f8", 0.01, "model"))
    assert times == other
    assert min(times) > 0
    assert len(times) == suite.sweeps(Work((16, 18, 20), np.dtype(dtype), 2), 1)
