"""The errors that Rote raises, one tree:

RoteError
├── NotationError (ValueError)    a text is not in the language
├── LayoutError (ValueError)      a layout does not fit its shape, its grid, or itself
├── PlanError                     a plan cannot be made, or is not right
└── CommError (RuntimeError)      ranks cannot talk, or do not agree

and warnings, GatherWarning and MoveWarning (UserWarning): ranks come to hold copies; data moves that no call asked for.
Where Python or NumPy has an error for a fault, such as TypeError, IndexError or OSError, that one is raised.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from .grammar.errors import NotationError, RoteError

__all__ = ["CommError", "GatherWarning", "LayoutError", "MoveWarning", "NotationError", "PlanError", "RoteError"]
__all__ += ["counted", "deprecated"]

P = ParamSpec("P")
R = TypeVar("R")

# Every room imports this module, so it sees whether the `rote/__init__.py` that Python has run is Rote's own.
if "VERSION" not in vars(sys.modules["rote"]):
    raise ImportError(
        "another project's distribution, rote, has replaced files of Rote, which is the distribution rote-tensor\n"
        "write pip uninstall -y rote rote-tensor, then pip install rote-tensor"
    )


class LayoutError(RoteError, ValueError):
    """A layout does not fit its shape, its grid, or itself.

    Examples
    --------
    >>> from rote import parse
    >>> parse("[(0),()]").on((4, 4), ())
    Traceback (most recent call last):
    rote.LayoutError: [(0),()] names grid mode 0, but the grid () has order 0
    write the grid (1,), or a layout without grid mode 0
    """


class PlanError(RoteError):
    """A plan cannot be made, or is not right.

    Examples
    --------
    >>> from rote import compile
    >>> compile("[(0),()] -> [(),(0)]")
    Traceback (most recent call last):
    rote.PlanError: a transition is compiled for a shape and a grid; give 'A -> B' with shape=… and grid=…
    """


class CommError(RoteError, RuntimeError):
    """Ranks cannot talk to each other, or do not agree.

    Examples
    --------
    >>> from rote import run
    >>> run(print, ranks=0)
    Traceback (most recent call last):
    rote.CommError: there must be at least one rank, not 0
    write ranks=1 or more
    """


class GatherWarning(UserWarning):
    """Ranks come to hold a whole tensor, or a whole axis of one, that was split; the text says how many bytes.

    Gathers of 16 MiB or more that no call asked for, those of a solver on one rank among them; results that every rank
    holds whole and that are larger than the largest operand's block; and transforms along an axis that is gathered.
    `rote.config(gather="allow")` is silent.

    Examples
    --------
    >>> import rote, warnings
    >>> def program(comm):
    ...     return rote.fft.FFT(8, "block[(0)]", comm=comm, kinds="dct2").moves
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     moves = rote.run(program, ranks=2)
    >>> [warning.category.__name__ for warning in caught]
    ['GatherWarning']
    """


class MoveWarning(UserWarning):
    """An operand moves to another layout although no call asked for it; the text gives the plan and its bytes.

    Examples
    --------
    >>> import numpy as np, rote, warnings
    >>> def program(comm):
    ...     x = rote.DistTensor.zeros((2, 3), "block[(0),()]", comm=comm)
    ...     y = rote.DistTensor.zeros((2, 3), "block[(),(0)]", comm=comm)
    ...     return str((x + y).layout)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     print(rote.run(program, ranks=2)[0])
    block[(0),()]
    >>> [warning.category.__name__ for warning in caught]
    ['MoveWarning']
    """


def counted(number: int, singular: str, plural: str = "") -> str:
    """A number with the noun that it counts, in singular or plural.

    Examples
    --------
    >>> import rote
    >>> rote.errors.counted(1, "rank"), rote.errors.counted(2, "index", "indices")
    ('1 rank', '2 indices')
    """
    return f"{number} {singular if number == 1 else plural or f'{singular}s'}"


def deprecated(name: str, instead: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function warn that the name by which users call it goes with the next release.

    Parameters
    ----------
    name : str
        The name that goes.
    instead : str
        What to write in its place.

    Returns
    -------
    Callable[[Callable[P, R]], Callable[P, R]]
        A decorator; the function does what it did, after a DeprecationWarning.

    Examples
    --------
    >>> import warnings, rote
    >>> @rote.errors.deprecated("rote.plus", "the operator +")
    ... def plus(a, b):
    ...     return a + b
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     print(plus(1, 2))
    3
    >>> print(caught[0].message)
    rote.plus goes with the next release; write the operator +
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def warned(*args: P.args, **kwargs: P.kwargs) -> R:
            text = f"{name} goes with the next release; write {instead}"
            warnings.warn(text, DeprecationWarning, stacklevel=2)  # at the line that calls the function
            return function(*args, **kwargs)

        return warned

    return decorate


# Tracebacks should show the names that users know, rote.LayoutError and so on.
for _error in (RoteError, NotationError, LayoutError, PlanError, CommError, GatherWarning, MoveWarning):
    _error.__module__ = "rote"
