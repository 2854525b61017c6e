"""The transpose family: whole modes are transformed, and entries move between modes.

Slab (Dalcin et al. 2019, eq. 12-14), pencil (eq. 21-25), and any tensor of order d on grids up to order d-1 (eq. 26-32)
are one rule.
"""

from __future__ import annotations

from dataclasses import replace

from rote.errors import LayoutError
from rote.layout.distribution import Distribution
from rote.layout.layout import Layout

from .build import Line, fitting
from .kinds import TRIGONOMETRIC, Kinds, by_axis, is_forward
from .walk import Transform

__all__ = ["transpose"]


def transpose(source: Distribution, axes: tuple[int, ...], kinds: Kinds, length: int = 0) -> list[Line]:
    """The lines of the transpose family from a distribution.

    Whatever is whole is transformed; then the entries of the next axis move to the nearest mode that is done; and so on
    until no axis is left. Forward walks take the axes from last to first and inverse walks from first to last, so that
    an inverse walk from where a forward walk ends leads back to where it began.

    Args:
        source: where the tensor lies; a layout without view and not partial.
        axes: the modes to transform, in NumPy's order.
        kinds: their kinds; at most one axis is real on one side and complex on the other.
        length: the real extent that "irfft" restores.

    Raises:
        LayoutError: the layout has a view, or is partial.
    """
    _check(source)
    forward, kind = is_forward(kinds), by_axis(kinds, axes)
    real = next((a for a in axes if "r" in kind[a]), None)
    others = [a for a in axes if a != real]
    todo = others[::-1] if forward else others
    if real is not None:
        todo = [real, *todo] if forward else [*todo, real]
    lines: list[Line] = []
    here = source
    while True:
        now = _ready(here, todo, kind)
        after = here
        if real is not None and real in now:
            n = here.shape[real] // 2 + 1 if forward else length
            shape = (*here.shape[:real], n, *here.shape[real + 1 :])
            after = _refitted(here.layout, real).on(shape, here.grid)
        lines.append(Line(here.layout, _transforms([a for a in axes if a in now], kind, forward)))
        todo = [a for a in todo if a not in now]
        if not todo:
            return lines
        here = _freed(after, todo[0], todo, forward).on(after.shape, after.grid)


def _ready(here: Distribution, todo: list[int], kind: dict[int, str]) -> list[int]:
    """The axes that can be transformed now: they are whole; "fft" waits for "rfft", and "irfft" for "ifft"."""
    whole = [a for a in todo if not here.splits[a]]
    waited = {kind[a] for a in todo if a not in whole}
    return [a for a in whole if {"fft": "rfft", "irfft": "ifft"}.get(kind[a]) not in waited]


def _transforms(now: list[int], kind: dict[int, str], forward: bool) -> tuple[Transform, ...]:
    """The transforms of some axes, in NumPy's order: cosines and sines as long as the numbers are real, if ever."""
    found = [Transform(k, tuple(a for a in now if kind[a] == k)) for k in TRIGONOMETRIC]
    fourier = sorted((a for a in now if kind[a] not in TRIGONOMETRIC), key=lambda a: "r" in kind[a])
    if fourier:
        found.insert(len(found) if forward else 0, Transform(kind[fourier[-1]], tuple(fourier)))
    return tuple(transform for transform in found if transform.modes)


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
        moved = moved.drop(entry.grid_mode).split(to, fitting(entry))
    return moved


def _refitted(layout: Layout, axis: int) -> Layout:
    """The layout for another extent of `axis`, which only grid modes of one coordinate split, if any."""
    entries = tuple(fitting(entry) for entry in layout.modes[axis])
    return replace(layout, modes=(*layout.modes[:axis], entries, *layout.modes[axis + 1 :]))


def _check(source: Distribution) -> None:
    if source.layout.view is not None or source.layout.partial:
        what = "reads modes through a view" if source.layout.view is not None else "is partial"
        raise LayoutError(
            f"an FFT walks through plain layouts, and {source.layout} {what}; redistribute the tensor first"
        )
