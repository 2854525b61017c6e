"""What commands print: text for people or, with --json, one answer for programs; and phases while they run.

Rank 0 prints, and animates and colours only what a user watches on a terminal.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ..runtime.comm.protocol import Comm

__all__ = ["Answer", "Watch", "coloured", "columns", "give", "json_option", "on_terminal", "print_answer", "progress"]
__all__ += ["say"]

Answer = dict[str, Any]
T = TypeVar("T")

json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the result as JSON, and nothing else; notebooks/cli.md lists the keys.",
)


# --- answers ---------------------------------------------------------------------------------------------------------


def give(as_json: bool, program: Callable[[], T], answer: Callable[[T], Answer]) -> T:
    """Run a program that prints text for people or, with --json, print nothing but the answer that its result makes.

    Errors are not answers: they go to standard error and into the exit status, as without --json. `answer` makes JSON
    values of the result, under keys that are always there; the result is returned.
    """
    if not as_json:
        return program()
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        result = program()
    print_answer(answer(result))
    return result


def say(comm: Comm, *texts: str) -> None:
    """Print texts on rank 0, each on lines of its own."""
    if comm.rank == 0:
        for text in texts:
            click.echo(text)


def print_answer(answer: Answer) -> None:
    """Print an answer as JSON, one key or row on each line. JSON has no NaN and no infinity: they become null.

    >>> print_answer({"grid": (2, 2), "error": float("inf"), "ranks": [{"rank": 0}, {"rank": 1}]})
    {
      "grid": [2, 2],
      "error": null,
      "ranks": [
        {"rank": 0},
        {"rank": 1}
      ]
    }
    """
    lines = [f"  {json.dumps(key)}: {_text(_finite(value))}" for key, value in answer.items()]
    click.echo("{\n" + ",\n".join(lines) + "\n}")


def _text(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        rows = [f"    {json.dumps(row, allow_nan=False)}" for row in value]
        return "[\n" + ",\n".join(rows) + "\n  ]"
    return json.dumps(value, allow_nan=False)


def _finite(value: Any) -> Any:
    """A value with null for each number in it that is infinite or NaN."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_finite, value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# --- the terminal ----------------------------------------------------------------------------------------------------


def on_terminal() -> bool:
    """Whether a user watches a terminal: never under mpiexec, whose ranks may have terminals that nobody sees."""
    return sys.stdout.isatty() and "mpi4py.MPI" not in sys.modules


def animated() -> bool:
    """Whether output may be animated: on a terminal that can do more than print lines."""
    return on_terminal() and os.environ.get("TERM") not in ("dumb", "unknown")


def coloured() -> bool:
    """Whether texts may have colours: not if the environment sets NO_COLOR (https://no-color.org)."""
    return animated() and not os.environ.get("NO_COLOR")


def columns(usual: int) -> int:
    """The width of the terminal, or of the variable COLUMNS in the environment; `usual` if neither is known."""
    return shutil.get_terminal_size((usual, 24)).columns


# --- phases ----------------------------------------------------------------------------------------------------------


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
        import numpy as np

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
