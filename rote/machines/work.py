"""Local work: what a rank does with its own block between two moves, and the seconds that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import Literal

from .machine import Machine

__all__ = ["Work", "work_seconds"]

_PAGE = 4096  # bytes
Kind = Literal["fft", "twiddle", "product"]


@dataclass(frozen=True, slots=True)
class Work:
    """What the rank with the largest block does with it; no rank waits for another.

    Attributes:
        kind: "fft" transforms lines, "twiddle" multiplies each element by a factor, "product" multiplies matrices.
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

    A transform takes its arithmetic or its memory, whichever is slower: each element is read and written once, as in a
    copy. A twiddle reads a factor beside it. What fits into the rank's cache twice stays there.

    >>> work_seconds(Work("product", 0, flops=10**9), Machine(flop_time=1e-10))
    0.1
    >>> work = Work("fft", nbytes=10**6, points=4)
    >>> work_seconds(work, Machine(fft_time=1e-10, copy_time=1e-10)), work_seconds(work, Machine(fft_time=0))
    (0.0002, 0.0001)
    """
    if work.kind == "product":
        return work.flops * machine.flop_time
    copied = max(machine.copy_time) if isinstance(machine.copy_time, tuple) else machine.copy_time
    memory = work.nbytes * copied
    if 2 * work.nbytes <= machine.cache:
        memory /= machine.cache_factor
    elif work.stride >= _PAGE:
        memory *= machine.page_factor
    if work.kind == "twiddle":
        return 1.5 * memory
    return max(work.nbytes * log2(max(work.points, 1)) * machine.fft_time, memory)
