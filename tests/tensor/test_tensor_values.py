"""Values, dtypes and refusals of functions with options that the random calls of the other tests do not give."""

from __future__ import annotations

import numpy as np
import pytest

import rote
import rote.array_api as xp
from rote import DistTensor, LayoutError

LAYOUTS = pytest.mark.parametrize("layout", ["[()]", "block[(0)]", "cyclic[(0)]"])
INTEGERS, BYTES = np.array([3, -1, 2, 2]), np.array([200, 100, 7, 1], np.uint8)
TRUTHS, SINGLES = np.array([True, False, True, True]), np.array([1, 2, 4, 8], np.float32)


def check(call, array, layout):
    """Compare a call with NumPy's: values, shape and dtype, or the type of its error."""
    try:
        wanted = call(array)
    except Exception as error:
        refused = type(error)
    else:
        refused = None

    def program(comm):
        x = DistTensor.from_global(array, layout, comm)
        with rote.config(implicit="allow"):
            if refused is not None:
                with pytest.raises(refused):
                    call(x)
                return True
            results = call(x)
        pairs = zip(results, wanted, strict=True) if isinstance(wanted, tuple) else [(results, wanted)]
        for result, right in pairs:
            assert (result.shape, result.dtype) == (np.shape(right), right.dtype), (result, right)
            assert np.array_equal(result.to_global(), right), (result.to_global(), right)
        return True

    assert rote.run(program, 3) == [True] * 3


@LAYOUTS
@pytest.mark.parametrize("array", [INTEGERS, BYTES, TRUTHS, SINGLES, 1j * SINGLES])
@pytest.mark.parametrize("weights", [INTEGERS, BYTES, TRUTHS, SINGLES, 0 * INTEGERS])
def test_averages(layout, array, weights):
    """Law: products of integers are made in double precision, and weights that sum to zero are refused."""
    check(lambda x: np.average(x, weights=weights, returned=True), array, layout)


@pytest.mark.parametrize("axis", [0, -1, 1, (), None])
def test_averages_of_order_0(axis):
    """Law: an average has no mode to go along, with weights or without."""
    check(lambda x: np.average(x, axis=axis), np.array(3.0), "[]")
    check(lambda x: np.average(x, axis=axis, weights=np.array(2.0)), np.array(3.0), "[]")


@LAYOUTS
@pytest.mark.parametrize("power", [2, -1, 0.5, 2.0, -1.0, 1, 0, True, np.int64(2), np.float64(0.5)])
@pytest.mark.parametrize("array", [BYTES, TRUTHS, SINGLES, 1j * SINGLES, SINGLES.astype("g")])
def test_powers(layout, power, array):
    """Law: `**` gives what it gives NumPy's arrays, in dtype and rounding, into the tensor as well."""
    with np.errstate(all="ignore"):
        check(lambda x: x**power, array, layout)

    def written(x):
        x = x.copy()
        x **= power
        return x

    if (array.dtype.kind, power, type(power)) == ("u", 2, float):
        array = array.astype("f4")  # older NumPys write these floats into the integers; Rote refuses it with all
    with np.errstate(all="ignore"):
        check(written, array, layout)


@LAYOUTS
@pytest.mark.parametrize("array", [INTEGERS, TRUTHS, SINGLES, 1j * SINGLES])
def test_conjugates(layout, array):
    """Law: the method keeps the dtype, of truth values too."""
    check(lambda x: x.conj(), array, layout)


@LAYOUTS
@pytest.mark.parametrize("function", [np.sum, np.prod, np.max, np.min, np.nansum, np.nanmax])
@pytest.mark.parametrize("initial", [2, 2.5, True, float("inf"), -3])
@pytest.mark.parametrize("array", [INTEGERS, TRUTHS, SINGLES])
def test_initial_values(layout, function, initial, array):
    """Law: what a reduction begins with has the dtype of its result."""
    if array is TRUTHS and function in (np.max, np.min, np.nanmax) and initial != 2:
        initial = False
    check(lambda x: function(x, initial=initial), array, layout)


