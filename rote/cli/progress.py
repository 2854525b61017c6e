"""A bar that shows what is done, and how much of it, where somebody watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..runtime.comm.protocol import Comm
from .failures import animated

__all__ = ["progress"]


@contextmanager
def progress(comm: Comm, name: str) -> Iterator[Callable[[float], None] | None]:
    """What shows on a terminal, from rank 0, the part that is done; until it is called, that something is."""
    if comm.rank or not animated():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda part: bar.update(task, total=1.0, completed=part)
