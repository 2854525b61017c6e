"""Wisdom: decisions made by measuring, kept in the user's cache folder for later runs.

A decision is any JSON value: the times of a machine, the name of an algorithm, a grid. Its key describes what it was
measured on: the machine, the versions of the software, and the caller's own facts (shape, grid, dtype, layouts, ...). A
decision is found only if all of these are equal.

Each decision is one file, which is named after the hash of its key and contains the whole key for people to read. The
file is written under another name and then renamed. So readers find all of it or nothing, and processes that write at
the same time lose none of each other's decisions, without locks. Files that are damaged or foreign are ignored, with
one warning each. If the folder cannot be written, nothing is kept.

The environment variable ROTE_WISDOM names another folder; if it is empty, nothing is kept or found.

FFTW estimates its plans, so that they are the same on every rank and in every run; its own wisdom is not used. If
ROTE_WISDOM is empty, transforms with tune="model" time nothing, and their bits are the same in every run.

>>> from rote import wisdom
>>> seen = wisdom.key({"what": "walk", "shape": (64, 64), "grid": [2]})
>>> seen.facts["shape"], seen == wisdom.key({"grid": (2,), "what": "walk", "shape": [64, 64]})
([64, 64], True)
"""

from __future__ import annotations

import json
import os
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import RoteError
from .host import installed, processor
from .version import VERSION

__all__ = ["Key", "Record", "WisdomWarning", "export", "folder", "forget", "include", "kept"]
__all__ += ["key", "recall", "records", "remember"]

_SCHEMA, _EDITION = "rote wisdom", 1  # the mark of a file; files of another edition are ignored
_PARTS = ("machine", "versions", "facts")  # the parts of a key
_DECISIONS, _LEFTOVERS = f"{'[0-9a-f]' * 32}.json", ".rote-*.tmp"  # the latter are left if a writer is killed

_ignored: set[str] = set()
_ignoring = threading.Lock()  # in-process ranks are threads, and only one of them warns


@dataclass(frozen=True, slots=True)
class Key:
    """Everything that a decision depends on; made by the function `key`.

    Attributes
    ----------
    text : str
        The whole key, as canonical JSON.

    Examples
    --------
    >>> from rote import wisdom
    >>> wisdom.key({"what": "walk", "grid": (2,)}).facts, len(wisdom.key({}).name)
    ({'grid': [2], 'what': 'walk'}, 32)
    """

    text: str

    @property
    def name(self) -> str:
        """The hash that names the file: 32 hexadecimal digits."""
        from hashlib import sha256  # imports OpenSSL, so only if needed

        return sha256(self.text.encode()).hexdigest()[:32]

    @property
    def facts(self) -> dict[str, Any]:
        """The caller's own facts."""
        facts: dict[str, Any] = json.loads(self.text)["facts"]
        return facts

    def __str__(self) -> str:
        machine, versions, facts = (json.loads(self.text)[part] for part in _PARTS)

        names = sorted(facts, key=lambda name: (name != "what", name))
        fact_text = " ".join(f"{name}={_shown(facts[name])}" for name in names)
        version_text = ", ".join(f"{name} {_shown(version)}" for name, version in versions.items() if version)

        return f"{fact_text} ({_shown(machine['cpu'])}, {_shown(machine['cores'])} cores, {version_text})"


@dataclass(frozen=True, slots=True)
class Record:
    """A decision and its key; as text, one line for people to read.

    Attributes
    ----------
    key : Key
        What it was measured on.
    text : str
        The decision, as canonical JSON.

    Examples
    --------
    >>> from rote import wisdom
    >>> wisdom.Record(wisdom.key({"what": "walk"}), '["slab",4]').decision
    ['slab', 4]
    """

    key: Key
    text: str

    @property
    def decision(self) -> Any:
        """The decision as a JSON value."""
        return json.loads(self.text)

    def __str__(self) -> str:
        return f"{self.key}: {self.text}"


def key(facts: Mapping[str, Any], mpi: str = "") -> Key:
    """The key of a decision on this machine, with the installed versions.

    Parameters
    ----------
    facts : Mapping[str, Any]
        Everything else that the decision depends on: names and JSON values, where tuples equal lists. By convention
        "what" names the kind of decision.
    mpi : str, default ''
        Name and version of the MPI library; empty if it does not matter, as among in-process ranks.

    Raises
    ------
    TypeError, ValueError
        A fact is not a JSON value.

    Examples
    --------
    >>> from rote import wisdom
    >>> wisdom.key({"what": "walk", "grid": (2,)}) == wisdom.key({"grid": [2], "what": "walk"})
    True
    """
    # All cores count, not only those that a launcher gives to a rank.
    machine = {"cpu": processor(), "cores": os.cpu_count() or 1}
    versions = {"rote": VERSION, "numpy": installed("numpy"), "pyfftw": installed("pyfftw"), "mpi": mpi}
    return Key(canonical({"machine": machine, "versions": versions, "facts": dict(facts)}))


