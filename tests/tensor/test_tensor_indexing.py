"""Global indexing: reading and assigning, compared with NumPy on random layouts and keys."""

from __future__ import annotations

from itertools import product

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


@pytest.mark.parametrize("shape", [(3, 1), (3, 4), (0, 4), (3,), (2, 0, 3), ()])
def test_extents_of_masks_that_are_0_fit_any_mode(shape):
    """Law: a mask with an extent of 0 takes nothing where its other extents fit, as in NumPy: to read and to assign, as
    an array and as a tensor; all ranks refuse the others."""
    array = keyed.numbered(shape)
    layout = f"block[{','.join(['(0)', *['()'] * (len(shape) - 1)][: len(shape)])}]"
    masks = [np.zeros(extents, bool) for order in (1, 2, 3) for extents in product((0, 1, 3), repeat=order)]

    def outcome(call):
        try:
            result = call()
        except (IndexError, ValueError) as error:
            return type(error)
        return getattr(result, "shape", None)

    def program(comm):
        for mask in masks:
            twin = DistTensor.from_global(mask, f"[{','.join(['()'] * (mask.ndim - 1) + ['(0)'])}]", comm)
            for key, want in ((mask, mask), (twin, mask), ((..., mask), (..., mask)), ((mask, None), (mask, None))):
                x = DistTensor.from_global(array, layout, comm)
                assert outcome(lambda key=key, x=x: x[key]) == outcome(lambda want=want: array[want]), (mask.shape, key)
                for value in (7, np.zeros(0), np.zeros(2)):
                    got = outcome(lambda key=key, x=x, value=value: x.__setitem__(key, value))
                    assert got == outcome(lambda want=want, value=value: array.copy().__setitem__(want, value)), mask
                np.testing.assert_array_equal(x.to_global(), array)

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


