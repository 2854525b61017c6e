"""Element-wise functions and reductions cost little more than NumPy does on the same block."""

from __future__ import annotations

import timeit

import numpy as np
import pytest

from rote import DistTensor

pytestmark = pytest.mark.perf

CALLS = {
    "add": lambda x, y: x + y,
    "scale": lambda x, y: 2.5 * x,
    "in place": lambda x, y: np.add(x, y, out=x),
    "exp": lambda x, y: np.exp(x),
    "compare": lambda x, y: x < y,
    "clip": lambda x, y: np.clip(x, 0.25, 0.5),
    "where": lambda x, y: np.where(True, x, y),
    "sum": lambda x, y: x.sum(),
    "sum along": lambda x, y: np.sum(x, axis=0),
    "max": lambda x, y: x.max(),
    "mean": lambda x, y: x.mean(),
    "std": lambda x, y: x.std(),
    "any": lambda x, y: x.any(),
    "argmax": lambda x, y: x.argmax(),
}


def python_calls() -> None:
    """A hundred calls of a function of Python: they measure the machine, which may be slow for a while."""
    table = {"key": 1}
    for _ in range(100):
        _look_up(table, "key")


def _look_up(table: dict[str, int], key: str) -> int:
    return table[key]


@pytest.mark.parametrize("points", [16, 40_000])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_costs_little_more_than_numpys(name, points):
    """At most 1.2 times NumPy on the block and 600 calls of Python: the quickest of calls that take turns."""
    call, rng = CALLS[name], np.random.default_rng(0)
    arrays = [rng.random((points // 8, 8)) for _ in range(2)]
    tensors = [DistTensor.from_global(array, "block[(0),()]") for array in arrays]
    times: tuple[list[float], ...] = ([], [], [])
    for _ in range(41):
        for run, taken in zip((lambda: call(*tensors), lambda: call(*arrays), python_calls), times, strict=True):
            taken.append(timeit.timeit(run, number=10) / 10)
    ours, numpys, pythons = map(min, times)
    assert ours <= 1.2 * numpys + 6 * pythons, (ours, numpys, pythons)
