"""Records of wisdom: a decision and what it was measured on, both as canonical JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from .. import __version__
from ..host import installed, processor

__all__ = ["Key", "Record", "as_json", "as_record", "demand", "key", "parse_json", "spelt", "written"]

_SCHEMA, _EDITION = "rote wisdom", 1
_PARTS = ("machine", "versions", "facts")  # the parts of a key


@dataclass(frozen=True, slots=True)
class Key:
    """Everything that a decision depends on; made by the function `key`.

    Attributes:
        text: the whole key, as canonical JSON.

    >>> key({"what": "walk", "grid": (2,)}).facts, len(key({}).name)
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
        said = " ".join(f"{name}={_shown(facts[name])}" for name in names)
        ran = ", ".join(f"{name} {_shown(version)}" for name, version in versions.items() if version)
        return f"{said} ({_shown(machine['cpu'])}, {_shown(machine['cores'])} cores, {ran})"


@dataclass(frozen=True, slots=True)
class Record:
    """A decision and its key; as text, one line for people to read.

    Attributes:
        key: what it was measured on.
        text: the decision, as canonical JSON.

    >>> Record(key({"what": "walk"}), '["slab",4]').decision
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

    Args:
        facts: everything else that the decision depends on: names and JSON values, where tuples equal lists. By
            convention "what" names the kind of decision.
        mpi: name and version of the MPI library; empty if it does not matter, as among in-process ranks.

    Raises:
        TypeError, ValueError: a fact is not a JSON value.

    >>> key({"what": "walk", "grid": (2,)}) == key({"grid": [2], "what": "walk"})
    True
    """
    machine = {
        "cpu": processor(),
        "cores": os.cpu_count() or 1,
    }  # all cores, not only those that a launcher gives to a rank
    versions = {"rote": __version__, "numpy": installed("numpy"), "pyfftw": installed("pyfftw"), "mpi": mpi}
    return Key(spelt({"machine": machine, "versions": versions, "facts": dict(facts)}))


def written(content: Mapping[str, Any]) -> str:
    """The text of a file: the content, marked with this schema."""
    return json.dumps({_SCHEMA: _EDITION, **content}, indent=1) + "\n"


def as_json(record: Record) -> dict[str, Any]:
    """A record as a JSON object."""
    return {**json.loads(record.key.text), "decision": record.decision}


def parse_json(data: bytes) -> dict[str, Any]:
    """The JSON object of this schema in a file's bytes, without the mark.

    Raises:
        ValueError: the bytes hold anything else.
    """
    value: Any = json.loads(data.decode("utf-8"), parse_constant=_refuse)
    demand(isinstance(value, dict) and value.pop(_SCHEMA, None) == _EDITION, f"it has no {_SCHEMA!r}: {_EDITION}")
    tree: dict[str, Any] = value
    return tree


def as_record(value: Any) -> Record:
    """Convert a JSON object to a record.

    Raises:
        ValueError: it is not a record.
    """
    demand(isinstance(value, dict) and value.keys() == {*_PARTS, "decision"}, "its parts are not those of a decision")
    demand(all(isinstance(value[part], dict) for part in _PARTS), "its key is not made of names and values")
    demand(value["machine"].keys() == {"cpu", "cores"}, "its machine is not a processor and its cores")
    return Record(Key(spelt({part: value[part] for part in _PARTS})), spelt(value["decision"]))


def demand(holds: bool, why: str) -> None:
    """Raise ValueError with the reason `why`, unless a condition holds."""
    if not holds:
        raise ValueError(why)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def spelt(value: Any) -> str:
    """A JSON value as canonical text: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) and value.isprintable() else spelt(value)
