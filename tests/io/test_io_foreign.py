"""Files as people have them: HDF5 by its content, netCDF-4, attributes, packed numbers, parts of files, and Dask."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import numpy.typing as npt
import pytest
import xarray
import zarr
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


@pytest.mark.parametrize("names", [("real", "imag"), ("re", "im"), ("r", "i")])
@pytest.mark.parametrize("dtype", ["f8", ">f4"])
def test_pairs_are_complex_numbers(tmp_path: Path, names: tuple[str, str], dtype: str) -> None:
    """Complex arrays of MATLAB, Julia and Python load, whole and in part; pairs of other things do not."""
    pairs = np.zeros((4, 6), [(name, dtype) for name in names])
    pairs[names[0]], pairs[names[1]] = ARRAY, -ARRAY
    with h5py.File(tmp_path / "x.mat", "w", userblock_size=512) as file:
        file["z"], file["other"] = pairs, pairs.astype([(names[0], "f8"), (names[1], "i4")])

    def program(comm: Comm) -> None:
        for layout in ("block[(0),()]", "[(),(0)]"):
            x = rote.load(tmp_path / "x.mat", layout, "z", comm=comm)
            assert x.dtype == np.result_type(np.dtype(dtype).newbyteorder("="), "c8")
            np.testing.assert_array_equal(x.to_global(), ARRAY - 1j * ARRAY)
        y = rote.load(tmp_path / "x.mat", name="z", comm=comm, index=(slice(1, None), 2))
        np.testing.assert_array_equal(y.to_global(), (ARRAY - 1j * ARRAY)[1:, 2])
        raised(comm, lambda: rote.load(tmp_path / "x.mat", name="other", comm=comm), RoteError, "dtype", "convert")

    run(program, 2)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """Whatever its suffix, it is the error of the system, on all ranks."""

    def program(comm: Comm) -> None:
        for name in ("x.nc", "x.h5ad", "x.npy"):
            raised(comm, lambda: rote.load(tmp_path / name, comm=comm), FileNotFoundError, name, "No such file")  # noqa: B023

    run(program, 2)


OLD = {
    "old.nc": (b"CDF\x01\0\0\0\0", "nccopy -k nc4"),
    "old.cdf": (b"CDF\x05\0\0\0\0", "nccopy -k nc4"),
    "old.mat": (b"MATLAB 5.0 MAT-file, Platform", "-v7.3"),
    "old.h5": (b"\x0e\x03\x13\x01", "h4toh5"),
    "short.nxs": (b"\x89HDF\r\n", "in no format that Rote reads"),
    "empty.nxs": (b"", "in no format that Rote reads"),
}


@pytest.mark.parametrize("name", OLD)
def test_older_formats_are_refused(tmp_path: Path, name: str) -> None:
    """A netCDF-3 file, an older one of MATLAB, HDF4: what it is, and what converts it; on all ranks."""
    start, hint = OLD[name]
    (tmp_path / name).write_bytes(start)

    def program(comm: Comm) -> None:
        raised(comm, lambda: rote.load(tmp_path / name, comm=comm), RoteError, name, hint)
        raised(comm, lambda: rote.contents(tmp_path / name, comm=comm), RoteError, name, hint)
        if name.startswith("old") and name.endswith((".nc", ".h5")):
            raised(comm, lambda: rote.save(tmp_path / name, tensor(ARRAY, comm), step=1), RoteError, name, hint)

    run(program, 2)
    assert (tmp_path / name).read_bytes() == start


@pytest.mark.parametrize("rest", ["u", "group/u", "v.h5"])
def test_paths_that_lead_into_a_file(tmp_path: Path, rest: str) -> None:
    """The name of a tensor is no part of a path: all ranks say where it is written, and the file stays."""
    path = tmp_path / "x.h5"
    rote.save(path, {"u": rote.DistTensor.from_global(ARRAY, "[(),()]")})
    before = path.read_bytes()

    def program(comm: Comm) -> None:
        for call in (
            lambda: rote.load(path / rest, comm=comm),
            lambda: rote.contents(path / rest, comm=comm),
            lambda: rote.save(path / rest, tensor(ARRAY, comm)),
        ):
            raised(comm, call, RoteError, "x.h5 is a file", f"name={rest!r}")

    run(program, 2)
    assert path.read_bytes() == before


def test_a_file_that_is_open_elsewhere(tmp_path: Path) -> None:
    """A file that another program writes is refused by name, and is what it was."""
    path = tmp_path / "open.h5"
    rote.save(path, rote.DistTensor.from_global(ARRAY, "[(),()]"))
    before = path.read_bytes()

    def program(comm: Comm) -> None:
        x = tensor(ARRAY, comm)
        for call in (
            lambda: rote.load(path, comm=comm),
            lambda: rote.save(path, x),
            lambda: rote.save(path, x, step=3),
        ):
            raised(comm, call, RoteError, "open.h5 is open elsewhere", "close it there")

    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # as the HDF5 library does while it writes
        run(program, 2)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["open.h5"]
    np.testing.assert_array_equal(rote.load(path).to_global(), ARRAY)


# --- names of modes and attributes ----------------------------------------------------------------------------------


def tensor(array: npt.ArrayLike, comm: Comm) -> rote.DistTensor:
    """A tensor in blocks of its first mode."""
    array = np.asarray(array)
    return rote.DistTensor.from_global(array, f"block(ceil)[{','.join(['(0)', '()', '()'][: array.ndim])}]", comm)


@pytest.mark.parametrize("name", ["x.nc", "x.nc4", "x.h5", "x.hdf5"])
@pytest.mark.parametrize("step", [None, 7])
def test_netcdf_reads_what_was_saved(tmp_path: Path, name: str, step: int | None) -> None:
    """h5netcdf and netCDF's own library read tensors, their modes, scales and attributes; netCDF adds to the file."""
    path = tmp_path / name
    attributes = {f"a{number}": number for number in range(12)} | {
        "units": "K",
        "range": [0.5, 2.5],
        "_FillValue": -1.0,
    }

    def program(comm: Comm) -> None:
        u = tensor(ARRAY, comm).to_xarray(("t", "y"), {"y": np.arange(6) / 5}, "u", attributes)
        rote.save(path, {"u": u, "n": tensor(np.arange(4, dtype="i2"), comm)}, {"title": "ü"}, step, dims={"n": "t"})

    run(program, 3)
    for engine in ("h5netcdf", "netcdf4"):
        with xarray.open_dataset(path, group=None if step is None else "7", engine=engine, mask_and_scale=False) as got:
            assert got.attrs.pop("_rote", "none") == ("none" if step is None else "step") and got.attrs == {
                "title": "ü"
            }
            assert (got.u.dims, got.n.dims, dict(got.sizes)) == (("t", "y"), ("t",), {"t": 4, "y": 6})
            assert {name: np.asarray(value).tolist() for name, value in got.u.attrs.items()} == attributes
            np.testing.assert_array_equal(got.u.values, ARRAY)
            np.testing.assert_array_equal(got.y.values, np.arange(6) / 5)

    with netCDF4.Dataset(path, "a") as file:
        group = file if step is None else file["7"]
        group.createVariable("more", "f8", ("t",))[:] = 5
    assert sorted(rote.contents(path).tensors) == ["more", "n", "u", "y"]
    assert rote.contents(path).tensors["more"].dims == ("t",)
    assert rote.load(path, name="more").to_global().tolist() == [5] * 4


