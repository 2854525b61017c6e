"""Speeds of lines: what the transform of lines of some length takes each library, in cache, on this machine.

Which library is fastest depends on the processor, the length and the strides: so lines are timed when a plan first has
their length, for some milliseconds, and the times are kept as wisdom. From then on all plans on this machine find the
same ones, on however many ranks, and take the same libraries: bits stay. Where nothing is kept nothing is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import inf, prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rote.host import installed
from rote.runtime.comm.protocol import Comm
from rote.runtime.tuning.autotune import keeps, least, local_key, recalled, remembered, timings
from rote.runtime.tuning.limits import Limits, allowed

from ..transforms import KINDS
from .backends import library, prepare, transforms
from .config import KernelConfig
from .kernel import CACHED, Kernel, in_lines, padded, padded_lines
from .turns import Turns

Array = npt.NDArray[Any]

__all__ = ["AxisLines", "Speed", "Speeds", "fastest", "known_speeds", "lines_of"]

_LIBRARIES = ("pyfftw", "ducc0", "mkl")  # those that write where they are told to
_SHORTEST, _LONGEST = 16, 1 << 13  # points: of lines whose calls count most, and of those that a cache does not hold
_BETTER = 0.95  # part of the usual config's time that another one must stay below
_SECONDS, _IN_TURN = 0.02, Limits({}, rounds=10, each=True)  # nine calls of 30 to 80 us, some of them for each reading
_KNOWN = "kernel speeds"  # where a communicator keeps those that its ranks have agreed on


class AxisLines(NamedTuple):
    """Lines that are transformed: their kind, their points, and the dtype of what comes in."""

    kind: str
    points: int
    dtype: str


class Speed(NamedTuple):
    """Nanoseconds that a library takes per element of lines in cache.

    Attributes:
        rows: of lines that lie in memory one behind the other.
        columns: of columns of a tile, with the copy to where they belong.
        turned: of columns that become lines of memory, with that copy.
    """

    rows: float
    columns: float
    turned: float


Speeds = Mapping[str, Speed]
"""The speeds of some lines by the names of libraries."""


def lines_of(kernel: Kernel) -> dict[int, AxisLines]:
    """The lines of each axis of a kernel that are worth timing; there and back a transform takes the same.

    >>> lines_of(Kernel("irfft", (0, 1), (64, 33), (64, 64), np.dtype("c16")))
    {0: AxisLines(kind='fft', points=64, dtype='<c16'), 1: AxisLines(kind='irfft', points=64, dtype='<c16')}
    """
    parts = kernel.of_parts()
    every = dict.fromkeys(parts.axes[:-1], (parts.row.others, parts.wide_dtype))
    every[parts.axes[-1]] = (parts.kind, parts.dtype)
    points = {axis: max(parts.shape[axis], parts.out_shape[axis]) for axis in every}
    return {
        axis: AxisLines("fft" if kind == "ifft" else kind, points[axis], dtype.str)
        for axis, (kind, dtype) in every.items()
        if _SHORTEST <= points[axis] <= _LONGEST
    }


def known_speeds(kernels: Iterable[Kernel], comm: Comm) -> Mapping[AxisLines, Speeds]:
    """The speeds of all lines of some kernels; none of them where nothing is kept as wisdom. Collective.

    Args:
        kernels: of this rank; one that holds nothing has kernels without lines, and times those of others.
    """
    known: dict[AxisLines, Speeds] = comm.cache.setdefault(_KNOWN, {})
    own = [lines for kernel in kernels for lines in lines_of(kernel).values()]
    new = [lines for lines in dict.fromkeys(chain(*comm.allgather_object(own))) if lines not in known]
    if new and not keeps(comm):
        known |= {lines: {} for lines in new}
    elif new:
        libraries = _packages(comm)
        for lines in new:
            key = local_key({"what": "lines", **lines._asdict(), "libraries": libraries})
            kept: Speeds | None = recalled(comm, key, _read)
            if kept is None:
                kept = _timed(lines, [*libraries], comm)
                remembered(comm, key, {name: [*speed] for name, speed in kept.items()})
            known[lines] = kept
    return known


def _packages(comm: Comm) -> dict[str, str]:
    """The versions of the libraries that all ranks have alike; none of them is loaded. Collective."""
    first, *others = comm.allgather_object({name: installed(name) for name in _LIBRARIES})
    return {
        name: version for name, version in first.items() if version and all(each[name] == version for each in others)
    }


def fastest(kernel: Kernel, usual: KernelConfig, known: Mapping[AxisLines, Speeds]) -> KernelConfig:
    """The config with which a kernel's lines take the least; the usual one unless another one is clearly faster."""
    every = {axis: known.get(lines, {}) for axis, lines in lines_of(kernel).items()}
    configs = [usual]
    for name in _LIBRARIES:
        configs += [replace(usual, library=name, order=order) for order in ("usual", "columns", "lines")]
    times = {config: _seconds(replace(kernel, config=config), every) for config in configs}
    best = min(times, key=times.__getitem__)
    return best if times[best] < _BETTER * times[usual] else usual


