"""Zarr stores (version 3 of the format): all ranks write at once, and each chunk is written by one rank.

A single tensor without a name is the store's root array, others are arrays of its root group, and a step is a group
that is named by its number and has Rote's mark. The chunk grid comes from the layout (`layouts.in_chunks`). Chunks have
Zarr's default compression and a CRC32C checksum. In an array that Rote wrote, a missing chunk is an error; Zarr would
read zeros.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise, product
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

from ..errors import RoteError
from ..layout.distribution import Distribution
from ..runtime.comm.agreement import collective_errors
from ..runtime.comm.protocol import Array, Comm, Path
from .layouts import in_chunks, writes
from .lock import locked
from .stored import (
    MARK,
    STEP,
    WHOLE,
    Contents,
    Part,
    StoredTensor,
    is_number,
    kept_attributes,
    pick_step,
    readably,
    refuse_foreign,
)
from .transfer import DRAFT, SLAB, Advance, Draft, replacing, sync

__all__ = ["contents_zarr", "fill_zarr", "write_zarr", "written_in_zarr"]

_UNNAMED, _METADATA = "data", "zarr.json"
_KEEP = {"write_empty_chunks": True}  # else a missing chunk might be zeros, or lost


def written_in_zarr(dist: Distribution, dtype: np.dtype[Any]) -> Distribution:
    """The distribution in which a tensor is written: its own, or a similar one whose blocks are whole chunks."""
    return in_chunks(dist, dtype.itemsize).dist


def contents_zarr(path: Path, step: int | None, name: str | None = None) -> Contents:
    """The tensors in a store, in groups of any depth, with its attributes and steps, read by this rank alone.

    Only the tensor of a given name, if there is one; then no other array is opened.
    """
    path = os.fspath(path)
    with readably(path, "read"):
        os.stat(path)
        zarr = _library()
        root = zarr.open(path, mode="r")
        if isinstance(root, zarr.Array):
            pick_step(path, step, (), True)
            return Contents({_UNNAMED: _stored(root)}, kept_attributes(dict(root.attrs)))
        root = zarr.open_group(path, mode="r", use_consolidated=False)  # consolidated metadata may lack later steps
        numbers = [each for each in os.listdir(path) if is_number(each) and os.path.isdir(os.path.join(path, each))]
        steps = tuple(sorted(int(each) for each in numbers if _is_step(root, each)))
        passed = {str(each) for each in steps}
        plain = step is None and (not steps or any(each not in passed for each, _ in _members(root)))
        chosen = pick_step(path, step, steps, plain, str(step) in numbers)
        group = root if chosen is None else root[str(chosen)]
        node = None
        if name:
            with suppress(Exception):  # no such name, or a damaged store: the listing below raises
                node = group[name]
        if isinstance(node, zarr.Array):
            return Contents({str(name): _stored(node)}, {}, chosen, steps)
        tensors = {each: _stored(array) for each, array in _arrays(path, group, passed, ())}
        return Contents(dict(sorted(tensors.items())), kept_attributes(dict(group.attrs)), chosen, steps)


def fill_zarr(path: Path, stored: StoredTensor, dist: Distribution, comm: Comm, block: Array, advance: Advance) -> None:
    """Read a tensor in a store into this rank's block, a box (`layouts.in_boxes`). Collective."""
    with collective_errors(comm), readably(path, "read"):
        if block.size and dist.contributes(comm.rank):
            folder = os.path.join(path, stored.place)
            array = _library().open_array(folder, mode="r")
            extents = array.shards or array.chunks
            start = [held.start for held in dist.index_sets(comm.rank)]
            for box in _boxes(start, block.shape, _reading(extents, block.shape, block.dtype.itemsize)):
                if array.attrs.get(MARK) == WHOLE:
                    _check_there(folder, box, extents)
                part = block[_local(start, box)]
                part[...] = array[box]
                advance(part.nbytes)


def write_zarr(
    path: Path, parts: Sequence[Part], comm: Comm, attributes: Mapping[str, Any], step: int | None, advance: Advance
) -> None:
    """Write all ranks' parts, distributed as `written_in_zarr` says, as one store or as one step of it. Collective.

    The store, or the step, gets its name only when it is complete. An existing one is replaced in one step, if the
    system can exchange two names; on any failure it stays as it was.
    """
    with collective_errors(comm):
        _library()  # if it is missing, nothing is made
    if step is not None:
        parts = [part._replace(name=part.name or _UNNAMED) for part in parts]
    # To add a step to a store is one call of the system. Two jobs that make the store would replace each other's.
    with (
        locked(path, comm, needed=not _is_store(path)),
        replacing(path, comm, lambda draft: _begin(draft, path, parts, attributes, step), folder=True) as draft,
        collective_errors(comm),
        readably(path, "written"),
    ):
        for part in parts:
            if part.block.size and writes(part.dist, comm.rank):
                folder = draft.path if step is None or draft.target != os.path.realpath(path) else _inner(draft, step)
                _put(os.path.join(folder, part.name), part, comm.rank, advance)


