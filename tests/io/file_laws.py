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
import xarray
import zarr
from io_cases import LAYOUTS, cases, numbered
from io_laws import alone, raised, same
from numpy.typing import NDArray

import rote
from rote.errors import LayoutError, RoteError
from rote.io import hdf5, npy
from rote.io import zarr as zarr_files
from rote.runtime import Comm, collective_errors, world
from rote.runtime.comm.resolve import as_comm
from rote.runtime.regions import cut

SUFFIXES = (".npy", ".zarr", ".h5")
NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable."
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


def check_two_jobs(comm: Comm, folder: Path, count: int) -> None:
    """Of two jobs that add steps to one file at the same time, from the first step on, all steps are kept; and a file
    that one of them saves as a whole is not replaced by an older one with a step more."""
    half = comm.split(comm.rank % 2, comm.rank)
    for suffix in (".zarr", ".h5", ".xdmf"):
        path = folder / f"run{suffix}"
        for number in range(3):
            step = 2 * number + comm.rank % 2
            rote.save(path, {"u": rote.DistTensor.zeros((4, 6), "block(ceil)[(0),()]", half) + step}, {"n": step}, step)
        comm.barrier()
        steps = [2 * number + k for number in range(3) for k in range(min(comm.size, 2))]
        assert rote.contents(path, comm=comm).steps == tuple(steps), (suffix, steps)
        for step in steps:
            assert rote.contents(path, step, comm).attributes == {"n": step}
            assert rote.load(path, "[(),(0)]", "u", step, comm).to_global()[0, 0] == step
        if suffix == ".xdmf":
            assert path.read_text("utf-8").count("run.h5:/") == len(steps)
        if comm.rank % 2:
            rote.save(path, {"u": rote.DistTensor.zeros((4, 6), "block(ceil)[(0),()]", half)}, step=9)
        else:
            rote.save(path, {"v": rote.DistTensor.zeros((4, 6), "block(ceil)[(0),()]", half)})
        comm.barrier()
        assert "v" in rote.contents(path, comm=comm).tensors, suffix
        left = [name for name in os.listdir(folder) if not name.startswith("run")]
        assert not comm.allgather_object(left)[0], left
        comm.barrier()
        alone(comm, lambda: [remove(each) for each in folder.iterdir()])


def check_failures(comm: Comm, folder: Path, count: int) -> None:
    """A rank raises when it has written its part: the same error on all, the old file stands, and nothing is left."""
    x = rote.DistTensor.from_global(STATE, "block[(0),(),()]", comm)
    for suffix in (*SUFFIXES, ".xdmf"):
        with rote.config(implicit="allow"):
            rote.save(folder / f"old{suffix}", x if suffix != ".xdmf" else x.real)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    transfer = npy.transfer
    for bad in {0, min(comm.size, 4) - 1}:  # of more ranks, some have nothing to write

        def breaks(*args: Any) -> None:
            put = PUT[zarr_files if isinstance(args[0], str) else hdf5]  # a folder, or an open file
            put(*args)
            if bad in [each for each in args if isinstance(each, int)]:  # noqa: B023
                raise ArithmeticError("in the middle")

        def writes(comm: Comm, *args: Any) -> None:
            with collective_errors(comm):
                if comm.rank == bad:  # noqa: B023
                    raise ArithmeticError("in the middle")

        comm.barrier()
        try:
            for module in PUT:
                module._put = breaks  # type: ignore[attr-defined]
            npy.transfer = writes  # type: ignore[assignment]
            comm.barrier()
            for suffix in (*SUFFIXES, ".xdmf"):
                with rote.config(implicit="allow"):
                    path, y = folder / f"old{suffix}", 2 * x if suffix != ".xdmf" else x.imag
                    raised(comm, lambda: rote.save(path, y), Exception, "in the middle")  # noqa: B023
            comm.barrier()
        finally:
            for module, put in PUT.items():
                module._put = put  # type: ignore[attr-defined]
            npy.transfer = transfer
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    comm.barrier()
    alone(comm, lambda: [remove(each) for each in folder.iterdir()])


