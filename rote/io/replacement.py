"""Atomic replacement of files and folders: a new one gets its name when complete; until then the old one stays."""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from ..errors import RoteError
from ..runtime.comm.collective_errors import collective_errors
from ..runtime.comm.protocol import Comm, Path

__all__ = ["DRAFT", "Draft", "plainly", "replacing", "reserve", "sync"]

DRAFT = ".rote-"  # how the name of a draft begins


@dataclass(frozen=True, slots=True)
class Draft:
    """A file or folder that is still being written: it is at `path`, in the folder of `target`, its later name."""

    path: str
    target: str

    @staticmethod
    def beside(path: Path, folder: bool = False) -> Draft:
        """A new, empty file or folder beside the one that it will replace; one of another kind is refused."""
        name, target = os.fspath(path), os.path.realpath(path)
        if os.path.isdir(target) and not folder:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if os.path.isfile(target) and folder:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
        if os.path.exists(target) and not os.path.isfile(target) and not os.path.isdir(target):
            raise RoteError(f"{name} is a device or a pipe, and saving would replace it\ngive another name")
        if os.path.exists(target) and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        draft = os.path.join(os.path.dirname(target), f"{DRAFT}{secrets.token_hex(8)}.part")
        with plainly(path):
            if folder:
                os.mkdir(draft)
            else:
                os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666))
        return Draft(draft, target)

    def publish(self) -> None:
        """Flush the draft to the disk, and then give it its name in one step."""
        if os.path.isdir(self.path):
            for folder, _, _ in os.walk(self.path):
                sync(folder)
            if os.path.isdir(self.target):
                _exchange(self.path, self.target)
                shutil.rmtree(self.path, ignore_errors=True)  # by now this is the old folder
            else:
                os.rename(self.path, self.target)
        else:
            sync(self.path)
            if os.path.exists(self.target):
                shutil.copymode(self.target, self.path)
            os.replace(self.path, self.target)
        with suppress(OSError):  # some systems cannot sync folders, and the draft has its name already
            sync(os.path.dirname(self.target))

    def remove(self) -> None:
        """Delete the draft."""
        if os.path.isdir(self.path):
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            with suppress(OSError):
                os.unlink(self.path)


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
                draft = Draft.beside(path, folder)
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


def reserve(path: str, size: int) -> None:
    """Allocate a file's space now, if the system can: if the disk is full later, a process that maps the file ends,
    and a library may fail halfway through."""
    if not hasattr(os, "posix_fallocate"):
        return
    file = os.open(path, os.O_RDWR)
    try:
        os.posix_fallocate(file, 0, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            raise
    finally:
        os.close(file)


def sync(path: str) -> None:
    """Wait until the bytes of a file, or the names in a folder, are on the disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


@contextmanager
def plainly(path: Path) -> Iterator[None]:
    """Let system errors name the user's file, not a draft or a part of it."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), os.fspath(path)) from None


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
    except OSError:
        os.rename(spare, second)
        raise
    os.rename(spare, first)