def _seconds(kernel: Kernel, speeds: Mapping[int, Speeds]) -> float:
    """The time of a kernel's lines by its config, as far as they are known; endless if its library cannot do some."""
    total = 0.0
    for axis, by_library in speeds.items():
        speed = by_library.get(kernel.config.library)
        if speed is None:
            return inf
        inner = prod(kernel.shape[axis + 1 :])
        total += speed.rows if inner == 1 else speed.turned if in_lines(kernel, axis) else speed.columns
    return total


def _read(decision: Any) -> Speeds:
    """The speeds that were kept.

    Raises:
        TypeError, ValueError: the decision is none.
    """
    if not isinstance(decision, Mapping):
        raise ValueError("speeds are by library")
    return {str(name): Speed(*map(float, speed)) for name, speed in decision.items()}


def _timed(lines: AxisLines, names: Sequence[str], comm: Comm) -> Speeds:
    """The speeds of lines by some libraries, as far as all ranks can load them. Collective."""
    loaded = comm.allgather_object({name for name in names if library(name).version()})
    calls = {name: made for name in names if all(name in each for each in loaded) and (made := _calls(lines, name))}
    every = [call for made in calls.values() for call in made]
    times = timings(comm, [Turns(call) for call, _ in every], allowed(comm, _SECONDS), _IN_TURN)
    speeds = [float(f"{least(time) / elements * 1e9:.4g}") for time, (_, elements) in zip(times, every, strict=True)]
    by_library = {name: Speed(*speeds[3 * n : 3 * n + 3]) for n, name in enumerate(calls)}
    return {name: speed for name, speed in by_library.items() if max(speed) < inf}  # who fails is none


def _calls(lines: AxisLines, name: str) -> list[tuple[Callable[[], object], int]]:
    """The calls that are timed for a `Speed`, with their numbers of elements; none where a library does not do it."""
    row, dtype = KINDS[lines.kind], np.dtype(lines.dtype)
    begins, ends = row.taken(lines.points), row.given(lines.points)
    cached = CACHED // (lines.points * dtype.itemsize)
    some, wide = max(1, cached // 2), max(8, cached)
    rows = Kernel(row.name, (1,), (some, begins), (some, ends), dtype, KernelConfig(name))
    tile = replace(rows, shape=(1, begins, wide), out_shape=(1, ends, wide))
    if not transforms(name, row.name, dtype):
        return []
    source = padded(tile.shape, dtype)[..., :wide]
    target = source if tile.in_place else padded(tile.out_shape, tile.out_dtype)[..., :wide]
    turned = padded_lines(tile.out_shape, 1, tile.out_dtype) if row.real == "neither" else target
    home = np.zeros(tile.out_shape, tile.out_dtype)
    try:
        in_rows = _transform(rows, np.zeros(rows.shape, dtype), np.zeros(rows.out_shape, rows.out_dtype))
        in_tile, to_lines = _transform(tile, source, target), _transform(tile, source, turned)
    except Exception:  # whatever a library may refuse
        return []

    def columns() -> None:
        in_tile()
        home[...] = target

    def turn() -> None:
        to_lines()
        home[...] = turned

    return [(in_rows, some * lines.points), (columns, wide * lines.points), (turn, wide * lines.points)]


def _transform(kernel: Kernel, source: Array, target: Array) -> Callable[[], object]:
    """A transform of lines that was made and called once."""
    call = prepare(kernel, kernel.axes, source, target, 1).bound(source, target)
    call()
    return call
