"""Calibration: the times of a message, a byte, a copy, a reduction and a step, for the `Machine` of the cost model.

Everything is timed in turn, round after round, so that a disturbance meets all alike; a time is the median over the
rounds of that of the slowest rank. It is measured as plans use it: with all ranks at work at once, on blocks of 16 MiB,
which few caches hold.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from math import inf
from time import perf_counter
from typing import Any, TypeVar, cast

import numpy as np

from .. import wisdom
from ..compiler.compile import compile
from ..compiler.machine import DEFAULT, Machine
from .comm.cache import cached
from .comm.collective_errors import collective_errors
from .comm.protocol import Comm
from .comm.threads import LocalComm
from .program import bind

__all__ = [
    "as_machine",
    "decided",
    "keep_machine",
    "known_machine",
    "machine_key",
    "measure",
    "medians",
    "mpi_library",
    "ranks_key",
    "recalled",
    "recalled_machine",
    "slowest",
]

_LARGE = 1 << 21  # elements of 8 bytes that a rank sends, copies or reduces at once
_RUN = 64  # elements in a row that are copied, of twice as many
_OFTEN = 20  # times that a short call is made for one reading of the clock
_KNOWN = "machine"  # where a communicator keeps its own
_KEPT = 256  # decisions that a communicator remembers
_LEAST = 1e-13  # seconds: no time is 0, whatever the noise

T = TypeVar("T")
Call = Callable[[], object]
Progress = Callable[[float], object]


def measure(comm: Comm, seconds: float = 2.0, progress: Progress | None = None) -> Machine:
    """Measure the machine under the ranks of a communicator. Collective; the same on all ranks.

    One rank alone has no messages: it sends them to itself.

    Args:
        seconds: the most that it may take, about; one round is always made.
        progress: called after each round with the part of the time that has passed.

    >>> from rote.runtime import run
    >>> first, second = run(lambda comm: measure(comm, 0.01), ranks=2)
    >>> first == second, min(first.as_dict().values()) > 0
    (True, True)
    """
    ranks, others = comm.size, max(comm.size - 1, 1)
    share = _LARGE // ranks
    received = others * share  # elements that a rank receives from others

    def counts(number: int) -> list[int]:
        return [number if ranks == 1 or r != comm.rank else 0 for r in range(ranks)]

    send, receive = np.ones(ranks * share), np.ones(ranks * share)
    few, many = counts(1), counts(share)
    half = send.size // (2 * _RUN) * _RUN
    block = send[: 2 * half].reshape(-1, 2, _RUN)
    packed = receive[:half].reshape(-1, _RUN)
    local = compile("[()] -> block[(0)]", shape=ranks, grid=ranks)
    swap = compile("block[(0),()] -> block[(),(0)]", shape=(ranks, ranks), grid=ranks)
    row, column, element = np.ones((1, ranks)), np.ones((ranks, 1)), np.ones(1)

    def message() -> None:
        for _ in range(_OFTEN):
            comm.alltoallv(send[:others], few, receive[:others], few)

    def messages() -> None:
        comm.alltoallv(send[:received], many, receive[:received], many)

    def copy() -> None:
        np.copyto(packed, block[:, 1])
        np.copyto(block[:, 0], packed)

    def reduction() -> None:
        comm.reduce_scatter(send, receive[:share], [share] * ranks, "max")

    def addition() -> None:
        np.maximum(receive, send, out=receive)

    def step() -> None:
        for _ in range(_OFTEN):
            bind(local, comm)(row[0], element)

    def exchange() -> None:
        for _ in range(_OFTEN):
            bind(swap, comm)(row, column)

    short, long, copied, reduced, added, steps, exchanges = medians(
        comm, (message, messages, copy, reduction, addition, step, exchange), seconds, progress
    )
    byte_time = max((long - short / _OFTEN) / (8 * received), _LEAST)
    times = {
        "latency": short / _OFTEN / others,
        "byte_time": byte_time,
        "copy_time": copied / (8 * 2 * half),
        "reduce_time": max((reduced - short / _OFTEN) / (8 * received) - byte_time, added / (8 * send.size)),
        "step_time": max(steps, exchanges - short) / _OFTEN,
    }
    return Machine(**{name: float(f"{time:.4g}") for name, time in times.items()})


def medians(
    comm: Comm, calls: Sequence[Call], seconds: float, progress: Progress | None = None, most: float = inf
) -> list[float]:
    """The seconds that each of some collective calls takes, made in turn. Collective; the same on all ranks.

    Of every call, the time of the slowest rank; of every round but the first, the median.

    Args:
        seconds: the most that all rounds may take, about; one is always made.
        progress: called after each round with the part of the time that has passed, or of the rounds.
        most: rounds, however much time is left.
    """
    start = perf_counter()
    rounds: list[list[float]] = []
    spent = last = 0.0
    while not rounds or (len(rounds) < most and spent + last < seconds):  # another one would still end in time
        rounds.append([_timed(comm, call) for call in calls])
        before, (spent,) = spent, slowest(comm, perf_counter() - start)
        last = spent - before
        if progress is not None:
            part = spent / seconds if seconds > 0 else 1.0
            progress(min(1.0, max(part, len(rounds) / most)))
    times = np.array(rounds[1:] or rounds)
    seconds_each = np.median(np.reshape(slowest(comm, *times.ravel()), times.shape), axis=0)
    comm.bcast(seconds_each, 0)
    return [max(float(each), _LEAST) for each in seconds_each]


def _timed(comm: Comm, call: Call) -> float:
    """The seconds of a call that all ranks begin together, and that finds in the caches what it left there itself."""
    call()
    comm.barrier()
    start = perf_counter()
    call()
    return perf_counter() - start


def mpi_library(comm: Comm) -> str:
    """The name and version of the MPI library that ranks talk through; empty for in-process ranks."""
    loaded = sys.modules.get("mpi4py.MPI")  # where ranks talk through it, it is
    if isinstance(comm, LocalComm) or loaded is None:
        return ""
    first = str(loaded.Get_library_version()).partition("\n")[0].partition(",")[0]
    return " ".join(first.replace("\0", "").split())


def ranks_key(comm: Comm, facts: Mapping[str, Any]) -> wisdom.Key:
    """The key of a decision that also depends on these ranks: how many on how many hosts, and their MPI. Collective."""
    hosts = len(set(comm.allgather_object(platform.node())))
    return wisdom.key({**facts, "ranks": comm.size, "hosts": hosts}, mpi_library(comm))


def machine_key(comm: Comm) -> wisdom.Key:
    """The key under which the machine of these ranks is kept. Collective."""
    return ranks_key(comm, {"what": "machine"})


def recalled(comm: Comm, key: wisdom.Key, read: Callable[[Any], Any] | None = None) -> Any:
    """Recall on all ranks what rank 0 has for a key (see `wisdom.recall`); None if nothing. Collective."""
    value = None
    with collective_errors(comm):
        if comm.rank == 0:
            value = wisdom.recall(key, read)
    return comm.allgather_object(value)[0]


def recalled_machine(comm: Comm) -> Machine | None:
    """The machine of these ranks as it was once measured and kept; None if it was not. Collective."""
    machine: Machine | None = recalled(comm, machine_key(comm), as_machine)
    return machine


def known_machine(comm: Comm) -> Machine:
    """The machine of these ranks: as `recalled_machine` finds it the first time, else the usual one. Collective."""
    if _KNOWN not in comm.cache:
        comm.cache[_KNOWN] = recalled_machine(comm) or DEFAULT
    return cast(Machine, comm.cache[_KNOWN])


def remembered(comm: Comm, key: wisdom.Key, decision: Any) -> bool:
    """Let rank 0 remember a decision (see `wisdom.remember`); whether it is kept, on all ranks. Collective."""
    return bool(comm.allgather_object(comm.rank == 0 and wisdom.remember(key, decision))[0])


def decided(comm: Comm, facts: Mapping[str, Any], tune: str, read: Callable[[Any], T], find: Callable[[], Any]) -> T:
    """A decision on these ranks: as it was found before, or found now and kept as wisdom. Collective.

    Where nothing can be written, the communicator remembers the last ones.

    Args:
        facts: all that it depends on beside the ranks, the machine and the versions.
        tune: how it is found, "measure" or "patient"; what was found patiently serves those who only measure, too.
        read: makes of the JSON value that is kept what the caller wants; what it may raise `wisdom.recall` says.
        find: gives such a value, the same on all ranks.
    """
    keys = {name: ranks_key(comm, {**facts, "tune": name}) for name in dict.fromkeys(("patient", tune))}

    def checked(kept: Any) -> Any:
        read(kept)
        return kept

    def make() -> T:
        for key in keys.values():
            known = recalled(comm, key, checked)
            if known is not None:
                return read(known)
        decision = find()
        remembered(comm, keys[tune], decision)
        return read(decision)

    return cached(comm, "decisions", keys[tune], make, _KEPT)


def slowest(comm: Comm, *seconds: float) -> list[float]:
    """The most that any rank says, of each. Collective."""
    longest = np.array(seconds)
    comm.allreduce(longest, "max")
    return [float(number) for number in longest]


def keep_machine(comm: Comm, machine: Machine) -> bool:
    """Keep the machine of these ranks; whether it was kept. Collective."""
    comm.cache.pop(_KNOWN, None)
    return remembered(comm, machine_key(comm), machine.as_dict())


def as_machine(decision: Any) -> Machine:
    """The machine that was kept.

    Raises:
        ValueError, PlanError: the decision is none.
    """
    names = {field.name for field in fields(Machine)}
    if not isinstance(decision, Mapping) or decision.keys() != names:
        raise ValueError(f"a machine has {', '.join(sorted(names))}")
    return Machine(**decision)
