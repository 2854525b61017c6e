"""Parts of tensors, which are views as in NumPy: `x[2:5]`, `x.T`, `x.reshape(-1)`.

What is written into a part is in its tensor, in every layout and on any number of ranks. Where the part's block lies in
the memory of the tensor's block, there is nothing to do for this. Elsewhere the part's block is a copy, which NumPy
shows as read-only. What functions write into the part is then written back to the tensor; and when the tensor changes,
the part is outdated, and its next use raises an error. So the values of a part are those of NumPy, or there are none.

Functions that write into a tensor take its block from `writable`, and then call `changed`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd, prod
from typing import Any, TypeVar
from weakref import ref

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..errors import LayoutError
from .distributed import Array, Distributed, PartKind, Sharing

__all__ = ["OUTDATED", "changed", "check_out", "has_block", "has_view", "linked", "owned", "writable"]

OUTDATED = (
    "a part of a tensor, such as x[key], is used after the tensor has changed, and its elements are copies of the old "
    "ones\ntake the part again after the change, or write x[key].copy() to keep the old values"
)
"""The error of a part whose block is gone."""

T = TypeVar("T", bound=Distributed)


def linked(
    part: T,
    source: Distributed,
    axes: Sequence[Any] | None = None,
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
    """This rank's block, to be written into; `changed` must follow.

    Raises:
        ValueError: the tensor is a part that is not written into; raised on all ranks.
    """
    block = x.local
    if x._sharing is None or block.flags.writeable:
        return block
    copied = False
    node: Distributed | None = x
    while node is not None and node._sharing is not None:
        if node._sharing.fixed is not None:
            raise ValueError(
                "diagonals, broadcast tensors, imaginary parts of reals and an einsum of one tensor are read-only\n"
                "write .copy() to have a tensor of its own, or x[key] = … to change the tensor itself"
            )
        copied = copied or node._sharing.kind != "view"
        owner, node = node, node._sharing.source
    return _opened(block) if copied and owner.local.flags.writeable else block


def changed(x: Distributed, axes: Sequence[Any] | None = None, by: Distributed | None = None) -> None:
    """Write what is new in a part to its tensor, and outdate other parts that are copies. Collective for a copy.

    Args:
        axes: what was written, as NumPy's key; None for all of it.
        by: a part that has these elements already.
    """
    sharing = x._sharing
    if sharing is None:
        return
    for part in _parts(x):
        if part is not by and _meet(part._sharing.axes, axes):  # type: ignore[union-attr]
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


def has_block(x: Distributed) -> bool:
    """Whether the tensor is no part that is outdated."""
    try:
        object.__getattribute__(x, "_local")
    except AttributeError:
        return False
    return True


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
    from ..layout.selection import as_slice  # which transforms do not need

    base = _as_in_numpy(sharing.source)
    if sharing.fixed is not None:
        return np.asarray(sharing.fixed(base))
    if sharing.axes is None:
        if x.local.itemsize < sharing.source.local.itemsize:  # real and imaginary parts lie between each other
            base = as_strided(base, strides=[2 * stride for stride in base.strides])
        return base.reshape(shape)
    key = [None if not axis.modes else as_slice(axis.taken) if axis.extents else axis.taken for axis in sharing.axes]
    return base.transpose([mode for axis in sharing.axes for mode in axis.modes])[(*key, ...)]


def _opened(block: Array) -> Array:
    """A writable view of the block of a part that is a copy."""
    block = block.view()
    block.flags.writeable = True
    return block


def _parts(x: Distributed) -> list[Distributed]:
    """The parts of a tensor that are in use."""
    found = [part() for part in x._sharing.parts.values()] if x._sharing else []
    return [part for part in found if part is not None]


def _follow(part: Distributed, source: Distributed, lost: bool = False) -> None:
    """Bring a part up to date with its tensor, or outdate it and all its parts, if they are copies."""
    sharing = part._sharing
    assert sharing is not None
    lost = lost or sharing.kind == "copy"
    if sharing.kind == "block" and not lost:
        block = _opened(part.local)
        block[...] = source.local.reshape(block.shape)
    for each in _parts(part):
        _follow(each, part, lost)
    if lost and has_block(part):
        del part._local  # so that a block that is up to date is read at no cost; see DistTensor.__getattr__


def _meet(axes: Sequence[Any] | None, others: Sequence[Any] | None) -> bool:
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
    if isinstance(a, int) and isinstance(b, int):
        return a != b
    a, b = (range(each, each + 1) if isinstance(each, int) else each for each in (a, b))
    if not isinstance(a, range) or not isinstance(b, range):
        return False
    if not a or not b or max(a[0], a[-1]) < min(b[0], b[-1]) or max(b[0], b[-1]) < min(a[0], a[-1]):
        return True
    return (a[0] - b[0]) % gcd(a.step, b.step) != 0
