"""Ranks in different calls: the last rank makes one, the other ranks make another, and all are refused.

Run as a program: `pairs.py first|later threads|mpi RANKS some|rest` tries a part of the pairs. "first" pairs are the
first calls of a communicator, on either rank; in "later" ones, all ranks have made both calls before, which they notice
with ROTE_CHECK=1.
"""

from __future__ import annotations

import faulthandler
import sys
import warnings
from itertools import combinations

import numpy as np
from parts import SOME, share

import rote
import rote.array_api as xp  # noqa: F401 - for the calls
from rote.errors import RoteError
from rote.runtime import as_comm

ROWS, COLUMNS, WHOLE = "block[(0),()]", "block[(),(0)]", "[(),()]"

# Calls that send messages, as expressions: their names are in this module, or in what `operands` gives. No call is the
# beginning of another one.
ELEMENTWISE = """
x + c; x * c; c - x; x == c; x ** c; c + y; x + p; p * x; p + 1; p * 2; 1 / p; abs(p); p > 3; s + s.T; u * w; x + f4
np.sin(p); np.cos(p); np.hypot(x, c); np.where(x > 3, x, c); np.where(m, x, 0); np.where(m, 1, x); np.clip(p, 0, 9)
np.add(x, c, out=y); np.multiply(x, c, out=y); np.add(x, 1, out=c); np.add(p, 1, dtype="f4"); np.divmod(x, c)
np.add(x, y, where=m); np.copyto(x, c); np.nan_to_num(p); p.astype("f4"); p.astype("i8"); p.round(); np.tril(p, 1)
np.tril(p, 2); np.isclose(x, c); p + np.ones(6); xp.meshgrid(u, w)
"""
MOVES = """
x.to_global(); c.to_global(); p.to_global(); x.redistribute(COLUMNS); x.redistribute(WHOLE); c.redistribute(ROWS)
p.redistribute(WHOLE); x.redistribute(COLUMNS, out=c); x.redistribute(COLUMNS, wire="f4"); x.redistribute("[(),()]|(0)")
x.redistribute("block[(0),(1)]", grid=(1, comm.size)); rote.redistribute([x, s], COLUMNS); rote.redistribute([c], ROWS)
move(); move(y); back(); float(number); int(number); complex(number); x.halo(1); x.halo(2)
x.accumulate_halo(np.ones((len(x.local) + 2, 8)), 1)
"""
FUNCTIONS = """
x.sum(axis=0); x.sum(); f4.sum(); p.sum(); x.max(axis=0); x.mean(); x.std(axis=0); x.argmax(); np.any(x > 3)
np.allclose(x, y); np.array_equal(x, c); np.cumsum(x, axis=0); np.sort(x, axis=0); x.sort(0); np.median(x); np.unique(x)
np.histogram(x); np.searchsorted(u, [1.0, 2.0]); np.average(x, weights=c); np.roll(x, 1, axis=0); np.flip(p, 0)
np.diff(x, axis=0); np.concatenate([x, x]); np.concatenate([x, c]); np.pad(x, 1); c.reshape(-1); list(x)
s @ x; x @ v; np.einsum("ij,ij->", x, c); np.einsum("ij->i", p); contraction(); np.linalg.norm(x); np.linalg.eigh(s)
np.linalg.inv(s); np.linalg.qr(s); np.linalg.det(s)
"""
ELEMENTS = """
x[::-1]; x[1:7]; f4[:, 1:5]; c[:, 1:5]; x[[3, 1, 6]]; x[2, 3]; x[x > 3]; x[m]; p[1:3]; p[2]; x[np.arange(8) % 2 == 0]
x.__setitem__(slice(1, 5), 0.0); c.__setitem__(slice(1, 5), 0.0); x.__setitem__(slice(0, 4), x[4:])
x.__setitem__(..., c); x.__setitem__(m, 1); x.__setitem__(m, 2); x.__setitem__((2, 3), 7.0)
"""
OTHERS = """
rote.fft.fftn(x); rote.fft.fftn(z); rote.fft.rfftn(x); rote.fft.ifftn(z); rote.fft.fftshift(x); rote.fft.ifftshift(x)
rote.fft.convolve(x, x); rote.fft.correlate(x, x); f.forward(z); f.forward(z, out=spectrum); f.backward(spectrum)
rote.DistTensor.from_global(np.ones((8, 6)), COLUMNS, comm); rote.random.default_rng(comm=comm)
rote.DistTensor.from_local(x.local, ROWS, (8, 6), comm); rote.DistTensor.from_slices(x.local, x.slices(), (8, 6), comm)
rote.save("pairs.npy", x); rote.save("pairs.npy", c); rote.load("in.npy", ROWS, comm=comm)
rote.contents("in.npy", comm=comm)
"""
TEXT = ELEMENTWISE + MOVES + FUNCTIONS + ELEMENTS + OTHERS
CALLS = [call for line in TEXT.split("\n") for call in line.split("; ") if call]

