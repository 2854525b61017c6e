"""Tensors in runs of in-process ranks: calls that one rank makes alone, and tensors that outlive their run."""

from __future__ import annotations

import re

import numpy as np
import pytest

import rote
from rote.errors import CommError

CALLED = {
    "a method": (lambda x: x.sum(), "lambda x: x.sum()"),
    "a function of NumPy": (lambda x: np.linalg.norm(x), "np.linalg.norm(x)"),
    "an operator": (lambda x: x + x.redistribute("[()]"), 'x.redistribute("[()]")'),
    "a transform": (lambda x: rote.fft.fftn(x), "rote.fft.fftn(x)"),
    "an index": (lambda x: x[2], "x[2]"),
}


@pytest.mark.parametrize("call", CALLED)
def test_the_line_of_a_call_that_one_rank_makes_alone_is_named(call):
    """A function of the package calls the communicator by itself: the error names the line of the program."""
    made, text = CALLED[call]

    def program(comm, wait):
        x = rote.DistTensor.from_global(np.arange(8.0), "block[(0)]", comm)
        if comm.rank == 1:
            made(x)
        elif wait:
            comm.barrier()

    line = rf"`.*{re.escape(text)}.*` \(test_tensor_runs\.py:\d+\)"
    with pytest.raises(CommError, match=rf"rank 1 of 2 waits in {line} for rank 0, which has"):
        rote.run(program, 2, (False,))
    with pytest.raises(CommError, match=rf"rank 0 barrier, rank 1 {line}"):
        rote.run(program, 2, (True,))


def test_what_is_left_of_a_run_that_has_ended_says_so():
    """A tensor or a communicator that is used after its run raises a CommError; its block is there."""

    def program(comm):
        return rote.DistTensor.from_global(np.arange(8.0), "block[(0)]", comm)

    left = []

    def failing(comm):
        left.append(program(comm))
        comm.barrier()
        raise ValueError("lost")

    with pytest.raises(ValueError, match="lost"):
        rote.run(failing, 2)
    for x in (*rote.run(program, 2), *left):
        assert x.local.size == 4
        for use in (x.sum, x.to_global, lambda x=x: x[2], x.comm.barrier, lambda x=x: x.comm.allgather(1)):
            with pytest.raises(CommError, match=r"run of rote\.run .* has ended.*\n.*return x\.to_global\(\)"):
                use()
    assert rote.run(program, 1)[0].sum() == 28.0
