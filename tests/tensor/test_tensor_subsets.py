"""Tensors on some of the ranks, communicators of grid modes, and grids of which the number of ranks says a part."""

from __future__ import annotations

from itertools import product
from math import prod
from pathlib import Path

import pytest
import subsets
from marks import make_checks, mpi_parts, parts_of

import rote
from rote import Grid, LayoutError

PROGRAM = Path(__file__).with_name("subsets.py")


@pytest.mark.parametrize(("ranks", "check", "args"), parts_of(subsets.CHECKS, 1, 2, 4, 6))
def test_on_ranks_of_this_process(ranks, check, args):
    """Tensors on some of the in-process ranks do what they must."""
    rote.run(check, ranks, args)


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "part"), mpi_parts(), indirect=["job"])
def test_on_mpi_ranks(job, part):
    """Tensors on some of MPI's ranks do too."""
    make_checks(job, PROGRAM, subsets.CHECKS, part)


def test_extents_are_found_as_balanced_as_can_be():
    """Law: what is given stays, all extents make up the ranks, and those found are of all that do the most balanced.

    Of two grids the more balanced one has the smaller largest extent, then the smaller second one, as `Grid.of` has it.
    """
    for nprocs in (1, 2, 6, 12, 16, 30):
        for pattern in (pattern for n in (1, 2, 3) for pattern in product((-1, 1, 2, 3), repeat=n)):
            free = [k for k, extent in enumerate(pattern) if extent == -1]
            ways = []
            for extents in product(range(1, nprocs + 1), repeat=len(free)):
                shape = list(pattern)
                for k, extent in zip(free, extents, strict=True):
                    shape[k] = extent
                if prod(shape) == nprocs and [*extents] == sorted(extents, reverse=True):
                    ways.append((extents, tuple(shape)))
            if ways:
                assert Grid.of(nprocs, pattern).shape == min(ways)[1], (nprocs, pattern)
            else:
                with pytest.raises(LayoutError, match="no grid of shape"):
                    Grid.of(nprocs, pattern)


def test_a_number_of_ranks_must_be_known():
    """Where nobody says how many ranks there are, -1 is refused with a cure; and so are zeros and other numbers."""
    for call in (lambda: Grid((2, -1)), lambda: rote.parse("[(0),(1)]").on((4, 4), (2, -1))):
        with pytest.raises(LayoutError, match=r"write Grid\.of\(processes, \(2, -1\)\)"):
            call()
    for wrong in ((0, -1), (-2, 3), (2.5, -1), "23"):
        with pytest.raises(LayoutError, match="at least one process"):
            Grid.of(6, wrong)
