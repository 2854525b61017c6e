"""The proof of a contraction, from index sets alone.

It shares no code with the search, and reads the stages as they are. On each rank a block holds a set of indices per
mode, so a product of blocks is a box of points: one set per letter. A contraction is right if, stage by stage,

1. the tensors of a product have the same set of each letter on each rank, so that their elements match, and the result
   has these sets of the letters that it keeps;
2. over the ranks whose contributions are added for an element of the result, the boxes are disjoint, and together they
   have all points of the element: every product of elements enters once;
3. every move keeps its tensor (`Plan.verify`), and starts where the tensor is;
4. every tensor is used once, a letter is summed where no other tensor and not the result needs it, and the last tensor
   is the result.

    ik,kj->ij with i:0,k:1        rank (0,0)  i 0..3  k 0..3        added over grid mode 1: k 0..3 and k 4..7
                                  rank (0,1)  i 0..3  k 4..7        are disjoint, and all of k

The other cases are these, too:

- A mode of one element that broadcasts has no set: every rank must hold the element, which then matches all others.
- A sum over no index is 0 on every rank, and ranks without elements of the result add none: nothing is asked there.
- An operand that is partial over a grid mode is a sum of contributions. A point is then a product with one of them, and
  each element of the result needs all of them: the coordinate of the grid mode is one more letter that is summed. So no
  second operand may be partial there, and no letter may be split there.
- Where the result is replicated, each group of ranks whose contributions are added must be complete by itself.
- A letter that names several modes of a tensor takes a diagonal: each rank adds those elements of it that it holds, and
  zeros. Just one rank of a group has the index along all modes, because the sets of each are disjoint and complete.
- In panels, index k is in panel (k mod period) div tile. The panels are disjoint and have every index, so it is enough
  that each panel is complete. The moves of a panel start from those elements of a tensor that are in it; a tensor
  without moves must not depend on the letter, because it enters each panel. The product of a panel may move as well: to
  those elements of the result that are in the panel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from ...caches import memoized
from ...compiler.plan import Plan
from ...errors import PlanError
from ...layout.distribution import Distribution
from ...layout.indexset import IndexSet

if TYPE_CHECKING:
    from .plan import Contraction
    from .stages import Product

__all__ = ["prove"]

Ints = npt.NDArray[np.int64]


class _Tensor(NamedTuple):
    """A tensor of a contraction: how it lies, its letters, and the dtype of its elements."""

    dist: Distribution
    term: str
    dtype: np.dtype[Any]


def prove(plan: Contraction) -> None:
    """Prove that a contraction is right.

    Raises:
        PlanError: the proof fails; the text names the stage and what is wrong.
    """
    ends = zip(plan.operands, plan.subscripts.terms, plan.dtypes, strict=False)
    tensors = [_Tensor(*end) for end in ends]
    if not len(tensors) == len(plan.operands) == len(plan.subscripts.terms):
        _fail(0, f"{plan.subscripts} has {len(plan.operands)} operands")
    extents = _extents(tensors)
    uses = Counter[int]()
    stages: Sequence[Any] = plan.stages  # moves have one `value`, products have `values`
    for number, stage in enumerate(stages, 1):
        moves = hasattr(stage, "value")
        values = (stage.value,) if moves else stage.values
        uses.update(values)
        if not values or not all(0 <= value < len(tensors) for value in values):
            _fail(number, "it takes a tensor that is not made yet")
        given = [tensors[value] for value in values]
        if moves:
            _prove_move(number, stage.plan, given[0])
            tensors.append(given[0]._replace(dist=stage.plan.target))
        else:
            waiting = "".join([tensor.term for value, tensor in enumerate(tensors) if not uses[value]])
            _prove_letters(number, stage, given, waiting + plan.subscripts.result, extents)
            made = _Tensor(stage.result, stage.term, plan.dtype)
            if any(len({*tensor.term}) < len(tensor.term) for tensor in given):
                made = made._replace(dtype=given[0].dtype)
                _prove_diagonal(number, given, made)
            else:
                _prove_product(number, stage, given, made, extents)
            tensors.append(made)
    wrong = [value for value in range(len(tensors)) if uses[value] != (value < len(tensors) - 1)]
    if wrong:
        _fail(len(plan.stages), f"tensor {wrong[0]} is used {uses[wrong[0]]} times")
    last = tensors[-1]
    if last.term != plan.subscripts.result or last.dist.meaning != plan.result.meaning:
        _fail(len(plan.stages), f"it leaves {last.term} in {last.dist}, not {plan.subscripts.result} in {plan.result}")


def _fail(number: int, why: str) -> NoReturn:
    raise PlanError(f"the contraction is wrong in stage {number}: {why}")


def _extents(tensors: Sequence[_Tensor]) -> dict[str, int]:
    """The extent of each letter; modes of one element broadcast."""
    extents: dict[str, int] = {}
    for dist, term, _ in tensors:
        if len(term) != len(dist.shape):
            _fail(0, f"{term!r} does not name the modes of a tensor of {dist.shape}")
        for letter, n in zip(term, dist.shape, strict=True):
            known = extents.setdefault(letter, n)
            if 1 not in (n, known) and n != known:
                _fail(0, f"{letter!r} has {known} and {n} indices")
            extents[letter] = known if n == 1 else n
    return extents


def _prove_move(number: int, move: Plan, tensor: _Tensor) -> None:
    """A move keeps its tensor, and starts where it is."""
    if move.source.meaning != tensor.dist.meaning or move.dtype != tensor.dtype:
        _fail(number, f"it moves {move.source} of {move.dtype}, but the tensor lies as {tensor.dist} of {tensor.dtype}")
    move.verify()


def _prove_letters(
    number: int, stage: Product, tensors: Sequence[_Tensor], needed: str, extents: dict[str, int]
) -> None:
    """The letters of a product are those of its tensors, and those that it sums are needed nowhere else.

    A letter along which all tensors have the one element that broadcasts may be left out: there is nothing to sum.
    """
    if tuple([tensor.term for tensor in tensors]) != stage.terms:
        _fail(number, "its letters are not those of its tensors")
    if len({*stage.term}) < len(stage.term) or len(stage.term) != len(stage.result.shape):
        _fail(number, f"its result of {stage.result.shape} has the letters {stage.term!r}")
    given = {*"".join(stage.terms)}
    ends = [pair for tensor in tensors for pair in zip(tensor.term, tensor.dist.shape, strict=True)]
    spread = given - {letter for letter, n in ends if n == extents[letter]}
    kept = given if any(len({*term}) < len(term) for term in stage.terms) else given & {*needed}  # a diagonal sums none
    wrong = sorted(({*stage.term} ^ kept) - (spread & {*needed} - {*stage.term}))
    if wrong:
        _fail(number, f"it {'keeps' if wrong[0] in stage.term else 'sums'} {wrong[0]!r}")


class _Sets(NamedTuple):
    """The indices of a letter that each rank holds: `members[ids[rank]]`; members are disjoint."""

    ids: Ints
    members: list[IndexSet]

    def at(self, points: IndexSet) -> _Sets:
        """The indices at these positions of some points."""
        if points.start == 0 and points.period == 1:
            return self
        return _Sets(self.ids, [points.select(held) for held in self.members])

    def within(self, points: IndexSet) -> _Sets:
        """The indices that are points."""
        if points.start == 0 and points.period == 1 and all(held.stop <= points.stop for held in self.members):
            return self
        return _Sets(self.ids, [held & points for held in self.members])

    def differs(self, other: _Sets) -> bool:
        """Whether some rank holds other indices there."""
        if self is other:
            return False
        pairs = {*zip(self.ids.tolist(), other.ids.tolist(), strict=True)}
        return not all(_equal(self.members[a], other.members[b]) for a, b in pairs)


def _equal(a: IndexSet, b: IndexSet) -> bool:
    return (a.start, a.stop, a.period, a.runs) == (b.start, b.stop, b.period, b.runs) or a == b


@memoized(64)  # panels ask for the same ones
def _sets(dist: Distribution, mode: int) -> _Sets:
    """The indices along a mode of a tensor that each rank holds."""
    coordinates = np.unravel_index(np.arange(dist.grid.size), dist.grid.shape or (1,))
    key = np.zeros(dist.grid.size, np.int64)
    for g, parts in [(split.grid_mode, split.parts) for split in dist.splits[mode]]:
        key = key * parts + coordinates[g]
    for g, at in dist.layout.rooted:
        key = key * 2 + (coordinates[g] == at)
    _, ranks, ids = np.unique(key, return_index=True, return_inverse=True)
    return _Sets(ids.reshape(-1), [dist.index_sets(rank)[mode] for rank in ranks.tolist()])


def _prove_diagonal(number: int, tensors: Sequence[_Tensor], made: _Tensor) -> None:
    """The diagonal lies as the first mode of each letter does; one rank of a group has an element, the others zero."""
    (dist, term, _), result = tensors[0], made.dist
    first = [mode for mode, letter in enumerate(term) if letter not in term[:mode]]
    if len(tensors) > 1 or made.term != "".join([term[mode] for mode in first]):
        _fail(number, f"{term!r} names several modes by one letter, and this is no diagonal")
    for each in (dist, result):
        added = not each.partial or each.layout.op == "sum"
        if each.layout.view is not None or each.layout.rooted or each.grid != dist.grid or not added:
            _fail(number, f"it takes the diagonal of {dist}, and makes {result}")
    if any(n != dist.shape[term.index(letter)] for n, letter in zip(dist.shape, term, strict=True)):
        _fail(number, f"it takes the diagonal of a tensor of {dist.shape}")
    if result.shape != tuple([dist.shape[mode] for mode in first]) or any(
        _sets(result, at).differs(_sets(dist, mode)) for at, mode in enumerate(first)
    ):
        _fail(number, "the diagonal has other indices than the tensor on some rank")
    others = [split.grid_mode for mode, splits in enumerate(dist.splits) if mode not in first for split in splits]
    if sorted([*dist.partial, *others]) != sorted(result.partial):
        _fail(number, "the diagonal is not partial over the grid modes that split the other modes of its letters")


def _prove_product(
    number: int, stage: Product, tensors: Sequence[_Tensor], made: _Tensor, extents: dict[str, int]
) -> None:
    """A product is complete, at once or panel by panel."""
    panels, terms = stage.panels, []
    for dist, term, _ in (*tensors, made):
        if dist.layout.view is not None:
            _fail(number, f"it multiplies blocks of a view, {dist.layout}")
        spread = [n == 1 != extents[letter] for letter, n in zip(term, dist.shape, strict=True)]
        terms.append("".join([" " if one else letter for one, letter in zip(spread, term, strict=True)]))
    points = {letter: IndexSet.interval(0, n) for letter, n in extents.items()}
    if panels is None:
        _prove_boxes(number, stage, [tensor.dist for tensor in (*tensors, made)], terms, points, points)
        return
    plans = (*stage.plans, ()) if len(stage.plans) == len(tensors) else stage.plans
    fits = len(plans) == len(terms) and min(panels.count, panels.tile) >= 1 <= panels.period
    fits = fits and panels.letter in extents and panels.period <= panels.count * panels.tile
    if not fits or not any(stage.plans):
        _fail(number, f"{panels} are no panels of its tensors")
    for k, (each, term) in enumerate(zip(plans, terms, strict=True)):
        cut = panels.letter in term if k < len(tensors) else bool(each) and panels.letter in term
        if bool(each) != cut or len(each) not in (0, 1, panels.count):
            _fail(number, f"it has {len(each)} plans for {panels.count} panels of {panels.letter!r} in {term!r}")
    for move in {move: None for each in plans for move in each}:
        move.verify()
    for panel in range(panels.count):
        run = (panel * panels.tile, min((panel + 1) * panels.tile, panels.period))
        here = IndexSet.of_runs([run], panels.period, extents[panels.letter])
        ends = []
        for tensor, each, term in zip((*tensors, made), plans, terms, strict=True):
            if each:
                move = each[panel % len(each)]
                inside, outside = (move.target, move.source) if tensor is not made else (move.source, move.target)
                _prove_piece(number, outside, move.dtype, tensor, term.index(panels.letter), here)
            ends.append(inside if each else tensor.dist)
        some = {**points, panels.letter: here}
        _prove_boxes(number, stage, ends, terms, some, some if plans[-1] else points)


def _prove_piece(
    number: int, piece: Distribution, dtype: np.dtype[Any], tensor: _Tensor, mode: int, here: IndexSet
) -> None:
    """A piece of a tensor has its elements whose indices along a mode are in a panel, where they are in the tensor."""
    dist = tensor.dist
    extents = (*dist.shape[:mode], len(here), *dist.shape[mode + 1 :])
    same = (piece.grid, piece.roles, piece.layout.op, piece.shape, dtype)
    if same != (dist.grid, dist.roles, dist.layout.op, extents, tensor.dtype) or piece.layout.view is not None:
        _fail(number, f"it moves panels of {piece} of {dtype}, but the tensor lies as {dist} of {tensor.dtype}")
    for other in range(len(dist.shape)):
        cut, whole = _sets(piece, other), _sets(dist, other)
        if other == mode:
            cut, whole = cut.at(here), whole.within(here)
        if cut.differs(whole):
            _fail(number, f"a panel of {piece} is not where the tensor lies, {dist}")


def _prove_boxes(
    number: int,
    stage: Product,
    dists: Sequence[Distribution],
    terms: Sequence[str],
    points: dict[str, IndexSet],
    whole: dict[str, IndexSet],
) -> None:
    """Every point of every element of the product is in the box of one rank whose contribution is added.

    Args:
        dists, terms: of the blocks that are multiplied, and of the product; modes that broadcast have no letter.
        points: per letter, the indices that are multiplied.
        whole: per letter, the indices that the modes of the product stand for, of which it gets those of the points.
    """
    *dists, result = dists
    *terms, term = terms
    found = dict[str, _Sets]()
    claimed = {
        letter: tuple([entry.grid_mode for entry in entries if result.grid.shape[entry.grid_mode] > 1])
        for letter, entries in stage.assignment
    }
    for dist, letters in zip((*dists, result), (*terms, term), strict=True):
        if dist.grid != result.grid or dist.layout.rooted or dist.layout.view is not None:
            _fail(number, f"it multiplies tensors in {dist} and makes one in {result}")
        if dist.partial and dist.layout.op != "sum":
            _fail(number, f"it multiplies contributions that are no sums, {dist.layout}")
        if any(letter == " " and splits for letter, splits in zip(letters, dist.splits, strict=True)):
            _fail(number, f"{dist.layout} has an element that broadcasts on some ranks alone")
    for dist, letters in zip(dists, terms, strict=True):
        for mode, letter in enumerate(letters):
            if letter == " ":
                continue
            if dist.shape[mode] != len(points[letter]):
                _fail(number, f"it multiplies {dist.shape[mode]} of {len(points[letter])} indices of {letter!r}")
            if tuple([split.grid_mode for split in dist.splits[mode]]) != claimed.get(letter, ()):
                _fail(number, f"its assignment splits {letter!r} in another way than {dist.layout}")
            here = _sets(dist, mode).at(points[letter])
            if here.differs(found.setdefault(letter, here)):
                _fail(number, f"two operands have different indices of {letter!r} on some rank")
    kept: dict[str, _Sets] = {}
    for mode, letter in enumerate(term):
        if letter != " ":
            kept[letter] = _sets(result, mode).at(whole[letter]).within(points[letter])
            if result.shape[mode] != len(whole[letter]) or letter not in found or kept[letter].differs(found[letter]):
                _fail(number, f"the result has other indices of {letter!r} than the operands on some rank")
    for letter in "".join(stage.terms):
        if letter in stage.term and (letter in found) != (letter in kept):
            _fail(number, f"operands or result have one element along {letter!r}, which is {len(points[letter])} long")
    over = [g for dist in dists for g in dist.partial]
    if not {*over} <= {*result.partial} or len({*over}) < len(over):
        _fail(number, "contributions of operands are multiplied with each other, or get lost")
    summed = [letter for letter in found if letter not in kept]
    if all(points[letter] for letter in summed):
        _prove_sums(number, result, {letter: found[letter] for letter in summed}, over, [*kept.values()], points)


def _prove_sums(
    number: int,
    result: Distribution,
    summed: dict[str, _Sets],
    over: Sequence[int],
    kept: Sequence[_Sets],
    points: dict[str, IndexSet],
) -> None:
    """In each group of ranks whose contributions are added, the summed indices are all there, each once.

    A rank is a row of numbers: of its set of each summed letter, and of its coordinate along each grid mode over which
    an operand is partial. As the sets of a letter are disjoint, the rows of a group must be all combinations, once.

        ijk->i with j:0,k:1 on 2x2            j 0 0 1 1    all four combinations:
                                              k 0 1 0 1    every point (j, k) once
    """
    needed = np.ones(result.grid.size, bool)
    for sets in kept:
        needed &= np.array([bool(held) for held in sets.members])[sets.ids]
    if not result.partial:  # each rank is alone
        for letter, sets in summed.items():
            if any(len(sets.members[n]) != len(points[letter]) for n in np.unique(sets.ids[needed]).tolist()):
                _fail(number, f"the contributions have not every index of {letter!r} once")
        return
    grid = result.grid.shape or (1,)
    coordinates = np.array(np.unravel_index(np.arange(result.grid.size), grid))
    columns = [sets.ids for sets in summed.values()] + [coordinates[g] for g in over]
    rows = np.array(columns, np.int64).reshape(len(columns), result.grid.size).T
    alone = [g for g in range(len(grid)) if g not in result.partial]
    group = np.zeros(result.grid.size, np.int64)
    for g in alone:
        group = group * grid[g] + coordinates[g]
    rows, group = rows[needed], group[needed]
    full = [np.array([bool(held) for held in sets.members]) for sets in summed.values()]
    seen: set[tuple[int, bytes]] = set()
    order = np.argsort(group, kind="stable")
    rows, group = rows[order], group[order]
    for start, stop in pairwise([0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), len(rows)] if len(rows) else []):
        part = rows[start:stop]
        key = len(part), part.tobytes()
        if key in seen:
            continue
        seen.add(key)
        for column, has in enumerate(full):
            part = part[has[part[:, column]]]
        boxes = {*map(tuple, part.tolist())}
        numbers = [sorted({box[column] for box in boxes}) for column in range(len(columns))]
        if len(boxes) < len(part) or len(boxes) != prod(map(len, numbers)):
            _fail(number, "some products are added twice, or never")
        for (letter, sets), some in zip(summed.items(), numbers, strict=False):
            if sum([len(sets.members[n]) for n in some]) != len(points[letter]):
                _fail(number, f"the contributions have not every index of {letter!r} once")
        for g, some in zip(over, numbers[len(summed) :], strict=True):
            if len(some) != grid[g]:
                _fail(number, f"contributions of an operand over grid mode {g} are missing")
