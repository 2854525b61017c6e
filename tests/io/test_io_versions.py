"""Files that other programs replace, change or delete while ranks read them: one version on all ranks, or an error."""

from __future__ import annotations

import itertools
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
import version_laws
from file_laws import SUFFIXES, remove
from io_laws import raised
from version_laws import WAYS, Way, make_version, replace_file, replace_folder

import rote
from rote.errors import RoteError
from rote.runtime import Comm, run
from rote.runtime.comm import rawfile
from rote.runtime.comm.protocol import inside

if TYPE_CHECKING:
    from launch import Job

SLOW = pytest.mark.slow


@pytest.mark.parametrize(("suffix", "way"), WAYS, ids=lambda each: getattr(each, "__name__", each))
@pytest.mark.parametrize(("ranks", "count"), [(3, 5), *(pytest.param(ranks, 100, marks=SLOW) for ranks in (2, 4))])
def test_versions(tmp_path: Path, ranks: int, count: int, suffix: str, way: Way) -> None:
    """In-process ranks read one version of what another program replaces all the time."""
    run(version_laws.check_versions, ranks, (tmp_path, count, suffix, way))


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "count"), [(2, 3), pytest.param(3, 20, marks=SLOW)], indirect=["job"])
def test_versions_on_mpi_ranks(job: Job, tmp_path: Path, count: int) -> None:
    """So do MPI ranks."""
    done = job.run(Path(version_laws.__file__), tmp_path, count)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"checks on <MPI rank 0 of {job.ranks}>" in done.stdout


class Replacing:
    """Replace something when rank 1 opens a file that rank 0 has open to read, for so many times."""

    def __init__(self, patch: pytest.MonkeyPatch, path: Path, replace: Callable[[], object], times: int) -> None:
        self.path, self.replace, self.times, self.done = path, replace, times, 0
        self.opened = threading.Semaphore(0)  # so many times rank 0 has opened it
        self.opens = 1 if path.suffix == ".npy" else 2  # the first to look what is in it, the last to read
        for owner, name in ((os, "open"), (h5py, "File")):
            patch.setattr(owner, name, self.wrapped(getattr(owner, name)))

    def wrapped(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def opens(path: Any, *args: Any, **options: Any) -> Any:
            rank = comm.rank if (comm := inside.get()) is not None else None
            concerns = rank is not None and str(path).rstrip("/") == str(self.path)
            if concerns and rank == 1 and self.done < self.times:
                assert all(self.opened.acquire(timeout=20) for _ in range(self.opens))
                time.sleep(0.02)  # in which rank 0 follows its links
                self.done += 1
                self.replace()
            opened = real(path, *args, **options)
            if concerns and rank == 0:
                self.opened.release()
            return opened

        return opens


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("newer", (2, 3))
def test_rank_1_opens_a_newer_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, newer: int) -> None:
    """Both ranks read the newer version; if it is replaced each time, both raise the same error."""
    path = make_version(tmp_path / f"x{suffix}", 1)
    version = make_version(tmp_path / f"{newer}{suffix}", newer)
    way = replace_folder if suffix == ".zarr" else replace_file

    def load(comm: Comm) -> Any:
        x = rote.load(path, "block[(0),()]", comm=comm)
        return x.shape, set(x.local.ravel().tolist())

    def fails(comm: Comm) -> None:
        raised(comm, lambda: load(comm), RoteError, str(path), "was replaced", "load it again when nobody writes it")

    with monkeypatch.context() as patch:
        replacing = Replacing(patch, path, lambda: way(path, version), 1)
        assert run(load, 2) == [(version_laws.SHAPES[newer], {newer})] * 2
    assert replacing.done == 1
    with monkeypatch.context() as patch:
        replacing = Replacing(patch, path, lambda: way(path, version), 99)
        run(fails, 2)
    assert replacing.done == 5


