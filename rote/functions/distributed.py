"""Tensors as functions see them, and parts of tensors, which are views as in NumPy: `x[2:5]`, `x.T`, `x.reshape(-1)`.

A tensor is this rank's block, the distribution of all elements, and the ranks.

What is written into a part is in its tensor, in every layout and on any number of ranks. Where the part's block is in
the memory of the tensor's block, there is nothing to do for this. Elsewhere the part's block is a copy, which NumPy
shows as read-only. What functions write into the part is then written back to the tensor; and when the tensor changes,
the part is outdated, and its next use raises an error. So the values of a part are those of NumPy, or there are none.

Functions that write into a tensor take its block from `writable`, which refuses what must not be written, and then call
`changed`. `alignment` has the two that write values of any layout: `assign`, as `numpy.copyto`, and `into`, for `out=`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import gcd, prod
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple, NoReturn, Self, TypeVar
from weakref import ref

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from ..caches import memoized
from ..errors import LayoutError
from ..layout.distribution import Distribution
from ..layout.grid import Grid
from ..layout.indexset import as_slice
from ..layout.layout import Layout
from ..layout.refine import as_slices
from ..runtime.comm.protocol import Comm
from ..runtime.placement import check_values

__all__ = ["OUTDATED", "Array", "Distributed", "Ints", "KeyAxis", "PartKind", "Sharing", "T", "at_axes", "attribute"]
__all__ += ["changed", "check_out", "comm_of", "has_view", "is_foreign", "linked", "owned", "refuse_assignment"]
__all__ += ["shape_of", "writable"]

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]

T = TypeVar("T", bound="Distributed")
"""A class of tensors."""

PartKind = Literal["view", "block", "copy"]
"""How a part has its elements: in the memory of the tensor; in a copy of the tensor's block, which this rank keeps up
to date alone, because no view of the block has the part's shape; or in a copy of elements from any ranks."""


def attribute(place: str, doc: str, hint: str = "") -> Any:
    """An attribute whose value is at a place, such as "_distribution.shape", which is read without a call of Python."""
    name = place.rpartition(".")[2].lstrip("_")
    return property(attrgetter(place), partial(refuse_assignment, name, hint) if hint else None, doc=doc)


def refuse_assignment(name: str, hint: str, x: object, value: object = None) -> NoReturn:
    """Refuse a value for an attribute of a tensor, and say what to write instead."""
    raise AttributeError(f"the attribute {name!r} of a tensor is not assigned\nwrite {hint}", name=name, obj=x)


