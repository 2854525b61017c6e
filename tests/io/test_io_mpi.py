"""Reading and writing `.npy` files on MPI ranks: the laws, and failures of one rank."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from launch import RANKS, Job
from marks import mpi_parts

if TYPE_CHECKING:
    from conftest import Mpirun

pytestmark = pytest.mark.mpi
LAWS = Path(__file__).with_name("io_laws.py")


@pytest.mark.parametrize(("job", "number"), mpi_parts(some=6, rest=40), indirect=["job"])
def test_laws(job: Job, tmp_path: Path, number: int) -> None:
    """MPI ranks read and write files as the laws say."""
    done = job.run(LAWS, tmp_path, number)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"checks on <MPI rank 0 of {job.ranks}>" in done.stdout


RELAY = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[1]]
import numpy as np
from io_cases import LAYOUTS, numbered
from io_laws import cut, parse, read_block, read_header, same, world, write_npy
comm, folder, turn = world(), Path(sys.argv[2]), int(sys.argv[3])
array = numbered((7, 5, 6), np.dtype("c16"))
for k, layout in enumerate(LAYOUTS):
    path = folder / f"{(k + turn) % len(LAYOUTS)}.npy"
    dist = parse(layout).on(array.shape, comm.size)
    block = cut(array, dist, comm.rank)
    if turn:
        same(read_block(path, read_header(path, comm), dist, comm), block, dist)
    write_npy(path, block, dist, comm)
"""


@pytest.mark.parametrize("each", ((2, 3), pytest.param((4, 1, 6, 3), marks=pytest.mark.slow)), ids=str)
def test_any_ranks_in_any_ranks_out(mpirun: Mpirun, tmp_path: Path, each: tuple[int, ...]) -> None:
    """What some ranks wrote in one layout, another number of ranks reads in another."""
    for turn, ranks in enumerate(each):
        done = mpirun(ranks, RELAY, LAWS.parent, tmp_path, turn)
        assert (done.returncode, done.stderr) == (0, "")


FAILS = """
import errno, os, resource, sys
from pathlib import Path
sys.path[:0] = [sys.argv[1]]
import numpy as np
import rote.runtime.comm.rawfile as rawfile
from io_cases import numbered
from io_laws import alone, cut, parse, raised, world, write_npy
comm, folder = world(), Path(sys.argv[2])
path = folder / "old.npy"
alone(comm, lambda: path.write_bytes(b"old"))

def fails(layout, kind, text):
    dist = parse(layout).on((40, 60, 50), comm.size)
    block = cut(numbered(dist.shape, np.dtype("f8")), dist, comm.rank)
    raised(comm, lambda: write_npy(path, block, dist, comm), kind, text)
    assert os.listdir(folder) == ["old.npy"] and path.read_bytes() == b"old"
    comm.barrier()

check, reserve = rawfile.FilePart.check, os.posix_fallocate
for layout in ("block[(0),(),()]", "[(),(),(0)]", "(c a) b: block[(0),()]"):
    for bad in range(comm.size):
        def refuses(*args):
            if comm.rank == bad:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        rawfile.FilePart.check = refuses
        fails(layout, OSError, "Input/output error")
rawfile.FilePart.check = check

# A true limit: the ranks may make a file of full size, and then write no byte beyond the first 300. Scattered elements
# of small blocks go through pages, whose space is reserved.
def limited(*args):
    reserve(*args)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, resource.RLIM_INFINITY))
os.posix_fallocate = limited
for layout in ("block[(0),(),()]", f"block({39 + (comm.size == 1)})[(0),(),()]"):
    if comm.rank:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, resource.RLIM_INFINITY))
    fails(layout, Exception, "")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
if comm.rank == 0:
    print("all failed alike")
"""


@pytest.mark.parametrize(
    "ranks", [ranks if ranks == 3 else pytest.param(ranks, marks=pytest.mark.slow) for ranks in RANKS]
)
def test_one_rank_cannot_write(mpirun: Mpirun, tmp_path: Path, ranks: int) -> None:
    """The disk fails one rank, or all: all ranks raise the same error, nothing is left, the old file stands."""
    done = mpirun(ranks, FAILS, LAWS.parent, tmp_path)
    assert (done.returncode, done.stdout) == (0, "all failed alike\n"), done.stderr  # Open MPI adds words of its own
