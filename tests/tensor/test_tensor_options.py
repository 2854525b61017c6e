"""Options of functions are answered and refused as by NumPy, on any number of ranks alike."""

from __future__ import annotations

import numpy as np
import pytest

import rote
from rote import DistTensor

FIELD = np.arange(12.0).reshape(4, 3)
LINE = np.array([3, 1, 2, 0, 5, 1])
GAPS = np.array([0.1, np.nan, 0.9, 0.2, np.nan, 0.5])
ONE, EMPTY = np.array(2.0), np.zeros((0, 3))
MASK = FIELD > 4

SORTS = [
    *(
        {"kind": kind}
        for kind in ("quicksort", "heapsort", "mergesort", "stable", "Q", None, "bogus", "", 3, b"stable")
    ),
    *({"stable": stable} for stable in (True, False, None, 2)),
    *({"kind": "stable", "stable": stable} for stable in (True, False, None)),
    *({"order": order} for order in (None, "a", ["a"], [], "")),
    {"axis": None, "kind": "bogus"},
    {"axis": None, "order": "a"},
    {"kind": "heapsort", "order": "f0", "stable": True},
]
AXES = [{"axis": axis} for axis in (0, 1, -1, 2, -3, 1.0, "0", None, np.int8(1), np.array(0))]
LISTED = [{"axis": axis} for axis in ([0], [0, 1], np.array([0]), np.array([0, 1]), (0, 0), (0, -2), (), (0, 1.0))]
KEEPING = [{"keepdims": keepdims} for keepdims in (True, 2, "a", [], None)]
MASKED = [
    *({"where": mask} for mask in (MASK, MASK[:1], MASK[:, :1], [True, False, True], [1, 0, 1], [0, 2, 0], 0, 1)),
    *({"where": mask} for mask in (MASK.astype(int), FIELD, np.array(1), MASK[:2], [True, False], [MASK, MASK])),
]
STARTS = [{"initial": initial} for initial in (3, -1.5, np.nan, "a", [1], [1.0, 2, 3], FIELD)]
TYPES = [{"dtype": dtype} for dtype in ("f4", "i4", "c8", bool)]
DIVISORS = [
    *({"ddof": ddof} for ddof in (0, 1, 0.5, -1, 12, 13, True, np.nan, np.array(1), "a", None)),
    *({"ddof": 1, "correction": correction} for correction in (0, 1)),
    *({"axis": 0, "mean": mean} for mean in (FIELD.mean(0, keepdims=True), 3, [1, 2], "a")),
]
SUMS = AXES + LISTED + KEEPING + MASKED

# Of a mask that is no array of bools, NumPy's mean divides by the sum.
MEANS = AXES + LISTED + MASKED[:3] + MASKED[8:]
SCANS = [*AXES, *LISTED, {"axis": True}]
WEIGHTS = [{"weights": weights, "axis": 0} for weights in ([1, 2, 3, 4], [0] * 4, [1, 2], "a", FIELD)]


def of(names, *options):
    return {name: [*options] for name in names.split()}


CASES = {
    **of("sort", *SORTS, *AXES),
    **of("argsort", *SORTS, *AXES, {"axis": True}, {"axis": ()}),
    **of("sum prod nansum nanprod", *SUMS, *STARTS, *TYPES),
    **of("max min nanmax nanmin", *SUMS, *STARTS, {"initial": None}, {"initial": np.nan, "axis": 0}),
    **of("any all", *SUMS),
    **of("mean nanmean", *MEANS, *TYPES),
    **of("var std nanvar nanstd", *MEANS, *DIVISORS),
    **of("argmax argmin nanargmax nanargmin", *AXES),
    **of("count_nonzero ptp", *AXES, *LISTED),
    **of("average", *AXES, *LISTED, *WEIGHTS),
    **of("cumsum cumprod nancumsum nancumprod", *SCANS),
    **of("cumulative_sum cumulative_prod", *AXES, {"axis": True}, {"axis": [0]}, {"axis": ()}),
    **of("diff", *AXES, *({"n": n} for n in (0, 1, 5, -1, 1.0, "a", None)), {"prepend": [1, 2]}, {"append": "a"}),
    **of("median", *AXES, *LISTED[:6], *KEEPING[:2]),
    **of("cov", *({"ddof": ddof} for ddof in (0, 1.0, 1.5, "a")), {"aweights": [1j, 2, 3]}, {"dtype": "i4"}),
    **of("corrcoef", {"dtype": "i4"}, {"dtype": "c8"}, {"rowvar": False}),
    **of("searchsorted", *({"v": 1, "side": side} for side in ("left", "right", "x", None))),
    **of("quantile", *({"q": 0.5, "method": method} for method in ("nearest", "bogus", None, 3))),
}
ARGUMENTS = {
    "take": ("indices", [True, [True, False, True], MASK, None, 1, -1, [], 99, slice(2), [[0, 1]], np.uint8(2)]),
    "searchsorted": ("v", [1, [2.5, 0], [[1], [2]], "a", 1j]),
    "quantile": ("q", [0.5, [0, 1], -0.1, 1.1, np.nan, "a", 1j, []]),
    "percentile": ("q", [50, [0, 100], -1, 101, "a"]),
}
for name, (word, values) in ARGUMENTS.items():
    CASES[name] = [*CASES.get(name, []), *({word: value} for value in values)]

ARRAYS = {"searchsorted": [np.sort(LINE)], "cov": [FIELD], "corrcoef": [FIELD], "sort": [FIELD, LINE, EMPTY]}


