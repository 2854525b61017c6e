"""Errors that the elements of one rank alone would raise: all ranks raise them, so that none waits for the others."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import apart
import numpy as np
import pytest

import rote
from rote import DistTensor
from rote.errors import LayoutError

NUMBERS = np.array([3, -1, 2])


@contextmanager
def silent(comm):
    """No rank may ask the others. Rank 0 alone patches the class, which all ranks share, and mends it after them."""
    with pytest.MonkeyPatch.context() as patch:
        comm.barrier()
        if comm.rank == 0:
            patch.setattr(type(comm), "allgather_object", None)
        comm.barrier()
        yield
        comm.barrier()


def check(error, layout, call, array=NUMBERS):
    """Call with a tensor of which the last ranks hold nothing: NumPy's error is raised by all of them."""
    with pytest.raises(error):
        call(np.array(array))

    def program(comm):
        x = DistTensor.from_global(np.array(array), layout, comm)
        with rote.config(implicit="allow"), pytest.raises(error):
            call(x)
        return np.array_equal(x.to_global(), array)

    assert rote.run(program, 5) == [True] * 5


LAYOUTS = pytest.mark.parametrize("layout", ["block[(0)]", "cyclic(2)[(0)]"])


@LAYOUTS
@pytest.mark.parametrize(
    ("error", "value"),
    [
        (TypeError, None),
        (ValueError, "a"),
        (ValueError, ["a", "b", "c"]),
        (TypeError, 1j),
        (ValueError, float("nan")),
        (OverflowError, 2**80),
        (OverflowError, [0, 2**80, 0]),
        (TypeError, np.array([None, 1, 2])),
    ],
)
def test_values_that_are_not_stored(layout, error, value):
    """Law: what a dtype does not hold is assigned nowhere, by a slice, an index or a mask."""
    check(error, layout, lambda x: x.__setitem__(slice(None), value))
    if np.ndim(value) == 0:
        check(error, layout, lambda x: x.__setitem__(1, value))
        check(error, layout, lambda x: x.__setitem__(x == 2, value))


@pytest.mark.parametrize(("text", "held"), [("i8", True), ("f4", 1), ("i4", 2.5), ("u1", np.int64(300)), ("f8", None)])
def test_values_are_stored_as_numpy_stores_them(text, held):
    """Law: of what a dtype holds, or rounds, or wraps, every element is NumPy's."""
    array = np.zeros(3, text)
    array[:2] = held

    def program(comm):
        x = DistTensor.zeros(3, "block[(0)]", comm, dtype=text)
        x[:2] = held
        return np.array_equal(x.to_global(), array, equal_nan=True)

    assert rote.run(program, 5) == [True] * 5


@pytest.mark.parametrize(
    "args", [(-5, 0, 1, "u1"), (-1.5, 3, 1, "u1"), (1e10, 1e10 + 2, 1, "i4"), (0, -3, -1, "u8"), (0, 999, 300, "u1")]
)
def test_numbers_of_a_range_that_do_not_fit(args):
    """Law: they are refused as NumPy refuses them, and do not wrap."""
    for arange in (np.arange, rote.array_api.arange):
        with pytest.raises(OverflowError):
            arange(*args[:3], dtype=args[3])


@pytest.mark.parametrize("args", [(0, 5, 1000), (-0.5, 3, 1), (5, -1, -1), (3, -3, 1), (-5, -9, 1)])
def test_numbers_of_a_range_that_fit(args):
    """Law: those that are in the range alone must fit; what lies behind its end is nobody's."""
    array = np.arange(*args, dtype="u1")
    assert rote.array_api.arange(*args, dtype="u1").to_global().tolist() == array.tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda comm, array: DistTensor.from_global(array, "block[(0)]", comm),
        lambda comm, array: DistTensor.from_local(array[comm.rank :][:1], "block[(0)]", comm.size, comm),
        lambda comm, array: DistTensor.from_slices(
            array[comm.rank :][:1], [slice(comm.rank, comm.rank + 1)], comm.size, comm
        ),
        lambda comm, array: DistTensor.from_function(lambda i: array[i], comm.size, "block[(0)]", comm),
    ],
)
def test_a_mask_is_not_lost(make):
    """Law: an array with a mask is refused, wherever it is; filled, or of another subclass of arrays, it is taken."""

    def program(comm):
        for rank in range(comm.size):
            with pytest.raises(TypeError, match=r"has one\nwrite x.filled\(value\)"):
                make(comm, np.ma.masked_less(NUMBERS, 2) if rank == comm.rank else NUMBERS)
        make(comm, NUMBERS.view(type("Sub", (np.ndarray,), {})))
        return make(comm, np.ma.masked_less(NUMBERS, 2).filled(5)).to_global().tolist()

    assert rote.run(program, 3) == [[3, 5, 2]] * 3
    with pytest.raises(TypeError, match="has no mask"):
        rote.array_api.asarray(np.ma.masked_less(NUMBERS, 2))


