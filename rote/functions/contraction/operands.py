"""Operands of contractions and of functions of stacks, brought to one assignment."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...caches import memoized
from ...errors import LayoutError
from ...layout.distribution import Distribution
from ...layout.grid import Grid
from ...machines.machine import DEFAULT
from ...runtime.comm.agreement import collective_errors
from ..alignment import plain, replicated
from ..distributed import Array, Distributed
from ..moves import agree_on_call, moved
from .assignment import Assignment, operand_in, result_in
from .cheapest import cheapest_of
from .diagonals import along, with_modes
from .subscripts import LETTERS, Subscripts
from .tree import Request

__all__ = ["Joint", "Term", "aligned", "common_operands", "diagonal_of", "largest_grid", "lettered", "stackwise"]

Term = tuple[int, ...]
"""One label per mode; modes of one label share an index."""

Labels = Sequence[Hashable]


def lettered(*terms: Labels) -> list[str]:
    """Terms of any labels as letters, the same letter for the same label.

    >>> lettered((0, 1), (1, 7))
    ['ab', 'bc']
    """
    names: dict[Hashable, str] = {}
    for label in chain(*terms):
        if label not in names:
            if len(names) == len(LETTERS):
                raise LayoutError(f"a contraction has at most {len(LETTERS)} letters\nfuse modes by reshape first")
            names[label] = LETTERS[len(names)]
    return ["".join([names[label] for label in term]) for term in terms]


def common_operands(operands: Sequence[Any]) -> list[Distributed]:
    """The operands as tensors; arrays become replicated tensors."""
    tensors = [x for x in operands if isinstance(x, Distributed)]
    if len(tensors) == len(operands):
        return tensors
    first = max(tensors, key=lambda x: prod(x.distribution.shape))
    return [x if isinstance(x, Distributed) else replicated(x, first) for x in operands]


class Joint(NamedTuple):
    """Operands in one assignment.

    Attributes:
        blocks: this rank's; a mode that broadcasts keeps its one element.
        assignment, grid: the assignment, on the grid of the largest operand.
        extents: per letter, its extent.
    """

    blocks: list[Array]
    assignment: Assignment
    grid: Grid
    extents: Mapping[str, int]

    def result(self, term: str) -> Distribution:
        """The distribution of a result with some letters, partial over the grid modes of all others."""
        return result_in(self.assignment, term, self.extents, self.grid)


def aligned(
    tensors: Sequence[Distributed],
    subscripts: Subscripts,
    cause: str,
    whole: str = "",
    more: Mapping[str, int] | None = None,
) -> Joint:
    """Bring operands over the same ranks to the assignment that costs least. Collective.

    Args:
        subscripts: the letters of each operand, each once, and those of the result.
        whole: letters that are not to be split.
        more: the extents of letters that no operand has.
    """
    dists, dtypes = tuple([x.distribution for x in tensors]), tuple([x.local.dtype for x in tensors])
    shapes = tuple([dist.shape for dist in dists])
    known, grid = subscripts.extents(shapes, cause), largest_grid(dists)

    # The function makes the letters that no operand has: the search does not know of them, and they are not split.
    letters = subscripts._replace(result="".join([letter for letter in subscripts.result if letter in known]))
    assignment = _joint(
        Request(letters, shapes, dtypes, dists, grid, None, False, None, DEFAULT, whole=whole, joint=True)
    )

    extents, blocks = {**known, **(more or {})}, []
    for number, (x, term) in enumerate(zip(tensors, subscripts.terms, strict=True)):
        layout = operand_in(assignment, term, x.distribution.shape, extents, grid).layout
        blocks.append(moved(x, layout, cause, grid, which=number if len(tensors) > 1 else None).local)
    return Joint(blocks, assignment, grid, extents)


def largest_grid(dists: Sequence[Distribution]) -> Grid:
    """The grid of the operand with the most elements."""
    return max(dists, key=lambda dist: prod(dist.shape)).grid


@memoized(1024, once=True)  # ranks of one process ask for the same
def _joint(request: Request) -> Assignment:
    return cheapest_of([request])[1].assignment


def stackwise(
    function: Callable[..., Any],
    operands: Sequence[Any],
    terms: Sequence[Labels],
    results: Sequence[Labels],
    cause: str,
    whole: Iterable[Hashable],
    extents: Mapping[Any, int] | None = None,
) -> list[Any]:
    """Bring operands to one assignment, in which some labels are whole, and call a function on the blocks. Collective.

    Args:
        function: takes arrays with the modes of `terms`; returns an array, or a tuple of them, with those of `results`.
            All ranks raise an error that it raises on one.
        operands: at least one tensor, and arrays that are the same on all ranks.
        extents: the extents of labels that no operand has.
    """
    tensors = common_operands(operands)

    new = extents or {}
    *letters, unsplit, unknown = lettered(*terms, *results, [*whole, *new], [*new])
    of_operands, of_results = letters[: len(terms)], letters[len(terms) :]
    more = dict(zip(unknown, new.values(), strict=True))
    joint = aligned(tensors, Subscripts(tuple(of_operands), max(of_results, key=len)), cause, unsplit, more)

    agree_on_call(tensors[0].comm)
    with collective_errors(tensors[0].comm):
        made = function(*joint.blocks)
        values = list(map(np.asarray, made)) if isinstance(made, tuple) else [np.asarray(made)]

    outcomes = []
    for value, term in zip(values, of_results, strict=True):
        if any(np.may_share_memory(value, x.local) for x in tensors):  # writes into a result must not reach operands
            value = value.copy()
        outcomes.append(tensors[0]._on(value, joint.result(term)))
    return outcomes


def diagonal_of(x: Distributed, rows: int, columns: int, offset: int, cause: str) -> Any:
    """The elements x[…, i, …, i + offset, …] for all rows i, zero where there is no such column. No data moves.

    The result lacks the mode `columns`, and is partial over the grid modes that split it.
    """
    x = plain(x, cause)
    dist = x.distribution
    rows, columns = (operator.index(mode) % len(dist.shape) for mode in (rows, columns))
    offset = operator.index(offset)

    result = along(x.local, rows, columns, dist.indices(x.comm.rank), offset)
    target = with_modes(dist, [mode for mode in range(len(dist.shape)) if mode != columns])
    return x._on(np.ascontiguousarray(result), target)
