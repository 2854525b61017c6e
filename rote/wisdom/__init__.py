"""Wisdom: decisions made by measuring, kept in the user's cache folder for later runs.

A decision is any JSON value: the times of a machine, the name of an algorithm, a grid. Its key describes what it was
measured on: the machine, the versions of the software, and the caller's own facts (shape, grid, dtype, layouts, ...). A
decision is found only if all of these are equal.

Each decision is one file, which is named after the hash of its key and contains the whole key for people to read. The
file is written under another name and then renamed. So readers find all of it or nothing, and processes that write at
the same time lose none of each other's decisions, without locks. Files that are damaged or foreign are ignored, with
one warning each. If the folder cannot be written, nothing is kept.

The environment variable ROTE_WISDOM names another folder; if it is empty, nothing is kept or found.

FFTW's own wisdom is part of the decisions on local transforms. Without timing there is none: FFTW then estimates its
plans, so that they are made at once and are the same on every rank and in every run. If ROTE_WISDOM is empty,
transforms with tune="model" time nothing, and their bits are the same in every run.

>>> seen = key({"what": "walk", "shape": (64, 64), "grid": [2]})
>>> seen.facts["shape"], seen == key({"grid": (2,), "what": "walk", "shape": [64, 64]})
([64, 64], True)
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import RoteError
from .record import Key, Record, as_json, as_record, demand, key, parse_json, spelt, written

__all__ = ["Key", "Record", "WisdomWarning", "export", "folder", "forget", "include", "kept", "key", "recall"]
__all__ += ["records", "remember"]

_DECISIONS, _LEFTOVERS = f"{'[0-9a-f]' * 32}.json", ".rote-*.tmp"  # the latter are left if a writer is killed

_ignored: set[str] = set()
_ignoring = threading.Lock()  # in-process ranks are threads, and only one of them warns


class WisdomWarning(UserWarning):
    """A file of wisdom is damaged, or is not wisdom, and is ignored.

    >>> import tempfile
    >>> from unittest.mock import patch
    >>> with tempfile.TemporaryDirectory() as place, patch.dict(os.environ, ROTE_WISDOM=place):
    ...     written = Path(place, f"{key({}).name}.json").write_text("damaged")
    ...     with warnings.catch_warnings(record=True) as caught:
    ...         warnings.simplefilter("always")
    ...         recall(key({}))
    >>> [warning.category.__name__ for warning in caught]
    ['WisdomWarning']
    """


def recall(key: Key, read: Callable[[Any], Any] | None = None) -> Any:
    """The decision that was remembered for a key; None if there is none.

    Args:
        key: a key equal to the one with which it was remembered.
        read: a function that converts the JSON value. If it raises RoteError, TypeError, ValueError or LookupError, the
            file is ignored.

    Returns:
        The JSON value, or the result of `read`.

    >>> import tempfile
    >>> from unittest.mock import patch
    >>> with tempfile.TemporaryDirectory() as place, patch.dict(os.environ, ROTE_WISDOM=place):
    ...     remember(key({"what": "walk"}), ["slab", 4]), recall(key({"what": "walk"}), tuple)
    (True, ('slab', 4))
    """
    place = folder()
    if place is None:
        return None
    path = place / f"{key.name}.json"
    record = _read(path)
    if record is None:
        return None
    try:
        return record.decision if read is None else read(record.decision)
    except (RoteError, TypeError, ValueError, LookupError) as error:
        _ignore(path, f"{error}")
        return None


def remember(key: Key, decision: Any) -> bool:
    """Keep a decision, replacing an earlier one for the same key.

    Returns:
        True, or False if it cannot be kept.

    Raises:
        TypeError, ValueError: the decision is not a JSON value.

    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, ROTE_WISDOM=""):  # nothing is kept
    ...     remember(key({"what": "walk"}), "slab")
    False
    """
    return _keep(Record(key, spelt(decision)))


def kept() -> bool:
    """Whether there may be any decisions; False if the folder is empty, or there is none.

    >>> import tempfile
    >>> from unittest.mock import patch
    >>> with tempfile.TemporaryDirectory() as place, patch.dict(os.environ, ROTE_WISDOM=place):
    ...     kept(), remember(key({"what": "walk"}), "slab"), kept()
    (False, True, True)
    """
    place = folder()
    try:
        return place is not None and (place.is_file() or next(place.glob(_DECISIONS), None) is not None)
    except OSError:
        return True  # `recall` then reports the problem


def records() -> tuple[Record, ...]:
    """All decisions with their keys, for every machine and version, sorted as text.

    >>> import tempfile
    >>> from unittest.mock import patch
    >>> with tempfile.TemporaryDirectory() as place, patch.dict(os.environ, ROTE_WISDOM=place):
    ...     saved = remember(key({"what": "walk"}), "slab")
    ...     [record.decision for record in records()]
    ['slab']
    """
    return tuple(sorted(filter(None, map(_read, _files(_DECISIONS))), key=str))


def forget(match: str = "", *, all: bool = False) -> tuple[Record | Path, ...]:
    """Forget every decision whose line (`str(record)`) contains `match`, or all of them.

    Args:
        match: a part of the line.
        all: whether to forget all decisions, and remove damaged files that are named like decisions and files that
            killed writers left. No other file is touched, whatever folder ROTE_WISDOM names.

    Returns:
        The forgotten decisions, and the paths of the other files.

    Raises:
        RoteError: neither argument is given, or both are.

    >>> import tempfile
    >>> from unittest.mock import patch
    >>> with tempfile.TemporaryDirectory() as place, patch.dict(os.environ, ROTE_WISDOM=place):
    ...     saved = remember(key({"what": "walk"}), "slab")
    ...     len(forget("what=plan")), len(forget("what=walk")), len(forget("what=walk"))
    (0, 1, 0)
    """
    if bool(match) == all:
        raise RoteError("say what to forget: a part of its line, or all=True for everything; not both")
    forgotten: list[Record | Path] = []
    for path in _files(_DECISIONS) + (_files(_LEFTOVERS) if all else []):
        record = _read(path) if path.suffix == ".json" else None
        if all or (record is not None and match in str(record)):
            with suppress(OSError):  # another process forgot it too, or the folder is read-only
                path.unlink()
                forgotten.append(record or path)
    return tuple(forgotten)


def export(path: str | os.PathLike[str]) -> int:
    """Write all decisions to one file, for `include` on another machine or by another user.

    Returns:
        The number of decisions.

    Raises:
        OSError: the file cannot be written.

    >>> import tempfile
    >>> from unittest.mock import patch
    >>> with tempfile.TemporaryDirectory() as place, patch.dict(os.environ, ROTE_WISDOM=place):
    ...     saved = remember(key({"what": "walk"}), "slab")
    ...     export("wisdom.json"), len(forget(all=True)), include("wisdom.json")
    (1, 1, 1)
    """
    known = [as_json(record) for record in records()]
    Path(path).write_text(written({"entries": known}), "utf-8")
    return len(known)


def include(path: str | os.PathLike[str]) -> int:
    """Keep all decisions from a file that `export` wrote, replacing those with the same keys.

    Returns:
        The number of decisions that were kept.

    Raises:
        OSError: the file cannot be read.
        RoteError: `export` did not write the file; then nothing of it is kept.

    >>> Path("empty.json").write_text("{}")
    2
    >>> include("empty.json")
    Traceback (most recent call last):
    rote.RoteError: empty.json holds no wisdom: it has no 'rote wisdom': 1
    give what rote tune --export wrote
    """
    data = Path(path).read_bytes()
    try:
        listed: Any = parse_json(data).get("entries")
        demand(isinstance(listed, list), "it has no list of entries")
        records = [as_record(each) for each in listed]
    except (ValueError, RecursionError) as error:
        raise RoteError(f"{os.fspath(path)} holds no wisdom: {error}\ngive what rote tune --export wrote") from None
    return sum(map(_keep, records))


def folder() -> Path | None:
    """The folder of the decisions, which need not exist; None if nothing is kept.

    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, ROTE_WISDOM="/tmp/wisdom"):
    ...     print(folder())
    /tmp/wisdom
    """
    named = os.environ.get("ROTE_WISDOM")
    if named is not None:
        return Path(os.path.expanduser(named)) if named else None
    from platformdirs import user_cache_path

    cache = user_cache_path("rote", appauthor=False) / "wisdom"
    return cache if cache.is_absolute() else None  # without a home directory it would be in the working directory


def _files(pattern: str) -> list[Path]:
    """The files of the folder whose names match a pattern."""
    place = folder()
    try:
        return sorted(place.glob(pattern)) if place else []
    except OSError:
        return []


def _keep(record: Record) -> bool:
    """Write the file of a record; False if it cannot be written."""
    from tempfile import mkstemp  # slow, it imports packers and random numbers: only if something is kept

    place = folder()
    if place is None:
        return False
    aside = ""
    try:
        place.mkdir(parents=True, exist_ok=True)
        handle, aside = mkstemp(prefix=".rote-", suffix=".tmp", dir=place)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(written(as_json(record)))
        os.replace(aside, place / f"{record.key.name}.json")
        return True
    except OSError:
        return False
    finally:
        with suppress(OSError):
            os.unlink(aside)


def _read(path: Path) -> Record | None:
    """The record in a file of the folder; None if there is none, with a warning if the file holds anything else."""
    try:
        if not path.is_file():  # to read a pipe would block
            if path.parent.is_file():
                _ignore(path.parent, "it is a file, and decisions are kept in a folder")
            return None
        data = path.read_bytes()
    except OSError:
        return None
    try:
        record = as_record(parse_json(data))
        demand(record.key.name == path.stem, "it is not what its name says")
        return record
    except (ValueError, RecursionError) as error:
        _ignore(path, f"{error}")
        return None


def _ignore(path: Path, why: str) -> None:
    """Warn about an ignored file, once per file."""
    with _ignoring:
        known = str(path) in _ignored
        _ignored.add(str(path))
    if not known:
        warnings.warn(f"{path} is ignored, for it holds no wisdom: {why}", WisdomWarning, stacklevel=4)
