"""HDF5 files: each rank reads and writes its own hyperslabs.

A tensor is a dataset of its name, and a step is a group named by its number. Ranks always read at once. They write at
once if h5py was built with MPI, and otherwise in turn; only then are datasets chunked, with Fletcher's checksum.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

from ..errors import RoteError
from ..layout.grid import check_grid
from ..layout.indexset import IndexSet, Strided
from ..layout.layout import Distribution
from ..runtime.comm.collective_errors import collective_errors, from_root
from ..runtime.comm.protocol import Array, Comm, MpiHandle, Path
from ..runtime.comm.rawfile import strided_parts
from ..runtime.placement import new_block
from .boxes import chunk_extents, without_view
from .positions import in_long_runs, writes
from .progress import progress, slabs
from .replacement import Draft, replacing, reserve, sync
from .stored import Contents, Part, StoredTensor, check_shape, finish, kept_attributes, pick_step, readably

__all__ = ["contents_of", "look_hdf5", "parallel", "read_hdf5", "write_hdf5", "written_in_hdf5"]

_CHUNK = 1 << 20  # bytes: the size of HDF5's chunk cache for a dataset
_SLACK = 1 << 16  # bytes: room for a file's metadata
_UNNAMED = "data"


def written_in_hdf5(dist: Distribution, dtype: np.dtype[Any]) -> Distribution:
    """The distribution in which a tensor is written: its own, or one without a view and with longer runs."""
    return in_long_runs(without_view(dist), dtype.itemsize)


def look_hdf5(path: Path, step: int | None, comm: Comm) -> Contents:
    """The tensors in a file, in groups of any depth, with its attributes and steps. Collective; only rank 0 reads."""
    return from_root(comm, lambda: contents_of(path, step))


def contents_of(path: Path, step: int | None) -> Contents:
    """The contents of a file, read by this rank alone."""
    h5py = _library()
    with readably(path, "read"), open(path, "rb"), h5py.File(path, "r") as file:
        return _contents(h5py, file, path, step)


def read_hdf5(path: Path, stored: StoredTensor, dist: Distribution, comm: Comm) -> Array:
    """This rank's block of a tensor in a file, in native byte order. Collective; each rank reads its own part."""
    check_grid(dist.grid, comm.size)
    check_shape(path, stored.shape, dist)
    with collective_errors(comm), readably(path, "read"):
        h5py = _library()
        block = new_block(dist, comm.rank, stored.dtype)
        if block.size and dist.contributes(comm.rank):
            with h5py.File(path, "r") as file, progress(comm, "reading", path, block.nbytes) as advance:
                for index, slab in slabs(dist.index_sets(comm.rank), block, dist.max_local_shape()):
                    for places, part in strided_parts(index, slab):
                        part[...] = file[stored.place][_select(h5py, places)].reshape(part.shape)
                    advance(slab.nbytes)
    return finish(block, dist, comm.rank)


