"""Reading and writing `.npy` files on in-process ranks: the laws, failures of one rank, memory."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import io_laws
import numpy as np
import pytest
from io_cases import DTYPES, LAYOUTS, cases, numbered
from io_laws import raised, read_block, read_header, same, saved, write_npy
from launch import RANKS
from marks import parts_on

import rote
from rote.io import npy
from rote.layout.layout import parse
from rote.runtime import Comm, run
from rote.runtime.comm import rawfile
from rote.runtime.comm.protocol import inside
from rote.runtime.regions import cut

DIST = "block[(0),()]"


@pytest.mark.parametrize("check", io_laws.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("ranks", "number"), parts_on(*RANKS, some=25, rest=150))
def test_laws(tmp_path: Path, ranks: int, number: int, check: Callable[[Comm, Path, int], None]) -> None:
    """In-process ranks read and write files as the laws say."""
    run(check, ranks, (tmp_path, number))


def test_cases_cover() -> None:
    """The seeded cases hold every dtype, order, kind, view and role that the laws speak of."""
    found = [case for ranks in RANKS for case in cases(ranks, 150)]
    texts = " ".join(str(case.dist.layout) for case in found)
    assert all(word in texts for word in ("block", "block(7)", "cyclic(2)", "+", "+max", "|(", "@1", "r0", "(b a)"))
    assert {case.dtype for case in found} == set(DTYPES)
    assert {len(case.dist.shape) for case in found} == {0, 1, 2, 3, 4}
    assert {0, 1, 7} <= {n for case in found for n in case.dist.shape}


@pytest.mark.parametrize("writers", [n if n in (3, 6) else pytest.param(n, marks=pytest.mark.slow) for n in RANKS])
def test_any_ranks_in_any_ranks_out(tmp_path: Path, writers: int) -> None:
    """What some ranks wrote in one layout, any other number of ranks reads in another."""
    array = numbered((7, 5, 6), np.dtype("c16"))
    path = tmp_path / "passed.npy"

    def write(comm: Comm, layout: str) -> None:
        dist = parse(layout).on(array.shape, comm.size)
        write_npy(path, cut(array, dist, comm.rank), dist, comm)

    def read(comm: Comm, layout: str) -> None:
        dist = parse(layout).on(array.shape, comm.size)
        same(read_block(path, read_header(path, comm), dist, comm), cut(array, dist, comm.rank), dist)

    for given in LAYOUTS:
        run(write, writers, (given,))
        for readers in RANKS:
            for wanted in LAYOUTS:
                run(read, readers, (wanted,))


def failing(comm: Comm, folder: Path, part: str) -> None:
    """A write over an existing file fails with the same text on all ranks, and leaves the folder as it was."""
    dist = parse(DIST).on((13, 5), comm.size)
    path = folder / "old.npy"
    block = cut(numbered(dist.shape, np.dtype("f8")), dist, comm.rank)
    raised(comm, lambda: write_npy(path, block, dist, comm), OSError, part)
    assert os.listdir(folder) == ["old.npy"]
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("ranks", RANKS)
def test_one_rank_cannot_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranks: int) -> None:
    """The disk fails one rank: all ranks raise its error, no part of a file is left, the old file stands."""
    (tmp_path / "old.npy").write_bytes(b"old")
    move = rawfile.FilePart.move
    for bad in range(ranks):

        def fails(*args: Any, **options: Any) -> None:
            here = inside.get()
            if here is not None and here.rank == bad:  # noqa: B023
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            move(*args, **options)

        with monkeypatch.context() as patch:
            patch.setattr(rawfile.FilePart, "move", fails)
            run(failing, ranks, (tmp_path, "Input/output error"))


@pytest.mark.parametrize("call", ("posix_fallocate", "fsync", "replace"))
def test_a_system_call_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """No space, or a file that cannot be synchronised or renamed: as any other failure."""
    (tmp_path / "old.npy").write_bytes(b"old")

    def fails(*args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, fails)
    run(failing, 3, (tmp_path, "No space left"))


def test_a_rank_raises_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank that raises what is not agreed on, and so never comes to the transfer, leaves nothing in the folder."""
    dist = parse(DIST).on((13, 5), 3)
    transfer = npy.transfer

    def breaks(comm: Comm, *args: Any) -> None:
        if comm.rank == 2:
            raise KeyError("elsewhere")
        transfer(comm, *args)

    monkeypatch.setattr(npy, "transfer", breaks)
    with pytest.raises(KeyError, match="elsewhere"):
        run(lambda comm: write_npy(tmp_path / "a.npy", np.zeros(dist.local_shape(comm.rank)), dist, comm), 3)
    assert os.listdir(tmp_path) == []


def test_without_fallocate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system or a file system that cannot reserve space is written to all the same."""
    array = np.arange(6.0)

    def write(comm: Comm) -> None:
        write_npy(tmp_path / "a.npy", array, parse("[()]").on(6, 1), comm)

    def unsupported(*args: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "not here")

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", unsupported)
        run(write, 1)
    monkeypatch.delattr(os, "posix_fallocate")
    run(write, 1)
    assert (tmp_path / "a.npy").read_bytes() == saved(array)


LIMITED = """
    import resource, sys
    from pathlib import Path
    sys.path[:0] = {paths!r}
    from rote.runtime import run
    from test_io_local import failing
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
    run(failing, 3, (Path(sys.argv[1]), "File too large"))
