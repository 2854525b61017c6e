"""Wisdom: what was measured once is kept for the next time, in the user's cache folder.

A decision is any JSON value: the times of a machine, the name of an algorithm, a grid. Its key says what it was
measured on: the machine, the versions of what ran, and the caller's own facts (shape, grid, dtype, layouts, ...). Where
any of these differs, the decision is not found.

Every decision is a file of its own, named after the hash of its key, with the whole key in it for people to read. It is
written aside and then renamed: whoever reads finds all of it or nothing, and processes that write at the same time lose
nothing of each other's, without locks. A file that is damaged or somebody else's is ignored, with one warning; where
nothing can be written, nothing is kept.

The environment variable ROTE_WISDOM names another folder; empty, nothing is kept and nothing is known.

FFTW's own wisdom is in the decisions on local transforms. Where nothing is timed there is none: its plans are estimated
then, so that they are made at once and are the same on every rank and in every run.

>>> seen = key({"what": "walk", "shape": (64, 64), "grid": [2]})
>>> seen.facts["shape"], seen == key({"grid": (2,), "what": "walk", "shape": [64, 64]})
([64, 64], True)
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

from . import __version__
from .errors import RoteError

__all__ = [
    *("Record", "Key", "WisdomWarning"),
    *("export", "folder", "forget", "include", "key", "recall", "records", "remember"),
]

_SCHEMA, _EDITION = "rote wisdom", 1
_PARTS = ("machine", "versions", "facts")  # of a key
_DECISIONS, _LEFTOVERS = f"{'[0-9a-f]' * 32}.json", ".rote-*.tmp"  # the latter, where a writer was killed

_ignored: set[str] = set()
_ignoring = threading.Lock()  # in-process ranks are threads, and only one of them warns


class WisdomWarning(UserWarning):
    """A file of wisdom is damaged, or is none, and is ignored."""


@dataclass(frozen=True, slots=True)
class Key:
    """What a decision was measured on; made by `key`.

    Attributes:
        text: all of it, as JSON in one spelling.
    """

    text: str

    @property
    def name(self) -> str:
        """The hash that its file is named after."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:32]

    @property
    def facts(self) -> dict[str, Any]:
        """The caller's part."""
        facts: dict[str, Any] = json.loads(self.text)["facts"]
        return facts

    def __str__(self) -> str:
        machine, versions, facts = (json.loads(self.text)[part] for part in _PARTS)
        said = " ".join(
            f"{name}={_shown(facts[name])}" for name in sorted(facts, key=lambda name: (name != "what", name))
        )
        ran = ", ".join(f"{name} {_shown(version)}" for name, version in versions.items() if version)
        return f"{said} ({_shown(machine['cpu'])}, {_shown(machine['cores'])} cores, {ran})"


@dataclass(frozen=True, slots=True)
class Record:
    """A decision and its key; as text, a line for people.

    Attributes:
        key: what it was measured on.
        text: the decision, as JSON in one spelling.
    """

    key: Key
    text: str

    @property
    def decision(self) -> Any:
        """What was decided."""
        return json.loads(self.text)

    def __str__(self) -> str:
        return f"{self.key}: {self.text}"


def key(facts: Mapping[str, Any], mpi: str = "") -> Key:
    """The key of a decision that is taken here and now.

    Args:
        facts: all that it depends on beside machine and versions: names and JSON values, of which tuples and lists are
            the same. By convention "what" names the kind of decision.
        mpi: name and version of the MPI library; empty where it does not matter, as among in-process ranks.

    Raises:
        TypeError, ValueError: a fact is no JSON value.
    """
    machine = {
        "cpu": _processor(),
        "cores": os.cpu_count() or 1,
    }  # all cores, not those that a launcher lets a rank have
    versions = {"rote": __version__, "numpy": _version("numpy"), "pyfftw": _version("pyfftw"), "mpi": mpi}
    return Key(_spelt({"machine": machine, "versions": versions, "facts": dict(facts)}))


def recall(key: Key, read: Callable[[Any], Any] | None = None) -> Any:
    """The decision that was remembered for a key; None if there is none.

    Args:
        key: the same as when it was remembered.
        read: makes of the JSON value what the caller wants. What it raises on a wrong one (RoteError, TypeError,
            ValueError, LookupError) makes the file one that is ignored.
    """
    place = folder()
    path = place / f"{key.name}.json" if place else None
    record = _read(path) if path else None
    if path is None or record is None:
        return None
    try:
        return record.decision if read is None else read(record.decision)
    except (RoteError, TypeError, ValueError, LookupError) as error:
        _ignore(path, f"{error}")
        return None


def remember(key: Key, decision: Any) -> bool:
    """Keep a decision, in place of an earlier one for the same key; False if it cannot be kept.

    Raises:
        TypeError, ValueError: the decision is no JSON value.
    """
    return _keep(Record(key, _spelt(decision)))


def records() -> tuple[Record, ...]:
    """All that is known, of every machine and version, in the order of its lines."""
    return tuple(sorted((record for path in _files(_DECISIONS) if (record := _read(path))), key=str))


