"""notebooks/scale.md is true: its table of the papers' statements is that of now; run as a program, this writes it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "paper"))

from statements import STATEMENTS, table

PAGE = Path(__file__).resolve().parents[2] / "notebooks" / "scale.md"


def written(page: str) -> str:
    """The page with the table of now."""
    head, rule, *rows = table().splitlines(keepends=True)
    before, found, after = page.partition(head + rule)
    if not found:
        raise LookupError(f"{PAGE.name} has no table with the head\n{head}{rule}")
    return before + found + "".join(rows) + "\n" + re.sub(r"^(?:[|].*\n)*", "", after)


def test_the_table_of_statements_is_current() -> None:
    """The page has what the model says of each; `python tests/pages/test_pages_scale.py` writes it."""
    page = PAGE.read_text("utf-8")
    assert page == written(page)
    assert all(page.count(f"\n| {name} | {row['source']} | ") == 1 for name, row in STATEMENTS.items())


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
