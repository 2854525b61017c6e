"""Calls to which the last rank gives something else: all ranks refuse them when their work is made first.

`check(comm)` makes them on in-process ranks; `python apart.py` under mpiexec on ranks of MPI.
"""

from __future__ import annotations

import numpy as np
import pytest

import rote
from rote import DistTensor
from rote.errors import CommError, LayoutError
from rote.runtime import world


def check(comm):
    """Law: all ranks get the same error, that names the call, and the next call is right."""
    last = comm.rank == comm.size - 1
    whole = np.arange(48.0).reshape(8, 6)

    def tensor(layout="block[(0),()]"):
        return DistTensor.from_global(whole, layout, comm)

    def read_only(x):
        x.local.flags.writeable = not last
        return x

    mixed = tensor().astype("f4" if last else "f8")
    calls = {
        "redistribute": [
            lambda: tensor().redistribute("[(),(0)]" if last else "block[(),(0)]"),
            lambda: tensor().redistribute("[(),(9)]" if last else "[(),()]"),
            lambda: tensor().redistribute("block[(),(1)]" if last else "block[(0),(1)]", grid=(1, comm.size)),
            lambda: mixed.redistribute("block[(),(0)]"),
        ],
        "sum": [
            lambda: mixed.sum(),
            lambda: tensor().sum(axis=None if last else 0),
            lambda: tensor().sum(dtype="f4" if last else "f8"),
        ],
        "flip": [lambda: np.flip(tensor(), 0 if last else (0, 1))],
        "quantile": [lambda: np.quantile(tensor(), 0.5 if last else 0.25)],
        "trace": [lambda: np.trace(tensor(), 1 if last else 0)],
        "unique": [lambda: np.unique(mixed, return_counts=True)],
        "fftn": [lambda: rote.fft.fftn(mixed), lambda: rote.fft.fftn(tensor(), norm="ortho" if last else None)],
        "FFT": [
            lambda: (
                rote.fft.FFT((8, 6), "block[(0),()]", comm=comm, method="shared" if last else "auto").workspace_bytes
            )
        ],
        "halo": [lambda: tensor().halo(2 if last else 1)],
        "shift": [lambda: rote.fft.fftshift(tensor(), axes=0 if last else 1)],
        "out": [
            lambda: tensor().move_to("block[(),(0)]", out=read_only(tensor("block[(),(0)]"))),
        ],
    }
    for name, each in calls.items():
        for call in each:
            with pytest.raises(LayoutError, match=name) as caught:
                call()
            assert len(set(comm.allgather_object(str(caught.value)))) == 1
    # A rank that has left a call by an error which it alone knows is in another one now.
    x = tensor()
    if last:
        with pytest.raises(LayoutError):
            rote.fft.fftn(x, axes=(9,))
    with pytest.raises(CommError, match="different calls"):
        tensor() if last else rote.fft.fftn(x, axes=(1,))
    assert np.array_equal(tensor().redistribute("block[(),(0)]").to_global(), whole)


if __name__ == "__main__":
    check(world())
    print("refused")
