"""`rote show` and `rote explain`: layouts and plans, without any rank."""

from __future__ import annotations

from functools import partial
from math import prod

import click

from ..compiler.explain import in_bytes, in_seconds, table
from ..errors import LayoutError, PlanError, counted
from ..grammar.nodes import Fuse, Tile
from ..layout.distribution import Distribution, distribute
from ..layout.layout import Layout, parse, parse_transition
from .failures import coloured, columns, on_rank_0
from .options import Bytes, PictureFile, force_option, integers, of_ffts, refuse_target

__all__ = ["explain", "show"]


_shape = click.option(
    "--shape",
    metavar="8x9x10",
    callback=integers(),
    help="The tensor's extents; a small shape that fits, if not given.",
)
_grid = click.option(
    "--grid", metavar="2x2", callback=integers(), help="The ranks; two along each grid mode, if not given."
)


@click.command()
@click.argument("layout")
@_shape
@_grid
@click.option("--plot", metavar="FILE.png", type=PictureFile(), help="Draw it into a picture as well.")
@force_option
def show(
    layout: str, shape: tuple[int, ...] | None, grid: tuple[int, ...] | None, plot: str | None, force: bool
) -> None:
    """Draw who owns what.

    \b
        rote show "block[(0),(1)]"
        rote show "[(0),()]" --shape 9x4 --grid 3
    """
    from ..show import draw

    dist = _distribution(layout, shape, grid)
    if plot is not None:
        on_rank_0(partial(refuse_target, plot, force))
    click.echo(draw(dist, coloured(), columns(100)))
    if plot is not None:
        on_rank_0(partial(_draw, dist, plot))
        click.echo(f"\nleft {plot}")


def _draw(dist: Distribution, path: str) -> None:
    """Write the picture of a distribution."""
    from ..plot import layout as draw_layout

    figure = draw_layout(dist, modes=range(3) if dist.order > 3 else None)
    figure.savefig(path, dpi=150, bbox_inches="tight")


@click.command()
@click.argument("transition", required=False)
@_shape
@_grid
@click.option("--dtype", default="f8", show_default=True, help="Of the elements, as NumPy writes it.")
@click.option("--max-bytes", type=Bytes(), metavar="BYTES", help="The most that a rank may hold: 100000, 64K, 1.5GiB.")
@click.option("--why-not", metavar="KIND", help="Say what a plan with such a step would cost: allgather, exchange, ...")
@click.option("--verify", is_flag=True, help="Prove that every element arrives exactly once.")
@click.option("--fft", metavar="64x64x64", callback=integers(), help="Compare the FFTs of a tensor instead.")
@click.option("--ranks", type=click.IntRange(1), help="With --fft: of how many ranks, on any grid.")
@click.option("--why", is_flag=True, help="With --fft: say of every grid why a family has no walk there.")
def explain(
    transition: str | None,
    shape: tuple[int, ...] | None,
    grid: tuple[int, ...] | None,
    dtype: str,
    max_bytes: int | None,
    why_not: str | None,
    verify: bool,
    fft: tuple[int, ...] | None,
    ranks: int | None,
    why: bool,
) -> None:
    """Show how a tensor goes from one layout to another, and what that costs; or which FFT costs least.

    \b
        rote explain "block[(0),()] -> block[(),(0)]"
        rote explain "[(0),()] -> block[(),(0)]" --shape 64x64 --grid 4
        rote explain "[(0)]+(1) -> [()]" --shape 4096 --max-bytes 100000 --why-not allreduce
        rote explain --fft 64x64x64 --ranks 8 --dtype c16
    """
    from ..compiler.compile import compile

    if fft is not None:
        given = {"--shape": shape, "--max-bytes": max_bytes, "--why-not": why_not, "--verify": verify or None}
        others = [name for name, value in given.items() if value is not None]
        if others:
            raise click.UsageError(f"{others[0]} is of a transition, and --fft has a shape of its own; leave one out")
        if transition is not None or ranks is None:
            raise click.UsageError(
                "FFTs are compared for a shape and a number of ranks; write rote explain --fft 64x64 --ranks 4"
            )
        click.echo(_compared(fft, ranks, grid, dtype, why))
        return
    if transition is None or ranks is not None or why:
        raise click.UsageError('write a transition, rote explain "[(0),()] -> [(),(0)]", or --fft with --ranks')
    if "->" not in transition:
        layout = parse(transition)
        raise PlanError(f'{layout} is one layout, and a plan goes from one to another\nwrite "{layout} -> …"')
    ends = parse_transition(transition)
    on = _small_grid(ends.source, ends.target) if grid is None else grid
    extents = _small_shape(ends.source, on) if shape is None else shape
    plan = compile(ends, shape=extents, grid=on, dtype=dtype, max_bytes=max_bytes)
    click.echo(plan.explain())
    if why_not is not None:
        click.echo(f"why not {why_not}: {plan.why_not(why_not)}")
    if verify:
        plan.verify()
        click.echo("verified: every element arrives exactly once")


