"""What holds of the names of mpi4py-fft on any ranks: called by in-process ranks, and by MPI's when run as a script."""

from __future__ import annotations

import functools
import sys
from itertools import cycle, product

import numpy as np
from scipy import fft as scipy_fft

import rote
from rote.compat.mpi4py_fft import PFFT, DistArray, HDF5File, fftw, newDistArray
from rote.compat.mpi4py_fft.mpifft import Transform
from rote.compat.mpi4py_fft.pencil import Pencil, Subcomm

# Shape, axes as PFFT is told, the same as NumPy is told, what else PFFT is told.
CASES = (
    ((8, 9), None, (0, 1), {}),
    ((8, 9), (-1, 0), (1, 0), {}),
    ((8, 9), 0, (0,), {}),
    ((6, 7, 8), None, (0, 1, 2), {"collapse": True}),
    ((6, 7, 8), None, (0, 1, 2), {"slab": True}),
    ((6, 7, 8), ((0,), (1, 2)), (0, 1, 2), {"slab": 0, "threads": 1}),
    ((6, 7, 8), (2, 0), (2, 0), {"grid": (1, -1), "backend": "numpy"}),
    ((6, 7, 8), (1, 2), (1, 2), {}),
    ((4, 5, 6, 4), ((0,), (1,), (2, 3)), (0, 1, 2, 3), {"collapse": True, "grid": (-1,)}),
    ((1, 6, 1), None, (0, 1, 2), {}),
    ((3, 2), None, (0, 1), {}),
)


def whole(comm, block, slices, shape):
    """The array of all ranks' blocks."""
    return rote.DistTensor.from_slices(np.array(block), slices, shape, comm).to_global()


def check_transforms(comm):
    """PFFT gives NumPy's spectrum divided by the points, where it says, and goes back to where it began."""
    for (shape, axes, named, options), dtype in zip(CASES, cycle("dFDf"), strict=False):
        fft, rng = PFFT(comm, shape, axes=axes, dtype=dtype, **options), np.random.default_rng(7)
        array = rng.random(shape).astype(dtype) + (1j * rng.random(shape).astype("f") if dtype in "FD" else 0)
        array = array.astype(dtype)
        given = array[fft.local_slice(False)]
        kept, close = given.copy(), {"rtol": 0, "atol": 1e-5 if dtype in "fF" else 1e-13}
        result = fft.forward(given)
        assert result is fft.forward.output_array
        assert np.array_equal(given, kept)
        assert fft.shape() == result.shape == fft.forward.output_pencil.subshape
        assert (fft.dtype(), fft.dtype(True)) == (array.dtype, result.dtype)
        wanted = (np.fft.fftn if dtype in "FD" else np.fft.rfftn)(array, axes=named, norm="forward")
        assert fft.global_shape(True) == wanted.shape
        assert np.allclose(whole(comm, result, fft.local_slice(), wanted.shape), wanted, **close), (shape, axes, dtype)
        back = np.full_like(given, 7)
        assert fft.backward(result, back) is back
        assert np.allclose(back, given, **close)
        assert np.allclose(fft.backward.output_array, given, **close)
        unscaled = fft.forward(given, normalize=False).copy()
        points = np.prod([shape[axis] for axis in named])
        assert np.allclose(unscaled, points * wanted[fft.local_slice()], rtol=1e-4, atol=1e-5)
        assert np.allclose(fft.backward(normalize=True), given, rtol=0, atol=10 * close["atol"])
        assert len(fft.axes) == len(fft.xfftn) == len(fft.transfer) + 1
        assert fft.dimensions == len(shape)
        fft.destroy()


def check_buffers(comm):
    """The kept arrays of both directions are the same two, and calls without arguments lead from one to the other."""
    fft = PFFT(comm, (6, 8), dtype="D")
    assert fft.forward.input_array is fft.backward.output_array
    assert fft.forward.output_array is fft.backward.input_array
    fft.forward.input_array[...] = np.arange(48).reshape(6, 8)[fft.local_slice(False)]
    before = fft.forward.input_array.copy()
    fft.forward()
    fft.forward.input_array[...] = -1
    assert np.allclose(fft.backward(), before)


