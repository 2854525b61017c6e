"""`rote predict`: what FFTs and contractions take on ranks and machines that need not exist.

One number of ranks gives the table of an FFT's families on all grids. Several give `rote.fft.scaling`, a contraction
`rote.einsum_scaling`, nodes `rote.fft.job`: each prints itself.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..compiler.plan import on_machine
from ..errors import PlanError, counted
from ..layout.grid import Grid
from ..machines.machine import Machine, as_machine
from ..machines.profile import profile_text
from ..prediction import Prediction, machine_name
from ..units import in_bytes, in_seconds, table
from .options import (
    Counts,
    Integers,
    PictureFile,
    dtype_option,
    force_option,
    machine_option,
    of_ffts,
    refuse_others,
    refuse_target,
)
from .output import Answer, json_option, on_rank_0, print_answer, progress

if TYPE_CHECKING:
    import numpy as np

    from ..fft.families.choose import Choice
    from ..scaling import Scaling

__all__ = ["compare_ffts", "predict", "written"]

_PREFERENCE = "of walks within 10 % of the least time, few moves and blocks go first, views and crowded ranks last"
_OPTIONS = {  # of each kind of prediction
    "an FFT on one number of ranks": ("grid", "why", "html", "versus"),
    "an FFT on several numbers of ranks": ("csv", "plot"),
    "a contraction": ("csv", "plot", "shape"),
    "a job": ("slurm", "versus"),
}


@click.command()
@click.argument("what", metavar="64x64x64|ik,kj->ij", required=False)
@click.option("--ranks", metavar="8..64", type=Counts(), help="How many ranks, which need not exist: 8, 8,12 or 8..64.")
@click.option("--nodes", metavar="N", type=click.IntRange(1), help="Choose the whole job on so many nodes instead.")
@machine_option
@click.option("--versus", metavar="NAME|FILE", multiple=True, help="Another machine, to be compared with the first.")
@click.option(
    "--copy", metavar="FILE.toml", type=click.Path(), help="Copy the machine's profile, to describe your own."
)
@click.option("--grid", metavar="2x2", type=Integers(), help="Only this grid.")
@click.option("--shape", metavar="8x9x10", multiple=True, type=Integers(), help="Of a contraction: an operand's.")
@dtype_option
@click.option("--why", is_flag=True, help="For every grid, say why a family has no walk.")
@json_option
@click.option("--csv", metavar="FILE.csv", type=click.Path(), help="Of several numbers of ranks: also write a table.")
@click.option("--plot", "--png", metavar="FILE.png", type=PictureFile(), help="The same: draw strong and weak scaling.")
@click.option("--html", metavar="FILE.html", type=click.Path(), help="Write a page that steps through the first walk.")
@click.option("--slurm", metavar="FILE", type=click.Path(), help="With --nodes: write the batch file of the job.")
@force_option
def predict(
    what: str | None, ranks: Sequence[int] | None, nodes: int | None, machine: str | None, force: bool, **options: Any
) -> None:
    """Predict the cost of FFTs of a shape, or of a contraction. What Rote takes comes first, or is marked.

    \b
    Examples:
      rote predict 64x64x64 --ranks 8
      rote predict 64x64 --ranks 4 --dtype c16 --json
      rote predict 256x256x256 --machine k-computer --ranks 4..64
      rote predict "ik,kj->ij" --shape 512x512 --shape 512x512 --ranks 4,16
      rote predict 256x256x256 --machine k-computer --nodes 16
      rote predict 256x256x256 --machine k-computer --versus fugaku --nodes 16
      rote predict --machine k-computer --copy mine.toml
    """
    for name in ("csv", "plot", "html", "slurm", "copy"):
        if options[name] is not None:
            on_rank_0(refuse_target, options[name], force)

    if options["copy"] is not None:
        if what is not None or machine is None:
            raise click.UsageError("--copy takes the --machine to copy, and predicts nothing")
        click.echo(written(profile_text(machine), options["copy"]).lstrip())
        return
    if what is None:
        raise click.UsageError("write the shape of an FFT, as 64x64x64, or a contraction, as ik,kj->ij")
    if (ranks is None) == (nodes is None):
        raise click.UsageError("write one of --ranks, for one number or several, and --nodes, for a whole job")

    # A shape has digits; a contraction has letters, or an arrow.
    if "->" in what or re.fullmatch("[A-Za-z, .]*[A-Za-z][A-Za-z, .]*", what):
        kind = "a contraction"
    elif ranks is None:
        kind = "a job"
    else:
        kind = f"an FFT on {'several numbers' if len(ranks) > 1 else 'one number'} of ranks"

    refuse_others(kind, _OPTIONS, options)

    times, dtype, as_json = as_machine(machine), options["dtype"], options["as_json"]
    if ranks is not None:
        times.along(Grid((min(ranks),)))  # refuses more ranks than the machine has room for

    show = None if as_json else click.echo
    if kind == "a contraction":
        from ..functions.contraction.compile import einsum_scaling

        if ranks is None or not options["shape"]:
            raise click.UsageError(f"{what} is a contraction: write --ranks, and a --shape for each operand")
        about: Answer = {"contraction": what, "shapes": options["shape"], "dtype": dtype}
        with progress(None, "plan"):
            table = einsum_scaling(what, options["shape"], ranks, dtype, times, show)
        _write(table, None, about, options)
        return

    from ..fft import job, scaling

    context = click.get_current_context()
    shape = Integers().convert(what, context.command.params[0], context)
    element = of_ffts(dtype)
    if options["versus"]:
        on = ("nodes", nodes or 0) if ranks is None else ("ranks", ranks[0])
        _compare_machines(shape, on, [times, *map(as_machine, options["versus"])], options)
    elif ranks is None:
        with progress(None, "plan"):
            best = job(shape, nodes or 0, times, element)
        left = written(best.script, options["slurm"]) if options["slurm"] else "--slurm FILE writes the batch file"
        if as_json:
            print_answer(best.as_dict())
        else:
            click.echo(f"{best}\n{left}")
    elif len(ranks) == 1:
        compare_ffts(shape, ranks[0], times, options)
    else:
        with progress(None, "plan"):
            strong = scaling(shape, ranks, element, times, show=show)
            weak = scaling(shape, ranks, element, times, weak=True) if options["plot"] else None
        _write(strong, weak, _about(shape, element), options)


def _about(shape: tuple[int, ...], element: np.dtype[Any]) -> Answer:
    return {"transform": "fft" if element.kind == "c" else "rfft", "shape": shape, "dtype": element.str[1:]}


def _write(strong: Scaling, weak: Scaling | None, about: Answer, options: dict[str, Any]) -> None:
    """Write the files of a table, and print it as JSON, or the names of the files."""
    records = [] if not options["csv"] and not options["as_json"] else strong.records()
    if options["csv"]:
        on_rank_0(_write_csv, options["csv"], records)
    if options["plot"]:
        on_rank_0(lambda: strong.plot(weak).savefig(options["plot"], dpi=150, bbox_inches="tight"))
    if options["as_json"]:
        counts = [row.ranks for row in strong.rows]
        print_answer(about | {"ranks": counts, "machine": machine_name(strong.machine), "choices": records})
    else:
        click.echo("".join([f"\nwrote {path}\n" for path in (options["csv"], options["plot"]) if path]), nl=False)
    _exit_unless(any(row.best for row in strong.rows))


def _write_csv(path: str, records: Sequence[Answer]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, records[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows([record | {"grid": "x".join(map(str, record["grid"] or ()))} for record in records])


def _compare_machines(
    shape: tuple[int, ...], on: tuple[str, int], machines: Sequence[Machine], options: dict[str, Any]
) -> None:
    """Print the FFT that Rote takes on each of several machines, on so many ranks or nodes of it."""
    from ..fft import compare, job

    (of, number), element = on, of_ffts(options["dtype"])
    with progress(None, "plan"):
        if of == "nodes":
            told = [job(shape, number, machine, element).prediction for machine in machines]
        else:
            best = [compare(shape, number, grid=options["grid"], dtype=element, machine=m)[0] for m in machines]
            told = [choice.prediction for choice in best if choice.prediction]
            if len(told) < len(best):
                raise PlanError(next(choice.why for choice in best if not choice.prediction))

    if options["as_json"]:
        print_answer(
            _about(shape, element) | {of: number, "predictions": [prediction.as_dict() for prediction in told]}
        )
        _exit_unless(all(prediction.fits for prediction in told))
        return

    rows = [("machine", "family", "grid", "about", "range", "memory of a node", "node-hours of 1000")]
    for prediction in told:
        family, (low, high) = prediction.tasks.name.partition(" ")[0], prediction.range
        figures = in_seconds(prediction.seconds), f"{in_seconds(low)} to {in_seconds(high)}"
        hours = f"{float(f'{1000 * prediction.node_hours:.3g}'):,g}"
        place = machine_name(prediction.machine), family, str(prediction.tasks.grid)
        memory = in_bytes(prediction.node_bytes) + " (too much)" * (not prediction.fits)
        rows.append((*place, *figures, memory, hours))

    kind = "fft" if element.kind == "c" else "rfft"
    click.echo("\n".join([f"{kind} of {shape} {element} on {number} {of}", *table(rows, {3, 5, 6}), _fastest(told)]))
    _exit_unless(all(prediction.fits for prediction in told))


def _fastest(predictions: Sequence[Prediction]) -> str:
    """Which machine is the fastest, and whether the ranges of the numbers leave it open."""
    first, second = sorted(predictions, key=lambda prediction: prediction.seconds)[:2]
    ratio, sure = second.seconds / first.seconds, first.range[1] < second.range[0]
    text = f"{first.machine.name or 'the default machine'} is {ratio:.2f} times as fast as the next"
    return text if sure else f"{text}, but their ranges overlap"


def compare_ffts(shape: tuple[int, ...], ranks: int, machine: Machine, options: dict[str, Any]) -> None:
    """Print an FFT's walks on all grids over `ranks` ranks, the taken one first, as options of `predict` say."""
    from ..fft.families.choose import best, compare
    from ..html.walks import walk_page

    element = of_ffts(options["dtype"])
    with progress(None, "plan"):
        candidates = compare(shape, ranks, grid=options["grid"], dtype=element, machine=machine)

    told, about = candidates[0].prediction, _about(shape, element)
    head = f"{about['transform']} of {shape} {element} on {counted(ranks, 'rank')}, times {on_machine(machine)}"
    much = [] if told is None or told.fits else [str(told).partition("\n")[0]]
    text = "\n".join([*much, head, *_ranked(candidates, options["why"])])
    if options["html"] is not None:
        text += "\n" + written(walk_page(best(candidates), tuple(range(len(shape))), text), options["html"])
    if options["as_json"]:
        about |= {"ranks": ranks, "machine": machine_name(machine), "prediction": told and told.as_dict()}
        print_answer(about | {"choices": [*map(_choice, candidates)]})
    else:
        click.echo(f"{text}\n\n{told}" if told and machine.network else text)
    _exit_unless(told is None or told.fits)


