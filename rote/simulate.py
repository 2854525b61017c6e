"""Simulation of any number of ranks, one by one in one process: cut an array, run a plan on its blocks, gather them.

A plan of a move takes one list of blocks and runs here. A contraction takes one list for each operand, and runs itself
by `Contraction.simulated`: this module knows only moves.

>>> import numpy as np, rote
>>> plan = rote.compile("block[(0),()] -> [(),(0)]", shape=(4, 6), grid=3)
>>> array = np.arange(24).reshape(4, 6)
>>> blocks = rote.simulate.run(plan, rote.simulate.scatter(array, plan.source))
>>> [block.shape for block in blocks], np.array_equal(rote.simulate.gather(blocks, plan.target), array)
([(4, 2), (4, 2), (4, 2)], True)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate, product, repeat
from math import prod
from typing import Any, Protocol, overload

import numpy as np
import numpy.typing as npt

from .compiler.movement import SENDS
from .compiler.peers import RECEIVES, PeerRule
from .compiler.plan import Plan
from .compiler.step import Step
from .errors import LayoutError
from .layout.distribution import Distribution
from .layout.grid import ranks_at
from .layout.layout import identity
from .runtime.arrays import as_array
from .runtime.placement import check_blocks
from .runtime.regions import REDUCE, cut

__all__ = ["gather", "run", "scatter"]

Array = npt.NDArray[Any]


class Simulated(Protocol):
    """What runs on the blocks of all ranks in this process, such as a Contraction."""

    def simulated(self, blocks: Sequence[Sequence[Array]], /) -> list[Array]: ...


def scatter(array: npt.ArrayLike, dist: Distribution) -> list[Array]:
    """The block of every rank, by definition, in rank order.

    Parameters
    ----------
    array : ArrayLike
        An array of shape `dist.shape`.
    dist : Distribution
        The distribution of the blocks; if it is partial, coordinate 0 gets the values, and the others get the neutral
        element of the reduction.

    Raises
    ------
    LayoutError
        The array has another shape than the distribution.
    TypeError
        The array has a mask.

    Examples
    --------
    >>> import rote
    >>> blocks = rote.simulate.scatter([1, 2, 3, 4, 5], rote.parse("[(0)]").on(5, 2))
    >>> [block.tolist() for block in blocks]
    [[1, 3, 5], [2, 4]]
    """
    whole = as_array(array)
    if not isinstance(dist, Distribution):
        raise TypeError(f"blocks are those of a Distribution, not {dist!r}\nwrite rote.parse(layout).on(shape, grid)")
    if whole.shape != dist.shape:
        raise LayoutError(f"the array has shape {whole.shape}, the distribution {dist.shape}")
    return [cut(whole, dist, rank) for rank in range(dist.grid.size)]


@overload
def run(plan: Plan, blocks: Sequence[Array]) -> list[Array]: ...
@overload
def run(plan: Simulated, blocks: Sequence[Sequence[Array]]) -> list[Array]: ...
def run(plan: Plan | Simulated, blocks: Sequence[Any]) -> list[Array]:
    """Run a plan or a contraction on blocks in this process.

    If the plan rounds elements in messages, they are rounded here, too. A contraction has the bits that ranks get.

    Parameters
    ----------
    plan : Plan | Simulated
        The plan.
    blocks : Sequence[Any]
        One per rank, in rank order, in the plan's source; of a contraction such a list for each operand, of the plan's
        dtypes. They keep their values.

    Returns
    -------
    list[Array]
        The blocks in the plan's target, or of the result, in rank order.

    Raises
    ------
    LayoutError
        A block has another shape than its rank's in the plan's source, or a contraction's another dtype; a contraction
        has another number of operands.

    See Also
    --------
    rote.simulate.scatter : Make the blocks of an array.
    rote.simulate.gather : Join blocks to an array.

    Examples
    --------
    >>> import numpy as np, rote
    >>> plan = rote.compile("block[(0)] -> [(0)]", shape=5, grid=2)
    >>> [block.tolist() for block in rote.simulate.run(plan, [np.array([1, 2, 3]), np.array([4, 5])])]
    [[1, 3, 5], [2, 4]]

    >>> dot = rote.compile_einsum("i,i->", [(3,), (3,)], ["block[(0)]"] * 2, grid=2, dtype="i8")
    >>> operands = [rote.simulate.scatter([1, 2, 3], dist) for dist in dot.operands]
    >>> [int(block) for block in rote.simulate.run(dot, operands)]
    [14, 14]
    """
    if not isinstance(plan, Plan):
        return plan.simulated(blocks)

    check_blocks(blocks, plan.source)
    current = [np.array(block) for block in blocks]
    for step in plan.steps:
        current = _run_step(step, current)
    return current


def gather(blocks: Sequence[Array], dist: Distribution) -> Array:
    """Return the array that the blocks make up, by definition: replicas are read once, contributions are reduced.

    Parameters
    ----------
    blocks : Sequence[Array]
        One per rank, in rank order, each of shape `dist.local_shape(rank)`.
    dist : Distribution
        The distribution of the blocks.

    Returns
    -------
    Array
        A new array of `dist.shape`.

    Raises
    ------
    LayoutError
        A block has another shape than its rank's.

    Examples
    --------
    >>> import numpy as np, rote
    >>> rote.simulate.gather([np.array([1, 3, 5]), np.array([2, 4])], rote.parse("[(0)]").on(5, 2))
    array([1, 2, 3, 4, 5])
    """
    check_blocks(blocks, dist)
    whole = np.empty(dist.shape, blocks[0].dtype)
    roots = dict(dist.layout.rooted)
    one_of_each = {g: roots.get(g, 0) for g, role in enumerate(dist.roles) if role.name != "split"}
    for rank in ranks_at(dist.grid, one_of_each):
        not_partial = {g: c for g, c in enumerate(dist.grid.coordinates(rank)) if g not in dist.partial}
        contributions = [blocks[other] for other in ranks_at(dist.grid, not_partial)]
        whole[dist.tensor_indices(rank)] = reduce(REDUCE[dist.layout.op], contributions)
    return whole


def _run_step(step: Step, blocks: list[Array]) -> list[Array]:
    """The blocks after a step, by definition: the elements of a rank are looked up in the blocks of its senders.

    The rules of the movement say who these are. What none of them holds is neutral. Contributions are added in the
    order of ranks.
    """
    #     before, [(0)] on 2 ranks     memory         place of each element     after, block[(0)]: rank 1 needs
    #     elements 0 2 4 | 1 3         0 2 4 1 3      0 3 1 4 2                 elements 3 4, and reads memory[[4, 2]]
    source, target, memory = step.before, step.after, np.concatenate([block.reshape(-1) for block in blocks])
    first = [0, *accumulate([block.size for block in blocks])]
    neutral, combine = identity(target.layout.op, memory.dtype), REDUCE[source.layout.op]
    results = [np.full(target.local_shape(rank), neutral, memory.dtype) for rank in range(target.grid.size)]

    before, after, place = _elements(source), _elements(target), np.full(prod(source.shape), -1)
    for peers, ranks in _receivers(step).items():
        single = {g: some[0] for g, some in enumerate(peers) if len(some) == 1}
        for later, contribution in enumerate(product(*[peers[g] for g in source.partial])):
            senders = [*ranks_at(source.grid, single | dict(zip(source.partial, contribution, strict=True)))]
            for rank in senders:
                place[before[rank]] = np.arange(first[rank], first[rank + 1])

            for rank in ranks:
                at, block = place[after[rank]], results[rank].reshape(-1)
                arrives, at = at >= 0, at[at >= 0]
                values = memory[at]
                if step.wire is not None:
                    # What a rank keeps is not rounded, except in an allgather, which rounds all copies.
                    sent = (at < first[rank]) | (at >= first[rank + 1]) | (step.kind == "allgather")
                    values[sent] = values[sent].astype(step.wire)
                block[arrives] = combine(block[arrives], values) if later else values

            place[np.concatenate([before[rank] for rank in senders])] = -1  # the next contribution is of others
    return results


def _receivers(step: Step) -> dict[tuple[range, ...], list[int]]:
    """The ranks that data arrives at, by the coordinates of their senders along each grid mode of the source."""
    source, target, rules = step.before, step.after, step.movement.rules(SENDS)
    receivers = dict[tuple[range, ...], list[int]]()
    for rank in range(target.grid.size):
        peers = tuple(map(PeerRule.peers, rules, source.grid.coordinates(rank), repeat(RECEIVES)))
        if all(peers) and target.holds(rank) and (not step.across or target.contributes(rank)):
            receivers.setdefault(peers, []).append(rank)
    return receivers


def _elements(dist: Distribution) -> list[Array]:
    """Per rank, the row-major numbers of its elements in the tensor, in the order of its block."""
    numbers, known = np.arange(prod(dist.shape)).reshape(dist.shape), dict[object, Array]()
    blocks = [*map(dist.index_sets, range(dist.grid.size))]
    for rank, sets in enumerate(blocks):
        if sets not in known:  # replicas have the same
            known[sets] = np.ravel(numbers[dist.tensor_indices(rank)])
    return [known[sets] for sets in blocks]
