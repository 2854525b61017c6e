"""Trees of products: what a search finds, and the stages that a tree stands for, whose moves are not planned yet.

    ik,kl,lj->ij        (A B) D         move A, move B, multiply; move the product, move D, multiply; move the result

The search prices the moves of these stages, memory counts what ranks hold in them, and a contraction is made of them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from ...layout.distribution import Distribution
from ...layout.grid import Grid
from ...machines.machine import Machine
from .assignment import Assignment, refined
from .diagonals import diagonal_in, plain_in, repeats, spread
from .panels import Ends, Panels, panel_dists
from .stages import Product
from .subscripts import Subscripts

__all__ = [
    "MOST_OF_CHAINS",
    "Node",
    "Request",
    "Unplanned",
    "UnplannedMove",
    "UnplannedProduct",
    "operand_dists",
    "unplanned",
]

MOST_OF_CHAINS = 3  # modes of a grid that the planner chooses, if several products take operands that may lie anywhere


class Request(NamedTuple):
    """Everything on which a contraction depends.

    Attributes:
        subscripts: the letters.
        shapes, dtypes: of the operands.
        layouts: the distributions of the operands; None for one that may lie where it is cheapest.
        grid: the grid of the products.
        target: the distribution of the result; None to follow the products.
        cheapest: without a target, whether contributions are scattered instead of added on all their ranks.
        max_bytes: the most that a rank may hold; None for any number.
        machine: the machine whose seconds are counted.
        path: per product, the numbers of its operands as `numpy.einsum_path` gives them; None for the cheapest.
        whole: letters that are not to be split.
        joint: whether all operands are brought to one assignment, instead of two by two.
    """

    subscripts: Subscripts
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype[Any], ...]
    layouts: tuple[Distribution | None, ...]
    grid: Grid
    target: Distribution | None
    cheapest: bool
    max_bytes: int | None
    machine: Machine
    path: tuple[tuple[int, ...], ...] | None = None
    whole: str = ""
    joint: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A tensor of a contraction: an operand, or the product of tensors that are moved before.

    Attributes:
        term, dist: the letters, and how it lies; an operand whose layout is free has no distribution.
        dtype: of the elements.
        seconds: a lower bound on the time in which it is made.
        received: a lower bound on the bytes that the busiest rank receives in each move until then, added up.
        operand: the number of the operand; -1 for a product.
        factors, moved: the tensors that are multiplied, and how they lie then.
        assignment, panels: of the product; no panels if it is multiplied at once.
        left: how the product of a panel lies, if each panel moves on to `dist`.
    """

    term: str
    dist: Distribution | None
    dtype: np.dtype[Any]
    seconds: float = 0.0
    received: float = 0.0
    operand: int = -1
    factors: tuple[Node, ...] = ()
    moved: tuple[Distribution, ...] = ()
    assignment: Assignment = ()
    panels: Panels | None = None
    left: Distribution | None = None


class UnplannedMove(NamedTuple):
    """A tensor that moves; in panels, together with the product that takes or makes it.

    Attributes:
        value, term, dtype: its number, its letters and the dtype of its elements.
        source, target: where it lies, and where it is to lie.
        panels: those in which it moves; None if it moves as a whole.
    """

    value: int
    term: str
    dtype: np.dtype[Any]
    source: Distribution
    target: Distribution
    panels: Panels | None = None

    def ends(self, first: int | None = None) -> list[Ends]:
        """Between which distributions it moves; in panels, those of each one in order, or of some first ones."""
        if self.panels is None:
            return [(self.source, self.target)]
        mode = self.term.index(self.panels.letter)
        sources, targets = [panel_dists(dist, mode, self.panels, first) for dist in (self.source, self.target)]
        return [*zip(sources, targets, strict=True)]


