"""`rote wisdom`: lists the decisions that measuring made, forgets some, and carries them to another machine or user."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from .. import wisdom as decisions
from ..errors import counted, deprecated
from .options import refuse_target
from .output import Answer, give, json_option, on_rank_0

__all__ = ["where", "wisdom"]

_LONGEST = 40  # characters of a text in a decision, such as FFTW's plans, that `show` prints


@click.group()
def wisdom() -> None:
    """List, forget, export or import the decisions that rote tune and tune="measure" made by measuring.

    They are in the user's cache folder. The environment variable ROTE_WISDOM names another one; if it is empty, nothing
    is kept.

    \b
    Examples:
      rote wisdom show
      rote wisdom forget what=machine
      rote wisdom export wisdom.json
      rote wisdom import wisdom.json
    """


@wisdom.command()
@json_option
def show(as_json: bool) -> None:
    """List the decisions, each with all that it depends on.

    \b
    Examples:
      rote wisdom show
      rote wisdom show --json
    """
    _on_decisions(lambda: _list("", decisions.records()), as_json)


@wisdom.command()
@click.argument("text", required=False)
@click.option("--all", "everything", is_flag=True, help="Forget all decisions, and remove damaged files.")
@json_option
def forget(text: str | None, everything: bool, as_json: bool) -> None:
    """Forget the decisions whose line, as rote wisdom show prints it, contains TEXT.

    \b
    Examples:
      rote wisdom forget what=machine
      rote wisdom forget --all
    """
    if bool(text) == everything:
        raise click.UsageError("write a TEXT for the decisions that have it in their lines, or --all; not both")
    _on_decisions(lambda: _list("forgot ", decisions.forget(text or "", all=everything)), as_json)


@wisdom.command()
@click.argument("file", type=click.Path())
@click.option("--force", is_flag=True, help="Overwrite the file.")
@json_option
def export(file: str, force: bool, as_json: bool) -> None:
    """Write all decisions into a FILE, for rote wisdom import on another machine or by another user.

    \b
    Examples:
      rote wisdom export wisdom.json
    """

    def exported() -> Answer:
        refuse_target(file, force)
        number = decisions.export(file)
        click.echo(f"wrote {file}, with {counted(number, 'decision')}")
        return {"path": file, "decisions": number}

    _on_decisions(exported, as_json)


@wisdom.command("import")
@click.argument("file", type=click.Path())
@json_option
def include(file: str, as_json: bool) -> None:
    """Keep the decisions in a FILE that rote wisdom export wrote, in place of those with the same keys.

    \b
    Examples:
      rote wisdom export wisdom.json
      rote wisdom import wisdom.json
    """

    def included() -> Answer:
        number = decisions.include(file)
        click.echo(f"kept {counted(number, 'decision')}{where()}")
        return {"path": file, "decisions": number}

    _on_decisions(included, as_json)


def _on_decisions(job: Callable[[], Answer], as_json: bool) -> None:
    """Do a job on rank 0, whose folder all ranks share, and print its warnings to the standard error."""
    context = click.get_current_context()
    if "moved" in context.meta:  # an option of `rote tune` led here
        job = deprecated(context.meta["moved"], context.command_path)(job)

    def program() -> Answer:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answer = job()

        for warning in caught:
            click.echo(f"Warning: {warning.message}", err=True)
        return answer

    give(as_json, lambda: on_rank_0(program))


def _list(verb: str, records: Sequence[decisions.Record | Path]) -> Answer:
    """Print how many decisions there are, or were until a verb, and each with its key; damaged files by their paths."""
    head = f"{verb}{counted(len(records), 'decision')}{where()}"
    click.echo("\n".join([head, *map(_line, records)]))

    place = decisions.folder()
    return {
        "folder": place and str(place),
        "decisions": [decisions.as_json(record) for record in records if isinstance(record, decisions.Record)],
        "damaged": [str(path) for path in records if isinstance(path, Path)],
    }


def _line(record: decisions.Record | Path) -> str:
    """A record for people: a walk as lines, long texts cut short; a damaged file is shown by its path."""
    if isinstance(record, Path) or not isinstance(record.decision, dict):
        return str(record)

    decision = dict(record.decision)
    if record.key.facts.get("what") == "walk" and isinstance(decision.get("walk"), list):
        return "\n    ".join([f"{record.key}:", *map(str, decision["walk"])])

    for name, value in decision.items():
        if isinstance(value, str) and len(value) > _LONGEST:
            decision[name] = f"{value[:_LONGEST]}..."
    return f"{record.key}: {decisions.canonical(decision)}"


def where() -> str:
    """The folder of the decisions as the end of a sentence, or that there is none."""
    place = decisions.folder()
    return " nowhere: ROTE_WISDOM is empty" if place is None else f" in {place}"
