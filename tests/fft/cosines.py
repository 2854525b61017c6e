"""What cosine and sine transforms, and mixed kinds, must do, as functions of a communicator, on any kind of ranks.

The reference is `scipy.fft` in long double, axis by axis. Run as a program, `python cosines.py some|rest`, it makes the
checks of that part on the world and prints how many they were.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import cycle, islice, product
from math import log2
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray
from parts import SOME, report_checks, share
from transforms import COMPLEX, EVERY, GRIDS, NORMS, REAL, cases, refused, transforms, values

from rote import DistTensor, GatherWarning
from rote.fft import FFT, dctn, dstn, idctn, idstn
from rote.fft.transforms import KINDS, complex_dtype, real_dtype
from rote.runtime import Comm, world

Array = NDArray[Any]
FUNCTIONS = {"dctn": dctn, "idctn": idctn, "dstn": dstn, "idstn": idstn}
TRIGONOMETRIC = [row.name for row in KINDS.values() if row.type]
TYPES = (1, 2, 3, 4)


def along(kind: str, array: Array, axis: int, norm: str | None) -> Array:
    """One kind along one axis, by scipy; `kind` may begin with i, for the inverse."""
    name, number = kind.rstrip("1234"), kind[-1]
    options = {"type": int(number)} if number in "1234" else {}
    found: Array = getattr(scipy.fft, name)(array, axis=axis, norm=norm, **options)
    return found


@cache
def reference(shape: tuple[int, ...], code: str, kinds: tuple[tuple[int, str], ...], norm: str | None) -> Array:
    """What scipy gives for `values(shape, code)`: a real axis first, the others in turn, all in long double."""
    array = values(shape, code)
    found = array.astype("G" if array.dtype.kind == "c" else "g")
    for axis, kind in sorted(kinds, key=lambda pair: "rfft" not in pair[1]):
        found = along(kind, found, axis, norm)
    dtype = complex_dtype(code) if found.dtype.kind == "c" else real_dtype(code)
    return found.astype(dtype)


def same(got: DistTensor, want: Array) -> None:
    """Shape, dtype and this rank's block, to a few rounding errors per level."""
    assert (got.shape, got.dtype) == (want.shape, want.dtype), (got, want.shape, want.dtype)
    dist, rank = got.distribution, got.comm.rank
    assert got.local.shape == dist.local_shape(rank)
    if got.local.size:
        wanted = want[tuple(dist.tensor_indices(rank))].reshape(got.local.shape)  # the layout may have a view
        error = np.abs(got.local - wanted).max() / max(np.abs(want).max(), np.finfo(want.dtype).tiny)
        assert error <= 8 * np.finfo(want.dtype).eps * (2 + log2(want.size)), (got, error)


def fits(kinds: Mapping[int, str], shape: tuple[int, ...]) -> bool:
    """Whether type 1 of the cosine has two points or more."""
    return all(shape[axis] > 1 for axis, kind in kinds.items() if kind.endswith("dct1"))


def check_functions(comm: Comm, part: str) -> None:
    """dctn, idctn, dstn and idstn are scipy's, of any type, axes, norm and dtype; the input keeps its values."""
    kinds = cycle(product(FUNCTIONS, TYPES))
    for _, shape, layout, grid, axes, norm, code in transforms(comm.size, part, NORMS, (*COMPLEX, "d", *REAL)):
        x = DistTensor.from_global(values(shape, code), layout, comm, grid)
        before = x.local.copy()
        named = [a % len(shape) for a in (range(len(shape)) if axes is None else axes)]
        for name, number in islice(kinds, 5):
            per_axis = dict.fromkeys(named, f"{name[:-1]}{number}")
            if fits(per_axis, shape):
                got = FUNCTIONS[name](x, type=number, axes=axes, norm=norm)
                same(got, reference(shape, code, tuple(per_axis.items()), norm))
        assert np.array_equal(x.local, before)


def check_small(comm: Comm, part: str) -> None:
    """Types in every norm and dtype, of few points: where the ends of an axis are a large part of it."""
    every = product((1, 2, 3, 4, 7), "dfgD", NORMS[1:], FUNCTIONS, TYPES)
    world = share(every, SOME, 1, comm.size)  # on each number of ranks others
    for n, code, norm, name, number in share(world, part, 25, comm.size, of=3):
        kind = f"{name[:-1]}{number}"
        if fits({0: kind}, (n,)):
            x = DistTensor.from_global(values((n, 2), code), "block[(0),()]", comm)
            got = FUNCTIONS[name](x, type=number, axes=0, norm=norm)
            same(got, reference((n, 2), code, ((0, kind),), norm))


