"""Lists of tensors that are redistributed together: as one by one, in as few messages as one takes."""

from __future__ import annotations

from collections import Counter

import lists
import numpy as np
import pytest
from effort import meetings
from marks import parts_on

import rote
from rote import DistTensor
from rote.errors import LayoutError
from rote.runtime import bundle


@pytest.mark.parametrize(("ranks", "number"), parts_on(1, 2, 4, 6, some=4, rest=40))
def test_lists_are_redistributed_as_one_by_one(ranks, number):
    """Law: tensors of any shapes, dtypes and layouts come out as by themselves, bit for bit; the old ones stay."""
    compared = rote.run(lists.check, ranks, (number,))
    assert min(compared) == max(compared) >= 3 * number


@pytest.mark.parametrize("limits", ({"_SMALL": 100}, {"_MOST": 300}))
def test_large_tensors_go_by_themselves(monkeypatch, limits):
    """Law: where tensors are too large to share messages, or too many to go at once, they come out alike."""
    for name, nbytes in limits.items():
        monkeypatch.setattr(bundle, name, nbytes)
    assert min(rote.run(lists.check, 3, (4,))) >= 3 * 4


@pytest.fixture
def calls(monkeypatch):
    """How often rank 0 of this process has met the others, by the name of the call."""
    return meetings(
        monkeypatch,
        type(rote.run(lambda comm: comm, 2)[0]),
        ("alltoallv", "allgatherv", "barrier", "share_reference", "allgather_object"),
    )


def test_messages_do_not_grow_with_the_number_of_tensors(calls):
    """Law: a hundred tensors of several shapes and dtypes cost one message per pair of ranks."""

    def program(comm):
        meetings = []
        for number in (1, 10, 100):
            tensors = [
                DistTensor.zeros((8, 5 + n % 3), "block[(0),()]", comm, dtype=("f8", "i2")[n % 2])
                for n in range(number)
            ]
            rote.redistribute(tensors, "block[(),(0)]")
            before = calls.copy()
            rote.redistribute(tensors, "block[(),(0)]")
            meetings.append(calls - before)
        return meetings

    assert rote.run(program, 3)[0] == [Counter({"alltoallv": 1})] * 3


def test_lists_are_traced_tensor_by_tensor():
    """Law: the record has a move per tensor; an empty list moves nothing."""

    def program(comm):
        tensors = [DistTensor.zeros((4, 4), "block[(0),()]", comm), DistTensor.zeros(6, "block[(0)]", comm)]
        with rote.trace() as moves:
            rote.redistribute(tensors, ["block[(),(0)]", "[(0)]"])
            assert rote.redistribute([], "block[(0)]") == []
        return [(move.cause, move.nbytes, move.implicit) for move in moves]

    assert rote.run(program, 2)[0] == [("redistribute", 32, False), ("redistribute", 8, False)]


def test_wrong_lists_are_refused_on_all_ranks():
    """Each mistake by its name, on every rank, and the ranks can go on."""

    def program(comm):
        rows = DistTensor.zeros((4, 6), "block[(0),()]", comm)
        line = DistTensor.zeros(6, "block[(0)]", comm)
        other = DistTensor.zeros(6, "block[(0)]", comm.split(0, comm.rank))
        for error, text, tensors, layouts in (
            (LayoutError, "2 tensors want as many layouts, or one for all; not 1", [rows, line], ["block[(),(0)]"]),
            (LayoutError, "order", [rows, line], "block[(),(0)]"),
            (LayoutError, "the one at 1 has another", [line, other], "[(0)]"),
            (TypeError, "the one at 1 is a ndarray", [line, np.zeros(6)], "[(0)]"),
            (TypeError, r"write x.redistribute\(layout\) for one", line, "[(0)]"),
            (
                LayoutError,
                r"the one at 0 is block\[\(0\),\(\)\] on .* on rank 0 and block\[\(0\)\] on .* on rank 1",
                [line, rows] if comm.rank else [rows, line],
                ["[(0)]", "block[(),(0)]"] if comm.rank else ["block[(),(0)]", "[(0)]"],
            ),
            (LayoutError, "the one at 1 is nothing on rank 0", [line, line] if comm.rank else [line], "[(0)]"),
        ):
            with pytest.raises(error, match=text):
                rote.redistribute(tensors, layouts)
            comm.barrier()
        return rote.redistribute([line], "[()]")[0].local.shape

    assert rote.run(program, 2) == [(6,), (6,)]
