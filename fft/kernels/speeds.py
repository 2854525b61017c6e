"""Speeds of lines and planes: the time that each library takes for transforms of some length on this machine.

The fastest library depends on the processor, the lengths and the strides. So when a plan first has lines, or planes of
a kernel of several axes, they are timed for some milliseconds, and the times are kept as wisdom. From then on all plans
on this machine, on any number of ranks, find the same times and take the same libraries, so that bits stay equal. If no
wisdom is kept, nothing is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import inf, prod
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from rote.host import installed
from rote.runtime.comm.protocol import Array, Comm
from rote.runtime.tuning.autotune import keeps, least, local_key, recalled, remembered, timings
from rote.runtime.tuning.limits import Limits, allowed

from ..transforms import KINDS, Kind
from .backends import common_versions, library, prepare, transforms, usual_library, usual_library_but_mkl
from .config import ORDERS, KernelConfig, Order
from .gather import gathers
from .kernel import CACHED, NEAR, Kernel, in_lines, padded, padded_lines, scratch_bytes
from .turns import Turns, kernel_call

__all__ = ["AxisLines", "KnownSpeeds", "Planes", "Speed", "fastest", "known_speeds", "lines_of", "planes_of"]
__all__ += ["with_usual_configs"]

_LIBRARIES = ("pyfftw", "ducc0", "mkl")  # those that write into a given output array
_SHORTEST, _LONGEST = 16, 1 << 13  # points: in shorter lines the calls cost most, longer ones do not fit a cache
_SMALLEST = 1 << 14  # bytes of a plane: a part has many planes that are smaller
_BLOCK = 1 << 23  # bytes of planes that are timed: with their results more than caches hold, as in most walks
_BETTER = 0.95  # another config must take less than this part of the usual config's time
_LINES, _PLANES, _IN_TURN = 0.02, 0.06, Limits({}, rounds=10, each=True)  # seconds for the nine calls of either
_KNOWN = "kernel speeds"  # the key in a communicator's cache for the speeds that its ranks have agreed on

_Call = tuple[Callable[[], object], int]  # a call that is timed, and the number of elements that it transforms


Speed = tuple[float, float, float]
"""Nanoseconds per element that a library takes in each of three ways.

