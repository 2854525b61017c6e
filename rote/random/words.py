"""Words of Philox's stream for elements, by their global numbers, and the conversion of words to numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..layout.grid import row_major
from ..layout.layout import Distribution

__all__ = ["Array", "WordStream", "Words", "fractions", "scaled", "windows", "words_of"]

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_BLOCK = 4  # words from one state of Philox's counter
_GAP = 1024  # unused words up to which generating them is faster than advancing the generator past them
_WINDOW = 1 << 18  # elements whose words are generated at once


class WordStream:
    """The words of a Philox stream, accessed by number."""

    __slots__ = ("_bits", "_next")

    def __init__(self, key: Words) -> None:
        self._bits = np.random.Philox(key=key)
        self._next = 0  # the next state of the counter

    def words(self, first: int, number: int) -> Words:
        """The `number` words from word `first` on."""
        state, skipped = divmod(first, _BLOCK)
        self._bits.advance(state - self._next)
        words = np.asarray(self._bits.random_raw(skipped + number))[skipped:]
        self._next = state + -(-(skipped + number) // _BLOCK)
        return words


def windows(dist: Distribution, rank: int, shape: tuple[int, ...]) -> Iterator[tuple[int, Ints]]:
    """The elements of a block in windows: each with the local number of the first, and the global numbers of all.

    The global number of an element is its place in the whole tensor in C order.
    """
    if not prod(shape):
        return
    rows, *rest = shape or (1,)
    size = prod(rest)
    step = max(1, _WINDOW // size)
    for row in range(0, rows, step):
        extents = min(step, rows - row), *rest
        numbers: Ints = np.zeros((1,) * len(extents), np.int64)
        for stride, index in zip(row_major(dist.shape), dist.tensor_indices(rank), strict=True):
            part = index[row : row + step] if index.shape[0] > 1 else index
            numbers = numbers + stride * part
        yield row * size, np.broadcast_to(numbers, extents).reshape(-1)


def words_of(stream: WordStream, start: int, indices: Ints, each: int) -> Words:
    """The words of some elements, `each` per element; those of elements close together are generated at once."""
    order = None if (indices[1:] > indices[:-1]).all() else np.argsort(indices)
    ascending = indices if order is None else indices[order]
    apart = (np.diff(ascending) * each > _GAP) | (np.diff(ascending // _WINDOW) > 0)
    bounds = [0, *(np.flatnonzero(apart) + 1).tolist(), len(ascending)]
    words = np.empty((len(indices), each), np.uint64)
    for begin, end in pairwise(bounds):
        run = ascending[begin:end]
        first, number = int(run[0]), int(run[-1]) - int(run[0]) + 1
        made = stream.words(start + first * each, number * each).reshape(number, each)
        words[begin:end] = made if number == len(run) else made[run - first]
    if order is None:
        return words
    placed = np.empty_like(words)
    placed[order] = words
    return placed


def fractions(words: Words, dtype: np.dtype[Any] | None = None) -> Array:
    """Words as numbers in [0, 1), with all bits of precision that the dtype has."""
    if dtype is not None and dtype.itemsize == 4:
        return (words >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def scaled(high: Words, low: Words, number: int) -> Words:
    """128-bit fractions times a number, rounded down: integers below that number."""
    if number == 1 << 64:
        return high
    factor = np.uint64(number)
    carried = high * factor + _upper(low, factor)
    return _upper(high, factor) + (carried < high * factor)


def _upper(words: Words, factor: np.uint64) -> Words:
    """The upper 64 bits of products of 64-bit integers."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a, b, c, d = words >> half, words & mask, factor >> half, factor & mask
    middle = a * d + ((b * d) >> half)
    upper: Words = a * c + (middle >> half) + (((middle & mask) + b * c) >> half)
    return upper
