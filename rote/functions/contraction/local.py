"""Products of blocks: sums of products of arrays that one rank holds, by NumPy's matrix products.

The letters of two arrays fall into four groups, and each array becomes a stack of matrices:

    batch      in both and in the result         a[batch, rows, summed]
    rows       in the first and the result       b[batch, summed, columns]
    columns    in the second and the result      product[batch, rows, columns]
    summed     in both, not in the result

The order of letters within a group is free. It is chosen such that as few elements as possible are copied: a group
becomes one mode of a view if its letters are adjacent in memory, and BLAS reads and writes matrices one of whose modes
is contiguous. Other arrays are packed once, or the product is copied to where it belongs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, pairwise, product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...caches import memoized
from ..distributed import Array

__all__ = ["Matrices", "Stack", "add_product", "matrices_of", "multiply", "packed_bytes", "squeezed"]


_STRIPS = 8  # of a product that is added to others: one is computed, and added, at a time


class Stack(NamedTuple):
    """How an array is a stack of matrices: its modes in an order, then in a shape.

    Attributes:
        order: the modes of the array.
        shape: the extents of the batch, then of the matrices.
        packed: whether the matrices are not a view that BLAS can use.
    """

    order: tuple[int, ...]
    shape: tuple[int, ...]
    packed: bool

    def of(self, array: Array) -> Array:
        """The matrices of an array; a view of it unless they are packed."""
        array = array.transpose(self.order)
        return (np.ascontiguousarray(array) if self.packed else array).reshape(self.shape)


class Matrices(NamedTuple):
    """How two arrays and their product are stacks of matrices, and the extents of the product."""

    first: Stack
    second: Stack
    product: Stack
    extents: tuple[int, ...]

    def restored(self, product: Array) -> Array:
        """A product of matrices with the modes of the result, and further ones after them."""
        order, modes = self.product.order, len(self.extents)
        more = product.shape[len(self.product.shape) :]
        shaped = product.reshape((*[self.extents[mode] for mode in order], *more))
        return shaped.transpose((*[order.index(mode) for mode in range(modes)], *range(modes, modes + len(more))))


def matrices_of(a: Array, b: Array, a_term: str, b_term: str, result: str) -> Matrices:
    """The stacks of matrices of two arrays, each of whose letters is in the other one or in the result."""
    return _stacks_of((a.shape, b.shape), (a.strides, b.strides), (a_term, b_term), result, a.itemsize)


@memoized(1024)
def _stacks_of(
    shapes: tuple[tuple[int, ...], ...],
    strides: tuple[tuple[int, ...], ...],
    terms: tuple[str, str],
    result: str,
    itemsize: int,
) -> Matrices:
    """The same for arrays of some shapes and strides."""
    extents = _extents(terms, shapes)
    first, second = terms

    batch = [letter for letter in result if letter in first and letter in second]
    summed = [letter for letter in first if letter in second and letter not in result]
    rows = [letter for letter in first if letter not in second]
    columns = [letter for letter in second if letter not in first]

    shape = tuple([extents[letter] for letter in result])
    arrays = [*zip((*terms, result), (*shapes, shape), (*strides, _in_order(shape, itemsize)), strict=True)]
    candidates: list[tuple[int, Matrices]] = []
    for up, down, across in product(_orders(rows, result), _orders(summed, second), _orders(columns, result)):
        stacks = []
        for (term, sizes, steps), (high, wide) in zip(arrays, ((up, down), (down, across), (up, across)), strict=True):
            order = tuple([term.index(letter) for letter in (*batch, *high, *wide)])
            groups = tuple([[(sizes[m], steps[m]) for m in map(term.index, group)] for group in (high, wide)])
            matrix = *[extents[x] for x in batch], *[prod([n for n, _ in group]) for group in groups]
            stacks.append(Stack(order, matrix, not _is_matrix(groups, itemsize)))

        copied = sum([prod(stack.shape) for stack in stacks if stack.packed])
        candidates.append((copied, Matrices(stacks[0], stacks[1], stacks[2], shape)))
    return min(candidates, key=lambda pair: pair[0])[1]  # the first of the best: the order of the terms


def _in_order(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides of an array in C order."""
    return tuple([itemsize * prod(shape[mode + 1 :]) for mode in range(len(shape))])


