"""A bar that shows how much is done, where somebody watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..runtime.comm import Comm
from .ending import on_terminal

__all__ = ["progress"]


@contextmanager
def progress(comm: Comm, name: str) -> Iterator[Callable[[float], None] | None]:
    """What shows on a terminal, from rank 0, the part that is done."""
    if comm.rank or not on_terminal():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(), transient=True) as bar:
        task = bar.add_task(name, total=1.0)
        yield lambda part: bar.update(task, completed=part)
