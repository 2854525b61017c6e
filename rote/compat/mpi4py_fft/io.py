"""Files of distributed arrays: HDF5 by h5py, written by one rank after the other, and XDMF files that describe them."""

from __future__ import annotations

import os
import xml.etree.ElementTree as xml
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import groupby, product
from typing import Any, Final

import numpy as np

import rote


class HDF5File:
    """An HDF5 file with groups `name/3D/step` and, of parts of fields, `name/2D/slice_4_slice/step`.

    `domain` has the coordinates of each axis, or (origin, length); a box of length 2π if None. `f` is h5py's file once
    it is opened on this rank; until then, None.

    Examples
    --------
    >>> from rote.compat.mpi4py_fft import DistArray, HDF5File
    >>> u = DistArray((4, 6), val=2)
    >>> file = HDF5File("flow.h5", mode="w")
    >>> file.write(0, {"u": [u]})
    >>> v = DistArray((4, 6))
    >>> file.read(v, "u")
    >>> float(v.sum())
    48.0
    """

    f: Any = None
    backend: Final = staticmethod(lambda: "hdf5")

    def __init__(self, h5name: str, domain: Sequence[Any] | None = None, mode: str = "a", **kw: Any) -> None:
        self.filename: str = h5name
        self.domain: Sequence[Any] | None = domain
        self.comm: rote.runtime.Comm = rote.runtime.world()
        with rote.runtime.collective_errors(self.comm):
            if self.comm.rank == 0:
                self.open(mode, **kw)
                self.close()

    def open(self, mode: str = "r+", **kw: Any) -> None:
        """Open the file as `f`, on this rank."""
        import h5py

        self.f = h5py.File(self.filename, mode, **kw)

    def close(self) -> None:
        """Close the file."""
        self.f.close()

    def write(self, step: int, fields: Mapping[str, Sequence[Any]], as_scalar: bool = False, **kw: Any) -> None:
        """Write fields at a step: by name, lists of arrays, or of pairs (array, part). Collective.

        A part has an index or slice(None) per axis. `as_scalar` makes each component a field with a number in its name.
        """
        pieces = []
        for name, items in fields.items():
            for item in items:
                field, part = item if isinstance(item, tuple | list) else (item, ())
                numbers = product(*map(range, field.shape[: field.rank])) if as_scalar else [()]
                for number in numbers:
                    component = field
                    for n in number:
                        component = component[n]
                    pieces.append(("".join([name, *map(str, number)]), step, component, part, component.part(part)))

        # h5py without MPI lets one process write a file at a time, so ranks take turns.
        for rank in range(self.comm.size):
            with rote.runtime.collective_errors(self.comm):
                if rank == self.comm.rank:
                    self.open()
                    with closing(self):
                        for piece in pieces:
                            self._put(*piece)

    def read(self, u: Any, name: str, step: int = 0, **kw: Any) -> None:
        """Read a whole field into an array, each rank its own block. Collective."""
        with rote.runtime.collective_errors(self.comm):
            self.open("r")
            with closing(self):
                u.v[...] = self.f[f"{name}/{u.dimensions}D/{step}"][u.local_slice()]

    def _put(self, name: str, step: int, field: Any, part: Sequence[Any], x: rote.DistTensor) -> None:
        group, shape = self.f.require_group(name), field.pencil.shape
        for key, value in (("shape", shape), ("rank", field.rank)):
            if not np.array_equal(group.attrs.setdefault(key, value), value):
                raise rote.LayoutError(f"{name} in {self.filename} is of {key} {group.attrs[key]}, the new one {value}")

        domain = ((0, 2 * np.pi),) * len(shape) if self.domain is None else self.domain
        for axis, line in enumerate(domain):
            data = np.squeeze(np.asarray(line))
            place = "mesh" if isinstance(line, np.ndarray) else "domain"
            group.require_dataset(f"{place}/x{axis}", data.shape, data.dtype, data=data)

        words = []
        if part:
            words.append("_".join("slice" if isinstance(index, slice) else str(index) for index in part))
        path = "/".join([f"{x.ndim - field.rank}D", *words, str(step)])
        group.require_dataset(path, x.shape, x.dtype)[x.slices()] = x.local


