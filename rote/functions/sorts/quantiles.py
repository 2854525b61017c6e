"""Medians, quantiles and percentiles: by NumPy if lines are whole on ranks, else of elements found by counting."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib.array_utils import normalize_axis_tuple

from ...caches import memoized
from ...layout.layout import Layout
from ...runtime.comm.collective_errors import collective_errors
from ...runtime.comm.protocol import Comm
from ...runtime.exchange.messages import sub_comm
from ..alignment import made_whole, plain, replicated
from ..distributed import Array, Distributed
from ..moves import agree_on_call, announce, moved
from ..rearranging.indexing import known
from ..rearranging.reshaping import expand_dims
from ..reducing import reductions
from ..reducing.extrema import unordered
from ..reducing.reduction import Axis, finished
from ..reducing.statistics import weights_along
from ..rules import follows
from .samplesort import SampleSort, sorting_order
from .selection import chunks, gathered_parts, selected
from .sorting import has_room

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

Ints = npt.NDArray[np.int64]


class _Statistic(NamedTuple):
    """A statistic of lines of elements, computed from whole lines or from elements at places of the sorted ones."""

    name: str
    shape: tuple[int, ...]  # of its values of one line, before the modes of the lines
    of_lines: Callable[..., Any]  # from a block, the mode along which the lines run, and options of NumPy's function
    places: Callable[[int], Array]  # from the length of a line, the places that it needs, in any order
    of_places: Callable[[Array, int], Any]  # its values, from the elements there, along mode 0, and that length
    fractions: Array | None = None  # of the weight of all elements, that quantiles with weights are at

    @property
    def skips(self) -> bool:
        """Whether it leaves NaNs out."""
        return self.name.startswith("nan")


@follows("selected", np.median)
def median(
    a: Distributed, axis: Axis = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False
) -> Any:
    """The median along some modes, or of all: the middle element, or the mean of the middle two. Collective.

    Args:
        axis: the modes, all of them if None.
        out: a tensor for the result.
        overwrite_input: has no effect; the tensor stays as it is.
        keepdims: whether these modes stay, with extent 1.

    Raises:
        TypeError: the elements are complex.
        AxisError, ValueError: there is no such mode, or one is named twice.

    >>> from rote import DistTensor
    >>> np.median(DistTensor.from_global([[1.0, 9.0, 2.0], [4.0, 3.0, 8.0]], "block[(0),()]"), axis=1).to_global()
    array([2., 4.])
    """
    return _of_lines(a, _median("median"), axis, None, out, keepdims)


@follows("selected", np.nanmedian)
def nanmedian(
    a: Distributed, axis: Axis = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False
) -> Any:
    """The median of the elements that are not NaN; NaN, with a warning, if there is none. Arguments as for `median`.

    Raises:
        TypeError: the elements are complex.
        AxisError, ValueError: there is no such mode, or one is named twice.

    >>> import numpy as np, rote.array_api as xp
    >>> xp.nanmedian(xp.asarray([1.0, np.nan, 3.0])).to_global().tolist()
    2.0
    """
    return _of_lines(a, _median("nanmedian"), axis, None, out, keepdims)


@follows("selected", np.quantile)
def quantile(
    a: Distributed,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    """Quantiles of the elements along some modes, or of all, with the bits of `numpy.quantile`. Collective.

    If ranks can hold whole lines, each calls `numpy.quantile`. Otherwise they find the elements that it needs by
    counting, in a few rounds of messages of some thousand numbers. With weights, elements are sorted over the ranks.

    Args:
        q: a number from 0 to 1, a fraction, or an array of them, whose modes are the first of the result.
        axis, out, overwrite_input, keepdims: as for `median`.
        method: a method of `numpy.quantile`.
        weights: of the tensor's shape, or of the extents along `axis`; only with the method "inverted_cdf".

    Returns:
        A tensor with the modes of `q`, which are whole, before those that stay.

    Raises:
        TypeError: the elements are complex; or they are bool, and the method interpolates.
        ValueError: a number is not from 0 to 1, there is no such method, or weights are negative or all zero.

    >>> from rote import DistTensor
    >>> np.quantile(DistTensor.from_global([5.0, 1.0, 2.0, 4.0], "block[(0)]"), [0.5, 1]).to_global()
    array([3., 5.])
    """
    return _of_lines(a, _quantiles("quantile", a, q, method, weights), axis, weights, out, keepdims)


@follows("selected", np.percentile)
def percentile(
    a: Distributed,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    """Quantiles with q in percent, from 0 to 100. Collective; arguments and errors as for `quantile`.

    Returns:
        A tensor, as of `quantile`.

    >>> import numpy as np, rote.array_api as xp
    >>> xp.percentile(xp.asarray([1.0, 3.0, 2.0]), 75).to_global().tolist()
    2.5
    """
    return _of_lines(a, _quantiles("percentile", a, q, method, weights), axis, weights, out, keepdims)


@follows("selected", np.nanquantile)
def nanquantile(
    a: Distributed,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    """Quantiles of the elements that are not NaN; NaN, with a warning, if there is none. As `quantile` otherwise.

    Returns:
        A tensor, as of `quantile`.

    Raises:
        TypeError: the elements are complex; or they are bool, and the method interpolates.
        ValueError: a number is out of range, there is no such method, or weights are negative or all zero.

    >>> import numpy as np, rote.array_api as xp
    >>> xp.nanquantile(xp.asarray([1.0, np.nan, 3.0]), 0.75).to_global().tolist()
    2.5
    """
    return _of_lines(a, _quantiles("nanquantile", a, q, method, weights), axis, weights, out, keepdims)


@follows("selected", np.nanpercentile)
def nanpercentile(
    a: Distributed,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    """Quantiles as by `nanquantile`, with q in percent, from 0 to 100.

    Returns:
        A tensor, as of `quantile`.

    Raises:
        TypeError: the elements are complex; or they are bool, and the method interpolates.
        ValueError: a number is out of range, there is no such method, or weights are negative or all zero.

    >>> import numpy as np, rote.array_api as xp
    >>> xp.nanpercentile(xp.asarray([1.0, np.nan, 3.0]), 75).to_global().tolist()
    2.5
    """
    return _of_lines(a, _quantiles("nanpercentile", a, q, method, weights), axis, weights, out, keepdims)


def _median(name: str) -> _Statistic:
    return _Statistic(
        name,
        (),
        getattr(np, name),
        lambda n: np.unique([(n - 1) // 2, n // 2]),
        lambda values, n: np.mean(values, 0),
    )


def _interpolating(alpha: float, beta: float) -> Callable[[int, Array], Any]:
    """The places of quantiles of Hyndman and Fan (1996) for their two parameters; the order of terms is NumPy's."""
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _jumping(shift: float, stays: Callable[[Array], Any]) -> Callable[[int, Array], Any]:
    """The places of quantiles that are elements: the next one, or, on a place where it `stays`, the element there."""

    def places(n: int, q: Array) -> Any:
        place = np.asarray(n * q - 1 - shift)
        below = np.floor(place)
        return np.where((place == below) & stays(below), below, below + 1).astype(np.int64).clip(0)

    return places


