"""Every family of walks against numpy.fft and against the laws of the transform, on in-process and on MPI ranks."""

from __future__ import annotations

import json
from pathlib import Path

import families
import numpy as np
import pytest
from families import FAMILIES, moves_of, numbers, pick_case
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from marks import examples, mpi_parts, parts_on
from strategies import distributions

import rote
from rote import DistTensor
from rote.fft import FFT

pytestmark = pytest.mark.filterwarnings("ignore::rote.GatherWarning")  # a slab of one axis

PROGRAM = Path(__file__).with_name("families.py")
CASES = {1: 24, 2: 24, 3: 24, 4: 24, 6: 24, 8: 12, 16: 6}
MPI_CASES = {1: 24, 2: 24, 3: 18, 4: 18, 6: 12}


@pytest.mark.parametrize(("ranks", "part"), parts_on(*CASES))
def test_on_ranks_of_this_process(ranks, part):
    """Law: on any ranks, each family's forward is numpy.fft's, and its backward is the inverse of any spectrum."""
    rote.run(families.check_families, ranks, (CASES[ranks], part))


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "part"), mpi_parts(), indirect=["job"])
def test_on_mpi_ranks(job, part):
    """The same on MPI ranks."""
    done = job.run(PROGRAM, MPI_CASES[job.ranks], part, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert json.loads(done.stdout) == {"ranks": job.ranks}


def test_the_cases_are_many():
    """Of the seeded cases, some are of every family, order, kind of layout and number of levels that there is."""
    found = {ranks: [*families.cases(ranks, number)] for ranks, number in CASES.items()}
    every = [case for some in found.values() for case in some]
    assert {case.family for case in every} == set(FAMILIES)
    assert {len(case.shape) for case in every} == {1, 2, 3, 4, 5}
    kinds = {entry.kind for case in every for mode in case.layout.modes for entry in mode}
    assert {kind.name for kind in kinds} == {"block", "cyclic", "ceil", "floor"} and any(kind.at for kind in kinds)
    assert any(case.mixed for case in every) and any(case.layout.view for case in every)
    assert any(len(case.axes) < len(case.shape) for case in every) and any(case.output for case in every)
    assert {1, 2, 3, 5, 7} <= {extent for case in every for extent in case.shape}
    own = [case for case in every if case.family in ("volumetric", "cyclic") and not case.mixed]
    taken = {
        moves_of(n, case.grid[mode[0].grid_mode])
        for case in own
        for n, mode in zip(case.shape, case.layout.modes, strict=True)
        if len(mode) == 1 and case.grid[mode[0].grid_mode] > 1
    }
    assert {1, 2, 3, 4} <= taken
    for ranks, some in found.items():
        assert all(case.ranks == ranks for case in some)


def test_a_wrong_number_is_found():
    """The comparison can fail: one number on one rank that is off by 1e-10."""

    def program(comm):
        x = DistTensor.from_global(numbers((9, 5), "D"), "[(0),()]", comm)
        X = rote.fft.fftn(x, algorithm="volumetric")
        X.local[-1, -1] *= 1 + 1e-10 * (comm.rank == 1)
        families.same(X, np.fft.fftn(numbers((9, 5), "D")), "volumetric")

    with pytest.raises(AssertionError, match="volumetric"):
        rote.run(program, 3)


@given(distributions(), st.sampled_from(("auto", "volumetric", "cyclic", "rows")), st.data())
@settings(max_examples=examples(80))
def test_any_layout_is_transformed_or_refused(dist, family, data):
    """Law: from any layout, views, sums and roots among them, a family gives numpy.fft's numbers or a LayoutError.

    Where a family would have to reduce complex numbers to the largest or least, which they have not, it is a PlanError.
    """
    assume(dist.shape)
    axes = data.draw(st.lists(st.sampled_from(range(len(dist.shape))), min_size=1, unique=True))

    def program(comm):
        x = DistTensor.from_global(numbers(dist.shape, "D"), dist.layout, comm, dist.grid)
        try:
            X = rote.fft.fftn(x, axes=axes, algorithm=family)
        except rote.LayoutError:
            return
        except rote.PlanError as refusal:
            assert dist.partial and f"complex numbers have no {dist.layout.op}" in str(refusal)
            return
        want = np.fft.fftn(numbers(dist.shape, "D"), axes=axes)
        most = np.abs(want).max(initial=1)
        assert np.abs(X.to_global() - want).max(initial=0) <= families.tolerance("D", want.size) * most

    rote.run(program, dist.grid.size)


# --- long double ----------------------------------------------------------------------------------------------------

IN_LONG_DOUBLE = [
    ("slab", (8, 9), "block[(0),()]", (4,)),
    ("pencil", (4, 6, 5), "block[(0),(1),()]", (2, 2)),
    ("rows", (4, 6, 5), "(a b) c: block[(0),()]", (4,)),
    ("volumetric", (8, 4, 3), "[(0),(1),()]", (2, 2)),
    ("cyclic", (16, 5), "[(0),()]", (4,)),
    ("cyclic", (16, 3), "[(0),()]", (8,)),
    ("cyclic", (4, 6, 5), "[(0),(1:block),()]", (2, 2)),
]


def directly(array):
    """The transform by its definition, one axis after the other, in long double."""
    found = array.astype("G")
    for axis, n in enumerate(array.shape):
        k = np.arange(n)
        angle = (np.multiply.outer(k, k) % n).astype("g") * (8 * np.arctan(np.longdouble(1)) / n)
        matrix = np.cos(angle) - 1j * np.sin(angle)
        found = np.moveaxis(np.tensordot(matrix, found, (1, axis)), 0, axis)
    return found


@pytest.mark.parametrize(("family", "shape", "layout", "grid"), IN_LONG_DOUBLE)
def test_long_double_is_more_than_double(family, shape, layout, grid):
    """Law: in long double each family is the definition's sum to 1e-17 of the largest number; double is not."""

    def program(comm):
        off = []
        for code in "GgDd":
            f = FFT(shape, layout, grid, comm, code, algorithm=family)
            x = DistTensor.from_global(array.astype(code) if code in "GD" else array.real.astype(code), layout, comm)
            X = f.forward(x).to_global()
            want = (exact if code in "GD" else real)[..., : X.shape[-1]]
            off.append(np.abs(X - want).max() / np.abs(want).max())
            back = f.backward(f.forward(x)).to_global()
            off.append(np.abs(back - x.to_global()).max())
        return [float(error) for error in off]

    array = numbers(shape, "G")
    exact, real = directly(array), directly(array.real)
    errors = rote.run(program, int(np.prod(grid)))[0]
    assert max(errors[:4]) < 1e-17
    assert 1e-17 < errors[4] < 1e-15 and 1e-17 < errors[6] < 1e-15


# --- laws -----------------------------------------------------------------------------------------------------------


@st.composite
def families_at_work(draw):
    """A case on at most 8 ranks."""
    return pick_case(lambda options: draw(st.sampled_from(options)), draw(st.sampled_from((1, 2, 3, 4, 6, 8))))


def on_ranks(case, program, norm=None, code="D"):
    """Run `program(transform, tensor)` on the ranks of a case; `tensor(array)` lays an array out as the case says."""

    def rank(comm):
        f = FFT(case.shape, case.layout, case.grid, comm, code, case.axes, case.family, norm, case.output)
        program(f, lambda array: DistTensor.from_global(array, case.layout, comm, case.grid))

    rote.run(rank, case.ranks)


def near(a, b):
    """Two tensors of one distribution, block by block."""
    assert a.distribution == b.distribution
    families.same(a, b.to_global(), "a law")


@given(families_at_work())
@settings(max_examples=examples(25))
def test_parseval(case):
    """Law: the ortho transform keeps the sum of squares, and the inner product of two tensors."""

    def program(f, tensor):
        arrays = [numbers(case.shape, "D", seed) for seed in (3, 4)]
        X, Y = (f.forward(tensor(array)).to_global() for array in arrays)
        x, y = arrays
        scale = np.linalg.norm(x) * np.linalg.norm(y)
        assert abs(np.vdot(x, y) - np.vdot(X, Y)) <= 1e-13 * scale
        assert abs(np.linalg.norm(x) - np.linalg.norm(X)) <= 1e-13 * np.linalg.norm(x)

    on_ranks(case, program, "ortho")


@given(families_at_work(), st.complex_numbers(max_magnitude=10), st.complex_numbers(max_magnitude=10))
@settings(max_examples=examples(25))
def test_linear(case, a, b):
    """Law: F(a x + b y) = a F(x) + b F(y), all of them distributed."""

    def program(f, tensor):
        x, y = (tensor(numbers(case.shape, "D", seed)) for seed in (5, 6))
        both = f.forward(a * x + b * y)
        one, other = f.forward(x), f.forward(y)
        scale = 1 / (1 + abs(a) + abs(b))
        near(both * scale + one, (a * one + b * other) * scale + one)

    on_ranks(case, program)


@given(families_at_work(), st.lists(st.integers(-20, 20), min_size=5, max_size=5))
@settings(max_examples=examples(25))
def test_shift(case, by):
    """Law: a tensor rolled along all its axes has the spectrum times exp(-2 pi i k s / n), at each global index k."""

    def program(f, tensor):
        array, moved = numbers(case.shape, "D", 7), by[: len(case.axes)]
        X, Y = f.forward(tensor(array)), f.forward(tensor(np.roll(array, moved, case.axes)))
        if X.local.size:
            held = X.distribution.tensor_indices(X.comm.rank)
            for axis, s in zip(case.axes, moved, strict=True):
                n = case.shape[axis]
                X.local[...] *= np.exp(-2j * np.pi * (held[axis] * s % n) / n)
        near(Y, X)

    on_ranks(case, program)
