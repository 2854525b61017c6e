"""The time of each sweep of slab transforms over a block, by hand: `mpiexec -n 2 python sweeps.py 128 r2c:256 8x9x10`.

Prints, per transform, nanoseconds per element of a rank's block: forward planes and the lines that are read behind
them, backward lines and the planes that are read. All ranks begin each sweep together; medians over some seconds.
"""

from __future__ import annotations

import sys
import time
from itertools import groupby
from math import prod
from statistics import median

from rote.fft import FFT
from rote.runtime import world

SHAPES = ("128", "r2c:128", "96x160x224", "r2c:96x160x224", "256", "r2c:256", "384", "r2c:384")
SHAPES += ("243", "250", "512x512x64")


def sweeps(comm, shape, real, seconds=4.0, tune="measure"):
    """Seconds of the slowest rank for each sweep, forward and backward: two and two."""
    f = FFT(shape, "block[(0),(),()]", comm=comm, dtype="f8" if real else "c16", algorithm="slab", tune=tune)
    x, X = f.empty_input(), f.empty_output()
    x.local[...] = 1 + comm.rank
    pair, parts = f._bound(), []
    for bound, source, target in ((pair.forward, x, X), (pair.backward, X, x)):
        program = bound._program
        calls = program._calls(source.local, target.local)
        meets = [call == program._double_buffer.barrier for call in calls]
        runs = groupby(zip(meets, calls, strict=True), key=lambda call: call[0])
        parts += [[call for _, call in run] for meet, run in runs if not meet]
    times = [[] for _ in parts]
    begin = time.perf_counter()
    while comm.allgather_object(time.perf_counter() - begin < seconds)[0] or len(times[0]) < 5:
        for part, taken in zip(parts, times, strict=True):
            comm.barrier()
            start = time.perf_counter()
            for call in part:
                call()
            taken.append(time.perf_counter() - start)
    return [max(each) for each in zip(*comm.allgather_object([median(taken) for taken in times]), strict=True)]


def main(comm, names):
    """Print a row per transform."""
    if comm.rank == 0:
        print(f"{'':16}{'planes':>12}{'read lines':>12}{'lines':>12}{'read planes':>12}   ns per element of a block")
    for name in names or SHAPES:
        kind, _, points = name.rpartition(":")
        shape = tuple(map(int, points.split("x"))) if "x" in points else (int(points),) * 3
        row = [1e9 * each * comm.size / prod(shape) for each in sweeps(comm, shape, kind == "r2c")]
        if comm.rank == 0:
            print(f"{name:16}", *(f"{each:12.1f}" for each in row), sep="", flush=True)


if __name__ == "__main__":
    main(world(), sys.argv[1:])
