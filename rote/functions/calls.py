"""The function call that is under way on this rank: all ranks agree on it before its first message.

A function whose ranks hold all that they need sends nothing, so it may be called on one rank alone. So the ranks
compare their calls only where the first message is due, and only at the first call with these arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from ..layout.grid import Grid
from ..layout.layout import Layout
from ..runtime.comm.cache import cached, refuse_others
from ..runtime.comm.protocol import Comm
from .distributed import Distributed

__all__ = ["agree_on_call", "call_under_way"]

_KEPT = 1024  # calls that one communicator keeps
_PLAIN = frozenset((int, str, bool, type(None), bytes, Layout, Grid))

Call = tuple[str, Sequence[Any], Mapping[str, Any]]

call_under_way: ContextVar[list[Call] | None] = ContextVar("rote_call", default=None)
"""The outermost call of a function, in a list that is empty as soon as its ranks have agreed on it; None outside."""


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
    key = (name, *_parts(args), *options, *_parts(options.values()))

    def refuse() -> bool:
        named = [f"{option}={value}" for option, value in zip(options, map(_text, options.values()), strict=True)]
        refuse_others(comm, name, (*map(_text, args), *named))
        return True

    cached(comm, "calls", key, refuse, _KEPT)
    calls.clear()


def _parts(values: Any) -> Iterator[Any]:
    """Hashable parts that identify arguments, with equal ones on all ranks that give equal arguments."""
    for value in values:
        kind = type(value)
        if kind in _PLAIN:
            yield value
        elif isinstance(value, Distributed):
            yield value.distribution
            yield value.local.dtype
        else:
            yield _text(value)


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
