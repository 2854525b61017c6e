"""The part of a stored tensor that is read: a range of times without the rest."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from ..layout.indexset import IndexSet
from ..runtime.comm.protocol import Array

__all__ = ["Window"]


class Window(NamedTuple):
    """Per mode of the file the indices that are read; a mode of which a number takes one is no mode of the tensor.

    >>> window = Window.of((slice(10, 20, 3), 5), (30, 8), ("t", "y"))
    >>> window.shape, [list(indices) for indices in window.indices]
    ((4,), [[10, 13, 16, 19], [5]])
    """

    indices: tuple[IndexSet, ...]
    numbered: tuple[int, ...]

    @classmethod
    def of(cls, key: Any, shape: Sequence[int], dims: Sequence[str | None] | None) -> Self:
        """The part at a key: numbers and slices, as of NumPy, by position or by the names of modes.

        Raises:
            IndexError: the key has other things, too many, an unknown name, or a number outside.
        """
        if isinstance(key, Mapping):
            unknown = [name for name in key if name not in (dims or ())]
            if unknown:
                raise IndexError(f"index names {unknown[0]!r}, but the modes are {dims}\nwrite one slice per mode")
            key = tuple([key.get(dim, slice(None)) for dim in dims or ()])

        items = [*key] if isinstance(key, tuple) else [key]
        rest = [mode for mode, item in enumerate(items) if item is Ellipsis] or [len(items)]
        items[rest[0] : rest[0] + 1] = [slice(None)] * (len(shape) - len(items) + (rest[0] < len(items)))
        if len(items) != len(shape):
            raise IndexError(
                f"index {key!r} is of another order than the shape {tuple(shape)}\nwrite one item per mode"
            )

        indices = [_indices(item, mode, extent) for mode, (item, extent) in enumerate(zip(items, shape, strict=True))]
        return cls(tuple(indices), tuple([mode for mode, item in enumerate(items) if not isinstance(item, slice)]))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the part."""
        return tuple([len(indices) for mode, indices in enumerate(self.indices) if mode not in self.numbered])

    def places(self, index: Sequence[IndexSet]) -> tuple[IndexSet, ...]:
        """Per mode of the file, where the elements at some indices of the part are."""
        rest = iter(index)
        modes = enumerate(self.indices)
        return tuple([along if mode in self.numbered else along.select(next(rest)) for mode, along in modes])

    def spread(self, block: Array) -> Array:
        """A view of a block of the part that has all modes of the file."""
        return np.expand_dims(block, self.numbered)


def _indices(item: Any, mode: int, extent: int) -> IndexSet:
    """The indices that a number or a slice takes of a mode."""
    if isinstance(item, slice):
        chosen = range(*item.indices(extent))
        if chosen.step < 0:
            raise IndexError(f"index {item} goes backwards\nload it forwards, and index the tensor by ::-1")
        return IndexSet.of_runs([(chosen.start, chosen.start + 1)], chosen.step, chosen.stop)

    if isinstance(item, bool | np.bool_) or not hasattr(item, "__index__") or np.ndim(item):
        raise IndexError(
            f"index has {item!r}, and load takes numbers and slices\nindex the tensor by it, once it is loaded"
        )
    number = operator.index(item)
    if not -extent <= number < extent:
        raise IndexError(
            f"index {number} is outside of mode {mode}, which has {extent} indices\nwrite 0 to {extent - 1}"
        )
    return IndexSet.interval(number % extent, number % extent + 1)
