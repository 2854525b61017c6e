"""What planning takes on very many ranks: CPU seconds, with the import, and peak memory, each in a new Python.

    python tests/pages/reach.py

measures each row in turn, in some minutes, and writes the table into notebooks/performance.md. Run it on a quiet
machine.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fresh import fresh

__all__ = ["PAGE", "ROWS", "Row", "replaced", "shown", "table"]

PAGE = Path(__file__).resolve().parents[2] / "notebooks" / "performance.md"

_MOVE = """
text, shape, before, after = given
ends = [rote.parse(each).on(shape, grid) for each, grid in zip(text.split(" -> "), (before, after))]
rote.compile(*ends).verify()
"""
_LINE = """
import contextlib, io
from rote.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    main(given, standalone_mode=False)
"""
_SIMULATE = """
import numpy as np
text, extent, grid = given
array = np.arange(float(extent**3)).reshape((extent,) * 3)
plan = rote.compile(text, shape=array.shape, grid=grid, machine=rote.Machine(latency=0, step_time=0))
assert len(plan.steps) == 1
rote.simulate.run(plan, rote.simulate.scatter(array, plan.source))
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: a program and what it is given; the most seconds and megabytes that are asked, 0 for any."""

    what: str
    ranks: str
    code: str
    given: Any
    seconds: float
    megabytes: int = 0


def _moves(what: str, shape: tuple[int, ...], *grids: tuple[int, ...]) -> list[Row]:
    """A transition on some grids, compiled and proved."""
    name = f"`{what}` of {'x'.join(map(str, shape))}"
    limits = {2**20: (8, 700)}
    return [Row(name, f"{prod(g):,}", _MOVE, [what, shape, g, g], *limits.get(prod(g), (2, 200))) for g in grids]


def _regrid(what: str, before: int, after: tuple[int, int], seconds: float, megabytes: int) -> Row:
    """A transition from one grid to another, compiled and proved."""
    name = f"`{what}` of 65536x65536, from one grid mode to two"
    return Row(name, f"{before:,}", _MOVE, [what, [65536] * 2, [before], after], seconds, megabytes)


def _line(ranks: str, seconds: float, megabytes: int, *words: str) -> Row:
    """A command line."""
    return Row(f"`rote {' '.join(words)}`", ranks, _LINE, words, seconds, megabytes)


_FEW, _MANY = (256, 128), (1024, 1024)
_TRADEOFF = 'rote.tradeoff("[(0)]+(1) -> [()]", shape=2**40, grid=(1000, 100))'
_COMPARE = "rote.fft.compare((4096,) * 3, 10**5)"
_ALL = "[(0),(1),(2)] -> block[(0),(1),(2)]"  # all to all at once, if messages cost nothing but their bytes

ROWS = [
    *_moves("(a b) c: block[(0,1),()] -> block[(0),(1),()]", (4096,) * 3, _FEW, _MANY),
    *_moves("[(0,1),()] -> [(1,0),()]", (65536,) * 2, _FEW, _MANY),
    *_moves("[(0),()]+(1) -> [(0),(1)]", (65536,) * 2, _FEW, _MANY),
    *_moves("[(0:block(floor))] -> [(0:block(ceil))]", (10**12 + 39,), (12345,), (32768,), (2**20,)),
    _regrid("[(0),()] -> block[(0),(1)]", 4096, (64, 64), 3, 0),
    _regrid("[(0),()] -> block[(0),(1)]", 32768, _FEW, 20, 1000),
    _regrid("block[(),(0)] -> block[(0),(1)]", 32768, _FEW, 20, 1000),
    Row(f"`{_TRADEOFF}`", "100,000", _TRADEOFF, None, 1),
    Row(f"`{_COMPARE}`", "100,000", _COMPARE, None, 2),
    _line("262,144", 10, 500, "explain", "--fft", "8192x8192x8192", "--ranks", "262144"),
    _line("32,768", 3, 200, "predict", "2048x2048x2048", "--ranks", "32768"),
    _line("32,768", 3, 200, "predict", "2048x2048x2048", "--ranks", "32768", "--dtype", "c16"),
    _line("32 to 32,768", 10, 0, "predict", "2048x2048x2048", "--ranks", "32..32768"),
    _line("1,048,576", 10, 500, "predict", "8192x8192x8192", "--ranks", "1048576"),
    _line("82,944", 10, 500, "predict", "240x240x240x240", "--ranks", "82944"),
    Row(f"`{_ALL}` of 64x64x64 in one step, by `rote.simulate.run`", "512", _SIMULATE, [_ALL, 64, [8] * 3], 1),
    Row(f"`{_ALL}` of 64x64x64 in one step, by `rote.simulate.run`", "4,096", _SIMULATE, [_ALL, 64, [16] * 3], 10),
]
"""What was asked of planning, with the limits."""

_HEAD = "| what | ranks | CPU seconds | MB | asked: seconds | MB |\n|---|---|---|---|---|---|\n"


def shown(row: Row, seconds: str, megabytes: str) -> str:
    """A line of the table."""
    return f"| {row.what} | {row.ranks} | {seconds} | {megabytes} | {row.seconds:g} | {row.megabytes or ''} |\n"


def table() -> str:
    """The table, measured now."""
    lines = []
    for row in ROWS:
        found = fresh(row.code, row.given)
        lines.append(shown(row, f"{found['seconds']:.2g}", f"{found['megabytes']:.0f}"))
        print(lines[-1], end="", flush=True)
    return _HEAD + "".join(lines)


def replaced(page: str, table: str) -> str:
    """A page whose table with the same head is another one."""
    head = "".join(table.splitlines(keepends=True)[:2])
    before, found, after = page.partition(head)
    if not found:
        raise LookupError(f"the page has no table with the head\n{head}")
    return before + table.rstrip("\n") + "\n" + re.sub(r"^(?:[|].*\n)*", "", after)


if __name__ == "__main__":
    PAGE.write_text(replaced(PAGE.read_text("utf-8"), table()), "utf-8")
