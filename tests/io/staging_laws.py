"""What two-phase transfers of `.npy` files must do, as functions of a communicator: in-process and under mpiexec."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from io_cases import cases, numbered
from io_laws import alone, raised, read_block, read_header, same, saved, write_npy

import rote
from rote.io import npy
from rote.io.npy import Staging
from rote.layout.layout import parse
from rote.runtime import Comm, world
from rote.runtime.comm.rawfile import FilePart
from rote.runtime.regions import cut

SMALL = {"LARGE": 1, "LONG_RUN": 64, "PIECE": 256}  # bytes, by which tensors of a few elements are staged in pieces
LAYOUTS = (
    "[(),(),(0)]",
    "cyclic(2)[(0),(),()]",
    "block[(),(),(0)]",
    "c b a: block[(0),(),()]",
    "b (r s=2) c: [(),(),(0),()]",
    "(a b) c: [(),(0)]",
)


@contextmanager
def small() -> Iterator[None]:
    """Small tensors are staged, as large ones are, and read so even on one node."""
    with (
        mock.patch.multiple(npy, **SMALL),
        mock.patch.object(npy, "on_one_node", return_value=False),
    ):
        yield


def check_contents(comm: Comm, folder: Path, count: int) -> None:
    """Law: files and blocks are NumPy's, for random layouts, shapes (0 and 1 among them), dtypes and byte orders."""
    path, staged = folder / "staged.npy", 0
    for case in cases(comm.size, count, seed=7):
        array: Any = comm.allgather_object(numbered(case.dist.shape, case.dtype))[0]  # padding bytes and all
        stored = array.astype(array.dtype.newbyteorder("S" if case.swapped else "="))
        mine = cut(array, case.dist, comm.rank)
        alone(comm, lambda: path.write_bytes(saved(stored)))  # noqa: B023
        same(read_block(path, read_header(path, comm), case.dist, comm), mine.astype(case.dtype), case)
        if not case.dist.partial:
            write_npy(path, mine, case.dist, comm)
            assert path.read_bytes() == saved(array), case
            comm.barrier()
        if array.size:
            staged += Staging.of(case.dist, array.dtype.itemsize, comm, writing=True) is not None
    assert staged > count // 4, staged


def check_pieces(comm: Comm, folder: Path) -> None:
    """Laws: pieces are disjoint and are all of the file; each is bounded, where rows can be cut; so are its requests.

    Rows of uneven blocks, a last piece that is shorter, and rows that are cyclic over some ranks are among them.
    """
    shape, path = (37, 6, 4 * comm.size), folder / "pieces.npy"
    array = numbered(shape, np.dtype("f8"))
    alone(comm, lambda: np.save(path, array))
    for layout in LAYOUTS:
        dist = parse(layout).on(shape, comm.size)
        plan = Staging.of(dist, 8, comm, writing=True)
        if plan is None:  # rows that are long enough
            continue
        seen = np.zeros(shape, int)
        largest = prod(shape[1:]) * 8 * 2  # of rows of two ranks that may be cyclic
        for piece in plan._pieces(comm, np.dtype("f8")):
            seen[np.ix_(*[held.to_array() for held in piece.index])] += 1
            assert piece.buffer.nbytes <= max(npy.PIECE, largest) or "(a b)" in layout, layout
        total = sum(comm.allgather_object(seen))
        assert total.tolist() == np.ones(shape, int).tolist(), layout
        header = read_header(path, comm)
        requests = 0
        for piece in plan._pieces(comm, np.dtype("f8")):
            requests += len(list(FilePart.at(path, 0, shape, piece.index, piece.buffer, False).runs()))
        block = read_block(path, header, dist, comm)
        same(block, cut(array, dist, comm.rank), layout)
        assert sum(comm.allgather_object(requests)) <= max(array.nbytes // SMALL["LONG_RUN"], comm.size), layout
        comm.barrier()


def check_a_shrunken_file(comm: Comm, folder: Path) -> None:
    """Law: a file that loses its end after its header was read is an error on all ranks, and no rank waits."""
    path = folder / "short.npy"
    alone(comm, lambda: np.save(path, numbered((16, 6, 12), np.dtype("f8"))))
    header = read_header(path, comm)
    alone(comm, lambda: path.write_bytes(path.read_bytes()[:-64]))
    for layout in ("c b a: block[(0),(),()]", "block[(0),(),()]"):
        dist = parse(layout).on(header.shape, comm.size)
        raised(comm, lambda: read_block(path, header, dist, comm), rote.CommError, "too short")  # noqa: B023


def check_progress(comm: Comm, folder: Path) -> None:
    """Laws: the parts grow to 1; what the function raises on one rank is raised on all, when the file is whole."""
    x = rote.DistTensor.from_global(numbered((24, 8, 8), np.dtype("f8")), "c b a: block[(0),(),()]", comm)
    path = folder / "progress.npy"
    parts: list[float] = []
    rote.save(path, x, progress=parts.append if comm.rank == 0 else None)
    first, parts[:] = list(parts), []
    rote.load(path, "c b a: block[(0),(),()]", comm=comm, progress=parts.append if comm.rank == 0 else None)
    for each in (first, parts):
        if comm.rank == 0:
            assert each == sorted(set(each)) and each[-1] == 1.0 and len(each) > 2, each

    def fails(part: float) -> None:
        if comm.rank == comm.size - 1:
            raise ValueError("no more room for a bar")

    raised(comm, lambda: rote.save(path, 2 * x, progress=fails), ValueError, "no more room")
    np.testing.assert_array_equal(np.load(path), 2 * numbered((24, 8, 8), np.dtype("f8")))
    comm.barrier()


def main() -> None:
    comm, folder = world(), Path(sys.argv[1])
    with small():
        run_checks(comm, folder, int(sys.argv[2]))
    if comm.rank == 0:
        print("all as staged")


def run_checks(comm: Comm, folder: Path, count: int) -> None:
    """All checks; the caller makes small tensors staged."""
    check_contents(comm, folder, count)
    for check in (check_pieces, check_a_shrunken_file, check_progress):
        check(comm, folder)


if __name__ == "__main__":
    main()
