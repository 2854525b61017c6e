"""Kernels of large blocks: planes in cache, then the lines across them, are what one kernel of all axes is."""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
import scipy.fft
from marks import PARTS
from parts import share

import rote
from rote.fft.kernels.kernel import Kernel
from rote.fft.program import operations
from rote.fft.transforms import KINDS

SHAPE = (6, 5, 8)
AXES = [axes for count in (1, 2, 3) for axes in permutations(range(3), count)]
SEVERAL = [axes for axes in AXES if 0 in axes and len(axes) > 1]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_kernels_in_turn_go_from_one_to_the_other(kind: str) -> None:
    """Law: each begins where the one before ends; all axes are done once, those of mode 0 by themselves."""
    row = KINDS[kind]
    for axes in SEVERAL:
        shape, out_shape = list(SHAPE), list(SHAPE)
        shape[axes[-1]], out_shape[axes[-1]] = row.taken(8), row.given(8)
        dtype = np.dtype("f8" if row.real in ("input", "both") else "c16")
        whole = Kernel(row.name, axes, tuple(shape), tuple(out_shape), dtype)
        every = whole.in_turn()
        assert sorted(axis for kernel in every for axis in kernel.axes) == sorted(axes)
        assert (every[0].shape, every[0].dtype) == (whole.shape, whole.dtype)
        assert (every[-1].out_shape, every[-1].out_dtype) == (whole.out_shape, whole.out_dtype)
        for before, after in pairwise(every):
            assert (before.out_shape, before.out_dtype) == (after.shape, after.dtype)
            assert (0,) in (before.axes, after.axes)
        assert next(kernel for kernel in every if kernel.axes[-1] == axes[-1]).kind == kind


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("ranks, tune", [(1, "model"), (2, "model"), (2, "measure"), (7, "model")])
def test_transforms_in_turn_are_numpys(
    ranks: int, tune: str, threads: int, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: along any axes, in any order, real and complex, with weights on faces or without; ranks may hold nothing."""
    monkeypatch.setattr(operations, "_LARGE", 0)
    rng = np.random.default_rng(3)
    real = rng.standard_normal(SHAPE)
    z = real + 1j * rng.standard_normal(SHAPE)

    def program(comm: rote.Comm) -> None:
        options: dict[str, Any] = {"layout": "block[(0),(),()]", "comm": comm, "threads": threads, "tune": tune}
        if tune == "measure":
            options["tune_seconds"] = 0.05
        for axes in share(AXES, part, 2, ranks + threads + len(tune), of=3):
            for dtype, values, kinds in (("c16", z, None), ("f8", real, None), ("f8", real, "dct3")):
                for norm in ("backward", "ortho"):
                    f = rote.fft.FFT(SHAPE, dtype=dtype, axes=axes, norm=norm, kinds=kinds, **options)
                    X = f.forward(rote.DistTensor.from_global(values, "block[(0),(),()]", comm))
                    if kinds:
                        want = scipy.fft.dctn(values, 3, axes=axes, norm=norm)
                    else:
                        transform = np.fft.fftn if dtype == "c16" else np.fft.rfftn
                        want = transform(values, axes=axes, norm=norm)
                    np.testing.assert_allclose(X.to_global(), want, atol=1e-12)
                    np.testing.assert_allclose(f.backward(X).to_global(), values, atol=1e-12)

    rote.run(program, ranks)
