"""The two ends of a planned transform as clients ask for them, and norms call by call."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from cases import pick_grid, pick_layout
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from marks import examples

import rote
from rote import DistTensor, LayoutError, RoteError
from rote.fft import FFT

pytestmark = pytest.mark.filterwarnings("ignore::rote.GatherWarning")  # transforms of one axis

NORMS = (None, "backward", "ortho", "forward")


@st.composite
def planned(draw):
    """The arguments of a transform: any grid of few ranks, any plain layout, kinds that halve, restore or stay."""
    pick = lambda options: draw(st.sampled_from(options))  # noqa: E731 - as the other strategies have it
    shape = tuple(pick([4, 1, 5, 6, 2]) for _ in range(pick([2, 1, 3])))
    grid = pick_grid(pick, pick([1, 2, 3, 4]))
    layout = pick_layout(pick, shape, grid)
    assume(layout.view is None and not layout.partial and not layout.rooted)
    dtype = pick(["f8", "c16", "f4", "c8"])
    kinds = pick([None, None, "dct2", "dst1"])
    axes = pick([None, *range(len(shape))])
    return {"shape": shape, "layout": layout, "grid": grid, "dtype": dtype, "kinds": kinds, "axes": axes}


def values(shape, dtype):
    """Some numbers, the same on all ranks."""
    numbers = np.random.default_rng(5).standard_normal((2, *shape))
    return (numbers[0] + (1j * numbers[1] if np.dtype(dtype).kind == "c" else 0)).astype(dtype)


@settings(max_examples=examples(60))
@given(planned())
def test_the_ends_are_those_of_what_is_transformed(arguments):
    """Law: what `f` says of its ends is so of what `forward` takes and gives, and its empty tensors serve as `out`."""

    def program(comm):
        f = FFT(comm=comm, **arguments)
        x = f.empty_input()
        x.local[...] = DistTensor.from_global(values(f.shape, f.input_dtype), f.input_layout, comm, f.grid).local
        X, y = f.empty_output(), f.empty_input()
        made = f.forward(x)
        assert f.forward(x, out=X) is X and f.backward(X, out=y) is y
        for tensor, shape, dtype, dist in (
            (x, f.input_shape, f.input_dtype, f.input_distribution),
            (made, f.output_shape, f.output_dtype, f.output_distribution),
        ):
            assert (tensor.shape, tensor.dtype, tensor.distribution) == (shape, dtype, dist)
        assert X.distribution == made.distribution and X.local.tobytes() == made.local.tobytes()
        assert f.shape == f.input_shape == tuple(arguments["shape"]) and f.comm is comm is x.comm is X.comm
        assert (f.input_distribution.layout, f.output_distribution.layout) == (f.input_layout, f.output_layout)
        np.testing.assert_allclose(y.local, x.local, rtol=2e-4, atol=2e-5)

    rote.run(program, int(np.prod(arguments["grid"])))


@settings(max_examples=examples(60))
@given(planned(), st.sampled_from(NORMS), st.sampled_from(NORMS))
def test_a_norm_of_one_call_is_as_one_of_the_plan(arguments, usual, wanted):
    """Law: `f.forward(x, norm=n)` is bit for bit what a transform made with that norm gives, and so is the way back."""

    def program(comm):
        f = FFT(comm=comm, norm=usual, **arguments)
        g = FFT(comm=comm, norm=usual if wanted is None else wanted, **arguments)
        x = DistTensor.from_global(values(f.shape, f.input_dtype), f.input_layout, comm, f.grid)
        for _ in range(2):
            usually = f.forward(x)
            X, Y = f.forward(x, norm=wanted), g.forward(x)
            assert X.local.tobytes() == Y.local.tobytes()
            assert f.backward(X, norm=wanted).local.tobytes() == g.backward(Y).local.tobytes()
            assert f.forward(x).local.tobytes() == usually.local.tobytes()

    rote.run(program, int(np.prod(arguments["grid"])))


def test_norms_are_numpys():
    """Norms of single calls are those of `numpy.fft`; another word is refused, and the plan's own norm stays."""
    array = values((4, 6), "c16")

    def program(comm):
        f = FFT((4, 6), "block[(0),()]", comm=comm, norm="ortho")
        x = DistTensor.from_global(array, f.input_layout, comm)
        for norm in ("backward", "ortho", "forward"):
            np.testing.assert_allclose(f.forward(x, norm=norm).to_global(), np.fft.fftn(array, norm=norm), atol=1e-12)
            np.testing.assert_allclose(
                f.backward(f.forward(x), norm=norm).to_global(),
                np.fft.ifftn(np.fft.fftn(array, norm="ortho"), norm=norm),
                atol=1e-12,
            )
        with pytest.raises(LayoutError, match="norm is one of backward, ortho, forward; not 'unit'"):
            f.forward(x, norm="unit")
        assert "norm='ortho'" in repr(f)

    rote.run(program, 2)


