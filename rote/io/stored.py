"""Contents of files in any format: tensors by name, attributes and steps; and checks that refuse anything else."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np

from ..errors import LayoutError, RoteError
from ..layout.distribution import Distribution
from ..layout.indexset import IndexSet
from ..runtime.comm.protocol import Array, Path
from ..runtime.comm.rawfile import plainly
from .packed import Packing
from .window import Window

__all__ = ["MARK", "STEP", "WHOLE", "WHOLE_COPY", "Contents", "Field", "StoredTensor", "as_attributes", "as_dims"]
__all__ += ["as_step", "check_dtype", "check_file", "check_name", "check_path", "check_size"]
__all__ += ["is_number", "kept_attributes", "pick_step", "readably", "reason", "refuse_foreign", "refuse_partial"]
__all__ += ["UNNAMED", "tensors_and_reasons", "with_scales"]

MARK, STEP, WHOLE = "_rote", "step", "whole"
"""Rote's own attribute, and its values: of a group that is a step, and of a Zarr array that has all of its chunks."""

UNNAMED = "data"
"""The name of a tensor without a name, where a format needs one."""

WHOLE_COPY = "give a whole copy of the file"
"""The hint for a file that lost a part, or in which bytes were changed."""

_PACKING = ("_FillValue", "_Unsigned")  # attributes of netCDF that begin as Rote's own do
_LARGEST = 2**63  # of numbers and sizes in bytes, the first that 64 bits with a sign do not hold


class Field(NamedTuple):
    """This rank's block of a named tensor that will be written, with its names of modes and attributes."""

    name: str
    block: Array
    dist: Distribution
    dims: tuple[str, ...] | None = None
    attributes: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor in a file.

    Attributes
    ----------
    shape : tuple[int, ...]
        The shape of the tensor.
    dtype : numpy.dtype
        The dtype of the stored elements, in either byte order.
    dims : tuple[str | None, ...] | None
        The names of the modes, None for a mode without a name; None if the file names none of them.
    attributes : Mapping[str, Any]
        The tensor's own attributes by name, such as its units.
    place
        Where the tensor is in the file, in the format's own terms.
    packing : Packing | None
        What the elements stand for, if not for themselves.
    window : Window | None
        The part that is read; None for all.

    Examples
    --------
    >>> import rote
    >>> rote.DistTensor.zeros((2, 3), "block[(0),()]").save("zeros.npy")
    >>> rote.contents("zeros.npy").tensors["data"]
    StoredTensor(shape=(2, 3), dtype=dtype('float64'), dims=None, attributes={})
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    dims: tuple[str | None, ...] | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict, hash=False)
    place: Any = field(default=None, repr=False, compare=False)
    packing: Packing | None = field(default=None, repr=False, compare=False)
    window: Window | None = field(default=None, repr=False, compare=False)

    def places(self, index: tuple[IndexSet, ...]) -> tuple[IndexSet, ...]:
        """Per mode of the file, where the elements at some indices of the tensor are."""
        return index if self.window is None else self.window.places(index)

    def spread(self, block: Array) -> Array:
        """A view of a block that has all modes of the file."""
        return block if self.window is None else self.window.spread(block)


