"""Explanation of a plan in words and figures."""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import floor, inf, log10
from typing import NamedTuple

from ..layout.distribution import Distribution
from .cost import Cost, duration, flow, peak
from .machine import DEFAULT, Machine
from .rules import rule_of
from .step import Step

__all__ = ["StepFigures", "explain", "figures", "grids", "in_bytes", "in_seconds", "kinds", "on_machine", "table"]
__all__ += ["versus"]


class StepFigures(NamedTuple):
    """The figures of a step.

    Attributes:
        kind, over: the kind of step, and its grid modes.
        layout: the layout after the step.
        received, peak: the bytes that the busiest rank receives, and the most that a rank holds during the step.
        rounds: the number of rounds of messages.
        seconds, algorithm: the model's time, and the fastest algorithm, which takes it.
        rule: the rule that the step follows, with the algorithm if there are several rounds.
    """

    kind: str
    over: str
    layout: str
    received: int
    rounds: int
    peak: int
    seconds: float
    algorithm: str
    rule: str


def figures(
    ends: tuple[Distribution, Distribution], steps: tuple[Step, ...], item: int, machine: Machine
) -> list[StepFigures]:
    """The figures of each step of a plan; for the arguments, see `explain`."""
    rows = []
    for number, step in enumerate(steps, 1):
        quick = duration(step, item, machine)
        rule = rule_of(step).name
        if quick.rounds > 1:
            rule += f", {quick.algorithm}"
        rows.append(
            StepFigures(
                kind=step.kind,
                over=_over(step),
                layout=str(step.after.layout),
                received=int(flow(step).elements.max()) * step.sent(item),
                rounds=quick.rounds,
                peak=peak(step, *ends, number == 1, number == len(steps)) * item,
                seconds=quick.seconds,
                algorithm=quick.algorithm,
                rule=rule,
            )
        )
    return rows


def explain(
    head: str, ends: tuple[Distribution, Distribution], steps: tuple[Step, ...], item: int, machine: Machine
) -> list[str]:
    """The steps of a plan as a table: for each, its layout, what it moves, its peak memory and its rule.

    Args:
        head: the line above the table.
        ends: the plan's source and target, which are held throughout.
        item: the size of an element in bytes.
        machine: the machine whose times decide the number of rounds.
    """
    if not steps:
        return [head, "nothing to do: every rank holds its block already"]
    rows = [
        ("step", "kind", "over", "layout", "received", "rounds", "peak", "rule"),
        ("", "", "", str(steps[0].before.layout), "", "", "", ""),
    ]
    for number, row in enumerate(figures(ends, steps, item, machine), 1):
        cells = in_bytes(row.received), str(row.rounds), in_bytes(row.peak)
        rows.append((str(number), row.kind, row.over, row.layout, *cells, row.rule))
    return [head, *table(rows, range(4, 7))]


def grids(source: Distribution, target: Distribution) -> str:
    """The grid of both ends, or the two grids if they differ."""
    return " to ".join(dict.fromkeys([str(source.grid), str(target.grid)]))


def kinds(steps: tuple[Step, ...]) -> str:
    """The kinds of some steps as one text."""
    return ", ".join(f"{step.kind} over {_over(step)}" for step in steps) or "no step"


def _over(step: Step) -> str:
    """The grid modes of a step, and the grid that it leads to if that is a different one."""
    over = ",".join(map(str, step.grid_modes)) or "-"
    return f"{over} to {step.after.grid}" if step.across else over


def versus(cost: Cost, best: Cost) -> str:
    """Why a plan of some cost was not chosen."""
    why = []
    if cost.bytes > best.bytes:
        why.append(f"receives {in_bytes(cost.bytes)} (not {in_bytes(best.bytes)})")
    if cost.peak_bytes > best.peak_bytes:
        why.append(f"holds {in_bytes(cost.peak_bytes)} (not {in_bytes(best.peak_bytes)})")
    if cost.messages > best.messages:
        why.append(f"hears from {cost.messages} (not {best.messages}) ranks")
    times = f"about {in_seconds(cost.seconds)}"
    if best.seconds:
        ratio = cost.seconds / best.seconds
        times += f", {ratio:.2f} times as long" if abs(ratio - 1) >= 0.005 else ", as long"
    return f"{times}: a rank {', '.join(why)}" if why else f"{times}: more steps or rounds of messages"


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
    time = float(f"{time:.{digits - 1}e}")
    units = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9, "ps": 1e12}
    unit, scale = next((each for each in units.items() if time * each[1] >= 1 - 1e-9), ("ps", 1e12))
    places = digits - 1 - floor(log10(time * scale) + 1e-9)
    return f"{time * scale:.{max(places, 0)}f} {unit}"


def on_machine(machine: Machine) -> str:
    """The machine that takes the times of a cost, in words: the default one, or one with its latency.

    >>> on_machine(Machine()), on_machine(Machine(latency=(1e-6, 5e-6)))
    ('on the default machine', 'on a machine of latency 1.0 us, 5.0 us')
    """
    if machine == DEFAULT:
        return "on the default machine"
    latencies = machine.latency if isinstance(machine.latency, tuple) else (machine.latency,)
    return f"on a machine of latency {', '.join(map(in_seconds, latencies))}"
