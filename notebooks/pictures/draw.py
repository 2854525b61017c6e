"""Draw the pictures of this folder: `python notebooks/pictures/draw.py` writes them beside this file.

A row of `PICTURES` is a file's name and what it shows. A test compares what is stored with what is drawn today.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib

import rote

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def pencils() -> Figure:
    """A cube in pencils along mode 2, then along mode 1, and the step between them."""
    plan = rote.compile("block[(0),(1),()] -> block[(0),(),(1)]", shape=(8, 8, 8), grid=(2, 2))
    figure = rote.plot.plan(plan)
    figure.set_size_inches(7.6, 3.0)
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {"pencils.svg": pencils}


def draw(name: str, folder: Path) -> Path:
    """Write one picture into a folder, with text as outlines, and with no date or number that changes by itself."""
    path = folder / name
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
        PICTURES[name]().savefig(path, metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    return path


if __name__ == "__main__":
    for name in PICTURES:
        print(draw(name, Path(__file__).parent))
