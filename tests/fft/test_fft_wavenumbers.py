"""Wavenumbers of spectra that were redistributed, and SciPy's names of transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.fft

import rote
from rote import DistTensor


@pytest.mark.parametrize("ranks", (1, 2, 4))
def test_wavenumbers_of_a_spectrum_that_was_redistributed(ranks: int) -> None:
    """Law: in any layout of the spectrum they are NumPy's of its indices, and products with it move nothing; of axes
    that are named, they are those of these axes."""
    k = [np.fft.fftfreq(n, 1 / n) for n in (6, 5)] + [np.fft.rfftfreq(4, 1 / 4)]
    whole = np.meshgrid(*k, indexing="ij")

    def program(comm: Any) -> None:
        f = rote.fft.FFT((6, 5, 4), "block[(0),(),()]", comm=comm, dtype="f8")
        X = f.forward(DistTensor.from_function(lambda i, j, k: i * j + k**2.0, f.shape, f.input_layout, comm))
        for layout in ("[(),(),()]", "block[(),(0),()]", "[(),(),(0:cyclic)]", "block[(0),(),()]"):
            Y = X.redistribute(layout)
            for axes in (None, (0, 2), -1, (1,)):
                named = range(3) if axes is None else [axis % 3 for axis in np.atleast_1d(axes)]
                tensors, blocks = (
                    f.wavenumbers(axes=axes, layout=layout),
                    f.local_wavenumbers(axes=axes, layout=Y.layout),
                )
                assert len(tensors) == len(blocks) == len(named)
                for axis, tensor, block in zip(named, tensors, blocks, strict=True):
                    with rote.config(implicit="error"):
                        np.testing.assert_allclose((Y * tensor).to_global(), X.to_global() * whole[axis], 1e-12, 1e-12)
                    np.testing.assert_allclose((Y.local * block), (Y * tensor).local, 1e-12, 1e-12)
        part = rote.fft.FFT((6, 5), "block[(),(0)]", comm=comm, axes=(0,))
        for call in (
            lambda: f.wavenumbers(axes=3),
            lambda: f.local_wavenumbers(layout="[(0)]"),
            lambda: part.wavenumbers(axes=1),
        ):
            with pytest.raises((rote.LayoutError, np.exceptions.AxisError)):
                call()

    rote.run(program, ranks)


@pytest.mark.parametrize("name", ("dct", "idst", "dctn", "fft", "rfft2", "irfft"))
def test_scipys_names_take_tensors(name: str) -> None:
    """Law: with `scipy.fft.set_backend(rote.fft)`, its functions give for tensors what they give for arrays; without
    it the error names the function of this package, and arrays are SciPy's own."""
    values = np.arange(24.0).reshape(4, 6) ** 2
    function = getattr(scipy.fft, name)

    def program(comm: Any) -> None:
        x = DistTensor.from_global(values, "block[(0),()]", comm)
        with pytest.raises(rote.LayoutError, match=r"write the function of rote\.fft"):
            function(x)
        with scipy.fft.set_backend(rote.fft):
            np.testing.assert_allclose(function(x).to_global(), function(values), rtol=1e-12, atol=1e-10)
            assert type(function(values)) is np.ndarray

    rote.run(program, 2)
