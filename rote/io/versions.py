"""Versions of files: all ranks read one version of a file, although another program may replace it meanwhile.

Each rank opens the file by its name, and its name may lead to a new file at any time. So the ranks compare what they
have opened before they read, and what they have read afterwards. A file that a rank has open stays, whatever becomes of
its name, and no other file gets its number until all have closed it.

    rank 0   open v1 ─┐ compare: v1, v2     open v2 ─┐ compare: v2, v2   read v2   v2 still?
    rank 1   open v2 ─┘ not one: again      open v2 ─┘ one version       read v2   v2 still?
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Self, TypeVar

from ..errors import RoteError
from ..runtime.comm.agreement import collective_errors
from ..runtime.comm.protocol import Comm, Path

__all__ = ["Opened", "Replaced", "Version", "again_if_replaced", "one_version"]

T = TypeVar("T")
Source = TypeVar("Source")

_PAUSES = (0.01, 0.03, 0.1, 0.3)  # seconds before each further attempt


class Replaced(RoteError):
    """Another program replaced or changed a file while ranks read it: what they read is no version of it."""

    @classmethod
    def at(cls, path: Path) -> Self:
        """The error for a file of this name."""
        return cls(
            f"{os.fspath(path)} was replaced, changed or removed by another program while ranks read it\n"
            "load it again when nobody writes it"
        )


class Version(NamedTuple):
    """A version of the files that a rank has open.

    Attributes:
        numbers: of the files, their inodes. A file system in user space may number the same files on each host anew,
            so only ranks of one node compare them.
        stamps: sizes, times and the like, which are the same on all ranks.
        more: that of what this rank alone reads.
    """

    numbers: tuple[int, ...]
    stamps: tuple[Any, ...]
    more: Any = None

    @classmethod
    def of(cls, *files: os.stat_result) -> Self:
        """The version of some files, by what the system says of each."""
        return cls(tuple(file.st_ino for file in files), tuple((file.st_size, file.st_mtime_ns) for file in files))


@dataclass(frozen=True, slots=True)
class Opened(Generic[Source]):
    """What a rank has open to read from, and its version. The context manager of a format makes it, and closes all.

    Attributes:
        source: what the format reads from.
        look: finds the version now, which is another one if a file was changed in place since.
    """

    source: Source
    version: Version
    look: Callable[[], Version]


@contextmanager
def one_version(
    path: Path, comm: Comm, opening: AbstractContextManager[Opened[Source]] | None
) -> Iterator[Source | None]:
    """What each rank opens under a name: of one version on all ranks, before and after the body. Collective.

    The body must raise on all ranks or on none.

    Args:
        path: the name, for errors.
        opening: opens the file; a rank that reads nothing has None.

    Raises:
        Replaced: the ranks opened several versions, or the file was changed during the body, whatever the body raises.
    """
    opened: Opened[Source] | None = None
    failure: Exception | None = None
    with ExitStack() as files:
        with collective_errors(comm):
            try:
                opened = None if opening is None else files.enter_context(opening)
            except FileNotFoundError:
                raise Replaced.at(path) from None

        shared = None if opened is None else opened.version[:2]
        if not _is_one(comm.nodes(), comm.allgather_object(shared)):
            raise Replaced.at(path)

        try:
            yield None if opened is None else opened.source
        except Exception as error:  # a file that was changed may seem to be damaged
            failure = error

        if any(comm.allgather_object(opened is not None and _is_changed(opened))):
            raise Replaced.at(path) from failure
        if failure is not None:
            raise failure


def _is_changed(opened: Opened[Any]) -> bool:
    """Whether a file was changed since it was opened."""
    try:
        return opened.look() != opened.version
    except OSError:
        return True


def _is_one(nodes: Sequence[int], versions: Sequence[tuple[Any, Any] | None]) -> bool:
    """Whether the numbers and stamps that ranks found are those of one version; None of ranks that opened nothing.

    >>> one, other = ((7,), ((80, 5),)), ((8,), ((80, 5),))
    >>> _is_one((0, 0), (one, None)), _is_one((0, 0), (one, other)), _is_one((0, 1), (one, other))
    (True, False, True)
    """
    pairs = {(node, version) for node, version in zip(nodes, versions, strict=True) if version is not None}
    stamps = {version[1] for _, version in pairs}
    return len(pairs) == len({node for node, _ in pairs}) and len(stamps) <= 1


def again_if_replaced(read: Callable[[], T]) -> T:
    """The result of `read`, which is called again, a few times, if a file is replaced meanwhile; on all ranks alike."""
    for pause in _PAUSES:
        with suppress(Replaced):
            return read()
        time.sleep(pause)
    try:
        return read()
    except Replaced as error:
        raise RoteError(str(error)) from error
