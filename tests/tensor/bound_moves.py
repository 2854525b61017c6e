"""What moves that are called again and again must do, as functions of a communicator: on threads and under mpiexec.

Run as a program, `python bound_moves.py some|rest`, it makes the checks of that part on the world and prints one line.
"""

from __future__ import annotations

import random
import sys
import tracemalloc
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from cases import pick_grid, pick_layout, pick_shape
from effort import passed
from execute import methods
from parts import report_checks, share

import rote
from rote import CommError, DistTensor, LayoutError
from rote.runtime import Comm, world
from rote.runtime.comm.protocol import MpiHandle

CASES, EVERY = 60, 5  # random transitions, of which a quick run looks at one in eleven
# Python functions of a call on two ranks. A meeting of threads is most of it; MPI's ranks meet once, or twice if blocks
# are read where they lie, as a large one is, and one of a size that was packed before.
CALLS = {"threads": 23, "mpi": 6}


def numbers(shape: tuple[int, ...], turn: int) -> Any:
    """An array of its own for each turn."""
    return (np.arange(prod(shape), dtype="i8").reshape(shape) + 1) * (turn + 1)


def same(found: DistTensor, want: DistTensor) -> None:
    """Two tensors, block by block."""
    assert found.distribution == want.distribution and found.local.dtype == want.local.dtype
    np.testing.assert_array_equal(found.local, want.local, str(found))


def fill(x: DistTensor, turn: int) -> None:
    """The numbers of a turn, in a tensor that is there."""
    x.local[...] = DistTensor.from_global(numbers(x.shape, turn), x.layout, x.comm, x.grid).local


def check_random_moves(comm: Comm, part: str) -> None:
    """A call fills the result with what the source holds by then, as `redistribute` gives it: any layout to any."""
    for seed in share(range(CASES), part, EVERY, comm.size, of=2):
        pick = random.Random(f"{comm.size} {seed}").choice
        grid, shape = pick_grid(pick, comm.size), pick_shape(pick)
        layouts = [pick_layout(pick, shape, grid) for _ in range(2)]
        x = DistTensor.from_global(numbers(shape, 0), layouts[0], comm, grid)
        move, other = x.move_to(layouts[1]), x.copy()
        assert move.source is x and move.plan.target == move.result.distribution
        for turn in range(3):
            fill(x, turn)
            assert move() is move.result
            same(move.result, x.redistribute(layouts[1]))
            fill(other, turn + 5)
            for given in (other, other.local):
                assert move(given) is move.result
                same(move.result, other.redistribute(layouts[1]))


def check_memory_of_any_kind(comm: Comm) -> None:
    """Blocks in Fortran order, and results that lie in the source's own memory, are moved as others are."""
    n = 4 * comm.size
    for layouts in (("block[(0),()]", "block[(),(0)]"), ("[(0),()]", "block[(0),()]")):
        for order, inside in (("F", False), ("C", True)):
            x = DistTensor.from_global(numbers((n, n), 0), layouts[0], comm)
            x = DistTensor(np.asarray(x.local, order=order), x.distribution, comm)
            out = DistTensor.empty((n, n), layouts[1], comm, dtype="i8")
            memory = x.local.reshape(out.local.shape) if inside else np.asfortranarray(out.local)
            out = DistTensor(memory, out.distribution, comm)
            move = x.move_to(layouts[1], out)
            for turn in range(3):
                fill(x, turn)
                assert move() is out
                same(out, DistTensor.from_global(numbers((n, n), turn), layouts[1], comm))


def check_memory_of_a_kind_on_some_ranks(comm: Comm) -> None:
    """Some ranks copy their blocks before they are read, and others, whose blocks are whole or empty, do not."""
    for source, target in (("[(0:cyclic(3)),()]", "[(0),()]"), ("block[(0),()]", "[(),(0)]"), ("[(),()]", "[(0),()]")):
        for turned in (0, comm.size - 1):
            x = DistTensor.from_global(numbers((3, 5), 0), source, comm)
            order = "F" if comm.rank == turned else "C"
            x = DistTensor(np.asarray(x.local, order=order), x.distribution, comm)
            out = DistTensor.empty((3, 5), target, comm, dtype="i8")
            move = x.move_to(target)
            for turn in range(3):
                fill(x, turn)
                for y in (x.redistribute(target, out=out), move()):
                    same(y, DistTensor.from_global(numbers((3, 5), turn), target, comm))


