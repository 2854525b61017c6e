"""The policy for implicit moves of data, and the record of all moves.

The rule of each function of tensors says whether it moves data. A move is implicit if no call of `redistribute` asked
for it. The setting of `config` forbids implicit moves, warns of them once per line of the program, or allows them
silently. `trace` lists all moves.

A function whose ranks hold all that they need sends nothing, so it may be called on one rank alone. So the ranks
compare their calls, `agree_on_call`, only where the first message is due, and only at the first call with these
arguments.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np

from ..errors import LayoutError, MoveWarning
from ..layout.grid import Grid
from ..layout.layout import Layout, as_layout
from ..runtime.comm.cache import cached, refuse_others
from ..runtime.comm.protocol import Comm
from .distributed import Distributed

__all__ = [
    *("Config", "DataMove", "Policy", "agree_on_call", "call_under_way"),
    *("announce", "asked", "because", "config", "default_layout", "implicit_cause", "moved", "records_open", "trace"),
]

Policy = Literal["warn", "error", "allow"]
"""Whether implicit moves warn, are refused, or are silent."""

T = TypeVar("T", bound=Distributed)

Call = tuple[str, Sequence[Any], Mapping[str, Any]]
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_FOLDERS = (_PACKAGE, *(_PACKAGE[:-4] + each for each in ("fft", "grammar")), os.path.dirname(np.__file__))
_INSIDE = tuple(os.path.join(folder, "") for folder in _FOLDERS)  # NumPy's too: its operators call this package
_KEPT = 1024  # calls that one communicator keeps
_PLAIN = frozenset((int, str, bool, type(None), bytes, Layout, Grid))  # arguments that are equal as their values are


class DataMove(NamedTuple):
    """One move of data.

    Attributes:
        cause: the function that moved the data.
        plan: the way in words: the steps of a compiled plan, or an indexed move.
        nbytes: the most bytes that any one rank receives.
        implicit: whether no call of a move asked for it.
        where: the file and line of the program.
    """

    cause: str
    plan: str
    nbytes: int
    implicit: bool
    where: str

    def __str__(self) -> str:
        return f"{self.where}: {self.cause} moves {self.nbytes:,} bytes to one rank: {self.plan}"


@dataclass(frozen=True, slots=True)
class _Settings:
    implicit: Policy = "warn"
    layout: Callable[[tuple[int, ...]], Layout | str] | None = None


_settings: ContextVar[_Settings] = ContextVar("settings", default=_Settings())  # noqa: B039 - it is frozen
implicit_cause: ContextVar[str] = ContextVar("cause", default="")
"""The function whose moves are implicit at present; empty if moves are asked for."""

_asked: ContextVar[str] = ContextVar("asked", default="")

call_under_way: ContextVar[list[Call] | None] = ContextVar("rote_call", default=None)
"""The outermost call of a function, in a list that is empty as soon as its ranks have agreed on it; None outside."""

records_open: ContextVar[tuple[list[DataMove], ...]] = ContextVar("records", default=())
"""The lists to which every move is added at present."""
_warned: set[tuple[str, str]] = set()


class Config:
    """Settings that stay from now on or, used as a context manager, until the end of the block."""

    __slots__ = ("_before",)

    def __init__(self, before: _Settings) -> None:
        self._before = before

    def __enter__(self) -> Config:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _settings.set(self._before)


def config(
    *, implicit: Policy | None = None, layout: Callable[[tuple[int, ...]], Layout | str] | None = None
) -> Config:
    """Set which implicit moves are allowed, and the layout of new tensors.

    Call it with equal arguments on all ranks. Ranks that `rote.run` starts inherit the settings of their parent thread.

    Args:
        implicit: "warn", the default, warns of the first implicit move on each line of the program, with plan and
            bytes; "error" refuses every implicit move; "allow" is silent.
        layout: a function from shape to layout, for new tensors that are given no layout. The default splits mode 0
            over all ranks in blocks.

    Returns:
        A context manager that restores the earlier settings; without `with`, the new settings stay.

    Raises:
        ValueError: `implicit` is none of the three.

    >>> import numpy as np, rote
    >>> with rote.config(implicit="error"):
    ...     print(rote.DistTensor.zeros(4, "block[(0)]") + 1)
    DistTensor((4,), float64, 'block[(0)]', grid=(1,), rank=0, local=(4,))
    """
    before = _settings.get()
    if implicit is not None and implicit not in get_args(Policy):
        raise ValueError(f"implicit={implicit!r} is no policy\nwrite one of {', '.join(map(repr, get_args(Policy)))}")
    settings = before
    if implicit is not None:
        settings = replace(settings, implicit=implicit)
    if layout is not None:
        settings = replace(settings, layout=layout)
    _settings.set(settings)
    return Config(before)


@contextmanager
def trace() -> Iterator[list[DataMove]]:
    """List every move of data that this rank takes part in, asked for or implicit, with its cause.

    Returns:
        A context manager that gives the list; moves inside its block are added to it.

    >>> import numpy as np, rote
    >>> def program(comm):
    ...     x = rote.DistTensor.from_global(np.ones((4, 6)), "block[(0),()]", comm)
    ...     with rote.trace() as moves:
    ...         x.redistribute("block[(),(0)]")
    ...     return [(move.cause, move.nbytes, move.implicit) for move in moves]
    >>> rote.run(program, ranks=2)[0]
    [('redistribute', 48, False)]
    """
    moves: list[DataMove] = []
    token = records_open.set((*records_open.get(), moves))
    try:
        yield moves
    finally:
        records_open.reset(token)


@contextmanager
def because(cause: str) -> Iterator[None]:
    """Count all moves inside the block as implicit moves of a function: of the outermost one, if calls are nested."""
    token = implicit_cause.set(implicit_cause.get() or cause)
    try:
        yield
    finally:
        implicit_cause.reset(token)


def announce(x: Distributed, nbytes: int, plan: Callable[[], str], by_call: str = "redistribute") -> None:
    """Record that data is about to move, and warn of the move or refuse it if the settings say so.

    Args:
        x: the tensor.
        nbytes: the most bytes that any one rank receives; a move of no bytes is not announced.
        plan: gives the way in words; called only if the move is recorded or may be refused or warned of.
        by_call: the function that asked for the move, unless it is implicit (`because`).

    Raises:
        LayoutError: the move is implicit, and `config` refuses implicit moves.
    """
    cause, records, policy = implicit_cause.get(), records_open.get(), _settings.get().implicit
    if not nbytes or not (records or (cause and policy != "allow")):
        return
    file, line = _caller()
    move = DataMove(cause or _asked.get() or by_call, plan(), nbytes, bool(cause), f"{os.path.basename(file)}:{line}")
    for moves in records:
        moves.append(move)
    if cause and policy == "error":
        raise LayoutError(
            f"{move}\nmove it by x.redistribute(…) first, or allow it: with rote.config(implicit='allow'):"
        )
    if cause and policy == "warn" and x.comm.rank == 0 and (move.where, cause) not in _warned:
        _warned.add((move.where, cause))
        warnings.warn_explicit(str(move), MoveWarning, file, line)


def agree_on_call(comm: Comm) -> None:
    """Refuse the call that is under way if ranks give it different arguments, or make different calls. Collective.

    It is for the moment before a message. It costs one small all-gather at the first call with these arguments, and
    nothing later in the same call. Of arrays, shapes and dtypes are compared; `fetching.agree` compares their elements.

    Raises:
        LayoutError: the arguments differ.
        CommError: the calls differ.

    >>> from rote import DistTensor, run
    >>> def program(comm):
    ...     return DistTensor.zeros((4, 6), "block[(0),()]", comm).sum(axis=None if comm.rank else 0)
    >>> run(program, ranks=2)
    Traceback (most recent call last):
    ...
    rote.LayoutError: sum is one call of all ranks, but rank 0 gives it axis=0 and rank 1 axis=None
    give every rank the same
    raised on rank 0 of 2
    """
    calls = call_under_way.get()
    if not calls or comm.size == 1:
        return
    name, args, options = calls[0]

    def refuse() -> bool:
        named = [f"{option}={value}" for option, value in zip(options, map(_text, options.values()), strict=True)]
        refuse_others(comm, name, (*map(_text, args), *named))
        return True

    cached(comm, "calls", (name, *options, *_key((*args, *options.values()))), refuse, _KEPT)
    calls.clear()


def moved(x: T, layout: Layout | str, cause: str, grid: Grid | None = None) -> T:
    """The tensor in the layout that a function needs, moved by the compiled plan; itself if it has that layout."""
    across = grid is not None and grid != x.distribution.grid
    if not across and x.distribution.layout == as_layout(layout):
        return x
    agree_on_call(x.comm)
    with because(cause):
        return x.redistribute(layout, grid=grid if across else None)


def asked(x: T, layout: Layout, cause: str) -> T:
    """The tensor in the layout that the caller of a function asked for; recorded by its name, never warned of."""
    agree_on_call(x.comm)
    token = _asked.set(cause)
    try:
        return x.redistribute(layout)
    finally:
        _asked.reset(token)


def default_layout(shape: tuple[int, ...]) -> Layout | str:
    """The layout of a new tensor that is given none: that of `config`, or mode 0 split over grid mode 0 in blocks.

    >>> default_layout((4, 6))
    'block[(0),()]'
    """
    chosen = _settings.get().layout
    if chosen is not None:
        return chosen(shape)
    return f"block[{','.join(['(0)', *['()'] * (len(shape) - 1)][: len(shape)])}]"


def _key(values: Iterable[Any]) -> list[Any]:
    """Hashable parts that identify arguments, with equal ones on all ranks that give equal arguments."""
    parts: list[Any] = []
    for value in values:
        if type(value) in _PLAIN:
            parts.append(value)
        elif isinstance(value, Distributed):
            parts += (value.distribution, value.local.dtype)
        elif isinstance(value, list | tuple):
            parts += (len(value), *_key(value))
        else:
            parts.append(_text(value))
    return parts


def _text(value: Any) -> str:
    """An argument as users read it: of tensors and arrays all but their elements."""
    if isinstance(value, Distributed):
        return f"{value.distribution} of {value.local.dtype}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} of {value.dtype}"
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_text, value))})"
    if isinstance(value, Layout | Grid | np.dtype | np.generic | int | float | complex | str | bytes | slice | None):
        return str(value)
    return getattr(value, "__name__", type(value).__name__)


def _caller() -> tuple[str, int]:
    """The file and line of the program that called this package, directly or by an operator of NumPy."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
