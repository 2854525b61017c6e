"""A program of which one rank alone ends in some way, while the others go on: `python ends.py WAY` under mpiexec."""

from __future__ import annotations

import os
import signal
import sys

import numpy as np

import rote

ROWS, COLUMNS = "block[(0),()]", "block[(),(0)]"


def _interrupted(*indices: np.ndarray) -> np.ndarray:
    raise KeyboardInterrupt


# What rank 1 does, by its name, with a tensor whose moves are prepared. Each is an error that it alone knows.
WAYS = {
    "raises": lambda x: 1 / 0,
    "exits": lambda x: sys.exit("no such station"),
    "exits with a status": lambda x: sys.exit(3),
    "exits with 0": lambda x: sys.exit(0),
    "is interrupted": lambda x: signal.raise_signal(signal.SIGINT),
    "is interrupted in a function of the user": lambda x: rote.DistTensor.from_function(_interrupted, (6, 6), ROWS),
    "leaves": lambda x: x,
    "has no memory": lambda x: np.empty(1 << 60),
    "mistypes a layout": lambda x: x.redistribute("block[(0),()"),
    "names no mode": lambda x: x.sum(axis=7),
    "gives an output that is read-only": lambda x: x.redistribute(COLUMNS, out=_shut(x)),
    "calls another function": lambda x: x.sum(axis=0),
    "dies": lambda x: os._exit(3),
    "is killed": lambda x: os.kill(os.getpid(), signal.SIGKILL),
}


def _shut(x: rote.DistTensor) -> rote.DistTensor:
    dist = rote.parse(COLUMNS).on(x.shape, x.grid)
    block = np.zeros(dist.local_shape(x.comm.rank))
    block.flags.writeable = False
    return rote.DistTensor(block, dist, x.comm)


def program(comm: rote.runtime.Comm, way: str) -> str:
    """What the ranks do; the others come to a call that is prepared, if the way is known to be seen there, or new."""
    x = rote.DistTensor.from_global(np.ones((6, 6)), ROWS, comm)
    y = x.redistribute(COLUMNS)
    for _ in range(2):
        x.redistribute(COLUMNS, out=y)
    if comm.rank == 1:
        WAYS[way](x)
        if way in ("leaves", "calls another function"):
            return "too early"
    elif way in ("leaves", "exits with 0", "calls another function"):
        x.mean(axis=0)
    else:
        x.redistribute(COLUMNS, out=y)
    x.redistribute("[(),(0)]")
    return "as if nothing had been"


if __name__ == "__main__":
    print(rote.run(program, 3, (sys.argv[1],)))
