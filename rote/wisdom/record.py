"""Records of wisdom: a decision, what it was measured on, and both as JSON in one spelling."""

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
_PARTS = ("machine", "versions", "facts")  # of a key


@dataclass(frozen=True, slots=True)
class Key:
    """The circumstances of a decision: everything that it depends on. `key` makes it.

    Attributes:
        text: all of it, as JSON in one spelling.

    >>> key({"what": "walk", "grid": (2,)}).facts, len(key({}).name)
    ({'grid': [2], 'what': 'walk'}, 32)
    """

    text: str

    @property
    def name(self) -> str:
        """The hash that its file is named after: 32 hexadecimal digits."""
        from hashlib import sha256  # brings OpenSSL along

        return sha256(self.text.encode()).hexdigest()[:32]

    @property
    def facts(self) -> dict[str, Any]:
        """The caller's part."""
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
    """A decision and its key; as text, a line for people.

    Attributes:
        key: what it was measured on.
        text: the decision, as JSON in one spelling.

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
    """The key of a decision that is made on this machine, with these versions.

    Args:
        facts: everything else that the decision depends on: names and JSON values, where tuples and lists are the same.
            By convention "what" names the kind of decision.
        mpi: name and version of the MPI library; empty where it does not matter, as among in-process ranks.

    Raises:
        TypeError, ValueError: a fact is no JSON value.

    >>> key({"what": "walk", "grid": (2,)}) == key({"grid": [2], "what": "walk"})
    True
    """
    machine = {
        "cpu": processor(),
        "cores": os.cpu_count() or 1,
    }  # all cores, not those that a launcher lets a rank have
    versions = {"rote": __version__, "numpy": installed("numpy"), "pyfftw": installed("pyfftw"), "mpi": mpi}
    return Key(spelt({"machine": machine, "versions": versions, "facts": dict(facts)}))


def written(content: Mapping[str, Any]) -> str:
    """A file's text: some content under the mark of this schema."""
    return json.dumps({_SCHEMA: _EDITION, **content}, indent=1) + "\n"


def as_json(record: Record) -> dict[str, Any]:
    """A record as a JSON object."""
    return {**json.loads(record.key.text), "decision": record.decision}


def parse_json(data: bytes) -> dict[str, Any]:
    """The JSON object of this schema that a file holds, without its mark.

    Raises:
        ValueError: it holds another thing.
    """
    value: Any = json.loads(data.decode("utf-8"), parse_constant=_refuse)
    demand(isinstance(value, dict) and value.pop(_SCHEMA, None) == _EDITION, f"it has no {_SCHEMA!r}: {_EDITION}")
    tree: dict[str, Any] = value
    return tree


def as_record(value: Any) -> Record:
    """The record that a JSON object is.

    Raises:
        ValueError: it is none.
    """
    demand(isinstance(value, dict) and value.keys() == {*_PARTS, "decision"}, "its parts are not those of a decision")
    demand(all(isinstance(value[part], dict) for part in _PARTS), "its key is not made of names and values")
    demand(value["machine"].keys() == {"cpu", "cores"}, "its machine is not a processor and its cores")
    return Record(Key(spelt({part: value[part] for part in _PARTS})), spelt(value["decision"]))


def demand(holds: bool, why: str) -> None:
    """Raise ValueError, saying why, unless something holds."""
    if not holds:
        raise ValueError(why)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def spelt(value: Any) -> str:
    """A JSON value in its one spelling."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) and value.isprintable() else spelt(value)
