"""The families that transform whole axes: transposes of slabs and pencils, and the row-wise family.

Transposes: entries move between modes, and one rule covers slabs (Dalcin et al. 2019, eq. 12-14), pencils (eq. 21-25),
and tensors of any order d on grids up to order d-1 (eq. 26-32).

Rows (Duy and Ozaki 2015, section 2): all modes but the last are read as one, and split in blocks. For a cube of n
points per axis on P ranks, blocks consist of planes if P <= n, and of rows if n < P <= n². The published order, abc ->
cab -> cba, leaves most of a block in place. `rows` searches for the orders that move least: first for the busiest rank,
and among orders that are equally good for it, in total.

Neither discarded elements nor zeros travel: a signal is cut to the length of its transform as early as possible, and
padded just before its transform; a spectrum is cut as soon as it is complete. See `begin` and `sized`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from rote.caches import memoized
from rote.compiler.movement import movement
from rote.errors import LayoutError
from rote.grammar import ActionSyntax, StageSyntax
from rote.grammar.nodes import BLOCK, Entry, Fuse, Name, Tile
from rote.layout.distribution import Distribution
from rote.layout.expressions import fitting
from rote.layout.grid import Grid
from rote.layout.layout import Layout
from rote.layout.refine import fitted, unfused_ends
from rote.layout.view import View

from ..check import Line, recut
from ..request import TransformRequest, components
from ..transforms import AFTER, FOURIER, HALVING, KINDS, REAL_TO_REAL, RESTORING, MaybeKind
from ..walk import Resize

__all__ = ["begin", "ending", "ready", "row_layout", "rows", "sized", "stage", "transpose"]

Actions = tuple[ActionSyntax, ...]

Order = tuple[int, ...]
"""The axes in the order in which a row layout reads them: all but the last are fused."""

Way = tuple[int, int, tuple[Order, ...]]
"""The most elements that any rank receives on a way, the elements that all ranks receive, and the orders of the way."""

_NEAR = 1.02  # ways whose busiest rank receives up to this many times the least count as equal: the total decides
_MANY = 1024  # ranks: on more, orders whose blocks make too many pieces are left out
_SEARCHED = 5  # up to so many axes all ways are tried: six axes have 375,000


def transpose(source: Distribution, request: TransformRequest) -> list[Line]:
    """The lines of a walk of the transpose family, from a tensor's distribution.

    Each stage transforms all axes that are whole; then the entries of the next axis move to the nearest mode that is
    done, until no axis is left. Forward walks take the axes from last to first and inverse walks from first to last, so
    an inverse walk from the end of a forward walk leads back to its start.

    Raises:
        LayoutError: the layout has a view, or is partial.
    """
    if source.layout.view is not None or source.layout.partial:
        what = "is partial" if source.layout.view is None else "reads modes through a view"
        raise LayoutError(
            f"an FFT walks through plain layouts, and {source.layout} {what}; redistribute the tensor first"
        )

    forward = request.forward
    todo = sorted(request.axes, key=lambda a: a == request.real)
    if forward:
        todo.reverse()

    dist, resizes = begin(source, request)
    lines = [StageSyntax(source.layout, actions=resizes)] if resizes else []
    fields = components(source.shape, request)
    while True:
        now = ready(dist, todo, request)
        line, after = stage(dist, now, request)
        lines.append(line)

        todo = [a for a in todo if a not in now]
        if not todo:
            return lines
        dist = _freed(after, todo[0], todo, fields, forward).on(after.shape, after.grid)


def ready(dist: Distribution, todo: Sequence[int], request: TransformRequest, late: Sequence[int] = ()) -> list[int]:
    """The whole axes, without `late` ones, that need not wait: "fft" waits for "rfft", and "irfft" for "ifft"."""
    kind = request.kind
    whole = [a for a in todo if not dist.splits[a] and a not in late]
    waited = {kind[a] for a in todo if a not in whole}
    return [a for a in whole if AFTER.get(kind[a]) not in waited]


def stage(dist: Distribution, now: Sequence[int], request: TransformRequest) -> tuple[Line, Distribution]:
    """The line that transforms some whole axes, and the distribution after it."""
    done = _transforms([a for a in request.axes if a in now], request.kind, request.forward)
    actions = [sized(name, modes, {a: a for a in now}, dist.shape, request) for name, modes in done]
    after = fitted(dist, request.after(dist.shape, now))
    return StageSyntax(dist.layout, actions=tuple(chain(*actions))), after


def _transforms(now: list[int], kind: dict[int, MaybeKind], forward: bool) -> list[tuple[str, tuple[int, ...]]]:
    """The kinds and axes of transforms, in NumPy's order; cosines and sines while the numbers are real, if they are."""
    transforms: list[tuple[str, tuple[int, ...]]] = []
    for name in REAL_TO_REAL:
        axes = tuple(a for a in now if kind[a] == name)
        if axes:
            transforms.append((name, axes))

    fourier = sorted((a for a in now if kind[a] in FOURIER), key=lambda a: kind[a] in (*HALVING, *RESTORING))
    if fourier:
        transforms.insert(len(transforms) if forward else 0, (kind[fourier[-1]], tuple(fourier)))
    return transforms


