"""The stages of a contraction: moves, and products of what is local; in words, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...compiler.plan import Plan
from ...layout.distribution import Distribution, distribute
from ...layout.grid import integer, integers
from ...layout.layout import as_layout
from .algorithms import family
from .assignment import Assignment, points, read_assignment, write
from .diagonals import distinct, repeats
from .panels import Panels
from .subscripts import spanning

__all__ = ["Move", "Product", "Stage", "StageFigures", "end_tree", "read_end", "read_stage", "stage_tree", "uses"]


class StageFigures(NamedTuple):
    """A stage in words, and its costs.

    Attributes
    ----------
    text : str
        The move or the product, and its tensors.
    family : str | None
        The algorithm of a product; None for a move.
    received : int
        The bytes that the busiest rank receives.
    peak : int
        The bytes that the busiest rank holds.
    messages : int
        As in `ContractionCost`.
    flops : int
        As in `ContractionCost`.
    seconds : float
        As in `ContractionCost`.

    Examples
    --------
    >>> import rote
    >>> plan = rote.compile_einsum("ik,kj->ij", [(64, 64)] * 2, ["block[(0),()]"] * 2, grid=4)
    >>> for stage in plan.figures():
    ...     print(stage.text, stage.received, stage.flops)
    move B: block[(0),()] -> [(),()], allgather over 0 24576 0
    multiply A and 1: ik,kj->ij with i:0 0 131072
    """

    text: str
    family: str | None
    received: int
    messages: int
    flops: int
    seconds: float
    peak: int


@dataclass(frozen=True, slots=True)
class Move:
    """A stage that moves a tensor, the one of number `value`, by a proved plan."""

    value: int
    plan: Plan


@dataclass(frozen=True, slots=True)
class Product:
    """A stage that multiplies what is local; or takes the diagonal of one tensor, in whose term a letter comes twice.

    Attributes:
        values: the numbers of the tensors.
        terms, term: their letters, and those of the product; letters that it lacks are summed.
        result: how the product lies: partial over the grid modes of the letters that are summed.
        assignment: the grid modes of each letter.
        panels: the panels in which tensors are moved and multiplied; None if all is multiplied at once.
        plans: with panels, for each tensor the plans of its panels (one, if all are equal), or none if it lacks the
            letter, and is used as it is. One more if the product of each panel moves on before the next one is made:
            that of the panels of the product.
    """

    values: tuple[int, ...]
    terms: tuple[str, ...]
    term: str
    result: Distribution
    assignment: Assignment
    panels: Panels | None = None
    plans: tuple[tuple[Plan, ...], ...] = ()

    @property
    def is_diagonal(self) -> bool:
        """Whether the stage takes a diagonal."""
        return len(self.terms) == 1 and repeats(self.terms[0])

    @property
    def is_rearrangement(self) -> bool:
        """Whether it takes the modes of one tensor in another order, and computes nothing."""
        return len(self.terms) == 1 and len(self.term) == len(self.terms[0])

    @property
    def verb(self) -> str:
        """What it does, in words with {} for the tensors; a rearrangement is called as in plans of moves."""
        if len(self.values) > 1:
            return "multiply {}"
        if self.is_diagonal:
            return "diagonal of {}"
        return "relayout {}" if self.is_rearrangement else "reduce {} locally"

    @property
    def family(self) -> str:
        """The name of its algorithm in the literature."""
        return "diagonal" if self.is_diagonal else family(self.assignment, self.terms, self.term, self.result.grid)

    def points(self, shapes: Iterable[Sequence[int]], extents: Mapping[str, int]) -> int:
        """The most products of elements that a rank computes, of tensors of some shapes."""
        spanned = [spanning(term, shape, extents) for term, shape in zip(self.terms, shapes, strict=True)]
        return points(self.assignment, extents, distinct("".join(spanned)), self.result.grid)

    def __str__(self) -> str:
        text = f"{','.join(self.terms)}->{self.term}"
        if self.assignment:
            text += f" with {write(self.assignment)}"
        if self.panels is not None:
            text += f", in {self.panels}"
        return text


Stage = Move | Product


def uses(stage: Stage) -> tuple[int, ...]:
    """The numbers of the tensors that a stage takes."""
    return (stage.value,) if isinstance(stage, Move) else stage.values


# --- JSON -------------------------------------------------------------------------------------------------------------


def end_tree(dist: Distribution) -> list[Any]:
    """A distribution for JSON."""
    return [str(dist.layout), dist.shape, dist.grid.shape]


def stage_tree(stage: Stage) -> dict[str, Any]:
    """A stage for JSON."""
    if isinstance(stage, Move):
        return {"move": stage.value, "plan": json.loads(stage.plan.to_json())}
    tree = {"multiply": stage.values, "terms": stage.terms, "term": stage.term, "result": end_tree(stage.result)}
    tree["assignment"] = write(stage.assignment)
    if stage.panels is not None:
        tree["panels"] = stage.panels
        tree["plans"] = [[json.loads(plan.to_json()) for plan in plans] for plans in stage.plans]
    return tree


def read_end(layout: str, shape: Sequence[int], grid: Sequence[int]) -> Distribution:
    """The distribution in JSON."""
    return distribute(as_layout(layout), tuple(shape), tuple(grid))


def read_stage(tree: Mapping[str, Any]) -> Stage:
    """The stage in JSON."""

    def plan(subtree: Any) -> Plan:
        return Plan.from_json(json.dumps(subtree))

    if "move" in tree:
        return Move(integer(tree["move"], "move"), plan(tree["plan"]))

    made, panels = read_end(*tree["result"]), None
    if "panels" in tree:
        letter, *numbers = tree["panels"]
        panels = Panels(str(letter), *integers(numbers, least=1))

    values, terms = integers(tree["multiply"], least=0), tuple(map(str, tree["terms"]))
    assignment = read_assignment(tree["assignment"], distinct("".join(terms)), made.grid)
    plans = tuple([tuple(map(plan, plans)) for plans in tree.get("plans", ())])
    return Product(values, terms, str(tree["term"]), made, assignment, panels, plans)
