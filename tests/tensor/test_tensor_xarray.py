"""Tensors in xarray's labelled arrays: the data stays a tensor, and no rank gathers it behind the user's back."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import xarray as xr

import rote
from rote.runtime import Comm, run

ARRAY = np.arange(24.0).reshape(4, 6) / 7
COORDS = {"t": np.arange(4) * 10, "y": np.linspace(0, 1, 6)}

# What is done to a labelled array element by element, or to its names; each is the same of a plain array.
KEPT = {
    "operators": lambda a: 2 * a - a**2,
    "comparison": lambda a: a > 1,
    "ufunc": lambda a: np.sin(a),
    "where": lambda a: a.where(a > 1, -1.0),
    "clip": lambda a: a.clip(1, 2),
    "isnull": lambda a: a.isnull(),
    "fillna": lambda a: a.fillna(0),
    "astype": lambda a: a.astype("f4"),
    "real": lambda a: a.real,
    "conj": lambda a: a.conj(),
    "copy": lambda a: a.copy(deep=True),
    "rename": lambda a: a.rename(t="s"),
    "assign": lambda a: a.assign_coords(t=np.arange(4)),
    "dataset": lambda a: (a.to_dataset(name="v") * 2)["v"],
}

# What combines or picks elements, by the rules of tensors' own functions; its data is a tensor too.
MOVED = {
    "sum": lambda a: a.sum(),
    "mean": lambda a: a.mean("t"),
    "selection": lambda a: a.sel(y=0.2),
    "slice": lambda a: a.isel(t=slice(1, None), y=[0, 3]),
    "transpose": lambda a: a.transpose("y", "t"),
    "expansion": lambda a: a.expand_dims("z"),
    "coordinate": lambda a: a + a.t,
}


@pytest.fixture
def ungathered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing move, asked for or not."""

    def refuse(self: rote.DistTensor, *args: Any, **options: Any) -> Any:
        raise AssertionError("a tensor moves")

    monkeypatch.setattr(rote.DistTensor, "redistribute", refuse)


@pytest.mark.parametrize("layout", ("block[(0),()]", "[(),(0:cyclic(2))]", "a (r s=2): [(),(0),()]"))
def test_operations_keep_tensors_where_they_lie(ungathered: None, layout: str) -> None:
    """An operation on a labelled tensor is that on the labelled array, block by block, with the same names."""
    wanted = {name: do(xr.DataArray(ARRAY, COORDS, ("t", "y"), "u")) for name, do in KEPT.items()}

    def program(comm: Comm) -> None:
        x = rote.DistTensor.from_global(ARRAY, layout, comm)
        a = x.to_xarray(("t", "y"), COORDS, "u", {"units": "m/s"})
        assert a.data is x and a.attrs == {"units": "m/s"} and "DistTensor" in repr(a) and a._repr_html_()
        for name, do in KEPT.items():
            got = do(a)
            assert isinstance(got.data, rote.DistTensor) and got.data.distribution == x.distribution, name
            expected = rote.DistTensor.from_global(wanted[name].values, layout, comm)
            assert (got.dims, got.dtype) == (wanted[name].dims, wanted[name].dtype), name
            np.testing.assert_array_equal(got.data.local, expected.local, name)
            assert all((got[each].values == wanted[name][each].values).all() for each in wanted[name].coords), name

    run(program, 2)


def test_operations_that_combine_elements() -> None:
    """Reductions, selections and changes of order by name are those of the labelled array, and so is equality."""
    plain = xr.DataArray(ARRAY, COORDS, ("t", "y"), "u")

    def program(comm: Comm) -> None:
        a = rote.DistTensor.from_global(ARRAY, "block[(),(0)]", comm).to_xarray(("t", "y"), COORDS, "u")
        with rote.config(implicit="allow"):
            for name, do in MOVED.items():
                got, wanted = do(a), do(plain)
                assert isinstance(got.data, rote.DistTensor) and got.dims == wanted.dims, name
                np.testing.assert_allclose(got.data.to_global(), wanted.values, rtol=1e-15, err_msg=name)
                assert all((got[each].values == wanted[each].values).all() for each in wanted.coords), name
            assert a.equals(a.copy()) and not a.equals(a + 1)

    run(program, 2)


def test_a_tensor_is_a_duck_array(ungathered: None) -> None:
    """`xr.DataArray(x)` takes a tensor as it is, in a dataset beside plain arrays too."""
    x = rote.DistTensor.from_global(ARRAY, "block[(0),()]")
    assert xr.DataArray(x).data is x and xr.DataArray(x).dims == ("dim_0", "dim_1")
    both = xr.Dataset({"u": (("t", "y"), x), "plain": (("t",), np.arange(4))})
    assert both.u.data is x and both.plain.values.tolist() == [0, 1, 2, 3]


def test_the_whole_array_is_not_had_silently(ungathered: None) -> None:
    """What needs all elements in one process is refused with a cure, on every rank."""

    def program(comm: Comm) -> None:
        a = rote.DistTensor.from_global(ARRAY, "block[(0),()]", comm).to_xarray(("t", "y"))
        for needs in (lambda: a.values, lambda: np.asarray(a), lambda: a.to_numpy(), lambda: a.to_series()):
            with pytest.raises(rote.LayoutError, match=r"not gathered silently; write x\.to_global"):
                needs()

    run(program, 2)


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and coordinates of another number, a partial tensor, and no xarray."""
    x = rote.DistTensor.from_global(ARRAY, "block[(0),()]")
    with pytest.raises(ValueError, match="dim"):
        x.to_xarray(("t",))
    with pytest.raises(ValueError, match="conflicting sizes"):
        x.to_xarray(("t", "y"), {"y": np.arange(5)})

    def program(comm: Comm) -> None:
        with pytest.raises(rote.LayoutError, match=r"to_xarray .* redistribute to a layout without"):
            rote.DistTensor.zeros((4, 6), "[(),()]+(0)", comm).to_xarray()

    run(program, 2)
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(rote.RoteError, match=r"pip install xarray"):
        x.to_xarray()
