"""Collective errors: an error that only some ranks notice is raised on all ranks."""

from __future__ import annotations

import os
import pickle
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ...errors import CommError
from .protocol import Comm

__all__ = [
    *("RemoteError", "all_come", "collective_errors", "floating_errors", "floating_errors_raise", "from_root"),
    *("INSIDE", "in_package", "name_ranks", "ranks_apart", "where"),
]

T = TypeVar("T")

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_FOLDERS = (_PACKAGE, *(_PACKAGE[:-4] + each for each in ("fft", "grammar")), os.path.dirname(np.__file__))
INSIDE = tuple(os.path.join(folder, "") for folder in _FOLDERS)
"""The beginnings of the names of the files of this package, and of NumPy, whose functions call it."""


class RemoteError(Exception):
    """The cause of an error that another rank raised: the traceback on that rank, as text."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


@dataclass(frozen=True, slots=True)
class _Report:
    """An error on its way to the other ranks."""

    pickled: bytes | None  # None when the error does not survive pickling
    text: str
    trace: str

    @classmethod
    def of(cls, error: Exception) -> _Report:
        text = "".join(traceback.format_exception_only(error)).rstrip()
        trace = "".join(traceback.format_exception(error))
        try:
            pickled = pickle.dumps(error)
            twin = pickle.loads(pickled)
        except Exception:  # whatever an error's own __reduce__ and __init__ may raise
            return cls(None, text, trace)
        same = type(twin) is type(error) and str(twin) == str(error)
        return cls(pickled if same else None, text, trace)

    def error(self) -> Exception:
        """The error, rebuilt; if that is impossible, a CommError with its text."""
        try:
            twin = None if self.pickled is None else pickle.loads(self.pickled)
        except Exception:  # a type that only the failing rank has imported
            twin = None
        return twin if isinstance(twin, Exception) else CommError(self.text)


def where(ranks: list[int], size: int) -> str:
    """The note that names the ranks that raised an error.

    >>> where([2], 4), where([1, 3], 4)
    ('raised on rank 2 of 4', 'raised on ranks 1, 3 of 4')
    """
    return f"raised on rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))} of {size}"


def name_ranks(error: BaseException, rank: int, size: int) -> bool:
    """Note on an error that ends a program that this rank raised it, unless it says already which ranks did.

    Returns:
        Whether it says so already, because all ranks raise it.
    """
    says = any(note.startswith("raised on rank") for note in getattr(error, "__notes__", ()))
    if size > 1 and not says:
        error.add_note(where([rank], size))
    return says


def in_package(file: str) -> bool:
    """Whether a file is of this package, or of NumPy, whose functions call it: not of the program that is run."""
    return file.startswith(INSIDE)


def collective_errors(comm: Comm) -> AbstractContextManager[None]:
    """All ranks leave the body together: none raises, or all raise the same error.

    The body may raise on some ranks only. It must make no collective call after a point where it can fail, or the other
    ranks wait there. All ranks raise the error of the lowest failing rank: of the same type if it can be pickled, else
    a CommError with its text. A note names the ranks that failed. The rank that raised the error keeps its traceback;
    the others get it as text, in the cause. Collective; it costs one small all-gather, and nothing on one rank.

    An error that is no `Exception` (KeyboardInterrupt, SystemExit) passes at once, on its rank only, and ends the job.

    >>> from rote.runtime import run
    >>> def program(comm):
    ...     with collective_errors(comm):
    ...         if comm.rank == 1:
    ...             raise ValueError("bad block")
    >>> run(program, ranks=3)
    Traceback (most recent call last):
    ...
    ValueError: bad block
    raised on rank 1 of 3
    """
    return _Agreeing(comm)


@dataclass(frozen=True, slots=True)
class _Agreeing(AbstractContextManager[None]):
    """The body of `collective_errors`. It is no generator, in which StopIteration would become RuntimeError."""

    comm: Comm

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Raise on this rank what any rank raises."""
        comm = self.comm
        if comm.size == 1 or not (error is None or isinstance(error, Exception)):
            return
        reports = comm.allgather_object(None if error is None else _Report.of(error))
        if not all(each is None or isinstance(each, _Report) for each in reports):
            raise ranks_apart(reports) from error
        failed = [rank for rank, report in enumerate(reports) if report is not None]
        if not failed:
            return
        note = where(failed, comm.size)
        if error is not None and failed[0] == comm.rank:
            error.add_note(note)
            return  # which raises it
        first = reports[failed[0]]
        cause = RemoteError(first.trace)
        cause.__context__ = error  # this rank's own error is not lost: it is printed above
        shared = first.error()
        shared.add_note(note)
        raise shared from cause


