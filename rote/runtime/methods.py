"""Methods of exchange for the steps of a plan: the usual ones, or the fastest ones on these ranks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from ..compiler.plan import Plan
from ..compiler.step import LOCAL, Step
from ..errors import CommError
from ..layout.grid import check_grid
from .choose import Tune, budget, check_tune, choose, collective_call, decided
from .comm.cache import cached
from .comm.protocol import Comm
from .exchange.messages import WHOLE
from .exchange.registry import METHODS
from .plans import BoundPlan

__all__ = ["chosen", "tuned"]

_KEPT = 256  # plans whose methods a communicator remembers
_BY_NAME = ("put",)  # not timed: one-sided calls of MPI are no faster, and may complain of a missing network
_TOGETHER = 32  # up to so many ranks, methods by blocks equal those without


def tuned(plan: Plan, comm: Comm, tune: Tune) -> tuple[str, ...]:
    """The method of each step of a plan, found by `chosen` once per communicator. Collective."""
    check_tune(tune)  # even if nothing moves
    check_grid(plan.source.grid, comm.size)
    steps, dtype = plan.steps, plan.dtype
    return cached(comm, "tuned", (plan, tune), lambda: tuple(chosen(step, dtype, comm, tune) for step in steps), _KEPT)


def chosen(step: Step, dtype: np.dtype[Any], comm: Comm, tune: Tune) -> str:
    """The method of a step: "auto" by the model, else the fastest on these ranks, the same on all. Collective.

    Measured decisions are kept as wisdom. All methods give the same blocks, so the choice affects only time.

    Raises:
        PlanError: there is no such `tune`.
    """
    check_tune(tune)
    if tune == "model" or step.kind in (*LOCAL, *WHOLE, "reduce_scatter", "allgather") or comm.size == 1:
        return "auto"
    nodes = len(set(comm.nodes()))
    facts = {"what": "method", "step": str(step), "shape": step.before.shape, "dtype": dtype.str, "nodes": nodes}
    seconds = budget(comm, "method", tune)
    facts |= {"grids": [str(step.before.grid), str(step.after.grid)]}

    def find() -> str | None:
        return _fastest(step, dtype, comm, seconds) if seconds else None

    return decided(comm, facts, tune, _checked, find) or "auto"


def _checked(decision: Any) -> str:
    """Read a method that was kept."""
    if decision not in METHODS:
        raise ValueError(f"a method is one of {', '.join(METHODS)}")
    return str(decision)


def _fastest(step: Step, dtype: np.dtype[Any], comm: Comm, seconds: float) -> str:
    """The fastest method, by timing all that these ranks support on blocks of the step's own sizes."""
    block = np.ones(step.before.local_shape(comm.rank), dtype)
    out = np.empty(step.after.local_shape(comm.rank), dtype)
    programs = list(_programs(Plan(step.before, step.after, dtype, (step,)), comm))
    candidates = [collective_call(comm, partial(program, block, out)) for program in programs]
    return programs[choose(comm, candidates, seconds).best].methods[0]


def _programs(plan: Plan, comm: Comm) -> Iterator[BoundPlan]:
    """A plan of one step, bound by each method that these ranks support, the usual one first."""
    usual = BoundPlan(plan, comm).methods[0]
    for name in sorted(METHODS, key=lambda name: name != usual):
        if name not in _BY_NAME and (comm.size > _TOGETHER or not name.endswith(str(_TOGETHER))):
            with suppress(CommError):
                program = BoundPlan(plan, comm, name)
                if program.methods == (name,):
                    yield program
