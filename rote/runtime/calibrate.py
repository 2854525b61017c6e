"""Calibration: the times of a message, a byte, a copy, a reduction and a step, for the `Machine` of the cost model.

Everything is timed by the autotuner's clock, as plans use it: with all ranks at work at once, on blocks of 16 MiB,
which few caches hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

import numpy as np

from .. import wisdom
from ..compiler.compile import compile
from ..compiler.machine import DEFAULT, Machine
from .autotune import Progress, medians, ranks_key, recalled, remembered
from .comm.protocol import Comm
from .program import bind

__all__ = [
    "as_machine",
    "keep_machine",
    "known_machine",
    "machine_key",
    "measure",
    "recalled_machine",
]

_LARGE = 1 << 21  # elements of 8 bytes that a rank sends, copies or reduces at once
_RUN = 64  # elements in a row that are copied, of twice as many
_OFTEN = 20  # times that a short call is made for one reading of the clock
_KNOWN = "machine"  # where a communicator keeps its own
_LEAST = 1e-13  # seconds: no time is 0, whatever the noise


def measure(comm: Comm, seconds: float = 2.0, progress: Progress | None = None) -> Machine:
    """Measure the machine under the ranks of a communicator. Collective; the same on all ranks.

    One rank alone has no messages: it sends them to itself.

    Args:
        seconds: the most that it may take, about; one round is always made.
        progress: called after each turn with the part of the time that has passed.

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


def machine_key(comm: Comm) -> wisdom.Key:
    """The key under which the machine of these ranks is kept. Collective."""
    return ranks_key(comm, {"what": "machine"})


def recalled_machine(comm: Comm) -> Machine | None:
    """The machine of these ranks as it was once measured and kept; None if it was not. Collective."""
    if not comm.allgather_object(comm.rank == 0 and wisdom.kept())[0]:
        return None  # and no key is made, for which the versions of packages are looked up
    machine: Machine | None = recalled(comm, machine_key(comm), as_machine)
    return machine


def known_machine(comm: Comm) -> Machine:
    """The machine of these ranks: as `recalled_machine` finds it the first time, else the usual one. Collective."""
    if _KNOWN not in comm.cache:
        comm.cache[_KNOWN] = recalled_machine(comm) or DEFAULT
    return cast(Machine, comm.cache[_KNOWN])


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
