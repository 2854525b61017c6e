"""A walk and the way back, bound to ranks, in scratch that both have together."""

from __future__ import annotations

from dataclasses import dataclass

from rote.runtime.comm.protocol import Comm
from rote.runtime.executor.buffers import Scratch

from ..request.arguments import Norm, scale
from ..request.options import Options
from ..walk.walk import Walk
from .program import BoundWalk, Workspace, bind_walks

__all__ = ["Pair", "bind_pair"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Both directions of a transform, ready to run.

    Attributes:
        forward, backward: the walk, and its inverse.
        workspace: their scratch.
    """

    forward: BoundWalk
    backward: BoundWalk
    workspace: Workspace


def bind_pair(walk: Walk, comm: Comm, norm: Norm, options: Options, scratch: Scratch | None = None) -> Pair:
    """Bind a walk there and back, if need be in the scratch of another pair. Collective."""
    forward_scale, backward_scale = (scale(norm, walk.sizes, forward) for forward in (True, False))
    forward = BoundWalk(walk, comm, forward_scale, norm == "ortho", options)
    backward = BoundWalk(walk.inverse(), comm, backward_scale, norm == "ortho", options)
    return Pair(forward, backward, bind_walks(comm, forward, backward, scratch=scratch))
