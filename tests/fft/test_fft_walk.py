"""Walks: the layouts of Dalcin et al. 2019, one all-to-all per move, the way back, and the text that they print."""

from __future__ import annotations

import itertools
from itertools import product
from math import prod

import numpy as np
import pytest

import rote
from rote import DistTensor
from rote.fft import FFT, fftn, ifftn, irfftn, rfftn
from rote.fft.check import build
from rote.fft.families.transpose import transpose
from rote.fft.request import as_request

D = np.dtype("D")
SLAB = ["block[(0),(),()]", "block[(),(0),()]"]  # equations 12-14
PENCIL = ["block[(0),(1),()]", "block[(0),(),(1)]", "block[(),(0),(1)]"]  # 21-25
GRID3 = [  # 26-32
    "block[(0),(1),(2),()]",
    "block[(0),(1),(),(2)]",
    "block[(0),(),(1),(2)]",
    "block[(),(0),(1),(2)]",
]
FAMILIES = {"slab": (SLAB, (4,)), "pencil": (PENCIL, (3, 2)), "grid of order 3": (GRID3, (2, 3, 2))}


def walk(text, shape, grid, kind="fft", axes=None, length=0):
    source = rote.parse(text).on(shape, grid)
    dtype = np.dtype("d" if kind == "rfft" else "D")
    named = tuple(range(len(shape))) if axes is None else axes
    s = [*(shape[a] for a in named[:-1]), length] if kind == "irfft" and length else None
    wanted = as_request(shape, named, kind, dtype, s)
    return build(source, transpose(source, wanted), wanted)


def done(stage):
    """The modes that a stage transforms."""
    return tuple(m for action in stage.done for m in action.modes)


def layouts(found):
    return [str(stage.before.layout) for stage in found.stages]


@pytest.mark.parametrize("family", FAMILIES)
def test_layouts_are_the_equations(family):
    """Slab, pencil and the 3-D grid pass through exactly the layouts of eq. 12-14, 21-25, 26-32."""
    wanted, grid = FAMILIES[family]
    found = walk(wanted[0], (5, 6, 7, 8)[: 4 if len(grid) == 3 else 3], grid)
    assert layouts(found) == wanted
    order = found.source.order
    axes = [done(stage) for stage in found.stages]
    # The first stage transforms all trailing axes (eq. 10, 12), every other one the axis that has become whole.
    assert axes == [tuple(range(len(grid), order)), *((m,) for m in reversed(range(len(grid))))]


@pytest.mark.parametrize("order", range(2, 6))
def test_any_order_on_grids_up_to_one_less(order):
    """On an m-mode grid, m < d: m moves, each one all-to-all over one grid mode, from the last mode to the first."""
    shape = (4, 5, 6, 3, 2)[:order]
    for modes in range(1, order):
        grid = (2, 3, 2, 2)[:modes]
        text = "block[" + ",".join(f"({m})" if m < modes else "()" for m in range(order)) + "]"
        for kind in ("fft", "rfft"):
            found = walk(text, shape, grid, kind)
            assert len(found.moves) == modes
            for g, move in zip(reversed(range(modes)), found.moves, strict=True):
                assert [(step.kind, step.grid_modes) for step in move.steps] == [("alltoall", (g,))]
                move.verify()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("real", (False, True))
def test_inverse_walk_leads_back(family, real):
    """The inverse walk, turned round or walked anew, goes through the same layouts backwards, to shape and dtype."""
    wanted, grid = FAMILIES[family]
    shape = (5, 6, 7, 9)[: len(wanted) + (family == "slab")]
    there = walk(wanted[0], shape, grid, "rfft" if real else "fft")
    back = there.inverse()
    assert layouts(back) == wanted[::-1]
    assert (back.source, back.target) == (there.target, there.source)
    assert (back.dtypes()[0], back.dtypes()[-1]) == (D, there.dtype)
    assert back.inverse() == there
    end = there.target
    axes, kind = tuple(range(len(shape))), "irfft" if real else "ifft"
    request = as_request(end.shape, axes, kind, D, shape)
    anew = build(end, transpose(end, request), request)
    assert (layouts(anew), anew.target) == (wanted[::-1], there.source)
    for move in anew.moves:
        assert [step.kind for step in move.steps] == ["alltoall"]


