"""What is measured under the ranks of a communicator: the machine of the cost model, and methods of exchange.

`measure` finds the times of a message, a byte, a copy, a reduction, a step, a product and a transform. All ranks work
at once, as in a plan, on blocks of 16 MiB, which exceed most caches, and on matrices of 2 MiB. `chosen` finds the
fastest method of a step. Both are kept as wisdom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import inf, log2
from time import perf_counter
from typing import Any

import numpy as np

from .. import wisdom
from ..compiler.compile import compile
from ..compiler.plan import Plan
from ..compiler.step import LOCAL, Step
from ..errors import CommError
from ..layout.grid import check_grid
from ..machines.machine import DEFAULT, Machine
from .choose import (
    Progress,
    Tune,
    budget,
    check_tune,
    choose,
    collective_call,
    decided,
    medians,
    middle,
    ranks_key,
    recalled,
    remembered,
    rounds,
)
from .comm.agreement import gathered
from .comm.cache import cached
from .comm.protocol import Comm
from .exchange.messages import WHOLE
from .exchange.registry import METHODS
from .plans import BoundPlan, bind

__all__ = ["BUSY", "as_machine", "chosen", "keep_machine", "known_links", "known_machine", "machine_key", "measure"]
__all__ += ["recalled_machine", "tuned"]

BUSY = 6.0
"""The spread of `measure` from which on other work had the cores. On idle cores it is 1.2 to 4.5; where ranks wait for
a core, most messages take ten to a hundred times as long as the fastest one."""

_LARGE = 1 << 21  # elements of 8 bytes that a rank sends, copies or reduces at once
_RUN = 64  # elements in a row that are copied, out of twice as many
_ROWS = 512  # of a square matrix that is multiplied
_LINES, _POINTS = 128, 1024  # that are transformed
_OFTEN = 20  # short calls per reading of the clock
_SOME = 1 << 19  # elements of 8 bytes that reveal a slow link: more than its buffers hold
_KNOWN, _LINKS = "machine", "links"  # the keys of these machines in a communicator's cache
_LEAST = 1e-13  # seconds: a time is never 0, whatever the noise

_KEPT = 256  # plans whose methods a communicator remembers
_BY_NAME = ("put",)  # not timed: one-sided calls of MPI are no faster, and may complain of a missing network
_TOGETHER = 32  # up to so many ranks, methods by blocks equal those without


def measure(comm: Comm, seconds: float = 2.0, progress: Progress | None = None) -> tuple[Machine, float]:
    """Measure the machine under the ranks of a communicator, and the spread. Collective; the same on all ranks.

    A single rank sends the messages to itself. The spread says by how much other work slowed the calls down: it is the
    time of a quarter of the rounds or more, over that of the fastest run, of the call where this is largest.

    Args:
        seconds: the most time that it may take, about; one round is always made.
        progress: called after each turn with the part of the time that has passed.

    >>> from rote.runtime import run
    >>> first, second = run(lambda comm: measure(comm, 0.01), ranks=2)
    >>> machine, spread = first
    >>> first == second, min(machine.as_dict().values()) > 0, spread >= 1
    (True, True, True)
    """
    ranks, link = comm.size, _Link(comm, _LARGE)
    share, send, receive = link.share, link.send, link.receive
    local = compile("[()] -> block[(0)]", shape=ranks, grid=ranks)
    swap = compile("block[(0),()] -> block[(),(0)]", shape=(ranks, ranks), grid=ranks)
    row, column, element = np.ones((1, ranks)), np.ones((ranks, 1)), np.ones(1)

    def reduction() -> None:
        comm.reduce_scatter(send, receive[:share], [share] * ranks, "max")

    def addition() -> None:
        np.maximum(receive, send, out=receive)

    square, product = np.ones((_ROWS, _ROWS)), np.empty((_ROWS, _ROWS))

    def multiplication() -> None:
        np.matmul(square, square, out=product)

    lines = np.ones((_LINES, _POINTS), np.complex128)

    def transformation() -> None:
        np.fft.fft(lines)

    step, exchange = _Often(lambda: bind(local, comm)(row[0], element)), _Often(lambda: bind(swap, comm)(row, column))
    timed = (reduction, addition, step, exchange, transformation, multiplication)
    *readings, transformed, multiplied = rounds(comm, (*link.calls, *timed), seconds, progress)  # BLAS's threads vary
    short, long, copied, reduced, added, steps, exchanges = map(middle, readings)
    times = link.times(short, long, copied)
    combined = (reduced - short / _OFTEN) / (8 * link.received) - times["byte_time"]
    times["reduce_time"] = max(combined, added / (8 * send.size))
    times["step_time"] = max(steps, exchanges - short) / _OFTEN
    times["flop_time"] = middle(multiplied) / (2 * _ROWS**3)
    times["fft_time"] = middle(transformed) / (lines.nbytes * log2(_POINTS))
    fastest = np.array([inf] * len(readings))
    fastest[[0, -2, -1]] = [_OFTEN * often.fastest for often in (link.message, step, exchange)]
    comm.allreduce_in_place(fastest, "max")
    return _rounded(times), max(map(_spread, readings, fastest.tolist()))


def _spread(readings: Sequence[float], fastest: float) -> float:
    """How much longer a quarter of all readings but the first take, at least, than the fastest reading or run."""
    slow = float(np.quantile(readings[1:] or readings, 0.75))
    return slow / min(fastest, slow, *readings)


class _Often:
    """A short call that is made often per reading of the clock, and the seconds of its fastest run on this rank."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call, self.fastest = call, inf

    def __call__(self) -> None:
        for _ in range(_OFTEN):
            start = perf_counter()
            self._call()
            self.fastest = min(self.fastest, perf_counter() - start)


