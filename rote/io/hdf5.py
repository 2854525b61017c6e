"""HDF5 files, in which each rank reads and writes its own hyperslabs; and XDMF files, which describe them to viewers.

A tensor is a dataset of its name; a step is a group that is named by its number and has Rote's mark. A name is opened
by its path, as h5py does, so links lead where they lead. Ranks always read in parallel. They write so if h5py was
built with MPI, and otherwise in turn; only then are datasets chunked, with Fletcher's checksum.

Names of modes are dimension scales, as netCDF-4 has them: a scale is the tensor of one mode that has the mode's name,
or a dataset that says only how long the mode is. So netCDF and xarray open what Rote writes, and their files have names
of modes for Rote.

An XDMF file lets ParaView and VisIt show the HDF5 file of the same stem in the same folder. All tensors are fields at
the points of one regular grid of order 2 or 3. A tensor with one more mode, the first, has components, each a field of
its own. Steps become a series in time. The attributes `origin` and `spacing`, one number per mode, place the grid, and
`time` places the step. Of three modes, the last is the viewer's x.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import count, product
from math import prod
from types import ModuleType
from typing import Any
from xml.etree import ElementTree as xml

import numpy as np

from ..errors import RoteError
from ..layout.distribution import Distribution
from ..layout.indexset import IndexSet
from ..runtime.comm.agreement import collective_errors
from ..runtime.comm.protocol import Array, Comm, MpiHandle, Path
from ..runtime.regions import lattices_of
from .checks import WHOLE_COPY, check_file, is_number, kept_attributes, readably, reason, refuse_foreign
from .layouts import chunk_extents, in_long_runs, without_view, writes
from .lock import locked
from .packed import Packing
from .stored import MARK, STEP, UNNAMED, Contents, Field, StoredTensor, pick_step, tensors_and_reasons
from .transfer import Advance, Draft, replacing, reserve, slabs, sync
from .versions import Opened, Replaced, Version, one_version

__all__ = ["contents_hdf5", "fill_hdf5", "is_hdf5", "parallel", "refuse_older", "write_hdf5", "write_netcdf"]
__all__ += ["library", "write_xdmf", "written_in_hdf5"]

_CHUNK = 1 << 20  # bytes: the size of HDF5's chunk cache for a dataset
_SLACK = 1 << 16  # bytes: space for a file's metadata
_LABELS, _SCALES = "DIMENSION_LABELS", "DIMENSION_LIST"
_STRUCTURE = ("CLASS", "NAME", _LABELS, _SCALES, "REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates")
_FILE = ("_NCProperties", "_nc3_strict")
"""The attributes by which HDF5 and netCDF tie data sets to each other, and those of a file that only netCDF reads."""

_NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable."  # how netCDF marks a mode that has only a length
_NUMBERS = {"f": "Float", "i": "Int", "u": "UInt"}

_OLDER = (
    (b"CDF", "a netCDF-3 file", "convert it to netCDF-4: nccopy -k nc4 old.nc new.nc"),
    (b"MATLAB 5.0", "a MATLAB file of version 5", "save it in MATLAB by save('new.mat', '-v7.3')"),
    (b"\x0e\x03\x13\x01", "an HDF4 file", "convert it to HDF5: h4toh5 old.hdf new.h5"),
)
"""How files begin that have a suffix of HDF5 and an older format, what they are, and what to do."""


def written_in_hdf5(dist: Distribution, dtype: np.dtype[Any]) -> Distribution:
    """The distribution in which a tensor is written: its own, or one without a view and with longer runs."""
    return in_long_runs(without_view(dist), dtype.itemsize)


def contents_hdf5(path: Path, step: int | None, name: str | None = None) -> Contents:
    """The tensors in a file, in groups of any depth, with its attributes and steps, read by only this rank.

    Only the tensor of a given name, if there is one; then no other tensor of the step is read. Groups that a number
    names are opened to find the steps. If there are some and none is given, data outside of them is looked for first.
    """
    h5py, path = library(), _data_file(path)
    check_file(path)
    refuse_older(path)
    with readably(path, hint=_hint), open(path, "rb"), h5py.File(path, "r") as file:
        steps = tuple(sorted(int(name) for name in file if _is_step(file, name)))
        plain = step is None and (not steps or bool(_listing(file).tensors))
        chosen = pick_step(path, step, steps, plain, file.get(str(step), getlink=True) is not None)
        group = file if chosen is None else file[str(chosen)]

        node = None
        if name:
            with suppress(Exception):  # no such name, a link to nothing, or a damaged file: the listing below raises
                node = group[name]
        if isinstance(node, h5py.Dataset) and not _has_only_a_length(node):
            tensors, unread = tensors_and_reasons([(str(name), _stored(node, group, str(name)))])
            return Contents(tensors, {}, chosen, steps, unread=unread)

        attributes = _as_shown(group, _attributes(group), _FILE)
        return replace(_listing(group), attributes=attributes, step=chosen, steps=steps)


def is_hdf5(path: Path) -> bool:
    """Whether a file has HDF5's signature: at its start, or after a block of another program, as MATLAB writes one."""
    return bool(library().is_hdf5(os.fspath(path)))


