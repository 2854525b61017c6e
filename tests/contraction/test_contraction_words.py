"""The figures of contractions, counted again rank by rank from the indices of every block, and from what runs."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from contraction.contractions import contraction, request_of
from marks import PARTS
from parts import SOME, share

import rote
from rote.functions.contraction.plan import contraction_of
from rote.functions.contraction.stages import Move


def elements(dist, rank):
    """The elements of a rank's block, each as its tuple of indices."""
    if not dist.holds(rank):
        return set()
    held = [np.broadcast_to(each, dist.local_shape(rank)).ravel().tolist() for each in dist.tensor_indices(rank)]
    return {*zip(*held, strict=True)} if held else {()}


def received(step, rank):
    """The elements that a rank receives in a step: what it needs and lacks, and the contributions of others."""
    before, after = step.before, step.after
    needed, held = elements(after, rank), elements(before, rank)
    added = [g for g in before.partial if g not in after.partial]
    ranks = prod(before.grid.shape[g] for g in step.grid_modes)
    match step.kind:
        case "slice" | "zero_fill" | "relayout":
            return 0
        case "allreduce":  # contributions pass through all ranks, and sums back; a first and a last rank get one less
            return 2 * len(needed) - 2 * len(needed) // ranks
        case "reduce":  # the root is last for all elements, each other rank first for its part
            return len(needed) or len(held) - len(held) // max(ranks - 1, 1)
        case "reduce_scatter":
            return (ranks - 1) * len(needed)
    contributions = prod(before.grid.shape[g] for g in added)
    return contributions * len(needed) - len(needed & held)


def words_of(plan, ranks):
    """The elements that each rank receives in a plan."""
    return np.array([sum(received(step, rank) for step in plan.steps) for rank in range(ranks)])


def plans_in(stage):
    """The plans of a stage, each as often as it runs."""
    if isinstance(stage, Move):
        return [stage.plan]
    count = stage.panels.count if stage.panels else 1
    return [plan for plans in stage.plans for plan in plans * (count if len(plans) == 1 else 1)]


@pytest.mark.parametrize("part", PARTS)
def test_bytes_are_those_that_ranks_receive(part):
    """In each move the busiest rank receives what the contraction says, and no rank in all of them more than that."""
    moved, scattered = 0, 0
    for seed in share(range(2000, 2200), part, 8, of=8):
        plan = contraction(seed)
        total, ranks = 0, plan.result.grid.size
        of_ranks = np.zeros(ranks, int)
        for stage in plan.stages:
            for move in plans_in(stage):
                words = words_of(move, ranks) * move.dtype.itemsize
                assert move.cost.bytes == words.max(), move
                total, of_ranks = total + int(words.max()), of_ranks + words
                scattered += any(step.kind == "reduce_scatter" for step in move.steps)
        assert plan.cost.bytes == total >= of_ranks.max(), plan
        assert of_ranks.max() >= plan.lower_bound, plan.explain()
        moved += total > 0
    assert moved > {SOME: 3}.get(part, 18) and scattered >= {SOME: 0}.get(part, 3)


@pytest.mark.parametrize("part", PARTS)
def test_flops_are_those_of_the_busiest_rank(part):
    """Two per product of elements: the most, over ranks, of the products of their numbers of indices."""
    for seed in share(range(3000, 3200), part, 12, of=8):
        plan = contraction(seed)
        dists, total = [*plan.operands], 0
        for stage in plan.stages:
            if isinstance(stage, Move):
                dists.append(stage.plan.target)
                continue
            counts = np.zeros(stage.result.grid.size, int)
            for panel, rank in product(range(stage.panels.count if stage.panels else 1), range(len(counts))):
                sizes = {}
                for k, (value, term) in enumerate(zip(stage.values, stage.terms, strict=True)):
                    plans = stage.plans[k] if stage.plans else ()
                    here = plans[panel % len(plans)].target if plans else dists[value]
                    for letter, n, whole in zip(term, here.local_shape(rank), dists[value].shape, strict=True):
                        if whole == plan.extents[letter]:
                            sizes[letter] = n
                counts[rank] += prod(sizes.values())
            if len(stage.terms) > 1 or len(stage.term) < len(stage.terms[0]):  # otherwise nothing is computed
                total += 2 * int(counts.max())
            dists.append(stage.result)
        assert plan.cost.flops == total, plan


@pytest.mark.parametrize("seed", range(0, 40, 3))
def test_traces_add_up_to_the_bytes(seed):
    """What `rote.trace` lists on each of the in-process ranks is what the plan of the same call says."""
    request = request_of(seed, partial=False)
    text, grid, shapes = str(request.subscripts), request.grid, request.shapes
    layouts = [dist.layout for dist in request.layouts]
    target = contraction_of(request).result.layout
    plan = rote.compile_einsum(text, shapes, layouts=layouts, grid=grid.shape, dtype="i8", layout=target)
    arrays = [np.arange(prod(shape)).reshape(shape) for shape in shapes]

    def program(comm):
        pairs = zip(arrays, layouts, strict=True)
        tensors = [rote.DistTensor.from_global(array, layout, comm, grid.shape) for array, layout in pairs]
        with rote.trace() as moves:
            result = rote.einsum(text, *tensors, layout=target, grid=grid.shape)
        return sum(move.nbytes for move in moves), result.to_global()

    for nbytes, value in rote.run(program, ranks=grid.size):
        assert nbytes == plan.cost.bytes
        np.testing.assert_array_equal(value, np.einsum(text, *arrays))
