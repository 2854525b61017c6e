"""The volumes between two splits over one long grid mode, without a list of all pairs of coordinates.

Each coordinate holds a run of values of some digits of the tensor. The elements that two runs have in common are a sum
over boxes of digits. Two runs meet if they have common values of the digits that both sides split. Modes that are split
into blocks are such runs. A mode that is dealt out in tiles is one, too: the coordinate is the middle one of three
digits of the index, and the blocks of the other side are runs of all three:

    index = (turn, coordinate, place in the tile)      12 indices, cyclic(2) over 3:   5 = (0, 2, 1),   6 = (1, 0, 0)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..layout.kinds import run_starts
from ..layout.view import Digit
from .overlaps import ModeReading, Reading, counting, number_of, splits_of

__all__ = ["Along", "along_of"]

Ints = npt.NDArray[np.int64]

_AROUND = 1 << 22  # values, each of which has an entry in a table
_AT_ONCE = 1 << 15  # runs, whose boxes stay in cache
_FEW = 16  # lengths of arcs: each is compared with all coordinates of the other side


class Along(NamedTuple):
    """Counts by coordinate of a grid mode, which splits a factor on both sides.

    Attributes:
        sent, received: the number of coordinates to which each one sends, and from which it receives, itself included.
        kept: the number of elements that lie at the coordinate on both sides.
    """

    sent: Ints
    received: Ints
    kept: Ints


def along_of(source: Reading, target: Reading) -> Along | None:
    """Count the messages and the kept elements of a factor that is split once on each side over many ranks.

    None if the factor is another one, or its sides do not hold such runs, with the digits that both split as
    neighbours, in the same order. (Two sides that both deal out tiles in turn have few pairs in common, or few kinds.)
    """
    before, after = (splits_of(side) for side in (source, target))
    if len(before) != 1 or before != after or not number_of(source):
        return None
    runs = _runs(source, target)
    if runs is None:
        return None

    shared = tuple([digit for digit in runs[0].digits if digit in runs[1].digits])
    if shared and not all(_are_neighbours(shared, side.digits) for side in runs):
        return None
    around = prod([digit.size for digit in shared])
    arcs = [side.arcs(shared, around) for side in runs] if around <= _AROUND else []
    if not arcs or any(len(_lengths(length)) > _FEW for _, length in arcs):
        return None

    split = prod([digit.size for digit in {*runs[0].digits, *runs[1].digits}])
    left = max(1, number_of(source) // split)  # 0 if the last turn of tiles is not whole
    common = []
    for start in range(0, len(runs[0].begin), _AT_ONCE):
        some = [run._replace(begin=run.begin[start:][:_AT_ONCE], end=run.end[start:][:_AT_ONCE]) for run in runs]
        common.append(_in_common(some[0], some[1]) * left)
    return Along(_met(arcs[0], arcs[1], around), _met(arcs[1], arcs[0], around), np.concatenate(common))


def _are_neighbours(some: tuple[Digit, ...], digits: tuple[Digit, ...]) -> bool:
    """Whether some digits follow each other in others, in this order."""
    first = digits.index(some[0])
    return digits[first : first + len(some)] == some


Box = tuple[Any, dict[Digit, tuple[Any, Any]]]
"""The number of elements at each value of the digits that both sides split, and the ranges of those that have one."""


class _Runs(NamedTuple):
    """The run of indices, from `begin` up to `end`, at each coordinate of a mode that reads several digits."""

    digits: tuple[Digit, ...]
    begin: Ints
    end: Ints

    def boxes(self, shared: Sequence[Digit]) -> list[Box]:
        """The elements of a run, in boxes: those below its end, less those below its begin.

        Those below an index have a smaller digit after equal ones:

            (a b) with 3 values of b, below 7     a < 2, any b      6 elements
                                                  a = 2, b < 1      1 element
        """
        boxes = list[Box]()
        wide: Any = 0

        for sign, left in ((1, self.end), (-1, self.begin)):
            equal = dict[Digit, tuple[Any, Any]]()
            for k, digit in enumerate(self.digits, 1):
                weight = prod([later.size for later in self.digits[k:]])
                at = left // weight
                left = left - at * weight
                number = sign * prod([later.size for later in self.digits[k:] if later not in shared])
                if digit in shared:
                    boxes.append((number, equal | {digit: (0, at)}))
                    equal = equal | {digit: (at, at + 1)}
                elif equal:
                    boxes.append((number * at, equal))
                else:
                    wide = wide + number * at
        return [(wide, {}), *boxes]

    def arcs(self, shared: Sequence[Digit], around: int) -> tuple[Ints, Ints]:
        """Where the values of neighbouring digits begin in each run, of `around` in turn, and how many it has."""
        weight = prod([digit.size for digit in self.digits[self.digits.index(shared[-1]) + 1 :]]) if shared else 1
        first, last = self.begin // weight, (self.end - 1) // weight
        length = np.where(self.end > self.begin, np.minimum(last - first + 1, around), 0)
        return (first % around).astype(np.int64), length.astype(np.int64)


def _runs(source: Reading, target: Reading) -> tuple[_Runs, _Runs] | None:
    """The runs on both sides of a factor that each side splits once, if both read the same digits; else None."""
    every = [{digit for mode in side for digit in mode.digits} for side in (source, target)]
    if every[0] != every[1]:
        return None

    old, new = [mode for side in (source, target) for mode in side if mode.splits]
    before, after = (_blocks(mode, counting(number_of(source))) for mode in (old, new))

    if len(source) == len(target) == 1 and old.digits == new.digits:  # one mode: two sides of blocks are intervals
        if before is not None and after is None:
            return _with_tiles(before, new)
        return None if before is not None or after is None else _with_tiles(after, old)[::-1]
    return None if before is None or after is None else (before, after)


def _blocks(mode: ModeReading, counter: np.dtype[Any]) -> _Runs | None:
    """The runs of a mode that is split into blocks; None if it is not."""
    digits, splits, n = mode
    begin = run_starts(splits, n)
    if begin is None:
        return None

    begin = begin.astype(counter)
    return _Runs(digits, begin, np.append(begin[1:], n))


def _with_tiles(blocks: _Runs, tiled: ModeReading) -> tuple[_Runs, _Runs]:
    """The runs of a mode that one side splits into blocks, and of its tiles on the other side."""
    _, ((_, kind, p), *_), n = tiled
    digits = Digit(0, kind.tile * p, -(-n // (kind.tile * p))), Digit(0, kind.tile, p), Digit(0, 1, kind.tile)
    place = ((np.arange(p) - kind.at) % p).astype(blocks.begin.dtype)
    return blocks._replace(digits=digits), _Runs(digits[1:2], place, place + 1)


def _in_common(before: _Runs, after: _Runs) -> Ints:
    """The number of values in common of the digits that the runs of either side have, at each coordinate."""
    shared = [digit for digit in before.digits if digit in after.digits]
    common: Any = 0

    for (number, ranges), (more, others) in product(before.boxes(shared), after.boxes(shared)):
        part = number * more
        for digit in shared:
            ends = [box[digit] for box in (ranges, others) if digit in box] or [(0, digit.size)]
            low, high = reduce(np.maximum, [begin for begin, _ in ends]), reduce(np.minimum, [end for _, end in ends])
            part = part * np.maximum(high - low, 0)
        common = common + part
    return np.asarray(common)


def _met(mine: tuple[Ints, Ints], theirs: tuple[Ints, Ints], around: int) -> Ints:
    """How many of their arcs of a circle each of mine meets: those that begin at most a length before it ends."""
    met: Ints = np.zeros(len(mine[0]), np.int64)
    for length in _lengths(theirs[1]):
        begins = np.bincount(theirs[0][theirs[1] == length], minlength=around)
        below = np.concatenate([[0], np.cumsum([begins, begins])])
        first = (mine[0] - length + 1) % around
        met += (mine[1] > 0) * (below[first + np.minimum(mine[1] + length - 1, around)] - below[first])
    return met


def _lengths(lengths: Ints) -> list[int]:
    """The different lengths of arcs that are not empty."""
    return np.flatnonzero(np.bincount(lengths[lengths > 0])).tolist()
