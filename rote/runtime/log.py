"""The log of a job: `logging.getLogger("rote")` has a line at INFO for each plan, each choice and each file."""

from __future__ import annotations

import sys

from .comm.protocol import Comm

__all__ = ["log"]


def log(comm: Comm, text: str, *values: object) -> None:
    """Log a line at INFO, from rank 0; `values` are formatted into `text` only if somebody listens.

    It is called where something is made that later calls find again, so that these cost nothing.
    """
    logging = sys.modules.get("logging")  # a program that listens has imported it; others need not wait for that
    if logging is not None and comm.rank == 0:
        logging.getLogger("rote").info(text, *values)
