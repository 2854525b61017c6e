"""The times of moves against a copy of as many bytes, by hand: `mpiexec -n 2 python copy_ratios.py`, or `threads`.

Per move: the ratio with blocks that are read where they lie, with blocks that are packed for it, and with messages; of
the tenths of all rounds that were fastest, and of the medians. Rounds take turns.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from itertools import chain

import numpy as np

import rote
from rote import DistTensor
from rote.runtime import world
from rote.runtime.comm import segments

MOVES = {
    "slab swap": ("block[(0),(),()]", "block[(),(0),()]"),
    "first to last": ("block[(0),(),()]", "block[(),(),(0)]"),
    "last to first": ("block[(),(),(0)]", "block[(0),(),()]"),
    "block to cyclic": ("block[(0),(),()]", "[(0),(),()]"),
    "cyclic to block": ("[(0),(),()]", "block[(0),(),()]"),
    "last: block to cyclic": ("block[(),(),(0)]", "[(),(),(0)]"),
    "last: cyclic to block": ("[(),(),(0)]", "block[(),(),(0)]"),
    "cyclic swap": ("[(0),(),()]", "[(),(),(0)]"),
    "last: tiles of 4 to block": ("[(),(),(0:cyclic(4))]", "block[(),(),(0)]"),
    "last: tiles of 4 to 3": ("[(),(),(0:cyclic(4))]", "[(),(),(0:cyclic(3))]"),
    "last modes swapped": ("a b c: block[(0),(),()]", "a c b: block[(0),(),()]"),
    "permuted view": ("a b c: block[(0),(),()]", "c b a: block[(0),(),()]"),
    "fused rows": ("block[(0),(),()]", "(a b) c: block[(0),()]"),
    "gather all": ("block[(0),(),()]", "[(),(),()]"),
    "partial sums": ("[(),(),()]+(0)", "block[(0),(),()]"),
}


def table(comm, sizes=(32, 64, 128), dtypes=("c16",), seconds=25.0):
    """Print rows of ratios."""
    lines, until = list(chain.from_iterable([(n, d, name) for d in dtypes for name in MOVES] for n in sizes)), seconds
    for n, dtype, name in lines:
        row = ratios(comm, n, np.dtype(dtype), *MOVES[name], until / len(lines))
        if comm.rank == 0:
            print(f"{n:4} {dtype:4} {name:25}", *(f"{key} {text}" for key, text in row.items()), flush=True)


def ratios(comm, n, dtype, source, target, seconds):
    """Times of one move over those of a copy of the block that comes, in rounds that take turns."""
    x = DistTensor.from_local(
        block(rote.parse(source).on((n,) * 3, comm.size).local_shape(comm.rank), dtype), source, (n,) * 3, comm
    )
    packed = x.move_to(target)
    segments.expect(x.local.nbytes)
    own = segments.empty(x.local.shape, dtype)
    own[...] = x.local
    mapped = DistTensor.from_local(own, source, (n,) * 3, comm)
    read, sent = mapped.move_to(target), mapped.move_to(target, method="alltoallv")
    result = read.result.local
    memories = np.ones((2, result.nbytes), np.uint8)
    calls = {"copy": partial(memories[0].__setitem__, ..., memories[1]), "read": read, "packed": packed, "sent": sent}
    moved = read().local.copy()
    assert all(np.array_equal(moved, move().local) for move in (packed, sent))
    times = {name: [] for name in calls}
    begin = time.perf_counter()
    while comm.allgather_object(time.perf_counter() - begin < seconds)[0] or len(times["copy"]) < 5:
        for name, call in calls.items():
            comm.barrier()
            start = time.perf_counter()
            call()
            comm.barrier()
            times[name].append(time.perf_counter() - start)
    low, middle = ({name: np.quantile(each, q) for name, each in times.items()} for q in (0.1, 0.5))
    row = {"ms": f"{1e3 * middle.pop('copy'):6.2f}"}
    copies = low.pop("copy"), np.median(times["copy"])
    return row | {name: f"{low[name] / copies[0]:5.2f} {middle[name] / copies[1]:5.2f}" for name in middle}


def block(shape, dtype):
    """A block of some numbers."""
    return (np.arange(np.prod(shape), dtype=np.int64) % 97).astype(dtype).reshape(shape)


if __name__ == "__main__":
    words = sys.argv[1:]
    sizes = tuple(int(word) for word in words if word.isdigit()) or (32, 64, 128)
    dtypes = tuple(word for word in words if not word.isdigit() and word != "threads") or ("c16",)
    if "threads" in words:
        rote.run(table, 2, (sizes, dtypes))
    else:
        table(world(), sizes, dtypes)
