"""The library, the tiles and the threads of a kernel: those that are fastest on this machine, by time.

The fastest library depends on the processor, the lengths and the strides. So when a plan first has a kernel, a *sample*
of its block is transformed by each library for some milliseconds, and the times are kept as wisdom. From then on all
plans on this machine, on any number of ranks, find the same times and take the same libraries, so that bits stay equal.
If no wisdom is kept, nothing is timed, and the libraries are the usual ones.

With tune="measure" the kernel itself is timed, on all ranks at once, as in the walk: first the libraries, in tiles of
the usual size and in one call; then the best one in other tiles. The fastest config is kept as wisdom, which includes
FFTW's own wisdom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, product
from math import inf, prod
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from rote import wisdom
from rote.host import installed
from rote.runtime.choose import (
    BETTER,
    Candidate,
    LocalCall,
    allowed,
    budget,
    choose,
    decided,
    keeps,
    recalled,
    remembered,
)
from rote.runtime.comm.cache import cached
from rote.runtime.comm.protocol import Comm
from rote.runtime.comm.segments import at_line
from rote.runtime.operations import Scratch

from ..request import Options
from ..transforms import Kind
from .backends import common_versions, library, timed_libraries, transforms, usual_library, versions
from .backends.library import WHOLE, KernelConfig, Study
from .gather import Gather, gathers, whole
from .kernel import CACHED, CHUNK, NEAR, Kernel, usual_part, usual_tile, view
from .threads import SHARED, Pool, bind_kernel, divisible, helpers, shared_by, with_threads

__all__ = ["KnownSpeeds", "Position", "Sample", "Speed", "fastest", "is_sampled", "kernel_call", "known_speeds"]
__all__ += ["samples_of", "tuned", "with_usual_configs"]

_SHORTEST, _LONGEST = 16, 1 << 13  # points: in shorter lines the calls cost most, longer ones do not fit a cache
_SMALLEST = 1 << 14  # bytes of a block that is worth timing
_BLOCK = 1 << 23  # bytes of a sample: with its result more than caches hold, as in most walks; twice if it stays
_SECONDS = 0.1  # for the six to nine calls of a sample
_USUAL = KernelConfig()

_TIMES = {"measure": (0.25, 0.5, 2.0), "patient": (0.25, 0.5, 2.0, 4.0)}  # sizes of other tiles, in usual sizes
_PLANNING, _FIELD = 0.3, 0.3  # parts of the time for FFTW's planning, and for each choice of configs
_LARGEST = 1 << 26  # bytes of a block that are timed, if it can be cut: more than caches hold
_HUGE = 1 << 30  # bytes of a block that are timed at most
_AT_ONCE = 1 << 23  # bytes of the largest block for which FFTW plans a single call, unless tuning is patient

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
        scratch = at_line(kernel.nbytes), at_line(kernel.nbytes)
        for memory in scratch:
            memory[...] = 0
        elements = max(prod(kernel.shape), prod(kernel.out_shape))
        calls, place = list[_Call](), Position(self.after_move, self.stays)
        for config in self.ways(name, KernelConfig(threads=self.threads)):
            call = kernel_call(replace(kernel, config=config), place, scratch, pool)
            calls.append((call, elements))
        return calls

    def read(self, decision: Any) -> Speeds:
        """The speeds in a decision that was kept."""
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
    reads = after_move and gathers(kernel, ortho=False)
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
        columns = max(1, min(inner, (_BLOCK << stays) // (max(ends) * kernel.wide_dtype.itemsize)))
        begin, end = ((points, columns) if inner > 1 else (points,) for points in ends)
        many = inner == columns and prod(kernel.shape[:axis]) > 1
        samples.append(Sample(_forward(kind), (0,), begin, end, dtype.str, many, reads, stays, threads))
    return tuple(samples)


def _forward(kind: Kind) -> Kind:
    return "fft" if kind == "ifft" else kind


def known_speeds(kernels: Sequence[Kernel], places: Sequence[Position], comm: Comm) -> KnownSpeeds:
    """The speeds of all samples of a rank's kernels; empty if no wisdom is kept. Collective."""
    known = _known(comm)
    own: list[Sample] = []
    for kernel, place in zip(kernels, places, strict=True):
        own += samples_of(kernel, *place)
    new = [each for each in dict.fromkeys(chain(*comm.allgather_object(own))) if each not in known]
    if new and not keeps(comm):
        known |= {each: {} for each in new}
    elif new:
        packages = {name: installed(name) for name in timed_libraries()}  # none of them is loaded
        present = {name: version for name, version in packages.items() if version}
        libraries = common_versions(comm.allgather_object(present))
        for each in new:
            key = wisdom.key({**each.facts(), "libraries": libraries})
            kept: Speeds | None = recalled(comm, key, each.read)
            if kept is None:
                kept = _timed(each, [*libraries], comm)
                remembered(comm, key, {name: [*speed] for name, speed in kept.items()})
            known[each] = kept
    return known