class WisdomWarning(UserWarning):
    """A file of wisdom is damaged, or is not wisdom, and is ignored.

    Examples
    --------
    >>> import warnings
    >>> from rote import wisdom
    >>> key = wisdom.key({"what": "example"})
    >>> wisdom.remember(key, "slab")
    True
    >>> (wisdom.folder() / f"{key.name}.json").write_text("damaged")
    7
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     wisdom.recall(key)
    >>> [warning.category.__name__ for warning in caught]
    ['WisdomWarning']
    """


def recall(key: Key, read: Callable[[Any], Any] | None = None) -> Any:
    """The decision that was remembered for a key; None if there is none.

    Parameters
    ----------
    key : Key
        A key equal to the one with which it was remembered.
    read : Callable[[Any], Any], optional
        A function that converts the JSON value. If it raises RoteError, TypeError, ValueError or LookupError, the file
        is ignored.

    Returns
    -------
    Any
        The JSON value, or the result of `read`.

    Examples
    --------
    >>> from rote import wisdom
    >>> key = wisdom.key({"what": "example"})
    >>> wisdom.remember(key, ["slab", 4])
    True
    >>> wisdom.recall(key), wisdom.recall(key, tuple)
    (['slab', 4], ('slab', 4))
    """
    directory = folder()
    if directory is None:
        return None

    path = directory / f"{key.name}.json"
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

    Returns
    -------
    bool
        True, or False if it cannot be kept.

    Raises
    ------
    TypeError, ValueError
        The decision is not a JSON value.

    Examples
    --------
    >>> from rote import wisdom
    >>> key = wisdom.key({"what": "example"})
    >>> wisdom.remember(key, "slab"), wisdom.remember(key, "pencil")
    (True, True)
    >>> wisdom.recall(key)
    'pencil'
    """
    return _keep(Record(key, canonical(decision)))


def kept() -> bool:
    """Whether there may be any decisions; False if the folder is empty, or there is none.

    Examples
    --------
    >>> from rote import wisdom
    >>> wisdom.remember(wisdom.key({"what": "example"}), "slab"), wisdom.kept()
    (True, True)
    """
    directory = folder()
    try:
        return directory is not None and (directory.is_file() or next(directory.glob(_DECISIONS), None) is not None)
    except OSError:
        return True  # `recall` then reports the problem


def records() -> tuple[Record, ...]:
    """All decisions with their keys, for every machine and version, sorted as text.

    Examples
    --------
    >>> from rote import wisdom
    >>> wisdom.remember(wisdom.key({"what": "example"}), "slab")
    True
    >>> [record.decision for record in wisdom.records() if record.key.facts["what"] == "example"]
    ['slab']
    """
    return tuple(sorted(filter(None, map(_read, _files(_DECISIONS))), key=str))


def forget(match: str = "", *, all: bool = False) -> tuple[Record | Path, ...]:
    """Forget every decision whose line (`str(record)`) contains `match`, or all of them.

    Parameters
    ----------
    match : str, default ''
        A part of the line.
    all : bool, default False
        Whether to forget all decisions, and remove damaged files that are named like decisions and files that killed
        writers left. No other file is touched, whatever folder ROTE_WISDOM names.

    Returns
    -------
    tuple[Record | Path, ...]
        The forgotten decisions, and the paths of the other files.

    Raises
    ------
    RoteError
        Neither argument is given, or both are.

    Examples
    --------
    >>> from rote import wisdom
    >>> wisdom.remember(wisdom.key({"what": "example"}), "slab")
    True
    >>> len(wisdom.forget("what=example")), len(wisdom.forget("what=example"))
    (1, 0)
    """
    if bool(match) == all:
        raise RoteError("say what to forget: a part of its line, or all=True for everything; not both")

    paths = _files(_DECISIONS)
    if all:
        paths += _files(_LEFTOVERS)

    forgotten: list[Record | Path] = []
    for path in paths:
        record = _read(path) if path.suffix == ".json" else None
        if all or (record is not None and match in str(record)):
            with suppress(OSError):  # another process forgot it too, or the folder is read-only
                path.unlink()
                forgotten.append(record or path)

    return tuple(forgotten)


def export(path: str | os.PathLike[str]) -> int:
    """Write all decisions to one file, for `include` on another machine or by another user.

    Parameters
    ----------
    path : str | os.PathLike[str]
        The file to write.

    Returns
    -------
    int
        The number of decisions.

    Raises
    ------
    OSError
        The file cannot be written.

    See Also
    --------
    rote.wisdom.include : Keep the decisions of a file.

    Examples
    --------
    >>> from rote import wisdom
    >>> wisdom.remember(wisdom.key({"what": "example"}), "slab")
    True
    >>> wisdom.export("wisdom.json") == len(wisdom.records()) == wisdom.include("wisdom.json")
    True
    """
    entries = [as_json(record) for record in records()]
    Path(path).write_text(_written({"entries": entries}), "utf-8")
    return len(entries)


def include(path: str | os.PathLike[str]) -> int:
    """Keep all decisions from a file that `export` wrote, replacing those with the same keys.

    Parameters
    ----------
    path : str | os.PathLike[str]
        The file to read.

    Returns
    -------
    int
        The number of decisions that were kept.

    Raises
    ------
    OSError
        The file cannot be read.
    RoteError
        `export` did not write the file; then nothing of it is kept.

    See Also
    --------
    rote.wisdom.export : Write the file.

    Examples
    --------
    >>> from rote import wisdom
    >>> from pathlib import Path
    >>> Path("empty.json").write_text("{}")
    2
    >>> wisdom.include("empty.json")
    Traceback (most recent call last):
    rote.RoteError: empty.json holds no wisdom: it has no 'rote wisdom': 1
    give what rote wisdom export wrote
    """
    data = Path(path).read_bytes()
    try:
        records = exported(data)  # all, before the first is kept
    except (ValueError, RecursionError) as error:
        raise RoteError(f"{os.fspath(path)} holds no wisdom: {error}\ngive what rote wisdom export wrote") from None
    return sum(map(_keep, records))


def folder() -> Path | None:
    """The folder of the decisions, which need not exist; None if nothing is kept.

    Examples
    --------
    >>> from rote import wisdom
    >>> wisdom.folder().name
    'wisdom'
    """
    named = os.environ.get("ROTE_WISDOM")
    if named is not None:
        return Path(os.path.expanduser(named)) if named else None
    from platformdirs import user_cache_path

    cache = user_cache_path("rote", appauthor=False) / "wisdom"
    return cache if cache.is_absolute() else None  # without a home directory it would be in the working directory


# --- files ------------------------------------------------------------------------------------------------------------


def _files(pattern: str) -> list[Path]:
    directory = folder()
    try:
        return sorted(directory.glob(pattern)) if directory else []
    except OSError:
        return []


def _keep(record: Record) -> bool:
    """Write the file of a record; False if it cannot be written."""
    from tempfile import mkstemp  # slow, it imports packers and random numbers: only if something is kept

    directory = folder()
    if directory is None:
        return False

    # Written under another name and renamed: readers find all of it or nothing, and two writers need no lock.
    temporary = ""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        handle, temporary = mkstemp(prefix=".rote-", suffix=".tmp", dir=directory)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(_written(as_json(record)))
        os.replace(temporary, directory / f"{record.key.name}.json")
        return True
    except OSError:
        return False
    finally:
        with suppress(OSError):  # it is gone if it was renamed
            os.unlink(temporary)


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
        record = as_record(content(data))
    except (ValueError, RecursionError) as error:
        _ignore(path, f"{error}")
        return None

    if record.key.name != path.stem:
        _ignore(path, "it is not what its name says")
        return None
    return record


def _ignore(path: Path, why: str) -> None:
    """Warn about an ignored file, once per file."""
    with _ignoring:
        first = str(path) not in _ignored
        _ignored.add(str(path))
    if first:
        warnings.warn(f"{path} is ignored, for it holds no wisdom: {why}", WisdomWarning, stacklevel=4)


def _written(content: Mapping[str, Any]) -> str:
    return json.dumps({_SCHEMA: _EDITION, **content}, indent=1) + "\n"


def content(data: bytes) -> dict[str, Any]:
    """What `_written` was given, from the bytes of a file; ValueError if they are of no such file."""
    value: Any = None
    with suppress(ValueError, RecursionError):  # if it is no text, no JSON, or too deep
        value = json.loads(data.decode("utf-8"))

    if not isinstance(value, dict) or value.pop(_SCHEMA, None) != _EDITION:
        raise ValueError(f"it has no {_SCHEMA!r}: {_EDITION}")
    return value


def as_json(record: Record) -> dict[str, Any]:
    """A record as a JSON object."""
    return {**json.loads(record.key.text), "decision": record.decision}


def exported(data: bytes) -> list[Record]:
    """The records in the bytes of a file from `export`; ValueError if one is damaged, or the file is another."""
    entries = content(data).get("entries")
    if not isinstance(entries, list):
        raise ValueError("it has no list of entries")
    return [as_record(entry) for entry in entries]


def as_record(value: Any) -> Record:
    """The record of a JSON object from `as_json`; ValueError if it is none, or has a number such as NaN."""
    complete = isinstance(value, dict) and value.keys() == {*_PARTS, "decision"}
    typed = complete and all(isinstance(value[part], dict) for part in _PARTS)
    if not typed or value["machine"].keys() != {"cpu", "cores"}:
        raise ValueError("its parts are not those of a decision and its key")

    parts = {part: value[part] for part in _PARTS}
    return Record(Key(canonical(parts)), canonical(value["decision"]))


def canonical(value: Any) -> str:
    """A JSON value as canonical text: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) and value.isprintable() else canonical(value)