@LAYOUTS
@pytest.mark.parametrize("function", [np.max, np.min, np.nanmax, np.nanmin])
@pytest.mark.parametrize("array", [INTEGERS, SINGLES])
def test_extrema_by_a_mask(layout, function, array):
    """Law: that of what may be no elements wants a value to begin with."""
    check(lambda x: function(x, where=TRUTHS), array, layout)
    check(lambda x: function(x, where=TRUTHS, initial=1), array, layout)
    check(lambda x: function(x, where=~TRUTHS & False, initial=1), array, layout)


@LAYOUTS
@pytest.mark.parametrize("array", [INTEGERS, BYTES, SINGLES, 1j * SINGLES])
def test_means_by_a_mask(layout, array):
    """Law: they have the dtype of means of all."""
    check(lambda x: np.mean(x, where=TRUTHS), array, layout)


@LAYOUTS
@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.diff(x, 0, prepend=1, append=2),
        lambda x: np.vsplit(x, 1),
        lambda x: np.dsplit(x, 1),
        lambda x: np.linalg.norm(x, "fro", axis=0),
        lambda x: np.linalg.matrix_norm(x[:0].reshape(0, 1), ord=1),
        lambda x: np.linalg.matrix_power(x.reshape(2, 2), 2.0),
    ],
)
def test_borders(layout, call):
    """Law: nothing to do, modes that are not there, and orders of the wrong kind are as NumPy has them."""
    check(call, INTEGERS * 1.0, layout)


@LAYOUTS
def test_the_greatest_of_nothing(layout):
    """Law: the norm of no elements is 0, also where the NumPy that is installed refuses it."""

    def program(comm):
        x = DistTensor.from_global(INTEGERS * 1.0, layout, comm)
        with rote.config(implicit="allow"):
            return float(np.linalg.norm(x[:0], np.inf))

    assert rote.run(program, 3) == [0.0] * 3


@pytest.mark.parametrize("value", [-2.5, 0, 7, 0.5])
def test_bins_of_a_number(value):
    """Law: of order 0 the bins lie about the number, which one of them has."""
    check(lambda x: np.histogram(x, 3), np.array(value), "[]")


@pytest.mark.parametrize("ranks", (1, 3))
def test_blocks_of_numbers_are_arrays(ranks):
    """Law: also those of order 0, which NumPy's operators make numbers of; so a result is an output of the next one."""

    def program(comm):
        x = DistTensor.from_global(INTEGERS * 1.0, "block[(0)]" if INTEGERS.ndim == 1 else "block[(0),()]", comm)
        number = DistTensor.from_global(np.array(2.0), "[]", comm)
        results = [x.max(), x.min(), np.digitize(number, np.array([1.0, 3.0]))]
        assert x.max(out=results[1]) is results[1]
        return [type(each.local) for each in results], float(results[1])

    assert rote.run(program, ranks) == [([np.ndarray] * 3, float(INTEGERS.max()))] * ranks


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda x: np.tensordot(x, x, ([0.5], [0])), TypeError, "takes integers"),
        (lambda x: np.tensordot(x, x, (1,)), LayoutError, "two lists"),
        (lambda x: np.tensordot(x, x, None), LayoutError, "two lists"),
        (lambda x: np.vecdot(x, x, axis=None), TypeError, "integer"),
        (lambda x: np.rot90(x, 1.5), TypeError, "integer"),
        (lambda x: np.rot90(x, 1, (0,)), ValueError, "from one mode to another"),
        (lambda x: x.trace(out=3), LayoutError, "^trace "),
        (lambda x: x.move_to("[(),(0)]")(3), TypeError, "DistTensor or this rank's block, not int"),
        (lambda x: x.grid_comm([0]), LayoutError, "each of them once"),
        (lambda x: rote.redistribute(3, "[()]"), TypeError, "list of tensors"),
        (lambda x: rote.redistribute([x], 3), LayoutError, "one layout is expected"),
        (lambda x: rote.save("none.h5", x, attributes=3), TypeError, "values by name"),
        (lambda x: DistTensor(3, x.distribution), TypeError, "takes an array"),
        (lambda x: DistTensor.from_roots(3, "block[(0),()]|(1)", (4, 4), grid=(1, 1)), TypeError, "or None, not int"),
        (lambda x: rote.config(layout=3), TypeError, "no function"),
    ],
)
def test_wrong_arguments_are_named(call, kind, text):
    """Law: an argument of another type is refused before anything is computed, in words of the call."""
    x = DistTensor.from_global(np.ones((4, 4)), "block[(0),()]")
    with pytest.raises(kind, match=text):
        call(x)


