"""Random tensors, whose numbers depend only on the seed and on global indices: `rote.random.default_rng(seed)`.

Each element has its own words in one stream of 64-bit words, that of NumPy's bit generator Philox4x64-10 (Salmon,
Moraes, Dror, Shaw 2011), which can start at any position. So a tensor has the same numbers in any layout, on any grid
and on any number of ranks, and nothing is sent. `random` and `uniform` in double precision equal those of NumPy's
`Generator(Philox(seed))`. The other methods make numbers of words in their own ways, which stay fixed over versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from math import isfinite, prod
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from .compiler.step import as_dtype
from .functions.creation import LayoutLike, Ranks, placed, taking
from .functions.distributed import Array
from .layout.distribution import Distribution
from .layout.grid import row_major
from .runtime.comm.agreement import gathered
from .runtime.comm.resolve import as_comm
from .runtime.placement import filled, new_block
from .tensor.tensor import DistTensor

__all__ = ["Generator", "default_rng"]

Shape = Iterable[int] | int
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_BLOCK = 4  # words from one state of Philox's counter
_GAP = 1024  # unused words up to which generating them is faster than advancing the generator past them
_WINDOW = 1 << 18  # elements whose words are generated at once


class _WordStream:
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


def _windows(dist: Distribution, rank: int, shape: tuple[int, ...]) -> Iterator[tuple[int, Ints]]:
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


def _words_of(stream: _WordStream, start: int, indices: Ints, length: int) -> Words:
    """The words of some elements, `length` per element; those of neighbouring elements are generated at once."""
    order = None if (indices[1:] > indices[:-1]).all() else np.argsort(indices)
    ascending = indices if order is None else indices[order]

    # In the stream:  x.xx..x.......................x.xxx.x    x: elements of the block, .: of other ranks
    #                 [ one run ]  a long gap       [ next ]   a run is generated as a whole, a gap is skipped
    gaps = (np.diff(ascending) * length > _GAP) | (np.diff(ascending // _WINDOW) > 0)
    bounds = [0, *(np.flatnonzero(gaps) + 1).tolist(), len(ascending)]
    words = np.empty((len(indices), length), np.uint64)
    for begin, end in pairwise(bounds):
        run = ascending[begin:end]
        first, number = int(run[0]), int(run[-1]) - int(run[0]) + 1
        made = stream.words(start + first * length, number * length).reshape(number, length)
        words[begin:end] = made if number == len(run) else made[run - first]

    if order is None:
        return words
    placed = np.empty_like(words)
    placed[order] = words
    return placed


def _uniform(words: Words, dtype: np.dtype[Any] | None = None) -> Array:
    """Words as numbers in [0, 1), with all bits of precision that the dtype has."""
    if dtype is not None and dtype.itemsize == 4:
        return (words >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _scaled(high: Words, low: Words, number: int) -> Words:
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


_SAME = "rote.DistTensor.from_global(numpy.random.default_rng(seed).{}(…), layout), of the same seed on all ranks"
_NAMES = {
    "permutation": "x[numpy.argsort(rng.random(len(x)))], along mode 0",
    "shuffle": "x[...] = x[numpy.argsort(rng.random(len(x)))], along mode 0",
    "choice": "numpy.take(x, rng.integers(len(x), shape=…), axis=0), with replacement",
    "spawn": "rote.random.default_rng([seed, k]) for the k-th of several generators",
    "standard_exponential": "rng.exponential(1.0, shape)",
}


# Decorate a drawing method, whose signature shows the arguments of `Ranks`.
_draws = taking(Ranks, {"size": "{0} takes shape, not size\nwrite rng.{0}(…, shape={1!r})"}, numbers=True)


def _real_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    element = as_dtype(dtype)
    if element.kind != "f" or element.itemsize > 8:
        raise TypeError(f"random numbers are float32 or float64, not {element}; write dtype='f8', and astype then")
    return element


def _check_numbers(kinds: str = "biuf", **parameters: Any) -> None:
    """Refuse what is no number of some kinds of dtypes.

    Arrays and tensors would broadcast to the block, so that numbers would depend on the layout.
    """
    for name, value in parameters.items():
        kind = _kind(value)
        if kind not in kinds:
            real = " real" if kind == "c" else ""
            raise TypeError(
                f"{name} is one{real} number for all elements, not {value!r}\n"
                "combine others: low + (high - low) * rng.random(shape, layout)"
            )


def _kind(value: Any) -> str:
    """The kind of the dtype of one number; "O", of objects, for arrays, tensors and all else."""
    if isinstance(value, int):  # 2**64 fits no dtype
        return "i"
    return "O" if np.ndim(value) else np.asarray(value).dtype.kind


def _check_scale(scale: float) -> None:
    _check_numbers(scale=scale)
    if not scale >= 0:  # NaN too
        raise ValueError(f"scale is 0 or more, not {scale}")


def default_rng(seed: Any = None, comm: object | None = None) -> Generator:
    """A generator of random tensors; every rank makes its own, from the same seed.

    Parameters
    ----------
    seed : int | Sequence[int] | SeedSequence, optional
        An integer, several, or a `numpy.random.SeedSequence`, the same on all ranks; if None, rank 0 gets one from the
        system, and the call is collective.
    comm : object, optional
        The ranks that share this seed; as in `DistTensor.from_global`.

    Examples
    --------
    >>> import rote
    >>> rote.random.default_rng(7).random(3).to_global().round(4)
    array([0.4688, 0.4261, 0.363 ])
    """
    if seed is None:
        seed = gathered(as_comm(comm), "default_rng", np.random.SeedSequence().entropy)[0]
    return Generator(seed)


class Generator:
    """A stream of random words and a position in it; each draw takes the next words, as many as it needs.

    Beside their own arguments, methods that draw take those of `DistTensor.zeros`: `shape`; `layout`, for which
    `rote.config(layout=…)` decides if it is None; `grid`, `comm` and `dtype`. All ranks make the same calls in one
    order. Bounds, means and scales are numbers; for a tensor of them, combine it with the drawn tensor, as in
    `mean + deviation * rng.standard_normal(mean.shape, mean.layout)`.

    Parameters
    ----------
    seed : int | Sequence[int] | SeedSequence
        An integer, several, or a `numpy.random.SeedSequence`, the same on all ranks.

    Attributes
    ----------
    position : int
        The number of words used so far.

    Examples
    --------
    >>> import rote
    >>> def program(comm):
    ...     rng = rote.random.default_rng(1)
    ...     return rng.standard_normal((2, 3), "[(0),()]", comm=comm).to_global(), rng.position
    >>> one, four = rote.run(program, 1)[0], rote.run(program, 4)[0]
    >>> bool((one[0] == four[0]).all()), one[1], four[1]
    (True, 12, 12)
    """

    __slots__ = ("_key", "position")

    position: int

    def __init__(self, seed: Any) -> None:
        self._key: Words = np.random.Philox(seed).state["state"]["key"]
        self.position = 0

    if not TYPE_CHECKING:  # with it, type checkers would accept any misspelt attribute

        def __getattr__(self, name):
            """Refuse an attribute that this generator does not have; if NumPy's have it, say what to write."""
            hint = _NAMES.get(name, "")
            if not hint and not name.startswith("_") and hasattr(np.random.Generator, name):
                hint = _SAME.format(name)
            text = f"'Generator' object has no attribute {name!r}"
            raise AttributeError(f"{text}\nwrite {hint}" if hint else text, name=name, obj=self)

    def __repr__(self) -> str:
        return f"Generator(Philox, position={self.position})"

    @_draws
    def random(
        self, shape: Shape = (), layout: LayoutLike = None, *, dtype: npt.DTypeLike = "f8", **ranks: Unpack[Ranks]
    ) -> DistTensor:
        """A tensor of numbers uniform in [0, 1); one word each.

        Parameters
        ----------
        shape : Iterable[int] | int, optional
            The shape of the tensor.
        layout : Layout | str, optional
            A layout; if None, that of `rote.config`, by default blocks of mode 0.
        dtype : DTypeLike, default 'f8'
            The dtype of the elements.
        grid : Grid | Sequence[int] | int, optional
            A grid of as many ranks; if None, the most balanced one that the layout allows.
        comm : object, optional
            An mpi4py or Rote communicator; if None, the ranks of `rote.run`, MPI's world, or this process alone.

        Raises
        ------
        TypeError
            `dtype` is neither float32 nor float64.

        Examples
        --------
        >>> import rote
        >>> rote.random.default_rng(7).random(2, dtype="f4").to_global()
        array([0.46881747, 0.4261458 ], dtype=float32)
        """
        element = _real_dtype(dtype)
        return self._drawn(lambda words: _uniform(words[:, 0], element), 1, element, shape, layout, **ranks)

    @_draws
    def uniform(
        self,
        low: float = 0.0,
        high: float = 1.0,
        shape: Shape = (),
        layout: LayoutLike = None,
        *,
        dtype: npt.DTypeLike = "f8",
        **ranks: Unpack[Ranks],
    ) -> DistTensor:
        """A tensor of numbers uniform between `low`, included, and `high`; one word each.

        Parameters
        ----------
        low : float, default 0.0
            The lower bound, included.
        high : float, default 1.0
            The upper bound, excluded.
        shape : Iterable[int] | int, optional
            The shape of the tensor.
        layout : Layout | str, optional
            A layout; if None, that of `rote.config`, by default blocks of mode 0.
        dtype : DTypeLike, default 'f8'
            The dtype of the elements.
        grid : Grid | Sequence[int] | int, optional
            A grid of as many ranks; if None, the most balanced one that the layout allows.
        comm : object, optional
            An mpi4py or Rote communicator; if None, the ranks of `rote.run`, MPI's world, or this process alone.

        Raises
        ------
        TypeError
            `dtype` is neither float32 nor float64, or a bound is not a real number.
        ValueError, OverflowError
            `high` is below `low`, or their difference is too large for a float.

        Examples
        --------
        >>> import rote
        >>> rote.random.default_rng(7).uniform(-1, 1, 2).to_global().round(4)
        array([-0.0624, -0.1477])
        """
        element = _real_dtype(dtype)
        _check_numbers(low=low, high=high)
        if not low <= high:  # NaN too
            raise ValueError(f"uniform numbers are from the lower to the higher bound, not from {low} to {high}")
        if not isfinite(float(high) - float(low)):
            raise OverflowError(f"uniform numbers are in a finite range, not from {low} to {high}")

        span = high - low
        return self._drawn(
            lambda words: low + span * _uniform(words[:, 0], element), 1, element, shape, layout, **ranks
        )

    @_draws
    def exponential(
        self,
        scale: float = 1.0,
        shape: Shape = (),
        layout: LayoutLike = None,
        *,
        dtype: npt.DTypeLike = "f8",
        **ranks: Unpack[Ranks],
    ) -> DistTensor:
        """A tensor of numbers from the exponential distribution with mean `scale`; one word each.

        Parameters
        ----------
        scale : float, default 1.0
            The mean.
        shape : Iterable[int] | int, optional
            The shape of the tensor.
        layout : Layout | str, optional
            A layout; if None, that of `rote.config`, by default blocks of mode 0.
        dtype : DTypeLike, default 'f8'
            The dtype of the elements.
        grid : Grid | Sequence[int] | int, optional
            A grid of as many ranks; if None, the most balanced one that the layout allows.
        comm : object, optional
            An mpi4py or Rote communicator; if None, the ranks of `rote.run`, MPI's world, or this process alone.

        Raises
        ------
        ValueError
            `scale` is negative.
        TypeError
            `dtype` is neither float32 nor float64, or `scale` is not a number.

        Examples
        --------
        >>> import rote
        >>> rote.random.default_rng(7).exponential(2.0, 2).to_global().round(4)
        array([1.2653, 1.1108])
        """
        element = _real_dtype(dtype)
        _check_scale(scale)
        return self._drawn(lambda words: -scale * np.log1p(-_uniform(words[:, 0])), 1, element, shape, layout, **ranks)

    @_draws
    def standard_normal(
        self, shape: Shape = (), layout: LayoutLike = None, *, dtype: npt.DTypeLike = "f8", **ranks: Unpack[Ranks]
    ) -> DistTensor:
        """A tensor of numbers from the normal distribution with mean 0 and variance 1; see `normal`.

        Parameters
        ----------
        shape : Iterable[int] | int, optional
            The shape of the tensor.
        layout : Layout | str, optional
            A layout; if None, that of `rote.config`, by default blocks of mode 0.
        dtype : DTypeLike, default 'f8'
            The dtype of the elements.
        grid : Grid | Sequence[int] | int, optional
            A grid of as many ranks; if None, the most balanced one that the layout allows.
        comm : object, optional
            An mpi4py or Rote communicator; if None, the ranks of `rote.run`, MPI's world, or this process alone.

        Examples
        --------
        >>> import rote
        >>> rote.random.default_rng(7).standard_normal(2).to_global().round(4)
        array([-1.0059,  0.0754])
        """
        return self.normal(0.0, 1.0, shape, layout, dtype=dtype, **ranks)

    @_draws
    def normal(
        self,
        loc: complex = 0.0,
        scale: float = 1.0,
        shape: Shape = (),
        layout: LayoutLike = None,
        *,
        dtype: npt.DTypeLike = "f8",
        **ranks: Unpack[Ranks],
    ) -> DistTensor:
        """A tensor of normal numbers with mean `loc` and deviation `scale`; two words each (Box, Muller 1958).

        Complex numbers have independent real and imaginary parts, each with half the variance.

        Parameters
        ----------
        loc : complex, default 0.0
            The mean.
        scale : float, default 1.0
            The standard deviation.
        shape : Iterable[int] | int, optional
            The shape of the tensor.
        layout : Layout | str, optional
            A layout; if None, that of `rote.config`, by default blocks of mode 0.
        dtype : DTypeLike, default 'f8'
            The dtype of the elements.
        grid : Grid | Sequence[int] | int, optional
            A grid of as many ranks; if None, the most balanced one that the layout allows.
        comm : object, optional
            An mpi4py or Rote communicator; if None, the ranks of `rote.run`, MPI's world, or this process alone.

        Raises
        ------
        ValueError
            `scale` is negative.
        TypeError
            `dtype` is none of float32, float64, complex64 and complex128; `loc` or `scale` is not a number; or `loc` is
            complex, and `dtype` is not.

        Examples
        --------
        >>> import rote
        >>> rote.random.default_rng(7).normal(10.0, 0.5, 2).to_global().round(4)
        array([ 9.497 , 10.0377])
        """
        element = as_dtype(dtype)
        if element.kind != "c":
            _real_dtype(element)
        elif element.itemsize > 16:
            raise TypeError(f"random numbers are made of 64-bit words, not as {element}; write dtype='c16'")
        _check_numbers("biuf" + element.kind, loc=loc)
        _check_scale(scale)

        def values(words: Words) -> Array:
            radius = np.sqrt(-2.0 * np.log1p(-_uniform(words[:, 0])))
            angle = 2 * np.pi * _uniform(words[:, 1])
            numbers: Array = radius * np.cos(angle)
            if element.kind == "c":
                numbers = np.sqrt(0.5) * (numbers + 1j * (radius * np.sin(angle)))
            return loc + scale * numbers

        return self._drawn(values, 2, element, shape, layout, **ranks)

    @_draws
    def integers(
        self,
        low: int,
        high: int | None = None,
        shape: Shape = (),
        layout: LayoutLike = None,
        *,
        endpoint: bool = False,
        dtype: npt.DTypeLike = "i8",
        **ranks: Unpack[Ranks],
    ) -> DistTensor:
        """A tensor of integers from `low` to below `high`, all equally likely (to one in 2**64); two words each.

        Parameters
        ----------
        low : int
            The least integer; if `high` is None, the bound, and 0 is the least.
        high : int, optional
            The bound, which is not drawn.
        shape : Iterable[int] | int, optional
            The shape of the tensor.
        layout : Layout | str, optional
            A layout; if None, that of `rote.config`, by default blocks of mode 0.
        endpoint : bool, default False
            Whether `high` itself may be drawn.
        dtype : DTypeLike, default 'i8'
            The dtype of the elements.
        grid : Grid | Sequence[int] | int, optional
            A grid of as many ranks; if None, the most balanced one that the layout allows.
        comm : object, optional
            An mpi4py or Rote communicator; if None, the ranks of `rote.run`, MPI's world, or this process alone.

        Raises
        ------
        ValueError
            There are no such integers, or some do not fit the dtype.
        TypeError
            `dtype` is not one of integers, or a bound is not an integer.

        Examples
        --------
        >>> import rote
        >>> rote.random.default_rng(7).integers(1, 6, 5, endpoint=True).to_global()
        array([3, 3, 1, 2, 1])
        """
        element = as_dtype(dtype)
        if element.kind not in "iub":
            raise TypeError(f"integers are of an integer dtype, not {element}")
        _check_numbers(low=low, high=0 if high is None else high)
        first, last = (0, low) if high is None else (low, high)
        if first % 1 or last % 1:
            raise TypeError(f"integers are between integers, not from {first} to {last}")
        first, last = int(first), int(last) - (not endpoint)
        least, most = (0, 1) if element.kind == "b" else (np.iinfo(element).min, np.iinfo(element).max)
        if not least <= first <= last <= most:
            raise ValueError(f"no integers of {element} from {first} to {last}; it has those from {least} to {most}")

        # Negative numbers are added modulo 2**64, and read as signed ones then.
        start = np.uint64(first % (1 << 64))

        def values(words: Words) -> Array:
            numbers: Array = start + _scaled(words[:, 0], words[:, 1], last - first + 1)
            signed: Array = numbers.view(np.int64)
            return signed

        return self._drawn(values, 2, element, shape, layout, **ranks)

    def _drawn(
        self,
        values: Callable[[Words], Array],
        length: int,
        dtype: np.dtype[Any],
        shape: Shape,
        layout: LayoutLike,
        **ranks: Unpack[Ranks],
    ) -> DistTensor:
        """A tensor whose elements are a function of their words, `length` words per element."""
        dist, comm = placed(shape, layout, **ranks)
        start, self.position = self.position, self.position + length * prod(dist.shape)
        if not dist.contributes(comm.rank):
            return DistTensor(filled(dist, comm.rank, 0, dtype), dist, comm)

        block = new_block(dist, comm.rank, dtype)
        flat = block.reshape(-1)
        stream = _WordStream(self._key)
        for first, indices in _windows(dist, comm.rank, block.shape):
            words = _words_of(stream, start, indices, length)
            flat[first : first + len(indices)] = values(words).astype(dtype, copy=False)
        return DistTensor(block, dist, comm)
