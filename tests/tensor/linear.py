"""What contractions, linear algebra and random numbers must do, as functions of a communicator.

Each answers as NumPy does on the whole arrays, wherever the operands lie. Run as a program, `python linear.py
some|rest`, it makes the checks of that part on the world and prints one line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

import factors
from parts import report_checks, share
from tensors import agreed_error

import rote
import rote.array_api
from rote import DistTensor
from rote.functions import products
from rote.runtime import Comm, world

Array = NDArray[Any]
GRIDS: dict[int, tuple[int, ...]] = {1: (1, 1), 2: (1, 2), 3: (3, 1), 4: (2, 2), 6: (3, 2)}
MATRIX = (
    "block[(0),()]",
    "[(),()]",
    "[(1),(0)]",
    "block[(),(0,1)]",
    "[(0:cyclic(2)),(1:block)]",
    "[(0),()]+(1)",
    "[(),()]|(0,1)",
    "(a b): block[(0,1)]",
    "b a: [(0),(1)]",
)
VECTOR = ("block[(0)]", "[()]", "[(1,0)]", "[()]+(0,1)")
STACK = ("block[(0),(),()]", "[(0),(1),()]", "[(),(1),(0)]", "[(),(),(1)]|(0)")
DTYPES = ("f8", "c16", "i8", "f4", "?", "u1")


def numbers(shape: tuple[int, ...], dtype: str = "f8", seed: int = 0) -> Array:
    """Small whole numbers, so that sums are exact in any order."""
    generator = np.random.default_rng((seed, *shape))
    values = generator.integers(0, 5, shape) - (0 if dtype[0] in "?u" else 2)
    if dtype[0] == "c":
        return np.asarray(values + 1j * generator.integers(-2, 3, shape), dtype)
    return np.asarray(values, dtype)


def laid(array: Any, text: str, comm: Comm) -> DistTensor:
    return DistTensor.from_global(array, text, comm, GRIDS[comm.size])


def same(got: Any, want: Any) -> None:
    assert isinstance(got, DistTensor) and not got.distribution.partial, got
    whole, want = got.to_global(), np.asarray(want)
    assert (whole.dtype, whole.shape) == (want.dtype, want.shape), (whole.dtype, whole.shape, want.dtype, want.shape)
    np.testing.assert_array_equal(whole, want)


def moved_bytes(call: Callable[..., Any], *args: Any, **options: Any) -> int:
    """The most bytes that a rank receives in a call."""
    with rote.trace() as moves:
        call(*args, **options)
    return sum(move.nbytes for move in moves)


def check_products(comm: Comm, part: str) -> None:
    """Products of tensors in any two layouts, in NumPy's names and in ours, are those of the arrays."""
    for a_text, b_text in share(product(MATRIX, MATRIX), part, 40, comm.size, of=3):
        a, b = numbers((5, 4)), numbers((4, 3), seed=1)
        x, y = laid(a, a_text, comm), laid(b, b_text, comm)
        same(x @ y, a @ b)
        same(np.tensordot(x, y, ([1], [0])), a @ b)
        same(np.einsum("ij,jk->ki", x, y), (a @ b).T)
        same(np.inner(x, laid(b.T, b_text, comm)), np.inner(a, b.T))
    for a_text, b_text in share(product(VECTOR, VECTOR), part, 8, comm.size, of=2):
        a, b = numbers((5,), "c16"), numbers((5,), "c16", 1)
        x, y = laid(a, a_text, comm), laid(b, b_text, comm)
        same(np.vdot(x, y), np.vdot(a, b))
        same(np.linalg.vecdot(x, y), np.linalg.vecdot(a, b))
        same(np.dot(x, y), np.dot(a, b))
        same(np.outer(x, y), np.outer(a, b))
        same(x @ y, a @ b)
        same(products.einsum("i,j->ji", x, b), np.outer(b, a))
    for a_text, b_text in share(product(STACK, STACK), part, 8, comm.size, of=2):
        a, b = numbers((4, 2, 3)), numbers((1, 3, 2), seed=1)
        x, y = laid(a, a_text, comm), laid(b, b_text, comm)
        same(x @ y, a @ b)
        same(np.dot(x, y), np.dot(a, b))
        same(np.tensordot(x, y, ([1, 2], [2, 1])), np.tensordot(a, b, ([1, 2], [2, 1])))
        same(np.matmul(x, b[0]), a @ b[0])
        same(x @ laid(b[0, :, 0], "block[(0)]", comm), a @ b[0, :, 0])
        same(laid(a[0, 0], "[()]", comm) @ y, a[0, 0] @ b)
        same(np.linalg.vecdot(x, laid(a[:1], b_text, comm)), np.linalg.vecdot(a, a[:1]))
        same(np.vecdot(x, laid(a[0], "[(0),()]", comm), axis=-2), np.vecdot(a, a[0], axis=-2))
        same(np.linalg.cross(x, laid(a[:1], b_text, comm)), np.linalg.cross(a, a[:1]))


