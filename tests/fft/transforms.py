"""What every parallel transform must do, as functions of a communicator: run on in-process ranks and under mpiexec.

No check gathers a result to judge it: every rank compares its own block with the part of `numpy.fft`'s result that the
distribution's indices name. Run as a program, `python transforms.py some|rest`, it makes the checks of that part on the
world and prints one line of JSON.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import count, cycle, groupby
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from parts import SOME, run_checks, share

import rote
from rote import DistTensor, GatherWarning
from rote.errors import LayoutError, RoteError
from rote.fft import FFT, fftn, ifftn, irfftn, rfftn
from rote.fft.transforms import complex_dtype, real_dtype
from rote.runtime import Comm, world

Array = NDArray[Any]
Case = tuple[tuple[int, ...], str, tuple[int, ...]]

GRIDS = {
    1: ((1,), (1, 1), (1, 1, 1)),
    2: ((2,), (1, 2), (1, 2, 1)),
    3: ((3,), (3, 1), (1, 1, 3)),
    4: ((4,), (2, 2), (2, 1, 2)),
    6: ((6,), (3, 2), (1, 3, 2)),
    8: ((8,), (2, 4), (2, 2, 2)),
}
NORMS = (None, "backward", "ortho", "forward")
EVERY = 31  # of so many transforms a quick run makes one, on each number of ranks another
COMPLEX = ("D", "F", "G")
REAL = ("d", "f", "g", "i", "?", "B")  # integers and bool are taken as double


def sized(n: int, parts: int) -> str:
    """A kind that gives the sizes part by part: uneven, with parts of nothing among them."""
    sizes = [n // 3, *(0,) * (parts - 2), n - n // 3] if parts > 1 else [n]
    return f"block({','.join(map(str, sizes))})"


def cases(ranks: int) -> Iterator[Case]:
    """Shapes, layouts and grids: order 1 to 5, odd, prime, tiny, smaller than the grid; all kinds, alone and mixed."""
    g1, g2, g3 = GRIDS[ranks]
    for shape in ((1,), (2,), (7,), (12,)):
        yield shape, "block[(0)]", g1
    yield (13,), "[(0)]", g1
    yield (9,), "[(0:cyclic(2))]", g1
    yield (11,), f"[(0:{sized(11, ranks)})]", g1
    yield (10,), "[(0,1:block)]", g2
    yield (6,), "[()]", g1
    yield (5, 7), "block[(0),()]", g1
    yield (6, 5), "[(),(0)]", g1
    yield (1, 2), "block[(0),()]", g1
    yield (2, 1), "[(),(0:block)]", g1
    yield (1, 1), "[(0),(1)]", g2
    yield (3, 2), "block[(0),(1)]", g2
    yield (13, 4), "[(0:cyclic(3)),(1:block)]", g2
    yield (9, 8), f"[(0:{sized(9, g2[0])}),(1:{sized(8, g2[1])})]", g2
    yield (5, 6), "block[(1,0),()]", g2
    yield (5, 4), "block[(0),()]|(1)", g2
    yield (4, 5, 6), "block[(0),(),()]", g1
    yield (7, 3, 5), "block[(0),(1),()]", g2
    yield (4, 5, 7), "block[(1),(),(0)]", g2
    yield (4, 5, 6), "[(0,1),(),()]", g2
    yield (3, 5, 4), "[(),(0:block(5)),(1)]", g2
    yield (1, 6, 2), "block[(0),(1),()]", g2
    yield (5, 2, 3), "[(0),(1),(2)]", g3
    yield (4, 3, 2), "[(),(),()]", g1
    yield (3, 4, 2, 5), "block[(0),(1),(2),()]", g3
    yield (3, 4, 5, 6), "[(0:cyclic(2)),(1),(2:block),()]", g3
    yield (2, 3, 4, 3), "block[(),(),(0),(1)]", g2
    yield (2, 3, 2, 3, 2), "block[(0),(1),(2),(),()]", g3
    yield (3, 1, 2, 2, 3), "[(),(0,2),(),(1:block),()]", g3


def some_axes(shape: tuple[int, ...]) -> list[tuple[int, ...] | None]:
    """Three of: all axes, one, negative ones, in another order, a subset; others for another shape.

    The order of NumPy's `axes` says which one is real.
    """
    order = len(shape)
    found: list[tuple[int, ...] | None] = [None, (0,), (-1,)]
    if order > 1:
        found += [(1, 0), (-2, -1)]
    if order > 2:
        found += [(2, 0), (0, 2), (1,)]
    turn = sum(shape) % len(found)
    return (found[turn:] + found[:turn])[:3]


Transform = tuple[int, tuple[int, ...], str, tuple[int, ...], tuple[int, ...] | None, str | None, str]


def transforms(ranks: int, part: str, norms: tuple[str | None, ...], codes: tuple[str, ...]) -> list[Transform]:
    """Cases along three sets of axes each, with norms and dtypes in turn, numbered: this part of them.

    On each number of ranks these are a third, other ones on 1, 2 and 3; of the rest of them one in three is made.
    """
    problems = [(*case, axes) for case in cases(ranks) for axes in some_axes(case[0])]
    turns = zip(count(), problems, cycle(norms), cycle(codes), strict=False)
    world = share([(number, *request, norm, code) for number, request, norm, code in turns], SOME, 1, ranks)
    return share(world, part, 3 * EVERY // 4, ranks, of=3)


@cache
def values(shape: tuple[int, ...], code: str) -> Array:
    """The same numbers on every rank, different at every index; nobody may write into them."""
    rng = np.random.default_rng([*shape, len(shape)])
    real = rng.standard_normal(shape)
    dtype = np.dtype(code)
    if dtype.kind == "c":
        found = (real + 1j * rng.standard_normal(shape)).astype(dtype)
    elif dtype.kind == "f":
        found = real.astype(dtype)
    else:
        found = (np.abs(real) * 9 + 1).astype(int).astype(dtype)
    found = found * dtype.type(3) / dtype.type(7) if dtype.char in "gG" else found  # more digits than a double has
    found.flags.writeable = False
    return found


@cache
def reference(name: str, shape: tuple[int, ...], code: str, axes: Any, norm: Any, last: int = 0) -> Array:
    """What numpy.fft gives for `values(shape, code)`; `last` is the real extent that irfftn restores."""
    array = values(shape, code)
    if name != "irfftn":
        return np.asarray(getattr(np.fft, name)(array, axes=axes, norm=norm))
    named = range(len(shape)) if axes is None else axes
    extents = [shape[a] for a in named][:-1]
    return np.asarray(np.fft.irfftn(array, s=[*extents, last], axes=tuple(named), norm=norm))


def same(got: DistTensor, want: Array) -> None:
    """Shape, dtype and this rank's block, to a few rounding errors per FFT level."""
    assert (got.shape, got.dtype) == (want.shape, want.dtype), (got, want.shape, want.dtype)
    close(got, want, 8 * np.finfo(want.dtype).eps * (2 + log2(max(want.size, 1))))