For lines in cache: contiguous rows; columns of a tile, with the copy out of the tile; columns that become contiguous
lines, with that copy. For planes: the configs of `_ways`.
"""


class AxisLines(NamedTuple):
    """Lines that are transformed: their kind, their points, and the dtype of the input."""

    kind: Kind
    points: int
    dtype: str

    def facts(self) -> dict[str, Any]:
        """The facts that a decision about them depends on."""
        return {"what": "lines", **self._asdict()}

    def calls(self, name: str) -> list[_Call]:
        """The calls of a library that are timed."""
        row, dtype = KINDS[self.kind], np.dtype(self.dtype)
        begins, ends = row.taken(self.points), row.given(self.points)
        cached = CACHED // (self.points * dtype.itemsize)
        some, wide = max(1, cached // 2), max(8, cached)
        rows = Kernel(row.name, (1,), (some, begins), (some, ends), dtype, KernelConfig(name))
        tile = replace(rows, shape=(1, begins, wide), out_shape=(1, ends, wide))
        source = padded(tile.shape, dtype)[..., :wide]
        target = source if tile.in_place else padded(tile.out_shape, tile.out_dtype)[..., :wide]
        turned = padded_lines(tile.out_shape, 1, tile.out_dtype) if row.real == "neither" else target
        home = np.zeros(tile.out_shape, tile.out_dtype)
        in_rows = _transform(rows, np.zeros(rows.shape, dtype), np.zeros(rows.out_shape, rows.out_dtype))
        in_tile, to_lines = _transform(tile, source, target), _transform(tile, source, turned)

        def columns() -> None:
            in_tile()
            home[...] = target

        def turn() -> None:
            to_lines()
            home[...] = turned

        return [(in_rows, some * self.points), (columns, wide * self.points), (turn, wide * self.points)]


class Planes(NamedTuple):
    """Planes that are transformed along several modes, including the first one.

    Attributes:
        kind, axes, shape, out_shape, dtype: those of the kernel of one plane.
        many: whether the block has several planes.
        behind: whether the kernel reads its block out of boxes, after a move.
    """

    kind: Kind
    axes: tuple[int, ...]
    shape: tuple[int, ...]
    out_shape: tuple[int, ...]
    dtype: str
    many: bool
    behind: bool

    def facts(self) -> dict[str, Any]:
        """The facts that a decision about them depends on."""
        return {"what": "planes", **self._asdict()}

    def calls(self, name: str) -> list[_Call]:
        """The calls of a library that are timed."""
        kernel = Kernel(self.kind, self.axes, self.shape, self.out_shape, np.dtype(self.dtype))
        if self.many:
            count = max(1, _BLOCK // kernel.nbytes)
            axes = tuple(axis + 1 for axis in self.axes)
            kernel = replace(kernel, axes=axes, shape=(count, *self.shape), out_shape=(count, *self.out_shape))
        scratch = scratch_bytes(kernel.nbytes), scratch_bytes(kernel.nbytes)
        for memory in scratch:
            memory[...] = 0
        elements = max(prod(kernel.shape), prod(kernel.out_shape))
        configs = _ways(name, KernelConfig())
        return [(kernel_call(replace(kernel, config=each), self.behind, scratch), elements) for each in configs]


Timed = AxisLines | Planes
Speeds = Mapping[str, Speed]
"""The speeds of some lines or planes by the names of libraries."""
KnownSpeeds = Mapping[Timed, Speeds]


def lines_of(kernel: Kernel) -> dict[int, AxisLines]:
    """The lines of each axis of a kernel that are worth timing; forward and backward count as equally fast.

    >>> lines_of(Kernel("irfft", (0, 1), (64, 33), (64, 64), np.dtype("c16")))
    {0: AxisLines(kind='fft', points=64, dtype='<c16'), 1: AxisLines(kind='irfft', points=64, dtype='<c16')}
    """
    parts = kernel.of_parts()
    every = dict.fromkeys(parts.axes[:-1], (parts.row.others, parts.wide_dtype))
    every[parts.axes[-1]] = (parts.kind, parts.dtype)
    lines: dict[int, AxisLines] = {}
    for axis, (kind, dtype) in every.items():
        points = max(parts.shape[axis], parts.out_shape[axis])
        if _SHORTEST <= points <= _LONGEST:
            lines[axis] = AxisLines("fft" if kind == "ifft" else kind, points, dtype.str)
    return lines


def planes_of(kernel: Kernel, behind: bool) -> Planes | None:
    """The planes of a kernel that are worth timing: several axes, and small enough for the shared cache.

    >>> planes_of(Kernel("fft", (1, 2), (9, 64, 48), (9, 64, 48), np.dtype("c16")), False).shape
    (64, 48)
    """
    first = min(kernel.axes)
    shape, out_shape = kernel.shape[first:], kernel.out_shape[first:]
    if len(kernel.axes) == 1 or not _SMALLEST < kernel.nbytes // max(prod(kernel.shape[:first]), 1) <= NEAR:
        return None
    axes = tuple(axis - first for axis in kernel.axes)
    reads = behind and gathers(kernel, ortho=False)
    return Planes(kernel.kind, axes, shape, out_shape, kernel.dtype.str, first > 0, reads)


def known_speeds(kernels: Sequence[Kernel], behind: Sequence[bool], comm: Comm) -> KnownSpeeds:
    """The speeds of all lines and planes of some kernels; empty if no wisdom is kept. Collective.

    Args:
        kernels: this rank's; a rank without elements takes part in timing the lines and planes of others.
        behind: whether each kernel comes after a move.
    """
    known: dict[Timed, Speeds] = comm.cache.setdefault(_KNOWN, {})
    own: list[Timed] = []
    for kernel, after in zip(kernels, behind, strict=True):
        planes = planes_of(kernel, after)
        own += lines_of(kernel).values() if planes is None else [planes]
    new = [each for each in dict.fromkeys(chain(*comm.allgather_object(own))) if each not in known]
    if new and not keeps(comm):
        known |= {each: {} for each in new}
    elif new:
        packages = {name: installed(name) for name in _LIBRARIES}  # none of them is loaded
        present = {name: version for name, version in packages.items() if version}
        libraries = common_versions(comm.allgather_object(present))
        for each in new:
            key = local_key({**each.facts(), "libraries": libraries})
            kept: Speeds | None = recalled(comm, key, _read)
            if kept is None:
                kept = _timed(each, [*libraries], comm)
                remembered(comm, key, {name: [*speed] for name, speed in kept.items()})
            known[each] = kept
    return known


def with_usual_configs(kernels: Sequence[Kernel], behind: Sequence[bool], comm: Comm, threads: int) -> list[Kernel]:
    """The kernels of a walk on this rank, with the configs that they have before they are tuned.

    These are the configs by which their lines or planes are fastest. Blocks that threads cannot share in parts are not
    timed, and MKL does not transform them. Collective.
    """
    known = known_speeds(kernels, behind, comm)
    made = []
    for kernel, after in zip(kernels, behind, strict=True):
        divisible = threads == 1 or min(kernel.axes) > 0 or len(kernel.axes) == 1
        usual = usual_library if divisible else usual_library_but_mkl
        config = KernelConfig(usual(kernel.kind, kernel.of_parts().dtype), threads=threads)
        if divisible and any(known.values()):
            config = fastest(kernel, after, config, known)
        made.append(replace(kernel, config=config))
    return made


def fastest(kernel: Kernel, behind: bool, usual: KernelConfig, known: KnownSpeeds) -> KernelConfig:
    """The config that is fastest for a kernel's planes or lines; the usual one unless another clearly leads."""
    planes = planes_of(kernel, behind)
    if planes is not None:
        speeds = known.get(planes, {})
        ways: list[tuple[float, KernelConfig]] = []
        for name, times in speeds.items():
            ways += zip(times, _ways(name, usual), strict=True)
        before = speeds[usual.library][0] if usual.library in speeds else inf
    else:
        lines = {axis: known.get(along, {}) for axis, along in lines_of(kernel).items()}
        if not lines:
            return usual
        names = [name for name in _LIBRARIES if all(name in speeds for speeds in lines.values())]
        configs = list[KernelConfig]()
        for name in names:
            orders = ORDERS if name == "pyfftw" else ("usual", "lines")  # for others "usual" means columns
            configs += [replace(usual, library=name, order=order) for order in orders]
        ways = [(_seconds(replace(kernel, config=config), lines), config) for config in configs]
        before = _seconds(replace(kernel, config=usual), lines) if usual.library in names else inf
    least_time, best = min(ways, key=itemgetter(0), default=(inf, usual))
    return best if least_time < _BETTER * before else usual


