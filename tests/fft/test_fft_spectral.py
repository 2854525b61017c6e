"""Frequencies, wavenumbers, shifts and convolutions: checks on in-process and MPI ranks, laws by Hypothesis."""

from __future__ import annotations

import sys
from math import pi, prod
from pathlib import Path

import numpy as np
import pytest
import spectra
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import examples, make_checks, mpi_parts, parts_of
from test_fft_laws import near, numbers, on_ranks, settings_of_transforms

import rote
from rote import DistTensor
from rote.fft import FFT, convolve, correlate, fftfreq, fftshift, ifftshift
from rote.fft.functions.shifts import fast_length, part

sys.path.insert(0, str(Path(__file__).parents[1] / "execute"))

from recording import Recording

PROGRAM = Path(__file__).with_name("spectra.py")


@pytest.mark.parametrize(("ranks", "check", "args"), parts_of(spectra.CHECKS, 1, 2, 3, 4, 6, whole=(1, 2, 3)))
def test_on_ranks_of_this_process(ranks, check, args):
    """Spectral tools on in-process ranks do what they must."""
    rote.run(check, ranks, args)


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "part"), mpi_parts(), indirect=["job"])
def test_on_mpi_ranks(job, part):
    """Spectral tools on MPI ranks do too."""
    make_checks(job, PROGRAM, spectra.CHECKS, part)


# --- laws ---------------------------------------------------------------------------------------------------------


