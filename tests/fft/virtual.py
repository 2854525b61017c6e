"""A walk on virtual ranks, one after the other: NumPy's and SciPy's transforms, `rote.simulate` between them."""

from __future__ import annotations

import numpy as np
import scipy.fft

from rote import simulate
from rote.fft.program.twiddles import factor
from rote.fft.walk import Transform


def walked(walk, array):
    """The array that a walk makes of another, without any scaling."""
    dtypes = walk.dtypes()
    blocks = simulate.scatter(np.asarray(array, walk.dtype), walk.source)
    ranks = range(len(blocks))
    for number, stage in enumerate(walk.stages):
        if number:
            plan = walk.transitions[number - 1]
            blocks = simulate.run(plan, shaped(blocks, plan.source))
        blocks = shaped(blocks, stage.before)
        for action in stage.done:
            if isinstance(action, Transform):
                after = [stage.after.local_shape(r) for r in ranks]
                blocks = [transformed(action, blocks[r], after[r], dtypes[number + 1]) for r in ranks]
            else:
                blocks = [blocks[r] * factor(action, stage.before, r, blocks[r].dtype) for r in ranks]
    return simulate.gather(shaped(blocks, walk.target), walk.target)


def shaped(blocks, dist):
    return [block.reshape(dist.local_shape(rank)) for rank, block in enumerate(blocks)]


def transformed(action, block, after, dtype):
    if not block.size and not np.prod(after):
        return np.zeros(after, dtype if action.kind[0] in "ri" else block.dtype)
    if action.kind == "fft":
        found = np.fft.fftn(block, axes=action.modes)
    elif action.kind == "ifft":
        found = np.fft.ifftn(block, axes=action.modes, norm="forward")
    elif action.kind == "rfft":
        found = np.fft.rfftn(block, axes=action.modes)
    elif action.kind[:3] in ("dct", "dst"):
        found = getattr(scipy.fft, f"{action.kind[:3]}n")(block, int(action.kind[3]), axes=action.modes)
    else:
        sizes = [after[m] for m in action.modes]
        found = np.fft.irfftn(block, sizes, axes=action.modes, norm="forward")
    return found