def _ways(name: str, usual: KernelConfig) -> tuple[KernelConfig, KernelConfig, KernelConfig]:
    """Three ways in which a library may transform planes: as usual, in one call, in tiles of the other order."""
    config = replace(usual, library=name)
    other_order: Order = "columns" if name == "pyfftw" else "lines"
    return config, replace(config, tiled=False), replace(config, order=other_order)


def _seconds(kernel: Kernel, speeds: Mapping[int, Speeds]) -> float:
    """The time of a kernel's lines by its config."""
    total = 0.0
    for axis, by_library in speeds.items():
        rows, columns, turned = by_library[kernel.config.library]
        if prod(kernel.shape[axis + 1 :]) == 1:
            total += rows
        elif in_lines(kernel, axis):
            total += turned
        else:
            total += columns
    return total


def _read(decision: Any) -> Speeds:
    """The speeds in a decision that was kept.

    Raises:
        TypeError, ValueError: the decision does not contain speeds.
    """
    if not isinstance(decision, Mapping):
        raise ValueError("speeds are by library")
    speeds = dict[str, Speed]()
    for name, (first, second, third) in decision.items():
        speeds[name] = float(first), float(second), float(third)
    return speeds


def _timed(each: Timed, names: Sequence[str], comm: Comm) -> Speeds:
    """Time lines or planes with those of some libraries that all ranks can load. Collective."""
    loaded = comm.allgather_object({name for name in names if library(name).version()})
    calls: dict[str, list[_Call]] = {}
    for name in names:
        if all(name in of_rank for of_rank in loaded):
            calls[name] = _calls(each, name)
    calls = {name: made for name, made in calls.items() if made}
    every = [*chain(*calls.values())]
    seconds = allowed(comm, _PLANES if isinstance(each, Planes) else _LINES)
    times = timings(comm, [Turns(call) for call, _ in every], seconds, _IN_TURN)
    speeds = [float(f"{least(time) / elements * 1e9:.4g}") for time, (_, elements) in zip(times, every, strict=True)]
    by_library = {name: (speeds[3 * n], speeds[3 * n + 1], speeds[3 * n + 2]) for n, name in enumerate(calls)}
    return {name: speed for name, speed in by_library.items() if max(speed) < inf}  # without libraries that failed


def _calls(each: Timed, name: str) -> list[_Call]:
    """The calls of a library that are timed; none if it cannot transform these lines or planes."""
    if not transforms(name, each.kind, np.dtype(each.dtype)):
        return []
    try:
        return each.calls(name)
    except Exception:  # whatever a library may refuse
        return []


def _transform(kernel: Kernel, source: Array, target: Array) -> Callable[[], object]:
    """A transform of lines, prepared and called once."""
    call = prepare(kernel, kernel.axes, source, target, 1).bound(source, target)
    call()
    return call
