"""Files of distributed arrays: HDF5 by h5py, one rank after the other, and XDMF beside it."""

from __future__ import annotations

import os
import xml.etree.ElementTree as xml
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import product
from typing import Any, Final

import numpy as np

import rote


class FileBase:
    """A file of fields; `domain` has the coordinates of each axis, or (origin, length), a box of length 2π if None."""

    filename: str
    domain: Sequence[Any] | None

    def __init__(self, filename: str, domain: Sequence[Any] | None = None, mode: str = "a", **kw: Any) -> None:
        self.filename, self.domain, self._comm = filename, domain, rote.runtime.world()
        with rote.runtime.collective_errors(self._comm):
            self.create(mode, **kw)

    def create(self, mode: str, **kw: Any) -> None:
        """Refuse to make a file of a kind that cannot be had."""
        raise rote.RoteError(
            f"{self.filename}: NetCDF cannot be written or read\nuse HDF5File, a name that ends in .h5"
        )


class NCFile(FileBase):
    """A NetCDF file, which cannot be had."""


class HDF5File(FileBase):
    """An HDF5 file with groups `name/3D/step` and, of parts of fields, `name/2D/slice_4_slice/step`."""

    f: Any

    backend: Final = staticmethod(lambda: "hdf5")

    def create(self, mode: str, **kw: Any) -> None:
        """Make the file, or see that it is there."""
        if self._comm.rank == 0:
            self.open(mode, **kw)
            self.close()

    def open(self, mode: str = "r+", **kw: Any) -> None:
        """Open the file as `f`, on this rank."""
        import h5py

        self.f = h5py.File(self.filename, mode, **kw)

    def close(self) -> None:
        """Close it."""
        self.f.close()

    def write(self, step: int, fields: Mapping[str, Sequence[Any]], as_scalar: bool = False) -> None:
        """Write fields at a step: by name, lists of arrays, or of pairs of an array and a part of it. Collective.

        A part has an index or slice(None) per axis. `as_scalar` makes each component a field with a number in its name.
        """
        for rank in range(self._comm.size):
            with rote.runtime.collective_errors(self._comm):
                if rank == self._comm.rank:
                    self.open()
                    with closing(self):
                        for name, field, part in _scalars(fields, as_scalar):
                            self._put(name, str(step), field, part)

    def read(self, u: Any, name: str, step: int = 0) -> None:
        """Read a whole field into an array, each rank its own block. Collective."""
        with rote.runtime.collective_errors(self._comm):
            self.open("r")
            with closing(self):
                u.v[...] = self.f[f"{name}/{u.dimensions}D/{step}"][u.local_slice()]

    def _put(self, name: str, step: str, field: Any, part: Sequence[Any] | None) -> None:
        group, shape = self.f.require_group(name), field.pencil.shape
        for key, value in (("shape", shape), ("rank", field.rank)):
            if not np.array_equal(group.attrs.setdefault(key, value), value):
                raise rote.LayoutError(f"{name} in {self.filename} is of {key} {group.attrs[key]}, the new one {value}")
        for axis, line in enumerate(((0, 2 * np.pi),) * len(shape) if self.domain is None else self.domain):
            data, place = np.squeeze(np.asarray(line)), "mesh" if isinstance(line, np.ndarray) else "domain"
            group.require_dataset(f"{place}/x{axis}", data.shape, data.dtype, data=data)
        every = (slice(None),) * field.rank + tuple(part or (slice(None),) * len(shape))
        words = ["slice" if isinstance(index, slice) else str(index) for index in every[field.rank :]]
        path = [f"{words.count('slice')}D", *(["_".join(words)] if part else []), step]
        extents = tuple(n for n, index in zip(field.global_shape, every, strict=True) if isinstance(index, slice))
        data, (some, block, held) = group.require_dataset("/".join(path), extents, field.dtype), field.part(every)
        if some:
            data[held] = block


def generate_xdmf(h5filename: str, periodic: Any = True, order: str = "paraview") -> None:
    """Write beside an HDF5 file the XDMF by which ParaView and VisIt show its fields of 2 and 3 axes. On one rank.

    `periodic` says, for all axes or each, whether the end of a box is its beginning. `order` has no effect.
    """
    import h5py

    with h5py.File(h5filename, "r") as file:
        paths: list[str] = []
        file.visititems(lambda path, item: paths.append(path) if isinstance(item, h5py.Dataset) else None)
        every: dict[str, dict[int, list[str]]] = {}
        for path in paths:
            name, kind, *place, number = path.split("/")
            if kind in ("2D", "3D") and not file[name].attrs["rank"]:
                every.setdefault("_".join(["", *place]), {}).setdefault(int(number), []).append(path)
        for where, steps in every.items():
            root = xml.Element("Xdmf", Version="3.0")
            series = _under(_under(root, "Domain"), "Grid", GridType="Collection", CollectionType="Temporal")
            for step, fields in sorted(steps.items()):
                grid, lines = _under(series, "Grid", GridType="Uniform"), _coordinates(file, fields[0], where, periodic)
                sizes = " ".join(str(len(line)) for line in lines)
                _under(grid, "Time", Value=str(step))
                _under(grid, "Topology", TopologyType="3DRectMesh", Dimensions=sizes)
                mesh = _under(grid, "Geometry", GeometryType="VXVYVZ")
                for line in reversed(lines):  # the axis that runs fastest first
                    _under(mesh, "DataItem", Dimensions=str(len(line))).text = " ".join(map(repr, line))
                for path in fields:
                    if file[path].dtype.kind == "c":
                        raise rote.RoteError(f"{path} is complex, which XDMF cannot show\nwrite a real field")
                    values = _under(grid, "Attribute", Name=path.split("/")[0], Center="Node")
                    item = _under(values, "DataItem", Format="HDF", NumberType="Float", Dimensions=sizes)
                    item.attrib["Precision"], item.text = (
                        str(file[path].dtype.itemsize),
                        f"{os.path.basename(h5filename)}:/{path}",
                    )
            xml.ElementTree(root).write(f"{h5filename.removesuffix('.h5')}{where}.xdmf", "utf-8", xml_declaration=True)


def _under(parent: Any, tag: str, **attributes: str) -> Any:
    return xml.SubElement(parent, tag, attributes)


def _coordinates(file: Any, path: str, where: str, periodic: Any) -> list[list[float]]:
    """The coordinates along three axes, the slowest first, of a field or of the part that `where` names."""
    group, lines = file[path.split("/")[0]], list[list[float]]()
    shape = group.attrs["shape"].tolist()
    words = where.split("_")[1:] or ["slice"] * len(shape)
    for axis, (n, word, closed) in enumerate(zip(shape, words, np.broadcast_to(periodic, len(shape)), strict=True)):
        if "mesh" in group:
            line = group[f"mesh/x{axis}"][...]
        else:
            origin, length = group[f"domain/x{axis}"][...]
            line = origin + length / max(1, n - (not closed)) * np.arange(n)
        if word == "slice" or len(shape) == 3:
            lines.append(line.tolist() if word == "slice" else [float(line[int(word)])])
    return [[0.0]] * (3 - len(lines)) + lines


def _scalars(fields: Mapping[str, Sequence[Any]], as_scalar: bool) -> Iterator[tuple[str, Any, Sequence[Any] | None]]:
    """The name, the field and the part of all that is to be written."""
    for name, items in fields.items():
        for field, part in (item if isinstance(item, tuple | list) else (item, None) for item in items):
            for at in product(*map(range, field.shape[: field.rank])) if as_scalar else [()]:
                yield "".join([name, *map(str, at)]), field[at] if at else field, part
