"""Detection of walks in which a rank holds more of the tensor than its part, and a warning about them."""

from __future__ import annotations

import warnings
from itertools import chain
from math import prod

from rote.compiler.explain import in_bytes
from rote.errors import GatherWarning, LayoutError, counted
from rote.layout.layout import Distribution
from rote.runtime.comm.protocol import Comm

from ..request.request import TransformRequest
from ..walk.walk import Stage, Transform, Walk
from .ragged import ragged

__all__ = ["crowded", "gathered_bytes", "warn_if_gathered"]

_CROWDED = 2  # times its part of the tensor that a rank may hold


def crowded(walk: Walk) -> bool:
    """Whether a walk gathers a split axis on every rank, or fills some rank to more than twice its first share."""
    before = max(_times(walk.source), 1.0)
    fullest = max((_times(stage.before) for stage in walk.stages if _transforms(stage)), default=0.0)
    return fullest > _CROWDED * before or gathered_bytes(walk) > 0


def gathered_bytes(walk: Walk) -> int:
    """The most bytes per rank while an axis is whole on every rank that had a part of it; 0 if none ever is.

    >>> import numpy as np
    >>> from rote.layout.layout import parse
    >>> from .choose import walk_of
    >>> from ..request.request import as_request
    >>> source = parse("block[(0)]").on(1000, 4)
    >>> [gathered_bytes(walk_of(source, as_request((1000,), (0,), kind, np.dtype("f8")))) for kind in ("rfft", "dct2")]
    [0, 8000]
    """
    copies, own, most = _copies(walk.source), prod(walk.source.max_local_shape()), 0
    for stage, dtype in zip(walk.stages, walk.dtypes(), strict=False):
        held = prod(stage.before.max_local_shape())
        if held > own and _transforms(stage) and _copies(stage.before) > copies:
            most = max(most, held * dtype.itemsize)
    return most


def warn_if_gathered(walk: Walk, request: TransformRequest, comm: Comm, depth: int) -> None:
    """Warn on rank 0 if a walk gathers, with the bytes that each rank holds and advice on how to avoid it.

    Args:
        depth: the number of calls between the user's call and this one.
    """
    nbytes = gathered_bytes(walk)
    if not nbytes or comm.rank:
        return
    own = prod(walk.source.max_local_shape()) * walk.dtype.itemsize
    warnings.warn(
        f"each of {counted(comm.size, 'rank')} comes to hold {in_bytes(nbytes)} of {walk.source}, a whole axis of "
        f"it, in place of its {in_bytes(own)}; {_cure(walk.source, request)}",
        GatherWarning,
        stacklevel=depth + 2,
    )


def _cure(source: Distribution, request: TransformRequest) -> str:
    """The advice on how to avoid a gather."""
    try:
        ragged(source, request)
    except LayoutError as error:
        whole = [a for a in range(len(source.shape)) if a not in request.axes]
        another = f"with axis {whole[0]} over the ranks" if whole else "as a part of a tensor of more axes"
        return f"{error}; on 1 rank, or {another}, nothing is gathered"
    return 'algorithm="ragged", or "auto", gathers nothing, for any number of points and of ranks'


def _transforms(stage: Stage) -> bool:
    """Whether a stage transforms something."""
    return any(isinstance(action, Transform) for action in stage.done)


def _copies(dist: Distribution) -> int:
    """The number of ranks that hold each element."""
    return dist.grid.size // prod(split.parts for split in chain(*dist.splits))


def _times(dist: Distribution) -> float:
    """The elements of the fullest rank, relative to an even share of the tensor."""
    return dist.grid.size * prod(dist.max_local_shape()) / max(prod(dist.view_shape), 1)
