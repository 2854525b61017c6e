"""`rote show`, `rote explain` and `rote predict`: layouts, plans and FFTs, without starting ranks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..compiler.compile import compile
from ..compiler.explain import figures, in_bytes, in_seconds, on_machine, table
from ..compiler.machine import DEFAULT
from ..compiler.step import KINDS
from ..errors import LayoutError, PlanError, counted
from ..layout.distribution import Distribution, distribute
from ..layout.layout import parse, parse_transition
from ..layout.pictures import example_grid, example_shape
from .failures import on_rank_0
from .options import DTYPES, Bytes, Known, PictureFile, force_option, integers, of_ffts, refuse_target
from .output import Answer, coloured, columns, give, json_option, print_answer

if TYPE_CHECKING:
    from ..compiler.plan import Plan
    from ..fft.families.choose import Choice

__all__ = ["explain", "predict", "show"]

_LISTED = 1 << 20  # ranks
_PREFERENCE = "costs within 10 % of the least are alike: few moves and blocks go first, views and crowded ranks last"

_shape = click.option(
    "--shape", metavar="8x9x10", callback=integers(), help="The tensor's shape; default: a small one that fits."
)
_grid = click.option(
    "--grid", metavar="2x2", callback=integers(), help="The process grid; default: two ranks along each grid mode."
)


@click.command()
@click.argument("layout")
@_shape
@_grid
@click.option("--plot", metavar="FILE.png", type=PictureFile(), help="Also draw a picture.")
@force_option
@json_option
def show(
    layout: str,
    shape: tuple[int, ...] | None,
    grid: tuple[int, ...] | None,
    plot: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Draw who owns what.

    \b
    Examples:
      rote show "block[(0),(1)]"
      rote show "[(0),()]" --shape 9x4 --grid 3
      rote show "[(0:cyclic(2)),()]" --shape 8x4 --json
    """
    from ..plot.text import draw

    dist = _distribution(layout, shape, grid)
    if plot is not None:
        on_rank_0(refuse_target, plot, force)
        on_rank_0(_draw, dist, plot)
    if as_json:  # not by `give`: more ranks can be listed than drawn
        print_answer(_owners(dist))
        return
    click.echo(draw(dist, coloured(), columns(100)))
    if plot is not None:
        click.echo(f"\nleft {plot}")


def _owners(dist: Distribution) -> Answer:
    if dist.grid.size > _LISTED:
        raise LayoutError(f"JSON lists {_LISTED} ranks at most, not {dist.grid.size}; leave --json out")
    ranks = []
    for rank in range(dist.grid.size):
        indices = [*map(asdict, dist.index_sets(rank))]
        coordinates, block = dist.grid.coordinates(rank), dist.local_shape(rank)
        ranks.append({"rank": rank, "coordinates": coordinates, "block": block, "indices": indices})
    return {"layout": str(dist.layout), "shape": dist.shape, "grid": dist.grid.shape, "ranks": ranks}


def _draw(dist: Distribution, path: str) -> None:
    from ..plot import layout as draw_layout

    figure = draw_layout(dist, modes=range(3) if dist.order > 3 else None)
    figure.savefig(path, dpi=150, bbox_inches="tight")


