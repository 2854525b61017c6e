"""HDF5 files: each rank reads and writes its own hyperslabs.

A tensor is a dataset of its name; a step is a group that is named by its number and has Rote's mark. A name is opened
by its path, as h5py does, so links lead where they lead. Ranks always read at once. They write at once if h5py was
built with MPI, and otherwise in turn; only then are datasets chunked, with Fletcher's checksum.
"""

from __future__ import annotations

import os
import shutil
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
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
from .stored import (
    MARK,
    STEP,
    Contents,
    Part,
    StoredTensor,
    check_shape,
    finish,
    is_number,
    kept_attributes,
    pick_step,
    readably,
    refuse_foreign,
)

__all__ = ["contents_of", "look_hdf5", "parallel", "read_hdf5", "write_hdf5", "written_in_hdf5"]

_CHUNK = 1 << 20  # bytes: the size of HDF5's chunk cache for a dataset
_SLACK = 1 << 16  # bytes: room for a file's metadata
_UNNAMED, _LABELS = "data", "DIMENSION_LABELS"


def written_in_hdf5(dist: Distribution, dtype: np.dtype[Any]) -> Distribution:
    """The distribution in which a tensor is written: its own, or one without a view and with longer runs."""
    return in_long_runs(without_view(dist), dtype.itemsize)


def look_hdf5(path: Path, step: int | None, comm: Comm, name: str | None = None) -> Contents:
    """The tensors in a file, in groups of any depth, with its attributes and steps. Collective; only rank 0 reads.

    Only the tensor of a given name, if there is one; then no other object is opened.
    """
    return from_root(comm, lambda: contents_of(path, step, name))


def contents_of(path: Path, step: int | None, name: str | None = None) -> Contents:
    """The contents of a file, read by this rank alone."""
    h5py = _library()
    with readably(path, "read"), open(path, "rb"), h5py.File(path, "r") as file:
        return _contents(h5py, file, path, step, name)


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
                    needs = sum(_room(part.dist, part.block.dtype, part.dist.index_sets(turn)) for part in parts)
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


def _contents(h5py: ModuleType, file: Any, path: Path, step: int | None, name: str | None) -> Contents:
    """The contents of an open file; of one step, if it has steps. Of a name that is a tensor, nothing but that."""
    steps = tuple(sorted(int(each) for each in file if _is_step(h5py, file, each)))
    plain = step is None and (not steps or bool(_listing(h5py, file)[0]))
    chosen = pick_step(path, step, steps, plain, file.get(str(step), getlink=True) is not None)
    group = file if chosen is None else file[str(chosen)]
    if name:
        node = None
        with suppress(
            Exception
        ):  # no such name, a link to nothing, or a damaged file, of which the listing below raises
            node = group[name]
        if isinstance(node, h5py.Dataset) and node.shape is not None:
            return Contents({name: _stored(node, group, name)}, {}, chosen, steps)
    tensors, links = _listing(h5py, group)
    return Contents(dict(sorted(tensors.items())), _attributes(group), chosen, steps, dict(sorted(links.items())))


def _is_step(h5py: ModuleType, file: Any, name: str) -> bool:
    """Whether a name of the root is a step: a group with Rote's mark, and no link to one."""
    if not is_number(name) or not isinstance(file.get(name, getlink=True), h5py.HardLink):
        return False
    node = file[name]
    return isinstance(node, h5py.Group) and str(node.attrs.get(MARK)) == STEP


def _listing(h5py: ModuleType, top: Any) -> tuple[dict[str, StoredTensor], dict[str, str]]:
    """The tensors of a group by their paths, outside of steps; and the names that lead to other names.

    Every group is searched once, through hard links first, so loops of links end. What a link leads to is listed by the
    link's own path, unless it has a path already. A link that leads nowhere is no error.
    """
    tensors: dict[str, StoredTensor] = {}
    links: dict[str, str] = {}
    seen = {_identity(top): top.name}
    groups, soft = deque([("", top)]), deque[tuple[str, Any, str]]()
    while groups or soft:
        if groups:
            prefix, group = groups.popleft()
            found = []
            for name in group:
                if group is top and top.name == "/" and _is_step(h5py, top, name):
                    seen[_identity(group[name])] = group[name].name
                elif isinstance(group.get(name, getlink=True), h5py.HardLink):
                    found.append((prefix + name, group[name]))
                else:
                    soft.append((prefix + name, group, name))
        else:
            path, group, name = soft.popleft()
            link = group.get(name, getlink=True)
            links[path] = f"{link.filename}:{link.path}" if isinstance(link, h5py.ExternalLink) else link.path
            found = []
            with suppress(Exception):  # it leads nowhere, in a circle, or to a file that cannot be read
                found.append((path, group[name]))
        for path, node in found:
            known = seen.setdefault(_identity(node), path)
            if known != path:
                links.setdefault(path, known)
            if isinstance(node, h5py.Group) and known == path:
                groups.append((f"{path}/", node))
            elif isinstance(node, h5py.Dataset) and node.shape is not None:
                with suppress(TypeError):  # of a type that h5py does not know
                    tensors[path] = _stored(node, top, path)
    return tensors, links


def _identity(node: Any) -> tuple[str, int]:
    """The file and the address of an object, which are the same for all links to it."""
    info = node.file.filename, _library().h5o.get_info(node.id).addr
    return os.path.realpath(info[0]), info[1]


def _stored(node: Any, group: Any, name: str) -> StoredTensor:
    """A dataset that was opened by its path in a group."""
    labels = _attributes(node, _LABELS).get(_LABELS)  # h5py's `dims` may end the process if the type is another
    named = isinstance(labels, list) and len(labels) == node.ndim and all(isinstance(each, str) for each in labels)
    dims = tuple([each or None for each in labels]) if named and labels and any(labels) else None
    place = name if name.startswith("/") else f"{group.name.rstrip('/')}/{name}"
    return StoredTensor(node.shape, node.dtype, dims, place)


def _attributes(node: Any, *names: str) -> dict[str, Any]:
    """The attributes of some names, or all, but those of types that h5py does not know."""
    found = {}
    for name in names or node.attrs:
        with suppress(TypeError, KeyError):
            found[name] = node.attrs[name]
    return kept_attributes(found)


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
            group = file
            if step is not None:
                if file.get(str(step), getlink=True) is not None:
                    if not _is_step(h5py, file, str(step)):
                        refuse_foreign(path, str(step))
                    del file[str(step)]
                group = file.create_group(str(step))
                group.attrs[MARK] = STEP
            for name, value in attributes.items():
                group.attrs[name] = value
            for name, block, dist, dims in parts:
                options: dict[str, Any] = {}
                if not at_once and dist.shape and 0 not in dist.shape:
                    options = {"chunks": _chunks(dist, block.dtype), "fletcher32": True}
                dataset = group.create_dataset(name or _UNNAMED, dist.shape, block.dtype, **options)
                for mode, label in enumerate(dims or ()):
                    dataset.dims[mode].label = label


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
    for name, block, dist, _ in parts:
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
