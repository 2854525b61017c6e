"""Fields of vectors and tensors: component modes in front, which transforms and wavenumbers take without a word."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from cases import pick_grid, pick_layout
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from marks import examples

import rote
from rote import DistTensor, LayoutError
from rote.fft import FFT, fftfreq, fftn
from rote.layout.refine import with_components

pytestmark = pytest.mark.filterwarnings("ignore::rote.GatherWarning")  # transforms of one axis


def values(shape, dtype):
    """Some numbers, the same on all ranks."""
    numbers = np.random.default_rng(5).standard_normal((2, *shape))
    return (numbers[0] + (1j * numbers[1] if np.dtype(dtype).kind == "c" else 0)).astype(dtype)


@st.composite
def fields(draw):
    """A transform of any plain or rooted layout, and the extents of the components of a field, 0 and 1 among them."""
    pick = lambda options: draw(st.sampled_from(options))  # noqa: E731 - as the other strategies have it
    shape = tuple(pick([4, 1, 5, 6, 2]) for _ in range(pick([2, 1, 3])))
    grid = pick_grid(pick, pick([1, 2, 3, 4]))
    layout = pick_layout(pick, shape, grid)
    assume(layout.view is None and not layout.partial)
    components = pick([(3,), (2, 3), (1,), (0,), ()])
    made = {"shape": shape, "layout": layout, "grid": grid, "dtype": pick(["f8", "c16", "f4"])}
    return made, components, pick([None, "ortho", "forward"])


@settings(max_examples=examples(80))
@given(fields())
def test_a_field_is_transformed_component_by_component(field):
    """Law: the spectrum of a field is that of its components, bit for bit; so is the way back; x keeps its values."""
    made, components, norm = field

    def program(comm):
        f = FFT(comm=comm, **made)
        array = values((*components, *f.shape), f.input_dtype)
        u, U = f.empty_input(components), f.empty_output(components)
        assert u.distribution == with_components(f.input_distribution, components)
        u.local[...] = DistTensor.from_global(array, u.layout, comm, f.grid).local
        assert f.forward(u, out=U, norm=norm) is U and f.forward(u, norm=norm).local.tobytes() == U.local.tobytes()
        assert U.distribution == with_components(f.output_distribution, components) and U.dtype == f.output_dtype
        back = f.backward(U, norm=norm)
        for index in np.ndindex(*components):
            X = f.forward(DistTensor.from_global(array[index], f.input_layout, comm, f.grid), norm=norm)
            assert not X.local.size or X.local.tobytes() == U.local[index].tobytes()
            x = f.backward(X, norm=norm)
            assert not x.local.size or x.local.tobytes() == back.local[index].tobytes()
        assert u.to_global().tobytes() == array.tobytes()

    rote.run(program, prod(made["grid"]))


def test_wavenumbers_are_those_of_every_component():
    """Law: a gradient by wavenumbers that broadcast is NumPy's, for a vector field; so are frequencies."""
    shape, array = (6, 4, 8), values((3, 6, 4, 8), "f8")

    def program(comm):
        f = FFT(shape, "block[(0),(1),()]", (-1, 2), comm, "f8")
        u = DistTensor.from_global(array, "block[(),(0),(1),()]", comm, f.grid)
        U = f.forward(u)
        for axis, (k, d) in enumerate(zip(f.local_wavenumbers(), fftfreq(f), strict=True)):
            shown = [1, 1, 1]
            shown[axis] = -1
            spectrum = np.fft.rfftn(array, axes=(1, 2, 3))
            k_whole = (np.fft.rfftfreq if axis == 2 else np.fft.fftfreq)(shape[axis], 1 / shape[axis])
            want = DistTensor.from_global(1j * k_whole.reshape(shown) * spectrum, U.layout, comm, U.grid)
            np.testing.assert_allclose(1j * k * U.local, want.local, atol=1e-10)
            assert np.allclose(d * shape[axis], k)
        whole = fftn(u, axes=(-3, -2, -1)).to_global()  # NumPy's way to say it, for any layout
        np.testing.assert_allclose(whole[..., :5], U.to_global(), atol=1e-10)

    rote.run(program, 4)


