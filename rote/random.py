"""Random tensors, whose numbers depend on the seed and on global indices alone: `rote.random.default_rng(seed)`.

Each element has words of its own in one stream of 64-bit words, that of NumPy's bit generator Philox4x64-10 (Salmon,
Moraes, Dror, Shaw 2011), which can begin anywhere. So a tensor has the same numbers in any layout, on any grid and on
any number of ranks; nothing is sent. `random` and `uniform` in double precision give what NumPy's
`Generator(Philox(seed))` gives; the others are made of words in ways of their own, which versions do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from .compiler.step import as_dtype
from .layout.distribution import Distribution, tensor_shape
from .layout.layout import Layout
from .runtime.comm.resolve import as_comm
from .runtime.copy.regions import identity
from .runtime.placement import GridLike, place
from .tensor.moves import default_layout
from .tensor.tensor import DistTensor

__all__ = ["Generator", "default_rng"]

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Shape = Iterable[int] | int

_BLOCK = 4  # words that one state of Philox's counter makes
_GAP = 1024  # words that are made sooner than the generator is put behind them
_WINDOW = 1 << 18  # elements whose words are made at once


def default_rng(seed: Any = None, comm: object | None = None) -> Generator:
    """A generator of random tensors; every rank makes its own, of the same seed.

    Args:
        seed: an integer, several, or a `numpy.random.SeedSequence`, the same on all ranks; if None, rank 0 asks the
            system for one, and the call is collective.
        comm: the ranks that agree on it; as in `DistTensor.from_global`.

    >>> import rote
    >>> rote.random.default_rng(7).random(3).to_global().round(4)
    array([0.4688, 0.4261, 0.363 ])
    """
    if seed is None:
        seed = as_comm(comm).allgather_object(np.random.SeedSequence().entropy)[0]
    return Generator(seed)


class Generator:
    """A stream of random words, and how far it is used up; each draw takes the next words, as many as it needs.

    All methods that draw take, beside their own arguments, those of `DistTensor.zeros`: `shape`; `layout`, as
    `rote.config(layout=…)` has it if None; `grid`, `comm`; and `dtype`. Ranks make the same calls in the same order.

    Attributes:
        position: the number of words that are used up.

    >>> import rote
    >>> def program(comm):
    ...     rng = rote.random.default_rng(1)
    ...     return rng.standard_normal((2, 3), "[(0),()]", comm=comm).to_global(), rng.position
    >>> one, four = rote.run(program, 1)[0], rote.run(program, 4)[0]
    >>> bool((one[0] == four[0]).all()), one[1], four[1]
    (True, 12, 12)
    """

    __slots__ = ("_key", "position")

    def __init__(self, seed: Any) -> None:
        self._key: Words = np.random.Philox(seed).state["state"]["key"]
        self.position = 0

    def __repr__(self) -> str:
        return f"Generator(Philox, position={self.position})"

    def random(
        self,
        shape: Shape = (),
        layout: Layout | str | None = None,
        *,
        grid: GridLike = None,
        comm: object | None = None,
        dtype: npt.DTypeLike = "f8",
    ) -> DistTensor:
        """Numbers between 0, included, and 1; one word each.

        Raises:
            TypeError: `dtype` is none of float32 and float64.
        """
        element = _real(dtype)
        return self._drawn(lambda words: _fractions(words[:, 0], element), 1, element, shape, layout, grid, comm)

    def uniform(
        self,
        low: float = 0.0,
        high: float = 1.0,
        shape: Shape = (),
        layout: Layout | str | None = None,
        *,
        grid: GridLike = None,
        comm: object | None = None,
        dtype: npt.DTypeLike = "f8",
    ) -> DistTensor:
        """Numbers between `low`, included, and `high`; one word each.

        Raises:
            TypeError: `dtype` is none of float32 and float64.
        """
        element = _real(dtype)

        def values(words: Words) -> Array:
            return low + (high - low) * _fractions(words[:, 0], element)

        return self._drawn(values, 1, element, shape, layout, grid, comm)

    def exponential(
        self,
        scale: float = 1.0,
        shape: Shape = (),
        layout: Layout | str | None = None,
        *,
        grid: GridLike = None,
        comm: object | None = None,
        dtype: npt.DTypeLike = "f8",
    ) -> DistTensor:
        """Numbers of the exponential distribution of mean `scale`; one word each.

        Raises:
            ValueError: `scale` is negative. TypeError: `dtype` is none of float32 and float64.
        """
        element = _real(dtype)
        _check_scale(scale)
        return self._drawn(
            lambda words: -scale * np.log1p(-_fractions(words[:, 0])), 1, element, shape, layout, grid, comm
        )

    def standard_normal(
        self,
        shape: Shape = (),
        layout: Layout | str | None = None,
        *,
        grid: GridLike = None,
        comm: object | None = None,
        dtype: npt.DTypeLike = "f8",
    ) -> DistTensor:
        """Numbers of the normal distribution of mean 0 and variance 1, as `normal` makes them."""
        return self.normal(0.0, 1.0, shape, layout, grid=grid, comm=comm, dtype=dtype)

    def normal(
        self,
        loc: complex = 0.0,
        scale: float = 1.0,
        shape: Shape = (),
        layout: Layout | str | None = None,
        *,
        grid: GridLike = None,
        comm: object | None = None,
        dtype: npt.DTypeLike = "f8",
    ) -> DistTensor:
        """Numbers of the normal distribution of mean `loc` and deviation `scale`; two words each (Box, Muller 1958).

        Those of a complex dtype have independent real and imaginary parts, each of half the variance.

        Raises:
            ValueError: `scale` is negative. TypeError: `dtype` is none of float32, float64, complex64 and complex128.
        """
        element = as_dtype(dtype)
        if element.kind != "c":
            _real(element)
        elif element.itemsize > 16:
            raise TypeError(f"random numbers are made of 64-bit words, not as {element}; write dtype='c16'")
        _check_scale(scale)

        def values(words: Words) -> Array:
            radius = np.sqrt(-2.0 * np.log1p(-_fractions(words[:, 0])))
            angle = 2 * np.pi * _fractions(words[:, 1])
            numbers: Array = radius * np.cos(angle)
            if element.kind == "c":
                numbers = np.sqrt(0.5) * (numbers + 1j * (radius * np.sin(angle)))
            return loc + scale * numbers

        return self._drawn(values, 2, element, shape, layout, grid, comm)

    def integers(
        self,
        low: int,
        high: int | None = None,
        shape: Shape = (),
        layout: Layout | str | None = None,
        *,
        endpoint: bool = False,
        grid: GridLike = None,
        comm: object | None = None,
        dtype: npt.DTypeLike = "i8",
    ) -> DistTensor:
        """Integers from `low` to below `high`, all equally likely (to one in 2**64); two words each.

        Args:
            low, high: bounds; from 0 to below `low` if `high` is None.
            endpoint: whether `high` itself is among them.

        Raises:
            ValueError: there are none, or some do not fit the dtype. TypeError: it is no dtype of integers.
        """
        element = as_dtype(dtype)
        if element.kind not in "iub":
            raise TypeError(f"integers are of an integer dtype, not {element}")
        first, last = (0, low) if high is None else (low, high)
        last -= not endpoint
        least, most = (0, 1) if element.kind == "b" else (np.iinfo(element).min, np.iinfo(element).max)
        if not least <= first <= last <= most:
            raise ValueError(f"no integers of {element} from {first} to {last}; it has those from {least} to {most}")
        start = np.uint64(first % (1 << 64))

        def values(words: Words) -> Array:
            numbers: Array = start + _scaled(words[:, 0], words[:, 1], last - first + 1)
            signed: Array = numbers.view(np.int64)
            return signed

        return self._drawn(values, 2, element, shape, layout, grid, comm)

    def _drawn(
        self,
        values: Callable[[Words], Array],
        each: int,
        dtype: np.dtype[Any],
        shape: Shape,
        layout: Layout | str | None,
        grid: GridLike,
        comm: object | None,
    ) -> DistTensor:
        """A tensor of a function of as many words as are `each` element's."""
        extents, ranks = tensor_shape(shape), as_comm(comm)
        dist = place(extents, default_layout(extents) if layout is None else layout, ranks, grid)
        start, self.position = self.position, self.position + each * prod(extents)
        if not dist.contributes(ranks.rank):
            nothing = np.full(dist.local_shape(ranks.rank), identity(dist.layout.op, dtype), dtype)
            return DistTensor(nothing, dist, ranks)
        block = np.empty(dist.local_shape(ranks.rank), dtype)
        flat = block.reshape(-1)
        stream = _Stream(self._key)
        for first, indices in _windows(dist, ranks.rank, block.shape):
            words = _words(stream, start, indices, each)
            flat[first : first + len(indices)] = values(words).astype(dtype, copy=False)
        return DistTensor(block, dist, ranks)


