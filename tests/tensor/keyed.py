"""Keys of NumPy's indexing and tensors to be indexed: picked by Hypothesis, or by a seeded generator under MPI."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import foreign
from cases import pick_grid, pick_layout, pick_shape

import rote
from rote import DistTensor
from rote.layout.distribution import Distribution
from rote.runtime import world


def pick_distribution(pick, ranks):
    """A layout of any kind on a shape and a grid of so many ranks."""
    grid, shape = pick_grid(pick, ranks), pick_shape(pick)
    return Distribution(pick_layout(pick, shape, grid), shape, rote.Grid(grid))


def pick_other(pick, dist, shape):
    """A distribution of another shape on the same grid."""
    return Distribution(pick_layout(pick, shape, dist.grid.shape), shape, dist.grid)


def numbered(shape, dtype="i8"):
    """An array that holds its own global index, from 1 on."""
    return np.arange(1, np.prod(shape, dtype=int) + 1).reshape(shape).astype(dtype)


def laid(array, dist, comm):
    """A tensor of an array that every rank has."""
    return DistTensor.from_global(array, dist.layout, comm, dist.grid)


def pick_slice(pick, n):
    ends = [None, 0, 1, n // 2, n, -1, -n, n + 2]
    return slice(pick(ends), pick(ends), pick([None, 1, 2, -1, -2, 3]))


def pick_key(pick, shape):
    """A key that fits a shape: integers, slices, dots, None, arrays and masks."""
    parts, mode = [], 0
    extents = pick([(), (3,), (2, 1), (0,), (1,)])
    while mode < len(shape):
        n = shape[mode]
        kind = pick(["slice", "whole", "int", "new", "array", "mask", "end"])
        if kind == "end":
            break
        if kind == "slice":
            parts.append(pick_slice(pick, n))
        elif kind == "whole":
            parts.append(slice(None))
        elif kind == "int" and n:
            parts.append(pick([0, n - 1, -n]))
        elif kind == "new":
            parts.append(None)
            continue
        elif kind == "array" and (n or 0 in extents):
            indices = np.array([pick([0, n - 1, -1, n // 2]) for _ in range(int(np.prod(extents)))], int)
            parts.append(pick([np.asarray, foreign.WithArray])(indices.reshape(extents)))
        elif kind == "mask" and len(extents) < 2:
            mask = np.zeros(n, bool)
            mask[: int(np.prod(extents))] = True
            parts.append(pick([np.asarray, foreign.WithArray])(mask))
        else:
            parts.append(slice(None))
        mode += 1
    if pick([True, False]):
        parts.insert(pick(range(len(parts) + 1)), ...)
        return tuple(parts)
    return tuple(parts) if len(parts) != 1 or pick([True, False]) else parts[0]


def check_read(comm, dist, key):
    """A tensor at a key is the array at that key, in the same order, of the same dtype."""
    array = numbered(dist.shape)
    try:
        want = array[key]
    except (IndexError, DeprecationWarning):  # NumPy before 2.3 only warns of an index outside an empty mode
        refused(comm, IndexError, lambda: laid(array, dist, comm)[key])
        return
    x = laid(array, dist, comm)[key]
    assert x.dtype == want.dtype
    np.testing.assert_array_equal(x.to_global(), want, strict=True)


def check_assigned(comm, dist, key, value, value_dist=None):
    """An assignment leaves what NumPy leaves, on every rank, replicas too."""
    array = numbered(dist.shape)
    want = array.copy()
    given = value if value_dist is None else laid(value, value_dist, comm)
    x = laid(array, dist, comm)
    try:
        want[key] = np.asarray(value)
    except (IndexError, ValueError, DeprecationWarning) as error:
        error_type = IndexError if isinstance(error, DeprecationWarning) else type(error)
        refused(comm, error_type, lambda: x.__setitem__(key, given))
        want = array
    else:
        x[key] = given
    np.testing.assert_array_equal(x.to_global(), want, strict=True)
    if dist.layout.view is None and not dist.partial and dist.holds(comm.rank):
        np.testing.assert_array_equal(x.local, want[np.ix_(*dist.indices(comm.rank))] if dist.shape else want)


def refused(comm, error, call):
    """A call raises an error of one type on all ranks."""
    try:
        call()
    except error:
        return
    raise AssertionError(f"{error} is not raised")


def check_own(comm):
    """Elements that only shift, by keys, assignments and joins, are the call's own; another layout is implicit."""
    rows, across = "block[(0),()]", "block[(),(0)]"
    array = np.arange(48.0).reshape(6, 8)
    x = DistTensor.from_global(array, rows, comm)
    columns = DistTensor.from_global(array, across, comm)
    with rote.trace() as moves, rote.config(implicit="error"):
        assert float(x[3, 4]) == 28 and x[:, 2].to_global()[5] == 42
        np.testing.assert_array_equal(x[1:].to_global(), array[1:])
        np.testing.assert_array_equal(x[[5, 0]].to_global(), array[[5, 0]])
        np.testing.assert_array_equal(x[x > 20].to_global(), array[array > 20])
        np.testing.assert_array_equal(np.diff(x, axis=0).to_global(), np.diff(array, axis=0))
        np.testing.assert_array_equal(np.concatenate([x, x[:2]]).to_global(), np.concatenate([array, array[:2]]))
        y = x.copy()
        y[1:] = x[:-1]
        y[0] = 0
        np.testing.assert_array_equal(y.to_global()[1:], array[:-1])
        x.halo(1)
        rote.fft.ifftn(rote.fft.fftn(x))
        assert not any(move.implicit for move in moves) and bool(moves) == (comm.size > 1)
        if comm.size > 1:
            refused(comm, rote.LayoutError, lambda: y.__setitem__(..., columns))
            refused(comm, rote.LayoutError, lambda: np.concatenate([x, columns]))
        y[...] = columns.redistribute(rows)
        np.concatenate([x, columns.redistribute(rows)])


def pick_value(pick, dist, shape):
    """A value that broadcasts to a shape, and where it lies if it is a tensor."""
    own = tuple(pick([n, n, 1]) for n in shape[pick(range(len(shape) + 1)) :])
    value = -numbered(own)
    if pick([True, False]):
        return value, pick_other(pick, dist, own)
    return pick([np.asarray, foreign.WithArray])(value), None


def main() -> None:
    """Read and assign at some keys on the ranks of MPI."""
    comm = world()
    pick = random.Random(comm.size).choice
    with rote.config(implicit="allow"):
        for _ in range(8):
            dist = pick_distribution(pick, comm.size)
            key = pick_key(pick, dist.shape)
            check_read(comm, dist, key)
            if dist.partial:
                continue
            try:
                shape = numbered(dist.shape)[key].shape
            except IndexError:
                shape = ()
            check_assigned(comm, dist, key, *pick_value(pick, dist, shape))
    check_own(comm)
    if comm.rank == 0:
        print("keyed")
