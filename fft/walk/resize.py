"""Modes of another extent, without moving an element: what a rank has of a mode afterwards, it had before.

A signal is cut to the length of its transform as soon as it can be, and padded at last, before it is transformed; a
spectrum is cut as soon as it is there. So what is cut never travels, nor do zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from math import prod

import numpy as np

from rote.errors import LayoutError
from rote.grammar.nodes import Kind
from rote.layout.distribution import Distribution
from rote.layout.kinds import extent
from rote.layout.layout import Entry, block

from ..request import TransformRequest
from .walk import Resize, Transform

__all__ = ["begin", "fitting", "recut", "sized"]


def fitting(entry: Entry) -> Entry:
    """The entry on a mode of another extent: sizes that were made for one mode give way to balanced blocks."""
    return block(entry.grid_mode) if entry.kind.name == "block" else entry


def recut(before: Distribution, mode: int, entries: tuple[Entry, ...], resize: Resize) -> tuple[Entry, ...]:
    """The entries of a mode that has another extent, so that every element stays on its rank.

    Raises:
        LayoutError: some would have to travel.

    >>> from rote.layout.layout import parse
    >>> dist = parse("block[(0)]").on(16, 4)
    >>> [entry.kind.sizes for entry in recut(dist, 0, dist.layout.modes[0], Resize("resize", 0, 16, 6))]
    [(4, 2, 0, 0)]
    """
    splits, (here, there) = before.splits[mode], resize.extents
    if not splits:
        return tuple(map(fitting, entries))
    period = prod(s.parts for s in splits)
    if all(s.kind.name == "cyclic" for s in splits):
        if resize.kind != "resample":
            return entries
        if all(s.kind.sizes == (1,) for s in splits) and not resize.half and (here - there) % period == 0:
            return entries
    elif resize.kind != "resample" and there < here and len(splits) == 1:
        (split,) = splits
        if len(split.kind.sizes) == 1:
            return entries
        sizes = extent(split.kind, period, here, np.arange(period)).tolist()
        ends = (0, *(min(end, there) for end in accumulate(sizes)))
        cut = Kind("block", tuple(b - a for a, b in pairwise(ends)))
        return tuple(Entry(e.grid_mode, cut) if e.grid_mode == split.grid_mode else fitting(e) for e in entries)
    names = ", ".join(str(s.grid_mode) for s in splits)
    raise LayoutError(
        f"{resize.kind} of mode {mode} from {here} to {there} would move elements, for grid mode {names} splits it; "
        "do it where the mode is whole, or cyclic"
        + (f" over ranks that divide {abs(here - there)}" if resize.kind == "resample" else "")
    )


def begin(
    source: Distribution, request: TransformRequest, early: Sequence[int] = ()
) -> tuple[Distribution, tuple[Resize, ...]]:
    """What is cut or padded before anything else, and how the tensor lies then.

    Args:
        source: where the tensor lies.
        request: some of its axes are cut at once, if no element has to travel for it.
        early: the axes that are padded at once, for they are never whole.
    """
    found: list[Resize] = []
    here = source
    for axis in request.axes if source.layout.view is None else ():
        resize = Resize("resize", axis, source.shape[axis], request.taken(axis))
        if resize.there < resize.here or (axis in early and resize.there > resize.here):
            try:
                entries = recut(here, axis, here.layout.modes[axis], resize)
            except LayoutError:
                continue  # it is cut where it is whole
            modes = (*here.layout.modes[:axis], entries, *here.layout.modes[axis + 1 :])
            shape = (*here.shape[:axis], resize.there, *here.shape[axis + 1 :])
            here = replace(here.layout, modes=modes).on(shape, here.grid)
            found.append(resize)
    return here, tuple(found)


def sized(
    transform: Transform, axes: Mapping[int, int], shape: Sequence[int], request: TransformRequest
) -> tuple[Transform | Resize, ...]:
    """A transform of whole axes with what changes their extents around it.

    Args:
        axes: the axis that each of its modes is.
        shape: the extents of all axes before it.

    >>> from ..request import as_request
    >>> import numpy as np
    >>> wanted = as_request((4, 6), (0, 1), "fft", np.dtype("c16"), s=(4, 9), resample=(4, 6))
    >>> for action in sized(Transform("fft", (0, 1)), {0: 0, 1: 1}, (4, 6), wanted):
    ...     print(action)
    Resize(kind='resize', mode=1, here=6, there=9, half=False, back=False)
    Transform(kind='fft', modes=(1,), length=0)
    Resize(kind='resample', mode=1, here=9, there=6, half=False, back=False)
    Transform(kind='fft', modes=(0,), length=0)
    """
    pads = {m: Resize("resize", m, shape[axes[m]], request.taken(axes[m])) for m in transform.modes}
    pads = {m: pad for m, pad in pads.items() if pad.here != pad.there}
    cuts = [m for m in transform.modes if request.cut(axes[m])]
    if not cuts:
        return (*pads.values(), transform)
    found: list[Transform | Resize] = []
    for m in reversed(transform.modes):  # the real axis is the last, and whole spectra are cut after it
        kind = transform.kind if m == transform.modes[-1] else transform.kind.replace("rfft", "fft")
        found += [pads[m]] if m in pads else []
        found.append(Transform(kind, (m,)))
        if m in cuts:
            points, kept = (numbers[request.axes.index(axes[m])] for numbers in (request.points, request.kept))
            found.append(Resize("resample", m, points, kept))
    return tuple(found)
