"""Compare two records of speed: which cases became slower or faster, and how certain that is.

    python tests/bench/compare.py before.json after.json                status 1 if something of Rote is slower
    python tests/bench/compare.py before.json after.json --relative     by ratios: the machine was busier, or another

Records are written by `suite.py`, or by `rote bench --json`. A verdict needs four rounds in each of them.

The ratio of two contestants' times is the median of the ratios of all pairs of their rounds, the estimator of Hodges
and Lehmann (1963) on logarithms; its interval is that of Moses, which inverts the test of Mann and Whitney and so
supposes no distribution (Hollander, Wolfe and Chicken 2014, Nonparametric Statistical Methods, sections 4.2 and 4.3).
It is exact, nothing is drawn at random, and to exchange the records inverts it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb, inf, sqrt
from statistics import median
from typing import Any, Literal

from rote.errors import RoteError, counted
from rote.units import in_seconds, table

__all__ = ["CONFIDENCE", "Change", "Comparison", "compare", "interval", "load"]

CONFIDENCE = 0.95
# The least relative difference that is called slower or faster, however certain it is: noise has a bias, too.
_LEAST = 0.05
_OF_MACHINE = ("processor", "cores", "instructions", "caches")  # equal in two runs on one machine
_REFERENCES = ("pyfftw", "memcpy", "kernels")  # cases whose times measure the machine, in order of preference
_OURS = ("rote", "threads")

Verdict = Literal["slower", "faster", "same", "too few rounds"]
_Key = tuple[str, str, str, str, int]
_Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """One case in one row of two records."""

    work: str
    name: str
    on: str
    ours: bool  # whether it is Rote
    medians: tuple[float, float]  # in both records: seconds, or ratios to the reference
    reference: str  # the case to which both are ratios; empty if they are times
    ratio: float  # of the second record to the first, with the interval from `low` to `high`
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """Slower or faster if the whole interval says so, and the ratio differs enough from 1."""
        if self.high == inf:
            return "too few rounds"
        if self.low > 1 and self.ratio > 1 + _LEAST:
            return "slower"
        if self.high < 1 and self.ratio < 1 / (1 + _LEAST):
            return "faster"
        return "same"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two records compared: the changes, the cases that cannot be compared by reason, and general remarks."""

    changes: tuple[Change, ...]
    alone: Mapping[str, tuple[str, ...]]
    remarks: tuple[str, ...]

    @property
    def slower(self) -> tuple[Change, ...]:
        """The changes in which Rote became slower."""
        return tuple(change for change in self.changes if change.ours and change.verdict == "slower")

    def __str__(self) -> str:
        parts = [*self.remarks]
        if self.changes:
            rows = [("work", "contestant", "on", "first", "second", "ratio", f"{CONFIDENCE:.0%} interval", "")]
            parts.append("\n".join(table([*rows, *map(_cells, self.changes)], range(3, 7))))
        parts += ["\n  ".join([f"{why}:", *names]) for why, names in self.alone.items()]
        return "\n\n".join(parts)


