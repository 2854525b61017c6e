"""Global indexing: reading and assigning, compared with NumPy on random layouts and keys."""

from __future__ import annotations

import keyed
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import examples
from strategies import picker

import rote
from rote import DistTensor
from rote.errors import LayoutError

LAYOUTS = ("block[(0),()]", "cyclic(2)[(),(0)]", "(a b): block[(0)]")


@pytest.fixture(autouse=True)
def silent():
    with rote.config(implicit="allow"):
        yield


@given(st.data())
@settings(max_examples=examples(160))
def test_reading_is_numpys(data):
    """For every layout and key, x[key] is the array's, of its dtype; an index out of range is refused on all ranks."""
    pick = picker(data.draw)
    dist = keyed.pick_distribution(pick, pick([2, 1, 3, 4]))
    rote.run(keyed.check_read, dist.grid.size, (dist, keyed.pick_key(pick, dist.shape)))


@given(st.data())
@settings(max_examples=examples(160))
def test_assigning_is_numpys(data):
    """For every layout and key, x[key] = value writes what NumPy writes: scalars, arrays, tensors, broadcast."""
    pick = picker(data.draw)
    dist = keyed.pick_distribution(pick, pick([2, 1, 3, 4]))
    if dist.partial:
        return
    key = keyed.pick_key(pick, dist.shape)
    try:
        shape = keyed.numbered(dist.shape)[key].shape
    except IndexError:
        shape = ()
    rote.run(keyed.check_assigned, dist.grid.size, (dist, key, *keyed.pick_value(pick, dist, shape)))


@pytest.mark.parametrize("text", LAYOUTS)
def test_tensors_are_keys(text):
    """Masks and indices that are tensors, in any layout, select and assign what their arrays do."""
    array = keyed.numbered((5, 4))
    mask, rows = array % 3 == 1, np.array([[4, 0], [-1, 2]])

    def program(comm):
        x = DistTensor.from_global(array, text, comm)
        m = DistTensor.from_global(mask, "block[(),(0)]", comm, x.grid)
        r = DistTensor.from_global(rows, "block[(0),()]", comm, x.grid)
        np.testing.assert_array_equal(x[m].to_global(), array[mask], strict=True)
        np.testing.assert_array_equal(x[mask].to_global(), array[mask], strict=True)
        np.testing.assert_array_equal(x[r].to_global(), array[rows], strict=True)
        np.testing.assert_array_equal(x[r, 1].to_global(), array[rows, 1], strict=True)
        for key, twin in ((m, mask), (r, rows), ((slice(1, 3), m[0]), (slice(1, 3), mask[0]))):
            for value in (7, -x[key]):
                y, want = DistTensor.from_global(array, text, comm), array.copy()
                y[key] = value
                want[twin] = -array[twin] if isinstance(value, DistTensor) else value
                np.testing.assert_array_equal(y.to_global(), want, strict=True)

    rote.run(program, 3)


def test_a_single_bool_is_a_mask_of_order_0():
    """True takes all elements under a new mode, False none, as Python's bools, arrays and tensors of order 0."""

    def program(comm):
        for array in (np.arange(4), np.array(5)):
            for key in (True, False):
                whole = DistTensor.from_global(key, "[]", comm)
                for mask in (key, np.array(key), whole, (whole,)):
                    x, want = DistTensor.from_global(array, f"[{'(0)' * array.ndim}]", comm), array.copy()
                    np.testing.assert_array_equal(x[mask].to_global(), array[key], strict=True)
                    x[mask], want[key] = -1, -1
                    np.testing.assert_array_equal(x.to_global(), want, strict=True)

    rote.run(program, 2)


def test_masks_leave_blocks_of_the_sizes_that_came_out():
    """What a mask selects of blocks of rows stays where it is, in blocks of these sizes; so does nonzero."""
    array = np.array([[1, 0], [2, 3], [0, 0], [0, 4]])

    def program(comm):
        x = DistTensor.from_global(array, "block[(0),()]", comm)
        with rote.config(implicit="error"):
            return str(x[x > 0].distribution), x[x > 0].local.tolist(), str(x.nonzero()[1].layout)

    assert rote.run(program, 2) == [
        ("block(3,1)[(0)] on (4,), grid 2", [1, 2, 3], "block(3,1)[(0)]"),
        ("block(3,1)[(0)] on (4,), grid 2", [4], "block(3,1)[(0)]"),
    ]


@pytest.mark.parametrize(
    "key", [np.s_[:, 1:3], np.s_[..., ::-1], np.s_[:, 2], np.s_[:, None], np.s_[...], np.s_[:, [0, 2]]]
)
def test_nothing_moves_where_split_modes_are_whole(key):
    """A key that takes split modes whole moves nothing, keeps the layout, and gives a view where NumPy gives one."""
    array = keyed.numbered((5, 4))

    def program(comm):
        x = DistTensor.from_global(array, "[(0),()]", comm)
        with rote.trace() as moves, rote.config(implicit="error"):
            y = x[key]
        assert not moves
        assert y.layout.modes[0] == x.layout.modes[0]
        assert np.shares_memory(y.local, x.local) == np.shares_memory(array[key], array)
        np.testing.assert_array_equal(y.to_global(), array[key], strict=True)

    rote.run(program, 2)