def test_modes_without_names_share_names_by_extent(tmp_path: Path) -> None:
    """In `.nc`, modes of one extent get one name, but two in one tensor do not; names that are there are not taken."""
    names = {"u": ("dim_1", "dim_2"), "v": ("dim_2", "dim_3"), "w": ("t",), "dim_0": ()}

    def program(comm: Comm) -> None:
        u, v, w = tensor(np.ones((4, 6)), comm), tensor(np.ones((6, 6)), comm), tensor(np.ones(4), comm)
        rote.save(tmp_path / "x.nc", {"u": u, "v": v, "w": w, "dim_0": w.sum()}, dims={"w": "t"})

    run(program, 2)
    for engine in ("h5netcdf", "netcdf4"):
        with xarray.open_dataset(tmp_path / "x.nc", engine=engine) as got:
            assert {name: got[name].dims for name in got.variables} == names
    assert {name: stored.dims or () for name, stored in rote.contents(tmp_path / "x.nc").tensors.items()} == names


def test_scales_of_others(tmp_path: Path) -> None:
    """Names of modes are read from netCDF4's files and h5py's scales; one of another length is refused by name."""
    with netCDF4.Dataset(tmp_path / "theirs.nc", "w") as file:
        file.createDimension("t", None)
        file.createDimension("y", 6)
        file.createVariable("u", "f8", ("t", "y"))[:] = ARRAY
        file.createVariable("y", "f4", ("y",))[:] = np.arange(6)
        file["u"].units = "K"
    with h5py.File(tmp_path / "bad.h5", "w") as other:
        other["u"], other["t"], other["free"] = ARRAY, np.arange(5), np.arange(3)
        other["t"].make_scale("t")
        other["u"].dims[0].attach_scale(other["t"])

    def program(comm: Comm) -> None:
        known = rote.contents(tmp_path / "theirs.nc", comm=comm).tensors
        assert {name: stored.dims for name, stored in known.items()} == {"u": ("t", "y"), "y": ("y",)}
        assert known["u"].attributes == {"units": "K"}
        same(rote.load(tmp_path / "theirs.nc", "[(),()]", "u", comm=comm).local, ARRAY, "u")

        text = "'u' has 4 indices along mode 0, and the scale of this mode 5"
        raised(comm, lambda: rote.load(tmp_path / "bad.h5", name="u", comm=comm), RoteError, text)
        assert rote.load(tmp_path / "bad.h5", name="free", comm=comm).shape == (3,)

    run(program, 2)


