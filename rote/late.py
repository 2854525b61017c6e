"""Things that values hand out and rooms above them make: pages, cards, figures, the namespace of arrays.

A value names it, so that its room knows nothing of those above; it is imported when it is first asked for, and who
never asks pays nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

__all__ = ["HOMES", "Late", "late"]

Late = Literal[
    "array namespace",
    "card",
    "distribution card",
    "layout card",
    "plan card",
    "plan figure",
    "plan page",
    "walk figure",
]

HOMES: dict[Late, tuple[str, str]] = {
    "array namespace": ("array_api", ""),
    "card": ("html.reprs", "card"),
    "distribution card": ("html.reprs", "distribution_card"),
    "layout card": ("html.reprs", "layout_card"),
    "plan card": ("html.plans", "plan_card"),
    "plan figure": ("plot.figures", "plan"),
    "plan page": ("html.plans", "plan_page"),
    "walk figure": ("plot.figures", "stages"),
}
"""Per name, the module of Rote and the function in it; the module itself where there is no function."""


def late(name: Late) -> Any:
    """The function or module of a name.

    >>> from rote import parse
    >>> late("layout card")(parse("[(0),()]"))[:4]
    '<div'
    """
    module, function = HOMES[name]
    home = import_module(f"rote.{module}")
    return getattr(home, function) if function else home