class _Stream:
    """Philox's words by their number."""

    __slots__ = ("_bits", "_next")

    def __init__(self, key: Words) -> None:
        self._bits = np.random.Philox(key=key)
        self._next = 0  # the state of the counter that is due

    def words(self, first: int, number: int) -> Words:
        """So many words, from one on."""
        state, skipped = divmod(first, _BLOCK)
        self._bits.advance(state - self._next)
        words = np.asarray(self._bits.random_raw(skipped + number))[skipped:]
        self._next = state + -(-(skipped + number) // _BLOCK)
        return words


def _windows(dist: Distribution, rank: int, shape: tuple[int, ...]) -> Iterator[tuple[int, Ints]]:
    """The elements of a block in turn, a window at a time: the number of the first, and the global ones of all.

    The global number of an element is its place in the whole tensor in C order.
    """
    if not prod(shape):
        return
    numbers: list[Ints] = [index * prod(dist.shape[mode + 1 :]) for mode, index in enumerate(dist.tensor_indices(rank))]
    rows = shape[0] if shape else 1
    size = prod(shape) // rows
    step = max(1, _WINDOW // size)
    for row in range(0, rows, step):
        parts = [each[row : row + step] if each.ndim and each.shape[0] > 1 else each for each in numbers]
        extents = (min(step, rows - row), *shape[1:]) if shape else ()
        yield row * size, np.broadcast_to(sum(parts, np.int64(0)), extents).reshape(-1)


def _words(stream: _Stream, start: int, indices: Ints, each: int) -> Words:
    """The words of some elements, of which each has its own; elements that lie close together are made together."""
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


def _fractions(words: Words, dtype: np.dtype[Any] | None = None) -> Array:
    """Words as numbers from 0 to below 1, of all bits that the dtype has."""
    if dtype is not None and dtype.itemsize == 4:
        return (words >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _scaled(high: Words, low: Words, number: int) -> Words:
    """The upper 64 bits of 128-bit fractions times a number: integers below it."""
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


def _real(dtype: npt.DTypeLike) -> np.dtype[Any]:
    element = as_dtype(dtype)
    if element.kind != "f" or element.itemsize > 8:
        raise TypeError(f"random numbers are float32 or float64, not {element}; write dtype='f8', and astype then")
    return element


def _check_scale(scale: float) -> None:
    if not scale >= 0:
        raise ValueError(f"scale is 0 or more, not {scale}")
