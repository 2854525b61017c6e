"""Agreement: do all ranks make the same call, with the same arguments, and does it end without an error on all?

The ranks of a correct program make the same calls in the same order. In a wrong program one rank would wait for ever
for another, or take its message for something else. So calls of all ranks begin and end with a small message, and all
ranks raise the same error if the messages do not fit:

- `agree` compares what ranks give to a call: one small all-gather, in most calls only the first time;
- `gathered` collects what differs between ranks, and refuses the messages of another call;
- `collective_errors` ends a call: the error of one rank is raised on all, and `floating_errors` does so for NumPy's.

Every message is of one kind: `allgather_object`, of None, of an error, or of a pair that begins with the name of the
call. So ranks in different calls get each other's messages, and none waits.
"""

from __future__ import annotations

import marshal
import os
import pickle
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, is_dataclass
from itertools import zip_longest
from typing import Any, TypeVar
from zlib import crc32

import numpy as np

from ...errors import CommError, LayoutError
from .protocol import Comm

__all__ = ["CHECKS", "INSIDE", "Difference", "RemoteError", "agree", "collective_errors", "floating_errors"]
__all__ += ["calls_differ", "floating_errors_raise", "from_root", "gathered", "in_package", "name_ranks"]

T = TypeVar("T")

CHECKS: bool = os.environ.get("ROTE_CHECK", "") not in ("", "0")
"""Whether ranks compare every call, not only the first with its arguments, and replicas of new tensors."""

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_FOLDERS = (_PACKAGE, *(_PACKAGE[:-4] + name for name in ("fft", "grammar")), os.path.dirname(np.__file__))
INSIDE = tuple(os.path.join(folder, "") for folder in _FOLDERS)
"""The beginnings of the names of the files of this package, and of NumPy, whose functions call it."""


# --- the beginning of a call ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Difference:
    """The first part in which the arguments of a rank differ from those of rank 0.

    Attributes:
        rank: the lowest rank that differs.
        at: the number of the part.
        first, other: the part on rank 0 and on that rank, as text; "nothing" if there is none.
    """

    rank: int
    at: int
    first: str
    other: str


def agree(
    comm: Comm, what: str, key: Any, detail: bool = True, refusal: Callable[[Difference], Exception] | None = None
) -> None:
    """Refuse a call to which ranks give different arguments, with the same error on all ranks. Collective.

    It costs one small all-gather, and nothing on one rank. Where the result is cached, give the call to `cached`, which
    compares only when it makes a value.

    Args:
        what: the name of the call.
        key: its arguments, a tuple. Equal values must have equal parts, and different values different texts.
        detail: whether the error shows the first arguments that differ. If not, `key` is a value of numbers, text,
            bytes and tuples of them, such as the elements of an index, which are too many to be shown.
        refusal: makes the error from the difference; a LayoutError that names the call if None.

    Raises:
        LayoutError: the arguments differ.
        CommError: some ranks are in another call.

    >>> from rote.runtime import run
    >>> run(lambda comm: agree(comm, "fftn", ("float64" if comm.rank else "float32", "auto")), ranks=2)
    Traceback (most recent call last):
    ...
    rote.LayoutError: fftn is one call of all ranks, but rank 0 gives it float32 and rank 1 float64
    give every rank the same
    raised on rank 0 of 2
    """
    if comm.size == 1:
        return
    # Equal hashes end the call; what differs is asked for in a second message, which only an error needs.
    message = what, crc32(marshal.dumps(_parts(key) if detail else key, 0))
    messages = comm.allgather_object(message)
    if messages.count(message) == comm.size:
        return

    numbers = _values(what, messages)
    rank = next(rank for rank, number in enumerate(numbers) if number != numbers[0])

    texts = comm.allgather_object([str(argument) for argument in key] if detail else None)
    if texts[0] is None or texts[rank] is None:
        raise LayoutError(
            f"{what} is one call of all ranks, but not all give it the same arguments\n"
            "give every rank the same, and take what differs from x.local"
        )

    pairs = enumerate(zip_longest(texts[0], texts[rank], fillvalue="nothing"))
    at, (first, other) = next((pair for pair in pairs if pair[1][0] != pair[1][1]), (0, ("", "")))
    if refusal is not None:
        raise refusal(Difference(rank, at, first, other))
    raise LayoutError(
        f"{what} is one call of all ranks, but rank 0 gives it {first} and rank {rank} {other}\n"
        "give every rank the same"
    )