@dataclass(frozen=True, slots=True)
class Contents:
    """A file's tensors and attributes; those of one step, if it has steps.

    Attributes
    ----------
    tensors : Mapping[str, StoredTensor]
        The tensors by name.
    attributes : Mapping[str, Any]
        The attributes by name: numbers, truth values, texts, and lists of these.
    step : int | None
        The step of these tensors and attributes; None if they belong to no step.
    steps : tuple[int, ...]
        All steps of the file, in ascending order.
    links : Mapping[str, str]
        Of an HDF5 file, the names that lead to another name, with that name: soft links, external links
        (`file.h5:/name`), and all hard links to one object but the first. A link to a tensor is among `tensors` too;
        one that leads nowhere is not.
    unread : Mapping[str, str]
        The names of what is stored like a tensor but cannot be read as one, with the reason: an empty data set, or
        elements of a type that NumPy does not have.

    Examples
    --------
    >>> import rote
    >>> x = rote.DistTensor.zeros((2, 3), "block[(0),()]")
    >>> rote.save("state.h5", {"u": x, "v": x})
    >>> stored = rote.contents("state.h5")
    >>> {name: tensor.shape for name, tensor in stored.tensors.items()}
    {'u': (2, 3), 'v': (2, 3)}
    """

    tensors: Mapping[str, StoredTensor]
    attributes: Mapping[str, Any]
    step: int | None = None
    steps: tuple[int, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)

    def pick(self, path: Path, name: str | None) -> StoredTensor:
        """The tensor of a given name, or the only one; links to it do not count.

        Raises
        ------
        RoteError
            There is none of that name, or no name is given and there is not exactly one.
        """
        where = os.fspath(path) if self.step is None else f"{os.fspath(path)}, step {self.step},"
        unlinked = [tensor for tensor in self.tensors if tensor not in self.links] or list(self.tensors)

        if name is None and len(unlinked) == 1:
            return self.tensors[unlinked[0]]
        if name is None:
            raise RoteError(f"{where} holds {self._names()}\n{self._hint('write name=…')}")
        if name in self.tensors:
            return self.tensors[name]
        if name in self.unread:
            raise RoteError(f"{where}: {name!r} {self.unread[name]}\n{self._hint('write another name')}")

        links = [
            f"{link!r} is a link to {to}; " for link, to in self.links.items() if f"{name}/".startswith(f"{link}/")
        ]
        holds = f"{''.join(links)}it holds {self._names()}"
        raise RoteError(f"{where} has no tensor {name!r}: {holds}\n{self._hint('write one of these names')}")

    def _names(self) -> str:
        """The names of all tensors; if there are none, of what seems to be one, with the reasons why not."""
        if self.tensors:
            return ", ".join(map(repr, self.tensors))
        return "; ".join(["no tensor", *[f"{name!r} {text}" for name, text in self.unread.items()]])

    def _hint(self, hint: str) -> str:
        """A hint for a file that holds tensors; or what to do about one that holds none."""
        if self.tensors:
            return hint
        return "convert it with the program that wrote it" if self.unread else "save one first"


def tensors_and_reasons(
    datasets: Iterable[tuple[str, StoredTensor | str]],
) -> tuple[dict[str, StoredTensor], dict[str, str]]:
    """The tensors of a file by name, and by name the reasons why others cannot be read; both sorted."""
    tensors, reasons = dict[str, StoredTensor](), dict[str, str]()
    for name, stored in sorted(datasets, key=itemgetter(0)):
        if isinstance(stored, StoredTensor):
            tensors[name] = stored
        else:
            reasons[name] = stored
    return tensors, reasons


def pick_step(path: Path, step: int | None, steps: tuple[int, ...], plain: bool, foreign: bool = False) -> int | None:
    """The step to read: the given one, or else the last, unless the file has data outside of steps (`plain`).

    `foreign` says whether something else than a step has the given number as its name.
    """
    if step is None:
        return steps[-1] if steps and not plain else None

    if step not in steps:
        state, hint = "has no steps", "write no step"
        if steps:
            state, hint = f"has the steps {', '.join(map(str, steps))}", "write one of these"
        if foreign:
            hint = f"{step} is not a step that Rote wrote; write name='{step}' or name='{step}/…'"
        raise RoteError(f"{os.fspath(path)} {state}, not {step}\n{hint}")
    return step


def as_step(step: object) -> int | None:
    """Check a step that a user gives: an integer from 0, or None."""
    if step is None:
        return None
    if isinstance(step, int | np.integer) and not isinstance(step, bool) and 0 <= step < _LARGEST:
        return int(step)
    shown = "one of more than 64 bits" if isinstance(step, int) and abs(step) >= _LARGEST else repr(step)
    raise RoteError(f"a step is a number from 0 on, not {shown}\nwrite step=3; what else is to be kept, as attributes")


def as_attributes(attributes: Mapping[str, object] | None) -> dict[str, Any]:
    """Attributes as plain values that every format can hold.

    >>> as_attributes({"time": np.float64(0.5), "origin": np.zeros(2)})
    {'time': 0.5, 'origin': [0.0, 0.0]}
    """
    if not isinstance(attributes, Mapping | None):
        raise TypeError(f"attributes are values by name, not {attributes!r}\nwrite attributes={{'time': 0.5}}")
    for name in set(attributes or {}).difference(_PACKING):
        check_name(name, "an attribute")
    return {name: _attribute(name, value) for name, value in (attributes or {}).items()}