def check_there_and_back(comm: Comm, part: str) -> None:
    """The inverse of a type is its inverse in every norm, and ends in the layout where it began, slab and pencil."""
    g1, g2, _ = GRIDS[comm.size]
    world = product(
        (((5, 6, 4), "block[(0),(),()]", g1), ((5, 6, 7), "block[(0),(1),()]", g2)),
        product(("dctn", "dstn"), TYPES),
        NORMS[1:],
    )
    for (shape, layout, grid), (name, number), norm in share(world, part, EVERY, comm.size, of=3):
        x = DistTensor.from_global(values(shape, "d"), layout, comm, grid)
        X = FUNCTIONS[name](x, type=number, norm=norm)
        back = FUNCTIONS["i" + name](X, type=number, norm=norm)
        assert back.distribution == x.distribution or 1 in grid  # where nothing moves, nothing moves back
        same(back, values(shape, "d"))


def mixtures(comm: Comm) -> Iterator[tuple[Callable[[], FFT], str, dict[int, str], str | None]]:
    """Transforms with a kind for each of some axes, real and complex, in every layout that there is a case of."""
    pick = random.Random(comm.size)
    norms, codes = cycle(NORMS), cycle("dDdFgdfG")
    for (shape, layout, grid), norm, code in zip(cases(comm.size), norms, codes, strict=False):
        for _ in range(3):
            kinds = a_mixture(pick, shape, code)
            yield partial(FFT, shape, layout, grid, comm, code, norm=norm, kinds=kinds), code, kinds, norm
    for shape, algorithm in (((5, 6, 7), "rows"), ((4, 3, 5, 2), "rows"), ((6, 5, 4), "slab"), ((6, 5, 4), "pencil")):
        for norm, code in islice(zip(norms, codes, strict=False), 6):
            kinds = a_mixture(pick, shape, code, every=True)
            f = partial(FFT, shape, None, None, comm, code, algorithm=algorithm, norm=norm, kinds=kinds)
            yield f, code, kinds, norm


def a_mixture(pick: random.Random, shape: tuple[int, ...], code: str, every: bool = False) -> dict[int, str]:
    """A kind for each of some axes, or of every one; of a real tensor there may be one rfft, and fft only then."""
    axes = pick.sample(range(len(shape)), len(shape) if every else pick.randint(1, len(shape)))
    real = axes[0] if code not in COMPLEX and pick.random() < 0.7 else None
    fourier = ["fft"] * 4 if code in COMPLEX or real is not None else []
    kinds = [*fourier, *(kind for kind in TRIGONOMETRIC)]
    found = {a: "rfft" if a == real else pick.choice([k for k in kinds if fits({a: k}, shape)]) for a in axes}
    return {pick.choice((a, a - len(shape))): kind for a, kind in found.items()}


def check_mixed(comm: Comm, part: str) -> None:
    """Kinds per axis are scipy's along each; backward leads to tensor and layout, in every norm, dtype and family."""
    for make, code, kinds, norm in share(mixtures(comm), part, EVERY, comm.size, of=3):
        f = make()
        shape = f.shape
        x = DistTensor.from_global(values(shape, code), f.input_layout, comm, f.grid)
        before = x.local.copy()
        X = f.forward(x)
        same(X, reference(shape, code, tuple(sorted((a % len(shape), kind) for a, kind in kinds.items())), norm))
        assert X.layout == f.output_layout
        assert np.array_equal(x.local, before)
        kept = X.local.copy()
        back = f.backward(X)
        assert back.distribution == x.distribution
        same(back, values(shape, code))
        assert np.array_equal(X.local, kept)
        assert f.forward(x, out=X) is X and np.array_equal(X.local, kept)


def check_one_kind_for_all(comm: Comm, part: str) -> None:
    """kinds= takes one name for all axes, or for those of axes=; rfft halves the last of them."""
    shape, grid = (6, 5, 4), GRIDS[comm.size][1]
    world = product((None, (0, 2), -2, ()), ("dct1", "dct2", "dst3", "fft", "rfft"), "dD")
    for axes, kind, code in share(world, part, 7, comm.size):
        named = range(3) if axes is None else (axes,) if isinstance(axes, int) else axes
        if (kind == "fft" and code == "d" and named) or (kind == "rfft" and (code == "D" or not named)):
            continue
        f = FFT(shape, "block[(0),(1),()]", grid, comm, code, axes, kinds=kind)
        x = DistTensor.from_global(values(shape, code), f.input_layout, comm, grid)
        per_axis = {a % 3: kind for a in named}
        if kind == "rfft":
            per_axis = {a: kind if a == named[-1] % 3 else "fft" for a in per_axis}
        same(f.forward(x), reference(shape, code, tuple(per_axis.items()), None))


