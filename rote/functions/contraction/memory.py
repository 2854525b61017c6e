"""Memory: the bytes that a rank holds at most while a contraction runs.

A rank holds, at each stage,

    the operands, as they are given, to the end
    the tensors that earlier stages made and later ones take
    what the stage makes
    the buffers of its moves; in panels, those of a panel of each tensor that moves
    the packed copies of a product, whose blocks are not matrices in memory as they lie

Each stage has a `Need`, and `peaks` adds them up: for stages that are planned (`stage_needs`), and for a tree
of products that may still have to be cut into panels (`cheapest.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...caches import memoized
from ...compiler.plan import Plan
from ...compiler.step import Step
from ...layout.distribution import Distribution
from .local import packed_bytes
from .stages import Move, Product, Stage

__all__ = ["Need", "bytes_of", "move_need", "peaks", "product_need", "stage_needs", "while_moving"]

Tensor = tuple[Distribution, np.dtype[Any]]


class Need(NamedTuple):
    """What a stage does to the memory of a rank.

    Attributes:
        uses: the numbers of the tensors that it takes.
        made: the bytes of the tensor that it makes.
        more: the bytes that it needs in addition.
    """

    uses: tuple[int, ...]
    made: int
    more: int


@memoized(4096)  # a search counts the same few tensors in thousands of contractions
def bytes_of(dist: Distribution, dtype: np.dtype[Any]) -> int:
    """The most bytes of a tensor that a rank holds."""
    return prod(dist.max_local_shape()) * dtype.itemsize


def peaks(operands: Sequence[int], needs: Iterable[Need]) -> Iterator[int]:
    """The most bytes that a rank holds before and during each stage, from the bytes of the operands and the needs.

    >>> [*peaks([10, 10], [Need((0,), 40, 5), Need((2, 1), 20, 0)])]
    [20, 65, 80]
    """
    live, sizes = sum(operands), dict[int, int]()
    yield live

    for number, need in enumerate(needs, len(operands)):
        live += need.made
        yield live + need.more

        sizes[number] = need.made
        live -= sum([sizes.pop(value, 0) for value in need.uses])  # operands stay


def move_need(value: int, source: Distribution, target: Distribution, dtype: np.dtype[Any], peak: int) -> Need:
    """The need of a move, during which a rank holds at most some bytes, with both ends."""
    size = bytes_of(target, dtype)
    return Need((value,), size, peak - size - bytes_of(source, dtype))


def product_need(product: Product, dtype: np.dtype[Any], blocks: Sequence[Tensor], moving: Iterable[int]) -> Need:
    """The need of a product of blocks; in panels, of those of the first one, and of the moves for it."""
    size = bytes_of(product.result, dtype)
    if product.is_diagonal:
        return Need(product.values, size, size)

    dists, dtypes = zip(*blocks, strict=True)
    shapes, letter = [dist.max_local_shape() for dist in dists], product.panels.letter if product.panels else ""
    more = packed_bytes(shapes, product.terms, dtypes, product.term, dtype, letter)
    return Need(product.values, size, more + sum(moving))


def while_moving(steps: Sequence[Step], peak: int, dtype: np.dtype[Any]) -> int:
    """The most bytes that a rank holds during a move, whose plan counts `peak`.

    A reduction to all ranks has a copy of each rank's contribution, which the others read, or MPI's own buffer.
    """
    copies = [bytes_of(step.before, dtype) for step in steps if step.kind == "allreduce"]
    return peak + max(copies, default=0)


def stage_needs(stages: Sequence[Stage], values: Sequence[Tensor]) -> Iterator[Need]:
    """The needs of planned stages.

    Args:
        values: how each tensor lies, and its dtype: the operands, and what each stage makes.
    """

    def moving(plan: Plan) -> int:
        return while_moving(plan.steps, plan.cost.peak_bytes, plan.dtype)

    for stage, made in zip(stages, values[len(values) - len(stages) :], strict=True):
        if isinstance(stage, Move):
            yield move_need(stage.value, values[stage.value][0], *made, moving(stage.plan))
            continue

        # What moves in panels is multiplied panel by panel, and the first one is the largest.
        blocks = [values[value] for value in stage.values]
        for n, plans in enumerate(stage.plans[: len(blocks)]):
            if plans:
                blocks[n] = (plans[0].target, blocks[n][1])
        yield product_need(stage, made[1], blocks, [max(map(moving, {*plans})) for plans in stage.plans if plans])
