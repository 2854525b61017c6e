"""Medians, quantiles and percentiles: by NumPy if lines are whole on ranks, else of elements found by counting.

A line is all elements that one value is computed from. If ranks cannot hold whole lines, a quantile still needs only
a few of the sorted elements, at known places. These are found by counting: no rank sorts or receives a whole line. In
each round the ranks exchange a few elements, the pivots, and count how many elements lie below each. A place is then at
a pivot, or between two neighbouring pivots, and only the elements between these go on:

    below          pivot     between, kept      pivot          above
    ---------------|=========|---- place ----|==============|-----------

The first round takes its pivots from a sample around each place (Floyd and Rivest 1975), so that a few per cent of the
elements are left. The next rounds work on what is left, sorted on each rank. They also count at a weighted median of
the ranks' medians, which drops a quarter of the elements at least. The last few are gathered.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from ..layout.layout import Layout
from ..runtime.comm.agreement import collective_errors, gathered
from ..runtime.comm.protocol import Comm
from ..runtime.exchange.messages import sub_comm
from . import reductions
from .alignment import plain, whole_along
from .distributed import Array, Distributed, Ints
from .elementwise import elementwise
from .indexing import known
from .moves import agree_on_call, record_move
from .rearranging import expand_dims
from .reductions import Axis, finished, unordered
from .rules import NAN_WITH_WARNING, Member, family, without_nans
from .sorting import SampleSort, has_room, sorting_order
from .statistics import weights_along, weights_of

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile", "selected"]

Modes = tuple[int, ...]


_SAMPLES = 4096  # elements of all lines that the ranks exchange in a round
_FEW = 4096  # elements of all lines that are gathered
_MOST_PLACES = 32  # in more places the first round costs more than to sort the block
_CHUNK = 1 << 15  # elements that are compared at once: their masks stay in cache, and cost no memory


class _Statistic(NamedTuple):
    """A statistic of lines of elements, computed from whole lines or from elements at places of the sorted ones."""

    member: Member
    shape: tuple[int, ...]  # of its values of one line, before the modes of the lines
    of_lines: Callable[..., Any]  # from a block, the mode along which the lines run, and options of NumPy's function
    places: Callable[[int], Array]  # from the length of a line, the places that it needs, in any order
    of_places: Callable[[Array, int], Any]  # its values, from the elements there, along mode 0, and that length
    fractions: Array | None = None  # of the weight of all elements, that quantiles with weights are at


def _median(
    member: Member,
    a: Distributed,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    keepdims: Any = False,
) -> Any:
    def middle(n: int) -> Array:
        return np.unique([(n - 1) // 2, n // 2])

    statistic = _Statistic(member, (), getattr(np, member.name), middle, lambda values, n: np.mean(values, 0))
    return _of_lines(a, statistic, axis, None, out, keepdims)


@family("selected", _median, Member("median"), np.median)
def median() -> None:
    """The median along some modes, or of all: the middle element, or the mean of the middle two. Collective.

    Parameters
    ----------
    a : DistTensor
        The tensor.
    axis : int | tuple[int, ...], optional
        The modes, all of them if None.
    out : DistTensor, optional
        A tensor for the result.
    overwrite_input : bool, default False
        Has no effect; the tensor stays as it is.
    keepdims : bool, default False
        Whether these modes stay, with extent 1.

    Raises
    ------
    TypeError
        The elements are complex.
    AxisError, ValueError
        There is no such mode, or one is named twice.

    Examples
    --------
    >>> import numpy as np, rote
    >>> x = rote.DistTensor.from_global([[1.0, 9.0, 2.0], [4.0, 3.0, 8.0]], "block[(0),()]")
    >>> np.median(x, axis=1).to_global()
    array([2., 4.])
    """


nanmedian: Final = without_nans("selected", _median, Member("nanmedian"), 2.0, NAN_WITH_WARNING)


def _quantile(
    member: Member,
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
    return _of_lines(a, _quantiles(member, a, q, method, weights), axis, weights, out, keepdims)


@family("selected", _quantile, Member("quantile"), np.quantile)
def quantile() -> None:
    """Quantiles of the elements along some modes, or of all, with the bits of `numpy.quantile`. Collective.

    If ranks can hold whole lines, each calls `numpy.quantile`. Otherwise they find the elements that it needs by
    counting, in a few rounds of messages of some thousand numbers. With weights, elements are sorted over the ranks.

    Parameters
    ----------
    q : array_like
        A number from 0 to 1, a fraction, or an array of them, whose modes are the first of the result.
    axis : int | tuple[int, ...], optional
        As for `median`.
    out : DistTensor, optional
        As for `median`.
    overwrite_input : bool, default False
        As for `median`.
    method : str, default 'linear'
        A method of `numpy.quantile`.
    keepdims : bool, default False
        As for `median`.
    weights : array_like, optional
        Of the tensor's shape, or of the extents along `axis`; only with the method "inverted_cdf".

    Returns
    -------
    DistTensor
        A tensor with the modes of `q`, which are whole, before those that stay.

    Raises
    ------
    TypeError
        The elements are complex; or they are bool, and the method interpolates.
    ValueError
        A number is not from 0 to 1, there is no such method, or weights are negative or all zero.

    Examples
    --------
    >>> import numpy as np, rote
    >>> x = rote.DistTensor.from_global([5.0, 1.0, 2.0, 4.0], "block[(0)]")
    >>> np.quantile(x, [0.5, 1]).to_global()
    array([3., 5.])
    """


@family("selected", _quantile, Member("percentile"), np.percentile)
def percentile() -> None:
    """The quantiles with q in percent, from 0 to 100. Collective; arguments and errors as for `quantile`.

    Examples
    --------
    >>> import numpy as np, rote.array_api as xp
    >>> xp.percentile(xp.asarray([1.0, 3.0, 2.0]), 75).to_global().tolist()
    2.5
    """


nanquantile: Final = without_nans("selected", _quantile, Member("nanquantile"), 2.5, NAN_WITH_WARNING, more=", 0.75")
nanpercentile: Final = without_nans("selected", _quantile, Member("nanpercentile"), 2.5, NAN_WITH_WARNING, more=", 75")


# --- the places of quantiles -----------------------------------------------------------------------------------------


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


def _quantiles(member: Member, a: Distributed, q: Any, method: str, weights: Any) -> _Statistic:
    """Quantiles by NumPy's function of this name, which checks q, the method and dtypes on a line of one element."""
    function, q, element = getattr(np, member.name), known(q), a.local.dtype
    if not isinstance(q, int | float) and np.asarray(q).dtype == object:
        q = np.asarray(q, np.float64)  # fractions
    if element.kind != "c" and 0 not in a.distribution.shape:
        function(np.ones(1, element), q, method=method, weights=None if weights is None else np.ones(1))

    percent = function in (np.percentile, np.nanpercentile)
    fractions, leave_dtype = _fractions(q, element, percent)

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
        return below, above, float(part) if leave_dtype else part.astype(place.dtype)

    def places(n: int) -> Array:
        below, above, _ = between(n)
        return np.concatenate([place.ravel() for place in (below, above) if place is not None]).astype(np.int64) % n

    def of_places(values: Array, n: int) -> Any:
        below, _, part = between(n)
        if part is None:
            return values.reshape(*below.shape, *values.shape[1:])
        low, high = values.reshape(2, *below.shape, *values.shape[1:])
        return _lerp(low, high, part if leave_dtype else part.reshape(*part.shape, *[1] * (values.ndim - 1)))

    def of_lines(block: Array, mode: int, **options: Any) -> Any:
        return function(block, q, mode, method=method, **options)

    return _Statistic(member, np.shape(q), of_lines, places, of_places, None if weights is None else fractions)