@click.command()
@click.argument("transition", required=False)
@_shape
@_grid
@click.option("--dtype", type=DTYPES, default="f8", show_default=True, help="The dtype of the elements, as in NumPy.")
@click.option("--max-bytes", type=Bytes(), metavar="BYTES", help="The most memory of a rank: 100000, 64K, 1.5GiB.")
@click.option(
    "--why-not",
    metavar="KIND",
    type=Known("kind", lambda: KINDS),
    help="Show the cost of a plan with such a step: allgather, exchange, ...",
)
@click.option("--wire", type=click.Choice(("f4",)), help="Round double precision to single while it travels.")
@click.option("--verify", is_flag=True, help="Prove that every element arrives exactly once.")
@click.option("--fft", metavar="64x64x64", callback=integers(), help="Compare FFTs of a tensor of this shape instead.")
@click.option("--ranks", type=click.IntRange(1), help="With --fft: the number of ranks, on any grid.")
@click.option("--why", is_flag=True, help="With --fft: for every grid, say why a family has no walk.")
@json_option
@click.option("--html", metavar="FILE.html", type=click.Path(), help="Also write a page that steps through the plan.")
@force_option
def explain(
    transition: str | None,
    shape: tuple[int, ...] | None,
    grid: tuple[int, ...] | None,
    dtype: str,
    max_bytes: int | None,
    why_not: str | None,
    wire: str | None,
    verify: bool,
    fft: tuple[int, ...] | None,
    ranks: int | None,
    why: bool,
    as_json: bool,
    html: str | None,
    force: bool,
) -> None:
    """Show the plan from one layout to another, and its cost; or which FFT costs least.

    \b
    Examples:
      rote explain "block[(0),()] -> block[(),(0)]"
      rote explain "[(0),()] -> block[(),(0)]" --shape 64x64 --grid 4 --verify
      rote explain "[(0)]+(1) -> [()]" --shape 4096 --max-bytes 100000 --why-not allreduce
      rote explain --fft 64x64x64 --ranks 8 --dtype c16
      rote explain "block[(0),()] -> block[(),(0)]" --json
      rote explain "block[(0),()] -> block[(),(0)]" --html plan.html
    """
    if html is not None:
        on_rank_0(refuse_target, html, force)
    if fft is not None:
        options = {"--shape": shape, "--max-bytes": max_bytes, "--why-not": why_not, "--wire": wire}
        options["--verify"] = verify or None
        others = [name for name, value in options.items() if value is not None]
        if others:
            raise click.UsageError(f"{others[0]} is of a transition, and --fft has a shape of its own; leave one out")
        if transition is not None or ranks is None:
            raise click.UsageError(
                "FFTs are compared for a shape and a number of ranks; write rote explain --fft 64x64 --ranks 4"
            )
        _compare(fft, ranks, grid, dtype, why, as_json, html)
        return
    if transition is None or ranks is not None or why:
        raise click.UsageError('write a transition, rote explain "[(0),()] -> [(),(0)]", or --fft with --ranks')
    if "->" not in transition:
        layout = parse(transition)
        raise PlanError(f'{layout} is one layout, and a plan goes from one to another\nwrite "{layout} -> …"')
    ends = parse_transition(transition)
    on = grid or example_grid(ends.source, ends.target)
    extents = shape or example_shape(ends.source, on, ends.target)
    plan = compile(ends, shape=extents, grid=on, dtype=dtype, max_bytes=max_bytes, wire=wire)
    reason = None if why_not is None else plan.why_not(why_not)
    if verify:
        plan.verify()

    def program() -> Answer:
        click.echo(plan.explain())
        if reason is not None:
            click.echo(f"why not {why_not}: {reason}")
        if verify:
            click.echo("verified: every element arrives exactly once")
        if html is not None:
            _keep(plan.to_html(), html)
        return _plan_answer(plan, reason, verify)

    give(as_json, program, dict)


@click.command()
@click.argument("shape", metavar="64x64x64", callback=integers())
@click.option("--ranks", type=click.IntRange(1), required=True, help="The number of ranks, which need not exist.")
@click.option("--grid", metavar="2x2", callback=integers(), help="Only this grid.")
@click.option("--dtype", type=DTYPES, default="f8", show_default=True, help="The dtype of the elements, as in NumPy.")
@click.option("--why", is_flag=True, help="For every grid, say why a family has no walk.")
@json_option
@click.option("--html", metavar="FILE.html", type=click.Path(), help="Write a page that steps through the first walk.")
@force_option
def predict(shape: tuple[int, ...], html: str | None, force: bool, **options: Any) -> None:
    """Predict the cost of FFTs, like explain --fft. The FFT that Rote takes comes first.

    \b
    Examples:
      rote predict 64x64x64 --ranks 8
      rote predict 64x64 --ranks 4 --dtype c16 --json
    """
    if html is not None:
        on_rank_0(refuse_target, html, force)
    _compare(shape, html=html, **options)


