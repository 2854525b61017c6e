"""A program for any ranks: transforms of other lengths than the tensor's, and spectra of fewer points or of more.

Under mpiexec: `python lengths.py some|rest`. In one process: `rote.run(check, ranks)`; see parts.py.
"""

from __future__ import annotations

import sys
import warnings
from itertools import product

import numpy as np
import scipy.fft
from families import numbers
from parts import SOME, report_checks, share

import rote
from rote import DistTensor, GatherWarning
from rote.fft import FFT
from rote.runtime import world

LAYOUTS = {  # how a tensor lies; its shape; the order of the grid
    "block[(0),(),()]": ((6, 7, 8), 1),
    "block[(),(0),()]": ((5, 8, 3), 1),
    "block[(0),(1),()]": ((6, 7, 9), 2),
    "[(0),(1),()]": ((8, 8, 6), 2),
    "[(0),(),(1:block)]": ((8, 6, 5), 2),
    "[(0),(1),(2)]": ((16, 8, 8), 3),
    "[(),(0:cyclic(2)),()]": ((6, 7, 8), 1),
    "[(0,1),(),()]": ((7, 4, 5), 2),
    "(a b) c: block[(0),()]": ((6, 7, 8), 1),
    "block[(0)]": ((12,), 1),
    "[(0)]": ((64,), 1),
}
LENGTHS = (None, (6, 7, 8), (12, 9, 8), (3, 4, 5), (4, 16, 4), (16, 4, 6), (1, 1, 2), (32, 20, 9))
EVERY = 15  # of so many transforms a quick run makes one, on each number of ranks another
NAMES = ("fftn", "ifftn", "rfftn", "irfftn", "dctn", "idstn")


def reference(name, array, s, norm):
    """NumPy's and SciPy's own transform."""
    if name in ("dctn", "idstn"):
        return getattr(scipy.fft, name)(array, s=s, norm=norm)
    return getattr(np.fft, name)(array, s, range(array.ndim), norm)


def same(got, want, to=1e-13):
    """Equal shapes, and values up to rounding."""
    found = got.to_global() if isinstance(got, DistTensor) else got
    assert found.shape == want.shape, (found.shape, want.shape)
    error = np.abs(found - want).max() / max(np.abs(want).max(), 1e-300)
    assert error < to, f"{got} is wrong by {error}"


def check_functions(comm, part):
    """fftn and the others with s= are those of NumPy and SciPy, in every family that takes the layout."""
    ran = set()
    world = [
        (layout, shape, order, number, name)
        for turn, (layout, (shape, order)) in enumerate(LAYOUTS.items())
        for number in range(turn % 3, len(LENGTHS), 3)
        for name in NAMES
    ]
    for layout, shape, order, number, name in share(world, part, EVERY, comm.size, of=2):
        grid = rote.Grid.of(comm.size, order)
        s = None if LENGTHS[number] is None else LENGTHS[number][-len(shape) :]
        complex_in = name in ("fftn", "ifftn", "irfftn")
        array = numbers(shape, "D" if complex_in else "d")
        norm = (None, "ortho", "forward")[number % 3] if "ft" in name else None
        x = DistTensor.from_global(array, layout, comm, grid)
        for algorithm in ("auto", "cyclic", "volumetric", "rows") if number % 2 else ("auto",):
            try:
                X = getattr(rote.fft, name)(x, s=s, norm=norm, algorithm=algorithm)
            except rote.LayoutError as error:
                assert algorithm != "auto" or "(a b)" in layout, error
                continue
            ran.add((name, algorithm))
            same(X, reference(name, array, s, norm))
    if part == SOME:
        assert {"auto", "rows"} <= {algorithm for _, algorithm in ran}
        return
    assert ran >= {(name, algorithm) for name in NAMES for algorithm in ("auto", "rows")}
    assert comm.size not in (1, 2, 4) or ran >= {(name, "cyclic") for name in NAMES[:4]}


