"""Figure 6 of Duy and Ozaki 2015: rows move what theory says, and pencils more; the published order is not best."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product

import figure6
import pytest
from figure6 import AXES, DTYPE, POINTS, PROCESSES, SHAPE, pencil_walk, published_walk, row_walk, slab_walk
from marks import PARTS
from parts import share

import rote

BYTES = 2 * DTYPE.itemsize  # an element is sent and received


@pytest.mark.parametrize("part", PARTS)
def test_rows_move_what_theory_says(part):
    """Law: on a cube of N = n³, P ranks exchange N(1 - 1/P) elements if P <= n, and N(1 - n/P) more if P <= n².

    In one move, and in two; in one, every rank receives as much as any other.
    """
    for processes in share(PROCESSES, part, 3):
        walk, wanted = published_walk(SHAPE, processes), figure6.rows_in_theory(POINTS, processes)
        assert figure6.volume(walk) == BYTES * wanted
        assert len(walk.moves) == (1 if processes <= POINTS else 2)
        if processes <= POINTS:
            assert walk.moves[0].cost.bytes * processes == DTYPE.itemsize * wanted


@pytest.mark.parametrize("part", PARTS)
def test_the_searched_order_moves_less(part):
    """Law: the searched order exchanges as much as theory says if P <= n, else N(2 - 1/n - n/P): less, as P > n.

    As pencils on n x P/n ranks do: only in the second of its two moves does anything leave its plane.
    """
    for processes in share(PROCESSES, part, 3):
        walk, published = row_walk(SHAPE, processes), figure6.rows_in_theory(POINTS, processes)
        found = figure6.volume(walk) / BYTES
        if processes <= POINTS:
            assert found == published and len(walk.moves) == 1
        else:
            assert found == figure6.pencils_in_theory(POINTS, POINTS, processes // POINTS) < published
            assert len(walk.moves) == 2


def test_the_figure_in_numbers():
    """N = 256³ of 16 bytes, sent and received: from 268 MB on 2 processes to 535 on 256; then a surge to 804."""
    megabytes = {p: figure6.volume(published_walk(SHAPE, p)) / 1e6 for p in (2, 256, 512, 4096)}
    assert {p: round(v, 1) for p, v in megabytes.items()} == {2: 268.4, 256: 534.8, 512: 804.3, 4096: 1040.1}


@pytest.mark.parametrize("part", PARTS)
def test_pencils_move_more(part):
    """Law: pencils on p x q ranks exchange N(2 - 1/p - 1/q), never less than rows on as many ranks in the best order.

    More than rows as published if p + q < n + 1, which only n x q ranks are not. All where messages cost nothing, for
    between few ranks and many, a plan may send more to send fewer messages.
    """
    for processes in share(PROCESSES[1:], part, 4, 3, of=2):
        rows, published = (figure6.volume(walk(SHAPE, processes)) for walk in (row_walk, published_walk))
        for p, q in figure6.grids(processes):
            for grid in {(p, q), (q, p)}:
                found = figure6.volume(pencil_walk(SHAPE, grid))
                assert found == BYTES * figure6.pencils_in_theory(POINTS, *grid)
                assert rows <= found and (rows < found or POINTS in grid)
                assert (published < found) == (processes <= POINTS or POINTS not in grid)


@pytest.mark.parametrize("part", PARTS)
def test_slabs_move_as_rows(part):
    """Law: where there are as many planes as ranks, rows are slabs."""
    for processes in share([p for p in PROCESSES if p <= POINTS], part, 3):
        assert figure6.volume(slab_walk(SHAPE, processes)) == figure6.volume(row_walk(SHAPE, processes))


def one_step(walk):
    """The walk where messages cost nothing, so that its moves are one step each, which receives fewest bytes."""
    return replace(walk, machine=rote.Machine(latency=0))


@pytest.mark.parametrize("part", PARTS)
def test_the_published_order_is_never_better(part):
    """Law: the rank that receives most receives no more in the searched order than in abc -> cab -> cba."""
    shapes = [*sorted(set(permutations((8, 16, 32)))), (16, 16, 16), (6, 10, 15), (5, 7, 3)]
    for shape, processes in share(product(shapes, (2, 3, 4, 6, 8, 12, 16, 32, 64)), part, 5, of=3):
        if processes <= shape[0] * shape[1]:
            found, published = (
                sum(plan.cost.bytes for plan in one_step(walk(shape, processes)).moves)
                for walk in (row_walk, published_walk)
            )
            assert found <= published


def test_the_published_order_is_not_always_best():
    """The search is for something: on a cube of more ranks than planes, another order moves less."""
    shape, processes = (16, 16, 16), 32
    found, published = (
        sum(plan.cost.bytes for plan in walk(shape, processes).moves) for walk in (row_walk, published_walk)
    )
    assert found < published


@pytest.mark.parametrize("every", (4, pytest.param(1, marks=pytest.mark.slow)))
def test_the_figure_is_drawn(every, tmp_path):
    """The script draws a PNG."""
    path = tmp_path / "figure6.png"
    figure6.draw(path, PROCESSES[::every])
    assert path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 20_000
    assert AXES == (0, 1, 2)
