"""The rows of notebooks/scorecard.md: problems that users of other libraries reported, tried with Rote.

Each test has the name of its issue. Right values are NumPy's, or those that the issue asks for.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import rote
from rote.compat.mpi4py_fft import DistArray
from rote.compat.mpi4py_fft.pencil import Subcomm

PAGE = Path(__file__).parents[2] / "notebooks" / "scorecard.md"
RNG = np.random.default_rng(0)


def spread(array, layout, comm, grid=None):
    """A tensor of an array that each rank has."""
    return rote.DistTensor.from_global(array, layout, comm, grid=grid)


def test_jax_13081():
    """FFTs along rows, where rows are split: each rank transforms its own, and nothing moves."""
    array = RNG.random((64, 48)) + 0j

    def program(comm):
        with rote.trace() as moves:
            X = rote.fft.fftn(spread(array, "block[(0),()]", comm), axes=[-1])
        return X.local.shape, len(moves), np.allclose(X.to_global(), np.fft.fft(array))

    assert rote.run(program, ranks=4) == [((16, 48), 0, True)] * 4


def test_jax_15680():
    """The same, padded: no rank loads the whole array."""
    array = RNG.random((40, 40))

    def program(comm):
        with rote.trace() as moves:
            X = rote.fft.fft(spread(array, "block[(0),()]", comm), n=160, axis=1)
        return X.local.shape, len(moves), np.allclose(X.to_global(), np.fft.fft(array, n=160))

    assert rote.run(program, ranks=4) == [((10, 160), 0, True)] * 4


def eigenvalues(ranks):
    """Eigenvalues of a matrix that is split, by ranks of which not all may hold it, and by NumPy."""
    matrix = RNG.random((260, 260))
    matrix = matrix + matrix.T

    def program(comm):
        with rote.config(implicit="allow", gather="error"):
            return np.linalg.eigh(spread(matrix, "block[(0),(1)]", comm))[0].to_global()

    return rote.run(program, ranks)[0], np.linalg.eigvalsh(matrix)


def test_jax_13087():
    """Eigenvalues and singular values of one matrix that is split; tests/linalg has those by ScaLAPACK."""
    matrix = RNG.random((300, 260))

    def singular(comm):
        with rote.config(implicit="allow", gather="error"):
            return np.linalg.svd(spread(matrix, "block[(0),(1)]", comm), full_matrices=False)[1].to_global()

    np.testing.assert_allclose(rote.run(singular, 4)[0], np.linalg.svd(matrix)[1], atol=1e-9)
    np.testing.assert_allclose(*eigenvalues(4), atol=1e-9)


def test_dask_2618():
    """So are those of a matrix in blocks, and of a stack of 3 x 3 matrices, for which nothing moves."""
    np.testing.assert_allclose(*eigenvalues(3), atol=1e-9)
    stack = RNG.random((10, 3, 3))
    stack = stack + stack.transpose(0, 2, 1)

    def program(comm):
        with rote.config(implicit="error"), rote.trace() as moves:
            values = np.linalg.eigvalsh(spread(stack, "block[(0),(),()]", comm))
        return len(moves), np.allclose(values.to_global(), np.linalg.eigvalsh(stack))

    assert rote.run(program, ranks=4) == [(0, True)] * 4


def test_jax_27808():
    """Five elements on four ranks are a layout as any other."""
    dist = rote.parse("block[(0)]").on(5, 4)
    assert [dist.local_shape(rank) for rank in range(4)] == [(2,), (1,), (1,), (1,)]


def test_reactant_jl_2675():
    """125 elements on four ranks use all four."""
    dist = rote.parse("block[(0)]").on(125, 4)
    assert [dist.local_shape(rank)[0] for rank in range(4)] == [32, 31, 31, 31]


def test_jax_18591():
    """The warning of a move that nobody asked for names the line of the program, the layouts and the bytes."""

    def program(comm):
        rows = spread(np.ones((8, 8)), "block[(0),()]", comm)
        return rows + spread(np.ones((8, 8)), "block[(),(0)]", comm)

    told = r"test_pages_scorecard\.py:\d+: add moves up to \d+ bytes to each rank: block"
    with pytest.warns(rote.MoveWarning, match=told):
        rote.run(program, ranks=2)


def test_xla_15207():
    """The resharding of the issue moves what it must and no more, and holds a part of the array."""
    move = "block[(1),(),(0)] -> block[(),(0,1),()]"
    plan = rote.compile(move, shape=(16, 16, 16), grid=(4, 2), dtype="f4")
    plan.verify()
    assert plan.cost.bytes == plan.lower_bound
    assert plan.cost.peak_bytes < 16**3 * 4


def test_pytorch_179502():
    """A view of a mode that is split has the numbers of the whole array."""
    array = RNG.random((12, 8))

    def program(comm):
        with rote.config(implicit="allow"):
            return spread(array, "block(ceil)[(),(0)]", comm).reshape(-1, 6).to_global()

    assert all(np.array_equal(result, array.reshape(-1, 6)) for result in rote.run(program, ranks=4))


def test_pytorch_147570():
    """What is written into a view is in the tensor."""
    array = RNG.random((8, 9))

    def program(comm):
        x = spread(array, "block[(0),()]", comm)
        flat = x.reshape(-1)
        flat *= 3
        return x.to_global()

    assert all(np.array_equal(result, 3 * array) for result in rote.run(program, ranks=2))


def test_pytorch_143372():
    """A view of parts of 2, 2, 2 and 0 rows."""
    array = RNG.random((6, 256))

    def program(comm):
        x = spread(array, "block(ceil)[(0),()]", comm)
        return x.local.shape[0], x.reshape(-1).to_global()

    rows, results = zip(*rote.run(program, ranks=4), strict=True)
    assert rows == (2, 2, 2, 0)
    assert all(np.array_equal(result, array.reshape(-1)) for result in results)


def test_pytorch_103306():
    """Five rows on four ranks and back are five rows."""
    array = RNG.random((5, 10))

    def program(comm):
        x = spread(array, "[(),()]", comm)
        return x.redistribute("block(ceil)[(0),()]").redistribute("[(),()]").local

    assert all(np.array_equal(result, array) for result in rote.run(program, ranks=4))


def test_dask_2620():
    """An FFT over axes that are all split."""
    array = RNG.random((12, 10))

    def program(comm):
        return rote.fft.fftn(spread(array, "block[(0),(1)]", comm, (2, 2))).to_global()

    assert all(np.allclose(result, np.fft.fftn(array)) for result in rote.run(program, ranks=4))


def test_dask_4368():
    """A split array is sorted and argsorted."""
    array = RNG.random(1000)

    def program(comm):
        x = spread(array, "block[(0)]", comm)
        return np.sort(x).to_global(), np.argsort(x).to_global()

    for values, order in rote.run(program, ranks=4):
        assert np.array_equal(values, np.sort(array))
        assert np.array_equal(order, np.argsort(array))


def test_tiledarray_463():
    """The two einsums of the issue, on four ranks."""
    array = RNG.random((4, 4))

    def program(comm):
        x = spread(array, "block[(0),(1)]", comm)
        with rote.config(implicit="allow"):
            return rote.einsum("ij,jk->ik", x, x).to_global(), rote.einsum("ij->ij", x).to_global()

    for product, same in rote.run(program, ranks=4):
        assert np.allclose(product, array @ array)
        assert np.array_equal(same, array)


def test_ctf_98():
    """The einsum of the issue, of a few numbers, on more ranks than it has numbers, and planned for 16,384 ranks."""
    shapes = [(1, 1, 1, 1), (1, 2, 2, 1), (2,)]
    text = "abdi,isup,s->absdup"
    arrays = [RNG.random(shape) for shape in shapes]

    def program(comm):
        layouts = ["block[(0),(),(),()]", "block[(),(0),(),()]", "block[(0)]"]
        with rote.config(implicit="allow"):
            tensors = [spread(array, layout, comm) for array, layout in zip(arrays, layouts, strict=True)]
            return rote.einsum(text, *tensors).to_global()

    assert all(np.allclose(result, np.einsum(text, *arrays)) for result in rote.run(program, ranks=7))
    plan = rote.compile_einsum(text, shapes, [None] * 3, (16_384,))
    assert plan.cost.bytes <= 16 * 8


def test_mpi4py_fft_56():
    """A redistribution that changes nothing fills `out=` all the same, by Rote's names and by mpi4py-fft's."""

    def program(comm):
        x = spread(np.ones((2, 2)), "block[(0),()]", comm)
        out = rote.DistTensor.zeros((2, 2), "block[(0),()]", comm)
        x.redistribute("block[(0),()]", out=out)

        a, b = (DistArray((2, 2), Subcomm(comm, [0, 1])) for _ in "ab")
        a[...], b[...] = 1, 0
        a.redistribute(axis=a.alignment, out=b)
        return np.array_equal(out.local, x.local), np.array_equal(a, b)

    assert rote.run(program, ranks=2) == [(True, True)] * 2


@pytest.mark.parametrize("ranks", range(1, 9))
def test_mpi4py_fft_36(ranks):
    """Slices of a distributed array are those of the array, on any number of ranks."""
    array = RNG.random((8, 7, 6))

    def program(comm):
        x = spread(array, "block[(0),(1),()]", comm)
        keys = (np.s_[0], np.s_[:, 3], np.s_[:, :, 2], np.s_[1:7:2, 2:, 0])
        return all(np.array_equal(x[key].to_global(), array[key]) for key in keys)

    assert all(rote.run(program, ranks))


def test_pyfftw_38():
    """pyFFTW's transforms, over ranks."""
    array = RNG.random((8, 6, 4)) + 0j

    def program(comm):
        f = rote.fft.FFT(array.shape, "block[(0),(),()]", comm=comm)
        return f.forward(spread(array, f.input_layout, comm)).to_global()

    assert all(np.allclose(result, np.fft.fftn(array)) for result in rote.run(program, ranks=3))


