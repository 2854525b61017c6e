"""`.npy` files: any number of ranks, in any layout, read and write one file at once.

Each rank moves its own elements between its block and their positions in the file (`regions.file_region`). Large blocks
whose elements are scattered in the file are written, and on several nodes read, as rows that plans move (`staging`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from ..errors import RoteError
from ..layout.distribution import Distribution
from ..runtime.comm.agreement import collective_errors
from ..runtime.comm.protocol import Array, Comm, Path
from ..runtime.comm.rawfile import SMALL_PART, FilePart, plainly, transfer
from ..runtime.regions import file_region
from .layouts import writes
from .staging import Staging
from .stored import Contents, Part, StoredTensor, check_dtype, pick_step
from .transfer import Draft, progress, replacing, reserve

__all__ = ["contents_npy", "fill_npy", "read_header", "write_npy"]


class _Elements(NamedTuple):
    """Where the elements are in a `.npy` file."""

    offset: int  # the byte at which they begin
    fortran_order: bool  # whether mode 0 runs fastest, rather than the last mode


def contents_npy(path: Path, step: int | None, name: str | None = None) -> Contents:
    """The contents of a `.npy` file, read by this rank alone: one tensor, and no steps."""
    return Contents({"data": read_header(path)}, {}, pick_step(path, step, (), True))


def fill_npy(
    path: Path, stored: StoredTensor, dist: Distribution, comm: Comm, block: Array, advance: Callable[[int], None]
) -> None:
    """Read the tensor in a `.npy` file into this rank's block. Collective; each rank reads its own part.

    On one node, and for blocks below 1 MiB, no memory beyond the block is needed. Otherwise, blocks need a few pieces
    of 4 MiB, or at most three more blocks where they cannot be read in pieces (`Staging`).
    """
    offset, fortran_order = stored.place
    staging = None if fortran_order else Staging.of(dist, stored.dtype.itemsize, comm, writing=False)
    if staging is not None:
        staging.read(path, offset, block, comm, advance)
        return

    def part() -> FilePart:
        region = file_region(dist, comm.rank, fortran_order, writing=False)
        return FilePart(path, offset, dist.shape, region, block, writing=False)

    transfer(comm, part, advance)


def write_npy(
    path: Path, parts: Sequence[Part], comm: Comm, attributes: Mapping[str, Any], step: int | None = None
) -> None:
    """Write all ranks' parts of one tensor as a `.npy` file, byte for byte as `numpy.save` would. Collective.

    Each rank writes its own part; of the replicas, only those at coordinate 0 write. A large tensor whose ranks hold
    only short runs of the file is redistributed into rows, which needs as much memory as reading on several nodes.
    The file gets its name, exactly `path` (no suffix is added), when it is complete. It replaces an existing file in
    one step; on any failure that file stays as it was, and nothing else is left in the folder. If `path` is a link,
    the file that it points to is replaced.
    """
    (_, block, dist, _) = parts[0]
    with (
        replacing(path, comm, lambda draft: _begin(draft, path, dist, block.dtype)) as draft,
        progress(comm, "writing", path, block.nbytes) as advance,
        plainly(path),
    ):
        with collective_errors(comm):
            offset = os.path.getsize(draft.path) - prod(dist.shape) * block.dtype.itemsize
            block = np.asarray(block, order="C")
        staging = Staging.of(dist, block.dtype.itemsize, comm, writing=True)
        if staging is not None:
            staging.write(draft.path, offset, block, comm, advance)
            return

        def part() -> FilePart:
            region = file_region(dist, comm.rank, False, writing=True)
            if not writes(dist, comm.rank):
                region = replace(region, pieces=())
            return FilePart(draft.path, offset, dist.shape, region, block, writing=True)

        transfer(comm, part, advance)


def read_header(path: Path) -> StoredTensor:
    """The tensor in a `.npy` file (versions 1 to 3), by its header, read by this rank alone.

    A file may be longer than its header says, as in NumPy.
    """
    name = os.fspath(path)
    stem, suffix = os.path.splitext(name)
    if suffix.lower() not in ("", ".npy"):
        raise RoteError(f"{name} is not the name of a .npy file, the format of Rote's\nwrite {stem}.npy")
    if stat.S_ISFIFO(os.stat(path).st_mode):  # opening one would wait for a writer
        raise RoteError(f"{name} is a pipe, of which ranks cannot read parts\ngive a file")
    with open(path, "rb") as file:
        magic = file.read(npy.MAGIC_LEN)
        if magic[:6] != npy.MAGIC_PREFIX[: len(magic)] or not magic:
            begins = f"it begins with {magic!r}" if magic else "it is empty"
            hint = "numpy.load it and save one of its arrays" if magic[:2] == b"PK" else "write one with numpy.save"
            raise RoteError(f"{name} is not a .npy file: {begins}\n{hint}")
        file.seek(0)
        try:
            version = npy.read_magic(file)
            if version not in ((1, 0), (2, 0), (3, 0)):
                raise ValueError(f"version {version[0]}.{version[1]} of the format is not known")
            # Versions 2 and 3 differ only in the encoding of field names, and Rote's arrays have no fields.
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran_order, dtype = read(file)
            if any(isinstance(n, bool) or not 0 <= n < 2**63 for n in shape):
                raise ValueError(f"shape is not valid: {shape}")
        except OSError:
            raise
        except Exception as error:  # a damaged header can make NumPy's parser raise nearly anything
            raise RoteError(f"{name} has a damaged .npy header: {error}\ngive a whole copy of the file") from None
        place = _Elements(file.tell(), fortran_order)
        has = os.fstat(file.fileno()).st_size
    check_dtype(dtype, name)
    needs = place.offset + prod(shape) * dtype.itemsize
    if has < needs:
        raise RoteError(
            f"{name} is truncated: shape {shape} and dtype {dtype} need {needs} bytes, but it has {has}\n"
            "give a whole copy of the file"
        )
    return StoredTensor(shape, dtype, place=place)


def _begin(draft: Draft, path: Path, dist: Distribution, dtype: np.dtype[Any]) -> None:
    """Give a file its header and its full size, and allocate space for it on the disk if parts are small.

    Small parts may be written through mapped pages, which need reserved space. System calls report a full disk
    themselves, and are faster if they allocate space as they write.
    """
    with plainly(path):
        with open(draft.path, "r+b") as file:
            descr = npy.dtype_to_descr(dtype)
            npy.write_array_header_1_0(file, {"shape": dist.shape, "fortran_order": False, "descr": descr})
            size = file.tell() + prod(dist.shape) * dtype.itemsize
            file.truncate(size)
        if prod(dist.max_local_shape()) * dtype.itemsize < SMALL_PART:
            reserve(draft.path, size)
