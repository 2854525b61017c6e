"""The spectra of chirps: what convolutions with them multiply by (Bluestein 1970), on every rank its own part."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from rote.grammar.nodes import Entry, Name, Tile
from rote.layout.distribution import Distribution
from rote.layout.layout import Layout
from rote.layout.view import View
from rote.runtime.comm.protocol import Comm
from rote.tensor import DistTensor

from ..families.ragged import ragged
from ..request.request import as_request
from ..transforms import real_dtype
from ..walk.typecheck import build
from ..walk.walk import Convolve, Walk
from .twiddles import chirp

__all__ = ["spectra"]

Array = npt.NDArray[Any]


def spectra(walk: Walk, comm: Comm, run: Callable[[Walk, Array], Array]) -> list[Array]:
    """The factors of a rank's block for each convolution of a walk: arrays that broadcast to it. Collective.

    They are transformed as a tensor of their own, so that no rank holds more of them than of the tensor.

    Args:
        run: takes a block along a walk.
    """
    return [
        _spectrum(action, stage.before, comm, dtype, run)
        for stage, dtype in zip(walk.stages, walk.dtypes(), strict=False)
        for action in stage.done
        if isinstance(action, Convolve)
    ]


def _spectrum(
    action: Convolve, dist: Distribution, comm: Comm, dtype: np.dtype[Any], run: Callable[[Walk, Array], Array]
) -> Array:
    """The spectrum of exp(pi i k² / n) for -n < k < n, as the digits of a convolution lie."""
    modes = tuple(dist.layout.modes[m] for m in action.modes)
    points = prod(action.sizes)
    start = Layout((tuple(Entry(entry.grid_mode) for mode in modes for entry in mode),)).on((points,), dist.grid)
    wanted = as_request((points,), (0,), "fft", dtype)
    walk = build(start, ragged(start, wanted), wanted)
    (index,) = start.indices(comm.rank)
    distance = np.minimum(index, points - index)  # from 0, around the circle
    inside = distance < action.n
    block = np.zeros(len(index), dtype)
    block[inside] = chirp(distance[inside], action.n, dtype, back=True)
    tensor = DistTensor(run(walk, block), walk.target, comm)
    names = [chr(ord("a") + digit) for digit in range(len(modes))]
    sizes = (None, *action.sizes[1:])
    parts = tuple(zip(names, sizes, strict=True))
    view = View((Tile(parts) if len(parts) > 1 else Name(names[0]),))
    spectrum: Array = tensor.redistribute(Layout(modes, view), grid=dist.grid).local / real_dtype(dtype).type(points)
    spectrum = spectrum.transpose(np.argsort(action.modes))
    held = dist.local_shape(comm.rank)
    spectrum = spectrum.reshape([extent if m in action.modes else 1 for m, extent in enumerate(held)])
    return np.conj(spectrum) if action.back else spectrum
