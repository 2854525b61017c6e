"""What frequencies, shifts and convolutions must do, as functions of a communicator: on in-process and on MPI ranks.

Run as a program, `python spectra.py some|rest`, it makes the checks of that part on the world and prints one line of
JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, product
from math import pi
from typing import Any

import numpy as np
from numpy.typing import NDArray
from parts import SOME, report_checks, share
from transforms import EVERY, GRIDS, cases, close, refused, some_axes, values

import rote
from rote import DistTensor, trace
from rote.fft import FFT, convolve, correlate, fftfreq, fftshift, ifftshift
from rote.runtime import Comm, world

Array = NDArray[Any]
MODES = ("full", "same", "valid", "wrap")


def families(comm: Comm, part: str) -> Iterator[FFT]:
    """Transforms of every family, complex and real: some axes, odd and even extents, layouts that are asked for."""
    return (make() for make in share(all_families(comm), part, 5, comm.size))


def all_families(comm: Comm) -> Iterator[Callable[[], FFT]]:
    p, (g1, g2, g3) = comm.size, GRIDS[comm.size]

    def fft(
        shape: Any, layout: str | None, grid: tuple[int, ...], code: str, algorithm: str = "auto", **more: Any
    ) -> Callable[[], FFT]:
        return partial(FFT, shape, layout, grid, comm, code, algorithm=algorithm, **more)

    for code in "Dd":
        yield fft((6, 5, 4), "block[(0),(),()]", g1, code, "slab")
        yield fft((5, 6, 7), "block[(0),(1),()]", g2, code, "pencil")
        yield fft((4, 5, 3), "[(),(0:cyclic(2)),()]", g1, code, axes=(2, 1))
        yield fft((4, 5, 3), "block[(0,1),(),()]", g2, code, axes=-1)
        yield fft((3, 4, 3, 2), "block[(0),(1),(2),()]", g3, code, axes=(3, 0, 1))
        yield fft((6, 5), "[(),()]", g1, code, output="[(),(0)]")
        yield fft((6, 5, 4), "block[(0),(),()]", g2, code, output="block[(),(1),()]|(0)")
        if p > 1:
            yield fft((2 * p * p, 5), "[(0),()]", g1, code, "cyclic")
            yield fft((2 * g2[0] ** 2, 3 * g2[1] ** 2, 4), "[(0),(1),()]", g2, code, "volumetric")
        yield fft((5, 4, 6), None, g1, code, "rows")
        yield fft((3, 5, 4, 3), None, g1, code, "rows")
        yield fft(7, "block[(0)]", g1, code)
        yield fft((1, 2), "block[(0),()]", g1, code)


def gathered(f: FFT, parts: Array) -> Array:
    """The array of which every rank has its part, broadcast to its block of the spectrum."""
    target = f.walk.target
    block = np.array(np.broadcast_to(parts, target.local_shape(f.comm.rank)))
    return DistTensor(block, target, f.comm).to_global()


def meshes(f: FFT, spacing: tuple[float, ...]) -> list[Array]:
    """numpy.fft's frequencies along the axes of a transform, as arrays of the spectrum's shape."""
    found = []
    for axis, d in zip(f.axes, spacing, strict=True):
        half = f.walk.dtype.kind == "f" and axis == f.axes[-1]
        along = (np.fft.rfftfreq if half else np.fft.fftfreq)(f.shape[axis], d)
        shape = [-1 if a == axis else 1 for a in range(len(f.shape))]
        found.append(np.broadcast_to(along.reshape(shape), f.walk.target.shape))
    return found


def check_frequencies(comm: Comm, part: str) -> None:
    """Gathered, the frequencies are those of numpy.fft, to the bit, in the order of the axes."""
    for f in families(comm, part):
        spacing = tuple(0.3 + 0.7 * a for a in range(len(f.axes)))
        for d in (1.0, spacing):
            wanted = meshes(f, spacing if d is spacing else (1.0,) * len(f.axes))
            for got, want in zip(fftfreq(f, d), wanted, strict=True):
                assert got.dtype == np.float64
                assert np.array_equal(gathered(f, got), want), (str(f), got)


def check_wavenumbers(comm: Comm, part: str) -> None:
    """They are 2 pi times the frequencies of a box of length L, whole numbers on 2 pi; without Nyquist's if asked."""
    for f in families(comm, part):
        lengths = tuple(1.5 + a for a in range(len(f.axes)))
        spacing = tuple(length / f.shape[a] for length, a in zip(lengths, f.axes, strict=True))
        for got, want in zip(f.local_wavenumbers(lengths), meshes(f, spacing), strict=True):
            assert np.allclose(gathered(f, got), 2 * pi * want, rtol=1e-15, atol=0)
        unit = tuple(1 / f.shape[a] for a in f.axes)
        pairs = zip(f.axes, f.local_wavenumbers(), f.local_wavenumbers(nyquist="zero"), meshes(f, unit), strict=True)
        for axis, keep, zero, want in pairs:
            rounded = np.round(want)
            assert np.array_equal(gathered(f, keep), rounded)
            highest = 2 * abs(rounded) == f.shape[axis]
            assert np.array_equal(gathered(f, zero), np.where(highest, 0, rounded))
            assert highest.any() == (f.shape[axis] % 2 == 0)


