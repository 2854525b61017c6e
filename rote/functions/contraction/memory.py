"""Memory: the bytes that a rank holds at most while a contraction runs.

A rank holds, at each stage,

    the operands, as they are given, to the end
    the tensors that earlier stages made and later ones take
    what the stage makes
    the buffers of its moves; in panels, those of the next panel beside the panel that is multiplied
    the packed copies of a product, whose blocks are not matrices in memory as they lie

`peaks` counts stages that are planned, and `packed` and `in_panels` what one product needs beside its operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from math import inf, prod
from typing import Any, NamedTuple

import numpy as np

from ...compiler.step import Step
from ...layout.distribution import Distribution
from .assignment import refined
from .diagonals import repeats, spread
from .local import in_order, stacks_of, strip_of
from .panels import Panels, most_panels, paired, panels_of, pieces
from .search import Node, Search

__all__ = ["Fitting", "Need", "bytes_of", "moving", "next_panels", "packed", "panel_bytes", "peaks"]


class Need(NamedTuple):
    """What a stage does to the memory of a rank.

    Attributes:
        uses: the numbers of the tensors that it takes.
        made: the bytes of the tensor that it makes.
        more: the bytes that it needs beside them.
    """

    uses: tuple[int, ...]
    made: int
    more: int


def bytes_of(dist: Distribution, dtype: np.dtype[Any]) -> int:
    """The most bytes of a tensor that a rank holds."""
    return prod(dist.max_local_shape()) * dtype.itemsize


def peaks(given: Sequence[int], stages: Sequence[Need]) -> list[int]:
    """The most bytes that a rank holds before and during each stage, from the bytes of the operands and the needs.

    Without a stage, the result is a copy.

    >>> peaks([10, 10], [Need((0,), 40, 5), Need((2, 1), 20, 0)])
    [20, 65, 80]
    """
    sizes = [*given]
    last = {value: number for number, stage in enumerate(stages) for value in stage.uses}
    live = sum(given)
    found = [live if stages else 2 * live]
    for number, stage in enumerate(stages):
        live += stage.made
        found.append(live + stage.more)
        sizes.append(stage.made)
        live -= sum([sizes[value] for value in {*stage.uses} if value >= len(given) and last[value] == number])
    return found


def packed(
    shapes: Sequence[tuple[int, ...]],
    terms: Sequence[str],
    term: str,
    dtypes: Sequence[np.dtype[Any]],
    dtype: np.dtype[Any],
) -> tuple[int, int]:
    """The bytes of copies of blocks in their product, and of a copy of the product, as `multiply` makes them.

    A block is copied if its dtype differs, if it is summed over letters of its own, and if it is no stack of matrices.

    Args:
        shapes, terms, dtypes: of the blocks.
        term, dtype: of the product.

    >>> f8 = np.dtype("f8")
    >>> [packed([(2, 3, 4), (4, 5)], ["ijk", "kl"], term, [f8, f8], f8) for term in ("ijl", "lij", "ilj")]
    [(0, 0), (0, 0), (0, 240)]
    """
    held, item = 0, dtype.itemsize
    blocks: list[tuple[tuple[int, ...], str]] = []
    for number, (shape, each, had) in enumerate(zip(shapes, terms, dtypes, strict=True)):
        others = term + "".join([other for place, other in enumerate(terms) if place != number])
        kept = [mode for mode, letter in enumerate(each) if letter in others]
        blocks.append((tuple([shape[mode] for mode in kept]), "".join([each[mode] for mode in kept])))
        held += item * (prod(shape) * (had != dtype) + prod(blocks[-1][0]) * (len(kept) < len(each)))
    if len(blocks) == 1 or not all(prod(shape) for shape, _ in blocks):
        return held, 0
    (first, a), (second, b) = blocks
    matrices = stacks_of((first, second), (in_order(first, item), in_order(second, item)), (a, b), term, item)
    copies = [item * prod(stack.shape) * stack.packed for stack in (matrices.first, matrices.second, matrices.product)]
    return held + copies[0] + copies[1], copies[2]


def panel_bytes(
    shapes: Sequence[tuple[int, ...]],
    terms: Sequence[str],
    term: str,
    dtypes: Sequence[np.dtype[Any]],
    dtype: np.dtype[Any],
    kept: bool,
) -> int:
    """The bytes of the product of a panel before it is in the result, and of packed copies.

    Args:
        shapes, terms, dtypes: of the blocks that are multiplied.
        term, dtype: of the product.
        kept: whether each panel has its own part of the result; otherwise its product is added strip by strip.
    """
    extents = dict(zip("".join(terms), chain(*shapes), strict=True))
    shape = [extents[letter] for letter in term]
    held, again = packed(shapes, terms, term, dtypes, dtype)
    size = prod(shape) * dtype.itemsize + again
    if kept or not size or not term:
        return held + size
    mode, strip = strip_of(shape)
    for block, each in zip(shapes, terms, strict=True):
        if term[mode] in each and len([n for n in block if n > 1]) > 2:  # its strips may be no matrices
            held += prod(block) * dtype.itemsize * strip // shape[mode]
    return held + size // shape[mode] * strip


def next_panels(panels: Iterable[tuple[int, int, bool]]) -> int:
    """The bytes of the panels of operands: of a panel, of its move with both ends and buffers, and whether it moves.

    The panel that is multiplied is held while the next one is packed and moved.
    """
    return sum([peak + panel * moves for panel, peak, moves in panels])


def moving(steps: Sequence[Step], peak: int, dtype: np.dtype[Any]) -> int:
    """The most bytes that a rank holds during a move, whose plan counts `peak`.

    A reduction to all ranks has a copy of each rank's contribution, which the others read, or MPI's own buffer.
    """
    copies = [bytes_of(step.before, dtype) for step in steps if step.kind == "allreduce"]
    return peak + max(copies, default=0)


class Fitted(NamedTuple):
    """A tree of products as it fits into memory, or comes closest to that.

    Attributes:
        node: its products, in panels where they have to be.
        size: the bytes of what it leaves, which a rank did not hold before.
        peak: the most bytes that a rank holds at once; at least these, if they are too many.
        seconds: the time of its moves; at least this, if that takes too long.
    """

    node: Node
    size: int
    peak: int
    seconds: float


class _Move(NamedTuple):
    """The seconds of a move, the most bytes that a rank holds during it, and whether anything moves."""

    seconds: float
    peak: int
    moves: bool


class _Side(NamedTuple):
    """What moves panel by panel: the number of an operand (-1 for the result), its ends, the mode that is cut."""

    number: int
    source: Distribution
    target: Distribution
    mode: int
    dtype: np.dtype[Any]


class Fitting:
    """Cuts the products of a contraction into panels, so that a rank never holds more than `max_bytes`."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.most: float = inf if search.request.max_bytes is None else search.request.max_bytes
        self._seen: dict[tuple[int, int], Fitted] = {}

    def __call__(self, root: Node, below: float = inf) -> Fitted:
        """A complete contraction, where it has to be in the fewest panels of the letters with which it is fastest.

        Args:
            below: the seconds from which on it takes too long.
        """
        self._seen.clear()
        held, request = 0, self.search.given
        for part, to in _operands(root):
            term, dist, size = request.subscripts.terms[part.operand], part.dist or refined(to), 0
            if repeats(term):  # it is held as given, and as its diagonal, which is packed
                size = 2 * bytes_of(dist, part.dtype)
                dist = request.layouts[part.operand] or spread(dist, term, request.shapes[part.operand])
            held += size + bytes_of(dist, part.dtype)
        return self.fitted(root, held, below, True)

    def fitted(self, node: Node, live: int, below: float = inf, root: bool = False) -> Fitted:
        """A tree while a rank holds some bytes, among them the operands."""
        if node.operand >= 0:
            return Fitted(node, 0, live, 0.0)
        key = id(node), live
        if key not in self._seen:
            product = _Product(self, node, live, root)
            found = product.at_once()
            if found.peak > self.most:
                for letter in dict.fromkeys("".join([part.term for part in node.parts])):
                    other = product.along(letter, below)
                    if other is not None:
                        found = min(found, other, key=lambda each: (max(each.peak, self.most), each.seconds))
            self._seen[key] = found
        return self._seen[key]

    def move(
        self, source: Distribution, target: Distribution, dtype: np.dtype[Any], buffers: float | None = None
    ) -> _Move:
        """A move as its plan says; or as it is guessed, with buffers that are some times as large as its ends."""
        if source.meaning == target.meaning:
            return _Move(0.0, 2 * bytes_of(source, dtype), False)
        ends = bytes_of(source, dtype) + bytes_of(target, dtype)
        if buffers is not None:
            return _Move(0.0, int(ends * (1 + buffers)), True)
        route = self.search.route(source, target, dtype)
        return _Move(route.seconds, max(ends, moving(route.steps, route.peak * dtype.itemsize, dtype)), True)


