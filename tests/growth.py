"""Laws of growth: something takes as many calls, and as much memory, for many elements as for few."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

from effort import calls

import rote

__all__ = ["LAYOUTS", "SHAPES", "check", "effort"]

LAYOUTS = ("{}[(0),()]", "{}[(),(0)]", "{}[(0,1),()]", "{}[(0),(1)]", "{}[(1),(0)]")
"""Layouts of two modes, for a kind of distribution and a grid of two modes: along one mode, and along both."""

SHAPES = (lambda n: (n, 24), lambda n: (24, n), lambda n: (n + 7, 25))
"""Shapes of n times some elements, one of which does not divide."""

MOST = 1.2
SLACK = 2**15  # bytes: a list of half as many places as the larger of two sizes has takes more than 2**17


def effort(do: Callable[[], object]) -> tuple[int, int]:
    """The number of calls that something makes, and the bytes that it takes at most, with nothing remembered."""
    rote.clear_caches()  # other programs of this process may have asked for what one of two sizes needs
    tracemalloc.start()
    try:
        number = calls(do)
        return number, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def check(make: Callable[[int], Callable[[], object]], name: str, known: Callable[[int], int] = lambda n: 0) -> None:
    """What `make` prepares for n elements costs as many calls for 64 times as many, and hardly more memory.

    Of the memory, some bytes are known to be needed for n elements.
    """
    for n in (120, 240):  # what is made once in a process is made now
        make(n)()
    few, little = effort(make(480))
    for factor in (64, 68):  # the table of a cache, which other programs have filled too, may happen to grow in one
        many, much = effort(make(factor * 480))
        more = much - known(factor * 480) - (little - known(480))
        if 0 < many <= MOST * few and more <= SLACK:
            return
    raise AssertionError(f"{name}: {few} calls and {little} bytes, and {many} and {much} for {factor} times as many")
