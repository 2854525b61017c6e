"""What every DistTensor must do, as functions of a communicator: run on in-process ranks and under mpiexec.

Arrays hold their own global index, so a block that differs says which elements went astray. Run as a program, `python
tensors.py some|rest`, it makes the checks of that part on the world, those with mpi4py's communicators too, and prints
one line; `python tensors.py lives` counts what 8,000 tensors leave behind.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from parts import REST, SOME, run_checks, share

import rote
from rote import DistTensor
from rote.errors import CommError, LayoutError
from rote.runtime import Comm, world

Array = NDArray[Any]
DTYPES = [np.dtype(code) for code in "?bBhHiIlLqQfdgFDG"]
EVERY = 47  # of so many cases a quick run looks at one, on each number of ranks at another
GRIDS = {1: (1, 1), 2: (1, 2), 3: (3, 1), 4: (2, 2), 6: (3, 2), 8: (2, 4)}
SHAPE = (6, 5)


def layouts(grid: tuple[int, ...]) -> list[str]:
    """Layouts of SHAPE on a grid: all kinds, replicated, rooted, partial, views that tile, fuse and permute."""
    last = (grid[0] - 1, grid[1] - 1)
    return [
        "[(),()]",
        "block[(0),()]",
        "[(1),(0)]",
        "[(0:cyclic(2)),(1:block)]",
        "[(),(1,0)]",
        "block[(0:block(6)),(1)]",
        f"[(0),()]|(1@{last[1]})",
        f"[(),()]|(0@{last[0]},1)",
        "block[(),()]|(0)",
        "[(0),()]+(1)",
        "[(),()]+(0,1)",
        "[(),(0)]+prod(1)",
        f"[(),()]+(0)|(1@{last[1]})",
        "(a c=3) b: [(0),(1),()]",
        "(a b): block[(0,1)]",
        "b a: [(0),(1)]",
    ]


def number(i: Array, j: Array) -> Array:
    """The global index of an element as one number."""
    return i * SHAPE[1] + j


def index_array(dtype: Any = "i8") -> Array:
    found: Array = np.fromfunction(number, SHAPE, dtype="i8").astype(dtype)
    return found


def same(got: Array, want: Array) -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape), (got.dtype, got.shape, want.dtype, want.shape)
    np.testing.assert_array_equal(got, want)


def refused(says: str, call: Callable[..., object], *args: Any, error: type[Exception] = LayoutError, **kw: Any) -> str:
    """The text of the error that a call raises; it has these words."""
    try:
        call(*args, **kw)
    except error as said:
        assert says in str(said), (str(said), says)
        return str(said)
    raise AssertionError(f"not refused: {says}")


def agreed_error(comm: Comm, says: str, call: Callable[..., object], *args: Any, **kw: Any) -> None:
    """A call raises one error on all ranks: the same type, the same text."""
    try:
        call(*args, **kw)
    except Exception as said:
        found = set(comm.allgather_object((type(said).__name__, str(said))))
    else:
        found = set(comm.allgather_object(("nothing", "")))
    assert len(found) == 1, found
    assert says in ": ".join(*found), found


def holds_values(x: DistTensor) -> bool:
    """Whether this rank holds values: it is inside the root, and the first contribution of a partial tensor."""
    where = x.grid.coordinates(x.comm.rank)
    return x.distribution.holds(x.comm.rank) and not any(where[g] for g in x.distribution.partial)


def check_constructors(comm: Comm, part: str) -> None:
    """From the whole, from a function, from blocks: every block is what the indices say; all are the array."""
    grid = GRIDS[comm.size]
    for text, dtype in share(product(layouts(grid), DTYPES), part, EVERY, comm.size, of=3):
        array = index_array(dtype)
        x = DistTensor.from_global(array, text, comm, grid)
        assert (x.shape, x.dtype, x.layout, x.grid.shape) == (SHAPE, dtype, rote.parse(text), grid)
        assert x.local.shape == x.distribution.local_shape(comm.rank)
        if holds_values(x):
            same(
                x.local, np.broadcast_to(number(*x.distribution.tensor_indices(comm.rank)), x.local.shape).astype(dtype)
            )
        f = DistTensor.from_function(number, SHAPE, text, comm, grid, dtype)
        same(f.local, x.local)
        same(DistTensor.from_local(x.local, text, SHAPE, comm, grid).to_global(), array)
        same(DistTensor.zeros(SHAPE, text, comm, grid, dtype).to_global(), np.zeros(SHAPE, dtype))
        e = DistTensor.empty(SHAPE, text, comm, grid, dtype)
        assert (e.dtype, e.local.shape, e.distribution) == (dtype, x.local.shape, x.distribution)
    same(DistTensor.from_global([[1, 2], [3, 4]], "[(0),()]", comm).to_global(), np.array([[1, 2], [3, 4]]))
    swapped = index_array(">f8")
    same(DistTensor.from_global(swapped, "[(0),()]", comm).to_global(), index_array("f8"))
    same(DistTensor.from_function(lambda i: 2.5, 7, "[(0)]", comm).to_global(), np.full(7, 2.5))
    for value, text in ((3.5, "[]"), (True, f"[]|(0@{comm.size - 1})"), (2 + 1j, "[]+(0)")):
        x = DistTensor.from_global(value, text, comm, comm.size)
        same(x.to_global(), np.array(value))
        same(
            DistTensor.from_function(lambda value=value: value, (), text, comm, comm.size).to_global(), np.array(value)
        )
    for shape in ((0,), (1,), (comm.size - 1,)):
        same(DistTensor.from_global(np.arange(*shape), "block[(0)]", comm).to_global(), np.arange(*shape))


def check_contributions(comm: Comm) -> None:
    """A partial tensor is the reduction of its blocks."""
    for op, ufunc in (("", np.add), ("max", np.maximum), ("min", np.minimum), ("prod", np.multiply)):
        for dtype in ("i8", "f8", "?", "c16"):
            if dtype == "c16" and op in ("max", "min"):
                continue
            blocks = [(np.arange(5) * (rank + 1) % 4).astype(dtype) for rank in range(comm.size)]
            x = DistTensor.from_local(blocks[comm.rank], f"[()]+{op}(0)", 5, comm, comm.size)
            same(x.to_global(), ufunc.reduce(np.stack(blocks), axis=0, dtype=dtype))
            same(x.redistribute("block[(0)]").to_global(), x.to_global())
            same(x.local, blocks[comm.rank])


def check_signed_zeros(comm: Comm, part: str) -> None:
    """Where a rank contributes nothing, it does not change even the sign of a zero; sums of nothing are 0.0."""
    grid = GRIDS[comm.size]
    texts = layouts(grid)
    zeros = np.array([-0.0, 0.0, 1.5, np.inf, -np.inf] * 6)
    for (a, b), dtype in share(product(product(texts, texts), "fdgFDG"), part, EVERY, comm.size, of=11):
        array = zeros.astype(dtype)
        if dtype in "FDG":
            if "prod" in a + b:
                continue  # of complex numbers, 1 changes infinities and the signs of zeros
            array.imag = zeros[::-1]
        array = array.reshape(SHAPE)
        x = DistTensor.from_global(array, a, comm, grid)
        made = DistTensor.from_function(lambda i, j, array=array: array[i, j], SHAPE, b, comm, grid)
        for got in (x.to_global(), x.redistribute(b).to_global(), made.to_global()):
            for found, want in ((got.real, array.real), (got.imag, array.imag)):
                same(found, want)
                same(np.signbit(found), np.signbit(want))
    for shape in ((0,), (0, 3), (2, 0)):
        total = DistTensor.zeros(shape, f"block[{','.join(['(0)', '()'][: len(shape)])}]", comm).sum(0).to_global()
        assert not np.signbit(total).any()
    assert not np.signbit(DistTensor.zeros(SHAPE, "[(),()]+(0,1)", comm, grid).to_global()).any()
    same(np.signbit(np.cumsum(DistTensor.from_global([-0.0] * 3, "block[(0)]", comm)).to_global()), np.ones(3, bool))


def check_redistribute(comm: Comm, part: str) -> None:
    """Any layout to any other: the same array, in memory of its own or in `out`; the source keeps its values."""
    grid = GRIDS[comm.size]
    texts = layouts(grid)
    array = index_array("i4")
    tensors = {text: DistTensor.from_global(array, text, comm, grid) for text in texts}
    for a, b in share(product(texts, texts), part, EVERY, comm.size, of=3):
        if "+" in b and a != b:
            continue  # values of the one are values of the other, but the blocks of a partial tensor are not unique
        x, want = tensors[a], tensors[b]
        before = x.local.copy()
        y = x.redistribute(b)
        assert y.distribution == want.distribution and y.comm is x.comm
        if "+" not in b:
            same(y.local, want.local)
        assert not np.shares_memory(x.local, y.local)
        wide = np.full(tuple(2 * n for n in y.local.shape), -1, "i4")
        out = DistTensor.from_local(wide[tuple(slice(None, None, 2) for _ in y.local.shape)], b, SHAPE, comm, grid)
        assert x.redistribute(b, out=out) is out and x.redistribute(rote.parse(b), out) is out
        same(out.local, y.local)
        same(x.local, before)
    x = tensors["block[(0),()]"]
    assert x.redistribute(x.layout, out=x) is x
    same(x.to_global(), array)
    for dtype in DTYPES:
        x = DistTensor.from_global(index_array(dtype), "block[(0),()]", comm, grid)
        y = x.redistribute("[(1),(0)]")
        same(y.local, DistTensor.from_global(index_array(dtype), "[(1),(0)]", comm, grid).local)


def check_other_grids(comm: Comm, part: str) -> None:
    """Any layout to any other on another grid over the same ranks, given in any form; another number is refused."""
    size, last = comm.size, comm.size - 1
    grid, line = GRIDS[size], (size,)
    texts = ["[(0),()]", "block[(),(0)]", "[(),()]", "[(),(0:cyclic(2))]", "(a b): block[(0)]", "b a: [(0),()]"]
    texts += [f"[(),()]|(0@{last})", "[(),()]+(0)", "[(),()]+max(0)", "(a c=3) b: [(),(0),()]"]
    array = index_array("i4")
    for a, b in share(product(layouts(grid), texts), part, EVERY, comm.size, of=3):
        x = DistTensor.from_global(array, a, comm, grid)
        before = x.local.copy()
        y = x.redistribute(b, grid=line)
        assert (y.grid.shape, y.layout, y.comm) == (line, rote.parse(b), x.comm)
        same(y.to_global(), array)
        want = DistTensor.from_global(array, b, comm, line)
        if "+" not in b:
            same(y.local, want.local)
        same(x.local, before)
        assert not np.shares_memory(x.local, y.local) and x.grid.shape == grid
        out = DistTensor.zeros(SHAPE, b, comm, line, "i4")
        assert x.redistribute(b, out, line) is out
        same(out.local, y.local)
        z = y.redistribute(a, grid=rote.Grid(grid))
        assert z.distribution == x.distribution
        same(z.to_global(), array)
    x = DistTensor.from_global(array, "block[(0),()]", comm, line)
    assert x.redistribute("[(),(0)]", grid=size).distribution == x.redistribute("[(),(0)]").distribution
    blocks = [index_array() * (rank + 1) for rank in range(size)]
    p = DistTensor.from_local(blocks[comm.rank], "[(),()]+(0)", SHAPE, comm, line)
    same(p.redistribute("block[(0),(1)]", grid=grid).to_global(), sum(blocks, np.zeros(SHAPE, "i8")))
    for wrong in ((size + 1,), (2, size), (size, size + 1)):
        agreed_error(comm, f"PlanError: a plan stays on its ranks: the source is on grid {size} of {size}, the target",
                     x.redistribute, "[(),(0)]", grid=wrong)  # fmt: skip
    refused("names grid mode 1", x.redistribute, "[(0),(1)]")
    refused("names grid mode 1", x.redistribute, "[(0),(1)]", grid=line)
    refused("out is", x.redistribute, "block[(0),()]", x, grid)
    same(x.redistribute("block[(0),(1)]", grid=grid).to_global(), array)  # and the next one works


def check_ownership(comm: Comm) -> None:
    """Constructors that copy, copy; from_local wraps; what a method returns shares memory only as in NumPy."""
    array = index_array("f8")
    x = DistTensor.from_global(array, "[(),()]", comm)
    assert not np.shares_memory(x.local, array)
    block = np.zeros(x.local.shape)
    assert np.shares_memory(DistTensor.from_local(block, x.layout, SHAPE, comm, x.grid).local, block)
    table = np.ones(SHAPE)
    f = DistTensor.from_function(lambda i, j: table, SHAPE, "[(),()]", comm)
    assert not np.shares_memory(f.local, table)
    once, twice = x.to_global(), x.to_global()
    made = [x.redistribute(x.layout), x.copy(), x.astype("f8"), x.conj(), +x, x + 0]
    blocks = [x.local, once, twice, *(y.local for y in made)]
    assert not any(np.shares_memory(a, b) for n, a in enumerate(blocks) for b in blocks[:n])
    x.local[...] = -1
    same(once, array)
    assert all((y.local == array).all() for y in made)
    z = x.astype("c16")
    z.imag[...], z.real[...] = z.real, 2
    same(z.to_global(), np.full(SHAPE, 2 - 1j))


def check_ufuncs(comm: Comm, part: str) -> None:
    """Operators and ufuncs act on blocks: the same as on the whole array, dtype and all; rooted and viewed too."""
    grid = GRIDS[comm.size]
    a, b = index_array("f8") - 7, index_array("i4") + 1
    for text in share(layouts(grid), part, 5, comm.size, of=2):
        if "+" in text:
            continue
        x, y = DistTensor.from_global(a, text, comm, grid), DistTensor.from_global(b, text, comm, grid)
        pairs: list[tuple[DistTensor, Array]] = [
            (x + y, a + b), (x - 2, a - 2), (2 - x, 2 - a), (x * y, a * b), (x / y, a / b), (x // y, a // b),
            (x % y, a % b), (y**2, b**2), (-x, -a), (abs(x), abs(a)), (+y, +b), (~y, ~b), (y & 3, b & 3),
            (y << 1, b << 1),
            (x < y, a < b), (x <= 0, a <= 0), (x == y, a == b), (x != 3, a != 3), (x < 0, a < 0), (x >= y, a >= b),
            (np.exp(1j * x), np.exp(1j * a)), (np.maximum(x, y), np.maximum(a, b)),
            (np.float32(2) * x, np.float32(2) * a),
            (np.add(y, 1, dtype="c8"), np.add(b, 1, dtype="c8")), (x.conj(), a), (x.real, a), (x.imag, a * 0),
            (np.isfinite(x), np.isfinite(a)), (x.astype("g"), a.astype("g")), (np.array(2.0) * x, 2 * a),
        ]  # fmt: skip
        for got, want in pairs:
            assert got.distribution == x.distribution
            same(got.to_global(), want)
        for got, want in zip(divmod(x, y), divmod(a, b), strict=True):
            same(got.to_global(), want)
        for got, want in zip(np.frexp(x), np.frexp(a), strict=True):
            same(got.to_global(), want)
        kept, block = x, x.local
        x += y
        x *= 2
        assert x is kept and x.local is block
        same(x.to_global(), (a + b) * 2)
        np.subtract(x, 1, out=x)
        same(x.to_global(), (a + b) * 2 - 1)
        q = DistTensor.zeros(SHAPE, text, comm, grid)
        first, second = np.divmod(x, 4, out=(q, None))
        assert first is q
        same(second.to_global(), ((a + b) * 2 - 1) % 4)
        np.multiply(x, 0, out=x, where=x > 5)
        assert (x.to_global() <= 5).all()
    s = DistTensor.from_global(1 + 2j, "[]", comm, comm.size)  # of order 0, a block stays an array
    for z in (s * 2, s.conj(), s.real, abs(s), s.astype("c8"), *np.modf(s.real)):
        assert isinstance(z, DistTensor) and isinstance(z.local, np.ndarray) and z.local.shape == ()


def check_refusals(comm: Comm) -> None:
    """What would gather silently, move where that is forbidden, or misread is refused on every rank, with a cure."""
    grid = GRIDS[comm.size]
    x = DistTensor.from_global(index_array("f8"), "[(0),()]", comm, grid)
    twice = 2 * index_array("f8")
    for y in (x.redistribute("[(),(0)]"), DistTensor.from_global(twice / 2, "[(),(0)]", comm, (*grid[::-1], 1))):
        with rote.config(implicit="error"):
            if x.distribution.meaning != y.distribution.meaning and rote.compile(y.distribution, x.distribution).steps:
                moves = rote.compile(y.distribution, x.distribution).cost.bytes
                if moves:
                    refused("move operand 2 by x.redistribute('[(0),()]'", np.add, 1.0, y, out=x)
        with rote.config(implicit="allow"):
            same((x + y).to_global(), twice)
    refused("do not broadcast", np.add, x, DistTensor.zeros((6, 4), "[(0),()]", comm, grid))
    refused("one communicator", np.add, x, DistTensor.zeros(SHAPE, "[(0),()]", comm.split(0, comm.rank), grid))
    for other in (index_array("f8"), [1.0] * SHAPE[1], np.ones((1, 1))):
        same(np.add(x, other).to_global(), twice / 2 + other)
        same(np.add(other, x).to_global(), twice / 2 + other)
    refused("give a tensor as out=", np.add, x, 1, out=np.zeros(SHAPE))
    for gather in (np.asarray, np.array, np.float64):
        refused("x.to_global()", gather, x)
    refused("write (x.reshape(-1, 8)", np.packbits, x, error=TypeError)
    for op in ("", "max", "prod"):
        p = DistTensor.zeros(SHAPE, f"[(),()]+{op}(0,1)", comm, (comm.size, 1))
        with rote.config(implicit="allow"):
            same((p + 1).to_global(), np.ones(SHAPE))
            same(p.astype("i4").to_global(), np.zeros(SHAPE, "i4"))
            assert np.add(1.0, x, out=p) is p
            same(p.to_global(), twice / 2 + 1)
        p = DistTensor.zeros(SHAPE, p.layout, comm, (comm.size, 1))
        same(p.copy().to_global(), np.zeros(SHAPE))
    refused("ambiguous", bool, x == x, error=ValueError)
    refused("unhashable", hash, x, error=TypeError)
    refused("", lambda: x @ x, error=ValueError)
    same(np.add.reduce(x).to_global(), index_array("f8").sum(axis=0))
    x = DistTensor.zeros(SHAPE, "[(0),()]", comm, grid)
    refused("no length", len, DistTensor.zeros((), "[]", comm, comm.size), error=TypeError)
    assert len(x) == SHAPE[0] and x.ndim == 2

    refused("order 3", DistTensor.from_global, index_array(), "[(0),(),()]", comm)
    refused("grid mode 5", DistTensor.zeros, SHAPE, "[(5),()]", comm, grid)
    refused("float16", DistTensor.zeros, SHAPE, "[(0),()]", comm, None, "f2", error=rote.RoteError)
    refused("object", DistTensor.from_global, np.array([None]), "[()]", comm, error=rote.RoteError)
    refused("shape", DistTensor.zeros, (2.5, 1), "[(0),()]", comm)
    refused("ranks", DistTensor.zeros, SHAPE, "[(0),()]", comm, comm.size + 1, error=CommError)
    refused("ranks", DistTensor.from_global, index_array(), "[(0),()]", comm, (2, comm.size), error=CommError)
    refused("communicator", DistTensor.zeros, SHAPE, "[(0),()]", 3, error=CommError)
    refused("(", DistTensor.zeros, SHAPE, "[(0,()]", comm, error=rote.NotationError)

    refused("out is", x.redistribute, "[(),(0)]", out=x)
    refused("float32", x.redistribute, "[(),(0)]", out=DistTensor.zeros(SHAPE, "[(),(0)]", comm, grid, "f4"))
    refused("(6, 4)", x.redistribute, "[(),(0)]", out=DistTensor.zeros((6, 4), "[(),(0)]", comm, grid))
    refused("order 1", x.redistribute, "[(0)]")
    c = DistTensor.from_global(index_array("c16"), "[(),()]+max(0)", comm, comm.size)
    if comm.size > 1:
        refused("max", c.to_global, error=rote.RoteError)


def check_agreement(comm: Comm) -> None:
    """What one rank alone gets wrong is the same error on all ranks, and the next call works."""
    last = comm.size - 1

    def fails(i: Array) -> Array:
        if comm.rank == last:
            raise KeyError(f"no value on rank {comm.rank}")
        return i

    agreed_error(comm, f"KeyError: 'no value on rank {last}'", DistTensor.from_function, fails, 7, "[(0)]", comm)
    wrong = np.zeros((3, 1) if comm.rank == last else (2, 5))
    agreed_error(comm, f"rank {last} holds a block of (2, 5)", DistTensor.from_local, wrong, "[(),()]", (2, 5), comm)
    bad = np.zeros(3) if comm.rank else np.array([None] * 3)
    agreed_error(comm, "object", DistTensor.from_local, bad, "[()]", 3, comm)
    same_shape = DistTensor.from_function(lambda i: i, 7, "[(0)]", comm)
    same(same_shape.to_global(), np.arange(7))
    if last == 0:
        return
    mine = np.zeros(3, "f8" if comm.rank == last else "f4")
    agreed_error(comm, "float32", DistTensor.from_local, mine, "[()]", 3, comm)
    agreed_error(comm, "int64", DistTensor.from_function, lambda i: i * (1.5 if comm.rank else 2), 7, "[(0)]", comm)
    agreed_error(comm, "(3,)", DistTensor.from_global, np.zeros(4 if comm.rank == last else 3), "[(0)]", comm)
    text = "[(0)]" if comm.rank else "block[(0)]"
    agreed_error(comm, "block[(0)]", DistTensor.from_global, np.zeros(3), text, comm)
    agreed_error(comm, "ValueError", DistTensor.from_function, lambda i: np.zeros(99), 7, "[(0)]", comm)
    agreed_error(comm, "NotationError", DistTensor.from_global, np.zeros(3), "[(0)" if comm.rank else "[(0)]", comm)
    same(DistTensor.zeros(3, "[(0)]", comm).to_global(), np.zeros(3))


def check_communicators(comm: Comm) -> None:
    """Without a comm: all ranks; a part of the ranks has tensors of its own, beside those of the whole."""
    assert DistTensor.zeros(SHAPE, "[(0),()]").comm is comm
    for text, grid in (("[(0),()]", rote.Grid.of(comm.size, 1)), ("[(0),(1)]", rote.Grid.of(comm.size, 2))):
        assert DistTensor.zeros(SHAPE, text, comm).grid == grid
    assert DistTensor.zeros(SHAPE, "[(),()]", comm).grid == rote.Grid((comm.size,))
    assert DistTensor.zeros(SHAPE, "[(0),()]", comm, comm.size).grid == rote.Grid((comm.size,))
    half = comm.split(comm.rank % 2, -comm.rank)
    x = DistTensor.from_global(index_array() * (1 + comm.rank % 2), "block[(0),()]", half)
    whole = DistTensor.from_global(index_array(), "block[(0),()]", comm)
    assert (x.comm, x.grid.size) == (half, half.size)
    for _ in range(3):
        same(x.redistribute("[(),(0)]").to_global(), index_array() * (1 + comm.rank % 2))
        same(whole.redistribute("[(),(0)]").to_global(), index_array())


def check_text(comm: Comm) -> None:
    """repr and the notebook's HTML say layout, shape, dtype, grid and this rank's block; only this rank speaks."""
    grid = GRIDS[comm.size]
    x = DistTensor.zeros(SHAPE, "block[(0),(1)]", comm, grid, "f4")
    local = x.distribution.local_shape(comm.rank)
    assert repr(x) == (f"DistTensor((6, 5), float32, 'block[(0),(1)]', grid={grid}, rank={comm.rank}, local={local})")
    page = x._repr_html_()
    ranks = f"{comm.size} rank{'s' * (comm.size > 1)}<"
    says = ("<table>", "<code>block[(0),(1)]</code>", "float32", ranks, f"rank {comm.rank} ", str(local))
    for part in (*says, f"{x.local.nbytes:,} bytes"):
        assert part in page, (part, page)
    for name in ("div", "table", "tr", "th", "td"):
        assert page.count(f"<{name}>") + page.count(f"<{name} ") == page.count(f"</{name}>")
    viewed = DistTensor.zeros((2,), "a: [()]+max(0)", comm, comm.size)._repr_html_()
    assert "<code>[()]+max(0)</code>" in viewed
    assert "rank" in DistTensor.zeros((), "[]", comm, comm.size)._repr_html_()


def check_lives(comm: Comm, part: str) -> None:
    """8,000 tensors made, redistributed and dropped, over more plans than are kept: no memory, no communicators.

    In a quick run they are 1,000.
    """
    grids = [grid for grid in ((comm.size,), (comm.size, 1), (1, comm.size), (1, comm.size, 1)) if comm.size > 1] or [
        (1,)
    ]

    def turn(number: int) -> None:
        grid = grids[number % len(grids)]
        g = max(range(len(grid)), key=lambda k: grid[k])
        rows = 64 + number % 100  # more shapes than the programs that a communicator keeps
        x = DistTensor.zeros((rows, 32), f"block[({g}),()]", comm, grid)  # 16 KB or more over all ranks
        y = x.redistribute(f"block[(),({g})]")
        if number % 16 == 0:
            assert y.to_global().shape == (rows, 32)

    for number in range({SOME: 100, REST: 400}[part]):
        turn(number)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range({SOME: 400, REST: 3600}[part]):  # two tensors each
        turn(number)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * (1 if sys.platform == "darwin" else 1024) < {SOME: 8e6, REST: 16e6}[part], f"{grown} KB more"
    assert len(comm.cache["programs"]) <= 64


CHECKS: list[Callable[..., None]] = [
    check for name, check in globals().items() if name.startswith("check_") and name != "check_lives"
]


def mpi4py_communicators(number: int) -> None:
    """A communicator of mpi4py's is taken as it is; tensors on a freed one are refused, and none leak."""
    from mpi4py import MPI

    everybody = MPI.COMM_WORLD
    x = DistTensor.from_global(index_array(), "block[(0),()]", everybody)
    assert x.comm is world()
    same((x + DistTensor.from_global(index_array(), "block[(0),()]")).to_global(), 2 * index_array())
    f = rote.fft.FFT(SHAPE, comm=everybody)
    same(f.backward(f.forward(x.astype("D"))).to_global().real.round(), index_array("f8"))
    half = everybody.Split(everybody.rank % 2, 0)
    y = DistTensor.from_global(index_array(), "[(0),()]", half)
    assert y.grid.size == half.size
    same(y.redistribute("[(),(0)]").to_global(), index_array())
    half.Free()
    if y.grid.size > 1:  # alone, a rank needs no messages
        refused("freed", y.redistribute, "[(0:block),()]", error=CommError)
    for _ in range(number):
        user = everybody.Dup()
        z = DistTensor.from_global(index_array(), "[(0),(1)]", user)
        same(z.redistribute("[(1),(0)]").to_global(), index_array())
        user.Free()


if __name__ == "__main__":
    comm, part = world(), sys.argv[1]
    if part == "lives":
        check_lives(comm, REST)
        made = 1
    else:
        made = run_checks(CHECKS, comm, part)
        mpi4py_communicators(30 if part == SOME else 300)
    if comm.rank == 0:
        print(f"{made} checks on {comm.size} ranks")