def check_wavenumber_tensors(comm: Comm, part: str) -> None:
    """As tensors, wavenumbers are those of all blocks, and products of a spectrum or a field with them move nothing."""
    for f in families(comm, part):
        target, order = f.output_distribution, len(f.shape)
        for components in ((), (2,)):
            X = f.empty_output(components)
            X.local[...] = 1 + comm.rank
            for axis, k, local in zip(f.axes, f.wavenumbers(1.5), f.local_wavenumbers(1.5), strict=True):
                with trace() as moves:
                    Y, square = X * (1j * k), k**2 + f.wavenumbers()[0]
                if target.layout.view is None:
                    assert k.shape == tuple(n if a == axis else 1 for a, n in enumerate(target.shape))
                assert Y.distribution == X.distribution and not moves, (str(f), moves)
                assert np.array_equal(Y.local, X.local * (1j * local))
                Z = X.copy()
                Z *= 1j * k
                assert np.array_equal(Z.local, Y.local)
                assert type(Y) is DistTensor and k.dtype == local.dtype and len(square.shape) == order
                assert np.array_equal(np.broadcast_to(k.to_global(), target.shape), gathered(f, local))
                for call in (
                    lambda: X.local * k,  # noqa: B023 - called here
                    lambda: 1j * k * X.local,  # noqa: B023
                    lambda: X.local / (1 + k**2),  # noqa: B023
                    lambda: np.multiply(X.local, 1j * k, out=X.local),  # noqa: B023
                ):
                    refused(("f.local_wavenumbers()", "from_global"), call)


def check_shell_sums(comm: Comm, part: str) -> None:
    """Sums over shells are those of the whole spectrum of the gathered array, whatever the layout, half or whole."""
    for f in families(comm, part):
        box = tuple(1.0 + 0.37 * a for a in range(len(f.axes)))  # no element lies on the border of two shells
        array = values(f.shape, f.input_dtype.char)
        X = f.forward(DistTensor.from_global(array, f.input_layout, comm, f.grid))
        whole = abs(np.fft.fftn(array, axes=f.axes)) ** 2
        square = np.zeros(whole.shape)
        for axis, length in zip(f.axes, box, strict=True):
            along = np.fft.fftfreq(f.shape[axis], length / f.shape[axis]) * max(box)
            square += (along**2).reshape([-1 if a == axis else 1 for a in range(whole.ndim)])
        number = np.floor(np.sqrt(square) + 0.5).astype(int)
        want = np.bincount(number.ravel(), whole.ravel())
        got = f.shell_sums(abs(X) ** 2, box)
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10 * whole.sum())
        assert comm.allgather_object(got.tobytes()) == [got.tobytes()] * comm.size
        if f.output_layout.view is None:
            field = f.empty_output((3,))
            field.local[...] = X.local
            np.testing.assert_allclose(f.shell_sums(abs(field) ** 2, box), 3 * got, rtol=1e-12)
        refused(("real numbers", "abs(X) ** 2"), f.shell_sums, X.astype("c16"))
        other = DistTensor.zeros((*f.output_shape[:-1], 17), f"[{','.join(['()'] * len(f.shape))}]", comm, f.grid)
        refused(("redistribute",), f.shell_sums, other)