def store_links(folder: Path, draw: random.Random) -> None:
    """Two HDF5 files of groups and tensors, with links of all kinds between them, to anywhere and nowhere."""
    for file_name in ("run.h5", "master.h5"):
        with h5py.File(folder / file_name, "w") as file:
            groups = [file] + [file.create_group(name) for name in ("a", "a/b", "000", "7")]
            for number, group in enumerate(groups):
                group["u"] = np.full((4, 3 + number % 2), len(file_name) + number / 10)
    targets = [f"/{name}" for name in ("", "a", "a/b", "000", "7", "u", "a/u", "a/b/u", "7/u", "x0", "a/x1", "nowhere")]
    for file_name in ("run.h5", "master.h5"):
        with h5py.File(folder / file_name, "r+") as file:
            for number in range(10):
                group, target = file[draw.choice(targets[:5])], draw.choice(targets)
                other = draw.choice(("run.h5", "master.h5", "missing.h5"))
                kinds = [
                    h5py.SoftLink(target),
                    h5py.SoftLink(target.lstrip("/") or "."),
                    h5py.ExternalLink(other, target),
                ]
                group[f"x{number}"] = draw.choice([*kinds, file[draw.choice(targets[:9])]])


def h5py_opens(folder: Path, file_name: str) -> dict[str, NDArray[Any]]:
    """The tensors of a file by all paths of up to four names by which h5py opens them."""
    found = {}
    with h5py.File(folder / file_name) as file:
        paths = [""]
        for path in paths:
            for name in file[path or "/"]:
                each = f"{path}/{name}".lstrip("/")
                try:
                    node = file[each]
                except (KeyError, RuntimeError, OSError):  # it leads nowhere, or in a circle
                    continue
                if isinstance(node, h5py.Dataset):
                    found[each] = node[()]
                elif path.count("/") < 3 and len(paths) < 200:
                    paths.append(each)
    return found


