"""A program for any ranks: plans that multiply while they move are plans, times a tensor.

In one process: `rote.run(check, ranks)`; under mpiexec as part of moves.py.
"""

from __future__ import annotations

from itertools import chain
from math import prod

import numpy as np
from execute import claims, moves
from layout import definition

import rote
from rote.errors import PlanError
from rote.layout.layout import Layout
from rote.runtime.plans import BoundPlan, bind


def plans(ranks, number):
    """The seeded transitions of `moves`, compiled, and the plans of `claims`."""
    pairs = chain(moves.transitions(ranks, number, seed=2), moves.transitions_across(ranks, number // 5, seed=2))
    return chain((rote.compile(*pair) for pair in pairs), claims.plans(ranks, number // 2, seed=2))


def numbers(dist):
    """Per place of the view, the row-major number of the tensor's element."""
    plain = Layout(((),) * dist.order, dist.layout.view)
    return definition.block_indices(plain, dist.shape, (1,))[0]


def pick_factor(rng, dist, dtype, rank):
    """A factor that depends on some of the view's modes: as a tensor, and as this rank may give it.

    Of small whole numbers, which every dtype multiplies exactly, in any order.
    """
    low, high = (1, 5) if dtype.itemsize >= 4 else (1, 3) if dtype.itemsize == 2 else (0, 2)
    modes = [m for m in range(dist.order) if rng.random() < rng.choice([0, 0.4, 1], p=[0.2, 0.6, 0.2])]
    values = rng.integers(low, high, [n if m in modes else 1 for m, n in enumerate(dist.view_shape)]).astype(dtype)
    if dtype.kind == "c":
        values = values + rng.choice(np.array([0, 1j, -1j], dtype), values.shape)
    tensor = np.empty(prod(dist.shape), dtype)
    tensor[numbers(dist)] = values
    index = dist.indices(rank)
    mine = values[np.ix_(*(index[m] if m in modes else [0] for m in range(dist.order)))] if dist.order else values
    return tensor.reshape(dist.shape), pick_form(rng, mine)


def pick_form(rng, array):
    """The same factor in another form, which broadcasts alike."""
    forms = [array]
    if array.ndim:
        forms += [np.asfortranarray(array), np.repeat(array, 2, -1)[..., ::2]]
    while array.ndim and array.shape[0] == 1:
        array = array[0]
        forms.append(array)
    if not array.ndim:
        forms.append(array.item() if array.dtype.kind in "fc" else array[()])
    if array.dtype.kind == "f":
        forms.append(array.astype("i1"))
    return forms[rng.integers(len(forms))]


def pick_factors(rng, dist, dtype, rank):
    """None to two factors of one end of a plan, and the tensor that they make up; none where none is allowed."""
    number = rng.choice([0, 1, 1, 2]) if not dist.partial or dist.layout.op == "sum" else 0
    found = [pick_factor(rng, dist, dtype, rank) for _ in range(number)]
    whole = np.ones(dist.shape, dtype)
    for tensor, _ in found:
        whole = whole * tensor
    return whole, [factor for _, factor in found]


def run(comm, plan, seed, method="auto"):
    """A plan with random factors, on this rank; what is wrong with it, if anything, and whether there were factors."""
    source, target, rng = plan.source, plan.target, np.random.default_rng(seed)
    blocks = moves.blocks_of(source, plan.dtype, seed)[1]
    first, before = pick_factors(rng, source, plan.dtype, comm.rank)
    last, after = pick_factors(rng, target, plan.dtype, comm.rank)
    mine, program = blocks[comm.rank].copy(), BoundPlan(plan, comm, method, before, after)
    found = program(mine)
    out = np.full((*found.shape, 2), 1, plan.dtype)[..., 0]  # not contiguous
    program(mine, out)
    laid = definition.blocks(source.layout, source.grid.shape, first)
    scaled = [block * factor for block, factor in zip(blocks, laid, strict=True)]
    there = definition.blocks(target.layout, target.grid.shape, last)[comm.rank]
    right = rote.simulate.run(plan, scaled)[comm.rank] * there
    what = f"{plan} of {plan.dtype} on rank {comm.rank}, before {before}, after {after}:"
    wrong = ""
    if not (np.array_equal(found, right) and np.array_equal(out, right)):
        wrong = f"{what}\n{found}\nis not\n{right}"
    if not target.partial or target.layout.op == "sum":
        product = definition.blocks(target.layout, target.grid.shape, first * last)[comm.rank]
        if not np.array_equal(found, bind(plan, comm, method)(mine) * product):
            wrong = f"{what} is not the plan, times the factors"
    if not np.array_equal(mine, blocks[comm.rank]):
        wrong = f"{what} the input was changed"
    return wrong, bool(before), bool(after)


def check_refused(comm, plan):
    """What is partial, and no sum, is not multiplied; on all ranks alike."""
    for name, dist in (("before", plan.source), ("after", plan.target)):
        if dist.partial and dist.layout.op != "sum":
            given = {name: [np.ones((), plan.dtype)]}
            text = moves.raised(PlanError, lambda given=given: BoundPlan(plan, comm, **given))
            assert text.startswith(f"`{name}` multiplies each contribution") and str(dist.layout) in text


def check(comm, number=150, method="auto"):
    """Seeded plans; returns the kinds of steps that multiplied, before and after."""
    kinds = set()
    for seed, plan in enumerate(plans(comm.size, number)):
        wrong, before, after = run(comm, plan, seed, method)
        if wrong:
            raise AssertionError(wrong)
        check_refused(comm, plan)
        steps = [step.kind for step in plan.steps] or ["none"]
        kinds |= {(steps[0], "before")} if before else set()
        kinds |= {(steps[-1], "after")} if after else set()
    return kinds
