"""Tensors in xarray's labelled arrays: the data stays a tensor, and no rank gathers it behind the user's back."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
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
MOVED: dict[str, Callable[[Any], Any]] = {
    "selection": lambda a: a.sel(y=0.2),
    "nearest": lambda a: a.sel(t=11, method="nearest"),
    "slice": lambda a: a.isel(t=slice(1, None), y=[0, 3]),
    "transpose": lambda a: a.transpose("y", "t"),
    "expansion": lambda a: a.expand_dims("z"),
    "stack": lambda a: a.stack(z=("t", "y")).reset_index("z"),
    "sortby": lambda a: a.sortby("t", ascending=False),
    "coordinate": lambda a: a + a.t,
    "condition on a coordinate": lambda a: a.where(a.t > 10, drop=True),
    "reindex": lambda a: a.reindex(t=[0, 15, 20]),
    "concat": lambda a: xr.concat([a, a], "t"),
    "shift": lambda a: a.shift(t=1),
    "shift back": lambda a: a.shift(y=-2, fill_value=0),
    "roll": lambda a: a.roll(y=3, roll_coords=True),
    "pad": lambda a: a.pad(t=(1, 2)),
    "pad with constants": lambda a: a.pad(t=(1, 2), y=1, constant_values={"t": (3, 4), "y": 5}),
    "pad by edges": lambda a: a.pad(t=1, y=2, mode="edge"),
    "pad by reflection": lambda a: a.pad(y=2, mode="reflect"),
    "pad by means": lambda a: a.pad(y=2, mode="mean"),
    "pad by ramps": lambda a: a.pad(y=2, mode="linear_ramp", end_values=1),
    "windows": lambda a: a.rolling(y=3).construct("w"),
    "rolling mean": lambda a: a.rolling(t=3).mean(),
    "rolling sum": lambda a: a.rolling(y=2, center=True, min_periods=1).sum(),
    "rolling maximum": lambda a: a.rolling(y=3).max(),
    "rolling median": lambda a: a.rolling(t=3).median(),
    "cumulative": lambda a: a.cumulative("t").sum(),
    "coarsen": lambda a: a.coarsen(y=4, boundary="pad").mean(),
    "quantile": lambda a: a.quantile(0.3),
    "quantiles": lambda a: a.quantile([0.3, 0.5], "t"),
    "quantiles by a method": lambda a: a.quantile(0.3, ("t", "y"), method="hazen"),
    "quantiles with NaN": lambda a: a.quantile([0.3, 0.5], "y", skipna=False),
    "median": lambda a: a.median(),
    "medians": lambda a: a.median("t"),
    "medians with NaN": lambda a: a.median("y", skipna=False),
    "cumsum": lambda a: a.cumsum("t"),
    "cumsum of all": lambda a: a.cumsum(),
    "cumsum with NaN": lambda a: a.cumsum("y", skipna=False),
    "cumprod": lambda a: a.cumprod("y"),
    "differentiate": lambda a: a.differentiate("y"),
    "differentiate by order 2": lambda a: a.differentiate("t", edge_order=2),
    "diff": lambda a: a.diff("y", 2, label="lower"),
    "integrate": lambda a: a.integrate("y"),
    "cumulative_integrate": lambda a: a.cumulative_integrate("t"),
    "isin": lambda a: a.isin([ARRAY[0, 1], ARRAY[3, 2]]),
    "argmax": lambda a: a.argmax(),
    "argmins": lambda a: a.argmin("t"),
    "argmax with NaN": lambda a: a.argmax("y", skipna=False),
    "argmax of two": lambda a: a.argmax(["t", "y"])["y"],
    "idxmax": lambda a: a.idxmax("t"),
    "idxmin": lambda a: a.idxmin("y"),
    "sum": lambda a: a.sum(),
    "sum of enough": lambda a: a.sum("y", min_count=6),
    "count": lambda a: a.count("t"),
    "mean": lambda a: a.mean("t"),
    "variance": lambda a: a.var("t", ddof=1),
    "groups": lambda a: a.groupby(a.t // 20).mean(),
    "weights": lambda a: a.weighted(xr.DataArray(np.arange(4.0), dims="t")).mean("t"),
    "dot": lambda a: a.fillna(0).dot(a.fillna(1), dim="t"),
    "covariance": lambda a: xr.cov(a, a, "t"),
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


@pytest.mark.parametrize(
    ("ranks", "layout", "grid"),
    [(1, "block[(0),()]", None), (2, "block[(),(0)]", None), (2, "[(0),()]", None), (4, "block[(0),(1)]", (2, 2))],
)
def test_operations_that_combine_elements(ranks: int, layout: str, grid: tuple[int, ...] | None) -> None:
    """Reductions, selections, windows, quantiles and changes of order by name are those of the labelled array."""
    numbers = np.where(np.arange(24).reshape(4, 6) % 7 == 3, np.nan, ARRAY)
    plain = xr.DataArray(numbers, COORDS, ("t", "y"), "u")
    with warnings.catch_warnings(action="ignore"):
        wanted = {name: do(plain) for name, do in MOVED.items()}

    def program(comm: Comm) -> None:
        a = rote.DistTensor.from_global(numbers, layout, comm, grid).to_xarray(("t", "y"), COORDS, "u")
        for name, do in MOVED.items():
            got, want = do(a), wanted[name]
            assert isinstance(got.data, rote.DistTensor) and (got.dims, got.dtype) == (want.dims, want.dtype), name
            np.testing.assert_allclose(got.data.to_global(), want.values, rtol=1e-14, atol=1e-15, err_msg=name)
            for each in want.coords:
                np.testing.assert_array_equal(got[each].values, want[each].values, name)
        assert a.equals(a.copy()) and not a.equals(a + 1)

    with rote.config(implicit="allow"), warnings.catch_warnings(action="ignore"):
        run(program, ranks)


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