def from_root(comm: Comm, make: Callable[[], T]) -> T:
    """The value that rank 0 makes, or the error that it raises, on all ranks. Collective.

    >>> from rote.runtime import run
    >>> run(lambda comm: from_root(comm, lambda: comm.rank), ranks=2)
    [0, 0]
    """
    with collective_errors(comm):
        made = [make()] if comm.rank == 0 else []
    shared: T = comm.allgather_object(made)[0][0]
    return shared


def ranks_apart(messages: Sequence[object] = ()) -> CommError:
    """The error for ranks that receive the messages of a different call.

    Args:
        messages: that of each rank, if known. A call begins with a pair of its name and a number.

    >>> print(str(ranks_apart([("sum", 1), ("mean", 2)])).splitlines()[0])
    the ranks make different calls, or one has raised an error that it alone knows: rank 0 sum, rank 1 mean
    """
    calls = ", ".join(f"rank {rank} {_call_of(message)}" for rank, message in enumerate(messages))
    return CommError(
        f"the ranks make different calls, or one has raised an error that it alone knows{': ' * bool(calls)}{calls}\n"
        "all ranks of a communicator must make the same collective calls in the same order; "
        "with rote.runtime.collective_errors(comm): has them all raise what one does"
    )


def _call_of(message: object) -> str:
    """The call, in words, that has sent a message."""
    if isinstance(message, _Report):
        return message.text
    if isinstance(message, tuple) and message and isinstance(message[0], str):
        return message[0]
    return "the end of a call or of the program" if message is None else "another call"


def floating_errors_raise() -> bool:
    """Whether NumPy is set to raise floating-point errors of any kind, as by `numpy.seterr(all="raise")`."""
    return "raise" in np.geterr().values()


@contextmanager
def floating_errors(comm: Comm, name: str) -> Iterator[None]:
    """Raise FloatingPointError on all ranks if NumPy would raise it on some, after the body has ended on every rank.

    So the body may make collective calls, before and after the failing operation. Collective if `floating_errors_raise`
    is true, which all ranks must set alike: it then costs one small all-gather. On one rank NumPy raises by itself.

    Args:
        name: the name of the function, for the error's text.

    >>> import numpy as np
    >>> from rote.runtime import run
    >>> def program(comm):
    ...     with np.errstate(all="raise"), floating_errors(comm, "log"):
    ...         np.log(np.arange(comm.rank, 3.0))
    >>> run(program, ranks=3)
    Traceback (most recent call last):
    ...
    FloatingPointError: divide by zero encountered in log
    raised on rank 0 of 3
    """
    own, others = np.geterr(), np.geterrcall()
    raising: dict[str, Any] = {kind: "call" for kind, answer in own.items() if answer == "raise"}
    if comm.size == 1 or not raising:
        yield
        return
    met: list[str] = []

    def meet(text: str, flag: int) -> None:
        if text.partition(" ")[0].removesuffix("flow") in raising:  # "divide by zero", "overflow", "invalid value"
            met.append(text)
        elif callable(others):
            others(text, flag)

    with np.errstate(call=meet, **raising):
        yield
    with collective_errors(comm):
        if met:
            raise FloatingPointError(f"{met[0]} encountered in {name}")


def all_come(comm: Any, seconds: float) -> bool:
    """Whether all ranks of an MPI communicator make this call within `seconds` of this rank.

    It is for a rank that has failed and does not know which others have: they may be waiting in a collective call on
    another communicator. After False, the communicator can only be aborted.
    """
    coming = comm.handle.Ibarrier()
    until = time.monotonic() + seconds
    while not coming.Test():
        if time.monotonic() > until:
            return False
        time.sleep(0.001)
    return True