def _extents(terms: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    return dict(chain(*(zip(term, shape, strict=True) for term, shape in zip(terms, shapes, strict=True))))


def _orders(group: list[str], other: str) -> list[list[str]]:
    """The letters of a group in the order of its own term, and in that of another one."""
    orders = [group, sorted(group, key=other.index)]
    return orders[: 1 if orders[0] == orders[1] else 2]


def _is_matrix(groups: Sequence[list[tuple[int, int]]], itemsize: int) -> bool:
    """Whether two groups of modes, given by extents and strides, are those of a matrix that BLAS can use."""
    steps, sizes = [], []
    for group in groups:
        modes = [(n, step) for n, step in group if n != 1]
        if any(outer[1] != inner[0] * inner[1] for outer, inner in pairwise(modes)):
            return False
        steps.append(modes[-1][1] if modes else itemsize)
        sizes.append(prod([n for n, _ in modes]))

    # BLAS wants one contiguous mode, and for the other one a leading dimension: whole elements, no overlap.
    (down, across), (high, wide) = steps, sizes
    if 1 in sizes:  # a vector
        return min(steps) > 0
    return any(
        unit == itemsize and step % itemsize == 0 and step >= length * itemsize
        for unit, step, length in ((across, down, wide), (down, across, high))
    )


def multiply(blocks: Sequence[Array], terms: Sequence[str], result: str, dtype: np.dtype[Any]) -> Array:
    """The sum of the products of one or two arrays, of a dtype, over the letters that the result lacks.

    >>> multiply([np.ones((2, 3)), np.ones((3, 4))], ["ik", "kj"], "ji", np.dtype("f4"))[0]
    array([3., 3.], dtype=float32)
    """
    for block in blocks:
        if not block.size:  # an empty sum is 0, whatever the other arrays hold
            sizes = _extents(terms, [array.shape for array in blocks])
            return np.zeros([sizes[letter] for letter in result], dtype)

    arrays = [block.astype(dtype, copy=False) for block in blocks]
    if len(arrays) == 1:
        array, term = _summed_over_others(arrays[0], terms[0], result)
        return array.transpose([term.index(letter) for letter in result])

    (a, b), (a_term, b_term) = arrays, terms
    a, a_term = _summed_over_others(a, a_term, b_term + result)
    b, b_term = _summed_over_others(b, b_term, a_term + result)

    matrices = matrices_of(a, b, a_term, b_term, result)
    first, second, into, extents = matrices
    out = np.empty(extents, dtype)
    if into.packed:
        out[...] = matrices.restored(np.matmul(first.of(a), second.of(b)))
    else:
        np.matmul(first.of(a), second.of(b), into.of(out))
    return out


def _strip_of(shape: Sequence[int]) -> tuple[int, int]:
    """The mode along which a product is added to others in strips, the longest one, and the length of a strip.

    >>> _strip_of((3, 40)), _strip_of(())
    ((1, 5), (0, 1))
    """
    mode = max(range(len(shape)), key=shape.__getitem__, default=0)
    return mode, max(1, -(-shape[mode] // _STRIPS)) if shape else 1


def add_product(total: Array, blocks: Sequence[Array], terms: Sequence[str], result: str) -> None:
    """Add a product to an array, strip by strip: only a strip of the product is in memory."""
    mode, strip = _strip_of(total.shape)
    add = np.logical_or if total.dtype.kind == "b" else np.add
    if not result:  # a number has no strips
        add(total, multiply(blocks, terms, result, total.dtype), out=total)
        return

    for start in range(0, total.shape[mode], strip):
        rows = slice(start, start + strip)
        strips = [
            block[tuple([rows if letter == result[mode] else slice(None) for letter in term])]
            for block, term in zip(blocks, terms, strict=True)
        ]
        target = total[(slice(None),) * mode + (rows,)]
        add(target, multiply(strips, terms, result, total.dtype), out=target)


def packed_bytes(
    shapes: Sequence[tuple[int, ...]],
    terms: Sequence[str],
    dtypes: Sequence[np.dtype[Any]],
    result: str,
    dtype: np.dtype[Any],
    panels: str = "",
) -> int:
    """The bytes that `multiply` needs beyond the blocks and their product; in panels of a letter, also `add_product`.

    A block is copied if its dtype differs, if it is summed over letters of its own, and if it is no stack of matrices;
    the product, if it is none. Each panel of a letter of the product has its own part of the result. Otherwise it is
    added strip by strip.

    >>> f8, shapes, terms = np.dtype("f8"), [(2, 3, 4), (4, 5)], ["ijk", "kl"]
    >>> [packed_bytes(shapes, terms, [f8, f8], result, f8) for result in ("ijl", "lij", "ilj")]
    [0, 0, 240]
    """
    # First the blocks: converted, and then summed over their letters that nothing else has.
    buffers, copied, item = 0, 0, dtype.itemsize
    blocks: list[tuple[tuple[int, ...], str]] = []
    for number, (shape, term, source) in enumerate(zip(shapes, terms, dtypes, strict=True)):
        others = result + "".join([other for n, other in enumerate(terms) if n != number])
        modes = [mode for mode, letter in enumerate(term) if letter in others]
        blocks.append((tuple([shape[mode] for mode in modes]), "".join([term[mode] for mode in modes])))
        if source != dtype:
            buffers += item * prod(shape)
        if len(modes) < len(term):
            buffers += item * prod(blocks[-1][0])

    # Then their matrices, and those of the product, where these are no views.
    if len(blocks) == 2 and all(prod(shape) for shape, _ in blocks):
        (first, a), (second, b) = blocks
        stacks = _stacks_of((first, second), (_in_order(first, item), _in_order(second, item)), (a, b), result, item)
        *copies, copied = [item * prod(stack.shape) if stack.packed else 0 for stack in stacks[:3]]
        buffers += sum(copies)
    if not panels:
        return buffers + copied

    # Last the product of a panel, which is a part of the result or is added to it.
    extents = _extents(terms, shapes)
    shape = tuple([extents[letter] for letter in result])
    size = prod(shape) * item + copied
    if panels in result or not size or not result:
        return buffers + size

    mode, strip = _strip_of(shape)
    for block, term in zip(shapes, terms, strict=True):
        if result[mode] in term and len([n for n in block if n > 1]) > 2:  # its strips may be no matrices
            buffers += prod(block) * item * strip // shape[mode]
    return buffers + size // shape[mode] * strip


def squeezed(block: Array, term: str, letters: str) -> Array:
    """A block without the modes of other letters than these, which have one element."""
    return block.squeeze(tuple([mode for mode, letter in enumerate(term) if letter not in letters]))


def _summed_over_others(array: Array, term: str, letters: str) -> tuple[Array, str]:
    """An array summed over its other letters than these, and its term then."""
    others = [mode for mode, letter in enumerate(term) if letter not in letters]
    if not others:
        return array, term

    add: Callable[..., Array] = np.logical_or.reduce if array.dtype == bool else np.add.reduce
    summed = np.asarray(add(array, axis=tuple(others), dtype=array.dtype))
    return summed, "".join([letter for letter in term if letter in letters])
