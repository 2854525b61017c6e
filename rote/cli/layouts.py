"""`rote show`, `explain` and `contents`: layouts, plans and files, without starting ranks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from math import prod
from typing import TYPE_CHECKING, Any

import click

from ..compiler.compile import compile
from ..compiler.plan import Plan, figures
from ..compiler.step import KINDS
from ..errors import LayoutError, PlanError
from ..functions.contraction.compile import compile_einsum
from ..layout.distribution import Distribution, distribute, replication
from ..layout.layout import parse, parse_transition
from ..machines.machine import as_machine
from ..units import in_bytes, table
from .options import (
    Bytes,
    Integers,
    PictureFile,
    dtype_option,
    force_option,
    known,
    machine_option,
    refuse_others,
    refuse_target,
)
from .output import Answer, coloured, json_option, on_rank_0, print_answer, progress
from .predict import compare_ffts, written

if TYPE_CHECKING:
    from ..functions.contraction.plan import Contraction
    from ..io.stored import Contents

__all__ = ["contents", "explain", "show"]

_LISTED = 1 << 20  # ranks
_OPTIONS = {  # of each kind of thing that is explained
    "a transition": ("shape", "grid", "max_bytes", "why_not", "wire", "verify"),
    "a contraction": ("shape", "grid", "max_bytes", "why_not", "verify", "layout", "out_layout", "ranks"),
    "FFTs": ("grid", "ranks", "why"),
}
_PROVED = {"Plan": "element arrives", "Contraction": "product of elements enters"}

_shape = click.option(
    "--shape", metavar="8x9x10", type=Integers(), help="The tensor's shape; default: a small one that fits."
)
_grid = click.option(
    "--grid", metavar="2x2", type=Integers(), help="The process grid; default: two ranks along each grid mode."
)

Extents = tuple[int, ...] | None

# --- one layout ------------------------------------------------------------------------------------------------------


@click.command()
@click.argument("layout")
@_shape
@_grid
@click.option("--plot", metavar="FILE.png", type=PictureFile(), help="Also draw a picture.")
@force_option
@json_option
def show(layout: str, shape: Extents, grid: Extents, plot: str | None, force: bool, as_json: bool) -> None:
    """Draw who owns what.

    \b
    Examples:
      rote show "block[(0),(1)]"
      rote show "[(0),()]" --shape 9x4 --grid 3
      rote show "[(0:cyclic(2)),()]" --shape 8x4 --json
    """
    from ..plot.drawing import example_grid, example_shape
    from ..plot.text import draw

    if "->" in layout:
        hint = f'try: rote explain "{parse_transition(layout)}" --shape … --grid …'
        raise LayoutError(f"a drawing shows one layout, not a transition\n{hint}")

    parsed = parse(layout)
    on = grid or example_grid(parsed)
    dist = distribute(parsed, shape or example_shape(parsed, on), on)

    if plot is not None:
        on_rank_0(refuse_target, plot, force)
        on_rank_0(_draw, dist, plot)

    if as_json:  # more ranks can be listed than drawn
        print_answer(_owners(dist))
    else:
        left = "" if plot is None else f"\n\nwrote {plot}"
        click.echo(draw(dist, coloured(), shutil.get_terminal_size((100, 24)).columns) + left)


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


# --- plans, and walks of FFTs ----------------------------------------------------------------------------------------


@click.command()
@click.argument("text", required=False)
@click.argument("more", nargs=-1, metavar="")
@click.option(
    "--shape",
    metavar="8x9x10",
    multiple=True,
    type=Integers(),
    help="The tensor's shape; default: a small one that fits. Of a contraction: one for each operand.",
)
@_grid
@dtype_option
@click.option("--max-bytes", type=Bytes(), metavar="BYTES", help="The most memory of a rank: 100000, 64K, 1.5GiB.")
@click.option(
    "--why-not",
    metavar="WAY",
    shell_complete=known(lambda: KINDS),
    help="Show the cost of a plan with such a step (allgather, exchange, ...) or product (SUMMA, i:0,j:1, ...).",
)
@click.option("--wire", type=click.Choice(("f4",)), help="Round double precision to single while it travels.")
@click.option("--verify", is_flag=True, help="Prove that every element arrives exactly once.")
@click.option("--fft", metavar="64x64x64", type=Integers(), help="Compare FFTs of a tensor of this shape instead.")
@click.option("--layout", multiple=True, help="The layout of an operand of a contraction, or free; one for each.")
@click.option("--out-layout", metavar="LAYOUT", help="The layout of a contraction's result, or cheapest.")
@click.option("--ranks", type=click.IntRange(1), help="With --fft or a contraction: the number of ranks, on any grid.")
@click.option("--why", is_flag=True, help="With --fft: for every grid, say why a family has no walk.")
@machine_option
@json_option
@click.option("--html", metavar="FILE.html", type=click.Path(), help="Also write a page that steps through the plan.")
@force_option
def explain(text: str | None, more: tuple[str, ...], fft: Extents, as_json: bool, force: bool, **options: Any) -> None:
    """Show the plan from one layout to another, or of a contraction, and its cost; or which FFT costs least.

    A text without brackets, such as ik,kj->ij, is a contraction.

    \b
    Examples:
      rote explain "block[(0),()] -> block[(),(0)]"
      rote explain "[(0),()] -> block[(),(0)]" --shape 64x64 --grid 4 --verify
      rote explain "[(0)]+(1) -> [()]" --shape 4096 --max-bytes 100000 --why-not allreduce
      rote explain "ik,kj->ij" --shape 4096x4096 --shape 4096x4096 --ranks 64 --why-not SUMMA
      rote explain --fft 64x64x64 --ranks 8 --dtype c16
      rote explain "block[(0),()] -> block[(),(0)]" --json
      rote explain "block[(0),()] -> block[(),(0)]" --html plan.html
    """
    if more:
        raise click.UsageError(f'a transition is one text: write rote explain "{" -> ".join([text or "", *more])}"')
    if options["html"] is not None:
        on_rank_0(refuse_target, options["html"], force)

    # Layouts have brackets, and the subscripts of a contraction have none.
    kind = "FFTs" if fft is not None else "a contraction" if text is not None and "[" not in text else "a transition"
    refuse_others(kind, _OPTIONS, options)

    if fft is not None:
        ranks = options["ranks"]
        if text is not None or ranks is None:
            raise click.UsageError(
                "FFTs are compared for a shape and a number of ranks; write rote explain --fft 64x64 --ranks 4"
            )
        compare_ffts(fft, ranks, as_machine(options["machine"]), options | {"as_json": as_json})
    elif text is None:
        raise click.UsageError('write a transition, rote explain "[(0),()] -> [(),(0)]", or --fft with --ranks')
    else:
        with progress(None, "plan"):
            plan = _transition(text, options) if kind == "a transition" else _contraction(text, options)
        _tell(plan, as_json, options["why_not"], options["verify"], options["html"])


def _transition(text: str, options: dict[str, Any]) -> Plan:
    from ..plot.drawing import example_grid, example_shape

    if "->" not in text:
        layout = parse(text)
        raise PlanError(f'{layout} is one layout, and a plan goes from one to another\nwrite "{layout} -> …"')

    if len(options["shape"]) > 1:
        raise click.UsageError('several --shape are for a contraction, such as "ik,kj->ij"')

    ends = parse_transition(text)
    grid = options["grid"] or example_grid(ends.source, ends.target)
    (shape,) = options["shape"] or [example_shape(ends.source, grid, ends.target)]

    more = {name: options[name] for name in ("dtype", "max_bytes", "wire", "machine")}
    return compile(ends, shape=shape, grid=grid, **more)


def _contraction(text: str, options: dict[str, Any]) -> Contraction:
    if not options["shape"] or (options["grid"] is None) == (options["ranks"] is None):
        rule = "is a contraction, since it has no brackets"
        raise click.UsageError(f"{text} {rule}: write a --shape for each operand, and --grid or --ranks")

    layouts = [None if word == "free" else word for word in options["layout"]] or None
    more = {name: options[name] for name in ("grid", "ranks", "dtype", "max_bytes", "machine")}
    return compile_einsum(text, options["shape"], layouts, layout=options["out_layout"], **more)


def _tell(plan: Plan | Contraction, as_json: bool, why_not: str | None, verify: bool, html: str | None) -> None:
    """Print a plan as `rote explain` was asked to."""
    reason = None if why_not is None else plan.why_not(why_not)

    lines = [plan.explain()]
    if isinstance(plan, Plan) and (copies := replication(plan.source, plan.target)):
        lines.append(f"both layouts are {copies}")
    if reason is not None:
        lines.append(f"why not {why_not}: {reason}")

    if verify:
        plan.verify()
        lines.append(f"verified: every {_PROVED[type(plan).__name__]} exactly once")
    if html is not None:
        lines.append(written(plan.to_html(), html))
    if as_json:
        answer = _plan_answer(plan) if isinstance(plan, Plan) else _contraction_answer(plan)
        print_answer(answer | {"why_not": reason, "verified": verify or None})
    else:
        click.echo("\n".join(lines))


def _contraction_answer(plan: Contraction) -> Answer:
    """A contraction, as `rote.Contraction.from_json` reads it, and its figures."""
    stages = []
    for row in plan.figures():
        about: Answer = {"stage": row.text, "family": row.family, "received_bytes": row.received}
        stages.append({**about, "flops": row.flops, "seconds": row.seconds, "peak_bytes": row.peak})
    return {
        "plan": json.loads(plan.to_json()),
        "cost": plan.cost._asdict(),
        "lower_bound": plan.lower_bound,
        "bound_source": plan.bound_source,
        "stages": stages,
    }


def _plan_answer(plan: Plan) -> Answer:
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
    }


# --- files -----------------------------------------------------------------------------------------------------------


@click.command()
@click.argument("path", metavar="FILE", type=click.Path())
@click.option("--step", metavar="N", type=int, help="The number of a step; default: the last one.")
@json_option
def contents(path: str, step: int | None, as_json: bool) -> None:
    """Show what a file of tensors holds: .npy, .zarr, .h5, .nc or .xdmf, from any program.

    \b
    Examples:
      rote demo --size 16 --dir small
      rote contents small/volume.npy
      rote contents small/spectrum.npy --json
    """
    from ..tensor.files import contents as look

    file = look(path, step)
    if as_json:
        print_answer(_contents_answer(path, file))
    else:
        click.echo("\n".join([path, *_lines(file)]))


def _contents_answer(path: str, contents: Contents) -> Answer:
    tensors = []
    for name, stored in contents.tensors.items():
        facts = {"name": name, "shape": stored.shape, "dtype": stored.dtype.str[1:], "dims": stored.dims}
        size = prod(stored.shape) * stored.dtype.itemsize
        tensors.append({**facts, "attributes": dict(stored.attributes), "bytes": size})

    about: Answer = {"path": path, "step": contents.step, "steps": contents.steps}
    names = {"links": dict(contents.links), "unread": dict(contents.unread)}
    return about | {"attributes": dict(contents.attributes), **names, "tensors": tensors}


def _lines(contents: Contents) -> Iterator[str]:
    """The table of tensors, then a line for all that is unread, each link and each attribute, and one for the steps."""
    rows = [("tensor", "shape", "dtype", "size")]
    for name, stored in contents.tensors.items():
        size = in_bytes(prod(stored.shape) * stored.dtype.itemsize)
        rows.append((name or "(no name)", "x".join(map(str, stored.shape)) or "()", str(stored.dtype), size))

    yield from table(rows, {3})
    for name, text in contents.unread.items():
        yield f"  {name} {text}"
    for name, target in contents.links.items():
        yield f"  {name} -> {target}"
    for name, stored in contents.tensors.items():
        for key, value in stored.attributes.items():
            yield f"  {name}.{key} = {json.dumps(value)}"
    for name, value in contents.attributes.items():
        yield f"  {name} = {json.dumps(value)}"
    if contents.steps:
        shown = "" if contents.step is None else f"; this is step {contents.step}"
        yield f"  steps {', '.join(map(str, contents.steps))}{shown}"
