"""What no family can do is refused before anything moves: which condition fails, and what would do."""

from __future__ import annotations

import re
from math import prod

import numpy as np
import pytest
import scipy.fft

import rote
import rote.array_api as xp
from rote import DistTensor
from rote.fft import FFT, fftn

REFUSED = [
    # ranks that do not divide, or do not fit: the axis, the numbers, the nearest that do
    (
        "cyclic",
        (10,),
        "[(0)]",
        (4,),
        "D",
        r"axis 0 of \[\(0\)\]: 4 ranks do not divide 10 points; 8 or 16 points",
    ),
    ("volumetric", (6,), "[(0)]", (4,), "D", "4 ranks do not divide 6 points; 8 points, or 1 rank, would do"),
    ("cyclic", (6, 5), "block[(0),()]", (4,), "D", "axis 0 of .*: 4 ranks do not divide 6 points; 8 points, or 1"),
    ("cyclic", (16, 9), "[(0),(1)]", (2, 2), "D", "axis 1 of .*: 2 ranks do not divide 9 .* 8 or 12 points, or 1 or 3"),
    ("cyclic", (12,), "[(0)]", (6,), "D", "6 ranks leave 2 of 12 points each: no multiple of 6, .*; 36 points, or 2"),
    ("cyclic", (7, 8, 4), "[(0:cyclic(2)),(1:block),()]", (2, 2), "D", "axis 0 .* 7 points; 4 or 8 points, or 1"),
    ("volumetric", (16, 8), None, (3, 2), "D", "axis 0 .*: 3 ranks do not divide 16 points; 9 or 18 points, or 2 or 4"),
    (
        "cyclic",
        (8,),
        "[(0,1)]",
        (2, 2),
        "D",
        "axis 0 of 8 points is taken in 2 levels, .* 0, 1; split it over one",
    ),
    # half a spectrum
    (
        "cyclic",
        (16, 8),
        "[(0),(1)]",
        (2, 2),
        "d",
        r"axis 1 whole .* \[\(0\),\(1\)\] splits it: lay .* or take auto",
    ),
    (
        "volumetric",
        (16, 8),
        "[(),(0)]",
        (4,),
        "d",
        "axis 1 whole on every rank, for half a spectrum does not",
    ),
    # grids of another order
    ("slab", (16, 8, 4), None, (2, 2), "D", r"a slab takes a grid of order 1, not 2x2"),
    (
        "slab",
        (16, 8, 4),
        "[(0),(1),()]",
        (2, 2),
        "D",
        r"a slab splits over 1 grid mode, but .* names 2",
    ),
    ("pencil", (16, 8, 4), None, 4, "D", "a pencil takes a grid of order 2, not 4"),
    ("pencil", (16, 8, 4), "block[(0),(),()]", 4, "D", "a pencil splits over 2 grid mode.*, but .* names 1"),
    (
        "pencil",
        (8, 8),
        None,
        None,
        "D",
        "order 2 is transformed on a grid of order 1 or less, not 2; give a layout",
    ),
    (
        "rows",
        (16, 8, 4),
        None,
        (2, 2),
        "D",
        "rows takes a grid of order 1, not 2x2",
    ),
    ("rows", (16, 8), None, 4, "D", "all axes of a tensor of order 3 or more; not of order 2"),
    (
        "rows",
        (16, 8),
        "block[(0),()]",
        4,
        "D",
        "all axes of a tensor of order 3 or more, .*; not block",
    ),
    # tensors that lie otherwise
    ("cyclic", (8, 8, 4), "(a b) c: block[(0),()]", 4, "D", "start from plain layouts, not .*; redistribute first"),
    (
        "cyclic",
        (8, 8),
        "[(0),()]+(1)",
        (2, 2),
        "D",
        r"plain layouts, not \[\(0\),\(\)\]\+\(1\); redistribute",
    ),
    ("volumetric", (8, 8), "[(0),()]|(1)", (2, 2), "D", "start from plain layouts, .*; redistribute first"),
    ("slab", (8, 8), "a (b c=2): [(0),(),()]", 4, "D", "reads modes through a view; redistribute the tensor first"),
    (
        "sixstep",
        (8, 8),
        None,
        None,
        "D",
        "one of auto, slab, pencil, rows, volumetric, cyclic, ragged; not 'sixstep'",
    ),
]


