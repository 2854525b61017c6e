"""Parallel files: all ranks read and write one file together, each rank its own part.

A format is one row of `FORMATS`, and one module of this folder with its functions. They work on blocks and
distributions: `contents` finds the tensors in a file (`stored`), `fill` reads a rank's block, `put` writes a file.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..errors import RoteError
from ..layout.distribution import Distribution
from ..layout.layout import identity
from ..runtime.choose import Progress
from ..runtime.comm.agreement import collective_errors, from_root
from ..runtime.comm.protocol import Array, Comm, Path
from ..runtime.placement import new_block
from ..units import in_bytes
from .checks import check_dtype, check_file, check_path
from .hdf5 import contents_hdf5, fill_hdf5, is_hdf5, refuse_older, write_hdf5, write_netcdf, write_xdmf, written_in_hdf5
from .hdf5 import library as library_of_hdf5
from .layouts import in_boxes, without_view
from .npy import contents_npy, fill_npy, is_npy, write_npy
from .stored import Contents, Field, StoredTensor
from .transfer import Advance, progress
from .zarr import contents_zarr, fill_zarr, is_store, write_zarr, written_in_zarr
from .zarr import library as library_of_zarr

__all__ = ["FORMATS", "Format", "format_of", "format_of_file"]


class Format(NamedTuple):
    """A format of files. Everything but `contents`, which is of one rank, is collective."""

    name: str
    suffixes: tuple[str, ...]  # in lower case
    many: bool  # whether a file holds several named tensors, attributes and steps
    most: int  # bytes of the largest float; a complex number may have twice as many
    written_in: Callable[[Distribution, np.dtype[Any]], Distribution]  # a similar one, in which a tensor is written
    read_in: Callable[[Distribution], Distribution]  # a similar one, in which a tensor is read
    contents: Callable[[Path, int | None, str | None], Contents]  # what a file holds at a step, or of it one name
    fill: Callable[[Path, StoredTensor, Distribution, Comm, Array, Advance], None]  # reads into this rank's block
    put: Callable[[Path, Sequence[Field], Comm, Mapping[str, Any], int | None, Advance], None]  # a file or a step
    library: Callable[[], object] = lambda: None  # imports what reads and writes it; RoteError if that is missing

    def look(self, path: Path, step: int | None, comm: Comm, name: str | None) -> Contents:
        """What a file holds at a step, or of it one name; only rank 0 reads."""
        return from_root(comm, lambda: self.contents(path, step, name))

    def read(
        self, path: Path, stored: StoredTensor, dist: Distribution, comm: Comm, listener: Progress | None = None
    ) -> Array:
        """Return this rank's block of a tensor in a file, in native byte order; each rank reads its own part.

        Every replica reads. If the tensor is partial, coordinate 0 reads, and the others hold values that the reduction
        ignores. If the tensor has a packing, the block has what the stored elements stand for.
        """
        with collective_errors(comm):
            try:
                block = new_block(dist, comm.rank, stored.dtype)
            except MemoryError:
                nbytes = prod(dist.local_shape(comm.rank)) * stored.dtype.itemsize
                raise RoteError(
                    f"{os.fspath(path)}: shape {stored.shape} and dtype {stored.dtype} leave {in_bytes(nbytes)} to a "
                    "rank, which has not as much memory\nload it on more ranks, in a layout that splits it"
                ) from None

        with progress(comm, "reading", path, block.nbytes, listener) as advance:
            self.fill(path, stored, dist, comm, block, advance)

        if not block.dtype.isnative:
            block = block.byteswap(inplace=True).view(block.dtype.newbyteorder("="))
        if stored.packing is not None:
            block = stored.packing.decode(block)
        if dist.holds(comm.rank) and not dist.contributes(comm.rank):
            block[...] = identity(dist.layout.op, block.dtype)
        return block

    def write(
        self,
        path: Path,
        parts: Sequence[Field],
        comm: Comm,
        attributes: Mapping[str, Any],
        step: int | None,
        listener: Progress | None,
    ) -> None:
        """Write all ranks' parts, distributed as `written_in` says, as one file or as one step of it."""
        with progress(comm, "writing", path, sum(part.block.nbytes for part in parts), listener) as advance:
            self.put(path, parts, comm, attributes, step, advance)

    def check(self, path: Path, parts: Sequence[Field], attributes: Mapping[str, Any], step: int | None) -> None:
        """Refuse tensors, attributes or a step that the format cannot hold, and any if its library is missing."""
        self.library()
        for part in parts:
            check_dtype(part.block.dtype, part.name or "the tensor", self.most)

        says_more = any(part.name or part.dims or part.attributes for part in parts)
        if not self.many and (step is not None or attributes or says_more):
            raise RoteError(
                f"{os.fspath(path)}: a {self.suffixes[0]} file holds one tensor, and no name, dims, attribute or step\n"
                f"write {os.path.splitext(os.fspath(path))[0]}.zarr or .h5"
            )


