"""What something costs, counted by its calls: clocks differ from machine to machine and from hour to hour."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any


def calls(do: Callable[[], object]) -> int:
    """The number of calls that `do` makes in this and in new threads, of Python functions and of those in C."""
    made = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        do()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return made


def passed(do: Callable[[], object]) -> list[str]:
    """The Python functions that a call passes in this thread, in order."""
    names: list[str] = []

    def see(frame: Any, event: str, argument: object) -> None:
        if event == "call":
            names.append(frame.f_code.co_qualname)

    sys.setprofile(see)
    try:
        do()
    finally:
        sys.setprofile(None)
    return names


def meetings(monkeypatch: Any, kind: type, names: Iterable[str]) -> Counter[str]:
    """How often rank 0 calls methods of a kind of communicator from now on, by their names."""
    counts: Counter[str] = Counter()

    def counted(name: str) -> Callable[..., object]:
        call = getattr(kind, name)

        def run(comm: Any, *args: object) -> object:
            if comm.rank == 0:  # one thread alone counts, so that none is lost
                counts[name] += 1
            return call(comm, *args)

        return run

    for name in names:
        monkeypatch.setattr(kind, name, counted(name))
    return counts