@pytest.mark.parametrize("family", FAMILIES)
def test_inverse_transform_ends_in_the_layout_of_the_tensor(family):
    """ifftn(fftn(x)) and irfftn(rfftn(x)) lie as x does: forward, pointwise, backward needs no reordering."""
    wanted, grid = FAMILIES[family]
    shape = (3, 4, 5, 6)[: len(wanted) + (family == "slab")]

    def program(comm):
        x = DistTensor.zeros(shape, wanted[0], comm, grid)
        X, H = fftn(x), rfftn(x)
        assert str(X.layout) == str(H.layout) == wanted[-1]
        axes = tuple(range(len(shape)))
        return {str(ifftn(X).layout), str(irfftn(H, s=shape, axes=axes).layout)}

    assert rote.run(program, prod(grid)) == [{wanted[0]}] * prod(grid)


def test_text_of_a_complex_pencil():
    """A walk prints as layout: transform, move, layout: transform, ..."""
    assert str(walk(PENCIL[0], (6, 7, 8), (2, 2))) == (
        "  block[(0),(1),()]: fft(2)\n"
        "    # alltoall over 1\n"
        "  block[(0),(),(1)]: fft(1)\n"
        "    # alltoall over 0\n"
        "  block[(),(0),(1)]: fft(0)"
    )


def test_text_of_a_real_slab():
    """A real transform says how the shape changes; the way back prints like the way there."""
    there = walk(SLAB[0], (6, 7, 9), (2,), "rfft")
    assert str(there) == ("  block[(0),(),()]: rfft(1, 2)\n    # alltoall over 0\n  block[(),(0),()]: fft(0)")
    assert str(there.inverse()) == (
        "  block[(),(0),()]: ifft(0)\n    # alltoall over 0\n  block[(0),(),()]: irfft(1, 2)"
    )


def test_text_when_the_real_axis_is_split():
    """A real axis that is split is freed before anything is transformed; in an order-1 tensor it is gathered."""
    assert str(walk("block[(),(0)]", (6, 8), (2,), "rfft")) == (
        "  block[(),(0)]\n"
        "    # alltoall over 0\n"
        "  block[(0),()]: rfft(1)\n"
        "    # alltoall over 0\n"
        "  block[(),(0)]: fft(0)"
    )
    assert str(walk("block[(0)]", (8,), (2,))) == "  block[(0)]\n    # allgather over 0\n  [()]: fft(0)"


def test_text_of_an_fft():
    """print(f) heads the walk with what is transformed, and closes with what each rank receives."""

    def program(comm):
        return str(FFT((8, 9, 10), "block[(0),(1),()]", (2, 2), comm, "d"))

    (text,) = set(rote.run(program, 4))
    first, *middle, last = itertools.takewhile(lambda line: "about" not in line, text.splitlines())
    assert first == "rfft of (8, 9, 10) float64 on grid 2x2, axes (0, 1, 2)"
    assert middle == str(walk("block[(0),(1),()]", (8, 9, 10), (2, 2), "rfft")).splitlines()
    assert last.startswith("  each rank receives ") and last.endswith(" in 2 moves")
    why = [line for line in text.splitlines() if " has no walk: " in line]
    assert "  pencil on 2x2: about " in text and [line.split()[0] for line in why] == ["cyclic", "volumetric"]
    assert all("2 ranks do not divide 9 points" in line for line in why)