class Distributed:
    """A tensor as functions use it: this rank's block, the distribution of the elements, and the ranks.

    >>> from rote import DistTensor
    >>> x = DistTensor.from_global([[1 + 2j, 3, 4j]], "block[(),(0)]")
    >>> x.shape, x.ndim, x.size, x.dtype, x.nbytes, x.grid.shape, x.comm.size, x.device
    ((1, 3), 2, 3, dtype('complex128'), 48, (1,), 1, 'cpu')
    >>> x.layout == x.distribution.layout, x.local.shape, x.real.to_global(), x.imag.dtype
    (True, (1, 3), array([[1., 3., 0.]]), dtype('float64'))
    """

    # No class of `abc`, whose isinstance is a call of Python.
    __slots__ = ("__weakref__", "_comm", "_distribution", "_local", "_sharing")

    _comm: Comm
    _distribution: Distribution
    _local: Array  # the block; not set in a part that is outdated
    _sharing: Sharing | None  # None for a tensor that is no part, and that has none

    local: Final[Array] = attribute(
        "_local",
        """This rank's block, of shape `distribution.local_shape(rank)`; write into it freely.

        It is read-only in a part of a tensor whose elements are copies, such as `x[2:]` along a split mode.
        """,
        "x.local[...] = block",
    )
    distribution: Final[Distribution] = attribute(
        "_distribution", "The layout on the tensor's shape and grid: which rank holds which elements."
    )
    comm: Final[Comm] = attribute("_comm", "The communicator of the tensor's ranks.")
    shape: Final[tuple[int, ...]] = attribute("_distribution.shape", "The shape of the whole tensor.")
    layout: Final[Layout] = attribute(
        "_distribution.layout", "The layout, which says which grid modes split which modes, and how."
    )
    grid: Final[Grid] = attribute("_distribution.grid", "The process grid.")
    dtype: Final[np.dtype[Any]] = attribute("_local.dtype", "The dtype of the elements.")
    itemsize: Final[int] = attribute("_local.itemsize", "The bytes of one element.")

    @property
    def ndim(self) -> int:
        """The order of the tensor, by NumPy's name."""
        return len(self._distribution.shape)

    @property
    def size(self) -> int:
        """The number of elements of the whole tensor."""
        return prod(self._distribution.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements, each counted once; `x.local.nbytes` are those of this rank's block."""
        return self.size * self._local.itemsize

    def slices(self) -> tuple[slice, ...]:
        """Per mode, the slice of the whole tensor that this rank's block holds: `whole[x.slices()]` equals `x.local`.

        Raises
        ------
        LayoutError
            The block is not a slice: with a view, with contributions, or with several tiles.

        Examples
        --------
        >>> from rote import DistTensor
        >>> DistTensor.zeros((4, 6), "block[(0),()]").slices()
        (slice(0, 4, None), slice(0, 6, None))
        """
        return as_slices(self.distribution, self._comm.rank)

    def copy(self, order: str = "K") -> Self:
        """A tensor of the same values with a block of its own; any order in memory is accepted, and ignored.

        Examples
        --------
        >>> from rote import DistTensor
        >>> x = DistTensor.zeros(3, "block[(0)]")
        >>> y = x.copy()
        >>> y.local[...] = 1
        >>> x.to_global()
        array([0., 0., 0.])
        """
        return self._with(self._local.copy())

    @classmethod
    def _wrap(cls, block: Array, distribution: Distribution, comm: Comm) -> Self:
        """A tensor made of this rank's block in a distribution, over any ranks; unchecked."""
        x = cls.__new__(cls)
        x._local, x._distribution, x._comm, x._sharing = block, distribution, comm, None
        return x

    def _with(self, block: Array) -> Self:
        """A tensor with another block, in this distribution."""
        return self._wrap(block, self._distribution, self._comm)

    def _on(self, block: Array, distribution: Distribution) -> Self:
        """A tensor of another distribution over the same ranks."""
        return self._wrap(block, distribution, self._comm)

    @abstractmethod
    def _store(self, axes: Sequence[KeyAxis] | None, part: Distributed) -> None:
        """Write a part back to the elements that it has copies of; None for all of them, reshaped. Collective."""

    @abstractmethod
    def redistribute(self, layout: Layout | str, *, grid: Grid | None = None) -> Self:
        """The tensor in another layout, on this grid or another grid of the same ranks."""

    @abstractmethod
    def to_global(self) -> Array:
        """The whole array, on every rank."""

    @abstractmethod
    def astype(self, dtype: npt.DTypeLike) -> Self:
        """The tensor in another dtype."""


class KeyAxis(NamedTuple):
    """One part of a key `x[key]`, in the order of the result."""

    modes: tuple[int, ...]  # of the tensor, that it indexes; none for `newaxis`
    taken: range | int | Ints  # of one mode; or of several, an array (modes, *extents) of points
    extents: tuple[int, ...]  # of the modes that it adds to the result


def at_axes(array: Array, axes: Sequence[KeyAxis]) -> Array:
    """The elements of an array at the parts of a key; a view if none is an array."""
    key: list[Any] = []
    for axis in axes:
        if not axis.modes:
            key.append(None)
        elif isinstance(axis.taken, range):
            key.append(as_slice(axis.taken))
        else:
            key += [axis.taken] if isinstance(axis.taken, int) else list(axis.taken)
    return array.transpose([mode for axis in axes for mode in axis.modes])[(*key, ...)]


@dataclass(slots=True, eq=False)
class Sharing:
    """What a tensor shares: the tensor that it is a part of, if any, and its own parts."""

    source: Distributed | None = None
    axes: Sequence[KeyAxis] | None = None  # NumPy's key of the part, in any order of modes; None for all, reshaped
    kind: PartKind = "view"
    fixed: Callable[[Array], Array] | None = None  # of what is not written into: NumPy's function that takes it
    parts: dict[int, ref[Distributed]] = field(default_factory=dict)  # by the number of the reference, in their order


OUTDATED = (
    "a part of a tensor, such as x[key], is used after the tensor has changed, and its elements are copies of the old "
    "ones\ntake the part again after the change, or write x[key].copy() to keep the old values"
)
"""The error of a part whose block is gone."""


@memoized(1024)
def is_foreign(kind: type) -> bool:
    """Whether values of a type are arrays of another library.

    >>> is_foreign(np.ndarray), is_foreign(Distributed), is_foreign(list)
    (False, False, False)
    """
    if issubclass(kind, Distributed | np.ndarray | np.generic):
        return False
    return hasattr(kind, "__array__") or hasattr(kind, "__dlpack__")


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of a tensor, of an array, or of what NumPy makes an array of."""
    return x.distribution.shape if isinstance(x, Distributed) else np.shape(x)


def comm_of(name: str, values: Iterable[Any]) -> Comm | None:
    """The communicator of the tensors among values, and in lists of them; None if there is no tensor.

    Functions of several tensors ask here first: a rank's blocks of them belong together only if it has the same number
    among the ranks of each.

    Args:
        name: the name of the function, for the error.

    Raises:
        LayoutError: the tensors have several communicators; raised on all ranks.
    """
    comm: Comm | None = None
    for value in values:
        match value:  # which costs no call
            case list() if value and value[0].__class__ in (int, float):  # numbers, perhaps a million
                continue
            case list() | tuple():
                members = value
            case _:
                members = (value,)

        for member in members:
            match member:
                case Distributed() if comm is None:
                    comm = member.comm
                case Distributed() if member.comm is not comm:
                    raise LayoutError(f"{name} wants tensors of one communicator; give the same comm to all")
    return comm


def linked(
    part: T,
    source: Distributed,
    axes: Sequence[KeyAxis] | None = None,
    kind: PartKind = "view",
    fixed: Callable[[Array], Array] | None = None,
) -> T:
    """Make a new tensor a part of another; see `Sharing`."""
    if fixed is not None or kind != "view":
        part._local = part._local.view()
        part._local.flags.writeable = False
    part._sharing = Sharing(source, axes, kind, fixed)
    if source._sharing is None:
        source._sharing = Sharing()
    parts = source._sharing.parts
    link: ref[Distributed] = ref(part, lambda gone: parts.pop(id(gone)))
    parts[id(link)] = link
    return part


def writable(x: Distributed) -> Array:
    """This rank's block, to be written into; `changed` must follow, and refuses nothing.

    Raises:
        ValueError: the tensor is a part that is not written into; raised on all ranks.
        LayoutError: the tensor is a part of a partial one, whose elements are written all or none; on all ranks.
    """
    block = x.local
    if x._sharing is None or block.flags.writeable:
        return block

    # Up to the tensor that x is a part of: each part on the way may be what forbids it.
    copied = False
    node: Distributed | None = x
    while node is not None and (sharing := node._sharing) is not None:
        if sharing.fixed is not None:
            raise ValueError(
                "diagonals, broadcast tensors, imaginary parts of reals and parts of complex products are read-only\n"
                "write .copy() to have a tensor of its own, or x[key] = … to change the tensor itself"
            )
        copied = copied or sharing.kind != "view"
        owner, node = node, sharing.source
        if node is not None and sharing.kind == "copy":
            check_values("writing into a part", node.distribution)

    # Shown as read-only are copies; a block that the user made read-only stays so.
    return _opened(block) if copied and owner.local.flags.writeable else block


def changed(x: Distributed, axes: Sequence[KeyAxis] | None = None, by: Distributed | None = None) -> None:
    """Write what is new in a part to its tensor, and outdate other parts that are copies. Collective for a copy.

    Args:
        axes: what was written, as NumPy's key; None for all of it.
        by: a part that has these elements already.
    """
    # Down to the parts of x, which follow or are outdated; then up to what x is a part of, and from there down to its
    # other parts.
    sharing = x._sharing
    if sharing is None:
        return
    for part in _parts(x):
        if part is not by and _overlap(part._sharing.axes, axes):  # type: ignore[union-attr]
            _follow(part, x)

    source = sharing.source
    if source is None:
        return
    if sharing.kind == "copy":
        source._store(sharing.axes, x)
    elif sharing.kind == "block":
        block = writable(source)
        block[...] = x.local.reshape(block.shape)
    changed(source, sharing.axes, by=x)


def has_view(x: Distributed, shape: tuple[int, ...] | None) -> bool:
    """Whether a tensor in another shape is a view in NumPy, where tensors that are no parts are in row-major order.

    Args:
        shape: None for one mode of elements without gaps in memory, which is when `numpy.ravel` gives a view.
    """
    if x._sharing is None or x._sharing.source is None:
        return True
    memory = _as_in_numpy(x)
    if shape is None:
        return bool(memory.flags.c_contiguous)
    try:
        memory.reshape(shape, copy=False)
    except ValueError:
        return False
    return True


def check_out(out: Distributed) -> None:
    """Refuse a tensor that is to be overwritten, if its block is read-only."""
    if not out.local.flags.writeable:
        hint = "give a tensor of your own, or leave out="
        if out._sharing is not None and out._sharing.source is not None:
            hint = "it is a part of another tensor: leave out=, and write x[key] = result, or give .copy() of the part"
        raise LayoutError(f"out cannot be written to: its block is read-only\n{hint}")


def owned(result: Any, args: Sequence[Any]) -> Any:
    """The result of a function that makes new tensors, which is no part of anything any more."""
    if isinstance(result, Distributed) and result._sharing is not None and result._sharing.source is not None:
        if any(result is x for x in args):
            return result
        shares = any(isinstance(x, Distributed) and np.may_share_memory(result.local, x.local) for x in args)
        return result.copy() if shares or result._sharing.fixed is not None else result._with(writable(result))
    return result


def _as_in_numpy(x: Distributed) -> Array:
    """An array of the tensor's shape and of its strides in NumPy, whose elements are not to be read."""
    sharing, shape = x._sharing, x.distribution.shape
    if sharing is None or sharing.source is None:
        return as_strided(np.empty(1, bool), shape, [prod(shape[mode + 1 :]) for mode in range(len(shape))])

    base = _as_in_numpy(sharing.source)
    if sharing.fixed is not None:
        return np.asarray(sharing.fixed(base))
    if sharing.axes is None:
        if x.local.itemsize < sharing.source.local.itemsize:  # real and imaginary parts alternate in memory
            base = as_strided(base, strides=[2 * stride for stride in base.strides])
        return base.reshape(shape)
    return at_axes(base, sharing.axes)


def _opened(block: Array) -> Array:
    """A writable view of the block of a part that is a copy."""
    block = block.view()
    block.flags.writeable = True
    return block


def _parts(x: Distributed) -> list[Distributed]:
    """The parts of a tensor that are in use."""
    parts = [reference() for reference in x._sharing.parts.values()] if x._sharing else []
    return [part for part in parts if part is not None]


def _follow(part: Distributed, source: Distributed, lost: bool = False) -> None:
    """Bring a part up to date with its tensor, or outdate it and all its parts, if they are copies."""
    sharing = part._sharing
    assert sharing is not None
    lost = lost or sharing.kind == "copy"
    if sharing.kind == "block" and not lost:
        block = _opened(part.local)
        block[...] = source.local.reshape(block.shape)

    for inner in _parts(part):
        _follow(inner, part, lost)
    if lost and hasattr(part, "_local"):
        del part._local  # so that a block that is up to date is read at no cost; see DistTensor.__getattr__


def _overlap(axes: Sequence[KeyAxis] | None, others: Sequence[KeyAxis] | None) -> bool:
    """Whether two keys may have elements in common."""
    if axes is None or others is None:
        return True
    for one in axes:
        for other in others:
            if one.modes and one.modes == other.modes and _disjoint(one.taken, other.taken):
                return False
    return True


def _disjoint(a: Any, b: Any) -> bool:
    """Whether two indices or ranges of one mode have nothing in common; arrays of indices are not looked at."""
    a, b = (range(taken, taken + 1) if isinstance(taken, int) else taken for taken in (a, b))
    if not isinstance(a, range) or not isinstance(b, range):
        return False
    if not a or not b or max(a[0], a[-1]) < min(b[0], b[-1]) or max(b[0], b[-1]) < min(a[0], a[-1]):
        return True
    return (a[0] - b[0]) % gcd(a.step, b.step) != 0
