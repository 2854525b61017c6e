"""Bytes and seconds in suitable units, and rows of texts as a table."""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import floor, inf, log10

__all__ = ["in_bytes", "in_seconds", "table"]


def table(rows: Sequence[tuple[str, ...]], figures: Container[int]) -> list[str]:
    """Rows as lines of a table: texts are aligned to the left, the columns of `figures` to the right.

    >>> table([("a", "1"), ("bc", "12")], {1})
    ['  a    1', '  bc  12']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    lines = []
    for row in rows:
        line = ""
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            aligned = cell.rjust(width) if column in figures else cell.ljust(width)
            line += f"  {aligned}"
        lines.append(line.rstrip())

    return lines


def in_bytes(count: int) -> str:
    """A number of bytes in a suitable unit.

    >>> in_bytes(12), in_bytes(1536), in_bytes(3 << 30)
    ('12 B', '1.5 KiB', '3.0 GiB')
    """
    if count < 1024:
        return f"{count} B"

    size = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024:
            return f"{size:.1f} {unit}"

    return f"{size / 1024:.1f} TiB"


def in_seconds(time: float, digits: int = 2) -> str:
    """A time in a suitable unit, rounded to some digits; a model knows no more than two.

    >>> in_seconds(9.153e-4), in_seconds(9.96e-4), in_seconds(1.504e-10, 3), in_seconds(0)
    ('920 us', '1.0 ms', '150 ps', '0 s')
    """
    if not 0 < time < inf:
        return f"{time:g} s"

    # Rounded first, because 0.996 ms is 1.0 ms and not 1000 us.
    time = float(f"{time:.{digits - 1}e}")
    units = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9, "ps": 1e12}
    unit, scale = next((pair for pair in units.items() if time * pair[1] >= 1 - 1e-9), ("ps", 1e12))

    places = digits - 1 - floor(log10(time * scale) + 1e-9)
    return f"{time * scale:.{max(places, 0)}f} {unit}"
