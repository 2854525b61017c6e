"""Saving and loading tell the system where a block lies by its runs: that costs as much for any number of elements.

Under mpiexec this is a program: `python test_io_growth.py folder`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from math import prod
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import growth
import numpy as np
import pytest
from io_laws import read_block, read_header, write_npy
from launch import Job

import rote
from rote.layout.distribution import Distribution
from rote.layout.indexset import IndexSet
from rote.runtime import Comm, run, world
from rote.runtime.comm.rawfile import FilePart

KINDS = ("cyclic", "block", "cyclic(5)")
TEXTS = ("[(0),()]", "block[(0),()]", "block[(),(0)]", "cyclic(5)[(0),()]")  # no runs of a few bytes, slow to write
Shape = Callable[[int], tuple[int, ...]]


def save_and_load(comm: Comm, path: Path, dist: Distribution) -> None:
    """One rank's part: it writes its block and reads it again."""
    block = np.ones(dist.local_shape(comm.rank), "b")
    write_npy(path, block, dist, comm)
    del block
    assert read_block(path, read_header(path, comm), dist, comm).all()


def index_set(draw: random.Random, extent: int) -> IndexSet:
    """Some of the integers below an extent, refined up to three times by runs in periods."""
    held = IndexSet.interval(0, extent)
    for _ in range(draw.randint(0, 3)):
        period, first = draw.randint(1, 9), draw.randint(0, 3)
        ends = sorted(draw.sample(range(first, first + period + 1), 2 * draw.randint(1, (period + 1) // 2)))
        held = held.select(IndexSet.of_runs(as_runs(ends), period, draw.randint(1, extent)))
    return held


def as_runs(ends: list[int]) -> list[tuple[int, int]]:
    return list(zip(ends[::2], ends[1::2], strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_parts_of_files(tmp_path: Path, seed: int) -> None:
    """Laws: cycles are the elements in order; a part moves just these, through mapped pages and by runs."""
    draw, path = random.Random(seed), tmp_path / "part"
    for _ in range(100):
        sizes = tuple(draw.randint(1, 7) for _ in range(draw.randint(1, 4)))
        for each in [index_set(draw, prod(sizes))]:
            cycles = [
                (cycle.start + k * cycle.period, cycle.runs) for cycle in each.cycles() for k in range(cycle.number)
            ]
            assert [start + r for start, runs in cycles for a, b in runs for r in range(a, b)] == list(each)
        index = [index_set(draw, extent) for extent in sizes]
        picked = np.ix_(*[held.to_array() for held in index])
        array = np.arange(prod(sizes)).reshape(sizes)
        for mapped in (True, False):
            array.tofile(path)
            out = np.full(tuple(map(len, index)), -1)
            part = FilePart.at(path, 0, sizes, index, out, writing=False)
            part.move(part.map() if mapped else None)
            assert out.tolist() == array[picked].tolist()
            (after := array.copy())[picked] = -out
            part = FilePart.at(path, 0, sizes, index, -out, writing=True)
            part.move(part.map() if mapped else None)
            assert np.fromfile(path, int).tolist() == after.reshape(-1).tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", growth.LAYOUTS)
def test_in_process_ranks(tmp_path: Path, layout: str, kind: str) -> None:
    """Law: beside their blocks, four ranks take as much memory and as many calls for 64 times as many elements."""
    text = layout.format(kind)
    for shape in growth.SHAPES:

        def make(n: int, shape: Shape = shape) -> Callable[[], object]:
            dist = rote.parse(text).on(shape(n), (2, 2))
            return lambda: run(save_and_load, 4, (tmp_path / "a.npy", dist))

        def blocks(n: int, shape: Shape = shape) -> int:
            return prod(shape(n)) * (1 if "1" in text and "0" in text else 2)  # or there are replicas

        growth.check(make, text, blocks)


VIEWS = ("(a b): block[(0)]", "(b a): block[(0)]", "(b a): cyclic[(0)]", "b a: block[(),(0)]", "b (r s=8): [(),(0),()]")


@pytest.mark.parametrize("text", VIEWS)
def test_views(tmp_path: Path, text: str) -> None:
    """Law: so is a view that reads the file's digits in another order: it takes no lists."""

    def make(n: int) -> Callable[[], object]:
        dist = rote.parse(text).on((n, 24), 4)
        return lambda: run(save_and_load, 4, (tmp_path / "a.npy", dist))

    growth.check(make, text, lambda n: 2 * 24 * n)


@pytest.mark.mpi
@pytest.mark.parametrize("job", (2, 3), indirect=True)
def test_mpi_ranks(job: Job, tmp_path: Path) -> None:
    """Law: so does each MPI rank."""
    done = job.run(Path(__file__), tmp_path)
    assert (done.returncode, done.stderr, done.stdout.split()) == (0, "", [str(len(TEXTS))])


def main() -> None:
    comm, checks = world(), 0
    for text in TEXTS:

        def dist(n: int, text: str = text) -> Distribution:
            return rote.parse(text).on((n + 7, 25), comm.size)

        def make(n: int, dist: Callable[[int], Distribution] = dist) -> Callable[[], object]:
            return lambda: save_and_load(comm, Path(sys.argv[1], "a.npy"), dist(n))

        def blocks(n: int, dist: Callable[[int], Distribution] = dist) -> int:
            return prod(dist(n).local_shape(comm.rank))

        growth.check(make, text, blocks)
        checks += 1
    if comm.rank == 0:
        print(checks)


if __name__ == "__main__":
    main()
