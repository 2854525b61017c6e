"""Locks: one job at a time changes a file, and another one waits for it, or fails and says which job that is.

A lock is a small file in the folder of what it locks. The system makes it for only one job (`O_EXCL`), on network file
systems too, and the job deletes it at the end. A job that is killed leaves it. The next job on the same host takes it
over, because the system's own lock on it (`flock`) has ended with the process. On other hosts nothing tells a lock that
was left from one that is held, so the error says which file to delete.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from zlib import crc32

from ..errors import RoteError
from ..runtime.comm.agreement import collective_errors
from ..runtime.comm.protocol import Comm, Path
from ..runtime.comm.rawfile import plainly
from .transfer import DRAFT, TEMPORARY

__all__ = ["locked"]

PATIENCE = 60.0
"""Seconds for which a job waits for another one."""

_PAUSE = 0.02  # seconds between two attempts


@contextmanager
def locked(path: Path, comm: Comm, needed: bool = True) -> Iterator[None]:
    """Let no other job change a file during the body. Collective; rank 0 locks for all, if it says that it is needed.

    Raises:
        RoteError: another job holds the lock for more than a minute.
        OSError: the lock cannot be made.
    """
    with ExitStack() as locks:
        with collective_errors(comm), plainly(path):
            if comm.rank == 0 and needed:
                locks.enter_context(_lock(path))

        yield
    comm.barrier()  # no rank returns while the lock file is still there


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold the lock of a file, as soon as no other job does."""
    target = os.path.realpath(path)
    letters = crc32(os.fsencode(os.path.basename(target)))  # the name itself may be as long as names may be
    name = os.path.join(os.path.dirname(target), f"{DRAFT}{letters:08x}.lock")

    last = time.monotonic() + PATIENCE
    while (number := _acquired(name)) is None:
        if time.monotonic() > last:
            raise RoteError(
                f"{os.fspath(path)} is being written by {_holder(name)[1]}\n"
                f"save when it has ended; if it has ended already, delete {name}"
            )
        time.sleep(_PAUSE)

    TEMPORARY[name] = os.getpid()
    try:
        _sign(number, target)
        yield
    finally:  # so that another job can make it
        with suppress(OSError):
            os.unlink(name)
        TEMPORARY.pop(name, None)
        os.close(number)


def _sign(number: int, target: str) -> None:
    """Write into an open lock file which process holds it."""
    host = os.uname().nodename
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    text = f"{host}\nprocess {os.getpid()} on {host}, since {since}\n{target}\n"
    os.ftruncate(number, 0)
    os.pwrite(number, text.encode("utf-8", "surrogateescape"), 0)


def _acquired(name: str) -> int | None:
    """The descriptor of a lock file that is new, or whose process has ended; None if that may still run."""
    try:
        number = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return _taken_over(name) if _holder(name)[0] == os.uname().nodename else None
    _lives_with_process(number)
    return number


def _taken_over(name: str) -> int | None:
    """The descriptor of a lock file of this host whose process has ended; None if it still runs."""
    try:
        number = os.open(name, os.O_RDWR)
    except OSError:  # it is gone now, or another user's
        return None

    # Another job may have taken it over and deleted it before this one got it: then its name leads elsewhere.
    with suppress(OSError):
        if _lives_with_process(number) and os.stat(name).st_ino == os.fstat(number).st_ino:
            return number
    os.close(number)
    return None


def _lives_with_process(number: int) -> bool:
    """Whether this process alone now has the system's lock on an open file, which ends when the process does."""
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another process has it, or the file system knows no locks
        return False
    return True


def _holder(name: str) -> tuple[str, str]:
    """The host of the process that holds a lock, and the process in words."""
    with suppress(OSError), open(name, encoding="utf-8", errors="surrogateescape") as file:
        host, process, *_ = *file.read().splitlines(), "", ""
        if process:
            return host, process
    return "", "another process"
