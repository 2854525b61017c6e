"""Ranks in different calls: rank 0 makes one, the other ranks make another, and all are refused.

Run as a program: `pairs.py first|later threads|mpi some|rest` tries a part of the pairs. "first" pairs are the first
calls of a communicator, on either rank; in "later" ones, all ranks have made both calls before, which they notice with
ROTE_CHECK=1.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from parts import share

import rote
from rote.errors import RoteError
from rote.runtime import as_comm

LAYOUT = "block[(0),()]"
CALLS = {
    "x[::-1]": lambda x, s: x[::-1],
    "x[mask]": lambda x, s: x[np.arange(8) % 2 == 0],
    "x[list]": lambda x, s: x[[3, 1, 6]],
    "x[2,3]": lambda x, s: x[2, 3],
    "x[1:7]": lambda x, s: x[1:7],
    "x[x > 3]": lambda x, s: x[x > 3],
    "x[1:5] = 0": lambda x, s: x.__setitem__(slice(1, 5), 0.0),
    "x[:4] = x[4:]": lambda x, s: x.__setitem__(slice(0, 4), x[4:]),
    "float(x[3,4])": lambda x, s: float(x[3, 4]),
    "sum": lambda x, s: x.sum(axis=0),
    "total": lambda x, s: x.sum(),
    "max": lambda x, s: x.max(axis=0),
    "mean": lambda x, s: x.mean(),
    "std": lambda x, s: x.std(axis=0),
    "argmax": lambda x, s: x.argmax(),
    "cumsum": lambda x, s: np.cumsum(x, axis=0),
    "any": lambda x, s: np.any(x > 3),
    "allclose": lambda x, s: np.allclose(x, x + 1),
    "sort": lambda x, s: np.sort(x, axis=0),
    "median": lambda x, s: np.median(x),
    "unique": lambda x, s: np.unique(x),
    "histogram": lambda x, s: np.histogram(x),
    "searchsorted": lambda x, s: np.searchsorted(np.sort(s[0]), [1.0, 2.0]),
    "roll": lambda x, s: np.roll(x, 1, axis=0),
    "diff": lambda x, s: np.diff(x, axis=0),
    "concatenate": lambda x, s: np.concatenate([x, x], axis=0),
    "pad": lambda x, s: np.pad(x, 1),
    "s + s.T": lambda x, s: s + s.T,
    "redistribute": lambda x, s: x.redistribute("block[(),(0)]"),
    "another grid": lambda x, s: x.redistribute("block[(0),(1)]", grid=(1, x.comm.size)),
    "several": lambda x, s: rote.redistribute([x, s], "block[(),(0)]"),
    "move_to": lambda x, s: x.move_to("block[(),(0)]")(),
    "to_global": lambda x, s: x.to_global(),
    "to a root": lambda x, s: x.redistribute("[(),()]|(0)"),
    "halo": lambda x, s: x.halo(1),
    "fftn": lambda x, s: rote.fft.fftn(x),
    "rfftn": lambda x, s: rote.fft.rfftn(x),
    "fftshift": lambda x, s: rote.fft.fftshift(x),
    "FFT": lambda x, s: rote.fft.FFT((8, 6), LAYOUT, comm=x.comm, dtype="f8").forward(x),
    "matmul": lambda x, s: s @ x,
    "einsum": lambda x, s: np.einsum("ij,ij->", x, x),
    "norm": lambda x, s: np.linalg.norm(x),
    "eigh": lambda x, s: np.linalg.eigh(s),
    "inv": lambda x, s: np.linalg.inv(s),
    "qr": lambda x, s: np.linalg.qr(s),
    "det": lambda x, s: np.linalg.det(s),
    "from_global": lambda x, s: rote.DistTensor.from_global(np.ones((8, 6)), "block[(),(0)]", x.comm),
    "default_rng": lambda x, s: rote.random.default_rng(comm=x.comm),
    "save": lambda x, s: rote.save("pairs.npy", x),
}
PAIRS = [(first, second) for first in CALLS for second in CALLS if first != second]


def chosen(part: str) -> list[tuple[str, str]]:
    """The pairs of a part: of those that are not for every run, a quarter."""
    return share(PAIRS, part, 20, of=8)


def refused(comm, first, second, later):
    """The error of this rank if rank 0 makes the first call and the others the second; empty if there is none."""
    x = rote.DistTensor.from_global(np.arange(1.0, 49.0).reshape(8, 6), LAYOUT, comm)
    s = rote.DistTensor.from_global(np.diag(np.arange(1.0, 9.0)), LAYOUT, comm)
    if later:
        for call in (first, second):
            CALLS[call](x, s)
    try:
        CALLS[second if comm.rank else first](x, s)
    except RoteError as error:
        return str(error)
    return ""


def on_threads(pair, later):
    """What the run of a pair on two in-process ranks ends with."""
    try:
        return [error for error in rote.run(refused, 2, (*pair, later)) if error] or [""]
    except RoteError as error:  # of ranks that can no longer meet
        return [str(error)]


def on_mpi(pair, later):
    """What the ranks raise, on a new communicator of MPI's."""
    from mpi4py import MPI

    user = MPI.COMM_WORLD.Dup()
    error = refused(as_comm(user), *pair, later)
    errors = MPI.COMM_WORLD.allgather(error)
    user.Free()
    return errors


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    calls, ranks, part = sys.argv[1:]
    pairs = chosen(part)
    for pair in pairs:
        errors = (on_mpi if ranks == "mpi" else on_threads)(pair, calls == "later")
        assert all("one call of all ranks" in each or "make different calls" in each for each in errors), (pair, errors)
    if rote.runtime.world().rank == 0:
        print(f"{len(pairs)} pairs refused")