def _freed(dist: Distribution, axis: int, todo: list[int], fields: tuple[int, ...], forward: bool) -> Layout:
    """The layout in which `axis` is whole: its entries move to the best other mode, or are dropped if there is none.

    The best is a whole mode that needs no more transforms; next a split one; next a mode that must be freed later
    anyway; and last a mode of components (`fields`). Among equals, modes on the right come first in a forward walk and
    those on the left in an inverse one, nearest first.
    """
    places = [m for m in range(dist.order) if m != axis]
    if not places:
        return dist.layout.whole(axis)

    worth = {m: (m in fields, m in todo, bool(dist.splits[m])) for m in places}
    best = min(places, key=lambda m: (worth[m], (m < axis) == forward, abs(m - axis)))

    moved = dist.layout
    for entry in moved.modes[axis]:
        moved = moved.drop(entry.grid_mode).split(best, fitting(entry))
    return moved


def row_layout(order: Order) -> Layout:
    """The layout that fuses all axes of an order but the last, and splits them in blocks over grid mode 0.

    >>> print(row_layout((2, 0, 1)))
    (c a) b: block[(0),()]
    """
    if len(order) < 3:
        raise LayoutError(f"rows takes all axes of a tensor of order 3 or more; not of order {len(order)}")
    names = tuple(chr(ord("a") + axis) for axis in order)
    return Layout(((Entry(0, BLOCK),), ()), View((Fuse(names[:-1]), Name(names[-1]))))


def rows(source: Distribution, request: TransformRequest, output: Layout | None = None) -> list[Line]:
    """The lines of a walk of the row-wise family, in the order of axes that moves least, and then to a layout.

    Raises:
        LayoutError: the family does not take such a tensor.
    """
    order, axes, kind, real = len(source.shape), request.axes, request.kind, request.real
    if order < 3 or sorted(axes) != list(range(order)) or source.grid.order != 1:
        raise LayoutError(f"rows takes all axes of a tensor of order 3 or more, on a grid of order 1; not {source}")
    if source.layout.view is not None and any(isinstance(item, Tile) for item in source.layout.view):
        raise LayoutError(f"rows start from whole axes, not {source.layout}; redistribute first")

    # A walk begins in the tensor's own layout if the last axis of that may be transformed first; else it moves there.
    dist, resizes = begin(source, request)
    start = _order(dist)
    if start is None or _waits(start[-1], frozenset(), kind):
        last = next(a for a in (real, *reversed(axes)) if a is not None and not _waits(a, frozenset(), kind))
        others = sorted((a for a in range(order) if a != last), key=lambda a: a != real)
        first, lines = (*others, last), [StageSyntax(source.layout, actions=resizes)]
    else:
        first, lines = start, []

    front = _ways(first, frozenset(), dist, request)
    if not front:
        raise LayoutError(f"the rows of {dist.shape} on {dist.grid} ranks fit each other too badly")

    near = [way for way in front if way[0] <= _NEAR * front[0][0]]
    for way in near[-1][2]:
        done = sized(kind[way[-1]], (1,), {1: way[-1]}, dist.shape, request)
        lines.append(StageSyntax(row_layout(way), actions=done))
    return ending(lines, output)


def ending(lines: list[Line], output: Layout | None) -> list[Line]:
    """The lines of a walk that goes on to a layout in the end, if there is one."""
    return lines if output is None else [*lines, StageSyntax(output)]


def _waits(axis: int, done: frozenset[int], kind: dict[int, MaybeKind]) -> bool:
    """Whether an axis must wait for another: complex axes wait for "rfft", and "irfft" waits for complex axes."""
    return any(kind[a] == AFTER.get(kind[axis]) for a in kind if a not in done)


def _order(dist: Distribution) -> Order | None:
    """The order in which a distribution reads the axes; None if it is not a row layout."""
    order = tuple(digit.mode for digit in chain(*dist.digits))
    return order if row_layout(order).on(dist.shape, dist.grid) == dist else None