def _known(comm: Comm) -> dict[Sample, Speeds]:
    return cached(comm, "kernel speeds", None, dict, 1)


def is_sampled(kernel: Kernel, comm: Comm) -> bool:
    """Whether samples of a kernel have been timed, now or earlier, so that they decide about its library."""
    known = _known(comm)
    places = product((False, True), repeat=2)
    return any(known.get(sample) for place in places for sample in samples_of(kernel, *place))


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
    others = {each: {name: known[each][name] for name in known[each] if name != config.library} for each in known}
    return _fastest_here(kernel, place, usual, others)


def _timed(each: Sample, names: Sequence[str], comm: Comm) -> Speeds:
    loaded = comm.allgather_object({name for name in names if library(name).version()})
    calls: list[tuple[str, _Call]] = []
    for name in names:
        if all(name in of_rank for of_rank in loaded):
            calls += [(name, call) for call in _calls(each, name, helpers(comm, each.threads))]
    timed = choose(comm, [LocalCall(call) for _, (call, _) in calls], allowed(comm, _SECONDS), each=True)
    by_library: dict[str, Speed] = {}
    for n, (name, (_, elements)) in enumerate(calls):
        by_library[name] = (*by_library.get(name, ()), float(f"{timed.seconds(n) / elements * 1e9:.4g}"))
    return {name: speed for name, speed in by_library.items() if max(speed) < inf}  # without libraries that failed


def _calls(each: Sample, name: str, pool: Pool) -> list[_Call]:
    if not transforms(name, each.kind, np.dtype(each.dtype)):
        return []
    try:
        return each.calls(name, pool)
    except Exception:  # whatever a library may refuse
        return []


# --- the kernel itself, in a walk -------------------------------------------------------------------------------------


def tuned(kernels: Sequence[Kernel], places: Sequence[Position], comm: Comm, options: Options) -> list[Kernel]:
    """The kernels of a walk on this rank, with the configs that are fastest on all ranks, by time. Collective.

    All ranks pass equally many kernels, of equal kinds and axes, of any shapes.
    """
    if not kernels:
        return []
    replies = comm.allgather_object(([(k.shape, k.out_shape) for k in kernels], places, versions()))
    installed = common_versions([of_rank for *_, of_rank in replies])
    searches: list[_Search] = []
    for n, kernel in enumerate(kernels):
        shapes = tuple(of_rank[n] for of_rank, *_ in replies)
        after_move, stays = map(any, zip(*(of_rank[n] for _, of_rank, _ in replies), strict=True))
        searches.append(_Search(kernel, shapes, Position(after_move and gathers(kernel, False), stays), comm, options))
    different = {(each.kernel.kind, each.kernel.axes, each.shapes, each.place) for each in searches}
    seconds = budget(comm, "kernel", options.tune, max(each.nbytes for each in searches)) / len(different)
    return [replace(each.kernel, config=each.config(installed, seconds)) for each in searches]