@pytest.mark.parametrize("ranks", [1, 3])
def test_p3dfft_3_9(ranks):
    """A complex cube on one rank, and on three that do not divide it."""
    array = RNG.random((16, 16, 16)) + 1j * RNG.random((16, 16, 16))

    def program(comm):
        X = rote.fft.fftn(spread(array, "block[(0),(),()]", comm))
        return np.allclose(X.to_global(), np.fft.fftn(array)), np.allclose(rote.fft.ifftn(X).to_global(), array)

    assert rote.run(program, ranks) == [(True, True)] * ranks


def test_fftw3_20():
    """Transforms of N x 1 on two ranks."""

    def program(comm, array):
        return rote.fft.fftn(spread(array, "block[(0),()]", comm)).to_global()

    for n in (25, 98):
        array = RNG.random((n, 1)) + 0j
        assert all(np.allclose(result, np.fft.fftn(array)) for result in rote.run(program, 2, args=(array,)))


def test_heat_1263():
    """A transform of one axis alone uses all ranks."""
    array = RNG.random(1000) + 0j

    def program(comm):
        X = rote.fft.fft(spread(array, "block[(0)]", comm))
        return X.local.size, np.allclose(X.to_global(), np.fft.fft(array))

    assert rote.run(program, ranks=4) == [(250, True)] * 4