def check_cosines_and_sines(comm: Comm) -> None:
    """What has one coefficient of frequency w obeys x[j - 1] + x[j + 1] = 2 cos(2 pi w) x[j], whatever its kind."""
    grid, n = GRIDS[comm.size][0], 7
    for kind in ("fft", "dct1", "dct2", "dct3", "dct4", "dst1", "dst2", "dst3", "dst4"):
        f = FFT((n, n), "block[(0),()]", grid, comm, "D" if kind == "fft" else "d", kinds={1: kind})
        X = DistTensor.from_global(np.eye(n), f.output_layout, comm, f.walk.target.grid).astype(f.walk.dtypes()[-1])
        (w,) = (gathered(f, w) for w in fftfreq(f))
        x = f.backward(X).to_global()
        turn = 2 * np.cos(2 * pi * w.diagonal())[:, None]
        assert abs(x).max(axis=1).min() > 0.1 / n
        assert np.allclose(x[:, :-2] + x[:, 2:], turn * x[:, 1:-1], rtol=0, atol=1e-14), kind
        spacing, length = (0.5, 0.5 * {"dct1": n - 1, "dst1": n + 1}.get(kind, n))
        ((k,), (w,)) = f.local_wavenumbers(length), fftfreq(f, spacing)
        assert np.allclose(k, 2 * pi * w, rtol=1e-15, atol=0)
        assert kind == "fft" or np.array_equal(f.local_wavenumbers(length, "zero"), f.local_wavenumbers(length))


def check_precision(comm: Comm) -> None:
    """Wavenumbers have the transform's precision, so that a product with them has the dtype of the spectrum."""
    grid = GRIDS[comm.size][0]
    for code in "FDGfdg":
        f = FFT((6, 5), "block[(0),()]", grid, comm, code)
        X = f.forward(DistTensor.zeros((6, 5), f.input_layout, comm, grid, code))
        for k in (*f.local_wavenumbers(), *fftfreq(f)):
            assert (1j * k * X.local).dtype == X.dtype
    length = 2 * np.longdouble(22) / 7
    (k,) = FFT(5, "[()]", grid, comm, "G").wavenumbers(length)
    assert np.array_equal(k[:3], np.arange(3) * (8 * np.arctan(np.longdouble(1)) / length))


def check_shift(comm: Comm, part: str) -> None:
    """fftshift and ifftshift are numpy.fft's, and undo each other, in every layout, which they leave as it is."""
    codes = cycle("Ddi?")
    g1, g2, _ = GRIDS[comm.size]
    more = [
        ((5, 4, 3), "(c a) b: block[(0),()]", g1),
        ((5, 4, 3), "(a b c): [(0)]", g1),
        ((5, 4, 3), "b a c: block[(),(0),(1)]", g2),
        ((5, 4), "block[(0),()]|(1)", g2),
        ((5, 4), "[(1),()]+(0)", g2),
        ((5, 4), "[(),()]", g1),
        ((0, 4), "[(0),()]", g1),
    ]
    world = [(*case, next(codes) if "+" not in case[1] else "d") for case in (*cases(comm.size), *more)]
    for shape, layout, grid, code in share(world, part, 5, comm.size, of=3):
        array = values(shape, code)
        x = DistTensor.from_global(array, layout, comm, grid)
        before = x.local.copy()
        for axes in some_axes(shape):
            there, back = fftshift(x, axes), ifftshift(x, axes)
            assert there.distribution == back.distribution == x.distribution
            assert np.array_equal(there.to_global(), np.fft.fftshift(array, axes))
            assert np.array_equal(back.to_global(), np.fft.ifftshift(array, axes))
            assert np.array_equal(ifftshift(there, axes).local, before)
        still = fftshift(x, ())
        assert np.array_equal(still.local, before) and np.array_equal(x.local, before)
        assert not np.shares_memory(still.local, x.local)
    tiled = DistTensor.zeros((4, 6), "a (b c=2): [(0),(),()]", comm, g1)
    assert fftshift(tiled, 0).distribution == tiled.distribution
    assert fftshift(DistTensor.from_global(3.0, "[]|(0)", comm, g1)).to_global() == 3
    refused(("mode 1", "tiles", "redistribute"), fftshift, tiled)
    refused(("(2,)", "order 2"), ifftshift, tiled, 2)


