"""A program for MPI ranks: large blocks of new tensors, which other ranks read where they lie.

Under mpiexec: `python lasting.py`.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pytest

import rote
from rote.runtime import world
from rote.runtime.comm import segments


def check_new(comm, folder):
    """Large blocks of new tensors lie in segments from the first on, however they are made, and are read there."""
    shape, layout, target = (600 * comm.size, 300), "block[(0),()]", "block[(),(0)]"
    whole = np.arange(float(np.prod(shape))).reshape(shape)
    makers = {
        "zeros": partial(rote.DistTensor.zeros, shape, layout, comm),
        "empty": partial(rote.DistTensor.empty, shape, layout, comm),
        "from_global": partial(rote.DistTensor.from_global, whole, layout, comm),
        "from_function": partial(rote.DistTensor.from_function, lambda i, j: 300.0 * i + j, shape, layout, comm),
        "full": partial(rote.array_api.full, shape, 2.5, layout=layout, comm=comm),
        "random": partial(rote.random.default_rng(3).random, shape, layout=layout, comm=comm),
        "load": partial(rote.load, folder / "new.npy", layout, comm=comm),
    }
    makers["from_global"]().save(folder / "new.npy")
    for name, make in makers.items():
        x = make()
        assert segments.address_of(x.local) is not None, name
        before = segments.reach.call_count
        y = x.redistribute(target)
        assert segments.reach.call_count == before + comm.size - 1, name
        assert y.redistribute(layout).local.tobytes() == x.local.tobytes(), name
        if name in ("from_global", "from_function", "load"):
            assert np.array_equal(y.to_global(), whole), name
    filled = AssertionError("a file for a block beyond all memory")
    with (
        patch.object(os, "memfd_create", side_effect=filled),
        pytest.raises(MemoryError, match=r"shape \(1000000000000, 1000\)"),
    ):
        rote.DistTensor.zeros((comm.size * 10**12, 1000), layout, comm)


def main():
    comm = world()
    with (
        patch.object(segments, "reach", side_effect=segments.reach),
        TemporaryDirectory(ignore_cleanup_errors=True) as folder,  # all ranks use the first one's
    ):
        check_new(comm, Path(comm.allgather_object(folder)[0]))
        comm.barrier()
    print("in segments")


if __name__ == "__main__":
    main()
