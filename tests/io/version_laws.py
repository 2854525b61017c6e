"""What a load gives while another program replaces the file, as functions of a communicator: in-process and under MPI.

Run as a program (folder for files and the number of loads as its arguments), it makes the checks on the world.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import zarr
from file_laws import remove
from io_laws import alone

import rote
from rote.errors import RoteError
from rote.runtime import Comm, world

SHAPES = {1: (24, 36), 2: (24, 36), 3: (36, 24)}
LAYOUTS = ("block[(0),()]", "[(),(0)]", "b a: block[(0),()]")


def make_version(path: Path, number: int) -> Path:
    """A file of another program, of which all elements are the number; the third version has another shape."""
    array = np.full(SHAPES[number], float(number))
    if path.suffix == ".npy":
        np.save(path, array)
    elif path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            file.create_dataset("data", data=array, chunks=(5, 7))
    else:
        zarr.create_array(path, data=array, chunks=(5, 7))
    return path


def replace_file(path: Path, version: Path) -> None:
    """Let a name lead to a new copy of a version."""
    new = path.with_name("new")
    shutil.copyfile(version, new)
    os.replace(new, path)


def replace_by_link(path: Path, version: Path) -> None:
    """Let a name lead to the version itself, the same file each time."""
    new = path.with_name("new")
    os.link(version, new)
    os.replace(new, path)


def replace_folder(path: Path, version: Path) -> None:
    """Let a name lead to a new copy of a folder, and delete the old one, the last chunks first."""
    new, old = path.with_name("new"), path.with_name("old")
    shutil.copytree(version, new)
    os.rename(path, old)
    os.rename(new, path)
    for inner in sorted(old.rglob("*"), reverse=True):
        inner.rmdir() if inner.is_dir() else inner.unlink()
    old.rmdir()


def save_again(path: Path, version: Path) -> None:
    """Save a version by Rote, as another job does."""
    number = int(version.stem)
    array = np.full(SHAPES[number], float(number))
    rote.run(lambda comm: rote.DistTensor.from_global(array, "block[(0),()]", comm).save(path), 1, on="threads")


Way = Callable[[Path, Path], None]
WAYS: tuple[tuple[str, Way], ...] = (
    *((suffix, way) for suffix in (".npy", ".h5") for way in (replace_file, replace_by_link, save_again)),
    *((".zarr", way) for way in (replace_folder, save_again)),
)


@contextmanager
def replaced_again_and_again(comm: Comm, path: Path, way: Way) -> Iterator[None]:
    """Another thread lets the name lead to one version after the other, at once or after a pause."""
    ends, failures, draw = threading.Event(), list[BaseException](), random.Random(0)
    pause = 0.5 if path.suffix == ".zarr" else 0.05  # in which a load succeeds
    files = [path.with_name(f"{number}{path.suffix}") for number in SHAPES]

    def work() -> None:
        try:
            for version in itertools.cycle(files):
                way(path, version)
                if ends.wait(draw.choice((0, 0, pause))):
                    return
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=work)
    alone(comm, lambda: [*map(make_version, files, SHAPES), make_version(path, 1), thread.start()])
    try:
        yield
    finally:
        ends.set()
        if comm.rank == 0:
            thread.join()
    assert not failures, failures


def check_versions(comm: Comm, folder: Path, count: int, suffix: str, way: Way) -> None:
    """Each load is one version on all ranks, of shape and elements, or the same error on all; the last one succeeds.

    While the file is replaced, a slow machine may see errors alone.
    """
    path = folder / f"x{suffix}"

    def load(layout: str) -> None:
        x = rote.load(path, layout, comm=comm)
        values = sorted({(x.shape, value) for value in x.local.ravel().tolist()})
        assert comm.allgather_object(values) == [values] * comm.size, way.__name__
        ((shape, value),) = values
        assert shape == SHAPES[value], (way.__name__, values)

    with replaced_again_and_again(comm, path, way):
        for number in range(count):
            try:
                load(LAYOUTS[number % 3])
            except (RoteError, FileNotFoundError) as error:
                told = comm.allgather_object(str(error))
                assert told == [str(error)] * comm.size, (way.__name__, told)
    comm.barrier()

    load(LAYOUTS[0])
    comm.barrier()
    alone(comm, lambda: [remove(each) for each in folder.iterdir()])


def main() -> None:
    comm, folder, count = world(), Path(sys.argv[1]), int(sys.argv[2])
    for suffix, way in WAYS:
        check_versions(comm, folder, count, suffix, way)
    if comm.rank == 0:
        print(f"{len(WAYS)} checks on {comm}")


if __name__ == "__main__":
    main()
