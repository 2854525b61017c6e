"""Files as people have them: HDF5 by its content, netCDF-4, attributes, packed numbers, parts of files, and Dask."""

from __future__ import annotations

import fcntl
from pathlib import Path

import h5py
import numpy as np
import pytest
from io_laws import raised, same

import rote
from rote.errors import RoteError
from rote.runtime import Comm, run
from rote.runtime.regions import cut

ARRAY = np.arange(24.0).reshape(4, 6)


# --- formats by content ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.nc4", "x.NC", "x.nxs", "x.h5ad", "x.he5", "x.mat", "x", "x.unknown"])
@pytest.mark.parametrize("block", (0, 512, 2048))
def test_hdf5_is_known_by_its_content(tmp_path: Path, name: str, block: int) -> None:
    """Under any suffix, also behind the block that MATLAB writes in front, HDF5 files list and load."""
    with h5py.File(tmp_path / name, "w", userblock_size=block) as file:
        file["group/u"] = ARRAY

    def program(comm: Comm) -> None:
        assert list(rote.contents(tmp_path / name, comm=comm).tensors) == ["group/u"]
        x = rote.load(tmp_path / name, "block[(),(0)]", comm=comm)
        same(x.local, cut(ARRAY, x.distribution, comm.rank), name)

    run(program, 2)


def test_npy_and_zarr_are_known_by_their_content(tmp_path: Path) -> None:
    """So do `.npy` files and Zarr stores of another name."""
    x = rote.DistTensor.from_global(ARRAY, "[(),()]")
    for old, new in (("a.npy", "a.bin"), ("b.zarr", "b.store")):
        x.save(tmp_path / old)
        (tmp_path / old).rename(tmp_path / new)
        np.testing.assert_array_equal(rote.load(tmp_path / new).to_global(), ARRAY)


OLD = {
    "old.nc": (b"CDF\x01\0\0\0\0", "nccopy -k nc4"),
    "old.cdf": (b"CDF\x05\0\0\0\0", "nccopy -k nc4"),
    "old.mat": (b"MATLAB 5.0 MAT-file, Platform", "-v7.3"),
    "old.h5": (b"\x0e\x03\x13\x01", "h4toh5"),
    "short.nxs": (b"\x89HDF\r\n", "is not the name of"),
    "empty.nxs": (b"", "is not the name of"),
}


@pytest.mark.parametrize("name", OLD)
def test_older_formats_are_refused(tmp_path: Path, name: str) -> None:
    """A netCDF-3 file, an older one of MATLAB, HDF4: what it is, and what converts it; on all ranks."""
    start, hint = OLD[name]
    (tmp_path / name).write_bytes(start)

    def program(comm: Comm) -> None:
        raised(comm, lambda: rote.load(tmp_path / name, comm=comm), RoteError, name, hint)
        raised(comm, lambda: rote.contents(tmp_path / name, comm=comm), RoteError, name, hint)

    run(program, 2)


def test_a_file_that_is_open_elsewhere(tmp_path: Path) -> None:
    """A file that another program writes is refused by name, and is what it was."""
    path = tmp_path / "open.h5"
    rote.save(path, rote.DistTensor.from_global(ARRAY, "[(),()]"))
    before = path.read_bytes()

    def program(comm: Comm) -> None:
        raised(comm, lambda: rote.load(path, comm=comm), RoteError, "open.h5 is open elsewhere", "close it there")

    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # as the HDF5 library does while it writes
        run(program, 2)
    assert path.read_bytes() == before
    np.testing.assert_array_equal(rote.load(path).to_global(), ARRAY)