def same_machine(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether two records are of machines between which they show no difference."""
    return all(first.get(key) == second.get(key) for key in _OF_MACHINE)


def load(path: str) -> dict[str, Any]:
    """Read a record that `suite.py` or `rote bench` wrote.

    Raises:
        RoteError: the file is not such a record.
    """
    try:
        with open(path, encoding="utf-8") as file:
            record: dict[str, Any] = json.load(file)
        for entry in record["entries"]:
            _key(entry)
            if "missing" not in entry and not (entry["seconds"] and min(entry["seconds"]) > 0):
                raise ValueError("a case without times")
    except (ValueError, KeyError, TypeError) as error:
        raise RoteError(
            f"{path} is no record of speed: {error}\nwrite one with python tests/bench/suite.py {path}"
        ) from None
    return record


def compare(first: Mapping[str, Any], second: Mapping[str, Any], relative: bool = False) -> Comparison:
    """Compare two records, case by case.

    Args:
        relative: whether to compare ratios of times instead of times, as is always done for different machines: ratios
            to pyFFTW in the same row and round, else to memcpy, or to the bare kernels of a call.

    >>> entry = {"work": "c2c 8x8 c16", "ranks": 2, "contestant": "rote", "name": "rote", "on": "2 threads"}
    >>> a, b = ({"entries": [entry | {"seconds": [k * n for n in (10, 11, 12, 13, 14)]}]} for k in (1, 2))
    >>> [(change.ratio, change.verdict) for change in compare(a, b).changes]
    [(2.0, 'slower')]
    """
    apart = not same_machine(first, second)
    remarks = _remarks(first, second, apart, relative)
    ours = {_key(entry): entry for entry in first["entries"]}
    theirs = {_key(entry): entry for entry in second["entries"]}
    changes: list[Change] = []
    alone: dict[str, list[str]] = {}
    for key in dict.fromkeys([*ours, *theirs]):
        pair = ours.get(key), theirs.get(key)
        ran = [*map(_ran, pair)]
        if not any(ran):
            continue
        if not all(ran):
            where = "first" if ran[0] else "second"
            alone.setdefault(f"only in the {where}", []).append(_named(key, pair))
        elif not (apart or relative):
            changes.append(_change(key, ours[key]["seconds"], theirs[key]["seconds"], ""))
        elif key[1] not in _REFERENCES:
            scaled, reference = _scaled(key, ours, theirs)
            if scaled is None:
                alone.setdefault("without a library that both have", []).append(_named(key, pair))
            else:
                changes.append(_change(key, *scaled, reference))
    return Comparison(tuple(changes), {why: tuple(names) for why, names in alone.items()}, tuple(remarks))


def interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float, float]:
    """The ratio of the second times to the first, and its lower and upper bound.

    With too few rounds the bounds are 0 and infinity; four rounds of each are enough.

    >>> interval([1, 1, 1, 1, 1], [2, 2, 2, 2, 2])
    (2.0, 2.0, 2.0)
    >>> interval([1, 1], [2, 2])
    (2.0, 0.0, inf)
    """
    ratios = sorted(b / a for a in first for b in second)
    rank = _rank(len(first), len(second))
    low, high = (ratios[rank - 1], ratios[-rank]) if rank else (0.0, inf)
    middle = ratios[(len(ratios) - 1) // 2] * ratios[len(ratios) // 2]
    return float(sqrt(middle)), float(low), float(high)


@cache
def _rank(m: int, n: int) -> int:
    """The rank, from either end, of the ratio that bounds the interval, among m n ratios; 0 if there is none."""
    counts = _counts(m, n)
    tail, rank = 0, 0
    while rank < len(counts) and (tail := tail + counts[rank]) <= (1 - CONFIDENCE) / 2 * comb(m + n, m):
        rank += 1
    return rank


def _counts(m: int, n: int) -> list[int]:
    """The numbers of orders of m and n values for which Mann and Whitney's statistic is 0, 1, 2, ..., m n."""
    # The Gaussian binomial coefficient, factor by factor: times (1 - q^(n + i)), over (1 - q^i).
    counts = [1] + [0] * (m * n)
    for i in range(1, m + 1):
        for k in range(m * n, n + i - 1, -1):
            counts[k] -= counts[k - n - i]
        for k in range(i, m * n + 1):
            counts[k] += counts[k - i]
    return counts


def _key(entry: _Entry) -> _Key:
    work, group, name, on = (str(entry[part]) for part in ("work", "contestant", "name", "on"))
    return work, group, name, on, int(entry["ranks"])


def _named(key: _Key, pair: tuple[_Entry | None, _Entry | None]) -> str:
    """The name of a case that is missing in one of two records, with the reason if the record has it."""
    why = [entry["missing"] for entry in pair if entry is not None and "missing" in entry]
    return f"{key[0]}, {key[2]} on {key[3]}" + "".join(f" (elsewhere it {each})" for each in why)


def _ran(entry: _Entry | None) -> bool:
    return entry is not None and "missing" not in entry


def _scaled(
    key: _Key, first: Mapping[_Key, _Entry], second: Mapping[_Key, _Entry]
) -> tuple[tuple[list[float], list[float]] | None, str]:
    """Ratios, round by round, to the first reference that ran in a case's row in both records, in one build."""
    for name in _REFERENCES:
        mine, theirs = (_reference(key, entries, name) for entries in (first, second))
        if mine is not None and theirs is not None and mine.get("library") == theirs.get("library"):
            return (_over(first[key], mine), _over(second[key], theirs)), name
    return None, ""


def _reference(key: _Key, entries: Mapping[_Key, _Entry], name: str) -> _Entry | None:
    """The entry of a library in a case's row; of several, the one on as many threads or ranks."""
    rows = [other for other in entries if (other[0], other[1], other[4]) == (key[0], name, key[4])]
    rows = sorted([other for other in rows if _ran(entries[other])], key=lambda other: other[3] != key[3])
    return next((entries[other] for other in rows), None)


def _over(entry: _Entry, reference: _Entry) -> list[float]:
    return [s / r for s, r in zip(entry["seconds"], reference["seconds"], strict=False)]


def _change(key: _Key, first: Sequence[float], second: Sequence[float], reference: str) -> Change:
    work, group, name, on, _ = key
    medians = median(first), median(second)
    return Change(work, name, on, group in _OURS, medians, reference, *interval(first, second))


def _remarks(first: Mapping[str, Any], second: Mapping[str, Any], apart: bool, relative: bool) -> list[str]:
    remarks = []
    if apart:
        machines = " and ".join(f"{each.get('processor')} ({each.get('cores')} cores)" for each in (first, second))
        remarks.append(
            f"The records are of different machines, {machines}: times are not compared, only their ratios to those "
            "of pyfftw, memcpy or bare kernels in the same row and round."
        )
    elif relative:
        remarks.append(
            "Compared are ratios to pyfftw, memcpy or bare kernels in the same row and round, and not times."
        )
    before, after = first.get("versions", {}), second.get("versions", {})
    differ = []
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            differ.append(f"{name} {before.get(name, 'none')} and {after.get(name, 'none')}")
    if differ:
        remarks.append(f"Versions that differ: {', '.join(differ)}.")
    return remarks


def _cells(change: Change) -> tuple[str, ...]:
    medians = [in_seconds(median, 3) for median in change.medians]
    if change.reference:
        medians = [f"{median:.3g} x {change.reference}" for median in change.medians]
    bounds = "-" if change.high == inf else f"{change.low:.2f} .. {change.high:.2f}"
    verdict = "" if change.verdict == "same" else change.verdict
    return change.work, change.name, change.on, *medians, f"{change.ratio:.2f}", bounds, verdict


def main(args: Sequence[str] | None = None) -> int:
    """Read the command line, and print the comparison; 1 if something of Rote is slower."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", metavar="A.json")
    parser.add_argument("second", metavar="B.json")
    parser.add_argument("--relative", action="store_true", help="compare ratios to another library, not times")
    chosen = parser.parse_args(args)
    try:
        comparison = compare(load(chosen.first), load(chosen.second), chosen.relative)
    except (OSError, RoteError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    print(comparison)
    if not comparison.changes:
        print("Error: the records have nothing in common that could be compared", file=sys.stderr)
        return 1
    if comparison.slower:
        rows = "; ".join([f"{each.work}, {each.name} on {each.on}" for each in comparison.slower])
        number = counted(len(comparison.slower), "row")
        print(f"Error: Rote is slower in {chosen.second}, in {number}: {rows}", file=sys.stderr)
    return int(bool(comparison.slower))


if __name__ == "__main__":
    sys.exit(main())
