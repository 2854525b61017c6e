"""Dtypes, `out=` and axes of reductions are NumPy's: those that are computed in, and those that are refused."""

from __future__ import annotations

from inspect import signature

import numpy as np
import pytest
from marks import PARTS
from parts import share

import rote
import rote.array_api
from rote import DistTensor
from rote.errors import LayoutError
from rote.functions import load
from rote.functions.rules import ANSWERS

load()
REALS = np.array([[0.5, 2, -3], [4, 1.5, 7], [1, -1, 2.25], [0, 3, 8]])
ARRAYS = {
    "f8": REALS,
    "f4": REALS.astype("f4") / 3,
    "c16": REALS + 1j * REALS[::-1],
    "i2": (100 * REALS).astype("i2"),
    "u1": np.abs(REALS).astype("u1"),
    "?": REALS > 1,
}
LAYOUTS = pytest.mark.parametrize("layout", ["[(),()]", "block[(0),()]", "cyclic[(),(0)]"])


def outcome(call, *operands):
    """A value, or the kind of error that is raised, or will be in later NumPys."""
    try:
        result = call(*operands)
        return result if hasattr(result, "dtype") else np.asarray(result)  # a plain int before NumPy 2.3
    except DeprecationWarning:
        return TypeError
    except (TypeError, ValueError) as error:
        return next(kind for kind in (TypeError, ValueError) if isinstance(error, kind))


def check(call, layout, *arrays):
    """A call gives or raises what NumPy does, on all ranks; the first operand lies in the layout, others whole."""
    with np.errstate(all="ignore"):
        expected = outcome(call, *[array.copy() for array in arrays])

    def program(comm):
        layouts = [layout, *(f"[{','.join(['()'] * array.ndim)}]" for array in arrays[1:])]
        xs = [DistTensor.from_global(x.copy(), lay, comm) for x, lay in zip(arrays, layouts, strict=True)]
        with rote.config(implicit="allow"), np.errstate(all="ignore"):
            result = outcome(call, *xs)
            return result if isinstance(result, type) else (result.dtype, result.to_global())

    for result in rote.run(program, 3):
        if isinstance(expected, type) or isinstance(result, type):
            assert result is expected
        else:
            assert result[0] == expected.dtype
            assert result[1].shape == np.shape(expected)
            single = {expected.dtype.char, *(array.dtype.char for array in arrays)} & {"f", "F"}
            assert np.allclose(result[1], expected, rtol=2e-6 if single else 1e-13)


@LAYOUTS
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd", "nanmean", "mean"])
@pytest.mark.parametrize("dtype", ["i1", "i8", "?", "f4", "c8", "c16", None])
@pytest.mark.filterwarnings("ignore:Casting complex")
def test_means_and_variances_in_other_dtypes(name, dtype, part, layout):
    """Law: means are rounded to `dtype`, deviations are those of NumPy, and integers have no root but of one number."""
    for element, array in share(ARRAYS.items(), part, 1, len(name)):
        if dtype in ("i1", "?") and name.endswith(("var", "std")) and element in ("f8", "f4", "c16", "i2"):
            continue  # sums beyond the dtype wrap by the order in which they are added
        for axis in (None, 0):
            check(lambda x, axis=axis: getattr(np, name)(x, axis=axis, dtype=dtype), layout, array)


@LAYOUTS
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    "name", ["sum", "prod", "max", "any", "mean", "var", "std", "argmax", "nanmean", "nanvar", "ptp"]
)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "c16", "?"])
@pytest.mark.filterwarnings("ignore:Casting complex")
def test_results_that_are_written(name, dtype, part, layout):
    """Law: they are computed in the dtype of the elements and `out`, and cast into it, or refused, as by NumPy."""

    def call(x, out):
        getattr(np, name)(x, axis=0, out=out)
        return out

    for element, array in share(ARRAYS.items(), part, 1, len(name)):
        if element == "c16" and name in ("max", "argmax", "ptp"):
            continue  # which are not ordered
        if (element, dtype, name) == ("?", "?", "ptp"):
            continue  # truth values are not subtracted
        check(call, layout, array, np.zeros(3, dtype))


@LAYOUTS
@pytest.mark.parametrize("name", ["sum", "mean", "var"])
@pytest.mark.parametrize("options", [{}, {"exact": True}, {"where": True}, {"correction": 1}])
def test_results_that_are_left_as_contributions(name, options, layout):
    """Law: they combine to the result, though each rank has all that its own contribution takes."""
    if (name == "var") != ("correction" in options) and options:
        return

    def program(comm):
        x = DistTensor.from_global(ARRAYS["f8"], layout, comm)
        for axis, target in ((0, "[()]+(0)"), (None, "[]+(0)"), (0, "[()]+max(0)"), (None, "[]+prod(0)")):
            found = getattr(x, name)(axis=axis, layout=target, **options)
            assert str(found.layout) == target
            wanted = getattr(np, name)(ARRAYS["f8"], axis, **{k: v for k, v in options.items() if k != "exact"})
            np.testing.assert_allclose(found.to_global(), wanted, rtol=1e-14)
        return True

    assert rote.run(program, 3) == [True] * 3


