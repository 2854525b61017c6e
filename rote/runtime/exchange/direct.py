"""Ranks of one process: each reads what it needs straight out of the others' blocks, in one sweep."""

from __future__ import annotations

from ...errors import CommError
from .messages import Messages, Transfer, place
from .method import Method
from .reading import Reading

__all__ = ["Direct"]


class Direct(Method):
    """References to blocks, and two meetings: before they are read, and after."""

    __slots__ = ("_comm", "_places", "_reading")
    unpacks = False

    def __init__(self, messages: Messages) -> None:
        step, grid = messages.step, messages.step.before.grid
        self._comm = messages.comm
        if self._comm.share_reference(None) is None:
            raise CommError("these ranks are not threads of one process, and cannot read each other's blocks")
        super().__init__()
        self._reading = Reading(step, messages.dtype, messages.rank)
        peers = {region.peer for region in self._reading.regions}
        self._places = {peer: place(grid, step.grid_modes, grid.coordinates(peer)) for peer in peers}

    def __call__(self, transfer: Transfer) -> None:
        shown = self._comm.share_reference((transfer.block, transfer.before))
        assert shown is not None, "it was possible when the method was made"
        blocks = {peer: shown[at][0] for peer, at in self._places.items()}
        factors = {peer: shown[at][1] for peer, at in self._places.items()}
        self._reading.run(blocks, transfer.out, transfer.after, factors)
        self._comm.barrier()