# Per method, from the length of a line and q, the place of the quantile in the sorted line: at an element if it is an
# integer, else between two, or beyond the ends.
_METHODS: dict[str, Callable[[int, Array], Any]] = {
    "inverted_cdf": _jumping(0, lambda below: True),
    "averaged_inverted_cdf": lambda n, q: n * q - 1,
    "closest_observation": _jumping(0.5, lambda below: below % 2 == 1),
    "interpolated_inverted_cdf": _interpolating(0, 1),
    "hazen": _interpolating(0.5, 0.5),
    "weibull": _interpolating(0, 0),
    "linear": lambda n, q: (n - 1) * q,
    "median_unbiased": _interpolating(1 / 3.0, 1 / 3.0),
    "normal_unbiased": _interpolating(3 / 8.0, 3 / 8.0),
    "lower": lambda n, q: np.floor((n - 1) * q).astype(np.int64),
    "higher": lambda n, q: np.ceil((n - 1) * q).astype(np.int64),
    "midpoint": lambda n, q: 0.5 * (np.floor((n - 1) * q) + np.ceil((n - 1) * q)),
    "nearest": lambda n, q: np.around((n - 1) * q).astype(np.int64),
}
_AT_ELEMENTS = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")


def _quantiles(name: str, a: Distributed, q: Any, method: str, weights: Any) -> _Statistic:
    """Quantiles by NumPy's function of this name, which checks q, the method and dtypes on a line of one element."""
    function, q, own = getattr(np, name), known(q), a.local.dtype
    if not isinstance(q, int | float) and np.asarray(q).dtype == object:
        q = np.asarray(q, np.float64)  # fractions
    if own.kind != "c" and 0 not in a.distribution.shape:
        function(np.ones(1, own), q, method=method, weights=None if weights is None else np.ones(1))
    fractions, weak = _fractions(name, q, own)

    def between(n: int) -> tuple[Array, Array | None, Any]:
        """The elements before and after each quantile, counted from the end if negative; and its place between them."""
        place = np.asarray(_METHODS[method](n, fractions))
        if method in _AT_ELEMENTS or (method == "linear" and place.dtype.kind in "iu"):
            return place, None, None
        below = np.asarray(np.floor(place))
        above = np.asarray(below + 1)
        below[place >= n - 1] = above[place >= n - 1] = -1
        below[place < 0] = above[place < 0] = 0
        part = np.asarray(place - below)
        if method == "averaged_inverted_cdf":
            part = np.where(part == 0, 0.5, 1.0)
        elif method == "midpoint":
            part = np.where(place % 1 == 0, 0.0, 0.5)
        return below, above, float(part) if weak else part.astype(place.dtype)

    def places(n: int) -> Array:
        below, above, _ = between(n)
        return np.concatenate([each.ravel() for each in (below, above) if each is not None]).astype(np.int64) % n

    def of_places(values: Array, n: int) -> Any:
        below, _, part = between(n)
        if part is None:
            return values.reshape(*below.shape, *values.shape[1:])
        low, high = values.reshape(2, *below.shape, *values.shape[1:])
        return _lerp(low, high, part if weak else part.reshape(*part.shape, *[1] * (values.ndim - 1)))

    def of_lines(block: Array, mode: int, **options: Any) -> Any:
        return function(block, q, mode, method=method, **options)

    return _Statistic(name, np.shape(q), of_lines, places, of_places, None if weights is None else fractions)


