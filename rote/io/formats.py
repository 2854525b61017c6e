"""The formats of files, a row each: which suffixes they have, how tensors must lie for them, and who reads and writes.

A format is a row of `FORMATS` and a file of this folder. All of its functions work on blocks and distributions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import RoteError
from ..layout.layout import Distribution
from ..runtime.comm.protocol import Array, Comm, Path
from .boxes import in_boxes, without_view
from .hdf5 import look_hdf5, read_hdf5, write_hdf5, written_in_hdf5
from .npy import look_npy, read_npy, write_npy_part
from .stored import Contents, Part, StoredTensor, check_dtype
from .xdmf import look_xdmf, read_xdmf, write_xdmf
from .zarr import look_zarr, read_zarr, write_zarr, written_in_zarr

__all__ = ["FORMATS", "Format", "format_of"]


class Format(NamedTuple):
    """A format of files.

    Attributes:
        name: of the format.
        suffixes: by which names say it, in lower case.
        many: whether a file holds several tensors by name, attributes and steps.
        most: the most bytes of a float; of a complex number, twice as many.
        written_in, read_in: the distribution near a given one in which a tensor is written, and read.
        look: the contents of a file, at a step. Collective, as the others are.
        read: this rank's block of a tensor of a file.
        write: a file, or a step of one, from this rank's parts of tensors.
    """

    name: str
    suffixes: tuple[str, ...]
    many: bool
    most: int
    written_in: Callable[[Distribution, np.dtype[Any]], Distribution]
    read_in: Callable[[Distribution], Distribution]
    look: Callable[[Path, int | None, Comm], Contents]
    read: Callable[[Path, StoredTensor, Distribution, Comm], Array]
    write: Callable[[Path, Sequence[Part], Comm, Mapping[str, Any], int | None], None]

    def check(self, path: Path, parts: Sequence[Part], attributes: Mapping[str, Any], step: int | None) -> None:
        """Refuse what the format does not hold."""
        for part in parts:
            check_dtype(part.block.dtype, part.name or "the tensor", self.most)
        if not self.many and (step is not None or attributes or any(part.name for part in parts)):
            raise RoteError(
                f"{os.fspath(path)}: a {self.suffixes[0]} file holds one tensor, and no name, attribute or step\n"
                f"write {os.path.splitext(os.fspath(path))[0]}.zarr or .h5"
            )


FORMATS = (
    Format(
        *("NumPy", (".npy", ""), False, 16, lambda dist, dtype: dist, lambda dist: dist),
        *(look_npy, read_npy, write_npy_part),
    ),
    Format("Zarr", (".zarr",), True, 8, written_in_zarr, in_boxes, look_zarr, read_zarr, write_zarr),
    Format(
        *("HDF5", (".h5", ".hdf5"), True, 16, written_in_hdf5, without_view, look_hdf5, read_hdf5, write_hdf5),
    ),
    Format(
        *("XDMF", (".xdmf", ".xmf"), True, 8, written_in_hdf5, without_view, look_xdmf, read_xdmf, write_xdmf),
    ),
)


def format_of(path: Path) -> Format:
    """The format that a name says by its suffix, in any case; `.npy` where there is none.

    Raises:
        RoteError: the suffix is of no format that Rote writes.
        TypeError: it is no text.

    >>> format_of("run.h5").name, format_of("run.7/velocity.zarr").name
    ('HDF5', 'Zarr')
    """
    name = os.fspath(path)
    if not isinstance(name, str):
        raise TypeError(f"a path is a text here, not {name!r}\nwrite os.fsdecode(path)")
    stem, suffix = os.path.splitext(name.rstrip("/"))
    for each in FORMATS:
        if suffix.lower() in each.suffixes:
            return each
    others = ", ".join(suffix for each in FORMATS[1:] for suffix in each.suffixes)
    raise RoteError(
        f"{name} is not the name of a .npy file, and of none with {others}\nwrite {stem}.npy or {stem}.zarr"
    )