@pytest.mark.parametrize(("algorithm", "shape", "layout", "grid", "dtype", "reason"), REFUSED)
def test_what_cannot_be_is_refused(algorithm, shape, layout, grid, dtype, reason):
    """Law: the text names the condition that fails and the nearest legal choices, on every rank alike."""
    ranks = 4 if grid in (None, 4) else prod(grid)

    def program(comm):
        with pytest.raises(rote.LayoutError) as error:
            FFT(shape, layout, grid, comm, dtype, algorithm=algorithm)
        return str(error.value)

    (said,) = set(rote.run(program, ranks))
    assert re.search(reason, said, re.DOTALL), said


@pytest.mark.parametrize("algorithm", ["slab", "pencil", "rows", "volumetric", "cyclic", "auto"])
def test_one_rank_can_do_all(algorithm):
    """Where nothing is split nothing moves: every family runs on one rank, and along axes that are whole."""

    def program(comm):
        f = FFT((5, 7, 3), comm=comm, algorithm=algorithm, dtype="d")
        return len(f.moves), f.forward(DistTensor.zeros((5, 7, 3), f.input_layout, comm, f.walk.source.grid)).shape

    assert rote.run(program, 1) == [(0, (5, 7, 2))]
    if algorithm in ("volumetric", "cyclic", "auto"):

        def along(comm):
            x = DistTensor.zeros((5, 7, 3), "block[(0),(1),()]", comm, (2, 2))
            return fftn(x, axes=2, algorithm=algorithm).layout == x.layout

        assert rote.run(along, 4) == [True] * 4


def test_auto_takes_what_can_be():
    """Of ragged extents, "auto" takes a family that can, and says in its walk which that is."""

    def program(comm):
        return FFT((15, 9), "[(0),(1)]", (2, 2), comm).walk

    walk = rote.run(program, 4)[0]
    assert len(walk.moves) == 2 and "twiddle" not in str(walk)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_tensor_without_axes_is_its_own_transform(ranks):
    """Law: of order 0 on any number of ranks, and of no axes in every family that takes the layout."""

    def program(comm):
        f = rote.fft.FFT((), comm=comm)
        x = f.empty_input()
        x.local[...] = 3 + 4j
        assert f.moves == () and f.backward(f.forward(x)).to_global() == 3 + 4j
        y = rote.DistTensor.from_global(np.arange(6.0).reshape(2, 3), "[(),()]", comm)
        for algorithm in ("auto", "slab", "ragged", "cyclic", "volumetric"):
            same = rote.fft.dstn(y, axes=(), algorithm=algorithm)
            assert np.array_equal(same.to_global(), y.to_global())
        return True

    assert rote.run(program, ranks) == [True] * ranks


@pytest.mark.parametrize("s", [(3, -1), (-1, 4), (-1, -1)])
def test_a_length_of_minus_1_is_the_extent(s):
    """Law: of half a spectrum too, as NumPy has it."""
    X = np.fft.rfftn(np.random.default_rng(1).random((4, 8)))

    def program(comm):
        x = rote.DistTensor.from_global(X, "block[(0),()]", comm)
        return np.allclose(rote.fft.irfftn(x, s, (0, 1)).to_global(), np.fft.irfftn(X, s, (0, 1)))

    assert rote.run(program, 2) == [True] * 2