def check_padding(comm):
    """The padded signal has the same trigonometric interpolant: back and there is the identity on its spectra."""
    for dtype, shape, factors in (("d", (6, 8), (1.5, 1.5)), ("D", (6, 5), (1.5, 2)), ("d", (4, 6, 8), (1, 1.5, 1.5))):
        plain, padded = PFFT(comm, shape, dtype=dtype), PFFT(comm, shape, dtype=dtype, padding=factors)
        assert padded.global_shape() == tuple(int(n * f) for n, f in zip(shape, factors, strict=True))
        assert padded.global_shape(True) == plain.global_shape(True)
        lines = np.ogrid[tuple(slice(n) for n in padded.global_shape())]
        angles = [2 * np.pi * i / n for i, n in zip(lines, padded.global_shape(), strict=True)]
        array = 1 + sum(np.cos(a) for a in angles) + np.sin(2 * angles[-1])
        coarse = np.ogrid[tuple(slice(n) for n in shape)]
        angles = [2 * np.pi * i / n for i, n in zip(coarse, shape, strict=True)]
        same = 1 + sum(np.cos(a) for a in angles) + np.sin(2 * angles[-1])
        first = padded.forward(array.astype(dtype)[padded.local_slice(False)]).copy()
        assert np.allclose(first, plain.forward(same.astype(dtype)[plain.local_slice(False)]))
        assert np.allclose(padded.backward(first), array[padded.local_slice(False)])


def check_kinds(comm):
    """Groups of axes have the transforms that they are given, ours or those of other libraries by their names."""
    shape, dct, idct = (4, 5, 6), functools.partial(fftw.dctn, type=3), functools.partial(fftw.idctn, type=3)
    array = np.random.default_rng(1).random(shape)
    wanted = scipy_fft.dctn(array, type=3, axes=(1, 2)) / (2 * 5 * 2 * 6)
    for dtype, transforms in (
        ("d", {(1, 2): (dct, idct)}),
        ("d", {(1, 2): (dct, idct), (0,): (np.fft.rfftn, np.fft.irfftn)}),
    ):
        fft = PFFT(comm, shape, axes=((0,), (1, 2)), dtype=dtype, transforms=transforms)
        given = array[fft.local_slice(False)]
        result = fft.forward(given).copy()
        assert np.allclose(result, np.fft.rfft(wanted, axis=0, norm="forward")[fft.local_slice()])
        assert np.allclose(fft.backward(result), given)


def check_moves(comm):
    """A field keeps its elements when another of its axes becomes whole, whatever the rank of its components."""
    for shape, rank, dims in product(((5, 6), (2, 3, 4, 2)), (0, 2), (0, -1)):
        sizes = [0] * len(shape)
        sizes[dims] = 1
        every = (2,) * rank + shape
        numbers = np.arange(np.prod(every)).reshape(every)
        u = DistArray(every, Subcomm(comm, sizes), rank=rank, dtype=int)
        u[...] = numbers[u.local_slice()]
        assert u.global_shape == every
        assert np.prod(u.commsizes) == comm.size
        assert [u.shape[axis] for axis in range(rank + u.dimensions)] == [s.stop - s.start for s in u.local_slice()]
        for axis in range(len(shape)):
            v = u.redistribute(axis)
            assert v.alignment == axis
            assert np.array_equal(v, numbers[v.local_slice()])
            out = DistArray(every, u.pencil.subcomm, rank=rank, dtype=int, alignment=u.alignment)
            assert np.array_equal(v.redistribute(out=out), numbers[out.local_slice()])


def check_transfers(comm):
    """Transfers move between two pencils, there and back, and so a Transform of functions of one's own."""
    subcomm = Subcomm(comm, [0, 0, 1])
    first = Pencil(subcomm, (4, 5, 6))
    second = first.pencil(0)
    move = first.transfer(second, "f8")
    numbers = np.arange(120.0).reshape(4, 5, 6)
    a, b = numbers[first.slices], np.empty(second.subshape)
    move.forward(a, b)
    assert np.array_equal(b, numbers[second.slices])
    again = np.empty_like(a)
    move.backward(b, again)
    assert np.array_equal(again, a)

    class Doubling:
        def __init__(self, shape):
            self.input_array, self.output_array = np.zeros(shape), np.zeros(shape)

        def __call__(self, times):
            self.output_array[...] = times * self.input_array

    steps = [Doubling(first.subshape), Doubling(second.subshape)]
    both = Transform(steps, [move.forward], [first, second])
    assert both(a, times=2) is steps[1].output_array
    assert np.array_equal(both(a, np.empty(second.subshape), times=3), 9 * numbers[second.slices])
    move.destroy()
    subcomm.destroy()


