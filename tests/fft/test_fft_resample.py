"""Spectra on another number of points (resample=), for every pair of lengths, against `scipy.signal.resample`."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.signal
from families import numbers

import rote
from rote import DistTensor
from rote.fft import FFT
from rote.fft.program.operations import BoundResize
from rote.fft.walk import Resize

LENGTHS = range(1, 19)
PAIRS = ((7, 6), (6, 7), (9, 8), (2, 3), (8, 6), (4, 8), (5, 9), (1, 2))
LAYOUTS = {  # the layout, the axis that is resampled, the shape beside it, the ranks
    "one rank": ("[()]", 0, (), 1),
    "whole": ("block[(0),()]", 1, (3,), 2),
    "moved": ("block[(0),()]", 0, (4,), 2),
    "cyclic": ("[(0),()]", 0, (2,), 2),
    "rows": ("(a b) c: block[(0),()]", 0, (2, 2), 2),
}


def resized(spectrum, points, kept, half):
    """A spectrum on as many points as are kept."""
    resize = Resize("resample", 0, points, kept, half)
    here, there = (np.arange(n) for n in resize.extents)
    out = np.full(len(there), np.nan, complex)
    BoundResize.of(resize, here, there, spectrum.dtype)(spectrum, out)
    return out


@pytest.mark.parametrize("half", (False, True))
def test_every_pair_of_lengths(half):
    """Law: of any points to any others, half a spectrum or all of it becomes that of scipy's resampled signal."""
    transform = np.fft.rfft if half else np.fft.fft
    for points, kept in product(LENGTHS, LENGTHS):
        array = numbers((points,), "d" if half else "D")
        found = resized(transform(array, norm="forward"), points, kept, half)
        want = transform(scipy.signal.resample(array, kept), norm="forward")
        assert np.abs(found - want).max() < 1e-14, (points, kept)


def there_and_back(comm, layout, axis, beside, code):
    """Per pair of lengths, how far forward and backward are from the signal that SciPy makes of these points."""
    errors = []
    for points, kept in PAIRS:
        shape = (*beside[:axis], points, *beside[axis:])
        array = numbers(shape, code)
        axes = [other for other in range(len(shape)) if other != axis] + [axis]  # a real axis is the last
        f = FFT(shape, layout, comm.size, comm, code, axes, norm="forward", resample=[*beside, kept])
        X = f.forward(DistTensor.from_global(array, layout, comm, f.grid))
        transform = np.fft.fftn if code == "D" else np.fft.rfftn
        smooth = scipy.signal.resample(array, kept, axis=axis)
        found = X.to_global(), f.backward(X).to_global()
        wanted = transform(smooth, axes=axes, norm="forward"), scipy.signal.resample(smooth, points, axis=axis)
        errors += [float(np.abs(got - want).max()) for got, want in zip(found, wanted, strict=True)]
    return errors


@pytest.mark.parametrize("code", "Dd")
@pytest.mark.parametrize("name", LAYOUTS)
def test_in_every_layout(name, code):
    """Law: what is kept is the spectrum of scipy's resampled signal, and backward resamples that to all points."""
    layout, axis, beside, ranks = LAYOUTS[name]
    for errors in rote.run(there_and_back, ranks, (layout, axis, beside, code)):
        assert max(errors) < 1e-14
