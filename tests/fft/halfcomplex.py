"""What transforms to FFTW's halfcomplex order, and back, must do, as functions of a communicator.

The reference is the real and the imaginary part of numpy.fft.rfft, axis by axis. Run as a program, `python
halfcomplex.py some|rest`, it makes the checks of that part on the world and prints how many they were.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

import numpy as np
from cosines import Array, same
from parts import report_checks, share
from transforms import NORMS, axis_by_axis, refused, transforms, values

from rote import DistTensor, GatherWarning
from rote.fft import FFT, fftfreq, hc2r, r2hc
from rote.runtime import Comm, world


def halfcomplex(array: Array, axes: Sequence[int], norm: str | None) -> Array:
    """The definition, along each axis in turn."""

    def along(wide: Array, axis: int) -> Array:
        spectrum = np.moveaxis(np.fft.rfft(wide, axis=axis, norm=norm), axis, 0)
        imaginary = spectrum.imag[(wide.shape[axis] - 1) // 2 : 0 : -1]
        return np.moveaxis(np.concatenate([spectrum.real, imaginary]), 0, axis)

    return axis_by_axis(along, array, axes)


def check_function(comm: Comm, part: str) -> None:
    """r2hc is the definition along split and whole axes, of any norm and dtype; hc2r undoes it; inputs stay."""
    for _, shape, layout, grid, axes, norm, code in transforms(comm.size, part, NORMS, ("d", "f", "D", "F", "g", "i")):
        array = values(shape, code)
        x = DistTensor.from_global(array, layout, comm, grid)
        before = x.local.copy()
        named = [a % len(shape) for a in (range(len(shape)) if axes is None else axes)]
        X = r2hc(x, axes=axes, norm=norm)
        same(X, halfcomplex(array, named, norm))
        spectrum = X.local.copy()
        same(hc2r(X, axes=axes, norm=norm), array.astype(X.dtype))
        assert np.array_equal(x.local, before) and np.array_equal(X.local, spectrum)


def check_object(comm: Comm, part: str) -> None:
    """FFT takes the kind in every family that has the Hartley transform, beside other kinds too, and goes back."""
    cases = [
        ((8, 6), "block[(0),()]", "r2hc", "slab"),
        ((7, 9), "[(0),()]", {0: "r2hc", 1: "dht"}, "slab"),
        ((6, 5, 4), "block[(0),(1),()]", "r2hc", "pencil"),
        ((8, 5), "block[(),(0)]", {0: "r2hc", 1: "rfft"}, "auto"),
        ((6, 4, 5), "(a b) c: block[(0),()]", "r2hc", "rows"),
    ]
    for shape, layout, kinds, family in share(cases, part, 3, comm.size):
        f = FFT(shape, layout, None, comm, "d", kinds=kinds, norm="ortho", algorithm=family)
        x = DistTensor.from_global(values(shape, "d"), f.input_layout, comm, f.grid)
        X = f.forward(x)
        of_each = kinds if isinstance(kinds, dict) else dict.fromkeys(range(len(shape)), kinds)
        want = halfcomplex(values(shape, "d"), [a for a in of_each if of_each[a] == "r2hc"], "ortho")
        for axis, kind in of_each.items():
            if kind == "dht":
                spectrum = np.fft.fft(want, axis=axis, norm="ortho")
                want = spectrum.real - spectrum.imag
            elif kind == "rfft":
                want = np.fft.rfft(want, axis=axis, norm="ortho")
        same(X, want)
        same(f.backward(X), values(shape, "d"))
        again = FFT(shape, layout, None, comm, "d", algorithm=str(f.walk), norm="ortho")
        assert again.walk.kinds == f.walk.kinds


def check_batches_and_frequencies(comm: Comm) -> None:
    """Axes that are not named stay; the imaginary part at index n - k has the frequency of the real one at k."""
    for n in (1, 2, 7, 8):
        f = FFT((3, n), "block[(0),()]", None, comm, "d", axes=(1,), kinds="r2hc")
        x = DistTensor.from_global(values((3, n), "d"), "block[(0),()]", comm)
        same(f.forward(x), halfcomplex(values((3, n), "d"), (1,), None))
        real = np.fft.rfftfreq(n)
        (rows,) = fftfreq(f)
        np.testing.assert_array_equal(rows.reshape(-1), np.concatenate([real, real[(n - 1) // 2 : 0 : -1]]))


def check_refusals(comm: Comm) -> None:
    """What is made of transforms of digits, or begins with a spectrum, is refused with what to write."""
    x = DistTensor.zeros((16, 16), "[(0),()]", comm)
    if comm.size > 1:  # on one rank nothing moves in any family
        refused(("cyclic takes fft and rfft", "slab"), r2hc, x, algorithm="cyclic")
    refused(("resample is for fft and rfft", "r2hc"), FFT, (8, 8), None, None, comm, "d", kinds="r2hc", resample=(4, 4))
    refused(("r2hc takes a whole axis", "mode 1"), r2hc, x, algorithm="a (t s=4): [(),(),()]: r2hc(a), r2hc(t)")
    refused(("a kind is one of", "'hc2r'"), FFT, (8, 8), None, None, comm, "d", kinds="hc2r")


CHECKS = [check for name, check in globals().items() if name.startswith("check_")]


if __name__ == "__main__":
    warnings.simplefilter("ignore", GatherWarning)
    report_checks(CHECKS, world(), sys.argv[1])
