"""The proof of a contraction, from index sets alone.

It reads the stages as they are, and asks nothing of the search: the two share layouts, and the tuple `Panels`. On each
rank a block holds a set of indices per mode, so a product of blocks is a box of points: one set per letter. A
contraction is right if, stage by stage,

1. every move keeps its tensor (`Plan.verify`), and starts where the tensor is;
2. the tensors of a product have the same set of each letter on each rank, so that their elements match, and the result
   has these sets of the letters that it keeps;
3. over the ranks whose contributions are added for an element of the result, the boxes are disjoint, and together they
   have all points of the element: every product of elements enters once;
4. every tensor is used once, a letter is summed where no other tensor and not the result needs it, and the last tensor
   is the result.

The third law is proved by counting. Two ranks have the same set of a letter, or disjoint ones, as a layout deals out
each index once. So the sets have names, boxes of different names are disjoint, and disjoint boxes have all points if
their volumes add up to the number of points:

    ijk->i with j:0,k:1 on 2x2            j 0 0 1 1    four boxes of four names, added over both grid modes,
                                          k 0 1 0 1    with a quarter of the points (j, k) each

The other cases are these, too:

- A mode of one element that broadcasts has no set: every rank must hold the element, which then matches all others.
- A sum over no index is 0 on every rank, and ranks without elements of the result add none: nothing is checked there.
- Where the result is replicated, each group of ranks whose contributions are added must be complete by itself.
- An operand that is partial over a grid mode is a sum of contributions, all of which an element of the result needs:
  the coordinate of the grid mode is one more letter that is summed. A second operand that is partial there, or a letter
  that is split there, leaves points out.
- A letter that names several modes of a tensor takes a diagonal: each rank adds those elements of it that it holds, and
  zeros. The other modes are letters of their own, which are summed: just one rank of a group holds the index there.
- In panels, index k is in panel (k mod period) div tile. The panels are disjoint and have every index, so it is enough
  that each panel is complete. The moves of a panel start from those elements of a tensor that are in it; a tensor
  without moves must not depend on the letter, because it enters each panel. The product of a panel may move as well: to
  those elements of the result that are in the panel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from math import prod
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from ...caches import memoized
from ...compiler.plan import Plan
from ...errors import PlanError
from ...layout.distribution import Distribution
from ...layout.indexset import IndexSet
from .panels import Panels
from .plan import Contraction
from .stages import Move, Product

__all__ = ["prove"]

Ints = npt.NDArray[np.int64]
Label = str | tuple[str, int]
"""A letter; or its further mode in a tensor whose diagonal is taken."""


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
    if not len(plan.operands) == len(plan.subscripts.terms) == len(plan.dtypes):
        _fail(0, f"{plan.subscripts} has {len(plan.operands)} operands")
    if not plan.stages:
        _fail(0, "it has no stages")

    operands = [*map(_Tensor, plan.operands, plan.subscripts.terms, plan.dtypes)]
    extents, waiting = _extents(operands), dict(enumerate(operands))
    for number, stage in enumerate(plan.stages, 1):
        values = (stage.value,) if isinstance(stage, Move) else stage.values
        if not values or len({*values} & {*waiting}) < len(values):
            _fail(number, "it takes a tensor twice, or one that is not made yet")

        tensors = [waiting.pop(value) for value in values]
        if isinstance(stage, Move):
            made = _moved(number, stage, tensors[0])
        else:
            needed = "".join([tensor.term for tensor in waiting.values()]) + plan.subscripts.result
            _prove_letters(number, stage, tensors, needed, extents)
            made = _Tensor(stage.result, stage.term, tensors[0].dtype if stage.is_diagonal else plan.dtype)
            _prove_product(number, stage, tensors, made, extents)
        waiting[len(operands) + number - 1] = made

    if len(waiting) > 1:
        _fail(len(plan.stages), f"{len(waiting) - 1} tensors are not used")
    ((last, term, _),) = waiting.values()
    if term != plan.subscripts.result or last.meaning != plan.result.meaning:
        _fail(len(plan.stages), f"it leaves {term} in {last}, not {plan.subscripts.result} in {plan.result}")


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
            if n != 1:
                extents[letter] = n
    return extents


def _moved(number: int, stage: Move, tensor: _Tensor) -> _Tensor:
    """What a move makes: it keeps its tensor, and starts where it is."""
    move = stage.plan
    if move.source.meaning != tensor.dist.meaning or move.dtype != tensor.dtype:
        _fail(number, f"it moves {move.source} of {move.dtype}, but the tensor lies as {tensor.dist} of {tensor.dtype}")
    move.verify()
    return tensor._replace(dist=move.target)


def _prove_letters(
    number: int, stage: Product, tensors: Sequence[_Tensor], needed: str, extents: Mapping[str, int]
) -> None:
    """The letters of a product are those of its tensors, and those that it sums are needed nowhere else.

    A letter along which all tensors have the one element that broadcasts may be left out: there is nothing to sum.
    """
    if tuple([tensor.term for tensor in tensors]) != stage.terms:
        _fail(number, "its letters are not those of its tensors")
    if len({*stage.term}) < len(stage.term) or len(stage.term) != len(stage.result.shape):
        _fail(number, f"its result of {stage.result.shape} has the letters {stage.term!r}")

    if stage.is_diagonal:
        dist, term, _ = tensors[0]
        square = all(n == dist.shape[term.index(letter)] for letter, n in zip(term, dist.shape, strict=True))
        if stage.term != "".join(dict.fromkeys(term)) or stage.panels or not square:
            _fail(number, f"it takes no diagonal of {term!r} of {dist.shape}")
        return

    letters = "".join(stage.terms)
    modes = [mode for tensor in tensors for mode in zip(tensor.term, tensor.dist.shape, strict=True)]
    broadcast = {*letters} - {letter for letter, n in modes if n == extents[letter]}

    # The result has the letters that are needed elsewhere, but for those that broadcast and are left out.
    wrong = {*stage.term} ^ ({*letters} & {*needed})
    wrong -= broadcast & ({*needed} - {*stage.term})
    if wrong or any(len({*term}) < len(term) for term in stage.terms):
        _fail(number, f"it keeps or sums {sorted(wrong) or letters}, or multiplies a diagonal")


# --- sets of indices --------------------------------------------------------------------------------------------------


class _Sets(NamedTuple):
    """The indices of a letter that each rank holds: `members[ids[rank]]`; members are disjoint."""

    ids: Ints
    members: list[IndexSet]

    def at(self, points: IndexSet) -> _Sets:
        """The indices at these positions of some points."""
        return _Sets(self.ids, [points.select(indices) for indices in self.members])

    def within(self, points: IndexSet) -> _Sets:
        """The indices that are points."""
        return _Sets(self.ids, [indices & points for indices in self.members])

    def differs(self, other: _Sets) -> bool:
        """Whether some rank holds other indices there."""
        pairs = set() if self is other else {*zip(self.ids.tolist(), other.ids.tolist(), strict=True)}
        return any(self.members[a] != other.members[b] for a, b in pairs)

    def sizes(self) -> Ints:
        """The number of indices on each rank."""
        return np.array([len(indices) for indices in self.members])[self.ids]


class _Block(NamedTuple):
    """What ranks multiply, or make: how it lies, and per mode its letter (None if it broadcasts) and the indices."""

    dist: Distribution
    labels: Sequence[Label | None]
    sets: Sequence[_Sets]

    def along(self, letter: str, change: Callable[[_Sets, IndexSet], _Sets], points: IndexSet) -> _Block:
        """The block with other indices of a letter."""
        pairs = zip(self.labels, self.sets, strict=True)
        return self._replace(sets=[change(sets, points) if label == letter else sets for label, sets in pairs])

    def by_label(self) -> dict[Label, _Sets]:
        """The indices of each letter."""
        return {label: sets for label, sets in zip(self.labels, self.sets, strict=True) if label is not None}


@memoized(64)  # panels ask for the same ones
def _sets(dist: Distribution, mode: int) -> _Sets:
    """The indices along a mode of a tensor that each rank holds."""
    coordinates = np.unravel_index(np.arange(dist.grid.size), dist.grid.shape or (1,))
    key = np.zeros(dist.grid.size, np.int64)
    for g, parts in [(split.grid_mode, split.parts) for split in dist.splits[mode]]:
        key = key * parts + coordinates[g]
    for g, root in dist.layout.rooted:
        key = key * 2 + (coordinates[g] == root)

    # Ranks of one key hold the same indices, so these are computed once for all of them.
    _, ranks, ids = np.unique(key, return_index=True, return_inverse=True)
    return _Sets(ids.reshape(-1), [dist.index_sets(rank)[mode] for rank in ranks.tolist()])


def _block(number: int, dist: Distribution, labels: Sequence[Label | None]) -> _Block:
    if dist.layout.view is not None or len(dist.shape) != len(labels):
        _fail(number, f"it multiplies or makes {dist}, whose modes have no letters")
    return _Block(dist, labels, [_sets(dist, mode) for mode in range(len(labels))])


# --- products ---------------------------------------------------------------------------------------------------------


def _labels(term: str) -> list[Label]:
    """The letters of modes; a letter that comes again is one more."""
    return [(letter, mode) if letter in term[:mode] else letter for mode, letter in enumerate(term)]


def _prove_product(
    number: int, stage: Product, tensors: Sequence[_Tensor], made: _Tensor, extents: Mapping[str, int]
) -> None:
    """A product is complete, at once or panel by panel."""
    sizes: dict[Label, int] = dict(extents.items())
    if stage.is_diagonal:
        sizes = dict(zip(_labels(stage.terms[0]), tensors[0].dist.shape, strict=True))

    wholes = list[_Block]()
    for dist, term, _ in (*tensors, made):
        modes = [*zip(_labels(term), dist.shape, strict=True)]
        if any(n not in (1, sizes[label]) for label, n in modes):
            _fail(number, f"it makes a tensor of {dist.shape} with the letters {term!r}")
        wholes.append(_block(number, dist, [label if n == sizes[label] else None for label, n in modes]))

    if stage.panels is None:
        _prove_blocks(number, stage, wholes, sizes)
    else:
        _prove_panels(number, stage, (*tensors, made), wholes, sizes)


def _prove_panels(
    number: int, stage: Product, tensors: Sequence[_Tensor], wholes: Sequence[_Block], sizes: Mapping[Label, int]
) -> None:
    """Each panel of a product is complete, and is moved from where its tensor lies.

    Args:
        tensors: the ones that are multiplied, and the product, whole; `wholes` are their blocks.
        sizes: per letter, the number of its indices.
    """
    panels = stage.panels
    assert panels is not None, "others are products at once"
    plans = (*stage.plans, ()) if len(stage.plans) == len(tensors) - 1 else stage.plans  # () if the product stays
    _check_panels(number, panels, plans, wholes, sizes)
    for move in dict.fromkeys(chain(*plans)):
        move.verify()

    letter = panels.letter

    for panel in range(panels.count):
        run = (panel * panels.tile, min((panel + 1) * panels.tile, panels.period))
        here = IndexSet.of_runs([run], panels.period, sizes[letter])
        blocks = [whole.along(letter, _Sets.within, here) for whole in wholes]

        # A tensor that moves is multiplied where its panel arrives; the product is made where its panel starts.
        for k, moves in enumerate(plans):
            if moves:
                is_made = k == len(plans) - 1
                blocks[k] = _moved_panel(
                    number, moves[panel % len(moves)], tensors[k], is_made, blocks[k], letter, here
                )
        _prove_blocks(number, stage, blocks, {**sizes, letter: len(here)})


def _check_panels(
    number: int, panels: Panels, plans: Sequence[Sequence[Plan]], wholes: Sequence[_Block], sizes: Mapping[Label, int]
) -> None:
    """Refuse panels that do not cut the letter, and plans that are not one for all panels of a tensor, or for each."""
    letter = panels.letter
    fits = len(plans) == len(wholes) and any(plans[:-1]) and min(panels[1:]) >= 1
    if not fits or letter not in sizes or panels.period > panels.count * panels.tile:
        _fail(number, f"{panels!r} are no panels of its tensors")

    for moves, whole in zip(plans, wholes, strict=True):
        cut = letter in whole.labels and (bool(moves) or whole is not wholes[-1])  # the product may be added as it is
        if bool(moves) != cut or len(moves) not in (0, 1, panels.count):
            _fail(number, f"it has {len(moves)} plans for {panels.count} panels of {letter!r} in {whole.dist}")


def _moved_panel(
    number: int, move: Plan, tensor: _Tensor, is_made: bool, block: _Block, letter: str, here: IndexSet
) -> _Block:
    """Where a panel lies while it is multiplied: its move leads there from the tensor, or back if it is made."""
    ends = (move.target, move.source) if is_made else (move.source, move.target)
    outside, inside = [_block(number, end, block.labels).along(letter, _Sets.at, here) for end in ends]
    if move.dtype != tensor.dtype or not _stays_in(outside, block, letter, len(here)):
        _fail(number, f"it moves panels of {outside.dist} of {move.dtype}, but the tensor lies as {tensor}")
    return inside


def _stays_in(panel: _Block, block: _Block, letter: str, n: int) -> bool:
    """Whether a panel of a tensor, with n indices of a letter, has its elements where they are in the tensor."""
    a, b = panel.dist, block.dist
    shape = tuple([n if label == letter else m for label, m in zip(block.labels, b.shape, strict=True)])
    same = (a.grid, a.roles, a.layout.op, a.shape) == (b.grid, b.roles, b.layout.op, shape)
    return same and not any(cut.differs(whole) for cut, whole in zip(panel.sets, block.sets, strict=True))


def _prove_blocks(number: int, stage: Product, blocks: Sequence[_Block], sizes: Mapping[Label, int]) -> None:
    """Every point of every element of the last block is in the box of one rank whose contribution is added.

    Args:
        blocks: the ones that are multiplied, and the product.
        sizes: per letter, the number of its indices.
    """
    _check_splits(number, stage, blocks)
    indices = _common_indices(number, stage, blocks)
    *operands, result = blocks
    grid, added, made = result.dist.grid, result.dist.partial, result.by_label()

    coordinates = np.unravel_index(np.arange(grid.size), grid.shape or (1,))
    group = np.zeros(grid.size, np.int64)  # per rank, the number of its group: ranks whose contributions are added
    for g in range(grid.order):
        if g not in added:
            group = group * grid.shape[g] + coordinates[g]

    # A rank's box: the elements that it makes, each with all its indices of the letters that are summed. Per rank, it
    # is `needed` if it makes any element, and its volume is the points of one of them; `boxes` are ranks with points.
    summed = [label for label in indices if label not in made]
    over = [g for block in operands for g in block.dist.partial]
    needed = prod([sets.sizes() > 0 for sets in made.values()], start=np.ones(grid.size, bool))
    volumes = prod([indices[label].sizes() for label in summed], start=np.ones(grid.size, object))  # exact integers
    boxes = np.flatnonzero(needed & (volumes > 0))

    # Boxes of one group are disjoint if they differ in a name; then their volumes say whether all points are in one.
    # A column has a number per rank; `names` has a row per box, and `totals` the points of each group.
    columns = [group, *[indices[label].ids for label in summed], *[coordinates[g] for g in over]]
    names = {*zip(*[column[boxes].tolist() for column in columns], strict=True)}
    totals = np.zeros(grid.size, object)
    np.add.at(totals, group[boxes], volumes[boxes])
    points = prod([sizes[label] for label in summed] + [grid.shape[g] for g in over])
    if points and (len(names) < len(boxes) or (totals[group[needed]] != points).any()):
        _fail(number, "some products of elements enter twice, or never")


def _check_splits(number: int, stage: Product, blocks: Sequence[_Block]) -> None:
    """Refuse blocks that are no sums on the product's grid, and operands that are split unlike the assignment."""
    result, grid = blocks[-1], blocks[-1].dist.grid
    claimed = {letter: [entry.grid_mode for entry in entries] for letter, entries in stage.assignment}
    for block in blocks:
        dist, labels, _ = block
        if dist.grid != grid or dist.layout.rooted or (dist.partial and dist.layout.op != "sum"):
            _fail(number, f"it multiplies or makes blocks of {dist}, which are no sums on {grid}")

        # The assignment says how operands lie. A result may have other entries that hold the same indices, as those
        # of [(0,1:block)] and block[(1,0)] do of four indices on 2x2: `_common_indices` checks what it holds.
        for label, splits in zip(labels, dist.splits, strict=True):
            if label is not None and (block is result or stage.is_diagonal):
                continue
            modes = [g for g in claimed.get(str(label), []) if grid.shape[g] > 1]  # none, if the mode broadcasts
            if modes != [split.grid_mode for split in splits]:
                _fail(number, f"its assignment splits {label!r} in another way than {dist}")


def _common_indices(number: int, stage: Product, blocks: Sequence[_Block]) -> dict[Label, _Sets]:
    """The indices of each letter, which must be the same in all blocks."""
    indices = dict[Label, _Sets]()
    for block in blocks:
        for label, sets in block.by_label().items():
            if sets.differs(indices.setdefault(label, sets)):
                _fail(number, f"two of its tensors have different indices of {label!r} on some rank")

    *operands, result = blocks
    if {label for block in operands for label in block.by_label()} & {*stage.term} != {*result.by_label()}:
        _fail(number, f"operands or result have one element along a letter of {stage.term!r}, which is longer")
    return indices
