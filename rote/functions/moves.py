"""The policy for implicit moves of data and for copies of whole tensors, and the record of all moves.

One rule holds for all functions: communication that the function needs by definition is not implicit, such as a sum or
a shift; bringing an operand to another layout is, and so is gathering it (`moved`). The setting of `config` forbids
implicit moves, warns of them once per line of the program, or allows them silently. A result that every rank holds
whole, and that is larger than 64 KiB and than the largest operand's block, is warned of (`warn_of_copies`). `trace`
lists all moves.

A function whose ranks hold all that they need sends nothing, so it may be called on only one rank. So the ranks
compare their calls only where the first message is due, and only at the first call with these arguments. Functions that
often send note their calls, `agree_on_call`; others give the call with the operand that moves, `agree_once`.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, is_dataclass
from math import prod
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from ..errors import GatherWarning, LayoutError, MoveWarning
from ..host import memory
from ..layout.distribution import Distribution, distribute
from ..layout.grid import Grid
from ..layout.layout import Layout, shortened
from ..runtime.comm.agreement import INSIDE, gathered
from ..runtime.comm.cache import cached
from ..runtime.comm.protocol import Comm
from ..units import in_bytes
from .distributed import Distributed, T, is_foreign, shape_of

__all__ = ["Attribution", "DataMove", "KeyedCall", "Policy", "Solver", "agree_on_call", "agree_once", "attributed_to"]
__all__ += ["attribution", "config", "default_layout", "gathers_are_silent", "moved", "record_move", "records_open"]
__all__ += ["redistributed", "refuse_copies", "solver", "trace", "warn_at_caller", "warn_of_copies", "warn_of_root"]

Policy = Literal["warn", "error", "allow"]
"""Whether something is warned of, refused, or silent."""

Solver = Literal["auto", "scalapack", "walk", "gather"]
"""What factors a matrix that is split over ranks."""


Call = tuple[str, Sequence[Any], Mapping[str, Any]]
"""A call: its function's name, its arguments, and those that are named."""

KeyedCall = tuple[Hashable, Call]
"""A call, after what identifies it: where its tensors are. With other numbers it is the same call."""

_GATHER = 16 << 20  # bytes of a whole tensor from which a gather is called so, and compared with a node's memory
_COPY = 64 << 10  # bytes of a result from which it is warned of where every rank holds it
_KEPT = 1024  # calls that one communicator keeps
_PLAIN = frozenset((int, str, bool, type(None), bytes, Layout, Grid))  # arguments that are equal as their values are


class DataMove(NamedTuple):
    """One move of data.

    Attributes
    ----------
    cause : str
        The function that moved the data.
    plan : str
        The way in words: the steps of a compiled plan, or an indexed move.
    nbytes : int
        The most bytes that any one rank receives.
    implicit : bool
        Whether no call of a move asked for it.
    where : str
        The file and line of the program.

    Examples
    --------
    >>> import rote
    >>> def program(comm):
    ...     with rote.trace() as moves:
    ...         rote.DistTensor.zeros(4, "block[(0)]", comm).redistribute("[()]")
    ...     return moves[0]
    >>> move = rote.run(program, ranks=2)[0]
    >>> move.cause, move.nbytes, move.implicit
    ('redistribute', 16, False)
    """

    cause: str
    plan: str
    nbytes: int
    implicit: bool
    where: str

    def __str__(self) -> str:
        return f"{self.where}: {self.cause} moves up to {self.nbytes:,} bytes to each rank: {shortened(self.plan)}"


@dataclass(frozen=True, slots=True)
class _Settings:
    implicit: Policy = "warn"
    gather: Policy = "warn"
    layout: Callable[[tuple[int, ...]], Layout | str] | None = None
    linalg: Solver = "auto"


_settings: ContextVar[_Settings] = ContextVar("settings", default=_Settings())  # noqa: B039 - it is frozen


class Implicit(NamedTuple):
    """An implicit move: the function that makes it, the bytes of a gather (0 for other moves), and what to write."""

    cause: str
    gathered: int
    hint: Callable[[], str]


