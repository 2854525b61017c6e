"""Walks to a layout that is asked for: as short as the shortest of all walks that there are, by brute force."""

from __future__ import annotations

from functools import cache
from itertools import chain, combinations, permutations, product
from math import inf, prod

import numpy as np
import pytest
from families import numbers, tolerance
from hurry import hurry
from layout import definition
from marks import PARTS
from parts import share

import rote
from rote import DistTensor
from rote.fft import FFT, irfftn, rfftn
from rote.fft.families.choose import Prices, walk_for
from rote.fft.request import as_arguments, as_request, components
from rote.machines.machine import DEFAULT

# --- all walks, by brute force ----------------------------------------------------------------------------------------


@cache
def layouts(order, grid_order, kind="block"):
    """All layouts that split some of so many modes over all grid modes, in any order of the grid modes."""
    found = {}
    for grid_modes in permutations(range(grid_order)):
        for places in product(range(order), repeat=grid_order):
            rows = [[g for g, m in zip(grid_modes, places, strict=True) if m == mode] for mode in range(order)]
            modes = ",".join(f"({','.join(map(str, row))})" for row in rows)
            found[f"{kind}[{modes}]"] = None
    return [*map(rote.parse, found)]


@cache
def received(before, after, shape, grid):
    """The most elements that a rank must be sent, by the indices that it has before and after."""
    most = 0
    for have, need in zip(definition.held(before, shape, grid), definition.held(after, shape, grid), strict=True):
        both = [len({*mine} & {*theirs}) for mine, theirs in zip(have, need, strict=True)]
        most = max(most, prod(map(len, need)) - prod(both))
    return most


@cache
def fullness(layout, shape, grid):
    """How much more than its part of a tensor the fullest rank holds."""
    return prod(grid) * max(prod(map(len, held)) for held in definition.held(layout, shape, grid)) / prod(shape)


def subsets(axes):
    return [*chain(*(combinations(axes, number) for number in range(len(axes) + 1)))]


def shortest(shape, grid, request, source, output, kinds=("block",), limit=None):
    """The fewest moves, and of such walks the fewest bytes: by every layout, each axis done in any where it is whole.

    Nothing is done where a rank holds more than twice what it has at first.
    """
    stops = [*chain(*(layouts(len(shape), len(grid), kind) for kind in kinds))]
    limit = limit or 2 * max(fullness(source, shape, grid), 1)
    real, restores = request.real, "irfft" in request.kinds

    def now(todo):
        """The extents, and the bytes of an element, while axes are to do."""
        done = {*request.axes} - {*todo}
        extents = tuple(request.given(axis) if axis in done else n for axis, n in enumerate(shape))
        return extents, 16 if real is None or (real in todo) == restores else 8

    def left(layout, todo):
        """What may be left to do after a layout: numbers are real before all else, or after it."""
        whole = [axis for axis in todo if not layout.modes[axis]]
        for done in subsets(whole) if fullness(layout, now(todo)[0], grid) <= limit else [()]:
            rest = tuple(axis for axis in todo if axis not in done)
            in_time = real in rest or not rest if restores else real not in rest or not done
            if real is None or in_time:
                yield rest

    states = {(source, rest): 0 for rest in left(source, request.axes)}
    for moves in range(2 * len(request.axes) + 2):
        if (output, ()) in states:
            return moves, states[output, ()]
        further = {}
        for (layout, todo), nbytes in states.items():
            extents, item = now(todo)
            for stop in stops:
                more = nbytes + item * received(layout, stop, extents, grid)
                for rest in left(stop, todo):
                    further[stop, rest] = min(more, further.get((stop, rest), inf))
        states = further
    raise AssertionError("there is no walk")


# --- laws -------------------------------------------------------------------------------------------------------------

WORLDS = {  # shapes and grids; of how many requests a quick run looks at one, and a slow run
    ((4, 5), (2,)): (5, 1),
    ((6, 5, 4), (2,)): (20, 1),
    ((4, 5, 3), (4,)): (20, 1),
    ((4, 4, 5), (2, 2)): (400, 9),
    ((3, 4, 6), (2, 3)): (400, 9),
    ((3, 2, 4, 2), (2, 2)): (4000, 50),
    ((4, 3, 4), (2, 2, 2)): (150_000, 2000),
}


WAYS = {"fft": "c16", "rfft": "f8", "irfft": "c16", "padded": "c16"}


def asked_for(shape, axes, way):
    """The request of a way to transform some axes; the first of them is padded with zeros, if that is the way."""
    padded = [shape[axis] + 3 * (axis == axes[0]) for axis in axes] if way == "padded" else None
    return as_request(shape, axes, "fft" if padded else way, np.dtype(WAYS[way]), padded)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(("shape", "grid"), WORLDS, ids=str)
