"""Assignments: which modes of a grid split which letters of a product.

The letters of a product name the modes of all its operands together. An assignment gives each mode of the grid to one
letter, which it splits, or to none. All else follows: the layout of each operand (it is replicated over the grid modes
of letters that it lacks), the part of the product that each rank computes, and the layout of the result (partial over
the grid modes of the letters that are summed).

    ik,kj->ij      i:0,j:1        A block[(0),()]    B block[(),(1)]    C block[(0),(1)]
                   i:0,k:1        A block[(0),(1)]   B block[(1),()]    C block[(0),()]+(1)
                   i:0,j:1,k:2    A block[(0),(2)]   B block[(2),(1)]   C block[(0),(1)]+(2)

The algorithms of the literature are assignments. In the first one, blocks of C stay where they are: it is SUMMA (van de
Geijn and Watts 1997). In the second one, blocks of A stay. The third is the three-dimensional algorithm of Agarwal et
al. (1995) or, if the last grid mode is shorter than the others, the 2.5-dimensional one of Solomonik and Demmel (2011).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import chain, pairwise, product
from math import prod

from ...caches import memoized
from ...errors import LayoutError, PlanError
from ...grammar.nodes import BLOCK, Entry, Kind
from ...grammar.text import entry_text
from ...layout.distribution import Distribution
from ...layout.grid import Grid
from ...layout.kinds import Split, check_mode, local_extents
from ...layout.layout import Layout, parse

__all__ = ["Assignment", "all_assignments", "distinct_assignments", "operand_in", "points", "read_assignment"]
__all__ += ["refined", "result_in", "summed_modes", "write"]

Assignment = tuple[tuple[str, tuple[Entry, ...]], ...]
"""Per split letter its entries, in the order of the letters."""

Kinds = Mapping[tuple[str, int], Iterable[Kind]]
"""Per letter and grid mode, the kinds other than `block` that an entry may have."""


def all_assignments(letters: str, grid: Grid, kinds: Kinds, extents: Mapping[str, int]) -> list[Assignment]:
    """Every assignment of the modes of a grid to letters or to none, with every order of the entries of a letter.

    Kinds of given sizes are left out where these do not fit what is left of a letter.

    >>> [write(assignment) for assignment in all_assignments("ij", Grid((2,)), {}, {"i": 8, "j": 8})]
    ['', 'i:0', 'j:0']
    """
    assignments: list[dict[str, tuple[Entry, ...]]] = [{}]
    for g, extent in enumerate(grid.shape):
        if extent == 1:
            continue

        more = []  # the grid mode joins each assignment of the modes before it, or, in the old list, none
        for base in assignments:
            for letter in letters:
                entries = base.get(letter, ())
                for kind in dict.fromkeys((BLOCK, *kinds.get((letter, g), ()))):
                    for at in range(len(entries) + 1):
                        more.append({**base, letter: (*entries[:at], Entry(g, kind), *entries[at:])})
        assignments += more

    if not all(kind.fits for kind in chain(*kinds.values())):
        assignments = [way for way in assignments if all(_fits(*item, extents, grid) for item in way.items())]
    return [tuple([(letter, way[letter]) for letter in letters if letter in way]) for way in assignments]


def _fits(letter: str, entries: tuple[Entry, ...], extents: Mapping[str, int], grid: Grid) -> bool:
    """Whether the sizes of sized blocks add up to what they deal out."""
    try:
        check_mode(_splits(entries, grid), extents[letter])
    except LayoutError:
        return False
    return True


def distinct_assignments(letters: str, grid: Grid) -> list[Assignment]:
    """Assignments that differ in their costs if no layout is given.

    The entries of a letter are in the order of the grid modes. Modes of equal extents are interchangeable, so that they
    come in the order of their letters, and those of no letter last.

    >>> [write(assignment) for assignment in distinct_assignments("ij", Grid((2, 2)))]
    ['i:01', 'i:0,j:1', 'i:0', 'j:01', 'j:0', '']
    """
    assignments = []
    choices = [(*letters, "") if extent > 1 else ("",) for extent in grid.shape]
    for owners in product(*choices):  # per grid mode, the letter that it splits, or ""
        order = [letters.index(letter) if letter else len(letters) for letter in owners]
        modes = [*zip(grid.shape, order, strict=True)]

        if all(one[0] != other[0] or one[1] <= other[1] for one, other in pairwise(modes)):
            entries = {x: tuple([Entry(g, BLOCK) for g, owner in enumerate(owners) if owner == x]) for x in letters}
            assignments.append(tuple([(letter, entries[letter]) for letter in letters if entries[letter]]))
    return assignments


def operand_in(
    assignment: Assignment, term: str, shape: tuple[int, ...], extents: Mapping[str, int], grid: Grid
) -> Distribution:
    """The distribution of an operand in an assignment; a mode of one element that broadcasts is not split."""
    entries = dict(assignment)
    modes = [entries.get(letter, ()) if n == extents[letter] else () for letter, n in zip(term, shape, strict=True)]
    return Distribution(Layout(tuple(modes)), shape, grid)


def summed_modes(assignment: Assignment, term: str) -> tuple[int, ...]:
    """The grid modes of the letters that a result lacks, over which it is partial."""
    return tuple([entry.grid_mode for letter, entries in assignment if letter not in term for entry in entries])


def result_in(assignment: Assignment, term: str, extents: Mapping[str, int], grid: Grid) -> Distribution:
    """The distribution of a result in an assignment."""
    entries = dict(assignment)
    layout = Layout(tuple([entries.get(letter, ()) for letter in term]), partial=summed_modes(assignment, term))
    return Distribution(layout, tuple([extents[letter] for letter in term]), grid)


@memoized(65536)
def refined(dist: Distribution) -> Distribution:
    """One copy over all ranks from which an operand is gathered: grid modes without an entry refine the longest mode.

    The move to the given distribution is an allgather of adjacent blocks; if it is partial, the move from it is a
    reduce_scatter.
    """
    used = {entry.grid_mode for entry in chain(*dist.layout.modes)}
    modes = [*dist.layout.modes]
    sizes = [*dist.max_local_shape()]
    for g, extent in enumerate(dist.grid.shape):
        if modes and extent > 1 and g not in used:
            # Even blocks first: the largest of uneven ones decides how long the allgather takes.
            longest = max(range(len(modes)), key=lambda mode: (sizes[mode] % extent == 0, sizes[mode]))
            modes[longest] = (*modes[longest], Entry(g, BLOCK))
            sizes[longest] = -(-sizes[longest] // extent)
    return Distribution(Layout(tuple(modes)), dist.shape, dist.grid)


def points(assignment: Assignment, extents: Mapping[str, int], letters: str, grid: Grid) -> int:
    """The most products of elements that a rank computes.

    >>> points((("i", (Entry(0, BLOCK),)),), {"i": 5, "j": 3}, "ij", Grid((2,)))
    9
    """
    entries = dict(assignment)
    longest = [max(local_extents(_splits(entries.get(letter, ()), grid), extents[letter])) for letter in letters]
    return prod(longest)


def _splits(entries: tuple[Entry, ...], grid: Grid) -> tuple[Split, ...]:
    return tuple([Split(entry.grid_mode, entry.kind, grid.shape[entry.grid_mode]) for entry in entries])


def write(assignment: Assignment) -> str:
    """The text of an assignment, "i:0,k:21"; entries of other kinds than block name their kind.

    >>> write((("i", (Entry(0, BLOCK),)), ("k", (Entry(2, BLOCK), Entry(1, BLOCK)))))
    'i:0,k:21'
    """
    return ",".join(f"{letter}:{''.join(map(_entry, entries))}" for letter, entries in assignment)


_ENTRY = r"\d|\([^()]+(?:\([^()]*\))?\)"  # a grid mode, or an entry in parentheses


def _entry(entry: Entry) -> str:
    text = entry_text(entry, BLOCK)
    return text if text.isdigit() and len(text) == 1 else f"({text})"


def read_assignment(text: str, letters: str, grid: Grid) -> Assignment:
    """The assignment in a text as `write` writes it, in the order of the letters.

    Raises:
        PlanError: the text is no assignment of modes of the grid to these letters.

    >>> write(read_assignment("k:21,i:0", "ik", Grid((2, 2, 2))))
    'i:0,k:21'
    """
    assigned: dict[str, tuple[Entry, ...]] = {}
    for item in filter(None, text.replace(" ", "").split(",")):
        match = re.fullmatch(rf"(\w):((?:{_ENTRY})*)", item)
        if not match or match[1] not in letters or match[1] in assigned:
            raise PlanError(
                f"{item!r} gives no letter of {letters} modes of the grid\nwrite for example {letters[:1]}:0"
            )

        # The language of layouts reads an entry, as the only one of the only mode of a layout.
        texts = [entry if entry.isdigit() else entry[1:-1] for entry in re.findall(_ENTRY, match[2])]
        assigned[match[1]] = tuple([parse(f"block[({entry})]").modes[0][0] for entry in texts])

    used = [entry.grid_mode for entries in assigned.values() for entry in entries]
    if len({*used}) < len(used) or any(g >= grid.order for g in used):
        raise PlanError(f"{text!r} is for another grid than {grid}: name each of its {grid.order} modes at most once")
    return tuple([(letter, assigned[letter]) for letter in letters if assigned.get(letter)])