@given(settings_of_transforms(), st.integers(0, 2**31), st.booleans())
def test_derivative(setting, seed, real):
    """Derivatives by wavenumbers are exact for sums of waves that the points can tell apart, in boxes of any length."""
    shape, layout, grid, axes = setting
    rng = np.random.default_rng(seed)
    lengths = rng.uniform(0.5, 9, len(axes))
    waves = [[int(rng.integers(-((n - 1) // 2), (n - 1) // 2 + 1)) for n in (shape[a] for a in axes)] for _ in range(4)]
    field, slopes = np.zeros(shape, "D"), [np.zeros(shape, "D") for _ in axes]
    index = np.indices(shape)
    for wave in waves:
        phase = sum(2 * pi * k * index[a] / shape[a] for k, a in zip(wave, axes, strict=True))
        term = complex(*rng.standard_normal(2)) * np.exp(1j * phase)
        field += term
        for slope, k, length in zip(slopes, wave, lengths, strict=True):
            slope += 2j * pi * k / length * term
    if real:
        field, slopes = field.real, [slope.real for slope in slopes]

    def program(comm):
        f = FFT(shape, layout, grid, comm, field.dtype, axes)
        X = f.forward(DistTensor.from_global(field, layout, comm, grid))
        assert f.axes == axes
        for k, slope in zip(f.local_wavenumbers(lengths, nyquist="zero"), slopes, strict=True):
            got = f.backward(DistTensor(1j * k * X.local, X.distribution, comm))
            near(got * (1 / (1 + prod(shape))), slope / (1 + prod(shape)))

    rote.run(program, prod(grid))


@given(settings_of_transforms())
def test_derivatives_of_real_tensors_are_real(setting):
    """Without Nyquist's modes an odd derivative of any real tensor is real, and an even one is real with them."""
    shape, layout, grid, axes = setting
    array = numbers(shape, 9, real=True)

    def program(comm):
        whole, half = (FFT(shape, layout, grid, comm, code, axes) for code in "Dd")
        x = DistTensor.from_global(array, layout, comm, grid)
        X, R = whole.forward(x.astype("D")), half.forward(x)
        for power, nyquist in ((1, "zero"), (2, "keep"), (3, "zero")):
            ks, halves = whole.local_wavenumbers(nyquist=nyquist), half.local_wavenumbers(nyquist=nyquist)
            for k, r in zip(ks, halves, strict=True):
                slope = whole.backward(DistTensor((1j * k) ** power * X.local, X.distribution, comm)).to_global()
                scale = max(1, abs(slope).max())
                assert abs(slope.imag).max() <= 1e-12 * scale
                got = half.backward(DistTensor((1j * r) ** power * R.local, R.distribution, comm)).to_global()
                assert abs(got - slope.real).max() <= 1e-12 * scale

    rote.run(program, prod(grid))


@given(settings_of_transforms())
def test_parseval_of_half_a_spectrum(setting):
    """Every frequency of half a spectrum counts twice in the sum of squares, but zero and Nyquist's count once."""
    shape, layout, grid, axes = setting
    array = numbers(shape, 10, real=True)

    def program(comm):
        f = FFT(shape, layout, grid, comm, "d", axes, norm="ortho")
        X = f.forward(DistTensor.from_global(array, layout, comm, grid))
        last = fftfreq(f)[-1]
        twice = np.where((last == 0) | (last == 0.5), 1, 2)
        squares = DistTensor(twice * np.square(np.abs(X.local)), X.distribution, comm).to_global().sum()
        assert abs(squares - np.square(array).sum()) <= 1e-12 * squares

    rote.run(program, prod(grid))


@given(settings_of_transforms())
def test_shift_is_numpys(setting):
    """The shifted tensor, gathered, is numpy.fft's of the gathered tensor; and the frequencies ascend then."""
    shape, layout, grid, _ = setting
    array = numbers(shape, 11)

    def program(tensor, axes):
        x = tensor(array)
        for ours, numpys in ((fftshift, np.fft.fftshift), (ifftshift, np.fft.ifftshift)):
            assert np.array_equal(ours(x, axes).to_global(), numpys(array, axes))
        f = FFT(shape, layout, grid, x.comm, axes=axes)
        for axis, w in zip(axes, fftfreq(f), strict=True):
            block = np.array(np.broadcast_to(w, f.walk.target.local_shape(x.comm.rank)))
            ascending = fftshift(DistTensor(block, f.walk.target, x.comm), axis).to_global()
            assert (np.diff(ascending, axis=axis) > 0).all()

    on_ranks(setting, program)


@st.composite
def settings_of_convolutions(draw):
    """Two shapes that may be convolved along some axes, two layouts, a grid, and the mode."""
    shape, layout, grid, axes = draw(settings_of_transforms().filter(lambda s: len(s[0]) <= 3))
    mode = draw(st.sampled_from(spectra.MODES))
    most = [n if mode in ("valid", "wrap") else 9 for n in shape]
    other = [draw(st.integers(1, most[a])) if a in axes else draw(st.sampled_from((1, n))) for a, n in enumerate(shape)]
    entries = draw(st.permutations([str(g) for g in range(len(grid))]))[: len(shape)]
    kind = draw(st.sampled_from(("", "block")))
    second = kind + "[" + ",".join(f"({e})" for e in entries + [""] * (len(shape) - len(entries))) + "]"
    return shape, tuple(other), layout, second, grid, axes, mode


@given(settings_of_convolutions(), st.sampled_from(("dd", "Dd", "dD", "DD")), st.booleans())
def test_convolution_is_scipys(setting, codes, correlated):
    """Convolution and correlation of any two tensors are scipy.signal's of the gathered ones, in x's layout."""
    shape, other, layout, second, grid, axes, mode = setting
    a, b = numbers(shape, 12, codes[0] == "d"), numbers(other, 13, codes[1] == "d")
    want = spectra.by_scipy(a, b, mode, axes, correlated)

    def program(comm):
        x, y = DistTensor.from_global(a, layout, comm, grid), DistTensor.from_global(b, second, comm, grid)
        for operand in (y, b):
            with rote.config(implicit="allow"):  # y comes to x's layout
                got = (correlate if correlated else convolve)(x, operand, mode, axes)
            assert got.dtype == want.dtype and (got.distribution == x.distribution or got.shape != x.shape)
            near(got, want)

    rote.run(program, prod(grid))


@settings(max_examples=examples(20))
@given(settings_of_transforms(), st.integers(0, 2**31))
def test_convolution_theorem(setting, seed):
    """Around a circle convolution commutes, and a shifted impulse shifts; x correlates with itself at lag 0."""
    shape = setting[0]
    array = numbers(shape, seed)
    at = tuple(int(n) for n in np.random.default_rng(seed).integers(0, shape))

    def program(tensor, axes):
        x, y = tensor(array), tensor(numbers(shape, seed + 1))
        near(convolve(x, y, "wrap", axes), convolve(y, x, "wrap", axes))
        impulse = np.zeros(tuple(n if a in axes else 1 for a, n in enumerate(shape)))
        impulse[tuple(i if a in axes else 0 for a, i in enumerate(at))] = 1
        near(convolve(x, impulse, "wrap", axes), np.roll(array, [at[a] for a in axes], axes))
        lag = correlate(x, x, "wrap", axes).to_global()
        zero = tuple(slice(0, 1) if a in axes else slice(None) for a in range(len(shape)))
        near(lag[zero], (abs(array) ** 2).sum(axes, keepdims=True) + 0j)

    on_ranks(setting, program)


# --- what travels -------------------------------------------------------------------------------------------------


def heard(comm, call):
    """What this rank heard of others while `call` ran: per collective the elements, those that carry none left out."""
    comm.take()
    call()
    return [found.elements for found in comm.take() if found.elements]


@pytest.mark.parametrize("layout", ("block[(0),(),()]", "[(0),(),()]", "block[(),(0),()]"))
@pytest.mark.parametrize("code", "dD")
def test_a_convolution_is_never_laid_out_as_its_input_in_between(layout, code):
    """What travels is what three transforms move, two forward and one backward, and nothing else."""

    def program(comm):
        comm = Recording(comm)
        f = FFT((8, 8, 6), layout, comm.size, comm, code)
        x = DistTensor.from_global(numbers((8, 8, 6), 1, code == "d"), layout, comm)
        spectrum = f.forward(x)
        for call in (convolve, correlate):
            call(x, x, "wrap")  # the first time binds
            forth, back = heard(comm, lambda: f.forward(x)), heard(comm, lambda: f.backward(spectrum))
            assert forth and back
            assert heard(comm, lambda call=call: call(x, x, "wrap")) == [*forth, *forth, *back]

    rote.run(program, 2)


def test_padding_where_an_axis_is_whole_is_local():
    """A kernel that all ranks have comes to its place without a word, and so do zeros along an axis that is whole."""

    def program(comm):
        comm = Recording(comm)
        x = DistTensor.from_global(numbers((6, 8), 1, real=True), "block[(0),()]", comm)
        kernel = numbers((1, 5), 2, real=True)
        for mode in spectra.MODES:
            convolve(x, kernel, mode, axes=1)
            assert heard(comm, lambda mode=mode: convolve(x, kernel, mode, axes=1)) == []

    rote.run(program, 3)


def test_shifts_travel_once():
    """Of n points in blocks on p ranks each hears no more than its block; cyclic on p that divides n/2, nothing."""

    def program(comm):
        comm = Recording(comm)
        for layout, travels in (("block[(0),()]", True), ("[(0),()]", False), ("[(),(0)]", True), ("[(),()]", False)):
            x = DistTensor.from_global(numbers((16, 6), 1), layout, comm)
            fftshift(x)  # the first time binds
            assert sum(heard(comm, lambda x=x: fftshift(x))) <= x.local.size * travels
            assert bool(heard(comm, lambda x=x: fftshift(x))) == travels
        fftshift(x)  # of a tensor that every rank has whole
        assert comm.take() == ()

    rote.run(program, 4)


def test_padding_goes_no_further_than_what_is_asked_for():
    """Of n and m points "valid" transforms n, "same" no more than "full", n + m - 1; or the next fast length."""
    for n in range(1, 40):
        for m in range(1, n + 1):
            lengths = {mode: part(n, m, mode, False)[0] for mode in spectra.MODES}
            assert lengths["wrap"] == n <= lengths["valid"] == fast_length(n) <= lengths["same"] <= lengths["full"]
            assert lengths["full"] == fast_length(n + m - 1)
    smooth = [n for n in range(1, 3000) if 2**11 * 3**7 * 5**4 * 7**4 % n == 0]
    for least, wanted in ((n, next(s for s in smooth if s >= n)) for n in range(1, 2900)):
        assert fast_length(least) == wanted