def refuse_older(path: Path) -> None:
    """Refuse a file in an older format that has the same suffixes."""
    with open(path, "rb") as file:
        start = file.read(16)
    for begins, thing, hint in _OLDER:
        if start.startswith(begins) and not is_hdf5(path):
            raise RoteError(f"{os.fspath(path)} is {thing}, which Rote does not read\n{hint}")


def fill_hdf5(path: Path, stored: StoredTensor, dist: Distribution, comm: Comm, block: Array, advance: Advance) -> None:
    """Read a tensor in a file into this rank's block. Collective; each rank reads its own part."""
    path = _data_file(path)
    opening = _opened(path, stored) if block.size and dist.contributes(comm.rank) else None

    with one_version(path, comm, opening) as node, collective_errors(comm), readably(path, hint=_hint):
        if node is not None:
            block_index = dist.index_sets(comm.rank)
            _check_chunks(node, stored.places(block_index))

            for index, slab in slabs(block_index, block, dist.max_local_shape()):
                for selection, part in _selections(stored.places(index), stored.spread(slab)):
                    elements = np.asarray(node[selection])
                    if elements.dtype.names:
                        elements = elements.view(stored.dtype)
                    part[...] = elements.reshape(part.shape)
                advance(slab.nbytes)


def write_hdf5(
    path: Path, parts: Sequence[Field], comm: Comm, attributes: Mapping[str, Any], step: int | None, advance: Advance
) -> None:
    """Write all ranks' parts, distributed as `written_in_hdf5` says, as one file or as one step of it. Collective.

    The file gets its name only when it is complete, like a `.npy` file. A step, with its attributes, is written into a
    copy of the file, in which everything else stays. So no other job may write the file meanwhile.
    """
    with locked(path, comm):
        _replace(path, parts, comm, attributes, step, advance)


def _replace(
    path: Path, parts: Sequence[Field], comm: Comm, attributes: Mapping[str, Any], step: int | None, advance: Advance
) -> None:
    """Write a file that no other job of Rote writes."""
    world = comm.handle if isinstance(comm, MpiHandle) and parallel() else None
    before = _version_of_file(path)

    with replacing(path, comm, partial(_begin, path, parts, attributes, step, world is not None)) as draft:
        _put_all(path, draft, parts, comm, world, step, advance)

        with collective_errors(comm):
            if comm.rank == 0 and step is not None and _version_of_file(path) != before:
                raise RoteError(
                    f"{os.fspath(path)} was changed by another program while step {step} was added to a copy of it\n"
                    "save the step again when nobody else writes the file"
                )


def _version_of_file(path: Path) -> Version | None:
    """The version of a file; None if it is not there."""
    return Version.of(os.stat(path)) if os.path.exists(path) else None


