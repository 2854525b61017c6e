"""Contents of files in any format: tensors by name, attributes and steps; and checks that refuse anything else."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np

from ..errors import LayoutError, RoteError
from ..layout.distribution import Distribution
from ..runtime.comm.protocol import Array, Path
from ..runtime.comm.rawfile import plainly

__all__ = ["MARK", "STEP", "WHOLE", "Contents", "Part", "StoredTensor", "as_attributes", "as_dims", "as_step"]
__all__ += ["check_dtype", "check_extents", "check_name", "is_number", "kept_attributes"]
__all__ += ["pick_step", "readably", "refuse_foreign", "refuse_partial"]

MARK, STEP, WHOLE = "_rote", "step", "whole"
"""Rote's own attribute, and its values: of a group that is a step, and of a Zarr array that has all of its chunks."""


class Part(NamedTuple):
    """This rank's part of a named tensor that will be written."""

    name: str
    block: Array
    dist: Distribution
    dims: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor in a file.

    Attributes:
        shape: the shape of the tensor.
        dtype: the dtype of the stored elements, in either byte order.
        dims: the names of the modes, None for a mode without a name; None if the file names none of them.
        place: where the tensor is in the file, in the format's own terms.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    dims: tuple[str | None, ...] | None = None
    place: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Contents:
    """A file's tensors and attributes; those of one step, if it has steps.

    Attributes:
        tensors: the tensors by name.
        attributes: the attributes by name: numbers, truth values, texts, and lists of these.
        step: the step of these tensors and attributes; None if they belong to no step.
        steps: all steps of the file, in ascending order.
        links: of an HDF5 file, the names that lead to another name, with that name: soft links, external links
            (`file.h5:/name`), and all hard links to one object but the first. A link to a tensor is among `tensors`
            too; one that leads nowhere is not.
    """

    tensors: Mapping[str, StoredTensor]
    attributes: Mapping[str, Any]
    step: int | None = None
    steps: tuple[int, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)

    def pick(self, path: Path, name: str | None) -> StoredTensor:
        """The tensor of a given name, or the only one; links to it do not count.

        Raises:
            RoteError: there is none of that name, or no name is given and there is not exactly one.
        """
        names = ", ".join(map(repr, self.tensors)) or "no tensor"
        where = os.fspath(path) if self.step is None else f"{os.fspath(path)}, step {self.step},"
        if name is None:
            unlinked = [each for each in self.tensors if each not in self.links] or list(self.tensors)
            if len(unlinked) == 1:
                return self.tensors[unlinked[0]]
            hint = "write name=…" if self.tensors else "save one first"
            raise RoteError(f"{where} holds {names}\n{hint}")
        if name not in self.tensors:
            links = [
                f"{each!r} is a link to {to}; " for each, to in self.links.items() if f"{name}/".startswith(f"{each}/")
            ]
            raise RoteError(
                f"{where} has no tensor {name!r}: {''.join(links)}it holds {names}\nwrite one of these names"
            )
        return self.tensors[name]


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
    if isinstance(step, int | np.integer) and not isinstance(step, bool) and step >= 0:
        return int(step)
    raise RoteError(f"a step is a number from 0 on, not {step!r}\nwrite step=3; what else is to be kept, as attributes")


def as_attributes(attributes: Mapping[str, object] | None) -> dict[str, Any]:
    """Attributes as plain values that every format can hold.

    >>> as_attributes({"time": np.float64(0.5), "origin": np.zeros(2)})
    {'time': 0.5, 'origin': [0.0, 0.0]}
    """
    if not isinstance(attributes, Mapping | None):
        raise TypeError(f"attributes are values by name, not {attributes!r}\nwrite attributes={{'time': 0.5}}")
    return {check_name(name, "an attribute"): _attribute(name, value) for name, value in (attributes or {}).items()}


