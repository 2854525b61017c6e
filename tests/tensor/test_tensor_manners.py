"""Tensors beside NumPy's arrays and numbers: what programs write without a thought is answered as by NumPy."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xarray as xr

import rote
import rote.array_api as xp
from rote import DistTensor

FIELD = np.arange(12.0).reshape(3, 4) - 5
LAYOUTS = ("block[(0),()]", "[(),(0:cyclic(2))]", "[(),()]")
Call = Callable[[Any], Any]


def after(change: Callable[[Any], object]) -> Any:
    """An array of NumPy after it was changed in place."""
    array = FIELD.copy()
    change(array)
    return array


# What programs do with a number that they have computed. Each gives what it gives for NumPy's.
NUMBERS: dict[str, Call] = {
    "asarray": lambda x: np.asarray(x.sum()),
    "asarray of a dtype": lambda x: np.asarray(x.sum(), "f4"),
    "array": lambda x: np.array([x.min(), x.max()]),
    "nested array": lambda x: np.array([[x.min(), 1], [2, x.max()]]),
    "float64": lambda x: np.float64(x.sum()),
    "complex128": lambda x: np.complex128(x.mean()),
    "linspace": lambda x: np.linspace(0, x.max(), 5),
    "geomspace": lambda x: np.geomspace(1, x.max(), 3),
    "arange": lambda x: np.arange(x.argmax()),
    "arange of three": lambda x: np.arange(x.min(), x.max(), 2),
    "full": lambda x: np.full(3, x.max()),
    "zeros": lambda x: np.zeros((x.argmax(), 2)),
    "reshape": lambda x: np.arange(22).reshape(x.argmax(), 2),
    "kron": lambda x: np.kron(x.mean(), [1, 2]),
    "tile": lambda x: np.tile([1, 2], x.argmax()),
    "repeat": lambda x: np.repeat([1, 2], x.argmax()),
    "roll": lambda x: np.roll([1, 2, 3], x.argmax()),
    "quantile": lambda x: np.quantile(FIELD, x.max() / 10),
    "histogram": lambda x: np.histogram(FIELD, 3, (x.min(), x.max())),
    "histogram of some": lambda x: np.histogram(FIELD, range=[x.min(), x.mean()], weights=FIELD**2),
    "histogram of integers": lambda x: np.histogram(FIELD.astype(int), 4, (x.mean(), 3), density=True),
    "histogram2d": lambda x: np.histogram2d(FIELD[0], FIELD[1], 2, [(x.min(), 1), (0, x.max())]),
    "bin edges": lambda x: np.histogram_bin_edges(FIELD, 5, (x.min(), 1)),
    "at": lambda x: after(lambda a: np.add.at(a, (0, 1), x.max())),
    "outer": lambda x: np.multiply.outer(FIELD, x.max()),
    "into an array": lambda x: after(lambda a: operator.imul(a, x.sum())),
    "out": lambda x: np.add(FIELD, x.sum(), out=np.zeros((3, 4))),
    "assignment": lambda x: after(lambda a: operator.setitem(a, slice(1, None), x.sum())),
    "an element": lambda x: after(lambda a: operator.setitem(a, (0, 0), x.sum())),
    "copyto": lambda x: after(lambda a: np.copyto(a, x.sum())),
    "an index": lambda x: FIELD[x[:, 0].argmax()],
    "an item of a list": lambda x: [5, 6, 7][x[:, 0].argmax()],
    "random": lambda x: np.random.default_rng(1).normal(x.mean(), 2, x.argmax()),
    "round": lambda x: [round(x.mean(), 1), round(x.mean())],
    "floor": lambda x: [math.floor(x.mean()), math.ceil(x.mean()), math.trunc(x.mean()), math.sqrt(x.max())],
    "format": lambda x: f"{x.mean():.3f}",
    "item": lambda x: [x.sum().item(), x.item(2, 1), x.item((0, 3)), x.item(5), x.item(-1), x[:1, :1].item()],
    "tolist": lambda x: [x.tolist(), x.sum().tolist()],
    "bytes": lambda x: [x.nbytes, x.itemsize, x.sum().nbytes],
    "assert_allclose": lambda x: np.testing.assert_allclose(x.sum(), 6),
}
LABELLED: dict[str, Call] = {
    "bool": lambda a: bool((a > 3).any()),
    "float": lambda a: float(a.mean()),
    "int": lambda a: int(a.sum()),
    "item": lambda a: a.max().item(),
    "values": lambda a: a.mean().values,
    "of a dataset": lambda a: float(xr.Dataset({"v": a}).mean()["v"]),
    "nbytes": lambda a: a.nbytes,
    "an index": lambda a: float(a.isel(t=int(a[:, 0].argmax("t")))[0]),
}


def same(got: Any, want: Any, name: str) -> None:
    """Two results are equal, types, dtypes and shapes too."""
    assert type(got) is type(want), (name, got, want)
    if isinstance(want, np.ndarray):
        assert (got.dtype, got.shape) == (want.dtype, want.shape), name
    np.testing.assert_equal(got, want, name)


@pytest.mark.parametrize("ranks", (1, 2, 4))
def test_tensors_of_order_0_are_numbers(ranks: int) -> None:
    """Law: where a program takes a number, a tensor of order 0 is one: the same on all ranks, in any layout."""
    wanted = {name: call(FIELD) for name, call in NUMBERS.items()}
    labelled = xr.DataArray(FIELD, dims=("t", "y"))

    def program(comm: Any) -> None:
        for layout in LAYOUTS:
            x = DistTensor.from_global(FIELD, layout, comm)
            for name, call in NUMBERS.items():
                same(call(x), wanted[name], name)
            for name, call in LABELLED.items():
                same(call(x.to_xarray(("t", "y"))), call(labelled), name)

        total = DistTensor.from_local(np.float64(comm.rank + 1), "[]+(0)", (), comm=comm)  # no rank has the sum alone
        same(np.array([total, 2.0]), np.array([sum(range(1, ranks + 1)), 2.0]), "partial")

    rote.run(program, ranks)


@pytest.mark.parametrize("ranks", (1, 3))
def test_new_tensors_take_them_as_numbers(ranks: int) -> None:
    """Law: so do shapes and parameters of the functions that make tensors."""

    def program(comm: Any) -> None:
        x = DistTensor.from_global(FIELD, "block[(0),()]", comm)
        n, top = x.argmax(), x.max()
        assert xp.zeros(n, comm=comm).shape == DistTensor.zeros(n, "block[(0)]", comm).shape == (11,)
        assert xp.zeros((n, 2), comm=comm).shape == (11, 2)
        for got, want in (
            (xp.full(3, top, comm=comm), np.full(3, 6.0)),
            (xp.arange(n, comm=comm), np.arange(11)),
            (xp.linspace(0, top, 5, comm=comm), np.linspace(0, 6.0, 5)),
            (xp.full_like(x, top), np.full((3, 4), 6.0)),
        ):
            same(got.to_global(), want, "new")

        rng = [rote.random.default_rng(1, comm) for _ in range(2)]
        drawn = [rng[0].normal(top, 2, (4, 3)), rng[1].normal(6.0, 2, (4, 3))]
        same(drawn[0].to_global(), drawn[1].to_global(), "random")
        x.fill(top)
        same(x.to_global(), np.full((3, 4), 6.0), "fill")

    rote.run(program, ranks)


def test_several_elements_are_no_number() -> None:
    """What needs one number, or all elements in one process, is refused with a cure on all ranks."""

    def program(comm: Any) -> None:
        x = DistTensor.from_global(FIELD, "block[(0),()]", comm)
        for call, error, text in (
            (lambda: np.asarray(x), rote.LayoutError, r"not gathered silently; write x\.to_global"),
            (lambda: np.array([x[0], x[1]]), rote.LayoutError, "not gathered silently"),
            (lambda: np.linspace(0, x, 3), TypeError, r"numpy\.linspace"),
            (lambda: np.multiply(FIELD, x, out=FIELD.copy()), rote.LayoutError, "writes into no array"),
            (lambda: round(x, 2), TypeError, r"x\.round\(digits\)"),
            (lambda: x.item(), ValueError, r"write x\.item\(i, j\)"),
            (lambda: x.item(12), IndexError, "out of range"),
            (lambda: x.item(0, 4), IndexError, "out of bounds"),
            (lambda: x.fill([1, 2]), rote.LayoutError, "fill takes one value"),
            (lambda: np.save("number.npy", x.sum()), TypeError, r"write x\.save"),
            (lambda: np.array(x.sum(), copy=False), ValueError, "always a copy"),
        ):
            with pytest.raises(error, match=text):
                call()

    rote.run(program, 2)


MASK = FIELD % 3 == 0
LINE = np.array([3.0, 1.0, 2.0, 1.0, 5.0, 4.0, 2.0])
KERNEL = np.array([2.0, 0.0, -1.0])
OTHERS = np.array([[4, 0], [1, 7]])

# Functions of NumPy, of x, a matrix; y, a mask of its shape; and z, a vector; each a tensor, or all arrays.
ANSWERED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "linalg.matmul": lambda x, y, z: np.linalg.matmul(x, FIELD.T),
    "meshgrid": lambda x, y, z: np.meshgrid(z, [1, 2], indexing="ij"),
    "sparse meshgrid": lambda x, y, z: np.meshgrid([1, 2], z, 3, sparse=True),
    "convolve": lambda x, y, z: [np.convolve(z, KERNEL, mode) for mode in ("full", "same", "valid")],
    "convolve even": lambda x, y, z: [np.convolve(KERNEL[:2], z, mode) for mode in ("full", "same", "valid")],
    "convolve two": lambda x, y, z: np.convolve(z, z, "same"),
    "convolve integers": lambda x, y, z: np.convolve(z.astype(int), [1, 2**40]),
    "convolve one": lambda x, y, z: np.convolve(z, [3.0]),
    "convolve infinity": lambda x, y, z: np.convolve(z, [np.inf, 1.0]),
    "correlate": lambda x, y, z: [np.correlate(z, KERNEL, mode) for mode in ("full", "same", "valid")],
    "correlate short": lambda x, y, z: [np.correlate(KERNEL[:2], z, mode) for mode in ("full", "same", "valid")],
    "correlate complex": lambda x, y, z: [np.correlate(z, KERNEL + 1j), np.correlate(1j * KERNEL, z, "same")],
    "bools": lambda x, y, z: [np.correlate(z > 1, [True, False, True]), np.vdot(y, y), np.vecdot(y, MASK), y.conj()],
    "f4 and a number": lambda x, y, z: [
        np.trapezoid(x.astype("f4"), dx=z.max()),
        np.quantile(x.astype("f4"), z.max() / 10),
        np.histogram_bin_edges(x.astype("f4"), 3, (z.min(), z.max())),
    ],
    "slices to numbers": lambda x, y, z: [x[: z.argmax() - 2], x[z[:2].argmin() :, : z.argmax() - 1]],
    "at of a number": lambda x, y, z: changed(z.astype("f4"), np.multiply.at, 0, 1 + z.max() * 1.18e-8),
    "extract": lambda x, y, z: [np.extract(y, x), np.extract(MASK, x), np.extract(y, FIELD), np.extract(z > 2, x)],
    "compress": lambda x, y, z: [np.compress([True, False, True], x, 0), np.compress(z > 2, x)],
    "compress along": lambda x, y, z: np.compress(z[:4] > 1, x, axis=-1),
    "atleast": lambda x, y, z: [np.atleast_1d(x), np.atleast_2d(z), np.atleast_3d(z), np.atleast_3d(x)],
    "atleast of a number": lambda x, y, z: [np.atleast_1d(x.sum()), np.atleast_2d(x.sum()), np.atleast_3d(x.sum())],
    "atleast of several": lambda x, y, z: np.atleast_2d(z, [1, 2], 3.0),
    "bin edges": lambda x, y, z: [np.histogram_bin_edges(x, 5), np.histogram_bin_edges(x, "sturges", (-2, 3))],
    "union1d": lambda x, y, z: [np.union1d(x, z), np.union1d([1, 9], z)],
    "intersect1d": lambda x, y, z: [np.intersect1d(x, z), np.intersect1d(OTHERS, z), np.intersect1d(z, x)],
    "intersect1d indices": lambda x, y, z: np.intersect1d(z, x, return_indices=True),
    "setdiff1d": lambda x, y, z: [np.setdiff1d(x, z), np.setdiff1d(OTHERS, z), np.setdiff1d(z, [1, 5], True)],
    "setxor1d": lambda x, y, z: [np.setxor1d(x, z), np.setxor1d(z, OTHERS), np.setxor1d(x / x, z)],
    "block": lambda x, y, z: np.block([[x, FIELD], [np.zeros((1, 3)), z[:4], 7.0]]),
    "block of one": lambda x, y, z: [np.block(x), np.block([z, z[:2], 1]), np.block([[[x]], [[x]]])],
    "where": lambda x, y, z: np.where(y),
    "cross": lambda x, y, z: np.cross(x[:, :3], z[:3]),
    "interp": lambda x, y, z: [np.interp(x, [0, 2, 5], [1, 8, 9]), np.interp(z, KERNEL[::-1], KERNEL, -1, 7)],
    "interp of a table": lambda x, y, z: [np.interp([0.5, 3], np.sort(z), z), np.interp(x, [1, 5], [2, 4], period=6)],
    "polyval": lambda x, y, z: [np.polyval([1, 0, 2], x), np.polyval(z, x), np.polyval(z, [1, 2])],
    "trapezoid": lambda x, y, z: [np.trapezoid(x), np.trapezoid(x, dx=2, axis=0), np.trapezoid(x, z[:4])],
    "trapezoid of places": lambda x, y, z: [np.trapezoid(x, x * x, axis=0), np.trapezoid(z, np.arange(7) ** 2)],
    "select": lambda x, y, z: [np.select([y, x > 2], [x, 10 * x], -1), np.select([MASK, y], [1, 2])],
    "select f4": lambda x, y, z: np.select([y, x > 2], [x.astype("f4"), 1]),
    "fill_diagonal": lambda x, y, z: [changed(x, np.fill_diagonal, 9), changed(x.T, np.fill_diagonal, [1, 2], True)],
    "putmask": lambda x, y, z: [changed(x, np.putmask, y, x * 2), changed(x, np.putmask, MASK, [1, 2, 3, 4, 5])],
    "putmask one": lambda x, y, z: [changed(x, np.putmask, y, 7.5)],
    "place": lambda x, y, z: [
        changed(x, np.place, y, [1, 2, 3]),
        changed(x, np.place, MASK, z),
        changed(x, np.place, x > 99, [1]),
    ],
    "put_along_axis": lambda x, y, z: changed(x, np.put_along_axis, np.argmax(x, 1)[:, None], -1, 1),
    "put_along_axis of places": lambda x, y, z: changed(x, np.put_along_axis, np.array([[2, 1, 0, 0]]), z[None, :4], 0),
    "put_along_axis of all": lambda x, y, z: changed(x, np.put_along_axis, np.array([7, 0]), [1, 2], None),
    "outer": lambda x, y, z: [np.add.outer(x, z), np.subtract.outer([1, 2], z), np.maximum.outer(z, 3.0)],
    "add.at": lambda x, y, z: [
        changed(z, np.add.at, [0, 0, -1], [1, 2, 3]),
        changed(x, np.add.at, ([0, 0, 2], [1, 1, 3]), 5),
    ],
    "at rows": lambda x, y, z: [changed(x, np.multiply.at, [1, 1], 2), changed(x, np.add.at, [2, 0], z[:4])],
    "negative.at": lambda x, y, z: [changed(x, np.negative.at, ([0, 2, 2], 1)), changed(x, np.maximum.at, 1, x[0])],
}


def changed(x: Any, change: Callable[..., Any], *args: Any) -> Any:
    """A copy of a tensor or of an array, after it was changed in place."""
    copy = x.copy()
    change(copy, *args)
    return copy


def whole(result: Any) -> Any:
    """A result as arrays of NumPy, lists of them as they are. Collective."""
    if isinstance(result, list | tuple):
        return [whole(part) for part in result]
    return result.to_global() if isinstance(result, DistTensor) else np.asarray(result)


def compare(got: Any, want: Any, name: object) -> None:
    """Results are equal, dtypes, shapes and numbers of parts too."""
    if isinstance(want, list | tuple):
        assert type(got) is type(want) and len(got) == len(want), name
        for pair in zip(got, want, strict=True):
            compare(*pair, name)
        return
    got, want = whole(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape), (name, got, want)
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13, err_msg=str(name))


if hasattr(np, "matvec"):  # since NumPy 2.2
    ANSWERED |= {
        "matvec": lambda x, y, z: np.matvec(x, z[:4]),
        "matvec of a stack": lambda x, y, z: np.matvec(np.stack([x, 2 * x]), x[:2]),
        "vecmat": lambda x, y, z: np.vecmat(z[:3] + 1j, x),
        "vecmat of a list": lambda x, y, z: np.vecmat([1, 2, 3], x),
    }


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("ranks", (1, 2, 3, 4))
def test_functions_under_other_names(ranks: int) -> None:
    """Law: each gives what it gives for the whole arrays, in any layout, also where ranks have no element."""
    wanted = {name: call(FIELD, MASK, LINE) for name, call in ANSWERED.items()}

    def program(comm: Any) -> None:
        with rote.config(implicit="allow"):
            for layout, along in (("block[(0),()]", "block[(0)]"), ("[(),(0:cyclic(2))]", "[(0:cyclic)]")):
                x, y = (DistTensor.from_global(array, layout, comm) for array in (FIELD, MASK))
                z = DistTensor.from_global(LINE, along, comm)
                for name, call in ANSWERED.items():
                    compare(call(x, y, z), wanted[name], (name, layout, ranks))
            assert [part.tolist() for part in whole(xp.where(y))] == [part.tolist() for part in np.where(MASK)]
            assert xp.cross(x[:, :3], x[:, 1:]).shape == (3, 3)

    rote.run(program, ranks)


@pytest.mark.parametrize("ranks", (1, 3))
def test_arrays_like_a_tensor(ranks: int) -> None:
    """Law: with `like=x`, NumPy's functions make tensors over the ranks of x, in its layout if they have its shape."""
    calls: dict[str, Callable[..., Any]] = {
        "zeros": lambda **like: np.zeros((3, 4), **like),
        "ones": lambda **like: np.ones((2, 5), "f4", **like),
        "full": lambda **like: np.full((3, 4), 7, **like),
        "arange": lambda **like: np.arange(5, **like),
        "arange of three": lambda **like: np.arange(1, 9, 2, "f4", **like),
        "eye": lambda **like: np.eye(3, 4, 1, **like),
        "identity": lambda **like: np.identity(3, **like),
        "asarray": lambda **like: np.asarray(FIELD, **like),
        "array": lambda **like: np.array([1, 2], "f8", **like),
    }

    def program(comm: Any) -> None:
        x = DistTensor.from_global(FIELD, "block[(),(0)]", comm)
        for name, call in calls.items():
            got, want = call(like=x), call()
            compare(got, want, name)
            assert isinstance(got, DistTensor) and got.comm is comm, name
            assert got.distribution == x.distribution or want.shape != (3, 4), name
        assert np.empty((3, 4), like=x).distribution == x.distribution

    rote.run(program, ranks)


