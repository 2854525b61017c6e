"""Zarr stores (version 3 of the format): all ranks write at once, and each chunk is written by one rank.

A single tensor without a name is the store's root array, others are arrays of its root group, and a step is a group
named by its number. The chunk grid comes from the layout (`boxes.in_chunks`). Chunks have Zarr's default compression
and a CRC32C checksum. In an array that Rote wrote, a missing chunk is an error; Zarr would read zeros.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

from ..errors import RoteError
from ..layout.grid import check_grid
from ..layout.layout import Distribution
from ..runtime.comm.collective_errors import collective_errors, from_root
from ..runtime.comm.protocol import Array, Comm, Path
from ..runtime.placement import new_block
from .boxes import in_chunks
from .positions import writes
from .progress import SLAB, progress
from .replacement import Draft, replacing, sync
from .stored import Contents, Part, StoredTensor, check_shape, finish, kept_attributes, pick_step, readably

__all__ = ["look_zarr", "read_zarr", "write_zarr", "written_in_zarr"]

_UNNAMED, _METADATA = "data", "zarr.json"
_MARK, _WHOLE = "rote", "whole"  # the attribute of an array whose chunks have all been written
_KEEP = {"write_empty_chunks": True}  # else a missing chunk might be zeros, or lost


def written_in_zarr(dist: Distribution, dtype: np.dtype[Any]) -> Distribution:
    """The distribution in which a tensor is written: its own, or a similar one whose blocks are whole chunks."""
    return in_chunks(dist, dtype.itemsize).dist


def look_zarr(path: Path, step: int | None, comm: Comm) -> Contents:
    """The tensors in a store, in groups of any depth, with its attributes and steps. Collective; only rank 0 reads."""

    def look() -> Contents:
        zarr = _library()
        with readably(path, "read"):
            os.stat(path)
            return _contents(zarr, os.fspath(path), step)

    return from_root(comm, look)


def read_zarr(path: Path, stored: StoredTensor, dist: Distribution, comm: Comm) -> Array:
    """This rank's block of a tensor in a store, a box (`boxes.in_boxes`), in native byte order. Collective."""
    check_grid(dist.grid, comm.size)
    check_shape(path, stored.shape, dist)
    with collective_errors(comm), readably(path, "read"):
        block = new_block(dist, comm.rank, stored.dtype)
        if block.size and dist.contributes(comm.rank):
            folder = os.path.join(path, stored.place)
            array = _library().open_array(folder, mode="r")
            extents = array.shards or array.chunks
            start = [held.start for held in dist.index_sets(comm.rank)]
            with progress(comm, "reading", path, block.nbytes) as advance:
                for box in _boxes(start, block.shape, _reading(extents, block.shape, block.dtype.itemsize)):
                    if array.attrs.get(_MARK) == _WHOLE:
                        _check_there(folder, box, extents)
                    part = block[_local(start, box)]
                    part[...] = array[box]
                    advance(part.nbytes)
    return finish(block, dist, comm.rank)


def write_zarr(
    path: Path, parts: Sequence[Part], comm: Comm, attributes: Mapping[str, Any], step: int | None = None
) -> None:
    """Write all ranks' parts, distributed as `written_in_zarr` says, as one store or as one step of it. Collective.

    The store, or the step, gets its name only when it is complete. An existing one is replaced in one step, if the
    system can exchange two names; on any failure it stays as it was.
    """
    with collective_errors(comm):
        zarr = _library()
    if step is not None:
        parts = [part._replace(name=part.name or _UNNAMED) for part in parts]
    with (
        replacing(path, comm, lambda draft: _begin(zarr, draft, path, parts, attributes, step), folder=True) as draft,
        progress(comm, "writing", path, sum(part.block.nbytes for part in parts)) as advance,
        collective_errors(comm),
        readably(path, "written"),
    ):
        for part in parts:
            if part.block.size and writes(part.dist, comm.rank):
                _put(zarr, os.path.join(_base(draft.path, step), part.name), part, comm.rank, advance)


def _library() -> ModuleType:
    try:
        import zarr
    except ImportError:
        raise RoteError("Zarr stores need zarr\npip install zarr") from None
    if not hasattr(zarr.Array, "with_config"):
        raise RoteError(f"zarr is {zarr.__version__}, and 3.1.6 or later is needed\npip install --upgrade zarr")
    module: ModuleType = zarr
    return module


def _contents(zarr: ModuleType, path: str, step: int | None) -> Contents:
    """The contents of a store; of one step, if it has steps."""
    root = zarr.open(path, mode="r")
    if isinstance(root, zarr.Array):
        pick_step(path, step, (), True)
        attributes = kept_attributes({name: value for name, value in root.attrs.items() if name != _MARK})
        return Contents({_UNNAMED: StoredTensor(root.shape, root.dtype, "")}, attributes)
    root = zarr.open_group(path, mode="r", use_consolidated=False)  # consolidated metadata may lack later steps
    steps = tuple(sorted(int(name) for name in os.listdir(path) if name.isdecimal()))
    plain = [name for name in root.keys() if not name.isdecimal()]  # noqa: SIM118 - not a dict
    chosen = pick_step(path, step, steps, bool(plain))
    group = root if chosen is None else root[str(chosen)]
    within = "" if chosen is None else f"{chosen}/"
    tensors: dict[str, StoredTensor] = {}
    for name, node in sorted(_members(zarr, group), key=lambda member: member[0]):
        if chosen is not None or not name.partition("/")[0].isdecimal():
            tensors[name] = StoredTensor(node.shape, node.dtype, within + name)
    return Contents(tensors, kept_attributes(dict(group.attrs)), chosen, steps)


