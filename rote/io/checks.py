"""Checks of what users give and files hold: paths, sizes, dtypes, names, steps and attributes; and errors in words.

What a format cannot hold, and what is damaged, is refused before it is written or read.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, Literal, NoReturn

import numpy as np

from ..errors import LayoutError, RoteError
from ..layout.distribution import Distribution
from ..runtime.comm.protocol import Path
from ..runtime.comm.rawfile import plainly
from .stored import MARK

__all__ = ["WHOLE_COPY", "as_attributes", "as_dims", "as_step", "check_dtype", "check_file", "check_name", "check_path"]
__all__ += ["check_size", "is_number", "kept_attributes", "readably", "reason", "refuse_foreign", "refuse_partial"]

WHOLE_COPY = "give a whole copy of the file"
"""The hint for a file that lost a part, or in which bytes were changed."""

_PACKING = ("_FillValue", "_Unsigned")  # attributes of netCDF that begin as Rote's own do
_LARGEST = 2**63  # of numbers and sizes in bytes, the first that 64 bits with a sign do not hold


# --- files and tensors ------------------------------------------------------------------------------------------------


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


# --- names and steps --------------------------------------------------------------------------------------------------


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


def as_step(step: object) -> int | None:
    """Check a step that a user gives: an integer from 0, or None."""
    if step is None:
        return None
    if isinstance(step, int | np.integer) and not isinstance(step, bool) and 0 <= step < _LARGEST:
        return int(step)
    shown = "one of more than 64 bits" if isinstance(step, int) and abs(step) >= _LARGEST else repr(step)
    raise RoteError(f"a step is a number from 0 on, not {shown}\nwrite step=3; what else is to be kept, as attributes")


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


# --- attributes -------------------------------------------------------------------------------------------------------


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


def kept_attributes(attributes: Mapping[str, object], but: Collection[str] = ()) -> dict[str, Any]:
    """A file's attributes as plain values, but for some names; those of other types, as of programs, are left out."""
    plain = {name: _plain(value) for name, value in attributes.items() if name != MARK and name not in but}
    return {name: value for name, value in plain.items() if _is_plain(value)}


def _plain(value: object) -> Any:
    """A value of NumPy's as Python's own number, text or list, the form in which attributes are read."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return [*map(_plain, value)] if isinstance(value, list | tuple) else value


def _is_plain(value: Any) -> bool:
    """Whether a value is a number, a truth value, a text, or a list of plain values."""
    return all(map(_is_plain, value)) if isinstance(value, list) else isinstance(value, int | float | complex | str)


# --- errors of libraries ----------------------------------------------------------------------------------------------


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


def reason(error: BaseException) -> str:
    """The first line of an error's text, or its type; without the addresses of Python's objects.

    >>> reason(ValueError(f"malformed node: {object()}")), reason(EOFError())
    ('malformed node: <object object>', 'EOFError')
    """
    first = str(error).partition("\n")[0] or type(error).__name__
    return re.sub(r" at 0x[0-9a-fA-F]+", "", first)
