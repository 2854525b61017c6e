"""`rote predict`: what FFTs and contractions take on ranks and machines that need not exist.

One number of ranks gives the table of an FFT's families on all grids. Several give a row for each number, as soon as it
is known, in which the best family is marked; then where each family stops, and what decides between the best two.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..compiler.plan import in_bytes, in_seconds, on_machine, table
from ..compiler.tasks import Tasks, task_seconds
from ..errors import counted
from ..layout.grid import Grid
from ..machines.machine import Machine, as_machine
from ..prediction import TIE, deciders, ends, machine_name, predicted
from .options import DTYPES, Counts, PictureFile, force_option, integers, known, machine_option, of_ffts, refuse_target
from .output import Answer, json_option, on_rank_0, print_answer

if TYPE_CHECKING:
    from ..fft.families.choose import Choice

__all__ = ["compare_ffts", "predict", "written"]

_PREFERENCE = "costs within 10 % of the least are alike: few moves and blocks go first, views and crowded ranks last"
_FFTS = ("slab", "pencil", "volumetric", "cyclic", "rows", "ragged")
_CONTRACTIONS = ("1-D", "2-D", "2.5-D", "3-D", "other")
_ROW = ("ranks", "family", "grid", "layout", "seconds", "low", "high", "peak_bytes", "node_bytes", "best", "why_none")

Extents = tuple[int, ...] | None


@click.command()
@click.argument("what", metavar="64x64x64|ik,kj->ij")
@click.option("--ranks", metavar="8..64", type=Counts(), help="How many ranks, which need not exist: 8, 8,12 or 8..64.")
@click.option("--nodes", metavar="N", type=click.IntRange(1), help="Choose the whole job on so many nodes instead.")
@machine_option
@click.option("--grid", metavar="2x2", callback=integers(), help="Only this grid.")
@click.option("--shape", metavar="8x9x10", multiple=True, callback=integers(), help="Of a contraction's operands.")
@click.option(
    "--dtype",
    metavar="DTYPE",
    shell_complete=known(lambda: DTYPES),
    default="f8",
    show_default=True,
    help="The dtype of the elements, as in NumPy.",
)
@click.option("--why", is_flag=True, help="For every grid, say why a family has no walk.")
@json_option
@click.option("--csv", metavar="FILE.csv", type=click.Path(), help="Of several numbers of ranks: also write a table.")
@click.option("--plot", "--png", metavar="FILE.png", type=PictureFile(), help="Draw strong and weak scaling.")
@click.option("--html", metavar="FILE.html", type=click.Path(), help="Write a page that steps through the first walk.")
@click.option("--slurm", metavar="FILE", type=click.Path(), help="With --nodes: write the batch file of the job.")
@force_option
def predict(
    what: str, ranks: Sequence[int] | None, nodes: int | None, machine: str | None, force: bool, **options: Any
) -> None:
    """Predict the cost of FFTs of a shape, or of a contraction. What Rote takes comes first, or is marked.

    \b
    Examples:
      rote predict 64x64x64 --ranks 8
      rote predict 64x64 --ranks 4 --dtype c16 --json
      rote predict 256x256x256 --machine k-computer --ranks 4..64
      rote predict "ik,kj->ij" --shape 512x512 --shape 512x512 --ranks 4,16
      rote predict 256x256x256 --machine k-computer --nodes 16
    """
    for name in ("csv", "plot", "html", "slurm"):
        if options[name] is not None:
            on_rank_0(refuse_target, options[name], force)
    if (ranks is None) == (nodes is None):
        raise click.UsageError("write --ranks, for one number or several, or --nodes, for a whole job")
    times, of_fft = as_machine(machine), re.fullmatch("[0-9x, ]+", what) is not None
    if ranks is not None:
        times.along(Grid((min(ranks),)))  # refuses more ranks than the machine has room for
    several = ranks is not None and (len(ranks) > 1 or not of_fft)
    allowed = {"--csv": several, "--plot": several, "--shape": not of_fft, "--slurm": nodes is not None}
    allowed |= {"--html": of_fft and not several and nodes is None, "--why": of_fft and not several and nodes is None}
    allowed |= {"--grid": of_fft and nodes is None}
    for name, has_use in allowed.items():
        if options[name[2:]] and not has_use:
            raise click.UsageError(f"{name} has no use here; see the examples of rote predict --help")
    if not of_fft:
        if nodes is not None or not options["shape"]:
            raise click.UsageError(f"{what} is a contraction: write --ranks, and a --shape for each operand")
        about: Answer = {"contraction": what, "shapes": options["shape"], "dtype": options["dtype"]}
        _sweep(about, ranks or (), times, _contractions(what, ranks or (), times, options), _CONTRACTIONS, options)
        return
    shape = integers()(click.get_current_context(), click.Option(["--shape"], metavar="64x64x64"), what)
    if nodes is not None:
        from .job import choose_job

        choose_job(shape, nodes, times, of_ffts(options["dtype"]), options["as_json"], options["slurm"])
    elif not several and ranks is not None:
        names = ("grid", "dtype", "why", "as_json", "html")
        compare_ffts(shape, ranks[0], **{name: options[name] for name in names}, machine=times)
    else:
        element = of_ffts(options["dtype"])
        about = {"transform": "fft" if element.kind == "c" else "rfft", "shape": shape, "dtype": element.str[1:]}
        rows = _ffts(shape, ranks or (), times, element, options["grid"])
        _sweep(about, ranks or (), times, rows, _FFTS, options)


# --- one number of ranks ---------------------------------------------------------------------------------------------


def compare_ffts(
    shape: tuple[int, ...],
    ranks: int,
    grid: Extents,
    dtype: str,
    why: bool,
    as_json: bool,
    html: str | None,
    machine: Machine,
) -> None:
    """Print an FFT's walks on all grids over `ranks` ranks, the taken one first; with `why`, why families have none."""
    from ..fft.families.choose import best, compare
    from ..fft.walk import walk_page

    element = of_ffts(dtype)
    kind = "fft" if element.kind == "c" else "rfft"
    candidates = compare(shape, ranks, grid=grid, dtype=element, machine=machine)
    head = f"{kind} of {shape} {element} on {counted(ranks, 'rank')}, times {on_machine(machine)}"
    text = "\n".join([head, *_ranked(candidates, why)])
    if html is not None:
        text += "\n" + written(walk_page(best(candidates), tuple(range(len(shape))), text), html)
    if as_json:
        about = {"transform": kind, "shape": shape, "dtype": element.str[1:], "ranks": ranks}
        told = candidates[0].prediction
        about |= {"machine": machine_name(machine), "prediction": None if told is None else told.as_dict()}
        print_answer(about | {"choices": [*map(_choice, candidates)]})
        return
    click.echo(text)
    if machine.network is not None and candidates[0].prediction is not None:
        click.echo(f"\n{candidates[0].prediction}")


