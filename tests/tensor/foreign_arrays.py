"""Calls with a tensor and arrays of other libraries, for any ranks.

Under mpiexec: `python foreign_arrays.py`.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import dask.array
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import foreign

import rote
import rote.array_api as xp
from rote import DistTensor

FIELD = np.arange(12.0).reshape(4, 3) - 5
OTHER = np.arange(12.0)[::-1].reshape(4, 3) % 5
ROW = np.array([2.0, 0.0, 7.0])
MASK = OTHER > 1
ROWS = np.array([3, 0, 0])
LAYOUTS = ("block[(0),()]", "[(),(0:cyclic(2))]")

Make = Callable[[Any], Any]
"""What makes an array of another library of one of NumPy's."""


def into(x: Any, change: Callable[[Any], object]) -> Any:
    """A copy of a tensor or of an array, after it was changed in place."""
    y = x.copy()
    change(y)
    return y


# What is called with a tensor, or with an array of NumPy, and arrays of another library.
CALLS: dict[str, Callable[[Any, Make], Any]] = {
    "add": lambda x, of: x + of(OTHER),
    "a row": lambda x, of: x * of(ROW),
    "power": lambda x, of: abs(x) ** of(OTHER),
    "equal": lambda x, of: x == of(OTHER),
    "less": lambda x, of: x < of(ROW),
    "in place": lambda x, of: into(x, lambda y: operator.iadd(y, of(OTHER))),
    "ufunc": lambda x, of: np.hypot(of(OTHER), x),
    "ufunc where": lambda x, of: into(x, lambda y: np.add(y, 1, out=y, where=of(MASK))),
    "ufunc reduce": lambda x, of: np.add.reduce(x, axis=0, where=of(MASK)),
    "where": lambda x, of: np.where(of(MASK), x, of(ROW)),
    "clip": lambda x, of: np.clip(x, of(ROW), None),
    "clip by name": lambda x, of: np.clip(x, a_min=None, a_max=of(ROW)),
    "isclose": lambda x, of: np.isclose(x, x + 1, rtol=of(OTHER)),
    "nan_to_num": lambda x, of: np.nan_to_num(np.where(x > 0, x, np.nan), nan=of(ROW)),
    "copyto": lambda x, of: into(x, lambda y: np.copyto(y, of(OTHER), where=of(MASK))),
    "sum": lambda x, of: np.sum(x, axis=1, where=of(MASK)),
    "average": lambda x, of: np.average(x, axis=0, weights=of(OTHER + 1)),
    "histogram": lambda x, of: np.histogram(x, bins=of(np.array([-5.0, 0.0, 7.0]))),
    "bincount": lambda x, of: np.bincount(np.ravel(x + 5).astype(int), of(OTHER.ravel())),
    "array_equal": lambda x, of: np.array_equal(x, of(FIELD)),
    "array_equal otherwise": lambda x, of: np.array_equal(x, of(OTHER)) or np.array_equal(x, of(ROW)),
    "array_equiv": lambda x, of: np.array_equiv(0 * x + ROW, of(ROW)),
    "allclose": lambda x, of: np.allclose(x, of(FIELD)) and not np.allclose(of(OTHER), x),
    "einsum": lambda x, of: np.einsum("ij,kj->ik", x, of(OTHER)),
    "matmul": lambda x, of: of(OTHER.T.copy()) @ x if of is np.asarray else np.matmul(of(OTHER.T.copy()), x),
    "dot": lambda x, of: x.dot(of(ROW)),
    "multi_dot": lambda x, of: np.linalg.multi_dot([x, of(OTHER.T.copy()), x]),
    "solve": lambda x, of: np.linalg.solve(x.T @ x + np.eye(3), of(ROW)),
    "concatenate": lambda x, of: np.concatenate([of(OTHER), x]),
    "append": lambda x, of: np.append(x, of(OTHER), axis=1),
    "stack": lambda x, of: np.stack([x, of(OTHER)], axis=1),
    "diff": lambda x, of: np.diff(x, axis=0, prepend=of(OTHER[:1])),
    "gradient": lambda x, of: np.gradient(x, of(np.array([0.0, 1.0, 4.0, 5.0])), axis=0),
    "isin": lambda x, of: np.isin(x, of(ROW)),
    "searchsorted": lambda x, of: np.searchsorted(np.ravel(x), of(ROW)),
    "digitize": lambda x, of: np.digitize(x, of(np.array([0.0, 4.0]))),
    "percentile": lambda x, of: np.percentile(x, of(np.array([30.0, 50.0])), axis=0),
    "repeat": lambda x, of: np.repeat(x, of(np.array([2, 0, 1])), axis=1),
    "pad": lambda x, of: np.pad(x, of(np.array([[1, 0], [0, 2]]))),
    "take": lambda x, of: np.take(x, of(ROWS), axis=0),
    "take_along_axis": lambda x, of: np.take_along_axis(x, (np.asarray if of is foreign.Items else of)(ROWS[None]), 0),
    "split": lambda x, of: np.split(x, of(np.array([1, 3])))[1],
    "method": lambda x, of: x.clip(of(ROW)),
    "index": lambda x, of: x[of(ROWS)],
    "two indices": lambda x, of: x[of(ROWS), of(np.array([2, 2, 1]))],
    "mask": lambda x, of: x[of(MASK)],
    "mask of rows": lambda x, of: x[of(MASK[:, 0]), 1:],
    "assign": lambda x, of: into(x, lambda y: operator.setitem(y, (slice(1, 3),), of(OTHER[:2]))),
    "assign at indices": lambda x, of: into(x, lambda y: operator.setitem(y, of(ROWS[:2]), of(ROW))),
    "assign at a mask": lambda x, of: into(x, lambda y: operator.setitem(y, of(MASK), of(np.arange(MASK.sum() * 1.0)))),
}