FORMATS = (
    Format(
        "NumPy", (".npy", ""), False, 16, lambda dist, dtype: dist, lambda dist: dist, contents_npy, fill_npy, write_npy
    ),
    Format(
        "Zarr", (".zarr",), True, 8, written_in_zarr, in_boxes, contents_zarr, fill_zarr, write_zarr, library_of_zarr
    ),
    *[
        Format(
            name, suffixes, True, most, written_in_hdf5, without_view, contents_hdf5, fill_hdf5, write, library_of_hdf5
        )
        for name, suffixes, most, write in (
            ("HDF5", (".h5", ".hdf5"), 16, write_hdf5),
            ("netCDF", (".nc", ".nc4"), 8, write_netcdf),
            ("XDMF", (".xdmf", ".xmf"), 8, write_xdmf),
        )
    ],
)


def format_of(path: Path) -> Format:
    """The format of a file name's suffix, in upper or lower case; `.npy` if there is no suffix.

    A name without one of these suffixes in a `.zarr` folder is an array or a group of that store.

    Raises:
        RoteError: Rote writes no format with this suffix, or no file can have this name.
        TypeError: the name is not a string.

    >>> [format_of(name).name for name in ("run.h5", "run.7/velocity.zarr", "cells.zarr/labels/0")]
    ['HDF5', 'Zarr', 'Zarr']
    """
    name = check_path(path)
    known = {suffix: form for form in FORMATS for suffix in form.suffixes}
    suffix = _suffix(name)
    if suffix in known:
        return known[suffix]

    stem = os.path.splitext(name.rstrip("/"))[0]
    others = ", ".join(suffix for form in FORMATS[1:] for suffix in form.suffixes)
    raise RoteError(
        f"{name} is not the name of a .npy file, nor does it end in {others}\nwrite {stem}.npy or {stem}.zarr"
    )


def _suffix(name: str) -> str:
    """The suffix of a name, in lower case; `.zarr` for what is within a store, unless it has a suffix that is known."""
    stem, suffix = os.path.splitext(name.rstrip("/"))
    known = [suffix for form in FORMATS for suffix in form.suffixes if suffix]
    within = any(folder.lower().endswith(".zarr") for folder in os.path.dirname(stem).split(os.sep))

    return ".zarr" if within and suffix.lower() not in known else suffix.lower()


def format_of_file(path: Path, comm: Comm) -> Format:
    """The format of a file that is read: that of its suffix, or, if none has it, of what is in it. Collective.

    All ranks give the same path; only rank 0 looks into the file.

    Raises:
        RoteError: the file is in no format of Rote's, or there is no file of this name.

    >>> import h5py, rote
    >>> with h5py.File("sample.nxs", "w") as file:
    ...     file["counts"] = [3, 5]
    >>> format_of_file("sample.nxs", rote.runtime.world()).name
    'HDF5'
    """
    suffix = _suffix(os.fspath(path))
    if any(suffix in form.suffixes for form in FORMATS if suffix):
        return format_of(path)

    name = from_root(comm, lambda: _name_of_content(path))
    return next(form for form in FORMATS if form.name == name)


def _name_of_content(path: Path) -> str:
    """The name of the format that a file has by its first bytes, or a folder by its metadata."""
    if os.path.isdir(path) and is_store(path):
        return "Zarr"

    if os.path.exists(path) and not os.path.isdir(path):
        check_file(path)
        for name, has_format in (("NumPy", is_npy), ("HDF5", is_hdf5)):
            if has_format(path):
                return name
        refuse_older(path)
        _refuse_foreign(os.fspath(path))

    if _suffix(os.fspath(path)) and not os.path.lexists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
    return format_of(path).name


_READERS = {
    ".npz": "np.load({!r})['…']",
    ".csv": "np.loadtxt({!r}, delimiter=',')",
    **dict.fromkeys((".txt", ".tsv", ".dat"), "np.loadtxt({!r})"),
}
"""How NumPy reads files of a suffix that Rote does not read; others may be raw numbers."""


def _refuse_foreign(name: str) -> None:
    """Refuse a file that Rote does not read, with the call of NumPy that may read it."""
    reader = _READERS.get(_suffix(name), "np.memmap({!r}, dtype, 'r', shape=shape)").format(name)
    formats = ", ".join(suffix for form in FORMATS for suffix in form.suffixes if suffix)
    raise RoteError(
        f"{name} is in no format that Rote reads: {formats}\n"
        f"let NumPy read it: rote.DistTensor.from_global({reader}, layout, comm)"
    )
