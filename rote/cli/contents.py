"""`rote contents`: the tensors, attributes and steps of a file, without their elements."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from math import prod
from typing import TYPE_CHECKING

import click

from ..compiler.explain import in_bytes, table
from .output import Answer, give, json_option

if TYPE_CHECKING:
    from ..io.stored import Contents

__all__ = ["contents"]


@click.command()
@click.argument("path", metavar="FILE", type=click.Path())
@click.option("--step", metavar="N", type=int, help="The number of a step; default: the last one.")
@json_option
def contents(path: str, step: int | None, as_json: bool) -> None:
    """Show what a file of tensors holds: .npy, .zarr, .h5 or .xdmf, from any program.

    \b
    Examples:
      rote demo --size 16 --dir small
      rote contents small/volume.npy
      rote contents small/spectrum.npy --json
    """
    from ..tensor.files import contents as look

    def program() -> Contents:
        found = look(path, step)
        click.echo("\n".join([path, *_lines(found)]))
        return found

    give(as_json, program, partial(_answer, path))


def _answer(path: str, found: Contents) -> Answer:
    tensors = []
    for name, stored in found.tensors.items():
        facts = {"name": name, "shape": stored.shape, "dtype": stored.dtype.str[1:], "dims": stored.dims}
        tensors.append({**facts, "bytes": prod(stored.shape) * stored.dtype.itemsize})
    return {
        "path": path,
        "step": found.step,
        "steps": found.steps,
        "attributes": dict(found.attributes),
        "links": dict(found.links),
        "tensors": tensors,
    }


def _lines(found: Contents) -> Iterator[str]:
    """The table of tensors, then a line for each link and each attribute, and one for the steps."""
    rows = [("tensor", "shape", "dtype", "size")]
    for name, stored in found.tensors.items():
        size = in_bytes(prod(stored.shape) * stored.dtype.itemsize)
        rows.append((name or "(no name)", "x".join(map(str, stored.shape)) or "()", str(stored.dtype), size))
    yield from table(rows, {3})
    for name, target in found.links.items():
        yield f"  {name} -> {target}"
    for name, value in found.attributes.items():
        yield f"  {name} = {json.dumps(value)}"
    if found.steps:
        shown = "" if found.step is None else f"; this is step {found.step}"
        yield f"  steps {', '.join(map(str, found.steps))}{shown}"
