"""The pictures that the repository stores are what `rote.plot` draws today, and the pages show no others."""

from __future__ import annotations

import re
import sys
from importlib import util
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as xml

import numpy as np
import pytest
from house import ROOT
from matplotlib.image import imread

FOLDER = ROOT / "notebooks" / "pictures"
PAGES = [ROOT / "README.md", *sorted((ROOT / "notebooks").glob("*.md"))]
SVG = "{http://www.w3.org/2000/svg}"

Cell = tuple[str, tuple[float, ...]]


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    """The script that draws them."""
    spec = util.spec_from_file_location("draw_pictures", FOLDER / "draw.py")
    assert spec and spec.loader
    module = util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(FOLDER), *sys.path])
        spec.loader.exec_module(module)
    return module


def facts(path: Path) -> tuple[list[str], list[Cell]]:
    """What a picture says and shows: its texts in order, and the fill and corners of its cells.

    Outlines of letters and the place of labels are left out: they change with matplotlib's fonts.
    """
    text = path.read_text("utf-8")
    said = re.findall(r"<!-- (.*?) -->", text)
    groups = (each for each in xml.fromstring(text).iter(f"{SVG}g") if each.get("id", "").startswith("PolyCollection"))
    cells = [
        (str(shape.get("style")), tuple(map(float, re.findall(r"-?\d+\.?\d*", str(shape.get("d"))))))
        for group in groups
        for shape in group.iter(f"{SVG}path")
    ]
    return said, cells


def alike(stored: list[Cell], drawn: list[Cell]) -> bool:
    """The same fills, and the same shapes: corners within a point of each other, seen from the first one drawn."""
    if [(fill, len(corners)) for fill, corners in stored] != [(fill, len(corners)) for fill, corners in drawn]:
        return False
    old, new = (np.concatenate([np.reshape(corners, (-1, 2)) for _, corners in cells]) for cells in (stored, drawn))
    return bool((abs((old - old[0]) - (new - new[0])) < 1).all())


QUICK = ("walk.svg", "kinds.svg")  # the picture of README, and one that is drawn in no time


@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_stored_pictures_are_current(pictures: ModuleType, tmp_path: Path, quick: bool) -> None:
    """Drawn anew, each picture has the same texts and the same cells in the same colours: else run
    `python notebooks/pictures/draw.py`."""
    names = [name for name in pictures.PICTURES if (name in QUICK) is quick and name.endswith(".svg")]
    assert len(names) > 1
    for name in names:
        said, cells = facts(FOLDER / name)
        said_now, cells_now = facts(pictures.draw(name, tmp_path))
        assert (said, len(cells) > 10) == (said_now, True)
        assert alike(cells, cells_now)


@pytest.mark.slow
def test_the_pictures_of_programs_are_current(pictures: ModuleType, tmp_path: Path) -> None:
    """Run anew, each program gives the stored picture, but for letters and the edges of lines; none is large."""
    names = [name for name in pictures.PICTURES if name.endswith(".png")]
    assert len(names) == 10
    for name in names:
        stored, drawn = (imread(path) for path in (FOLDER / name, pictures.draw(name, tmp_path)))
        assert (FOLDER / name).stat().st_size < 40_000
        assert stored.shape == drawn.shape and abs(stored - drawn).mean() < 0.03, name


def test_every_picture_is_drawn_by_the_script_and_shown(pictures: ModuleType) -> None:
    """The folder holds the script's pictures and no others, and some page shows each."""
    assert sorted(path.name for path in FOLDER.glob("*.*g")) == sorted(pictures.PICTURES)
    shown = {
        Path(target).name for page in PAGES for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text("utf-8"))
    }
    assert set(pictures.PICTURES) <= shown
    assert not [page.name for page in PAGES if re.search(r"!\[[^\]]{0,20}\]\(", page.read_text("utf-8"))]