@pytest.mark.parametrize("kind", ("link", "virtual"))
def test_the_file_behind_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """An external link of HDF5, and a source of a virtual dataset, lead both ranks to one version, too."""
    source, version = make_version(tmp_path / "source.h5", 1), make_version(tmp_path / "2.h5", 2)
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        if kind == "link":
            file["v"] = h5py.ExternalLink("source.h5", "/data")
        else:
            layout = h5py.VirtualLayout((24, 36), "f8")
            layout[:] = h5py.VirtualSource("source.h5", "data", (24, 36))
            file.create_virtual_dataset("v", layout)
    replacing = Replacing(monkeypatch, path, lambda: replace_file(source, version), 1)

    def load(comm: Comm) -> set[float]:
        return set(rote.load(path, "block[(0),()]", "v", comm=comm).local.ravel().tolist())

    assert run(load, 2) == [{2.0}] * 2 and replacing.done == 1


@pytest.mark.parametrize("deletes", (True, False))
def test_a_chunk_while_others_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deletes: bool) -> None:
    """A chunk that was there when the array was opened, and is deleted, is an error and no zeros; one that another
    program writes anew has one version on all ranks; one that was not there is zeros."""
    path = make_version(tmp_path / "x.zarr", 1)
    chunk, new, real = path / "c" / "1" / "0", path / "c" / "new", os.open
    (path / "c" / "4" / "0").unlink()
    shutil.copyfile(make_version(tmp_path / "2.zarr", 2) / "c" / "1" / "0", new)

    ways = iter([chunk.unlink if deletes else lambda: os.replace(new, chunk)])

    def opens(key: Any, *args: Any, **options: Any) -> int:
        if key == "c/1/0":  # of several chunks, threads open any one first, and several may open this one
            next(ways, lambda: None)()
        return real(key, *args, **options)

    def program(comm: Comm) -> None:
        if deletes:
            raised(comm, lambda: rote.load(path, "block[(0),()]", comm=comm), RoteError, f"{chunk} is lost")
        else:
            x = rote.load(path, "block[(0),()]", comm=comm).to_global()
            assert [x[0, 0], x[5, 0], x[20, 0]] == [1, 2, 0]

    monkeypatch.setattr(os, "open", opens)
    run(program, 2)
    assert next(ways, None) is None


@pytest.mark.parametrize("at", range(3))  # rank 0 looks, and both open
@pytest.mark.parametrize("deletes", (True, False))
def test_a_store_while_its_metadata_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deletes: bool, at: int
) -> None:
    """A store that another program replaces or deletes then is not taken for a damaged one, whichever rank reads it."""
    path = make_version(tmp_path / "x.zarr", 1)
    version, number, real = make_version(tmp_path / "2.zarr", 2), itertools.count(), os.open

    def opens(key: Any, *args: Any, **options: Any) -> int:
        if key == "zarr.json" and next(number) == at:
            remove(path) if deletes else replace_folder(path, version)
        return real(key, *args, **options)

    def program(comm: Comm) -> None:
        if deletes:
            raised(comm, lambda: rote.load(path, comm=comm), FileNotFoundError, path.name)
        else:
            assert set(rote.load(path, comm=comm).local.ravel().tolist()) == {2.0}

    monkeypatch.setattr(os, "open", opens)
    run(program, 2)
    assert next(number) > at


def test_a_file_that_is_written_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that another program changes while ranks read it is read again, and for ever changing is an error."""
    path, move = make_version(tmp_path / "x.npy", 1), rawfile.FilePart.move
    changes = 1

    def moves(part: rawfile.FilePart, *args: Any) -> None:
        nonlocal changes
        move(part, *args)
        here = inside.get()
        if here is not None and here.rank == 1 and changes:
            changes -= 1
            np.save(path, np.full((24, 36), 2.0))
            os.utime(path, ns=(0, changes))  # another time, although hardly any has passed

    def program(comm: Comm) -> None:
        x = rote.load(path, "block[(0),()]", comm=comm)
        assert set(x.local.ravel().tolist()) == {2.0}

    def fails(comm: Comm) -> None:
        raised(comm, lambda: rote.load(path, comm=comm), RoteError, f"{path} was replaced, changed or removed")

    monkeypatch.setattr(rawfile.FilePart, "move", moves)
    run(program, 2)
    changes = 99
    run(fails, 2)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    """A file that is deleted before rank 1 opens it is not there, for both."""
    path = make_version(tmp_path / f"x{suffix}", 1)
    Replacing(monkeypatch, path, lambda: remove(path), 1)
    run(lambda comm: raised(comm, lambda: rote.load(path, comm=comm), FileNotFoundError, path.name), 2)