def written(page: str, path: str) -> str:
    """Write a page to a file, and return the line that says so."""
    on_rank_0(lambda: Path(path).write_text(page, "utf-8"))
    return f"\nleft {path}"


def _choice(choice: Choice) -> Answer:
    figures: Sequence[Any] = [None] * 5
    if choice.walk is not None:
        price = choice.price
        figures = str(choice.source.layout), price.moves, price.received, choice.peak_bytes, price.seconds
    names = ("layout", "moves", "received_bytes", "peak_bytes", "seconds")
    about: Answer = {"family": choice.name, "grid": choice.source.grid.shape}
    return about | dict(zip(names, figures, strict=True)) | {"why_none": choice.why or None}


def _ranked(candidates: Sequence[Choice], why: bool) -> list[str]:
    """The table of the walks, and a line for each family that has none; with `why` for each of its grids."""
    rows = [("family", "grid", "layout", "moves", "received", "peak", "about")]
    none: dict[str, list[str]] = {}
    for choice in candidates:
        on, price = str(choice.source.grid), choice.price
        if choice.walk is None:
            none.setdefault(choice.name, []).append(f"{on}: {choice.why.partition(chr(10))[0]}")
        else:
            cells = str(price.moves), in_bytes(price.received), in_bytes(choice.peak_bytes), in_seconds(price.seconds)
            rows.append((choice.name, on, str(choice.source.layout), *cells))
    lines = table(rows, range(3, 7))
    if candidates[0].seconds > min(choice.seconds for choice in candidates):
        lines.append(f"  the first is taken: {_PREFERENCE}")
    for name, reasons in none.items():
        if len(reasons) > 1 and not why:
            reasons = [f"{reasons[0]} (and none on {counted(len(reasons) - 1, 'other grid')}; --why)"]
        lines += [f"  no {name} on {reason}" for reason in reasons]
    return lines


# --- several numbers of ranks ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Entry:
    """The best of a family on some ranks, or why there is none."""

    family: str
    grid: tuple[int, ...]
    layout: str
    seconds: float
    tasks: Tasks | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Row:
    """The families on some ranks: each that can run, and why another cannot."""

    ranks: int
    entries: dict[str, _Entry]
    taken: str  # "" if none can run