@pytest.mark.parametrize(
    "key", [np.s_[1:], np.s_[0], np.s_[::-1], np.s_[2:3, 1], np.s_[:, 1], np.s_[2, 3], np.s_[[0, 2]]]
)
@pytest.mark.parametrize("layout", ["[(0),()]", "block[(),(0)]", "[(),()]", "b a: block[(0),()]", "block[(),()]|(0)"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_what_is_written_into_a_part(key, layout, ranks):
    """Law: what is written into a part is in the tensor if NumPy's part is a view, in any layout, on any ranks."""
    array = np.zeros((5, 4))
    part = array[key]
    part += 1
    array[key] *= 3
    array[key] += 2

    def program(comm):
        x = DistTensor.zeros((5, 4), layout, comm)
        with rote.config(implicit="allow"):
            y = x[key]
            y += 1
            x[key] *= 3
            x[key] += 2
            return x.to_global()

    for got in rote.run(program, ranks):
        np.testing.assert_array_equal(got, array)


COLUMNS = "block[(),(0)]"
WRITERS = {
    "operator": lambda x, f: x.__iadd__(1),
    "ufunc": lambda x, f: np.multiply(x, 2, out=x),
    "copyto": lambda x, f: np.copyto(x, 7),
    "assignment": lambda x, f: x.__setitem__((slice(1, 3), 0), 7),
    "mask": lambda x, f: x.__setitem__(x == 0, 7),
    "view": lambda x, f: x.T[None].__setitem__(0, 7),
    "part": lambda x, f: x[2:].__imul__(2),
    "sort": lambda x, f: x.sort(),
    "reduction": lambda x, f: np.sum(x[None], axis=0, out=x),
    "contraction": lambda x, f: np.einsum("ij->ij", x, out=x),
    "move": lambda x, f: x.redistribute(COLUMNS).redistribute(x.layout, out=x),
    "bound move": lambda x, f: x.redistribute(COLUMNS).move_to(x.layout, out=x)(),
    "bound move of another": lambda x, f: x.redistribute(COLUMNS).move_to(x.layout, out=x)(x.redistribute(COLUMNS)),
    "transform": lambda x, f: f.backward(f.forward(x), out=x),
}


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("name", WRITERS)
def test_a_part_is_outdated_by_whatever_changes_its_tensor(name, ranks):
    """Law: a part with copied elements raises after each change of the tensor; one that shares them has new ones."""

    def program(comm):
        x = DistTensor.from_function(lambda i, j: 1.0 * i - j, (6, 4), "block[(0),()]", comm)
        f, write = rote.fft.FFT((6, 4), x.layout, comm=comm, dtype="f8", kinds="dct2"), WRITERS[name]
        with rote.config(implicit="allow"):
            for _ in range(2):  # some programs are kept for the next call
                far, near, old = x[1:5], x[:, 1:], x[2:].copy()
                write(x, f)
                np.testing.assert_array_equal(near.to_global(), x.to_global()[:, 1:])
                with pytest.raises(LayoutError, match="after the tensor has changed"):
                    far + 1
                with pytest.raises(LayoutError, match="after the tensor has changed"):
                    x[1:5] = far
                assert "outdated" in repr(far) and old.shape == (4, 4)

    rote.run(program, ranks)


def test_a_part_whose_elements_stay_is_not_outdated():
    """Law: elements of other indices may change, also every second one, and by other parts."""

    def program(comm):
        x = DistTensor.from_function(lambda i: 1.0 * i, 12, "block[(0)]", comm)
        with rote.config(implicit="allow"):
            even, first, rows = x[::2], x[1], x.reshape(3, 4)[1:]
            x[1::2] = -even
            x[3::4] += 1
            inner = x[2:10][2:5]
            x[11:] = 0
            before = even[:2].to_global().tolist()  # of which no element has changed; the next line changes two
            inner *= 10
            with pytest.raises(LayoutError, match="after the tensor has changed"):
                even + 1
            with pytest.raises(LayoutError, match="after the tensor has changed"):
                rows.sum()
            return before, float(first), x.to_global().tolist()

    array = np.arange(12.0)
    array[1::2] = -array[::2]
    array[3::4] += 1
    array[11:] = 0
    array[4:7] *= 10
    for ranks in (1, 2, 3, 4):
        assert rote.run(program, ranks) == [([0.0, 2.0], 1.0, array.tolist())] * ranks


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_what_cannot_write_into_a_part_refuses_it(ranks):
    """Law: moves and transforms into a part with copied elements, and its block, are refused on all ranks."""

    def program(comm):
        x = DistTensor.zeros((6, 4), "block[(0),()]", comm)
        f = rote.fft.FFT((4, 4), x.layout, comm=comm, dtype="f8", kinds="dct2")
        with rote.config(implicit="allow"):
            y, other = x[1:5], DistTensor.zeros((4, 4), COLUMNS, comm)
            for call in (
                lambda: other.redistribute(y.layout, out=y),
                lambda: other.move_to(y.layout, out=y),
                lambda: f.backward(f.empty_output(), out=y),
            ):
                with pytest.raises(LayoutError, match=r"a part of another tensor.*x\[key\] = result.*\.copy\(\)"):
                    call()
            with pytest.raises(ValueError, match="read-only"):
                y.local[...] = 1
            spread = np.broadcast_to(x, (2, 6, 4))
            for fixed in (spread, spread.T, x.diagonal(), x.imag, np.einsum("ii->i", x[:4])):
                for write in (lambda z: z.__iadd__(1), lambda z: z.__setitem__(..., 1), lambda z: np.copyto(z, 1)):
                    with pytest.raises(ValueError, match=r"are read-only\nwrite .copy()"):
                        write(fixed)
            kept = DistTensor.from_local(x.local.copy(), x.layout, shape=x.shape, comm=comm)
            kept.local.flags.writeable = False
            for part, match in ((np.einsum("ii->i", x[:4])[1:][1:3], "diagonals"), (kept[1:][1:], "read-only")):
                for write in (lambda z: z.__iadd__(1), lambda z: z.__setitem__(..., 1), lambda z: np.copyto(z, 1)):
                    with pytest.raises(ValueError, match=match):
                        write(part)
                assert not part.to_global().any()
            other.redistribute(y.layout, out=y.copy())
            return float(x.sum())

    assert rote.run(program, ranks) == [0.0] * ranks


def test_a_slice_keeps_the_layout_and_moves_what_lies_elsewhere():
    """A sliced split mode stays split, balanced anew; its own move says the most bytes that one rank receives."""

    def program(comm):
        x = DistTensor.from_global(np.arange(8.0), "block[(0:block(4))]", comm)
        with rote.trace() as moves:
            y = x[2:]
        x[5]
        return str(y.distribution), [(move.cause, move.nbytes, move.implicit) for move in moves]

    assert rote.run(program, 2) == [("block[(0)] on (6,), grid 2", [("indexing", 8, False)])] * 2


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


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("layout", ["block[(0),()]", "[(),(0)]", "block[(),()]"])
def test_parts_of_read_only_parts_follow_or_are_outdated(ranks, layout):
    """Law: what NumPy makes a view is never a silent copy, and what it copies is never written through."""
    takes = (
        lambda x: np.broadcast_to(x, (1, 3, 2, 8)).reshape(3, 2, 8),
        lambda x: np.broadcast_to(x, (3, 2, 8)).reshape(3, 16),
        lambda x: np.broadcast_to(x, (3, 2, 8)).ravel(),
        lambda x: np.einsum("ij->ji", x).reshape(8, 2, 1),
        lambda x: np.diagonal(x).reshape(2, 1),
        lambda x: np.diagonal(x).ravel(),
        lambda x: x[:1].imag.ravel(),
        lambda x: x[[1], 6:].imag.ravel(),
        lambda x: x.astype(complex).real.ravel(),
    )

    def program(comm):
        array = np.arange(16.0).reshape(2, 8)
        x = DistTensor.from_global(array.copy(), layout, comm)
        with rote.config(implicit="allow"):
            parts, arrays = [take(x) for take in takes], [take(array) for take in takes]
            x += 1
            array += 1
            for part, expected in zip(parts, arrays, strict=True):
                try:
                    block = part.local
                except LayoutError as error:
                    assert "after the tensor has changed" in str(error)
                else:
                    assert block.shape == part.distribution.local_shape(comm.rank)
                    assert np.array_equal(part.to_global(), expected)
            y = x[[1], 6:]
            zeros = y.imag.ravel()
            y += 1
            assert not zeros.to_global().any()
            z = DistTensor.from_global(array + 1j, layout, comm)
            line = z.real.ravel()
            line += 1
            z.real.reshape(16)[3:] += 1
            array.ravel()[3:] += 1
            assert np.array_equal(z.to_global(), array + 1j)
            number = x[1, 2]
            turned = np.flip(number)
            number += 1
            return float(turned)

    assert rote.run(program, ranks) == [11.0] * ranks


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("layout", ["block[(0)]", "block[()]"])
def test_numbers_replace_nan_in_place(ranks, layout):
    """Law: `nan_to_num(copy=False)` writes into the tensor or the part, which other parts follow or are outdated by."""

    def program(comm):
        array = np.array([1, np.nan, 3, np.inf, np.nan, 6])
        x = DistTensor.from_global(array.copy(), layout, comm)
        turned, part = x[::-1], x[3:]
        assert np.nan_to_num(part, copy=False, posinf=9) is part
        np.nan_to_num(array[3:], copy=False, posinf=9)
        try:
            assert np.array_equal(turned.to_global(), array[::-1], equal_nan=True)
        except LayoutError as error:
            assert "after the tensor has changed" in str(error)
        assert np.array_equal(np.nan_to_num(x).to_global(), np.nan_to_num(array))
        return np.array_equal(x.to_global(), array, equal_nan=True)

    assert rote.run(program, ranks) == [True] * ranks


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("layout", ["block[(0)]", "block[()]"])
def test_a_loop_over_rows_sees_what_it_writes(ranks, layout):
    """Law: rows have the elements of the moment that they come, or raise; those that are views are not held before."""

    def program(comm):
        with rote.config(implicit="allow"):
            x = DistTensor.from_global(np.arange(1.0, 7.0), layout, comm)
            try:
                for i, number in enumerate(x):
                    x[(i + 1) % 6] += number
            except LayoutError as error:
                return "after the tensor has changed" in str(error) and "(0)" in layout
            rows = DistTensor.zeros((6, 4), "block[(),(0)]", comm)
            held = iter(rows)
            for row in held:
                row += 1
                assert len(rows._sharing.parts) == 1
            assert np.array_equal(rows.to_global(), np.ones((6, 4)))
            return x.to_global().tolist() == [22.0, 3.0, 6.0, 10.0, 15.0, 21.0]

    assert rote.run(program, ranks) == [True] * ranks