@LAYOUTS
@pytest.mark.parametrize("target", ["[()]", "cyclic[(0)]", "[()]+(0)"])
def test_results_lie_where_they_are_asked_for(target, layout):
    """Law: with a mask that lies elsewhere, and with what they begin with, too."""

    def program(comm):
        x = DistTensor.from_global(ARRAYS["f8"], layout, comm)
        mask = DistTensor.from_global(ARRAYS["?"], "block[(),(0)]", comm)
        with rote.config(implicit="allow"):
            sums, means = x.sum(axis=0, initial=3.0, layout=target), x.mean(axis=0, where=mask, layout=target)
        assert str(sums.layout) == str(means.layout) == str(rote.parse(target))
        np.testing.assert_allclose(sums.to_global(), ARRAYS["f8"].sum(0, initial=3.0))
        np.testing.assert_allclose(means.to_global(), ARRAYS["f8"].mean(0, where=ARRAYS["?"]))
        return True

    assert rote.run(program, 3) == [True] * 3


@LAYOUTS
@pytest.mark.parametrize("name", ["std", "nanstd", "var", "nanvar"])
@pytest.mark.parametrize("dtype", ["u8", "i8", "f4", "?"])
def test_deviations_of_integers_that_are_written(name, dtype, layout):
    """Law: a root is not cast to integers without a word."""

    def call(x, out):
        getattr(np, name)(x, out=out)
        return out

    check(call, layout, ARRAYS["i2"], np.zeros((), dtype))


@LAYOUTS
def test_scans_that_are_written(layout):
    """Law: as reductions are."""
    for dtype in ("i4", "f4", "c16"):
        check(lambda x, out: np.cumsum(x, axis=0, out=out), layout, ARRAYS["f8"], np.zeros((4, 3), dtype))


@pytest.mark.parametrize("layout", ["block[(0),()]", "cyclic[(),(0)]", "[(),()]|(0)", "a (r s=3): [(),(),()]|(0@1)"])
@pytest.mark.parametrize("name", ["mean", "var", "std", "nanmean", "nanvar", "nanstd"])
def test_means_of_what_a_mask_leaves(name, layout):
    """Law: deviations are of the elements under `where=`, from `mean=` or from their mean, and no operand moves."""
    array, mask = np.where(REALS > 5, np.nan, REALS), REALS < 3
    array = array if name.startswith("nan") else REALS
    for axis in (None, (0, 1)) if "s=3" in layout else (None, 0, 1):
        centre = np.nanmean(array, axis=axis, keepdims=True)
        for options in ({"where": mask}, {"where": True}, {"mean": centre}, {"mean": centre, "where": mask}):
            if "mean" in options and (name.endswith("mean") or "s=3" in layout):
                continue

            def program(comm, axis=axis, options=options):
                x = DistTensor.from_global(array, layout, comm)
                with rote.config(implicit="error"):
                    return getattr(np, name)(x, axis=axis, **options).to_global()

            wanted = getattr(np, name)(array, axis=axis, **options)
            for found in rote.run(program, 3):
                np.testing.assert_allclose(found, wanted, rtol=1e-13)


@LAYOUTS
@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
@pytest.mark.parametrize("options", [{"correction": 1}, {"correction": 0.5}, {"ddof": 1, "correction": 1}])
def test_the_two_names_of_degrees_of_freedom(name, options, layout):
    """Law: one of them is given, or the other."""
    for element in ("f8", "c16", "i2"):
        check(lambda x: getattr(np, name)(x, axis=0, **options), layout, ARRAYS[element])


@pytest.mark.parametrize("dtype", ["f4", "c16"])
def test_replicas_in_any_order_of_memory_have_one_sum(dtype):
    """Law: elements are added in the same order, whatever lies beside what in a rank's memory."""
    array = np.random.default_rng(5).standard_normal((37, 53)).astype(dtype)
    calls = [np.sum, np.mean, np.var, np.nansum, lambda x: np.sum(x, axis=0), lambda x: np.std(x, axis=1)]

    def program(comm):
        blocks = [array, np.asfortranarray(array), array.T.copy().T, np.repeat(array, 2, 1)[:, ::2]]
        x = DistTensor.from_local(blocks[comm.rank], "[(),()]", array.shape, comm)
        return [call(x).local.tobytes() for call in calls]

    first, *others = rote.run(program, 4)
    assert others == [first] * 3


