"""Transforms of Hermitian signals, as NumPy has them."""

from __future__ import annotations

import numpy as np
import pytest
from cases import pick_grid, pick_layout
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from marks import examples

import rote
from rote import DistTensor, LayoutError
from rote.fft import hfft, ihfft

pytestmark = pytest.mark.filterwarnings("ignore::rote.GatherWarning")  # transforms of one axis


@st.composite
def signals(draw):
    """A tensor's shape, layout and grid, an axis with points, a length and a norm."""
    pick = lambda options: draw(st.sampled_from(options))  # noqa: E731 - as the other strategies have it
    shape = tuple(pick([4, 2, 5, 3, 6]) for _ in range(pick([2, 1, 3])))
    grid = pick_grid(pick, pick([1, 2, 3, 4]))
    layout = pick_layout(pick, shape, grid)
    assume(layout.view is None and not layout.partial and not layout.rooted)
    axis = pick(range(-len(shape), len(shape)))
    return shape, layout, grid, axis, pick([None, 4, 5, 7]), pick([None, "backward", "ortho", "forward"])


@settings(max_examples=examples(80))
@given(signals())
def test_hermitian_transforms_are_numpys(arguments):
    """Law: `hfft` and `ihfft` are NumPy's along any axis, of any length and norm, and undo each other; x stays."""
    shape, layout, grid, axis, n, norm = arguments
    numbers = np.random.default_rng(3).standard_normal((2, *shape))

    def program(comm):
        for function, array in (("hfft", numbers[0] + 1j * numbers[1]), ("hfft", numbers[0]), ("ihfft", numbers[1])):
            x = DistTensor.from_global(array, layout, comm, grid)
            y = getattr(rote.fft, function)(x, n, axis, norm)
            want = getattr(np.fft, function)(array, n, axis, norm)
            assert y.dtype == want.dtype and y.shape == want.shape
            np.testing.assert_allclose(y.to_global(), want, atol=1e-12)
            through_numpy = getattr(np.fft, function)(x, n, axis, norm)
            assert through_numpy.local.tobytes() == y.local.tobytes()
            assert x.to_global().tobytes() == array.tobytes()
        back = hfft(ihfft(x, axis=axis, norm=norm), x.shape[axis], axis, norm)
        np.testing.assert_allclose(back.to_global(), array, atol=1e-12)

    rote.run(program, int(np.prod(grid)))


def test_hermitian_transforms_take_layouts_and_refuse_what_does_not_fit():
    """`output=` and `algorithm=` are as for other transforms; arrays, complex spectra and other norms are refused."""

    def program(comm):
        x = DistTensor.from_global(np.arange(24.0).reshape(4, 6), "block[(0),()]", comm)
        assert str(ihfft(x, output="block[(),(0)]", algorithm="slab").layout) == "block[(),(0)]"
        with pytest.raises(LayoutError, match="ihfft transforms real tensors, not complex128; use ifft"):
            ihfft(x.astype("c16"))
        with pytest.raises(LayoutError, match="norm is one of"):
            hfft(x, norm="unit")
        for function in (hfft, ihfft):
            with pytest.raises(TypeError, match=f"{function.__name__} takes a DistTensor, not ndarray"):
                function(np.zeros(4))

    rote.run(program, 2)
