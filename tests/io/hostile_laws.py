"""What hostile, damaged and odd files and names give, as functions of a communicator: in-process and under MPI.

Run as a program (folder for files and the names of checks as its arguments), it makes the checks on the world.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import zarr
from file_laws import remove
from io_laws import alone, raised
from numpy.lib import format as npy

import rote
from rote.errors import RoteError
from rote.runtime import Comm, world

SUFFIXES = (".npy", ".zarr", ".h5", ".xdmf")
HUGE = 2**63 - 1
WHOLE_COPY = "give a whole copy"  # the hint for a file that lost a part, and for no other


@contextmanager
def emptied(comm: Comm, folder: Path) -> Iterator[None]:
    """A folder that is empty again for the next check."""
    yield
    comm.barrier()
    alone(comm, lambda: [remove(path) if not path.is_symlink() else path.unlink() for path in folder.iterdir()])


def refused(comm: Comm, path: Path | str, *parts: str, name: str | None = None) -> str:
    """The text of the RoteError that load raises on all ranks; it shows no address of an object."""
    error = raised(comm, lambda: rote.load(path, name=name, comm=comm), RoteError, *parts)
    assert " at 0x" not in str(error)
    return str(error)


def check_sizes(comm: Comm, folder: Path) -> None:
    """A tensor that is larger than arrays may be, or than the memory of its ranks, is refused by its shape."""
    shapes = ((10**15, 8), (2**62, 8), (HUGE,), (HUGE, 0), (0, HUGE, HUGE), (2**40, 2**40, 0))

    def make() -> None:
        group = zarr.create_group(folder / "x.zarr")
        with h5py.File(folder / "x.h5", "w") as file:
            for number, shape in enumerate(shapes):
                chunks = tuple(min(max(extent, 1), 100) for extent in shape)
                group.create_array(f"{number}", shape=shape, chunks=chunks, dtype="f8")
                file.create_dataset(f"{number}", shape, "f8", chunks=chunks, maxshape=(None,) * len(shape))
                header = {"descr": "<f8", "fortran_order": False, "shape": shape}
                with open(folder / f"{number}.npy", "wb") as array:
                    npy.write_array_header_1_0(array, header)  # type: ignore[no-untyped-call]

    with emptied(comm, folder):
        alone(comm, make)
        for number, shape in enumerate(shapes):
            for suffix in (".zarr", ".h5"):
                text = refused(comm, folder / f"x{suffix}", f"shape {shape}", f"x{suffix}", name=f"{number}")
                assert ("than an array may have" if number else "on more ranks") in text, text
            text = refused(comm, folder / f"{number}.npy", f"shape {shape}")
            assert ("than an array may have" if 0 in shape else "is truncated") in text, text
        held = rote.contents(folder / "x.zarr", comm=comm).tensors
        assert [stored.shape for stored in held.values()] == list(shapes)


def check_types(comm: Comm, folder: Path) -> None:
    """What a file holds and NumPy cannot is named with the reason; the rest of the file is read."""

    def make() -> None:
        with h5py.File(folder / "x.h5", "w") as file, h5py.File(folder / "alone.h5", "w") as other:
            file["u"] = np.arange(3.0)
            integer = h5py.h5t.STD_I32LE.copy()
            integer.set_precision(24)
            integer.set_size(3)
            for each in (file, other):
                h5py.h5d.create(each.id, b"i24", integer, h5py.h5s.create_simple((4,)))
                each["nothing"] = h5py.Empty("f8")
        with h5py.File(folder / "empty.h5", "w") as file:
            file["nothing"] = h5py.Empty("f8")
        h5py.File(folder / "none.h5", "w").close()
        zarr.create_group(folder / "none.zarr")

    reasons = {"i24": "has elements of a type that NumPy does not have", "nothing": "is an empty data set"}
    with emptied(comm, folder):
        alone(comm, make)
        for name, reason in reasons.items():
            for file in ("x.h5", "alone.h5"):
                text = refused(comm, folder / file, f"{name!r} {reason}", "convert it with the program", name=name)
                assert WHOLE_COPY not in text, text
        refused(comm, folder / "alone.h5", "holds no tensor; 'i24' has elements", "convert it with the program")
        refused(comm, folder / "empty.h5", "holds no tensor; 'nothing' is an empty data set")
        refused(comm, folder / "x.h5", "has no tensor 'v': it holds 'u'\nwrite one of these names", name="v")
        for file in ("none.h5", "none.zarr"):
            refused(comm, folder / file, "holds no tensor\nsave one first")
            refused(comm, folder / file, "has no tensor 'u': it holds no tensor\nsave one first", name="u")
        held = rote.contents(folder / "x.h5", comm=comm)
        assert (list(held.tensors), list(held.unread)) == (["u"], ["i24", "nothing"])
        assert rote.load(folder / "x.h5", comm=comm).to_global().tolist() == [0, 1, 2]


def check_paths(comm: Comm, folder: Path) -> None:
    """A path that no file can have is refused by all doors, in all formats, before anything is written."""
    x = rote.DistTensor.zeros((4, 6), "block(ceil)[(0),()]", comm)
    for bad in ("a\0b", "\ud800", "none\0/x", "\udfffx"):
        for suffix in (*SUFFIXES, ""):
            path = f"{folder}/{bad}{suffix}"
            doors: tuple[Callable[[], object], ...] = (
                lambda: rote.load(path, comm=comm),  # noqa: B023
                lambda: rote.contents(path, comm=comm),  # noqa: B023
                lambda: rote.save(path, x),  # noqa: B023
                lambda: x.save(path),  # noqa: B023
                lambda: rote.DistTensor.load(path, "[(0),()]", comm),  # noqa: B023
            )
            for door in doors:
                raised(comm, door, RoteError, repr(path), "has a letter that no path may have")
    assert os.listdir(folder) == []
    comm.barrier()


def check_names(comm: Comm, folder: Path) -> None:
    """Names of formats' own files, and those that no format holds, are no names of tensors; a foreign one is none."""
    x = rote.DistTensor.zeros((4, 6), "block(ceil)[(0),()]", comm)
    with emptied(comm, folder):
        for bad in ("zarr.json", "ZARR.json", "..", ".", "", "/u", "u/v", ".zarray", "a\0", "\ud800", "u\udc80"):
            for suffix in (".zarr", ".h5", ".xdmf"):
                for step in (None, 1):
                    call = lambda: rote.save(folder / f"x{suffix}", {bad: x}, step=step)  # noqa: B023, E731
                    raised(comm, call, RoteError, "is not the name of a tensor", "write one like")
        assert os.listdir(folder) == []
        for suffix in (".zarr", ".h5"):
            good = ("c", "zarr", "zarr.jsn", " ", "0")
            rote.save(folder / f"x{suffix}", dict.fromkeys(good, x))
            assert {rote.load(folder / f"x{suffix}", name=name, comm=comm).shape for name in good} == {(4, 6)}
            for bad in ("..", ".", "", "../x", "zarr.json", "c/c", "c/../c", "a\0b", "\ud800", "n" * 5000):
                refused(comm, folder / f"x{suffix}", "has no tensor", "write one of these names", name=bad)


