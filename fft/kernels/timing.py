"""Autotuning of kernels: the library, the tiles and the threads that are fastest on the ranks of a walk.

First the libraries compete, in tiles of the usual size and in one call; then the best one competes with itself in other
tiles. All ranks run at once, as in the walk. The winner is kept as wisdom, which includes FFTW's own wisdom.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import inf, prod
from typing import Any

from rote.runtime.comm.protocol import Comm
from rote.runtime.comm.segments import at_line
from rote.runtime.tuning.autotune import Candidate, decided, ranking, timings
from rote.runtime.tuning.limits import LIMITS, budget

from ..request.arguments import Options
from .backends import common_versions, transforms, versions
from .config import ORDERS, WHOLE, KernelConfig, Study
from .gather import gathers
from .kernel import CACHED, CHUNK, Kernel, usual_part, usual_tile
from .threads import helpers
from .turns import Position, Turns, bound_kernel, kernel_call

__all__ = ["tuned"]

_TIMES = {"measure": (0.25, 0.5, 2.0), "patient": (0.25, 0.5, 2.0, 4.0)}  # sizes of other tiles, in usual sizes
_STUDY, _FIELD = 0.3, 0.3  # parts of the time for FFTW's planning, and for each contest of configs
_LARGEST = 1 << 26  # bytes of a block that are timed, if it can be cut: more than caches hold
_HUGE = 1 << 30  # bytes of a block that are timed at most
_AT_ONCE = 1 << 23  # bytes of the largest block for which FFTW plans a single call, unless tuning is patient


def tuned(kernels: Sequence[Kernel], places: Sequence[Position], comm: Comm, options: Options) -> list[Kernel]:
    """The kernels of a walk on this rank, with the configs that are fastest on all ranks: timed, or recalled.

    Collective.

    Args:
        kernels: with their usual configs; all ranks pass equally many, of equal kinds and axes, of any shapes.
        places: the position of each kernel, alike on all ranks but for those without elements.
    """
    if not kernels:
        return []
    replies = comm.allgather_object(([(k.shape, k.out_shape) for k in kernels], places, versions()))
    installed = common_versions([of_rank for *_, of_rank in replies])
    jobs: list[_Job] = []
    for n, kernel in enumerate(kernels):
        shapes = tuple(of_rank[n] for of_rank, *_ in replies)
        behind, stays = map(any, zip(*(of_rank[n] for _, of_rank, _ in replies), strict=True))
        jobs.append(_Job(kernel, shapes, Position(behind and gathers(kernel, False), stays)))
    different = {(job.kernel.kind, job.kernel.axes, job.shapes, job.place) for job in jobs}
    seconds = budget(comm, "kernel", options.tune, max(job.nbytes for job in jobs)) / len(different)
    return [replace(job.kernel, config=_config(job, installed, comm, options, seconds)) for job in jobs]


@dataclass(frozen=True, slots=True)
class _Job:
    """A kernel with its usual config, its shapes on all ranks, and its position, behind a move if it may read boxes."""

    kernel: Kernel
    shapes: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    place: Position

    @property
    def nbytes(self) -> int:
        """Bytes of the largest block."""
        return max(map(prod, chain(*self.shapes))) * self.kernel.wide_dtype.itemsize

    def ways(self, first: KernelConfig) -> list[KernelConfig]:
        """The first config, and variants that make a difference for these blocks; the last one is a single call."""
        axes, once = self.kernel.axes, replace(first, tiled=False)
        some = [first]
        if len(axes) > 1 or not self.place.behind:
            some.append(once)
        if self.place.behind:
            some += [replace(first, fused=False), replace(once, fused=False)]
        some.append(replace(once, part=WHOLE, fused=not self.place.behind))
        if self.nbytes <= CACHED:
            some = [replace(way, tiled=True) for way in some]
        if self.nbytes <= CHUNK or min(axes) == 0:
            some = [replace(way, part=0) for way in some]
        return list(dict.fromkeys(some))

    def others(self, config: KernelConfig, times: Sequence[float]) -> list[KernelConfig]:
        """Variants with other tiles and parts, or fewer threads, that make a difference for these blocks."""
        some: list[KernelConfig] = []
        if self.nbytes > CACHED and (config.tiled or (self.place.behind and config.fused)):
            some += [replace(config, tile=int(n * usual_tile(self.nbytes))) for n in times]
            if config.library == "pyfftw":
                some += [replace(config, order=order) for order in ORDERS[1:]]
        if self.nbytes > CHUNK and config.part != WHOLE and min(self.kernel.axes) > 0:
            some += [replace(config, part=int(n * usual_part(self.nbytes))) for n in times]
        return some + [replace(config, threads=2**n) for n in range((config.threads - 1).bit_length())]


def _config(job: _Job, installed: dict[str, str], comm: Comm, options: Options, seconds: float) -> KernelConfig:
    """The config for all ranks, from wisdom or by timing now."""
    kernel = job.kernel
    facts: dict[str, Any] = {"what": "kernel", "kind": kernel.kind, "axes": kernel.axes, "dtype": kernel.dtype.str}
    facts |= {"shapes": sorted({*job.shapes}), "behind": job.place.behind, "threads": options.threads}
    facts["libraries"] = installed
    if job.place.stays:  # decisions that were kept before kernels had this fact are of others
        facts["stays"] = True

    def find() -> dict[str, Any] | None:
        if not seconds:
            return None
        names = [name for name in installed if transforms(name, kernel.kind, kernel.of_parts().dtype)]
        return _Contest(job, comm, options, seconds).best(names).as_dict()

    return decided(comm, facts, options.tune, KernelConfig.of, find) or kernel.config


class _Contest:
    """Configs of one kernel, timed in turn on all ranks at once."""

    def __init__(self, job: _Job, comm: Comm, options: Options, seconds: float) -> None:
        self._job, self._comm, self._options, self._seconds = job, comm, options, seconds
        self._tune, self._kernel = options.tune, _bounded(job.kernel)
        self._scratch = at_line(job.kernel.nbytes), at_line(job.kernel.nbytes)
        self._place = job.place, self._scratch, helpers(comm, options.threads)
        self._plans = ""

    def best(self, names: Sequence[str]) -> KernelConfig:
        """The fastest config. Collective."""
        ways = self._job.ways(KernelConfig(threads=self._options.threads))
        study = [way for way in ways if way.tiled or self._tune == "patient" or self._job.nbytes <= _AT_ONCE]
        if "pyfftw" in names:
            self._learn(study, _STUDY * self._seconds)
        field = [self._job.kernel.config]
        for name in names:
            if name == "pyfftw":
                field += [replace(way, plans=self._plans) for way in study]
            elif name in ("ducc0", "mkl"):
                field += [replace(way, library=name) for way in ways]
            else:  # tiles do not make them faster
                field.append(replace(ways[-1], library=name))
        fastest = self._fastest(field)
        others = self._job.others(fastest, _TIMES[self._tune])
        if fastest.plans and others:
            self._learn(others, _STUDY / 2 * self._seconds)
            fastest, *others = (replace(way, plans=self._plans) for way in (fastest, *others))
        return self._fastest([fastest, *others]) if others else fastest

    def _learn(self, configs: Iterable[KernelConfig], seconds: float) -> None:
        """Let FFTW time its plans for some configs; of the ranks with equal blocks only the first one plans."""
        shapes, plans = self._job.shapes, self._plans
        kernel = self._job.kernel if self._job.kernel.nbytes <= _HUGE else self._kernel
        if shapes.index(shapes[self._comm.rank]) == self._comm.rank:
            study = Study(self._tune, seconds, plans)
            for config in configs:
                bound_kernel(replace(kernel, config=config, study=study), *self._place).ready()
            plans = study.plans
        from .backends.fftw import merged

        self._plans = merged(self._comm.allgather_object(plans), self._job.kernel.dtype)
        for memory in self._scratch:
            memory[: self._kernel.nbytes] = 0  # all libraries transform the same numbers

    def _fastest(self, field: Sequence[KernelConfig]) -> KernelConfig:
        """The fastest of some configs: the first one, unless another one is clearly faster."""
        limits = LIMITS["kernel"]
        times = timings(self._comm, [self._candidate(config) for config in field], _FIELD * self._seconds, limits)
        return field[ranking(times, limits)[0]]

    def _candidate(self, config: KernelConfig) -> Candidate:
        """The turns of the call that is timed: the kernel, with the copy of a move if it does not read boxes itself."""
        try:
            return Turns(kernel_call(replace(self._kernel, config=config), *self._place))
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
