"""What something costs, counted by its calls: clocks differ from machine to machine and from hour to hour."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable


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