def check_attributes(comm: Comm, folder: Path) -> None:
    """What HDF5 does not hold is refused by name, and nothing is left; steps are numbers of 64 bits."""
    x = rote.DistTensor.zeros((4, 6), "block(ceil)[(0),()]", comm)
    with emptied(comm, folder):
        for value in ("a\0b", "\ud800", 10**30, [0.5] * 20_000):
            for suffix in (".h5", ".xdmf"):
                call = lambda: rote.save(folder / f"x{suffix}", {"u": x}, {"time": value})  # noqa: B023, E731
                raised(comm, call, RoteError, "HDF5 does not hold attribute 'time'", "save .zarr")
        for step in (2**63, 10**30, 10**5000):
            for suffix in (".h5", ".zarr"):
                call = lambda: rote.save(folder / f"x{suffix}", x, step=step)  # noqa: B023, E731
                raised(comm, call, RoteError, "a step is a number from 0 on, not one of more than 64 bits")
        assert os.listdir(folder) == []


CHECKS = (check_sizes, check_types, check_paths, check_names, check_attributes)


def main() -> None:
    comm, folder, names = world(), Path(sys.argv[1]), sys.argv[2:]
    for name in names:
        globals()[name](comm, folder)
    if comm.rank == 0:
        print(f"{len(names)} checks on {comm}")


if __name__ == "__main__":
    main()