def _fractions(name: str, q: Any, dtype: np.dtype[Any]) -> tuple[Array, bool]:
    """The fractions that NumPy computes with for an argument q, and whether they leave the dtype of the elements."""
    single = dtype.kind == "f" and not _fractions_are_doubles()
    weak = type(q) in (int, float) and _fractions_are_doubles()
    if name.endswith("percentile"):
        return np.asarray(np.true_divide(q, dtype.type(100) if single else 100)), weak
    return np.asarray(q, dtype if single and isinstance(q, int | float) else None), weak


@memoized(1)
def _fractions_are_doubles() -> bool:
    """Whether the NumPy that is installed computes places in double precision for elements of any precision."""
    return bool(np.quantile((np.arange(2049) > 682).astype(np.float16), 0.33333) > 0.6)


def _lerp(low: Array, high: Array, part: Any) -> Array:
    """Interpolate linearly between two elements, from the nearer one, in the order of operations that NumPy has."""
    step = np.subtract(high, low)
    values = np.asarray(low + step * part)
    np.subtract(high, step * (1 - part), out=values, where=part >= 0.5, casting="unsafe", dtype=values.dtype)
    return values


def _of_lines(a: Distributed, statistic: _Statistic, axis: Axis, weights: Any, out: Any, keepdims: Any) -> Any:
    """A statistic of the elements along some modes; it keeps the layout that the other modes then have."""
    name, shape = statistic.name, a.distribution.shape
    if a.local.dtype.kind == "c":
        raise unordered(f"numpy.{name}")
    modes = normalize_axis_tuple(range(len(shape)) if axis is None else axis, len(shape))
    others = [mode for mode in range(len(shape)) if mode not in modes]
    x = plain(a, name)
    if has_room(x.distribution, modes):
        x = made_whole(x, modes, name)
    dist = x.distribution
    masses = None if weights is None else _weights(x, weights, axis, modes, name)
    if any(dist.splits[mode] for mode in modes):
        values = _across(x, masses, statistic, modes, others)
    else:
        block = _lines(x.local, modes)
        given = {} if masses is None else {"weights": _lines(masses.local, modes)}
        own = not np.may_share_memory(block, a.local)  # NumPy may sort it in place, which saves a copy
        with collective_errors(x.comm) if 0 in shape or given else nullcontext():
            if block.size or 0 in shape:
                values = np.asarray(statistic.of_lines(block, block.ndim - 1, overwrite_input=own, **given))
            else:  # this rank has no line
                values = np.empty((*statistic.shape, *block.shape[:-1]), _dtype(statistic, block))
    added = values.ndim - len(others)
    layout = Layout((*[()] * added, *[dist.layout.modes[mode] for mode in others]))
    extents = (*values.shape[:added], *[shape[mode] for mode in others])
    result: Any = x._on(np.asarray(values, order="C"), layout.on(extents, dist.grid))
    if keepdims and modes:
        result = expand_dims(result, tuple([added + mode for mode in modes]))
    return finished(name, result, out)