def _attribute(name: str, value: object) -> Any:
    plain = _plain(value)
    items = plain if isinstance(plain, list) else [plain]
    kinds = {type(item) for item in items}

    are_numbers, are_alike = kinds <= {int, float}, kinds in ({bool}, {str})
    if not are_numbers and not are_alike:
        raise RoteError(
            f"attribute {name!r} is {value!r}, which files do not keep\n"
            "write a number, a truth value, a text, or a list of such of one kind; "
            "float(x) of a tensor of order 0 that some ranks lack, str(…) or json.dumps(…) of others"
        )
    return plain


def _plain(value: object) -> Any:
    """A value of NumPy's as Python's own number, text or list, the form in which attributes are read."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return [*map(_plain, value)] if isinstance(value, list | tuple) else value


def kept_attributes(attributes: Mapping[str, object], but: Collection[str] = ()) -> dict[str, Any]:
    """A file's attributes as plain values, but for some names; those of other types, as of programs, are left out."""
    plain = {name: _plain(value) for name, value in attributes.items() if name != MARK and name not in but}
    return {name: value for name, value in plain.items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    """Whether a value is a number, a truth value, a text, or a list of plain values."""
    return all(map(_is_plain, value)) if isinstance(value, list) else isinstance(value, int | float | complex | str)


def as_dims(dims: Sequence[str] | str | None, name: str, shape: tuple[int, ...]) -> tuple[str, ...] | None:
    """Check the names that a user gives to the modes of a tensor: one text per mode.

    >>> as_dims(("t", "y"), "u", (4, 6)), as_dims("t", "energy", (4,)), as_dims(None, "v", (3,))
    (('t', 'y'), ('t',), None)
    """
    if dims is None:
        return None
    listed = (dims,) if isinstance(dims, str) else dims
    names = tuple(listed) if isinstance(listed, Sequence) else ()
    valid = all(isinstance(dim, str) and dim not in ("", ".") and "/" not in dim and _is_text(dim) for dim in names)
    if len(names) != len(shape) or not valid:
        raise LayoutError(
            f"dims of {name or 'the tensor'} is {dims!r}, but its shape is {shape}\nwrite one text per mode"
        )
    return names


def with_scales(parts: Sequence[Field]) -> list[Field]:
    """The parts; a tensor that has the name of a mode is the mode's scale, whose own mode has that name too.

    Refuses one name for modes of several extents, and a scale that is not as long as its mode: of such a file, xarray
    makes no Dataset.
    """
    extents: dict[str, int] = {}
    for name, _, dist, dims, _ in parts:
        for dim, extent in zip(dims or (), dist.shape, strict=False):
            if extents.setdefault(dim, extent) != extent:
                raise LayoutError(
                    f"dims: {dim!r} is a mode of {extent} indices in {name or 'the tensor'}, and of {extents[dim]} "
                    "elsewhere\ngive modes of other extents other names"
                )

    scaled = []
    for part in parts:
        name = part.name or UNNAMED
        is_scale = name in extents
        if is_scale and (part.dist.shape != (extents[name],) or part.dims not in (None, (name,))):
            raise LayoutError(
                f"{name!r} is a mode of {extents[name]} indices, but the tensor of this name, its scale, has "
                f"shape {part.dist.shape} and dims {part.dims}\ngive the mode or the tensor another name"
            )
        scaled.append(part._replace(dims=(name,)) if is_scale else part)

    return scaled


def is_number(name: str) -> bool:
    """Whether a name is what `str` makes of a number from 0 on, as the name of a step is.

    >>> [name for name in ("0", "10", "000", "-1", "u1", "\u0663") if is_number(name)]
    ['0', '10']
    """
    return name.isascii() and name.isdecimal() and (name == "0" or name[0] != "0") and len(name) < len(str(_LARGEST))


def refuse_foreign(path: Path, name: str) -> NoReturn:
    """Refuse to replace what has the name of a step, and is none."""
    raise RoteError(
        f"{os.fspath(path)} holds {name!r}, which is no step of Rote's, and saving would replace it\n"
        "give another step, or another file"
    )


def check_name(name: object, thing: str = "a tensor") -> str:
    """Refuse names that some format does not allow, or that begin as those of formats and programs do."""
    valid = isinstance(name, str) and name != "" and name[0] not in "._" and not set(name) & set('/\\"<>&')
    if not isinstance(name, str) or not valid or not _is_text(name) or name.casefold() == "zarr.json":
        raise RoteError(
            f"{name!r} is not the name of {thing}: a text without slashes and the like, not begun by . or _\n"
            'write one like "velocity"'
        )
    return name


def _is_text(text: str) -> bool:
    """Whether formats hold a text: in UTF-8, which has no half of a surrogate pair, and without the end of C's texts.

    >>> [_is_text(text) for text in ("velocity", chr(252), chr(0), chr(0xD800))]
    [True, True, False, False]
    """
    return not any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in text)


