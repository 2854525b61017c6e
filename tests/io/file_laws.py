"""What `rote.save` and `rote.load` must do in all formats, as functions of a communicator: in-process and under MPI.

Run as a program (folder for files and the number of cases as its arguments), it makes the checks on the world.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import h5py
import numpy as np
import zarr
from io_cases import LAYOUTS, cases, numbered
from io_laws import alone, raised, same
from numpy.typing import NDArray

import rote
from rote.errors import LayoutError, RoteError
from rote.io import hdf5
from rote.io import zarr as zarr_files
from rote.runtime import Comm, collective_errors, world
from rote.runtime.comm.resolve import as_comm
from rote.runtime.copy.regions import cut

SUFFIXES = (".npy", ".zarr", ".h5")
STATE = numbered((7, 9, 5), np.dtype("c16"))
PUT = {hdf5: hdf5._put, zarr_files: zarr_files._put}


def plain(path: Path, name: str = "data") -> NDArray[Any]:
    """The array of a file, as the format's own library reads it."""
    if path.suffix == ".npy":
        return np.asarray(np.load(path))
    if path.suffix == ".zarr":
        node = zarr.open(str(path), mode="r")
        return np.asarray(node[...] if isinstance(node, zarr.Array) else node[name][...])
    with h5py.File(path, "r") as file:
        return np.asarray(file[name][()])


def store(path: Path, array: NDArray[Any], how: random.Random) -> None:
    """Write an array as other programs do: in other chunks, another byte order, another version of the format."""
    swapped = array.astype(array.dtype.newbyteorder("S")) if how.random() < 0.5 else array
    chunks = tuple(how.randint(1, max(n, 1)) for n in array.shape)
    if path.suffix == ".npy":
        np.save(path, np.asarray(swapped, order="F"))
    elif path.suffix == ".zarr":
        version = how.choice((2, 3))
        group = zarr.create_group(path, zarr_format=version)
        group.create_array("data", shape=array.shape, dtype=array.dtype.str, chunks=chunks)[...] = array
    else:
        with h5py.File(path, "w") as file:
            options = {"chunks": chunks, "compression": "gzip"} if array.size and array.ndim else {}
            file.create_dataset("data", data=swapped, **options)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def check_saving(comm: Comm, folder: Path, count: int) -> None:
    """What all ranks save, in any layout, the format's own library reads; partial tensors and too long floats are
    refused, and an old file is replaced."""
    for k, case in enumerate(cases(comm.size, count, seed=2)):
        path = folder / f"saved{SUFFIXES[k % 3]}"
        array = numbered(case.dist.shape, case.dtype)
        block = cut(array, case.dist, comm.rank)
        x = rote.DistTensor(np.asarray(block, order="F" if case.swapped else "C"), case.dist, comm)
        with rote.config(implicit="allow"):
            if case.dist.partial:
                raised(comm, lambda: rote.save(path, x), LayoutError, "redistribute to ")  # noqa: B023
            elif case.dtype.char in "gG" and path.suffix == ".zarr":
                raised(comm, lambda: rote.save(path, x), RoteError, "for which the format has none")  # noqa: B023
            else:
                rote.save(path, x)
                got = plain(path)
                assert (got.dtype, got.shape) == (array.dtype, array.shape), (str(case), got.dtype, got.shape)
                np.testing.assert_array_equal(got, array, str(case))
        assert all(name.startswith("saved") for name in os.listdir(folder)), os.listdir(folder)
        comm.barrier()
    alone(comm, lambda: [remove(path) for path in folder.iterdir()])


def check_loading(comm: Comm, folder: Path, count: int) -> None:
    """A rank's block of a file that other programs wrote is its block of the array, by definition, in any layout."""
    for k, case in enumerate(cases(comm.size, count, seed=3)):
        path = folder / f"loaded{SUFFIXES[k % 3]}"
        dtype = np.dtype(case.dtype.char.lower().replace("g", "d")) if case.dtype.char in "gG" else case.dtype
        array = numbered(case.dist.shape, dtype)
        alone(comm, lambda: (remove(path), store(path, array, random.Random(k))))  # noqa: B023
        with rote.config(implicit="allow"):
            x = rote.load(path, case.dist.layout, comm=comm, grid=case.dist.grid)
        assert x.distribution == case.dist
        same(x.local, cut(array, case.dist, comm.rank).astype(dtype), (path.suffix, str(case)))
        comm.barrier()
    alone(comm, lambda: [remove(path) for path in folder.iterdir()])


