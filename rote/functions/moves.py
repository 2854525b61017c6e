"""Moves of data: which may happen without being asked for, and the record of all.

Every function of tensors says by its rule whether it moves data. A move that no call of `redistribute` asked for is
implicit: it is forbidden, warned of once per line of the program, or silent, as `config` has it. `trace` lists all.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Literal, NamedTuple, TypeVar, get_args

import numpy as np

from ..errors import LayoutError, MoveWarning
from ..layout.grid import Grid
from ..layout.layout import Layout, as_layout
from .distributed import Distributed

__all__ = [
    *("Config", "DataMove", "Policy"),
    *("announce", "asked", "because", "config", "default_layout", "implicit_cause", "moved", "records_open", "trace"),
]

Policy = Literal["warn", "error", "allow"]
"""Whether implicit moves warn, are refused, or are silent."""

T = TypeVar("T", bound=Distributed)

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_FOLDERS = (_PACKAGE, *(_PACKAGE[:-4] + each for each in ("fft", "grammar")), os.path.dirname(np.__file__))
_INSIDE = tuple(os.path.join(folder, "") for folder in _FOLDERS)  # NumPy's too, which calls back for operators


class DataMove(NamedTuple):
    """One move of data.

    Attributes:
        cause: the function that moved it.
        plan: how, in words: the steps of a compiled plan, or an indexed move.
        nbytes: the most that any one rank receives.
        implicit: whether no call of a move asked for it.
        where: file and line of the program.
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
"""The function whose moves are implicit for now; empty where they are asked for."""

_asked: ContextVar[str] = ContextVar("asked", default="")

records_open: ContextVar[tuple[list[DataMove], ...]] = ContextVar("records", default=())
"""The lists that grow by every move for now."""
_warned: set[tuple[str, str]] = set()


class Config:
    """Settings that hold from now on, or, as a context manager, to the end of the block."""

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
    """Set which implicit moves are allowed, and the layout of new tensors. Call it alike on all ranks.

    Ranks that `rote.run` starts take over the settings of the thread that starts them.

    Args:
        implicit: "warn", the default, warns at the first implicit move of each line of the program, with plan and
            bytes; "error" refuses every implicit move; "allow" is silent.
        layout: the layout of new tensors that name none: a function from shape to layout. The default splits mode 0
            over all ranks in blocks.

    Returns:
        A context manager that restores the settings before; without `with`, the new settings stay.

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
        A context manager that gives the list, which grows inside its block.

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
    """Take all moves inside for implicit ones of a function; of the outermost one, where they are nested."""
    token = implicit_cause.set(implicit_cause.get() or cause)
    try:
        yield
    finally:
        implicit_cause.reset(token)


def announce(x: Distributed, nbytes: int, plan: Callable[[], str], by_call: str = "redistribute") -> None:
    """Say that data is about to move: to the record, to the user or, where that is refused, to nobody else.

    Args:
        x: the tensor.
        nbytes: the most that any one rank receives; nothing is said of a move of none.
        plan: how, in words; asked for only if somebody wants to know.
        by_call: the function that asked for it, unless it is implicit (`because`).

    Raises:
        LayoutError: the move is implicit, and `config` refuses those.
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


def moved(x: T, layout: Layout | str, cause: str, grid: Grid | None = None) -> T:
    """The tensor in another layout, moved by the compiled plan because a function needs it so; itself if it lies so."""
    across = grid is not None and grid != x.distribution.grid
    if not across and x.distribution.layout == as_layout(layout):
        return x
    with because(cause):
        return x.redistribute(layout, grid=grid if across else None)


def asked(x: T, layout: Layout, cause: str) -> T:
    """The tensor in another layout, which is what a function was asked for: recorded by its name, never warned of."""
    token = _asked.set(cause)
    try:
        return x.redistribute(layout)
    finally:
        _asked.reset(token)


def default_layout(shape: tuple[int, ...]) -> Layout | str:
    """Where a new tensor lies if nobody says it: as `config` has it, or with mode 0 split over grid mode 0 in blocks.

    >>> default_layout((4, 6))
    'block[(0),()]'
    """
    chosen = _settings.get().layout
    if chosen is not None:
        return chosen(shape)
    return f"block[{','.join(['(0)', *['()'] * (len(shape) - 1)][: len(shape)])}]"


def _caller() -> tuple[str, int]:
    """File and line of the program that called this package, be it by an operator of NumPy's."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
