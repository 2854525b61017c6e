"""FFTs of arrays of JAX equal those of NumPy and SciPy, undo each other, and send what their moves say."""

from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import dataclass
from math import log2, prod
from pathlib import Path

import jax
import numpy as np
import pytest
import scipy.fft
from devices import NAMES, collectives, compiled, mesh_of
from jax.sharding import PartitionSpec

sys.path.append(str(Path(__file__).parents[1] / "fft"))

from families import pick_case

from rote.jax import FFT, from_global, to_global

MESHES = [(1,), (2,), (3,), (4,), (8,), (2, 2), (2, 4), (4, 2), (2, 3), (2, 2, 2)]
EXTENTS = [4, 5, 6, 7, 8, 9, 12, 13, 16, 18, 24, 32]
REAL_KINDS = ["dct2", "dct3", "dst2", "dst3"]
NORMS = ["backward", "ortho", "forward"]


@dataclass(frozen=True)
class Case:
    """A transform of random numbers: what `FFT` takes, and its kinds by axis."""

    mesh: tuple[int, ...]
    shape: tuple[int, ...]
    layout: PartitionSpec | str
    kinds: dict[int, str]
    dtype: str
    order: str
    norm: str
    algorithm: str = "auto"

    @property
    def fft(self):
        return FFT(
            self.shape, self.layout, mesh_of(self.mesh), self.dtype, kinds=self.kinds, order=self.order, norm=self.norm
        )


def usual_case(pick):
    """A case with at least one axis that may be whole at some time; a batch is of modes that no kind names."""
    mesh = pick(MESHES)
    order = pick([2, 2, 3, 3, 3, 4])
    shape = tuple(pick(EXTENTS[: 12 if order < 3 else 9 if order < 4 else 5]) for _ in range(order))

    spec = [[] for _ in shape]
    for name in NAMES[: len(mesh)]:
        spec[pick(range(order - 1))].append(name)
    turn = pick(range(order))
    spec = [tuple(names) or None for names in spec[turn:] + spec[:turn]]

    axes = sorted(pick([range(order), range(1, order), [pick(range(order))]]), key=lambda _: pick([0, 1]))
    dtype = pick(["f4", "f8", "c8", "c16"])
    kinds = dict.fromkeys(axes, "fft")
    if dtype[0] == "f":
        kinds[axes[-1]] = "rfft"
    return Case(
        mesh,
        shape,
        PartitionSpec(*spec),
        kinds,
        dtype,
        pick(["natural", "any"]),
        pick(["backward", "ortho", "forward"]),
    )


def family_case(pick):
    """A case of each family, and of six steps, in layouts of all kinds."""
    family = pick(["slab", "pencil", "rows", "volumetric", "cyclic", "ragged", "auto"])
    case = pick_case(pick, pick([1, 2, 3, 4, 6, 8]), "auto" if family == "ragged" else family)
    while len(case.grid) > 3:
        case = pick_case(pick, pick([1, 2, 3, 4, 6, 8]), case.family)
    dtype = pick(["f4", "f8", "c8", "c16"] if case.real else ["c8", "c16"])
    kinds = dict.fromkeys(case.axes, "fft")
    if dtype[0] == "f":
        kinds[case.axes[-1]] = "rfft"
    return Case(case.grid, case.shape, case.layout, kinds, dtype, pick(["any", "any", "natural"]), pick(NORMS), family)


def expected(array, kinds, norm):
    """The transform by NumPy and SciPy, in double precision: real kinds first, then half spectra, then complex ones."""
    wide = array.astype(np.result_type(array, np.float64))
    for axis, kind in sorted(kinds.items(), key=lambda item: (item[1] == "fft", item[1] == "rfft")):
        if kind in ("fft", "rfft"):
            wide = getattr(np.fft, kind)(wide, axis=axis, norm=norm)
        else:
            wide = getattr(scipy.fft, kind[:3])(wide, int(kind[3:]), axis=axis, norm=norm)
    return wide


def numbers(shape, dtype, seed):
    """Random numbers of a dtype."""
    rng = np.random.default_rng(seed)
    parts = rng.standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1] if dtype[0] == "c" else parts[0]).astype(dtype)


def check(case, seed):
    """Law: forward equals NumPy, backward undoes it, and the program has the collectives of the moves."""
    fft, array = case.fft, numbers(case.shape, case.dtype, seed)
    wanted = expected(array, case.kinds, case.norm)
    near = 4 * np.finfo(case.dtype).eps * log2(max(2, prod(case.shape[axis] for axis in case.kinds)))

    x = from_global(array, fft.source, fft.mesh)
    spectrum = fft.forward(x)
    result = to_global(spectrum, fft.target, wanted.shape)
    assert result.dtype == (case.dtype if wanted.dtype == "f8" else np.result_type(case.dtype, np.complex64))
    assert abs(result - wanted).max() <= near * abs(wanted).max()
    back = to_global(fft.backward(spectrum), fft.source, case.shape)
    assert back.dtype == array.dtype and abs(back - array).max() <= near * abs(array).max()

    if case.order == "natural" and isinstance(case.layout, PartitionSpec):
        assert fft.target.layout == fft.source.layout
    lowered = fft.lowered[0]
    if not lowered.tables:
        moved = sum([collectives(move.digits) for move in lowered.moves], Counter())
        assert compiled(jax.jit(fft.forward), x) == moved
    return lowered.tables


def check_many(make, seeds):
    for seed in seeds:
        case = make(random.Random(seed).choice)
        try:
            check(case, seed)
        except Exception as error:
            raise AssertionError(f"{case}, seed {seed}") from error


def test_transforms_equal_numpy():
    """Law: `check`, of whole axes that are transposed."""
    check_many(usual_case, range(12))


@pytest.mark.slow
def test_more_transforms_equal_numpy():
    """Law: `check`, of whole axes that are transposed."""
    check_many(usual_case, range(12, 240))