def test_sums_in_the_dtype_of_out():
    """Law: what integers overflow, floating-point numbers hold; what single precision loses, double precision keeps."""
    check(lambda x, out: np.sum(x, out=out), "block[(0)]", np.full(4, 2**62), np.zeros(()))
    thirds = np.full(100, 1 / 3, "f4")
    check(lambda x, out: np.sum(x, out=out), "block[(0)]", thirds, np.zeros(()))
    check(lambda x, out: np.var(x, out=out), "block[(0)]", np.cumsum(thirds), np.zeros(()))


@LAYOUTS
@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.maximum.reduce(x, dtype="f4"),
        lambda x: np.minimum.reduce(x, axis=1, dtype="i8", initial=1),
        lambda x: np.maximum.reduce(x, axis=None, dtype="c8") if x.dtype.kind == "?" else x,
        lambda x: np.logical_or.reduce(x, initial=2),
        lambda x: np.logical_and.reduce(x, axis=1, initial=0),
        lambda x: np.logical_or.reduce(x, axis=None, initial=None, dtype=bool),
        lambda x: np.logical_or.reduce(x, dtype="f8"),
    ],
)
def test_reductions_by_ufuncs(call, layout):
    """Law: `dtype=` and `initial=` are taken by all of them."""
    for element in ("f8", "i2", "u1", "?"):
        check(call, layout, ARRAYS[element])


NAMES = (
    *("sum", "prod", "max", "min", "any", "all", "mean", "var", "std", "argmax", "argmin", "ptp", "count_nonzero"),
    *("nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd"),
    *("nanargmax", "nanargmin", "median", "nanmedian"),
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("axis", [0, -1, 1, (0,), (), None])
def test_axes_of_order_0(name, axis):
    """Law: NumPy's ufuncs take 0 and -1, its means do not."""
    if "arg" not in name or not isinstance(axis, tuple):
        check(lambda x: getattr(np, name)(x, axis=axis), "[]", np.array(3.0))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("axis", [True, (False,), np.True_])
def test_truth_values_are_no_axes(name, axis):
    """Law: they are refused, as NumPy's reductions refuse them."""
    if "arg" not in name or not isinstance(axis, tuple):
        check(lambda x: getattr(np, name)(x, axis=axis), "block[(0),()]", REALS)


@pytest.mark.parametrize("target", ["[()]", "block[(0)]", "[()]+(0)"])
@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("nan") and "median" not in name])
def test_layouts_of_what_leaves_nans_out(name, target):
    """Law: results lie in the layout that `layout=` names, with the values of NumPy."""
    array = np.where(REALS > 5, np.nan, REALS)

    def program(comm):
        x, call = DistTensor.from_global(array, "block[(0),()]", comm), getattr(rote.array_api, name)
        if name == "nanstd" and "+" in target:
            with pytest.raises(LayoutError, match="no sum of contributions"):
                call(x, axis=0, layout=target)
            return
        with rote.config(implicit="error"):
            result = call(x, axis=0, layout=target)
        assert str(result.layout) == str(rote.parse(target))
        assert np.allclose(result.redistribute("[()]").local, getattr(np, name)(array, axis=0), rtol=1e-14)

    rote.run(program, 3)


@pytest.mark.parametrize("name", [*NAMES, "sort", "argsort", "cumsum", "nancumsum", "cumulative_prod"])
def test_wrong_arguments_name_the_function(name):
    """Law: the error names the function that was called, and the signature has the arguments that it takes."""
    function = ANSWERS[getattr(np, name)]
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected keyword argument 'bogus'"):
        function(DistTensor.zeros(3, "block[(0)]"), bogus=1)
    assert next(iter(signature(function).parameters)) in ("x", "a")


def test_a_reduction_of_order_0_by_a_ufunc():
    """Law: `axis=0` is what it has if none is given."""
    check(np.add.reduce, "[]", np.array(3.0))


@pytest.mark.parametrize("dtype", ["f4", "c8", "f8"])
@pytest.mark.parametrize("name", ["std", "var", "nanstd", "nanvar"])
def test_equal_elements_do_not_deviate(name, dtype):
    """Law: of elements that are all equal, however many and large, the deviation is 0 on any number of ranks."""

    def program(comm):
        for n in (1, 7, 1001):
            x = DistTensor.from_global(np.full(n, 1e12, dtype), "block[(0)]", comm)
            assert float(getattr(np, name)(x)) == 0

    rote.run(program, 3)
