"""Ownership as plain text: a picture of the owners, then a table of the ranks.

Along a mode, neighbouring indices at the same coordinates are one run, found from the index sets. So the cost of a
drawing depends on what it shows, for 32,768 ranks as for 4, and it never has more than about 60 lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice, product
from math import prod

import numpy as np

from ..layout.distribution import Distribution, replication
from ..layout.kinds import mode_set, part_extents
from . import drawing
from .drawing import GAP, Owners, Run, brief, is_light, mode_names, owners_of, ticks

__all__ = ["draw"]

_LINES = 36  # the most lines of the picture; the head has up to 5, the table up to 18
_LEVELS = np.array([0, 95, 135, 175, 215, 255])  # levels of red, green and blue in the terminal's 256 colours
_ESCAPE = re.compile("\x1b\\[[0-9;]*m")


def draw(dist: Distribution, color: bool = False, width: int = 100) -> str:
    """Draw who owns what: a picture with the owner of every element, then the block of every rank.

    A matrix shows mode 0 downwards and mode 1 to the right; a tensor of higher order is shown as matrices of its last
    two modes. Equal neighbours in a large tensor are one cell: `256..511` is a run of global indices. An element on
    several ranks shows them all, `0,1` or `0-3`; the value of `0+1` is the sum of the contributions of ranks 0 and 1.

    Args:
        color: whether to paint ranks in their colours, by the terminal's escapes for 256 colours.
        width: the most columns to use, unless one run of indices and one cell need more.

    >>> from rote.layout.layout import parse
    >>> print(draw(parse("block[(0),()]").on((3, 4), 2)))
    block[(0),()] on (3, 4), grid 2
    <BLANKLINE>
    mode 0 down, mode 1 across
         0  1  2  3
      0  0  0  0  0
      1  0  0  0  0
      2  1  1  1  1
    <BLANKLINE>
     rank  at  block   mode 0  mode 1
        0  0   (2, 4)  {0..1}  {0..3}
        1  1   (1, 4)  {2}     {0..3}
    """
    parts = [chain([str(dist)], _notes(dist)), _picture(dist, color, width), _table(dist, color, width)]
    return "\n\n".join("\n".join(line.rstrip() for line in lines) for lines in parts)


def _notes(dist: Distribution) -> Iterator[str]:
    """Notes on facts that the picture cannot show."""
    if copies := replication(dist):
        yield copies
    for g, role in enumerate(dist.roles):
        if role.name == "partial":
            yield f"grid mode {g} is partial: an element is the {dist.layout.op} of what the ranks along it hold"
        elif role.name == "rooted":
            yield f"grid mode {g} is rooted: only the ranks at its coordinate {role.at} hold anything"

    counts = [np.count_nonzero(part_extents(*mode)) for mode in zip(dist.splits, dist.view_shape, strict=True)]
    free = [p for g, p in enumerate(dist.grid.shape) if dist.roles[g].name in ("replicated", "partial")]

    empty = dist.grid.size - int(prod(counts)) * prod(free)
    if empty:
        yield f"{empty:,} of {dist.grid.size:,} ranks hold{'s' * (empty == 1)} nothing"


def _picture(dist: Distribution, color: bool, width: int) -> Iterator[str]:
    names = mode_names(dist)
    if 0 in dist.view_shape:
        yield "the tensor has no elements"
    elif dist.order == 0:
        yield f"one element, on {_paint(owners_of(dist)({}), dist, color)}"
    elif dist.order == 1:
        yield f"{names[0]} across"
        yield from _matrix(dist, {}, [Run(0, 1)], _columns(dist, 0, width - 6), color, width)
    elif dist.order == 2:
        yield f"{names[0]} down, {names[1]} across"
        rows = ticks([dist], 0, _LINES - 2, small=24)
        if GAP in rows:  # not all fit: show a few
            rows = ticks([dist], 0, _LINES // 2, small=0)
        yield from _matrix(dist, {}, rows, _columns(dist, 1, width - 4 - max(map(len, map(str, rows)))), color, width)
    else:
        yield f"{names[-2]} down, {names[-1]} across, for each part of {', '.join(names[:-2])}"
        yield from _slices(dist, color, width)


def _slices(dist: Distribution, color: bool, page: int) -> Iterator[str]:
    """A tensor of order 3 or more as matrices of its last two modes, as many side by side as fit."""
    leading = range(dist.order - 2)

    rows = ticks([dist], dist.order - 2, 12, small=8)
    columns = _columns(dist, dist.order - 1, min(44, page - 6), small=8)

    # Equal owners fill a part of the leading modes, so one slice shows a whole part; empty parts have none.
    parts = [np.argwhere(part_extents(dist.splits[mode], dist.view_shape[mode])).tolist() for mode in leading]

    panels = []
    for chosen in islice(product(*parts), _LINES):
        sets, at = [], dict[int, int]()
        for mode, coordinates in zip(leading, chosen, strict=True):
            splits = dist.splits[mode]
            at |= zip([split.grid_mode for split in splits], coordinates, strict=True)
            text = brief(mode_set(splits, dist.view_shape[mode], tuple(coordinates)), 20).strip("{}")
            sets.append(f"{{{text}}}" if "," in text else text)

        matrix = _matrix(dist, at, rows, columns, color, page)
        panels.append([f"[{', '.join([*sets, ':', ':'])}]", *matrix])

    width = max(map(_visible, chain(*panels))) + 3
    beside, height = max(1, (page + 3) // width), len(panels[0]) + 1
    beside = min(beside, -(-len(panels) // -(-len(panels) // beside)))  # fill the last row as the others

    shown = panels[: beside * max(1, _LINES // height)]
    for first in range(0, len(shown), beside):
        yield ""
        for lines in zip(*shown[first : first + beside], strict=True):
            yield "".join(line + " " * (width - _visible(line)) for line in lines)

    left = prod(map(len, parts)) - len(shown)
    if left:
        yield f"\n… and {left:,} more like these"


def _matrix(
    dist: Distribution, at: dict[int, int], rows: Sequence[Run], columns: Sequence[Run], color: bool, page: int
) -> Iterator[str]:
    """The owners of some rows and columns, with the global indices to the left and above."""
    heads = [*map(str, columns)]
    if sum(map(len, heads)) + 2 * len(heads) > page // 2:  # too wide: write only where runs begin
        heads = [str(column.start) if column else str(GAP) for column in columns]

    labels = drawing.table(dist, rows, columns, at)
    width = max(len(str(label)) for label in chain(*labels) if label)
    widths = [max(len(head), width if column else 1) for head, column in zip(heads, columns, strict=True)]

    side = ["" if dist.order == 1 else str(row) for row in rows]
    margin = max(map(len, side)) + 2

    yield " " * (margin + 1) + " ".join(f" {head:>{w}}" for head, w in zip(heads, widths, strict=True))
    for name, owners in zip(side, labels, strict=True):
        cells = zip(owners, widths, strict=True)
        painted = [_paint(label, dist, color, w) if label else " " * (w + 2) for label, w in cells]
        yield f"{name:>{margin}} " + "".join(painted)


def _table(dist: Distribution, color: bool, width: int) -> Iterator[str]:
    """The coordinates and the block of every rank, or of the first few and the last."""
    ranks = drawing.listed_ranks(dist.grid.size)
    space = max(12, (width - 30) // max(1, dist.order) - 2)

    lines = [["rank", "at", "block", *mode_names(dist)]]
    for rank in ranks:
        if rank is None:
            lines.append([str(GAP), f"{dist.grid.size - len(ranks) + 1:,} more ranks"])
            continue

        at, shape, sets = drawing.block_words(dist, rank, space)
        if 0 in dist.local_shape(rank):
            sets = ["holds nothing"]
        lines.append([str(rank), at, shape, *sets])

    # The two texts that replace columns are longer than these, and widen none.
    aligned = [line[:3] if line[-1] == "holds nothing" else line for line in lines if line[0] != str(GAP)]
    widths = [max(len(line[k]) for line in aligned if k < len(line)) for k in range(len(lines[0]))]

    for rank, (number, *line) in zip([None, *ranks], lines, strict=True):
        name = f" {number:>{widths[0]}} "
        if rank is not None:
            name = _paint(Owners(rank), dist, color, widths[0])
        yield name + "".join(f" {text:<{w}} " for text, w in zip(line, [*widths[1:], 0], strict=False))


def _columns(dist: Distribution, mode: int, width: int, small: int = 32) -> list[Run]:
    """The ticks of a view mode that fit side by side into a width."""
    splits = [*chain(*dist.splits)]
    first = owners_of(dist)({})
    last = owners_of(dist)({split.grid_mode: split.parts - 1 for split in splits})

    widest = max(len(str(dist.view_shape[mode] - 1)), len(str(first)), len(str(last)))
    return ticks([dist], mode, max(4, width // (widest + 2)), small)


def _paint(owners: Owners, dist: Distribution, color: bool, width: int = 0) -> str:
    """A cell: the owners with a blank on either side, in the colour of the middle one."""
    text = f" {owners!s:>{width}} "
    if not color:
        return text

    paper = owners.color(dist.grid.size)
    red, green, blue = (int(np.abs(_LEVELS - 255 * part).argmin()) for part in paper)
    ink = 16 if is_light(paper) else 231
    return f"\x1b[38;5;{ink};48;5;{16 + 36 * red + 6 * green + blue}m{text}\x1b[0m"


def _visible(line: str) -> int:
    return len(_ESCAPE.sub("", line))