def _plan_answer(plan: Plan, reason: str | None, verified: bool) -> Answer:
    """A plan, as `rote.Plan.from_json` reads it, and its figures."""
    steps = []
    rows = figures((plan.source, plan.target), plan.steps, plan.dtype.itemsize, plan.machine)
    for step, row in zip(plan.steps, rows, strict=True):
        about: Answer = {"kind": row.kind, "grid_modes": step.grid_modes, "layout": row.layout}
        cost: Answer = {"received_bytes": row.received, "rounds": row.rounds, "peak_bytes": row.peak}
        steps.append({**about, **cost, "rule": row.rule})
    return {
        "plan": json.loads(plan.to_json()),
        "optimality": plan.optimality,
        "cost": asdict(plan.cost),
        "lower_bound": plan.lower_bound,
        "steps": steps,
        "why_not": reason,
        "verified": verified or None,
    }


def _keep(page: str, path: str) -> None:
    """Write a page to a file, and say so."""
    on_rank_0(lambda: Path(path).write_text(page, "utf-8"))
    click.echo(f"\nleft {path}")


def _compare(
    shape: tuple[int, ...],
    ranks: int,
    grid: tuple[int, ...] | None,
    dtype: str,
    why: bool,
    as_json: bool,
    html: str | None,
) -> None:
    """Print an FFT's walks on all grids over `ranks` ranks, the taken one first; with `why`, why families have none."""
    from ..fft.families.choose import best, compare
    from ..fft.walk.walk import walk_page

    element = of_ffts(dtype)
    kind = "fft" if element.kind == "c" else "rfft"
    candidates = compare(shape, ranks, grid=grid, dtype=element)
    head = f"{kind} of {shape} {element} on {ranks} ranks, times {on_machine(DEFAULT)}"
    text = "\n".join([head, *_ranked(candidates, why)])

    def program() -> Answer:
        click.echo(text)
        if html is not None:
            _keep(walk_page(best(candidates), tuple(range(len(shape))), text), html)
        about = {"transform": kind, "shape": shape, "dtype": element.str[1:], "ranks": ranks}
        return about | {"choices": [*map(_choice, candidates)]}

    give(as_json, program, dict)


def _choice(choice: Choice) -> Answer:
    answer: Answer = {
        "family": choice.name,
        "grid": choice.source.grid.shape,
        "layout": None,
        "moves": None,
        "received_bytes": None,
        "peak_bytes": None,
        "seconds": None,
        "why_none": choice.why or None,
    }
    if choice.walk is not None:
        price = choice.price
        answer |= {"layout": str(choice.source.layout), "moves": price.moves}
        answer |= {"received_bytes": price.received, "peak_bytes": choice.peak_bytes, "seconds": price.seconds}
    return answer


def _ranked(candidates: Sequence[Choice], why: bool) -> list[str]:
    """The table of the walks, and a line for each family that has none; with `why` for each of its grids."""
    rows = [("family", "grid", "layout", "moves", "received", "peak", "about")]
    none: dict[str, list[str]] = {}
    for choice in candidates:
        on, price = str(choice.source.grid), choice.price
        if choice.walk is None:
            none.setdefault(choice.name, []).append(f"{on}: {choice.why}")
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


def _distribution(text: str, shape: tuple[int, ...] | None, grid: tuple[int, ...] | None) -> Distribution:
    if "->" in text:
        hint = f'try: rote explain "{parse_transition(text)}" --shape … --grid …'
        raise LayoutError(f"a drawing shows one layout, not a transition\n{hint}")
    layout = parse(text)
    on = grid or example_grid(layout)
    return distribute(layout, shape or example_shape(layout, on), on)
