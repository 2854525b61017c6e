"""Elements of an array by lists of indices, one per mode, as NumPy selects them fastest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .indexset import Ints

__all__ = ["Selection", "as_slice", "selection"]

Selection = tuple[Any, ...]
"""An index of NumPy that selects a product of lists, one per mode: only slices, or only open arrays."""


def selection(lists: Sequence[Ints]) -> Selection:
    """NumPy's index for a product of lists: slices, which copy fastest, if all lists are regular, else open arrays."""
    slices = [_as_slice(each) for each in lists]
    if None not in slices:
        return tuple(slices)
    return np.ix_(*lists)


def _as_slice(indices: Ints) -> slice | None:
    """The slice that selects a list of indices; None if none does."""
    if len(indices) == 0:
        return slice(0, 0)
    first, last = int(indices[0]), int(indices[-1])
    if len(indices) == 1:
        return slice(first, first + 1)
    step = int(indices[1]) - first
    if step == 0 or last != first + step * (len(indices) - 1) or (np.diff(indices) != step).any():
        return None
    stop = last + (1 if step > 0 else -1)
    return slice(first, None if stop < 0 else stop, step)


def as_slice(steps: range) -> slice:
    """The slice that selects a range of indices, none of which is negative."""
    if not steps:
        return slice(0, 0)
    return slice(steps.start, None if steps.stop < 0 else steps.stop, steps.step)
