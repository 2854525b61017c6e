"""The report of a contest: tables, and all results as JSON."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ..compiler.explain import table
from .contest import SPAN, Score

__all__ = ["as_json", "factor", "in_units", "libraries", "missing", "ratio", "scaling", "summary", "times"]


def times(lines: Sequence[Score]) -> str:
    """The table of one work, with a line per contestant."""
    rows = [(str(lines[0].contestant.work), "on", "median", "fastest", "/ rote")]
    for line in _ran(lines):
        cells = in_units(line.median), in_units(min(line.seconds)), factor(ratio(line, lines))
        rows.append((line.contestant.name, line.contestant.where, *cells))
    return "\n".join(table(rows, range(2, 5)))


def summary(lines: Sequence[Score]) -> str:
    """A table with a line per work: Rote's fastest time, and the ratio of each other contestant's fastest to it."""
    groups = list(dict.fromkeys(line.contestant.group for line in _ran(lines)))
    heads = [group if group == "rote" else f"{group} / rote" for group in groups]
    rows = [("the fastest of each", *heads)]
    for work in dict.fromkeys(line.contestant.work for line in lines):
        least: dict[str, float] = {}
        for line in _ran(lines):
            if line.contestant.work == work:
                least[line.contestant.group] = min(line.median, least.get(line.contestant.group, line.median))
        ours = least.get("rote")
        times = {group: factor(ours and seconds / ours) for group, seconds in least.items()}
        times |= {"rote": "-" if ours is None else in_units(ours)}
        rows.append((str(work), *[times.get(group, "-") for group in groups]))
    return "\n".join(table(rows, range(1, len(groups) + 1)))


def scaling(lines: Sequence[Score], weak: bool) -> str:
    """A table of every contestant on one rank, two, four, ..., and how well it scales."""
    rows = [("contestant", "on", "work", "median", "efficiency" if weak else "speed-up", "/ rote")]
    for line in sorted(_ran(lines), key=lambda line: list(map(_contestant, lines)).index(_contestant(line))):
        pays = _first(line, lines, weak).median / line.median
        cells = in_units(line.median), factor(pays), factor(ratio(line, lines))
        rows.append((line.contestant.name, line.contestant.where, str(line.contestant.work), *cells))
    return "\n".join(table(rows, range(3, 6)))


def libraries(lines: Sequence[Score]) -> str:
    """The libraries that transformed, with their builds and the contestants that used them; empty if none did."""
    names: dict[str, dict[str, None]] = {}
    for line in _ran(lines):
        if line.library:
            names.setdefault(line.library, {})[line.contestant.name] = None
    rows = [(", ".join(users), library) for library, users in names.items()]
    return "\n".join(table(rows, ())) if rows else ""


def missing(lines: Sequence[Score]) -> list[str]:
    """The contestants that took no part, and why; with their rows, if they took part in others."""
    said: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        if line.missing:
            said.setdefault((line.contestant.name, line.missing), []).append(str(line.contestant.work))
    ran = {line.contestant.name for line in _ran(lines)}
    texts = []
    for (name, why), works in said.items():
        where = f" ({', '.join(dict.fromkeys(works))})" if name in ran else ""
        texts.append(f"missing: {name} {why}{where}")
    return texts


def ratio(line: Score, lines: Sequence[Score]) -> float | None:
    """The ratio of a median to Rote's: of the algorithm of the same name if it ran, else of the fastest; else None.

    If MPI has several ranks, Rote's median is that on MPI's ranks.
    """
    ours, alike = [], []
    for other in _ran(lines):
        if other.contestant.group == "rote" and other.contestant.work == line.contestant.work:
            ours.append(other.median)
            if other.contestant.variant == line.contestant.variant:
                alike.append(other.median)
    return line.median / min(alike or ours) if ours else None


def _first(line: Score, lines: Sequence[Score], weak: bool) -> Score:
    """This contestant's score on the fewest ranks, for the same work or, if `weak`, for as much work per rank."""

    def key(other: Score) -> Hashable:
        work = other.contestant.work
        return _contestant(other), work.dtype, work.shape[0] // (work.ranks if weak else 1), work.shape[1:]

    return min((o for o in _ran(lines) if key(o) == key(line)), key=lambda o: o.contestant.work.ranks)


def _ran(lines: Sequence[Score]) -> list[Score]:
    return [line for line in lines if line.seconds and not line.missing]


def _contestant(line: Score) -> tuple[str, str]:
    return line.contestant.name, line.contestant.on


def factor(number: float | None) -> str:
    """A ratio with two digits; a dash if there is none."""
    if number is None:
        return "-"
    return f"{number:.2f}" if number >= 0.1 else f"{number:.2g}"


def in_units(seconds: float) -> str:
    """A time with three digits.

    >>> in_units(0.01234), in_units(2.5e-6), in_units(3.0)
    ('12.3 ms', '2.50 us', '3.00 s')
    """
    value, unit = seconds * 1e6, "us"
    if seconds >= 1:
        value, unit = seconds, "s"
    elif seconds * 1e3 >= 1:
        value, unit = seconds * 1e3, "ms"
    digits = (value < 10) + (value < 100)
    return f"{value:.{digits}f} {unit}"


def as_json(lines: Sequence[Score], about: dict[str, Any]) -> dict[str, Any]:
    """The machine, and for each contestant its work, the seconds of every round, its median and its ratio to Rote."""
    begun = [line for line in lines if line.seconds or line.missing]
    return {**about, "span": SPAN, "entries": [_entry(line, lines) for line in begun]}


def _entry(line: Score, lines: Sequence[Score]) -> dict[str, Any]:
    """One contestant's entry in `as_json`."""
    contestant, work = line.contestant, line.contestant.work
    entry = {
        "work": str(work),
        "shape": list(work.shape),
        "dtype": work.dtype.str[1:],
        "contestant": contestant.group,
        "name": contestant.name,
        "ranks": work.ranks,
        "on": contestant.where,
    }
    if line.missing:
        return entry | {"missing": line.missing}
    seconds = {"median": line.median, "ratio": ratio(line, lines), "seconds": line.seconds}
    return entry | seconds | {"library": line.library}
