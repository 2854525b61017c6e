"""A plan run message by message: every rank cuts its regions out, and puts what it gets into its new block."""

from __future__ import annotations

import numpy as np

from rote.compiler.movement import movement
from rote.layout.layout import identity
from rote.runtime.regions import receive_regions, send_regions


def run(plan, blocks):
    """The blocks in the plan's target; `rote.simulate.run` has the same, by definition."""
    for step in plan.steps:
        blocks = _step(step, blocks)
    return blocks


def packed(region, block):
    """The message of a region from a block."""
    message = np.empty(region.shape, block.dtype)
    region.copy(np.asarray(block, order="C"), message)
    return message


def _step(step, blocks):
    source, target, dtype = step.before, step.after, blocks[0].dtype
    messages = {}
    for rank, block in enumerate(blocks):
        for region in send_regions(movement(source, target), rank):
            message = packed(region, block)
            # What a rank keeps is not rounded, except in an allgather, which rounds all copies.
            if step.wire is not None and (region.peer != rank or step.kind == "allgather"):
                message = message.astype(step.wire)
            messages[rank, region.peer] = message
    results = []
    for rank in range(target.grid.size):
        block = np.full(target.local_shape(rank), identity(target.layout.op, dtype), dtype)
        for region in receive_regions(movement(source, target), rank):
            message = messages.pop((region.peer, rank))
            region.copy(message.astype(dtype, copy=False), block, source.layout.op)
        results.append(block)
    assert not messages, "every message is received"
    return results
