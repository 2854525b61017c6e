"""Seeded random tensors, layouts and ways to store them, for the tests of `.npy` files."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rote.errors import LayoutError
from rote.layout.distribution import Distribution
from rote.layout.grid import Grid
from rote.layout.layout import parse

DTYPES = [np.dtype(code) for code in "?bBhHiIlLqQfdgFDG"]
EXTENTS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 12)
NAMES = "abcd"
# Of tensors of order 3 on a grid of order 1: moved straight, through a buffer, and through several.
LAYOUTS = (
    "block[(0),(),()]",
    "[(),(),(0)]",
    "c a b: [(0:cyclic(2)),(),()]",
    "(c a) b: block[(0),()]",
    "(c b) a: [(0),()]",
)


@dataclass(frozen=True)
class Case:
    """One tensor on one distribution, and one way to store it."""

    dist: Distribution
    dtype: np.dtype[Any]
    fortran_order: bool
    swapped: bool
    version: tuple[int, int]

    def __str__(self) -> str:
        return f"{self.dist}, {self.dtype}, F {self.fortran_order}, swapped {self.swapped}, version {self.version}"


def cases(ranks: int, count: int, seed: int = 0) -> Iterator[Case]:
    """Seeded random cases on a number of ranks: all kinds, views, replicated, rooted and partial layouts."""
    rng = random.Random(f"{seed} {ranks}")
    while count:
        order = rng.randrange(5)
        shape = tuple(rng.choice(EXTENTS[rng.random() < 0.95 :]) for _ in range(order))
        grid = random_grid(rng, ranks)
        view, modes = random_view(rng, order)
        try:
            dist = parse(view + random_layout(rng, modes, grid)).on(shape, grid)
        except LayoutError:  # a tile that does not divide, or sizes that do not fit
            continue
        dtype = rng.choice(DTYPES)
        if dtype.kind == "c" and dist.layout.op in ("max", "min"):
            continue
        version = rng.choice(((1, 0), (2, 0), (3, 0)))
        yield Case(dist, dtype, rng.random() < 0.4, rng.random() < 0.3, version)
        count -= 1


def random_grid(rng: random.Random, ranks: int) -> Grid:
    extents = []
    while ranks > 1:
        extents.append(rng.choice([p for p in range(2, ranks + 1) if ranks % p == 0]))
        ranks //= extents[-1]
    extents += [1] * (rng.random() < 0.3)
    rng.shuffle(extents)
    return Grid(tuple(extents))


def random_view(rng: random.Random, order: int) -> tuple[str, int]:
    """A view prefix for a tensor of some order, often empty, and its number of modes."""
    if not order or rng.random() < 0.3:
        return "", order
    items: list[str] = []
    modes = 0
    names = list(NAMES[:order])
    if rng.random() < 0.7:
        rng.shuffle(names)
    if order > 1 and rng.random() < 0.2:
        taken = rng.randint(2, order)
        return f"({' '.join(names[:taken])}) {' '.join(names[taken:])}: ", order - taken + 1
    while names:
        roll = rng.random()
        if roll < 0.15:
            names.pop()
            items.append(rng.choice(("(r{0} s{0}=2)", "(r{0}=2 s{0})", "(r{0} s{0}=2 t{0}=3)")).format(len(items)))
            modes += items[-1].count("r") + items[-1].count("s") + items[-1].count("t")
            continue
        taken = 1 if roll < 0.35 else rng.randint(1, len(names))
        fused, names = names[:taken], names[taken:]
        items.append(fused[0] if taken == 1 else f"({' '.join(fused)})")
        modes += 1
    return " ".join(items) + ": ", modes


def random_layout(rng: random.Random, modes: int, grid: Grid) -> str:
    entries: list[list[str]] = [[] for _ in range(modes)]
    partial: list[str] = []
    roots: list[str] = []
    for g in rng.sample(range(grid.order), grid.order):
        roll = rng.random()
        if roll < 0.7 and modes:
            kind = rng.choice(("block", "block", "cyclic", "cyclic", "cyclic(2)", "cyclic(3)", "block(7)", "block(30)"))
            if grid.shape[g] > 1 and rng.random() < 0.1:
                kind = "block(" + ",".join(str(rng.randrange(4)) for _ in range(grid.shape[g])) + ")"
            rng.choice(entries).append(f"{g}:{kind}")
        elif roll < 0.8:
            roots.append(f"{g}@{rng.randrange(grid.shape[g])}")
        elif roll < 0.9:
            partial.append(str(g))
    text = "[" + ",".join(f"({','.join(mode)})" for mode in entries) + "]"
    op = rng.choice(("", "max", "min", "prod"))
    return text + (f"+{op}({','.join(partial)})" if partial else "") + (f"|({','.join(roots)})" if roots else "")


def numbered(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of its own global indices, as far as the dtype can tell them apart."""
    numbers = np.arange(prod(shape)).reshape(shape)
    if dtype.kind == "b":
        return np.asarray(numbers % 3 == 0)
    if dtype.kind == "c":
        return np.asarray((numbers - numbers * 1j / 3).astype(dtype))
    return np.asarray(numbers.astype(dtype) / dtype.type(3) if dtype.kind == "f" else numbers.astype(dtype))