def check_path(path: Path) -> str:
    """The name of a file; refused if it is no text, or one that no file can have, or leads into a file.

    Raises: TypeError if it is no text, RoteError otherwise.
    """
    name = os.fspath(path)
    if not isinstance(name, str):
        raise TypeError(f"a path is a text here, not {name!r}\nwrite os.fsdecode(path)")
    try:
        valid = b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        valid = False

    if not valid:
        raise RoteError(f"{name!r} has a letter that no path may have\nwrite a name without \\0 and \\ud800 to \\udfff")

    folder = os.path.dirname(name)
    while folder and not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if os.path.isfile(folder) and os.path.splitext(folder)[1] not in ("", ".npy"):  # it may hold such a tensor
        rest = os.path.relpath(name, folder)
        raise RoteError(f"{name}: {folder} is a file\nwrite load({folder!r}, name={rest!r}), or save({folder!r}, …)")
    return name


def check_file(path: Path) -> None:
    """Refuse a pipe or a device, in which ranks cannot read parts, and which may let them wait for ever."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # to open a folder is an error of the system
        raise RoteError(f"{os.fspath(path)} is a pipe or a device, of which ranks cannot read parts\ngive a file")


def check_size(shape: Sequence[int], dtype: np.dtype[Any], path: Path) -> None:
    """Refuse a tensor that is larger than arrays may be; as in NumPy, an extent of 0 does not make it smaller."""
    if prod([max(extent, 1) for extent in shape]) * dtype.itemsize >= _LARGEST:
        raise RoteError(
            f"{os.fspath(path)}: shape {tuple(shape)} and dtype {dtype} are of more bytes than an array may have\n"
            "correct the shape in the file, or load another tensor"
        )


def check_dtype(dtype: np.dtype[Any], name: str, most: int = 32) -> None:
    """Refuse dtypes that Rote does not support, and floats of more than `most` bytes (complex: twice as many)."""
    if dtype.kind not in "biufc" or dtype.char == "e":
        raise RoteError(
            f"{name} holds elements of dtype {dtype}\n"
            "convert to bool, an integer, or a float or complex of single, double or long double precision"
        )
    if dtype.kind in "fc" and dtype.itemsize > most * (1 + (dtype.kind == "c")):
        raise RoteError(f"{name} has elements of dtype {dtype}, for which the format has none\nsave x.astype(…) of it")


def refuse_partial(dist: Distribution, name: str = "") -> None:
    """Refuse a partial tensor, whose blocks are contributions to a reduction."""
    if dist.partial:
        plain = dist.layout
        for g in plain.partial:
            plain = plain.drop(g)
        whose = f"{name}: " if name else ""
        raise LayoutError(
            f"{whose}{dist.layout} is partial: no rank holds the values yet\nredistribute to {plain} first"
        )


def reason(error: BaseException) -> str:
    """The first line of an error's text, or its type; without the addresses of Python's objects.

    >>> reason(ValueError(f"malformed node: {object()}")), reason(EOFError())
    ('malformed node: <object object>', 'EOFError')
    """
    first = str(error).partition("\n")[0] or type(error).__name__
    return re.sub(r" at 0x[0-9a-fA-F]+", "", first)


@contextmanager
def readably(
    path: Path, verb: Literal["read", "written"] = "read", hint: Callable[[Exception], str] | None = None
) -> Iterator[None]:
    """Turn the errors of a format's library into ones that name the file and say what is wrong.

    Args:
        hint: says what to do about an error of the library, if it knows better than "the file is damaged".
    """
    try:
        with plainly(path):
            yield
    except RoteError:
        raise
    except Exception as error:  # a damaged file can make libraries raise nearly anything
        if isinstance(error, BlockingIOError):  # HDF5 locks the files that it writes
            raise RoteError(
                f"{os.fspath(path)} is open elsewhere, to be written, in this program or another one\nclose it there"
            ) from error
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the system, which says by itself what is wrong

        advice = WHOLE_COPY if verb == "read" else "give another name, or remove the old file if it is damaged"
        if isinstance(error, MemoryError):
            advice = "use more ranks, each of which has less"
        elif hint is not None:
            advice = hint(error)
        raise RoteError(f"{os.fspath(path)} cannot be {verb}: {reason(error)}\n{advice}") from error