def close(got: DistTensor, want: Array, tolerance: float) -> None:
    """This rank's block against the part of the whole that its distribution says, relative to the largest number."""
    dist, rank = got.distribution, got.comm.rank
    assert got.local.shape == dist.local_shape(rank)
    if got.local.size:
        wanted = want[np.ix_(*dist.indices(rank))] if want.ndim else want
        error = np.abs(got.local - wanted).max() / max(np.abs(want).max(), np.finfo(want.dtype).tiny)
        assert error <= tolerance, (got, error, tolerance)


def check_complex(comm: Comm, part: str) -> None:
    """fftn and ifftn are numpy.fft's, along any axes, in any norm and dtype; the input keeps its values."""
    codes = (*COMPLEX, "d", "D", *REAL)
    for _, shape, layout, grid, axes, norm, code in transforms(comm.size, part, NORMS, codes):
        x = DistTensor.from_global(values(shape, code), layout, comm, grid)
        before = x.local.copy()
        same(fftn(x, axes=axes, norm=norm), reference("fftn", shape, code, axes, norm))
        same(ifftn(x, axes=axes, norm=norm), reference("ifftn", shape, code, axes, norm))
        assert np.array_equal(x.local, before)


def check_real(comm: Comm, part: str) -> None:
    """rfftn halves the last of the axes as numpy.fft's does, for extents 1 and 2 too."""
    for _, shape, layout, grid, axes, norm, code in transforms(comm.size, part, NORMS, REAL):
        x = DistTensor.from_global(values(shape, code), layout, comm, grid)
        before = x.local.copy()
        same(rfftn(x, axes=axes, norm=norm), reference("rfftn", shape, code, axes, norm))
        assert np.array_equal(x.local, before)