@pytest.mark.parametrize("method", ("alltoallv", "shared"))
def test_another_norm_takes_no_workspace_of_its_own(method):
    """Law: transforms of all norms take turns in one scratch, whether ranks read each other's or send messages."""

    def program(comm):
        f = FFT((64, 64, 96), "block[(0),(),()]", comm=comm, method=method)
        x, X = f.empty_input(), f.empty_output()
        x.local[...] = 1
        before = f.workspace_bytes
        f.forward(x, X)
        comm.barrier()
        if comm.rank == 0:
            tracemalloc.start()
        comm.barrier()
        f.forward(x, X, norm="forward")
        comm.barrier()
        peak = tracemalloc.get_traced_memory()[1] if comm.rank == 0 else 0
        comm.barrier()
        if comm.rank == 0:
            tracemalloc.stop()
        assert f.workspace_bytes == before
        return peak, before

    peak, workspace = rote.run(program, 2)[0]
    assert 0 < peak < workspace, (peak, workspace)


def test_ends_do_not_fit_other_tensors():
    """Law: an empty tensor of one end is refused at the other, where the two differ."""
    f = FFT((4, 6), "block[(0),()]", dtype="f8")
    with pytest.raises(RoteError, match="the transform takes"):
        f.forward(f.empty_output())
    with pytest.raises(RoteError, match="the transform takes"):
        f.forward(f.empty_input(), out=f.empty_input())


def test_ffts_start_from_the_new_kinds():
    """Spectra are NumPy's, whatever kinds the signal lies in, in families that want another kind too."""
    array = np.random.default_rng(3).standard_normal((16, 6))

    def program(comm):
        for text in ("[(0:block(ceil)),()]", "[(),(0:block(floor))]", "[(0:cyclic(at=1)),()]"):
            x = rote.DistTensor.from_global(array.astype("c16"), text, comm)
            X = rote.fft.fftn(x)
            assert np.allclose(X.to_global(), np.fft.fftn(array)), text
            assert np.allclose(rote.fft.ifftn(X).to_global(), array), text
        f = rote.fft.FFT((16, 6), "[(0:block(ceil)),()]", comm=comm, resample=(8, 6), s=(12, 6))  # its blocks are cut
        x = rote.DistTensor.from_global(array.astype("c16"), f.input_layout, comm, f.grid)
        g = rote.fft.FFT((16, 6), "[(),()]", comm=comm, resample=(8, 6), s=(12, 6))
        y = rote.DistTensor.from_global(array.astype("c16"), g.input_layout, comm, g.grid)
        assert np.allclose(f.forward(x).to_global(), g.forward(y).to_global())
        f = rote.fft.FFT((16, 6), "[(0:cyclic(at=1)),()]", comm=comm, algorithm="cyclic")
        x = rote.DistTensor.from_global(array.astype("c16"), f.input_layout, comm, f.grid)
        return np.allclose(f.forward(x).to_global(), np.fft.fftn(array))

    assert rote.run(program, ranks=2) == [True] * 2