def answer(name, options, x):
    """The value of a call, or its error."""
    try:
        with np.errstate(all="ignore"):
            return getattr(np, name)(x, **options)
    except (TypeError, ValueError, IndexError, ZeroDivisionError) as error:
        return error


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CASES)
def test_options_are_numpys(name):
    """Law: a call is answered as by NumPy, or refused where NumPy refuses it, with one error on any number of ranks."""
    arrays = ARRAYS.get(name, [FIELD, LINE])
    errors = {}

    def program(comm):
        for number, array in enumerate(arrays):
            x = DistTensor.from_global(array, "block[(0)]" if array.ndim == 1 else "block[(0),()]", comm)
            for case, options in enumerate(CASES[name]):
                want, found = answer(name, options, array), answer(name, options, x)
                text = f"{name}(**{options}) of shape {array.shape}: {found!r}, not {want!r}"
                assert isinstance(found, Exception) == isinstance(want, Exception), text
                if isinstance(found, Exception):
                    line = str(found).partition("\n")[0]
                    assert errors.setdefault((number, case), (type(found), line)) == (type(found), line), text
                else:
                    np.testing.assert_allclose(found.to_global(), want, 1e-6, err_msg=text)
                    assert found.dtype == np.asarray(want).dtype, text

    with rote.config(implicit="allow"):
        for ranks in (1, 2):
            rote.run(program, ranks)


NAMED = {
    "sum": {"a": FIELD, "axis": 0},
    "std": {"a": FIELD, "ddof": 1},
    "sort": {"a": LINE},
    "argmax": {"a": FIELD, "axis": 1},
    "average": {"a": FIELD, "weights": FIELD},
    "searchsorted": {"v": [2.5], "a": np.arange(4.0), "side": "right"},
    "take": {"a": LINE, "indices": [1, 0]},
    "take_along_axis": {"arr": LINE, "indices": np.array([1, 0]), "axis": 0},
    "diff": {"a": LINE, "n": 2},
    "roll": {"a": LINE, "shift": 1},
    "moveaxis": {"a": FIELD, "source": 0, "destination": 1},
    "tensordot": {"a": FIELD, "b": FIELD, "axes": 2},
    "broadcast_to": {"array": LINE, "shape": (2, 6)},
    "full_like": {"a": LINE, "fill_value": 7},
    "stack": {"arrays": [LINE, LINE], "axis": 1},
}


@pytest.mark.parametrize("name", NAMED)
def test_operands_have_numpys_names(name):
    """Law: operands are also given by NumPy's names, which are not those of the array API standard."""
    options = NAMED[name]
    want = getattr(np, name)(**options)

    def distributed(value, comm):
        if isinstance(value, np.ndarray):
            return DistTensor.from_global(value, "[" + ",".join(["(0)", "()"][: value.ndim]) + "]", comm)
        return [distributed(one, comm) for one in value] if name == "stack" and isinstance(value, list) else value

    def program(comm):
        found = getattr(np, name)(**{word: distributed(value, comm) for word, value in options.items()})
        np.testing.assert_allclose(found.to_global(), want, 1e-14)

    with rote.config(implicit="allow"):
        rote.run(program, 2)


def test_numbers_are_indexed_by_bools_as_by_integers():
    """Law: `take` takes bools for 0 and 1, as in NumPy, also where they would be a mask."""
    mask = LINE > 1

    def program(comm):
        x = DistTensor.from_global(LINE, "block[(0)]", comm)
        for indices in (mask, mask.tolist(), x > 1, mask[:3]):
            taken = np.take(x, indices).to_global()
            np.testing.assert_array_equal(taken, np.take(LINE, mask[: len(taken)]))
        np.testing.assert_array_equal(x.take(mask).to_global(), LINE.take(mask))

    with rote.config(implicit="allow"):
        rote.run(program, 2)


def test_numbers_without_modes_are_scanned_and_sorted_as_lines():
    """Law: scans of one number, and the indices that sort it, are lines of one element, as in NumPy."""
    x = DistTensor.from_global(ONE, "[]")
    for name in ("cumsum", "cumprod", "nancumsum", "nancumprod", "cumulative_sum", "cumulative_prod", "argsort"):
        for axis in (None, 0, -1):
            found, want = (getattr(np, name)(value, axis=axis) for value in (x, ONE))
            np.testing.assert_array_equal(found.to_global(), want, strict=True)
    np.testing.assert_array_equal(np.cumulative_sum(x, include_initial=True).to_global(), [0.0, 2.0])
    with pytest.raises(np.exceptions.AxisError):
        np.cumsum(x, axis=1)


def test_sorts_in_place_have_numpys_options():
    """Law: `x.sort` takes NumPy's options, and is refused before anything is written."""

    def program(comm):
        x = DistTensor.from_global(LINE, "block[(0)]", comm)
        for wrong in (
            {"kind": "bogus"},
            {"order": "a"},
            {"kind": "stable", "stable": True},
            {"axis": None},
            {"axis": 1},
        ):
            with pytest.raises((TypeError, ValueError)) as numpys:
                LINE.copy().sort(**wrong)
            with pytest.raises(numpys.type):
                x.sort(**wrong)
            assert (x == LINE).all()
        x.sort(stable=True)
        np.testing.assert_array_equal(x.to_global(), np.sort(LINE))

    rote.run(program, 2)


def test_largest_numbers_begin_with_one_that_is_no_nan():
    """Law: of `initial=nan`, nanmax and nanmin leave out the NaN; what then has no number is NaN, with a warning."""
    for initial in (np.nan, 0.3, None):
        for name in ("nanmax", "nanmin"):
            x = DistTensor.from_global(GAPS, "block[(0)]")
            want = getattr(np, name)(GAPS, initial=initial) if initial is not None else getattr(np, name)(GAPS)
            assert float(getattr(np, name)(x, initial=initial)) == want
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        assert np.isnan(float(np.nanmax(x * np.nan, initial=np.nan)))
