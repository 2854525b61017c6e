"""How a command line ends: with one text and one status, however many ranks run it.

Every rank of an MPI job runs the same command line. Rank 0 alone writes to the standard output. An error on all ranks
is printed once, and all exit with its status. An error on a single rank ends the job, since the others would wait for
that rank for ever.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..host import launched

if TYPE_CHECKING:
    from ..runtime.comm.mpi import MpiComm

__all__ = ["INTERRUPTED", "Rote", "described", "on_rank_0", "on_ranks"]

T = TypeVar("T")

INTERRUPTED = 130  # the status after Ctrl-C, by the convention of shells: 128 plus the signal's number
_PATIENCE = 3.0  # seconds for which a failed rank waits for the others to fail as well


class _NoCommand(click.UsageError):
    """A command line without a command. Its message is the help, which click before 8.2 would call a success."""


class Rote(click.Group):
    """A group of commands that ends as this module says, and imports a command when it runs."""

    def __init__(self, *args: Any, menu: dict[str, str], load: Callable[[str], click.Command], **extra: Any) -> None:
        super().__init__(*args, **extra)
        self.menu = menu  # the names of the commands, each with its line in the group's help
        self.load = load

    def list_commands(self, context: click.Context) -> list[str]:
        """The names, in the order of the menu."""
        return [*self.menu]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command of a name; None if there is none."""
        return self.load(name) if name in self.menu else None

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """The command and its arguments, as click has them; without any, the help is the text of a usage error."""
        if not args and not context.resilient_parsing:
            raise _NoCommand(context.get_help(), context)
        return super().parse_args(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """The menu, without loading a command."""
        with formatter.section("Commands"):
            formatter.write_dl([*self.menu.items()])

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
        others, text = None, ""
        try:
            others = _other_ranks()
            with _rank_0_speaks(others):
                answer = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
            status = answer if isinstance(answer, int) else 0
        except click.ClickException as error:
            text, status = _shown(error), error.exit_code
        except (click.Abort, KeyboardInterrupt):
            text, status = "interrupted", INTERRUPTED
        except Exception as error:
            if not _is_expected(error):
                raise
            text, status = described(error), 1
        if status:
            _say_once(text, status, others)
        sys.exit(status)


def on_ranks(program: Callable[..., T], ranks: int | None, default: int, *args: Any) -> T:
    """Run `program(comm, *args)` on the ranks of MPI if there are several, else in this process; rank 0's result.

    `ranks` are the in-process ranks that were asked for, `default` if None; a launcher of several refuses them.
    """
    from ..runtime import run, world

    comm = world()
    if comm.size > 1:
        if ranks is not None:
            raise click.UsageError(
                f"--ranks starts ranks inside one process, but mpiexec has started {comm.size} already; "
                "leave --ranks out, or mpiexec"
            )
        return program(comm, *args)
    number = ranks or default
    if number == 1:
        return program(comm, *args)
    return run(program, number, args)[0]


def on_rank_0(program: Callable[..., T], *args: Any) -> T:
    """Run `program(*args)` on rank 0 alone, and return its result on all; if MPI is broken, this process is rank 0."""
    from ..errors import CommError
    from ..runtime import world
    from ..runtime.comm.agreement import from_root

    try:
        comm = world()
    except CommError:
        return program(*args)
    return from_root(comm, lambda: program(*args))


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


def _is_expected(error: Exception) -> bool:
    """Whether values or the machine can cause this error; any other error is a bug in Rote."""
    from ..errors import RoteError

    return isinstance(error, RoteError | OSError | MemoryError)


def _shown(error: click.ClickException) -> str:
    """An error of the command line as one paragraph; the whole help if no command was given."""
    if isinstance(error, _NoCommand):
        return error.message
    if isinstance(error, click.UsageError) and error.ctx is not None:
        return f"Error: {error.format_message()}\ntry: {error.ctx.command_path} --help"
    text = io.StringIO()
    error.show(text)
    return text.getvalue().rstrip("\n")


def _other_ranks() -> MpiComm | None:
    """A separate communicator over the ranks of MPI, if there are several; a broken MPI is left to the command."""
    if not launched() and "mpi4py.MPI" not in sys.modules:
        return None
    from ..errors import CommError
    from ..runtime import world

    try:
        comm = world()
    except CommError:
        return None
    if comm.size == 1:
        return None
    from ..runtime.comm.mpi import MpiComm

    # Errors travel on a communicator of their own: a rank that fails may have left messages of the command unfinished.
    separate = comm.split(0, comm.rank)
    return separate if isinstance(separate, MpiComm) else None


@contextmanager
def _rank_0_speaks(others: MpiComm | None) -> Iterator[None]:
    if others is None or others.rank == 0:
        yield
        return
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        yield


def _say_once(text: str, status: int, others: MpiComm | None) -> None:
    """Print an error: on rank 0 if all ranks fail, else on the rank that fails alone, which then ends the job."""
    if others is not None:
        from ..runtime.comm.mpi import all_come, set_abort

        if all_come(others.handle, _PATIENCE):
            texts = dict.fromkeys(others.allgather_object(text))
            if others.rank == 0:
                _say("\n".join(texts))
            others.barrier()  # mpiexec may end a job when the first rank fails, which must not precede the message
            return
        if text and status != INTERRUPTED:
            text += f"\nrank {others.rank} of {others.size} fails alone, and ends the job"
        set_abort(SystemExit(status))
    _say(text)


def _say(text: str) -> None:
    if text:
        click.echo(text, err=True)