def test_no_walk_is_shorter(shape, grid, part):
    """Law: no walk of whole axes has fewer moves than the chosen one, and none of as many moves has fewer bytes.

    Of all layouts that split the modes over the grid, by the kinds of the two ends, and that fill no rank to more than
    twice its part. By "auto", and by the name of the family; also where zeros are added, and half a spectrum.
    """
    prices = Prices(DEFAULT)
    order, modes = len(shape), len(grid)
    ends = [*layouts(order, modes), *(layouts(order, modes, "cyclic") if modes < 3 else ())]  # else they are too many
    cases = product(layouts(order, modes), ends, subsets(range(order))[1:], WAYS)
    every, of = WORLDS[shape, grid]
    for source, output, axes, way in share(cases, part, every, of=of):
        request = asked_for(shape, axes, way)
        kinds = ("block", "cyclic")[: 1 + ("block" not in str(output))]
        wanted = shortest(shape, grid, request, source, output, kinds)
        arguments = as_arguments(shape, request, prod(grid), source, grid, output)
        for algorithm in ("auto", "slab" if len(grid) < 2 else "pencil"):
            walk = walk_for(arguments, algorithm)
            price = prices(walk)
            assert walk.target.layout == output
            assert (price.moves, price.received) <= wanted, (str(source), str(output), request, str(walk))


@pytest.mark.parametrize(
    ("shape", "grid"), [((4, 5, 6), (2,)), ((4, 5, 3), (2, 2)), ((4, 5, 6), (2, 1)), ((4, 3, 4, 5), (3,))], ids=str
)
def test_no_start_is_nearer(shape, grid):
    """Law: where axes of a batch may be split, and no layout of the input is given, no walk from any is shorter."""
    prices = Prices(DEFAULT)
    starts = layouts(len(shape), len(grid))
    family = "slab" if len(grid) < 2 else "pencil"
    for output, axes in product(starts, [(0, 2), (1,)]):
        request = as_request(shape, axes, "fft", np.dtype("c16"))
        walk = walk_for(as_arguments(shape, request, prod(grid), None, grid, output), family)
        whole = components(shape, request)
        roomy = [start for start in starts if fullness(start, shape, grid) <= 2]
        starting = [start for start in roomy if not any(start.modes[axis] for axis in whole)]
        wanted = min(shortest(shape, grid, request, start, output, limit=2) for start in starting)
        price = prices(walk)
        assert (price.moves, price.received) <= wanted, (str(output), axes, str(walk))


CHANNELS = [  # layouts of a channel flow, whose walls are planes of y, and of batches of the same
    ("block[(0),(),()]", "block[(),(),(0)]", 2, 1),
    ("block[(0),(),()]", "block[(),(0),()]", 2, 1),
    ("[(0),(),()]", "block[(),(),(0)]", 4, 1),
    ("block[(0),(1),()]", "block[(),(),(0,1)]", (2, 2), 1),
    ("block[(0),(1),()]", "block[(),(0,1),()]", (2, 2), 1),
    ("block[(0),(1),()]", "block[(0),(1),()]", (2, 2), 2),
    ("block[(0,1),(),()]", "block[(),(1),(0)]", (2, 2), 1),
]


@pytest.mark.parametrize(("layout", "output", "grid", "moves"), CHANNELS)
def test_a_channel_is_transformed_without_a_stop(layout, output, grid, moves, monkeypatch):
    """x and z are transformed, and y is a batch: the numbers are NumPy's, by the class, tuned, and by functions."""
    hurry(monkeypatch, 0.02, 0.04)
    ranks = prod(grid) if isinstance(grid, tuple) else grid
    shape, axes = (6, 7, 8), (0, 2)
    array, real = numbers(shape, "D"), numbers(shape, "d")
    spectrum, half = np.fft.fftn(array, axes=axes), np.fft.rfftn(real, axes=axes)
    most = tolerance("D", array.size) * np.abs(spectrum).max()

    def program(comm):
        for tune in ("model", "measure"):
            f = FFT(shape, layout, grid, comm, axes=axes, output=output, tune=tune)
            X = f.forward(DistTensor.from_global(array, layout, comm, grid))
            assert len(f.moves) == moves and X.layout == rote.parse(output)
            assert np.abs(X.to_global() - spectrum).max() <= most
            assert np.abs(f.backward(X).to_global() - array).max() <= most
        X = rfftn(DistTensor.from_global(real, layout, comm, grid), axes=axes, output=output)
        assert X.layout == rote.parse(output) and np.abs(X.to_global() - half).max() <= most
        x = irfftn(X, axes=axes, output=layout)
        assert x.layout == rote.parse(layout) and np.abs(x.to_global() - real).max() <= most

    rote.run(program, ranks)
