"""Tensors in files, whose suffix names the format: `save`, `contents`, and the implementation of `load`.

If the format needs another layout than the tensor's, a compiled plan moves the tensor before it is written, which is an
implicit move (`rote.config`), or after it is read, which the layout of `load` asks for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import CommError, LayoutError, RoteError, counted
from ..functions.distributed import Distributed, T, comm_of
from ..functions.moves import default_layout, moved, redistributed, warn_at_caller
from ..io import Format, format_of, format_of_file
from ..io.checks import as_attributes, as_dims, as_step, check_dtype, check_name, check_path, check_size, refuse_partial
from ..io.layouts import without_view
from ..io.stored import UNNAMED, Contents, Field, StoredTensor, with_scales
from ..io.versions import again_if_replaced
from ..io.window import Window
from ..layout.distribution import Distribution
from ..layout.layout import Layout
from ..runtime.choose import Progress
from ..runtime.comm.agreement import Difference, agree, collective_errors
from ..runtime.comm.protocol import Comm, Path
from ..runtime.comm.resolve import as_comm
from ..runtime.log import log
from ..runtime.placement import GridLike, place, same_everywhere

__all__ = ["contents", "load_as", "save"]


def save(
    path: Path,
    x: Distributed | Mapping[str, Distributed] | Any,
    attributes: Mapping[str, object] | None = None,
    step: int | None = None,
    progress: Progress | None = None,
    dims: Sequence[str] | str | Mapping[str, Sequence[str] | str] | None = None,
) -> None:
    """Write a tensor, or several by name, as one file; every rank writes its own part. Collective.

    The file gets its name when it is complete and on the disk: it replaces an old one in one step, and keeps the old
    one's permissions and, where the system allows, its owner. On any failure the old file stays as it was, and nothing
    else is left. Jobs that save one HDF5 file at the same time, or make one `.zarr` store, wait for each other.

    - `.npy`, or no suffix, holds one tensor, without a checksum. Ranks write in parallel, in any layout.
    - `.zarr` holds tensors, attributes and steps, with CRC32C. Ranks write whole chunks in parallel; blocks must be of
      one size, as those of `block(ceil)`.
    - `.h5`, `.hdf5` hold the same, with Fletcher32. Ranks write one after the other, or in parallel if h5py has MPI; in
      any layout, but without views.
    - `.nc`, `.nc4` are an `.h5` file in which every mode has a name, so that netCDF and xarray open it.
    - `.xdmf`, `.xmf` are an `.h5` file, and next to it the description that ParaView reads.

    A tensor in another layout is moved first, which is an implicit move (`rote.config`): uneven blocks go to
    `block(ceil)`, cyclic ones and views to blocks. Of several replicas one is written, and of a rooted tensor the
    root's block.

    Parameters
    ----------
    path : str | PathLike[str]
        The file; its suffix names the format.
    x : DistTensor | Mapping[str, Distributed] | Any
        A tensor, or tensors by name, over the same ranks. In Zarr a tensor without a name or `dims` is the root array;
        elsewhere its name is "data". A `DataArray` of `x.to_xarray`, or a Dataset of such, is written with its
        attributes, the names of its modes, and its coordinates, each as a tensor of its name.
    attributes : Mapping[str, object], optional
        Of the file, or of the step: numbers, truth values, texts, and lists of these; a tensor of order 0 that every
        rank has is a number. If None, those of the Dataset.
    step : int, optional
        The number of a step to write, as a group; everything else in the file stays. In HDF5 the file is copied for it;
        for many steps of many bytes use Zarr, which writes only the step.
    progress : Callable[[float], object], optional
        Called on this rank with the part that is written, from 0 to 1. Without it, rank 0 shows a bar for 256 MiB or
        more, if its standard error is a terminal.
    dims : Sequence[str] | str | Mapping[str, Sequence[str] | str], optional
        The names of the modes, one text per mode, for all tensors or for each by its name; xarray needs them to open a
        Zarr store. A tensor of one mode that has the name of a mode is its scale.

    Raises
    ------
    OSError
        The file cannot be made or written: no such folder, no permission, no space, a circle of links. All ranks raise
        the same error.
    LayoutError
        A tensor is partial; implicit moves are refused, and one is needed; or `dims` do not fit the shape, or give one
        name to modes of several extents, or to a mode and a tensor that is no scale of it.
    RoteError
        The suffix names no known format, or the format cannot hold this; a library is missing; another job writes the
        file for more than a minute.
    CommError
        Ranks give different names, dims, attributes, steps or paths.
    TypeError
        `x` is neither a tensor nor tensors by name.

    Warns
    -----
    UserWarning
        `step` replaces one in a file that has later ones, perhaps of an earlier run, of which `load` reads the last; on
        rank 0.

    See Also
    --------
    rote.load : Read a tensor.
    rote.contents : List what is in a file.

    Examples
    --------
    >>> import numpy as np, rote
    >>> def program(comm):
    ...     u = rote.DistTensor.from_function(lambda i, j: 10 * i + j, (4, 6), "block[(0),()]", comm)
    ...     rote.save("fields.h5", {"u": u, "v": 2 * u}, attributes={"time": 0.5})
    >>> ranks = rote.run(program, ranks=2)
    >>> rote.load("fields.h5", "block[(),(0)]", name="v").to_global()[3]
    array([60, 62, 64, 66, 68, 70])
    """
    if isinstance(path, Distributed):
        raise TypeError(f"the path comes first, and then what is saved\nwrite rote.save({x!r}, x)")

    # Labelled arrays of xarray, and Datasets of them, have tensors as their data.
    named = isinstance(x, Mapping) or not isinstance(x, Distributed)
    arrays = x if isinstance(x, Mapping) else {getattr(x, "name", None) or UNNAMED if named else "": x}
    data: list[Any] = [
        array if isinstance(array, Distributed) else getattr(array, "data", None) for array in arrays.values()
    ]
    if not data or not all(isinstance(value, Distributed) for value in data):
        raise TypeError(f"save takes a tensor, or tensors by name, not {x!r}\nlay arrays out by DistTensor.from_global")

    comm: Comm = data[0].comm
    with collective_errors(comm):
        names = dict(dims) if isinstance(dims, Mapping) else dict.fromkeys(arrays, dims)
        if not names.keys() <= arrays.keys():
            raise LayoutError(
                f"dims are for {', '.join(map(repr, names))}, but {', '.join(map(repr, arrays))} is saved"
            )
        tensors, described = _with_coordinates(x, arrays, names)
        comm_of("save", tensors.values())

        # A Dataset has attributes of its own; those of a DataArray belong to the tensor.
        if attributes is None and isinstance(x, Mapping):
            attributes = getattr(x, "attrs", None)
        values = as_attributes(_with_numbers(attributes))
        form, number, parts = format_of(path), as_step(step), list[Field]()
        for name, tensor in tensors.items():
            if named:
                check_name(name)
            refuse_partial(tensor.distribution, name)
            modes = as_dims(names.get(name), name, tensor.shape)
            attached = as_attributes(_with_numbers(described.get(name)))
            parts.append(Field(name, tensor.local, tensor.distribution, modes, attached))
        parts = with_scales(parts)
        form.check(path, parts, values, number)

    told = {part.name: f"{part.block.dtype} {part.dist} {part.dims} {part.attributes}" for part in parts}
    _agree(comm, "save", {"paths": os.fspath(path), "steps": number, "attributes": values, "tensors": told})

    # Before this no tensor moves: a move between ranks that save other things would wait for ever.
    for k, tensor in enumerate(tensors.values()):
        dist = form.written_in(tensor.distribution, tensor.local.dtype)
        stored = tensor if dist == tensor.distribution else moved(tensor, dist.layout, "rote.save")
        parts[k] = parts[k]._replace(block=stored.local, dist=dist)
    if number is not None and comm.rank == 0:
        _warn_of_later_steps(form, path, number, comm)
    form.write(path, parts, comm, values, number, progress)
    log(comm, "saved %s", os.fspath(path))


def _warn_of_later_steps(form: Format, path: Path, step: int, comm: Comm) -> None:
    """Warn, on the rank that looks, that a step is about to be replaced and later ones stay: two runs may mix.

    What cannot be read here is refused where the step is written.
    """
    name = os.fspath(path)
    if not os.path.exists(name) or (os.path.isdir(name) and not os.path.exists(os.path.join(name, str(step)))):
        return

    later = tuple[int, ...]()
    with suppress(Exception):  # an error of this rank alone would leave the others waiting
        later = tuple([other for other in form.contents(path, step, None).steps if other > step])

    if later:
        stay = counted(len(later), "later step stays", "later steps stay")
        rule = f"{name}: step {step} is replaced, and {stay}, up to {later[-1]}, the step that load reads by default"
        hint = f"if they are of an earlier run, remove {name} before this one"
        warn_at_caller(comm, UserWarning, f"rote.save to {name}", f"{rule}\n{hint}")


def _with_numbers(value: Any) -> Any:
    """Attributes with numbers in the place of tensors of order 0.

    Ranks may still disagree on the call, so nothing is sent here: a number that some ranks lack stays a tensor.
    """
    if isinstance(value, Mapping):
        return {name: _with_numbers(attribute) for name, attribute in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_with_numbers, value)]

    is_number = isinstance(value, Distributed) and not value.distribution.shape
    if is_number and not value.layout.partial and not value.layout.rooted:
        return value.local
    return value


def _index_of(index: Any) -> Any:
    """An index with numbers in the place of tensors of order 0, as `_with_numbers`."""
    if isinstance(index, Mapping):
        return {dim: _index_of(item) for dim, item in index.items()}
    if isinstance(index, tuple):
        return tuple(map(_index_of, index))
    if isinstance(index, slice):
        return slice(*_with_numbers((index.start, index.stop, index.step)))
    return _with_numbers(index)


def _with_coordinates(
    x: Any, arrays: Mapping[Any, Any], names: dict[Any, Any]
) -> tuple[dict[Any, Any], dict[Any, dict[str, object]]]:
    """Tensors as they are, and those of labelled arrays with their coordinates; and by name, their attributes.

    Adds the names of their modes to `names`.
    """
    tensors: dict[Any, Any] = {}
    attributes: dict[Any, dict[str, object]] = {}
    for name, array in arrays.items():
        tensors[name] = array if isinstance(array, Distributed) else array.data
        names[name] = names.get(name) or getattr(array, "dims", None)
        attributes[name] = dict(getattr(array, "attrs", {}))

        # By this attribute xarray knows which variables are coordinates, but for those with the name of a mode.
        labels = [str(label) for label in getattr(array, "coords", ()) if label not in array.dims]
        if labels:
            attributes[name]["coordinates"] = " ".join(labels)
    first = next(iter(tensors.values()))

    # Coordinates that arrays have in common are saved once, and one name for several is refused. Plain coordinates are
    # compared by their values, and tensors only by identity.
    coordinates: dict[Any, Any] = {}
    for array in (*arrays.values(), x):
        for name, coordinate in getattr(array, "coords", {}).items():
            variable, known = coordinate.variable, coordinates.setdefault(name, coordinate.variable)
            is_tensor = any(isinstance(other.data, Distributed) for other in (variable, known))
            same = variable.data is known.data or (not is_tensor and variable.equals(known))
            if name in tensors or not same:
                raise RoteError(
                    f"{name!r} is the name of two arrays\nrename one by a.rename, or drop it by a.drop_vars"
                )

    for name, variable in coordinates.items():
        data = variable.data
        if not isinstance(data, Distributed):
            whole = f"[{','.join(['()'] * variable.ndim)}]"
            data = first._on(np.array(data), place(variable.shape, whole, first.comm, None))
        tensors[name], names[name], attributes[name] = data, variable.dims, dict(variable.attrs)
    return tensors, attributes


def load_as(
    kind: type[T],
    path: Path,
    layout: Layout | str | None = None,
    name: str | None = None,
    step: int | None = None,
    comm: object | None = None,
    grid: GridLike = None,
    progress: Progress | None = None,
    index: Any = None,
    decode: bool = False,
) -> tuple[T, dict[str, Any]]:
    """Read a tensor of class `kind`, with its attributes, from a file; arguments and errors as for `rote.load`."""
    ranks = as_comm(comm)
    with collective_errors(ranks):
        check_path(path)
        number, index = as_step(step), _index_of(index)
        if name is not None and not isinstance(name, str):
            raise TypeError(
                f"the third argument of load is the name of a tensor, not a {type(name).__name__}\nwrite comm=comm"
            )
    told = {"paths": os.fspath(path), "steps": number, "names": name, "indices": index, "values of decode": decode}
    _agree(ranks, "load", told)
    form = format_of_file(path, ranks)

    def read() -> tuple[T, Distribution, StoredTensor]:
        stored = form.look(path, number, ranks, name).pick(path, name)
        shape = stored.shape
        with collective_errors(ranks):
            check_dtype(stored.dtype, os.fspath(path))
            check_size(shape, stored.dtype, path)
            if decode and stored.packing is None and stored.dtype.kind in "iu":
                raise RoteError(
                    f"{os.fspath(path)}: {name or 'the tensor'} is of integers that stand for no others: it has no "
                    "attribute _FillValue, missing_value, scale_factor or add_offset\nload it without decode="
                )
            window = None if index is None else Window.of(index, shape, stored.dims)
            shape = shape if window is None else window.shape
            stored = replace(stored, window=window, packing=stored.packing if decode else None)
            target = place(shape, default_layout(shape) if layout is None else layout, ranks, grid)
        same_everywhere(ranks, target, stored.dtype)

        # A part of a file is read by the indices of the tensor's own modes, which a view takes apart.
        dist = form.read_in(target if index is None else without_view(target))
        return kind._wrap(form.read(path, stored, dist, ranks, progress), dist, ranks), target, stored

    x, target, stored = again_if_replaced(read)
    log(ranks, "loaded %s: %s %s as %s", os.fspath(path), target.shape, stored.dtype, target.layout)
    tensor = x if x.distribution == target else redistributed(x, target.layout, "rote.load")
    return tensor, dict(stored.attributes)


def contents(path: Path, step: int | None = None, comm: object | None = None) -> Contents:
    """Return the tensors, attributes and steps of a file, without the elements. Collective; only rank 0 reads.

    Parameters
    ----------
    path : str | PathLike[str]
        The file, as in `load`.
    step : int, optional
        The step; the last one if None.
    comm : object, optional
        As in `load`.

    Returns
    -------
    Contents
        `tensors` by name, each with `shape`, `dtype`, `dims`, the names of its modes, and its own `attributes`;
        `attributes` of the file or the step by name; `step` and all `steps`; `links` of an HDF5 file, by name, to what
        they lead to; `unread` by name, why something that is stored like a tensor cannot be read as one.

    Raises
    ------
    OSError, RoteError
        As `load`, the same error on all ranks.
    CommError
        Ranks give different paths or steps.

    See Also
    --------
    rote.load : Read a tensor.

    Examples
    --------
    >>> import rote
    >>> x = rote.DistTensor.zeros((4, 6), "block[(0),()]")
    >>> for step in (0, 5):
    ...     rote.save("run.zarr", {"u": x}, attributes={"time": 0.1 * step}, step=step)
    >>> run = rote.contents("run.zarr")
    >>> run.steps, run.step, run.attributes, run.tensors["u"].shape
    ((0, 5), 5, {'time': 0.5}, (4, 6))
    """
    ranks = as_comm(comm)
    with collective_errors(ranks):
        check_path(path)
        number = as_step(step)
    _agree(ranks, "contents", {"paths": os.fspath(path), "steps": number})
    return again_if_replaced(lambda: format_of_file(path, ranks).look(path, number, ranks, None))


def _agree(comm: Comm, name: str, arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that differ between ranks; all ranks raise the same error."""

    def refusal(difference: Difference) -> CommError:
        at, first, rank, other = difference.at, difference.first, difference.rank, difference.other
        both = f"of {[*arguments][at]} rank 0 gives {first} and rank {rank} {other}"
        return CommError(f"a file is one thing on all ranks, but {both}\ngive the same on all")

    agree(comm, name, tuple(map(repr, arguments.values())), refusal=refusal)
