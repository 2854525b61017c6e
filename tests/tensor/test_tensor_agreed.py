"""Errors that the elements of one rank alone would raise: all ranks raise them, so that none waits for the others."""

from __future__ import annotations

import numpy as np
import pytest

import rote
from rote import DistTensor

NUMBERS = np.array([3, -1, 2])


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


def test_powers_that_cannot_fail_ask_nobody(monkeypatch):
    """Law: of a number that is not negative, and of floating-point numbers, ranks send nothing."""

    def program(comm):
        x = DistTensor.from_global(NUMBERS, "block[(0)]", comm)
        with monkeypatch.context() as patch:
            patch.setattr(type(comm), "allgather_object", None)
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