def check_einsum(comm: Comm, part: str) -> None:
    """Subscripts of every form: sums, diagonals, ellipses, outer products, several operands, lists of labels."""
    forms: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...] = (
        ("ij->", ((4, 5),)),
        ("ji", ((4, 5),)),
        ("ii->i", ((5, 5),)),
        ("ii", ((5, 5),)),
        ("iji->ji", ((3, 4, 3),)),
        ("...i->...", ((3, 4, 2),)),
        ("...ij,...jk", ((3, 4, 2), (2, 5))),
        ("b...i,...i->b...", ((2, 3, 4), (1, 4))),
        ("i,j->ji", ((3,), (4,))),
        ("ij,ij,j->i", ((3, 4), (3, 4), (4,))),
        ("ij,jk,kl->il", ((2, 5), (5, 3), (3, 4))),
        ("ijk,k,,jl->li", ((2, 3, 4), (4,), (), (3, 2))),
        ("iij,jk->ik", ((3, 3, 2), (2, 4))),
        (",->", ((), ())),
        ("ij,jk->ik", ((0, 3), (3, 2))),
        ("ij,jk->ik", ((2, 0), (0, 3))),
        ("ij,jk->ik", ((1, 1), (1, 5))),
    )
    texts = {0: ("[]",), 1: VECTOR, 2: MATRIX, 3: STACK}
    for turn, (form, shapes) in share(product(range(5), forms), part, 17, comm.size, of=2):
        arrays = [numbers(shape, "c16", n) for n, shape in enumerate(shapes)]
        options = [[text for text in texts[len(shape)] if 0 not in shape or "(a b)" not in text] for shape in shapes]
        lays = [each[(turn * 3 + n) % len(each)] for n, each in enumerate(options)]
        tensors = [laid(array, text, comm) for array, text in zip(arrays, lays, strict=True)]
        same(np.einsum(form, *tensors), np.einsum(form, *arrays))
    x, y = laid(numbers((3, 4)), "block[(0),(1)]", comm), numbers((4, 3), seed=1)
    same(np.einsum(x, [0, 1], y, [1, 2], [0, 2]), x.to_global() @ y)


def check_dtypes(comm: Comm) -> None:
    """Elements are promoted as NumPy does; logical products are sums of and."""
    for one, other in product(DTYPES, DTYPES):
        a, b = numbers((3, 4), one), numbers((4, 2), other, 1)
        same(laid(a, "block[(0,1),()]", comm) @ laid(b, "[(),()]", comm), a @ b)


def check_layouts(comm: Comm) -> None:
    """Where a product lies: as asked for; else as the operands, whose moves cost least; contributions can stay."""
    a, b = numbers((6, 8)), numbers((8, 4), seed=1)
    x, whole = laid(a, "block[(0),()]", comm), laid(b, "[(),()]", comm)
    assert (x @ whole).layout == x.layout and moved_bytes(np.matmul, x, whole) == 0
    split, rows = laid(a, "block[(),(0)]", comm), laid(b, "block[(0),()]", comm)
    left = products.matmul(split, rows, layout="[(),()]+(0)")
    assert (
        left.layout == rote.parse("[(),()]+(0)") and moved_bytes(products.matmul, split, rows, layout=left.layout) == 0
    )
    np.testing.assert_array_equal(left.to_global(), a @ b)
    for text in ("block[(0),(1)]", "[(1),(0)]", "(a b): [(0,1)]", "[(),()]|(0)"):
        got = products.einsum("ij,jk->ik", x, rows, layout=text)
        assert got.layout == rote.parse(text)
        same(got, a @ b)
    batch, matrices = (
        laid(numbers((4, 2, 3)), "block[(0,1),(),()]", comm),
        laid(numbers((4, 3, 2)), "block[(0,1),(),()]", comm),
    )
    assert moved_bytes(np.matmul, batch, matrices) == 0 and (batch @ matrices).layout == batch.layout
    field, table = laid(numbers((3, 4, 5)), "block[(),(0),(1)]", comm), numbers((3, 3))
    assert moved_bytes(products.einsum, "ab,bxy->axy", table, field) == 0
    assert moved_bytes(np.linalg.cross, field, field, axis=0) == 0
    out = DistTensor.zeros((6, 4), "[(1),(0)]", comm, GRIDS[comm.size])
    assert np.matmul(x, rows, out=out) is out
    same(out, a @ b)