def forget(match: str = "", *, all: bool = False) -> tuple[Record | Path, ...]:
    """Forget every decision whose line (`str(record)`) has `match` in it, or all of them; what is forgotten.

    Args:
        match: a part of the lines.
        all: forget all decisions, and remove damaged files that are named as decisions are. No other file is touched,
            whatever folder ROTE_WISDOM names.

    Returns:
        The decisions; of damaged files the paths.

    Raises:
        RoteError: neither is given, or both are.
    """
    if bool(match) == all:
        raise RoteError("say what to forget: a part of its line, or all=True for everything; not both")
    forgotten: list[Record | Path] = []
    for path in _files(_DECISIONS) + (_files(_LEFTOVERS) if all else []):
        record = _read(path) if path.suffix == ".json" else None
        if all or (record is not None and match in str(record)):
            with suppress(OSError):  # somebody else forgets too, or the folder is read-only
                path.unlink()
                forgotten.append(record or path)
    return tuple(forgotten)


def export(path: str | os.PathLike[str]) -> int:
    """Write all that is known into one file, for `include` on another machine or by another user; how many that is.

    Raises:
        OSError: the file cannot be written.
    """
    known = [_plain(record) for record in records()]
    Path(path).write_text(json.dumps({_SCHEMA: _EDITION, "entries": known}, indent=1) + "\n", "utf-8")
    return len(known)


def include(path: str | os.PathLike[str]) -> int:
    """Keep all decisions that `export` wrote, in place of those with the same keys; how many were kept.

    Raises:
        OSError: the file cannot be read.
        RoteError: it is none of `export`'s; then nothing of it is kept.
    """
    data = Path(path).read_bytes()
    try:
        listed: Any = _parsed(data).get("entries")
        _demand(isinstance(listed, list), "it has no list of entries")
        records = [_record(each) for each in listed]
    except (ValueError, RecursionError) as error:
        raise RoteError(f"{os.fspath(path)} holds no wisdom: {error}\ngive what rote tune --export wrote") from None
    return sum(map(_keep, records))


def folder() -> Path | None:
    """Where decisions are kept, whether it exists or not; None if nothing is."""
    named = os.environ.get("ROTE_WISDOM")
    if named is not None:
        return Path(os.path.expanduser(named)) if named else None
    from platformdirs import user_cache_path

    cache = user_cache_path("rote", appauthor=False) / "wisdom"
    return cache if cache.is_absolute() else None  # without a home it would lie below the working directory


@cache
def _processor() -> str:
    """The model of the processor, as far as the system says it."""
    fields: dict[str, str] = {}
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").partition("\n\n")[0].splitlines()
        fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    names = [fields[name] for name in ("model name", "CPU implementer", "CPU part") if fields.get(name)]
    return " ".join(names) or platform.processor() or platform.machine()


@cache
def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _files(pattern: str) -> list[Path]:
    """The files of the folder whose names follow a pattern."""
    place = folder()
    try:
        return sorted(place.glob(pattern)) if place else []
    except OSError:
        return []


def _keep(record: Record) -> bool:
    """Write the file of a record; False if it cannot be written."""
    place = folder()
    if place is None:
        return False
    aside = ""
    try:
        place.mkdir(parents=True, exist_ok=True)
        handle, aside = tempfile.mkstemp(prefix=".rote-", suffix=".tmp", dir=place)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(json.dumps({_SCHEMA: _EDITION, **_plain(record)}, indent=1) + "\n")
        os.replace(aside, place / f"{record.key.name}.json")
        return True
    except OSError:
        return False
    finally:
        with suppress(OSError):
            os.unlink(aside)


def _read(path: Path) -> Record | None:
    """The record in a file of the folder; None if there is none, with a warning if there is something else."""
    try:
        if not path.is_file():  # a pipe would be waited for
            if path.parent.is_file():
                _ignore(path.parent, "it is a file, and decisions are kept in a folder")
            return None
        data = path.read_bytes()
    except OSError:
        return None
    try:
        record = _record(_parsed(data))
        _demand(record.key.name == path.stem, "it is not what its name says")
        return record
    except (ValueError, RecursionError) as error:
        _ignore(path, f"{error}")
        return None


def _ignore(path: Path, why: str) -> None:
    """Warn of a file, but not again."""
    with _ignoring:
        known = str(path) in _ignored
        _ignored.add(str(path))
    if not known:
        warnings.warn(f"{path} is ignored, for it holds no wisdom: {why}", WisdomWarning, stacklevel=4)


def _plain(record: Record) -> dict[str, Any]:
    """A record as a JSON object."""
    return {**json.loads(record.key.text), "decision": record.decision}


def _parsed(data: bytes) -> dict[str, Any]:
    """The JSON object of this schema that a file holds, without its mark.

    Raises:
        ValueError: it holds another thing.
    """
    value: Any = json.loads(data.decode("utf-8"), parse_constant=_refuse)
    _demand(isinstance(value, dict) and value.pop(_SCHEMA, None) == _EDITION, f"it has no {_SCHEMA!r}: {_EDITION}")
    tree: dict[str, Any] = value
    return tree


def _record(value: Any) -> Record:
    """The record that a JSON object is.

    Raises:
        ValueError: it is none.
    """
    _demand(isinstance(value, dict) and value.keys() == {*_PARTS, "decision"}, "its parts are not those of a decision")
    _demand(all(isinstance(value[part], dict) for part in _PARTS), "its key is not made of names and values")
    _demand(value["machine"].keys() == {"cpu", "cores"}, "its machine is not a processor and its cores")
    return Record(Key(_spelt({part: value[part] for part in _PARTS})), _spelt(value["decision"]))


def _demand(holds: bool, why: str) -> None:
    if not holds:
        raise ValueError(why)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _spelt(value: Any) -> str:
    """A JSON value in its one spelling."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) and value.isprintable() else _spelt(value)