def _parts(value: object) -> Any:
    """The parts that identify a value. Hashes do not: they differ between ranks, and values cache them as fields."""
    if isinstance(value, tuple):
        return [*map(_parts, value)]
    if not is_dataclass(value):
        return str(value)
    return [_parts(getattr(value, field.name)) for field in fields(value) if field.compare]


def gathered(comm: Comm, what: str, value: T) -> list[T]:
    """The values of all ranks, which are in the same call; refused on all ranks if some are in another. Collective.

    >>> from rote.runtime import run
    >>> run(lambda comm: gathered(comm, "numbers", comm.rank), ranks=2)
    [[0, 1], [0, 1]]
    """
    return _values(what, comm.allgather_object((what, value)))


def _values(what: str, messages: Sequence[Any]) -> list[Any]:
    values = []
    for message in messages:
        if not isinstance(message, tuple) or message[:1] != (what,):
            raise calls_differ(messages)
        values.append(message[1])
    return values


def from_root(comm: Comm, make: Callable[[], T]) -> T:
    """The value that rank 0 makes, or the error that it raises, on all ranks. Collective.

    >>> from rote.runtime import run
    >>> run(lambda comm: from_root(comm, lambda: comm.rank), ranks=2)
    [0, 0]
    """
    with collective_errors(comm):
        made = make() if comm.rank == 0 else None
    shared: T = comm.allgather_object(made)[0]
    return shared


# --- the end of a call ------------------------------------------------------------------------------------------------


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


def _where(ranks: list[int], size: int) -> str:
    """The note that names the ranks that raised an error.

    >>> _where([2], 4), _where([1, 3], 4)
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
        error.add_note(_where([rank], size))
    return says


def in_package(file: str) -> bool:
    """Whether a file is of this package, or of NumPy, whose functions call it: not of the program that is run."""
    return file.startswith(INSIDE)


@dataclass(frozen=True, slots=True)
class collective_errors(AbstractContextManager[None]):
    """All ranks leave the body together: none raises, or all raise the same error.

    The body may raise on some ranks only. It must make no collective call after a point where it can fail, or the other
    ranks wait there. All ranks raise the error of the lowest failing rank: of the same type if it can be pickled, else
    a CommError with its text. A note names the ranks that failed. The rank that raised the error keeps its traceback;
    the others get it as text, in the cause. Collective; it costs one small all-gather, and nothing on one rank.

    An error that is no `Exception` (KeyboardInterrupt, SystemExit) passes immediately, on its rank, and ends the job.

    Parameters
    ----------
    comm : Comm
        The communicator of the ranks that agree.

    Examples
    --------
    >>> import rote
    >>> def program(comm):
    ...     with rote.runtime.collective_errors(comm):
    ...         if comm.rank == 1:
    ...             raise ValueError("bad block")
    >>> rote.run(program, ranks=3)
    Traceback (most recent call last):
    ...
    ValueError: bad block
    raised on rank 1 of 3
    """

    # It is no generator, in which StopIteration would become RuntimeError.
    comm: Comm

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Raise on this rank what any rank raises."""
        comm = self.comm
        if comm.size == 1 or not (error is None or isinstance(error, Exception)):
            return
        reports = comm.allgather_object(None if error is None else _Report.of(error))
        if not all(isinstance(report, _Report | None) for report in reports):
            raise calls_differ(reports) from error

        failed = [rank for rank, report in enumerate(reports) if report is not None]
        if not failed:
            return
        note = _where(failed, comm.size)
        if error is not None and failed[0] == comm.rank:
            error.add_note(note)
            return  # which raises it

        first = reports[failed[0]]
        cause = RemoteError(first.trace)
        cause.__context__ = error  # this rank's own error is not lost: it is printed above

        shared = first.error()
        shared.add_note(note)
        raise shared from cause


def calls_differ(messages: Sequence[object] = ()) -> CommError:
    """The error for ranks that receive the messages of a different call.

    Args:
        messages: that of each rank, if known.

    >>> print(str(calls_differ([("sum", 1), ("mean", 2)])).splitlines()[0])
    the ranks make different calls, or one has raised an error that it alone knows: rank 0 sum, rank 1 mean
    """
    calls = ", ".join(f"rank {rank} {_call_of(message)}" for rank, message in enumerate(messages))
    return CommError(
        f"the ranks make different calls, or one has raised an error that it alone knows{': ' * bool(calls)}{calls}\n"
        "all ranks of a communicator must make the same collective calls in the same order; "
        "with rote.runtime.collective_errors(comm): has them all raise what one does"
    )


def _call_of(message: object) -> str:
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
    others = np.geterrcall()
    raising: dict[str, Any] = {kind: "call" for kind, answer in np.geterr().items() if answer == "raise"}
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
