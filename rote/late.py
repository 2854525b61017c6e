"""Lazy access to objects of higher packages: pages, cards, figures, the array API namespace, NumPy's transforms.

A value asks for them by name, so that its package does not depend on higher ones. They are imported on first use, and
programs that do not use them pay nothing.
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
    "numpy.fft",
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
    "numpy.fft": ("fft.functions.dispatch", ""),  # enters the answers for its functions
    "plan card": ("html.reprs", "plan_card"),
    "plan figure": ("plot.figures", "plan"),
    "plan page": ("html.page", "plan_page"),
    "walk figure": ("plot.figures", "stages"),
}
"""Per name, the module of Rote and the function in it; if there is no function, the module itself is meant."""


def late(name: Late) -> Any:
    """The function or module that a name stands for.

    >>> from rote import parse
    >>> late("layout card")(parse("[(0),()]"))[:4]
    '<div'
    """
    module, function = HOMES[name]
    home = import_module(f"rote.{module}")
    return getattr(home, function) if function else home