def _fractions(q: Any, dtype: np.dtype[Any], percent: bool) -> tuple[Array, bool]:
    """The fractions that NumPy computes with for an argument q, and whether they leave the dtype of the elements."""
    single = dtype.kind == "f" and not _FRACTIONS_ARE_DOUBLES
    leave_dtype = type(q) in (int, float) and _FRACTIONS_ARE_DOUBLES
    if percent:
        return np.asarray(np.true_divide(q, dtype.type(100) if single else 100)), leave_dtype
    return np.asarray(q, dtype if single and isinstance(q, int | float) else None), leave_dtype


# Whether the NumPy that is installed computes places in double precision for elements of any precision.
_FRACTIONS_ARE_DOUBLES = bool(np.quantile((np.arange(2049) > 682).astype(np.float16), 0.33333) > 0.6)


def _lerp(low: Array, high: Array, part: Any) -> Array:
    """Interpolate linearly between two elements, from the nearer one, in the order of operations that NumPy has."""
    step = np.subtract(high, low)
    values = np.asarray(low + step * part)
    np.subtract(high, step * (1 - part), out=values, where=part >= 0.5, casting="unsafe", dtype=values.dtype)
    return values


# --- values of lines ----------------------------------------------------------------------------------------------


def _of_lines(a: Distributed, statistic: _Statistic, axis: Axis, weights: Any, out: Any, keepdims: Any) -> Any:
    """A statistic of the elements along some modes; it keeps the layout that the other modes then have."""
    name, shape = statistic.member.name, a.distribution.shape
    if a.local.dtype.kind == "c":
        raise unordered(f"numpy.{name}")
    modes = normalize_axis_tuple(range(len(shape)) if axis is None else axis, len(shape))
    others = [mode for mode in range(len(shape)) if mode not in modes]

    x = plain(a, name)
    if has_room(x.distribution, modes):
        x = whole_along(x, modes, name)
    dist = x.distribution
    masses = None if weights is None else _weights(x, weights, axis, modes, name)

    if any(dist.splits[mode] for mode in modes):
        values = _across(x, masses, statistic, modes)
    else:
        block = _lines(x.local, modes)
        options = {} if masses is None else {"weights": _lines(masses.local, modes)}
        # NumPy may sort it in place, which saves a copy. Memory without elements is never shared, but may be read-only.
        free = block.flags.writeable and not np.may_share_memory(block, a.local)
        with collective_errors(x.comm) if 0 in shape or options else nullcontext():
            if block.size or 0 in shape:
                values = np.asarray(statistic.of_lines(block, block.ndim - 1, overwrite_input=free, **options))
            else:  # this rank has no line
                values = np.empty((*statistic.shape, *block.shape[:-1]), _dtype(statistic, block))

    # The modes of `q` come first, then those that stay, in the layout that they have.
    added = values.ndim - len(others)
    layout = Layout((*[()] * added, *[dist.layout.modes[mode] for mode in others]))
    extents = (*values.shape[:added], *[shape[mode] for mode in others])
    result: Any = x._on(np.asarray(values, order="C"), layout.on(extents, dist.grid))
    if keepdims and modes:
        result = expand_dims(result, tuple([added + mode for mode in modes]))
    return result if out is None else finished(name, result, out)


