"""Changes of extent that move no element: each rank keeps some of the elements that it has.

A signal is cut to the length of its transform as early as possible, and padded as late as possible, just before its
transform. A spectrum is cut as soon as it is complete. So neither discarded elements nor zeros travel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from math import prod

import numpy as np

from rote.errors import LayoutError
from rote.grammar.nodes import Kind
from rote.layout.expressions import fitting
from rote.layout.kinds import extent
from rote.layout.layout import Distribution, Entry

from ..request.request import TransformRequest
from ..transforms import KINDS
from .walk import Resize, Transform

__all__ = ["begin", "recut", "sized"]


def recut(before: Distribution, mode: int, entries: tuple[Entry, ...], resize: Resize) -> tuple[Entry, ...]:
    """The entries of a mode after a change of extent, such that every element stays on its rank.

    Raises:
        LayoutError: some elements would have to travel.

    >>> from rote.layout.layout import parse
    >>> dist = parse("block[(0)]").on(16, 4)
    >>> [entry.kind.sizes for entry in recut(dist, 0, dist.layout.modes[0], Resize("resize", 0, 16, 6))]
    [(4, 2, 0, 0)]
    """
    splits, (old, new) = before.splits[mode], resize.extents
    if not splits:
        return tuple(map(fitting, entries))
    period = prod(s.parts for s in splits)
    if all(s.kind.name == "cyclic" for s in splits):
        if resize.kind != "resample":
            return entries
        if all(s.kind.sizes == (1,) for s in splits) and not resize.half and (old - new) % period == 0:
            return entries
    elif resize.kind != "resample" and new < old and len(splits) == 1:
        (split,) = splits
        if len(split.kind.sizes) == 1:
            return entries
        sizes = extent(split.kind, period, old, np.arange(period)).tolist()
        ends = (0, *(min(end, new) for end in accumulate(sizes)))
        cut = Kind("block", tuple(b - a for a, b in pairwise(ends)))
        return tuple(Entry(e.grid_mode, cut) if e.grid_mode == split.grid_mode else fitting(e) for e in entries)
    names = ", ".join(str(s.grid_mode) for s in splits)
    where = "whole, or cyclic"
    if resize.kind == "resample":
        where += f" over ranks that divide {abs(old - new)}"
    raise LayoutError(
        f"{resize.kind} of mode {mode} from {old} to {new} would move elements, for grid mode {names} splits it; "
        f"do it where the mode is {where}"
    )


def begin(
    source: Distribution, request: TransformRequest, early: Sequence[int] = ()
) -> tuple[Distribution, tuple[Resize, ...]]:
    """The distribution after the axes are cut or padded at the start, and the actions that do so.

    Args:
        source: the tensor's distribution.
        request: the request, whose axes are cut at the start if no element has to travel for it.
        early: the axes that are padded at the start, because they are never whole.
    """
    resizes: list[Resize] = []
    dist = source
    for axis in request.axes if source.layout.view is None else ():
        resize = Resize("resize", axis, source.shape[axis], request.taken(axis))
        if resize.new < resize.old or (axis in early and resize.new > resize.old):
            try:
                entries = recut(dist, axis, dist.layout.modes[axis], resize)
            except LayoutError:
                continue  # it is cut when it is whole
            modes = (*dist.layout.modes[:axis], entries, *dist.layout.modes[axis + 1 :])
            shape = (*dist.shape[:axis], resize.new, *dist.shape[axis + 1 :])
            dist = replace(dist.layout, modes=modes).on(shape, dist.grid)
            resizes.append(resize)
    return dist, tuple(resizes)


def sized(
    transform: Transform, axes: Mapping[int, int], shape: Sequence[int], request: TransformRequest
) -> tuple[Transform | Resize, ...]:
    """A transform of whole axes, with the changes of their extents before and after it.

    Args:
        axes: the axis of each of its modes.
        shape: the extents of all axes before the transform.

    >>> from ..request.request import as_request
    >>> import numpy as np
    >>> wanted = as_request((4, 6), (0, 1), "fft", np.dtype("c16"), s=(4, 9), resample=(4, 6))
    >>> for action in sized(Transform("fft", (0, 1)), {0: 0, 1: 1}, (4, 6), wanted):
    ...     print(action)
    Resize(kind='resize', mode=1, old=6, new=9, half=False, back=False)
    Transform(kind='fft', modes=(1,), length=0)
    Resize(kind='resample', mode=1, old=9, new=6, half=False, back=False)
    Transform(kind='fft', modes=(0,), length=0)
    """
    taken = {m: request.taken(axes[m]) for m in transform.modes}
    pads = {m: Resize("resize", m, shape[axes[m]], n) for m, n in taken.items() if n != shape[axes[m]]}
    cuts = [m for m in transform.modes if request.cut(axes[m])]
    if not cuts:
        return (*pads.values(), transform)
    actions: list[Transform | Resize] = []
    for m in reversed(transform.modes):  # the real axis is the last, and whole spectra are cut after it
        kind = transform.kind if m == transform.modes[-1] else KINDS[transform.kind].others
        if m in pads:
            actions.append(pads[m])
        actions.append(Transform(kind, (m,)))
        if m in cuts:
            at = request.axes.index(axes[m])
            actions.append(Resize("resample", m, request.points[at], request.kept[at]))
    return tuple(actions)