def _ffts(
    shape: tuple[int, ...], counts: Sequence[int], machine: Machine, dtype: Any, grid: Extents = None
) -> Iterator[_Row]:
    """The best walk of each family on each number of ranks."""
    from ..fft.families.choose import compare, crowded, idle

    for ranks in counts:
        entries: dict[str, _Entry] = {}
        for choice in compare(shape, ranks, grid=grid, dtype=dtype, machine=machine):
            about = choice.name, choice.source.grid.shape, str(choice.source.layout)
            if choice.walk is None:
                entry = _Entry(*about, inf, None, choice.why)
            elif idle(choice.walk) or crowded(choice.walk):
                entry = _Entry(*about, inf, None, "there are more ranks along an axis than points")
            else:
                entry = _fitting(_Entry(*about, choice.seconds, choice.walk.tasks(compiled=False)), machine)
            entries.setdefault(choice.name, entry)
            if entries[choice.name].tasks is None and entry.tasks is not None:
                entries[choice.name] = entry
        yield _Row(ranks, entries, next((name for name, entry in entries.items() if entry.tasks), ""))


def _contractions(text: str, counts: Sequence[int], machine: Machine, options: Any) -> Iterator[_Row]:
    """The best contraction of each family on each number of ranks."""
    from ..functions.contraction.compile import contractions

    for ranks in counts:
        entries: dict[str, _Entry] = {}
        for plan in contractions(text, options["shape"], ranks=ranks, dtype=options["dtype"], machine=machine):
            products = [row for row in plan.figures() if row.flops]
            name = max(products, key=lambda row: row.flops).family or "" if products else ""
            column = "2-D" if name.startswith("stationary") else name.split(",")[0]
            layouts = " ".join([str(dist.layout) for dist in plan.operands])
            entry = _Entry(name, plan.grid.shape, layouts, plan.cost.seconds, plan.tasks())
            entries.setdefault(column if column in _CONTRACTIONS else "other", _fitting(entry, machine))
        yield _Row(ranks, entries, next((name for name, entry in entries.items() if entry.tasks), ""))


def _fitting(entry: _Entry, machine: Machine) -> _Entry:
    """The entry, or that a node has too little memory for it."""
    needed, memory = node_bytes(entry.tasks, machine), memory_of(machine)
    if needed <= memory:
        return entry
    why = f"it takes {in_bytes(needed)} of memory on a node, which has {in_bytes(int(memory))}"
    return _Entry(entry.family, entry.grid, entry.layout, inf, None, why)


def memory_of(machine: Machine) -> float:
    """The bytes of a node; infinite if the machine does not say."""
    return inf if machine.profile is None else machine.profile["memory"].value


def node_bytes(tasks: Tasks | None, machine: Machine) -> int:
    """The most bytes of the ranks of a node."""
    if tasks is None:
        return 0
    ranks = 1 if machine.network is None else machine.network.ranks_per_node
    return tasks.peak_bytes * min(ranks, tasks.grid.size)


def _sweep(
    about: Answer,
    counts: Sequence[int],
    machine: Machine,
    rows: Iterator[_Row],
    families: Sequence[str],
    options: Any,
) -> None:
    """Print a row for each number of ranks as soon as it is known; then advice, and the files."""
    what = " of ".join([str(each) for each in about.values()][:2]).replace("((", "(").replace("))", ")")
    quiet = options["as_json"]
    if not quiet:
        click.echo(f"{what} {about['dtype']} on {machine_name(machine)}")
        click.echo("".join([f"{name:>13}" for name in ("ranks", *families)]) + "  memory of a node")
    found = []
    for row in rows:
        found.append(row)
        if not quiet:
            click.echo(_line(row, families, machine))
    cells = [_cells(row, *each, machine) for row in found for each in row.entries.items()]
    if options["csv"] is not None:
        on_rank_0(_write_csv, options["csv"], cells)
    if options["plot"] is not None:
        _draw(what, found, machine, about, options)
    if quiet:
        listed = [dict(zip(_ROW, row, strict=True)) for row in cells]
        print_answer(about | {"ranks": counts, "machine": machine_name(machine), "choices": listed})
        return
    click.echo("\n".join(_advice(found, families, machine)))
    for path in (options["csv"], options["plot"]):
        if path is not None:
            click.echo(f"\nleft {path}")


def _line(row: _Row, families: Sequence[str], machine: Machine) -> str:
    """A row: the seconds of each family, that which is taken with *, and what is as fast with =."""
    line, best = f"{row.ranks:>13}", row.entries.get(row.taken)
    for name in families:
        entry = row.entries.get(name)
        mark = "*" if name == row.taken else "="
        if entry is None or entry.tasks is None or best is None:
            line += f"{'-':>13}"
        else:
            near = entry is best or entry.seconds <= TIE * best.seconds
            line += f"{mark * near + in_seconds(entry.seconds):>13}"
    if best is None:
        return line
    return f"{line}  {in_bytes(node_bytes(best.tasks, machine))} on grid {'x'.join(map(str, best.grid)) or '1'}"