def test_defaults():
    """Without a layout: blocks over the first modes, as many as the algorithm or the grid has modes."""

    def program(comm):
        def start(*args, **kwargs):
            return str(FFT((4, 5, 6), *args, comm=comm, **kwargs).input_layout)

        assert start() == start(algorithm="slab") == SLAB[0]
        assert start(algorithm="pencil") == start(grid=(2, 2)) == start(grid=rote.Grid((4, 1))) == PENCIL[0]
        f = FFT((4, 5, 6), comm=comm, algorithm="pencil")
        assert f.walk.source.grid == rote.Grid((2, 2))
        assert [str(move.target.layout) for move in f.moves] == PENCIL[1:]
        assert FFT((4, 5, 6), comm=comm, dtype="i4").walk.dtype == np.dtype("d")

    rote.run(program, 4)


def test_grid_modes_of_one_coordinate_cost_nothing():
    """A mode that only grid modes of one coordinate split is whole: no move for it, whatever its kind and sizes."""
    found = walk("block[(0),(1),()]", (6, 5, 4), (3, 1))
    assert len(found.moves) == 1 and [done(stage) for stage in found.stages] == [(1, 2), (0,)]
    real = walk("[(0:block),(1:block(8))]", (6, 8), (2, 1), "rfft")
    assert real.target.shape == (6, 5) and real.inverse().target == real.source
    assert walk("[(0:block(5)),(1:block(6))]", (5, 6), (1, 1), "irfft", length=11).target.shape == (5, 11)


def test_untouched_axes_stay_where_they_are():
    """Axes that are not transformed are neither freed nor moved, and take what others must give up."""
    found = walk("block[(0),(1),()]", (4, 5, 6), (2, 2), axes=(2,))
    assert layouts(found) == ["block[(0),(1),()]"] and not found.moves
    found = walk("block[(0),(),(1)]", (4, 5, 6), (2, 2), axes=(0,))
    assert layouts(found) == ["block[(0),(),(1)]", "block[(),(0),(1)]"]
    assert walk("block[(0),()]", (4, 5), (2,), axes=()).stages[0].done == ()


def test_every_walk_is_legal():
    """Whatever the layout: every axis is transformed once, where it is whole, real ones first or last; moves are right.

    Exhaustively over where two grid modes may lie on three modes, in both orders of refinement, and subsets of axes.
    """
    shape, grid = (4, 5, 6), (2, 3)
    places = [*product((None, 0, 1, 2), repeat=2)]
    for first, second in places:
        for order in ((0, 1), (1, 0)) if first == second and first is not None else ((0, 1),):
            modes = [[g for g in order if (first, second)[g] == m] for m in range(3)]
            text = f"block[{','.join('(' + ','.join(map(str, m)) + ')' for m in modes)}]"
            for kind in ("fft", "ifft", "rfft", "irfft"):
                for axes in ((0, 1, 2), (2, 0), (1,)):
                    check_legal(walk(text, shape, grid, kind, axes, 2 * shape[axes[-1]] - 1), axes, kind)


def check_legal(found, axes, kind):
    assert sorted(a for stage in found.stages for a in done(stage)) == sorted(axes)
    for stage in found.stages:
        assert all(not stage.before.splits[a] and not stage.after.splits[a] for a in done(stage))
    for move in found.moves:
        move.verify()
    if kind == "rfft":
        assert next(stage for stage in found.stages if stage.done).done[0].kind == "rfft"
    if kind == "irfft":
        assert found.stages[-1].done[0].kind == "irfft"
    for stage in found.stages:
        if stage.done and stage.done[0].kind in ("rfft", "irfft"):
            assert done(stage)[-1] == axes[-1]


def test_workspace_is_counted() -> None:
    """Two blocks for both directions, messages and all."""

    def workspace(comm: rote.runtime.Comm) -> int:
        return rote.fft.FFT((8, 8), "block[(0),()]", comm=comm).workspace_bytes

    block = 8 * 8 * 16
    assert rote.run(workspace, ranks=1) == [2 * block]
    assert rote.run(workspace, ranks=2) == [2 * block // 2] * 2