def check_real_inverse(comm: Comm, part: str) -> None:
    """irfftn restores odd and even extents as numpy.fft's does, also of what is no spectrum of anything real."""
    for number, shape, layout, grid, axes, norm, code in transforms(comm.size, part, NORMS, (*COMPLEX, "D", "d")):
        named = tuple(range(len(shape))) if axes is None else axes
        half = shape[named[-1]]
        last = max(2 * (half - 1) + number % 2, 1)
        X = DistTensor.from_global(values(shape, code), layout, comm, grid)
        before = X.local.copy()
        s = [*(shape[a] for a in named[:-1]), last]
        same(irfftn(X, s=s, axes=axes, norm=norm), reference("irfftn", shape, code, axes, norm, last))
        if last == 2 * (half - 1):
            same(irfftn(X, axes=axes, norm=norm), reference("irfftn", shape, code, axes, norm, last))
        assert np.array_equal(X.local, before)


def check_round_trips(comm: Comm, part: str) -> None:
    """The inverse of the transform is the tensor, to 1e-12 log2 N."""
    for shape, layout, grid in share(cases(comm.size), part, EVERY, comm.size, of=3):
        array = values(shape, "d")
        x = DistTensor.from_global(array, layout, comm, grid)
        tolerance = 1e-12 * (1 + log2(array.size))
        close(ifftn(fftn(x)), array.astype("D"), tolerance)
        axes = tuple(range(len(shape)))
        close(irfftn(rfftn(x), s=shape, axes=axes), array, tolerance)


def check_objects(comm: Comm, part: str) -> None:
    """FFT objects are numpy.fft's fftn or rfftn forward, and lead back to tensor and layout."""
    options = cycle([("D", None), ("d", "ortho"), ("f", "forward"), ("F", "backward"), ("g", "ortho"), ("G", None)])
    turns = zip(cases(comm.size), options, strict=False)
    found = [(*case, *option, axes) for case, option in turns for axes in some_axes(case[0])[:2]]
    for shape, layout, grid, code, norm, axes in share(found, part, EVERY, comm.size, of=3):
        f = FFT(shape, layout, grid, comm, code, axes, norm=norm)
        x = DistTensor.from_global(values(shape, code), f.input_layout, comm, grid)
        name = "fftn" if code in COMPLEX else "rfftn"
        X = f.forward(x)
        same(X, reference(name, shape, code, axes, norm))
        assert X.layout == f.output_layout
        kept = X.local.copy()
        back = f.backward(X)
        assert back.distribution == x.distribution
        same(back, values(shape, code))
        assert np.array_equal(X.local, kept)


