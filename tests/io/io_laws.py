"""What reading and writing `.npy` files must do, as functions of a communicator: on in-process ranks and under mpiexec.

Arrays hold their own global index, so a wrong element says where it is from. Run as a program (folder for files and the
number of cases as its arguments), it makes all checks on the world and prints one line.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from io_cases import cases, numbered
from numpy.lib import format as npy
from numpy.typing import NDArray

from rote.errors import CommError, RoteError
from rote.io import FORMATS
from rote.io.layouts import in_long_runs
from rote.io.stored import Field, StoredTensor
from rote.layout.distribution import Distribution
from rote.layout.layout import parse
from rote.runtime import Comm, collective_errors, world
from rote.runtime.regions import cut


def saved(array: NDArray[Any], version: tuple[int, int] | None = None) -> bytes:
    """The bytes of the `.npy` file that NumPy writes."""
    file = io.BytesIO()
    npy.write_array(file, array, version)
    return file.getvalue()


def alone(comm: Comm, action: Callable[[], object]) -> None:
    """Let rank 0 do something while the others wait: what they looked at before, they have seen."""
    comm.barrier()
    with collective_errors(comm):
        if comm.rank == 0:
            action()


def same(got: NDArray[Any], wanted: NDArray[Any], what: object) -> None:
    """Equal in dtype, shape and every value."""
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), (what, got.dtype, got.shape, wanted.shape)
    assert got.dtype.isnative and got.flags.c_contiguous and got.flags.writeable, what
    np.testing.assert_array_equal(got, wanted, str(what))


def raised(comm: Comm, call: Callable[[], object], kind: type[Exception], *parts: str) -> Exception:
    """The error of a call, which all ranks raise alike."""
    found: Exception | None = None
    try:
        call()
    except Exception as error:
        found = error
    told = comm.allgather_object((type(found).__name__, str(found)))
    assert len(set(told)) == 1, told
    assert isinstance(found, kind), found
    assert all(part in str(found) for part in parts), found
    return found


def write_npy(path: Path | str, block: NDArray[Any], dist: Distribution, comm: Comm) -> None:
    """Write a block as this rank's part of a `.npy` file."""
    FORMATS[0].write(path, [Field("", block, dist)], comm, {}, None, None)


def read_block(path: Path | str, stored: StoredTensor, dist: Distribution, comm: Comm) -> NDArray[Any]:
    """Read this rank's block of the tensor in a `.npy` file."""
    return FORMATS[0].read(path, stored, dist, comm)


def read_header(path: Path | str, comm: Comm) -> StoredTensor:
    """The tensor that a `.npy` file holds."""
    return FORMATS[0].look(path, None, comm, None).tensors["data"]


def check_reading(comm: Comm, folder: Path, count: int) -> None:
    """A rank's block of a file is its block of the array, by definition; whatever the file's order and byte order."""
    path = folder / "read.npy"
    for case in cases(comm.size, count):
        array = numbered(case.dist.shape, case.dtype)
        stored = np.asarray(array, order="F" if case.fortran_order else "C")
        stored = stored.astype(stored.dtype.newbyteorder("S" if case.swapped else "="), order="K")
        alone(comm, lambda: path.write_bytes(saved(stored, case.version) + b"more" * case.swapped))  # noqa: B023
        header = read_header(path, comm)
        told = comm.allgather_object(header)
        assert all(each == header for each in told), told
        assert (header.shape, header.dtype) == (stored.shape, stored.dtype), case
        same(read_block(path, header, case.dist, comm), cut(array, case.dist, comm.rank).astype(case.dtype), case)
        comm.barrier()


def check_writing(comm: Comm, folder: Path, count: int) -> None:
    """What all ranks write is byte for byte what numpy.save writes."""
    path = folder / "written"  # no suffix: none is added
    for case in cases(comm.size, count, seed=1):
        array: NDArray[Any] = comm.allgather_object(numbered(case.dist.shape, case.dtype))[0]  # padding bytes and all
        mine = cut(array, case.dist, comm.rank)
        if case.swapped:
            mine = np.asarray(mine, order="F")
        if case.dist.partial:  # which `rote.save` refuses
            continue
        write_npy(path, mine, case.dist, comm)
        assert path.read_bytes() == saved(array), case
        same(np.load(path), array, case)
        assert os.listdir(folder) == ["written"], case
        comm.barrier()
    alone(comm, lambda: path.unlink(missing_ok=True))