def check_convolve(comm: Comm, part: str) -> None:
    """convolve and correlate are scipy.signal's, for all layouts and for tensors of two different ones."""
    options = cycle([(mode, codes) for mode in MODES for codes in ("dd", "Dd", "dD", "DD")])
    world = [(*case, axes, *next(options)) for case in cases(comm.size) for axes in some_axes(case[0])[:2]]
    world = share(world, SOME, 1, comm.size)  # on each number of ranks others
    for shape, layout, grid, axes, mode, (one, two) in share(world, part, 3 * EVERY // 4, comm.size, of=3):
        named = range(len(shape)) if axes is None else [a % len(shape) for a in axes]
        other = tuple((n + 1) // 2 if a in named else n for a, n in enumerate(shape))
        a, b = values(shape, one), values(other, two)
        x = DistTensor.from_global(a, layout, comm, grid)
        y = DistTensor.from_global(b, f"[{'(),' * (len(shape) - 1)}(0)]", comm, grid)
        for got, want in (
            (moving(convolve, x, y, mode, axes), by_rank_0(comm, by_scipy, a, b, mode, tuple(named))),
            (convolve(x, b, mode, axes), by_rank_0(comm, by_scipy, a, b, mode, tuple(named))),
            (moving(correlate, x, y, mode, axes), by_rank_0(comm, by_scipy, a, b, mode, tuple(named), True)),
        ):
            assert (got.shape, got.dtype.kind) == (want.shape, want.dtype.kind)
            assert got.grid == x.grid and (got.shape != x.shape or got.layout == x.layout)
            close(got, want, 1e-12)
        assert np.array_equal(x.to_global(), a) and np.array_equal(y.to_global(), b)
    a, b = values((8, 6), "d"), values((8, 6), "D")
    x, y = (DistTensor.from_global(c, f"{k}[(0),()]", comm, comm.size) for c, k in ((a, "block"), (b, "cyclic(2)")))
    close(moving(convolve, x, y, "wrap"), by_rank_0(comm, by_scipy, a, b, "wrap", (0, 1)), 1e-12)


def moving(call: Callable[..., DistTensor], *args: Any) -> DistTensor:
    """What a function of operands in different layouts gives: one of them moves to the other's."""
    with rote.config(implicit="allow"):
        return call(*args)


def by_rank_0(comm: Comm, reference: Callable[..., Array], *args: Any) -> Array:
    """What a function gives, found by one rank for all: scipy.signal takes each process a second to import."""
    found: Array = comm.allgather_object(reference(*args) if comm.rank == 0 else None)[0]
    return found


def by_scipy(a: Array, b: Array, mode: str, axes: tuple[int, ...], correlated: bool = False) -> Array:
    """What scipy.signal gives; around a circle, that of the first operand repeated."""
    from scipy import signal

    common = [(n, m) if i in axes else (max(n, m),) * 2 for i, (n, m) in enumerate(zip(a.shape, b.shape, strict=True))]
    a, b = (np.broadcast_to(array, shape) for array, shape in zip((a, b), zip(*common, strict=True), strict=True))
    if correlated and mode == "wrap":
        return np.roll(by_scipy(a, np.flip(b, axes).conj(), mode, axes), [1 - b.shape[i] for i in axes], axes)
    if correlated:
        b = np.flip(b, axes).conj()
    if mode != "wrap":
        return np.asarray(signal.fftconvolve(a, b, mode, axes))
    around = [(b.shape[i] - 1, 0) if i in axes else (0, 0) for i in range(a.ndim)]
    return np.asarray(signal.fftconvolve(np.pad(a, around, "wrap"), b, "valid", axes))


def by_scipy_alone(name: str, a: Array, b: Array, mode: str) -> Array:
    """What a function of scipy.signal itself gives."""
    from scipy import signal

    return np.asarray(getattr(signal, name)(a, b, mode))


def check_convolve_is_scipys_correlate(comm: Comm, part: str) -> None:
    """Integers too, either operand longer, and lags in the order that scipy has them."""
    world = product(((7, 4), (4, 7), (1, 5), (6, 6)), ("full", "same", "valid"))
    for (n, m), mode in share(world, part, 5, comm.size):
        a, b = values((n,), "D"), values((m,), "B")
        x = DistTensor.from_global(a, "block[(0)]", comm, comm.size)
        close(correlate(x, b, mode), by_rank_0(comm, by_scipy_alone, "correlate", a, b, mode), 1e-13)
        close(convolve(x, b, mode), by_rank_0(comm, by_scipy_alone, "fftconvolve", a, b, mode), 1e-13)


def check_one_kernel_serves_all(comm: Comm, part: str) -> None:
    """Along an axis that is not convolved an extent of 1 stands for all, of either operand."""
    grid = GRIDS[comm.size][1]
    layouts = ("block[(0),(1),()]", "[(),(1),(0)]", "block[(0,1),(),()]")
    shapes = (((5, 4, 6), (1, 3, 2)), ((1, 4, 6), (5, 3, 6)), ((5, 4, 1), (1, 3, 6)))
    for layout, (one, two), mode in share(product(layouts, shapes, MODES), part, 7, comm.size, of=2):
        a, b = values(one, "d"), values(two, "d")
        x, y = (DistTensor.from_global(array, layout, comm, grid) for array in (a, b))
        axes = (1,) if two[2] == 6 else (2, 1)
        want = by_rank_0(comm, by_scipy, a, b, mode, axes)
        close(moving(convolve, x, y, mode, axes), want, 1e-12)
        close(moving(convolve, x, b, mode, axes), want, 1e-12)


def check_poisson(comm: Comm, part: str) -> None:
    """-laplace(u) = f on a periodic box is solved to machine precision, whatever the family, real and complex."""
    box = (1.0, 2.0, 5.0)

    def exact(i: Array, j: Array, k: Array, n: tuple[int, ...]) -> tuple[Array, Array]:
        """A function of mean zero and minus its Laplacian, at the points of these indices."""
        x, y, z = (2 * pi * index / extent for index, extent in zip((i, j, k), n, strict=True))
        a, b, c = (2 * pi / length for length in box)
        u = np.sin(x) * np.cos(2 * y) + np.cos(3 * z + 1) * np.sin(y) + np.cos(2 * x - z)
        one, two = (a**2 + 4 * b**2) * np.sin(x) * np.cos(2 * y), (9 * c**2 + b**2) * np.cos(3 * z + 1) * np.sin(y)
        return u, one + two + (4 * a**2 + c**2) * np.cos(2 * x - z)

    for f in families(comm, part):
        n = f.shape
        if len(n) != 3 or len(f.axes) < 3 or min(n) < 5 or n[2] < 7:
            continue
        both = exact(*f.walk.source.tensor_indices(comm.rank), n)
        u, right = (DistTensor(value.astype(f.walk.dtype), f.walk.source, comm) for value in both)
        solved = poisson(f, right, box)
        assert abs(solved.local - u.local).max(initial=0) < 1e-14 * max(box) ** 2


def poisson(f: FFT, right: DistTensor, box: tuple[float, ...]) -> DistTensor:
    """The u of mean zero with -laplace(u) = right on a periodic box."""
    F = f.forward(right)
    square = np.asarray(sum(k**2 for k in f.local_wavenumbers(box)))
    np.divide(F.local, square, out=F.local, where=square > 0)
    F.local[np.broadcast_to(square == 0, F.local.shape)] = 0
    return f.backward(F)


def check_refusals(comm: Comm) -> None:
    """Bad requests are refused on every rank, with the rule and the values."""
    grid = GRIDS[comm.size][0]
    f = FFT((4, 6), "block[(0),()]", grid, comm)
    for call, name in ((lambda value: fftfreq(f, value), "spacing d"), (f.wavenumbers, "length L")):
        refused((name, "positive", "0"), call, 0)
        refused((name, "positive", "-1"), call, (1, -1.0))
        refused((name, "positive", "inf"), call, float("inf"))
        refused((name, "positive", "nan"), call, float("nan"))
        refused((name, "axes (0, 1)", "3"), call, (1, 2, 3))
        refused((name, "number", "'1'"), call, "1")
        refused((name, "number"), call, [[1, 2]])
        refused((name, "number"), call, 1j)
    refused(("keep, zero", "'drop'"), f.local_wavenumbers, nyquist="drop")

    x = DistTensor.zeros((4, 6), "block[(0),()]", comm, grid)
    for call in (convolve, correlate):
        refused(("full, same, valid, wrap", "'ful'"), call, x, x, "ful")
        refused(("same order", "(4, 6)", "(3,)"), call, x, np.zeros(3))
        refused(("at least one axis",), call, x, x, "full", ())
        refused(("(0, 0)", "twice"), call, x, x, "full", (0, 0))
        refused(("axis 0", "4", "3", "neither equal nor 1"), call, x, np.zeros((3, 6)), "full", 1)
        refused(("wrap", "axis 1", "longer"), call, x, np.zeros((4, 7)), "wrap")
        refused(("valid", "axis 1", "longer"), call, x, np.zeros((3, 7)), "valid")
        refused(("nothing", "(4, 0)"), call, x, np.zeros((4, 0)))
        partial = DistTensor.zeros((4, 6), "[(),()]+(0)", comm, grid)
        refused(("partial", "redistribute"), call, partial, x)
        assert moving(call, x, partial, "wrap").distribution == x.distribution
        view = DistTensor.zeros((4, 6), "a (b c=2): [(0),(),()]", comm, grid)
        refused("redistribute", call, view, x)


CHECKS: list[Callable[..., None]] = [check for name, check in globals().items() if name.startswith("check_")]


if __name__ == "__main__":
    report_checks(CHECKS, world(), sys.argv[1])