@pytest.mark.parametrize(
    "call",
    [
        lambda x, values: x + values,
        lambda x, values: x.__iadd__(values),
        lambda x, values: np.add(x, 1, out=x, where=values > 1),
        lambda x, values: rote.array_api.add(x, values),
        lambda x, values: x == values,
        lambda x, values: x @ values,
        lambda x, values: np.where(x > 1, values, x),
        lambda x, values: np.copyto(x, values),
        lambda x, values: np.concatenate([x, values]),
        lambda x, values: np.isin(x, values),
        lambda x, values: np.average(x, weights=values),
        lambda x, values: rote.fft.convolve(x, values),
        lambda x, values: x.accumulate_halo(values, 0),
        lambda x, values: x.__setitem__(..., values),
        lambda x, values: x.__setitem__(0, values[1]),
        lambda x, values: x.__setitem__(values > 1, 0),
        lambda x, values: x[values > 1],
        lambda x, values: x[values - values],
        lambda x, values: rote.simulate.scatter(values, x.distribution),
    ],
)
def test_a_mask_is_not_lost_beside_a_tensor(call):
    """Law: an array with a mask is refused as an operand, value or index, and nothing is written."""
    x = DistTensor.from_global(NUMBERS, "block[(0)]")
    with pytest.raises(TypeError, match=r"has no mask, and Masked\w+ has one\nwrite x.filled\(value\)"):
        call(x, np.ma.masked_less(NUMBERS, 0))
    assert np.array_equal(x.local, [3, -1, 2])
    call(x, np.ma.masked_less(NUMBERS, 0).filled(1))


@pytest.mark.parametrize(
    "call",
    [
        lambda x, value: np.full_like(x, value),
        lambda x, value: rote.array_api.full(3, value),
        lambda x, value: np.pad(x, 1, constant_values=value),
        lambda x, value: x.sum(initial=value),
        lambda x, value: x.max(initial=value),
        lambda x, value: x.clip(value),
        lambda x, value: x.halo(1, fill=value),
        lambda x, value: x.dot(np.ma.masked_array([1, 1, 1], [0, 1, 0])),
        lambda x, value: np.repeat(x, np.ma.masked_array([1, 1, 1], [0, 1, 0])),
        lambda x, value: np.cov(x, aweights=np.ma.masked_array([1, 1, 1], [0, 1, 0])),
        lambda x, value: DistTensor(np.ma.masked_less(NUMBERS, 0), x.distribution),
    ],
)
@pytest.mark.parametrize("value", [np.ma.masked, np.ma.masked_array(3, True)])
def test_a_value_with_a_mask_is_refused(call, value):
    """Law: one value with a mask, or a block that has one, is refused wherever numbers enter; plain ones are taken."""
    x = DistTensor.from_global(NUMBERS, "block[(0)]")
    with pytest.raises(TypeError, match=r"has no mask, and Masked\w+ has one\nwrite x.filled\(value\)"):
        call(x, value)


@pytest.mark.parametrize("masked", [np.ma.masked_less(NUMBERS, 0), np.ma.masked])
def test_a_masked_operand_in_front_is_refused_by_its_mask(masked):
    """Law: NumPy's masked arrays do not leave the sum to the tensor, and the error says what to write all the same."""
    x = DistTensor.from_global(NUMBERS, "block[(0)]")
    with pytest.raises(LayoutError, match=r"no mask: write array.filled\(value\)"):
        masked + x


@pytest.mark.parametrize("number", [3, np.array(3), np.int64(3)])
def test_a_value_without_a_mask_is_taken(number):
    """Law: numbers and arrays of order 0 fill, pad and limit alike, and distances may be an array of integers."""
    x = DistTensor.from_global(NUMBERS, "block[(0)]")
    assert np.full_like(x, number).to_global().tolist() == [3, 3, 3]
    assert np.pad(x, 1, constant_values=number).to_global().tolist() == [3, *NUMBERS.tolist(), 3]
    assert x.clip(number).to_global().tolist() == np.clip(NUMBERS, 3, None).tolist()
    matrix = np.arange(6).reshape(2, 3)
    y = DistTensor.from_global(matrix, "block[(0),()]")
    shifts, shape = np.array([1, 2]), np.array([3, 2])
    assert np.array_equal(np.roll(y, shifts, axis=(0, 1)).to_global(), np.roll(matrix, shifts, axis=(0, 1)))
    assert np.array_equal(np.reshape(y, shape).to_global(), np.reshape(matrix, shape))


