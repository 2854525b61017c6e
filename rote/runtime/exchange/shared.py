"""Ranks that can reach each other's memory read the others' blocks directly. Nothing is sent, and nothing is packed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from ...compiler.step import Step
from ...errors import CommError
from ..comm.cache import AtAddresses
from ..comm.collective_errors import ranks_apart
from ..comm.protocol import Array
from ..copy.regions import Contribution, Region, identity, joined, read_regions, whole
from ..copy.strided import Copy, Factor
from .messages import Messages, Transfer, place
from .method import Method

__all__ = ["NOTHING", "Direct", "Reading"]

NOTHING: Mapping[int, Any] = MappingProxyType({})
"""No blocks, factors or messages of any rank."""


class Reading:
    """One step, bound to a rank that reads the elements that it needs from the others' blocks.

    A barrier must come first, after which all blocks are complete. No block may change until all ranks have read.

    Attributes:
        step: the step.
        regions: the regions to read, one per rank that is read from, in the order of reduction.
    """

    __slots__ = ("_dtype", "regions", "step")

    def __init__(self, step: Step, dtype: np.dtype[Any], rank: int) -> None:
        self.step: Step = step
        self.regions: tuple[Region, ...] = read_regions(step.before, step.after, rank)
        self._dtype = dtype

    def readable(self, scaled: bool) -> list[tuple[int, Region]] | None:
        """The regions to read, with the ranks of their blocks, as in `Move`; None if no kernel can read them."""
        if scaled or self.step.after.partial or any(region.combine for region in self.regions):
            return None
        return [(region.peer, region) for region in self.regions]

    def copies(
        self,
        blocks: Sequence[Array] | Mapping[int, Array],
        out: Array,
        after: Sequence[Factor] = (),
        before: Mapping[int, Sequence[Factor]] = NOTHING,
        packed: Mapping[int, tuple[Region, Array]] = NOTHING,
    ) -> list[Copy]:
        """The copies that read this rank's new block into `out`; they may run repeatedly.

        Args:
            blocks: the blocks of all ranks, or of the peers that are read from.
            out: the new block, C-contiguous.
            after: factors of `out`.
            before: by rank, factors of its block.
            packed: by rank, a message to read instead of its block: its region, and the message.
        """
        source, target = self.step.before, self.step.after
        op = source.layout.op
        copies: list[Copy] = []
        if target.partial:
            copies.append(partial(out.fill, identity(target.layout.op, self._dtype)))
        late = source.partial and op != "sum"  # elements must not be multiplied before they are reduced
        parts = list[Contribution]()
        for region in self.regions:
            if region.peer in packed:
                parts.append((*packed[region.peer], ()))
            else:
                parts.append((region, blocks[region.peer], before.get(region.peer, ())))
        copies += joined(parts, out, op, () if late else after)
        if late and after:
            copies += whole(out.shape).bound(out, out, after=after)
        return copies


class Direct(Method):
    """Ranks of one process share references to their blocks; they meet before the blocks are read, and after."""

    unpacks = False
    meets = True

    def __init__(self, messages: Messages) -> None:
        step, grid = messages.step, messages.step.before.grid
        self._comm = messages.comm
        if self._comm.share_reference(None) is None:
            raise CommError("these ranks are not threads of one process, and cannot read each other's blocks")
        self._reading = Reading(step, messages.dtype, messages.rank)
        self._call = (step, messages.dtype)
        peers = {region.peer for region in self._reading.regions}
        self._places = {peer: place(grid, step.grid_modes, grid.coordinates(peer)) for peer in peers}
        self._prepared: AtAddresses[list[Copy]] = AtAddresses()

    def __call__(self, transfer: Transfer) -> None:
        blocks, factors = self._shown(transfer)

        def made(arrays: list[Array]) -> list[Copy]:
            out, *others = arrays
            return self._reading.copies(dict(zip(blocks, others, strict=True)), out, transfer.after, factors)

        for copy in self._prepared([transfer.out, *blocks.values()], made):
            copy()
        self._comm.barrier()

    def bound(self, transfer: Transfer) -> list[Copy]:
        blocks, factors = self._shown(transfer)
        meet = self._comm.barrier  # called before blocks are read, and after
        return [meet, *self._reading.copies(blocks, transfer.out, transfer.after, factors), meet]

    def _shown(self, transfer: Transfer) -> tuple[dict[int, Array], dict[int, Sequence[Factor]]]:
        """The blocks that this rank reads, and their factors; all ranks share references to theirs now."""
        shown = self._comm.share_reference((self._call, transfer.block, transfer.before))
        assert shown is not None, "it was possible when the method was made"
        blocks, factors = dict[int, Array](), dict[int, Sequence[Factor]]()
        for peer, at in self._places.items():
            if not isinstance(shown[at], tuple) or shown[at][0] != self._call:
                raise ranks_apart()  # that rank is in another call, and its block is another's
            _, blocks[peer], factors[peer] = shown[at]
        return blocks, factors
