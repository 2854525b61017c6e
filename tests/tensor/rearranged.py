"""Calls of NumPy's functions that move elements to other indices, sort, scan and select: picked by a shape.

Each call takes an array or a tensor, for NumPy hands it to the tensor. Run as a program, `python rearranged.py`, it
reads and assigns at some keys and makes every call on the ranks of MPI, and prints two lines.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import keyed

import rote
from rote import DistTensor
from rote.errors import LayoutError
from rote.runtime import world


def _axis(pick, shape):
    return pick(range(-len(shape), len(shape)))


def _factors(pick, number):
    """A shape of so many elements."""
    if number == 0:
        return pick([(0,), (3, 0), (0, 2, 1)])
    shape = []
    while number > 1 and pick([True, True, False]):
        shape.append(pick([n for n in range(1, number + 1) if number % n == 0]))
        number //= shape[-1]
    return (*shape, number, *pick([(), (1,)]))


def reshape(pick, shape):
    new = _factors(pick, int(np.prod(shape)))
    return lambda x: np.reshape(x, new)


def merge(pick, shape):
    k = pick(range(len(shape)))
    new = (*shape[:k], int(np.prod(shape[k : k + 2])), *shape[k + 2 :])
    return lambda x: np.reshape(x, new)


def transpose(pick, shape):
    axes = list(range(len(shape)))
    random.Random(pick(range(20))).shuffle(axes)
    return lambda x: (
        *(np.transpose(x, axes), np.swapaxes(x, 0, -1), np.moveaxis(x, 0, -1), x.T),
        np.einsum("i...->...i", x),
        np.einsum(x, axes),
    )


def expand(pick, shape):
    axis = pick(range(-len(shape) - 1, len(shape) + 1))
    return lambda x: np.expand_dims(x, axis)


def squeeze(pick, shape):
    return lambda x: np.squeeze(x)


def flip(pick, shape):
    axis = pick([None, _axis(pick, shape)])
    return lambda x: np.flip(x, axis)


def roll(pick, shape):
    by, axis = pick([1, -2, 7]), pick([None, _axis(pick, shape), tuple(range(len(shape)))])
    return lambda x: np.roll(x, by, axis)


def tile(pick, shape):
    numbers = pick([2, (3,), (1, 2), (2, 1, 1), (0,)])
    return lambda x: np.tile(x, numbers)


def repeat(pick, shape):
    axis = _axis(pick, shape)
    repeats = pick([2, 0, np.arange(shape[axis]) % 3])
    return lambda x: np.repeat(x, repeats, axis)


def pad(pick, shape):
    modes = ["constant", "edge", "wrap", "reflect", "symmetric", "odd", "mean", "maximum", "minimum", "linear_ramp"]
    mode = pick(modes if 0 not in shape else ["constant"])
    widths = [(pick([0, 1, 3]), pick([0, 2])) for _ in shape]
    options = {
        "constant": {"constant_values": pick([7, (7, 8), [(2 * m, 2 * m + 1) for m in range(len(shape))]])},
        "odd": {"reflect_type": "odd"},
        "maximum": {"stat_length": pick([None, 2, (1, 3)])},
        "linear_ramp": {"end_values": pick([0, (1, -1)])},
    }.get(mode, {})
    return lambda x: np.pad(x, widths, "reflect" if mode == "odd" else mode, **options)


def windows(pick, shape):
    axis = pick([None, _axis(pick, shape), (0, 0)])
    extents = [min(pick([0, 1, 2, 3]), n) for n in (shape if axis is None else [shape[0]])]
    if axis == (0, 0):
        extents = [min(1, shape[0])] * 2
    elif axis is not None:
        extents = min(2, shape[axis])
    view = np.lib.stride_tricks.sliding_window_view
    return lambda x: (view(x, extents, axis), view(x * 1.5, extents, axis).sum(-1))


def gradient(pick, shape):
    """Along modes that are long enough; of none, the array itself."""
    order = pick([1, 2])
    axes = [mode for mode, n in enumerate(shape) if n > order]
    points = np.arange(max(shape, default=0)) ** 2 * 0.5
    if not axes:
        return lambda x: x
    spacing = pick([(), (0.5,), [points[: shape[mode]] for mode in axes], [np.arange(shape[mode]) for mode in axes]])
    return lambda x: np.gradient(x, *spacing, axis=axes, edge_order=order)


def without_nan(pick, shape):
    """Of an array with NaNs but no slice of them alone: 3 divides one of three neighbours."""
    axis = pick([None, _axis(pick, shape)])
    alone = 0 in shape or (np.where(np.arange(np.prod(shape)).reshape(shape) % 3 == 0, 0, 1).max(axis) == 0).any()
    names = ("nancumsum", "nancumprod", *(() if alone else ("nanargmax", "nanargmin")))
    return lambda x: [getattr(np, name)(np.where(x % 3 == 0, np.nan, x % 7), axis) for name in names]


def unravel(pick, shape):
    order = pick(["C", "F"])
    return lambda x: np.unravel_index(x, (3, int(np.prod(shape)) + 1), order)


def broadcast(pick, shape):
    new = (*pick([(), (2,), (0, 1)]), *[pick([n, 3]) if n == 1 else n for n in shape])
    return lambda x: np.broadcast_to(x, new)


def concat(pick, shape):
    axis = pick([None, _axis(pick, shape)])
    return lambda x: np.concatenate([x, x[1:] if axis in (0, None) else x, -x], axis)


def stack(pick, shape):
    axis = pick(range(len(shape) + 1))
    return lambda x: (np.stack([x, x + 1], axis), np.vstack([x, x]), np.hstack([x, x]), np.dstack([x, x]))


def unstack(pick, shape):
    axis = _axis(pick, shape)
    return lambda x: np.unstack(x, axis=axis)


def split(pick, shape):
    axis = _axis(pick, shape)
    return lambda x: (*np.array_split(x, 3, axis), *np.split(x, [1, 2], axis))


def sort(pick, shape):
    axis = pick([None, _axis(pick, shape)])
    return lambda x: (np.sort(-x % 5, axis), np.argsort(-x % 5, axis, kind="stable"))


def search(pick, shape):
    edges = np.array([2, 5, 5, 9])
    return lambda x: (np.searchsorted(edges, x), np.digitize(x, edges), np.isin(x, edges, kind="sort"))


def searched(pick, shape):
    return lambda x: np.searchsorted(np.ravel(x), np.ravel(x)[::2] + 1, "right")


def take(pick, shape):
    axis = _axis(pick, shape)
    indices = np.array([0, -1, 0, shape[axis] // 2] if shape[axis] else [], int)
    return lambda x: np.take(x, indices, axis)


def take_along(pick, shape):
    axis = _axis(pick, shape)
    return lambda x: np.take_along_axis(x, np.argsort(-x % 7, axis, kind="stable"), axis)


def scan(pick, shape):
    axis = _axis(pick, shape)
    return lambda x: (
        np.cumsum(x, axis),
        np.cumprod(x % 3, axis),
        np.cumulative_sum(x, axis=axis, include_initial=True),
    )


def difference(pick, shape):
    axis, n = _axis(pick, shape), pick([0, 1, 2])
    return lambda x: (np.diff(x, n, axis), np.diff(x, 1, axis, prepend=3, append=x))


def unique(pick, shape):
    return lambda x: (*np.unique_all(x % 7), *np.unique(x % 5, return_counts=True), *np.unique_inverse(x / 2))


def unique_nan(pick, shape):
    return lambda x: (*np.unique_all(np.where(x % 3 == 0, np.nan, x)), np.unique(np.where(x % 3 == 0, np.nan, x)))


def select(pick, shape):
    return lambda x: (*np.nonzero(x % 3), np.argwhere(x % 4 == 1), np.flatnonzero(x % 2), x[x % 3 == 1])


def count(pick, shape):
    return lambda x: (np.bincount(np.ravel(x % 5)), np.bincount(np.ravel(x), np.ravel(-x)), *np.histogram(x, 4, (0, 9)))


def diagonal(pick, shape):
    return lambda x: (
        np.diagonal(x[None]),
        x[..., None].diagonal(0, 0, -1),
        np.linalg.matrix_transpose(x[None]),
        x[None].mT,
    )


def parts(pick, shape):
    key = keyed.pick_key(pick, shape)
    try:
        np.empty(shape)[key]
    except IndexError:  # dots in front of a part lead it to another mode
        key = ...
    return lambda x: (x[key], x[..., ::-1][:1], x.T[None].ravel(), np.flip(x).reshape(-1), x.flatten(), *x)


CALLS = [
    *(reshape, merge, transpose, expand, squeeze, flip, roll, tile, repeat, pad, broadcast, concat, stack, unstack),
    *(diagonal, parts),
    *(split, sort, search, searched, take, take_along, scan, difference, unique, unique_nan, select, count),
    *(windows, gradient, without_nan, unravel),
]


def check_call(comm, dist, call, dtype="i8"):
    """A call on a tensor gives what it gives on the array: values, order, dtype; and leaves the tensor as it was."""
    array = keyed.numbered(dist.shape, dtype)
    x = keyed.laid(array, dist, comm)
    results, wanted = call(x), call(array)
    if not isinstance(wanted, tuple | list):
        results, wanted = [results], [wanted]
    assert len(results) == len(wanted)
    for result, want in zip(results, wanted, strict=True):
        assert isinstance(result, DistTensor), result
        np.testing.assert_array_equal(result.to_global(), want, strict=True)
    np.testing.assert_array_equal(x.to_global(), array, strict=True)


COPIES = [
    *(lambda x: np.take(x, 0, axis=-1), lambda x: x.take(0, 0), lambda x: np.roll(x, 0), lambda x: np.pad(x, 0)),
    *(
        lambda x: np.tile(x, 1),
        lambda x: np.repeat(x, 1, axis=0),
        lambda x: np.concatenate([x]),
        lambda x: np.stack([x]),
    ),
    *(lambda x: np.sum(x, axis=()), lambda x: np.max(x[:1], axis=0), lambda x: np.sort(x[:1], axis=0), lambda x: +x),
    *(lambda x: np.median(x[:1], axis=0), lambda x: np.cumsum(x[:1], axis=0), lambda x: np.where(True, x, x)),
    *(
        lambda x: x.astype("i8"),
        lambda x: x.flatten(),
        lambda x: x[True],
        lambda x: np.diff(x, 0),
        lambda x: x.squeeze(),
    ),
]
"""Calls that change little or nothing, of which NumPy's give copies all the same; but for the last two."""


