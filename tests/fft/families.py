"""Cases of every family of walks, legal by construction, and what they must do: on in-process ranks and on MPI ranks.

A case is made one choice at a time; the choices are those of a seeded generator, or Hypothesis's. Run as a program,
this file makes all checks on the world and prints one line of JSON.
"""

from __future__ import annotations

import json
import random
import sys
import warnings
from dataclasses import dataclass, replace
from itertools import cycle, islice
from math import log2, prod
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from cases import factorings, kinds_for
from parts import share
from transforms import NORMS

from rote import DistTensor, GatherWarning
from rote.fft import FFT, ifftn, irfftn
from rote.grammar.nodes import Entry, Fuse, Kind, Name
from rote.layout.layout import Layout, parse
from rote.layout.view import View
from rote.runtime import world

MOST = 1300  # elements of a tensor
ORDERS = {  # of the grid
    "slab": (1,),
    "pencil": (2,),
    "rows": (1,),
    "volumetric": (1, 1, 2, 2, 3, 4),
    "cyclic": (1, 1, 2, 2, 3, 4),
    "auto": (1, 2, 3, 4),
}
FAMILIES = tuple(ORDERS)
REAL = {"D": "d", "F": "f", "G": "g"}


@dataclass(frozen=True)
class Case:
    """A transform that its family can do.

    Attributes:
        axes: all that are transformed; a real transform is real along the last one, if `real`.
        output: of the spectrum; None for the walk's own.
        mixed: whether some axes go by transposes and others cyclically; such a walk has no inverse of its own.
    """

    family: str
    shape: tuple[int, ...]
    layout: Layout
    grid: tuple[int, ...]
    axes: tuple[int, ...]
    real: bool = True
    output: Layout | None = None
    mixed: bool = False

    @property
    def ranks(self):
        return prod(self.grid)

    def __str__(self):
        said = f"{self.family} {self.shape}, {self.layout}, grid {self.grid}, axes {self.axes}"
        return said + (f", output {self.output}" if self.output else "")


# --- cases ----------------------------------------------------------------------------------------------------------


def pick_case(pick, ranks, family=None):
    """A case of some family over so many ranks."""
    family = family or pick(FAMILIES)
    grid = pick(factorings(ranks, pick(ORDERS[family])))
    if family == "rows":
        case = pick_rows(pick, grid)
    elif family in ("slab", "pencil"):
        case = pick_transpose(pick, grid)
    elif family in ("volumetric", "cyclic"):
        case = pick_cyclic(pick, grid)
    else:
        case = pick([pick_transpose, pick_cyclic])(pick, grid)
    kinds = [entry.kind for mode in case.layout.modes for entry in mode]
    own = None if any(kind.name == "block" and kind.sizes for kind in kinds) else case.layout
    return replace(case, family=family, output=pick([None, None, own, pick_output(pick, case)]))


def pick_transpose(pick, grid):
    """Any layout of the grid on a tensor of order 1 to 5, whatever its extents; some axes or all, in any order."""
    shape = pick_extents(pick, pick([3, 2, 1, 4, 5]))
    modes = [()] * len(shape)
    for g in shuffled(pick, range(len(grid))):
        m = pick([m for m in range(len(shape)) if not modes[m]] or range(len(shape)))
        kinds = kinds_for(grid[g], [shape[m]]) if not modes[m] else [Kind("block"), Kind("cyclic", (2,))]
        modes[m] += (Entry(g, pick(kinds)),)
    axes = shuffled(pick, range(len(shape)))[: pick([len(shape), len(shape), 1, 2])]
    return Case("", shape, Layout(tuple(modes)), grid, tuple(axes))


def pick_rows(pick, grid):
    """Rows in some order of axes, or a plain layout; orders 3 to 5, also with more ranks than an axis has points."""
    shape = pick_extents(pick, pick([3, 3, 3, 4, 4, 5] if grid[0] < 6 else [3, 3, 4]))
    order = shuffled(pick, range(len(shape)))
    names = tuple("abcde"[m] for m in order)
    split = (Entry(0, Kind("block")),)
    by_rows = Layout((split, ()), View((Fuse(names[:-1]), Name(names[-1]))))
    plain = Layout(tuple((Entry(0, Kind(pick(["block", "cyclic"]))),) if m == order[0] else () for m in sorted(order)))
    return Case("", shape, pick([by_rows, by_rows, plain]), grid, tuple(shuffled(pick, order)))


