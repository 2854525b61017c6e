"""What is measured under the ranks of a communicator: the machine of the cost model, and methods of exchange.

`measure` finds the numbers of a machine from exchanges, copies, transforms and products. All ranks work at once, as in
a plan, on blocks of 16 MiB, which exceed most caches, and on smaller ones. `chosen` finds the fastest method of a step.
Both are kept as wisdom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import partial
from math import inf, isqrt, log2, prod, sqrt
from time import perf_counter
from typing import Any

import numpy as np

from .. import wisdom
from ..compiler.compile import compile
from ..compiler.plan import Plan
from ..compiler.step import LOCAL, Step
from ..compiler.tasks import task_seconds
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
from .comm.segments import empty
from .exchange.messages import WHOLE
from .exchange.registry import METHODS
from .plans import BoundPlan

Transform = Callable[[tuple[int, ...], tuple[int, ...]], Callable[[], object]]
__all__ = ["BUSY", "as_machine", "chosen", "keep_machine", "known_links", "known_machine", "machine_key", "measure"]
__all__ += ["recalled_machine", "tuned"]

# On idle cores the spread is 1.2 to 4.5; where ranks wait for a core, most messages take ten to a hundred times as long
# as the fastest one.
BUSY = 6.0
"""The spread of `measure` from which on other work had the cores."""

_LARGE = 1 << 21  # elements of 8 bytes that a rank sends, copies or reduces at once
_RUN = 64  # elements in a row that are copied, out of twice as many
_LITTLE, _NEAR = 1 << 13, 1 << 18  # elements of blocks that other processes read directly, and that stay in a cache
_ROWS_COPIED = 1 << 12  # as moves and transforms copy; a single large row would be copied past the cache
_SIZES = tuple([1 << n for n in range(19, 25)])  # bytes that are copied at once
_FASTEST = 16.0  # times as fast as memory, the most that is said of a cache
_ROWS = 512  # of a square matrix that is multiplied
_SMOOTH, _ROUGH = ((64, 48, 64), (0, 1, 2)), ((251, 251), (0, 1))  # blocks that are transformed, and axes
_PAGES = ((256, 4100), (0,))  # each point on a page of its own, in no cache
_OFTEN = 20  # short calls per reading of the clock
_SOME = 1 << 19  # elements of 8 bytes that reveal a slow link: more than its buffers hold
_KNOWN, _LINKS = "machine", "links"  # the keys of these machines in a communicator's cache
_LEAST = 1e-13  # seconds: a time is never 0, whatever the noise
_NOTHING = dict.fromkeys(DEFAULT.as_dict(), 0.0)  # the times of a machine on which nothing takes time

_KEPT = 256  # plans whose methods a communicator remembers
_BY_NAME = ("put",)  # not timed: one-sided calls of MPI are no faster, and may complain of a missing network
_BETWEEN_NODES = ("persistent", "pipelined", "nodes", "two-level")  # not timed on one node: they save network time
_TOGETHER = 32  # up to so many ranks, methods by blocks equal those without


def measure(
    comm: Comm, seconds: float = 2.0, progress: Progress | None = None, transform: Transform | None = None
) -> tuple[Machine, float]:
    """Measure the machine under the ranks of a communicator, and the spread. Collective; the same on all ranks.

    Each time is the one by which the model's time of a plan, or of a transform, is the measured one. So what exchanges
    take, by the method that these ranks use, is divided among latency, bytes and copies as the model divides it. A
    single rank has no messages, and next to nothing is their time. The spread says by how much other work slowed the
    calls down: it is the time of a quarter of the rounds or more, over that of the fastest run, of the call where this
    is largest.

    Args:
        seconds: the most time that it may take, about; one round is always made.
        progress: called after each timed run with the part of the time that has passed.
        transform: returns a call that transforms a complex block of some shape along some axes; NumPy's if None.

    >>> from rote.runtime import run
    >>> first, second = run(lambda comm: measure(comm, 0.01), ranks=2)
    >>> machine, spread = first
    >>> first == second, min(machine.as_dict().values()) > 0, spread >= 1
    (True, True, True)
    """
    ranks, bound = comm.size, transform or _with_numpy

    # What is timed: moves, transforms, short moves, copies of several sizes, a product.
    swap_text = "block[(0),()] -> block[(),(0)]"
    swap, near, far = (_Move(comm, swap_text, elements) for elements in (_LITTLE, _NEAR, _LARGE))
    reduction = _Move(comm, "[(),()]+(0) -> block[(0),()]", _LARGE // ranks)
    step = _Move(comm, "[(),()] -> block[(0),()]", 1)
    square, product = np.ones((_ROWS, _ROWS)), np.empty((_ROWS, _ROWS))

    def multiplication() -> None:
        np.matmul(square, square, out=product)

    often = _Often(step), _Often(swap)  # whose fastest runs say how busy the cores are
    copies = [*[_copy(nbytes, 1) for nbytes in _SIZES], _copy(_SIZES[-1], _ROWS_COPIED)]
    transforms = [bound(shape, axes) for shape, axes in (_SMOOTH, _ROUGH, _PAGES)]

    # Ranks wake up faster after many short calls, and threads of BLAS keep the cores for a while, so these come later.
    groups: tuple[tuple[Sequence[Callable[[], object]], float, float], ...] = (
        ((step, swap, near, far, reduction), 0.0, 0.4),
        (transforms, 0.4, 0.3),
        ((*often, *copies), 0.7, 0.2),
        ((multiplication,), 0.9, 0.1),
    )
    readings = list[list[float]]()
    for calls, begun, part in groups:
        readings += rounds(comm, calls, part * seconds, _share_of(progress, begun, part))

    short, swapped, swapped_near, swapped_far, reduced, smooth, rough, pages, *times = map(middle, readings)
    _, _, *copied, by_rows, multiplied = times
    rates = [time / nbytes for time, nbytes in zip(copied, _SIZES, strict=True)]

    # Each number is solved for with those before it, so their order matters.
    numbers = {**_NOTHING, "step_time": min(short, swapped), "copy_time": by_rows / _SIZES[-1]}
    if ranks > 1:  # ranks that read each other's blocks copy less often than the model counts
        numbers["copy_time"] = min(numbers["copy_time"], _solved(numbers, "copy_time", far, swapped_far))
    numbers["latency"] = _solved(numbers, "latency", swap, swapped)
    numbers["byte_time"] = _solved(numbers, "byte_time", far, swapped_far)
    numbers["reduce_time"] = _solved(numbers, "reduce_time", reduction, reduced)

    quick = rates[0] if ranks == 1 else _solved(numbers, "copy_time", near, swapped_near)
    numbers["cache"] = 2.0 * max(n for n, rate in zip(_SIZES, rates, strict=True) if rate <= sqrt(rates[0] * rates[-1]))
    numbers["cache_factor"] = min(max(numbers["copy_time"] / quick, 1.0), _FASTEST)
    numbers["page_factor"] = max(pages / (16 * prod(_PAGES[0]) * numbers["copy_time"]), 1.0)

    numbers["flop_time"] = multiplied / (2 * _ROWS**3)
    numbers["fft_time"] = smooth / _operations(*_SMOOTH)
    numbers["rough_factor"] = max(rough / (_operations(*_ROUGH) * numbers["fft_time"]), 1.0)

    fastest = np.array([inf] * len(readings))
    fastest[8:10] = [_OFTEN * call.fastest for call in often]
    comm.allreduce_in_place(fastest, "max")
    return _rounded(numbers), max(map(_spread, readings, fastest.tolist()))


def _share_of(progress: Progress | None, begun: float, part: float) -> Progress | None:
    """The progress of a part of the whole time."""
    return None if progress is None else lambda done: progress(begun + part * done)


class _Move:
    """A plan of elements of 8 bytes between two blocks of this rank.

    Args:
        elements: about how many elements a block has, in two modes of equal extents.
    """

    def __init__(self, comm: Comm, text: str, elements: int) -> None:
        extent = comm.size * max(isqrt(elements // comm.size), 1)
        self.plan = compile(text, shape=(extent, extent), grid=comm.size)
        self._run = BoundPlan(self.plan, comm)
        self._ends = [
            empty(end.local_shape(comm.rank), self.plan.dtype) for end in (self.plan.source, self.plan.target)
        ]
        self._ends[0][...] = 1

    def __call__(self) -> None:
        self._run(*self._ends)


def _solved(known: Mapping[str, float], name: str, move: _Move, seconds: float) -> float:
    """The time of a name, in which the model is linear, for which a move takes so many seconds on a machine.

    The usual latency stays if what is known takes all of the seconds: the end of a search is no measurement. Bytes may
    take none, since copies may have all of their time.
    """

    def priced(times: Mapping[str, Any], time: float) -> float:
        return task_seconds(move.plan.tasks().every, Machine(**{**times, name: time}))

    unit = priced(_NOTHING, 1.0)
    time = (seconds - priced(known, 0.0)) / unit if unit else 0.0
    if time <= _LEAST and unit and name == "latency":
        return float(DEFAULT.as_dict()[name])
    return max(time, _LEAST)


def _copy(nbytes: int, rows: int) -> Callable[[], object]:
    """A call that copies so many bytes in some rows."""
    return partial(
        np.copyto, np.zeros((rows, nbytes // rows), np.uint8), np.ones((rows, 2, nbytes // rows), np.uint8)[:, 1]
    )


def _operations(shape: tuple[int, ...], axes: tuple[int, ...]) -> float:
    """Bytes times doublings of the points of a transform."""
    return 16 * prod(shape) * sum(log2(shape[axis]) for axis in axes)


def _with_numpy(shape: tuple[int, ...], axes: tuple[int, ...]) -> Callable[[], object]:
    return partial(np.fft.fftn, np.ones(shape, np.complex128), axes=axes)


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


def _rounded(times: Mapping[str, float]) -> Machine:
    numbers: dict[str, Any] = {name: float(f"{time:.4g}") for name, time in times.items()}
    return Machine(**numbers)


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
        return _measured_links(comm) if known is DEFAULT and comm.size > 1 else known

    return cached(comm, _LINKS, None, measured, 1)


def _measured_links(comm: Comm) -> Machine:
    """The usual machine, with the times of a message, a byte and a copy on these ranks, of which there are several."""
    others, share = comm.size - 1, _SOME // comm.size
    send, receive = np.ones(others * share), np.ones(others * share)

    def exchange(elements: int) -> Callable[[], object]:
        """The call that sends so many elements to every other rank."""
        counts = [0 if rank == comm.rank else elements for rank in range(comm.size)]
        return partial(comm.alltoallv, send[: sum(counts)], counts, receive[: sum(counts)], counts)

    packed = 4 * _SOME  # bytes: half of the elements
    calls = _Often(exchange(1)), exchange(share), _copy(packed, packed // (8 * _RUN))
    short, long, copied = medians(comm, calls, 0.0)
    latency, byte_time = short / _OFTEN / others, (long - short / _OFTEN) / send.nbytes
    return _rounded({"latency": latency, "byte_time": max(byte_time, _LEAST), "copy_time": copied / packed})


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
    names, every = DEFAULT.as_dict().keys(), [number.name for number in fields(Machine)[:-4]]
    right = isinstance(decision, Mapping) and names <= decision.keys() <= {*every}
    times = decision.values() if right else [None]
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
    """The fastest method, by timing those that may pay on these ranks, on blocks of the step's own sizes."""
    block = np.ones(step.before.local_shape(comm.rank), dtype)
    out = np.empty(step.after.local_shape(comm.rank), dtype)
    programs = list(_programs(Plan(step.before, step.after, dtype, (step,)), comm))
    candidates = [collective_call(comm, partial(program, block, out)) for program in programs]
    return programs[choose(comm, candidates, seconds).best].methods[0]


def _programs(plan: Plan, comm: Comm) -> Iterator[BoundPlan]:
    """A plan of one step, bound by each method that may pay on these ranks, the usual one first."""
    usual = BoundPlan(plan, comm).methods[0]
    for name in sorted(METHODS, key=lambda name: name != usual):
        if name == usual or _may_pay(name, comm):
            with suppress(CommError):
                program = BoundPlan(plan, comm, name)
                if program.methods == (name,):
                    yield program


def _may_pay(name: str, comm: Comm) -> bool:
    """Whether a method may be faster than others on these ranks. The rest can be asked for by name."""
    if name in _BY_NAME or (name in _BETWEEN_NODES and len(set(comm.nodes())) == 1):
        return False
    return comm.size > _TOGETHER or not name.endswith(str(_TOGETHER))
