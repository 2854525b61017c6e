"""notebooks/contractions-many.md is true: its table is that of the planner; run as a program, this writes it."""

from __future__ import annotations

import re
import sys

from house import ROOT

sys.path.insert(0, str(ROOT / "tests" / "contraction"))

from table import CASES, rows

PAGE = ROOT / "notebooks" / "contractions-many.md"
HEAD = "| contraction | words | better way | ratio | memory |\n|---|--:|--:|--:|--:|\n"


def lines() -> str:
    """The table's rows, by the planner of now."""
    found = []
    for case, row in zip(CASES, rows(), strict=True):
        memory = f"{row.peak_over_better:.2f}" if row.peak_over_better else ""  # a bound has none
        name = f"{row.case}: `{case.text}`"
        found.append(f"| {name} | {row.words:,.0f} | {row.better:,.0f} | {row.ratio:.2f} | {memory} |\n")
    return "".join(found)


def written(page: str) -> str:
    """The page with the table of now."""
    before, _, after = page.partition(HEAD)
    return before + HEAD + lines() + re.sub(r"^(?:[|].*\n)*", "", after)


def test_the_table_is_current() -> None:
    """The page has the words of the planner; `python tests/house/test_house_contractions.py` writes them."""
    page = PAGE.read_text("utf-8")
    assert HEAD in page
    assert page == written(page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