def _dtype(statistic: _Statistic, block: Array) -> np.dtype[Any]:
    """The dtype of the values of lines with the elements of a block."""
    return np.asarray(statistic.of_lines(np.ones(1, block.dtype), 0)).dtype


def _lines(block: Array, modes: Modes) -> Array:
    """A block with some modes joined into one, the last; a view if these are one mode, or lie so in memory."""
    last = np.moveaxis(block, modes, range(-len(modes), 0))
    rest = last.shape[: block.ndim - len(modes)]
    return last.reshape((*rest, prod(last.shape[len(rest) :])))


def _weights(x: Distributed, weights: Any, axis: Axis, modes: Modes, name: str) -> Distributed:
    """The weight of each element, in the layout of a plain tensor; checked as by NumPy, on all ranks."""
    shape = x.distribution.shape
    if np.shape(weights) != shape:
        weights = np.broadcast_to(weights_along(known(weights), shape, axis, modes), shape)
    masses = weights_of(weights, x, name)
    if reductions.any(elementwise(name, np.less, (masses, 0), {})):
        raise ValueError("weights are not negative")
    return masses


def _across(x: Distributed, masses: Distributed | None, statistic: _Statistic, modes: Modes) -> Array:
    """The values for this rank's part of the lines, which several ranks hold. Collective."""
    dist, block, member = x.distribution, x.local, statistic.member
    agree_on_call(x.comm)
    across = {split.grid_mode for mode in modes for split in dist.splits[mode]}
    comm = sub_comm(x.comm, dist.grid, tuple(sorted(across)))

    blocks = _lines(block, modes)
    rest = blocks.shape[:-1]
    lines = list(blocks.reshape(prod(rest), blocks.shape[-1]))

    undefined = np.zeros(len(lines), np.int64)  # NaNs
    if block.dtype.kind == "f":
        undefined[:] = [sum(np.count_nonzero(chunk != chunk) for chunk in _chunks(line)) for line in lines]
        comm.allreduce_in_place(undefined, "sum")
    sizes = prod([dist.shape[mode] for mode in modes]) - undefined
    if member.skips_nan and 0 in sizes:
        warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=6)
    defined = sizes > 0 if member.skips_nan else undefined == 0

    if masses is not None:
        weights, chosen = _lines(masses.local, modes).reshape(len(lines), -1), np.flatnonzero(defined)
        with collective_errors(x.comm):  # of weights whose sum is no number
            if not member.skips_nan and not defined.all():  # as NumPy does where the value is NaN, whatever they are
                sums = weights.sum(axis=1, dtype=np.float64)
                comm.allreduce_in_place(sums, "sum")
                _check_sums(sums[~defined])
            return _weighted(x, lines, weights, statistic, modes, chosen, comm).reshape((*statistic.shape, *rest))

    # Lines of one length need elements at the same places. With NaNs in them, lines have many lengths.
    places = {n: np.unique(statistic.places(n), return_inverse=True) for n in np.unique(sizes[defined]).tolist()}
    needed = [places[n][0] if some else np.empty(0, np.int64) for n, some in zip(sizes.tolist(), defined, strict=True)]
    elements, nbytes = selected(lines, sizes.tolist(), needed, comm)
    record_move(x, nbytes + undefined.nbytes, lambda: f"a selection by counting over {comm.size} ranks", member.name)

    undefined_only = member.skips_nan and len(modes) == block.ndim and not defined.any()
    dtype = block.dtype if undefined_only else _dtype(statistic, block)  # as of NumPy, for one line of NaNs
    values = np.full((*statistic.shape, len(lines)), np.nan if dtype.kind == "f" else 0, dtype)
    for n, (_, order) in places.items():
        chosen = np.flatnonzero(defined & (sizes == n))
        values[..., chosen] = statistic.of_places(np.stack([elements[line] for line in chosen], axis=1)[order], n)
    return values.reshape((*statistic.shape, *rest))


