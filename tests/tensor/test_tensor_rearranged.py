"""Functions that move elements to other indices, sort, scan and select, compared with NumPy on random layouts."""

from __future__ import annotations

from pathlib import Path

import keyed
import numpy as np
import pytest
import rearranged
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from launch import mpirun
from marks import examples
from strategies import picker

import rote
import rote.array_api as xp
from rote import DistTensor
from rote.errors import LayoutError

PROGRAM = Path(__file__).with_name("rearranged.py")


@pytest.fixture(autouse=True)
def silent():
    with rote.config(implicit="allow"):
        yield


@given(st.data(), st.sampled_from(rearranged.CALLS))
@settings(max_examples=examples(240), suppress_health_check=[HealthCheck.large_base_example])
def test_calls_are_numpys(data, call):
    """For every layout, NumPy's functions give of a tensor what they give of the array, and leave it as it was."""
    pick = picker(data.draw)
    dist, function = rearranged.pick_case(pick, pick([2, 1, 3, 4]), call)
    rote.run(rearranged.check_call, dist.grid.size, (dist, function))


@given(st.data(), st.sampled_from(rearranged.CALLS))
@settings(max_examples=examples(240), suppress_health_check=[HealthCheck.large_base_example])
def test_writes_are_numpys(data, call):
    """For every layout, what is written into a result is in the tensor as it would be in the array."""
    pick = picker(data.draw)
    dist, function = rearranged.pick_case(pick, pick([2, 1, 3, 4]), call)
    if not dist.partial:
        rote.run(rearranged.check_writes, dist.grid.size, (dist, function))


@pytest.mark.parametrize("layout", ["block[(0),()]", "block[(),(0)]", "[(),()]"])
def test_what_changes_nothing_is_a_copy_where_numpys_is(layout):
    """What is written into the result of a call that changes nothing is in the tensor as it would be in the array."""
    for ranks in (1, 2):
        for call in rearranged.COPIES:
            rote.run(rearranged.check_writes, ranks, (rote.parse(layout).on((5, 4), ranks), call))


@pytest.mark.parametrize(
    ("before", "shape", "after"),
    [
        ("block[(0),()]", (24,), "block[(0)]"),
        ("block[(0),()]", (2, 2, 6), "block[(0),(),()]"),
        ("block[(),(0)]", (1, 4, 2, 3), "block[(),(),(0),()]"),
        ("cyclic(2)[(0),()]", (24,), "cyclic(12)[(0)]"),
        ("cyclic(2)[(0),()]", (2, 12), "[(0),()]"),
        ("[(),(0)]", (2, 2, 6), "[(),(),(0)]"),
        ("block(1,3)[(0),()]", (24,), "block(6,18)[(0)]"),
        ("[(),()]", (3, 8), "[(),()]"),
    ],
)
def test_reshaped_where_digits_allow(before, shape, after):
    """Modes that are merged or taken apart at the bounds of blocks keep their split, and blocks are views."""
    array = keyed.numbered((4, 6))

    def program(comm):
        x = DistTensor.from_global(array, before, comm)
        with rote.config(implicit="error"), rote.trace() as moves:
            y = x.reshape(shape, copy=False)
        assert not moves
        assert np.shares_memory(x.local, y.local)
        assert not np.shares_memory(x.local, x.reshape(shape, copy=True).local)
        np.testing.assert_array_equal(y.to_global(), array.reshape(shape), strict=True)
        return str(y.layout)

    assert rote.run(program, 2) == [after] * 2


def test_reshaped_where_digits_do_not_allow():
    """Other elements move to their row-major order in blocks; a view of them is refused."""

    def program(comm):
        x = DistTensor.from_global(keyed.numbered((4, 6)), "block[(),(0)]", comm)
        with rote.trace() as moves:
            y = x.reshape(24)
        with pytest.raises(ValueError, match="no view"):
            x.reshape(24, copy=False)
        return str(y.layout), {move.cause for move in moves}, moves[0].nbytes

    assert rote.run(program, 2) == [("block[(0)]", {"reshape"}, 6 * 8)] * 2


