"""`rote doctor`: what this installation has, whether it works, and the commands that would mend it."""

from __future__ import annotations

import io

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .checkups import Finding, findings
from .failures import coloured, columns, on_rank_0

__all__ = ["doctor"]

_STYLES = {"ok": "green", "missing": "yellow", "broken": "bold red"}


@click.command()
@click.pass_context
def doctor(context: click.Context) -> None:
    """Look at the installation, try it, and name the commands that mend it.

    The exit status is 1 if something essential is broken. Rote does without an MPI (then its ranks are threads of one
    process) and without Matplotlib (then it draws no pictures).
    """
    context.exit(on_rank_0(_report))


def _report() -> int:
    """Print what is found; the exit status."""
    results = list(findings())
    click.echo(_table(results))
    mending = dict.fromkeys(each.cure for each in results if each.cure)
    if not mending:
        click.echo("\nnothing is missing")
    for cure in mending:
        click.echo(f"\nto mend {', '.join(each.subject for each in results if each.cure == cure)}:\n    {cure}")
    return int(any(each.state == "broken" for each in results))


def _table(rows: list[Finding]) -> str:
    """The findings as aligned lines; in colour on a terminal."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for each in rows:
        table.add_row(Text(each.state, _STYLES[each.state]), each.subject, Text(each.result))
    console = Console(file=io.StringIO(), force_terminal=coloured(), width=columns(200))
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())
