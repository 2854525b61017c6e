"""The transpose family: whole modes are transformed, and entries move between modes.

One rule covers slabs (Dalcin et al. 2019, eq. 12-14), pencils (eq. 21-25), and tensors of any order d on grids up to
order d-1 (eq. 26-32).
"""

from __future__ import annotations

from itertools import chain

from rote.errors import LayoutError
from rote.layout.expressions import fitting
from rote.layout.layout import Distribution, Layout
from rote.layout.refine import fitted

from ..request.request import TransformRequest, components
from ..transforms import AFTER, FOURIER, HALVING, KINDS, REAL_TO_REAL, RESTORING, MaybeKind
from ..walk.resize import begin, sized
from ..walk.typecheck import StageSpec
from ..walk.walk import Transform

__all__ = ["transpose"]


def transpose(source: Distribution, request: TransformRequest, far: bool = False) -> list[StageSpec]:
    """The lines of a walk of the transpose family, from a tensor's distribution.

    Each stage transforms all axes that are whole; then the entries of the next axis move to the nearest mode that is
    done, until no axis is left. Forward walks take the axes from last to first and inverse walks from first to last, so
    an inverse walk from the end of a forward walk leads back to its start.

    Args:
        source: the distribution of the tensor, whose layout has no view and is not partial.
        request: the transform, whose axes are modes; at most one is real on one side and complex on the other.
        far: whether entries move to the farthest of equally good modes, instead of the nearest.

    Raises:
        LayoutError: the layout has a view, or is partial.
    """
    _check(source)
    forward, kind, real = request.forward, request.kind, request.real
    todo = sorted(request.axes, key=lambda a: a == real)
    if forward:
        todo.reverse()
    dist, resizes = begin(source, request)
    lines = [StageSpec(source.layout, resizes)] if resizes else []
    kept = components(source.shape, request)
    while True:
        now = _ready(dist, todo, kind)
        done = _transforms([a for a in request.axes if a in now], kind, forward)
        places = {a: a for a in now}
        actions = [sized(transform, places, dist.shape, request) for transform in done]
        lines.append(StageSpec(dist.layout, tuple(chain(*actions))))
        todo = [a for a in todo if a not in now]
        if not todo:
            return lines
        after = fitted(dist, request.after(dist.shape, now))
        dist = _freed(after, todo[0], todo, kept, forward, far).on(after.shape, after.grid)


def _ready(dist: Distribution, todo: list[int], kind: dict[int, MaybeKind]) -> list[int]:
    """The whole axes that need not wait for a split one: "fft" waits for "rfft", and "irfft" for "ifft"."""
    whole = [a for a in todo if not dist.splits[a]]
    waited = {kind[a] for a in todo if a not in whole}
    return [a for a in whole if AFTER.get(kind[a]) not in waited]


def _transforms(now: list[int], kind: dict[int, MaybeKind], forward: bool) -> tuple[Transform, ...]:
    """The transforms of some axes, in NumPy's order; cosines and sines while the numbers are real, if they ever are."""
    by_kind = {name: tuple(a for a in now if kind[a] == name) for name in REAL_TO_REAL}
    transforms = [Transform(name, axes) for name, axes in by_kind.items() if axes]
    fourier = sorted((a for a in now if kind[a] in FOURIER), key=lambda a: kind[a] in (*HALVING, *RESTORING))
    if not fourier:
        return tuple(transforms)
    last = Transform(KINDS[kind[fourier[-1]]].name, tuple(fourier))
    return (*transforms, last) if forward else (last, *transforms)


def _freed(dist: Distribution, axis: int, todo: list[int], kept: tuple[int, ...], forward: bool, far: bool) -> Layout:
    """The layout in which `axis` is whole: its entries move to the best other mode, or are dropped if there is none.

    The best is a whole mode that needs no more transforms; next a split one; next a mode that must be freed later
    anyway; and last a mode of components (`kept`). Among equals, modes on the right come first in a forward walk and
    those on the left in an inverse one, nearest first; the first is taken, or the last if `far`.
    """
    places = [m for m in range(dist.order) if m != axis]
    if not places:
        return dist.layout.whole(axis)
    worth = {m: (m in kept, m in todo, bool(dist.splits[m])) for m in places}
    equals = [m for m in places if worth[m] == min(worth.values())]
    equals.sort(key=lambda m: ((m < axis) == forward, abs(m - axis)), reverse=far)
    moved = dist.layout
    for entry in moved.modes[axis]:
        moved = moved.drop(entry.grid_mode).split(equals[0], fitting(entry))
    return moved


def _check(source: Distribution) -> None:
    if source.layout.view is not None or source.layout.partial:
        what = "is partial" if source.layout.view is None else "reads modes through a view"
        raise LayoutError(
            f"an FFT walks through plain layouts, and {source.layout} {what}; redistribute the tensor first"
        )
