"""Algorithms by name: the letters that a product splits name it, and "why not SUMMA?" looks for it by its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod

from ...errors import PlanError, counted
from ...layout.grid import Grid
from .assignment import Assignment, read_assignment
from .subscripts import Subscripts

__all__ = ["family", "matcher", "reason"]

_NAMES = {
    "AB": "stationary C (SUMMA)",
    "AK": "stationary A",
    "BK": "stationary B",
    "K": "inner",
    "A": "1-D, A stays",
    "B": "1-D, B stays",
    "ABK": "3-D",
    "H": "batch",
    "": "replicated",
}
"""The names of products of two operands, per roles of the letters that they split; all with H are batches, too."""

_ROLES = {
    "A": "of the first operand and the result alone",
    "B": "of the second operand and the result alone",
    "K": "that is summed",
    "H": "of both operands and the result",
}

_KNOWN = ("stationary C (SUMMA)", "stationary A", "stationary B", "inner", "1-D", "2.5-D", "3-D", "batch", "replicated")


def _roles(terms: Sequence[str], result: str) -> dict[str, set[str]]:
    """The letters of each role in a product of two operands."""
    first, second, output = map(set, (*terms, result))
    return {
        "A": (first - second) & output,
        "B": (second - first) & output,
        "K": (first | second) - output,
        "H": first & second & output,
    }


def family(assignment: Assignment, terms: Sequence[str], result: str, grid: Grid) -> str:
    """The name of an algorithm in the literature for a product of two operands.

    >>> family(read_assignment("i:0,j:1", "ikj", Grid((2, 2))), ("ik", "kj"), "ij", Grid((2, 2)))
    'stationary C (SUMMA)'
    """
    ranks = {letter: prod([grid.shape[entry.grid_mode] for entry in entries]) for letter, entries in assignment}
    if ranks and len(terms) != 2:
        return "joint" if len(terms) > 2 else "local"

    letters = _roles(terms, result) if ranks else {}
    used = "".join([role for role in letters if letters[role] & {*ranks}])

    if used == "ABK":  # the ranks of summed letters are the depth: a shallow grid is 2.5-D
        first, second, summed = (prod([ranks.get(letter, 1) for letter in letters[role]]) for role in used)
        return "3-D" if summed >= min(first, second) else "2.5-D"
    if used in _NAMES:
        return _NAMES[used]
    return f"batch, {_NAMES[used.removesuffix('H')]}"


def matcher(way: str, letters: str, grid: Grid) -> Callable[[Assignment, str], bool]:
    """A function that says whether a product, by its assignment and algorithm, is the one of a text."""
    if ":" in way:
        splits = {*read_assignment(way, letters, grid)}
        return lambda assignment, name: {*assignment} == splits

    # "stationary C (SUMMA)" has three spellings: as a whole, before the parenthesis, and in it.
    spellings = [_spelled(text) for name in _KNOWN for text in (name, *re.split("[()]", name)) if text]
    if _spelled(way) not in spellings:
        raise PlanError(
            f"{way!r} is no algorithm\nwrite one of {', '.join(_KNOWN)}, or an assignment such as {letters[:1]}:0"
        )
    return lambda assignment, name: _spelled(way) in _spelled(name)


def _spelled(name: str) -> str:
    """The name of an algorithm without case, spaces and hyphens."""
    return re.sub("[- ]", "", name.lower())


def reason(way: str, subscripts: Subscripts, grid: Grid) -> str:
    """Why there is no product by an algorithm, as far as letters and grid modes tell."""
    if ":" in way:
        return "\nno product has all of these letters, or such entries"

    spelling = _spelled(way).replace("2.5", "3")  # both split the same letters
    needed = next((roles for roles, name in _NAMES.items() if spelling in re.split("[()]", _spelled(name))), "")

    modes = sum(n > 1 for n in grid.shape)
    if len(needed) > modes:
        return (
            f"\nit splits {counted(len(needed), 'letter')}, and the grid has {counted(modes, 'mode')} of several ranks"
        )

    if len(subscripts.terms) == 2:
        letters = _roles(subscripts.terms, subscripts.result)
        missing = next((role for role in needed if not letters[role]), None)
        if missing is not None:
            return f"\nit splits a letter {_ROLES[missing]}, and there is none"

    if needed == "ABK":
        like, other = ("fewer ranks than", "3-D") if "2.5" in way else ("as many ranks as", "2.5-D")
        return f"\nit splits summed letters over {like} the others; if not, it is {other}"
    return ""