class Attribution(NamedTuple):
    """The outermost function, which all moves at present are counted for."""

    name: str = ""
    of_result: bool = False  # whether all moves are of what it has computed, and so not implicit
    call: list[Call] | None = None  # empty as soon as its ranks have agreed on the call; None outside of functions
    implicit: Implicit | None = None  # the move that is made at present; None if it is asked for, or a function's own


attribution: ContextVar[Attribution] = ContextVar("function", default=Attribution())  # noqa: B039 - it is frozen
"""The outermost function whose moves are made at present."""

records_open: ContextVar[tuple[list[DataMove], ...]] = ContextVar("records", default=())
"""The lists to which every move is added at present."""
_warned: set[tuple[str, int, str]] = set()


def config(
    *,
    implicit: Policy | None = None,
    gather: Policy | None = None,
    layout: Callable[[tuple[int, ...]], Layout | str] | None = None,
    linalg: Solver | None = None,
) -> AbstractContextManager[object]:
    """Set which implicit moves and which gathers are allowed, the layout of new tensors, and what factors matrices.

    Call it with equal arguments on all ranks. Ranks that `rote.run` starts inherit the settings of their parent thread.

    Parameters
    ----------
    implicit : {'warn', 'error', 'allow'}, optional
        Of moves that bring an operand to another layout: "warn", the default, warns of the first on each line of the
        program, with plan and bytes; "error" refuses each; "allow" is silent. What a function sends to combine or shift
        its own result is not implicit.
    gather : {'warn', 'error', 'allow'}, optional
        Of 16 MiB or more that every rank comes to hold whole, or one rank for a solver: "warn", the default, warns of
        the first implicit gather on each line of the program, and refuses any, `x.to_global()` too, whose copies on the
        ranks of a node would take more than half of its memory; "error" refuses each; "allow" is silent.
    layout : Callable[[tuple[int, ...]], Layout | str], optional
        A function from shape to layout, for new tensors that are given no layout. The default splits mode 0 over all
        ranks in blocks.
    linalg : {'auto', 'scalapack', 'walk', 'gather'}, optional
        Of a matrix that is split over ranks: "auto", the default, takes ScaLAPACK where all ranks have it, otherwise
        Rote's own walks, and one rank for small matrices; "scalapack", "walk" and "gather", which is one rank, take
        that one. Eigenvalues and singular values have no walk, and are computed on one rank instead.

    Returns
    -------
    AbstractContextManager[object]
        A context manager that restores the earlier settings; without `with`, the new settings stay.

    Raises
    ------
    ValueError
        `implicit`, `gather` or `linalg` is none of these.
    TypeError
        `layout` is no function.

    See Also
    --------
    rote.trace : List the moves that are made.

    Examples
    --------
    >>> import numpy as np, rote
    >>> with rote.config(implicit="error"):
    ...     print(rote.DistTensor.zeros(4, "block[(0)]") + 1)
    DistTensor((4,), float64, 'block[(0)]', grid=(1,), rank=0, local=(4,))
    """
    before = _settings.get()
    for name, policy, known in (("implicit", implicit, Policy), ("gather", gather, Policy), ("linalg", linalg, Solver)):
        if policy is not None and policy not in get_args(known):
            raise ValueError(f"{name}={policy!r} is no policy\nwrite one of {', '.join(map(repr, get_args(known)))}")
    if layout is not None and not callable(layout):
        raise TypeError(f"layout={layout!r} is no function\nwrite layout=lambda shape: …, which gives a layout")

    # Set now, not at `with`: a call alone changes the settings for good.
    new = implicit or before.implicit, gather or before.gather, layout or before.layout, linalg or before.linalg
    _settings.set(_Settings(*new))
    restoring = ExitStack()
    restoring.callback(_settings.set, before)
    return restoring


