"""What hostile, damaged and odd files and names give, as functions of a communicator: in-process and under MPI.

Run as a program (folder for files and the names of checks as its arguments), it makes the checks on the world.
"""

from __future__ import annotations

import bz2
import json
import os
import sys
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numcodecs
import numpy as np
import zarr
from file_laws import remove
from io_laws import alone, raised
from numpy.lib import format as npy
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

import rote
from rote.errors import RoteError
from rote.runtime import Comm, world

SUFFIXES = (".npy", ".zarr", ".h5", ".xdmf")
HUGE = 2**63 - 1
WHOLE_COPY = "give a whole copy"  # the hint for a file that lost a part, and for no other


@contextmanager
def emptied(comm: Comm, folder: Path) -> Iterator[None]:
    """A folder that is empty again for the next check."""
    yield
    comm.barrier()
    alone(comm, lambda: [remove(path) if not path.is_symlink() else path.unlink() for path in folder.iterdir()])


def refused(comm: Comm, path: Path | str, *parts: str, name: str | None = None) -> str:
    """The text of the RoteError that load raises on all ranks; it shows no address of an object."""
    error = raised(comm, lambda: rote.load(path, name=name, comm=comm), RoteError, *parts)
    assert " at 0x" not in str(error)
    return str(error)


def check_sizes(comm: Comm, folder: Path) -> None:
    """A tensor that is larger than arrays may be, or than the memory of its ranks, is refused by its shape."""
    shapes = ((10**15, 8), (2**62, 8), (HUGE,), (HUGE, 0), (0, HUGE, HUGE), (2**40, 2**40, 0))

    def make() -> None:
        group = zarr.create_group(folder / "x.zarr")
        with h5py.File(folder / "x.h5", "w") as file:
            for number, shape in enumerate(shapes):
                chunks = tuple(min(max(extent, 1), 100) for extent in shape)
                group.create_array(f"{number}", shape=shape, chunks=chunks, dtype="f8")
                file.create_dataset(f"{number}", shape, "f8", chunks=chunks, maxshape=(None,) * len(shape))
                header = {"descr": "<f8", "fortran_order": False, "shape": shape}
                with open(folder / f"{number}.npy", "wb") as array:
                    npy.write_array_header_1_0(array, header)  # type: ignore[no-untyped-call]

    with emptied(comm, folder):
        alone(comm, make)
        for number, shape in enumerate(shapes):
            for suffix in (".zarr", ".h5"):
                text = refused(comm, folder / f"x{suffix}", f"shape {shape}", f"x{suffix}", name=f"{number}")
                assert ("than an array may have" if number else "on more ranks") in text, text
            text = refused(comm, folder / f"{number}.npy", f"shape {shape}")
            assert ("than an array may have" if 0 in shape else "is truncated") in text, text
        held = rote.contents(folder / "x.zarr", comm=comm).tensors
        assert [stored.shape for stored in held.values()] == list(shapes)


