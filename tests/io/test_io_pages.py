"""Blocks that ranks of one node pick from the pages of a `.npy` file, in C and in Fortran order."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import Barrier
from typing import Any
from unittest import mock

import numpy as np
import pytest
from io_cases import cases, numbered
from io_laws import alone, raised, read_block, read_header, same, saved

import rote
from rote.io import npy
from rote.layout.layout import parse
from rote.runtime import Comm, copies, run
from rote.runtime.comm import rawfile
from rote.runtime.comm.segments import LINE
from rote.runtime.regions import cut

SMALL = {
    "LONG_RUN": 1 << 20,
    "_FEW": 1,
    "_WINDOW": 512,
}  # a few elements are picked in windows


def test_blocks_are_numpys(tmp_path: Path) -> None:
    """Law: for random layouts, shapes, dtypes, byte and memory orders, blocks are NumPy's; most are picked."""

    def program(comm: Comm) -> None:
        path = tmp_path / "pages.npy"
        for number, case in enumerate(cases(comm.size, 40, seed=11)):
            array: Any = comm.allgather_object(numbered(case.dist.shape, case.dtype))[0]
            stored = array.astype(array.dtype.newbyteorder("S" if case.swapped else "="))
            stored = np.array(stored, order="F" if number % 2 else "C")
            alone(comm, lambda: path.write_bytes(saved(stored)))  # noqa: B023
            header = read_header(path, comm)
            same(read_block(path, header, case.dist, comm), cut(array, case.dist, comm.rank).astype(case.dtype), case)
            comm.barrier()

    with mock.patch.multiple(rawfile, **SMALL), mock.patch.object(np, "memmap", wraps=np.memmap) as memmap:
        run(program, 4)
    assert memmap.call_count > 20


@pytest.mark.parametrize(
    "layout", ("c b a: block[(0),(),()]", "c b a: [(),(),(0)]", "b a c: block[(0),(),()]", "[(),(),(0)]")
)
def test_large_blocks_need_no_more_memory(tmp_path: Path, layout: str) -> None:
    """Laws: blocks are NumPy's, in windows by tiles; progress grows to the whole; nothing of a block's size is held."""
    array, path, sizes, empty = numbered((128, 128, 64), np.dtype("f8")), tmp_path / "x.npy", list[int](), np.empty
    np.save(path, array if layout.startswith("c") else np.asfortranarray(array))
    dist = parse(layout).on(array.shape, 2)
    blocks = [cut(array, dist, rank) for rank in range(2)]

    def scratch(*arguments: Any) -> Any:
        sizes.append(empty(*arguments).nbytes)
        return empty(*arguments)

    def program(comm: Comm) -> None:
        parts: list[float] = []
        x = rote.load(path, layout, comm=comm, progress=parts.append)
        same(x.local, blocks[comm.rank], layout)
        assert parts == sorted(set(parts)) and parts[-1] == 1.0 and len(parts) > 2, parts

    with mock.patch.object(rawfile, "_WINDOW", 1 << 20), mock.patch.object(copies.np, "empty", scratch):
        run(program, 2)
    others = [size for size in sizes if size != array.nbytes // 2 + LINE]  # the blocks of both ranks
    assert len(sizes) - len(others) == 2 and max(others, default=0) < array.nbytes // 8, sizes


def test_a_shrunken_file(tmp_path: Path) -> None:
    """Law: a file that lost its end after its header was read is an error on all ranks."""
    path = tmp_path / "short.npy"
    np.save(path, np.zeros((64, 64, 64)))

    def program(comm: Comm) -> None:
        header = read_header(path, comm)
        alone(comm, lambda: path.write_bytes(path.read_bytes()[:-64]))
        dist = parse("c b a: block[(0),(),()]").on(header.shape, comm.size)
        raised(comm, lambda: read_block(path, header, dist, comm), rote.CommError, "too short")

    run(program, 2)


def test_a_file_that_shrinks_meanwhile(tmp_path: Path) -> None:
    """Law: a file that loses its end between two windows is an error on all ranks, not the end of the process."""
    path, copy, meeting = tmp_path / "short.npy", rawfile.plain_copy, Barrier(2, timeout=20)

    def shrinks(*arrays: Any) -> Callable[[], object]:
        copied = copy(*arrays)

        def call() -> None:
            copied()
            meeting.wait()  # neither rank is in a window now
            os.truncate(path, 4096)
            meeting.wait()

        return call

    def program(comm: Comm) -> None:
        header = read_header(path, comm)
        dist = parse("c b a: block[(0),(),()]").on(header.shape, comm.size)
        raised(comm, lambda: read_block(path, header, dist, comm), rote.RoteError, "changed or removed by another")

    np.save(path, np.zeros((64, 64, 128)))
    with mock.patch.multiple(rawfile, _WINDOW=1 << 20, plain_copy=shrinks):
        run(program, 2)


@pytest.mark.parametrize("layout", ("block[(0),()]", "block[(),(0)]", "block(1023,1)[(),(0)]", "b a: block[(0),()]"))
@pytest.mark.parametrize("rows", (64, 512))
def test_space_is_reserved_for_pages(tmp_path: Path, layout: str, rows: int) -> None:
    """Laws: a file is numpy.save's; its space is reserved if its parts are small, and only then pages are written."""
    array, path = numbered((rows, 1024), np.dtype("f8")), tmp_path / "x.npy"
    with mock.patch.object(npy, "reserve") as reserve, mock.patch.object(np, "memmap", wraps=np.memmap) as memmap:
        run(lambda comm: rote.save(path, rote.DistTensor.from_global(array, layout, comm)), 2)
    assert path.read_bytes() == saved(array) and reserve.called == (rows == 64)
    assert reserve.called or not memmap.called
