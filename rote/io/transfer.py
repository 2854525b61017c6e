"""A file while it is read or written: the draft that replaces it atomically, and the progress that a user sees.

A new file or folder gets its name when it is complete; until then the old one stays. Reads and writes go by *slabs*,
the steps of progress, which a bar on a terminal or a callback shows.
"""

from __future__ import annotations

import atexit
import ctypes
import errno
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from math import prod

from ..errors import RoteError
from ..layout.indexset import IndexSet
from ..runtime.choose import Progress
from ..runtime.comm.agreement import collective_errors
from ..runtime.comm.protocol import Array, Comm, Path
from ..runtime.comm.rawfile import plainly

__all__ = ["DRAFT", "SLAB", "TEMPORARY", "Advance", "Draft", "progress", "replacing", "reserve", "slabs", "sync"]

DRAFT = ".rote-"  # how the name of a draft begins
Advance = Callable[[int], None]  # called with the number of bytes that have just been moved

_TRIES = 3  # to delete a folder in which another thread may still make a file

TEMPORARY: dict[str, int] = {}
"""The drafts and lock files that exist now, each with the process that made it, which deletes them when it ends.

An interrupted in-process rank may be busy in a call of the system, and ends with the process, without its `finally`.
"""


@atexit.register
def _delete_temporary() -> None:
    for path, process in tuple(TEMPORARY.items()):
        if process == os.getpid():  # and no fork of it
            _delete(path)


@dataclass(frozen=True, slots=True)
class Draft:
    """A file or folder that is still being written: it is at `path`, in the folder of `target`, its later name.

    `model` is a file or folder whose owner and permissions it will have, for example the one that it replaces.
    """

    path: str
    target: str
    model: str | None = None

    @staticmethod
    def new(path: Path, folder: bool = False) -> Draft:
        """An empty file or folder in the folder of the one that it will replace; one of another kind is refused."""
        name, target = os.fspath(path), os.path.realpath(path)
        if os.path.islink(target):  # a link to itself, or a circle of links
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        if os.path.isdir(target) and not folder:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if os.path.isfile(target) and folder:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)

        exists = os.path.exists(target)
        if exists and not os.path.isfile(target) and not os.path.isdir(target):
            raise RoteError(f"{name} is a device or a pipe, and saving would replace it\ngive another name")
        if exists and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)

        draft = os.path.join(os.path.dirname(target), f"{DRAFT}{secrets.token_hex(8)}.part")
        # Nobody else may read the draft of a file that nobody else may read. What is new has the user's usual mode.
        mode = 0o700 if exists else 0o777
        TEMPORARY[draft] = os.getpid()
        with plainly(path):
            if folder:
                os.mkdir(draft, mode)
            else:
                os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode & 0o666))
        return Draft(draft, target, target if exists else None)

    def publish(self) -> None:
        """Flush the draft to the disk, and then give it its name in one step."""
        if self.model is not None and os.path.exists(self.model):
            _imitate(self.path, self.model)

        if os.path.isdir(self.path):
            for folder, _, _ in os.walk(self.path):
                sync(folder)
            if os.path.isdir(self.target):
                _exchange(self.path, self.target)
                shutil.rmtree(self.path, ignore_errors=True)  # by now this is the old folder
            else:
                os.rename(self.path, self.target)
        else:
            sync(self.path)  # before the rename: else a crash could leave the new name with no contents
            os.replace(self.path, self.target)

        TEMPORARY.pop(self.path, None)
        with suppress(OSError):  # some systems cannot sync folders, and the draft has its name already
            sync(os.path.dirname(self.target))

    def remove(self) -> None:
        """Delete the draft."""
        _delete(self.path)
        TEMPORARY.pop(self.path, None)


@contextmanager
def replacing(path: Path, comm: Comm, begin: Callable[[Draft], Draft | None], folder: bool = False) -> Iterator[Draft]:
    """A draft that all ranks may write; it gets its name after the body, or is deleted on any failure.

    Collective; the body must raise on all ranks or on none. Only rank 0 creates, names and deletes the draft. First it
    calls `begin`, which writes the draft's first contents, and may return a draft with another target.
    """
    draft: Draft | None = None
    try:
        with collective_errors(comm):
            if comm.rank == 0:
                draft = Draft.new(path, folder)
                draft = begin(draft) or draft
        shared: Draft = comm.allgather_object(draft)[0]

        yield shared

        with collective_errors(comm), plainly(path):
            if draft is not None:
                draft.publish()
    except BaseException:
        if draft is not None:
            draft.remove()
        raise


def _delete(path: str) -> None:
    """Delete a file, or a folder with all that is in it, if it is there."""
    for _ in range(_TRIES):
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        os.unlink(path)


def reserve(path: str, size: int) -> None:
    """Allocate a file's space now, if the system can: if the disk is full later, a process that maps the file ends,
    and a library may fail halfway through."""
    if not hasattr(os, "posix_fallocate"):
        return

    with open(path, "r+b") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
                raise