def check_bombs(comm: Comm, folder: Path) -> None:
    """A chunk that unpacks to far more bytes than its elements have is refused before it fills the memory."""
    bomb = bytes(1 << 22)
    gzip = zlib.compressobj(wbits=31)
    packed = {
        "zstd": numcodecs.Zstd().encode(bomb),
        "gzip": gzip.compress(bomb) + gzip.flush(),
        "zlib": zlib.compress(bomb),
        "bz2": bz2.compress(bomb),
        "blosc": numcodecs.Blosc(cname="zstd").encode(bomb),
        "lz4": numcodecs.LZ4().encode(bomb),
        "lzma": numcodecs.LZMA().encode(bomb),
        "hidden": bytes.fromhex("502a4d18 04000000 61626364") + numcodecs.Zstd().encode(bomb),  # behind a skipped frame
        "unsaid": bytes.fromhex("28b52ffd 0088") + bytes.fromhex("020010 00") * 31 + bytes.fromhex("030010 00"),
    }
    second = {"gzip": numcodecs.GZip(), "zlib": numcodecs.Zlib(), "bz2": numcodecs.BZ2(), "lz4": numcodecs.LZ4()}
    second |= {"zstd": numcodecs.Zstd(), "blosc": numcodecs.Blosc(), "lzma": numcodecs.LZMA()}
    third = {"zstd": ZstdCodec(), "gzip": GzipCodec(), "blosc": BloscCodec(), "hidden": ZstdCodec()}
    third |= {"unsaid": ZstdCodec()}

    def make(path: Path, name: str, **options: Any) -> None:
        array = zarr.create_array(path, data=np.arange(16.0), chunks=(16,), **options)
        key = path / array.metadata.encode_chunk_key((0,))
        assert key.exists()
        key.write_bytes(packed[name])

    def check(path: Path) -> None:
        tracemalloc.start()
        text = refused(comm, path, "far more than")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1 << (25 if "lzma" in path.name else 21), (path, peak, text)  # lzma has a dictionary of 8 MiB

    with emptied(comm, folder):
        for name, codec in third.items():
            alone(comm, lambda: make(folder / f"{name}3.zarr", name, compressors=(codec,)))  # noqa: B023
            check(folder / f"{name}3.zarr")
        for name, old in second.items():
            alone(comm, lambda: make(folder / f"{name}2.zarr", name, compressors=old, zarr_format=2))  # noqa: B023
            check(folder / f"{name}2.zarr")
            alone(comm, lambda: make(folder / f"{name}f.zarr", name, filters=[old], compressors=None, zarr_format=2))  # noqa: B023
            check(folder / f"{name}f.zarr")

        def swell() -> None:
            with h5py.File(folder / "x.h5", "w") as file:
                node = file.create_dataset("data", (16,), "f8", chunks=(16,), compression="gzip")
                node.id.write_direct_chunk((0,), zlib.compress(bytes(1 << 27)))

        alone(comm, swell)
        refused(comm, folder / "x.h5", "the chunk at (0,) has 130", "far more than its elements have")


def check_shards(comm: Comm, folder: Path) -> None:
    """A chunk within a shard is bounded as others are; and whole chunks of all codecs are read."""
    array = np.arange(96.0).reshape(8, 12)
    codecs = ((ZstdCodec(),), (GzipCodec(),), (BloscCodec(),), (), (GzipCodec(), ZstdCodec(checksum=True)))
    with emptied(comm, folder):
        for number, compressors in enumerate(codecs):
            for shards in (None, (4, 6)):
                path = folder / f"{number}{shards is None}.zarr"
                options: Any = {"chunks": (2, 3), "shards": shards, "compressors": compressors}
                alone(comm, lambda: zarr.create_array(path, data=array, **options))  # noqa: B023
                for layout in ("block[(0),()]", "block[(),(0)]"):
                    assert (rote.load(path, layout, comm=comm).to_global() == array).all(), (compressors, shards)
        path = folder / "bomb.zarr"

        def make() -> None:
            zarr.create_array(path, data=np.zeros(200_000), chunks=(100_000,), shards=(200_000,))[0] = 1
            facts = json.loads((path / "zarr.json").read_text())
            facts["chunk_grid"]["configuration"]["chunk_shape"] = facts["shape"] = [2]
            facts["codecs"][0]["configuration"]["chunk_shape"] = [1]
            (path / "zarr.json").write_text(json.dumps(facts))

        alone(comm, make)
        refused(comm, path, "unpacks to more than 65664 bytes")


def check_types(comm: Comm, folder: Path) -> None:
    """What a file holds and NumPy cannot is named with the reason; the rest of the file is read."""

    def make() -> None:
        with h5py.File(folder / "x.h5", "w") as file, h5py.File(folder / "alone.h5", "w") as other:
            file["u"] = np.arange(3.0)
            integer = h5py.h5t.STD_I32LE.copy()
            integer.set_precision(24)
            integer.set_size(3)
            for each in (file, other):
                h5py.h5d.create(each.id, b"i24", integer, h5py.h5s.create_simple((4,)))
                each["nothing"] = h5py.Empty("f8")
        with h5py.File(folder / "empty.h5", "w") as file:
            file["nothing"] = h5py.Empty("f8")
        h5py.File(folder / "none.h5", "w").close()
        zarr.create_group(folder / "none.zarr")

    reasons = {"i24": "has elements of a type that NumPy does not have", "nothing": "is an empty data set"}
    with emptied(comm, folder):
        alone(comm, make)
        for name, reason in reasons.items():
            for file in ("x.h5", "alone.h5"):
                text = refused(comm, folder / file, f"{name!r} {reason}", "convert it with the program", name=name)
                assert WHOLE_COPY not in text, text
        refused(comm, folder / "alone.h5", "holds no tensor; 'i24' has elements", "convert it with the program")
        refused(comm, folder / "empty.h5", "holds no tensor; 'nothing' is an empty data set")
        refused(comm, folder / "x.h5", "has no tensor 'v': it holds 'u'\nwrite one of these names", name="v")
        for file in ("none.h5", "none.zarr"):
            refused(comm, folder / file, "holds no tensor\nsave one first")
            refused(comm, folder / file, "has no tensor 'u': it holds no tensor\nsave one first", name="u")
        held = rote.contents(folder / "x.h5", comm=comm)
        assert (list(held.tensors), list(held.unread)) == (["u"], ["i24", "nothing"])
        assert rote.load(folder / "x.h5", comm=comm).to_global().tolist() == [0, 1, 2]


