"""Redistributions of tensors: by any method, however it is found, and whatever the blocks of ranks look like."""

from __future__ import annotations

import numpy as np
import pytest
from hurry import hurry

import rote
from rote import DistTensor
from rote.errors import CommError, PlanError


def moved(comm, tune):
    """An array after a redistribution, in rows."""
    x = DistTensor.from_function(lambda i, j: 10 * i + j, (12, 9), "block[(0),()]", comm)
    return x.redistribute("block[(),(0)]", tune=tune).to_global().tolist()


def test_a_tensor_moves_alike_however_its_method_is_found(tmp_path, monkeypatch):
    """The same values by the model, by timing, and by what was kept; another word is refused."""
    monkeypatch.setenv("ROTE_WISDOM", str(tmp_path))
    hurry(monkeypatch, 0.02, 0.04)
    rows = np.add.outer(10 * np.arange(12), np.arange(9)).tolist()
    for tune in ("model", "measure", "patient", "measure"):
        assert rote.run(moved, 3, (tune,)) == [rows] * 3
    with pytest.raises(PlanError, match="tune is one of model, measure, patient; not 'fast'"):
        rote.run(moved, 2, ("fast",))


def test_an_unknown_method_is_refused():
    """Even where nothing moves."""
    x = DistTensor.zeros((4, 4), "block[(0),()]")
    with pytest.raises(CommError, match=r"method is one of .*; not 'fast'"):
        x.redistribute("block[(0),()]", method="fast")


@pytest.mark.parametrize("ends", [("F", "C"), ("C", "F"), ("C", "C")])
def test_only_some_blocks_are_contiguous(ends):
    """Ranks of one process make the same calls, however the blocks of each lie in memory, the first time and later."""
    whole = np.arange(42).reshape(6, 7)

    def program(comm):
        block = np.array(whole[3 * comm.rank :][:3], order=ends[comm.rank])
        x = DistTensor.from_local(block, "block[(0),()]", (6, 7), comm)
        out = DistTensor.empty((6, 7), "block[(),(0)]", comm, dtype=whole.dtype)
        for factor in (1, 2, 3):
            x.local[...] = factor * whole[3 * comm.rank :][:3]
            assert np.array_equal(x.redistribute(out.layout, out=out).to_global(), factor * whole)

    rote.run(program, 2)
