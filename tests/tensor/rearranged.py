"""Calls of NumPy's functions that move elements to other indices, sort, scan and select: picked by a shape.

Each call takes an array or a tensor, for NumPy hands it to the tensor. Run as a program, `python rearranged.py`, it
reads and assigns at some keys and makes every call on the ranks of MPI, and prints two lines.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import keyed

import rote
from rote import DistTensor
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
    return lambda x: (np.transpose(x, axes), np.swapaxes(x, 0, -1), np.moveaxis(x, 0, -1), x.T)


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
    mode = pick(["constant", "edge", "wrap", "reflect", "symmetric"] if 0 not in shape else ["constant"])
    widths = [(pick([0, 1, 3]), pick([0, 2])) for _ in shape]
    options = {"constant_values": 7} if mode == "constant" else {}
    return lambda x: np.pad(x, widths, mode, **options)


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
    return lambda x: (np.searchsorted(edges, x), np.digitize(x, edges), np.isin(x, edges))


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


CALLS = [
    *(reshape, merge, transpose, expand, squeeze, flip, roll, tile, repeat, pad, broadcast, concat, stack, unstack),
    *(split, sort, search, searched, take, take_along, scan, difference, unique, unique_nan, select, count),
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
            check_call(comm, *pick_case(pick, comm.size, call))
    if comm.rank == 0:
        print("rearranged")


if __name__ == "__main__":
    main()
