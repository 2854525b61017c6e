"""The machine "here": what `rote tune` kept on a host like this one, with the versions that are installed.

It is found without a communicator, so a notebook on a laptop has it. Each number of ranks has times of its own. Those
of the most ranks count, because they know what ranks share; of as many ranks those on the most hosts, and MPI's.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import PlanError, counted
from ..wisdom import Key, key, recall, records

__all__ = ["measured"]

T = TypeVar("T")


def measured(make: Callable[..., T]) -> T:
    """The machine that `make` makes of the times, and of a name that says on what ranks they were measured.

    Raises:
        PlanError: nothing is kept that was measured here.
    """
    ours = json.loads(key({}).text)
    candidates: list[tuple[int, int, str, Key]] = []
    for record in records():
        of, facts = json.loads(record.key.text), record.key.facts
        ranks, hosts, mpi = facts.get("ranks"), facts.get("hosts"), of["versions"].get("mpi", "")

        # Wisdom may have been imported from another machine, and files may hold anything.
        same_machine = of["machine"] == ours["machine"] and of["versions"] == ours["versions"] | {"mpi": mpi}
        if same_machine and facts.get("what") == "machine" and isinstance(ranks, int) and isinstance(hosts, int):
            candidates.append((ranks, hosts, str(mpi), record.key))

    for ranks, hosts, mpi, record_key in sorted(candidates, key=lambda candidate: candidate[:3], reverse=True):
        where = counted(ranks, "MPI rank" if mpi else "thread") + f" of {counted(hosts, 'host')}" * (hosts > 1)

        def read(times: Any, name: str = f"here, measured on {where}") -> T:
            return make(**{**times, "name": name})

        machine: T | None = recall(record_key, read)  # None, with a warning, if it holds no times
        if machine is not None:
            return machine

    raise PlanError('nothing is measured for the machine "here"\nrun `rote tune`, which measures and keeps it')