@LAYOUTS
@pytest.mark.parametrize(
    "call",
    [
        lambda x: x ** np.array([1, 2, -1]),
        lambda x: x**-1,
        lambda x: 2**x,
        lambda x: np.power(x, x, out=np.zeros_like(x)),
    ],
)
def test_integers_to_a_negative_power(layout, call):
    """Law: a negative exponent of integers is refused, wherever it lies."""
    check(ValueError, layout, call)


def test_powers_that_cannot_fail_ask_nobody():
    """Law: of a number that is not negative, and of floating-point numbers, ranks send nothing."""

    def program(comm):
        x = DistTensor.from_global(NUMBERS, "block[(0)]", comm)
        with silent(comm):
            return (x**2).local.tolist() + (x**-1.0).local.tolist() + (1.5**x).local.tolist()

    assert rote.run(program, 3)[1] == [1, -1.0, 1.5**-1]


@LAYOUTS
@pytest.mark.parametrize("call", [lambda x: x < None, lambda x: np.greater(None, x), lambda x: np.add(x, None)])
def test_none_is_no_number(layout, call):
    """Law: it has no order and no sum, and equals nothing."""
    check(TypeError, layout, call)
    assert not (DistTensor.from_global(NUMBERS, layout) == None).to_global().any()  # noqa: E711


