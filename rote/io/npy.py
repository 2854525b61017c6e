"""`.npy` files in parallel: any number of ranks, in any layout, read and write one file at once.

Each rank copies its own elements between its block and their positions in the file (`rote.io.positions`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.lib import format as npy

from ..errors import CommError, LayoutError, RoteError
from ..layout.grid import check_grid
from ..layout.indexset import IndexSet
from ..layout.layout import Distribution
from ..runtime.comm.collective_errors import collective_errors, from_root
from ..runtime.comm.protocol import Array, Comm, Path
from ..runtime.placement import new_block
from .mapped import picks_from_pages, read_pages
from .positions import LARGE, FileTransfer, is_scattered, transfers, writes
from .progress import progress, slabs
from .replacement import Draft, plainly, replacing, reserve
from .staging import Staging
from .stored import Contents, Part, StoredTensor, check_dtype, check_shape, finish, pick_step, refuse_partial

__all__ = ["Header", "read_block", "read_header", "write_npy"]


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a `.npy` file."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]  # in either byte order
    fortran_order: bool  # whether mode 0 runs fastest, rather than the last mode
    offset: int  # the byte at which the elements begin


def read_header(path: Path, comm: Comm) -> Header:
    """The header of a `.npy` file (versions 1 to 3), the same on all ranks. Collective; only rank 0 reads.

    A file may be longer than its header says, as in NumPy.
    """
    return from_root(comm, lambda: _parse(path))


def read_block(path: Path, header: Header, dist: Distribution, comm: Comm) -> Array:
    """This rank's block of the array in a `.npy` file, in native byte order. Collective; each rank reads its own part.

    Every replica reads. If the distribution is partial, coordinate 0 reads, and the others hold values that the
    reduction ignores. On one node no memory beyond the block is needed if the block is large or has the file's order
    (`io.mapped`). Otherwise, blocks from 1 MiB on need a few pieces of 4 MiB, or at most three more blocks where they
    cannot be read in pieces (`io.staging`).

    >>> import tempfile, os
    >>> from rote.layout.layout import parse
    >>> from rote.runtime import world
    >>> dist = parse("block[(0),()]").on((2, 3), 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.npy")
    ...     write_npy(path, np.arange(6.0).reshape(2, 3), dist, world())
    ...     header = read_header(path, world())
    ...     header.shape, np.load(path).tolist(), read_block(path, header, dist, world()).tolist()
    ((2, 3), [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    """
    check_grid(dist.grid, comm.size)
    check_shape(path, header.shape, dist)
    reads = dist.holds(comm.rank) and dist.contributes(comm.rank)
    with collective_errors(comm):
        block = new_block(dist, comm.rank, header.dtype)
    with progress(comm, "reading", path, block.nbytes) as advance:
        staging = None if header.fortran_order else Staging.of(dist, header.dtype.itemsize, comm, writing=False)
        if staging is not None:
            staging.read(path, header.offset, block, comm, advance)
            return finish(block, dist, comm.rank)
        if picks_from_pages(dist, header.dtype.itemsize, header.fortran_order, comm):
            read_pages(path, header.offset, block, dist, header.fortran_order, comm, advance)
            return finish(block, dist, comm.rank)
        for transfer in transfers(block, dist, header.fortran_order, reads, comm):
            for index, buffer in _slabs(transfer, dist, header.fortran_order):
                comm.read(path, header.offset, transfer.shape, index, buffer)
                advance(buffer.nbytes)
            transfer.put()
    return finish(block, dist, comm.rank)


def write_npy(path: Path, block: Array, dist: Distribution, comm: Comm) -> None:
    """Write all ranks' blocks as one `.npy` file, byte for byte as `numpy.save` would. Collective.

    Each rank writes its own part; of the replicas, only those at coordinate 0 write. A large tensor whose ranks hold
    only short runs of the file is redistributed into rows, which needs as much memory as `read_block` on several nodes.
    The file gets its name, exactly `path` (no suffix is added), when it is complete. It replaces an existing file in
    one step; on any failure that file stays as it was, and nothing else is left in the folder. If `path` is a link,
    the file that it points to is replaced.
    """
    check_grid(dist.grid, comm.size)
    refuse_partial(dist)
    with collective_errors(comm):
        _check_name(path)
        check_dtype(block.dtype, "the tensor")
        wanted = dist.local_shape(comm.rank)
        if block.shape != wanted:
            raise LayoutError(f"rank {comm.rank} holds a block of {wanted} in {dist}, not {block.shape}")
    said = comm.allgather_object((block.dtype.str, is_scattered(block, dist, comm.rank)))
    dtypes = [np.dtype(name) for name, _ in said]
    if len(set(dtypes)) > 1:
        raise CommError(f"the ranks hold blocks of several dtypes: {', '.join(map(str, dtypes))}; convert to one")
    small = prod(dist.max_local_shape()) * block.dtype.itemsize < LARGE
    pages = any(scattered for _, scattered in said) and comm.share_reference(comm.rank) is not None
    with (
        replacing(path, comm, lambda draft: _begin(draft, path, dist.shape, block.dtype, small or pages)) as draft,
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
        for transfer in transfers(block, dist, False, writes(dist, comm.rank), comm):
            with collective_errors(comm):
                transfer.take()
            for index, buffer in _slabs(transfer, dist, False):
                comm.write(draft.path, offset, transfer.shape, index, buffer)
                advance(buffer.nbytes)


def _slabs(
    transfer: FileTransfer, dist: Distribution, fortran_order: bool
) -> Iterator[tuple[tuple[IndexSet, ...], Array]]:
    """A transfer in slabs, equally many on every rank; in one piece if it goes through a buffer of its own."""
    if dist.layout.view is None and not fortran_order:
        yield from slabs(transfer.index, transfer.buffer, dist.max_local_shape())
    else:
        yield transfer.index, transfer.buffer


def _parse(path: Path) -> Header:
    """The header of a file, checked against the file's size."""
    _check_name(path)
    name = os.fspath(path)
    if stat.S_ISFIFO(os.stat(path).st_mode):  # opening one would wait for a writer
        raise RoteError(f"{name} is a pipe, of which ranks cannot read parts\ngive a file")
    with open(path, "rb") as file:
        magic = file.read(npy.MAGIC_LEN)
        if magic[:6] != npy.MAGIC_PREFIX[: len(magic)] or not magic:
            begins = f"it begins with {magic!r}" if magic else "it is empty"
            cure = "numpy.load it and save one of its arrays" if magic[:2] == b"PK" else "write one with numpy.save"
            raise RoteError(f"{name} is not a .npy file: {begins}\n{cure}")
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
        header = Header(shape, dtype, fortran_order, file.tell())
        has = os.fstat(file.fileno()).st_size
    check_dtype(dtype, name)
    needs = header.offset + prod(shape) * dtype.itemsize
    if has < needs:
        raise RoteError(
            f"{name} is truncated: shape {shape} and dtype {dtype} need {needs} bytes, but it has {has}\n"
            "give a whole copy of the file"
        )
    return header


def _check_name(path: Path) -> None:
    """Refuse file names with the suffix of another format; no suffix is fine."""
    name = os.fspath(path)
    stem, suffix = os.path.splitext(name)
    if suffix.lower() not in ("", ".npy"):
        raise RoteError(f"{name} is not the name of a .npy file, the format of Rote's\nwrite {stem}.npy")


def _begin(draft: Draft, path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], reserved: bool) -> None:
    """Give a file its header and its full size, and allocate space for it on the disk if `reserved`.

    Space must be reserved if threads write scattered elements to mapped pages, and is reserved also if that costs
    little. System calls report a full disk themselves, and are faster if they allocate space as they write.
    """
    with plainly(path):
        with open(draft.path, "r+b") as file:
            descr = npy.dtype_to_descr(dtype)
            npy.write_array_header_1_0(file, {"shape": shape, "fortran_order": False, "descr": descr})
            size = file.tell() + prod(shape) * dtype.itemsize
            file.truncate(size)
        if reserved:
            reserve(draft.path, size)


def look_npy(path: Path, step: int | None, comm: Comm, name: str | None = None) -> Contents:
    """The contents of a `.npy` file: one tensor, and no steps. Collective."""
    header = read_header(path, comm)
    stored = StoredTensor(header.shape, header.dtype, place=header)
    return Contents({"data": stored}, {}, pick_step(path, step, (), True))


def read_npy(path: Path, stored: StoredTensor, dist: Distribution, comm: Comm) -> Array:
    """This rank's block of the tensor in a `.npy` file, by `read_block`."""
    return read_block(path, stored.place, dist, comm)


def write_npy_part(
    path: Path, parts: Sequence[Part], comm: Comm, attributes: Mapping[str, Any], step: int | None = None
) -> None:
    """Write the only part, by `write_npy`. The format has no attributes and no steps."""
    write_npy(path, parts[0].block, parts[0].dist, comm)