def check_output(comm: Comm, part: str) -> None:
    """output= lays the result out as asked; without it the walk's own end, the cheapest, stays."""
    g1, g2, _ = GRIDS[comm.size]
    shape, functions = (5, 6, 4), {"fftn": fftn, "rfftn": rfftn, "ifftn": ifftn, "irfftn": irfftn}
    ends = ("[(),(),(0)]", "[(),(),()]")
    world = [
        (layout, grid, arguments, name)
        for layout, grid, other in (
            ("block[(0),(1),()]", g2, "block[(),(0),()]|(1)"),
            ("block[(0),(),()]", g1, "[(),(0),()]"),
        )
        for arguments in (layout, *ends, other)
        for name in functions
    ]
    for layout, grid, arguments, name in share(world, part, 7, comm.size):
        x = DistTensor.from_global(values(shape, "d"), layout, comm, grid)
        got = functions[name](x, output=arguments)
        assert got.layout == rote.parse(arguments)
        last = 2 * (shape[-1] - 1) if name == "irfftn" else 0
        same(got, reference(name, shape, "d", None, None, last))


def check_out(comm: Comm) -> None:
    """out= is written into and returned, contiguous or not; without it every call gives memory of its own."""
    grid = GRIDS[comm.size][1]
    shape = (6, 5, 4)
    for code in ("D", "d"):
        f = FFT(shape, "block[(0),(1),()]", grid, comm, code)
        x = DistTensor.from_global(values(shape, code), f.input_layout, comm, grid)
        y = DistTensor.from_global(values(shape, code)[::-1], f.input_layout, comm, grid)
        name = "fftn" if code == "D" else "rfftn"
        want = reference(name, shape, code, None, None)
        other = np.asarray(getattr(np.fft, name)(values(shape, code)[::-1]))
        X, Y = f.forward(x), f.forward(y)
        same(X, want)
        same(Y, other)
        assert not any(np.shares_memory(a, b) for a, b in ((X.local, Y.local), (X.local, x.local)))
        for out in (DistTensor.empty(Y.shape, Y.layout, comm, grid, Y.dtype), strided(Y), shifted(Y)):
            assert f.forward(x, out=out) is out and f.forward(x, out) is out
            same(out, want)
        back = strided(x)
        assert f.backward(X, out=back) is back
        same(back, values(shape, code))
        same(X, want)
    whole = FFT((4, 6), "[(),()]", None, comm)  # a walk that ends where it began may work in place
    x = DistTensor.from_global(values((4, 6), "D"), "[(),()]", comm)
    assert whole.forward(x, out=x) is x
    same(x, reference("fftn", (4, 6), "D", None, None))


def check_functions_own_their_results(comm: Comm) -> None:
    """Results of the functions share no memory with each other, with the input or with what is kept for next time."""
    shape, grid = (5, 6), GRIDS[comm.size][0]
    for layout in ("block[(0),()]", "[(),()]"):
        x = DistTensor.from_global(values(shape, "D"), layout, comm, grid)
        first = fftn(x)
        kept = first.local.copy()
        second = fftn(x * 2)
        third = fftn(x, axes=())
        assert np.array_equal(first.local, kept)
        assert not np.shares_memory(first.local, second.local) and not np.shares_memory(x.local, third.local)
        first.local[...] = 7
        same(fftn(x), reference("fftn", shape, "D", None, None))
        same(third, values(shape, "D"))


def strided(x: DistTensor) -> DistTensor:
    """The same tensor over a block that is not contiguous."""
    wide = np.zeros(tuple(2 * n for n in x.local.shape), x.dtype)
    block = wide[tuple(slice(None, None, 2) for _ in x.local.shape)]
    block[...] = x.local
    return DistTensor.from_local(block, x.layout, x.shape, x.comm, x.grid)


def transposed(x: DistTensor) -> DistTensor:
    """The same tensor over a block in Fortran's order, which nobody may write into."""
    block = np.asfortranarray(x.local)
    block.flags.writeable = False
    return DistTensor.from_local(block, x.layout, x.shape, x.comm, x.grid)