ROWS = "block[(0),()]"


@pytest.mark.parametrize("layout", [ROWS, rote.parse(ROWS)], ids=["text", "Layout"])
@pytest.mark.parametrize(
    "call",
    [
        lambda shape, layout: DistTensor.zeros(layout, shape),
        lambda shape, layout: DistTensor.empty(layout, shape),
        lambda shape, layout: DistTensor.from_function(lambda i, j: i + j, layout, shape),
        lambda shape, layout: DistTensor.from_local(np.ones(shape), shape, layout),
    ],
)
def test_a_shape_and_a_layout_that_are_exchanged(call, layout):
    """Law: the error has both by their names, as they are to be written, whatever their order is."""

    def program(comm):
        with pytest.raises(LayoutError, match=r"\nwrite shape=\(2, 3\), layout='block\[\(0\),\(\)\]'"):
            call((2, 3), layout)
        with pytest.raises(LayoutError, match=r"\nwrite array=array, layout='block\[\(0\),\(\)\]'"):
            DistTensor.from_global(layout, np.ones((2, 3)), comm)

    rote.run(program, 2)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: xp.zeros(ROWS), LayoutError, r"write shape=\(…\) and layout='block"),
        (lambda: rote.fft.FFT(ROWS, (2, 3)), LayoutError, r"write shape=\(…\) and layout='block"),
        (lambda: rote.random.default_rng(1).random(ROWS, (2, 3)), LayoutError, r"write shape=\(…\) and layout='block"),
        (lambda: xp.ones((2, 3), ROWS), TypeError, "write by name what comes after shape: layout=…"),
    ],
)
def test_a_layout_in_the_place_of_a_shape(call, kind, text):
    """Law: it is refused, and the text says how each is given."""
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize(
    "ends",
    [
        *((np.inf,), (np.nan,), (0, -np.inf, -1), (1e300,), (0, 1, 1e-300), (np.inf, np.inf), (-np.inf, 0), (2**70,)),
        *((0, np.inf, np.inf), (1, 1, np.nan), (0, 1, np.nan), (0, 5, np.inf), (5, 0, np.inf), (0, 1e-300, 1e300)),
        *((0, -1e-300, 1e300), (0, 2**70, 2**69), (2, 5), (5, 2, -2)),
    ],
)
def test_ranges_of_numbers_end(ends):
    """Law: where NumPy refuses ends or a step, an error says what to write; elsewhere the numbers are NumPy's."""
    try:
        want = np.arange(*ends)
    except ValueError:
        with pytest.raises(ValueError, match="write finite ends and a finite step"):
            xp.arange(*ends)
    else:
        if want.dtype != object:
            np.testing.assert_array_equal(xp.arange(*ends).to_global(), want, strict=True)


def test_one_number_says_whether_all_modes_are_periodic():
    """Law: a truth value of any type is for all modes."""
    x = DistTensor.from_global(np.arange(4), "block[(0)]")
    assert x.halo(1, periodic=1).tolist() == x.halo(1, periodic=np.True_).tolist() == [3, 0, 1, 2, 3, 0]