def _weighted(
    x: Distributed, lines: list[Array], weights: Array, statistic: _Statistic, modes: Modes, chosen: Ints, comm: Comm
) -> Array:
    """The elements at fractions of the weight of the chosen lines, the smallest first. Collective."""
    indices = x.distribution.indices(x.comm.rank)
    places = np.ravel_multi_index(np.ix_(*[indices[mode] for mode in modes]), [x.distribution.shape[m] for m in modes])
    fractions = np.asarray(statistic.fractions).reshape(-1)
    values = np.full((fractions.size, len(lines)), np.nan if x.local.dtype.kind == "f" else 0, x.local.dtype)
    for number in chosen.tolist():
        numbers = lines[number] == lines[number]
        rows = [row.reshape(-1)[numbers] for row in (lines[number], places, weights[number])]
        values[:, number] = _at_weights(x, rows, fractions, comm, statistic.member.name)
    return values


def _check_sums(sums: Array) -> None:
    """Refuse weights of lines by their sums.

    Raises:
        ValueError: a sum is zero, infinite or NaN.
    """
    if not np.isfinite(sums).all() or not sums.all():
        raise ValueError("weights have a sum that is a number, and not zero")


def _at_weights(x: Distributed, rows: Sequence[Array], fractions: Array, comm: Comm, name: str) -> Array:
    """The elements of one line at fractions of its weight; a row has values, their places or their weights."""
    order = sorting_order(rows[:2])
    values, places, masses = (row[order] for row in rows)
    ranks = SampleSort([values, places], comm)
    record_move(x, ranks.received * (values.itemsize + 16), lambda: f"a sample sort over {comm.size} ranks", name)
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

    # `before` is the sum of all now. All ranks have it, so all refuse it.
    _check_sums(before)
    sums /= before

    if fractions.dtype.kind == "f":
        sums = sums.astype(fractions.dtype)
    sums[sums == 0] = -1  # an element without weight is at no fraction, not at 0 either
    index = np.searchsorted(sums, fractions).astype(np.int64)
    comm.allreduce_in_place(index, "sum")
    index = index.clip(0, sum(ranks.sizes) - 1)

    # Runs ascend with the ranks: what they give in ascending order of the index is in that order when joined.
    order = np.argsort(index, kind="stable")
    here = index[order] - sum(ranks.sizes[: comm.rank])
    elements = np.concatenate(gathered(comm, name, values[here[(here >= 0) & (here < len(values))]]))
    result = np.empty_like(elements)
    result[order] = elements
    return result