class _Link:
    """The calls that time a message, many bytes, and copies.

    Args:
        elements: the number of elements, of 8 bytes, that a rank sends or copies at once.

    Attributes:
        share, received: elements that a rank receives from each other rank, and from all of them.
        send, receive: memory for the elements.
        message: the call that sends and receives one element per rank.
    """

    def __init__(self, comm: Comm, elements: int) -> None:
        ranks = comm.size
        self._comm, self._others = comm, max(ranks - 1, 1)
        self.share: int = elements // ranks
        self.received: int = self._others * self.share
        self.send, self.receive = np.ones(ranks * self.share), np.ones(ranks * self.share)
        self._peers = [int(ranks == 1 or rank != comm.rank) for rank in range(ranks)]
        half = self.send.size // (2 * _RUN) * _RUN
        self._block = self.send[: 2 * half].reshape(-1, 2, _RUN)
        self._packed = self.receive[:half].reshape(-1, _RUN)
        few = slice(self._others)
        self.message = _Often(lambda: comm.alltoallv(self.send[few], self._peers, self.receive[few], self._peers))

    @property
    def calls(self) -> tuple[Callable[[], None], ...]:
        """The calls whose seconds are the arguments of `times`."""
        return self.message, self._messages, self._copy

    def times(self, short: float, long: float, copied: float) -> dict[str, float]:
        """The times of a machine, computed from the seconds of each call."""
        return {
            "latency": short / _OFTEN / self._others,
            "byte_time": max((long - short / _OFTEN) / (8 * self.received), _LEAST),
            "copy_time": copied / (2 * self._packed.nbytes),
        }

    def _messages(self) -> None:
        many, counts = slice(self.received), [self.share * peer for peer in self._peers]
        self._comm.alltoallv(self.send[many], counts, self.receive[many], counts)

    def _copy(self) -> None:
        np.copyto(self._packed, self._block[:, 1])
        np.copyto(self._block[:, 0], self._packed)


def _rounded(times: Mapping[str, float]) -> Machine:
    rounded: dict[str, Any] = {name: float(f"{time:.4g}") for name, time in times.items()}
    return Machine(**rounded)


def machine_key(comm: Comm) -> wisdom.Key:
    """The key under which the machine of these ranks is kept. Collective."""
    return ranks_key(comm, {"what": "machine"})


def recalled_machine(comm: Comm) -> Machine | None:
    """The machine of these ranks from an earlier measurement; None if none was kept. Collective."""
    if not gathered(comm, "the machine of the ranks", comm.rank == 0 and wisdom.kept())[0]:
        return None  # without making a key, which looks up the versions of packages
    machine: Machine | None = recalled(comm, machine_key(comm), as_machine)
    return machine


def known_machine(comm: Comm) -> Machine:
    """The machine of these ranks: that of the first `recalled_machine`, else the default one. Collective."""
    return cached(comm, _KNOWN, None, lambda: recalled_machine(comm) or DEFAULT, 1)


def known_links(comm: Comm) -> Machine:
    """The known machine of these ranks; if none is known, messages and copies are measured now, once. Collective.

    Measuring the times of a message, a byte and a copy takes up to a third of a second.
    """

    def measured() -> Machine:
        known = known_machine(comm)
        if known is DEFAULT and comm.size > 1:
            link = _Link(comm, _SOME)
            known = _rounded(link.times(*medians(comm, link.calls, 0.0)))
        return known

    return cached(comm, _LINKS, None, measured, 1)


def keep_machine(comm: Comm, machine: Machine) -> bool:
    """Keep the machine of these ranks; return whether it was kept. Collective."""
    comm.cache.pop(_KNOWN, None)
    comm.cache.pop(_LINKS, None)
    return remembered(comm, machine_key(comm), machine.as_dict())


def as_machine(decision: Any) -> Machine:
    """Read a machine that was kept.

    Raises:
        ValueError, PlanError: the decision is not a machine.
    """
    names = DEFAULT.as_dict().keys()
    times = decision.values() if isinstance(decision, Mapping) and decision.keys() == names else [None]
    if not all((time and isinstance(time, list | tuple)) or isinstance(time, int | float) for time in times):
        raise ValueError(f"a machine has numbers for {', '.join(sorted(names))}")
    return Machine(**decision)


# --- methods of exchange ----------------------------------------------------------------------------------------------


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
