"""What Hartley transforms must do, as functions of a communicator, on any kind of ranks.

The reference is the definition, real(fft) - imag(fft), in long double, axis by axis. Run as a program,
`python hartley.py some|rest`, it makes the checks of that part on the world and prints how many they were.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from itertools import product

import numpy as np
from cosines import Array, same
from parts import report_checks, share
from transforms import GRIDS, NORMS, axis_by_axis, refused, transforms, values

from rote import DistTensor, GatherWarning
from rote.fft import FFT, dht, fftfreq
from rote.runtime import Comm, world


def hartley(array: Array, axes: Sequence[int], norm: str | None) -> Array:
    """The definition, along each axis in turn."""

    def along(wide: Array, axis: int) -> Array:
        spectrum = np.fft.fft(wide, axis=axis, norm=norm)
        difference: Array = spectrum.real - spectrum.imag
        return difference

    return axis_by_axis(along, array, axes)


def check_function(comm: Comm, part: str) -> None:
    """dht is the definition along split and whole axes, of any norm and dtype; the input keeps its values."""
    for _, shape, layout, grid, axes, norm, code in transforms(comm.size, part, NORMS, ("d", "f", "D", "F", "g", "i")):
        x = DistTensor.from_global(values(shape, code), layout, comm, grid)
        before = x.local.copy()
        named = [a % len(shape) for a in (range(len(shape)) if axes is None else axes)]
        same(dht(x, axes=axes, norm=norm), hartley(values(shape, code), named, norm))
        assert np.array_equal(x.local, before)


def check_split_or_whole(comm: Comm, part: str) -> None:
    """Along an axis that is split, along one that is not, and along both, in every norm, single and double."""
    axes = ((0,), (1,), (0, 1), None)
    world_of_cases = product(axes, NORMS[1:], "df", ("block[(0),()]", "[(0),()]", "block[(),(0)]"))
    for named, norm, code, layout in share(world_of_cases, part, 4, comm.size):
        x = DistTensor.from_global(values((7, 10), code), layout, comm)
        same(dht(x, axes=named, norm=norm), hartley(values((7, 10), code), named or (0, 1), norm))


def check_undone_by_itself(comm: Comm) -> None:
    """A norm undoes its counterpart, "ortho" itself; s= pads and cuts; the layout may be asked for."""
    x = DistTensor.from_global(values((6, 9), "d"), "block[(0),()]", comm)
    for there, back in (("backward", "forward"), ("forward", "backward"), ("ortho", "ortho")):
        y = dht(dht(x, norm=there), norm=back, output=x.layout)
        assert y.layout == x.layout
        same(y, values((6, 9), "d"))
    padded = np.zeros((6, 12))
    padded[:, :9] = values((6, 9), "d")
    same(dht(x, s=(12,), axes=(1,)), hartley(padded, (1,), None))


def check_object(comm: Comm) -> None:
    """FFT takes the kind, alone and beside others, goes back, prints and reads its walk, and knows its frequencies."""
    g1, g2, _ = GRIDS[comm.size]
    for kinds, layout, grid in (("dht", "block[(0),()]", g1), ({0: "dht", 1: "rfft"}, "block[(0),()]", g1)):
        f = FFT((8, 6), layout, grid, comm, "d", kinds=kinds, norm="ortho")
        x = DistTensor.from_global(values((8, 6), "d"), layout, comm, grid)
        X = f.forward(x)
        want = hartley(values((8, 6), "d"), (0, 1) if kinds == "dht" else (0,), "ortho")
        same(X, want if kinds == "dht" else np.fft.rfft(want, axis=1, norm="ortho"))
        same(f.backward(X), values((8, 6), "d"))
        again = FFT((8, 6), layout, grid, comm, "d", algorithm=str(f.walk), norm="ortho")
        assert again.walk.kinds == f.walk.kinds == ("dht", "dht" if kinds == "dht" else "rfft")
        wanted = np.fft.fftfreq(8)[f.walk.target.tensor_indices(comm.rank)[0]].reshape(fftfreq(f)[0].shape)
        assert np.array_equal(fftfreq(f)[0], wanted)
    pencil = FFT((4, 5, 6), "block[(0),(1),()]", g2, comm, "F", kinds={0: "dht", 1: "fft", 2: "dct2"})
    x = DistTensor.from_global(values((4, 5, 6), "F"), "block[(0),(1),()]", comm, g2)
    same(pencil.backward(pencil.forward(x)), values((4, 5, 6), "F"))


def check_refusals(comm: Comm) -> None:
    """What is not made of transforms of digits, or has no spectrum to cut, is refused."""
    x = DistTensor.zeros((16, 16), "[(0),()]", comm)
    if comm.size > 1:  # on one rank nothing moves in any family
        refused(("cyclic takes fft and rfft", "slab"), dht, x, algorithm="cyclic")
    refused(("resample is for fft and rfft", "dht"), FFT, (8, 8), None, None, comm, "d", kinds="dht", resample=(4, 4))
    refused(("dht takes a whole axis", "mode 1"), dht, x, algorithm="a (t s=4): [(),(),()]: dht(a), dht(t)")


CHECKS = [check for name, check in globals().items() if name.startswith("check_")]


if __name__ == "__main__":
    warnings.simplefilter("ignore", GatherWarning)
    report_checks(CHECKS, world(), sys.argv[1])
