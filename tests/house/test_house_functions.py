"""notebooks/array-functions.md is true: it has all rules and functions; run as a program, this writes the functions."""

from __future__ import annotations

import re
from importlib import import_module

from house import ROOT

import rote.array_api as xp
from rote.functions import load
from rote.functions.rules import FUNCTIONS, RULES

PAGE = ROOT / "notebooks" / "array-functions.md"
HEAD = "| rule | functions |\n|---|---|\n"


def table() -> str:
    """The rows of the table of functions: those that follow each rule."""
    load()
    import_module("rote.array_api.linalg")
    listed = {
        rule: ", ".join(f"`{name}`" for name in sorted(FUNCTIONS) if FUNCTIONS[name] == rule and "." not in name)
        for rule in RULES
    }
    return "\n".join(f"| {rule} | {names} |" for rule, names in listed.items() if names)


def written(page: str) -> str:
    """The page with the table of now."""
    before, _, after = page.partition(HEAD)
    rest = re.sub(r"^(?:[|].*\n)*", "", after)
    return f"{before}{HEAD}{table()}\n{rest}"


def test_the_table_of_functions_is_current() -> None:
    """The page has the functions of the program; `python tests/house/test_house_functions.py` writes them."""
    page = PAGE.read_text("utf-8")
    assert HEAD in page
    assert page == written(page)


def test_the_page_says_what_each_rule_is() -> None:
    """Each rule has a row with the layout of the result and what moves, in the order of the program."""
    rules = PAGE.read_text("utf-8").partition("| rule | layout of the result | what moves |\n|---|---|---|\n")[2]
    rows = re.findall(r"^[|] ([\w-]+) [|] .+ [|] .+ [|]$", rules.partition("\n\n")[0], re.MULTILINE)
    assert rows == [*RULES]


def test_every_function_of_the_namespace_has_a_rule() -> None:
    """No function of `rote.array_api` comes without a rule, and no rule without a function."""
    load()
    import_module("rote.array_api.linalg")
    functions = {name for name in dir(xp) if callable(getattr(xp, name)) and not name.startswith("_")}
    assert functions - FUNCTIONS.keys() == {"broadcast_shapes"} & functions
    assert set(FUNCTIONS.values()) == RULES.keys()


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
