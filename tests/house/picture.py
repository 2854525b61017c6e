"""Draws notebooks/architecture.svg: which room of the house imports which, read off the code.

    python tests/house/picture.py

A row per room of CONTRIBUTING.md's table, a column per room, and a dot where the row's files import the column's. What
is below the diagonal leads to rooms that stand above in the table; an arrow that ran back would be a ring.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from html import escape

from house import ROOT
from test_house_contributing import PAGE, homes, row_of, rows
from test_house_walls import all_imports

__all__ = ["LEFT", "MARGIN", "PICTURE", "ROOMS", "arrows", "drawn", "labels"]

PICTURE = ROOT / "notebooks" / "architecture.svg"
ROOMS = [row for row in rows(PAGE) if row]  # a page has tables of other things, too

CELL, LEFT, TOP, MARGIN = 20, 420, 28, 12  # pixels
COLOURS = {"grammar": "#b45309", "rote": "#1d4ed8", "fft": "#047857"}
GREY, BAND = "#d4d4d8", "#f4f4f5"


def labels(table: list[list[str]]) -> list[str]:
    """The name of each row: its rooms, of which those in the first one's folder are named by their last part."""
    names = []
    for first, *others in table:
        folder = first.rstrip("/").rpartition("/")[0]
        near = [other.removeprefix(f"{folder}/") for other in others if not other.startswith(first)]
        names.append(", ".join([first, *near][:3]))
    return names


@cache
def arrows() -> frozenset[tuple[int, int]]:
    """The pairs of rows, importing and imported; the door `rote/__init__.py` stands in none."""
    row = cache(partial(row_of, rooms=homes(ROOMS)))
    pairs = {(row(module), row(imported.target)) for module, imported in all_imports()}
    return frozenset((source, target) for source, target in pairs if None not in (source, target) and source != target)


def drawn(table: list[list[str]], pairs: frozenset[tuple[int, int]]) -> str:
    """The picture as SVG."""
    count = len(table)
    width, height = LEFT + count * CELL + MARGIN, TOP + count * CELL + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" font-family="monospace" font-size="12">',
        "<title>Which room of the house imports which</title>",
        f"<desc>{escape(described(table, pairs))}</desc>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *grid(table),
        *dots(table, pairs),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def described(table: list[list[str]], pairs: frozenset[tuple[int, int]]) -> str:
    """The same in words, for who cannot see it."""
    names = labels(table)
    imported = [[names[j] for j in range(len(table)) if (i, j) in pairs] for i in range(len(table))]
    return "; ".join(f"{name} imports {', '.join(rooms)}" for name, rooms in zip(names, imported, strict=True) if rooms)


def colour(table: list[list[str]], row: int) -> str:
    """The colour of a room: that of its package."""
    return COLOURS[table[row][0].split("/")[0]]


def grid(table: list[list[str]]) -> Iterator[str]:
    """Names, numbers, bands and the diagonal."""
    right = LEFT + len(table) * CELL
    for i, name in enumerate(labels(table)):
        y, x = TOP + i * CELL, LEFT + i * CELL
        if i % 2:
            yield f'<rect x="0" y="{y}" width="{right}" height="{CELL}" fill="{BAND}"/>'
        yield f'<text x="{MARGIN}" y="{y + 14}" fill="{colour(table, i)}">{i + 1:2} {escape(name)}</text>'
        yield f'<text x="{x + CELL / 2:g}" y="{TOP - 8}" text-anchor="middle" fill="{colour(table, i)}">{i + 1}</text>'
        yield f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="{GREY}"/>'


def dots(table: list[list[str]], pairs: frozenset[tuple[int, int]]) -> Iterator[str]:
    """A dot per import, of the colour of the imported room's package; a ring where it leads back."""
    for i, j in sorted(pairs):
        x, y, kind = LEFT + j * CELL + CELL / 2, TOP + i * CELL + CELL / 2, colour(table, j)
        paint = f'fill="{kind}"' if j < i else f'fill="none" stroke="{kind}" stroke-width="2"'
        yield f'<circle cx="{x:g}" cy="{y:g}" r="5" {paint}/>'


if __name__ == "__main__":
    PICTURE.write_text(drawn(ROOMS, arrows()), "utf-8")