def shifted(x: DistTensor) -> DistTensor:
    """The same tensor over memory that starts at an odd byte."""
    memory = np.zeros(x.local.nbytes + 1, "u1")
    block = memory[1:].view(x.dtype).reshape(x.local.shape)
    block[...] = x.local
    return DistTensor.from_local(block, x.layout, x.shape, x.comm, x.grid)


def wide_strides(x: DistTensor) -> DistTensor:
    """The same tensor where modes of local extent 1 have strides of their own, which NumPy calls contiguous."""
    wide = np.zeros(tuple(3 * n if n == 1 else n for n in x.local.shape), x.dtype)
    block = wide[tuple(slice(None, None, 3) if n == 1 else slice(None) for n in x.local.shape)]
    block[...] = x.local
    return DistTensor.from_local(block, x.layout, x.shape, x.comm, x.grid)


def check_any_memory(comm: Comm) -> None:
    """Blocks of any strides, order, alignment and permission are transformed alike."""
    grid = GRIDS[comm.size][0]
    for shape, code in (((5, 4, 3), "D"), ((1, 4, 1), "D"), ((comm.size, 3), "d"), ((1,), "G"), ((comm.size, 3), "f")):
        text = f"block[(0){',()' * (len(shape) - 1)}]"
        x = DistTensor.from_global(values(shape, code), text, comm, grid)
        for make in (strided, transposed, shifted, wide_strides):
            y = make(x)
            same(fftn(y), reference("fftn", shape, code, None, None))
            if code in COMPLEX:
                last = max(2 * (shape[-1] - 1), 1)
                s = [*shape[:-1], last]
                found = irfftn(y, s=s, axes=tuple(range(len(shape))))
                same(found, reference("irfftn", shape, code, None, None, last))
            assert np.array_equal(y.local, x.local)


def check_order_0(comm: Comm) -> None:
    """A tensor of order 0 has no axis to transform; its transform along none is itself, as numpy.fft says."""
    x = DistTensor.from_global(2.5, "[]", comm, comm.size)
    for transform in (fftn, ifftn):
        got = transform(x)
        assert (got.shape, got.dtype, got.local.shape) == ((), np.dtype("c16"), ()) and got.local == 2.5
    refused("at least one axis", rfftn, x)
    refused("at least one axis", irfftn, x)


def axis_by_axis(along: Callable[[Array, int], Array], array: Array, axes: Sequence[int]) -> Array:
    """A transform of real arrays along some axes, in long double; of complex ones that of either part."""
    if array.dtype.kind == "c":
        real, imaginary = (axis_by_axis(along, part, axes) for part in (array.real, array.imag))
        return (real + imaginary * np.clongdouble(1j)).astype(complex_dtype(array.dtype))
    wide = array.astype("g")
    for axis in axes:
        wide = along(wide, axis)
    return wide.astype(real_dtype(array.dtype))


def refused(
    says: str | tuple[str, ...],
    call: Callable[..., object],
    *args: Any,
    error: type[Exception] = LayoutError,
    **kwargs: Any,
) -> None:
    """A call is refused, with these words in the text."""
    parts = (says,) if isinstance(says, str) else says
    try:
        call(*args, **kwargs)
    except error as said:
        assert isinstance(said, RoteError)
        assert all(part in str(said) for part in parts), (str(said), parts)
    else:
        raise AssertionError(f"not refused: {parts}")