def test_modes_in_another_order_are_views():
    """The transpose names modes anew: nothing moves, and the block is a view."""

    def program(comm):
        x = DistTensor.from_global(keyed.numbered((2, 3, 4)), "block[(0),(),()]", comm)
        with rote.config(implicit="error"):
            views = (x.T, x.mT, x.transpose(1, 0, 2), x.swapaxes(0, 1), x.transpose((2, 1, 0)), x[None].squeeze(0))
        assert all(np.shares_memory(view.local, x.local) for view in views)
        return [str(view.layout) for view in views[:3]]

    assert rote.run(program, 2)[0] == ["block[(),(),(0)]", "block[(0),(),()]", "block[(),(0),()]"]


def test_scans_exchange_totals_alone():
    """Along a mode split in blocks, a scan keeps the layout, and each rank receives one total from every other."""

    def program(comm):
        array = np.linspace(0, 1, 30).reshape(3, 10)
        x = DistTensor.from_global(array, "block[(),(0)]", comm)
        with rote.trace() as moves:
            y = np.cumsum(x, axis=1)
        np.testing.assert_allclose(y.to_global(), np.cumsum(array, axis=1), rtol=1e-14)
        return str(y.layout), [move.nbytes for move in moves[:1]]

    assert rote.run(program, 2) == [("block[(),(0)]", [3 * 8])] * 2


def test_sorted_along_a_mode():
    """Sorting along a whole mode moves nothing; along a split one, what splits it goes to another mode."""

    def program(comm):
        array = np.random.default_rng(7).integers(0, 5, (6, 4))
        x = DistTensor.from_global(array, "block[(0),()]", comm)
        with rote.config(implicit="error"):
            rows = xp.sort(x, axis=1, descending=True)
        columns = xp.argsort(x, axis=0, descending=True)
        np.testing.assert_array_equal(rows.to_global(), np.sort(array, axis=1)[:, ::-1])
        np.testing.assert_array_equal(columns.to_global(), np.argsort(-array, axis=0, kind="stable"), strict=True)
        x.sort(0)
        np.testing.assert_array_equal(x.to_global(), np.sort(array, axis=0))
        return str(rows.layout), str(columns.layout), str(x.layout)

    assert rote.run(program, 2) == [("block[(0),()]", "block[(),(0)]", "block[(0),()]")] * 2


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "f4", "c8"])
def test_dtypes_are_numpys(dtype):
    """Results have NumPy's dtypes, whatever that of the tensor."""
    array = (np.arange(12).reshape(3, 4) % 5).astype(dtype)

    def program(comm):
        x = DistTensor.from_global(array, "block[(0),()]", comm)
        for call in (
            lambda x: np.cumsum(x, 0),
            lambda x: np.cumprod(x, 0),
            lambda x: np.concatenate([x, np.ones((1, 4), "f4")]),
            lambda x: np.diff(x, axis=0) if x.dtype.kind != "u" else x,
            lambda x: np.unique(x),
            lambda x: np.sort(x, 0),
            lambda x: np.pad(x, 1),
            lambda x: x[x != 0],
        ):
            np.testing.assert_array_equal(call(x).to_global(), call(array), strict=True)

    rote.run(program, 2)


@pytest.mark.parametrize("dtype", ("u1", "u8", "i1", "i8", "f4", "f8", "g"))
def test_bins_are_numpys(dtype):
    """Law: bins that are found have NumPy's edges and counts, of signed, unsigned and single numbers alike."""
    arrays = [(np.random.default_rng(seed).integers(3, 50, 60) / 7 * 7).astype(dtype) for seed in range(20)]
    arrays += [array / np.asarray(7, dtype) for array in arrays if array.dtype.kind == "f"]
    arrays += [] if np.dtype(dtype).kind == "u" else [np.array([-128, 4], dtype)]

    def program(comm):
        for array in arrays:
            x = DistTensor.from_global(array, "block[(0)]", comm)
            for options in ({"bins": 3}, {"bins": 13}, {"bins": 5, "range": (4, 9)}, {"density": True}):
                for mine, theirs in zip(np.histogram(x, **options), np.histogram(array, **options), strict=True):
                    assert mine.dtype == theirs.dtype, options
                    np.testing.assert_array_equal(mine.to_global(), theirs)

    rote.run(program, 3)


