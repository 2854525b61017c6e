"""A program for any MPI ranks: the datatypes of blocks, for messages and for files, are as cheap for all sizes."""

from __future__ import annotations

import sys
from itertools import product
from math import prod
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import growth
import numpy as np
from compiler import by_messages

import rote
from rote.compiler.movement import SENDS, movement
from rote.runtime import world
from rote.runtime.exchange.collective import Alltoallw
from rote.runtime.exchange.messages import Messages
from rote.runtime.regions import offsets, send_regions

TRANSITIONS = [
    "[(0),()] -> [(),(0)]",
    "block[(0),()] -> block[(),(0)]",
    "[(0),()] -> block[(0),()]",
    "cyclic(3)[(0),()] -> block[(0),()]",
    "cyclic(4)[(),(0)] -> cyclic(3)[(0),()]",
    "cyclic(2)[(),(0)] -> [(),(0)]",
]
OF_TWO_MODES = [
    "[(0),(1)] -> block[(1),(0)]",
    "block[(0),(1)] -> block[(1),(0)]",
    "cyclic(4)[(0),(1)] -> [(0),(1)]",
    "cyclic(3)[(0,1),()] -> block[(0),(1)]",
]


def method(comm, text, shape):
    """A function that makes Alltoallw, of the exchange that a transition is."""

    def prepare(n):
        plan = rote.compile(text, shape=shape(n), grid=comm.size, dtype="c16")
        [step] = [step for step in plan.steps if step.kind in ("alltoall", "exchange")]
        messages = Messages.of(step, np.dtype("c16"), comm)
        return lambda: Alltoallw(messages)

    return prepare


def datatypes(comm, text, shape):
    """A function that makes the datatypes of a rank of a grid of two modes; the world need not have as many ranks."""
    kind = comm.datatype(np.dtype("c16"))

    def make(n):
        ends = [rote.parse(each).on(shape(n), (2, 2)) for each in text.split(" -> ")]
        places = [each for side in offsets(movement(*ends), 3, 16) for each in side.values()]
        made = [comm.product(kind, modes) for modes in places]
        assert sum(each.kind.Get_size() for each in made[: len(made) // 2]) == 16 * prod(ends[0].local_shape(3))

    return lambda n: lambda: make(n)


PACKED = [
    ("cyclic(30)[(0)] -> cyclic(77)[(0)]", (9001,), 3, True),
    ("cyclic(30)[(0),()] -> cyclic(77)[(0),()]", (9001, 3), 3, True),
    ("cyclic(30)[(),(0)] -> cyclic(77)[(),(0)]", (3, 9001), 3, True),
    ("cyclic(3)[(0),()] -> block[(),(0)]", (40, 23), 3, False),
    ("block[(0),()] -> block(ceil)[(0),()]", (41, 6), 5, False),
    ("cyclic(4)[(0,1),()] -> cyclic(3)[(0),(1)]", (50, 31), (2, 2), False),
    ("(a b): cyclic(5)[(0)] -> block[(0),()]", (7, 9), 4, False),
]


def packs(comm, text, shape, grid, listed):
    """MPI packs the very messages that regions pack, of every rank; from lattices, and where need be from lists."""
    before, after = (rote.parse(each).on(shape, grid) for each in text.split(" -> "))
    every = movement(before, after).messages(0, SENDS)[0].groups
    assert any(group.listed == listed for group in every), text
    kind = comm.datatype(np.dtype("f8"))
    for rank in range(before.grid.size):
        block = np.random.default_rng(rank).random(before.local_shape(rank))
        leaving, _ = offsets(movement(before, after), rank, 8)
        for region in send_regions(movement(before, after), rank):
            packed = np.empty(region.shape)
            datatype = comm.product(kind, leaving[region.peer])
            memory = block.reshape(-1).view("u1")[datatype.start :]
            elements, message = [memory, 1, datatype.kind], [packed, packed.size, kind]
            comm.handle.Sendrecv(elements, comm.rank, recvbuf=message, source=comm.rank)
            assert packed.tobytes() == by_messages.packed(region, block).tobytes(), (text, rank, region.peer)


def main():
    comm = world()
    done = 0
    for case in PACKED:
        packs(comm, *case)
        done += 1
    for text, shape in product(TRANSITIONS, growth.SHAPES):
        growth.check(method(comm, text, shape), f"alltoallw of {text}")
        done += 1
    for text, shape in product(OF_TWO_MODES, growth.SHAPES):
        growth.check(datatypes(comm, text, shape), f"datatypes of {text}")
        done += 1
    if comm.rank == 0:
        print(done)


if __name__ == "__main__":
    main()