# --- elements at places, by counting ------------------------------------------------------------------------------


class _Run(NamedTuple):
    """Some elements of one line, and the places wanted among them."""

    line: int
    values: Array  # this rank's
    size: int  # the number of elements, NaN apart, on all ranks
    places: Ints  # ascending, from 0 for the smallest of these elements
    results: Ints  # where the elements at these places go in the result of the line


@dataclass(slots=True)
class _Exchange:
    """What ranks tell each other during a selection."""

    comm: Comm
    nbytes: int = 0  # that each rank has received

    def joined(self, arrays: Sequence[Array]) -> list[Array]:
        """For each of several arrays, those of all ranks, joined. Collective."""
        of_ranks = gathered(self.comm, "selection", arrays)
        self.nbytes += sum(array.nbytes for of_rank in of_ranks for array in of_rank)
        return [np.concatenate(parts) for parts in zip(*of_ranks, strict=True)]


def selected(
    lines: Sequence[Array], sizes: Sequence[int], places: Sequence[Ints], comm: Comm
) -> tuple[list[Array], int]:
    """The elements at some places of each line in ascending order. Collective.

    A rank holds at most one copy of its elements beside them, and usually a tenth of one.

    Args:
        lines: this rank's elements of each line, in any order. NaNs are left out.
        sizes: per line, the number of elements that are not NaN, on all ranks.
        places: per line, places from 0 to its size - 1, in ascending order.

    Returns:
        Per line, the elements at its places; and the number of bytes that this rank received.
    """
    results = [np.empty(len(at), line.dtype) for line, at in zip(lines, places, strict=True)]
    runs: list[_Run] = []
    for number, (line, size, at) in enumerate(zip(lines, sizes, places, strict=True)):
        if len(at):
            runs.append(_Run(number, line, size, at, np.arange(len(at))))
    few, exchange = _FEW + 16 * len(runs), _Exchange(comm)

    # The first round takes elements as they lie; if its pivots would be too few, or too many, sort them first.
    total = sum(run.size for run in runs)
    if total > few:
        samples = min(_SAMPLES, total // 16) // len(runs)
        if samples >= 64 and max(len(run.places) for run in runs) <= _MOST_PLACES:
            runs = _narrowed(runs, _sampled(runs, samples, exchange), False, results, exchange)
        else:
            runs = [run._replace(values=_ascending(run.values)) for run in runs]

    while sum(run.size for run in runs) > few:
        runs = _narrowed(runs, _regular(runs, exchange), True, results, exchange)

    left = exchange.joined([_numbers(run.values) for run in runs])
    for run, values in zip(runs, left, strict=True):
        results[run.line][run.results] = np.sort(values)[run.places]
    return results, exchange.nbytes


def _chunks(values: Array) -> Iterator[Array]:
    """An array of one mode in pieces that stay in cache."""
    return (values[start : start + _CHUNK] for start in range(0, len(values), _CHUNK))


def _numbers(values: Array) -> Array:
    """The elements that are not NaN."""
    return values if values.dtype.kind != "f" else values[values == values]


def _ascending(values: Array) -> Array:
    """The elements that are not NaN, sorted."""
    copy = np.sort(values)
    return copy if copy.dtype.kind != "f" else copy[: np.searchsorted(copy, np.nan)]


def _sampled(runs: Sequence[_Run], number: int, exchange: _Exchange) -> list[Array]:
    """Two pivots around each place of each run, between which it lies with high probability."""
    drawn = []
    for run in runs:
        # Multiples of the golden ratio, modulo 1, are spread evenly and share no period with the data.
        at = np.arange(-(-len(run.values) * number // run.size)) * 0.6180339887498949 % 1
        drawn.append(_numbers(run.values[(at * len(run.values)).astype(np.int64)]))

    pivots = []
    for run, sample in zip(runs, exchange.joined(drawn), strict=True):
        sample.sort()
        fraction = (run.places + 0.5) / run.size
        margin = 3 * np.sqrt(fraction * (1 - fraction) * len(sample)) + 2  # three standard deviations, and a bit
        ends = np.concatenate([fraction * len(sample) - margin, fraction * len(sample) + margin]).astype(np.int64)
        pivots.append(np.unique(sample[ends[(ends >= 0) & (ends < len(sample))]]))
    return pivots


def _regular(runs: Sequence[_Run], exchange: _Exchange) -> list[Array]:
    """Pivots around each place of each run, and at its middle, from regular samples of the sorted values."""
    size = exchange.comm.size
    most = max(_SAMPLES // (size * len(runs)), 2)
    drawn, weights = [], []
    for run in runs:
        length = len(run.values)
        number = min(most, length)
        drawn.append(run.values[(2 * np.arange(number) + 1) * length // max(2 * number, 1)])
        weights.append(np.full(number, length / max(number, 1)))  # the elements that each sample stands for

    pivots = []
    for run, sample, span in zip(runs, exchange.joined(drawn), exchange.joined(weights), strict=True):
        order = np.argsort(sample, kind="stable")
        sample, span = sample[order], span[order]
        middles = np.cumsum(span) - span / 2  # where each sample is expected among the elements
        margin = min(size, 4 * np.sqrt(size)) * span.max() / 2 + 1
        around = [run.places - margin, run.places, run.places + margin, [run.size / 2]]
        near = np.searchsorted(middles, np.concatenate(around)).clip(0, len(sample) - 1)
        pivots.append(np.unique(sample[near]))
    return pivots


def _narrowed(
    runs: Sequence[_Run], pivots: Sequence[Array], ascending: bool, results: Sequence[Array], exchange: _Exchange
) -> list[_Run]:
    """Enter the pivots at which places are into the results; return the runs between pivots that have the others."""
    by_run = [_counts(run.values, cuts, ascending) for run, cuts in zip(runs, pivots, strict=True)]
    counts = np.concatenate(by_run, axis=1, dtype=np.int64)
    exchange.comm.allreduce_in_place(counts.reshape(-1), "sum")
    exchange.nbytes += counts.nbytes

    narrower: list[_Run] = []
    start = 0
    for run, cuts in zip(runs, pivots, strict=True):
        # Below a pivot, and up to it: of the cells between these bounds, every other one is the pivot itself.
        #
        #     cell      0   |   1   |   2   |   3   |   4
        #     elements  <p0    =p0   p0..p1    =p1    >p1
        bounds = counts[:, start : start + len(cuts)].T.reshape(-1)
        start += len(cuts)
        cells = np.searchsorted(bounds, run.places, "right")
        at = cells % 2 == 1
        results[run.line][run.results[at]] = cuts[cells[at] // 2]

        for cell in np.unique(cells[~at]).tolist():
            low = cuts[cell // 2 - 1] if cell else None
            high = cuts[cell // 2] if cell < len(bounds) else None
            before = int(bounds[cell - 1]) if cell else 0
            size = (int(bounds[cell]) if cell < len(bounds) else run.size) - before
            here = cells == cell
            values = _between(run.values, low, high, ascending)
            narrower.append(_Run(run.line, values, size, run.places[here] - before, run.results[here]))
    return narrower


def _counts(values: Array, pivots: Array, ascending: bool) -> Ints:
    """Of each pivot, how many elements are below it, and how many are not above it."""
    if ascending:
        return np.array([np.searchsorted(values, pivots, side) for side in ("left", "right")])
    counts = np.zeros((2, len(pivots)), np.int64)
    for chunk in _chunks(values):
        for number, pivot in enumerate(pivots):
            counts[0, number] += np.count_nonzero(chunk < pivot)
            counts[1, number] += np.count_nonzero(chunk <= pivot)
    return counts


def _between(values: Array, low: Any, high: Any, ascending: bool) -> Array:
    """The elements above a pivot and below another, in ascending order; None stands for no bound."""
    if ascending:
        first = 0 if low is None else int(np.searchsorted(values, low, "right"))
        return values[first : None if high is None else int(np.searchsorted(values, high))]
    parts = []
    for chunk in _chunks(values):
        chosen = chunk == chunk if low is None else chunk > low  # never NaN
        parts.append(chunk[chosen if high is None else chosen & (chunk < high)])
    between = np.concatenate(parts or [values[:0]])
    between.sort()
    return between
