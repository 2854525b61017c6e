"""What is prepared for blocks by where they lie is right for all that ever lie there, and keeps none alive."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from execute import addresses
from launch import mpirun

import rote
from rote.runtime.comm.cache import AtAddresses
from rote.runtime.ends import PreparedRuns


@pytest.mark.parametrize("ranks", (1, 2, 3))
def test_blocks_may_come_and_go_on_threads(ranks):
    """Moves of new blocks at old addresses take their values, bit for bit, and hold none of them."""
    rote.run(addresses.check_moves, ranks)


@pytest.mark.mpi
def test_blocks_may_come_and_go_on_processes():
    """The law of threads, where blocks lie in memory that processes share, and calls are prepared more than once."""
    done = mpirun(3, Path(addresses.__file__))
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "as new\n")


def test_calls_are_found_again_by_place_and_state():
    """Arrays elsewhere, and those in another state, have calls of their own; the oldest of many places goes first."""
    prepared, memory, made = AtAddresses(), np.zeros((40, 2)), []

    def make(arrays):
        made.append(arrays[0])
        return len(made)

    assert [prepared([row], make) for row in (memory[0], memory[1], memory[0])] == [1, 2, 1]
    assert [prepared([memory[0]], make, state) for state in ("a", "b", "a")] == [3, 4, 3]
    memory[1] = 7
    assert made[1].tolist() == [7, 7] and made[1].base is not memory
    for row in memory:
        prepared([row], make)
    count = len(made)
    assert prepared([memory[-1]], make) == count and prepared([memory[0]], make) == count + 1


def test_ranks_let_go_of_the_same_prepared_runs():
    """Which pairs stay depends on how many came later, not on `id`s, which come again on one rank and not elsewhere."""

    class Tensor:
        pass

    def kept(reuse):
        prepared, pairs, stay = PreparedRuns(), [(Tensor(), Tensor()) for _ in range(3)], []
        for x, out in pairs:
            prepared.keep((id(x), id(out)), x, out, "stays")
        for number in range(40):
            x, out = Tensor(), Tensor()
            prepared.keep((0, 0) if reuse else (number, 0), x, out, "goes")
            stay.append([(id(a), id(b)) in prepared.runs for a, b in pairs])
            del x, out
            assert ((0, 0) if reuse else (number, 0)) not in prepared.runs
        assert len(prepared.runs) <= 3
        return stay

    assert kept(True) == kept(False)
    assert kept(True)[0] == [True] * 3 and kept(True)[-1] == [False] * 3
