"""`python -m rote` is the command line `rote`."""

from __future__ import annotations

import sys
from time import perf_counter, process_time

__all__ = ["start"]


def start() -> None:
    """Run the command line and exit; Ctrl-C ends it cleanly from the first import on."""
    try:
        from .cli import main

        main(obj=perf_counter() - process_time())  # about when this process started: so far it has not waited
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)  # the status of `cli.output`, which may not be imported yet


if __name__ == "__main__":
    start()