def check_writes(comm, dist, call):
    """What is written into the result of a call is in the tensor if NumPy's is a view, or it raises as NumPy does.

    The result has its new values, too; and after a change of the tensor those of NumPy, or it raises.
    """
    try:
        wanted = call(keyed.numbered(dist.shape))
    except IndexError:  # two masks of a key may take different numbers of elements
        return
    for number in range(len(wanted) if isinstance(wanted, tuple | list) else 1):
        array = keyed.numbered(dist.shape)
        x = keyed.laid(array, dist, comm)
        result, want = call(x), call(array)
        if isinstance(wanted, tuple | list):
            result, want = result[number], want[number]
        try:
            want = _written(want, array)
        except ValueError:  # read-only, where views of arrays as NumPy has them are
            with pytest.raises(ValueError, match="read-only"):
                _written(result, x)
            result = None
        else:
            result = _written(result, x)
        np.testing.assert_array_equal(x.to_global(), array, strict=True)
        if result is None:
            continue
        np.testing.assert_array_equal(result.to_global(), want, strict=True)
        if not isinstance(want, np.ndarray) or result._sharing is None:
            assert result.local.flags.writeable, "a tensor of its own"
        x *= 3
        array *= 3
        try:
            np.testing.assert_array_equal(result.to_global(), want, strict=True)
        except LayoutError as error:
            assert "after the tensor has changed" in str(error)


def _written(y, x):
    """Write in every way, with values of its own and of the tensor."""
    if y.dtype == bool:
        return np.logical_not(y, out=y)
    y += 1
    if y.shape and y.dtype.kind == x.dtype.kind:
        y[...] = y + 2
        y[:1] -= 4
        np.multiply(y, 2, out=y)
        np.copyto(y, 7, where=y > 20)
        y.sort(axis=0)
    return y


def pick_case(pick, ranks, call):
    """A distribution of order 1 or more, and a call of its shape."""
    dist = keyed.pick_distribution(pick, ranks)
    while not dist.shape:
        dist = keyed.pick_distribution(pick, ranks)
    return dist, call(pick, dist.shape)


def main() -> None:
    keyed.main()
    comm = world()
    pick = random.Random(comm.size).choice
    with rote.config(implicit="allow"):
        for call in CALLS:
            dist, function = pick_case(pick, comm.size, call)
            check_call(comm, dist, function)
            if not dist.partial:
                check_writes(comm, dist, function)
    if comm.rank == 0:
        print("rearranged")


if __name__ == "__main__":
    main()
