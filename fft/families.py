"""Families of algorithms: short functions that emit walks.

The transpose family transforms whole modes and moves entries between modes: slab (Dalcin et al. 2019, eq. 12-14),
pencil (eq. 21-25), and any tensor of order d on grids up to order d-1 (eq. 26-32) are one rule.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rote.errors import LayoutError
from rote.layout.distribution import Distribution
from rote.layout.layout import Entry, Layout, block

from .walk import Stage, Walk

__all__ = ["SPLITS", "algorithms", "check_algorithm", "transpose"]

SPLITS = {"slab": 1, "pencil": 2}
"""The number of grid modes that an algorithm's layouts name."""

algorithms = ("auto", *SPLITS)
"""The names that `algorithm=` takes; "auto" walks from whatever layout the tensor has."""


def transpose(source: Distribution, axes: tuple[int, ...], kind: str, dtype: np.dtype[Any], length: int = 0) -> Walk:
    """The walk of the transpose family from a distribution.

    Whatever is whole is transformed; then the entries of the next axis move to the nearest mode that is done; and so on
    until no axis is left. Forward walks take the axes from last to first and inverse walks from first to last, so that
    an inverse walk from where a forward walk ends leads back to where it began.

    Args:
        source: where the tensor lies; a layout without view and not partial.
        axes: the modes to transform, in NumPy's order; of a real transform the last one is real.
        kind: "fft", "ifft", "rfft" or "irfft".
        dtype: of the input.
        length: the real extent that "irfft" restores.

    Raises:
        LayoutError: the layout has a view, or is partial.
    """
    _check(source)
    forward = kind in ("fft", "rfft")
    real = axes[-1] if axes and kind in ("rfft", "irfft") else None
    others = [a for a in axes if a != real]
    todo = others[::-1] if forward else others
    if real is not None:
        todo = [real, *todo] if forward else [*todo, real]
    stages: list[Stage] = []
    here = source
    while True:
        now = _ready(here, todo, real, forward)
        after, name = here, "fft" if forward else "ifft"
        if real is not None and real in now:
            n = here.shape[real] // 2 + 1 if forward else length
            shape = (*here.shape[:real], n, *here.shape[real + 1 :])
            after, name = _refitted(here.layout, real).on(shape, here.grid), kind
        stages.append(Stage(here, after, name, tuple(a for a in axes if a in now)))
        todo = [a for a in todo if a not in now]
        if not todo:
            return Walk(tuple(stages), dtype)
        here = _freed(after, todo[0], todo, forward).on(after.shape, after.grid)


def check_algorithm(algorithm: str, layout: Layout) -> None:
    """Refuse an algorithm that is unknown, or that does not start from a layout.

    Raises:
        LayoutError: it is, or does.
    """
    if algorithm not in algorithms:
        raise LayoutError(f"algorithm is one of {', '.join(algorithms)}; not {algorithm!r}")
    named = len(layout.grid_modes)
    if algorithm in SPLITS and named != SPLITS[algorithm]:
        raise LayoutError(f"a {algorithm} splits over {SPLITS[algorithm]} grid mode(s), but {layout} names {named}")


def _ready(here: Distribution, todo: list[int], real: int | None, forward: bool) -> list[int]:
    """The axes that can be transformed now: they are whole; the real one is the first forward, the last inverse."""
    whole = [a for a in todo if not here.splits[a]]
    if forward and real in todo and real not in whole:
        return []
    if not forward and len(todo) > 1 and whole != todo:
        return [a for a in whole if a != real]
    return whole


def _freed(here: Distribution, axis: int, todo: list[int], forward: bool) -> Layout:
    """The layout in which `axis` is whole: its entries move to the best other mode, or are dropped if there is none.

    Best is a whole mode that is not to be transformed any more; then one that is split already; then one that must be
    freed later anyway. Among equals the nearest one, to the right in a forward walk and to the left in an inverse one.
    """
    places = [m for m in range(here.order) if m != axis]
    if not places:
        return here.layout.whole(axis)
    to = min(
        places,
        key=lambda m: (m in todo, bool(here.splits[m]), (m < axis) == forward, abs(m - axis)),
    )
    moved = here.layout
    for entry in moved.modes[axis]:
        moved = moved.drop(entry.grid_mode).split(to, _fitting(entry))
    return moved


def _refitted(layout: Layout, axis: int) -> Layout:
    """The layout for another extent of `axis`, which only grid modes of one coordinate split, if any."""
    entries = tuple(_fitting(entry) for entry in layout.modes[axis])
    return replace(layout, modes=(*layout.modes[:axis], entries, *layout.modes[axis + 1 :]))


def _fitting(entry: Entry) -> Entry:
    """The entry on a mode of another extent: sizes that were made for one mode give way to balanced blocks."""
    return block(entry.grid_mode) if entry.kind.name == "block" else entry


def _check(source: Distribution) -> None:
    if source.layout.view is not None or source.layout.partial:
        what = "reads modes through a view" if source.layout.view is not None else "is partial"
        raise LayoutError(
            f"an FFT walks through plain layouts, and {source.layout} {what}; redistribute the tensor first"
        )