def _put_all(
    path: Path, draft: Draft, parts: Sequence[Field], comm: Comm, world: Any, step: int | None, advance: Advance
) -> None:
    """Write the parts of all ranks into a draft: at once if there is an MPI communicator for that, or else in turn."""
    h5py = library()
    if world is not None:
        mpio = {"driver": "mpio", "comm": world}
        with collective_errors(comm), readably(path, "written"), h5py.File(draft.path, "r+", **mpio) as file:
            _put(file, parts, comm.rank, step, advance)
        return

    nbytes = sum(part.block.nbytes for part in parts)  # which count by turns
    for writer in range(comm.size):
        with collective_errors(comm), readably(path, "written"):
            if writer != comm.rank:
                advance(nbytes // comm.size)
            elif any(part.block.size and writes(part.dist, writer) for part in parts):
                needs = sum(_room(part.dist, part.block.dtype, part.dist.index_sets(writer)) for part in parts)
                reserve(draft.path, os.path.getsize(draft.path) + needs)

                with h5py.File(draft.path, "r+") as file:
                    _put(file, parts, writer, step, lambda moved: advance(moved // comm.size))
                sync(draft.path)


@contextmanager
def _opened(path: Path, stored: StoredTensor) -> Iterator[Opened[Any]]:
    """The dataset in the file that has this name now; refused unless it has the shape and dtype that were found.

    A link may lead to it from another file.
    """
    with readably(path, hint=_hint):
        file = library().File(path, "r")
    with file:
        with readably(path, hint=_hint):
            node = file.get(stored.place)
            if getattr(node, "shape", None) != stored.shape or _dtype_of(node) != stored.dtype:
                raise Replaced.at(path)
            version = _version(file, node)

        yield Opened(node, version, lambda: _version(file, node))


def _version(file: Any, node: Any) -> Version:
    """The versions of all files from which a dataset is read, and its address in its own."""
    opened = [os.fstat(container.id.get_vfd_handle()) for container in (file, node.file)]

    # Sources of a virtual dataset, and raw data, are in files that the library opens by itself, when it reads.
    names = [source.file_name for source in node.virtual_sources()] if node.is_virtual else []
    names += [name for name, *_ in node.external or ()]
    folders = os.path.dirname(node.file.filename), ""
    places = [os.path.join(folder, name) for name in dict.fromkeys(names) if name != "." for folder in folders]
    others = [os.stat(place) for place in places if os.path.exists(place)]

    version = Version.of(*opened, *others)
    return version._replace(stamps=(*version.stamps, _identity(node)[1]))


def _check_chunks(node: Any, index: Sequence[IndexSet]) -> None:
    """Refuse a packed chunk of far more bytes than its elements have, which the library would unpack nevertheless."""
    h5z, plist = library().h5z, node.id.get_create_plist()
    filters = {plist.get_filter(k)[0] for k in range(plist.get_nfilters())}
    if filters <= {h5z.FILTER_SHUFFLE, h5z.FILTER_FLETCHER32}:  # which leave the number of bytes nearly as it is
        return

    most = 2 * prod(node.chunks) * node.dtype.itemsize + _SLACK
    corners = [range(along.start - along.start % n, along.stop, n) for along, n in zip(index, node.chunks, strict=True)]
    for corner in product(*corners):
        nbytes = node.id.get_chunk_info_by_coord(corner).size
        if nbytes > most:
            raise ValueError(f"the chunk at {corner} has {nbytes} bytes, which is far more than its elements have")


def _hint(error: Exception) -> str:
    """What to do about an error of the HDF5 library: not every file that it does not read is damaged."""
    if re.search("required filter|plugin", str(error)):
        return "install the filter with which it is compressed: pip install hdf5plugin, and import hdf5plugin"
    return WHOLE_COPY


def parallel() -> bool:
    """Whether h5py was built with MPI, so that all ranks write in parallel."""
    return bool(library().get_config().mpi)


def library() -> ModuleType:
    """The package `h5py`, imported now; RoteError if it is not installed."""
    try:
        import h5py
    except ImportError:
        raise RoteError("HDF5 files need h5py\npip install h5py") from None
    module: ModuleType = h5py
    return module


def _is_step(file: Any, name: str) -> bool:
    """Whether a name of the root is a step: a group with Rote's mark, and no link to one."""
    h5py = library()
    if not is_number(name) or not isinstance(file.get(name, getlink=True), h5py.HardLink):
        return False
    node = file[name]
    return isinstance(node, h5py.Group) and str(node.attrs.get(MARK)) == STEP


def _listing(top: Any) -> Contents:
    """The datasets of a group by their paths, outside of steps; and the names that lead to other names.

    Every group is searched once, through hard links first, so loops of links end. What is in a group is listed by the
    group's first path alone, and a dataset by each path that then leads to it. The links are those of `Contents.links`;
    one that leads nowhere is no error.
    """
    h5py = library()
    datasets: dict[str, StoredTensor | str] = {}
    links: dict[str, str] = {}
    seen = {_identity(top): top.name}
    groups, soft = deque([("", top)]), deque[tuple[str, Any, str]]()

    while groups or soft:
        nodes: list[tuple[str, Any]] = []  # what the next group, or the next link, has in it
        if groups:
            prefix, group = groups.popleft()
            for name in group:
                if group is top and top.name == "/" and _is_step(top, name):
                    seen[_identity(group[name])] = group[name].name  # so a link to it is listed, and not searched
                elif isinstance(group.get(name, getlink=True), h5py.HardLink):
                    nodes.append((prefix + name, group[name]))
                else:
                    soft.append((prefix + name, group, name))
        else:
            path, group, name = soft.popleft()
            link = group.get(name, getlink=True)
            links[path] = f"{link.filename}:{link.path}" if isinstance(link, h5py.ExternalLink) else link.path
            with suppress(Exception):  # it leads nowhere, in a circle, or to a file that cannot be read
                nodes.append((path, group[name]))

        for path, node in nodes:
            known = seen.setdefault(_identity(node), path)
            if known != path:
                links.setdefault(path, known)
            if isinstance(node, h5py.Group) and known == path:
                groups.append((f"{path}/", node))
            elif isinstance(node, h5py.Dataset) and not _has_only_a_length(node):
                datasets[path] = _stored(node, top, path)

    tensors, unread = tensors_and_reasons(datasets.items())
    return Contents(tensors, {}, links=dict(sorted(links.items())), unread=unread)


def _identity(node: Any) -> tuple[str, int]:
    """The file and the address of an object, which are the same for all links to it."""
    return os.path.realpath(node.file.filename), library().h5o.get_info(node.id).addr


def _stored(node: Any, group: Any, name: str) -> StoredTensor | str:
    """A dataset that was opened by its path in a group; or why it is no tensor."""
    if node.shape is None:
        return "is an empty data set: it has a dtype, and neither a shape nor elements"
    try:
        dtype = _dtype_of(node)
    except TypeError as error:
        return f"has elements of a type that NumPy does not have: {reason(error)}"

    attributes = _attributes(node)
    names = _names_of_modes(node, attributes)
    for mode, (extent, (_, length)) in enumerate(zip(node.shape, names, strict=True)):
        if length not in (None, extent):
            return f"has {extent} indices along mode {mode}, and the scale of this mode {length}"

    dims = tuple([name for name, _ in names])
    place = name if name.startswith("/") else f"{group.name.rstrip('/')}/{name}"
    plain = _as_shown(node, attributes, _STRUCTURE)
    return StoredTensor(node.shape, dtype, dims if any(dims) else None, plain, place, Packing.of(attributes, dtype))


def _dtype_of(node: Any) -> np.dtype[Any]:
    """The dtype of a data set's elements; pairs of floats under the names of MATLAB or Julia are complex numbers."""
    dtype: np.dtype[Any] = node.dtype
    if dtype.names in (("real", "imag"), ("re", "im")) and dtype[0] == dtype[1] and dtype[0].kind == "f":
        number = np.dtype(f"c{2 * dtype[0].itemsize}").newbyteorder(dtype[0].byteorder)
        return number if number.itemsize == dtype.itemsize else dtype
    return dtype


def _as_shown(node: Any, attributes: Mapping[str, Any], but: Collection[str]) -> dict[str, Any]:
    """The attributes but for some, as plain values.

    In netCDF all attributes are lists, so its libraries write a number as a list of one and show that as the number.
    """
    plain = kept_attributes(attributes, but)
    if "_NCProperties" not in node.file.attrs:
        return plain
    return {name: value[0] if isinstance(value, list) and len(value) == 1 else value for name, value in plain.items()}


def _has_only_a_length(node: Any) -> bool:
    """Whether a data set is only the length of a mode, and has no elements."""
    name = kept_attributes(_attributes(node, "NAME")).get("NAME")
    return isinstance(name, str) and name.startswith(_NO_VARIABLE)


def _names_of_modes(node: Any, attributes: Mapping[str, Any]) -> list[tuple[str | None, int | None]]:
    """Per mode of a data set, its name by a scale or else by a label, and the length of a scale that cannot grow."""
    if attributes.get("CLASS") in ("DIMENSION_SCALE", b"DIMENSION_SCALE") and node.ndim:
        return [(_last_name(node), None), *[(None, None)] * (node.ndim - 1)]

    names: list[tuple[str | None, int | None]] = [(None, None)] * node.ndim
    labels = kept_attributes(attributes).get(_LABELS)
    if isinstance(labels, list) and len(labels) == node.ndim and all(isinstance(label, str) for label in labels):
        names = [(label or None, None) for label in labels]

    # h5py's `dims` may end the process if the attribute has another type.
    references = attributes.get(_SCALES)
    if isinstance(references, np.ndarray) and references.shape == (node.ndim,):
        for mode, scales in enumerate(references):
            with suppress(Exception):  # no scale, or one that was deleted
                scale = node.file[scales[0]]
                fixed = scale.ndim == 1 and scale.maxshape == scale.shape  # along others, tensors may end earlier
                names[mode] = _last_name(scale), len(scale) if fixed else None
    return names


def _last_name(node: Any) -> str:
    """The name of a data set within its group."""
    return str(node.name).rpartition("/")[2]


def _attributes(node: Any, *names: str) -> dict[str, Any]:
    """The attributes of some names, or all, but those of types that h5py does not know."""
    attributes = {}
    for name in names or node.attrs:
        with suppress(TypeError, KeyError, ValueError, OSError):
            attributes[name] = node.attrs[name]
    return attributes


def write_netcdf(
    path: Path, parts: Sequence[Field], comm: Comm, attributes: Mapping[str, Any], step: int | None, advance: Advance
) -> None:
    """Write an HDF5 file that netCDF reads, in which each mode has a name: as `write_hdf5`."""
    named = [part._replace(attributes=_without_bools(part.attributes)) for part in _with_all_names(parts)]
    write_hdf5(path, named, comm, _without_bools(attributes), step, advance)


def _without_bools(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes with bytes of 0 and 1 for truth values, which netCDF's library does not show."""
    shown = dict(attributes)
    for name, value in attributes.items():
        array = np.asarray(value)
        if array.dtype == bool:
            shown[name] = array.astype(np.int8)
    return shown


def _with_all_names(parts: Sequence[Field]) -> list[Field]:
    """The parts, with a name for each mode; modes of one extent share it, as netCDF does it, but not in one tensor."""
    taken = {name for part in parts for name in (part.name or UNNAMED, *(part.dims or ()))}
    free = (name for name in map("dim_{}".format, count()) if name not in taken)
    names = defaultdict[tuple[int, int], str](lambda: next(free))

    def with_names(part: Field) -> Field:
        shape = part.dist.shape
        keys = [(extent, shape[:mode].count(extent)) for mode, extent in enumerate(shape)]
        return part._replace(dims=part.dims or tuple([names[key] for key in keys]))

    return [with_names(part) for part in parts]


def _begin(
    path: Path, parts: Sequence[Field], attributes: Mapping[str, Any], step: int | None, at_once: bool, draft: Draft
) -> None:
    """Create all datasets and attributes in a draft file, which for a step starts as a copy of the existing file."""
    h5py = library()
    with readably(path, "written"):
        _refuse_open(draft.target)
        adds = step is not None and os.path.exists(draft.target)
        if adds:
            refuse_older(path)
            shutil.copyfile(draft.target, draft.path)

        # All space is taken before the library writes: on a full disk, it ends the process.
        whole = [tuple(IndexSet.interval(0, n) for n in part.dist.shape) for part in parts]
        needs = sum(_room(part.dist, part.block.dtype, index) for part, index in zip(parts, whole, strict=True))
        texts = repr([attributes, *(part.attributes for part in parts)])  # a letter may stand for a number of 8 bytes
        reserve(draft.path, os.path.getsize(draft.path) + needs + 8 * len(texts))

        # netCDF's own library changes only files that have the order in which things were created.
        with h5py.File(draft.path, "r+" if adds else "w", track_order=not adds or None) as file:
            group = file if step is None else _new_step(path, file, step)
            for name, value in attributes.items():
                _set_attribute(path, group, name, value)

            for part in parts:
                shape, dtype = part.dist.shape, part.block.dtype
                options: dict[str, Any] = {}
                if not at_once and shape and 0 not in shape:
                    options = {"chunks": _chunks(part.dist, dtype), "fletcher32": True}
                dataset = group.create_dataset(part.name or UNNAMED, shape, dtype, **options)
                for name, value in part.attributes.items():
                    _set_attribute(path, dataset, name, value)

            _name_modes(group, parts)


def _refuse_open(path: str) -> None:
    """Refuse a file that another program writes: what it adds would be lost with the file that is replaced."""
    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        return
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # the HDF5 library locks what it writes
        except BlockingIOError:
            raise
        except OSError:  # a file system that has no locks
            return


def _name_modes(group: Any, parts: Sequence[Field]) -> None:
    """Attach a dimension scale to each named mode: the tensor of the name, or a data set that is only a length."""
    scales = {part.name or UNNAMED for part in parts if part.dims == (part.name or UNNAMED,)}
    for name in scales:
        group[name].make_scale(name)

    for part in parts:
        dims = part.dims or ()
        for mode, (dim, extent) in enumerate(zip(dims, part.dist.shape, strict=False)):
            if dim not in group:
                group.create_dataset(dim, (extent,), ">f4").make_scale(f"{_NO_VARIABLE}{extent:10}")
            if dims != (part.name or UNNAMED,):  # HDF5 attaches no scale to a scale
                group[part.name or UNNAMED].dims[mode].attach_scale(group[dim])


def _new_step(path: Path, file: Any, step: int) -> Any:
    """The empty group of a step, which replaces the step of that number, but nothing else of that name."""
    name = str(step)
    if file.get(name, getlink=True) is not None:
        if not _is_step(file, name):
            refuse_foreign(path, name)
        del file[name]
    group = file.create_group(name, track_order=True)
    group.attrs[MARK] = STEP
    return group


def _set_attribute(path: Path, node: Any, name: str, value: Any) -> None:
    """Set an attribute, or say that HDF5 has none of its kind: texts end at \\0, integers have 64 bits."""
    is_tensor = hasattr(node, "dtype")
    if is_tensor and name in _STRUCTURE:
        raise RoteError(f"{os.fspath(path)}: {name} is an attribute of HDF5 itself\ngive yours another name")
    try:
        # netCDF reads a fill value only in the type of the elements that it stands for.
        node.attrs[name] = np.asarray(value, node.dtype) if is_tensor and name == "_FillValue" else value
    except (TypeError, ValueError, OSError, RuntimeError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise RoteError(
            f"{os.fspath(path)}: HDF5 does not hold attribute {name!r}: {reason(error)}\n"
            "save it as a tensor, or save .zarr"
        ) from error


def _chunks(dist: Distribution, dtype: np.dtype[Any]) -> tuple[int, ...]:
    return chunk_extents(dist.max_local_shape(), dtype.itemsize, _CHUNK)


def _room(dist: Distribution, dtype: np.dtype[Any], index: tuple[IndexSet, ...]) -> int:
    """The most bytes by which a file grows when the elements at some indices are written: chunks and their metadata.

    If the disk has less space, the HDF5 library fails in a way that ends the process."""
    if not all(index):
        return _SLACK
    chunks = _chunks(dist, dtype)
    touched = prod([(along.stop - 1) // n - along.start // n + 1 for along, n in zip(index, chunks, strict=True)])
    return _SLACK + touched * (prod(chunks) * dtype.itemsize + 128)


def _put(file: Any, parts: Sequence[Field], rank: int, step: int | None, advance: Advance) -> None:
    group = file if step is None else file[str(step)]
    for name, block, dist, *_ in parts:
        if block.size and writes(dist, rank):
            for index, slab in slabs(dist.index_sets(rank), np.asarray(block, order="C"), dist.max_local_shape()):
                for selection, part in _selections(index, slab):
                    # A mode has two axes, runs and places in a run, but is one mode of the file's selection.
                    lengths = [prod(part.shape[k : k + 2]) for k in range(0, part.ndim, 2)]
                    group[name or UNNAMED][selection] = part.reshape(lengths)
                advance(slab.nbytes)


def _selections(index: Sequence[IndexSet], slab: Array) -> Iterator[tuple[tuple[Any, ...], Array]]:
    """The parts of a slab by the runs of its index sets: each as a selection of HDF5's, and as a view of the slab."""
    h5py = library()

    def along(start: int, period: int, count: int, width: int) -> Any:
        if count == 1 or period == width:
            return slice(start, start + count * width)
        return h5py.MultiBlockSlice(start=start, stride=period, count=count, block=width)

    # A lattice is runs of one width at equal distances: a block selection of the file, and two axes of the slab. Its
    # two rows start and step in the tensor's indices, and in the slab's. The view goes over the slab's memory.
    for lattices in product(*[list(lattices_of(indices)) for indices in index]):
        selection, start, shape, strides = [], 0, list[int](), list[int]()
        for lattice, stride in zip(lattices, slab.strides, strict=True):
            (first, period, _), (place, *steps) = lattice.rows
            selection.append(along(first, period, *lattice.shape))
            start += place * stride
            shape += lattice.shape
            strides += [step * stride for step in steps]

        yield tuple(selection), np.ndarray(shape, slab.dtype, slab, start, strides)


# --- XDMF ------------------------------------------------------------------------------------------------------------


def write_xdmf(
    path: Path, parts: Sequence[Field], comm: Comm, attributes: Mapping[str, Any], step: int | None, advance: Advance
) -> None:
    """Write an HDF5 file, or a step of it, and then the XDMF file that describes all of its steps.

    Each of the two gets its name only when it is complete. The other steps in the file are checked before it changes.
    """
    with collective_errors(comm):
        _fields(path, {part.name: StoredTensor(part.dist.shape, part.block.dtype) for part in parts})

    data = _data_file(path)
    with locked(data, comm):
        with collective_errors(comm):
            if comm.rank == 0 and step is not None and os.path.exists(data):
                for other in set(contents_hdf5(data, None).steps) - {step}:
                    _fields(path, contents_hdf5(data, other).tensors)
        _replace(data, parts, comm, attributes, step, advance)

        with replacing(path, comm, lambda draft: None) as draft, collective_errors(comm):
            if comm.rank == 0:
                with open(draft.path, "w", encoding="utf-8") as file:
                    file.write(_text(path))


def _data_file(path: Path) -> str:
    """The HDF5 file of a name: the file itself, or that of the same stem if the name is of an XDMF file."""
    stem, suffix = os.path.splitext(os.fspath(path))
    return f"{stem}.h5" if suffix.lower() in (".xdmf", ".xmf") else os.fspath(path)


def _text(path: Path) -> str:
    """The XML that describes all steps, or a file without steps."""
    first = contents_hdf5(path, None)
    root = xml.Element("Xdmf", Version="3.0")
    domain = xml.SubElement(root, "Domain")

    if not first.steps:
        _add_grid(domain, path, first)
    else:
        series = xml.SubElement(domain, "Grid", Name="steps", GridType="Collection", CollectionType="Temporal")
        for step in first.steps:
            _add_grid(series, path, contents_hdf5(path, step))

    xml.indent(root)
    return '<?xml version="1.0" ?>\n' + xml.tostring(root, encoding="unicode") + "\n"


def _fields(path: Path, tensors: Mapping[str, StoredTensor]) -> tuple[int, ...]:
    """The shape of the grid on which all tensors are fields; refused if there is none, or viewers do not read them."""
    name = os.fspath(path)
    shapes = sorted({stored.shape for stored in tensors.values()}, key=len)
    shape = shapes[0][-3:] if shapes else ()
    fits = len(shape) in (2, 3) and all(other in (shape, (other[0], *shape)) for other in shapes)
    if not fits or 0 in shape:
        raise RoteError(
            f"{name} shows fields on one grid of order 2 or 3, but shapes are {', '.join(map(str, shapes)) or 'none'}\n"
            "save each in a file of its own, or all as .h5"
        )

    for key, stored in tensors.items():
        if stored.dtype.kind not in _NUMBERS or stored.dtype.itemsize > 8:
            hint = {"c": "x.real and x.imag", "b": "x.astype('u1')"}.get(stored.dtype.kind, "x.astype('f8')")
            raise RoteError(f"{name} cannot show {key or 'the tensor'}, of dtype {stored.dtype}\nsave {hint} of it")
    return shape


def _add_grid(parent: xml.Element, path: Path, contents: Contents) -> None:
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
        values = np.ravel(contents.attributes.get(name, [usual] * order))
        numbers = values.tolist() if values.size == order and values.dtype.kind in "iuf" else [usual] * order
        _add_item(geometry, _row(numbers), (order,), NumberType="Float", Format="XML")

    for name, stored in contents.tensors.items():
        number = {"NumberType": _NUMBERS[stored.dtype.kind], "Precision": str(stored.dtype.itemsize)}
        source = f"{os.path.basename(_data_file(path))}:{stored.place}"
        components = stored.shape != shape
        for k in range(stored.shape[0] if components else 1):
            title = f"{name}_{k}" if components else name
            field = xml.SubElement(grid, "Attribute", Name=title, AttributeType="Scalar", Center="Node")
            if components:
                # Its start, its strides and its extents, one row each: component k of the tensor that follows.
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