def _attribute(name: str, value: object) -> Any:
    plain = _plain(value)
    items = plain if isinstance(plain, list) else [plain]
    kinds = {type(item) for item in items}
    if not kinds <= {int, float} and (len(kinds) > 1 or not kinds <= {bool, str}):
        raise RoteError(
            f"attribute {name!r} is {value!r}, which files do not keep\n"
            "write a number, a truth value, a text, or a list of such of one kind; "
            "float(x) of a tensor of order 0, str(…) or json.dumps(…) of others"
        )
    return plain


def _plain(value: object) -> Any:
    """A value of NumPy's as Python's own number, text or list, the form in which attributes are read."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return [*map(_plain, value)] if isinstance(value, list | tuple) else value


def kept_attributes(attributes: Mapping[str, object]) -> dict[str, Any]:
    """A file's attributes as plain values; those that other programs wrote in other types are left out."""
    plain = {name: _plain(value) for name, value in attributes.items() if name != MARK}
    return {name: value for name, value in plain.items() if isinstance(value, int | float | complex | str | list)}


def as_dims(dims: Sequence[str] | str | None, name: str, shape: tuple[int, ...]) -> tuple[str, ...] | None:
    """Check the names that a user gives to the modes of a tensor: one text per mode.

    >>> as_dims(("t", "y"), "u", (4, 6)), as_dims("t", "energy", (4,)), as_dims(None, "v", (3,))
    (('t', 'y'), ('t',), None)
    """
    if dims is None:
        return None
    names = (dims,) if isinstance(dims, str) else tuple(dims) if isinstance(dims, Sequence) else ()
    if len(names) != len(shape) or not all(isinstance(each, str) and each and "\0" not in each for each in names):
        raise LayoutError(
            f"dims of {name or 'the tensor'} is {dims!r}, but its shape is {shape}\nwrite one text per mode"
        )
    return names


def check_extents(parts: Sequence[Part]) -> None:
    """Refuse one name for modes of several extents, of which xarray cannot read a file."""
    extents: dict[str, int] = {}
    for name, _, dist, dims in parts:
        for each, extent in zip(dims or (), dist.shape, strict=False):
            if extents.setdefault(each, extent) != extent:
                raise LayoutError(
                    f"dims: {each!r} is a mode of {extent} indices in {name or 'the tensor'}, and of {extents[each]} "
                    "elsewhere\ngive modes of other extents other names"
                )


def is_number(name: str) -> bool:
    """Whether a name is what `str` makes of a number from 0 on, as the name of a step is.

    >>> [name for name in ("0", "10", "000", "-1", "u1", "\u0663") if is_number(name)]
    ['0', '10']
    """
    return name.isascii() and name.isdecimal() and (name == "0" or name[0] != "0")


def refuse_foreign(path: Path, name: str) -> NoReturn:
    """Refuse to replace what has the name of a step, and is none."""
    raise RoteError(
        f"{os.fspath(path)} holds {name!r}, which is no step of Rote's, and saving would replace it\n"
        "give another step, or another file"
    )


def check_name(name: object, thing: str = "a tensor") -> str:
    """Refuse names that some format does not allow, or that begin as those of formats and programs do."""
    if not isinstance(name, str) or not name or name[0] in "._" or set(name) & set('/\\\0"<>&'):
        raise RoteError(
            f"{name!r} is not the name of {thing}: a text without slashes and the like, not begun by . or _\n"
            'write one like "velocity"'
        )
    return name


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


@contextmanager
def readably(path: Path, verb: Literal["read", "written"]) -> Iterator[None]:
    """Turn the errors of a format's library into ones that name the file and say what is wrong."""
    try:
        with plainly(path):
            yield
    except RoteError:
        raise
    except Exception as error:  # a damaged file can make libraries raise nearly anything
        if isinstance(error, OSError) and error.errno is not None:
            raise
        text = str(error).partition("\n")[0] or type(error).__name__
        hints = {
            "read": "give a whole copy of the file",
            "written": "is the disk full, or the value of a strange kind?",
        }
        raise RoteError(f"{os.fspath(path)} cannot be {verb}: {text}\n{hints[verb]}") from error