def check_refusals(comm: Comm) -> None:
    """Bad input is refused on every rank, before any message, with the rule and the values."""
    g1, g2, _ = GRIDS[comm.size]
    x = DistTensor.zeros((4, 6), "block[(0),()]", comm, g1)
    z = x.astype("c16")
    for transform in (fftn, ifftn, rfftn, irfftn):
        refused(("(2,)", "order 2"), transform, x, axes=(2,))
        refused("-3", transform, x, axes=-3)
        refused(("integers", "'0'"), transform, x, axes="0")
        refused("integers", transform, x, axes=(0.0,))
        refused(("backward, ortho, forward", "'orto'"), transform, x, norm="orto")
        refused("order 3", transform, x, output="[(0),(),()]")
        view = DistTensor.zeros((4, 6), "a (b c=2): [(0),(),()]", comm, g1)
        refused(("view", "redistribute"), transform, view)
        fused = DistTensor.zeros((4, 6), "(a b): block[(0)]", comm, g1)
        refused(("view", "redistribute"), transform, fused)
        partial = DistTensor.zeros((4, 6), "[(),()]+(0)", comm, g1)
        refused(("partial", "redistribute"), transform, partial)
        nothing = DistTensor.zeros((0, 6), "[(0),()]", comm, g1)
        refused(("axis 0", "no points"), transform, nothing)
    same(fftn(DistTensor.zeros((0, 6), "[(0),()]", comm, g1), axes=1), np.zeros((0, 6), "D"))
    refused(("rfftn transforms real tensors", "fftn"), rfftn, z)
    refused("at least one axis", rfftn, x, axes=())
    refused(("(10,)", "2 axes"), irfftn, z, s=(10,), axes=(0, 1))
    refused("s=", irfftn, DistTensor.zeros((4, 1), "[(0),()]", comm, g1, "D"))
    refused("(4, 0)", irfftn, DistTensor.zeros((4, 2), "[(0),()]", comm, g1, "D"), s=(4, 0), axes=(0, 1))

    f = FFT((4, 6), "block[(0),()]", g1, comm, "c16")
    refused(("the input", "float64", "complex128"), f.forward, x)
    refused(("[(0),()]", "block[(0),()]"), f.forward, z.redistribute("[(0),()]"))
    refused(("the input", str(f.output_layout)), f.backward, z.redistribute("[(),(0)]"))
    refused(("(4, 7)", "(4, 6)"), f.forward, DistTensor.zeros((4, 7), "block[(0),()]", comm, g1, "D"))
    refused(("out is", str(f.output_layout)), f.forward, z, out=z.redistribute("[(),(0)]"))
    out = DistTensor.empty((4, 6), f.output_layout, comm, g1, "F")
    refused(("out is", "complex64", "complex128"), f.forward, z, out=out)

    refused(("slab", "order 1", str(rote.Grid(g2))), FFT, (4, 5, 6), None, g2, comm, algorithm="slab")
    refused(("pencil", "order 2"), FFT, (4, 5, 6), None, g1, comm, algorithm="pencil")
    refused(("1 grid mode", "names 2"), FFT, (4, 5, 6), "block[(0),(1),()]", g2, comm, algorithm="slab")
    refused("order 1 or less", FFT, (4, 5), None, None, comm, algorithm="pencil")
    refused(("slab, pencil", "'pencl'"), FFT, (4, 5, 6), None, None, comm, algorithm="pencl")
    refused("'up'", FFT, (4, 5, 6), None, None, comm, norm="up")
    refused("(3,)", FFT, (4, 5, 6), None, None, comm, axes=(3,))
    refused(("axis 1", "no points"), FFT, (4, 0, 6), None, None, comm)
    refused("at least one axis", FFT, (4, 6), None, None, comm, "d", axes=())
    refused("partial", FFT, (4, 6), "block[(0),()]+(1)", g2, comm)
    refused("view", FFT, (4, 6), "(a b): [(0)]", g1, comm)
    refused("(", FFT, (4, 6), "[(0),()", g1, comm, error=rote.NotationError)
    refused("float16", FFT, (4, 6), None, None, comm, "f2", error=rote.RoteError)
    refused("ranks", FFT, (4, 6), None, comm.size + 1, comm, error=rote.CommError)


def check_appendix_a(comm: Comm) -> None:
    """Paper 000, appendix A: 42 x 127 x 256 complex on a 2-D grid, forward and backward, j + ji on each rank."""
    grid = rote.Grid.of(comm.size, 2)
    appendix(comm, (42, 127, 256), grid, "block[(0),(1),()]")


