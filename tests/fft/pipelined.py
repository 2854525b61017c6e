"""A program for MPI ranks: transforms whose messages travel in chunks, against those that send and wait.

Under mpiexec: `python pipelined.py number`. It prints a line of JSON on rank 0: what was counted, over all ranks.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from execute.methods import on_nodes

import rote
from rote import DistTensor, Machine
from rote.fft import FFT
from rote.runtime.exchange.point_to_point import Calls, Pipelined

LAYOUTS = {  # by order, with grids of how many modes
    1: (("block[(0)]", 1), ("[(0)]", 1)),
    2: (("block[(0),()]", 1), ("[(0:cyclic(2)),()]", 1), ("block[(),(0)]", 1)),
    3: (("block[(0),(),()]", 1), ("[(),(0),()]", 1), ("block[(0),(1),()]", 2), ("[(0),(1:cyclic(3)),()]", 2)),
    4: (("block[(0),(),(),()]", 1), ("block[(0),(1),(),()]", 2)),
}
DTYPES = ("c16", "f8", "c8", "f4")
EXTENTS = (1, 2, 3, 4, 5, 8, 12, 17, 32)


class Log:
    """The calls of a rank while it is on: the messages that leave, their bytes, and the steps of work."""

    def __init__(self):
        self.events, self.bytes = [], 0

    def __enter__(self):
        send, do = Calls.send, Pipelined._do

        def sends(calls, message, peer):
            self.events.append("send")
            self.bytes += message.nbytes
            return send(calls, message, peer)

        def does(method, work):
            self.events.append("work")
            return do(method, work)

        self._patches = [patch.object(Calls, "send", sends), patch.object(Pipelined, "_do", does)]
        for each in self._patches:
            each.start()
        return self

    def __exit__(self, *error):
        for each in self._patches:
            each.stop()


def random(f, seed):
    """A tensor of random numbers, the same on all ranks that hold an element."""
    shape, dtype = f.input_shape, np.dtype(f.walk.dtype)
    numbers = np.random.default_rng(seed)
    array = numbers.standard_normal(shape) + 1j * numbers.standard_normal(shape) * (dtype.kind == "c")
    array = (array if dtype.kind == "c" else array.real).astype(dtype)
    return array, DistTensor.from_global(array, f.input_layout, f.comm, f.grid)


def there_and_back(f, x):
    """The spectrum, and what comes back, in new memory, twice: what rests from a call does not matter."""
    for _ in range(2):
        spectrum = f.forward(x)
        back = f.backward(spectrum)
    return spectrum, back


def check_bits(comm, number):
    """Chunks give the bits of whole messages, and NumPy's numbers, on random layouts, shapes and dtypes."""
    pick, chunks = np.random.default_rng(1), 0
    for case in range(number):
        order = int(pick.choice((1, 2, 3, 3, 4)))
        layout, modes = LAYOUTS[order][pick.integers(len(LAYOUTS[order]))]
        shape = tuple(int(pick.choice(EXTENTS)) for _ in range(order))
        grid = rote.Grid.of(comm.size, modes)
        dtype, threads = DTYPES[pick.integers(4)], int(pick.choice((1, 1, 1, 1, 2)))
        kinds = {0: "dct2"} if dtype[0] == "f" and pick.random() < 0.3 else None
        known = {"grid": grid, "comm": comm, "dtype": dtype, "kinds": kinds, "threads": threads, "norm": "ortho"}
        whole, cut = (FFT(shape, layout, method=method, **known) for method in ("isend", "pipelined"))
        array, x = random(whole, case)
        found = [there_and_back(f, x) for f in (whole, cut)]
        for one, other in zip(*found, strict=True):
            assert one.local.tobytes() == other.local.tobytes(), (layout, shape, dtype)
        assert np.allclose(found[1][1].to_global(), array, atol=1e-3 if dtype in ("c8", "f4") else 1e-10)
        pair = cut._bound()
        for walk in (pair.forward, pair.backward):
            transport = walk._program
            chunks += sum(len(move._chunks) > 1 for move in getattr(transport, "moves", ()) if move.name)
    return chunks


