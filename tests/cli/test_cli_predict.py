"""`rote predict`: machines side by side, a profile to start from, and JSON as its schema says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from runner import Runner

import rote
from rote.cli import main

SCHEMA = json.loads((Path(__file__).parents[2] / "notebooks/_static/predict.schema.json").read_text("utf-8"))
TYPES = {"object": dict, "array": list, "string": str, "null": type(None), "boolean": bool}


def run(*line: object) -> Any:
    return Runner().invoke(main, list(map(str, line)))


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value is one of a schema, by the words that ours has."""
    if "$ref" in schema:
        return fits(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]])
    if "anyOf" in schema:
        return any(fits(value, option) for option in schema["anyOf"])

    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    of_kind = {"number": number, "integer": number and isinstance(value, int)}
    if not any(of_kind.get(kind, isinstance(value, TYPES.get(kind, ()))) for kind in kinds):
        return False
    if isinstance(value, list):
        return all(fits(part, schema["items"]) for part in value)
    if not isinstance(value, dict):
        return value in schema.get("enum", [value])

    properties, more = schema.get("properties", {}), schema["additionalProperties"]
    known = all(key in properties or (more and fits(part, more)) for key, part in value.items())
    parts = all(fits(value[key], part) for key, part in properties.items() if key in value)
    return known and parts and {*schema.get("required", ())} <= {*value}


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (0, ("6x8x5", "--ranks", 4)),
        (0, ("64x64", "--ranks", 4, "--machine", "fugaku")),
        (1, ("6x8x5", "--ranks", "2,64", "--machine", "frontier")),
        (2, ("ik,kj->ij", "--shape", "8x8", "--shape", "8x8", "--ranks", "2,4")),
        (3, ("64x64x64", "--nodes", 2, "--machine", "perlmutter")),
        (4, ("64x64x64", "--nodes", 2, "--machine", "perlmutter", "--versus", "h100")),
        (4, ("64x64x64", "--ranks", 4, "--versus", "h100")),
    ],
)
def test_json_is_as_the_schema_says(number: int, line: tuple[object, ...]) -> None:
    """Each answer fits one part of it, and none without a key, with another one, or with text for a number."""
    told = json.loads(run("predict", *line, "--json").stdout)
    assert fits(told, SCHEMA)
    assert [fits(told, form) for form in SCHEMA["anyOf"]] == [n == number for n in range(5)]

    assert not fits(told | {"more": 1}, SCHEMA) and not fits(told | {"dtype": 8, "machine": 8}, SCHEMA)
    required = SCHEMA["anyOf"][number]["required"]
    assert not any(fits({key: told[key] for key in told if key != missing}, SCHEMA) for missing in required)


def test_machines_stand_side_by_side() -> None:
    """Each line is what the machine's own prediction says, and the last one leaves open what their ranges do."""
    line = (
        "predict",
        "64x64x64",
        "--nodes",
        4,
        "--machine",
        "k-computer",
        "--versus",
        "fugaku",
        "--versus",
        "ethernet",
    )
    title, head, *rows, last = run(*line).stdout.splitlines()
    assert title == "rfft of (64, 64, 64) float64 on 4 nodes" and head.split()[:3] == ["machine", "family", "grid"]
    jobs = {name: rote.fft.job((64, 64, 64), 4, name, "f8") for name in ("k-computer", "fugaku", "ethernet")}
    for row, (name, job) in zip(rows, jobs.items(), strict=True):
        assert row.strip().startswith(f"{name}, ") and f" {job.family} " in row and f" {job.grid} " in row

    fast, slow = sorted([job.prediction for job in jobs.values()], key=lambda told: told.seconds)[:2]
    assert last.startswith(f"{fast.machine.name} is {slow.seconds / fast.seconds:.2f} times as fast as the next")
    assert last.endswith("but their ranges overlap") == (fast.range[1] >= slow.range[0])

    on_ranks = run("predict", "4096x4096x4096", "--ranks", 16, "--machine", "k-computer", "--versus", "h100")
    assert on_ranks.exit_code == 1 and "(too much)" in on_ranks.stdout  # K has 16 GB on a node
    several = run("predict", "64x64", "--ranks", "2,4", "--versus", "h100")
    assert several.exit_code == 2 and "--versus is for an FFT on one number of ranks and a job" in several.output


def test_a_profile_is_copied_to_describe_another_machine(tmp_path: Path) -> None:
    """The copy is the machine, under its own name; files are kept, and there is nothing to copy of no machine."""
    mine = tmp_path / "mine.toml"
    done = run("predict", "--machine", "k-computer", "--copy", mine)
    assert (done.exit_code, done.output) == (0, f"wrote {mine}\n")
    assert rote.Machine.load(str(mine)) == rote.Machine.load("k-computer")
    again = run("predict", "--machine", mine, "--copy", mine)
    assert again.exit_code == 1 and "--force" in again.output

    for line in (("--copy", tmp_path / "a.toml"), ("8x8", "--machine", "fx10", "--copy", tmp_path / "a.toml"), ()):
        assert run("predict", *line).exit_code == 2
    assert "no machine 'kk'" in run("predict", "--machine", "kk", "--copy", tmp_path / "a.toml").output
