"""A plan in words and figures."""

from __future__ import annotations

from .cost import Cost, traffic
from .step import Step

__all__ = ["explain", "in_bytes"]


def explain(head: str, steps: tuple[Step, ...], item: int, cost: Cost, bound: int) -> str:
    """The steps of a plan as a table, then what it moves and how far that is from the lower bound.

    Args:
        head: the line above the table.
        item: the size of an element in bytes.
        bound: the lower bound in bytes.
    """
    if not steps:
        return f"{head}\nnothing to do: every rank holds its block already"
    rows = [
        ("step", "kind", "over", "layout", "received", "messages"),
        ("", "", "", str(steps[0].before.layout), "", ""),
    ]
    for number, step in enumerate(steps, 1):
        moved = traffic(step.before, step.after)
        received, messages = in_bytes(int(moved.elements.max()) * item), str(int(moved.messages.max()))
        over = ",".join(map(str, step.grid_modes)) or "-"
        rows.append((str(number), step.kind, over, str(step.after.layout), received, messages))
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    ratio = f"ratio {cost.bytes / bound:.2f}" if bound else "nothing need move"
    plural = "s" * (cost.messages != 1)
    return "\n".join(
        [
            head,
            *(_line(row, widths) for row in rows),
            f"each rank receives at most {in_bytes(cost.bytes)} in {cost.messages} message{plural}, "
            f"lower bound {in_bytes(bound)} ({ratio})",
            f"peak {in_bytes(cost.peak_bytes)} on a rank, about {_seconds(cost.seconds)}",
        ]
    )


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    """A row of the table: texts to the left, figures (the last two columns) to the right."""
    left = [cell.ljust(width) for cell, width in zip(row[:4], widths[:4], strict=True)]
    right = [cell.rjust(width) for cell, width in zip(row[4:], widths[4:], strict=True)]
    return "  ".join(["", *left, *right]).rstrip()


def in_bytes(count: int) -> str:
    """A number of bytes in the unit that suits it.

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


def _seconds(time: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if time * scale >= 1:
            return f"{time * scale:.1f} {unit}"
    return f"{time * 1e6:.1f} us"