# Pairs that every run tries: the operands move alike, for different reasons.
ALIKE = [
    ("x + c", "x * c"),
    ("x + p", "x * c"),
    ("np.where(m, x, 0)", "np.add(x, y, where=m)"),
    ("np.sin(p)", "np.cos(p)"),
    ("x.to_global()", "x.redistribute(WHOLE)"),
    ("p + 1", "p.redistribute(WHOLE)"),
    ("p[2]", "p + 1"),
    ("x[m]", "x.__setitem__(m, 1)"),
    ("f.forward(z)", "f.backward(spectrum)"),
    ("rote.fft.fftn(x)", "rote.fft.fftn(z)"),
    ("move()", "back()"),
]
PAIRS = [pair[:: 1 - 2 * (number % 2)] for number, pair in enumerate(combinations(CALLS, 2))]

REFUSALS = ("one call of all ranks", "make different calls", "come in the same order", "one thing on all ranks")


def chosen(part: str) -> list[tuple[str, str]]:
    """The pairs of a part."""
    return ALIKE * (part == SOME) + share(PAIRS, part, 50, of=11)  # a pair takes a tenth of a second


def operands(comm):
    """The operands of the calls, by name."""
    whole, tensor = np.arange(1.0, 49.0).reshape(8, 6), rote.DistTensor.from_global
    x, c = tensor(whole, ROWS, comm), tensor(2 * whole, COLUMNS, comm)
    f = rote.fft.FFT((8, 6), ROWS, comm=comm)
    plan = rote.compile_einsum("ij,ik->jk", [(8, 6), (8, 6)], [ROWS, ROWS], grid=(comm.size,))
    spectrum = f.empty_output()
    spectrum.local[...] = 1
    return {
        "comm": comm,
        "x": x,
        "c": c,
        "f": f,
        "spectrum": spectrum,
        "y": tensor(whole[::-1], ROWS, comm),
        "s": tensor(np.diag(np.arange(1.0, 9.0)), ROWS, comm),
        "p": rote.DistTensor.from_local(whole / comm.size, "[(),()]+(0)", (8, 6), comm),
        "number": rote.DistTensor.from_local(np.array(3.0), "[]+(0)", (), comm),
        "u": tensor(np.arange(8.0), "block[(0)]", comm),
        "w": tensor(np.arange(8.0), "[(0)]", comm),
        "v": tensor(np.arange(6.0), "block[(0)]", comm),
        "m": tensor(whole % 2 == 0, COLUMNS, comm),
        "f4": tensor(whole.astype("f4"), COLUMNS, comm),
        "z": tensor(whole.astype("c16"), ROWS, comm),
        "move": x.move_to(COLUMNS),
        "back": c.move_to(ROWS),
        "contraction": plan.bound(x, x),
    }


def value(call, known):
    """The value of a call, whose text is its file in the traceback of a rank that waits."""
    return eval(compile(call, call, "eval"), globals(), known)


def refused(comm, first, second, later):
    """The error of this rank if the last rank makes the second call and others the first; empty if there is none."""
    known = operands(comm)
    for call in (first, second) * later:
        value(call, known)
    try:
        value(second if comm.rank == comm.size - 1 else first, known)
    except RoteError as error:
        return str(error)
    return ""


def on_threads(ranks, pair, later=False):
    """What the run of a pair on in-process ranks ends with."""
    try:
        return rote.run(refused, ranks, (*pair, later))
    except RoteError as error:  # of ranks that can no longer meet
        return [str(error)]


def on_mpi(ranks, pair, later):
    """What the ranks raise, on a new communicator of MPI's."""
    from mpi4py import MPI

    user = MPI.COMM_WORLD.Dup()
    error = refused(as_comm(user), *pair, later)
    errors = MPI.COMM_WORLD.allgather(error)
    user.Free()
    return errors


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    calls, kind, number, part = sys.argv[1:]
    run, ranks, pairs = {"mpi": on_mpi, "threads": on_threads}[kind], int(number), chosen(part)
    first = rote.runtime.world().rank == 0
    if first:
        np.save("in.npy", np.ones((8, 6)))
    for pair in pairs:
        faulthandler.dump_traceback_later(60, exit=True)
        errors = run(ranks, pair, calls == "later")
        faulthandler.cancel_dump_traceback_later()
        assert all(any(text in error for text in REFUSALS) for error in errors), (pair, errors)
    if first:
        print(f"{len(pairs)} pairs refused")