def check_appendix_b(comm: Comm) -> None:
    """Paper 000, appendix B: 16 x 17 x 18 x 19 complex on a 3-D grid, forward and backward, j + ji on each rank."""
    grid = rote.Grid.of(comm.size, 3)
    appendix(comm, (16, 17, 18, 19), grid, "block[(0),(1),(2),()]")


def appendix(comm: Comm, shape: tuple[int, ...], grid: rote.Grid, layout: str) -> None:
    f = FFT(shape, layout, grid, comm)
    # Over a grid mode of one coordinate the listings move nothing, and the walk makes no stage of its own.
    sizes = [size for size, _ in groupby(paper_sizes(shape, grid, comm.rank))]
    assert [stage.before.local_shape(comm.rank) for stage in f.walk.stages] == sizes
    x = DistTensor.empty(shape, layout, comm, grid, "c16")
    j = np.arange(x.local.size, dtype="f8").reshape(x.local.shape)
    x.local[...] = j + 1j * j
    X = f.forward(x)
    back = f.backward(X)
    assert np.abs(back.local.real - j).max() < 1e-8 and np.abs(back.local.imag - j).max() < 1e-8
    assert np.array_equal(x.local, j + 1j * j)
    # One rank that has the whole array answers for all that share its memory, or its time.
    whole = x.to_global() if comm.rank == 0 else np.empty(shape, "c16")
    if comm.rank:
        x.to_global()
    want = np.fft.fftn(whole) if comm.rank == 0 else whole
    comm.bcast_in_place(want.reshape(-1), 0)
    same(X, want)


def paper_sizes(shape: tuple[int, ...], grid: rote.Grid, rank: int) -> list[tuple[int, ...]]:
    """The listings' sizesA, sizesB, ...: the mode that is whole goes from the last to the first, in the papers' words.

    `decompose` is listing 1: the first N mod M parts hold one more.
    """
    where = grid.coordinates(rank)

    def lsz(n: int, g: int) -> int:
        return n // grid.shape[g] + (where[g] < n % grid.shape[g])

    found = []
    for whole in reversed(range(len(shape))):
        split = [m for m in range(len(shape)) if m != whole]  # the g-th of these lies over P[g]
        found.append(tuple(n if m == whole else lsz(n, split.index(m)) for m, n in enumerate(shape)))
    return found


def digests(comm: Comm, part: str) -> dict[str, str]:
    """A digest of the bits of some gathered spectra, and of what moves gave: the same on any kind of ranks."""
    found = {}
    kinds = (("D", None), ("d", None), ("f", None), ("d", "dct2"), ("F", "dst3"))
    problems = [(*case, *each) for case in list(cases(comm.size))[::3] for each in kinds]
    for shape, layout, grid, code, kind in share(problems, part, EVERY, comm.size, of=3):
        f = FFT(shape, layout, grid, comm, code, kinds=kind)
        x = DistTensor.from_global(values(shape, code), layout, comm, grid)
        X = f.forward(x)
        for name, y in (("forward", X), ("backward", f.backward(X)), ("move", x.redistribute(f.output_layout))):
            bits = digest(y.to_global())
            assert set(comm.allgather_object(bits)) == {bits}, "replicas differ"
            found[f"{shape} {layout} {code} {f.walk.kind} {kind} {name}"] = bits
    return found


def digest(array: Array) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


CHECKS: list[Callable[..., None]] = [check for name, check in globals().items() if name.startswith("check_")]


if __name__ == "__main__":
    warnings.simplefilter("ignore", GatherWarning)
    comm, part = world(), sys.argv[1]
    checks, bits = run_checks(CHECKS, comm, part), digests(comm, part)
    if comm.rank == 0:
        print(json.dumps({"checks": checks, "ranks": comm.size, "digests": bits}))