def _compared(shape: tuple[int, ...], ranks: int, grid: tuple[int, ...] | None, dtype: str, why: bool) -> str:
    """The walks of an FFT on all grids of so many ranks, the one that is taken first, and why others are none."""
    from ..fft.compare import compare

    element = of_ffts(dtype)
    kind = "fft" if element.kind == "c" else "rfft"
    rows = [("family", "grid", "layout", "moves", "received", "about")]
    none: dict[str, list[str]] = {}
    for choice in compare(shape, ranks, grid=grid, dtype=element):
        on, price = str(choice.source.grid), choice.price
        if choice.walk is None:
            none.setdefault(choice.name, []).append(f"{on}: {choice.why}")
        else:
            figures = str(price.moves), in_bytes(price.received), in_seconds(price.seconds)
            rows.append((choice.name, on, str(choice.source.layout), *figures))
    lines = [f"{kind} of {shape} {element} on {ranks} ranks", *table(rows, range(3, 6))]
    for name, reasons in none.items():
        more = len(reasons) - 1
        shown = reasons if why or not more else [f"{reasons[0]} (and none on {counted(more, 'other grid')}; --why)"]
        lines += [f"  no {name} on {reason}" for reason in shown]
    return "\n".join(lines)


def _distribution(text: str, shape: tuple[int, ...] | None, grid: tuple[int, ...] | None) -> Distribution:
    if "->" in text:
        cure = f'try: rote explain "{parse_transition(text)}" --shape … --grid …'
        raise LayoutError(f"a drawing shows one layout, not a transition\n{cure}")
    layout = parse(text)
    on = _small_grid(layout) if grid is None else grid
    return distribute(layout, _small_shape(layout, on) if shape is None else shape, on)


def _small_grid(*layouts: Layout) -> tuple[int, ...]:
    """Two ranks along each grid mode, more where sizes, a first tile or a root ask for them."""
    entries = [e for layout in layouts for mode in layout.modes for e in mode]
    wanted = [(e.grid_mode, max(len(e.kind.sizes), e.kind.at + 1)) for e in entries]
    wanted += [(g, at + 1) for layout in layouts for g, at in layout.rooted]
    order = max((g for layout in layouts for g in layout.grid_modes), default=0) + 1
    return tuple(max([2, *(least for named, least in wanted if named == g)]) for g in range(order))


def _small_shape(layout: Layout, grid: tuple[int, ...]) -> tuple[int, ...]:
    """Extents that the layout can have: 8 per mode of a matrix and 4 of a larger tensor, or what sizes ask for."""
    usual = 8 if layout.order < 3 else 4
    wanted = [usual] * layout.order
    for m, mode in enumerate(layout.modes):
        if mode and mode[0].kind.name == "block" and mode[0].kind.sizes and mode[0].grid_mode < len(grid):
            sizes = mode[0].kind.sizes
            wanted[m] = sum(sizes) if len(sizes) > 1 else min(usual, sizes[0] * grid[mode[0].grid_mode])
    if layout.view is None:
        return tuple(wanted)
    shape: list[int] = []
    for item in layout.view.items:
        if isinstance(item, Tile):
            known = prod(size for _, size in item.parts if size is not None)
            free = any(size is None for _, size in item.parts)
            shape.append(-(-usual // known) * known if free else known)
        else:
            shape += [usual] * (len(item.names) if isinstance(item, Fuse) else 1)
    return tuple(shape)
