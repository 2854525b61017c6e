"""Distributions rewritten: without fused modes or roots, on other shapes, with components, as slices."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from string import ascii_lowercase

from ..caches import memoized
from ..errors import LayoutError
from ..grammar.nodes import BLOCK, Entry, Fuse, Name, Tile, ViewItem
from .distribution import PLAIN, Distribution, plain
from .expressions import fitting
from .grid import Grid
from .indexset import IndexSet
from .layout import Layout
from .view import View

__all__ = ["as_slices", "fitted", "unfused", "unfused_ends", "with_components", "without_roots"]

Modes = tuple[tuple[Entry, ...], ...]


def unfused(dist: Distribution) -> Distribution:
    """The distribution with every fused mode taken apart, if a layout can express that; else the distribution itself.

    Blocks of a fused mode are blocks of its slowest mode if the number of ranks divides that mode's extent. If the
    extent divides the number of ranks, each rank has one index of the slowest mode and a block of the next, and the
    grid mode is cut in two. The new blocks have the same elements in the same order, but more modes.

    >>> from .layout import parse
    >>> print(unfused(parse("(a b) c: block[(0),()]").on((4, 6, 5), 8)))
    block[(0),(1),()] on (4, 6, 5), grid 4x2
    """
    if all(len(digits) == 1 for digits in dist.digits) or dist.layout.rooted or dist.layout.partial:
        return dist
    if any(digit.weight != 1 or digit.size != dist.shape[digit.mode] for digit in chain(*dist.digits)):
        return dist  # there are tiles

    rows: list[tuple[int, tuple[Entry, ...]]] = []
    cut: dict[int, int] = {}  # per grid mode that is cut in two, the extent of the first half
    for digits, entries in zip(dist.digits, dist.layout.modes, strict=True):
        entries_per_digit: list[tuple[Entry, ...]] = [entries, *((),) * (len(digits) - 1)]
        if len(digits) > 1 and entries:
            if len(entries) > 1 or entries[0].kind != BLOCK:
                return dist

            (entry,) = entries
            ranks, slow = dist.grid.shape[entry.grid_mode], digits[0].size
            if slow % ranks:
                if slow == 0 or ranks % slow or digits[1].size % (ranks // slow):
                    return dist
                cut[entry.grid_mode] = slow
                # Until grid modes are renumbered, -1 - g stands for the second half.
                entries_per_digit[1] = (Entry(-1 - entry.grid_mode, entry.kind),)
        rows += [(digit.mode, mode) for digit, mode in zip(digits, entries_per_digit, strict=True)]

    # Each grid mode is one mode of the new grid, or two; `first` says where it begins there.
    shape: list[int] = []
    first: list[int] = []
    for g, ranks in enumerate(dist.grid.shape):
        first.append(len(shape))
        shape += [cut[g], ranks // cut[g]] if g in cut else [ranks]
    number = dict(enumerate(first)) | {-1 - g: first[g] + 1 for g in cut}

    view = View(tuple([Name(f"m{m:02}") for m, _ in rows]))
    return Layout(_over(tuple([mode for _, mode in rows]), number), view).on(dist.shape, Grid(tuple(shape)))


def fitted(dist: Distribution, shape: tuple[int, ...]) -> Distribution:
    """The distribution on another shape; blocks become balanced along modes whose extent changes.

    >>> from .layout import parse
    >>> print(fitted(parse("[(0:block(3,2)),(1:block(2))]").on((5, 4), (2, 2)), (6, 4)))
    block[(0),(1:block(2))] on (6, 4), grid 2x2
    """
    if shape == dist.shape:
        return dist

    modes = []
    for digits, mode in zip(dist.digits, dist.layout.modes, strict=True):
        stays = all(dist.shape[digit.mode] == shape[digit.mode] for digit in digits)
        modes.append(mode if stays else tuple(map(fitting, mode)))

    return replace(dist.layout, modes=tuple(modes)).on(shape, dist.grid)


def unfused_ends(source: Distribution, target: Distribution) -> tuple[Distribution, Distribution]:
    """The two ends with fused modes taken apart if both are then on one grid; else the two ends as they are."""
    before, after = unfused(source), unfused(target)
    return (before, after) if before.grid == after.grid else (source, target)


def _over(modes: Modes, number: dict[int, int]) -> Modes:
    """The entries of modes, over grid modes with other numbers."""
    renumbered = []
    for mode in modes:
        renumbered.append(tuple([replace(entry, grid_mode=number[entry.grid_mode]) for entry in mode]))
    return tuple(renumbered)


def without_roots(dist: Distribution) -> Distribution:
    """The distribution among the ranks that hold data, without the rooted grid modes.

    >>> from .layout import parse
    >>> print(without_roots(parse("block[(0),(2)]|(1@2)").on((4, 6), (2, 3, 4))))
    block[(0),(1)] on (4, 6), grid 2x4
    """
    layout, grid = dist.layout, dist.grid
    rooted = {g for g, _ in layout.rooted}
    remaining = [g for g in range(grid.order) if g not in rooted]
    number = {g: place for place, g in enumerate(remaining)}

    partial = tuple([number[g] for g in layout.partial])
    among = replace(layout, modes=_over(layout.modes, number), partial=partial, rooted=())
    return among.on(dist.shape, [grid.shape[g] for g in remaining])


@memoized(256)
def with_components(dist: Distribution, extents: tuple[int, ...]) -> Distribution:
    """The distribution of a field: that of a tensor, with whole modes of the given extents in front.

    >>> from .layout import parse
    >>> print(with_components(parse("block[(0),()]").on((4, 6), 2), (3,)))
    block[(),(0),()] on (3, 4, 6), grid 2
    >>> print(with_components(parse("b a: [(0),()]").on((4, 6), 2), (3,)))
    a c b: [(),(0),()] on (3, 4, 6), grid 2
    """
    layout, view = dist.layout, dist.layout.view
    if view is not None:
        view = _in_front(view, len(extents))
    modes = (*((),) * len(extents), *layout.modes)
    return replace(layout, modes=modes, view=view).on((*extents, *dist.shape), dist.grid)


def _in_front(view: View, number: int) -> View:
    """A view with `number` modes in front; all plain and fused names become letters in alphabetical order."""
    names: list[str] = []
    parts: set[str] = set()
    for item in view:
        if isinstance(item, Tile):
            parts.update([name for name, _ in item.parts])
        else:
            names += item.names

    # Names of parts stay. Other names are in alphabetical order, in which they name the modes of the tensor.
    letters = [letter for letter in ascii_lowercase if letter not in parts]
    if len(letters) < number + len(names):
        letters = sorted({f"m{n:02}" for n in range(number + len(names) + len(parts))} - parts)
    new = dict(zip(sorted(names), letters[number:], strict=False))

    def renamed(item: ViewItem) -> ViewItem:
        match item:
            case Name(name):
                return Name(new[name])
            case Fuse(fused):
                return Fuse(tuple([new[name] for name in fused]))
        return item

    return View((*map(Name, letters[:number]), *map(renamed, view)))


def as_slices(dist: Distribution, rank: int) -> tuple[slice, ...]:
    """Per mode of the tensor, the slice that a rank's block covers.

    >>> from .layout import parse
    >>> as_slices(parse("[(0),(1:block)]").on((5, 4), (2, 2)), 3)
    (slice(1, 4, 2), slice(2, 4, None))
    """
    slices = []
    for mode, indices in enumerate(plain(dist).index_sets(rank)):
        start = indices.start
        step = indices.at(1) - start if len(indices) > 1 else 1
        if indices != IndexSet.of_runs([(start, start + 1)], step, indices.stop):
            raise LayoutError(f"rank {rank} holds {indices} of mode {mode} in {dist}, which is no slice\n{PLAIN}")

        slices.append(slice(start, indices.stop, step if step > 1 else None) if indices else slice(0, 0))

    return tuple(slices)