def check_links(comm: Comm, folder: Path, count: int) -> None:
    """By any path through hard, soft and external links the tensor is the one that h5py opens; loops end; what leads
    nowhere is listed as a link, and is an error only by its own name."""
    for number in range(count // 5 + 1):
        draw = random.Random(number)
        alone(comm, lambda: store_links(folder, random.Random(number)))  # noqa: B023
        for file_name in ("master.h5", "run.h5"):
            known = comm.allgather_object(h5py_opens(folder, file_name) if comm.rank == 0 else None)[0]
            held = rote.contents(folder / file_name, comm=comm)
            assert (held.step, held.steps) == (None, ())
            listed = {known[name].flat[0] for name in held.tensors if name in known}  # each tensor has another number
            assert listed >= {known[name].flat[0] for name in ("u", "a/u", "a/b/u", "000/u", "7/u")}
            for name, stored in held.tensors.items():
                assert name.count("/") > 3 or stored.shape == known[name].shape, name
            for name in [*draw.sample(sorted(known), min(len(known), 8)), "u", "000/u", "7/u"]:
                x = rote.load(folder / file_name, "[(),(0)]", name, comm=comm)
                same(x.local, cut(known[name], x.distribution, comm.rank), (number, file_name, name))
            for name in [name for name in held.links if name not in known and name.count("/") < 3][:4]:
                raised(comm, lambda: rote.load(folder / file_name, None, name, comm=comm), RoteError, name, "is a link")  # noqa: B023
        comm.barrier()
        alone(comm, lambda: [remove(each) for each in folder.iterdir()])


def store_names(folder: Path) -> None:
    """Stores of other programs, whose arrays and groups have numbers as names, and an attribute `rote`."""
    for version in (2, 3):
        group = zarr.create_group(folder / f"cells{version}.zarr", zarr_format=version, attributes={"rote": "whole"})
        for name, factor in (("0", 1), ("1", 2), ("labels/0", 3), ("000/u", 4), ("007/u", 5), ("7/u", 6)):
            group.create_array(name, data=factor * STATE.real, chunks=(3, 4, 5), attributes={"rote": 1})
    with h5py.File(folder / "cells.h5", "w") as file:
        for name, factor in (("0", 1), ("1", 2), ("labels/0", 3), ("000/u", 4), ("007/u", 5), ("7/u", 6)):
            file[name] = factor * STATE.real
        file.attrs["rote"] = "whole"


def check_names(comm: Comm, folder: Path, count: int) -> None:
    """A number is a name as any other in files of other programs; a step beside it is one that Rote wrote, and it
    replaces nothing else. An attribute `rote` is kept."""
    alone(comm, lambda: store_names(folder))
    factors = {"0": 1, "1": 2, "labels/0": 3, "000/u": 4, "007/u": 5, "7/u": 6}
    for path in (folder / "cells2.zarr", folder / "cells3.zarr", folder / "cells.h5"):
        held = rote.contents(path, comm=comm)
        assert (set(held.tensors), held.steps, held.attributes) == (set(factors), (), {"rote": "whole"}), held
        for name, factor in factors.items():
            x = rote.load(path, "block[(),(0),()]", name, comm=comm)
            same(x.local, cut(factor * STATE.real, x.distribution, comm.rank), (path, name))
            if path.suffix == ".zarr":
                x = rote.load(path / name, "block[(0),(),()]", comm=comm)
                same(x.local, cut(factor * STATE.real, x.distribution, comm.rank), (path, name))
        raised(comm, lambda: rote.load(path, None, "u", 7, comm), RoteError, "not a step that Rote wrote", "name='7/…'")  # noqa: B023
        raised(comm, lambda: rote.load(path, None, "u", 8, comm), RoteError, "has no steps, not 8")  # noqa: B023
        y = rote.DistTensor.from_global(STATE, "block(ceil)[(0),(),()]", comm)
        if path.name == "cells2.zarr":
            raised(comm, lambda: rote.save(path, {"u": y}, step=9), RoteError, "version 2 of Zarr")  # noqa: B023
            continue
        for step in (0, 7):
            raised(comm, lambda: rote.save(path, {"u": y}, step=step), RoteError, f"holds '{step}', which is no step")  # noqa: B023
        for factor in (1, 2):
            rote.save(path, {"u": factor * y}, {"rote": "mine"}, 9)
        rote.save(path, {"u": y, "10": 3 * y}, step=10)
        held = rote.contents(path, 9, comm)
        assert (set(held.tensors), held.steps, held.attributes) == ({"u"}, (9, 10), {"rote": "mine"}), held
        assert (rote.contents(path, comm=comm).step, set(rote.contents(path, comm=comm).tensors)) == (
            None,
            set(factors),
        )
        for step, name, factor in ((9, "u", 2), (10, "10", 3)):
            x = rote.load(path, "[(),(0),()]", name, step, comm)
            same(x.local, cut(factor * STATE, x.distribution, comm.rank), (path, step))
        np.testing.assert_array_equal(plain(path, "7/u"), 6 * STATE.real)
        np.testing.assert_array_equal(plain(path, "10/10"), 3 * STATE)
    rote.save(folder / "mine.zarr", y, {"rote": "whole", "a": 1})
    assert rote.contents(folder / "mine.zarr", comm=comm).attributes == {"rote": "whole", "a": 1}
    assert zarr.open_array(folder / "mine.zarr", mode="r").attrs["rote"] == "whole"
    comm.barrier()
    alone(comm, lambda: [remove(each) for each in folder.iterdir()])


def check_labels(comm: Comm, folder: Path, count: int) -> None:
    """xarray opens what was saved with names of modes as the same Dataset, at the root and at a step; and Rote reads
    the names that xarray and h5py wrote."""
    numbers = {
        "u": (("t", "y"), np.arange(24.0).reshape(4, 6), {"units": "K", "size": 0.5}),
        "n": (("t",), np.arange(4), {"long_name": "ü"}),
        "e": ((), np.float32(7), {}),
    }
    coords = {
        "y": ("y", np.linspace(0, 1, 6), {"units": "m"}),
        "t": [3, 5, 7, 9],
        "area": (("t", "y"), np.ones((4, 6))),
        "zone": 5,
    }
    whole = xarray.Dataset(numbers, coords, {"title": "ü"})
    tensors = {
        name: rote.DistTensor.from_global(array, f"block(ceil)[{','.join(['(0)', '()'][: array.ndim])}]", comm)
        for name, (_, array, _) in numbers.items()
    }
    labelled = xarray.Dataset(
        {name: (numbers[name][0], x, numbers[name][2]) for name, x in tensors.items()}, coords, whole.attrs
    )
    rote.save(folder / "all.zarr", labelled)
    rote.save(folder / "all.h5", labelled, {"title": "other"})
    rote.save(folder / "steps.zarr", labelled, step=3)
    rote.save(folder / "one.zarr", labelled["u"].rename("v"), {"a": 1})
    rote.save(folder / "plain.zarr", tensors, dims={name: dims for name, (dims, *_) in numbers.items()})
    rote.save(folder / "same.h5", {"u": tensors["u"], "w": 2 * tensors["u"]}, dims=("t", "y"))
    rote.save(folder / "x.zarr", tensors["n"], dims="t")
    alone(comm, lambda: whole.to_zarr(folder / "theirs.zarr", consolidated=False))
    alone(comm, lambda: whole.to_zarr(folder / "theirs2.zarr", zarr_format=2))
    if comm.rank == 0:
        for name, group in (("all.zarr", None), ("steps.zarr", "3")):
            with xarray.open_zarr(folder / name, group, consolidated=False) as got:
                xarray.testing.assert_identical(strip(got), whole)
        for engine in ("h5netcdf", "netcdf4"):
            with xarray.open_dataset(folder / "all.h5", engine=engine) as got:
                xarray.testing.assert_identical(got.load(), whole.assign_attrs(title="other"))
        with xarray.open_zarr(folder / "one.zarr", consolidated=False) as got:
            assert got.attrs == {"a": 1} and set(got.data_vars) == {"v"} and set(got.indexes) == {"t", "y"}
        with xarray.open_zarr(folder / "plain.zarr", consolidated=False) as got:
            xarray.testing.assert_identical(strip(got), whole.drop_vars(coords).drop_attrs(deep=True))
        with xarray.open_zarr(folder / "x.zarr", consolidated=False) as got:
            xarray.testing.assert_identical(got.load(), xarray.Dataset({"data": numbers["n"][:2]}))
        with h5py.File(folder / "same.h5") as file:
            assert [along.keys() for along in file["w"].dims] == [[f"{NO_VARIABLE}{n:10}"] for n in (4, 6)]
    known = {name: whole[name].dims or None for name in whole.variables}
    for name in ("all.zarr", "all.h5", "steps.zarr", "theirs.zarr", "theirs2.zarr"):
        held = rote.contents(folder / name, comm=comm)
        assert {each: stored.dims for each, stored in held.tensors.items()} == known, (name, held)
        back = rote.load(folder / name, "block[(),(0)]", "u", comm=comm)
        again = back.to_xarray(held.tensors["u"].dims)
        assert again.dims == ("t", "y")
        same(back.local, cut(numbers["u"][1], back.distribution, comm.rank), name)
        units = {each: stored.attributes.get("units") for each, stored in held.tensors.items()}
        assert (units["u"], units["y"], units["n"]) == ("K", "m", None), (name, units)
    assert rote.contents(folder / "all.h5", comm=comm).attributes == {"title": "other"}

    def refused(kind: type[Exception], text: str, *args: Any, **options: Any) -> None:
        raised(comm, lambda: rote.save(folder / "no.zarr", *args, **options), kind, text)

    u, n = tensors["u"], tensors["n"]
    for dims in ("t", ("t",), ("t", ""), ("t", 3), ("t", "y", "z"), ("t", None), 5):
        refused(LayoutError, "write one text per mode", u, dims=dims)
    refused(LayoutError, "is a mode of 6 indices", u, dims=("t", "t"))
    refused(LayoutError, "the tensor of this name, its scale, has shape (4,)", {"u": u, "y": n}, dims={"u": ("t", "y")})
    refused(LayoutError, "the tensor of this name, its scale, has shape (4, 6)", {"t": u}, dims=("t", "y"))
    refused(LayoutError, "is a mode of 4 indices", {"u": u, "n": n}, dims={"u": ("t", "y"), "n": "y"})
    refused(LayoutError, "dims are for 'v'", {"u": u}, dims={"v": ("t", "y")})
    refused(
        rote.CommError, "of tensors", u, dims=("t", f"y{comm.rank}" if comm.size > 1 else "y")
    ) if comm.size > 1 else None
    refused(
        RoteError, "'t' is the name of two arrays", {"a": labelled["u"], "b": labelled["n"].assign_coords(t=range(4))}
    )
    refused(RoteError, "dtype <U1", u.to_xarray(("t", "y"), {"t": list("abcd")}))
    refused(TypeError, "save takes a tensor", whole["u"])
    raised(
        comm, lambda: rote.save(folder / "no.npy", u, dims=("t", "y")), RoteError, "no name, dims, attribute or step"
    )
    comm.barrier()
    assert not (folder / "no.zarr").exists()
    comm.barrier()
    alone(comm, lambda: [remove(each) for each in folder.iterdir()])


def strip(dataset: xarray.Dataset) -> xarray.Dataset:
    """A Dataset in memory, without Rote's mark on a step."""
    dataset.attrs.pop("_rote", None)
    return dataset.load()


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


CHECKS = (check_saving, check_loading, check_steps, check_pictures, check_links, check_names, check_labels)
CHECKS += (check_two_jobs, check_failures)

if __name__ == "__main__":
    ranks, home, number = world(), Path(sys.argv[1]), int(sys.argv[2])
    checks = [each for each in CHECKS if number > 3 or each not in (check_steps, check_pictures)]
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