def _ways(order: Order, done: frozenset[int], source: Distribution, request: TransformRequest) -> list[Way]:
    """The Pareto-optimal ways on from an order, by busiest rank and total; the best for the busiest rank first.

    Empty if the blocks of all orders fit each other too badly.
    For more than `_SEARCHED` axes only the best next order is followed.
    """
    done = done | {order[-1]}
    todo = [a for a in order if a not in done and not _waits(a, done, request.kind)]
    if not todo:
        return [(0, 0, (order,))]

    steps: list[tuple[int, int, Order]] = []
    weight = 2 if request.real in done else 1
    shape = request.after(source.shape, [*done])
    for axis in todo:
        rest = tuple(a for a in order[:-1] if a != axis)
        for place in range(len(rest) + 1):  # the transformed axis may go anywhere among the fused ones
            next_order = (*rest[:place], order[-1], *rest[place:], axis)
            numbered = tuple(map(order.index, next_order))  # other names of the axes, and the same elements
            moved = _moved(tuple(range(len(order))), numbered, tuple([shape[a] for a in order]), source.grid)
            if moved is not None:
                steps.append((weight * moved[0], weight * moved[1], next_order))

    ways: list[Way] = []
    for most, total, next_order in steps if len(order) <= _SEARCHED else sorted(steps)[:1]:
        further = _ways(next_order, done, source, request)
        ways += [(most + other, total + more, (order, *orders)) for other, more, orders in further]

    # In ascending order of the busiest rank, a way is worth keeping only if its total is less than all before.
    front: list[Way] = []
    for way in sorted(ways):
        if not front or way[1] < front[-1][1]:
            front.append(way)
    return front


@memoized(8192)  # five axes have 1920 pairs of orders
def _moved(before: Order, after: Order, shape: tuple[int, ...], grid: Grid) -> tuple[int, int] | None:
    """The most elements that any rank receives between two orders, and the elements that all ranks receive.

    None on many ranks if the blocks of the two orders fit each other too badly to be compared quickly.
    """
    ends = unfused_ends(row_layout(before).on(shape, grid), row_layout(after).on(shape, grid))
    move = movement(*ends)
    if grid.size > _MANY and not move.quickly_counted:
        return None
    received = move.received
    return int(received.max()), int(received.sum(dtype=object)) * (grid.size // received.size)


def begin(source: Distribution, request: TransformRequest, early: Sequence[int] = ()) -> tuple[Distribution, Actions]:
    """The distribution after the axes are cut or padded at the start, and the actions that do so.

    An axis is cut at the start if no element has to travel for it. Those in `early` are never whole, so they are padded
    at the start, too.
    """
    actions: list[ActionSyntax] = []
    dist = source
    for axis in request.axes if source.layout.view is None else ():
        old, new = source.shape[axis], request.taken(axis)
        if new < old or (axis in early and new > old):
            try:
                entries = recut(dist, axis, dist.layout.modes[axis], Resize("resize", axis, old, new))
            except LayoutError:
                continue  # it is cut when it is whole

            modes = (*dist.layout.modes[:axis], entries, *dist.layout.modes[axis + 1 :])
            shape = (*dist.shape[:axis], new, *dist.shape[axis + 1 :])
            dist = replace(dist.layout, modes=modes).on(shape, dist.grid)
            actions.append(ActionSyntax("resize", (axis,), (new,)))

    return dist, tuple(actions)


def sized(
    kind: str, modes: tuple[int, ...], axes: Mapping[int, int], shape: Sequence[int], request: TransformRequest
) -> Actions:
    """A transform of whole axes, the axis of each mode, with the changes of their extents before and after it.

    The last of the modes is of the given kind, and the others have the kind that goes with it.

    >>> from ..request import as_request
    >>> import numpy as np
    >>> request = as_request((4, 6), (0, 1), "fft", np.dtype("c16"), s=(4, 9), resample=(4, 6))
    >>> for action in sized("fft", (0, 1), {0: 0, 1: 1}, (4, 6), request):
    ...     print(action.name, action.modes, action.extents)
    resize (1,) (9,)
    fft (1,) ()
    resample (1,) (6,)
    fft (0,) ()
    """
    taken = {m: request.taken(axes[m]) for m in modes}
    pads = {m: ActionSyntax("resize", (m,), (n,)) for m, n in taken.items() if n != shape[axes[m]]}
    cuts = [m for m in modes if request.cut(axes[m])]
    if not cuts:
        return (*pads.values(), ActionSyntax(kind, modes))

    actions: list[ActionSyntax] = []
    for m in reversed(modes):  # the real axis is the last, and whole spectra are cut after it
        if m in pads:
            actions.append(pads[m])
        actions.append(ActionSyntax(kind if m == modes[-1] else KINDS[kind].others, (m,)))
        if m in cuts:
            actions.append(ActionSyntax("resample", (m,), (request.kept[request.axes.index(axes[m])],)))
    return tuple(actions)
