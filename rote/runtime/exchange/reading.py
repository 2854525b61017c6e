"""One step of a plan on ranks that share memory: each reads what it needs in the others' blocks, and nothing is sent.

Before, a barrier must tell that all blocks are there; and none may be changed until all ranks have read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...compiler.step import Step
from ..comm.protocol import Array
from ..copy.regions import Region, identity, read_regions, whole
from ..copy.strided import Factor

__all__ = ["Reading"]


class Reading:
    """One step, bound to a rank.

    Attributes:
        step: itself.
        regions: what is read, by the rank whose block it is read from, in the order in which it is reduced.
    """

    __slots__ = ("_dtype", "regions", "step")

    def __init__(self, step: Step, dtype: np.dtype[Any], rank: int) -> None:
        self.step = step
        self.regions = read_regions(step.before, step.after, rank)
        self._dtype = dtype

    def readable(self, scaled: bool) -> list[tuple[int, Region]] | None:
        """The regions of all ranks' blocks that are read, as `Move` says; None if no kernel can."""
        if scaled or self.step.after.partial or any(region.combine for region in self.regions):
            return None
        return [(region.peer, region) for region in self.regions]

    def run(
        self,
        blocks: Sequence[Array] | Mapping[int, Array],
        out: Array,
        after: Sequence[Factor] = (),
        before: Mapping[int, Sequence[Factor]] | None = None,
    ) -> None:
        """Read this rank's block after the step into `out`, times factors of it.

        Args:
            blocks: those of all ranks, or of the peers that are read from.
            out: C-contiguous.
            after: factors of `out`.
            before: by rank, factors of its block.
        """
        source, target = self.step.before, self.step.after
        op = source.layout.op
        if target.partial:
            out[...] = identity(target.layout.op, self._dtype)
        late = source.partial and op != "sum"  # what is multiplied must not be reduced afterwards
        for region in self.regions:
            factors = before[region.peer] if before else ()
            region.copy(blocks[region.peer], out, op, factors, () if late else after)
        if late and after:
            whole(out.shape).copy(out, out, after=after)