class _Product:
    """A product at the end of a tree, at once or in panels."""

    def __init__(self, fitting: Fitting, node: Node, live: int, root: bool) -> None:
        self.fitting, self.search, self.node, self.live = fitting, fitting.search, node, live
        assert node.dist is not None  # which only a free operand lacks
        self.result = node.dist
        self.final = self.search.final(self.result) if root else self.result
        self.terms, self.dtypes = [part.term for part in node.parts], [part.dtype for part in node.parts]

    def at_once(self) -> Fitted:
        """The product of whole tensors."""
        node = self.node
        shapes = [to.max_local_shape() for to in node.moved]
        more = bytes_of(self.result, node.dtype)
        more += sum(packed(shapes, self.terms, node.term, self.dtypes, node.dtype))
        for planned in (False, True):
            before = self._before("", planned)
            if max(before.peak, before.size + more) > self.fitting.most:
                return before._replace(peak=max(before.peak, before.size + more))
        return self._after(before, before.node, before.size + more, 0.0)

    def along(self, letter: str, below: float) -> Fitted | None:
        """The product in the fewest panels of a letter with which it fits; None if it is not cut, or takes too long."""
        before, extent = self._before(letter, False), self.search.extents[letter]
        if before.peak > self.fitting.most:
            return before
        modes = []
        for _, source, to, mode, _ in self._ends(letter):
            if source.layout.view is not None or to.layout.view is not None:
                return None
            modes += [source.splits[mode], to.splits[mode]]
        found: Fitted | None = None

        def fits(count: int, buffers: float | None = None, numbers: int | None = 1) -> bool:
            nonlocal found
            found = self._in_panels(before, panels_of(letter, extent, count, modes), numbers, buffers)
            return found is not None and found.peak <= self.fitting.most

        most = most_panels(extent, modes)
        if not fits(most, 0.0):
            return found
        before = self._before(letter, True)
        if before.peak > self.fitting.most:
            return before
        # Most moves are allgathers, whose buffers are as large as both ends.
        count = _fewest(lambda number: fits(number, 1.0), 2, most)
        fits(count, 1.0)
        assert found is not None
        if self._least(found, self._ends(letter)) > below:
            return None
        if fits(count) and count > 2 and fits(count - 1):
            count = _fewest(fits, 2, count - 1)
        while not fits(count, None, None) and count < most:  # others may move in other ways than the first, largest one
            count = _fewest(fits, count + 1, most)
        return found

    def _is_cut(self, part: Node, to: Distribution, letter: str) -> bool:
        return letter != "" and letter in part.term and to.shape[part.term.index(letter)] == self.search.extents[letter]

    def _before(self, letter: str, planned: bool) -> Fitted:
        """What is made before the product: its parts, and the moves of those that are not cut along a letter.

        Its size is all that a rank holds then. Moves are not planned where that is not asked for, or cannot fit: then
        the peak and the seconds are lower bounds.
        """
        held = peak = self.live
        seconds, least = 0.0, self.node.seconds
        parts: list[Node] = []
        for part, to in zip(self.node.parts, self.node.moved, strict=True):
            made = self.fitting.fitted(part, held)
            parts.append(made.node)
            held, peak, seconds = held + made.size, max(peak, made.peak), seconds + made.seconds
            least += made.node.seconds - part.seconds
            source = part.dist or refined(to)
            if source.meaning != to.meaning and not self._is_cut(part, to, letter):
                others = held - bytes_of(source, part.dtype)
                peak = max(peak, others + self.fitting.move(source, to, part.dtype, 0.0).peak)
                if planned and peak <= self.fitting.most:
                    move = self.fitting.move(source, to, part.dtype)
                    peak, seconds = max(peak, others + move.peak), seconds + move.seconds
                held += bytes_of(to, part.dtype) - made.size
        return Fitted(replace(self.node, parts=tuple(parts), seconds=least), held, peak, seconds)

    def _after(self, before: Fitted, node: Node, held: int, seconds: float, buffers: float | None = None) -> Fitted:
        """The tree with the move of its result, which is still to be made, if a rank holds some bytes before."""
        peak, seconds = max(before.peak, held), before.seconds + seconds
        assert node.dist is not None
        if node.dist.meaning != self.final.meaning and peak <= self.fitting.most:
            move = self.fitting.move(node.dist, self.final, node.dtype, buffers)
            peak, seconds = max(peak, self.live + move.peak), seconds + move.seconds
        return Fitted(node, bytes_of(node.dist, node.dtype), peak, seconds)

    def _ends(self, letter: str) -> list[_Side]:
        """The moves that are made panel by panel along a letter: of operands, and of the result if it moves on."""
        sides = []
        for number, (part, to) in enumerate(zip(self.node.parts, self.node.moved, strict=True)):
            if self._is_cut(part, to, letter):
                sides.append(_Side(number, part.dist or refined(to), to, part.term.index(letter), part.dtype))
        if (
            letter in self.node.term
            and self.result.meaning != self.final.meaning
            and self.final.grid == self.result.grid
        ):
            sides.append(_Side(-1, self.result, self.final, self.node.term.index(letter), self.node.dtype))
        return sides

    def _least(self, found: Fitted, sides: Sequence[_Side]) -> float:
        """A lower bound on the seconds of the whole tree in some panels, if all panels are as the first one."""
        panels, bound = found.node.panels, self.search.bound
        assert panels is not None
        seconds = found.node.seconds
        for side in sides:
            (pair,) = paired(side.source, side.target, side.mode, panels, 1)
            seconds += panels.count * bound(*pair, side.dtype) - bound(side.source, side.target, side.dtype)
        return seconds + self.search.bound(self.result, self.final, self.node.dtype)

    def _in_panels(self, before: Fitted, panels: Panels, numbers: int | None, buffers: float | None) -> Fitted | None:
        """The product in panels, of which the first ones are looked at; None if they are nowhere as a layout says."""
        node, letter, dtype = self.node, panels.letter, self.node.dtype
        shapes: list[tuple[int, ...]] = [to.max_local_shape() for to in node.moved]
        moves: list[tuple[int, int, bool]] = []
        seconds, least, dist, left = 0.0, before.node.seconds, self.result, None
        for number, source, to, mode, of in self._ends(letter):
            pairs = paired(source, to, mode, panels, numbers)
            if not pairs:
                return None
            each = [(self.fitting.move(*pair, of, buffers), n) for pair, n in pairs.items()]
            panel = max([bytes_of(there, of) for _, there in pairs])
            if number < 0:
                panel, dist, left = 0, to, source
            else:
                shapes[number] = next(iter(pairs))[1].max_local_shape()
            moves.append((panel, max([move.peak for move, _ in each]), any(move.moves for move, _ in each)))
            if numbers is None:
                seconds += sum([n * move.seconds for move, n in each])
                least += sum([n * self.search.bound(*pair, of) for pair, n in pairs.items()])
                least -= self.search.bound(source, to, of) * (number >= 0)
        if letter in node.term and not pieces(self.result, node.term.index(letter), panels, 1):
            return None
        made = replace(before.node, panels=panels, seconds=least, dist=dist, left=left)
        held = before.size + bytes_of(dist, dtype) + next_panels(moves)
        held += panel_bytes(shapes, self.terms, node.term, self.dtypes, dtype, letter in node.term)
        return self._after(before, made, held, seconds, buffers)


def _fewest(fits: Callable[[int], bool], least: int, most: int) -> int:
    """The least number from one to another that fits, if all greater ones do, as the greatest does."""
    low, high = least, least
    while high < most and not fits(high):
        low, high = high + 1, min(2 * high, most)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return high


def _operands(node: Node) -> Iterator[tuple[Node, Distribution]]:
    """The operands of a tree, each with how it lies in its product."""
    for part, to in zip(node.parts, node.moved, strict=True):
        if part.operand >= 0:
            yield part, to
        else:
            yield from _operands(part)
