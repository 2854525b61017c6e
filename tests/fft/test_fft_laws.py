"""Laws of the Fourier transform, on tensors of any shape, layout, grid and axes, by Hypothesis on in-process ranks."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import rote
from rote import DistTensor
from rote.fft import fftn, ifftn, irfftn, rfftn

GRIDS = [(1,), (2,), (3,), (4,), (2, 2), (2, 1), (3, 2), (2, 1, 2), (1, 3, 1), (2, 2, 2)]


@st.composite
def settings_of_transforms(draw):
    """Shape, layout, grid and axes: order 1 to 5, extents 1 to 9, all kinds, grid modes left out now and then."""
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=5).filter(lambda s: prod(s) <= 600)))
    grid = draw(st.sampled_from(GRIDS))
    modes = [[] for _ in shape]
    for g in draw(st.permutations(range(len(grid)))):
        m = draw(st.sampled_from([*range(len(shape)), None]))
        if m is not None:
            kinds = ["cyclic", "cyclic(2)", "block", f"block({shape[m]})"]
            modes[m].append(f"{g}:{draw(st.sampled_from(kinds))}")
    layout = f"[{','.join('(' + ','.join(m) + ')' for m in modes)}]"
    axes = draw(st.permutations(range(len(shape))))[: draw(st.integers(1, len(shape)))]
    return shape, layout, grid, tuple(axes)


def numbers(shape, seed, real=False):
    rng = np.random.default_rng(seed)
    found = rng.standard_normal(shape)
    return found if real else found + 1j * rng.standard_normal(shape)


def on_ranks(setting, program):
    """Run `program(tensor, axes)` on the ranks of the setting; `tensor(array)` lays an array out."""
    _, layout, grid, axes = setting
    rote.run(lambda comm: program(lambda array: DistTensor.from_global(array, layout, comm, grid), axes), prod(grid))


def near(a, b):
    a, b = (x.to_global() if isinstance(x, DistTensor) else x for x in (a, b))
    assert a.shape == b.shape
    assert np.abs(a - b).max() <= 1e-12 * max(1, np.abs(b).max())


@given(settings_of_transforms())
def test_is_numpys(setting):
    """The gathered transform is numpy.fft's of the gathered tensor, complex and real, there and back."""
    shape = setting[0]

    def program(tensor, axes):
        x, array = tensor(numbers(shape, 0)), numbers(shape, 0)
        near(fftn(x, axes=axes), np.fft.fftn(array, axes=axes))
        near(ifftn(x, axes=axes), np.fft.ifftn(array, axes=axes))
        near(rfftn(x.real, axes=axes), np.fft.rfftn(array.real, axes=axes))
        s = [shape[a] for a in axes[:-1]] + [2 * shape[axes[-1]] - 1]
        near(irfftn(x, s=s, axes=axes), np.fft.irfftn(array, s=s, axes=axes))

    on_ranks(setting, program)


@given(settings_of_transforms(), st.sampled_from(("backward", "ortho", "forward")))
def test_inverse(setting, norm):
    """ifftn(fftn(x)) = x = fftn(ifftn(x)) and irfftn(rfftn(x)) = x, in every norm."""
    shape = setting[0]

    def program(tensor, axes):
        x, r = tensor(numbers(shape, 1)), tensor(numbers(shape, 2, real=True))
        near(ifftn(fftn(x, axes=axes, norm=norm), axes=axes, norm=norm), x)
        near(fftn(ifftn(x, axes=axes, norm=norm), axes=axes, norm=norm), x)
        s = [shape[a] for a in axes]
        near(irfftn(rfftn(r, axes=axes, norm=norm), s=s, axes=axes, norm=norm), r)

    on_ranks(setting, program)


@given(settings_of_transforms(), st.complex_numbers(max_magnitude=10), st.complex_numbers(max_magnitude=10))
def test_linear(setting, a, b):
    """F(a x + b y) = a F(x) + b F(y), where all stay distributed."""
    shape = setting[0]

    def program(tensor, axes):
        x, y = tensor(numbers(shape, 3)), tensor(numbers(shape, 4))
        one, two, both = (fftn(z, axes=axes) for z in (x, y, a * x + b * y))
        assert one.distribution == two.distribution == both.distribution
        scale = 1 + (abs(a) + abs(b)) * prod(shape)
        near(both * (1 / scale), (a * one + b * two) * (1 / scale))

    on_ranks(setting, program)


@given(settings_of_transforms())
def test_parseval(setting):
    """The ortho transform keeps the sum of squares."""
    shape = setting[0]

    def program(tensor, axes):
        x = tensor(numbers(shape, 5))
        squares = [np.square(np.abs(z.to_global())).sum() for z in (x, fftn(x, axes=axes, norm="ortho"))]
        assert abs(squares[0] - squares[1]) <= 1e-12 * squares[0]

    on_ranks(setting, program)


@given(settings_of_transforms(), st.integers(-20, 20))
def test_shift(setting, by):
    """A tensor rolled by s along an axis has the spectrum times exp(-2 pi i k s / n), at each global index k."""
    shape = setting[0]

    def program(tensor, axes):
        array, axis = numbers(shape, 6), axes[-1]
        X, Y = fftn(tensor(array), axes=axes), fftn(tensor(np.roll(array, by, axis)), axes=axes)
        if X.local.size:
            k = X.distribution.tensor_indices(X.comm.rank)[axis]
            X.local[...] *= np.exp(-2j * np.pi * (k * by % shape[axis]) / shape[axis])
        near(Y, X)

    on_ranks(setting, program)


@given(settings_of_transforms())
def test_real_spectrum_is_symmetric(setting):
    """Of a real tensor, X[-k] = conj X[k], and rfftn is the first n//2 + 1 points along the last axis of fftn."""
    shape = setting[0]

    def program(tensor, axes):
        r = tensor(numbers(shape, 7, real=True))
        whole = fftn(r, axes=axes).to_global()
        near(np.roll(np.flip(whole, axes), 1, axes), whole.conj())
        near(rfftn(r, axes=axes), whole.take(range(shape[axes[-1]] // 2 + 1), axes[-1]))

    on_ranks(setting, program)


@given(settings_of_transforms())
def test_one_axis_at_a_time(setting):
    """Transforming all axes at once is transforming one after the other, wherever each leaves the tensor."""
    shape = setting[0]

    def program(tensor, axes):
        x = tensor(numbers(shape, 8))
        step = x
        for axis in axes:
            step = fftn(step, axes=axis)
        near(step, fftn(x, axes=axes))

    on_ranks(setting, program)
