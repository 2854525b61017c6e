"""The files that commands leave: what cannot be written, or must not be, is refused before the work."""

from __future__ import annotations

import errno
import os

import click

from ..errors import RoteError

__all__ = ["PictureFile", "force_option", "refuse_target"]

force_option = click.option("--force", is_flag=True, help="Overwrite files that are there already.")

_PICTURES = ("png", "pdf", "svg", "eps", "jpg", "jpeg", "tif", "tiff", "webp")


class PictureFile(click.Path):
    """The path of a picture: of a format that Matplotlib writes, by its ending."""

    name = "picture"

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path as a text; a usage error if no picture can have it."""
        path = os.fsdecode(super().convert(value, param, ctx))
        if os.path.splitext(path)[1].lower().removeprefix(".") not in _PICTURES:
            self.fail(f"{path} does not end as a picture does; write .{', .'.join(_PICTURES)}", param, ctx)
        return path


def refuse_target(path: str, force: bool, source: str | None = None) -> None:
    """Refuse to write a file where there is no place for it, or where one is lost.

    Args:
        path: of the file.
        force: whether one that is there may be overwritten.
        source: a file that is there and is read; it is never overwritten, by whatever name.

    Raises:
        OSError: the folder is not there or cannot be written to, or something has this name already.
        RoteError: it is the source.
    """
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "there is no such folder; make it first", folder)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "this is a folder; name a file in it", path)
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, "this folder cannot be written to", folder)
    if source is not None and os.path.exists(path) and os.path.samefile(source, path):
        other = "" if path == source else f" is the same file as {source}, which"
        raise RoteError(f"{path}{other} is the input, and would be lost; give the result a name of its own")
    if os.path.lexists(path) and not force:
        raise FileExistsError(errno.EEXIST, "this is there already; --force overwrites it", path)
