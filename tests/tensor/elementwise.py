"""What element-wise functions and reductions of tensors must do, as functions of a communicator.

Run as a program under mpiexec, it makes the checks on the world and prints one line.
"""

from __future__ import annotations

import math
import operator
import sys
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import foreign

import rote
import rote.array_api as xp
from rote import DistTensor
from rote.errors import LayoutError
from rote.runtime import Comm, world

GRIDS = {1: (1, 1), 2: (1, 2), 3: (3, 1), 4: (2, 2)}
LAYOUTS = {
    0: ["[]", "[]|(0)", "[]+(0)"],
    1: ["[()]", "block[(0)]", "[(1)]", "[(0:cyclic(2),1)]", "[()]+(1)", "block[(0)]|(1)", "(a b=2): [(0),()]"],
    2: [
        *("[(),()]", "block[(0),()]", "block[(),(1)]", "[(1),(0)]", "[(0:cyclic(2)),(1:block)]", "[(),(1,0)]"),
        *("block[(0),()]+(1)", "[(),()]+(0,1)", "[(0),()]|(1)", "(a b): block[(0,1)]", "b a: [(0),(1)]"),
    ],
    3: ["[(),(),()]", "block[(0),(),(1)]", "[(),(1,0),()]", "a b c: [(0),(1),()]", "(a b) c: block[(0),(1)]"],
}
SHAPES: list[tuple[int, ...]] = [(), (1,), (6,), (5, 6), (1, 6), (5, 1), (0, 6), (2, 5, 6), (2, 1, 1), (4, 6)]
DTYPES = ["?", "i1", "u2", "i4", "u8", "i8", "f4", "f8", "g", "c8", "c16"]


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    """Small numbers, of which some are equal, and some NaN or infinite where the dtype has these."""
    values = rng.integers(-3 if np.dtype(dtype).kind not in "ub" else 0, 4, shape).astype(dtype)
    if values.dtype.kind in "fc" and values.size > 2 and rng.random() < 0.3:
        values.reshape(-1)[rng.integers(values.size)] = rng.choice([np.nan, np.inf, -0.0])
    return values


def laid(rng: np.random.Generator, array: Any, comm: Comm) -> DistTensor:
    """A tensor of an array in a layout of its order; contributions only where numbers add up to themselves."""
    while True:
        text = str(rng.choice(LAYOUTS[array.ndim]))
        try:
            return DistTensor.from_global(array, text, comm, GRIDS[comm.size])
        except LayoutError:  # a view that does not fit the shape
            continue


def same(got: DistTensor, want: Any, *what: object, exact: bool = True) -> None:
    """A tensor is an array, dtype and all, on every rank."""
    whole = got.to_global()
    assert (whole.dtype, whole.shape) == (want.dtype, want.shape), (what, whole, want)
    if exact:
        np.testing.assert_array_equal(whole, want, str(what))
    else:
        tolerance = 1e-5 if want.dtype.itemsize // (1 + (want.dtype.kind == "c")) == 4 else 1e-12
        np.testing.assert_allclose(whole, want, rtol=tolerance, atol=tolerance, err_msg=str(what))


BINARY = [operator.add, operator.mul, operator.eq, operator.lt, np.maximum, np.subtract, np.logical_and, np.hypot]
BINARY += [np.copysign, np.bitwise_or, operator.truediv, np.nextafter, np.floor_divide]


def check_together(comm: Comm, number: int) -> None:
    """Operands of any layouts, shapes that broadcast, and dtypes: the result is NumPy's, and no operand changes."""
    rng = np.random.default_rng(number)
    for _ in range(12):
        shapes = [SHAPES[k] for k in rng.integers(len(SHAPES), size=2)]
        arrays = [numbers(rng, shape, str(rng.choice(DTYPES))) for shape in shapes]
        function: Any = BINARY[rng.integers(len(BINARY))]
        tensors: list[Any] = [laid(rng, array, comm) for array in arrays]
        if rng.random() < 0.3:
            array = arrays[rng.integers(1)] if shapes[0] == shapes[1] else arrays[1]
            tensors[rng.integers(2)] = (np.asarray, foreign.WithArray)[rng.integers(2)](array)
            tensors = tensors if any(isinstance(x, DistTensor) for x in tensors) else [laid(rng, arrays[0], comm), 2]
        given = [x.to_global() if isinstance(x, DistTensor) else x for x in tensors]
        try:
            want = np.asarray(function(*given))
        except (TypeError, ValueError):  # of dtypes or of shapes: of both, either is said
            with pytest.raises((TypeError, ValueError)):
                function(*tensors)
            continue
        if want.dtype == np.float16:
            continue
        got = function(*tensors)
        same(got, want, function, *tensors)
        for x, array in zip(tensors, given, strict=True):
            if isinstance(x, DistTensor):
                same(x, array)