def test_a_field_may_be_transformed_in_its_own_memory():
    """Law: where the spectra lie in the memory of the field, wholly or shifted, they come out as if they did not."""

    def program(comm):
        f = FFT((4, 6, 4), "block[(0),(),()]", comm=comm)
        u, want = f.empty_input((3,)), values((3, 4, 6, 4), "c16")
        size = u.local.size
        for shift in (0, 8, 64):
            memory = np.empty(size + shift, "c16")
            u = DistTensor(memory[:size].reshape(u.local.shape), u.distribution, comm)
            u.local[...] = DistTensor.from_global(want, u.layout, comm).local
            dist = with_components(f.output_distribution, (3,))
            U = DistTensor(memory[shift:].reshape(dist.local_shape(comm.rank)), dist, comm)
            np.testing.assert_allclose(f.forward(u, out=U).to_global(), np.fft.fftn(want, axes=(1, 2, 3)), atol=1e-12)

    rote.run(program, 2)


def test_views_have_components_in_front():
    """Law: of a layout with a view, that of a field reads the modes behind the components as it read them before."""
    for text, shape, wanted in (
        ("(a b) c: block[(0),()]", (4, 6, 5), "a (b c) d: block[(),(0),()]"),
        ("b a: [(0),()]", (4, 6), "a c b: [(),(0),()]"),
        ("a (b c=2): [(0),(),()]", (4, 6), "a d (b c=2): [(),(0),(),()]"),
    ):
        dist = rote.parse(text).on(shape, 2)
        field = with_components(dist, (3,))
        assert field == rote.parse(wanted).on((3, *shape), 2), (str(field), wanted)
        for rank in range(2):
            array = np.arange(3 * prod(shape)).reshape(3, *shape)
            whole = rote.simulate.scatter(array, field)[rank]
            for component in range(3):
                np.testing.assert_array_equal(whole[component], rote.simulate.scatter(array[component], dist)[rank])

    def program(comm):
        f = FFT((4, 6, 5), "(a b) c: block[(0),()]", comm=comm)
        array = values((3, 4, 6, 5), "c16")
        u = DistTensor.from_global(array, f.empty_input((3,)).layout, comm)
        np.testing.assert_allclose(f.forward(u).to_global(), np.fft.fftn(array, axes=(1, 2, 3)), atol=1e-12)

    rote.run(program, 2)


def test_split_components_are_refused():
    """A field whose components are split, or whose points lie otherwise, is refused: nothing moves unasked."""

    def program(comm):
        f = FFT((4, 6), "block[(0),()]", comm=comm)
        for layout in ("block[(0),(),()]", "block[(),(),(0)]"):
            with pytest.raises(LayoutError, match=r"but the transform takes block\[\(\),\(0\),\(\)\] on \(3, 4, 6\)"):
                f.forward(DistTensor.zeros((3, 4, 6), layout, comm, dtype="c16"))
        with pytest.raises(LayoutError, match="out is"):
            f.forward(f.empty_input((3,)), out=f.empty_output())
        with pytest.raises(LayoutError, match="the input is"):
            f.forward(DistTensor.zeros(4, "block[(0)]", comm, dtype="c16"))

    rote.run(program, 2)


MPI_PROGRAM = """
import numpy as np
import rote
from rote.fft import FFT, hfft
from rote.runtime import world

comm = world()
numbers = np.random.default_rng(5).standard_normal((3, 6, 4, 8))
for options in ({}, {"method": "alltoallv"}, {"tune": "measure", "tune_seconds": 0.1}):
    f = FFT((6, 4, 8), "block[(0),(),()]", -1, comm, "f8", **options)
    u = f.empty_input((3,))
    u.local[...] = rote.DistTensor.from_global(numbers, u.layout, comm, f.grid).local
    for norm in (None, "ortho", "forward"):
        U = f.forward(u, norm=norm)
        np.testing.assert_allclose(U.to_global(), np.fft.rfftn(numbers, axes=(1, 2, 3), norm=norm), atol=1e-11)
        np.testing.assert_allclose(f.backward(U, norm=norm).local, u.local, atol=1e-12)
x = rote.DistTensor.from_global(numbers[0, 0], "block[(0),()]", comm)
np.testing.assert_allclose(hfft(x, 9).to_global(), np.fft.hfft(numbers[0, 0], 9), atol=1e-12)
print(comm.rank)
"""


@pytest.mark.mpi
@pytest.mark.parametrize("job", (3,), indirect=True)
def test_on_mpi_ranks(job):
    """Fields, norms of single calls, Hermitian signals and limits of time on MPI ranks."""
    done = job.run(MPI_PROGRAM, timeout=90)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "0\n1\n2\n"), done.stderr
