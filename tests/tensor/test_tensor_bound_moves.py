"""Moves that are called again and again, on in-process ranks and on MPI ranks."""

from __future__ import annotations

from pathlib import Path

import bound_moves
import numpy as np
import pytest
from marks import make_checks, mpi_parts, parts_of

import rote
from rote import DistTensor

PROGRAM = Path(__file__).with_name("bound_moves.py")


@pytest.mark.parametrize(("ranks", "check", "args"), parts_of(bound_moves.CHECKS, 1, 2, 3, 4))
def test_on_ranks_of_this_process(ranks, check, args):
    """Bound moves on in-process ranks do what they must."""
    rote.run(check, ranks, args)


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "part"), mpi_parts(), indirect=["job"])
def test_on_mpi_ranks(job, part):
    """Bound moves on MPI ranks do too."""
    make_checks(job, PROGRAM, bound_moves.CHECKS, part)


@pytest.mark.parametrize("ranks", (1, 2))
def test_what_is_no_tensor_is_no_out(ranks):
    """An array, or a communicator where `out` is meant, is refused with a cure, for large and small blocks."""

    def program(comm):
        for extent in (4, 1200):
            x = DistTensor.zeros((extent, extent), "block[(0),()]", comm)
            for out in (np.zeros((4, 2)), comm):
                with pytest.raises(TypeError, match=r"^out is a DistTensor, not \w+\nwrite out=DistTensor.empty"):
                    x.redistribute("block[(),(0)]", out)

    rote.run(program, ranks)


def test_a_stale_result_is_found_out():
    """The comparison can fail: a move that keeps what it moved first is another one."""

    def program(comm):
        x = DistTensor.from_global(bound_moves.numbers((4, 4), 0), "block[(0),()]", comm)
        move = x.move_to("block[(),(0)]")
        move()
        bound_moves.fill(x, 1)
        bound_moves.same(move.result, x.redistribute("block[(),(0)]"))

    with pytest.raises(AssertionError, match="DistTensor"):
        rote.run(program, 2)
