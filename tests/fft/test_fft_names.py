"""Every name of `rote.fft` that NumPy or SciPy has, with all of their parameters, against theirs."""

from __future__ import annotations

import inspect
from itertools import product

import numpy as np
import pytest
import scipy.fft
from cases import pick_grid, pick_layout
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from marks import examples

import rote
from rote import DistTensor, LayoutError

pytestmark = pytest.mark.filterwarnings("ignore::rote.GatherWarning")  # transforms of one axis

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
TWO = ("fft2", "ifft2", "rfft2", "irfft2")
MANY = ("fftn", "ifftn", "rfftn", "irfftn")
WAVE, WAVES = ("dct", "idct", "dst", "idst"), ("dctn", "idctn", "dstn", "idstn")
REAL = ("rfft", "rfft2", "rfftn", "ihfft")
NORMS = (None, "backward", "ortho", "forward")


def test_all_names_of_numpy_are_there_with_its_parameters():
    """Law: each function of `numpy.fft` is one of `rote.fft`, whose first parameters are NumPy's but for `out`."""
    for name in dir(np.fft):
        theirs = getattr(np.fft, name)
        if name.startswith("_") or not inspect.isfunction(theirs) or name == "test":
            continue
        wanted = [p for p in inspect.signature(theirs).parameters if p not in ("out", "device")]
        given_ = list(inspect.signature(getattr(rote.fft, name)).parameters)
        assert given_[1 : len(wanted)] == wanted[1:], name
        assert getattr(rote.fft, name).__name__ == name and name in getattr(rote.fft, name).__doc__


@st.composite
def calls(draw):
    """A tensor of 1 to 3 modes in some layout on 1 to 4 ranks, a function, and its arguments."""
    pick = lambda options: draw(st.sampled_from(options))  # noqa: E731 - as the other strategies have it
    name = pick([*ONE, *TWO, *MANY, *WAVE, *WAVES])
    shape = tuple(pick([4, 2, 5, 3, 6]) for _ in range(pick([2, 3] if name in TWO else [2, 1, 3])))
    grid = pick_grid(pick, pick([1, 2, 3, 4]))
    layout = pick_layout(pick, shape, grid)
    assume(layout.view is None and not layout.partial and not layout.rooted)
    options = {"norm": pick(NORMS)}
    axis, lengths = range(-len(shape), len(shape)), [4, 5, 7, 2]
    if name in (*WAVE, *WAVES):
        options |= {"type": pick([1, 2, 3, 4]), "orthogonalize": pick([None, True, False])}
    if name in (*ONE, *WAVE):
        options |= {"n": pick([None, *lengths]), "axis": pick(axis)}
    else:
        axes = [pick(axis) for _ in range(pick([1, 2, 3]))]
        repeated = len({a % len(shape) for a in axes}) < len(axes)
        assume(not (repeated and name in WAVES))  # SciPy refuses these
        options |= {"axes": axes, "s": pick([None, [pick(lengths) for _ in axes]])}
    return name, shape, layout, grid, options


