"""Random Einstein sums on in-process ranks and on MPI ranks: NumPy's numbers, wherever operands and result lie."""

from __future__ import annotations

from pathlib import Path

import einsums
import pytest
from marks import PARTS, make_checks, mpi_parts
from parts import SOME, share

import rote

PROGRAM = Path(__file__).with_name("einsums.py")
CASES = 5000
RANKS = (1, 2, 3, 4, 6, 8, 4, 8)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("turn", range(8))
def test_random_einsums_are_numpys(turn, part):
    """On in-process ranks, every 161st of the cases, or some of the others."""
    for seed in share(range(CASES)[turn :: len(RANKS)], part, 80, of=90):
        with rote.config(implicit="allow", gather="allow"):
            try:
                rote.run(einsums.check_case, RANKS[turn], (seed,))
            except Exception as error:
                error.add_note(f"case {seed} on {RANKS[turn]} ranks")
                raise


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("job", "part"), [*mpi_parts(3), pytest.param(4, SOME, marks=pytest.mark.slow)], indirect=["job"]
)
def test_random_einsums_on_mpi_ranks(job, part):
    """On MPI ranks, other cases."""
    make_checks(job, PROGRAM, einsums.CHECKS, part)
