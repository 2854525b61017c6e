"""Fields of small components: all that are in one batch travel in one exchange."""

from __future__ import annotations

import batches
import numpy as np
import pytest
from effort import meetings
from workspace import bytes_taken

import rote
from rote import DistTensor
from rote.fft import FFT

SHAPE, LARGE, BATCH, NOISE = (8, 6, 10), (64, 48, 50), 1 << 20, 300_000


@pytest.fixture
def calls(monkeypatch):
    """How often rank 0 of this process has met the others, by the name of the call."""
    return meetings(monkeypatch, type(rote.run(lambda comm: comm, 2)[0]), ("alltoallv", "barrier"))


@pytest.mark.parametrize("method", ("auto", "alltoallv"))
def test_components_travel_in_one_exchange(calls, method):
    """Law: ranks meet as often for a field of small components as for one; of large ones for each, or for a batch.

    Of many small components 16 go at once.
    """

    def program(comm):
        meetings = []
        for shape, components in ((SHAPE, ()), (SHAPE, (3,)), (SHAPE, (4, 10)), (LARGE, ()), (LARGE, (3,))):
            f = FFT(shape, "block[(0),(),()]", comm=comm, dtype="f8", method=method)
            x, X = f.empty_input(components), f.empty_output(components)
            x.local[...] = 1
            f.forward(x, out=X)
            before = calls.copy()
            f.forward(x, out=X)
            meetings.append(tuple(calls[name] - before[name] for name in ("barrier", "alltoallv")))
        return meetings

    small, three, forty, large, large_three = rote.run(program, 2)[0]
    assert sum(small) > 0 and large == small
    assert three == small and large_three == tuple(3 * n for n in large)
    assert forty == tuple(3 * n for n in small)


@pytest.mark.parametrize("method", ("auto", "alltoallv"))
def test_workspace_of_a_field_is_said(method):
    """Law: `workspace_bytes` counts the batches of fields, at most 2 MiB more; large components take no more than one.

    By tracemalloc nothing else is allocated for long.
    """

    def program(comm):
        for shape, components, more in ((SHAPE, 3, True), (SHAPE, 70, True), (LARGE, 3, False)):
            f = FFT(shape, "block[(0),(),()]", comm=comm, method=method)
            alone = f.workspace_bytes
            x = f.empty_input((components,))
            x.local[...] = np.arange(x.local.size).reshape(x.local.shape)
            peak = bytes_taken(f, x)
            grown = f.workspace_bytes - alone
            assert (0 < grown <= min(16, components) * alone and grown <= 2 * BATCH) if more else grown == 0, grown
            assert peak < NOISE * comm.size, peak

    rote.run(program, 2)


def test_smaller_and_larger_fields_take_turns():
    """Law: fields of several numbers of components, their spectra and single tensors are transformed in any order."""

    def program(comm):
        f = FFT((5, 7, 3), "block[(0),(),()]", comm=comm, dtype="f4", method="alltoallv")
        numbers = np.random.default_rng(1).standard_normal((9, 5, 7, 3)).astype("f4")
        for count in (2, 9, 3, 0, 2, 1, 9):
            x = DistTensor.from_global(numbers[:count], f.empty_input((count,)).layout, comm)
            X = f.forward(x)
            for number in range(count):
                lone = f.forward(DistTensor.from_global(numbers[number], f.input_layout, comm))
                assert lone.local.tobytes() == X.local[number].tobytes()
            assert f.backward(X).local.tobytes() == b"".join(
                f.backward(DistTensor(part.copy(), f.output_distribution, comm)).local.tobytes() for part in X.local
            )

    rote.run(program, 3)


def test_blocks_of_any_strides():
    """Law: a field whose block has gaps, and spectra with gaps to write into, are as without."""

    def program(comm):
        f = FFT(SHAPE, "block[(0),(),()]", comm=comm)
        x, X = f.empty_input((2, 3)), f.empty_output((2, 3))
        x.local[...] = np.random.default_rng(comm.rank).standard_normal(x.local.shape)
        memory = np.zeros((2, 5, *x.local.shape[2:]), "c16"), np.full((2, 5, *X.local.shape[2:], 2), 7, "c16")
        memory[0][:, 1:4] = x.local
        gaps = DistTensor(memory[0][:, 1:4], x.distribution, comm)
        into = DistTensor(memory[1][:, 2:, ..., 0], X.distribution, comm)
        f.forward(x, out=X)
        f.forward(gaps, out=into)
        assert into.local.tobytes() == X.local.tobytes() and (memory[1][..., 1] == 7).all()

    rote.run(program, 2)


def test_bits_are_those_of_single_components():
    """Law: spectra of fields and the way back are those of components, bit for bit, by all methods of threads."""
    assert min(rote.run(batches.bits, 2)) >= 3 * 3


def test_ranks_bind_batches_alike():
    """Law: all ranks bind a batch anew or none does, for under MPI they meet there; also those that hold nothing."""

    def program(comm):
        f = FFT((6, 2), "[(),(0:cyclic(3))]", comm=comm, dtype="c8", kinds="dst4", method="alltoallv")
        field = f.empty_input((3,))
        field.local[...] = 1
        f.backward(f.forward(field))
        return len(f._bound().fields._batches)

    assert len({*rote.run(program, 3)}) == 1