def check_families(comm):
    """The same of walks whose work does not go on along a mode of what moves: none of it is sent before it is made."""
    for shape, algorithm in (((12, 6, 9), "rows"), ((12, 10, 8), "rows"), ((36, 36), "cyclic")):
        whole, cut = (FFT(shape, comm=comm, algorithm=algorithm, method=name) for name in ("isend", "pipelined"))
        _, x = random(whole, 0)
        found = [there_and_back(f, x) for f in (whole, cut)]
        for one, other in zip(*found, strict=True):
            assert one.local.tobytes() == other.local.tobytes(), (shape, algorithm)


def check_messages(comm):
    """Bytes are those of whole messages, half as many for real numbers; each peer has one message per chunk."""
    shape, counted = (32, 32, 64), {}
    for method in ("isend", "pipelined"):
        for dtype in ("c16", "f8"):
            f = FFT(shape, "block[(0),(),()]", comm=comm, dtype=dtype, algorithm="slab", method=method)
            x = random(f, 0)[1]
            with Log() as log:
                f.forward(x)
            counted[f"{method} {dtype}"] = log.events.count("send"), log.bytes
            back = f.forward(x)
            with Log() as log:
                f.backward(back)
            assert (log.events.count("send"), log.bytes) == counted[f"{method} {dtype}"]
    f = FFT(shape, "block[(0),(),()]", comm=comm, algorithm="slab", resample=(16, 16, 32), method="pipelined")
    x = random(f, 0)[1]
    with Log() as log:
        f.forward(x)
    counted["cut"] = log.events.count("send"), log.bytes
    return counted


def check_overlap(comm):
    """The first messages leave before the last plane is transformed; nothing is waited for but what is needed."""
    f = FFT((64, 64, 64 * comm.size), "block[(0),(),()]", comm=comm, algorithm="slab", method="pipelined")
    x = random(f, 0)[1]
    with Log() as log:
        spectrum = f.forward(x)
    with Log() as back:
        f.backward(spectrum)
    first, last = log.events.index("work"), len(log.events) - log.events[::-1].index("send")
    return {
        "work before the first message": log.events.index("send") - first,
        "work between messages": log.events[log.events.index("send") : last].count("work"),
        "work behind them": log.events[last:].count("work"),
        "back": back.events.count("work"),
    }


def order(comm):
    """The calls of a slab transform: R and S start to receive and to send, w is work, c a copy, F waits for a chunk."""
    names = {"_receive": "R", "_send": "S", "_do": "w", "_wait": "F"}
    f = FFT((64, 64, 64 * comm.size), "block[(0),(),()]", comm=comm, algorithm="slab", method="pipelined")
    calls = f._bound().forward.bound(f.empty_input().local, f.empty_output().local)
    return "".join(names.get(getattr(call.func, "__name__", ""), "c") for call in calls)


def check_workspace(comm):
    """Scratch is what `workspace_bytes` says, and is at most that of two blocks and all messages."""
    f = FFT((36, 36, 32), "block[(0),(),()]", comm=comm, algorithm="slab", method="pipelined")
    block = 36 * 36 * 32 * 16 // comm.size
    messages = 2 * (block - block // comm.size)
    scratch = f._bound().workspace.scratch
    return f.workspace_bytes == sum(each.nbytes for each in scratch) <= 2 * max(block, messages) + 256


def check_choice(comm):
    """What is taken where ranks are on several nodes: chunks, if the model says that they pay; else none."""
    names = []
    for n, machine in ((4, None), (128, Machine(byte_time=1e-8)), (128, Machine(latency=0.05, byte_time=1e-8))):
        f = FFT((n, n, n), "block[(0),(),()]", comm=comm, algorithm="slab", machine=machine)
        names.append(f._bound().forward._program.moves[0].name)
    return names


if __name__ == "__main__":
    comm = rote.runtime.world().split(0, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rote.GatherWarning)  # of cosines along an axis that is split
        chunked = check_bits(comm, int(sys.argv[1]))
        check_families(comm)
    found = {
        "chunked": chunked,
        "messages": check_messages(comm),
        "overlap": check_overlap(comm),
        "order": order(comm),
        "workspace": check_workspace(comm),
    }
    with on_nodes(1):
        found["choice"] = check_choice(rote.runtime.world().split(0, 0))
    every = comm.allgather_object(found)
    if comm.rank == 0:
        print(json.dumps(every))