def test_labels_and_root_arrays_of_before(tmp_path: Path) -> None:
    """Files with labels of dimensions, and stores with Rote's attribute or a root array, load as they did."""
    with h5py.File(tmp_path / "old.h5", "w") as file:
        file["u"] = ARRAY
        file["u"].dims[0].label, file["u"].dims[1].label = "t", "y"
    assert rote.contents(tmp_path / "old.h5").tensors["u"].dims == ("t", "y")

    marks = {"_rote": "whole", "a": 1}
    old = zarr.create_array(tmp_path / "old.zarr", shape=(4, 6), chunks=(2, 6), dtype="f8", attributes=marks)
    old[...] = ARRAY
    stored = rote.contents(tmp_path / "old.zarr")
    assert (stored.attributes, stored.tensors["data"].attributes) == ({"a": 1}, {"a": 1})
    np.testing.assert_array_equal(rote.load(tmp_path / "old.zarr").to_global(), ARRAY)
    (tmp_path / "old.zarr" / "c" / "1" / "0").unlink()
    with pytest.raises(RoteError, match="is lost"):
        rote.load(tmp_path / "old.zarr")


def test_xarray_copies_a_store(tmp_path: Path) -> None:
    """A copy that xarray makes, and one that it changes, leave chunks of zeros out, and load; the attributes stay."""
    x = tensor(np.zeros((4, 6)), rote.runtime.world()).to_xarray(("t", "y"), name="u", attrs={"_FillValue": -1.0})
    rote.save(tmp_path / "x.zarr", x)
    with xarray.open_zarr(tmp_path / "x.zarr", consolidated=False) as got:
        got.to_zarr(tmp_path / "copy.zarr", consolidated=False)
    for name in ("x.zarr", "copy.zarr"):
        assert rote.contents(tmp_path / name).tensors["u"].attributes == {"_FillValue": -1.0}
        assert not rote.load(tmp_path / name, name="u").to_global().any()


def test_names_that_hdf5_uses_itself(tmp_path: Path) -> None:
    """An attribute by which HDF5 ties data sets is refused, and a mode whose name is a path; the old file stays."""
    path = tmp_path / "x.h5"
    rote.save(path, rote.DistTensor.zeros(3, "[()]"))
    before = path.read_bytes()

    def program(comm: Comm) -> None:
        x = tensor(ARRAY, comm)
        a = x.to_xarray(name="u", attrs={"DIMENSION_LIST": 3})
        raised(comm, lambda: rote.save(path, a), RoteError, "DIMENSION_LIST is an attribute of HDF5 itself")
        raised(comm, lambda: rote.save(path, x, dims=("a/b", "c")), rote.LayoutError, "write one text per mode")

    run(program, 2)
    assert path.read_bytes() == before


# --- packed numbers -------------------------------------------------------------------------------------------------


