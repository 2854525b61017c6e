"""The library of a kernel: the one that is fastest on this machine, by the time of a sample.

The fastest library depends on the processor, the lengths and the strides. So when a plan first has a kernel, a *sample*
of its block is transformed by each library for some milliseconds, and the times are kept as wisdom. From then on all
plans on this machine, on any number of ranks, find the same times and take the same libraries, so that bits stay equal.
If no wisdom is kept, nothing is timed, and the libraries are the usual ones.

    kernel of a rank -> its samples -> times by library and way: timed once, then wisdom -> the fastest config
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, product
from math import inf, prod
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from rote import wisdom
from rote.errors import RoteError
from rote.runtime.choose import BETTER, LocalCall, allowed, choose, keeps, recalled, remembered
from rote.runtime.comm.cache import cached
from rote.runtime.comm.protocol import Comm
from rote.runtime.comm.segments import at_line
from rote.runtime.operations import Scratch

from ..transforms import Kind
from .backends import common_versions, fault, library, timed_libraries, transforms, usual_library
from .backends.library import KernelConfig
from .gather import Gather, gathers, whole
from .kernel import NEAR, Kernel, view
from .threads import SHARED, Pool, bind_kernel, divisible, helpers, shared_by, with_threads

__all__ = ["KnownSpeeds", "Position", "Sample", "Speed", "fastest", "is_sampled", "kernel_call", "known_speeds"]
__all__ += ["samples_of", "with_usual_configs"]

_SHORTEST, _LONGEST = 16, 1 << 13  # points: in shorter lines the calls cost most, longer ones do not fit a cache
_SMALLEST = 1 << 14  # bytes of a block that is worth timing
_BLOCK = 1 << 23  # bytes of a sample: with its result more than caches hold, as in most walks; twice if it stays
_SECONDS = 0.1  # for the six to nine calls of a sample
_USUAL = KernelConfig()

_Call = tuple[Callable[[], object], int]  # a call that is timed, and the number of elements that it transforms

Speed = tuple[float, ...]
"""Nanoseconds per element that a library takes by each of the configs of `Sample.ways`."""


# --- the call of a kernel ---------------------------------------------------------------------------------------------


class Position(NamedTuple):
    """The position of a kernel in a walk: whether it comes after a move, and whether the block stays where it is."""

    after_move: bool = False
    stays: bool = False


def kernel_call(kernel: Kernel, place: Position, scratch: Scratch, pool: Pool = None) -> Callable[[], object]:
    """The call that transforms the scratch memory, with the copy of a move if the kernel does not read boxes itself."""
    source = view(scratch[0], kernel.shape, kernel.dtype)
    target = view(scratch[1], kernel.out_shape, kernel.out_dtype)
    if place.after_move and kernel.config.fused:
        gather = Gather(kernel, whole(kernel.shape), (), scratch, pool)
        return partial(gather, gather.reads([source.reshape(-1)]), target)

    run = bind_kernel(kernel, scratch, pool=pool)
    if not place.after_move:
        return partial(run, source, source if place.stays else target)

    # The copy takes the second half of the scratch, and the transform overwrites it: as after a move in a walk.
    moved = view(scratch[1], kernel.shape, kernel.dtype)

    def call() -> None:
        moved[...] = source
        run(source, target)

    return call


# --- samples of its block ---------------------------------------------------------------------------------------------


class Sample(NamedTuple):
    """A sample of a kernel's block: planes that are transformed along several modes, or lines along one.

    Attributes:
        kind, axes, shape, out_shape, dtype: those of the kernel of one plane; the first mode is an axis.
        many: whether the block has several planes.
        after_move: whether the kernel reads its block out of boxes, after a move.
        stays: whether the kernel works in place, so that its block stays where it is.
        threads: the number of threads that share the block.
    """

    kind: Kind
    axes: tuple[int, ...]
    shape: tuple[int, ...]
    out_shape: tuple[int, ...]
    dtype: str
    many: bool
    after_move: bool
    stays: bool
    threads: int

    def facts(self) -> dict[str, Any]:
        """The facts that a decision about the sample depends on."""
        return {"what": "speeds", "ways": len(self.ways(_USUAL.library)), **self._asdict()}

    def ways(self, name: str, usual: KernelConfig = _USUAL) -> list[KernelConfig]:
        """The configs by which a library may transform the sample.

        They are: as usual; in one call; and in one call on a block that was moved before.
        """
        config = replace(usual, library=name)
        once = replace(config, tiled=False)

        ways = [config]
        if len(self.axes) > 1 or not self.after_move:  # lines are read out of boxes tile by tile
            ways.append(once)
        if self.after_move:
            ways.append(replace(once, fused=False))
        return ways

    def calls(self, name: str, pool: Pool) -> list[_Call]:
        """The calls of a library that are timed, on this thread and those of the pool."""
        kernel = Kernel(self.kind, self.axes, self.shape, self.out_shape, np.dtype(self.dtype))
        if self.many:
            count = max(self.threads, (_BLOCK << self.stays) // kernel.nbytes)
            axes = tuple(axis + 1 for axis in self.axes)
            kernel = replace(kernel, axes=axes, shape=(count, *self.shape), out_shape=(count, *self.out_shape))

        # Zeros, because numbers that grow from call to call would soon be infinite, and slow.
        scratch = at_line(kernel.nbytes), at_line(kernel.nbytes)
        for memory in scratch:
            memory[...] = 0

        elements = max(prod(kernel.shape), prod(kernel.out_shape))
        place = Position(self.after_move, self.stays)

        calls = list[_Call]()
        for config in self.ways(name, KernelConfig(threads=self.threads)):
            call = kernel_call(replace(kernel, config=config), place, scratch, pool)
            calls.append((call, elements))
        return calls

    def read(self, decision: Any) -> Speeds:
        """The speeds in a decision of wisdom."""
        if not isinstance(decision, Mapping):
            raise ValueError("speeds are by library")

        speeds = {name: tuple(map(float, speed)) for name, speed in decision.items()}
        if any(len(speed) != len(self.ways(name)) for name, speed in speeds.items()):
            raise ValueError("every way has a speed")
        return speeds


Speeds = Mapping[str, Speed]
"""The speeds of a sample by the names of libraries."""
KnownSpeeds = Mapping[Sample, Speeds]


def samples_of(kernel: Kernel, after_move: bool, stays: bool = False) -> tuple[Sample, ...]:
    """The samples of a kernel's block, whose times add up to that of the kernel: one, or one for each axis.

    Planes of several axes are one sample if the shared cache holds them. Forward and backward count as equally fast.
    There are no samples of blocks that are hardly worth timing, or of very short or long lines.

    >>> block = Kernel("fft", (1, 2), (9, 64, 48), (9, 64, 48), np.dtype("c16"))
    >>> [(sample.axes, sample.shape, sample.many) for sample in samples_of(block, False)]
    [((0, 1), (64, 48), True)]
    >>> lines = Kernel("ifft", (0,), (64, 32, 64), (64, 32, 64), np.dtype("c16"))
    >>> [(sample.kind, sample.axes, sample.shape, sample.many) for sample in samples_of(lines, False)]
    [('fft', (0,), (64, 2048), False)]
    """
    if kernel.nbytes <= _SMALLEST:
        return ()

    first, threads = min(kernel.axes), shared_by(kernel)
    shape, out_shape = kernel.shape[first:], kernel.out_shape[first:]
    reads = after_move and gathers(kernel, ortho=False)

    if len(kernel.axes) > 1 and kernel.nbytes // prod(kernel.shape[:first]) <= NEAR:
        axes = tuple(axis - first for axis in kernel.axes)
        many = first > 0
        return (Sample(_forward(kernel.kind), axes, shape, out_shape, kernel.dtype.str, many, reads, stays, threads),)

    samples = []
    for axis in kernel.axes:
        # The real axis of a real transform is its last one; along the others its numbers are complex.
        dtype, kind, ends = kernel.dtype, kernel.kind, (kernel.shape[axis], kernel.out_shape[axis])
        if axis != kernel.axes[-1]:
            dtype, kind, ends = kernel.wide_dtype, kernel.row.others, (ends[0], ends[0])
        if not _SHORTEST <= max(ends) <= _LONGEST:
            return ()

        inner = prod(kernel.shape[axis + 1 :])
        columns = max(1, min(inner, (_BLOCK << stays) // (max(ends) * kernel.wide_dtype.itemsize)))
        begin, end = ((points, columns) if inner > 1 else (points,) for points in ends)
        many = inner == columns and prod(kernel.shape[:axis]) > 1
        samples.append(Sample(_forward(kind), (0,), begin, end, dtype.str, many, reads, stays, threads))
    return tuple(samples)


def _forward(kind: Kind) -> Kind:
    return "fft" if kind == "ifft" else kind


# --- their speeds -----------------------------------------------------------------------------------------------------


def known_speeds(kernels: Sequence[Kernel], places: Sequence[Position], comm: Comm) -> KnownSpeeds:
    """The speeds of all samples of a rank's kernels; empty if no wisdom is kept. Collective.

    Raises:
        RoteError: on all ranks, the library that the user names on one of them is none.
    """
    known = _known(comm)
    samples = list[Sample]()
    for kernel, place in zip(kernels, places, strict=True):
        samples += samples_of(kernel, *place)

    # All ranks time the samples of any of them, so that they decide alike about kernels that they share.
    samples_by_rank, faults = zip(*comm.allgather_object((samples, fault())), strict=True)
    if any(faults):
        raise RoteError(next(filter(None, faults)))

    every = dict.fromkeys(chain(*samples_by_rank))
    new = [sample for sample in every if sample not in known]
    if new and not keeps(comm):
        known |= {sample: {} for sample in new}
    elif new:
        packages = {name: library(name).installed() for name in timed_libraries()}  # no package is loaded
        present = {name: version for name, version in packages.items() if version}
        libraries = common_versions(comm.allgather_object(present))

        for sample in new:
            key = wisdom.key({**sample.facts(), "libraries": libraries})
            speeds: Speeds | None = recalled(comm, key, sample.read)
            if speeds is None:
                speeds = _timed(sample, [*libraries], comm)
                remembered(comm, key, {name: [*speed] for name, speed in speeds.items()})
            known[sample] = speeds
    return known


def _known(comm: Comm) -> dict[Sample, Speeds]:
    return cached(comm, "kernel speeds", None, dict, 1)


def is_sampled(kernel: Kernel, comm: Comm) -> bool:
    """Whether samples of a kernel have been timed, now or earlier, so that they decide about its library."""
    known = _known(comm)
    places = product((False, True), repeat=2)
    return any(known.get(sample) for place in places for sample in samples_of(kernel, *place))


def _timed(sample: Sample, names: Sequence[str], comm: Comm) -> Speeds:
    """The speeds of the libraries that all ranks can load. Collective."""
    loaded = comm.allgather_object({name for name in names if library(name).version()})
    calls: list[tuple[str, _Call]] = []
    for name in names:
        if all(name in of_rank for of_rank in loaded):
            calls += [(name, call) for call in _calls(sample, name, helpers(comm, sample.threads))]

    timed = choose(comm, [LocalCall(call) for _, (call, _) in calls], allowed(comm, _SECONDS), each=True)

    speeds: dict[str, Speed] = {}
    for n, (name, (_, elements)) in enumerate(calls):
        speeds[name] = (*speeds.get(name, ()), float(f"{timed.seconds(n) / elements * 1e9:.4g}"))
    return {name: speed for name, speed in speeds.items() if max(speed) < inf}  # without libraries that failed


def _calls(sample: Sample, name: str, pool: Pool) -> list[_Call]:
    if not transforms(name, sample.kind, np.dtype(sample.dtype)):
        return []
    try:
        return sample.calls(name, pool)
    except Exception:  # whatever a library may refuse
        return []


# --- the configs that are fastest by them -----------------------------------------------------------------------------


def with_usual_configs(kernels: Sequence[Kernel], places: Sequence[Position], comm: Comm, threads: int) -> list[Kernel]:
    """The kernels of a walk on this rank, with the configs by which their samples are fastest. Collective.

    Threads of a library's own are not timed, and MKL has none here.
    """
    if threads > 1:
        kernels = [with_threads(kernel, threads) for kernel in kernels]
    known = known_speeds(kernels, places, comm)

    made = []
    for kernel, place in zip(kernels, places, strict=True):
        by_threads = threads > 1 and kernel.nbytes > SHARED and not divisible(kernel)
        usual = usual_library(kernel.kind, kernel.of_parts().dtype, threaded=by_threads)
        config = KernelConfig(usual, threads=threads)
        if not by_threads and any(known.values()):
            config = _fastest_here(kernel, place, config, known)
        made.append(replace(kernel, config=config))
    return made


def fastest(kernel: Kernel, place: Position, usual: KernelConfig, known: KnownSpeeds) -> KernelConfig:
    """The config that is fastest for a kernel's samples; the usual one unless another is clearly faster."""
    samples = samples_of(kernel, *place)
    speeds = [known.get(sample, {}) for sample in samples]

    # The time of a config is the sum over the kernel's samples.
    ways: list[tuple[float, KernelConfig]] = []
    before = inf
    for name in timed_libraries() if speeds else ():
        if all(name in by_library for by_library in speeds):
            times = [sum(way) for way in zip(*(by_library[name] for by_library in speeds), strict=True)]
            ways += zip(times, samples[0].ways(name, usual), strict=True)
            if name == usual.library:
                before = times[0]

    if kernel.nbytes > NEAR:  # unlike its sample, it is in no cache when it has been moved, or when lines run across it
        ways = [way for way in ways if way[1].fused and (way[1].tiled or place.stays or len(samples[0].axes) > 1)]

    least_time, best = min(ways, key=itemgetter(0), default=(inf, usual))
    return best if least_time <= BETTER * before else usual


def _fastest_here(kernel: Kernel, place: Position, usual: KernelConfig, known: KnownSpeeds) -> KernelConfig:
    """The fastest config of a library that loads here: the times may be those of another environment."""
    config = fastest(kernel, place, usual, known)
    if library(config.library).loads:
        return config

    others = {}
    for sample, speeds in known.items():
        others[sample] = {name: speed for name, speed in speeds.items() if name != config.library}
    return _fastest_here(kernel, place, usual, others)
