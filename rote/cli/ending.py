"""How the command line ends: one text and one status, however many ranks run it.

Every rank of an MPI job runs the same command line. Rank 0 alone writes to the standard output. An error that all ranks
come to is printed once, and all leave with its status; one that a single rank comes to ends the job, for the others
would wait for it for ever.
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

from ..errors import CommError, RoteError

if TYPE_CHECKING:
    from ..runtime.mpi import MpiComm

__all__ = ["Rote", "described", "on_rank_0", "on_ranks", "on_terminal"]

T = TypeVar("T")

_EXPECTED = (RoteError, OSError, MemoryError)  # what values and machines can do; any other error is a bug of ours
_PATIENCE = 3.0  # seconds for which a failed rank waits for the others to fail as well


class Rote(click.Group):
    """A group of commands that ends as this module says."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = "rote",
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line and exit: status 0, 1 after an error, 2 after a wrong use."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        others = _other_ranks()
        text = ""
        with _rank_0_speaks(others):
            try:
                found = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
                status = found if isinstance(found, int) else 0
            except click.ClickException as error:
                text, status = _shown(error), error.exit_code
            except click.Abort:
                text, status = "interrupted", 1
            except _EXPECTED as error:
                text, status = described(error), 1
        if status:
            _say_once(text, status, others)
        sys.exit(status)


def on_ranks(program: Callable[..., T], ranks: int | None, default: int, *args: Any) -> T:
    """What `program(comm, *args)` returns on rank 0: on the ranks of MPI if there are several, else on in-process ones.

    Args:
        ranks: the in-process ranks that were asked for; `default` if None.

    Raises:
        click.UsageError: in-process ranks are asked for under a launcher that has started several.
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
    wanted = default if ranks is None else ranks
    return program(comm, *args) if wanted == 1 else run(program, wanted, args)[0]


def on_rank_0(program: Callable[[], int]) -> int:
    """What a program returns that only rank 0 runs, on all ranks; this process is rank 0 where MPI is broken."""
    from ..runtime import agreed, world

    try:
        comm = world()
    except CommError:
        return program()
    with agreed(comm):
        found = program() if comm.rank == 0 else 0
    return int(comm.allgather_object(found)[0])


def on_terminal() -> bool:
    """Whether somebody watches: never under mpiexec, which may give its ranks terminals that nobody sees."""
    return sys.stdout.isatty() and "mpi4py.MPI" not in sys.modules


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
    text = io.StringIO()
    error.show(text)
    return text.getvalue().rstrip("\n")


def _other_ranks() -> MpiComm | None:
    """A communicator of its own over the ranks of MPI, if there are several; a broken MPI is left to the command."""
    from ..runtime import world

    try:
        comm = world()
    except CommError:
        return None
    if comm.size == 1:
        return None
    from ..runtime.mpi import MpiComm

    apart = comm.split(0, comm.rank)
    return apart if isinstance(apart, MpiComm) else None


@contextmanager
def _rank_0_speaks(others: MpiComm | None) -> Iterator[None]:
    if others is None or others.rank == 0:
        yield
        return
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        yield


def _say_once(text: str, status: int, others: MpiComm | None) -> None:
    """Print an error: rank 0 for all that come here, else whoever fails alone, which ends the job."""
    if others is not None:
        from ..runtime.mpi import all_come, set_abort

        if all_come(others, _PATIENCE):
            texts = dict.fromkeys(others.allgather_object(text))
            text = "\n".join(texts) if others.rank == 0 else ""
        else:
            text += f"\nrank {others.rank} of {others.size} fails alone, and ends the job" if text else ""
            set_abort(SystemExit(status))
    if text:
        click.echo(text, err=True)
