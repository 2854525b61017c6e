"""notebooks/array-functions.md is true: its tables are those of the rules; run as a program, this writes them."""

from __future__ import annotations

import re
from importlib import import_module

from house import ROOT

import rote.array_api as xp
from rote.functions import load
from rote.functions.rules import FUNCTIONS, RULES

PAGE = ROOT / "notebooks" / "array-functions.md"
HEADS = ("| rule | layout of the result | what moves |\n|---|---|---|\n", "| rule | functions |\n|---|---|\n")


def tables() -> tuple[str, str]:
    """The rows of both tables: the rules, and the functions that follow each."""
    load()
    import_module("rote.array_api.linalg")
    rules = [f"| {name} | {rule.result} | {rule.moves} |" for name, rule in RULES.items()]
    listed = {
        rule: ", ".join(f"`{name}`" for name in sorted(FUNCTIONS) if FUNCTIONS[name] == rule and "." not in name)
        for rule in RULES
    }
    functions = [f"| {rule} | {names} |" for rule, names in listed.items() if names]
    return "\n".join(rules), "\n".join(functions)


def written(page: str) -> str:
    """The page with the tables of now."""
    for head, rows in zip(HEADS, tables(), strict=True):
        before, _, after = page.partition(head)
        rest = re.sub(r"^(?:[|].*\n)*", "", after)
        page = f"{before}{head}{rows}\n{rest}"
    return page


def test_the_tables_are_current() -> None:
    """The page has the rules and functions of the program; `python tests/house/test_house_functions.py` writes them."""
    page = PAGE.read_text("utf-8")
    assert all(head in page for head in HEADS)
    assert page == written(page)


def test_every_function_of_the_namespace_has_a_rule() -> None:
    """No function of `rote.array_api` comes without a rule, and no rule without a function."""
    load()
    import_module("rote.array_api.linalg")
    functions = {name for name in dir(xp) if callable(getattr(xp, name)) and not name.startswith("_")}
    assert functions - FUNCTIONS.keys() == {"broadcast_shapes"} & functions
    assert set(FUNCTIONS.values()) == RULES.keys()


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