def _dtype(statistic: _Statistic, block: Array) -> np.dtype[Any]:
    """The dtype of the values of lines with the elements of a block."""
    return np.asarray(statistic.of_lines(np.ones(1, block.dtype), 0)).dtype


def _lines(block: Array, modes: tuple[int, ...]) -> Array:
    """A block with some modes joined into one, the last; a view if these are one mode, or lie so in memory."""
    last = np.moveaxis(block, modes, range(-len(modes), 0))
    rest = last.shape[: block.ndim - len(modes)]
    return last.reshape((*rest, prod(last.shape[len(rest) :])))


def _weights(x: Distributed, weights: Any, axis: Axis, modes: tuple[int, ...], name: str) -> Distributed:
    """The weight of each element, in the layout of a plain tensor; checked as by NumPy, on all ranks."""
    shape = x.distribution.shape
    if np.shape(weights) != shape:
        weights = np.broadcast_to(weights_along(known(weights), shape, axis, modes), shape)
    given = weights if isinstance(weights, Distributed) else replicated(weights, x)
    masses = moved(plain(given, name), x.distribution.layout, name, x.distribution.grid)
    if int(reductions.number_of(name, lambda block: block < 0, masses, None)):
        raise ValueError("weights are not negative")
    return masses


def _across(
    x: Distributed, masses: Distributed | None, statistic: _Statistic, modes: tuple[int, ...], others: Sequence[int]
) -> Array:
    """The values for this rank's part of the lines, which several ranks hold. Collective."""
    dist, block = x.distribution, x.local
    agree_on_call(x.comm)
    across = {split.grid_mode for mode in modes for split in dist.splits[mode]}
    comm = sub_comm(x.comm, dist.grid, tuple(sorted(across)))
    if others or masses is not None:
        blocks = _lines(block, modes)
        rest = blocks.shape[:-1]
        lines = list(blocks.reshape(prod(rest), blocks.shape[-1]))
    else:
        rest, lines = (), [block.ravel(order="K")]  # in any order, which needs no copy
    undefined = np.zeros(len(lines), np.int64)
    if block.dtype.kind == "f":
        undefined[:] = [sum(np.count_nonzero(chunk != chunk) for chunk in chunks(line)) for line in lines]
        comm.allreduce_in_place(undefined, "sum")
    sizes = prod([dist.shape[mode] for mode in modes]) - undefined
    if statistic.skips and 0 in sizes:
        warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=5)
    defined = sizes > 0 if statistic.skips else undefined == 0
    if masses is not None:
        with collective_errors(x.comm):  # of weights whose sum is no number
            return _weighted(x, lines, masses, statistic, modes, defined, comm).reshape((*statistic.shape, *rest))
    places = {n: np.unique(statistic.places(n), return_inverse=True) for n in np.unique(sizes[defined]).tolist()}
    wanted = [places[n][0] if some else np.empty(0, np.int64) for n, some in zip(sizes.tolist(), defined, strict=True)]
    found, nbytes = selected(lines, sizes.tolist(), wanted, comm)
    announce(x, nbytes + undefined.nbytes, lambda: f"a selection by counting over {comm.size} ranks", statistic.name)
    alone = statistic.skips and not others and not defined.any()
    dtype = block.dtype if alone else _dtype(statistic, block)  # of a line of NaNs alone, NumPy's is the line's own
    values = np.full((*statistic.shape, len(lines)), np.nan if dtype.kind == "f" else 0, dtype)
    for n, (_, order) in places.items():
        chosen = np.flatnonzero(defined & (sizes == n))
        values[..., chosen] = statistic.of_places(np.stack([found[line] for line in chosen], axis=1)[order], n)
    return values.reshape((*statistic.shape, *rest))


