"""What writing into tensors must do, as functions of a communicator: run on in-process ranks and under mpiexec.

All that writes follows one rule, whatever its name. `python written.py some|rest` makes the checks on the world.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from parts import report_checks, share
from tensors import GRIDS, agreed_error

import rote
import rote.array_api as xp
from rote import DistTensor
from rote.runtime import world

A = np.arange(1.0, 25).reshape(4, 6) / 8
V = np.linspace(0.5, 3, 6)
SOLID = np.arange(16.0).reshape(4, 4) + 9 * np.eye(4)

WHOLE = {
    "copyto a number": lambda o, x: np.copyto(o, 7),
    "copyto a row": lambda o, x: np.copyto(o, V),
    "copyto a list": lambda o, x: np.copyto(o, V.tolist()),
    "copyto an array": lambda o, x: np.copyto(o, A),
    "copyto a tensor": lambda o, x: np.copyto(o, x),
    "copyto a tensor's row": lambda o, x: np.copyto(o, x[1]),
    "o[...] = 7": lambda o, x: o.__setitem__(..., 7),
    "o[:] = row": lambda o, x: o.__setitem__(slice(None), V),
    "o[:, :] = tensor": lambda o, x: o.__setitem__((slice(None), slice(None)), x),
    "o[()] = stack of a row": lambda o, x: o.__setitem__((), V[None, None]),
    "o += 1": lambda o, x: o.__iadd__(1),
    "o *= x": lambda o, x: o.__imul__(x),
    "o **= 2": lambda o, x: o.__ipow__(2),
    "add": lambda o, x: np.add(x, 1, out=o),
    "add of a row": lambda o, x: np.add(x[0], 1, out=o),
    "clip": lambda o, x: np.clip(x, 1, 2, out=o),
    "round": lambda o, x: np.round(x, 1, out=o),
    "nan_to_num": lambda o, x: np.nan_to_num(o, copy=False),
    "sum": lambda o, x: np.sum(x[None], axis=0, out=o),
    "sum of integers": lambda o, x: np.sum(x[None].astype("i4"), axis=0, out=o),
    "maximum.reduce": lambda o, x: np.maximum.reduce(x[None], out=o),
    "mean": lambda o, x: np.mean(x[None], axis=0, out=o),
    "median": lambda o, x: np.median(x[None], axis=0, out=o),
    "cumsum": lambda o, x: np.cumsum(x, axis=0, out=o),
    "add.accumulate": lambda o, x: np.add.accumulate(x, out=o),
    "einsum": lambda o, x: np.einsum("ij,ij->ij", x, x, out=o),
    "matmul": lambda o, x: np.matmul(SOLID, x, out=o),
    "sort": lambda o, x: o.sort(0),
}
"""Calls that write all of `o`, of shape (4, 6), from a tensor or an array `x` of that shape."""

SOME_ELEMENTS = {
    "copyto where": lambda o, x: np.copyto(o, 7, where=x > 1),
    "add where": lambda o, x: np.add(x, 1, out=o, where=A > 1),
    "o[1:]": lambda o, x: o.__setitem__(slice(1, None), 7),
    "o[mask]": lambda o, x: o.__setitem__(x > 1, 7),
    "o[list]": lambda o, x: o.__setitem__([0, 2], V),
    "o[0, 0]": lambda o, x: o.__setitem__((0, 0), 7),
}
"""Calls that write some elements of `o`."""

PARTS = {
    "rows": lambda o: o[1:],
    "all": lambda o: o[...],
    "a row": lambda o: o[1],
    "columns": lambda o: o[:, ::2],
    "reshaped": lambda o: o.reshape(2, 12),
    "a row of rows": lambda o: o[1:][0],
}
INTO_PARTS = {
    "+=": lambda part: part.__iadd__(1),
    "copyto": lambda part: np.copyto(part, 7),
    "[...] =": lambda part: part.__setitem__(..., 7),
    "negative": lambda part: np.negative(part, out=part),
    "sort": lambda part: part.sort(-1),
    "sum": lambda part: np.sum(part[None], axis=0, out=part),
}

PARTIAL = ["[(),()]+(0)", "[(),()]+prod(0)", "[(),()]+max(1)", "block[(1),()]+min(0)", "b a: [(),()]+(0,1)"]
OTHERS = ["[(),()]", "block[(0),(1)]", "block[(1),()]|(0)", "(a b): block[(0,1)]", "b a: [(0),(1)]"]


def check_all_of_a_partial_tensor(comm, part):
    """Law: what is written into all of a partial tensor is its value, and its layout stays."""
    for layout, name in share([(layout, name) for layout in PARTIAL for name in WHOLE], part, 5, comm.size):
        o, want = DistTensor.from_global(A, layout, comm, GRIDS[comm.size]), A.copy()
        WHOLE[name](o, DistTensor.from_global(A, "block[(0),()]", comm))
        WHOLE[name](want, A.copy())
        np.testing.assert_allclose(o.to_global(), want, 1e-12, err_msg=f"{layout} {name}")
        assert o.layout == rote.parse(layout)
    z = DistTensor.from_global(A + 1j, "[(),()]+(0)", comm)
    np.copyto(z.imag, 7)
    z.real.__iadd__(1)
    np.testing.assert_array_equal(z.to_global(), A + 1 + 7j)
    product = DistTensor.from_global(A + 1j, "[(),()]+prod(0,1)", comm, GRIDS[comm.size])
    if product.distribution.partial:
        agreed_error(comm, "read-only", np.copyto, product.real, 7)
    np.testing.assert_allclose(product.imag.to_global(), np.ones(A.shape))
    counts = DistTensor.zeros(6, "[()]+max(0)", comm, dtype="i4")
    np.sum(DistTensor.from_global(A, "block[(0),()]", comm), axis=0, out=counts)
    np.testing.assert_array_equal(counts.to_global(), A.sum(0).astype("i4"))


def check_some_of_a_partial_tensor(comm, part):
    """Law: a write to some elements of a partial tensor is one error on all ranks, and changes neither it nor parts."""
    cases = [(layout, None, name) for layout in PARTIAL for name in SOME_ELEMENTS]
    cases += [(layout, taken, name) for layout in PARTIAL for taken in PARTS for name in INTO_PARTS]
    for layout, taken, name in share(cases, part, 9, comm.size):
        o = DistTensor.from_global(A, layout, comm, GRIDS[comm.size])
        if not o.distribution.partial:
            continue  # over one rank, which has the values
        if taken is None:
            x = DistTensor.from_global(A, "block[(0),()]", comm)
            agreed_error(comm, "contributions, not values", SOME_ELEMENTS[name], o, x)
        else:
            agreed_error(comm, "contributions, not values", INTO_PARTS[name], cut := PARTS[taken](o))
            np.testing.assert_array_equal(cut.to_global(), PARTS[taken](A), err_msg=f"{layout} {taken} {name}")
        np.testing.assert_array_equal(o.to_global(), A, err_msg=f"{layout} {taken} {name}")


def check_parts(comm, part):
    """Law: what is written into a part of any other tensor is in both, as in NumPy; no policy stops it half-way."""
    cases = [(layout, taken, name) for layout in OTHERS + PARTIAL for taken in PARTS for name in INTO_PARTS]
    for layout, taken, name in share(cases, part, 9, comm.size):
        o, want = DistTensor.from_global(A, layout, comm, GRIDS[comm.size]), A.copy()
        if o.distribution.partial:
            continue
        INTO_PARTS[name](PARTS[taken](want))
        cut = PARTS[taken](o)
        with rote.config(implicit="allow" if name in ("sort", "sum") else "error"):
            INTO_PARTS[name](cut)
        np.testing.assert_array_equal(o.to_global(), want, err_msg=f"{layout} {taken} {name}")
        np.testing.assert_array_equal(cut.to_global(), PARTS[taken](want), err_msg=f"{layout} {taken} {name}")


def of_several(x, y, row, other_row):
    """Calls of several tensors by name: `y` and `other_row` are on other ranks than `x` and `row`, of shape (6,)."""
    places, others = x.astype(int) % 4, y.astype(int) % 4
    f, move = rote.fft.FFT(x.shape, comm=x.comm), x.move_to("block[(),(0)]")
    g = rote.fft.FFT(x.shape, comm=y.comm)
    contraction = rote.compile_einsum("ij->ij", shapes=[x.shape], layouts=[x.layout], grid=x.grid)
    return {
        "x[mask] =": lambda: x.__setitem__(y > 1, 1),
        "x[mask]": lambda: x[y > 1],
        "x[row mask] =": lambda: x.__setitem__((slice(None), other_row > 1), 1),
        "x[indices] =": lambda: x.__setitem__(others[:, 0], 1),
        "x[indices]": lambda: x[others[:, 0]],
        "x[...] = y": lambda: x.__setitem__(..., y),
        "x[1:] = y[1:]": lambda: x.__setitem__(slice(1, None), y[1:]),
        "redistribute": lambda: y.redistribute(x.layout, out=x),
        "move_to": lambda: y.move_to(x.layout, out=x),
        "a bound move": lambda: move(y),
        "redistribute a list": lambda: rote.redistribute([x, y], "block[(),(0)]"),
        "einsum out": lambda: rote.einsum("ij->ij", y, out=x),
        "einsum": lambda: rote.einsum("ij,ij->i", x, y),
        "bound": lambda: contraction.bound(y, out=x),
        "matmul": lambda: x @ y.T,
        "matmul out": lambda: np.matmul(y, y.T, out=x[:, :4].copy()),
        "dot": lambda: np.dot(x, other_row),
        "multi_dot": lambda: np.linalg.multi_dot([SOLID, x, y.T]),
        "tensordot": lambda: np.tensordot(x, y),
        "outer": lambda: np.outer(row, other_row),
        "vdot": lambda: np.vdot(x, y),
        "cross": lambda: np.cross(x[:, :3], y[:, :3]),
        "solve": lambda: np.linalg.solve(x[:, :4], y[:, :4]),
        "add": lambda: np.add(x, y),
        "+=": lambda: x.__iadd__(y),
        "add out": lambda: np.add(y, 1, out=x),
        "add out and where": lambda: np.add(x, 1, out=x, where=y > 1),
        "add into contributions": lambda: np.add(y, 1, out=x.redistribute("[(),()]+(0)")),
        "divmod out": lambda: np.divmod(x, 2, out=(x, y)),
        "copyto": lambda: np.copyto(x, y),
        "copyto where": lambda: np.copyto(x, 7, where=y > 1),
        "where": lambda: np.where(y > 1, x, 0),
        "clip": lambda: np.clip(x, 0, y),
        "isclose": lambda: np.isclose(x, y),
        "allclose": lambda: np.allclose(x, y),
        "array_equal": lambda: np.array_equal(x, y),
        "sum out": lambda: np.sum(y, axis=0, out=row),
        "sum where": lambda: np.sum(x, where=y > 1),
        "mean out": lambda: np.mean(y, axis=0, out=row),
        "average": lambda: np.average(x, weights=y),
        "add.reduce": lambda: np.add.reduce(y, out=row),
        "maximum.reduce": lambda: np.maximum.reduce(y, out=row),
        "logical_or.reduce": lambda: np.logical_or.reduce(y, out=row > 1),
        "add.accumulate": lambda: np.add.accumulate(y, out=x),
        "cumsum": lambda: np.cumsum(y, axis=0, out=x),
        "median": lambda: np.median(y, axis=0, out=row),
        "quantile": lambda: np.quantile(x, other_row / 4),
        "trace": lambda: np.trace(y, out=row[0]),
        "cov": lambda: np.cov(x, y),
        "bincount": lambda: np.bincount(places[:, 0], weights=y[:, 0]),
        "histogram": lambda: np.histogram(x, bins=other_row),
        "histogram weights": lambda: np.histogram(x, weights=y),
        "searchsorted": lambda: np.searchsorted(row, other_row),
        "digitize": lambda: np.digitize(x, other_row),
        "isin": lambda: np.isin(x, y),
        "take": lambda: np.take(x, others[0], axis=0),
        "take_along_axis": lambda: np.take_along_axis(x, others, 0),
        "concatenate": lambda: np.concatenate([x, y]),
        "stack": lambda: np.stack((x, y)),
        "append": lambda: np.append(x, y),
        "diff": lambda: np.diff(x, prepend=y),
        "gradient": lambda: np.gradient(x, other_row, axis=1),
        "repeat": lambda: np.repeat(x, others[0], axis=1),
        "broadcast_arrays": lambda: np.broadcast_arrays(x, y),
        "meshgrid": lambda: xp.meshgrid(row, other_row),
        "save": lambda: rote.save("several.h5", {"x": x, "y": y}),
        "fft": lambda: f.forward(y.astype(complex)),
        "fft out": lambda: g.forward(g.empty_input(), out=f.empty_output()),
        "convolve": lambda: rote.fft.convolve(x, y),
    }


def check_ranks_of_others(comm):
    """Law: tensors on several communicators, of ranks in another order or of other ranks, are refused by one error.

    All ranks raise it before any element is written.
    """
    for others in [comm.split(0, -comm.rank), comm.split(0, comm.rank), comm.split(comm.rank % 2, comm.rank)]:
        x, y = (DistTensor.from_global(A, "block[(0),()]", each) for each in (comm, others))
        row, other_row = (DistTensor.from_global(V, "block[(0)]", each) for each in (comm, others))
        for name, call in of_several(x, y, row, other_row).items():
            agreed_error(comm, "communicator", call)
            for tensor, array in ((x, A), (y, A), (row, V), (other_row, V)):
                np.testing.assert_array_equal(tensor.to_global(), array, err_msg=name)


CHECKS = [check for name, check in globals().items() if name.startswith("check_")]

if __name__ == "__main__":
    with rote.config(implicit="allow"):
        report_checks(CHECKS, world(), sys.argv[1])
