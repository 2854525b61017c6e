"""Speeds of kernels: the time that each library takes for a sample of a kernel's block on this machine.

The fastest library depends on the processor, the lengths and the strides. So when a plan first has a kernel, a sample
of its block is transformed by each library for some milliseconds, and the times are kept as wisdom. From then on all
plans on this machine, on any number of ranks, find the same times and take the same libraries, so that bits stay equal.
If no wisdom is kept, nothing is timed, and the libraries are the usual ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from math import inf, prod
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from rote.host import installed
from rote.runtime.comm.protocol import Comm
from rote.runtime.comm.segments import at_line
from rote.runtime.tuning.autotune import keeps, least, local_key, recalled, remembered, timings
from rote.runtime.tuning.limits import Limits, allowed

from ..transforms import Kind
from .backends import common_versions, library, transforms, usual_library, usual_library_but_mkl
from .config import KernelConfig, Order
from .gather import gathers
from .kernel import NEAR, Kernel
from .threads import SHARED, Pool, divisible, helpers, shared_by, with_threads
from .turns import Position, Turns, kernel_call

__all__ = ["KnownSpeeds", "Sample", "Speed", "fastest", "is_sampled", "known_speeds", "samples_of"]
__all__ += ["with_usual_configs"]

_LIBRARIES = ("pyfftw", "ducc0", "mkl")  # those that write into a given output array
_SHORTEST, _LONGEST = 16, 1 << 13  # points: in shorter lines the calls cost most, longer ones do not fit a cache
_SMALLEST = 1 << 14  # bytes of a block that is worth timing
_BLOCK = 1 << 23  # bytes of a sample: with its result more than caches hold, as in most walks
_BETTER = 0.95  # another config must take less than this part of the usual config's time
_SECONDS = 0.1  # for the nine to twelve calls of a sample
_IN_TURN = Limits({}, rounds=10, each=True, behind=(1.6, 1.25))  # the time goes to calls that may be the fastest
_USUAL = KernelConfig()
_KNOWN = "kernel speeds"  # the key in a communicator's cache for the speeds that its ranks have agreed on

_Call = tuple[Callable[[], object], int]  # a call that is timed, and the number of elements that it transforms


Speed = tuple[float, ...]
"""Nanoseconds per element that a library takes by each of the configs of `Sample.ways`."""


class Sample(NamedTuple):
    """A sample of a kernel's block: planes that are transformed along several modes, or lines along one.

    Attributes:
        kind, axes, shape, out_shape, dtype: those of the kernel of one plane; the first mode is an axis.
        many: whether the block has several planes.
        behind: whether the kernel reads its block out of boxes, after a move.
        stays: whether the kernel works in place, so that its block stays where it is.
        threads: the number of threads that share the block.
    """

    kind: Kind
    axes: tuple[int, ...]
    shape: tuple[int, ...]
    out_shape: tuple[int, ...]
    dtype: str
    many: bool
    behind: bool
    stays: bool
    threads: int

    def facts(self) -> dict[str, Any]:
        """The facts that a decision about the sample depends on."""
        return {"what": "speeds", "ways": len(self.ways("")), **self._asdict()}

    def ways(self, name: str, usual: KernelConfig = _USUAL) -> list[KernelConfig]:
        """The configs by which a library may transform the sample.

        They are: as usual; in tiles of the other order; in one call; and in one call on a block that was moved before.
        """
        config = replace(usual, library=name)
        other_order: Order = "columns" if name == "pyfftw" else "lines"
        once = replace(config, tiled=False)
        ways = [config, replace(config, order=other_order)]
        if len(self.axes) > 1 or not self.behind:  # lines are read out of boxes tile by tile
            ways.append(once)
        if self.behind:
            ways.append(replace(once, fused=False))
        return ways

    def calls(self, name: str, pool: Pool) -> list[_Call]:
        """The calls of a library that are timed, on this thread and those of the pool."""
        kernel = Kernel(self.kind, self.axes, self.shape, self.out_shape, np.dtype(self.dtype))
        if self.many:
            count = max(self.threads, _BLOCK // kernel.nbytes)
            axes = tuple(axis + 1 for axis in self.axes)
            kernel = replace(kernel, axes=axes, shape=(count, *self.shape), out_shape=(count, *self.out_shape))
        scratch = at_line(kernel.nbytes), at_line(kernel.nbytes)
        for memory in scratch:
            memory[...] = 0
        elements = max(prod(kernel.shape), prod(kernel.out_shape))
        calls, place = list[_Call](), Position(self.behind, self.stays)
        for config in self.ways(name, KernelConfig(threads=self.threads)):
            call = kernel_call(replace(kernel, config=config), place, scratch, pool)
            calls.append((call, elements))
        return calls

    def read(self, decision: Any) -> Speeds:
        """The speeds in a decision that was kept.

        Raises:
            TypeError, ValueError: the decision does not contain speeds of the sample.
        """
        if not isinstance(decision, Mapping):
            raise ValueError("speeds are by library")
        speeds = {name: tuple(map(float, speed)) for name, speed in decision.items()}
        if any(len(speed) != len(self.ways(name)) for name, speed in speeds.items()):
            raise ValueError("every way has a speed")
        return speeds


Speeds = Mapping[str, Speed]
"""The speeds of a sample by the names of libraries."""
KnownSpeeds = Mapping[Sample, Speeds]


def samples_of(kernel: Kernel, behind: bool, stays: bool = False) -> tuple[Sample, ...]:
    """The samples of a kernel's block, whose times add up to that of the kernel: one, or one for each axis.

    Planes of several axes are one sample if the shared cache holds them. Forward and backward count as equally fast.
    There are no samples of blocks that are hardly worth timing, or of very short or long lines.

    >>> block = Kernel("fft", (1, 2), (9, 64, 48), (9, 64, 48), np.dtype("c16"))
    >>> [(each.axes, each.shape, each.many) for each in samples_of(block, False)]
    [((0, 1), (64, 48), True)]
    >>> lines = Kernel("ifft", (0,), (64, 32, 64), (64, 32, 64), np.dtype("c16"))
    >>> [(each.kind, each.axes, each.shape, each.many) for each in samples_of(lines, False)]
    [('fft', (0,), (64, 2048), False)]
    """
    if kernel.nbytes <= _SMALLEST:
        return ()
    first, threads = min(kernel.axes), shared_by(kernel)
    shape, out_shape = kernel.shape[first:], kernel.out_shape[first:]
    reads = behind and gathers(kernel, ortho=False)
    if len(kernel.axes) > 1 and kernel.nbytes // prod(kernel.shape[:first]) <= NEAR:
        axes = tuple(axis - first for axis in kernel.axes)
        many = first > 0
        return (Sample(_forward(kernel.kind), axes, shape, out_shape, kernel.dtype.str, many, reads, stays, threads),)
    samples = []
    for axis in kernel.axes:
        dtype, kind, ends = kernel.dtype, kernel.kind, (kernel.shape[axis], kernel.out_shape[axis])
        if axis != kernel.axes[-1]:
            dtype, kind, ends = kernel.wide_dtype, kernel.row.others, (ends[0], ends[0])
        if not _SHORTEST <= max(ends) <= _LONGEST:
            return ()
        inner = prod(kernel.shape[axis + 1 :])
        columns = max(1, min(inner, _BLOCK // (max(ends) * kernel.wide_dtype.itemsize)))
        begin, end = ((points, columns) if inner > 1 else (points,) for points in ends)
        many = inner == columns and prod(kernel.shape[:axis]) > 1
        samples.append(Sample(_forward(kind), (0,), begin, end, dtype.str, many, reads, stays, threads))
    return tuple(samples)


def _forward(kind: Kind) -> Kind:
    return "fft" if kind == "ifft" else kind


def known_speeds(kernels: Sequence[Kernel], places: Sequence[Position], comm: Comm) -> KnownSpeeds:
    """The speeds of all samples of some kernels; empty if no wisdom is kept. Collective.

    Args:
        kernels: this rank's; a rank without elements takes part in timing the samples of others.
        places: the place of each kernel.
    """
    known: dict[Sample, Speeds] = comm.cache.setdefault(_KNOWN, {})
    own: list[Sample] = []
    for kernel, place in zip(kernels, places, strict=True):
        own += samples_of(kernel, *place)
    new = [each for each in dict.fromkeys(chain(*comm.allgather_object(own))) if each not in known]
    if new and not keeps(comm):
        known |= {each: {} for each in new}
    elif new:
        packages = {name: installed(name) for name in _LIBRARIES}  # none of them is loaded
        present = {name: version for name, version in packages.items() if version}
        libraries = common_versions(comm.allgather_object(present))
        for each in new:
            key = local_key({**each.facts(), "libraries": libraries})
            kept: Speeds | None = recalled(comm, key, each.read)
            if kept is None:
                kept = _timed(each, [*libraries], comm)
                remembered(comm, key, {name: [*speed] for name, speed in kept.items()})
            known[each] = kept
    return known


def is_sampled(kernel: Kernel, comm: Comm) -> bool:
    """Whether samples of a kernel have been timed, now or earlier, so that they decide about its library."""
    known: KnownSpeeds = comm.cache.get(_KNOWN, {})
    places = product((False, True), repeat=2)
    return any(known.get(sample) for place in places for sample in samples_of(kernel, *place))


def with_usual_configs(kernels: Sequence[Kernel], places: Sequence[Position], comm: Comm, threads: int) -> list[Kernel]:
    """The kernels of a walk on this rank, with the configs that they have before they are tuned.

    These are the configs by which their samples are fastest. Threads of a library's own are not timed, and MKL has
    none here. Collective.
    """
    if threads > 1:
        kernels = [with_threads(kernel, threads) for kernel in kernels]
    known = known_speeds(kernels, places, comm)
    made = []
    for kernel, place in zip(kernels, places, strict=True):
        by_threads = threads > 1 and kernel.nbytes > SHARED and not divisible(kernel)
        usual = usual_library_but_mkl if by_threads else usual_library
        config = KernelConfig(usual(kernel.kind, kernel.of_parts().dtype), threads=threads)
        if not by_threads and any(known.values()):
            config = fastest(kernel, place, config, known)
        made.append(replace(kernel, config=config))
    return made


def fastest(kernel: Kernel, place: Position, usual: KernelConfig, known: KnownSpeeds) -> KernelConfig:
    """The config that is fastest for a kernel's samples; the usual one unless another clearly leads."""
    samples = samples_of(kernel, *place)
    speeds = [known.get(sample, {}) for sample in samples]
    ways: list[tuple[float, KernelConfig]] = []
    before = inf
    for name in _LIBRARIES if speeds else ():
        if all(name in by_library for by_library in speeds):
            times = [sum(way) for way in zip(*(by_library[name] for by_library in speeds), strict=True)]
            ways += zip(times, samples[0].ways(name, usual), strict=True)
            if name == usual.library:
                before = times[0]
    if kernel.nbytes > NEAR:  # unlike its sample, it is in no cache when it has been moved, or when lines run across it
        ways = [way for way in ways if way[1].fused and (way[1].tiled or place.stays or len(samples[0].axes) > 1)]
    least_time, best = min(ways, key=itemgetter(0), default=(inf, usual))
    return best if least_time < _BETTER * before else usual


def _timed(each: Sample, names: Sequence[str], comm: Comm) -> Speeds:
    """Time a sample with those of some libraries that all ranks can load. Collective."""
    loaded = comm.allgather_object({name for name in names if library(name).version()})
    calls: list[tuple[str, _Call]] = []
    for name in names:
        if all(name in of_rank for of_rank in loaded):
            calls += [(name, call) for call in _calls(each, name, helpers(comm, each.threads))]
    times = timings(comm, [Turns(call) for _, (call, _) in calls], allowed(comm, _SECONDS), _IN_TURN)
    by_library: dict[str, Speed] = {}
    for time, (name, (_, elements)) in zip(times, calls, strict=True):
        by_library[name] = (*by_library.get(name, ()), float(f"{least(time) / elements * 1e9:.4g}"))
    return {name: speed for name, speed in by_library.items() if max(speed) < inf}  # without libraries that failed


def _calls(each: Sample, name: str, pool: Pool) -> list[_Call]:
    """The calls of a library that are timed; none if it cannot transform the sample."""
    if not transforms(name, each.kind, np.dtype(each.dtype)):
        return []
    try:
        return each.calls(name, pool)
    except Exception:  # whatever a library may refuse
        return []