def _weighted(
    x: Distributed,
    lines: Sequence[Array],
    masses: Distributed,
    statistic: _Statistic,
    modes: tuple[int, ...],
    defined: npt.NDArray[np.bool_],
    comm: Comm,
) -> Array:
    """The elements at fractions of the weight of each line, the smallest first, after a sample sort. Collective."""
    held = x.distribution.indices(x.comm.rank)
    places = np.ravel_multi_index(np.ix_(*[held[mode] for mode in modes]), [x.distribution.shape[m] for m in modes])
    fractions = np.asarray(statistic.fractions)
    values = np.full((fractions.size, len(lines)), np.nan if x.local.dtype.kind == "f" else 0, x.local.dtype)
    weights = _lines(masses.local, modes).reshape(len(lines), -1)
    for number, (line, mass) in enumerate(zip(lines, weights, strict=True)):
        if defined[number]:
            numbers = line == line
            elements, at, weight = (each.reshape(-1)[numbers] for each in (line, places, mass))
            values[:, number] = _at_weights(x, elements, at, weight, fractions.reshape(-1), comm, statistic.name)
    return values


def _at_weights(
    x: Distributed, values: Array, places: Ints, masses: Array, fractions: Array, comm: Comm, name: str
) -> Array:
    """The elements of one line at fractions of its weight."""
    order = sorting_order([values, places])
    values, places, masses = values[order], places[order], masses[order]
    ranks = SampleSort([values, places], comm)
    announce(x, ranks.received * (values.itemsize + 16), lambda: f"a sample sort over {comm.size} ranks", name)
    values, places, masses = ranks(values), ranks(places), ranks(masses.astype(np.float64, copy=False))
    order = sorting_order([values, places])
    values, masses = values[order], masses[order]
    # The running sum goes on from rank to rank, so that it is rounded as the sum of the whole line is.
    before = np.zeros(1)
    for rank in range(comm.size):
        total = before.copy()
        if rank == comm.rank:
            sums = np.cumsum(np.concatenate([before, masses]))[1:]
            total[:] = sums[-1:] if len(sums) else before
        comm.bcast_in_place(total, rank)
        before = total
    with np.errstate(all="ignore"):
        sums /= before
        sound = before / before == 1
    if not sound:
        raise ValueError("weights have a sum that is a number, and not zero")
    if fractions.dtype.kind == "f":
        sums = sums.astype(fractions.dtype)
    sums[sums == 0] = -1  # an element without weight is at no fraction, not at 0 either
    index = np.searchsorted(sums, fractions).astype(np.int64)
    comm.allreduce_in_place(index, "sum")
    start = sum(ranks.sizes[: comm.rank])
    index = index.clip(0, sum(ranks.sizes) - 1)
    order = np.argsort(index, kind="stable")
    here = index[order] - start
    (found,), _ = gathered_parts([values[here[(here >= 0) & (here < len(values))]]], comm)
    result = np.empty_like(found)
    result[order] = found
    return result