def check_texts(comm: Comm) -> None:
    """The text of a walk says its kinds itself; asked for others, it is refused."""
    p = comm.size
    text = "block[(0),(),()]: dct2(2), rfft(1) \n block[(),(),(0)]: dst1(0)"
    f = FFT((6, 5, 4), comm=comm, dtype="d", algorithm=text, norm="ortho")
    assert f.walk.kinds == ("dst1", "rfft", "dct2") and f.walk.sizes == (14, 5, 8)
    x = DistTensor.from_global(values((6, 5, 4), "d"), f.input_layout, comm, f.grid)
    X = f.forward(x)
    same(X, reference((6, 5, 4), "d", ((0, "dst1"), (1, "rfft"), (2, "dct2")), "ortho"))
    same(f.backward(X), values((6, 5, 4), "d"))
    text = "block[(0),()]: dct2(1) \n block[(),(0)]: dct2(0)"
    x = DistTensor.from_global(values((6, 5), "D"), "block[(0),()]", comm, p)
    same(dctn(x, algorithm=text), reference((6, 5), "D", ((0, "dct2"), (1, "dct2")), None))
    refused(("dct2 along axis 0", "dct4 is asked for"), dctn, x, 4, algorithm=text)
    arguments = {0: "dct2", 1: "dst2"}
    refused(("dct2 along axis 1", "dst2 is asked for"), FFT, (6, 5), None, None, comm, algorithm=text, kinds=arguments)


def check_refusals(comm: Comm) -> None:
    """What no transform is made of is refused on every rank, with the rule, the values and the cure."""
    grid = GRIDS[comm.size][0]
    x = DistTensor.zeros((4, 1), "block[(0),()]", comm, grid)
    refused(("dct1 takes two points or more", "axis 1 has 1", "dct2"), dctn, x, 1)
    refused(("dct1 takes two points or more", "axis 1 has 1"), idctn, x, 1, axes=-1)
    assert dctn(x, 1, axes=0).shape == dstn(x, 1).shape == (4, 1)
    for transform in FUNCTIONS.values():
        refused(("type is 1, 2, 3 or 4", "5"), transform, x, 5)
        refused(("type is 1, 2, 3 or 4", "'2'"), transform, x, "2")
        refused(("backward, ortho, forward", "'orto'"), transform, x, norm="orto")
        refused(("(0, 0)", "twice"), transform, x, axes=(0, 0))
        refused(("axis 0", "no points"), transform, DistTensor.zeros((0, 6), "[(0),()]", comm, grid))
        refused(("view", "redistribute"), transform, DistTensor.zeros((4, 6), "a (b c=2): [(0),(),()]", comm, grid))
        refused(("partial", "redistribute"), transform, DistTensor.zeros((4, 6), "[(),()]+(0)", comm, grid))
        for algorithm in ("cyclic", "volumetric") if comm.size > 1 else ():
            refused((algorithm, "fft and rfft", "pencil or rows"), transform, x, algorithm=algorithm)

    def arguments(*says: str, shape: tuple[int, ...] = (4, 16), dtype: str = "d", **more: Any) -> None:
        refused(says, FFT, shape, None, None, comm, dtype, **more)

    arguments("a kind is one of", "dst4", "'dct5'", kinds={0: "dct5"})
    arguments("a kind is one of", "'ifft'", kinds="ifft", dtype="D")
    arguments("kinds already names the axes", "axes", kinds={0: "dct2"}, axes=0)
    arguments("(0, -2)", "twice", kinds={0: "dct2", -2: "dct2"})
    arguments("(2,)", "order 2", kinds={2: "dct2"})
    arguments("one axis is rfft", kinds={0: "rfft", 1: "rfft"})
    arguments("rfft takes real numbers", "real dtype", kinds={0: "fft", 1: "rfft"}, dtype="D")
    arguments("fft takes complex numbers", "make one axis rfft", kinds={0: "dct2", 1: "fft"})
    arguments("at least one axis", kinds="rfft", axes=())
    arguments("dct1 takes two points or more", "axis 0 has 1", shape=(1, 4), kinds="dct1")
    digit = "a (t s=4): [(),(),(0)]: dct2(a), dct2(t) \n a t s: [(),(0),()]: dct2(s)"
    arguments("line 1", "dct2 takes a whole axis", "mode 1", "// 4 % 4 of axis 1", algorithm=digit)
    begun = "a (t s=4): [(),(),()]: fft(a, t), twiddle, dct2(s)"
    arguments("mode 2 is a digit of axis 1", "fft has begun", algorithm=begun, dtype="D")
    arguments("line 1", "fft takes complex numbers", "float64", algorithm="[(),()]: dct2(0), fft(1)")
    arguments("line 1", "rfft takes real numbers", "complex128", algorithm="[(),()]: rfft(0), rfft(1)")
    arguments("leaves out axis 0", algorithm="[(),()]: dct2(1)")
    arguments("transforms axis 0", "not among the axes (1,)", algorithm="[(),()]: dct2(0, 1)", axes=1, shape=(1, 4))
    x = DistTensor.zeros((1, 4), "[(),()]", comm, grid)
    refused(("nothing along axis 0", "dct2 is asked for"), dctn, x, algorithm="[(),()]: dct2(1)")


CHECKS: list[Callable[..., None]] = [check for name, check in globals().items() if name.startswith("check_")]


if __name__ == "__main__":
    warnings.simplefilter("ignore", GatherWarning)
    report_checks(CHECKS, world(), sys.argv[1])
