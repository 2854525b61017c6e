"""A user's program, for the type checker: it sees each lazy public name, with its own type."""

from __future__ import annotations

import rote

lay: rote.Layout = rote.parse("block[(0),(),(1)]")
same: rote.Layout = rote.L((0), (), (1), kind="block") | rote.root(2)
other: rote.Layout = rote.L(rote.block(0), (), rote.cyclic(1, 4)) + rote.partial(3)
move: rote.Transition = lay >> other
read: rote.Transition = rote.parse_transition("block[(0),(1)] -> block[(),(0)]")
dist: rote.Distribution = lay.on((8, 9, 10), rote.Grid((2, 2)))
plan: rote.Plan = rote.compile(dist, dist, machine=rote.Machine())
owners: tuple[int, ...] = dist.owners((3, 4, 5))
errors: tuple[type[rote.RoteError], ...] = (rote.NotationError, rote.LayoutError, rote.PlanError, rote.CommError)


def spectrum(x: rote.DistTensor) -> rote.DistTensor:
    """The FFT of a tensor is a tensor."""
    return rote.fft.fftn(x)


# A misspelt name is an error: were it none, the comment that forgives it would be one.
rote.Lay0ut  # type: ignore[attr-defined]  # noqa: B018