def check_metadata(comm: Comm, folder: Path) -> None:
    """Wrong metadata are told from damaged ones, and one array with wrong metadata leaves the others."""
    wrong: tuple[tuple[str, Any], ...] = (
        *(("fill_value", value) for value in ([1, 2], {}, "abc", None)),
        *(("data_type", value) for value in ("int24", {"name": "x"})),
        *(("shape", value) for value in ([-1], ["a"], [2.5])),
        *(("codecs", value) for value in ([], [{"name": "none"}])),
        *(("dimension_names", value) for value in (5, ["a", "b"])),
        ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": [0]}}),
        ("zarr_format", 4),
        ("node_type", "thing"),
        ("attributes", 5),
    )
    damaged = (b"", b"{", b'{"zarr_format": 3', b"\xff\xfe", b"[" * 50)
    metadata = folder / "x.zarr" / "u" / "zarr.json"

    def make() -> None:
        group = zarr.create_group(folder / "x.zarr")
        group.create_array("u", data=np.arange(4.0), chunks=(2,))
        group.create_array("v", data=np.arange(6.0), chunks=(2,))

    with emptied(comm, folder):
        alone(comm, make)
        facts = json.loads(metadata.read_text())
        for key, value in wrong:
            alone(comm, lambda: metadata.write_text(json.dumps(facts | {key: value})))  # noqa: B023
            text = refused(comm, metadata.parent, "cannot be read", "correct its metadata")
            assert WHOLE_COPY not in text, text
            held = rote.contents(folder / "x.zarr", comm=comm)
            assert [*held.tensors, *held.unread] == ["v", "u"] or key == "chunk_grid", held
            refused(comm, folder / "x.zarr", "x.zarr", "cannot be read", name="u")
            assert rote.load(folder / "x.zarr", name="v", comm=comm).shape == (6,)
        for text in damaged:
            alone(comm, lambda: metadata.write_bytes(text))  # noqa: B023
            refused(comm, metadata.parent, "cannot be read", WHOLE_COPY)


def check_odd_files(comm: Comm, folder: Path) -> None:
    """Pipes and folders in the place of files, and files in that of folders, are refused, and nobody waits."""

    def make() -> None:
        for suffix in SUFFIXES:
            os.mkfifo(folder / f"pipe{suffix}")
            (folder / f"folder{suffix}").mkdir()
            (folder / f"file{suffix}").write_text("text")
        zarr.create_array(folder / "a.zarr", data=np.ones(4), chunks=(2,))
        (folder / "a.zarr" / "c" / "0").unlink()
        (folder / "a.zarr" / "c" / "0").mkdir()
        zarr.create_array(folder / "b.zarr", data=np.ones(4), chunks=(2,))
        (folder / "b.zarr" / "c" / "0").unlink()
        os.mkfifo(folder / "b.zarr" / "c" / "0")
        os.rename(folder / "pipe.xdmf", folder / "other")
        os.mkfifo(folder / "deep.h5")

    def fails(kind: type[Exception], name: str, *parts: str) -> None:
        raised(comm, lambda: rote.load(folder / name, comm=comm), kind, *parts)
        raised(comm, lambda: rote.contents(folder / name, comm=comm), kind, *parts)

    with emptied(comm, folder):
        alone(comm, make)
        for suffix in (".npy", ".h5", ".xdmf"):
            fails(RoteError, f"pipe{suffix}", "is a pipe or a device")
            fails(IsADirectoryError, f"folder{suffix}", "folder.")
        fails(RoteError, "file.npy", "is not a .npy file")
        fails(RoteError, "file.h5", "cannot be read")
        fails(NotADirectoryError, "pipe.zarr", "pipe.zarr")
        fails(NotADirectoryError, "file.zarr", "file.zarr")
        fails(RoteError, "folder.zarr", "is no Zarr store", WHOLE_COPY)
        for name in ("a.zarr", "b.zarr"):
            refused(comm, folder / name, "c/0 is no file")