def check_small_ones_move(comm: Comm) -> None:
    """A large operand stays where it is, and a small one comes to it."""
    large, small = laid(numbers((400, 30)), "block[(0,1),()]", comm), laid(numbers((30, 3)), "block[(0,1),()]", comm)
    assert moved_bytes(np.matmul, large, small) <= small.size * 8
    tall = laid(numbers((30, 400)), "block[(),(0,1)]", comm)
    assert moved_bytes(np.matmul, laid(numbers((3, 30)), "block[(),(0,1)]", comm), tall) <= 3 * 30 * 8
    assert moved_bytes(products.einsum, "ki,kj->ij", large, large) <= 2 * 30 * 30 * 8


def check_refusals(comm: Comm) -> None:
    """What cannot be multiplied, or must not move, is one error on all ranks, and the next call works."""
    x, y = laid(numbers((4, 5)), "block[(0,1),()]", comm), laid(numbers((4, 5)), "block[(),(0,1)]", comm)
    for says, call, args in (
        ("(4, 5) and (4, 5)", np.matmul, (x, y)),
        ("no tensor of order 0", np.matmul, (x, 2.0)),
        ("no mode 3", np.tensordot, (x, y, ([3], [0]))),
        ("5 modes", np.tensordot, (x, y, 5)),
        ("5 and 4", products.einsum, ("ij,jk", x, y)),
        ("for 2 operands, not 1", products.einsum, ("ij,jk", x)),
        ("is no letter", products.einsum, ("i1", x)),
        ("another order", products.einsum, ("ijk", x)),
        ("no operand has the letter 'k'", products.einsum, ("ij->k", x)),
        ("names 'i' twice", products.einsum, ("ij->ii", x)),
        ("list of labels", products.einsum, (x, ["a", "b"])),
        ("two vectors", np.outer, (x, y)),
        ("3 components", np.linalg.cross, (x, y)),
        ("one shape", np.vdot, (x, x @ np.eye(5, 3))),
        ("writes into", products.matmul, (x, np.eye(5), np.zeros((4, 5)))),
    ):
        agreed_error(comm, says, call, *args)
    agreed_error(comm, "one communicator", np.matmul, x, DistTensor.zeros((5, 2), "[(),()]", comm.split(0, comm.rank)))
    with rote.config(implicit="error"):
        if comm.size > 1:
            agreed_error(comm, "redistribute", np.einsum, "ij,ij->i", x, y)
        same(np.einsum("ij,ij->ij", x, x), x.to_global() ** 2)
    same(np.einsum("ij,ij->i", x, y), (x.to_global() ** 2).sum(1))


def check_random(comm: Comm) -> None:
    """Random tensors have the numbers of one rank, in any layout, bit for bit; each draw has others."""
    shape = (37, 5)
    texts = ("block[(0),(1)]", "[(0),(1)]", "(a b): block[(0,1)]", "b a: [(1),()]", "[(0:cyclic(2)),()]+(1)")
    draws: tuple[Callable[..., DistTensor], ...] = (
        lambda rng, **where: rng.random(shape, **where),
        lambda rng, **where: rng.normal(1.0, 2.0, shape, **where),
        lambda rng, **where: rng.standard_normal(shape, dtype="c8", **where),
        lambda rng, **where: rng.integers(-3, 10**18, shape, **where),
        lambda rng, **where: rng.exponential(2.0, shape, dtype="f4", **where),
        lambda rng, **where: rng.uniform(-1, 1, shape, dtype="f4", **where),
    )
    alone = comm.split(comm.rank, 0)
    first = rote.random.default_rng(5)
    wanted = [draw(first, layout="[(),()]", comm=alone).to_global() for draw in draws]
    assert len({array.tobytes() for array in wanted}) == len(draws)
    for text in (*texts, "[(),()]|(0,1)"):
        rng = rote.random.default_rng(5)
        for draw, array in zip(draws, wanted, strict=True):
            whole = draw(rng, layout=text, comm=comm, grid=GRIDS[comm.size]).to_global()
            assert (whole.dtype, whole.tobytes()) == (array.dtype, array.tobytes())
        assert rng.position == first.position
    agreed = rote.random.default_rng(comm=comm).random(4, "[()]", comm=comm).local
    assert len({block.tobytes() for block in comm.allgather_object(agreed)}) == 1


CHECKS: list[Callable[..., None]] = [check for name, check in globals().items() if name.startswith("check_")]
CHECKS += factors.CHECKS


if __name__ == "__main__":
    rote.config(implicit="allow")
    report_checks(CHECKS, world(), sys.argv[1])