@settings(max_examples=examples(400))
@given(calls())
def test_every_function_is_numpys_or_scipys(call):
    """Law: a transform of a tensor is that of the array, along axes named once or more, to any length, in any norm."""
    name, shape, layout, grid, options = call
    real, imag = np.random.default_rng(3).standard_normal((2, *shape))
    array = real if name in (*REAL, *WAVE, *WAVES) else real + 1j * imag
    want = getattr(scipy.fft if name in (*WAVE, *WAVES) else np.fft, name)(array, **options)

    def program(comm):
        x = DistTensor.from_global(array, layout, comm, grid)
        y = getattr(rote.fft, name)(x, **options)
        assert (y.shape, y.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(y.to_global(), want, atol=1e-12)
        assert x.to_global().tobytes() == array.tobytes()

    rote.run(program, int(np.prod(grid)))


def test_an_axis_without_points_is_padded():
    """Law: an axis of extent 0 is padded to its length as NumPy pads it, and refused without one."""

    def program(comm):
        layouts = ("block[(0),()]", "block[(),(0)]", "[(0),()]", "[(),()]")
        for shape, layout in product([(0, 5), (5, 0), (0, 0)], layouts):
            axis = shape.index(0)
            x = DistTensor.zeros(shape, layout, comm)
            for name in (*MANY, *WAVES):
                options = {"s": (3,), "axes": (axis,)}
                theirs = getattr(scipy.fft if name in WAVES else np.fft, name)(np.zeros(shape), **options)
                y = getattr(rote.fft, name)(x, **options)
                assert y.dtype == theirs.dtype
                np.testing.assert_array_equal(y.to_global(), np.zeros(theirs.shape))  # some of theirs are not set
            both = rote.fft.fftn(x, s=(3, 4))
            np.testing.assert_array_equal(both.to_global(), np.zeros((3, 4)))
            with pytest.raises(LayoutError, match=f"axis {axis} of shape .* has no points"):
                rote.fft.fftn(x)
        f = rote.fft.FFT((0, 5), "block[(0),()]", comm=comm, axes=0, s=3)
        assert f.backward(f.forward(f.empty_input())).shape == (0, 5)

    for ranks in (1, 2, 3, 4):
        rote.run(program, ranks)


def test_shifts_of_an_axis_that_is_named_twice():
    """Law: `fftshift` moves an axis as often as it is named, as NumPy's does."""

    def program(comm):
        array = np.arange(35.0).reshape(5, 7)
        x = DistTensor.from_global(array, "block[(0),()]", comm)
        for name, axes in product(("fftshift", "ifftshift"), ((0, 0), (0, 1, -2))):
            got = getattr(rote.fft, name)(x, axes)
            np.testing.assert_array_equal(got.to_global(), getattr(np.fft, name)(array, axes))

    rote.run(program, 3)


@pytest.mark.parametrize("name", [*ONE[:4], *TWO, *MANY, *WAVE, *WAVES])
def test_scipys_functions_name_those_of_rote(name):
    """Law: where `scipy.fft` asks for the whole array, the refusal names `rote.fft`, which has the function."""
    with pytest.raises(LayoutError, match=r"not gathered silently; write the function of rote\.fft"):
        getattr(scipy.fft, name)(DistTensor.zeros((4, 6), "block[(0),()]"))
    assert callable(getattr(rote.fft, name))


def test_what_one_axis_does_not_take_is_refused():
    """Several axes or lengths for a function of one, and a weight that is no truth value, are refused on all ranks."""

    def program(comm):
        x = DistTensor.zeros((4, 6), "block[(0),()]", comm)
        for wrong in ({"axis": (0, 1)}, {"n": (4, 6)}, {"axis": 2}, {"n": 0}, {"norm": "none"}):
            for name in (*ONE[:4], *WAVE):
                with pytest.raises(LayoutError):
                    getattr(rote.fft, name)(x, **wrong)
        for name in (*ONE, *WAVE, "fft2", "irfft2"):
            with pytest.raises(TypeError, match=f"^{name} takes a DistTensor, not list"):
                getattr(rote.fft, name)([1.0, 2.0])
        with pytest.raises(LayoutError, match="orthogonalize is True, False or None; not 'yes'"):
            rote.fft.dctn(x, orthogonalize="yes")
        with pytest.raises(LayoutError, match="twice"):
            rote.fft.dctn(x, axes=(0, 0))
        with pytest.raises(LayoutError, match="rfft2 transforms real tensors, not complex128; use fft2"):
            rote.fft.rfft2(x.astype("c16"))

    rote.run(program, 2)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: rote.fft.dct(x, wire="c8"), "dct() got an unexpected keyword argument 'wire'"),
        (lambda x: rote.fft.rfft2(x, out=x), "rfft2() got an unexpected keyword argument 'out'"),
        (lambda x: rote.fft.fft(), "fft() missing a required argument: 'x'"),
    ],
)
def test_wrong_arguments_name_the_function(call, text):
    """Law: what is refused is refused under the name that was called."""
    with pytest.raises(TypeError) as caught:
        call(rote.DistTensor.zeros((4, 4), "block[(0),()]"))
    assert str(caught.value).partition("\n")[0] == text  # then comes what to write, where that is known
