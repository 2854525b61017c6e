"""Hypothesis strategies of pairs of distributions; those of one are in `rote.testing`."""

from __future__ import annotations

from cases import pick_grid, pick_grids, pick_layout, pick_shape
from hypothesis import strategies as st

from rote.testing import distributions, layouts

__all__ = ["distributions", "layouts", "pairs", "pairs_across", "picker"]


def picker(draw):
    """What picks one of some options, as the seeded generators of `rote.testing` do, by Hypothesis."""
    return lambda options: draw(st.sampled_from(options))


@st.composite
def pairs(draw):
    """Two distributions of one tensor on one grid."""
    pick = picker(draw)
    grid, shape = pick_grid(pick), pick_shape(pick)
    return tuple(pick_layout(pick, shape, grid).on(shape, grid) for _ in range(2))


@st.composite
def pairs_across(draw):
    """Two distributions of one tensor on two different grids over the same ranks."""
    pick = picker(draw)
    grids, shape = pick_grids(pick), pick_shape(pick)
    return tuple(pick_layout(pick, shape, grid).on(shape, grid) for grid in grids)
