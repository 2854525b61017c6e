"""What writing into tensors must do, as functions of a communicator: run on in-process ranks and under mpiexec.

All that writes follows one rule, whatever its name. `python written.py some|rest` makes the checks on the world.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from parts import report_checks
from tensors import agreed_error

import rote
import rote.array_api as xp
from rote import DistTensor
from rote.runtime import world

A = np.arange(1.0, 25).reshape(4, 6) / 8
V = np.linspace(0.5, 3, 6)
SOLID = np.arange(16.0).reshape(4, 4) + 9 * np.eye(4)


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
