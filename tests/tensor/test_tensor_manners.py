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
    "interp": lambda x: np.interp(x.mean(), [0, 10], [5, 6]),
    "tile": lambda x: np.tile([1, 2], x.argmax()),
    "repeat": lambda x: np.repeat([1, 2], x.argmax()),
    "roll": lambda x: np.roll([1, 2, 3], x.argmax()),
    "quantile": lambda x: np.quantile(FIELD, x.max() / 10),
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