def check_tensors(comm):
    """The tensor of a field, or of a part of it, has the elements of the whole, and the field's own memory."""
    for rank, alignment in product((0, 1), (0, 1, 2)):
        every = (2,) * rank + (1, 5, 4)
        numbers = np.arange(np.prod(every)).reshape(every)
        u = DistArray(every, alignment=alignment, rank=rank, dtype=int)
        u[...] = numbers[u.local_slice()]
        assert np.array_equal(u.tensor.to_global(), numbers)
        assert u.tensor.slices() == u.local_slice() or not u.size
        u.tensor.local[...] += 1
        assert np.array_equal(u, numbers[u.local_slice()] + 1)
        assert np.array_equal(u.part((slice(None), 3, 2)).to_global(), numbers[..., :, 3, 2] + 1)


def check_parts(comm):
    """A part of the whole field is on rank 0, and nowhere else."""
    for rank in (0, 1):
        every = (3,) * rank + (5, 6, 4)
        numbers = np.arange(np.prod(every)).reshape(every)
        u = DistArray(every, Subcomm(comm, [0, 0, 1]), rank=rank, dtype=int)
        u[...] = numbers[u.local_slice()]
        for part in product(*[(slice(None), 2)] * 3):
            got = u.get((1,) * rank + part)
            assert np.array_equal(got, numbers[(1,) * rank + part]) if comm.rank == 0 else got is None


def check_fields(comm):
    """A component of a field is a field; what is cut out of one otherwise is a plain array."""
    fft = PFFT(comm, (6, 8))
    u = newDistArray(fft, False, val=2, rank=2)
    assert (type(u[0]), u[0].rank, type(u[1, 0]), u[1, 0].rank) == (DistArray, 1, DistArray, 0)
    assert {type(part) for part in (u[0, 1, 0], u[u > 1], u.v, u[0, 0][0], u[..., 0])} <= {np.ndarray}
    assert (u + 1).rank == 2
    assert type(newDistArray(fft, view=True)) is np.ndarray
    other = PFFT(comm, darray=u[0, 0])
    assert other.global_shape() == (6, 8)
    other.destroy()
    assert np.allclose(u.redistribute(0)[0, 0].v, 2)


def check_files(comm):
    """A field comes back from its file at every step, on any alignment; and its parts lie there by their names."""
    fft = PFFT(comm, (4, 5, 6))
    for rank in (0, 1):
        u = newDistArray(fft, False, rank=rank)
        numbers = np.arange(np.prod(u.global_shape)).reshape(u.global_shape)
        u[...] = numbers[u.local_slice()]
        file = HDF5File(f"fields{rank}.h5", mode="w", domain=[np.arange(4.0), (0, 1), (0, 2)])
        assert file.f is None or not file.f  # closed, where this rank has opened it
        for step in (0, 5):
            file.write(step, {"u": [u, (u, [slice(None), 4, slice(None)])]}, forward_output=False)
        u.write(file, "w", 1, as_scalar=True)
        v = newDistArray(fft, True, rank=rank)
        w = DistArray(u.global_shape, v.pencil.subcomm, rank=rank, alignment=v.alignment)
        w.read(f"fields{rank}.h5", "u", 5)
        assert np.array_equal(w, numbers[w.local_slice()])
        assert np.array_equal(
            rote.load(f"fields{rank}.h5", name="u/2D/slice_4_slice/0", comm=comm).to_global(), numbers[..., 4, :]
        )
        if rank:
            assert np.array_equal(rote.load("fields1.h5", name="w2/3D/1", comm=comm).to_global(), numbers[2])


CHECKS = [value for name, value in globals().items() if name.startswith("check_")]

if __name__ == "__main__":
    from mpi4py import MPI

    for check in CHECKS:
        check(MPI.COMM_WORLD)
    if MPI.COMM_WORLD.rank == 0:
        print(len(CHECKS), "checks", *sys.argv[1:])