def check_paths(comm: Comm, folder: Path) -> None:
    """A path that no file can have is refused by all doors, in all formats, before anything is written."""
    x = rote.DistTensor.zeros((4, 6), "block(ceil)[(0),()]", comm)
    for bad in ("a\0b", "\ud800", "none\0/x", "\udfffx"):
        for suffix in (*SUFFIXES, ""):
            path = f"{folder}/{bad}{suffix}"
            doors: tuple[Callable[[], object], ...] = (
                lambda: rote.load(path, comm=comm),  # noqa: B023
                lambda: rote.contents(path, comm=comm),  # noqa: B023
                lambda: rote.save(path, x),  # noqa: B023
                lambda: x.save(path),  # noqa: B023
                lambda: rote.DistTensor.load(path, "[(0),()]", comm),  # noqa: B023
            )
            for door in doors:
                raised(comm, door, RoteError, repr(path), "has a letter that no path may have")
    assert os.listdir(folder) == []
    comm.barrier()


def check_names(comm: Comm, folder: Path) -> None:
    """Names of formats' own files, and those that no format holds, are no names of tensors; a foreign one is none."""
    x = rote.DistTensor.zeros((4, 6), "block(ceil)[(0),()]", comm)
    with emptied(comm, folder):
        for bad in ("zarr.json", "ZARR.json", "..", ".", "", "/u", "u/v", ".zarray", "a\0", "\ud800", "u\udc80"):
            for suffix in (".zarr", ".h5", ".xdmf"):
                for step in (None, 1):
                    call = lambda: rote.save(folder / f"x{suffix}", {bad: x}, step=step)  # noqa: B023, E731
                    raised(comm, call, RoteError, "is not the name of a tensor", "write one like")
        assert os.listdir(folder) == []
        comm.barrier()
        for suffix in (".zarr", ".h5"):
            good = ("c", "zarr", "zarr.jsn", " ", "0")
            rote.save(folder / f"x{suffix}", dict.fromkeys(good, x))
            assert {rote.load(folder / f"x{suffix}", name=name, comm=comm).shape for name in good} == {(4, 6)}
            for bad in ("..", ".", "", "../x", "zarr.json", "c/c", "c/../c", "a\0b", "\ud800", "n" * 5000):
                refused(comm, folder / f"x{suffix}", "has no tensor", "write one of these names", name=bad)


def check_attributes(comm: Comm, folder: Path) -> None:
    """What HDF5 does not hold is refused by name, and nothing is left; steps are numbers of 64 bits."""
    x = rote.DistTensor.zeros((4, 6), "block(ceil)[(0),()]", comm)
    with emptied(comm, folder):
        for value in ("a\0b", "\ud800", 10**30):
            for suffix in (".h5", ".xdmf"):
                call = lambda: rote.save(folder / f"x{suffix}", {"u": x}, {"time": value})  # noqa: B023, E731
                raised(comm, call, RoteError, "HDF5 does not hold attribute 'time'", "save .zarr")
        for step in (2**63, 10**30, 10**5000):
            for suffix in (".h5", ".zarr"):
                call = lambda: rote.save(folder / f"x{suffix}", x, step=step)  # noqa: B023, E731
                raised(comm, call, RoteError, "a step is a number from 0 on, not one of more than 64 bits")
        assert os.listdir(folder) == []


CHECKS = (check_sizes, check_bombs, check_shards, check_types, check_metadata, check_odd_files, check_paths)
CHECKS += (check_names, check_attributes)


def main() -> None:
    comm, folder, names = world(), Path(sys.argv[1]), sys.argv[2:]
    for name in names:
        globals()[name](comm, folder)
    if comm.rank == 0:
        print(f"{len(names)} checks on {comm}")


if __name__ == "__main__":
    main()