def check_steps(comm: Comm, folder: Path, count: int) -> None:
    """Steps, names and attributes are kept apart and read back; a step that is written again is replaced as a whole."""
    rng = random.Random(comm.size)
    for suffix in (".zarr", ".h5"):
        path = folder / f"run{suffix}"
        arrays = {name: np.random.default_rng(len(name)).random((7, 6, 5)) for name in ("u", "pressure")}

        def laid(factor: float) -> dict[str, rote.DistTensor]:
            return {
                name: rote.DistTensor.from_global(factor * array, rng.choice(LAYOUTS), comm)
                for name, array in arrays.items()  # noqa: B023
            }

        with rote.config(implicit="allow"):
            for step in (10, 2, 10):
                rote.save(path, laid(step), {"time": step / 10, "title": "ü", "sizes": [1, 2], "ok": True}, step)
            rote.save(path, {"u": laid(3)["u"]}, {"time": np.float32(0.5)}, step=3)
            assert rote.contents(path, comm=comm).steps == (2, 3, 10)
            last = rote.contents(path, comm=comm)
            assert last.attributes == {"time": 1.0, "title": "ü", "sizes": [1, 2], "ok": True}, last
            assert (last.step, set(last.tensors), last.tensors["u"].shape) == (10, {"u", "pressure"}, (7, 6, 5))
            assert set(rote.contents(path, 3, comm).tensors) == {"u"}
            for step, name in ((2, "u"), (10, "pressure"), (3, "u")):
                x = rote.load(path, "[(),(0),()]", name, step, comm)
                same(x.local, cut(step * arrays[name], x.distribution, comm.rank), (suffix, step, name))
            same(rote.load(path, "[(),(),()]", "u", comm=comm).local, 10 * arrays["u"], suffix)
            raised(comm, lambda: rote.load(path, "[(),(),()]", comm=comm), RoteError, "step 10,", "'u'", "name=")  # noqa: B023
            raised(comm, lambda: rote.load(path, "[(),(),()]", "u", 4, comm), RoteError, "2, 3, 10, not 4")  # noqa: B023
            raised(comm, lambda: rote.load(path, "[(),(),()]", "v", comm=comm), RoteError, "no tensor 'v'")  # noqa: B023
            rote.save(path, laid(1))
            assert rote.contents(path, comm=comm).steps == ()
        assert os.listdir(folder) == [path.name]
        comm.barrier()
        alone(comm, lambda: remove(path))  # noqa: B023


def described(folder: Path, item: Any) -> NDArray[Any]:
    """The array that an item of XDMF describes: elements of an HDF5 file, or a box of such."""
    shape = tuple(map(int, item.get("Dimensions").split()))
    if item.get("ItemType") == "HyperSlab":
        start, step, count = np.array(item[0].text.split(), int).reshape(3, -1)
        box = tuple(slice(a, a + b * n, b) for a, b, n in zip(start, step, count, strict=True))
        return described(folder, item[1])[box].reshape(shape)
    name, _, place = item.text.partition(":")
    with h5py.File(folder / name) as file:
        array = np.asarray(file[place])
    kinds = {"Float": "f", "Int": "i", "UInt": "u"}
    assert (array.shape, array.dtype) == (shape, np.dtype(kinds[item.get("NumberType")] + item.get("Precision")))
    return array


def check_pictures(comm: Comm, folder: Path, count: int) -> None:
    """An XDMF file describes the HDF5 file beside it, step by step and field by field, and is loaded by either name."""
    path = folder / "run.xdmf"
    array = np.random.default_rng(0).random((3, 4, 5, 6))
    with rote.config(implicit="allow"):
        x = rote.DistTensor.from_global(array, "[(),(0),()(1)]", comm)
        p = rote.DistTensor.from_global((array[0] > 0.5).astype("u1"), "[(0),(),()]", comm)
        for step in (1, 2):
            rote.save(path, {"velocity": x, "p": p}, {"time": 0.5 * step, "spacing": [0.1, 0.2, 0.3]}, step)
        for name in (path, folder / "run.h5"):
            back = rote.load(name, "block[(),(),(),(0)]", "velocity", comm=comm)
            same(back.local, cut(array, back.distribution, comm.rank), name)
    steps = list(xml.fromstring(path.read_text("utf-8")).iterfind(".//Grid[@GridType='Uniform']"))
    assert [step.find("Time").get("Value") for step in steps] == ["0.5", "1.0"]
    for step in steps:
        assert [item.text for item in step.iterfind("Geometry/DataItem")] == ["0.0 0.0 0.0", "0.1 0.2 0.3"]
        fields = {field.get("Name"): described(folder, field[0]) for field in step.iterfind("Attribute")}
        assert list(fields) == ["p", "velocity_0", "velocity_1", "velocity_2"]
        for name, values in zip(fields, (array[0] > 0.5, *array), strict=True):
            np.testing.assert_array_equal(fields[name], values)
    assert sorted(os.listdir(folder)) == ["run.h5", "run.xdmf"]
    comm.barrier()
    alone(comm, lambda: [remove(each) for each in folder.iterdir()])