def made(comm: Any, of: Make, layout: str) -> dict[str, Any]:
    """New tensors, and what else takes whole arrays."""
    x = DistTensor.from_global(of(FIELD), layout, comm)
    block = DistTensor.from_function(lambda i, j: of(i + 10.0 * j), (4, 3), layout, comm)
    rote.testing.assert_equal(x, of(FIELD))
    number = np.asarray if of is foreign.Items else of  # a list is no number, and no shape if it is not registered
    return {
        "from_global": x,
        "asarray": xp.asarray(of(OTHER), layout=layout, comm=comm),
        "from_function": block,
        "from_local": DistTensor.from_local(of(x.local.copy()), layout, (4, 3), comm),
        "full": xp.full((2, 3), number(np.array(2.5)), layout=layout, comm=comm),
        "convolve": rote.fft.convolve(x.redistribute("block[(0),()]"), of(OTHER[:2, :2].copy())),
        "random": rote.random.default_rng(7).random(number(np.array([4, 3])), layout, comm=comm),
        "simulate": rote.simulate.scatter(of(FIELD), x.distribution)[comm.rank],
    }


def whole(result: Any) -> Any:
    """A result as an array of NumPy; several as a list of them. Collective."""
    if isinstance(result, tuple | list):
        return [whole(part) for part in result]
    return np.asarray(result.to_global() if isinstance(result, DistTensor) else result)


def compare(got: Any, want: Any, *what: object) -> None:
    """Results are equal, dtype and all."""
    for one, other in zip(*(whole(x if isinstance(x, tuple | list) else [x]) for x in (got, want)), strict=True):
        assert one.dtype == other.dtype, what
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12, err_msg=str(what))


REFUSED = {kind: ("write its copy in the memory of the host", make) for kind, make in foreign.REMOTE.items()}
REFUSED["dask"] = ("let each rank compute its part", partial(dask.array.from_array, chunks=2))
REFUSED["a list of dask"] = (
    "let each rank compute its part",
    lambda values: [dask.array.from_array(part) for part in np.atleast_1d(values)],
)


def main() -> None:
    """All calls on the ranks of MPI, with stand-ins for arrays of other libraries, and the part of a Dask array."""
    from rote.runtime import world

    comm = world()
    with rote.config(implicit="allow"):
        for call in CALLS.values():
            x = DistTensor.from_global(FIELD, LAYOUTS[0], comm)
            compare(call(x, foreign.WithArray), call(FIELD, np.asarray))
            for _, of in REFUSED.values():
                with pytest.raises(TypeError, match=r"write its copy|let each rank"):
                    call(x, of)
    x = rote.from_dask(dask.array.from_array(FIELD, chunks=1), LAYOUTS[0], comm)
    np.testing.assert_array_equal(x.to_global(), FIELD)
    if comm.rank == 0:
        print("as NumPy's")


if __name__ == "__main__":
    main()