class _Search:
    """The search for the fastest config of one kernel, with its usual config, and its shapes on all ranks.

    Configs are timed in turn, on all ranks at once.
    """

    def __init__(
        self,
        kernel: Kernel,
        shapes: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...],
        place: Position,
        comm: Comm,
        options: Options,
    ) -> None:
        self.kernel, self.shapes, self.place, self._comm, self._options = kernel, shapes, place, comm, options
        self.nbytes: int = max(map(prod, chain(*shapes))) * kernel.wide_dtype.itemsize  # of the largest block

    def config(self, installed: dict[str, str], seconds: float) -> KernelConfig:
        """The config for all ranks, from wisdom or by timing now."""
        kernel, options = self.kernel, self._options
        facts: dict[str, Any] = {"what": "kernel", "kind": kernel.kind, "axes": kernel.axes, "dtype": kernel.dtype.str}
        facts |= {"shapes": sorted({*self.shapes}), "threads": options.threads, "libraries": installed}
        facts |= self.place._asdict()

        def find() -> dict[str, Any] | None:
            if not seconds:
                return None
            names = [name for name in installed if transforms(name, kernel.kind, kernel.of_parts().dtype)]
            return self.best(names, seconds).as_dict()

        return decided(self._comm, facts, options.tune, KernelConfig.of, find) or kernel.config

    def best(self, names: Sequence[str], seconds: float) -> KernelConfig:
        """The fastest config of some libraries. Collective."""
        tune, threads = self._options.tune, self._options.threads
        self._timed = _bounded(self.kernel)
        self._scratch = at_line(self.kernel.nbytes), at_line(self.kernel.nbytes)
        self._where = self.place, self._scratch, helpers(self._comm, threads)
        ways = self._ways(KernelConfig(threads=threads))
        planned = [way for way in ways if way.tiled or tune == "patient" or self.nbytes <= _AT_ONCE]
        plans = self._learn(planned, _PLANNING * seconds) if any(library(name).plans for name in names) else ""
        field = [self.kernel.config]
        for name in names:
            if library(name).plans:
                field += [replace(way, library=name, plans=plans) for way in planned]
            elif library(name).timed:
                field += [replace(way, library=name) for way in ways]
            else:  # tiles do not make them faster
                field.append(replace(ways[-1], library=name))
        first = self._fastest(field, _FIELD * seconds)
        others = self._others(first, _TIMES[tune])
        if not others:
            return first
        if first.plans:
            plans = self._learn(others, _PLANNING / 2 * seconds, plans)
            first, *others = (replace(way, plans=plans) for way in (first, *others))
        return self._fastest([first, *others], _FIELD * seconds)

    def _ways(self, usual: KernelConfig) -> list[KernelConfig]:
        """The usual config, and variants that make a difference for these blocks; the last one is a single call."""
        axes, once = self.kernel.axes, replace(usual, tiled=False)
        some = [usual]
        if len(axes) > 1 or not self.place.after_move:
            some.append(once)
        if self.place.after_move:
            some += [replace(usual, fused=False), replace(once, fused=False)]
        some.append(replace(once, part=WHOLE, fused=not self.place.after_move))
        if self.nbytes <= CACHED:
            some = [replace(way, tiled=True) for way in some]
        if self.nbytes <= CHUNK or min(axes) == 0:
            some = [replace(way, part=0) for way in some]
        return list(dict.fromkeys(some))

    def _others(self, config: KernelConfig, times: Sequence[float]) -> list[KernelConfig]:
        """Variants with other tiles and parts, or fewer threads, that make a difference for these blocks."""
        some: list[KernelConfig] = []
        if self.nbytes > CACHED and (config.tiled or (self.place.after_move and config.fused)):
            some += [replace(config, tile=int(n * usual_tile(self.nbytes))) for n in times]
        if self.nbytes > CHUNK and config.part != WHOLE and min(self.kernel.axes) > 0:
            some += [replace(config, part=int(n * usual_part(self.nbytes))) for n in times]
        return some + [replace(config, threads=2**n) for n in range((config.threads - 1).bit_length())]

    def _learn(self, configs: Iterable[KernelConfig], seconds: float, plans: str = "") -> str:
        """Let FFTW time its plans for some configs; of the ranks with equal blocks only the first one plans."""
        kernel = self.kernel if self.kernel.nbytes <= _HUGE else self._timed
        if self.shapes.index(self.shapes[self._comm.rank]) == self._comm.rank:
            study = Study(self._options.tune, seconds, plans)
            for config in configs:
                kernel_call(replace(kernel, config=config, study=study), *self._where)()  # its first run plans
            plans = study.plans
        from .backends.fftw import merged  # which imports FFTW

        for memory in self._scratch:
            memory[: self._timed.nbytes] = 0  # all libraries transform the same numbers
        return merged(self._comm.allgather_object(plans), self.kernel.dtype)

    def _fastest(self, field: Sequence[KernelConfig], seconds: float) -> KernelConfig:
        return field[choose(self._comm, [*map(self._candidate, field)], seconds).best]

    def _candidate(self, config: KernelConfig) -> Candidate:
        try:
            return LocalCall(kernel_call(replace(self._timed, config=config), *self._where))
        except Exception:  # whatever a library may refuse
            return lambda seconds, progress: inf


def _bounded(kernel: Kernel) -> Kernel:
    """The kernel of a part of the block, if the block is large: cut along the modes before the first axis, else halved.

    Halving keeps distances between points that are multiples of a large power of two of bytes. Transforms become
    shorter only if the block is huge.
    """
    axes = kernel.axes
    for mode in sorted(range(len(kernel.shape)), key=lambda mode: mode in axes):
        limit = _HUGE if mode in axes else _LARGEST
        extent = kernel.shape[mode]
        while extent > 1 and extent == kernel.out_shape[mode] and kernel.nbytes > limit:
            if mode < min(axes):
                extent = max(1, extent * limit // kernel.nbytes)
            elif extent % 2 == 0:
                extent //= 2
            else:
                break
            shape, out_shape = ((*each[:mode], extent, *each[mode + 1 :]) for each in (kernel.shape, kernel.out_shape))
            kernel = replace(kernel, shape=shape, out_shape=out_shape)
    return kernel
