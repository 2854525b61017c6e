"""Local work: what a rank does with its own block between two moves, and the seconds that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, log2
from typing import Literal

from ..caches import memoized
from .machine import Machine

__all__ = ["Work", "work_seconds"]

_PAGE = 4096  # bytes
_TRACKED = 32  # pages that a core can read side by side
_SMOOTH = 2 * 3 * 5 * 7 * 11 * 13  # the prime factors for which FFTs have code of their own
Kind = Literal["fft", "twiddle", "copy", "product"]


@dataclass(frozen=True, slots=True)
class Work:
    """What the rank with the largest block does with it; no rank waits for another.

    Attributes:
        kind: "fft" transforms lines, "twiddle" multiplies each element by a factor, "copy" transposes a block, so
            that its elements have another order in memory, "product" multiplies matrices.
        nbytes: the bytes of the block.
        points: the points of a line that is transformed.
        stride: the bytes from a point of a line to the next one.
        flops: multiplications and additions of a product.
    """

    kind: Kind
    nbytes: int
    points: int = 1
    stride: int = 0
    flops: int = 0


def work_seconds(work: Work, machine: Machine) -> float:
    """The seconds of local work on a machine.

    A transform of documented numbers takes its arithmetic in cache and then its memory: each element is read and
    written once. A measured one has both in its arithmetic, so it takes that or a copy, whichever is slower. A twiddle
    reads a factor beside it. What fits into the rank's cache twice stays there. If the points of a line lie on pages of
    their own, and are more than a core can read side by side, memory takes longer.

    >>> work_seconds(Work("product", 0, flops=10**9), Machine(flop_time=1e-10))
    0.1
    >>> work = Work("fft", nbytes=10**6, points=4)
    >>> work_seconds(work, Machine(fft_time=1e-10, copy_time=1e-10)), work_seconds(work, Machine(fft_time=0))
    (0.0002, 0.0001)
    """
    if work.kind == "product":
        return work.flops * machine.flop_time

    copy_time = max(machine.copy_time) if isinstance(machine.copy_time, tuple) else machine.copy_time
    fits = 2 * work.nbytes <= machine.cache

    if work.kind == "copy":  # each element of a row lies in another line of the cache, or on another page
        copy = work.nbytes * copy_time
        return copy if fits else copy * machine.page_factor

    memory = work.nbytes * (machine.memory_time or copy_time)
    if fits:
        memory /= machine.cache_factor
    elif work.stride >= _PAGE and work.points > _TRACKED:
        memory *= machine.page_factor

    if work.kind == "twiddle":
        return 1.5 * memory

    arithmetic = work.nbytes * log2(max(work.points, 1)) * machine.fft_time
    if is_rough(work.points):
        arithmetic *= machine.rough_factor
    return arithmetic + memory if machine.memory_time else max(arithmetic, memory)


@memoized(1024)
def is_rough(points: int) -> bool:
    """Whether a number has a prime factor above 13.

    >>> [points for points in (0, 96, 97, 13**3, 17 * 64) if is_rough(points)]
    [97, 1088]
    """
    points = max(points, 1)
    while (common := gcd(points, _SMOOTH)) > 1:
        points //= common
    return points > 1