@pytest.mark.parametrize("layout", ["block[(0),()]", "block[(),(0)]"])
def test_indices_that_are_out_of_range(layout):
    """Law: along a mode that is whole, too, where only the rank that has the index could know."""
    check(IndexError, layout, lambda x: np.take_along_axis(x, np.array([[0], [3]]), 1), [[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize("function", [np.argmax, np.argmin])
@pytest.mark.parametrize("axis", [(0,), 1.0, "a"])
def test_an_axis_that_is_no_integer(function, axis):
    """Law: of a mode whose extent leaves ranks without an element."""
    check(TypeError, "block[(0)]", lambda x: function(x, axis=axis))


@LAYOUTS
@pytest.mark.parametrize(
    ("error", "options"), [(TypeError, {"weights": 1j * NUMBERS}), (ValueError, {"minlength": -1})]
)
def test_counts_of_what_is_not_counted(layout, error, options):
    """Law: complex weights have no sum in double precision, and there is no negative number of bins."""
    check(error, layout, lambda x: np.bincount(x, **options), np.array([0, 1, 1]))


@pytest.mark.parametrize("layout", ["[(),()]", "block[(0),()]", "block[(),(0)]"])
@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_singular_values_of_no_numbers(layout, bad):
    """Law: they are refused, and not looked for for ever."""
    matrix = np.ones((5, 3))
    matrix[4, 2] = bad

    def program(comm):
        x = DistTensor.from_global(matrix, layout, comm)
        for function in (np.linalg.svd, np.linalg.svdvals, np.linalg.matrix_rank, np.linalg.pinv):
            with rote.config(implicit="allow"), pytest.raises(np.linalg.LinAlgError):
                function(x)
        return True

    assert rote.run(program, 2) == [True] * 2


def _shut(x):
    x.local.flags.writeable = False
    return x


@LAYOUTS
@pytest.mark.parametrize(
    ("key", "value"), [(0, 7), ((-1,), 7), (slice(1), [8]), ([1], [8]), (slice(3, 3), 7), ([1], "tensor")]
)
def test_an_assignment_to_what_is_read_only(layout, key, value):
    """Law: ranks on which nothing would be written refuse as well."""

    def program(comm):
        x = DistTensor.from_global(NUMBERS, layout, comm)
        for rank in (*range(comm.size), None):
            y = x.copy()
            if rank in (comm.rank, None):
                _shut(y)
            with pytest.raises(ValueError if rank is None else LayoutError):
                y[key] = x[:1] if isinstance(value, str) else value
        return np.array_equal(x.to_global(), NUMBERS)

    assert rote.run(program, 3) == [True] * 3


@pytest.mark.parametrize("after", ["block[(),(0)]", "block[(),()]|(0)", "block[(),()]"])
def test_an_output_that_is_read_only(after):
    """Law: it is refused before anything moves, by ranks that would write nothing too."""

    def program(comm):
        x = DistTensor.from_global(np.ones((4, 3)), "block[(0),()]", comm)
        out = _shut(x.redistribute(after))
        with pytest.raises(LayoutError, match="read-only"):
            x.redistribute(after, out=out)
        with pytest.raises(LayoutError, match="read-only"):
            x.move_to(after, out=out)
        f = rote.fft.FFT((4, 3), "block[(0),()]", comm=comm, output=after)
        for _ in range(2):
            with pytest.raises(LayoutError, match="read-only"):
                f.forward(x.astype("c16"), out=_shut(f.empty_output()))
        return float(x.sum())

    assert rote.run(program, 3) == [12.0] * 3


BIG = np.array([1e-200, 2.0, 1e300])

RAISING = {
    "of each element": lambda x: np.exp(x),
    "of a method": lambda x: x.__rtruediv__(1e200),
    "into a tensor": lambda x: np.multiply(x, 1e300, out=x * 0),
    "of a function that is no ufunc": lambda x: np.sinc(x * 1e300),
    "of a cast": lambda x: x.astype("f4"),
    "by a copy": lambda x: np.copyto(np.zeros_like(x, "f4"), x, casting="same_kind"),
    "by an assignment": lambda x: np.zeros_like(x, "f4").__setitem__(slice(None), x),
    "of a variance": lambda x: np.var(x),
    "of a sum of ranks": lambda x: np.sum(np.where(x < 1, 1.5e308, x * 0 + 1e308)),
    "of a scan": lambda x: np.cumsum(np.where(x < 1, 1.5e308, x * 0 + 1e308)),
    "of a norm": lambda x: np.linalg.norm(x.reshape(-1, 1), axis=0),
}


@pytest.mark.parametrize("layout", ["[()]", "block[(0)]", "cyclic(2)[(0)]"])
@pytest.mark.parametrize("name", RAISING)
def test_floating_point_errors_are_raised_by_all_ranks(name, layout):
    """Law: where NumPy is to raise them, those of one rank's elements are raised on all, and the ranks go on."""

    def call(x):
        with np.errstate(all="raise", under="ignore"):
            RAISING[name](x)

    check(FloatingPointError, layout, call, BIG)


def test_floating_point_errors_of_moves():
    """Law: of contributions that are added up, and of what is rounded on its way."""

    def program(comm):
        x = DistTensor.from_local(np.full(2, 1e308), "[()]+(0)", 2, comm)
        y = DistTensor.from_global(BIG, "[(0)]", comm)
        for out in (None, DistTensor.zeros(2, "[()]", comm)):
            with np.errstate(over="raise"), pytest.raises(FloatingPointError):
                x.redistribute("[()]", out=out)
        with np.errstate(over="raise"), pytest.raises(FloatingPointError):
            y.redistribute("[()]", wire="f4", method="sendrecv")
        return float(y.sum())

    assert rote.run(program, 3) == [1e300] * 3


def test_floating_point_errors_name_the_function_and_the_ranks():
    """Law: the note says where, other kinds of errors stay as they are, and a rank alone has NumPy's own error."""

    def program(comm):
        x = DistTensor.from_global([1.0, 2.0, 0.0, 4.0], "block[(0)]", comm)
        kinds = []
        with np.errstate(all="ignore", divide="raise", invalid="call", call=lambda kind, flag: kinds.append(kind)):
            with pytest.raises(FloatingPointError, match="divide by zero encountered in divide") as raised:
                1 / x
            (x - 1) * np.inf
        return (raised.value.__notes__ if comm.size > 1 else [], kinds)

    assert rote.run(program, 1) == [([], ["invalid value"])]
    assert rote.run(program, 2) == [(["raised on rank 1 of 2"], ["invalid value"]), (["raised on rank 1 of 2"], [])]


def test_floating_point_errors_that_are_not_raised_ask_nobody():
    """Law: ranks send nothing where NumPy warns, or is silent."""

    def program(comm):
        x = DistTensor.from_global(BIG, "block[(0)]", comm)
        with silent(comm), np.errstate(all="ignore"):
            return len((x * 1e300).local)

    assert rote.run(program, 3) == [1] * 3


def test_powers_of_arrays_into_a_tensor():
    """Law: the tensor that is written says whose ranks must agree."""
    base = np.array([2, 3, 4])

    def program(comm):
        out = DistTensor.zeros(3, "block[(0)]", comm=comm, dtype="i8")
        with pytest.raises(ValueError, match="negative"):
            np.power(base, NUMBERS, out=out)
        return np.power(base, base, out=out) is out and out.to_global().tolist()

    assert rote.run(program, 5) == [(base**base).tolist()] * 5


@pytest.mark.parametrize("ranks", (2, 3))
def test_calls_that_differ_are_refused_by_all_in_process_ranks(ranks):
    rote.run(apart.check, ranks)


@pytest.mark.mpi
@pytest.mark.parametrize("job", (2,), indirect=True)
def test_calls_that_differ_are_refused_by_all_ranks_of_mpi(job):
    done = job.run(Path(apart.__file__))
    assert (done.returncode, done.stdout) == (0, "refused\n" * 2), done.stderr
