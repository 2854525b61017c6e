"""Messages are cut in chunks where the model says that cores would wait for the link otherwise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import rote
from rote import Machine
from rote.runtime.chunking import CHUNKS, chunked
from rote.runtime.operations import Multiply, Operation, lowered

# as measured under 4 ranks of 2 hosts with one link, and what chunks of 128 cubed took there of the time without any
TWO_GBITS = Machine(3.191e-04, 5.602e-09, 8.441e-10, 6.542e-10, 1.626e-03)  # 0.77; of real numbers 0.86
TEN_GBITS = Machine(3.323e-05, 1.474e-09, 7.101e-10, 1.707e-09, 4.565e-04)  # 1.09 to 1.22; of real numbers 1.16
TWO_AT_ONCE = Machine(3.140e-05, 5.858e-09, 1.252e-09)  # by `known_links`; chunks of 64 cubed took 1.4 of the time
TEN_AT_ONCE = Machine(9.685e-05, 3.367e-09, 1.385e-09)
# by `known_links` on another day, when the same chunks took 0.91, 1.06 and 1.13 of the time
FOUR_FAST = Machine(3.160e-05, 2.740e-09, 1.710e-10)
SIX_FAST = Machine(2.680e-05, 1.860e-09, 1.730e-10)
TEN_FAST = Machine(3.020e-05, 1.690e-09, 1.350e-10)  # its times at their extremes, of five starts


@dataclass(frozen=True, slots=True)
class Work(Multiply):
    """Work that goes on along the first mode."""

    @property
    def along(self):
        return 0


def cut(n, itemsize, machine, ranks=4):
    """The chunks of the exchange of a slab transform, None if it is whole, and how often a machine was asked for."""
    asked, dtype = [], np.dtype(f"c{itemsize}")
    shape = (n, n, n if itemsize == 16 else n // 2 + 1)
    plan = rote.compile("block[(0),(),()] -> block[(),(0),()]", shape=shape, grid=ranks, dtype=dtype)
    [move] = lowered(plan, 0)
    before, after = (Operation(Work(), each, each, dtype, dtype) for each in (move.shape, move.out_shape))

    def known():
        asked.append(1)
        return machine

    chunks = chunked([before, move, after], known)[1].chunks
    return (None if chunks is None else chunks.number), len(asked)


@pytest.mark.parametrize(
    "n, itemsize, machine, pays",
    [
        (128, 16, TWO_GBITS, True),
        (256, 16, TWO_GBITS, True),
        (64, 16, TWO_GBITS, False),
        (128, 16, TWO_AT_ONCE, True),
        (64, 16, TWO_AT_ONCE, False),
        (128, 16, TEN_AT_ONCE, False),
        (128, 16, FOUR_FAST, True),
        (128, 16, SIX_FAST, False),
        (128, 16, TEN_FAST, False),
        (128, 16, TEN_GBITS, False),
        (256, 16, TEN_GBITS, False),
        (64, 16, TEN_GBITS, False),
        (128, 16, Machine(), False),
        (128, 16, Machine(byte_time=1e-8), True),
        (128, 16, Machine(byte_time=1e-8, latency=1.0), False),
        (128, 16, Machine(byte_time=1e-8, copy_time=0.0), False),
    ],
)
def test_chunks_are_taken_where_cores_would_wait(n, itemsize, machine, pays):
    """Law: chunks where a link is slower than the cores that feed it, and messages are long; else none."""
    number, _ = cut(n, itemsize, machine)
    assert (number in range(CHUNKS[0], CHUNKS[1] + 1)) == pays
    assert pays or number is None


def test_no_machine_is_asked_for_small_messages():
    """Law: the times of links are wanted once a move, and only where messages are so long that chunks may pay."""
    assert cut(16, 16, TWO_GBITS) == (None, 0)
    assert cut(128, 16, TWO_GBITS)[1] == 1


def test_links_are_measured_once():
    """Laws: a machine that nobody has measured has its messages and copies timed, alike on all ranks, and once."""
    from rote.runtime.tuning import known_links

    def links(comm):
        return known_links(comm), known_links(comm)

    found = rote.run(links, 3)
    assert len({each for pair in found for each in pair}) == 1
    assert found[0][0] != Machine()
    assert rote.run(known_links, 1) == [Machine()]
