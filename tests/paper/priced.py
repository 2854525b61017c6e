"""Transforms of three papers, priced on a machine: the families of Popovici et al. 2019 on grids of their Table 1, and
slabs and pencils in blocks, as in Dalcin et al. 2019 and in Duy and Ozaki 2015.

The first three keep elements dealt out, cyclic in and cyclic out: each split axis is transformed in two stages with
twiddles between. So they are Rote's volumetric walk, on grids of one, two and three modes.

The text gives no seconds, but orders of families at equal numbers of nodes: these are the pairs.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import prod

import numpy as np

import rote
from rote.compiler.cost import duration
from rote.compiler.rules import one_step
from rote.fft.families.choose import walk_of
from rote.fft.request import as_request
from rote.fft.walk import Transform, Twiddle
from rote.machines.work import Work, work_seconds

FAMILIES = {"slab": "[(0),(),()]", "pencil": "[(0),(1),()]", "volumetric": "[(0),(1),(2)]"}
TIE = 1.05  # a gap below is none


def grid(family, nodes):
    """The grid of Table 1, where (8, 2) stands for (8, 4): powers of two as equal as can be, the larger first."""
    doublings, order = nodes.bit_length() - 1, list(FAMILIES).index(family) + 1
    return tuple(2 ** ((doublings + order - 1 - g) // order) for g in range(order))


def fits(points, family, nodes):
    """Cyclic in is cyclic out on p ranks per axis if p² divides the points."""
    return all(p > 1 and points % p**2 == 0 for p in grid(family, nodes))


def limit(points, family):
    """The most nodes of a family: the square root of the points per grid mode."""
    return max(n for n in (2**k for k in range(1, 20)) if fits(points, family, n))


@cache
def tasks(walk):
    """Moves and local work of a walk, in order: each axis of a transform is a sweep, and so is a twiddle."""
    found, ends = [], [*walk.ends, None]
    for stage, end, dtype in zip(walk.stages, ends, walk.dtypes(), strict=False):
        block, item = stage.before.max_local_shape(), dtype.itemsize
        nbytes = prod(block) * item
        for action in stage.done:
            if isinstance(action, Transform):
                found += [Work("fft", nbytes, block[mode], prod(block[mode + 1 :]) * item) for mode in action.modes]
            elif isinstance(action, Twiddle):
                found.append(Work("twiddle", nbytes))
        step = one_step(*end[:2]) if end else None
        if step and step.kind == "alltoall":
            found.append((step, end[2].itemsize))
    return tuple(found)


@cache
def planned(shape, layout, on, algorithm, dtype):
    """The walk of a transform of all axes."""
    source, kind = rote.parse(layout).on(shape, on), "rfft" if dtype == "f8" else "fft"
    return walk_of(source, as_request(shape, (0, 1, 2), kind, np.dtype(dtype)), algorithm)


def walk(points, family, nodes):
    """The volumetric walk of a family of Popovici et al."""
    return planned((points,) * 3, FAMILIES[family], grid(family, nodes), "volumetric", "c16")


def slabs(shape, ranks, dtype="f8"):
    """The walk of slabs in blocks."""
    return planned(shape, "block[(0),(),()]", (ranks,), "slab", dtype)


def pencils(shape, ranks, dtype="f8"):
    """The walk of pencils in blocks, on a grid as MPI_Dims_create makes it."""
    doublings = ranks.bit_length() - 1
    return planned(
        shape, "block[(0),(1),()]", (2 ** (doublings - doublings // 2), 2 ** (doublings // 2)), "pencil", dtype
    )


@cache
def exchanges(points, family, nodes):
    """The bare all-to-alls of figures 12 and 13: one along each grid mode, of all that a rank has.

    Rank (i, j, k) has the row [i, j, k, :] of a tensor, and deals it out along one mode.
    """
    on = grid(family, nodes)
    shape = (*on, points**3 // nodes)
    found = []
    for g in range(len(on)):
        before = [f"({h})" for h in range(len(on))]
        after = [*before[:g], "()", *before[g + 1 :], before[g]]
        ends = [rote.parse(f"block[{','.join(modes)}]").on(shape, on) for modes in ([*before, "()"], after)]
        found.append((one_step(*ends), 16))
    return tuple(found)


def time(found, machine):
    """The seconds of moves and local work, one after the other."""
    return sum(
        work_seconds(task, machine) if isinstance(task, Work) else duration(*task, machine).seconds for task in found
    )


def moves(found):
    """The moves among moves and local work."""
    return [task for task in found if not isinstance(task, Work)]


def unpacked(machine):
    """The machine if packing took no time."""
    return replace(machine, copy_time=0)


def seconds(points, family, nodes, machine):
    """The time of a transform on a machine."""
    return time(tasks(walk(points, family, nodes)), machine)


def bare(points, family, nodes, machine):
    """The time of its all-to-alls without packing, as in figures 12 and 13."""
    return time(exchanges(points, family, nodes), unpacked(machine))


def ratio(pair, machine):
    """The time of the family that is said to take longer, over that of the other."""
    points, nodes, better, worse = pair
    return seconds(points, worse, nodes, machine) / seconds(points, better, nodes, machine)


def _pairs():
    """Popovici et al. 4.3: (points, nodes, better, worse), at equal numbers of nodes at which both can run."""
    for points, most in ((64, 8), (256, 16), (1024, 32)):  # A, B: "<= 16", C: "up to 32": slabs
        for nodes in (4, 8, 16, 32):
            for worse in ("pencil", "volumetric"):
                if nodes <= most and fits(points, worse, nodes):
                    yield points, nodes, "slab", worse
    for nodes in (64, 128, 256, 512, 1024):  # C: beyond, the volumetric one, which pencils follow to 512
        yield 1024, nodes, "volumetric", "pencil"


PAIRS = tuple(_pairs())