def test_what_they_refuse() -> None:
    """Bad arguments are refused alike on all ranks, before anything is sent."""

    def program(comm: Any) -> None:
        x, z = DistTensor.from_global(FIELD, "block[(0),()]", comm), DistTensor.from_global(LINE, "block[(0)]", comm)
        for call, error, text in (
            (lambda: np.convolve(x, x), ValueError, r"write rote\.fft\.convolve"),
            (lambda: np.convolve(z, []), ValueError, "not empty"),
            (lambda: np.correlate(z, z, "some"), ValueError, "mode is 'full'"),
            (lambda: np.compress([[True]], x), ValueError, "of order 1"),
            (lambda: np.compress([False, False, False, True], x, 0), IndexError, "out of bounds"),
            (lambda: np.block([[x], x]), ValueError, "of one depth"),
            (lambda: np.block([x, z]), ValueError, "equal in all other modes"),
            (lambda: np.block([[x, []], []]), ValueError, "none of them empty"),
            (lambda: np.where(z > 1, z), (TypeError, ValueError), "condition|both"),
            (lambda: np.histogram_bin_edges(z, "stone"), ValueError, "bins are by one of"),
            (lambda: np.meshgrid(z, z, indexing="yx"), rote.LayoutError, "neither"),
            (lambda: np.interp(z, [1, 2], [1]), ValueError, "length"),
            (lambda: np.select([z > 1], []), ValueError, "as many choices"),
            (lambda: np.select([z], [z]), TypeError, "condition is a tensor or an array of bool"),
            (lambda: np.fill_diagonal(z, 1), ValueError, "of order 2"),
            (lambda: np.putmask(x, [True], 1), ValueError, "has the shape of the tensor"),
            (lambda: np.putmask(x.astype(int), x > 1, x), TypeError, "Cannot cast"),
            (lambda: np.place(x, x > 1, []), ValueError, "no values to write"),
            (lambda: np.place(x.astype(int), x > 1, x[0]), TypeError, "Cannot cast"),
            (lambda: np.putmask(x.astype("f4"), x > 1, x), TypeError, "Cannot cast"),
            (lambda: np.tri(3, like=x), TypeError, r"from_global\(numpy\.tri\(…\), layout\)"),
            (lambda: np.put_along_axis(x, [0], 1, 0), ValueError, "order of the tensor"),
            (lambda: np.add.at(x, [3], 1), IndexError, "out of bounds"),
            (lambda: np.add.at(x, slice(2), 1), IndexError, "integers or arrays"),
            (lambda: np.add.at(FIELD.copy(), [0], x), TypeError, "writes tensors into no array"),
        ):
            with pytest.raises(error, match=text):
                call()

    rote.run(program, 2)


