"""Checks of ghost cells on any communicator, against brute force; imported by the tests and run under MPI as a program.

Nothing here is Rote's but the calls that are checked: where indices lie is read off `dist.indices`, which has laws of
its own, and everything else is NumPy on whole arrays.
"""

from __future__ import annotations

import sys

import numpy as np
from cases import factorings

import rote
from rote.grammar.nodes import Entry, Kind
from rote.layout.layout import Layout


def pick_case(rng, ranks):
    """A layout of blocks of any kind on a shape and a grid, widths and which modes are periodic."""
    order = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.choice([0, 1, 2, 3, 5, 8], order, p=[0.05, 0.15, 0.2, 0.2, 0.2, 0.2]))
    grids = factorings(ranks, int(rng.integers(1, 4)))
    grid = grids[rng.integers(len(grids))]
    modes, rooted = [()] * order, []
    for g in rng.permutation(len(grid)).tolist():
        role = rng.choice(["split", "replicated", "rooted"], p=[0.8, 0.1, 0.1])
        if role == "rooted":
            rooted.append((g, int(rng.integers(grid[g]))))
        elif role == "split":
            mode = int(rng.integers(order))
            kinds = [Kind("block"), Kind("ceil"), Kind("floor")]
            if not modes[mode] and grid[g] > 1:
                ends = np.sort(rng.integers(0, shape[mode] + 1, grid[g] - 1))
                kinds.append(Kind("block", tuple(np.diff([0, *ends, shape[mode]]).tolist())))
                kinds.append(Kind("cyclic", (max(1, -(-shape[mode] // grid[g])),), int(rng.integers(grid[g]))))
            modes[mode] += (Entry(g, kinds[rng.integers(len(kinds))]),)
    dist = Layout(tuple(modes), rooted=tuple(rooted)).on(shape, grid)
    widths = [tuple(rng.integers(0, 4, 2).tolist()) for _ in shape]
    if rng.random() < 0.1:
        widths[0] = (13, 17)
    return dist, widths, [bool(each) for each in rng.integers(0, 2, order)]


def padded_index(dist, rank, widths, periodic):
    """Where a rank's halo lies in the whole array with a rim of one, whose first rows stand for all that is outside."""
    lists = []
    for held, n, (low, high), around in zip(dist.indices(rank), dist.shape, widths, periodic, strict=True):
        index = np.arange(held[0] - low, held[-1] + high + 1) if len(held) else np.empty(0, np.int64)
        lists.append(1 + (index % n if around and n else np.where((index >= 0) & (index < n), index, -1)))
    return np.ix_(*lists)


def check_random(comm, seed, dtype):
    """One random case: halo, its plan and its transpose, twice, at the bytes that were promised."""
    rng = np.random.default_rng([seed, comm.size])
    dist, widths, periodic = pick_case(rng, comm.size)
    whole = rng.integers(-99, 99, dist.shape).astype(dtype)
    x = rote.DistTensor.from_global(whole, dist.layout, comm, dist.grid)
    plan = x.halo_plan(widths, periodic)
    plan.verify()
    index = padded_index(dist, comm.rank, widths, periodic)
    expected = np.pad(whole, 1, constant_values=7)[index]
    promised = [("halo", plan.cost.bytes, False)] * (plan.cost.bytes > 0)
    for out in (None, np.full(plan.shape(comm.rank), 3, dtype)):
        with rote.trace() as moves:
            halo = x.halo(widths, periodic, fill=7, out=out)
        assert out is None or halo is out
        assert halo.dtype == whole.dtype and np.array_equal(halo, expected), (dist, widths, periodic, comm.rank)
        assert [(move.cause, move.nbytes, move.implicit) for move in moves] == promised
    check_transpose(comm, x, widths, periodic, index)


def check_transpose(comm, x, widths, periodic, index):
    """Law: accumulation adds each inner cell to its element, and is the transpose of the halo."""
    dist, at = x.distribution, x.grid.coordinates(comm.rank)
    team = [c for c, role in zip(at, dist.roles, strict=True) if role.name == "split"]
    first = not any(c for c, role in zip(at, dist.roles, strict=True) if role.name == "replicated")
    halo = x.halo(widths, periodic)
    y = np.random.default_rng([5, *team]).integers(-9, 9, halo.shape).astype(x.dtype)
    sums = x.accumulate_halo(y, widths, periodic)
    assert sums.distribution == dist and sums.dtype == x.dtype
    own = np.zeros([n + 2 for n in x.shape], x.dtype)
    if first:  # of equal replicas
        np.add.at(own, index, y)
    total = sum(comm.allgather_object(own))[(slice(1, -1),) * x.ndim]
    assert np.array_equal(sums.to_global(), total), (dist, widths, periodic)
    pairs = comm.allgather_object(((halo * y).sum(), (x.local * sums.local).sum()) if first else (0, 0))
    assert sum(a for a, _ in pairs) == sum(b for _, b in pairs)


def check_refusals(comm):
    """What only one rank does wrong is refused on all; nothing waits for ever, and the next call is right."""
    x = rote.DistTensor.from_global(np.arange(12.0).reshape(6, 2), "block[(0),()]", comm)
    good = x.halo(1)
    for wrong, says in (
        (lambda: x.halo(1, out=np.empty(good.shape if comm.rank else (1, 1))), "out is an array of"),
        (lambda: x.halo(1, out=np.empty(good.shape, "f4" if comm.rank == 0 else "f8")), "out is an array of"),
        (lambda: x.accumulate_halo(good if comm.rank else good[1:], 1), "halo is an array of"),
        (lambda: x.halo(1, fill="x"), "could not convert"),
        (lambda: x.halo((1, 2, 3)), "widths"),
        (lambda: x.halo(-1), "no width"),
        (lambda: x.halo(1.5), "no width"),
        (lambda: x.halo(1, periodic=(True,)), "periodic"),
    ):
        try:
            wrong()
        except ValueError as error:
            assert says in str(error), error
        else:
            raise AssertionError(says)
    assert np.array_equal(x.halo(1), good)


def check_inside(comm):
    """A block that lies inside of its own halo stays as it is, and ghosts are written; other overlaps are refused."""
    dist = rote.parse("block[(0),()]").on((7, 3), comm.size)
    rows, columns = dist.local_shape(comm.rank)
    field = np.full((rows + 3, columns + 2), -1.0)
    whole = np.arange(21.0).reshape(7, 3)
    field[1:-2, 1:-1] = whole[dist.indices(comm.rank)[0]]
    x = rote.DistTensor.from_local(field[1:-2, 1:-1], dist, comm=comm)
    copied = x.copy()
    assert np.array_equal(x.halo([(1, 2), 1], True, out=field), copied.halo([(1, 2), 1], True))
    assert np.array_equal(x.local, copied.local) and x.halo([(1, 2), 1], True).base is not field
    try:
        x.halo([(2, 1), 1], out=field)
    except rote.LayoutError as error:
        assert "not inside" in str(error)
    else:
        raise AssertionError("an overlap that is none of a block inside")


def check_strided(comm):
    """Blocks in Fortran order, a leading dimension apart, are used where they lie, by moves to and from them too."""
    dist = rote.Distribution.from_scalapack((1, 0, 9, 8, 2, 3, 0, comm.size - 1, 11), (1, comm.size))
    rows, columns = dist.local_shape(comm.rank)
    buffer, whole = np.full(11 * columns, -1.0), np.arange(72.0).reshape(9, 8)
    x = rote.DistTensor.from_local(buffer.reshape(columns, 11).T[:rows], dist, comm=comm)
    rote.DistTensor.from_global(whole, "block[(0),()]", comm).redistribute(x.layout, out=x, grid=x.grid)
    assert np.shares_memory(x.local, buffer) or not buffer.size
    assert np.array_equal(x.to_global(), whole) and (buffer == -1).sum() == 2 * columns
    rows_of_x = x.redistribute("block[(1),()]")
    assert np.array_equal(rows_of_x.halo([0, 3], True), np.pad(rows_of_x.local, [(0, 0), (3, 3)], mode="wrap"))


def check_all(comm, seeds):
    """Everything, for some seeds of random cases."""
    for seed in range(*seeds):
        check_random(comm, seed, "f8" if seed % 3 else "c16")
    check_refusals(comm)
    check_inside(comm)
    check_strided(comm)


if __name__ == "__main__":
    check_all(rote.runtime.world(), tuple(map(int, sys.argv[1:])))
    if rote.runtime.world().rank == 0:
        print("checked")