def test_mpi4py_fft_32():
    """An array that exists becomes a tensor, and is transformed."""
    array = RNG.random((8, 8, 8))

    def program(comm):
        return rote.fft.rfftn(spread(array, "block[(0),(1),()]", comm)).to_global()

    assert all(np.allclose(result, np.fft.rfftn(array)) for result in rote.run(program, ranks=4))


def test_mpi4py_fft_17():
    """Blocks that another library made, of sizes 1, 5 and 2, are transformed where they are."""
    array = RNG.random((8, 4))
    ends = [0, 1, 6, 8]

    def program(comm):
        rows = slice(ends[comm.rank], ends[comm.rank + 1])
        x = rote.DistTensor.from_slices(array[rows].copy(), (rows, slice(0, 4)), (8, 4), comm)
        return str(x.layout), np.allclose(rote.fft.fftn(x).to_global(), np.fft.fftn(array))

    assert rote.run(program, ranks=3) == [("block(1,5,2)[(0),()]", True)] * 3


def test_every_row_is_tried():
    """Each issue that the page names has its test, and each test its row."""
    named = re.findall(r"https://github\.com/[^/]+/([^/]+)/issues/(\d+)", PAGE.read_text("utf-8"))
    tried = [name.removeprefix("test_") for name in globals() if re.fullmatch(r"test_\w+_\d+", name)]
    rows = [re.sub(r"\W", "_", f"{library.lower()}_{number}") for library, number in named]
    assert sorted(rows) == sorted(tried)
    assert len(rows) >= 20
