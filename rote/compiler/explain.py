"""A plan in words and figures."""

from __future__ import annotations

from .cost import traffic
from .plan import Plan

__all__ = ["explain", "in_bytes"]


def explain(plan: Plan) -> str:
    """The steps of a plan as a table, then what it moves and how far that is from the lower bound.

    >>> from rote.compiler.compile import compile
    >>> print(explain(compile("block[(0),()] -> block[(),(0)]", shape=(64, 64), grid=4, dtype="c16")))
    block[(0),()] -> block[(),(0)]   (64, 64) complex128 on grid 4
      step  kind      over  layout         received  messages
                            block[(0),()]
      1     alltoall  0     block[(),(0)]  12.0 KiB         3
    each rank receives at most 12.0 KiB in 3 messages, lower bound 12.0 KiB (ratio 1.00)
    peak 56.0 KiB on a rank, about 10.5 us
    """
    item = plan.dtype.itemsize
    head = f"{plan.source.layout} -> {plan.target.layout}   {plan.source.shape} {plan.dtype} on grid {plan.source.grid}"
    if not plan.steps:
        return f"{head}\nnothing to do: every rank holds its block already"
    rows = [("step", "kind", "over", "layout", "received", "messages"), ("", "", "", str(plan.source.layout), "", "")]
    for number, step in enumerate(plan.steps, 1):
        moved = traffic(step.before, step.after)
        received, messages = int(moved.elements.max()) * item, int(moved.messages.max())
        over = ",".join(map(str, step.grid_modes)) or "-"
        rows.append((str(number), step.kind, over, str(step.after.layout), in_bytes(received), str(messages)))
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    table = [
        "  "
        + "  ".join(
            cell.ljust(w) if i < 4 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    cost, bound = plan.cost, plan.lower_bound
    ratio = f"ratio {cost.bytes / bound:.2f}" if bound else "nothing need move"
    return "\n".join(
        [head]
        + [line.rstrip() for line in table]
        + [
            f"each rank receives at most {in_bytes(cost.bytes)} in {cost.messages} message{'s' * (cost.messages != 1)}, "
            f"lower bound {in_bytes(bound)} ({ratio})",
            f"peak {in_bytes(cost.peak_bytes)} on a rank, about {_seconds(cost.seconds)}",
        ]
    )


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
