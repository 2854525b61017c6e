"""How a command prints and ends, on however many ranks: answers, phases while it runs, errors and the exit status.

Every rank of an MPI job runs the same command line. Only rank 0 writes to the standard output, and animates and
colours only what a user watches on a terminal. An error on all ranks is printed once, and all exit with its status. An
error on a single rank ends the job, since the others would wait for that rank for ever.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from time import perf_counter
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from ..errors import CommError, RoteError
from ..host import launched

if TYPE_CHECKING:
    from ..runtime.comm.mpi import MpiComm
    from ..runtime.comm.protocol import Comm

__all__ = ["INTERRUPTED", "Answer", "Rote", "Watch", "coloured", "described", "give", "json_option", "on_rank_0"]
__all__ += ["on_ranks", "on_terminal", "print_answer", "progress", "say", "silent"]

T = TypeVar("T")
Answer = dict[str, Any]

INTERRUPTED = 130  # the status after Ctrl-C, by the convention of shells: 128 plus the signal's number
_PATIENCE = 3.0  # seconds for which a failed rank waits for the others to fail as well

json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the result as JSON, and nothing else; notebooks/json-keys.md lists the keys.",
)


# --- answers ---------------------------------------------------------------------------------------------------------


def give(as_json: bool, program: Callable[[], Answer]) -> Answer:
    """Run a program that prints text for people and returns an answer; with --json, print nothing but the answer.

    Errors are not answers: they go to standard error and into the exit status, as without --json. The answer has JSON
    values, under keys that are always there.
    """
    with silent(as_json):
        answer = program()
    if as_json:
        print_answer(answer)
    return answer


@contextmanager
def silent(quiet: bool = True) -> Iterator[None]:
    """Print nothing on the standard output, unless `quiet` is false."""
    if not quiet:
        yield
        return

    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        yield


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
    lines = []
    for key, value in _finite(answer).items():
        text = json.dumps(value, allow_nan=False)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            text = "[\n" + ",\n".join([f"    {json.dumps(row, allow_nan=False)}" for row in value]) + "\n  ]"
        lines.append(f"  {json.dumps(key)}: {text}")
    click.echo("{\n" + ",\n".join(lines) + "\n}")


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
def progress(comm: Comm | None, name: str) -> Iterator[Callable[[float], None] | None]:
    """Show on a terminal, from rank 0, which part is done; until the function is called, that something is.

    Without ranks, as while a prediction is planned, there is no communicator.
    """
    if (comm is not None and comm.rank) or not animated():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda part: bar.update(task, total=1.0, completed=part)


# --- ranks -----------------------------------------------------------------------------------------------------------


def on_ranks(program: Callable[..., T], ranks: int | None, default: int, *args: Any) -> T:
    """Run `program(comm, *args)` on the ranks of MPI if there are several, else in this process; rank 0's result.

    `ranks` is the option --ranks, the number of in-process ranks, `default` if None; under a launcher it is refused.
    """
    from ..runtime import run, world

    comm = world()
    if comm.size > 1 and ranks is not None:
        raise click.UsageError(
            f"--ranks starts ranks inside one process, but mpiexec has started {comm.size} already; "
            "leave --ranks out, or mpiexec"
        )

    # One rank is this very thread, as under a launcher.
    number = ranks or default
    if comm.size > 1 or number == 1:
        return program(comm, *args)
    return run(program, number, args)[0]


def on_rank_0(program: Callable[..., T], *args: Any) -> T:
    """Run `program(*args)` on rank 0 only, and return its result on all; if MPI is broken, this process is rank 0."""
    from ..runtime import world
    from ..runtime.comm.agreement import from_root

    try:
        comm = world()
    except CommError:
        return program(*args)
    return from_root(comm, lambda: program(*args))


# --- the end ---------------------------------------------------------------------------------------------------------


class Rote(click.Group):
    """A group of commands that ends as this module says, and imports a command when it runs.

    `menu` has for each command its line in the group's help, and what imports its module.
    """

    def __init__(self, *args: Any, menu: dict[str, tuple[str, Callable[[], ModuleType]]], **extra: Any) -> None:
        super().__init__(*args, **extra)
        self.menu = menu

    def list_commands(self, context: click.Context) -> list[str]:
        """The names, in the order of the menu."""
        return [*self.menu]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command of a name; None if there is none."""
        if name not in self.menu:
            return None
        command: click.Command = getattr(self.menu[name][1](), name)
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of the first argument; a usage error that names the nearest one if there is none."""
        try:
            return super().resolve_command(context, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            written = args[0].lower()
            hints = [f"did you mean {name}?" for name in get_close_matches(written, self.menu, n=1)]
            if written in ("help", "version"):
                hints = [f"did you mean --{written}?"]
            raise click.UsageError("\n".join([error.message, *hints]), context) from None

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """The command and its arguments, as click has them; without any, the help is the text of a usage error."""
        if not args and not context.resilient_parsing:  # click before 8.2 would call this a success
            raise click.UsageError(context.get_help())
        return super().parse_args(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """The menu, without loading a command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (line, _) in self.menu.items()])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = "rote",
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line and exit: status 0, 1 after an error, 2 after a usage error, 130 after Ctrl-C."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        # click's own way to exit would print an error on every rank, and leave ranks waiting for one that fails alone.
        others, text = None, ""

        try:
            others = _other_ranks()
            with silent(others is not None and others.rank > 0):
                answer = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
            status = answer if isinstance(answer, int) else 0
        except click.ClickException as error:
            text, status = _shown(error), error.exit_code
        except (click.Abort, KeyboardInterrupt):
            text, status = "interrupted", INTERRUPTED
        except (RoteError, OSError, MemoryError) as error:  # any other is a bug in Rote, and shows its traceback
            text, status = described(error), 1

        if status:
            _say_once(text, status, others)
        sys.exit(status)