STEPS = (("block[(0,1),()]", "block[(),(0,1)]"), ("[(0),(1)]", "[(1),(0)]"), ("[()()]+(0,1)", "[(0),()]"))


def check_every_method(comm: Comm) -> None:
    """The bits are the same by every method that these ranks can have, one step or several, reduced or not."""
    for source, target in STEPS:
        grid = rote.Grid.of(comm.size, 2)
        x = DistTensor.from_global(numbers((5, 7), 0), source, comm, grid)
        for name in methods.METHODS:
            if not methods.absent(comm, name):
                move = x.move_to(target, method=name)
                for turn in range(3):
                    fill(x, turn)
                    same(move(), DistTensor.from_global(numbers((5, 7), turn), target, comm, grid))


def check_larger_moves_between(comm: Comm) -> None:
    """A move stays right when memory that ranks share has grown for another one, and when moves take turns."""
    moves = []
    for n in (4, 64, 256):
        x = DistTensor.from_global(numbers((n, n), 0), "block[(0),()]", comm)
        moves.append(x.move_to("block[(),(0)]"))
        for turn in range(2):
            for move in (*moves, *moves[::-1]):
                fill(move.source, turn)
                same(move(), DistTensor.from_global(numbers(move.source.shape, turn), "block[(),(0)]", comm))
        x.redistribute("block[(),(0)]")


def check_what_does_not_fit(comm: Comm) -> None:
    """Other layouts, dtypes, shapes and communicators are refused, on all ranks, and a move stays usable."""
    x = DistTensor.zeros((6, 4), "block[(0),()]", comm)
    move = x.move_to("block[(),(0)]")
    y = DistTensor.from_global(np.zeros((6, 4)), "block[(0),()]", comm.split(0, comm.rank))
    wrong: list[tuple[str, Callable[[], object]]] = [
        ("out is", lambda: x.move_to("block[(),(0)]", out=x)),
        ("out is", lambda: x.move_to("block[(),(0)]", out=DistTensor.zeros((6, 4), "block[(),(0)]", comm, dtype="f4"))),
        ("the move takes", lambda: move(x.astype("f4"))),
        ("the move takes", lambda: move(move.result)),
        ("different communicators", lambda: move(y)),
        ("wants", lambda: move(np.zeros((7, 4)))),
    ]
    for text, call in wrong:
        try:
            call()
        except LayoutError as error:
            assert text in str(error), (text, str(error))
        else:
            raise AssertionError(f"{text}: nothing is refused")
    try:
        x.move_to("block[(),(0)]", method="pigeon")
    except CommError as error:
        assert "method is one of" in str(error)
    fill(x, 1)
    same(move(), DistTensor.from_global(numbers((6, 4), 1).astype("f8"), "block[(),(0)]", comm))


def check_moves_are_listed(comm: Comm) -> None:
    """`rote.trace` lists each call of a move that receives something, with its bytes."""
    x = DistTensor.zeros((6, 4), "block[(0),()]", comm)
    move = x.move_to("block[(),(0)]")
    with rote.trace() as moves:
        move()
        move()
    listed = [(each.cause, each.nbytes, each.implicit) for each in moves]
    assert listed == [("move_to", move.plan.cost.bytes, False)] * 2 * (comm.size > 1), listed


def check_effort(comm: Comm) -> None:
    """A call passes few Python functions, as many for any size, and takes no memory of a block's size."""
    most = CALLS["mpi" if isinstance(comm, MpiHandle) else "threads"] if comm.size == 2 else 60
    for n in (4, 256):
        x = DistTensor.zeros((n, n), "block[(0),()]", comm)
        move = x.move_to("block[(),(0)]")
        move(), move()
        names = passed(move)
        assert len(names) <= most, names
        again = passed(lambda: x.redistribute("block[(),(0)]", out=move.result))  # noqa: B023 - called here
        assert len(again) > 2 * len(names) or comm.size != 2, (len(again), "the count sees nothing")
    comm.barrier()
    if comm.rank == 0:
        tracemalloc.start()
    comm.barrier()
    move()
    comm.barrier()
    if comm.rank == 0:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < x.local.nbytes / 4, peak
    comm.barrier()


CHECKS: list[Callable[..., None]] = [
    check_random_moves,
    check_memory_of_any_kind,
    check_memory_of_a_kind_on_some_ranks,
    check_every_method,
    check_larger_moves_between,
    check_what_does_not_fit,
    check_moves_are_listed,
    check_effort,
]

if __name__ == "__main__":
    report_checks(CHECKS, world(), sys.argv[1])