def packed() -> dict[str, xarray.Variable]:
    """Variables with attributes that say what their elements stand for, of many types."""
    f4, f8, i2 = np.float32, np.float64, np.int16
    cases = {
        "i2": [{"_FillValue": -1}, {"scale_factor": f4(0.1), "add_offset": f4(9)}, {"add_offset": f8(3)}],
        "i4": [{"_FillValue": 7, "scale_factor": f4(0.5), "add_offset": f4(1)}, {"scale_factor": f4(0.5)}],
        "u1": [{"_FillValue": 3, "missing_value": 3, "scale_factor": f8(0.01)}, {"missing_value": 5}],
        "i1": [{"_Unsigned": "true", "_FillValue": -1, "scale_factor": f8(0.5)}, {"_Unsigned": "true"}],
        "f4": [{"_FillValue": f4(1e20)}, {"_FillValue": f4("nan"), "scale_factor": f8(3)}, {"scale_factor": f8(2)}],
        "f8": [{"missing_value": 5.0, "add_offset": f4(2)}, {"units": "K"}],
        "i8": [{"_FillValue": 9}, {"scale_factor": f8(2), "add_offset": i2(3), "_FillValue": 2}],
    }
    values = {"f4": [[1, 1e20], [3, np.nan]], "i1": [[-1, -2], [127, 0]]}
    variables = {}
    for dtype, many in cases.items():
        for number, attributes in enumerate(many):
            array = np.array(values.get(dtype, [[7, 3], [2, 5]]), dtype)
            fills = {name: array.dtype.type(value) for name, value in attributes.items() if name == "_FillValue"}
            variables[f"{dtype}_{number}"] = xarray.Variable(("t", "y"), array, {**attributes, **fills})
    return variables


@pytest.mark.parametrize("name", ["x.nc", "x.zarr", "old.zarr"])
def test_decode_is_what_xarray_reads(tmp_path: Path, name: str) -> None:
    """With `decode`, values and dtype are those of xarray, on any rank in any layout; without, those of the file."""
    raw = xarray.Dataset(packed())
    if name == "x.nc":
        raw.to_netcdf(tmp_path / name)
        theirs = xarray.open_dataset(tmp_path / name, decode_times=False)
    else:
        raw.to_zarr(tmp_path / name, zarr_format=2 if name == "old.zarr" else 3, consolidated=False)
        theirs = xarray.open_zarr(tmp_path / name, consolidated=False, decode_times=False)

    def program(comm: Comm) -> None:
        for each in raw:
            for layout in ("[(0),()]", "[(),()]|(0@0)", "[(),()]+(0)"):
                x = rote.load(tmp_path / name, layout, str(each), comm=comm, decode=True)
                assert x.dtype == theirs[each].dtype, (each, x.dtype, theirs[each].dtype)
                same(x.local, cut(theirs[each].values, x.distribution, comm.rank), each)
            y = rote.load(tmp_path / name, "[(),()]", str(each), comm=comm)
            same(y.local, raw[each].values, each)

    with theirs:
        run(program, 2)
        run(program, 1)


@pytest.mark.parametrize("dtype, fill, unsigned", [("i4", 1 - 2**31, ""), ("u4", 2**32 - 1, ""), ("i4", -1, "true")])
def test_a_fill_is_no_value(tmp_path: Path, dtype: str, fill: int, unsigned: str) -> None:
    """Law: of elements that are one f4, that which is the fill is NaN, and no other."""
    array = np.array([fill, fill - 1, 4, fill + 1], np.int64).astype(dtype)
    with h5py.File(tmp_path / "x.nc", "w") as file:
        file["u"] = array
        attributes = {"_FillValue": array[0], "scale_factor": np.float32(0.5), "_Unsigned": unsigned}
        file["u"].attrs.update({name: value for name, value in attributes.items() if value != ""})

    decoded = rote.load(tmp_path / "x.nc", decode=True)
    stored = array.astype(f"u{array.itemsize}") if unsigned else array
    want = np.where(array == array[0], np.nan, (stored * np.float64(0.5)).astype("f4"))
    assert decoded.dtype == "f4" and np.array_equal(decoded.to_global(), want, equal_nan=True)


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_attributes_of_netcdf_are_what_xarray_shows(tmp_path: Path, engine: Any) -> None:
    """Law: a number is a number, though netCDF's libraries write a list of one; bools are decoded."""
    attributes = {"n": 3, "f": 0.5, "l": [1, 2], "units": "K"}
    u = xarray.Variable(("t",), [1.0, 2.0], attributes, encoding={"_FillValue": -1.0})
    theirs = xarray.Dataset({"u": u, "b": ("t", [True, False])}, attrs=attributes)
    theirs.to_netcdf(tmp_path / "x.nc", engine=engine)

    assert rote.contents(tmp_path / "x.nc").attributes == attributes
    assert rote.load(tmp_path / "x.nc", name="u", attrs=True)[1] == {**attributes, "_FillValue": -1}
    b = rote.load(tmp_path / "x.nc", name="b", decode=True)
    assert b.dtype == bool and b.tolist() == [True, False]

    with h5py.File(tmp_path / "x.nc", "r+") as file:
        file["b"].attrs["dtype"] = [1, 2]  # of another meaning
    assert rote.load(tmp_path / "x.nc", name="b").tolist() == [1, 0]


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_truth_values_are_attributes_of_netcdf(tmp_path: Path, engine: str) -> None:
    """Law: every library of netCDF shows all attributes; those that are True and False come as 1 and 0."""
    attributes = {"a": True, "b": [True, False], "units": "K"}
    x = rote.DistTensor.zeros(3, "[()]").to_xarray(("t",), name="u", attrs=attributes)
    rote.save(tmp_path / "x.nc", x, attributes=attributes)

    with xarray.open_dataset(tmp_path / "x.nc", engine=engine) as theirs:
        for seen in (theirs.attrs, theirs.u.attrs, *[rote.contents(tmp_path / "x.nc").attributes]):
            assert {name: np.asarray(value).tolist() for name, value in seen.items()} == attributes
    assert rote.load(tmp_path / "x.nc", name="u", attrs=True)[1] == attributes