@pytest.mark.parametrize("write", (np.putmask, np.place))
def test_masks_write_only_where_they_hold(write: Callable[..., Any]) -> None:
    """Law: no element is written beside the mask; contributions, of which that cannot be said, are refused unchanged.

    As in NumPy, numbers and lists take the dtype of the tensor, whatever they are.
    """
    want = changed(FIELD.astype(int), write, MASK, [2.5, 7.5])

    def program(comm: Any) -> None:
        for layout in ("block[(0),()]", "[(),(0:cyclic)]", "[(),()]", "b a: block[(0),()]"):
            x = DistTensor.from_global(FIELD.astype(int), layout, comm)
            write(x, MASK, [2.5, 7.5])
            assert np.array_equal(x.to_global(), want), layout

        x = DistTensor.from_global(FIELD, "[(),()]+(0)", comm)
        with rote.config(implicit="allow"), pytest.raises(rote.LayoutError, match="of some elements"):
            write(x, MASK, [2.5, 7.5])
        assert np.array_equal(x.to_global(), FIELD)

    rote.run(program, 2)


@pytest.mark.parametrize("layout", ("block[(0)]", "[(0:cyclic)]", "[()]"))
def test_unique_elements_along_a_vector(layout: str) -> None:
    """Law: along its only mode a vector has the unique elements that it has: NaNs are one, as in newer NumPy."""
    values = np.where(LINE < 3, np.nan, LINE)
    want = np.unique(values, return_counts=True)

    def program(comm: Any) -> None:
        x = DistTensor.from_global(values, layout, comm)
        for axis in (0, -1):
            for got, expected in zip(np.unique(x, axis=axis, return_counts=True), want, strict=True):
                np.testing.assert_array_equal(got.to_global(), expected)

    with rote.config(implicit="allow"):
        rote.run(program, 3)


