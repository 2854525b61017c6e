"""notebooks/papers.md has the papers' statements and verdicts of now; run as a program, this writes them.

The table in notebooks/performance.md of what planning takes is written by `python tests/pages/reach.py`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "paper"))

from fresh import fresh
from pages.reach import PAGE, ROWS, replaced, shown
from statements import STATEMENTS, table

PAPERS = PAGE.with_name("papers.md")


def written(page: str) -> str:
    """The page with the table of the papers' statements of now."""
    return replaced(page, table())


@pytest.mark.slow
def test_the_table_of_statements_is_current() -> None:
    """The page has what the model says of each; `python tests/pages/test_pages_scale.py` writes it."""
    page = PAPERS.read_text("utf-8")
    assert page == written(page)
    assert all(page.count(f"\n| {name} | {row['source']} | ") == 1 for name, row in STATEMENTS.items())


FIGURES = re.compile(r"[|] ([0-9.]+) [|] ([0-9]+) [|]")


def figures(row, page):
    """The seconds and the megabytes of a row on the page."""
    start = f"| {row.what} | {row.ranks} "
    (line,) = [line for line in page.splitlines(keepends=True) if line.startswith(start)]
    found = FIGURES.match(line, len(start))
    assert found and line == shown(row, *found.groups()), line
    return [*map(float, found.groups())]


def test_the_table_of_what_planning_takes_has_its_rows() -> None:
    """Each row with its limits, in order, and positive figures; `python tests/pages/reach.py` writes them."""
    page = PAGE.read_text("utf-8")
    assert all(min(figures(row, page)) > 0 for row in ROWS)
    places = [page.index(f"| {row.what} | {row.ranks} ") for row in ROWS]
    assert places == sorted(places)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.what} {row.ranks}")
def test_planning_takes_what_the_page_says(row) -> None:
    """The best of up to three runs takes at most three times the seconds and the memory of the page."""
    seconds, megabytes = figures(row, PAGE.read_text("utf-8"))
    for _ in range(3):
        found = fresh(row.code, row.given)
        if found["seconds"] <= 3 * seconds and found["megabytes"] <= 3 * megabytes:
            return
    raise AssertionError(f"{found} instead of {seconds} s and {megabytes} MB")


if __name__ == "__main__":
    PAPERS.write_text(written(PAPERS.read_text("utf-8")), "utf-8")