class NCFile(HDF5File):
    """A NetCDF file, which is not supported.

    Examples
    --------
    >>> from rote.compat.mpi4py_fft import NCFile
    >>> NCFile("flow.nc")
    Traceback (most recent call last):
    rote.RoteError: flow.nc: NetCDF cannot be written or read
    use HDF5File, a name ending in .h5
    """

    def open(self, mode: str = "r+", **kw: Any) -> None:
        """Refuse to open the file."""
        raise rote.RoteError(f"{self.filename}: NetCDF cannot be written or read\nuse HDF5File, a name ending in .h5")


def opened(file: Any, domain: Any, mode: str) -> Any:
    """The file of a name, in the format of its suffix; an open file as it is."""
    if not isinstance(file, str):
        return file
    kind = HDF5File if file.endswith(".h5") else NCFile
    return kind(file, domain, mode)


def generate_xdmf(h5filename: str, periodic: Any = True, order: str = "paraview") -> None:
    """Write an XDMF file beside an HDF5 file, so that ParaView and VisIt show its fields of 2 and 3 axes. On one rank.

    `periodic` says, for all axes or each, whether the end of the box is the same as its beginning. `order` has no
    effect.

    Examples
    --------
    >>> from pathlib import Path
    >>> from rote.compat.mpi4py_fft import DistArray, HDF5File, generate_xdmf
    >>> HDF5File("field.h5", mode="w").write(0, {"u": [DistArray((4, 6))]})
    >>> generate_xdmf("field.h5")
    >>> Path("field.xdmf").exists()
    True
    """
    import h5py

    with h5py.File(h5filename, "r") as file:
        names: list[str] = []

        def keep(name: str, item: object) -> None:
            if isinstance(item, h5py.Dataset):
                names.append(name)

        file.visititems(keep)
        paths = sorted((name.split("/") for name in names), key=lambda path: (path[2:-1], path[-1].zfill(20)))
        shown = [path for path in paths if path[1:2] in (["2D"], ["3D"]) and not file[path[0]].attrs["rank"]]

        for part, steps in groupby(shown, lambda path: "_".join(["", *path[2:-1]])):
            root = xml.Element("Xdmf", Version="3.0")
            domain = xml.SubElement(root, "Domain")
            series = xml.SubElement(domain, "Grid", GridType="Collection", CollectionType="Temporal")
            for step, fields in groupby(steps, lambda path: path[-1]):
                grid, lines = xml.SubElement(series, "Grid", GridType="Uniform"), list[list[float]]()
                xml.SubElement(grid, "Time", Value=step)

                topology = xml.SubElement(grid, "Topology", TopologyType="3DRectMesh")
                mesh = xml.SubElement(grid, "Geometry", GeometryType="VXVYVZ")
                for path in fields:
                    data, lines = file["/".join(path)], _coordinates(file[path[0]], part.split("_")[1:], periodic)
                    if data.dtype.kind == "c":
                        raise rote.RoteError(f"{data.name} is complex, which XDMF cannot show\nwrite a real field")
                    values = xml.SubElement(grid, "Attribute", Name=path[0], Center="Node")
                    number = {"NumberType": "Float", "Precision": str(data.dtype.itemsize)}
                    item = xml.SubElement(values, "DataItem", number, Format="HDF", Dimensions=_sizes(lines))
                    item.text = f"{os.path.basename(h5filename)}:{data.name}"

                topology.set("Dimensions", _sizes(lines))
                for line in reversed(lines):  # the fastest axis comes first
                    xml.SubElement(mesh, "DataItem", Dimensions=_sizes([line])).text = " ".join(map(repr, line))
            xml.ElementTree(root).write(f"{h5filename.removesuffix('.h5')}{part}.xdmf", "utf-8", xml_declaration=True)


def _sizes(lines: Sequence[Sequence[float]]) -> str:
    return " ".join(str(len(line)) for line in lines)


def _coordinates(group: Any, part: Sequence[str], periodic: Any) -> list[list[float]]:
    """The coordinates along three axes, the slowest first, of a field or a part of it."""
    shape, lines = group.attrs["shape"].tolist(), list[list[float]]()
    words = part or ["slice"] * len(shape)
    for axis, (n, word, closed) in enumerate(zip(shape, words, np.broadcast_to(periodic, len(shape)), strict=True)):
        if "mesh" in group:
            line = group[f"mesh/x{axis}"][...]
        else:
            origin, length = group[f"domain/x{axis}"][...]
            line = origin + length / max(1, n - (not closed)) * np.arange(n)
        if word == "slice" or len(shape) == 3:
            lines.append(line.tolist() if word == "slice" else [float(line[int(word)])])
    return [[0.0]] * (3 - len(lines)) + lines