def test_integers_that_stand_for_nothing(tmp_path: Path) -> None:
    """`decode` of integers without attributes is refused on all ranks; of floats it gives them as they are."""
    rote.save(
        tmp_path / "x.h5", {"n": rote.DistTensor.zeros(4, "[(0)]", dtype="i4"), "u": rote.DistTensor.zeros(4, "[(0)]")}
    )

    def program(comm: Comm) -> None:
        call = lambda: rote.load(tmp_path / "x.h5", name="n", comm=comm, decode=True)  # noqa: E731
        raised(comm, call, RoteError, "n is of integers that stand for no others", "load it without decode=")
        assert rote.load(tmp_path / "x.h5", name="u", comm=comm, decode=True).dtype == "f8"

    run(program, 2)


def test_attributes_with_the_tensor(tmp_path: Path) -> None:
    """`attrs=True` gives the tensor's own attributes beside it, the same on all ranks."""

    def program(comm: Comm) -> None:
        a = tensor(ARRAY, comm).to_xarray(("t", "y"), name="u", attrs={"units": "K", "_FillValue": -1.0})
        for name in ("x.nc", "x.zarr"):
            rote.save(tmp_path / name, a, {"title": "file"})
            x, attributes = rote.load(tmp_path / name, "[(),(0)]", "u", comm=comm, attrs=True)
            assert (x.shape, attributes) == ((4, 6), {"units": "K", "_FillValue": -1.0})

    run(program, 2)


@pytest.mark.parametrize("ranks", (1, 3))
def test_numbers_of_a_run_are_attributes(tmp_path: Path, ranks: int) -> None:
    """A tensor of order 0 is a number among the attributes of a file, a step and an array, alone and in a list."""

    def program(comm: Comm) -> None:
        x = tensor(ARRAY, comm)
        numbers = {
            "energy": x.sum(),
            "ends": [x.min(), 2.5],
            "first": x[0, 0],
            "count": x.argmax(),
            "some": (x > 3).any(),
        }
        wanted = {name: value.tolist() for name, value in numbers.items() if name != "ends"} | {
            "ends": [ARRAY.min(), 2.5]
        }
        for name, step in (("x.h5", None), ("x.zarr", None), ("steps.h5", 2), ("steps.zarr", 2)):
            rote.save(tmp_path / name, {"u": x}, numbers, step)
            assert rote.contents(tmp_path / name, step, comm).attributes == wanted
        rote.save(tmp_path / "x.nc", x.to_xarray(("t", "y"), name="u", attrs={"mean": x.mean()}))
        assert rote.contents(tmp_path / "x.nc", comm=comm).tensors["u"].attributes["mean"] == ARRAY.mean()

    run(program, ranks)


# --- parts ----------------------------------------------------------------------------------------------------------

