"""Small odd shapes in every precision: blocks whose scratch is no round number of bytes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from marks import parts_on
from parts import share

import rote
from rote import DistTensor
from rote.fft import FFT

CODES = "fdgFDG"


@pytest.mark.parametrize(("ranks", "part"), parts_on(2, 3))
def test_small_odd_shapes_of_every_dtype(ranks, part):
    """fftn and rfftn are NumPy's, in shared scratch."""

    def program(comm):
        world = product(("block[(0),()]", "[(),(0)]"), product((1, 5), (3, 5, 7)), CODES)
        for layout, shape, code in share(world, part, 5, ranks):
            values = np.random.default_rng(shape).standard_normal(shape).astype(code)
            x = DistTensor.from_global(values, layout, comm)
            run, want = (rote.fft.fftn, np.fft.fftn) if code.isupper() else (rote.fft.rfftn, np.fft.rfftn)
            X = run(x)
            tolerance = 1e-5 if code in "fF" else 1e-12
            np.testing.assert_allclose(X.to_global(), want(values), atol=tolerance, err_msg=f"{layout} {shape} {code}")

    rote.run(program, ranks)


def test_long_doubles_of_odd_extents_on_threads():
    """A real transform of long doubles, cut to odd extents, in blocks of uneven size."""
    array = np.random.default_rng(0).standard_normal((9, 5)).astype("g")

    def program(comm):
        f = FFT((9, 5), "[(0:block(3)),()]", (4,), comm, "g", s=(4, 3), method="shared", threads=2)
        x = DistTensor.from_global(array, f.input_layout, comm, (4,))
        X = f.forward(x)
        back = np.zeros((9, 5))
        back[:4, :3] = array[:4, :3]
        return X.to_global(), f.backward(X).to_global(), back

    for X, y, back in rote.run(program, 4):
        np.testing.assert_allclose(X, np.fft.rfftn(array, (4, 3), (0, 1)), atol=1e-12)
        np.testing.assert_allclose(y, back, atol=1e-12)