def pick_cyclic(pick, grid):
    """Cyclic axes whose ranks fit, over one or more grid modes; batch modes, whole axes and axes in blocks beside."""
    groups = [[g] for g in range(len(grid))]
    for k in range(len(groups) - 1, 0, -1):
        if pick([False, False, True]):
            groups[k - 1] += groups.pop(k)
    left, axes = MOST, []  # per axis: extent, entries, role
    for number, group in enumerate(groups):
        ranks = prod(grid[g] for g in group)
        need = prod(least(grid, other) for other in groups[number + 1 :])
        sizes = [n for n in fitting(ranks, left // need) if len(group) == 1 or n % ranks**2 == 0]
        role = pick(["cyclic", "cyclic", "cyclic", "batch", "blocks"]) if number else "cyclic"
        n = pick(sizes[:6])
        kinds = kinds_for(grid[group[0]], [n]) if len(group) == 1 else [Kind("cyclic", (1,))]
        if role == "blocks":
            kinds = [kind for kind in kinds if kind != Kind("cyclic", (1,))]
        kind = Kind("cyclic", (1,)) if role == "cyclic" or not kinds else pick(kinds)
        axes.append((n, tuple(Entry(g, kind) for g in shuffled(pick, group)), role))
        left //= n
    for _ in range(pick([1, 2, 0]) if len(axes) < 4 else 0):
        n = pick([n for n in (3, 1, 5, 4, 2, 7) if n <= left])
        axes.insert(pick(range(len(axes) + 1)), (n, (), pick(["whole", "whole", "batch"])))
        left //= n
    if pick([False, False, False, True]):  # nothing lies cyclically: it is laid so first
        axes = [(n, tuple(Entry(e.grid_mode, Kind("block")) for e in own[:1]), role) for n, own, role in axes]
        axes = [(n, own, "cyclic" if role == "blocks" else role) for n, own, role in axes]
    shape, modes = tuple(n for n, _, _ in axes), tuple(own for _, own, _ in axes)
    named = shuffled(pick, [m for m, (_, _, role) in enumerate(axes) if role != "batch"])
    whole = [m for m in named if all(grid[e.grid_mode] == 1 for e in modes[m])]
    named = [m for m in named if m not in whole[:1]] + whole[:1]
    mixed = any(role == "blocks" for _, _, role in axes)
    return Case("", shape, Layout(modes), grid, tuple(named), bool(whole), mixed=mixed)


def least(grid, group):
    ranks = prod(grid[g] for g in group)
    return fitting(ranks, ranks**2)[0] if len(group) == 1 else ranks**2


def fitting(ranks, most):
    """The extents up to `most` that the cyclic family takes over one grid mode; of one rank, some."""
    if ranks == 1:
        return [n for n in (4, 1, 3, 5, 2) if n <= most]
    return [n for n in range(2 * ranks, most + 1, ranks) if moves_of(n, ranks)]


def moves_of(points, ranks):
    """The all-to-alls that an axis takes, ceil(log p / log(n / p)); 0 if the ranks do not fit it."""
    each, number = points // ranks, 1
    if points % ranks or each < 2:
        return 0
    while ranks > each:
        if ranks % each:
            return 0
        ranks, number = ranks // each, number + 1
    return number if each % ranks == 0 else 0


def pick_output(pick, case):
    """A plain layout of the spectrum: kinds that fit any extent, some grid modes left out."""
    modes = [()] * len(case.shape)
    for g in range(len(case.grid)):
        m = pick([*range(len(case.shape)), None])
        if m is not None:
            modes[m] += (Entry(g, pick([Kind("block"), Kind("cyclic", (1,)), Kind("cyclic", (2,))])),)
    return Layout(tuple(modes))


def pick_extents(pick, order):
    """Extents: odd, prime, tiny."""
    shape = ()
    for rest in range(order, 0, -1):
        most = round((MOST / prod(shape)) ** (1 / rest)) + 2
        shape += (pick([n for n in (5, 4, 1, 7, 12, 3, 2, 6, 13, 16) if n <= most]),)
    return shape


def shuffled(pick, items):
    found = [*items]
    for i in range(len(found) - 1, 0, -1):
        j = pick(range(i + 1))
        found[i], found[j] = found[j], found[i]
    return found


DEEP = {  # group-cyclic: two, three and four levels, alone and beside axes of fewer
    4: [((8,), "[(0)]", (4,)), ((3, 8), "[(),(0)]", (4,))],
    8: [
        ((16, 5), "[(0),()]", (8,)),
        ((32,), "[(0)]", (8,)),
        ((8, 4, 3), "[(0),(1),()]", (4, 2)),
        ((4, 8), "[(1),(0)]", (4, 2)),
    ],
    16: [((32,), "[(0)]", (16,)), ((128,), "[(0)]", (16,)), ((64, 4), "[(0),(1)]", (8, 2))],
}


def cases(ranks, number):
    """Group-cyclic cases, then seeded ones of all families in turn."""
    for shape, text, grid in DEEP.get(ranks, []):
        layout = parse(text)
        axes = tuple(sorted(range(len(shape)), key=lambda m: not layout.modes[m]))
        for family in ("cyclic", "volumetric"):
            yield Case(family, shape, layout, grid, axes, real=not layout.modes[axes[-1]])
    pick = random.Random(f"families {ranks}").choice
    for family in islice(cycle(FAMILIES), number):
        yield pick_case(pick, ranks, family)


# --- checks ---------------------------------------------------------------------------------------------------------


def numbers(shape, code, seed=0):
    """The same numbers on every rank, with all the digits that the dtype has."""
    rng, dtype = np.random.default_rng([seed, *shape]), np.dtype(code)
    real = np.dtype(dtype.char.lower())
    parts = [rng.standard_normal(shape).astype(real) * real.type(3) / real.type(7) for _ in range(2)]
    return (parts[0] + 1j * parts[1]).astype(dtype) if dtype.kind == "c" else parts[0]


def tolerance(dtype, elements):
    """1e-12 log2(N) in double and in long double, 1e-5 in single; or a few rounding errors per level, if that is less.

    Relative to the largest number.
    """
    dtype = np.dtype(dtype)
    stated = 1e-5 if dtype.char in "fF" else 1e-12 * log2(max(elements, 2))
    return min(stated, 8 * float(np.finfo(dtype).eps) * (2 + log2(max(elements, 1))))


def same(got, want, what):
    """Shape, dtype and this rank's block of a tensor, whose layout may have a view."""
    assert (got.shape, got.dtype) == (want.shape, want.dtype), (str(what), got, want.shape, want.dtype)
    dist, rank = got.distribution, got.comm.rank
    assert got.local.shape == dist.local_shape(rank)
    if got.local.size:
        wanted = want[tuple(dist.tensor_indices(rank))].reshape(got.local.shape)
        error = np.abs(got.local - wanted).max() / max(np.abs(want).max(), np.finfo(want.dtype).tiny)
        assert error <= tolerance(want.dtype, want.size), (str(what), got, error)


def check_case(comm, case, code, norm):
    """Forward is numpy.fft's transform, backward its inverse, of spectra of nothing too; text and text's walk agree."""
    f = FFT(case.shape, case.layout, case.grid, comm, code, case.axes, case.family, norm, case.output)
    what = f"{case}, {code}, norm {norm}"
    array = numbers(case.shape, code)
    x = DistTensor.from_global(array, case.layout, comm, case.grid)
    X = f.forward(x)
    real = np.dtype(code).kind == "f"
    same(X, (np.fft.rfftn if real else np.fft.fftn)(array, axes=case.axes, norm=norm), what)
    assert X.layout == f.output_layout and (case.output is None or X.layout == case.output)
    back = f.backward(X)
    assert back.distribution == x.distribution
    same(back, array, f"{what}, and back")
    noise = numbers(X.shape, X.dtype.char, 1)
    named = {"axes": case.axes, "norm": norm}
    s = [case.shape[a] for a in case.axes]
    want = np.fft.irfftn(noise, s, **named) if real else np.fft.ifftn(noise, **named)
    same(f.backward(DistTensor.from_global(noise, X.layout, comm, X.grid)), want, f"{what}, back from noise")
    again = FFT(case.shape, case.layout, case.grid, comm, code, case.axes, str(f.walk), norm)
    assert again.walk == f.walk, f"{what}\n{f.walk}\n{again.walk}"
    return f


def check_functions(comm, case, code, norm, odd):
    """ifftn, and irfftn to an extent that is even or odd, from where the case's tensor lies."""
    array = numbers(case.shape, code, 2)
    X = DistTensor.from_global(array, case.layout, comm, case.grid)
    named = {"axes": case.axes, "norm": norm}
    how = named | {"algorithm": case.family, "output": case.output}
    same(ifftn(X, **how), np.fft.ifftn(array, **named), f"ifftn, {case}, {code}")
    if case.real:
        s = [case.shape[a] for a in case.axes]
        s[-1] = max(2 * (s[-1] - 1) + odd, 1)
        same(irfftn(X, s, **how), np.fft.irfftn(array, s, **named), f"irfftn to {s}, {case}, {code}")


def check_families(comm, number, part):
    """Seeded cases, complex and real, in every norm and precision."""
    norms, codes = cycle(NORMS), cycle("DDFDG")
    world = enumerate(zip(cases(comm.size, number), norms, codes, strict=False))
    for turn, (case, norm, code) in share(world, part, 7 if comm.size < 8 else 13, comm.size, of=2):
        check_case(comm, case, code, norm)
        if case.real:
            check_case(comm, case, REAL[code], norm)
        check_functions(comm, case, code, norm, turn % 2)


if __name__ == "__main__":
    warnings.simplefilter("ignore", GatherWarning)
    here = world()
    check_families(here, int(sys.argv[1]), sys.argv[2])
    if here.rank == 0:
        print(json.dumps({"ranks": here.size}))