def _exit_unless(fits: bool) -> None:
    """End with status 1 if what is taken needs more memory than a node has."""
    if not fits:
        raise click.exceptions.Exit(1)


def written(page: str, path: str) -> str:
    """Write a text to a file, and return the line that says so."""
    on_rank_0(lambda: Path(path).write_text(page, "utf-8"))
    return f"\nwrote {path}"


def _choice(choice: Choice) -> Answer:
    price = choice.price
    figures = {
        "layout": str(choice.source.layout),
        "moves": price.moves,
        "received_bytes": price.received,
        "peak_bytes": choice.peak_bytes,
        "empty_ranks": choice.empty_ranks,
        "seconds": price.seconds,
    }

    told = figures if choice.walk else dict.fromkeys(figures)
    return {"family": choice.name, "grid": choice.source.grid.shape} | told | {"why_none": choice.why or None}


def _ranked(candidates: Sequence[Choice], why: bool) -> list[str]:
    """The table of the walks, and a line for each family that has none; with `why` for each of its grids."""
    rows = [("family", "grid", "layout", "moves", "received", "peak", "about", "")]

    none: dict[str, list[str]] = {}
    for choice in candidates:
        on, price = str(choice.source.grid), choice.price
        if choice.walk is None:
            none.setdefault(choice.name, []).append(f"{on}: {choice.why.partition(chr(10))[0]}")
        else:
            cells = str(price.moves), in_bytes(price.received), in_bytes(choice.peak_bytes), in_seconds(price.seconds)
            rows.append((choice.name, on, str(choice.source.layout), *cells, choice.note))

    lines = table(rows, range(3, 7))
    if candidates[0].seconds > min(choice.seconds for choice in candidates):
        lines.append(f"  the first is taken: {_PREFERENCE}")

    for name, reasons in none.items():
        if len(reasons) > 1 and not why:
            reasons = [f"{reasons[0]} (and none on {counted(len(reasons) - 1, 'other grid')}; --why says why)"]
        lines += [f"  no {name} on {reason}" for reason in reasons]
    return lines