def sync(path: str) -> None:
    """Wait until the bytes of a file, or the names in a folder, are on the disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _imitate(path: str, model: str) -> None:
    """Give a file, or a folder with all that is in it, the owner and permissions of another one.

    Files in a folder get those of a file in the other folder.
    """
    whole = os.stat(model)
    _set_permissions(path, whole)
    if not os.path.isdir(path):
        return

    with os.scandir(model) as entries:
        example = next((entry.stat() for entry in entries if entry.is_file()), None)
    for folder, folders, files in os.walk(path):
        for name in folders:
            _set_permissions(os.path.join(folder, name), whole)
        for name in files:
            if example is not None:
                _set_permissions(os.path.join(folder, name), example)


def _permissions(status: os.stat_result) -> tuple[int, int, int]:
    """The user, the group and the mode of a file."""
    return status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)


def _set_permissions(path: str, like: os.stat_result) -> None:
    """Give a file the mode of another, and its owner as far as the system allows."""
    user, group, mode = _permissions(like)
    now = _permissions(os.stat(path))
    if now[:2] != (user, group):
        for owner in (user, -1):  # only root may give a file to another user, but its group may be kept
            with suppress(OSError):
                os.chown(path, owner, group)
                break
    if now != (user, group, mode):
        os.chmod(path, mode)  # last, because a new owner costs some bits of the mode


def _exchange(first: str, second: str) -> None:
    """Exchange the names of two folders: in one step if the system can, else in three."""
    with suppress(AttributeError, OSError):
        exchange = ctypes.CDLL(None, use_errno=True).renameat2
        if exchange(-100, os.fsencode(first), -100, os.fsencode(second), 2) == 0:  # AT_FDCWD, RENAME_EXCHANGE
            return

    spare = f"{first}.old"
    os.rename(second, spare)
    try:
        os.rename(first, second)
    except BaseException:  # an interrupt, too
        os.rename(spare, second)
        raise
    os.rename(spare, first)


# --- progress --------------------------------------------------------------------------------------------------------

LONG, SLAB = 1 << 28, 1 << 26  # bytes: the least that a bar is shown for, and the most of a slab


@contextmanager
def progress(comm: Comm, verb: str, path: Path, nbytes: int, listener: Progress | None = None) -> Iterator[Advance]:
    """Yield a function to call with the bytes just moved, of `nbytes` on this rank. Collective.

    It calls `listener` on this rank with the fraction done; the last call is with 1, if nothing failed. An exception of
    `listener` is raised on all ranks, but only at the end, because the other ranks need this one until then. If it is
    None, rank 0 shows a bar on its terminal for 256 MiB or more.

    >>> from rote.runtime import world
    >>> with progress(world(), "reading", "volume.h5", 200, print) as advance:
    ...     advance(50)
    0.25
    1.0
    """
    done, last = 0, 0.0
    failures: list[Exception] = []
    shown = listener is None and comm.rank == 0 and nbytes >= LONG and sys.stderr.isatty()

    with _bar(verb, path, nbytes) if shown else nullcontext(listener) as show:

        def tell(part: float) -> None:
            nonlocal last
            if show is not None and not failures and part > last:
                last = part
                try:
                    show(part)
                except Exception as failure:
                    failures.append(failure)

        def advance(moved: int) -> None:
            nonlocal done
            done += moved
            if done < nbytes:
                tell(done / nbytes)

        yield advance
        tell(1.0)

    with collective_errors(comm):
        if failures:
            raise failures[0]


@contextmanager
def _bar(verb: str, path: Path, nbytes: int) -> Iterator[Progress]:
    """Show a bar; yield a function to call with the fraction done."""
    from rich import progress as rich
    from rich.console import Console

    columns = rich.TextColumn("{task.description}"), rich.BarColumn(), rich.DownloadColumn(True)
    console = Console(stderr=True)
    with rich.Progress(*columns, rich.TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(f"{verb} {os.path.basename(os.fspath(path))}", total=nbytes)
        yield lambda part: bar.update(task, completed=int(part * nbytes))


def slabs(
    index: tuple[IndexSet, ...], block: Array, largest: Sequence[int]
) -> Iterator[tuple[tuple[IndexSet, ...], Array]]:
    """The slabs of a block along its first mode, at most about 64 MiB each, with indices; equally many on every rank.

    `index` has the global indices of the block, and `largest` the extents of the largest block of all ranks.

    >>> import numpy as np
    >>> index = IndexSet.interval(0, 5), IndexSet.interval(0, 2**21)
    >>> [part.shape for _, part in slabs(index, np.empty((5, 2**21)), (9, 2**21))]
    [(4, 2097152), (1, 2097152), (0, 2097152)]
    """
    if not index:
        yield index, block
        return
    step = max(SLAB // max(prod(largest[1:]) * block.dtype.itemsize, 1), 1)
    for start in range(0, largest[0], step):
        yield (index[0].select(IndexSet.interval(start, start + step)), *index[1:]), block[start : start + step]
