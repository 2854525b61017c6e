"""XDMF files, through which ParaView and VisIt show an HDF5 file of the same stem in the same folder.

All tensors are fields at the points of one regular grid of order 2 or 3. A tensor with one more mode, the first, has
components, each a field of its own. Steps become a series in time. The attributes `origin` and `spacing`, one number
per mode, place the grid, and `time` places the step. Of three modes, the last is the viewer's x.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as xml

import numpy as np

from ..errors import RoteError
from ..layout.layout import Distribution
from ..runtime.comm.collective_errors import collective_errors
from ..runtime.comm.protocol import Array, Comm, Path
from .hdf5 import contents_of, look_hdf5, read_hdf5, write_hdf5
from .replacement import replacing
from .stored import Contents, Part, StoredTensor

__all__ = ["look_xdmf", "read_xdmf", "write_xdmf"]

_NUMBERS = {"f": "Float", "i": "Int", "u": "UInt"}


def look_xdmf(path: Path, step: int | None, comm: Comm, name: str | None = None) -> Contents:
    """The contents of the HDF5 file beside an XDMF file; see `look_hdf5`."""
    return look_hdf5(_beside(path), step, comm, name)


def read_xdmf(path: Path, stored: StoredTensor, dist: Distribution, comm: Comm) -> Array:
    """This rank's block of a tensor in the HDF5 file beside an XDMF file; see `read_hdf5`."""
    return read_hdf5(_beside(path), stored, dist, comm)


def write_xdmf(
    path: Path, parts: Sequence[Part], comm: Comm, attributes: Mapping[str, Any], step: int | None = None
) -> None:
    """Write an HDF5 file, or a step of it, and then the XDMF file beside it that describes all of its steps.

    Each of the two gets its name only when it is complete.
    """
    with collective_errors(comm):
        _fields(path, {part.name: StoredTensor(part.dist.shape, part.block.dtype) for part in parts})
    write_hdf5(_beside(path), parts, comm, attributes, step)
    with replacing(path, comm, lambda draft: None) as draft, collective_errors(comm):
        if comm.rank == 0:
            with open(draft.path, "w", encoding="utf-8") as file:
                file.write(_text(path))


def _beside(path: Path) -> str:
    """The name of the HDF5 file."""
    return os.path.splitext(os.fspath(path))[0] + ".h5"


def _text(path: Path) -> str:
    """The XML that describes all steps, or a file without steps."""
    first = contents_of(_beside(path), None)
    root = xml.Element("Xdmf", Version="3.0")
    domain = xml.SubElement(root, "Domain")
    if not first.steps:
        _add_grid(domain, path, first)
    else:
        series = xml.SubElement(domain, "Grid", Name="steps", GridType="Collection", CollectionType="Temporal")
        for step in first.steps:
            _add_grid(series, path, contents_of(_beside(path), step))
    xml.indent(root)
    return '<?xml version="1.0" ?>\n' + xml.tostring(root, encoding="unicode") + "\n"


def _fields(path: Path, tensors: Mapping[str, StoredTensor]) -> tuple[int, ...]:
    """The shape of the grid on which all tensors are fields; refused if there is none, or viewers do not read them."""
    name = os.fspath(path)
    shapes = sorted({stored.shape for stored in tensors.values()}, key=len)
    shape = shapes[0][1:] if len(shapes[0]) == 4 else shapes[0]
    fits = len(shape) in (2, 3) and all(each in (shape, (each[0], *shape)) for each in shapes)
    if not fits or 0 in shape:
        raise RoteError(
            f"{name} shows fields on one grid of order 2 or 3, not tensors of shapes {', '.join(map(str, shapes))}\n"
            "save them apart, or as .h5"
        )
    for key, stored in tensors.items():
        if stored.dtype.kind not in _NUMBERS or stored.dtype.itemsize > 8:
            cure = {"c": "x.real and x.imag", "b": "x.astype('u1')"}.get(stored.dtype.kind, "x.astype('f8')")
            raise RoteError(f"{name} cannot show {key or 'the tensor'}, of dtype {stored.dtype}\nsave {cure} of it")
    return shape


def _add_grid(parent: xml.Element, path: Path, contents: Contents) -> None:
    """Add the grid of one step with its fields."""
    shape = _fields(path, contents.tensors)
    order = len(shape)
    grid = xml.SubElement(parent, "Grid", Name=f"step {contents.step or 0}", GridType="Uniform")
    if contents.step is not None:
        time = contents.attributes.get("time")
        is_time = isinstance(time, int | float) and not isinstance(time, bool)
        xml.SubElement(grid, "Time", Value=repr(time if is_time else contents.step))
    xml.SubElement(grid, "Topology", TopologyType=f"{order}DCoRectMesh", Dimensions=_row(shape))
    geometry = xml.SubElement(grid, "Geometry", GeometryType="ORIGIN_DXDY" + "DZ" * (order == 3))
    for name, usual in (("origin", 0.0), ("spacing", 1.0)):
        given = np.ravel(contents.attributes.get(name, [usual] * order))
        numbers = given.tolist() if given.size == order and given.dtype.kind in "iuf" else [usual] * order
        _add_item(geometry, _row(numbers), (order,), NumberType="Float", Format="XML")
    for name, stored in contents.tensors.items():
        number = {"NumberType": _NUMBERS[stored.dtype.kind], "Precision": str(stored.dtype.itemsize)}
        source = f"{os.path.basename(_beside(path))}:{stored.place}"
        components = stored.shape != shape
        count = stored.shape[0] if components else 1
        for k in range(count):
            title = f"{name}_{k}" if components else name
            field = xml.SubElement(grid, "Attribute", Name=title, AttributeType="Scalar", Center="Node")
            if components:
                field = _add_item(field, "", shape, ItemType="HyperSlab", **number)
                corners = (k, *(0 for _ in shape), *(1 for _ in stored.shape), 1, *shape)
                _add_item(field, _row(corners), (3, order + 1), Format="XML")
            _add_item(field, source, stored.shape, Format="HDF", **number)


def _add_item(parent: xml.Element, text: str, extents: Sequence[int], **attributes: str) -> xml.Element:
    item = xml.SubElement(parent, "DataItem", {"Dimensions": _row(extents), **attributes})
    item.text = text
    return item


def _row(numbers: Sequence[float]) -> str:
    return " ".join(map(repr, numbers))
