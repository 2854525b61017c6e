"""`python -m rote` is the command line `rote`."""

from __future__ import annotations

import sys
from time import perf_counter, process_time

__all__ = ["start"]


def start() -> None:
    """Run the command line and exit; Ctrl-C is an answer from the first import on."""
    try:
        from .cli import main

        main(obj=perf_counter() - process_time())  # when this process began: until here it has computed all the time
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)  # as `cli.failures` has it, which may not be there yet


if __name__ == "__main__":
    start()