def check_written(comm: Comm, number: int) -> None:
    """In place, into `out=` and under `where=`: the tensor that is written stays where it is, and is NumPy's."""
    rng = np.random.default_rng(number)
    for _ in range(6):
        a, b, mask = numbers(rng, (5, 6), "f8"), numbers(rng, (6,), "i4"), rng.random((5, 1)) < 0.5
        x, y = laid(rng, a, comm), laid(rng, b, comm)
        want = a + b
        before, kept = x.distribution, x
        if x.distribution.partial:
            continue
        x += y
        assert x is kept and x.distribution == before
        same(x, want)
        out = DistTensor.zeros((5, 6), "block[(1),(0)]", comm, GRIDS[comm.size])
        assert np.multiply(x, y, out=out, where=laid(rng, mask, comm)) is out
        same(out, np.multiply(want, b, out=np.zeros((5, 6)), where=mask))
        np.multiply(x, foreign.WithArray(b), out=out, where=foreign.WithArray(mask))
        same(out, np.multiply(want, b, out=np.zeros((5, 6)), where=mask))
        np.copyto(x, y)
        same(x, np.broadcast_to(b, (5, 6)).astype("f8"))
        quotient, rest = np.divmod(x, 2, out=(out, None))
        assert quotient is out
        same(rest, np.divmod(np.broadcast_to(b, (5, 6)).astype("f8"), 2)[1])


def axes(order: int) -> Iterator[Any]:
    """Modes to reduce, in all ways of saying them."""
    yield from (None, *range(-order, order))
    yield from ((0, -1), (1, 0), ()) if order > 1 else ((),)


SUMS = [np.sum, np.prod, np.mean, np.var, np.std, np.nansum, np.nanmean, np.nanvar, np.nanprod, np.average]
CHOICES = [np.max, np.min, np.any, np.all, np.count_nonzero, np.ptp, np.nanmax, np.nanmin]


def check_reductions(comm: Comm, number: int) -> None:
    """Reductions of any layout over any modes are NumPy's: dtype, NaNs, empty ones, errors, all ranks alike."""
    rng = np.random.default_rng(number)
    for _ in range(4):
        array = numbers(rng, SHAPES[rng.integers(len(SHAPES))], str(rng.choice(DTYPES)))
        x = laid(rng, array, comm)
        array = x.to_global()
        calls = list(product(SUMS + CHOICES, axes(array.ndim)))
        for k in rng.permutation(len(calls))[:20]:
            function, axis = calls[k]
            options = {"axis": axis, "keepdims": bool(rng.integers(2))}
            if function in (np.average, np.ptp) or (array.dtype.kind == "c" and function in CHOICES):
                options.pop("keepdims")
                if array.dtype.kind in "cb":
                    continue
            try:
                want = np.asarray(function(array, **options))
            except ValueError:
                try:
                    function(x, **options)
                except ValueError:
                    continue
                raise AssertionError(f"{function} of {array.shape} over {axis} is not refused") from None
            got = function(x, **options)
            same(got, want, function.__name__, axis, x, exact=function in CHOICES and array.dtype != "?")
            values = got.to_global()
            values = values.astype("f8") if values.dtype.char == "g" else values  # whose padding has bits as well
            bits = {block.tobytes() for block in comm.allgather_object(values)}
            assert len(bits) == 1, (function, x)