def check_foreign_files(comm: Comm, folder: Path, count: int) -> None:
    """What is no whole `.npy` file of a dtype that Rote carries is refused on all ranks, with the reason."""
    good = saved(np.arange(20.0).reshape(4, 5))
    structured = saved(np.zeros(3, [("x", "f8"), ("y", "i4")]))
    objects = io.BytesIO()
    np.save(objects, np.array([None, "x"], object), allow_pickle=True)

    def headed(text: bytes) -> bytes:
        return npy.magic(1, 0) + len(text).to_bytes(2, "little") + text

    shaped = b"{'descr': '<f8', 'fortran_order': False, 'shape': %s}\n"
    files: dict[str, tuple[bytes, str]] = {
        "empty": (b"", "it is empty"),
        "foreign": (b"\x89HDF\r\n\x1a\n" + bytes(200), "it begins with b'\\x89HDF"),
        "archive": (b"PK\x03\x04" + bytes(200), "numpy.load it and save one of its arrays"),
        "text": (b"1 2 3\n", "is not a .npy file"),
        "magic": (good[:5], "is truncated: it ends within its .npy header"),
        "length": (good[:9], "is truncated: it ends within its .npy header"),
        "version": (good[:6] + b"\x09" + good[7:], "version 9.0 of the format is not known\nsave the array with"),
        "header": (good[:40], "is truncated: it ends within its .npy header"),
        "data": (good[:-1], "is truncated: shape (4, 5) and dtype float64 need 288 bytes, but it has 287"),
        "none": (good[:128], "is truncated"),
        "structured": (structured, "elements of dtype"),
        "objects": (objects.getvalue(), "elements of dtype object"),
        "half": (saved(np.zeros(3, "f2")), "elements of dtype float16"),
        "dates": (saved(np.zeros(3, "M8[s]")), "elements of dtype datetime64"),
        "words": (saved(np.array(["ab"])), "elements of dtype <U2"),
        "nested": (headed(b"(" * 5000), "header that is not valid"),
        "nul": (headed(b"{\x00}"), "header that is not valid"),
        "keys": (headed(b"{1: 2, 'a': 3}"), "header that is not valid"),
        "negative": (headed(shaped % b"(-1, 2)"), "shape is not valid: (-1, 2)"),
        "truth": (headed(shaped % b"(True, 2)"), "shape is not valid"),
        "huge": (headed(shaped % b"(10**3, 2)"), "header that is not valid"),
        "long": (
            headed(b"{'descr': '<f8', 'fortran_order': False, 'shape': (3,)" + b" " * 9970 + b"}"),
            "more than 10000",
        ),
        "vast": (headed(shaped % (b"(%d, 0)" % 10**30)), "shape is not valid"),
        "code": (headed(shaped % b"(np.int64(3),)"), "'shape': (np.int64(3),)}\"\nwrite it as numpy.save does"),
        "integers": (headed(b"{'descr': '<i3', 'fortran_order': False, 'shape': ()}"), "write it as numpy.save does"),
    }
    for name, (data, reason) in files.items():
        path = folder / name
        alone(comm, lambda: path.write_bytes(data))  # noqa: B023
        text = str(raised(comm, lambda: read_header(path, comm), RoteError, str(path), reason))  # noqa: B023
        assert ("whole copy" in text) == ("is truncated" in text) and " at 0x" not in text, text
        alone(comm, path.unlink)
    raised(comm, lambda: read_header(folder / "missing.npy", comm), FileNotFoundError, "missing.npy")
    raised(comm, lambda: read_header(folder, comm), IsADirectoryError, str(folder))
    alone(comm, lambda: (folder / "file").touch())
    raised(comm, lambda: read_header(folder / "file" / "a.npy", comm), NotADirectoryError, "a.npy")
    alone(comm, (folder / "file").unlink)
    pipe = folder / "pipe"
    alone(comm, lambda: os.mkfifo(pipe))
    raised(comm, lambda: read_header(pipe, comm), RoteError, "is a pipe")
    alone(comm, pipe.unlink)