@pytest.mark.parametrize("dtype", ("?", "i1", "i8", "u1", "u8"))
def test_counts_are_numpys(dtype):
    """Law: numbers of any integer dtype are counted, also where the least of them is not 0."""
    array = np.array([3, 5, 3, 9]).astype(dtype)

    def program(comm):
        x = DistTensor.from_global(array, "block[(0)]", comm)
        counts = np.bincount(array.astype("i8"))  # NumPy before 2.3 counts no u8
        np.testing.assert_array_equal(np.bincount(x).to_global(), counts, strict=True)
        for wrong in ("f8", "c16"):
            with pytest.raises(ValueError, match=r"^bincount counts the integers from 0 on"):
                np.bincount(x.astype(wrong))

    rote.run(program, 3)


def test_rows_are_iterated():
    """Iteration gives the rows, of one move that makes mode 0 whole."""

    def program(comm):
        x = DistTensor.from_global(keyed.numbered((3, 4)), "block[(0),()]", comm)
        with rote.trace() as moves:
            rows = [row.to_global().tolist() for row in x]
        return rows, sum(move.implicit for move in moves)

    assert rote.run(program, 2) == [(keyed.numbered((3, 4)).tolist(), 1)] * 2


@pytest.mark.parametrize("shift", [2**63 - 1, 1 - 2**63, 10**20, -(10**20)])
def test_rolled_by_any_number(shift):
    """As NumPy has it, also where an index less the shift is no integer of 64 bits."""
    whole = np.arange(10)

    def program(comm):
        return np.roll(DistTensor.from_global(whole, "block[(0)]", comm), shift).to_global().tolist()

    assert rote.run(program, 2) == [np.roll(whole, shift).tolist()] * 2


@pytest.mark.parametrize("edge_order", [1, 2])
@pytest.mark.parametrize(
    "points", [np.linspace(-1, 1, 8), np.r_[0:5, 6:12:2], np.r_[0:6:2, 6:11], [0.0, 1, 2, 3, 4, 4, 4, 4]]
)
def test_gradients_take_the_formula_of_the_whole_mode(points, edge_order):
    """Where steps differ, but not those of one rank's coordinates, bits and NaNs are NumPy's."""
    array = np.random.default_rng(0).random((8, 3))
    array[[2, 5], [0, 1]] = np.nan

    def program(comm):
        x = DistTensor.from_global(array, "block[(0),()]", comm)
        return np.gradient(x, points, axis=0, edge_order=edge_order).to_global()

    with np.errstate(all="ignore"):
        wanted = np.gradient(array, points, axis=0, edge_order=edge_order)
        for ranks in (2, 3, 8):
            for found in rote.run(program, ranks):
                np.testing.assert_array_equal(found, wanted)


def test_wrong_arguments_are_refused():
    """Shapes, modes and numbers that do not fit, and ranks that disagree, are refused on all ranks."""

    def program(comm):
        x = DistTensor.from_global(np.arange(6), "block[(0)]", comm)
        for error, call in (
            (ValueError, lambda: x.reshape(4, 2)),
            (ValueError, lambda: x.reshape(-1, -1)),
            (ValueError, lambda: np.squeeze(x, 0)),
            (IndexError, lambda: np.flip(x, 1)),
            (ValueError, lambda: np.broadcast_to(x, (5,))),
            (ValueError, lambda: np.split(x, 4)),
            (ValueError, lambda: np.concatenate([x, x[None]])),
            (LayoutError, lambda: np.pad(x, 1, "none")),
            (ValueError, lambda: np.pad(x, 1, "mean", end_values=1)),
            (ValueError, lambda: np.pad(x, 1, constant_values=(1, 2, 3))),
            (ValueError, lambda: np.lib.stride_tricks.sliding_window_view(x, 7)),
            (ValueError, lambda: np.lib.stride_tricks.sliding_window_view(x, (2, 2))),
            (ValueError, lambda: np.lib.stride_tricks.sliding_window_view(x, 2, writeable=True)),
            (ValueError, lambda: np.gradient(x[:2], edge_order=2)),
            (ValueError, lambda: np.gradient(x, [1.0, 2.0])),
            (TypeError, lambda: np.gradient(x, 1.0, 2.0)),
            (ValueError, lambda: np.unravel_index(x, (2, 2))),
            (ValueError, lambda: np.nanargmax(np.where(x < 9, np.nan, 0.0))),
            (ValueError, lambda: np.isin(x, [0.5], kind="table")),
            (LayoutError, lambda: np.roll(x, 1 + comm.rank)),
            (LayoutError, lambda: x.mT),
            (TypeError, lambda: iter(x[0])),
        ):
            with pytest.raises(error):
                call()
        return x.to_global().tolist()

    assert rote.run(program, 2) == [list(range(6))] * 2