def described(error: BaseException) -> str:
    """An error as the text that a user reads; a note that it came from other ranks than rank 0 is part of it.

    >>> print(described(FileNotFoundError(2, "No such file or directory", "a.npy")))
    Error: a.npy: No such file or directory
    """

    text = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror if error.filename is None else f"{os.fspath(error.filename)}: {error.strerror}"

    notes = [note for note in getattr(error, "__notes__", ()) if not re.match(r"raised on ranks? 0\b", note)]
    return "\n".join([f"Error: {text}", *notes])


def _shown(error: click.ClickException) -> str:
    """An error of the command line as one paragraph; where a command is missing, it is the whole help."""
    text = error.format_message()
    if text.startswith("Usage: "):
        return text

    if not isinstance(error, click.UsageError):
        return f"Error: {text}"

    command = error.ctx.command_path if error.ctx else "rote"  # click gives none for an option without its value
    return f"Error: {text}\ntry: {command} --help"


def _other_ranks() -> MpiComm | None:
    """A separate communicator over the ranks of MPI, if there are several; a broken MPI is left to the command."""
    if not launched() and "mpi4py.MPI" not in sys.modules:
        return None
    from ..runtime import world

    try:
        comm = world()
    except CommError:
        return None

    # Errors travel on a communicator of their own: a rank that fails may have left messages of the command unfinished.
    return None if comm.size == 1 else cast("MpiComm", comm.split(0, comm.rank))


def _say_once(text: str, status: int, others: MpiComm | None) -> None:
    """Print an error: on rank 0 if all ranks fail, else on the rank that fails alone, which then ends the job."""
    if others is not None:
        from ..runtime.comm.mpi import all_come, set_abort

        if all_come(others.handle, _PATIENCE):
            texts = dict.fromkeys(others.allgather_object(text))
            if others.rank == 0 and any(texts):
                click.echo("\n".join(texts), err=True)
            others.barrier()  # mpiexec may end a job when the first rank fails, which must not precede the message
            return
        if text and status != INTERRUPTED:
            text += f"\nrank {others.rank} of {others.size} fails alone, and ends the job"

        set_abort(SystemExit(status))

    if text:
        click.echo(text, err=True)
