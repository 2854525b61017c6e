"""Cosine and sine transforms and mixed kinds: on all ranks, from the definition, and on virtual ranks."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import cosines
import numpy as np
import pytest
import scipy.fft
from marks import make_checks, mpi_parts, parts_of
from virtual import walked

import rote
from rote import DistTensor
from rote.fft import FFT, dctn, dstn, idctn
from rote.fft.check import build
from rote.fft.families.transpose import rows, transpose
from rote.fft.request import as_request
from rote.fft.transforms import KINDS, kinds_along

pytestmark = pytest.mark.filterwarnings("ignore::rote.GatherWarning")  # cosines of one axis

TRIGONOMETRIC = [row.name for row in KINDS.values() if row.type]
PROGRAM = Path(__file__).with_name("cosines.py")


@pytest.mark.parametrize(("ranks", "check", "args"), parts_of(cosines.CHECKS, 1, 2, 3, 4, whole=(1, 2, 3)))
def test_on_ranks_of_this_process(ranks, check, args):
    """Cosine and sine transforms on in-process ranks do what they must."""
    rote.run(check, ranks, args)


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "part"), mpi_parts(), indirect=["job"])
def test_on_mpi_ranks(job, part):
    """Cosine and sine transforms on MPI ranks do too."""
    make_checks(job, PROGRAM, cosines.CHECKS, part)


def test_a_wrong_face_is_found():
    """The comparison can fail: the first face off by 1e-10, as a forgotten weight would leave it."""

    def program(comm):
        x = DistTensor.from_global(cosines.values((6, 5), "d"), "block[(0),()]", comm)
        X = dctn(x, norm="ortho", output="block[(0),()]")
        X.local[:, 0] *= 1 + 1e-10
        cosines.same(X, cosines.reference((6, 5), "d", ((0, "dct2"), (1, "dct2")), "ortho"))

    with pytest.raises(AssertionError, match="DistTensor"):
        rote.run(program, 2)


def matrix(kind, n, norm=None):
    """What a kind does to the n unit vectors, as columns."""
    function = dctn if kind.startswith("dct") else dstn
    return function(DistTensor.from_global(np.eye(n), "[(),()]"), int(kind[-1]), axes=0, norm=norm).to_global()


def definition(kind, n):
    """The matrix of a kind: FFTW's manual, "1d Real-even DFTs" and "1d Real-odd DFTs"; rows are outputs k."""
    k, j = np.indices((n, n))
    half_k, half_j = (kind[-1] in "34") / 2, (kind[-1] in "24") / 2
    if kind.startswith("dct"):
        size = n - 1 if kind == "dct1" else n
        found = 2 * np.cos(np.pi * (k + half_k) * (j + half_j) / size)
        ends = {"dct1": (0, n - 1), "dct3": (0,)}.get(kind, ())
    else:
        size = n + 1 if kind == "dst1" else n
        shift_k, shift_j = (half_k or 1), (half_j or 1)
        found = 2 * np.sin(np.pi * (k + shift_k) * (j + shift_j) / size)
        ends = {"dst3": (n - 1,)}.get(kind, ())
    found[:, list(ends)] /= 2
    return found


@pytest.mark.parametrize("kind", TRIGONOMETRIC)
def test_is_the_definition(kind):
    """Each kind is the sum of cosines or sines that defines it; the inverse undoes it but for the logical size."""
    for n in range(1 + (kind == "dct1"), 12):
        found = matrix(kind, n)
        assert np.abs(found - definition(kind, n)).max() <= 1e-14 * n
        assert np.abs(matrix(KINDS[kind].inverse, n) @ found / KINDS[kind].logical_size(n) - np.eye(n)).max() <= 1e-13


@pytest.mark.parametrize("kind", TRIGONOMETRIC)
def test_ortho_is_orthogonal(kind):
    """With norm="ortho" the matrix of a kind times its transpose is one, first and last elements included."""
    for n in range(1 + (kind == "dct1"), 12):
        found = matrix(kind, n, "ortho")
        assert np.abs(found @ found.T - np.eye(n)).max() <= 1e-14 * n


@pytest.mark.parametrize("family", (transpose, rows))
@pytest.mark.parametrize("kinds", ("dct2", "idst2", ("dct1", "fft", "rfft"), ("rfft", "fft", "dst4"), ("fft", "dct3")))
def test_on_virtual_ranks(family, kinds):
    """Walks of both families equal scipy's composition on 15 virtual ranks, more than an axis has points."""
    shape, axes = (7, 4, 6), (0, 1, 2)
    if len(kinds) == 2:
        shape, axes = (7, 4, 6, 2), (0, 1, 2, 3)
        kinds = (*kinds, "dst1", "dct4")
    real = "fft" not in kinds or "rfft" in kinds
    source = rote.parse(f"block[(0),{','.join('()' for _ in shape[1:])}]").on(shape, 15)
    array = np.random.default_rng(0).standard_normal(shape)
    array = array if real else array + 1j * array[::-1]
    wanted = as_request(shape, axes, kinds, np.dtype("d" if real else "D"))
    walk = build(source, family(source, wanted), wanted)
    per_axis = dict(zip(axes, kinds_along(kinds, 3) if isinstance(kinds, str) else kinds, strict=True))
    assert dict(enumerate(walk.kinds)) == per_axis
    want = array
    for axis in sorted(axes, key=lambda axis: per_axis[axis] != "rfft"):
        want = cosines.along(per_axis[axis], want, axis, None)
    assert np.abs(walked(walk, array) - want).max() <= 1e-13 * np.abs(want).max()
    back = walked(walk.inverse(), want) / np.prod(walk.sizes, dtype=float)
    assert np.abs(back - array).max() <= 1e-12