def check_misfits(comm: Comm, folder: Path, count: int) -> None:
    """A file that shrinks or vanishes meanwhile is refused on all ranks."""
    path = folder / "small.npy"
    alone(comm, lambda: np.save(path, np.zeros((4, 5))))
    header = read_header(path, comm)
    fits = parse("block[(0),()]").on((4, 5), comm.size)
    alone(comm, lambda: os.truncate(path, 200))
    raised(comm, lambda: read_block(path, header, fits, comm), CommError, "too short")
    alone(comm, path.unlink)
    raised(comm, lambda: read_block(path, header, fits, comm), RoteError, "small.npy was replaced")


def check_bad_targets(comm: Comm, folder: Path, count: int) -> None:
    """A file that cannot be written is an error on all ranks, with nothing left and what was there untouched."""
    dist = parse("block[(0),()]").on((4, 5), comm.size)
    mine = cut(np.zeros((4, 5)), dist, comm.rank)

    def refused(path: Path, kind: type[Exception], *parts: str) -> None:
        raised(comm, lambda: write_npy(path, mine, dist, comm), kind, *parts)
        comm.barrier()

    refused(folder / "none" / "a.npy", FileNotFoundError, "a.npy")
    refused(folder, IsADirectoryError, str(folder))
    refused(Path(os.devnull), RoteError, "would replace it")
    alone(comm, lambda: (folder / "file").write_bytes(b"mine"))
    refused(folder / "file" / "a.npy", NotADirectoryError, "a.npy")
    assert (folder / "file").read_bytes() == b"mine"
    assert os.listdir(folder) == ["file"]
    comm.barrier()
    alone(comm, (folder / "file").unlink)


def check_replacing(comm: Comm, folder: Path, count: int) -> None:
    """An existing file is replaced and keeps its mode; a link stays a link, and what it points to is replaced."""
    dist = parse("[(0),()]").on((4, 5), comm.size)
    array = numbered(dist.shape, np.dtype("f8"))
    real, link = folder / "real.npy", folder / "link.npy"

    def prepare() -> None:
        real.write_bytes(b"old")
        real.chmod(0o640)
        link.symlink_to("real.npy")

    alone(comm, prepare)
    write_npy(str(link), cut(array, dist, comm.rank), dist, comm)
    assert link.is_symlink() and not real.is_symlink()
    assert real.read_bytes() == saved(array)
    assert real.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(folder)) == ["link.npy", "real.npy"]
    comm.barrier()
    alone(comm, real.unlink)
    alone(comm, link.unlink)


def check_long_runs(comm: Comm, folder: Path, count: int) -> None:
    """A large tensor in short runs is written as rows, whatever its layout; the file is the same."""
    array = numbered((240, 5, 64 * comm.size), np.dtype("c16"))  # more than 1 MiB on each rank
    grid, file = (comm.size, 1), saved(array)
    for layout, rows in (
        ("[(),(),(0)]", "block[(0),(),()]"),
        ("cyclic(4)[(),(1),(0)]", "block[(0),(),()]"),
        ("block[(),(),(0)]", "block[(0),(),()]"),
        ("[(0),(),()]", "[(0),(),()]"),
        ("a b c: [(),(),(0)]|(1)", "block[(0),(),()]|(1)"),
        ("(a b) c: [(),(0)]", "(a b) c: [(),(0)]"),
    ):
        dist = parse(layout).on(array.shape, grid)
        if comm.size > 1:
            assert in_long_runs(dist, 16) == parse(rows).on(array.shape, grid), layout
        write_npy(folder / "long.npy", cut(array, dist, comm.rank), dist, comm)
        with collective_errors(comm):
            assert comm.rank or (folder / "long.npy").read_bytes() == file, layout
    small = parse("[(),(),(0)]").on((60, 5, comm.size), grid)
    assert in_long_runs(small, 16) == small


CHECKS = [
    check_reading,
    check_writing,
    check_long_runs,
    check_foreign_files,
    check_misfits,
    check_bad_targets,
    check_replacing,
]


def main() -> None:
    comm = world()
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    for check in CHECKS:
        inner = folder / check.__name__
        alone(comm, inner.mkdir)
        check(comm, inner, count)
    if comm.rank == 0:
        print(f"{len(CHECKS)} checks on {comm!r}")


if __name__ == "__main__":
    main()
