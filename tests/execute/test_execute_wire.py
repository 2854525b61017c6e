"""Single precision on the wire: what travels is rounded once, what stays is not, and bytes are half."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from execute import wire
from hypothesis import given, settings
from marks import examples
from strategies import pairs

import rote
from rote.compiler.step import Step, error_of
from rote.errors import PlanError
from rote.runtime import copies
from rote.runtime.exchange.registry import same_method
from rote.runtime.plans import BoundPlan, bind

PROGRAM = Path(wire.__file__)
SEVERAL = [pytest.param(4, each, marks=pytest.mark.slow) for each in (0, 2, 3)]  # ranks, and those of a node


@settings(max_examples=examples(60))
@given(pairs())
def test_what_travels_is_rounded_once(ends):
    """Law: by messages, elements that a rank had are exact and others x.astype("f4"), within the error that is said;
    read in shared memory, all are exact."""
    real = any(dist.partial and dist.layout.op in ("max", "min") for dist in ends)
    plan = rote.compile(*ends, "f8" if real else "c16", wire="f4")
    for name in ("alltoallv", "shared"):
        assert {*rote.run(wire.amiss, ends[0].grid.size, (plan, name, 0))} == {""}


@pytest.mark.parametrize("number", (12, pytest.param(75, marks=pytest.mark.slow)))
@pytest.mark.parametrize("ranks", (3, 4))
def test_messages_have_half_the_bytes(ranks, number):
    """Law: bytes received are those of the plan's cost, half of what they are without, and no more memory is held."""
    assert min(rote.run(wire.check_bytes, ranks, (number,))) >= number // 4


@pytest.mark.mpi
@pytest.mark.parametrize("number", (5, pytest.param(15, marks=pytest.mark.slow)))
@pytest.mark.parametrize("job, each", [(3, 0), (3, 2), *SEVERAL], indirect=["job"])
def test_mpi_ranks_round_alike_by_every_method(job, each, number):
    """The same by all methods of MPI, on one node and on several; MPI's own datatypes are refused."""
    done = job.run(PROGRAM, number, each, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("refused True") == job.ranks
    assert "rounded 0" not in done.stdout


def test_groups_of_ranks_with_copies_go_one_way():
    """Law: where a group of ranks with copies may lie on one node, and another on several, both send."""
    several, together = (SimpleNamespace(nodes=lambda numbers=numbers: numbers) for numbers in ((0, 0, 0, 1), (0,) * 4))
    texts = "block[(1),()] -> block[(),(1)]", "block[(0,1),()] -> block[(0),(1)]"
    for text, usual in zip(texts, ("alltoallv", "auto"), strict=True):
        step, entire = (rote.compile(text, shape=(4, 4), grid=(2, 2), wire=each).steps[0] for each in ("f4", None))
        assert same_method("auto", step, several) == usual
        assert [same_method("auto", step, together), same_method("auto", entire, several)] == ["auto"] * 2
        assert same_method("nodes", step, several) == "nodes"


def test_sums_of_what_travels_are_exact():
    """Law: contributions are rounded one by one, and added in double precision, in the order of ranks."""
    contributions = np.random.default_rng(0).random((4, 9, 8))
    ends = [rote.parse(text).on((9, 8), 4) for text in ("[(),()]+(0)", "[(),(0)]")]
    plan = rote.Plan(*ends, np.dtype("f8"), (Step("exchange", *ends, (0,), np.dtype("f4")),))

    def program(comm):
        program = BoundPlan(plan, comm, "alltoallv")
        return program(contributions[comm.rank])

    rounded = contributions.astype("f4").astype("f8")
    for rank, found in enumerate(rote.run(program, 4)):
        parts = [contributions[n] if n == rank else rounded[n] for n in range(4)]
        assert np.array_equal(found, sum(parts[1:], parts[0])[:, rank::4])


def test_elements_that_are_picked_one_by_one_are_rounded_alike(monkeypatch):
    """Law: it does not matter whether elements are copied by strided views, or from lists of their places."""
    monkeypatch.setattr(copies, "_FEW", 0)
    monkeypatch.setattr(copies, "_SMALL", 1 << 40)
    plan = rote.compile("[(0),()] -> block[(),(0)]", shape=(7, 9), grid=3, dtype="c16", wire="f4")
    assert rote.run(wire.amiss, 3, (plan, "alltoallv", 0)) == [""] * 3


def test_numbers_beyond_single_precision_are_as_numpy_rounds_them():
    """Law: too large ones arrive as infinite, with NumPy's warning; too small ones as 0; inf and nan as they are."""
    values = np.array([1e300, -1e39, 1e-300, np.inf, -np.inf, np.nan, 1.0, 0.1])
    plan = rote.compile("[()]|(0) -> [()]|(0@1)", shape=len(values), grid=2, wire="f4")

    def program(comm):
        block = values[: plan.source.local_shape(comm.rank)[0]]
        return bind(plan, comm, "alltoallv")(block)

    with pytest.warns(RuntimeWarning, match="overflow"):
        found = rote.run(program, 2)
    with np.errstate(over="ignore"):
        assert np.array_equal(found[1], values.astype("f4").astype("f8"), equal_nan=True)


def test_plans_say_what_is_rounded():
    """Law: text and JSON say it and give it back, `explain` says the error; such a plan is proved, and costs less."""
    text = "block[(0),()] -> block[(),(0)]"
    plan, entire = (rote.compile(text, shape=(64, 64), grid=4, wire=each) for each in ("f4", None))
    assert rote.Plan.from_text(str(plan)) == rote.Plan.from_json(plan.to_json()) == plan != entire
    assert "alltoall over 0 as float32" in str(plan)
    assert "sent as float32: relative error of an element at most 6.0e-08" in plan.explain()
    assert (2 * plan.cost.bytes, 2 * plan.lower_bound) == (entire.cost.bytes, entire.lower_bound)
    assert plan.cost.seconds < entire.cost.seconds
    assert (error_of(plan.steps), error_of(entire.steps)) == (2**-24, 0)
    for wrong, words in (("float64", "complex128"), ("float32:", "float16:")):
        with pytest.raises(PlanError, match="do not travel as"):
            rote.Plan.from_text(str(plan).replace(wrong, words))
    summed = rote.compile("[()]+(0) -> [()]", shape=8, grid=2)
    for step, dtype in ((summed.steps[0], "f8"), (plan.steps[0], "i8")):
        with pytest.raises(PlanError, match="rounded to float32"):
            rote.Plan(step.before, step.after, np.dtype(dtype), (replace(step, wire=np.dtype("f4")),)).verify()


def test_the_choice_of_a_plan_counts_half_the_bytes():
    """Law: no plan of rounded messages is dearer than the cheapest without; where bytes count alone, it takes half."""
    bytes_only = rote.Machine(latency=0, byte_time=1.0, copy_time=0, reduce_time=0, step_time=0)
    for source, target, dtype in wire.pairs(4, 40):
        if source.partial or target.partial:
            continue
        for machine in (bytes_only, rote.Machine()):
            costs = [rote.compile(source, target, dtype, machine=machine, wire=each).cost for each in ("f4", None)]
            assert costs[0].seconds <= costs[1].seconds * (1 + 1e-12)
            if machine is bytes_only:
                assert costs[0].seconds >= costs[1].seconds / 2 * (1 - 1e-12)
