"""Random tensors, whose numbers depend only on the seed and on global indices: `rote.random.default_rng(seed)`.

Each element has its own words in one stream of 64-bit words, that of NumPy's bit generator Philox4x64-10 (Salmon,
Moraes, Dror, Shaw 2011), which can start at any position. So a tensor has the same numbers in any layout, on any grid
and on any number of ranks, and nothing is sent. `random` and `uniform` in double precision equal those of NumPy's
`Generator(Philox(seed))`. The other methods turn words into numbers in their own ways, which stay fixed over versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..compiler.step import as_dtype
from ..functions.moves import default_layout
from ..layout.grid import tensor_shape
from ..layout.layout import Layout
from ..runtime.comm.cache import gathered
from ..runtime.comm.resolve import as_comm
from ..runtime.placement import GridLike, filled, new_block, place
from ..tensor.tensor import DistTensor
from .arguments import by_shape, check_numbers, check_scale, missing, real_dtype
from .words import Array, Words, WordStream, fractions, scaled, windows, words_of

__all__ = ["Generator", "default_rng"]

Shape = Iterable[int] | int


def default_rng(seed: Any = None, comm: object | None = None) -> Generator:
    """A generator of random tensors; every rank makes its own, from the same seed.

    Args:
        seed: an integer, several, or a `numpy.random.SeedSequence`, the same on all ranks; if None, rank 0 gets one
            from the system, and the call is collective.
        comm: the ranks that share this seed; as in `DistTensor.from_global`.

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

    Attributes:
        position: the number of words used so far.

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
            raise AttributeError(missing(name), name=name, obj=self)

    def __repr__(self) -> str:
        return f"Generator(Philox, position={self.position})"

    @by_shape
    def random(
        self,
        shape: Shape = (),
        layout: Layout | str | None = None,
        *,
        grid: GridLike = None,
        comm: object | None = None,
        dtype: npt.DTypeLike = "f8",
    ) -> DistTensor:
        """A tensor of numbers uniform in [0, 1); one word each.

        Raises:
            TypeError: `dtype` is neither float32 nor float64.

        >>> import rote
        >>> rote.random.default_rng(7).random(2, dtype="f4").to_global()
        array([0.46881747, 0.4261458 ], dtype=float32)
        """
        element = real_dtype(dtype)
        return self._drawn(lambda words: fractions(words[:, 0], element), 1, element, shape, layout, grid, comm)

    @by_shape
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
        """A tensor of numbers uniform between `low`, included, and `high`; one word each.

        Raises:
            TypeError: `dtype` is neither float32 nor float64, or a bound is not a number.

        >>> import rote
        >>> rote.random.default_rng(7).uniform(-1, 1, 2).to_global().round(4)
        array([-0.0624, -0.1477])
        """
        element = real_dtype(dtype)
        check_numbers(low=low, high=high)

        def values(words: Words) -> Array:
            return low + (high - low) * fractions(words[:, 0], element)

        return self._drawn(values, 1, element, shape, layout, grid, comm)

    @by_shape
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
        """A tensor of numbers from the exponential distribution with mean `scale`; one word each.

        Raises:
            ValueError: `scale` is negative.
            TypeError: `dtype` is neither float32 nor float64, or `scale` is not a number.

        >>> import rote
        >>> rote.random.default_rng(7).exponential(2.0, 2).to_global().round(4)
        array([1.2653, 1.1108])
        """
        element = real_dtype(dtype)
        check_numbers(scale=scale)
        check_scale(scale)

        def values(words: Words) -> Array:
            return -scale * np.log1p(-fractions(words[:, 0]))

        return self._drawn(values, 1, element, shape, layout, grid, comm)

    @by_shape
    def standard_normal(
        self,
        shape: Shape = (),
        layout: Layout | str | None = None,
        *,
        grid: GridLike = None,
        comm: object | None = None,
        dtype: npt.DTypeLike = "f8",
    ) -> DistTensor:
        """A tensor of numbers from the normal distribution with mean 0 and variance 1; see `normal`.

        >>> import rote
        >>> rote.random.default_rng(7).standard_normal(2).to_global().round(4)
        array([-1.0059,  0.0754])
        """
        return self.normal(0.0, 1.0, shape, layout, grid=grid, comm=comm, dtype=dtype)

    @by_shape
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
        """A tensor of normal numbers with mean `loc` and deviation `scale`; two words each (Box, Muller 1958).

        Complex numbers have independent real and imaginary parts, each with half the variance.

        Raises:
            ValueError: `scale` is negative.
            TypeError: `dtype` is none of float32, float64, complex64 and complex128; or `loc` or `scale` is not a
                number.

        >>> import rote
        >>> rote.random.default_rng(7).normal(10.0, 0.5, 2).to_global().round(4)
        array([ 9.497 , 10.0377])
        """
        element = as_dtype(dtype)
        if element.kind != "c":
            real_dtype(element)
        elif element.itemsize > 16:
            raise TypeError(f"random numbers are made of 64-bit words, not as {element}; write dtype='c16'")
        check_numbers(loc=loc, scale=scale)
        check_scale(scale)

        def values(words: Words) -> Array:
            radius = np.sqrt(-2.0 * np.log1p(-fractions(words[:, 0])))
            angle = 2 * np.pi * fractions(words[:, 1])
            numbers: Array = radius * np.cos(angle)
            if element.kind == "c":
                numbers = np.sqrt(0.5) * (numbers + 1j * (radius * np.sin(angle)))
            return loc + scale * numbers

        return self._drawn(values, 2, element, shape, layout, grid, comm)

    @by_shape
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
        """A tensor of integers from `low` to below `high`, all equally likely (to one in 2**64); two words each.

        Args:
            low, high: bounds; from 0 to below `low` if `high` is None.
            endpoint: whether `high` itself may be drawn.

        Raises:
            ValueError: there are no such integers, or some do not fit the dtype.
            TypeError: `dtype` is not one of integers, or a bound is not a number.

        >>> import rote
        >>> rote.random.default_rng(7).integers(1, 6, 5, endpoint=True).to_global()
        array([3, 3, 1, 2, 1])
        """
        element = as_dtype(dtype)
        if element.kind not in "iub":
            raise TypeError(f"integers are of an integer dtype, not {element}")
        check_numbers(low=low, high=0 if high is None else high)
        first, last = (0, low) if high is None else (low, high)
        last -= not endpoint
        least, most = (0, 1) if element.kind == "b" else (np.iinfo(element).min, np.iinfo(element).max)
        if not least <= first <= last <= most:
            raise ValueError(f"no integers of {element} from {first} to {last}; it has those from {least} to {most}")
        start = np.uint64(first % (1 << 64))

        def values(words: Words) -> Array:
            numbers: Array = start + scaled(words[:, 0], words[:, 1], last - first + 1)
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
        """A tensor whose elements are a function of their words, `each` words per element."""
        extents, ranks = tensor_shape(shape), as_comm(comm)
        if layout is None:
            layout = default_layout(extents)
        dist = place(extents, layout, ranks, grid)
        start, self.position = self.position, self.position + each * prod(extents)
        if not dist.contributes(ranks.rank):
            return DistTensor(filled(dist, ranks.rank, 0, dtype), dist, ranks)
        block = new_block(dist, ranks.rank, dtype)
        flat = block.reshape(-1)
        stream = WordStream(self._key)
        for first, indices in windows(dist, ranks.rank, block.shape):
            words = words_of(stream, start, indices, each)
            flat[first : first + len(indices)] = values(words).astype(dtype, copy=False)
        return DistTensor(block, dist, ranks)