def _library() -> ModuleType:
    try:
        import zarr
    except ImportError:
        raise RoteError("Zarr stores need zarr\npip install zarr") from None
    if not hasattr(zarr.Array, "with_config"):
        raise RoteError(f"zarr is {zarr.__version__}, and 3.1.6 or later is needed\npip install --upgrade zarr")
    module: ModuleType = zarr
    return module


def _members(group: Any) -> Iterator[tuple[str, Any]]:
    """The arrays and groups of a group with their names, but for what is being written now."""
    return ((name, node) for name, node in group.members() if not name.startswith(DRAFT))


def _arrays(path: str, group: Any, passed: Collection[str], above: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """The arrays of a group, at any depth, each with its path; not those of some groups, nor around a loop of links."""
    zarr = _library()
    above = *above, os.path.realpath(os.path.join(path, group.path))
    for name, node in _members(group):
        if isinstance(node, zarr.Array):
            yield name, node
        elif node.path not in passed and os.path.realpath(os.path.join(path, node.path)) not in above:
            yield from ((f"{name}/{each}", array) for each, array in _arrays(path, node, passed, above))


def _is_step(root: Any, name: str) -> bool:
    """Whether a name of the root is a step: a group with Rote's mark."""
    zarr = _library()
    node = root.get(name)
    if node is None:  # a folder that lost its metadata: if it were passed over, an earlier step would be the last
        return True
    return not isinstance(node, zarr.Array) and node.attrs.get(MARK) == STEP


def _stored(array: Any) -> StoredTensor:
    """An array of a store, with the names of its modes in either version of the format."""
    dims = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")
    return StoredTensor(array.shape, array.dtype, tuple(dims) if dims else None, array.path)


def _is_store(path: Path) -> bool:
    """Whether there is a folder with the metadata of an array or a group."""
    return any(os.path.exists(os.path.join(path, name)) for name in (_METADATA, ".zgroup", ".zarray"))


def _begin(draft: Draft, path: Path, parts: Sequence[Part], attributes: Mapping[str, Any], step: int | None) -> Draft:
    """Write the metadata of all arrays into a folder, which becomes the store, or a step of it."""
    zarr = _library()
    target = draft.target
    replaces = os.path.isdir(target) and bool(os.listdir(target))
    if replaces and not _is_store(target):
        raise RoteError(f"{os.fspath(path)} is a folder and no Zarr store, and saving would replace it\nmove it away")
    adds = step is not None and replaces
    if adds:
        root = zarr.open(target, mode="r")
        if not isinstance(root, zarr.Group):
            raise RoteError(f"{os.fspath(path)} is one array, which has no steps\nremove it, or give another name")
        if root.metadata.zarr_format != 3:
            raise RoteError(f"{os.fspath(path)} is of version 2 of Zarr, and steps are of version 3\ngive another name")
        if os.path.lexists(os.path.join(target, str(step))) and not _is_step(root, str(step)):
            refuse_foreign(path, str(step))
    with readably(path, "written"):
        if step is not None and not adds:
            zarr.create_group(draft.path)
            sync(os.path.join(draft.path, _METADATA))
            os.mkdir(_inner(draft, step))
        folder = draft.path if step is None or adds else _inner(draft, step)
        _make(folder, parts, attributes, {} if step is None else {MARK: STEP})
    return replace(draft, target=os.path.join(target, str(step))) if adds else draft


def _inner(draft: Draft, step: int) -> str:
    """The folder of a step in a draft of a whole store; a draft for an existing store is the step itself."""
    return os.path.join(draft.path, str(step))


def _make(folder: str, parts: Sequence[Part], attributes: Mapping[str, Any], mark: Mapping[str, Any]) -> None:
    """Create the metadata of arrays, and of their group, unless there is only a root array."""
    zarr = _library()
    root = not parts[0].name
    if not root:
        zarr.create_group(folder, attributes={**attributes, **mark})
        sync(os.path.join(folder, _METADATA))
    for name, block, dist, dims in parts:
        grid = in_chunks(dist, block.dtype.itemsize)
        zarr.create_array(
            os.path.join(folder, name),
            shape=dist.shape,
            dtype=np.dtype(block.dtype.str),  # NumPy has two dtypes for some integers
            chunks=grid.chunks,
            shards=None if grid.shards == grid.chunks else grid.shards,
            compressors=(zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()),
            attributes={**(attributes if root else {}), MARK: WHOLE},
            dimension_names=dims,
        )
        sync(os.path.join(folder, name, _METADATA))


def _put(folder: str, part: Part, rank: int, advance: Advance) -> None:
    zarr = _library()
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
    #     block           3 4 5 6 7 8
    #     chunks  0 1 2 3|4 5 6 7|8 9 ...      boxes  3 | 4 5 6 7 | 8
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
            raise RoteError(
                f"{_file(folder, index)} is lost\n"
                f"give a whole copy of the store, or, if another program left zeros out, delete the attribute {MARK}"
            )