CUBE = np.arange(7 * 5 * 6.0).reshape(7, 5, 6)
KEYS = [
    np.s_[2:5],
    np.s_[::2, 1:4],
    np.s_[-1],
    np.s_[3, ..., 2],
    np.s_[..., 1::3],
    np.s_[1:6:2, 4, 0:0],
    np.s_[2, 3, 4],
    np.s_[:, 1:100, -5:-1],
    (),
    np.int64(4),
]


def write_cubes(folder: Path) -> list[Path]:
    """The cube in all formats, in chunks that no part fits, also in Fortran order and in another byte order."""
    np.save(folder / "c.npy", CUBE)
    np.save(folder / "f.npy", np.asfortranarray(CUBE.astype(">f8")))
    with h5py.File(folder / "c.h5", "w") as file:
        file.create_dataset("u", data=CUBE, chunks=(2, 3, 4))
    for version in (2, 3):
        group = zarr.create_group(folder / f"c{version}.zarr", zarr_format=version)
        group.create_array("u", shape=CUBE.shape, chunks=(2, 3, 4), dtype="f8")[...] = CUBE
    return sorted(folder.iterdir())


@pytest.mark.parametrize("ranks", [1, 3])
def test_index_reads_a_part(tmp_path: Path, ranks: int) -> None:
    """A part at numbers and slices is NumPy's, in every format, in any layout of the part, with idle ranks too."""
    paths = write_cubes(tmp_path)

    def program(comm: Comm) -> None:
        for number, key in enumerate(KEYS):
            part = CUBE[key]
            names = "abc"[: part.ndim]
            modes = ",".join(["(0)", "()", "()"][: part.ndim])
            layouts = [f"[{modes}]", f"block[{modes[::-1].replace(')', '_').replace('(', ')').replace('_', '(')}]"]
            layouts += [f"{' '.join(names[::-1])}: [{modes}]"] if part.ndim else []
            layouts += [f"[{','.join(['()'] * part.ndim)}]{end}" for end in ("+(0)", "|(0@0)")]
            for path in paths:
                layout = layouts[(number + len(path.name)) % len(layouts)]
                with rote.config(implicit="allow"):
                    x = rote.load(path, layout, comm=comm, index=key)
                same(x.local, cut(part, x.distribution, comm.rank), (path.name, key, layout))

    run(program, ranks)


def test_the_rest_is_not_read(tmp_path: Path) -> None:
    """A chunk in which the part has nothing may be damaged; a part by the names of modes, and by tensors of order 0."""
    group = zarr.create_group(tmp_path / "x.zarr")
    group.create_array("u", shape=(4, 6), chunks=(1, 6), dtype="f8", dimension_names=("t", "y"))[...] = ARRAY
    for chunk in ("0", "1", "3"):
        (tmp_path / "x.zarr" / "u" / "c" / chunk / "0").write_bytes(b"damaged")

    def program(comm: Comm) -> None:
        two = rote.DistTensor.from_function(lambda i: i, 3, "block[(0)]", comm, dtype="i8").max()
        for key in ({"t": slice(2, 3), "y": 1}, {"t": slice(two, two + 1), "y": two - 1}, (slice(two, 3), two - 1)):
            x = rote.load(tmp_path / "x.zarr", name="u", comm=comm, index=key)
            assert x.to_global().tolist() == [13], key
        raised(comm, lambda: rote.load(tmp_path / "x.zarr", name="u", comm=comm), RoteError, "cannot be read")

    run(program, 2)


def test_indices_that_are_refused(tmp_path: Path) -> None:
    """Numbers outside, unknown names and what is no number or slice: one error on all ranks, and which."""
    np.save(tmp_path / "x.npy", ARRAY)
    bad = {
        "outside of mode 0": 4,
        "outside of mode 1": np.s_[:, -7],
        "backwards": np.s_[::-1],
        "another order": (0, 0, 0),
    }
    bad |= {"takes numbers and slices": [0, 1], "names 'time'": {"time": 1}, "has True": True, "has None": (None,)}

    def program(comm: Comm) -> None:
        for text, key in bad.items():
            raised(comm, lambda: rote.load(tmp_path / "x.npy", comm=comm, index=key), IndexError, text, "\n")  # noqa: B023
        mine = slice(0, comm.rank + 1)
        raised(comm, lambda: rote.load(tmp_path / "x.npy", comm=comm, index=mine), rote.CommError, "of indices rank 0")

    run(program, 2)
