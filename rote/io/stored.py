"""Contents of files in any format: tensors by name, attributes and steps."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..errors import LayoutError, RoteError
from ..layout.distribution import Distribution
from ..layout.indexset import IndexSet
from ..runtime.comm.protocol import Array, Path
from .packed import Packing
from .window import Window

__all__ = ["MARK", "STEP", "UNNAMED", "WHOLE", "Contents", "Field", "StoredTensor", "pick_step", "tensors_and_reasons"]
__all__ += ["with_scales"]

MARK, STEP, WHOLE = "_rote", "step", "whole"
"""Rote's own attribute, and its values: of a group that is a step, and of a Zarr array that has all of its chunks."""

UNNAMED = "data"
"""The name of a tensor without a name, where a format needs one."""


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
