"""Nests: where the elements of a component lie in two arrays, as views of both.

A layout is made of digits, and the places that a digit leads to are evenly spaced. So the places of a component's
elements, in both arrays at once, fall into a few nests of evenly spaced places, and each nest is a strided view of
either array: no list of indices is needed. Where tiles and extents do not fit each other, nests may be many and small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Along", "Both", "Nest", "Places", "Shape", "Side", "nests", "places"]

Ints = npt.NDArray[np.int64]
Shape = tuple[int, ...]
Along = tuple[tuple[int, Ints], ...]  # where elements lie along some modes of an array: pairs (mode, indices)

_MOST = 1024  # views of one component
_SEEN = 4096  # distances that are looked at for the commonest one
_RARE = 1 / 64  # of all distances, where places are without order


class Nest(NamedTuple):
    """Places at one distance, within places at one distance, …: `steps[d]` is that along dimension d."""

    shape: Shape
    origin: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]


def nests(columns: Ints) -> Iterator[Nest]:
    """Places, one per column, as nests, by greed; each place is in one of them.

    Runs at the commonest distance are the fastest dimension. The first places of the runs of one length are nests
    again; so is what is in no run.

    >>> [(nest.shape, nest.origin, nest.steps) for nest in nests(np.array([[0, 1, 2, 6, 7, 8, 12]]))]
    [((2, 3), (0,), ((6,), (1,))), ((), (12,), ())]
    """
    while (number := columns.shape[1]) > 1:
        gaps = columns[:, 1:] - columns[:, :-1]
        if (gaps == gaps[:, :1]).all():
            yield Nest((number,), tuple(columns[:, 0].tolist()), (tuple(gaps[:, 0].tolist()),))
            return
        step, share = _commonest(gaps[:, :_SEEN])
        if share < _RARE:
            break
        starts = np.append(0, np.flatnonzero((gaps != step[:, None]).any(axis=0)) + 1)
        lengths = np.diff(starts, append=number)
        for length in sorted(set(lengths.tolist()) - {1}, reverse=True):
            for nest in nests(columns[:, starts[lengths == length]]):
                yield Nest((*nest.shape, length), nest.origin, (*nest.steps, tuple(step.tolist())))
        columns = columns[:, starts[lengths == 1]]
    for place in columns.T.tolist():  # alone, or without order
        yield Nest((), tuple(place), ())


def _commonest(gaps: Ints) -> tuple[Ints, float]:
    """A column that is there most often, and the share of those that are equal to it."""
    weights = np.cumprod([1, *(1 + np.ptp(gaps[:0:-1], axis=1))])[::-1]  # different gaps get different numbers
    _, first, counts = np.unique(weights @ gaps, return_index=True, return_counts=True)
    return gaps[:, first[counts.argmax()]], counts.max() / gaps.shape[1]


class Side(NamedTuple):
    """A view of one array: where it begins, as pairs (mode, index), and pairs (mode, step) for each dimension."""

    origin: tuple[tuple[int, int], ...]
    steps: tuple[tuple[tuple[int, int], ...], ...]

    def lies(self, strides: Shape) -> tuple[int, Shape]:
        """The offset and the strides of the view, of an array that has some strides."""
        start = sum(at * strides[mode] for mode, at in self.origin)
        return start, tuple(sum(step * strides[mode] for mode, step in pairs) for pairs in self.steps)


class Both(NamedTuple):
    """The same elements as a view of one array and as one of another."""

    shape: Shape
    here: Side
    there: Side

    def times(self, other: Both) -> Both:
        """The product of the elements of two components."""
        here = Side(self.here.origin + other.here.origin, self.here.steps + other.here.steps)
        there = Side(self.there.origin + other.there.origin, self.there.steps + other.there.steps)
        return Both(self.shape + other.shape, here, there)


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The elements of one component: where they lie in two arrays, and views of them all (none if there are many)."""

    here: Along
    there: Along
    views: tuple[Both, ...]

    def __len__(self) -> int:
        return len(self.here[0][1])


def places(here: Along, there: Along) -> Places:
    """The elements of one component, given where they lie in two arrays."""
    found = list(islice(nests(np.array([indices for _, indices in (*here, *there)])), _MOST + 1))
    modes, middle = [mode for mode, _ in (*here, *there)], len(here)
    views = []
    for shape, origin, steps in found if len(found) <= _MOST else ():
        pairs = [tuple(zip(modes, each, strict=True)) for each in (origin, *steps)]
        first, then = [each[:middle] for each in pairs], [each[middle:] for each in pairs]
        views.append(Both(shape, Side(first[0], tuple(first[1:])), Side(then[0], tuple(then[1:]))))
    return Places(here, there, tuple(views))
