"""Turns of calls that need no other rank, for the autotuner, and the call of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil, inf
from time import perf_counter
from typing import NamedTuple

from rote.runtime.executor.buffers import Scratch
from rote.runtime.tuning.autotune import Progress

from .gather import Gather
from .kernel import Kernel, view
from .passes import BoundKernel
from .threads import OnThreads, Pool, bind_kernel
from .tiles import whole

__all__ = ["Position", "Turns", "bound_kernel", "kernel_call"]

_LEAST = 2e-4  # seconds: shorter calls are repeated between two readings of the clock
_AGAIN = 2  # times that a turn is measured again after its first time
_SHORT = 2e-3  # seconds: shorter calls are repeated in the first turn


class Position(NamedTuple):
    """The position of a kernel in a walk: whether it comes behind a move, and whether the block stays where it is."""

    behind: bool = False
    stays: bool = False


class Turns:
    """The turns of a call that needs no other rank; short calls are repeated between two readings of the clock.

    In the first turn the call is made once, and again if it is short. Later turns give the fastest of three times, if
    there is time for them. A call that fails takes infinitely long.
    """

    __slots__ = ("_call", "_often")

    def __init__(self, call: Callable[[], object]) -> None:
        self._call, self._often = call, 0

    def __call__(self, seconds: float, progress: Progress | None) -> float:
        try:
            time = self._timed(self._often or 1)
            if not self._often and time < _SHORT:
                time = self._timed(1)
            elif self._often and _AGAIN * self._often * time < seconds:
                time = min(time, *(self._timed(self._often) for _ in range(_AGAIN)))
        except Exception:  # whatever a library may refuse
            return inf
        self._often = ceil(_LEAST / time)
        return time

    def _timed(self, often: int) -> float:
        start = perf_counter()
        for _ in range(often):
            self._call()
        return (perf_counter() - start) / often


def bound_kernel(
    kernel: Kernel, place: Position, scratch: Scratch, pool: Pool = None
) -> BoundKernel | OnThreads | Gather:
    """A kernel as a walk binds it: behind a move it reads its block out of boxes, if its config is fused."""
    if place.behind and kernel.config.fused:
        return Gather(kernel, whole(kernel.shape), (), scratch, pool)
    return bind_kernel(kernel, scratch, pool=pool)


def kernel_call(kernel: Kernel, place: Position, scratch: Scratch, pool: Pool = None) -> Callable[[], object]:
    """The call that transforms the scratch memory, with the copy of a move if the kernel does not read boxes itself.

    A kernel whose block stays works in place, in the first piece of the memory.
    """
    run = bound_kernel(kernel, place, scratch, pool)
    run.ready()
    source = view(scratch[0], kernel.shape, kernel.dtype)
    target = view(scratch[1], kernel.out_shape, kernel.out_dtype)
    if isinstance(run, Gather):
        return partial(run, run.reads([source.reshape(-1)]), target)
    if not place.behind:
        return partial(run, source, source if place.stays else target)
    moved = view(scratch[1], kernel.shape, kernel.dtype)

    def call() -> None:
        moved[...] = source
        run(source, target)

    return call