def _members(zarr: ModuleType, group: Any) -> Iterator[tuple[str, Any]]:
    """The arrays of a group, at any depth but outside of steps, each with its path."""
    for name, node in group.members():
        if isinstance(node, zarr.Array):
            yield name, node
        elif not name.isdecimal():
            yield from ((f"{name}/{inner}", each) for inner, each in _members(zarr, node))


def _begin(
    zarr: ModuleType, draft: Draft, path: Path, parts: Sequence[Part], attributes: Mapping[str, Any], step: int | None
) -> Draft:
    """Write the metadata of all arrays into a folder, which becomes the store, or a step of it."""
    target = draft.target
    replaces = os.path.isdir(target) and bool(os.listdir(target))
    if replaces and not any(os.path.exists(os.path.join(target, name)) for name in (_METADATA, ".zgroup", ".zarray")):
        raise RoteError(f"{os.fspath(path)} is a folder and no Zarr store, and saving would replace it\nmove it away")
    adds = step is not None and replaces
    if adds and not isinstance(zarr.open(target, mode="r"), zarr.Group):
        raise RoteError(f"{os.fspath(path)} is one array, which has no steps\nremove it, or give another name")
    with readably(path, "written"):
        if step is not None and not adds:
            zarr.create_group(draft.path)
            sync(os.path.join(draft.path, _METADATA))
            os.mkdir(os.path.join(draft.path, str(step)))
        _make(zarr, _base(draft.path, step), parts, attributes)
    return replace(draft, target=os.path.join(target, str(step))) if adds else draft


def _base(folder: str, step: int | None) -> str:
    """The folder of the arrays in a draft: the step of a new store, or the draft itself."""
    inner = os.path.join(folder, str(step))
    return inner if step is not None and os.path.isdir(inner) else folder


def _make(zarr: ModuleType, folder: str, parts: Sequence[Part], attributes: Mapping[str, Any]) -> None:
    """Create the metadata of arrays, and of their group, unless there is only a root array."""
    root = not parts[0].name
    if not root:
        zarr.create_group(folder, attributes=dict(attributes))
        sync(os.path.join(folder, _METADATA))
    for name, block, dist in parts:
        grid = in_chunks(dist, block.dtype.itemsize)
        zarr.create_array(
            os.path.join(folder, name),
            shape=dist.shape,
            dtype=np.dtype(block.dtype.str),  # NumPy has two dtypes for some integers
            chunks=grid.chunks,
            shards=None if grid.shards == grid.chunks else grid.shards,
            compressors=(zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()),
            attributes={**(attributes if root else {}), _MARK: _WHOLE},
        )
        sync(os.path.join(folder, name, _METADATA))


def _put(zarr: ModuleType, folder: str, part: Part, rank: int, advance: Callable[[int], None]) -> None:
    """Write a rank's part, file by file."""
    array = zarr.open_array(folder, mode="r+").with_config(_KEEP)
    extents = array.shards or array.chunks
    start = [held.start for held in part.dist.index_sets(rank)]
    for box in _boxes(start, part.block.shape, extents):
        values = part.block[_local(start, box)]
        array[box] = values
        sync(_file(folder, [along.start // n for along, n in zip(box, extents, strict=True)]))
        advance(values.nbytes)


def _boxes(start: Sequence[int], shape: Sequence[int], extents: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """The parts of a box, cut at the multiples of the given extents.

    >>> list(_boxes([3], [6], [4]))
    [(slice(3, 4, None),), (slice(4, 8, None),), (slice(8, 9, None),)]
    """
    modes = []
    for first, length, extent in zip(start, shape, extents, strict=True):
        cuts = [first, *range(first - first % extent + extent, first + length, extent), first + length]
        modes.append([slice(a, b) for a, b in pairwise(cuts)])
    yield from product(*modes)


def _local(start: Sequence[int], box: Sequence[slice]) -> tuple[Any, ...]:
    """The index of a box in the block that begins at `start`; it gives a view even for order 0."""
    return *(slice(along.start - first, along.stop - first) for first, along in zip(start, box, strict=True)), ...


def _reading(extents: Sequence[int], shape: Sequence[int], itemsize: int) -> list[int]:
    """The extents in which a block is read: along its first mode about 64 MiB, but whole files, at least one."""
    if not shape:
        return []
    files = max(SLAB // (prod(shape[1:]) * itemsize) // extents[0], 1)
    return [files * extents[0], *(1 << 62 for _ in shape[1:])]


def _file(folder: str, index: Sequence[int]) -> str:
    """The file of a chunk or shard, named by its index as the format prescribes."""
    return os.path.join(folder, "c", *map(str, index))


def _check_there(folder: str, box: Sequence[slice], extents: Sequence[int]) -> None:
    """Refuse a box with a missing chunk, for example because a store was copied only in part."""
    ranges = [range(along.start // n, -(-along.stop // n)) for along, n in zip(box, extents, strict=True)]
    for index in product(*ranges):
        if not os.path.exists(_file(folder, index)):
            raise RoteError(f"{_file(folder, index)} is lost\ngive a whole copy of the store")
