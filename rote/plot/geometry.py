"""The geometry of a picture: the part of each mode that is shown, and the faces to draw; without matplotlib."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..layout.pictures import Run

__all__ = ["Face", "Points", "ShownMode", "chords", "cube", "flat", "ticks"]

Points = npt.NDArray[np.float64]

_FINE = 32  # the largest extent for which thin lines separate elements

# Oblique projection of a cube, as in Dalcin et al. 2019: mode 0 to the right, mode 1 into the depth, mode 2 up.
_OBLIQUE = np.array([[0.96, -0.17], [0.52, 0.33], [0.0, 0.96]])


@dataclass(frozen=True, slots=True)
class ShownMode:
    """The part of a mode that is drawn: its first runs. The default stands for no mode: one run of one index."""

    name: str = ""
    extent: int = 1
    runs: tuple[Run, ...] = (Run(0, 1),)

    @property
    def shown(self) -> int:
        """The first index that is not shown, or the extent."""
        return self.runs[-1].stop if self.runs else 0


@dataclass(frozen=True, slots=True)
class Face:
    """A parallelogram of cells, with two modes as its sides and the vectors along which their indices run."""

    down: ShownMode
    across: ShownMode
    at: dict[int, int]  # the coordinates of the grid modes that split the other modes
    origin: Points
    along_down: Points
    along_across: Points

    def cell(self, row: Run, column: Run) -> Points:
        """The four corners of a rectangle of indices."""
        rows = np.array([row.start, row.start, row.stop, row.stop]) / self.down.shown
        columns = np.array([column.start, column.stop, column.stop, column.start]) / self.across.shown
        corners: Points = self.origin + np.outer(rows, self.along_down) + np.outer(columns, self.along_across)
        return corners

    def outline(self) -> Points:
        """The four corners of the whole face."""
        return self.cell(Run(0, self.down.shown), Run(0, self.across.shown))

    def lines(self) -> list[Points]:
        """The lines between elements, if there are few."""
        height, width = self.down.shown, self.across.shown
        lines: list[Points] = []
        if height <= _FINE:
            lines += [self.cell(Run(row, row), Run(0, width))[:2] for row in range(1, height)]
        if width <= _FINE:
            lines += [self.cell(Run(0, height), Run(column, column))[1:3] for column in range(1, width)]
        return lines


def flat(down: ShownMode, across: ShownMode, at: dict[int, int]) -> Face:
    """The one face of a line or a matrix, in global indices: rows downwards from 0, columns from 0 to the right."""
    return Face(down, across, at, np.zeros(2), np.array([0.0, down.shown]), np.array([across.shown, 0.0]))


def cube(sides: list[ShownMode], at: dict[int, int]) -> list[Face]:
    """The three visible faces: the front (mode 1 at its first index), the right (mode 0 at its last), the top."""
    #       ______
    #      / top /|      mode 0 to the right, mode 1 into the depth, mode 2 up; a side that is much shorter than the
    #     /_____/ |      longest is drawn with at least 0.35 of its length, so that its cells can be seen
    #     |     | /  right
    #     |_____|/
    #      front
    most = max(side.shown for side in sides)
    first, depth, height = (max(0.35, s.shown / most) * edge for s, edge in zip(sides, _OBLIQUE, strict=True))
    a, b, c = sides
    return [
        Face(c, a, at | dict(b.runs[0].at), np.zeros(2), height, first),
        Face(c, b, at | dict(a.runs[-1].at), first, height, depth),
        Face(b, a, at | dict(c.runs[-1].at), height, depth, first),
    ]


def chords(corners: Points) -> Points:
    """The width and the height of a parallelogram through its middle."""
    a, b = corners[1] - corners[0], corners[3] - corners[0]
    area = abs(a[0] * b[1] - a[1] * b[0])
    return np.asarray(area / np.maximum(np.abs([a[1], a[0]]), np.abs([b[1], b[0]])))


def ticks(side: ShownMode, most: int) -> list[int]:
    """The indices to write along a side: the starts of runs, or some of them if there are many, and the last end."""
    starts = [run.start for run in side.runs]
    every = -(-len(starts) // most)
    places = starts[::every]
    if len(places) > 1 and 2 * (side.shown - places[-1]) < places[-1] - places[-2]:
        places.pop()  # too near to the end
    return [*places, side.shown]
