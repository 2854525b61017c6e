"""Operations on digits, carried out by NumPy on the blocks of all ranks: what each says in its definition, and no more.

A block is an array with one axis for each of its digits, and a list that says which.
"""

from __future__ import annotations

from functools import reduce
from math import prod

import numpy as np

from rote.compiler.digits import Table
from rote.layout.layout import identity
from rote.runtime.regions import REDUCE


def run(digits, blocks):
    """The blocks of all ranks after a plan, from those of its padded source, which are of one shape."""
    for step, moved in zip(digits.plan.steps, digits.steps, strict=True):
        blocks = by_table(moved, blocks) if isinstance(moved, Table) else by_digits(moved, blocks)
        assert all(block.shape == step.after.max_local_shape() for block in blocks)
    return blocks


def by_digits(moved, blocks):
    """The blocks after one transition."""
    axes = [digit for mode in moved.before for digit in mode]
    values = [block.reshape([moved.sizes[digit] for digit in axes]) for block in blocks]

    for operation in moved.operations:
        values, axes = operate(operation, values, axes, moved.ops)

    order = [digit for mode in moved.after for digit in mode]
    shape = [prod(moved.sizes[digit] for digit in mode) for mode in moved.after]
    return [block.transpose([axes.index(digit) for digit in order]).reshape(shape) for block in values]


def operate(operation, blocks, axes, ops):
    """The blocks after one operation, and the digits of their axes."""
    ranks, number = range(len(blocks)), operation.number
    rest = [digit for digit in axes if digit not in operation.leaving]
    sizes = [size for _, size in operation.over]

    def part(sender, rank):
        """What of a sender's block is for a rank: where digits leave, all that have the rank's values."""
        if not operation.leaving:
            return blocks[sender]
        front = [axes.index(digit) for digit in (*operation.leaving, *rest)]
        return blocks[sender].transpose(front)[np.unravel_index(number(rank), sizes)]

    def group(rank):
        """The ranks that differ from a rank in the digits of the operation alone, in the order of their numbers."""
        base = rank - sum(rank // weight % size * weight for weight, size in operation.over)
        strides = [weight for weight, _ in operation.over]
        return [base + int(np.dot(at, strides)) for at in np.ndindex(*sizes)]

    kind = operation.kind
    if kind == "permute":
        senders = {operation.receiver(rank): rank for rank in ranks}
        assert len(senders) == len(blocks)
        return [blocks[senders[rank]] for rank in ranks], axes
    if kind == "fill":
        filled = []
        for rank in ranks:
            places = np.full([*sizes, *blocks[rank].shape], identity(ops[1], blocks[rank].dtype))
            at = np.unravel_index(number(rank), sizes)
            if operation.coming or not any(at):
                places[at] = blocks[rank]
            filled.append(places if operation.coming else places[(0,) * len(sizes)])
        return filled, [*operation.coming, *axes]
    if kind == "slice":
        return [part(rank, rank) for rank in ranks], rest

    parts = [[part(sender, rank) for sender in group(rank)] for rank in ranks]
    if kind == "reduce":
        return [reduce(REDUCE[ops[0]], some) for some in parts], rest

    assert kind in ("exchange", "gather")
    assert bool(operation.leaving) == (kind == "exchange")
    coming = [np.stack(some).reshape(*sizes, *some[0].shape) for some in parts]
    return coming, [*operation.coming, *rest]


def all_places(parts):
    """The places of all elements, for each rank and peer, from those in parts: their sums."""
    places = np.zeros((*parts[0].shape[:2], 1), np.int64)
    for part in parts:
        places = (places[..., :, None] + part[..., None, :]).reshape(*part.shape[:2], -1)
    return places


def by_table(table, blocks):
    """The blocks after a step by places: each in an array of the largest block's shape."""
    before, after = table.step.before, table.step.after
    sent, received = map(all_places, table.places())
    results = []
    for rank in range(len(blocks)):
        place, values = received[rank].ravel(), np.ravel([blocks[p].ravel()[sent[p, rank]] for p in range(len(blocks))])
        arrives = place < prod(after.max_local_shape())
        result = np.full(prod(after.max_local_shape()), identity(after.layout.op, blocks[0].dtype))
        result[place[arrives]] = identity(before.layout.op, result.dtype)
        REDUCE[before.layout.op].at(result, place[arrives], values[arrives])
        results.append(result.reshape(after.max_local_shape()))
    return results