def test_slices_of_a_moved_tensor_take_numbers() -> None:
    """Law: ends of slices may be tensors of order 0 wherever ranks compare their calls, as before a move of a view."""

    def program(comm: Any) -> None:
        x = DistTensor.from_global(FIELD, "b a: block[(0),()]", comm)
        n = DistTensor.from_global(LINE, "block[(0)]", comm).argmin()
        with rote.config(implicit="allow"):
            assert np.array_equal(x[: n + 1, n:].to_global(), FIELD[:2, 1:])
            x[:n] = 7
            assert np.array_equal(x.to_global(), np.where(np.arange(3)[:, None] < 1, 7, FIELD))

    rote.run(program, 2)


# Calls that are refused, of x, y and what else they take; x and y become tensors.

BITS, TIMES = FIELD[:2].reshape(-1) % 3 < 1, np.cumsum(LINE)
EDGES = {"xs": np.array([-6.0, -1.0, 2.0, 9.0]), "ys": np.array([-8.0, 0.0, 12.0])}
MATRICES = np.random.default_rng(0).random((2, 3, 6, 1))
LINES = {"x": LINE, "y": LINE[::-1].copy()}
KEYS = {"x": LINE, "y": LINE % 2}

REPLACED: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "kron": (lambda x, y: np.kron(x, y), {"x": FIELD, "y": FIELD[:2]}),
    "vander": (lambda x: np.vander(x), {"x": FIELD[0]}),
    "ediff1d": (lambda x: np.ediff1d(x), {"x": FIELD}),
    "diagflat": (lambda x: np.diagflat(x), {"x": FIELD}),
    "diag_indices_from": (lambda x: np.diag_indices_from(x), {"x": FIELD[:, :3]}),
    "tril_indices_from": (lambda x: np.tril_indices_from(x), {"x": FIELD}),
    "triu_indices_from": (lambda x: np.triu_indices_from(x), {"x": FIELD}),
    "real_if_close": (lambda x: np.real_if_close(x), {"x": FIELD}),
    "sort_complex": (lambda x: np.sort_complex(x), {"x": FIELD}),
    "histogram2d": (
        lambda x, y, xs, ys: np.histogram2d(x, y, (xs, ys))[0].astype(int),
        {"x": LINE - 4, "y": TIMES - 8, **EDGES},
    ),
    "linspace": (lambda x, y, n: np.linspace(x, y, n), {"x": FIELD, "y": FIELD**2, "n": 5}),
    "logspace": (lambda x, y, n: np.logspace(x, y, n), {**LINES, "n": 4}),
    "geomspace": (lambda x, y, n: np.geomspace(x, y, n), {**LINES, "n": 4}),
    "ix_": (lambda x, y: np.ix_(x, y), {"x": np.array([2, 0]), "y": np.array([1, 3, 0])}),
    "lexsort": (lambda x, y: np.lexsort((x, y)), KEYS),
    "packbits": (lambda x: np.packbits(x), {"x": np.append(BITS, ~BITS)}),
    "unpackbits": (lambda x: np.unpackbits(x), {"x": np.array([0, 7, 200, 255], "u1")}),
    "polyadd": (lambda x, y: np.polyadd(x, y), LINES),
    "polysub": (lambda x, y: np.polysub(x, y), LINES),
    "polymul": (lambda x, y: np.polymul(x, y), {"x": LINE, "y": KERNEL}),
    "polyder": (lambda x: np.polyder(x), {"x": LINE}),
    "polyint": (lambda x: np.polyint(x), {"x": LINE}),
    "polyfit": (lambda x, y, degree: np.polyfit(x, y, degree), {"x": TIMES / 9, "y": LINE, "degree": 2}),
    "ravel_multi_index": (
        lambda x, y, dims: np.ravel_multi_index((x, y), dims),
        {"x": np.array([2, 0, 1]), "y": np.array([1, 3, 0]), "dims": (3, 4)},
    ),
    "resize": (lambda x, n, size, shape: np.resize(x, shape), {"x": FIELD, "n": 2, "size": 15, "shape": (5, 3)}),
    "trim_zeros": (lambda x: np.trim_zeros(x), {"x": np.array([0.0, 0, 2, 0, 3, 0])}),
    "unwrap": (lambda x: np.unwrap(x), {"x": TIMES % 6.0}),
    "tensorinv": (lambda x, n: np.linalg.tensorinv(x), {"x": MATRICES, "n": 6}),
    "tensorsolve": (lambda x, y: np.linalg.tensorsolve(x, y), {"x": MATRICES, "y": np.arange(6.0).reshape(2, 3)}),
    "subtract.reduce": (lambda x: np.subtract.reduce(x), {"x": FIELD}),
    "divide.reduce": (lambda x: np.divide.reduce(x), {"x": FIELD + 0.5}),
    "hypot.reduce": (lambda x: np.hypot.reduce(x), {"x": FIELD}),
    "logaddexp.reduce": (lambda x: np.logaddexp.reduce(x), {"x": FIELD}),
    "logaddexp2.reduce": (lambda x: np.logaddexp2.reduce(x), {"x": FIELD}),
    "fmax.reduce": (lambda x: np.fmax.reduce(x), {"x": np.where(FIELD == 3, np.nan, FIELD)}),
    "fmin.reduce": (lambda x: np.fmin.reduce(x), {"x": np.where(FIELD == 3, np.nan, FIELD)}),
    "logical_xor.reduce": (lambda x: np.logical_xor.reduce(x), {"x": FIELD}),
    "bitwise_and.reduce": (lambda x: np.bitwise_and.reduce(x), {"x": FIELD > 0}),
    "bitwise_or.reduce": (lambda x: np.bitwise_or.reduce(x), {"x": FIELD > 0}),
    "bitwise_xor.reduce": (lambda x: np.bitwise_xor.reduce(x), {"x": FIELD > 0}),
    "subtract.accumulate": (lambda x: np.subtract.accumulate(x), {"x": FIELD}),
    "divide.accumulate": (lambda x: np.divide.accumulate(x), {"x": FIELD + 0.5}),
    "add.reduceat": (lambda x, indices: np.add.reduceat(x, indices), {"x": LINE, "indices": np.array([0, 2, 3, 6])}),
}


