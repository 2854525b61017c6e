"""Factors: what is multiplied while it is packed or unpacked is what would be multiplied before or after the plan."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from execute import factors, moves

import rote
from rote.compiler.rules import RULES
from rote.errors import LayoutError
from rote.lattice import Lattice
from rote.runtime import program, regions
from rote.runtime.plans import BoundPlan


@pytest.mark.parametrize("number", (12, pytest.param(75, marks=pytest.mark.slow)))
def test_plans_multiply_as_they_move(number):
    """Each kind of step, and plans of no step and of several, with no factor, one or two at either end.

    The result is the plan's, times the tensor of the factors as the target lays it out; the input stays as it is. What
    is partial, and no sum, is not multiplied.
    """
    seen = [
        rote.run(factors.check, ranks, (number if ranks < 6 else number * 2 // 5,))[0] for ranks in (1, 2, 3, 4, 6, 8)
    ]
    kinds = ("none", *(rule.kind for rule in RULES))
    all_of_them = {(kind, name) for kind in kinds for name in ("before", "after")}
    found = reduce(set.union, seen)
    assert found >= all_of_them or (number < 75 and 2 * len(found) > len(all_of_them))


def test_elements_that_are_picked_one_by_one_are_multiplied(monkeypatch):
    """The same where each message is picked by lists of indices, as where layouts do not fit."""
    right = regions.copied_factor

    def listed(*args):
        first, *others = right(*args)
        if first.lattice.listed:
            return (first,)
        return (first._replace(lattice=Lattice.listing([part.lattice for part in (first, *others)])),)

    monkeypatch.setattr(regions, "copied_factor", listed)
    rote.run(factors.check, 4, (30,))


@pytest.mark.parametrize("before, after", [(False, True), (True, False)])
def test_a_factor_that_is_forgotten_is_found_out(before, after, monkeypatch):
    """A step that does not multiply at one of its ends."""
    right = program._Sent.__init__

    def forgetful(self, *args, **kwargs):
        right(self, *args, **kwargs)
        self._factors = self._factors[0] if before else (), self._factors[1] if after else ()

    monkeypatch.setattr(program._Sent, "__init__", forgetful)
    with pytest.raises(AssertionError, match="is not"):
        rote.run(factors.check, 2, (50,))


def test_random_complex_factors():
    """Twiddles of two modes, a vector and a scale: the array, times all of them, up to rounding."""
    plan = rote.compile("[(0),(),()] -> block[(),(0),()]", shape=(12, 8, 10), grid=4, dtype="c16")
    rng = np.random.default_rng(0)
    array, twiddles, vector = (
        rng.standard_normal(n) + 1j * rng.standard_normal(n) for n in ((12, 8, 10), (12, 8, 1), 10)
    )
    blocks = rote.simulate.scatter(array, plan.source)

    def program(comm):
        rows, columns = plan.source.indices(comm.rank)[0], plan.target.indices(comm.rank)[1]
        before, after = twiddles[rows], (vector, np.exp(columns * 1j)[:, None], 0.25)
        return BoundPlan(plan, comm, before=[before], after=after)(blocks[comm.rank])

    found = rote.simulate.gather(rote.run(program, 4), plan.target)
    right = array * twiddles * vector * np.exp(1j * np.arange(8))[:, None] / 4
    assert np.allclose(found, right, rtol=1e-14)


WRONG = {
    "shape": (np.ones((2, 1)), "is (2, 1) float64, which does not broadcast to the block of (4, 3) in"),
    "order": (np.ones((1, 2, 3)), "does not broadcast"),
    "dtype": (np.ones(3, "c16"), "is (3,) complex128, which is no factor of float64; convert it first"),
    "text": (np.array("one"), "is no factor of float64"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_factor_that_does_not_fit_is_refused(wrong):
    """A factor that does not broadcast to the block, or that its dtype would not keep; the text names it."""
    plan = rote.compile("[(0),()] -> [(),(0)]", shape=(4, 6), grid=2)
    factor, text = WRONG[wrong]

    def program(comm):
        found = moves.raised(LayoutError, lambda: BoundPlan(plan, comm, after=[2.0, factor]))
        return found, BoundPlan(plan, comm, after=[2.0])(np.ones((2, 6)))

    for rank, (found, right) in enumerate(rote.run(program, 2)):
        assert found.startswith(f"after[1] of rank {rank} is") and text in found
        assert (right == 2).all()


def test_an_array_is_no_sequence_of_factors():
    """One array in place of a sequence would be taken apart."""
    plan = rote.compile("[(0)] -> [()]", shape=4, grid=1)

    def program(comm):
        return moves.raised(LayoutError, lambda: BoundPlan(plan, comm, before=np.ones(4)))

    assert rote.run(program, 1) == ["`before` is a sequence of factors, not an array; write before=(array,)"]


def test_a_factor_is_not_changed_and_may_be_read_only():
    """Factors are read; so is a block that may not be written."""
    plan = rote.compile("[(0),()] -> [(),(0)]", shape=(4, 6), grid=2)

    def program(comm):
        block, factor = np.full((2, 6), 3.0), np.arange(6.0)
        block.flags.writeable = factor.flags.writeable = False
        return BoundPlan(plan, comm, before=[factor, factor])(block)

    blocks = rote.run(program, 2)
    assert np.array_equal(rote.simulate.gather(blocks, plan.target), np.broadcast_to(3 * np.arange(6.0) ** 2, (4, 6)))