"""


def test_the_disk_refuses(tmp_path: Path) -> None:
    """A true limit of the system on the size of files is an error on all ranks before anything is written."""
    (tmp_path / "old.npy").write_bytes(b"old")
    here = Path(__file__).resolve().parent
    code = textwrap.dedent(LIMITED.format(paths=[str(here), str(here.parent)]))
    command = [sys.executable, "-B", "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "layout",
    (
        "block[(0),(),()]",
        "[(),(),(0)]",
        "(a b) c: block[(0),()]",
        "a (r s=8) c: [(0),(),(),()]",
        "c a b: block[(0),(),()]",
    )
    + ("(c a) b: block[(0),()]", "c b a: [(),(0),()]"),
)
def test_memory(tmp_path: Path, layout: str) -> None:
    """A block is read with one block of memory, whether the file has its order or not."""
    array = numbered((40, 48, 56), np.dtype("c16"))
    path = tmp_path / "a.npy"
    np.save(path, array)
    dist = parse(layout).on(array.shape, 2)

    def read(comm: Comm) -> None:
        read_block(path, read_header(path, comm), dist, comm)

    run(read, 2)  # what is made once and kept is made now
    tracemalloc.start()
    try:
        run(read, 2)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.9 * array.nbytes < peak < 1.15 * array.nbytes


@pytest.mark.parametrize("name", ["x.mat", "x.nxs", "x.npz", "x.NPY.gz", "x.npy.part", "x.txt", "run.7/x.bin"])
def test_names_of_other_formats_are_refused(name, tmp_path):
    """A file of another suffix is not written, nor read if no format is in it: all ranks raise the same."""
    (tmp_path / "run.7").mkdir()
    other = tmp_path / "other.bin"
    other.write_bytes(b"no format of these")

    def program(comm):
        x = rote.DistTensor.zeros((4, 3), "[(0),()]", comm)
        found = []
        for call in (lambda: x.save(tmp_path / name), lambda: rote.DistTensor.load(str(other), "[(0),()]", comm)):
            with pytest.raises(rote.RoteError) as caught:
                call()
            found.append(str(caught.value))
        if comm.rank == 1:  # the others are told what one rank gets wrong
            with pytest.raises(rote.RoteError, match="not the name"):
                x.save(tmp_path / name)
        else:
            with pytest.raises(rote.RoteError, match="not the name"):
                x.save(tmp_path / "right.npy")
        return found

    first, second = rote.run(program, 2)
    assert first == second
    assert f"{name} is not the name of a .npy file" in first[0] and "write" in first[0]
    assert "other.bin is in no format that Rote reads" in first[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.bin", "run.7"]
    assert not any((tmp_path / "run.7").iterdir())


@pytest.mark.parametrize("name", ["x", "x.npy", "x.NPY", "run.7/x"])
def test_names_of_npy_files_are_taken_as_they_are(name, tmp_path):
    """`.npy`, in any case, and names without a suffix: the file has exactly that name."""
    (tmp_path / "run.7").mkdir()
    x = rote.DistTensor.from_global(np.arange(6.0), "[(0)]")
    x.save(tmp_path / name)
    np.testing.assert_array_equal(np.load(tmp_path / name), np.arange(6.0))
    np.testing.assert_array_equal(rote.DistTensor.load(tmp_path / name, "[(0)]").to_global(), np.arange(6.0))


def test_arguments_in_another_order_are_refused(tmp_path: Path) -> None:
    """A communicator where the name of a tensor is meant, and a path of bytes: all ranks hear what to write."""
    np.save(tmp_path / "x.npy", np.zeros((4, 3)))

    def program(comm: Comm) -> list[str]:
        x = rote.DistTensor.zeros((4, 3), DIST, comm)
        calls = (
            lambda: rote.load(tmp_path / "x.npy", DIST, comm),
            lambda: rote.load(bytes(tmp_path / "x.npy"), DIST, comm=comm),
            lambda: rote.save(bytes(tmp_path / "y.npy"), x),
        )
        found = []
        for call in calls:
            with pytest.raises(TypeError) as caught:
                call()
            found.append(str(caught.value))
        return found

    for texts in run(program, 2):
        assert [text.splitlines()[1] for text in texts] == ["write comm=comm", *["write os.fsdecode(path)"] * 2]
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


@pytest.mark.parametrize(
    ("name", "write", "reader"),
    [
        ("x.csv", lambda path, array: np.savetxt(path, array, delimiter=","), "np.loadtxt({!r}, delimiter=',')"),
        ("x.txt", np.savetxt, "np.loadtxt({!r})"),
        ("x.npz", lambda path, array: np.savez(path, a=array), "np.load({!r})['…']"),
        ("x.raw", lambda path, array: array.tofile(path), "np.memmap({!r}, dtype, 'r', shape=shape)"),
    ],
)
def test_a_file_that_numpy_reads(tmp_path, name, write, reader):
    """The refusal of a file in another format is the call that reads it, which works but for the dots."""
    array, path = np.arange(12.0).reshape(4, 3), tmp_path / name
    write(path, array)
    with pytest.raises(rote.RoteError, match=r"in no format that Rote reads: \.npy, \.zarr") as error:
        rote.load(path)

    call = f"rote.DistTensor.from_global({reader.format(str(path))}, layout, comm)"
    assert str(error.value).endswith(f"\nlet NumPy read it: {call}")
    names = {"np": np, "rote": rote, "layout": "block[(0),()]", "comm": None, "dtype": "f8", "shape": (4, 3)}
    assert np.array_equal(eval(call.replace("…", "a"), names).to_global(), array)