@pytest.mark.parametrize("name", REPLACED)
def test_replacements_are_right(name: str) -> None:
    """Law: the line that a refusal says to write gives what NumPy gives for the whole arrays."""
    call, operands = REPLACED[name]
    want = call(**operands)

    def program(comm: Any) -> None:
        given = dict(operands)
        for key in {"x", "y"} & {*given}:
            text = f"block[(0){',()' * (given[key].ndim - 1)}]"
            given[key] = DistTensor.from_global(given[key], text, comm)
        with pytest.raises(TypeError, match="is not answered") as refused:
            call(**given)
        line = str(refused.value).partition("write ")[2].partition(", of ")[0]
        with rote.config(implicit="allow"):
            compare(eval(line, {**given, "numpy": np}), want, name)

    rote.run(program, 2)


def test_many_sizes_of_blocks_are_short_in_print() -> None:
    """`print`, cards and listed moves name the first and last of many sizes; `repr`, and a card's title, name all."""

    def program(comm: Any) -> None:
        x = DistTensor.from_global(np.arange(24), "block[(0)]", comm)
        few = x[x % 8 == 1]
        sizes = ",".join(map(str, few.distribution.layout.modes[0][0].kind.sizes))
        assert sizes.count(",") == comm.size - 1 and f"block({sizes})[(0)]" in repr(few)
        assert "block(1,0,0,…,0)[(0)]" in str(few) and sizes not in str(few)
        assert few._repr_html_().count(sizes) == 1 and "block(1,0,0,…,0)[(0)]" in few._repr_html_()
        with rote.trace() as moves:
            few.redistribute("[()]")
        assert "block(1,0,0,…,0)[(0)]" in str(moves[0]) and sizes in moves[0].plan

    rote.run(program, 12)