def check_there_and_back(comm, part):
    """backward goes back to the shape: what was padded is cut, and what was cut away is zero."""
    for (layout, (shape, order)), lengths, code in share(
        product(LAYOUTS.items(), LENGTHS[1:], "Dd"), part, EVERY, comm.size, of=3
    ):
        grid, s = rote.Grid.of(comm.size, order), lengths[-len(shape) :]
        f = FFT(shape, layout, grid, comm, code, s=s)
        array = numbers(shape, code)
        x = DistTensor.from_global(array, layout, comm, grid)
        X = f.forward(x)
        same(X, reference("fftn" if code == "D" else "rfftn", array, s, None))
        want = np.zeros(shape, code)
        kept = tuple(slice(min(n, m)) for n, m in zip(shape, s, strict=True))
        want[kept] = array[kept]
        back = f.backward(X)
        assert back.distribution == x.distribution
        same(back, want)


def resampled(spectrum, points, axis, kept, half):
    """A spectrum along an axis, by definition: each frequency's own term, and Nyquist's shared among both signs."""
    X = np.moveaxis(spectrum, axis, 0)
    fewer = min(points, kept)
    Y = np.zeros((kept // 2 + 1 if half else kept, *X.shape[1:]), X.dtype)
    for k in range(0 if half else -((fewer - 1) // 2), (fewer - 1) // 2 + 1):
        Y[k] = X[k]
    if fewer % 2 == 0 and points != kept:
        k = fewer // 2
        if points > kept:
            Y[k] = 2 * X[k].real if half else X[k] + X[-k]
        else:
            Y[k] = X[k].real / 2 if half else X[k] / 2
            if not half:
                Y[-k] = X[k] / 2
    elif fewer % 2 == 0:
        Y[fewer // 2] = X[fewer // 2]
    return np.moveaxis(Y, 0, axis)


def kept_spectrum(array, kept):
    """The transform of an array with a part of its spectrum, axis by axis, the last one first."""
    X = array
    for axis in reversed(range(array.ndim)):
        half = X.dtype.kind == "f"
        n = X.shape[axis]
        X = np.fft.rfft(X, axis=axis) if half else np.fft.fft(X, axis=axis)
        X = resampled(X, n, axis, kept[axis], half)
    return X


RESAMPLED = {  # a layout, a shape, and the points whose spectrum is kept
    "block[(0),(),()]": ((9, 12, 6), (6, 8, 4)),
    "block[(0),(1),()]": ((12, 6, 9), (8, 4, 6)),
    "[(0),(1),()]": ((16, 16, 6), (8, 12, 3)),
    "[(0),(),(1:block)]": ((16, 6, 5), (8, 9, 5)),
    "(a b) c: block[(0),()]": ((6, 8, 9), (5, 12, 6)),
    "block[(0)]": ((12,), (8,)),
    "[(0)]": ((64,), (32,)),
}


def check_resample(comm, part):
    """The spectrum that is kept is that of the definition; backward is the interpolation of what it says."""
    for (layout, (shape, kept)), code in share(product(RESAMPLED.items(), "Dd"), part, 5, comm.size, of=3):
        order = max(rote.parse(layout).grid_modes) + 1
        grid = rote.Grid.of(comm.size, order)
        try:
            f = FFT(shape, layout, grid, comm, code, resample=kept)
        except rote.LayoutError as error:
            assert code == "d" and len(shape) == 1 and layout[0] == "[", error
            continue
        array = numbers(shape, code)
        X = f.forward(DistTensor.from_global(array, layout, comm, grid))
        want = kept_spectrum(array, kept)
        same(X, want)
        smooth = f.backward(X)
        assert smooth.shape == shape
        same(f.forward(smooth), want)
        wave = tuple(n // 2 - 1 if n > 2 else 0 for n in map(min, zip(shape, kept, strict=True)))
        check_wave(comm, layout, grid, code, shape, kept, wave)


def check_wave(comm, layout, grid, code, shape, kept, wave):
    """A wave that the fewer points can tell has the same spectrum, per point, on either number of points."""
    found = []
    for points in (shape, kept):
        phase = sum(k * x / n for k, x, n in zip(wave, np.indices(points), points, strict=True))
        array = np.exp(2j * np.pi * phase)
        f = FFT(points, layout, grid, comm, code, norm="forward", resample=kept)
        x = DistTensor.from_global(array if code == "D" else array.real, layout, comm, grid)
        found.append(f.forward(x).to_global())
        same(f.backward(f.forward(x)), x.to_global())
    same(*found, to=1e-12)


def check_products(comm):
    """The 3/2 rule: a product on half as many points more has no aliases in the spectrum that is kept."""
    n, m = 8, 12
    fine = FFT((m, m), "block[(0),()]", comm.size, comm, norm="forward", resample=(n, n))
    spectra = []
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n))
        X[n // 2, :] = X[:, n // 2] = 0
        spectra.append(X)
    u, v = (fine.backward(DistTensor.from_global(X, fine.output_layout, comm, fine.grid)) for X in spectra)
    product = DistTensor(u.local * v.local, u.distribution, comm)
    want = np.zeros((n, n), complex)
    k = np.fft.fftfreq(n, 1 / n).astype(int)
    inside = range(-n // 2 + 1, n // 2)
    for i, p in enumerate(k):
        for j, q in enumerate(k):
            for r, a in enumerate(k):
                for t, b in enumerate(k):
                    if p + a in inside and q + b in inside:
                        want[p + a, q + b] += spectra[0][i, j] * spectra[1][r, t]
    found = fine.forward(product).to_global()
    found[n // 2, :] = found[:, n // 2] = 0
    same(found, want)


def check_wavenumbers(comm):
    """Frequencies and wavenumbers are those of the spectrum that is kept, in the box of the points that there are."""
    f = FFT((12, 9), "block[(0),()]", comm.size, comm, "d", resample=(8, 6))
    kx, ky = f.local_wavenumbers(2 * np.pi)
    held = f.walk.target.tensor_indices(comm.rank)
    wanted = np.fft.fftfreq(8, 1 / 8), np.fft.rfftfreq(6, 1 / 6)
    assert np.array_equal(kx, wanted[0][held[0]]) and np.array_equal(ky, wanted[1][held[1]])
    fx, fy = rote.fft.fftfreq(f, 0.5)
    assert np.allclose(fx, wanted[0][held[0]] / 6, 1e-15) and np.allclose(fy, wanted[1][held[1]] / 4.5, 1e-15)
    zero, _ = f.local_wavenumbers(nyquist="zero")
    assert np.array_equal(zero, np.where(abs(kx) == 4, 0, kx))


def check_refusals(comm):
    """Lengths that say nothing are refused, on every rank alike."""
    x = DistTensor.from_global(numbers((8, 6), "D"), "block[(0),()]", comm)

    def refused(text, call, *args, **named):
        try:
            call(*args, **named)
        except rote.LayoutError as error:
            assert text in str(error), error
        else:
            raise AssertionError(f"{text}: not refused")

    refused("one point or more", rote.fft.fftn, x, (0, 6))
    refused("one point or more", rote.fft.fftn, x, (-2, 6))
    refused("3 lengths for 2 axes", rote.fft.fftn, x, (4, 4, 4), (0, 1))
    refused("axes", rote.fft.fftn, x, (4, 4, 4))
    refused("one integer per axis", rote.fft.fftn, x, (4.5, 6))
    refused(
        "resample is for fft and rfft, not for dct2", FFT, (8, 6), None, None, comm, "d", kinds="dct2", resample=(4, 6)
    )
    refused("say so with s=", rote.fft.irfftn, DistTensor.from_global(np.ones((4, 1), "D"), "block[(0),()]", comm))
    arguments = {"algorithm": "block[(0),()]: fft(1)\nblock[(),(0)]: fft(0)", "kinds": "fft", "s": (9, 6)}
    refused("ends with 8 points along axis 0, where 9", FFT, (8, 6), None, None, comm, **arguments)
    if comm.size == 2:
        split = "block[(0),()]: resize(0=9), fft(1)\nblock[(),(0)]: fft(0)"
        refused("would move elements, for grid mode 0 splits it", FFT, (8, 6), None, None, comm, algorithm=split)
        turned = "[(0),()]: fft(1)\n[(),(0)]: fft(0)\n[(0),()]: resample(0=5)"
        refused("cyclic over ranks that divide 3", FFT, (8, 6), None, None, comm, algorithm=turned)


CHECKS = [check for name, check in globals().items() if name.startswith("check_") and name != "check_wave"]


if __name__ == "__main__":
    warnings.simplefilter("ignore", GatherWarning)
    report_checks(CHECKS, world(), sys.argv[1])
