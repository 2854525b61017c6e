"""Random Einstein sums of tensors that lie anywhere, as functions of a communicator; what NumPy answers is right.

Run as a program, `python einsums.py some|rest`, it makes the checks of that part on the world and prints one line.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from math import prod, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from parts import report_checks, share

import rote
from rote import DistTensor
from rote.errors import PlanError
from rote.layout.layout import Layout
from rote.runtime import Comm, world
from rote.testing.choices import pick_layout

Array = NDArray[Any]
GRIDS: dict[int, tuple[tuple[int, ...], ...]] = {
    1: ((1,), (1, 1)),
    2: ((2,), (1, 2), (2, 1)),
    3: ((3,), (3, 1)),
    4: ((2, 2), (4,), (2, 1, 2)),
    6: ((3, 2), (6,), (2, 3)),
    8: ((2, 2, 2), (4, 2), (8,)),
}
EXTENTS = (2, 3, 5, 1, 7, 4, 11, 0)
DTYPES = ("f8", "f8", "f4", "c8", "c16", "i4", "i8", "u1", "?")
POINTS = 20_000  # the most products of elements of a case


class Case(NamedTuple):
    """A call of einsum: its arrays, and where their tensors and the result lie."""

    text: str
    arrays: list[Array]
    layouts: list[Layout | None]  # None for an array
    grids: list[tuple[int, ...]]
    layout: Layout | str | None
    grid: tuple[int, ...] | None
    max_bytes: int | None


def case_of(seed: int, ranks: int) -> Case:
    """The case of a number: 1 to 5 operands of orders 0 to 6, of some dtypes, in layouts of all kinds.

    Several operands have few letters and grid modes, for their plans take the most time.
    """
    generator = random.Random(f"{seed} {ranks}")
    pick = generator.choice
    count = pick((2, 2, 2, 1, 1, 3, 3, 4, 5))
    on = pick([shape for shape in GRIDS[ranks] if len(shape) < 3 or count < 3])
    letters = "ijklmn"[: pick((2, 3, 4, 5, 6) if count < 3 else (2, 3, 4, 5) if count == 3 else (2, 3, 3, 4))]
    extents = {letter: pick(EXTENTS[: pick((7, 7, 7, 8))]) for letter in letters}
    while prod(max(n, 1) for n in extents.values()) > POINTS:
        extents[max(extents, key=lambda letter: extents[letter])] //= 2
    terms = []
    for _ in range(count):
        term = "".join(generator.sample(letters, min(pick((2, 1, 3, 2, 0, 4, 6)), len(letters))))
        terms.append(term + (pick(term) if 0 < len(term) < 6 and pick(range(12)) == 0 else ""))
    used = sorted({*"".join(terms)})
    result = "".join(generator.sample(used, min(pick((2, 1, 3, 0, 4, 6)), len(used))))
    kind = pick((DTYPES, ("f8", "f4"), ("i4", "u1", "?")))
    numbers, arrays = np.random.default_rng((seed, ranks)), list[Array]()
    dtypes = [pick(kind)] * len(terms) if pick((True, True, False)) else [pick(kind) for _ in terms]
    for term, dtype in zip(terms, dtypes, strict=True):
        shape = [extents[letter] for letter in term]
        if used and pick(range(8)) == 0:  # one mode broadcasts
            one = pick(used)
            shape = [1 if letter == one and term.count(letter) == 1 else extents[letter] for letter in term]
        arrays.append(_numbers(numbers, tuple(shape), dtype))
    grids = [pick((*[on] * 6, pick(GRIDS[ranks]))) for _ in terms]
    layouts: list[Layout | None] = []
    for array, grid in zip(arrays, grids, strict=True):
        lay = pick_layout(pick, array.shape, grid, views=pick((True, False, False)))
        layouts.append(lay if array.dtype.kind in "iuf" else _of_sums(lay))
    if len(terms) > 1 and pick(range(10)) == 0:
        layouts[0] = None
    sizes = dict.fromkeys(used, 1)
    for term, array in zip(terms, arrays, strict=True):
        sizes.update({letter: n for letter, n in zip(term, array.shape, strict=True) if n != 1})
    layout = _of_sums(pick_layout(pick, tuple([sizes[letter] for letter in result]), on))
    held = sum(array.nbytes for array in arrays) + 16 * prod(sizes[letter] for letter in result)
    return Case(
        f"{','.join(terms)}->{result}",
        arrays,
        layouts,
        grids,
        pick((None, None, "cheapest", layout, layout)),
        on,
        pick((None, None, None, int(held * pick((1.0, 0.6, 2.0, 0.4))))),
    )


def _of_sums(layout: Layout) -> Layout:
    """The layout with sums in the place of other reductions."""
    return Layout(layout.modes, layout.view, "sum", layout.partial, layout.rooted)


def _numbers(generator: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    if dtype[0] in "fc":
        values = generator.standard_normal(shape)
        return np.asarray(values + 1j * generator.standard_normal(shape) if dtype[0] == "c" else values, dtype)
    least, most = {"?": (0, 2), "u1": (0, 256)}.get(dtype, (-(2**31), 2**31))
    return np.asarray(generator.integers(least, most, shape), dtype)


def check_case(comm: Comm, seed: int) -> str:
    """Law: the result has NumPy's shape and dtype, its integers, and its floats within 4 √K eps of Σ|products|."""
    case = case_of(seed, comm.size)
    tensors: list[Any] = []
    for array, layout, grid in zip(case.arrays, case.layouts, case.grids, strict=True):
        tensors.append(array if layout is None else DistTensor.from_global(array, layout, comm, grid))
    try:
        got = rote.einsum(case.text, *tensors, layout=case.layout, grid=case.grid, max_bytes=case.max_bytes)
    except PlanError:
        assert case.max_bytes is not None
        return "no plan"
    if isinstance(case.layout, Layout):
        assert got.layout == case.layout and got.grid.shape == case.grid, (got, case.layout, case.grid)
    assert case.layout is not None or not got.distribution.partial
    check_result(case.text, case.arrays, got.to_global())
    return "right"


def check_result(text: str, arrays: list[Array], got: Array) -> None:
    """Law: an array is the sum of products, as far as its dtype allows."""
    want = np.einsum(text, *arrays)
    assert (got.dtype, got.shape) == (want.dtype, want.shape), (got.dtype, got.shape, want.dtype, want.shape)
    if want.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, want)
        return
    wide = [array.astype(np.clongdouble if want.dtype.kind == "c" else np.longdouble) for array in arrays]
    terms, result = text.split("->")
    extents: dict[str, int] = {}
    for term, array in zip(terms.split(","), arrays, strict=True):
        extents |= {letter: n for letter, n in zip(term, array.shape, strict=True) if n != 1}
    count = prod(n for letter, n in extents.items() if letter not in result)
    bound = 4 * sqrt(max(count, 1)) * np.finfo(want.dtype).eps * np.einsum(text, *map(np.abs, wide))
    assert (np.abs(got - np.einsum(text, *wide)) <= bound).all(), np.abs(got - want).max()


def check_random(comm: Comm, part: str) -> None:
    """Cases of this number of ranks."""
    for seed in share(range(300), part, 30, comm.size, of=6):
        try:
            check_case(comm, seed)
        except Exception as error:
            error.add_note(f"case {seed} on {comm.size} ranks")
            raise


CHECKS: list[Callable[..., None]] = [check_random]


if __name__ == "__main__":
    rote.config(implicit="allow", gather="allow")
    report_checks(CHECKS, world(), sys.argv[1])