def check_positions(comm: Comm, number: int) -> None:
    """Of several equal extremes the first by global index is named, of NaNs the first, in any layout."""
    rng = np.random.default_rng(number)
    for _ in range(6):
        array = numbers(rng, SHAPES[rng.integers(len(SHAPES))], str(rng.choice(DTYPES[:-2])))
        x = laid(rng, array, comm)
        array = x.to_global()
        for function, axis, keepdims in product((np.argmax, np.argmin), (None, *range(array.ndim)), (False, True)):
            try:
                want = np.asarray(function(array, axis=axis, keepdims=keepdims))
            except ValueError:
                continue
            same(function(x, axis=axis, keepdims=keepdims), want, function, axis, x)


def check_exact(comm: Comm, number: int) -> None:
    """An exact sum is that of `math.fsum`, whatever the layout: to the bit, with subnormal and huge numbers."""
    rng = np.random.default_rng(number)
    for _ in range(4):
        array = rng.standard_normal((5, 6)) * 2.0 ** rng.integers(-1070, 1000, (5, 6))
        array[rng.integers(5)] = -array[rng.integers(5)]
        x = laid(rng, array, comm)
        if x.distribution.partial:
            continue
        assert float(x.sum(exact=True)) == math.fsum(array.reshape(-1).tolist())
        assert float(x.mean(exact=True)) == math.fsum(array.reshape(-1).tolist()) / 30
        same(x.sum(axis=0, exact=True), np.array([math.fsum(column) for column in array.T.tolist()]))
        z = x + 1j * x
        same(z.sum(axis=1, exact=True).imag, np.array([math.fsum(row) for row in array.tolist()]))
        for special in ([np.inf], [np.nan], [np.inf, -np.inf]):
            array[0, : len(special)] = special
            y = DistTensor.from_global(array, x.layout, comm, x.grid)
            np.testing.assert_equal(float(y.sum(exact=True)), array[0, : len(special)].sum())


def check_moves(comm: Comm, number: int) -> None:
    """Moves are what the record says: none where operands lie alike or are broadcast; refused on all ranks, at once."""
    del number
    grid = GRIDS[comm.size]
    x = DistTensor.from_global(np.ones((6, 4)), "block[(0),(1)]", comm, grid)
    row, column = (DistTensor.from_global(np.ones(n), "[()]", comm, grid) for n in (4, 6))
    y = x.redistribute("block[(1),(0)]")
    with rote.trace() as moves, rote.config(implicit="error"):
        np.testing.assert_array_equal((x + row * 2 + np.ones((6, 1)) - x.mean(axis=1, keepdims=True)).to_global(), 3.0)
        assert not any(move.implicit for move in moves)
        before = len(moves)
        if comm.size > 1:
            for call in (lambda: x + y, lambda: np.where(x > 0, x, y), lambda: np.array_equal(x, y)):
                try:
                    call()
                except LayoutError as error:
                    assert "by x.redistribute('block[(0),(1)]') first" in str(error)
                else:
                    raise AssertionError("an implicit move is not refused")
            assert {move.cause for move in moves[before:]} == {"add", "where", "array_equal"}
            assert all(
                move.nbytes == rote.compile(y.distribution, x.distribution).cost.bytes for move in moves[before:]
            )
    assert column.shape == (6,)
    z = x.sum(axis=0, layout="block[(0)]")
    assert str(z.layout) == "block[(0)]" and str(x.sum(axis=0).layout) == "block[(1)]"
    np.testing.assert_array_equal(z.to_global(), 6.0)


CHECKS = [check_together, check_written, check_reductions, check_positions, check_exact, check_moves]


def main() -> None:
    comm = world()
    with warnings.catch_warnings(), np.errstate(all="ignore"), rote.config(implicit="allow"):
        warnings.simplefilter("ignore")
        for check in CHECKS:
            check(comm, 7)
        x = xp.ones((4, 6), comm=comm)
        assert float(xp.sum(x)) == 24
        for blocks in ([1.0, np.nan], [np.nan, 1.0]):  # whichever rank has it
            y = DistTensor.from_global(np.array(blocks), "block[(0)]", comm, comm.size)
            assert math.isnan(float(y.max())) and math.isnan(float(y.min())) and int(y.argmax()) == np.argmax(blocks)
    if comm.rank == 0:
        print(f"{len(CHECKS)} checks on {comm.size} ranks")


if __name__ == "__main__":
    main()
