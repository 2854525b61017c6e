"""What a backend of local transforms is: its traits, the transforms that it makes, and how they are to run.

A new backend is a class with its traits and a line in `rote.fft.kernels.backends`. The traits say where it is fast;
they are measured, and replace rules about its name elsewhere. The backends that plan nothing stand here, too: ducc0,
scipy.fft and numpy.fft, whose transforms are one call of a function.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rote.host import installed
from rote.runtime.comm.protocol import Array

from ...transforms import KINDS, TransformKind

__all__ = [
    "PLANNING",
    "WHOLE",
    "Array",
    "ArrayTransform",
    "Axes",
    "Ducc",
    "Ends",
    "KernelConfig",
    "Library",
    "NumPy",
    "SciPy",
]

WHOLE = 1 << 62
"""More bytes than any block has: a part of this size is the whole block."""

PLANNING = threading.RLock()
"""Held while FFTW plans or a plan of it is destroyed: its planner is one, and in-process ranks plan at the same time.

It is taken again where the garbage collector destroys a plan while its thread plans.
"""

Axes = tuple[int, ...]

Ends = tuple[Array, Array]
"""The arrays of a transform, source and target."""

ArrayTransform = Callable[[Array, Array], Callable[[], object]]
"""A transform of arrays of one shape, one dtype and certain strides, without scaling.

From a source and a target it makes the call that transforms them, which may be repeated.
"""


@dataclass(frozen=True, slots=True)
class KernelConfig:
    """The way in which a kernel runs over a block; results of different configs differ only in their last bits.

    Attributes:
        library: the backend, one of `rote.fft.kernels.backends.NAMES`.
        tile: bytes of a tile, which should fit into a core's second-level cache; 0 takes the default.
        part: bytes of a part of a block, which goes through all passes before the next part; 0 takes the default.
        tiled: whether axes with unfavourable strides are transformed tile by tile; else one call transforms all axes.
        fused: whether a kernel after a move reads its block directly out of boxes.
        threads: the most threads that the kernel uses.
    """

    library: str = "pyfftw"
    tile: int = 0
    part: int = 0
    tiled: bool = True
    fused: bool = True
    threads: int = 1


class Library:
    """A backend. Those of its transforms that lead from real numbers to real numbers take real arrays only.

    Attributes:
        name: of its package.
        timed: whether it is the fastest somewhere, so that its speed is sampled.
        threaded: whether a call may run on several threads.
        processors: the maker of the processors on which it is taken without any timing.
        prefers_tiles: whether columns far apart are faster when they are copied to tiles; else it gathers them itself.
        line_to_line: whether it is fast only from contiguous lines to other contiguous lines. Small powers of two are
            the exception, in columns and in place too.
    """

    name: str
    timed = False
    threaded = True
    processors = ""
    prefers_tiles = True
    line_to_line = False

    def load(self) -> Any:
        """Load the backend, and return its module or library; an error says why it cannot be loaded."""
        raise NotImplementedError

    @property
    def loads(self) -> bool:
        """Whether the backend can be loaded."""
        try:
            self.load()
        except Exception:  # whatever a broken installation raises
            return False
        return True

    def installed(self) -> str:
        """The version of the backend's package, which is not loaded; empty if it is not installed."""
        return installed(self.name)

    def version(self) -> str:
        """The backend's version; empty if it is not installed, or cannot be loaded."""
        version = self.installed()
        return version if version and self.loads else ""

    def does(self, kind: str, dtype: np.dtype[Any]) -> bool:
        """Whether the backend has a transform of this kind for arrays of a dtype, in full precision."""
        raise NotImplementedError

    def prepare(self, row: TransformKind, axes: Axes, ends: Ends, config: KernelConfig) -> ArrayTransform:
        """A transform along some axes, as the config says.

        Args:
            row: the kind of the last of the axes.
            ends: the source and the target, which are one array, or share no memory; their contents are overwritten. A
                transform to real numbers may destroy its input.
        """
        raise NotImplementedError


class Ducc(Library):
    """ducc0: every kind, in every precision. It copies columns to buffers by itself, which suits large blocks."""

    name = "ducc0"
    timed = True

    def load(self) -> Any:
        from ducc0 import fft

        return fft

    def does(self, kind: str, dtype: np.dtype[Any]) -> bool:
        return bool(KINDS[kind].ducc0) and dtype.char in "fdgFDG"

    def prepare(self, row: TransformKind, axes: Axes, ends: Ends, config: KernelConfig) -> ArrayTransform:
        options: dict[str, Any] = {"axes": axes, "inorm": 0, "nthreads": config.threads}
        if row.real != "both":
            options["forward"] = not row.backward
        if row.real == "output":
            options |= {"lastsize": ends[1].shape[axes[-1]], "allow_overwriting_input": True}
        if row.type:
            options["type"] = row.type
        transform = partial(getattr(self.load(), row.ducc0), **options)
        return lambda source, target: partial(transform, source, out=target)


class SciPy(Library):
    """scipy.fft: Fourier, cosine and sine transforms, in every precision. Its results are copied to the target."""

    name = "scipy"

    def load(self) -> Any:
        import scipy.fft

        return scipy.fft

    def does(self, kind: str, dtype: np.dtype[Any]) -> bool:
        row = KINDS[kind]
        return (row.real != "both" or row.type > 0) and dtype.char in "fdgFDG"

    def prepare(self, row: TransformKind, axes: Axes, ends: Ends, config: KernelConfig) -> ArrayTransform:
        options = {"type": row.type} if row.real == "both" else _unscaled(row, axes, ends)
        transform = partial(getattr(self.load(), row.function), axes=axes, workers=config.threads, **options)

        def run(source: Array, target: Array) -> None:
            target[...] = transform(source)

        return lambda source, target: partial(run, source, target)


class NumPy(Library):
    """numpy.fft: Fourier transforms in every precision, on one thread."""

    name = "numpy"
    threaded = False

    def load(self) -> Any:
        return np.fft

    def version(self) -> str:
        return str(np.__version__)

    def does(self, kind: str, dtype: np.dtype[Any]) -> bool:
        return KINDS[kind].real != "both" and dtype.char in "fdgFDG"

    def prepare(self, row: TransformKind, axes: Axes, ends: Ends, config: KernelConfig) -> ArrayTransform:
        transform = partial(getattr(np.fft, row.function), axes=axes, **_unscaled(row, axes, ends))
        return lambda source, target: partial(transform, source, out=target)


def _unscaled(row: TransformKind, axes: Axes, ends: Ends) -> dict[str, Any]:
    """The options of NumPy's functions by which they do not scale; real results do not follow from their inputs."""
    options: dict[str, Any] = {"norm": "forward" if row.backward else "backward"}
    return options | {"s": [ends[1].shape[axis] for axis in axes]} if row.real == "output" else options