ONE_AXIS = {
    **{f"rote.fft.{name}": getattr(rote.fft, name) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{f"rote.fft.{name}": getattr(rote.fft, name) for name in ("dct", "idct", "dst", "idst")},
    **{f"np.fft.{name}": getattr(np.fft, name) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{f"xp.fft.{name}": getattr(xp.fft, name) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
}


@pytest.mark.parametrize("name", ONE_AXIS)
def test_a_length_of_one_axis_is_a_number_of_points(name):
    """Law: along one axis, -1, 0 and less are no lengths, as in NumPy and SciPy, and other things are no integers."""
    function, last = ONE_AXIS[name], name.rpartition(".")[2]
    theirs = getattr(np.fft, last, None) or getattr(scipy.fft, last)
    array = np.arange(24.0).reshape(4, 6)

    def program(comm):
        x = rote.DistTensor.from_global(array, "block[(0),()]", comm)
        for n in (-1, 0, -3, np.int64(-1)):
            with pytest.raises(ValueError, match="points"):
                theirs(array, n=n)
            with pytest.raises(
                rote.LayoutError, match=rf"one point or more; not n={n}\nleave out n to keep the extent"
            ):
                function(x, n=n)
        for n in (2.5, "a", (4,)):
            with pytest.raises(rote.LayoutError, match="n is an integer, not "):
                function(x, n=n)
        return np.allclose(function(x, n=5).to_global(), theirs(array, n=5))

    assert rote.run(program, 2) == [True] * 2


@pytest.mark.parametrize("name", ["fft", "rfftn", "irfft2", "hfft", "dct", "dctn", "dht"])
def test_arguments_that_others_take_are_refused_with_what_to_write(name):
    """Law: of a function, by all its doors, what it does not take is refused with what takes its place."""
    x = DistTensor.from_global(np.ones((4, 6)), "[(),()]")
    hints = {"out": "f.forward(x, out=…)", "workers": "threads=…", "overwrite_x": "out=x", "layout": "write output=…"}
    for option, hint in hints.items():
        with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected .*{option}'\n.*{re.escape(hint)}"):
            getattr(rote.fft, name)(x, **{option: x})
    if hasattr(np.fft, name):
        with pytest.raises(rote.LayoutError, match=r"into no out\nplan it: f = rote.fft.FFT"):
            getattr(np.fft, name)(x, out=x)
    if hasattr(xp.fft, name):
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'out'\nplan it: f = rote.fft.FFT"):
            getattr(xp.fft, name)(x, out=x)
    with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected keyword argument 'bogus'$"):
        getattr(rote.fft, name)(x, bogus=1)


def test_components_are_a_shape():
    """Law: the components of a field are given as shapes are, by a number too, and anything else is refused."""
    f = FFT((4, 6), "block[(0),()]", dtype="f8")
    for components in (3, (3,), [3], np.int64(3), np.array([3])):
        assert (f.empty_input(components).shape, f.empty_output(components).shape) == ((3, 4, 6), (3, 4, 4))
    for empty in (f.empty_input, f.empty_output):
        for components in ("a", None, 2.5, (2.5,)):
            with pytest.raises(rote.LayoutError, match="a shape is made of integers"):
                empty(components)
        with pytest.raises(rote.LayoutError, match="0 or more, not -1"):
            empty(-1)


def test_what_is_of_another_kind_is_refused():
    """Law: a number of ranks where numbers are meant, a distance that is none, and what cannot be called."""
    with pytest.raises(rote.LayoutError, match=r"not 4\nwrite a list, as \[4, 8\]"):
        rote.fft.scaling((4, 6), 4)
    with pytest.raises(rote.LayoutError, match="the distance d of points is a number, not 'a'"):
        xp.fft.fftfreq(4, d="a")
    with pytest.raises(rote.LayoutError, match="3 cannot be"):
        FFT((4, 6), progress=3)


def test_kinds_in_a_list_are_refused_with_the_same_by_axis():
    """Law: kinds belong to axes by number; a list of them is told how to be written."""
    with pytest.raises(rote.LayoutError, match=r"write kinds=\{0: 'dct2', 1: 'rfft'\}"):
        FFT((6, 8), dtype="f8", kinds=["dct2", "rfft"])


def test_a_part_of_a_tile_that_is_no_axis_is_refused():
    """Law: a spectrum has no mode for a part of extent 1; the text says so."""
    x = DistTensor.from_global(np.arange(6.0), "[()]")
    with pytest.raises(rote.LayoutError, match="part of a tile that is no axis, for its extent is 1; leave it out"):
        fftn(x, output="(a b=1): [(),()]")


@pytest.mark.parametrize("order", [(0, 1, -1), (1, -1, 0), (-1, 0, 1)])
def test_lengths_are_those_of_the_axes_that_kinds_name(order):
    """Law: in the order in which kinds name them, wherever the halved axis is; `repr` gives the same transform."""
    kinds, s, resample = {0: "rfft", 1: "fft", -1: "fft"}, {0: 8, 1: 6, -1: -1}, {0: -1, 1: 3, -1: 4}
    f = FFT(
        (4, 6, 5),
        dtype="f8",
        kinds={axis: kinds[axis] for axis in order},
        s=[s[axis] for axis in order],
        resample=np.array([resample[axis] for axis in order]),
    )
    assert f.output_shape == (5, 3, 4) and eval(repr(f), {"FFT": FFT}).output_shape == (5, 3, 4)


def test_a_machine_is_one():
    """Law: what is none is refused by name, wherever a machine is meant."""
    for call in (
        lambda: rote.fft.FFT((4, 4), machine=3),
        lambda: rote.fft.compare((4, 4), 2, machine="fast"),
        lambda: rote.compile("[(0)] -> [()]", shape=4, grid=2, machine=0.5),
    ):
        with pytest.raises(rote.PlanError, match=r"a machine is one of rote|there is no machine 'fast'"):
            call()
