"""Tensors whose elements travel in single precision: copies are alike, lists as one by one, other dtypes refused."""

from __future__ import annotations

import numpy as np
import pytest

import rote
from rote import DistTensor
from rote.errors import PlanError


def test_copies_are_alike_on_all_ranks():
    """Law: whatever rounds, ranks that hold one element hold one value."""

    def program(comm):
        values = np.random.default_rng(comm.rank).random(6)
        partial = DistTensor.from_local(values, "[()]+(0)", 6, comm)
        split = DistTensor.from_global(np.linspace(0, 1, 7), "block[(0)]", comm)
        rooted = split.redistribute("[()]|(0)")
        moved = [x.redistribute("[()]", method="alltoallv", wire="f4") for x in (partial, split, rooted)]
        comm.cache["double buffer"] = None  # so that lists are sent
        moved += rote.redistribute([split, split], "[()]", wire="f4")
        return [x.local.tobytes() for x in moved]

    first, *others = rote.run(program, 3)
    assert others == [first] * 2
    gathered = np.linspace(0, 1, 7).astype("f4").astype("f8").tobytes()
    assert [gathered == each for each in first] == [False, True, False, True, True]


def test_lists_are_rounded_as_one_by_one():
    """Law: by messages, tensors that share them are as by themselves; a dtype that has no narrower one is refused."""

    def program(comm):
        comm.cache["double buffer"] = None
        rng = np.random.default_rng(0)
        tensors = [DistTensor.from_global(rng.random((5, n)), "block[(0),()]", comm) for n in (4, 4, 7)]
        tensors.append(DistTensor.from_global(rng.random((3, 3)) * 1j, "block[(0),()]", comm))
        together = rote.redistribute(tensors, "[(),(0)]", wire="f4")
        alone = [x.redistribute("[(),(0)]", method="alltoallv", wire="f4") for x in tensors]
        exact = [x.redistribute("[(),(0)]") for x in tensors]
        counts = DistTensor.from_global(np.arange(12).reshape(3, 4), "block[(0),()]", comm)
        with pytest.raises(PlanError, match="the elements are int64"):
            rote.redistribute([*tensors, counts], "[(),(0)]", wire="f4")
        return [[x.local.tobytes() for x in each] for each in (together, alone, exact)]

    for together, alone, exact in rote.run(program, 3):
        assert together == alone != exact


@pytest.mark.parametrize("dtype", ("f4", "c8", "i8", "?", "g"))
def test_other_dtypes_are_refused(dtype):
    """On all ranks, with the cure, also where nothing moves; and so is another precision."""

    def program(comm, dtype, wire):
        DistTensor.zeros((4, 4), "block[(0),()]", comm, dtype=dtype).redistribute("block[(0),()]", wire=wire)

    with pytest.raises(PlanError, match=f"f8 and c16, and the elements are {np.dtype(dtype)}\nleave wire out"):
        rote.run(program, 2, (dtype, "f4"))
    with pytest.raises(PlanError, match=r"wire='f2' is no precision .*\nwrite wire='f4'"):
        rote.run(program, 2, ("f8", "f2"))