def check_failures(comm: Comm, folder: Path, count: int) -> None:
    """A rank raises when it has written its part: the same error on all, the old file stands, and nothing is left."""
    x = rote.DistTensor.from_global(STATE, "block[(0),(),()]", comm)
    for suffix in (*SUFFIXES, ".xdmf"):
        with rote.config(implicit="allow"):
            rote.save(folder / f"old{suffix}", x if suffix != ".xdmf" else x.real)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    kind = type(comm)
    write = kind.write
    for bad in {0, min(comm.size, 4) - 1}:  # of more ranks, some have nothing to write

        def breaks(*args: Any) -> None:
            put = PUT[hdf5 if args[0] is h5py else zarr_files]
            put(*args)
            if bad in [each for each in args if isinstance(each, int)]:  # noqa: B023
                raise ArithmeticError("in the middle")

        def writes(self: Any, *args: Any) -> None:
            with collective_errors(self):
                if self.rank == bad:  # noqa: B023
                    raise ArithmeticError("in the middle")

        comm.barrier()
        try:
            for module in PUT:
                module._put = breaks  # type: ignore[attr-defined]
            kind.write = writes  # type: ignore[method-assign]
            comm.barrier()
            for suffix in (*SUFFIXES, ".xdmf"):
                with rote.config(implicit="allow"):
                    path, y = folder / f"old{suffix}", 2 * x if suffix != ".xdmf" else x.imag
                    raised(comm, lambda: rote.save(path, y), Exception, "in the middle")  # noqa: B023
            comm.barrier()
        finally:
            for module, put in PUT.items():
                module._put = put  # type: ignore[attr-defined]
            kind.write = write  # type: ignore[method-assign]
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    comm.barrier()
    alone(comm, lambda: [remove(each) for each in folder.iterdir()])


def write_state(comm: Comm, path: Path, layout: str) -> None:
    """Save the state from a layout on a grid of order 2."""
    with rote.config(implicit="allow"):
        grid = (comm.size // 2, 2) if comm.size > 1 else (1, 1)
        rote.DistTensor.from_global(STATE, layout, comm, grid).save(path)


def read_state(comm: Comm, path: Path) -> None:
    """Load the state in several layouts."""
    for layout in ("block[(),(),(0)]", "[(),(0:cyclic(2)),()]", "(a b) c: [(),(0)]"):
        with rote.config(implicit="allow"):
            x = rote.load(path, layout, comm=comm)
        same(x.local, cut(STATE, x.distribution, comm.rank), (path, layout))


CHECKS = (check_saving, check_loading, check_steps, check_pictures, check_failures)

if __name__ == "__main__":
    ranks, home, number = world(), Path(sys.argv[1]), int(sys.argv[2])
    checks = CHECKS if number > 3 else (check_saving, check_loading, check_failures)  # the others are quick on threads
    for check in checks:
        check(ranks, home / "checks", number)
    first = as_comm(ranks.handle.Split(ranks.rank < 2))  # two ranks write what all of them read, and so back
    for suffix in SUFFIXES:
        read_state(ranks, home / f"state{suffix}")
        if ranks.rank < 2:
            write_state(first, home / f"other{suffix}", "[(),(1),(0)]")
        ranks.barrier()
        read_state(ranks, home / f"other{suffix}")
        rote.DistTensor.from_global(STATE, "block(ceil)[(),(0),()]", ranks).save(home / f"state{suffix}")
    if ranks.rank == 0:
        print(f"{len(checks)} checks on {ranks}")
