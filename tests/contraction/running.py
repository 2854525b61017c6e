"""How contractions run, as functions of a communicator: with a plan, on a path, traced, refused, and in error.

Run as a program, `python running.py some`, it makes all checks on the world and prints one line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from parts import report_checks

import rote
from rote import DistTensor
from rote.runtime import Comm, world

Array = NDArray[Any]
ROWS, COLUMNS = "block[(0),()]", "block[(),(0)]"


def agreed_error(comm: Comm, says: str, call: Callable[..., object], *args: Any, **options: Any) -> None:
    """A call raises one error on all ranks: the same type, the same text."""
    try:
        call(*args, **options)
    except Exception as said:
        found = {*comm.allgather_object((type(said).__name__, str(said)))}
    else:
        found = {*comm.allgather_object(("nothing", ""))}
    assert len(found) == 1, found
    assert says in ": ".join(*found), found


def matrices(comm: Comm, *layouts: str, n: int = 12, dtype: str = "f8") -> list[DistTensor]:
    """Matrices in layouts, of whole numbers, so that sums are exact."""
    generator = np.random.default_rng(0)
    return [DistTensor.from_global(generator.integers(-9, 9, (n, n)).astype(dtype), lay, comm) for lay in layouts]


def planned(x: DistTensor, y: DistTensor, text: str = "ik,kj->ij", **options: Any) -> Any:
    """The contraction of two tensors where they lie."""
    return rote.compile_einsum(
        text, [x.shape, y.shape], [x.layout, y.layout], x.grid.shape, dtype=[x.dtype, y.dtype], **options
    )


def check_plans(comm: Comm) -> None:
    """A plan runs on operands that lie as it says; others are refused, and the error names the one that differs."""
    x, y = matrices(comm, ROWS, COLUMNS)
    plan = planned(x, y, layout="block[(),(0)]")
    with rote.config(implicit="error"), rote.trace() as moves:
        got = rote.einsum("ab,bc->ac", x, y, plan=plan)
    assert got.layout == rote.parse(COLUMNS) and not any(move.implicit for move in moves)
    np.testing.assert_array_equal(got.to_global(), x.to_global() @ y.to_global())
    assert sum(move.nbytes for move in moves) == plan.cost.bytes
    agreed_error(comm, "is for ik,kj->ij, not for ik,kj->ji", rote.einsum, "ik,kj->ji", x, y, plan=plan)
    agreed_error(comm, "operand A is block[(0),()]", rote.einsum, "ik,kj->ij", x[:6], y[:, :6], plan=plan)
    if comm.size > 1:
        agreed_error(comm, "but the plan takes block[(),(0)]", rote.einsum, "ik,kj->ij", x, x, plan=plan)
    agreed_error(comm, "operand B", rote.einsum, "ik,kj->ij", x, y.astype("f4"), plan=plan)
    for name, value in (("layout", ROWS), ("grid", (comm.size,)), ("max_bytes", 1 << 20)):
        agreed_error(comm, f"plan= or {name}=", rote.einsum, "ik,kj->ij", x, y, plan=plan, **{name: value})


def check_paths(comm: Comm) -> None:
    """A path of NumPy is honoured, by the moves that it makes; a wrong one is refused."""
    x, y = matrices(comm, ROWS, ROWS)
    v = DistTensor.from_global(np.arange(12.0), "block[(0)]", comm)
    want = x.to_global() @ (y.to_global() @ v.to_global())
    for optimize in (True, False, "greedy", "optimal", ("greedy", 1000)):
        np.testing.assert_array_equal(np.einsum("ij,jk,k->i", x, y, v, optimize=optimize).to_global(), want)
    flops = []
    for path in ([(0, 1), (0, 1)], [(1, 2), (0, 1)], [(0, 2), (1, 0)], [(0, 1, 2)], [(0, 1)]):
        with rote.trace() as moves:
            got = np.einsum("ij,jk,k->i", x, y, v, optimize=["einsum_path", *path])
        np.testing.assert_array_equal(got.to_global(), want)
        flops.append(sum(move.nbytes for move in moves))
    if comm.size > 1:
        assert flops[0] == flops[4] > flops[1] == flops[3]  # A B is a matrix, B v a vector
    path, text = np.einsum_path("ij,jk,k->i", x, y, v)
    assert path == ["einsum_path", (1, 2), (0, 1)] and "lower bound" in text
    np.testing.assert_array_equal(np.einsum("ij,jk,k->i", x, y, v, optimize=path).to_global(), want)
    assert np.einsum_path("ij->i", x)[0] == np.einsum_path("ij->i", x.to_global())[0]
    assert np.einsum_path("ij,jk,k->i", x, y, v, optimize=["einsum_path", (0, 1), (0, 1)])[0][1:] == [(0, 1), (0, 1)]
    for wrong in (["einsum_path", (0, 3)], ["einsum_path", (0, 0)], ["einsum_path", 1], ["einsum_path", ()], "best", 7):
        agreed_error(comm, "is no path of 3 operands", np.einsum, "ij,jk,k->i", x, y, v, optimize=wrong)


def check_moves(comm: Comm) -> None:
    """All moves are listed; those of operands are refused if they are implicit, by the whole plan as a text."""
    x, y = matrices(comm, COLUMNS, COLUMNS)
    whole = x.to_global() @ y.to_global()
    if comm.size == 1:
        return
    plan = planned(x, y)
    with rote.trace() as moves:
        np.testing.assert_array_equal((x @ y).to_global(), whole)
    assert sum(move.nbytes for move in moves[:-1]) == plan.cost.bytes and moves[0].implicit
    with rote.config(implicit="error"):
        agreed_error(comm, "multiply", np.matmul, x, y)
        agreed_error(comm, "move operand 1 by x.redistribute('[(),()]') first, ask for it by layout=", np.matmul, x, y)
        for options in ({"layout": COLUMNS}, {"layout": "cheapest"}, {"grid": (comm.size,)}, {"plan": plan}):
            np.testing.assert_array_equal(rote.einsum("ik,kj->ij", x, y, **options).to_global(), whole)
        z = y.redistribute(ROWS)
        with rote.trace() as moves:  # a reduction of contributions is the function's own
            np.testing.assert_array_equal((x[:2] @ z[:, :2]).local, whole_of(x, z))
        assert not any(move.implicit for move in moves)


def whole_of(x: DistTensor, z: DistTensor) -> Array:
    """The first two rows and columns of a product."""
    product: Array = x.to_global()[:2] @ z.to_global()[:, :2]
    return product


def check_errors(comm: Comm) -> None:
    """What cannot be contracted is one error on all ranks, and the next call is right."""
    x, y = matrices(comm, ROWS, COLUMNS)
    agreed_error(comm, "takes modes of equal extents together, not 12 and 6", rote.einsum, "ik,kj->ij", x, y[:6])
    agreed_error(comm, "no operand has the letter 'm'", rote.einsum, "ik,kj->im", x, y)
    agreed_error(comm, "keeps within max_bytes=64", rote.einsum, "ik,kj->ij", x, y, max_bytes=64)
    agreed_error(comm, "tensors of order 1", rote.einsum, "ik,kj->ij", x, y, layout="[(0)]")
    agreed_error(comm, "communicator has", rote.einsum, "ik,kj->ij", x, y, grid=(comm.size + 1,))
    np.testing.assert_array_equal((x @ y).to_global(), x.to_global() @ y.to_global())


def check_differences(comm: Comm) -> None:
    """Ranks that give one call other subscripts, another layout, path or plan, all raise one error that names it."""
    if comm.size == 1:
        return
    last = comm.rank == comm.size - 1
    x, y = matrices(comm, COLUMNS, ROWS)
    plans = planned(x, y, layout=ROWS), planned(x, y, layout=COLUMNS)
    agreed_error(comm, "einsum is one call", rote.einsum, "ik,kj->ji" if last else "ik,kj->ij", x, y)
    agreed_error(comm, "einsum is one call", rote.einsum, "ik,kj->ij", x, y, layout=ROWS if last else COLUMNS)
    agreed_error(comm, "einsum is one call", rote.einsum, "ik,kj->ij", x, y, plan=plans[last])
    agreed_error(comm, "einsum is one call", rote.einsum, "ik,kj->ij", x, y, grid=(comm.size, 1) if last else None)
    np.testing.assert_array_equal((x @ y).to_global(), x.to_global() @ y.to_global())


def check_bits(comm: Comm) -> None:
    """Every run of a plan has the same bits, on all ranks that hold an element."""
    generator = np.random.default_rng(3)
    x, y = (DistTensor.from_global(generator.standard_normal((64, 64)), lay, comm) for lay in (COLUMNS, ROWS))
    blocks = [rote.einsum("ik,kj->ij", x, y, layout="[(),()]").local.tobytes() for _ in range(3)]
    assert len({block for several in comm.allgather_object(blocks) for block in several}) == 1


CHECKS: list[Callable[..., None]] = [check for name, check in globals().items() if name.startswith("check_")]


if __name__ == "__main__":
    rote.config(implicit="allow", gather="allow")
    report_checks(CHECKS, world(), sys.argv[1])
