"""Parameters that several commands take: numbers, bytes, threads, files; and checks that refuse some at once."""

from __future__ import annotations

import errno
import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..errors import LayoutError, RoteError, counted
from ..host import cores

if TYPE_CHECKING:
    import numpy as np

    from ..runtime.comm.protocol import Comm

__all__ = ["TRANSFORMED", "Bytes", "Counts", "Integers", "PictureFile", "dtype_option", "force_option", "known"]
__all__ += ["machine_option", "of_ffts", "ranks_option", "refuse_others", "refuse_target", "refuse_too_many"]
__all__ += ["threads_option"]

_AMOUNT = re.compile(
    r"(?P<number>[0-9][0-9_]*(?:\.[0-9]+)?)\s*(?:(?P<prefix>[KMGTPE])(?P<unit>iB|B)?|B)?", re.IGNORECASE
)

_PICTURES = ("png", "pdf", "svg", "eps", "jpg", "jpeg", "tif", "tiff", "webp")

Command = TypeVar("Command", bound=Callable[..., Any])

threads_option = click.option(
    "--threads", metavar="N", type=click.IntRange(min=1), help="Threads per rank, for local transforms; default 1."
)
force_option = click.option("--force", is_flag=True, help="Overwrite existing files.")


def known(names: Callable[[], Iterable[str]]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """By which a shell completes the usual names; the command itself decides whether a text is valid."""
    return lambda context, option, text: [name for name in names() if name.startswith(text)]


def _machines() -> Iterable[str]:
    from ..machines.machine import Machine

    return Machine.names()


machine_option = click.option(
    "--machine",
    metavar="NAME|FILE",
    shell_complete=known(_machines),
    help="The machine whose times count: a name of rote.Machine.names(), as k-computer, or a profile in a file *.toml.",
)


def ranks_option(default: str = "") -> Callable[[Command], Command]:
    """The option --ranks of commands that run on MPI's ranks or on threads of this process."""
    text = f"Ranks in this process, if no mpiexec starts them{default}."
    return click.option("--ranks", metavar="N", type=click.IntRange(min=1), help=text)


class Integers(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    """A few integers, written 8x9x10 or 8,9,10; `()` is none of them.

    >>> [Integers().convert(text, None, None) for text in ("8x9,10", "7", "()")]
    [(8, 9, 10), (7,), ()]
    """

    name = "integers"

    def __init__(self, signed: bool = False) -> None:
        self._integer = re.compile(("-?" if signed else "") + "[0-9]{1,18}")

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """The integers; a usage error if the text has anything else."""
        parts = [] if value == "()" else [part.strip() for part in re.split("[,x]", value)]

        if not all(map(self._integer.fullmatch, parts)):
            example = getattr(param, "metavar", None) or "8x9x10"
            self.fail(f"{value!r} is not made of integers; write it as {example}", param, ctx)

        return tuple(map(int, parts))


class Bytes(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    """A number of bytes, as people write it; K and KiB are 1024 of them, KB is 1000.

    >>> [Bytes().convert(text, None, None) for text in ("100_000", "64K", "1.5 GiB", "2MB", "7b")]
    [100000, 65536, 1610612736, 2000000, 7]
    """

    name = "bytes"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; a usage error if the text is not one."""
        amount = _AMOUNT.fullmatch(value.strip())
        if amount is None:
            self.fail(f"{value!r} is no number of bytes; write it as 100000, 64K, 1.5GiB or 2MB", param, ctx)

        # A bare prefix counts in 1024, as Rote prints it; only KB, MB, ... are powers of 1000.
        unit = 1
        if amount["prefix"]:
            thousand = 1000 if (amount["unit"] or "").upper() == "B" else 1024
            unit = thousand ** ("KMGTPE".index(amount["prefix"].upper()) + 1)

        return int(Decimal(amount["number"]) * unit)


class Counts(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    """Numbers of ranks: one, several with commas, or `a..b` for a, 2a, 4a, ... up to b.

    >>> [Counts().convert(text, None, None) for text in ("8", "6,12", "32..300")]
    [(8,), (6, 12), (32, 64, 128, 256)]
    """

    name = "integer range"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """The numbers in ascending order; a usage error if there are none."""
        numbers = set[int]()
        for part in value.split(","):
            ends = re.fullmatch(r"\s*([0-9]{1,18})\s*(?:\.\.\s*([0-9]{1,18})\s*)?", part)
            first, last = (int(end) for end in (ends[1], ends[2] or ends[1])) if ends else (0, 0)

            if not 1 <= first <= last:
                self.fail(f"{value!r} is no number of ranks from 1 on; write 8, or 8,12, or 8..64", param, ctx)

            while first <= last:
                numbers.add(first)
                first *= 2

        return tuple(sorted(numbers))


TRANSFORMED = ("f4", "f8", "c8", "c16")
_DTYPES = (*TRANSFORMED, "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")

dtype_option = click.option(
    "--dtype",
    metavar="DTYPE",
    shell_complete=known(lambda: _DTYPES),
    default="f8",
    show_default=True,
    help="The dtype of the elements, as in NumPy.",
)


def of_ffts(text: str) -> np.dtype[Any]:
    """The dtype of a tensor that is to be transformed; for integers the user must choose a precision."""
    from ..compiler.step import as_dtype

    element = as_dtype(text)
    if element.kind not in "fc":
        raise LayoutError(f"FFTs are of real or complex numbers, not of {element}; write f4, f8, c8, c16, ...")
    return element


class PictureFile(click.Path):
    """The path of a picture, whose ending names a format that Matplotlib writes."""

    name = "picture"

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path as a text; a usage error if its ending names no such format."""
        path = os.fsdecode(super().convert(value, param, ctx))
        if os.path.splitext(path)[1].lower().removeprefix(".") not in _PICTURES:
            self.fail(f"{path} does not end as a picture does; write .{', .'.join(_PICTURES)}", param, ctx)
        return path


def refuse_others(kind: str, table: Mapping[str, tuple[str, ...]], options: Mapping[str, Any]) -> None:
    """Refuse the options that a command takes for other kinds of things only; the table has the names of each kind."""
    for name in chain(*table.values()):
        if options[name] and name not in table[kind]:
            others = " and ".join([other for other, names in table.items() if name in names])
            raise click.UsageError(f"--{name.replace('_', '-')} is for {others}, not for {kind}")


def refuse_target(path: str, force: bool, source: str | None = None) -> None:
    """Refuse to write a file that cannot be written, or that would overwrite another one unless `force` is given.

    The file `source` is read, and is never overwritten, by whatever name.
    """
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "there is no such folder; make it first", folder)

    if os.path.isdir(path or folder):
        raise IsADirectoryError(errno.EISDIR, "this is a folder; name a file in it", path or folder)

    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, "this folder cannot be written to", folder)

    if source is not None and os.path.exists(path) and os.path.samefile(source, path):
        other = "" if path == source else f" is the same file as {source}, which"
        raise RoteError(f"{path}{other} is the input, and would be lost; give the result a name of its own")

    if os.path.lexists(path) and not force:
        raise FileExistsError(errno.EEXIST, "this is there already; --force overwrites it", path)


def refuse_too_many(comm: Comm, threads: int) -> None:
    """Refuse several threads per rank, on all ranks, if a host has too few cores for them. Collective."""
    if threads == 1:
        return

    replies = comm.allgather_object((platform.node(), cores()))
    for host in dict.fromkeys(host for host, _ in replies):
        ranks_cores = [usable for name, usable in replies if name == host]
        # All ranks have the union of their cores; each has as many as the one that is bound to the fewest.
        free = min(len(frozenset().union(*ranks_cores)), len(ranks_cores) * min(map(len, ranks_cores)))

        needed, fits = len(ranks_cores) * threads, free // len(ranks_cores)
        if needed > free:
            hint = f"write --threads {fits}, or start fewer ranks" if fits > 1 else "leave --threads out"
            raise RoteError(
                f"{threads} threads on each of {counted(len(ranks_cores), 'rank')} are {needed}, and {host} has "
                f"{counted(free, 'core')} for them\n{hint}; mpiexec may bind ranks to fewer cores than there are"
            )