def _cells(row: _Row, name: str, entry: _Entry, machine: Machine) -> tuple[Any, ...]:
    """The values of `_ROW`; None where a family has no walk."""
    head, about = (row.ranks, entry.family, entry.grid), (name == row.taken, entry.why or None)
    if entry.tasks is None:
        return (*head, *(None,) * 6, *about)
    low, high = (task_seconds(entry.tasks.every, end) for end in ends(machine))
    figures = entry.tasks.peak_bytes, node_bytes(entry.tasks, machine)
    return (*head, entry.layout, entry.seconds, low, high, *figures, *about)


def _write_csv(path: str, rows: Sequence[tuple[Any, ...]]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_ROW)
        writer.writerows([["x".join(map(str, c)) if isinstance(c, tuple) else c for c in row] for row in rows])


def _advice(rows: Sequence[_Row], families: Sequence[str], machine: Machine) -> list[str]:
    """Where each family stops, which to take where, and what decides between the best two on the most ranks."""
    lines = []
    for name in families:
        runs = [row.ranks for row in rows if name in row.entries and row.entries[name].tasks]
        none = [row for row in rows if name in row.entries and not row.entries[name].tasks]
        few = [row for row in none if runs and row.ranks < runs[0]][-1:]
        many = [row for row in none if not runs or row.ranks > runs[-1]][:1]
        for ends_at, side in ((few, "up to"), (many, "from")):
            for row in ends_at:
                why = row.entries[name].why.partition("\n")[0]
                lines.append(f"no {name} {side} {counted(row.ranks, 'rank')}: {why}")
    taken = [row for row in rows if row.taken]
    if not taken:
        return lines
    starts = [row for n, row in enumerate(taken) if not n or row.taken != taken[n - 1].taken]
    lines.append("* is what Rote takes, and = takes at most 5 % longer")
    lines.append(f"take {', '.join([f'{row.taken} from {row.ranks}' for row in starts])} ranks on")
    last = taken[-1]
    best = last.entries[last.taken]
    others = sorted([e for e in last.entries.values() if e.tasks and e is not best], key=lambda e: e.seconds)
    assert best.tasks is not None
    told = predicted(best.tasks, machine)
    lines.append(f"on {last.ranks} ranks {last.taken} is limited by {told.limit}")
    if others:
        ratio = others[0].seconds / best.seconds
        tie = "a tie" if 1 / TIE < ratio < TIE else f"{ratio:.2f} times as long"
        lines[-1] += f"; next is {others[0].family}, {tie}{_decided(best, others, machine)}"
    return [*lines, *[f"  {line}" for line in told.placement.split("; ")]]


def _decided(best: _Entry, others: Sequence[_Entry], machine: Machine) -> str:
    """Which numbers of the machine's profile decide that no other family is faster."""
    if machine.profile is None:
        return ""
    rivals = [entry.tasks.every for entry in (best, *others[:2]) if entry.tasks is not None]
    names = deciders(rivals, machine)
    if not names:
        return ", wherever each number of the machine is in its range"
    shown = [f"{name}{'' if machine.profile[name].documented else ' (not documented)'}" for name in names]
    return f"; another is faster if one of these is elsewhere in its range: {', '.join(shown)}"


def _draw(what: str, rows: Sequence[_Row], machine: Machine, about: Answer, options: Any) -> None:
    """Draw the seconds of each family over ranks; of FFTs also with as many points on each rank as at first."""
    from ..plot.scaling import scaling

    weak: list[_Row] = []
    if "shape" in about:
        for row in rows:
            times, left = [1] * len(about["shape"]), row.ranks // rows[0].ranks
            if rows[0].ranks * left == row.ranks and left & (left - 1) == 0:
                for n in range(left.bit_length() - 1):
                    times[n % len(times)] *= 2
                shape = tuple([n * more for n, more in zip(about["shape"], times, strict=True)])
                weak += _ffts(shape, [row.ranks], machine, options["dtype"])
    figure = scaling(f"{what} on {machine_name(machine)}", *[_curves(each, machine) for each in (rows, weak)])
    on_rank_0(lambda: figure.savefig(options["plot"], dpi=150, bbox_inches="tight"))


def _curves(rows: Sequence[_Row], machine: Machine) -> dict[str, list[tuple[int, float, float, float]]]:
    """By family, the ranks, the seconds and their ends."""
    curves: dict[str, list[tuple[int, float, float, float]]] = {}
    for row in rows:
        for name, entry in row.entries.items():
            if entry.tasks is not None:
                low, high = (task_seconds(entry.tasks.every, end) for end in ends(machine))
                curves.setdefault(name, []).append((row.ranks, entry.seconds, low, high))
    return curves
