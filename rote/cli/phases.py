"""The phases of a command: rank 0 names them while all ranks work, and prints the times of the slowest rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

import numpy as np

from ..runtime.comm.protocol import Comm
from .answers import say
from .failures import animated

__all__ = ["Watch", "progress"]


class Watch:
    """The phases of a command on one rank; on a terminal rank 0 shows which one runs.

    A phase lasts from the end of the one before it until all ranks have finished it. So no time is lost in between:
    the phases add up to the time from the beginning to the end of the last one. The first begins at `began`, by
    `perf_counter`, or now.
    """

    def __init__(self, comm: Comm, began: float | None = None) -> None:
        self._comm = comm
        self._last = perf_counter() if began is None else began
        self._seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[Callable[[float], None] | None]:
        """Time the work inside, and show its name; if a user watches, yield a function that shows the part done."""
        with progress(self._comm, name) as part:
            yield part
        self._comm.barrier()
        now = perf_counter()
        self._seconds[name] = self._seconds.get(name, 0.0) + now - self._last
        self._last = now

    def report(self) -> dict[str, float]:
        """The most seconds that any rank spent in each phase. Rank 0 prints them with their sum. Collective."""
        most = np.array(list(self._seconds.values()))
        self._comm.allreduce_in_place(most, "max")
        slowest = dict(zip(self._seconds, most.tolist(), strict=True))
        for name, seconds in [*slowest.items(), ("total", sum(slowest.values()))]:
            time = f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
            say(self._comm, f"{name:<10} {time}")
        return slowest


@contextmanager
def progress(comm: Comm, name: str) -> Iterator[Callable[[float], None] | None]:
    """Show on a terminal, from rank 0, which part is done; until the function is called, that something is."""
    if comm.rank or not animated():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda part: bar.update(task, total=1.0, completed=part)
