"""Zarr stores (version 3 of the format): all ranks write in parallel, and each chunk is written by one rank.

A single tensor without any name is the store's root array, others are arrays of its root group, and a step is a group
that is named by its number and has Rote's mark. The chunk grid comes from the layout (`layouts.in_chunks`). Chunks have
Zarr's default compression and a CRC32C checksum. In an array that Rote wrote, a missing chunk is an error; Zarr would
read zeros.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from json import JSONDecodeError
from math import prod
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import RoteError
from ..layout.distribution import Distribution
from ..layout.indexset import IndexSet
from ..runtime.comm.agreement import collective_errors
from ..runtime.comm.protocol import Array, Comm, Path
from .checks import is_number, kept_attributes, readably, reason, refuse_foreign
from .layouts import in_chunks, writes
from .lock import locked
from .packed import Packing
from .stored import MARK, STEP, UNNAMED, WHOLE, Contents, Field, StoredTensor, pick_step, tensors_and_reasons
from .transfer import DRAFT, SLAB, Advance, Draft, replacing, sync
from .versions import Opened, Replaced, Version, one_version

if TYPE_CHECKING:
    from .chunks import Folder

__all__ = ["contents_zarr", "fill_zarr", "is_store", "library", "write_zarr", "written_in_zarr"]

_METADATA, _FIELD = "zarr.json", "rote"
_DIMS = "_ARRAY_DIMENSIONS"  # the attribute that names the modes in version 2
_FILL = "_FillValue"
_WHOLE_STORE = "give a whole copy of the store"
_KEEP = {"write_empty_chunks": True}  # else a missing chunk might be zeros, or lost


def written_in_zarr(dist: Distribution, dtype: np.dtype[Any]) -> Distribution:
    """The distribution in which a tensor is written: its own, or a similar one whose blocks are whole chunks."""
    return in_chunks(dist, dtype.itemsize).dist


def contents_zarr(path: Path, step: int | None, name: str | None = None) -> Contents:
    """The tensors in a store, in groups of any depth, with its attributes and steps, read by only this rank.

    Only the tensor of a given name, if there is one; then no other array is opened. All is read from the folder that
    has this name now, and of a step from the step's folder, whatever becomes of their names.
    """
    zarr, path = library(), os.fspath(path)
    from .chunks import Folder

    with readably(path, hint=_hint), closing(Folder(path)) as folder, _while_named(folder):
        _check_node(folder)
        root = zarr.open(folder, mode="r")
        if isinstance(root, zarr.Array):
            pick_step(path, step, (), True)
            stored = _stored(root)
            return Contents({UNNAMED: stored}, stored.attributes)

        root = zarr.open_group(folder, mode="r", use_consolidated=False)  # consolidated metadata may lack later steps
        numbers = [inner for inner in folder.folders("") if is_number(inner)]
        steps = tuple(sorted(int(number) for number in numbers if _is_step(root, number)))
        plain = step is None and (not steps or bool(_nodes(folder, root, {*map(str, steps)})))
        chosen = pick_step(path, step, steps, plain, str(step) in numbers)
        if chosen is None:
            return _contents_of_group(folder, root, name, None, steps)

        with closing(Folder(str(chosen), folder)) as inner, _while_named(inner):
            _check_node(inner)
            return _contents_of_group(inner, zarr.open_group(inner, mode="r"), name, chosen, steps)


@contextmanager
def _while_named(folder: Folder) -> Iterator[None]:
    """What fails in a folder that has lost its name or its metadata fails because the store is replaced or deleted."""
    try:
        yield
    except Exception as error:  # a refusal of Rote's own says why
        whole = isinstance(error, RoteError) or folder.is_node()
        if whole and folder.has_its_name():
            raise
        raise Replaced.at(folder.path) from error


def _check_node(folder: Folder) -> None:
    """Refuse a folder without metadata."""
    if not folder.is_node():
        raise RoteError(f"{folder.path} is no Zarr store: it has neither zarr.json nor .zgroup\n{_WHOLE_STORE}")


def _contents_of_group(
    folder: Folder, group: Any, name: str | None, step: int | None, steps: tuple[int, ...]
) -> Contents:
    """The contents of the root group, or of the group of a step."""
    zarr = library()
    place = "" if step is None else f"{step}/"

    node = None
    if name:
        with suppress(Exception):  # no such name, or a damaged store: the listing below says more
            node = group[name]
    if isinstance(node, zarr.Array):
        return Contents({str(name): _stored(node, place)}, {}, step, steps)

    passed = {*map(str, steps)} if step is None else set[str]()
    tensors, unread = tensors_and_reasons(_arrays(folder, group, passed, place))
    return Contents(tensors, kept_attributes(dict(group.attrs)), step, steps, unread=unread)


def fill_zarr(path: Path, stored: StoredTensor, dist: Distribution, comm: Comm, block: Array, advance: Advance) -> None:
    """Read a tensor in a store into this rank's block, a box (`layouts.in_boxes`). Collective."""
    reads = block.size and dist.contributes(comm.rank)
    places = stored.places(dist.index_sets(comm.rank)) if reads else ()
    opening = _opened(path, stored, places) if reads else None

    with one_version(path, comm, opening) as array, collective_errors(comm), readably(path):
        if array is not None:
            spread = stored.spread(block)
            steps = [along.period for along in places]
            start = [along.start // step for along, step in zip(places, steps, strict=True)]

            # Boxes are counted in steps: they end where files end if each element is read, and about there otherwise.
            extents = [-(-n // step) for n, step in zip(array.shards or array.chunks, steps, strict=True)]
            for box in _boxes(start, spread.shape, _slab(extents, spread.shape, block.dtype.itemsize)):
                local = _local(start, box)
                part = spread[local]
                part[...] = array[_strided(places, local)]
                advance(part.nbytes)


def _strided(places: Sequence[IndexSet], local: Sequence[Any]) -> tuple[slice, ...]:
    """The slices of an array that the slices of a block take, whose indices are at equal distances.

    >>> _strided([IndexSet.of_runs([(3, 4)], 5, 30)], [slice(1, 3)])
    (slice(8, 14, 5),)
    """
    bounds = [(along.at(part.start), along.at(part.stop - 1)) for along, part in zip(places, local, strict=False)]
    return tuple([slice(first, last + 1, along.period) for along, (first, last) in zip(places, bounds, strict=True)])


@contextmanager
def _opened(path: Path, stored: StoredTensor, places: Sequence[IndexSet]) -> Iterator[Opened[Any]]:
    """The array in the folder that has this name now; refused unless it is as it was when it was found.

    An array that Rote wrote has all of its chunks, and is replaced as a whole. In others, a chunk may be missing, and
    other programs write chunk by chunk, so their version is also that of each chunk that the rank reads.
    """
    from .chunks import Folder, bounded, most_bytes

    with readably(path, hint=_hint):
        folder = Folder(os.path.join(path, stored.place))
    with closing(folder):
        with readably(path, hint=_hint), _while_named(folder):
            array = library().open_array(folder, mode="r")
            if (array.shape, array.dtype) != (stored.shape, stored.dtype):
                raise Replaced.at(path)

            keys: list[str] = []
            extents = array.shards or array.chunks
            if not _is_whole(array):
                pairs = zip(places, extents, strict=True)
                ranges = [range(along.start // n, -(-along.stop // n)) for along, n in pairs]
                keys = [array.metadata.encode_chunk_key(index) for index in product(*ranges)]

            array, version = bounded(array), _version(folder, keys)
            if None in version.more.values() and not folder.has_its_name():  # it may be being deleted
                raise Replaced.at(path)
            folder.most = most_bytes(extents, array.dtype.itemsize)
            folder.missing = partial(_refuse_missing, folder, version.more)

        yield Opened(array, version, partial(_version_now, folder, version))


def _version_now(folder: Folder, version: Version) -> Version:
    """The version of an array now, as far as it matters: its chunks, but for those that were deleted since."""
    now = _chunks(folder, version.more)
    return version._replace(more={key: now[key] or before for key, before in version.more.items()})


def _refuse_missing(folder: Folder, chunks: Mapping[str, Version | None], key: str) -> None:
    """Refuse a chunk that is not there, but must be, or was: the store may have been copied only in part."""
    if key in chunks and chunks[key] is None:  # nor was it when the array was opened: it is zeros
        return

    if not folder.has_its_name():
        raise Replaced.at(folder.path)
    hint = "" if chunks else f", or, if another program left zeros out, delete {_FIELD!r} in its {_METADATA}"
    raise RoteError(f"{os.path.join(folder.path, key)} is lost\n{_WHOLE_STORE}{hint}")


def _version(folder: Folder, keys: Iterable[str]) -> Version:
    """The version of the array in an open folder, and on this rank of some of its chunks."""
    metadata = folder.status(_METADATA) or os.stat(".zarray", dir_fd=folder.number)
    version = Version.of(metadata)
    numbers = os.fstat(folder.number).st_ino, *version.numbers  # its size and time change when chunks are written
    return version._replace(numbers=numbers, more=_chunks(folder, keys))


def _chunks(folder: Folder, keys: Iterable[str]) -> dict[str, Version | None]:
    """The versions of some chunks; None for those that are not there, which are zeros."""
    statuses = {key: folder.status(key) for key in keys}
    return {key: None if status is None else Version.of(status) for key, status in statuses.items()}


def write_zarr(
    path: Path, parts: Sequence[Field], comm: Comm, attributes: Mapping[str, Any], step: int | None, advance: Advance
) -> None:
    """Write all ranks' parts, distributed as `written_in_zarr` says, as one store or as one step of it. Collective.

    The store, or the step, gets its name only when it is complete. An existing one is replaced in one step, if the
    system can exchange two names; on any failure it stays as it was.
    """
    if step is not None or any(part.dims for part in parts):  # xarray opens groups, and no root array
        parts = [part._replace(name=part.name or UNNAMED) for part in parts]

    # To add a step to a store is one call of the system. Two jobs that make the store would replace each other's.
    with (
        locked(path, comm, needed=not is_store(path)),
        replacing(path, comm, lambda draft: _begin(draft, path, parts, attributes, step), folder=True) as draft,
        collective_errors(comm),
        readably(path, "written"),
    ):
        # The draft is the step itself if that is added to a store; a new store has it within.
        adds = draft.target != os.path.realpath(path)
        folder = draft.path if step is None or adds else _inner(draft, step)
        for part in parts:
            if part.block.size and writes(part.dist, comm.rank):
                _put(os.path.join(folder, part.name), part, comm.rank, advance)


def library() -> ModuleType:
    """The package `zarr`, imported now; RoteError if it is not installed, or too old."""
    try:
        import zarr
    except ImportError:
        raise RoteError("Zarr stores need zarr\npip install zarr") from None
    if not hasattr(zarr.Array, "with_config"):
        raise RoteError(f"zarr is {zarr.__version__}, and 3.1.6 or later is needed\npip install --upgrade zarr")
    module: ModuleType = zarr
    return module


def _hint(error: Exception) -> str:
    """What to do about metadata that zarr does not read: metadata that are no JSON lost a part, others are wrong."""
    if isinstance(error, UnicodeDecodeError | JSONDecodeError):
        return _WHOLE_STORE
    return "correct its metadata, or write the store again with the program that made it"


def _nodes(folder: Folder, group: Any, passed: Collection[str] = ()) -> list[str]:
    """The names of the arrays and groups in a group, but for some, and for what is being written now."""
    names = [name for name in folder.folders(group.path) if name not in passed and not name.startswith(DRAFT)]
    return [name for name in names if folder.is_node(os.path.join(group.path, name))]


def _arrays(
    folder: Folder, group: Any, passed: Collection[str], place: str, above: tuple[tuple[int, int], ...] = ()
) -> Iterator[tuple[str, StoredTensor | str]]:
    """The arrays of a group, at any depth, by their paths; or why one cannot be read.

    Not those of some groups, nor around a loop of links, in which a group is `above` itself.
    """
    zarr = library()
    at = folder.status(group.path or ".")
    identity = (at.st_dev, at.st_ino) if at is not None else (0, 0)
    if identity in above:
        return

    for name in _nodes(folder, group, passed):
        try:
            node = group[name]
            stored = _stored(node, place) if isinstance(node, zarr.Array) else None
        except KeyError:  # of another version of the format
            continue
        except Exception as error:  # metadata may be wrong in any way, and the other arrays are still there
            yield name, f"cannot be read: {reason(error)}"
            continue

        if stored is not None:
            yield name, stored
        else:
            inner = _arrays(folder, node, (), place, (*above, identity))
            yield from ((f"{name}/{path}", array) for path, array in inner)


def _is_step(root: Any, name: str) -> bool:
    """Whether a name of the root is a step: a group with Rote's mark."""
    zarr = library()
    node = root.get(name)
    if node is None:  # a folder that lost its metadata: if it were passed over, an earlier step would be the last
        return True
    return not isinstance(node, zarr.Array) and node.attrs.get(MARK) == STEP


def _stored(array: Any, folder: str = "") -> StoredTensor:
    """An array in a folder of a store, with the names of its modes in either version of the format."""
    attributes = dict(array.attrs)
    dims = getattr(array.metadata, "dimension_names", None) or attributes.get(_DIMS)
    fill = attributes.get(_FILL, array.fill_value if _DIMS in attributes else None)
    if fill is not None:
        attributes[_FILL] = _number(fill) if isinstance(fill, str) else fill

    plain = kept_attributes(attributes, (_DIMS,))
    place, packing = folder + array.path, Packing.of(attributes, array.dtype)
    return StoredTensor(array.shape, array.dtype, tuple(dims) if dims else None, plain, place, packing)


def _number(text: str) -> float | str:
    """The fill value in an attribute, which xarray writes as the letters of the bytes of a float; or the text itself.

    >>> _number(_letters(-999.0))
    -999.0
    """
    with suppress(ValueError, IndexError):
        return float(np.frombuffer(base64.standard_b64decode(text), "<f8")[0])
    return text


def _letters(number: float) -> str:
    """A fill value as xarray writes it, so that JSON has the very number, also NaN."""
    return base64.standard_b64encode(np.array(number, "<f8").tobytes()).decode()


def _is_whole(array: Any) -> bool:
    """Whether all chunks of an array were written: by a field of its metadata, or by the attribute of older stores."""
    fields = getattr(array.metadata, "extra_fields", {})
    return _FIELD in fields or array.attrs.get(MARK) == WHOLE


def is_store(path: Path) -> bool:
    """Whether there is a folder with the metadata of an array or a group."""
    return any(os.path.exists(os.path.join(path, name)) for name in (_METADATA, ".zgroup", ".zarray"))


def _begin(draft: Draft, path: Path, parts: Sequence[Field], attributes: Mapping[str, Any], step: int | None) -> Draft:
    """Write the metadata of all arrays into a folder, which becomes the store, or a step of it."""
    zarr = library()
    target = draft.target
    replaces = os.path.isdir(target) and bool(os.listdir(target))
    if replaces and not is_store(target):
        raise RoteError(f"{os.fspath(path)} is a folder and no Zarr store, and saving would replace it\nmove it away")

    # A step of a store that is there is a folder of its own, which is renamed into the store.
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


def _make(folder: str, parts: Sequence[Field], attributes: Mapping[str, Any], mark: Mapping[str, Any]) -> None:
    """Create the metadata of arrays, and of their group, unless there is only a root array."""
    zarr = library()
    root = not parts[0].name  # which has the attributes itself, for there is no group
    if not root:
        zarr.create_group(folder, attributes={**attributes, **mark})
        sync(os.path.join(folder, _METADATA))

    for name, block, dist, dims, particular in parts:
        grid = in_chunks(dist, block.dtype.itemsize)
        described = {**(attributes if root else {}), **particular}
        if _FILL in described and block.dtype.kind == "f":
            described[_FILL] = _letters(described[_FILL])

        zarr.create_array(
            os.path.join(folder, name),
            shape=dist.shape,
            dtype=np.dtype(block.dtype.str),  # NumPy has two dtypes for some integers
            chunks=grid.chunks,
            shards=None if grid.shards == grid.chunks else grid.shards,
            compressors=(zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()),
            attributes=described,
            dimension_names=dims,
        )
        _mark_whole(os.path.join(folder, name, _METADATA))
        sync(os.path.join(folder, name, _METADATA))


def _mark_whole(path: str) -> None:
    """Add the field to an array's metadata that says that it has all of its chunks.

    A field, unlike an attribute, is seen by no program, and is not copied to an array that leaves out zeros.
    """
    with open(path, encoding="utf-8") as file:
        metadata = json.load(file)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**metadata, _FIELD: {"must_understand": False, "chunks": WHOLE}}, file, indent=2)


def _put(folder: str, part: Field, rank: int, advance: Advance) -> None:
    zarr = library()
    array = zarr.open_array(folder, mode="r+").with_config(_KEEP)
    extents = array.shards or array.chunks
    start = [along.start for along in part.dist.index_sets(rank)]

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


def _slab(extents: Sequence[int], shape: Sequence[int], itemsize: int) -> list[int]:
    """The extents in which a block is read: along its first mode about 64 MiB, but whole files, at least one."""
    if not shape:
        return []
    files = max(SLAB // (prod(shape[1:]) * itemsize) // extents[0], 1)
    return [files * extents[0], *(1 << 62 for _ in shape[1:])]


def _file(folder: str, index: Sequence[int]) -> str:
    """The file of a chunk or shard, named by its index as the format prescribes."""
    return os.path.join(folder, "c", *map(str, index))