@pytest.mark.mpi
@pytest.mark.slow
def test_under_mpi():
    """Under MPI tensors are indexed and rearranged as on in-process ranks."""
    result = mpirun(3, PROGRAM)
    assert (result.returncode, result.stdout.split()) == (0, ["keyed", "rearranged"]), result.stderr


@pytest.mark.parametrize("number", [np.uint64(2**64 - 1), np.uint64(2**63), np.int64(-1), np.int64(-(2**63))])
def test_what_cannot_be_counted_is_refused_by_all_ranks(number):
    """Law: numbers below 0, or too large for an index, that one rank alone has."""

    def program(comm):
        x = rote.DistTensor.from_global(np.array([number, 1, 2, 3], number.dtype), "block[(0)]", comm)
        with pytest.raises(ValueError, match="bincount counts the integers from 0 on"):
            np.bincount(x)
        return True

    assert rote.run(program, 2) == [True] * 2


@pytest.mark.parametrize("ranks", [1, 3, *(pytest.param(each, marks=pytest.mark.slow) for each in (2, 4))])
@pytest.mark.parametrize("layout", ["block[(0),()]", "[(0),()]", "block[(),(0)]", "[(),()]", "b a: block[(0),()]"])
@pytest.mark.parametrize("shape", [(24,), (4, 6), (3, 8), (6, 2, 2), (6, 4), (24, 1)])
def test_memory_of_reshaped_tensors(ranks, layout, shape):
    """Law: a copy shares no memory; a view shares it on every rank, or all ranks refuse to make one.

    Values are right in either case, whether one rank's block lies in C order or in that of Fortran.
    """
    array = np.arange(24.0).reshape(6, 4)

    def program(comm):
        x = rote.DistTensor.from_global(array, layout, comm)
        if comm.rank == 0:
            x = rote.DistTensor(np.asfortranarray(x.local), x.distribution, comm)
        with rote.config(implicit="allow"):
            copy = np.reshape(x, shape, copy=True)
            assert not np.shares_memory(copy.local, x.local)
            for result in (copy, np.reshape(x, shape)):
                assert np.array_equal(result.to_global(), array.reshape(shape))
            try:
                view = np.reshape(x, shape, copy=False)
            except ValueError as error:
                return str(error).splitlines()[0]
        assert np.shares_memory(view.local, x.local) or not view.local.size
        assert np.array_equal(view.to_global(), array.reshape(shape))
        return "a view"

    (answer,) = set(rote.run(program, ranks))
    assert answer == "a view" or "has no view of shape" in answer


@pytest.mark.parametrize("n", [1, 2, 30])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_differences_fetch_the_elements_after_a_block(n, ranks):
    """Law: blocks fetch once, the n rows after their own, however often differences are taken."""
    array = np.random.default_rng(1).integers(-99, 99, (64, 3)).astype("f8")

    def program(comm):
        for layout in ("block[(0),()]", "block(ceil)[(0),()]", "[(0:cyclic(2)),()]", "[(),(0)]"):
            for whole in (array, array > 0):
                x = DistTensor.from_global(whole, layout, comm)
                with rote.trace() as moves:
                    y = np.diff(x, n, axis=0)
                np.testing.assert_array_equal(y.to_global(), np.diff(whole, n, axis=0))
                if "block" in layout and ranks > 1:
                    assert [move.cause for move in moves] == ["diff"]
                    assert moves[0].nbytes <= 2 * n * 3 * x.itemsize
            assert np.diff(x, 65, axis=0).shape == (0, 3)

    rote.run(program, ranks)