def test_text_of_mixed_kinds():
    """A walk of mixed kinds prints them, real ones while the tensor is real, and its text makes the same walk."""
    kinds = {0: "dct2", 1: "fft", 2: "rfft", 3: "dst4"}

    def program(comm):
        f = FFT((4, 5, 6, 3), "block[(0),(1),(),()]", (2, 2), comm, "d", kinds=kinds)
        again = FFT((4, 5, 6, 3), "block[(0),(1),(),()]", (2, 2), comm, "d", algorithm=str(f.walk))
        assert again.walk == f.walk
        return str(f).splitlines()[0], str(f.walk), str(f.walk.inverse())

    ((title, there, back),) = set(rote.run(program, 4))
    assert title == "dct2 x fft x rfft x dst4 of (4, 5, 6, 3) float64 on grid 2x2, axes (0, 1, 3, 2)"
    assert there == (
        "  block[(0),(1),(),()]: dst4(3), rfft(2)\n"
        "    # alltoall over 1\n"
        "  block[(0),(),(1),()]: fft(1)\n"
        "    # alltoall over 0\n"
        "  block[(),(0),(1),()]: dct2(0)"
    )
    assert back == (
        "  block[(),(0),(1),()]: dct3(0)\n"
        "    # alltoall over 0\n"
        "  block[(0),(),(1),()]: ifft(1)\n"
        "    # alltoall over 1\n"
        "  block[(0),(1),(),()]: irfft(2), dst4(3)"
    )


def test_real_axes_are_transformed_while_they_are_real():
    """Rows take real kinds and the real axis in any order, but no complex one before it; so do transposes."""
    for family, order in product((transpose, rows), ((0, 1, 2), (2, 1, 0), (1, 0, 2))):
        kinds = tuple(("dct2", "fft", "rfft")[i] for i in order)
        source = rote.parse("block[(0),(),()]").on((6, 7, 8), 3)
        lines = family(source, as_request((6, 7, 8), (0, 1, 2), kinds, np.dtype("d")))
        done = [action.name for line in lines for action in line.actions]
        assert set(done) >= {"dct2", "rfft"}
        assert "fft" not in done or done.index("rfft") < done.index("fft")


def test_moves_are_those_of_a_real_tensor():
    """A cosine transform moves real numbers: half the bytes of the same complex one, in as many moves."""
    source = rote.parse("block[(0),(1),()]").on((8, 8, 8), (2, 2))
    bytes_of = {}
    for code in "dD":
        wanted = as_request((8, 8, 8), (0, 1, 2), "dct2", np.dtype(code))
        walk = build(source, transpose(source, wanted), wanted)
        bytes_of[code] = [plan.cost.bytes for plan in walk.moves]
    assert len(bytes_of["d"]) == 2 and bytes_of["D"] == [2 * n for n in bytes_of["d"]]


def test_poisson_with_walls():
    """Law: the five-point Laplacian with reflecting walls is diagonal in dct2, by 2 cos(pi k / n) - 2 per axis."""
    n, m = 12, 9
    u = np.random.default_rng(0).standard_normal((n, m))
    padded = np.pad(u, 1, mode="edge")
    laplacian = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:] - 4 * u

    def program(comm):
        X = dctn(DistTensor.from_global(u, "block[(0),()]", comm))
        k, j = X.distribution.indices(comm.rank)
        X.local[...] *= np.add.outer(2 * np.cos(np.pi * k / n) - 2, 2 * np.cos(np.pi * j / m) - 2)
        return idctn(X).to_global()

    for found in rote.run(program, 3):
        assert np.abs(found - laplacian).max() <= 1e-13


def test_scipy_is_the_reference():
    """scipy's own dctn of all axes is the composition that the checks compare with."""
    array = cosines.values((5, 4), "d")
    for name, number, norm in product(("dctn", "dstn", "idctn"), cosines.TYPES, cosines.NORMS):
        want = getattr(scipy.fft, name)(array, type=number, norm=norm)
        kind = f"{name[:-1]}{number}"
        assert np.allclose(cosines.reference((5, 4), "d", ((0, kind), (1, kind)), norm), want, rtol=1e-13)
