"""Views: an index is a number with digits, and a view reads the digits of the tensor's modes as modes of its own.

A `Tile` reads one tensor mode as several view modes, a `Fuse` reads several tensor modes as one (rightmost fastest in
both), and a `Name` reads one mode as it is. Plain and fused names, when sorted, name the tensor's modes in order, so
`(c a) b` also permutes. A tile stands for the tensor mode at its own position.

    a (r s=4) on (3, 12): tensor mode 1 as two          (a b) on (2, 3): two modes as one

        index  0 1 2 3 4 5 6 7 8 9 10 11                    a      0 0 0 1 1 1
        r      0 0 0 0 1 1 1 1 2 2 2  2                     b      0 1 2 0 1 2
        s      0 1 2 3 0 1 2 3 0 1 2  3                     index  0 1 2 3 4 5
"""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate, chain, pairwise
from math import prod
from typing import NamedTuple

import numpy as np

from ..errors import LayoutError
from ..grammar.nodes import Name, Tile, ViewItem, modes_read, order_read
from ..grammar.text import item_text
from .indexset import Ints

__all__ = ["Digit", "View"]


class Digit(NamedTuple):
    """One digit of a tensor mode's index: `(index // weight) % size`."""

    mode: int
    weight: int
    size: int


class View(tuple[ViewItem, ...]):
    """A reading of a tensor's modes as other modes: its items, as in the text, with what they mean.

    >>> view = View((Name("a"), Tile((("r", None), ("s", 4)))))
    >>> view.shape((3, 12)), view.tensor_order, view.order
    ((3, 3, 4), 2, 3)
    """

    @staticmethod
    def plain(order: int) -> View:
        """The view that changes nothing."""
        return View(Name(f"m{m:02}") for m in range(order))

    @property
    def order(self) -> int:
        """The number of view modes."""
        return len(modes_read(self))

    @property
    def tensor_order(self) -> int:
        """The number of modes of the tensor itself."""
        return order_read(self)

    @cached_property
    def tensor_modes(self) -> tuple[tuple[int, ...], ...]:
        """Per item, the tensor modes that it reads, slowest first: a tile by its place, names in alphabetical order."""
        ends = [*accumulate([1 if isinstance(item, Tile) else len(item.names) for item in self], initial=0)]
        modes = [tuple(range(start, end)) for start, end in pairwise(ends)]

        # Places that names take, in their order, go to the sorted names.
        named = {k: item.names for k, item in enumerate(self) if not isinstance(item, Tile)}
        number = dict(zip(sorted(chain(*named.values())), chain(*[modes[k] for k in named]), strict=True))
        for k, names in named.items():
            modes[k] = tuple([number[name] for name in names])

        return tuple(modes)

    def digits(self, shape: tuple[int, ...]) -> tuple[tuple[Digit, ...], ...]:
        """Per view mode, the digits that make up its index, slowest first.

        Raises:
            LayoutError: a tile does not divide its mode; the text says which extents would.
        """
        digits: list[tuple[Digit, ...]] = []
        for item, modes in zip(self, self.tensor_modes, strict=True):
            if isinstance(item, Tile):
                digits.extend(_tile_digits(item, modes[0], shape[modes[0]]))
            else:
                digits.append(tuple([Digit(mode, 1, shape[mode]) for mode in modes]))
        return tuple(digits)

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The extents of the view's modes for a tensor of some shape."""
        return tuple(prod(digit.size for digit in digits) for digits in self.digits(shape))

    def permutation(self) -> tuple[int, ...]:
        """The tensor's modes in the order in which the view reads them."""
        return tuple(chain(*self.tensor_modes))

    def __repr__(self) -> str:
        return f"View({tuple(self)})"


def _tile_digits(tile: Tile, mode: int, extent: int) -> list[tuple[Digit, ...]]:
    """The digits of a tile's parts; the part without a size has what the others leave."""
    known, free = prod(tile.given), len(tile.given) < len(tile.parts)
    if (free and extent % known) or (not free and extent != known):
        below, above = extent // known * known, -(-extent // known) * known
        would = f"{below} or {above} would" if free else f"{known} would"
        raise LayoutError(f"tensor mode {mode} has extent {extent}, which {item_text(tile)} does not divide; {would}")

    weight = extent  # how far apart two values of the digit are in the mode: the product of all faster sizes
    digits: list[tuple[Digit, ...]] = []
    for _, size in tile.parts:
        if size is None:
            size = extent // known
        weight = weight // size if size else 0
        digits.append((Digit(mode, max(weight, 1), size),))

    return digits


def to_tensor(digits: tuple[Digit, ...], index: Ints) -> dict[int, Ints]:
    """The terms that an index of one view mode adds to the index of each tensor mode."""
    added: dict[int, Ints] = {}
    for digit in reversed(digits):
        index, value = np.divmod(index, max(digit.size, 1))
        added[digit.mode] = added.get(digit.mode, 0) + value * digit.weight
    return added


def from_tensor(digits: tuple[Digit, ...], tensor_index: dict[int, Ints]) -> Ints:
    """The index along one view mode of elements whose tensor indices are given."""
    index: Ints = np.zeros((), np.int64)
    for digit in digits:
        size = max(digit.size, 1)
        index = index * size + tensor_index[digit.mode] // digit.weight % size
    return index