def write_hdf5(
    path: Path, parts: Sequence[Part], comm: Comm, attributes: Mapping[str, Any], step: int | None = None
) -> None:
    """Write all ranks' parts, distributed as `written_in_hdf5` says, as one file or as one step of it. Collective.

    The file gets its name only when it is complete, like a `.npy` file. A step, with its attributes, is written into a
    copy of the file, in which everything else stays.
    """
    with collective_errors(comm):
        h5py = _library()
    nbytes = sum(prod(part.dist.shape) * part.block.dtype.itemsize for part in parts)
    world = comm.handle if isinstance(comm, MpiHandle) and parallel() else None
    with (
        replacing(path, comm, partial(_begin, h5py, path, parts, attributes, step, world is not None)) as draft,
        progress(comm, "writing", path, nbytes) as advance,
    ):
        if world is not None:
            mpio = {"driver": "mpio", "comm": world}
            with collective_errors(comm), readably(path, "written"), h5py.File(draft.path, "r+", **mpio) as file:
                _put(h5py, file, parts, comm.rank, step, lambda moved: advance(moved * comm.size))
            return
        for turn in range(comm.size):
            with collective_errors(comm), readably(path, "written"):
                if turn == comm.rank and any(part.block.size and writes(part.dist, turn) for part in parts):
                    needs = sum(_room(dist, block.dtype, dist.index_sets(turn)) for _, block, dist in parts)
                    reserve(draft.path, os.path.getsize(draft.path) + needs)
                    with h5py.File(draft.path, "r+") as file:
                        _put(h5py, file, parts, turn, step, advance)
                    sync(draft.path)
                elif turn != comm.rank:
                    advance(nbytes // comm.size)


def parallel() -> bool:
    """Whether h5py was built with MPI, so that all ranks write at once."""
    return bool(_library().get_config().mpi)


def _library() -> ModuleType:
    try:
        import h5py
    except ImportError:
        raise RoteError("HDF5 files need h5py\npip install h5py") from None
    module: ModuleType = h5py
    return module


def _contents(h5py: ModuleType, file: Any, path: Path, step: int | None) -> Contents:
    """The contents of an open file; of one step, if it has steps."""
    groups = {name for name in file if file.get(name, getclass=True) is h5py.Group}
    steps = tuple(sorted(int(name) for name in groups if name.isdecimal()))
    tensors: dict[str, StoredTensor] = {}

    def collect(prefix: str, name: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset) and node.shape is not None:
            tensors[prefix + name] = StoredTensor(node.shape, node.dtype, node.name)

    for name in file:
        if name in groups and not name.isdecimal():
            file[name].visititems(partial(collect, f"{name}/"))
        elif file.get(name, getclass=True) is h5py.Dataset:
            collect("", name, file[name])
    chosen = pick_step(path, step, steps, bool(tensors))
    group = file if chosen is None else file[str(chosen)]
    if chosen is not None:
        tensors.clear()
        group.visititems(partial(collect, ""))
    return Contents(tensors, kept_attributes(group.attrs), chosen, steps)


def _begin(
    h5py: ModuleType,
    path: Path,
    parts: Sequence[Part],
    attributes: Mapping[str, Any],
    step: int | None,
    at_once: bool,
    draft: Draft,
) -> None:
    """Create all datasets and attributes in a draft file, which for a step starts as a copy of the existing file."""
    with readably(path, "written"):
        adds = step is not None and os.path.exists(draft.target)
        if adds:
            shutil.copyfile(draft.target, draft.path)
        whole = [tuple(IndexSet.interval(0, n) for n in part.dist.shape) for part in parts]
        needs = sum(_room(part.dist, part.block.dtype, index) for part, index in zip(parts, whole, strict=True))
        reserve(draft.path, os.path.getsize(draft.path) + needs)
        with h5py.File(draft.path, "r+" if adds else "w") as file:
            if str(step) in file:
                del file[str(step)]
            group = file if step is None else file.create_group(str(step))
            for name, value in attributes.items():
                group.attrs[name] = value
            for name, block, dist in parts:
                options: dict[str, Any] = {}
                if not at_once and dist.shape and 0 not in dist.shape:
                    options = {"chunks": _chunks(dist, block.dtype), "fletcher32": True}
                group.create_dataset(name or _UNNAMED, dist.shape, block.dtype, **options)


def _chunks(dist: Distribution, dtype: np.dtype[Any]) -> tuple[int, ...]:
    return chunk_extents(dist.max_local_shape(), dtype.itemsize, _CHUNK)


def _room(dist: Distribution, dtype: np.dtype[Any], index: tuple[IndexSet, ...]) -> int:
    """The most bytes by which a file grows when the elements at some indices are written: chunks and their metadata.

    If the disk has less room, the HDF5 library fails in a way that ends the process."""
    if not all(index):
        return _SLACK
    chunks = _chunks(dist, dtype)
    touched = prod([(held.stop - 1) // c - held.start // c + 1 for held, c in zip(index, chunks, strict=True)])
    return _SLACK + touched * (prod(chunks) * dtype.itemsize + 128)


def _put(
    h5py: ModuleType,
    file: Any,
    parts: Sequence[Part],
    rank: int,
    step: int | None,
    advance: Callable[[int], None],
) -> None:
    """Write a rank's parts into an open file."""
    group = file if step is None else file[str(step)]
    for name, block, dist in parts:
        if block.size and writes(dist, rank):
            for index, slab in slabs(dist.index_sets(rank), np.asarray(block, order="C"), dist.max_local_shape()):
                for places, part in strided_parts(index, slab):
                    lengths = [prod(place.shape) for place in places]
                    group[name or _UNNAMED][_select(h5py, places)] = part.reshape(lengths)
                advance(slab.nbytes)


def _select(h5py: ModuleType, places: Sequence[Strided]) -> tuple[Any, ...]:
    """The hyperslab of strided places along each mode."""

    def along(place: Strided) -> Any:
        (count, width), (period, _) = place.shape, place.steps
        if count == 1 or period == width:
            return slice(place.start, place.start + count * width)
        return h5py.MultiBlockSlice(start=place.start, stride=period, count=count, block=width)

    return tuple(map(along, places))