class UnplannedProduct(NamedTuple):
    """A product of tensors, or the diagonal of one.

    Attributes:
        product: the stage, whose plans are missing if it is in panels.
        dtype: of the elements that it makes.
        takes: the tensors; those without panels lie as they are multiplied.
        leaves: the product, if its panels move on.
    """

    product: Product
    dtype: np.dtype[Any]
    takes: tuple[UnplannedMove, ...]
    leaves: tuple[UnplannedMove, ...] = ()

    @property
    def in_panels(self) -> list[UnplannedMove]:
        """What moves in panels."""
        return [move for move in (*self.takes, *self.leaves) if move.panels is not None]


Unplanned = UnplannedMove | UnplannedProduct
"""A stage whose moves are not planned yet."""

Made = Generator[tuple[Node, Unplanned], None, tuple[int, Distribution]]
"""The stages that make a tensor; returns its number, and how it lies."""


def operand_dists(request: Request, tree: Node) -> tuple[Distribution, ...]:
    """The distributions of the operands; of free ones, those from which they are gathered."""
    dists = [*request.layouts]

    def place_free(node: Node) -> None:
        for factor, to in zip(node.factors, node.moved, strict=True):
            place_free(factor)
            if factor.operand >= 0 and factor.dist is None:
                number, dist = factor.operand, refined(to)
                term = request.subscripts.terms[number]
                dists[number] = spread(dist, term, request.shapes[number]) if repeats(term) else dist

    place_free(tree)
    return tuple([dist for dist in dists if dist is not None])  # now all


def unplanned(request: Request, tree: Node, final: Distribution) -> Iterator[tuple[Node, Unplanned]]:
    """The stages of a tree in order, each with the product for which it is.

    Tensors have numbers: the operands have the first ones, and each stage that is yielded makes the next one. A tensor
    that moves in panels has no stage of its own: it is among the `takes` or `leaves` of its product.

        ik,kj->ij       operands 0 1        move 0 makes 2        multiply 2 and 1 makes 3        move 3 makes 4

    Args:
        request: the one that the tree answers; or that of diagonals, without the stages that take these.
        final: where the result is to lie.
    """
    numbers, dists = count(len(request.shapes)), operand_dists(request, tree)

    def moved(owner: Node, move: UnplannedMove) -> Made:
        if move.source.meaning == move.target.meaning:
            return move.value, move.source
        yield owner, move
        return next(numbers), move.target

    def begun(owner: Node, leaf: Node) -> Made:
        """An operand, or its diagonal if a letter names several of its modes."""
        n = leaf.operand
        term, dist = request.subscripts.terms[n], dists[n]
        if not repeats(term):
            return n, dist

        plain = plain_in(dist)
        value, _ = yield from moved(owner, UnplannedMove(n, term, leaf.dtype, dist, plain))
        result = diagonal_in(plain, term)
        product = Product((value,), (term,), leaf.term, result, ())
        yield owner, UnplannedProduct(product, leaf.dtype, (UnplannedMove(value, term, leaf.dtype, plain, plain),))
        return next(numbers), result

    def made(node: Node) -> Made:
        factors = []  # all are made before any is moved, as moved blocks are larger as a rule
        for factor in node.factors:
            factors.append((yield from (made(factor) if factor.factors else begun(node, factor))))

        takes, panels = list[UnplannedMove](), node.panels
        for (value, source), factor, to in zip(factors, node.factors, node.moved, strict=True):
            move = UnplannedMove(value, factor.term, factor.dtype, source, to)
            if panels is not None and panels.cut(factor.term, to.shape):
                takes.append(move._replace(panels=panels))
            else:
                value, dist = yield from moved(node, move)
                takes.append(move._replace(value=value, source=dist, target=dist))

        # The product has its number before what leaves it: its panels move into the tensor of that number.
        number, result = next(numbers), node.dist
        assert result is not None  # which only a free operand lacks
        leaves = () if node.left is None else (UnplannedMove(number, node.term, node.dtype, node.left, result, panels),)

        values, terms = tuple([move.value for move in takes]), tuple([move.term for move in takes])
        product = Product(values, terms, node.term, result, node.assignment, panels)
        yield node, UnplannedProduct(product, node.dtype, tuple(takes), leaves)
        return number, result

    value, result = yield from made(tree)
    yield from moved(tree, UnplannedMove(value, tree.term, tree.dtype, result, final))
