"""What rank 0 says while all ranks work, and how long the slowest of them took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from time import perf_counter

import click
import numpy as np
from rich.console import Console

from ..runtime.comm import Comm
from .ending import on_terminal

__all__ = ["Watch"]


class Watch:
    """The times of one rank, phase by phase; on a terminal rank 0 shows which phase runs."""

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self._seconds: dict[str, float] = {}

    def say(self, text: str) -> None:
        """Print on rank 0."""
        if self._comm.rank == 0:
            click.echo(text)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a phase, from when all ranks are there."""
        self._comm.barrier()
        start = perf_counter()
        shown = Console().status(name) if self._comm.rank == 0 and on_terminal() else nullcontext()
        with shown:
            yield
        self._seconds[name] = self._seconds.get(name, 0.0) + perf_counter() - start

    def report(self) -> dict[str, float]:
        """The most seconds that any rank spent in each phase; rank 0 prints them. Collective."""
        most = np.array(list(self._seconds.values()))
        self._comm.allreduce(most, "max")
        slowest = dict(zip(self._seconds, most.tolist(), strict=True))
        for name, seconds in slowest.items():
            self.say(f"{name:<10} {seconds * 1e3:.1f} ms" if seconds < 1 else f"{name:<10} {seconds:.2f} s")
        return slowest