@contextmanager
def trace() -> Iterator[list[DataMove]]:
    """List every move of data that this rank takes part in, asked for or implicit, with its cause.

    These are the moves of functions, transforms, halos, keys, bound moves and gathers. The few bytes by which ranks
    agree on calls, sizes and truth values are not listed, nor what files move as they are read and written.

    Returns
    -------
    AbstractContextManager[list[DataMove]]
        A context manager that gives the list; moves inside its block are added to it.

    See Also
    --------
    rote.config : Refuse or allow implicit moves.

    Examples
    --------
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


class attributed_to:
    """Count all moves inside the block as moves of a function: of the outermost one, if calls are nested.

    Args:
        cause: the name of the function.
        of_result: whether all of them are of what it has computed, and none of an operand.
    """

    __slots__ = ("_cause", "_of_result", "_token")

    def __init__(self, cause: str, of_result: bool = False) -> None:
        self._cause, self._of_result = cause, of_result

    def __enter__(self) -> None:
        outer = attribution.get()
        of_result = outer.of_result or self._of_result
        self._token = attribution.set(Attribution(outer.name or self._cause, of_result, outer.call))

    def __exit__(self, *error: object) -> None:
        attribution.reset(self._token)


def record_move(
    x: Distributed, nbytes: int, plan: Callable[[], str], caller: str = "redistribute", implicit: Implicit | None = None
) -> None:
    """Record that data is about to move; if the move is implicit, warn of it or refuse it as the settings say.

    Args:
        x: the tensor.
        nbytes: the most bytes that any one rank receives; a move of no bytes is not announced.
        plan: gives the way in words; called only if the move is recorded or may be refused or warned of.
        caller: the function that asked for the move, or whose own move it is; an outer one is named in its place.
        implicit: what makes the move implicit; if None, the implicit move that is made at present, if any.

    Raises:
        LayoutError: the move is implicit, and `config` refuses implicit moves.
    """
    work, records, settings = attribution.get(), records_open.get(), _settings.get()
    implicit = implicit or work.implicit
    if not nbytes or not (records or (implicit and settings.implicit != "allow")):
        return
    # If no list is open, only rank 0 needs the move, and only for its first warning: warm moves write no plan in words.
    silent = not records and settings.implicit == "warn"
    if silent and x.comm.rank:
        return
    file, line = _caller()
    cause = work.name or (implicit.cause if implicit else caller)
    if silent and (file, line, cause) in _warned:
        return

    move = DataMove(cause, plan(), nbytes, implicit is not None, f"{os.path.basename(file)}:{line}")
    for moves in records:
        moves.append(move)

    if implicit is None or settings.implicit == "allow":
        return
    if settings.implicit == "error":
        raise LayoutError(f"{move}\n{implicit.hint()}, or allow it: with rote.config(implicit='allow'):")
    if not implicit.gathered:
        _warn(x.comm, MoveWarning, cause, str(move), file, line)
    elif settings.gather == "warn":
        text = f"{move}; every rank will hold all of it, {in_bytes(implicit.gathered)}"
        _warn(x.comm, GatherWarning, cause, text, file, line)


def _warn(comm: Comm, kind: type[Warning], cause: str, text: str, file: str, line: int) -> None:
    """Warn on rank 0, once for a function and a line of the program."""
    if comm.rank == 0 and (file, line, cause) not in _warned:
        _warned.add((file, line, cause))
        warnings.warn_explicit(text, kind, file, line)


def warn_at_caller(comm: Comm, kind: type[Warning], cause: str, text: str) -> None:
    """Warn on rank 0 at the line of the program that called this package, once for that line and a cause."""
    _warn(comm, kind, cause, text, *_caller())


def warn_of_copies(cause: str, operands: Iterable[Any], results: Iterable[Any], joins: bool = False) -> None:
    """Warn of results of 64 KiB or more that every rank holds whole, larger than the largest operand's block.

    Args:
        operands: tensors, arrays that every rank holds, lists of both, and anything else.
        results: tensors, and anything else.
        joins: whether a result consists of the operands, which then count together.
    """
    large = []
    for x in results:
        block = getattr(x, "_local", None)  # of a tensor; a small one is passed over without a call of Python
        if block is not None and block.nbytes >= _COPY:
            large.append(x)
    if not large:
        return

    whole = [x for x in large if x.comm.size > 1 and not any(x.distribution.layout.modes)]
    inner = attribution.get().name  # whose results are not the user's
    if not whole or inner or "allow" in (_settings.get().implicit, _settings.get().gather):
        return

    sizes = [1]  # a number is no copy to speak of
    for operand in operands:
        for x in operand if isinstance(operand, list | tuple) else (operand,):
            if isinstance(x, Distributed):
                sizes.append(prod(x.distribution.max_local_shape()))
            elif isinstance(x, np.ndarray):
                sizes.append(x.size)
    largest = sum(sizes) if joins else max(sizes)

    for x in whole:
        shape, roots = x.distribution.shape, x.distribution.layout.rooted
        if prod(shape) > largest and not roots and not x.distribution.partial:
            file, line = _caller()
            size = in_bytes(prod(shape) * x.local.itemsize)
            text = f"every rank holds all of the result of {cause}, of shape {shape}, {size}: more than of any operand"
            _warn(x.comm, GatherWarning, cause, f"{os.path.basename(file)}:{line}: {text}", file, line)


def gathers_are_silent() -> bool:
    """Whether `config` allows every gather."""
    return _settings.get().gather == "allow"


def solver() -> Solver:
    """What factors a matrix that is split over ranks, by `config`."""
    return _settings.get().linalg


def warn_of_root(x: Distributed, cause: str, hint: str) -> None:
    """Warn that one rank comes to hold a whole tensor of 16 MiB or more; `config` may refuse that, or allow it.

    Args:
        hint: what to do about it.
    """
    nbytes, policy = prod(x.distribution.shape) * x.local.itemsize, _settings.get().gather
    if nbytes < _GATHER or policy == "allow":
        return
    text = f"{cause} gathers {x.distribution} on one rank, {in_bytes(nbytes)}\n{hint}"
    if policy == "error":
        raise LayoutError(f"{text}, or allow it: with rote.config(gather='allow'):")
    file, line = _caller()
    _warn(x.comm, GatherWarning, cause, f"{os.path.basename(file)}:{line}: {text}", file, line)


def refuse_copies(x: Distributed, layout: Layout, grid: Grid | None, cause: str) -> int:
    """The bytes of a tensor that every rank comes to hold whole; 0 for other moves, and below 16 MiB. Collective.

    Args:
        layout, grid: those that the tensor moves to; its own grid if None.

    Raises:
        LayoutError: the copies of the ranks of some node would take more than half of its memory, or `config` refuses
            gathers; on all ranks.
    """
    source = x.distribution
    nbytes = prod(source.shape) * x.local.itemsize
    if nbytes < _GATHER or x.comm.size == 1 or _is_copied(source):
        return 0
    if not _is_copied(distribute(layout, source.shape, source.grid if grid is None else grid)):
        return 0

    policy, what = _settings.get().gather, f"{cause} gathers {x.distribution}: every rank would hold all of it"
    if policy == "allow":
        return nbytes
    if policy == "error":
        raise LayoutError(f"{what}, {in_bytes(nbytes)}\nallow it: with rote.config(gather='allow'):")

    # Every rank checks every node, not its own alone, so that all raise the same error.
    nodes, memories = x.comm.nodes(), gathered(x.comm, "memory", memory())
    for node in range(max(nodes) + 1):
        ranks = [rank for rank, number in enumerate(nodes) if number == node]
        has = min([memories[rank] for rank in ranks])
        if len(ranks) * nbytes > has // 2:
            raise LayoutError(
                f"{what}, and the {len(ranks)} copies of {in_bytes(nbytes)} on one node would take more than half of "
                f"its {in_bytes(has)} of memory\nwork on blocks, or allow it: with rote.config(gather='allow'):"
            )
    return nbytes


def _is_copied(dist: Distribution) -> bool:
    """Whether every rank holds all elements."""
    lay = dist.layout
    return not (any(dist.splits) or lay.rooted or lay.partial)


def agree_on_call(comm: Comm) -> None:
    """Refuse the call that is under way if ranks give it different arguments, or make different calls. Collective.

    It is for the moment before a message. It costs one small all-gather at the first call with these arguments, or at
    every call if `CHECKS` is set, and nothing later in the same call. Of arrays, shapes and dtypes are compared;
    `agree` compares their elements.

    Raises:
        LayoutError: the arguments differ.
        CommError: the calls differ.
    """
    calls = attribution.get().call
    if not calls or comm.size == 1:
        return
    call = name, args, options = calls[0]
    cached(comm, "calls", (name, *options, *_key((*args, *options.values()))), _agreed, _KEPT, lambda: _in_words(call))
    calls.clear()


def agree_once(comm: Comm, call: KeyedCall) -> None:
    """Refuse a call as `agree_on_call` does, of a function that has not noted it. Collective."""
    key, named = call
    cached(comm, "calls", key, _agreed, _KEPT, lambda: _in_words(named))


def _agreed() -> bool:
    """What a communicator keeps of a call."""
    return True


def _in_words(call: Call) -> tuple[str, tuple[str, ...]]:
    """The name and the arguments of a call, as ranks compare them."""
    name, args, options = call
    named = [f"{option}={_text(value)}" for option, value in options.items()]
    return name, (*map(_text, args), *named)


def moved(
    x: T,
    layout: Layout,
    cause: str,
    grid: Grid | None = None,
    hint: str = "",
    which: int | None = None,
    call: KeyedCall | None = None,
) -> T:
    """An operand in the layout that a function needs, moved by the compiled plan; itself if it has that layout.

    The move is implicit, unless the function moves what it has computed (`attributed_to`).

    Args:
        hint: what to write instead; if empty, that the operand is moved first.
        which: the number of the operand, from 0, if there may be several.
        call: the call that needs it, of a function that most often sends nothing and so has not noted it; ranks agree
            on it now, unless it is a step of another function.
    """
    across = grid is not None and grid != x.distribution.grid
    if not across and x.distribution.layout == layout:
        return x

    work = attribution.get()
    if work.of_result:
        return redistributed(x, layout, cause, grid)

    noted = work.call
    if noted is None and call is not None:
        agree_once(x.comm, call)
        noted = []  # so that the move itself, a step of this call, agrees on nothing more
    else:
        agree_on_call(x.comm)

    def move_first() -> str:
        there = f", grid={grid.shape}" if across and grid is not None else ""
        it = "it" if which is None else f"operand {which + 1}"
        return hint or f"move {it} by x.redistribute({str(layout)!r}{there}) first"

    cause = work.name or cause
    implicit = Implicit(cause, refuse_copies(x, layout, grid, cause), move_first)
    token = attribution.set(Attribution(cause, False, noted, implicit))
    try:
        return x.redistribute(layout, grid=grid if across else None)
    finally:
        attribution.reset(token)


def redistributed(x: T, layout: Layout, cause: str, grid: Grid | None = None) -> T:
    """A tensor in the layout that a call asks for, or that a function gives its result; never implicit."""
    across = grid is not None and grid != x.distribution.grid
    if not across and x.distribution.layout == layout:
        return x
    agree_on_call(x.comm)
    with attributed_to(cause):
        return x.redistribute(layout, grid=grid if across else None)


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
            parts += (len(value), *_key(value))  # its length, or (1, 2), 3 would be as (1,), 2, 3
        else:
            parts.append(_text(value))
    return parts


def _text(value: Any) -> str:
    """An argument as users read it: of tensors and arrays all but their elements."""
    if isinstance(value, Distributed):
        return f"{value.distribution} of {value.local.dtype}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} of {value.dtype}"
    if is_foreign(type(value)):  # in a list
        return f"an array of shape {shape_of(value)}"
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_text, value))})"
    if isinstance(value, slice):  # whose ends may be tensors of order 0
        return f"slice{_text((value.start, value.stop, value.step))}"
    if isinstance(value, Layout | Grid | np.dtype | np.generic | int | float | complex | str | bytes | None):
        return str(value)
    return str(value) if is_dataclass(value) else getattr(value, "__name__", type(value).__name__)


def _caller() -> tuple[str, int]:
    """The file and line of the program that called this package, directly or by an operator of NumPy."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(INSIDE):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