@pytest.mark.parametrize("key", [np.s_[1:], np.s_[0], np.s_[::-1], np.s_[2:3, 1]])
@pytest.mark.parametrize("ranks", [1, 2])
def test_what_cuts_a_split_mode_is_a_copy(key, ranks):
    """Law: whether a change of a part changes the tensor does not depend on the number of ranks."""

    def program(comm):
        x = DistTensor.zeros((5, 4), "[(0),()]", comm)
        with rote.config(implicit="allow"):
            y = x[key]
        y += 1
        return float(x.sum())

    assert rote.run(program, ranks) == [0.0] * ranks


def test_a_slice_keeps_the_layout_and_moves_what_lies_elsewhere():
    """A sliced split mode stays split, balanced anew; the implicit move says the most bytes that one rank receives."""

    def program(comm):
        x = DistTensor.from_global(np.arange(8.0), "block[(0:block(4))]", comm)
        with rote.trace() as moves:
            y = x[2:]
        x[5]
        return str(y.distribution), [(move.cause, move.nbytes, move.implicit) for move in moves]

    assert rote.run(program, 2) == [("block[(0)] on (6,), grid 2", [("indexing", 8, True)])] * 2


def test_an_index_that_comes_twice_has_the_last_value():
    """Of an index that comes twice in an assignment the last value stays, as in NumPy."""

    def program(comm):
        x = DistTensor.zeros(4, "[(0)]", comm)
        x[[1, 3, 1]] = DistTensor.from_global([1.0, 2.0, 3.0], "block[(0)]", comm)
        return x.to_global().tolist()

    assert rote.run(program, 2) == [[0, 3, 0, 2]] * 2


def test_wrong_keys_are_refused_on_all_ranks():
    """Keys out of range, or different on some rank, are errors of all ranks, before anything moves."""

    def program(comm):
        x = DistTensor.from_global(np.arange(6), "block[(0)]", comm)
        with pytest.raises(IndexError, match="out of bounds"):
            x[6]
        with pytest.raises(IndexError, match="too many"):
            x[0, 0]
        with pytest.raises(IndexError, match="integers"):
            x[1.5]
        with pytest.raises(ValueError, match="broadcast"):
            x[1:3] = [1, 2, 3]
        with pytest.raises(LayoutError, match="same arguments"):
            x[comm.rank :: 2]
        with pytest.raises(LayoutError, match="same arguments"):
            x[comm.rank] = 7
        with pytest.raises((LayoutError, IndexError)):
            x[3 + comm.rank * 3]
        return x.to_global().tolist()

    assert rote.run(program, 2) == [list(range(6))] * 2


@pytest.mark.parametrize("layout", ["block[(0),()]", "(a b): [(0)]"])
@pytest.mark.parametrize("key", [(1, 2), (-1, 0), (1, 2, ...), (1, None, 2), (1, [2]), (slice(1, 2), 2), (...,)])
@pytest.mark.parametrize("value", [[5.0], [[5.0]], 5.0, np.array(5.0), [5.0, 6.0]])
def test_a_single_element_takes_a_single_value(layout, key, value):
    """Law: where NumPy refuses a list of one value, all ranks do; a key with dots, arrays or None takes it."""
    want = np.zeros((3, 4))
    try:
        want[key] = np.asarray(value)
        error = None
    except ValueError as refusal:
        error = type(refusal)

    def program(comm):
        values = DistTensor.from_global(value, "[" + ",".join(["()"] * np.ndim(value)) + "]", comm)
        for number in (value, np.asarray(value), values):
            x = DistTensor.zeros((3, 4), layout, comm)
            if error is None:
                x[key] = number
            else:
                with pytest.raises(error):
                    x[key] = number
            np.testing.assert_array_equal(x.to_global(), want)
        return True

    with rote.config(implicit="allow"):
        assert rote.run(program, 2) == [True] * 2


@pytest.mark.parametrize("shape", [(), (3, 4)])
@pytest.mark.parametrize("value", ["a", 1j, [1, 2], np.ones((2, 3, 4)), np.ones((1, 1, 1)), 5, None, []])
def test_what_is_assigned_nowhere_is_checked(shape, value):
    """Law: a mask that is False takes what NumPy takes for it, and refuses the rest, on all ranks."""

    def refused(x):
        try:
            x[False] = value
        except (TypeError, ValueError) as error:
            return type(error)
        return None

    if np.ndim(value) == 3 and not shape:
        return  # one element more or less is NumPy's own affair

    def program(comm):
        return refused(DistTensor.zeros(shape, f"block[{','.join(['(0)', '()'][: len(shape)])}]", comm))

    assert rote.run(program, 3) == [refused(np.zeros(shape))] * 3


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip", "else"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_indices_that_are_out_of_range_are_taken_by_a_mode(mode, axis):
    """Law: `numpy.take` has the modes of NumPy."""
    array, indices = np.arange(12).reshape(3, 4), [[1, -2], [17, 0]]

    def taken(x):
        try:
            return np.take(x, indices, axis=axis, mode=mode)
        except (IndexError, ValueError) as error:
            return type(error)

    def program(comm):
        result = taken(DistTensor.from_global(array, "block[(0),()]", comm))
        return result.to_global() if isinstance(result, DistTensor) else result

    for result in rote.run(program, 3):
        np.testing.assert_array_equal(result, taken(array))
