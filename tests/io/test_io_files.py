"""`rote.save` and `rote.load` on in-process ranks: the laws of all formats, restarts, chunks, moves, and failures."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr
from file_laws import CHECKS, STATE, SUFFIXES, plain, read_state, write_state
from io_cases import cases, numbered
from io_laws import raised, same

import rote
from rote.errors import CommError, LayoutError, RoteError
from rote.io import hdf5, layouts, transfer
from rote.io import zarr as zarr_files
from rote.runtime import Comm, run
from rote.runtime.comm import threads
from rote.runtime.regions import cut

ALL = (*SUFFIXES, ".xdmf")
SLOW = pytest.mark.slow


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    ("ranks", "count"), [(3, 9), *(pytest.param(ranks, 60 if ranks == 6 else 9, marks=SLOW) for ranks in (1, 2, 4, 6))]
)
def test_laws(tmp_path: Path, ranks: int, count: int, check: Callable[[Comm, Path, int], None]) -> None:
    """In-process ranks save and load as the laws say."""
    run(check, ranks, (tmp_path, count))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_restart_on_other_ranks(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What 2 or 4 ranks wrote in one layout, 3 ranks read in another; blocks larger than a chunk, and than a shard."""
    monkeypatch.setattr(layouts, "CHUNK", 800)
    monkeypatch.setattr(layouts, "SHARD", 1600)
    path = tmp_path / f"state{suffix}"
    for ranks, layout in ((2, "[(0),(),()]"), (4, "(a b) c: block[(0),()]"), (4, "block[(),(0),()]|(1@1)")):
        run(write_state, ranks, (path, layout))
        np.testing.assert_array_equal(plain(path), STATE)
        run(read_state, 3, (path,))


def test_each_rank_has_whole_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a chunk grid no chunk, and no file, is of two ranks but of replicas; and a shard is made of whole chunks."""
    monkeypatch.setattr(layouts, "CHUNK", 16)
    monkeypatch.setattr(layouts, "SHARD", 64)
    for ranks in (1, 2, 3, 4, 6, 8):
        for case in cases(ranks, 40, seed=4):
            grid = layouts.in_chunks(case.dist, 8)
            assert grid.dist.layout.view is None and (grid.dist.shape, grid.dist.grid) == (
                case.dist.shape,
                case.dist.grid,
            )
            assert all(s % c == 0 for s, c in zip(grid.shards, grid.chunks, strict=True)), str(case)
            assert prod(grid.chunks) * 8 <= 16 and prod(grid.shards) * 8 <= 64, str(case)
            for rank in range(ranks):
                for held, s, n in zip(grid.dist.index_sets(rank), grid.shards, grid.dist.shape, strict=False):
                    assert not held or held.runs == ((0, 1),), str(case)
                    assert not held or (held.start % s == 0 and (held.stop % s == 0 or held.stop == n)), str(case)


def test_moves_are_said(tmp_path: Path) -> None:
    """Blocks of one size go to every format as they lie, others to Zarr by a move that may be refused."""

    def program(comm: Comm) -> list[list[str]]:
        causes = []
        for layout, name in (("block[(0),()]", "a.zarr"), ("block(ceil)[(0),()]", "b.zarr"), ("[(),(0)]", "a.h5")):
            with rote.config(implicit="error"), rote.trace() as moves:
                extents = (8, 10) if name == "a.zarr" else (10, 10)
                rote.save(tmp_path / name, rote.DistTensor.zeros(extents, layout, comm))
                rote.load(tmp_path / name, "block[(),(0)]", comm=comm)
            causes.append([move.cause for move in moves])
        with rote.config(implicit="error"), rote.trace() as moves:  # the layout of load is asked for, whatever moves
            for layout in ("[(0),()]", "[(),(0)]", "(a b): [(0)]"):
                rote.load(tmp_path / "a.zarr", layout, comm=comm)
        causes.append([f"{move.cause} {move.implicit}" for move in moves])
        x = rote.DistTensor.zeros((10, 6), "block[(0),()]", comm)
        with rote.config(implicit="error"):
            raised(comm, lambda: rote.save(tmp_path / "c.zarr", x), LayoutError, "rote.save moves", "implicit='allow'")
        with rote.config(implicit="allow"), rote.trace() as moves:
            rote.save(tmp_path / "c.zarr", x)
        return [*causes, [move.cause for move in moves if move.implicit]]

    assert run(program, 4)[0] == [[], [], [], ["rote.load False"] * 3, ["rote.save"]]
    assert sorted(os.listdir(tmp_path)) == ["a.h5", "a.zarr", "b.zarr", "c.zarr"]


def test_files_have_checksums_and_no_more_than_they_need(tmp_path: Path) -> None:
    """Every chunk carries one, and what was reserved of a disk is given back."""
    x = rote.DistTensor.from_global(np.random.default_rng(0).random((40, 50, 30)), "block[(0),(),()]")
    x.save(tmp_path / "x.h5")
    x.save(tmp_path / "x.zarr")
    with h5py.File(tmp_path / "x.h5") as file:
        assert file["data"].fletcher32
    assert [codec.to_dict()["name"] for codec in zarr.open_array(tmp_path / "x.zarr").metadata.codecs][-1] == "crc32c"
    assert x.local.nbytes < os.path.getsize(tmp_path / "x.h5") < x.local.nbytes + 20_000


def test_slabs_are_all_of_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that is read and written in many slabs, with a bar on a terminal, is the one that goes in one.

    Of the bar rank 0 alone tells, and nobody where there is no terminal.
    """

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    array = numbered((23, 4, 3), np.dtype("f8"))
    for module in (transfer, zarr_files):
        monkeypatch.setattr(module, "SLAB", 200)
    monkeypatch.setattr(transfer, "LONG", 0)

    def program(comm: Comm) -> None:
        for suffix in SUFFIXES:
            rote.DistTensor.from_global(array, "block(ceil)[(0),(),()]", comm).save(tmp_path / f"x{suffix}")
            x = rote.load(tmp_path / f"x{suffix}", "block[(),(0),()]", comm=comm)
            same(x.local, cut(array, x.distribution, comm.rank), suffix)

    for terminal in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", screen := Terminal())
            patch.setenv("COLUMNS", "200")
            run(program, 2)
        for suffix in SUFFIXES:
            assert [f"{verb} x{suffix}" in screen.getvalue() for verb in ("writing", "reading")] == [terminal] * 2
    assert screen.getvalue() == ""


# --- failures -------------------------------------------------------------------------------------------------------


def keep(folder: Path) -> dict[str, bytes]:
    """All files of a folder, at any depth, with their bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def fails(folder: Path, kind: type[Exception], *parts: str, suffixes: tuple[str, ...] = ALL) -> None:
    """On three ranks saving raises one error on all, and leaves all files as they were."""
    for suffix in suffixes:
        path = folder / f"old{suffix}"

        def program(comm: Comm, path: Path = path) -> None:
            x = rote.DistTensor.from_global(np.ones((6, 5, 4)), "block[(0),(),()]", comm)
            raised(comm, lambda: rote.save(path, x), kind, *parts)

        before = keep(folder)
        run(program, 3)
        assert keep(folder) == before, suffix
        assert not [name for name in os.listdir(folder) if name.startswith(".")], suffix


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an old file of every format."""
    x = rote.DistTensor.from_global(np.arange(120.0).reshape(6, 5, 4), "block[(0),(),()]")
    for suffix in ALL:
        x.save(tmp_path / f"old{suffix}")
    return tmp_path


@pytest.mark.parametrize("call", ("fsync", "open", "mkdir", "posix_fallocate"))
def test_the_disk_is_full(folder: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """A file that cannot be made, has no room or does not reach the disk: the user's name, the system's words."""
    real = getattr(os, call)

    def full(path: Any, *args: Any, **options: Any) -> Any:
        if call != "open" or args[0] & os.O_CREAT:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return real(path, *args, **options)

    monkeypatch.setattr(os, call, full)
    concerned = {"fsync": SUFFIXES, "mkdir": (".zarr",)}.get(call, (".npy", ".h5"))
    fails(folder, OSError, "No space left on device", "old", suffixes=concerned)


def test_the_folder_is_not_there(folder: Path) -> None:
    """No folder, a file in its place, a folder in the place of a file, and a folder that is no store."""
    (folder / "mine.zarr").mkdir()
    (folder / "mine.zarr" / "thesis.txt").write_text("years")
    (folder / "wrong.h5").mkdir()

    def program(comm: Comm) -> None:
        x = rote.DistTensor.zeros((4, 3), "block(ceil)[(0),()]", comm)
        for suffix in ALL:
            raised(comm, lambda: x.save(folder / "none" / f"x{suffix}"), FileNotFoundError, "none")  # noqa: B023
            raised(comm, lambda: x.save(folder / "old.npy" / f"x{suffix}"), NotADirectoryError, "x.")  # noqa: B023
            missing = folder / f"missing{suffix}"
            raised(comm, lambda: rote.load(missing, "[(0),()]", comm=comm), FileNotFoundError, "missing")  # noqa: B023
        raised(comm, lambda: x.save(folder / "mine.zarr"), RoteError, "no Zarr store", "move it away")
        raised(comm, lambda: x.save(folder / "wrong.h5"), IsADirectoryError, "wrong.h5")
        raised(comm, lambda: rote.load(folder / "wrong.h5", comm=comm), OSError, "wrong.h5")
        raised(comm, lambda: rote.save(folder / "old.zarr", x, step=1), RoteError, "is one array, which has no steps")

    before = keep(folder)
    run(program, 2)
    assert keep(folder) == before


def test_files_cut_short(folder: Path) -> None:
    """A file that lost its end, a chunk with a wrong byte, and a chunk that is gone: never wrong numbers."""
    chunk = folder / "old.zarr" / "c" / "0" / "0" / "0"
    whole = {path: path.read_bytes() for path in (folder / "old.h5", folder / "old.npy", chunk)}

    def refuses(path: Path, *parts: str) -> None:
        def program(comm: Comm) -> None:
            raised(comm, lambda: rote.load(path, "[(0),(),()]", comm=comm), RoteError, str(path), *parts)

        with rote.config(implicit="allow"):
            run(program, 3)
        for each, content in whole.items():
            each.write_bytes(content)

    for path, content in whole.items():
        for size in (0, 7, len(content) // 2, len(content) - 1):
            path.write_bytes(content[:size])
            refuses(folder / "old.zarr" if path == chunk else path)
    for path in (folder / "old.h5", chunk):
        content = bytearray(whole[path])
        spot = content.index(np.arange(60.0, 64).tobytes()) if path.suffix == ".h5" else len(content) // 2
        content[spot] ^= 1
        path.write_bytes(bytes(content))
        refuses(folder / "old.zarr" if path == chunk else path, "cannot be read")
    chunk.unlink()
    refuses(folder / "old.zarr", "is lost")
    (folder / "old.h5").write_text("no such thing")
    refuses(folder / "old.h5", "cannot be read")
    metadata = folder / "old.zarr" / "zarr.json"
    metadata.write_text("{")
    refuses(folder / "old.zarr", "cannot be read")


def test_a_changed_bit(folder: Path) -> None:
    """A bit of an element raises in Zarr and in HDF5, whatever bit it is; in `.npy` it is read as NumPy reads it."""
    draw = np.random.default_rng(0)
    with h5py.File(folder / "old.h5") as file:
        chunk = file["data"].id.get_chunk_info(0)
    zarr_chunk = folder / "old.zarr" / "c" / "0" / "0" / "0"
    places = {folder / "old.h5": (chunk.byte_offset, chunk.size), zarr_chunk: (0, zarr_chunk.stat().st_size)}
    for path, (offset, size) in places.items():
        whole = path.read_bytes()
        for place, bit in zip(draw.integers(0, size, 30).tolist(), draw.integers(0, 8, 30).tolist(), strict=True):
            content = bytearray(whole)
            content[offset + place] ^= 1 << bit
            path.write_bytes(content)
            with pytest.raises(RoteError, match="cannot be read"):
                rote.load(folder / f"old{path.suffix or '.zarr'}")
        path.write_bytes(whole)
    content = bytearray((folder / "old.npy").read_bytes())
    content[-3] ^= 1
    (folder / "old.npy").write_bytes(content)
    changed = np.load(folder / "old.npy")
    assert (rote.load(folder / "old.npy").to_global() == changed).all() and changed[-1, -1, -1] != 119.0


def test_links_of_nexus(tmp_path: Path) -> None:
    """A detector's data have one name and other ways to it; the only tensor of a file is loaded without a name."""
    array = np.arange(24.0).reshape(4, 6)
    with h5py.File(tmp_path / "run.h5", "w") as file:
        file["entry/instrument/detector/data"] = array
        file["entry/data/data"] = file["entry/instrument/detector/data"]
        file["entry/sample"] = h5py.SoftLink("/entry/instrument/detector/data")
        file["gone"], file["circle"] = h5py.SoftLink("/none"), h5py.SoftLink("circle")
        file["lost"], file["again"] = h5py.ExternalLink("none.h5", "/data"), h5py.ExternalLink("run.h5", "/entry")
    with h5py.File(tmp_path / "master.h5", "w") as file:
        file["here"] = h5py.ExternalLink("run.h5", "/entry/data/data")

    def program(comm: Comm) -> None:
        held = rote.contents(tmp_path / "run.h5", comm=comm)
        names = ["entry/data/data", "entry/instrument/detector/data", "entry/sample"]
        assert list(held.tensors) == names and {stored.shape for stored in held.tensors.values()} == {(4, 6)}
        (first,) = set(names) - set(held.links)
        other = next(name for name in names[:2] if name != first)
        soft = {"entry/sample": "/entry/instrument/detector/data", "gone": "/none", "circle": "circle"}
        assert held.links == {other: first, **soft, "lost": "none.h5:/data", "again": "run.h5:/entry"}
        for path, name in [("run.h5", None), ("master.h5", None), *(("run.h5", name) for name in names)]:
            x = rote.load(tmp_path / path, "[(),(0)]", name, comm=comm)
            same(x.local, cut(array, x.distribution, comm.rank), (path, name))
        same(rote.load(tmp_path / "run.h5", "[(),()]", "again/data/data", comm=comm).local, array, "again")
        for name in ("gone", "circle", "lost", "lost/data"):
            text = f"has no tensor '{name}': '{name.partition('/')[0]}' is a link to"
            raised(comm, lambda: rote.load(tmp_path / "run.h5", None, name, comm=comm), RoteError, text)  # noqa: B023

    run(program, 2)


def test_one_strange_thing_leaves_the_others(tmp_path: Path) -> None:
    """Types that h5py does not know, labels of a wrong type, many ways to few groups, loops of folders in a store."""
    scalar, time = h5py.h5s.create(h5py.h5s.SCALAR), h5py.h5t.UNIX_D32LE
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["u"] = np.arange(3.0)
        file["u"].attrs["DIMENSION_LABELS"], file["type"] = np.array([b"t"]), np.dtype("f8")
        file.attrs["a"] = 1
        h5py.h5d.create(file.id, b"when", time, scalar)
        h5py.h5a.create(file.id, b"when", time, scalar)
        group = file
        for depth in range(40):
            inner = group.create_group(f"{depth}")
            group["other"], group["up"] = inner, h5py.SoftLink("..")
            group = inner
    held = rote.contents(tmp_path / "a.h5")
    assert (list(held.tensors), held.tensors["u"].dims, held.attributes) == (["u"], ("t",), {"a": 1})
    assert rote.load(tmp_path / "a.h5").to_global().tolist() == [0, 1, 2]
    with pytest.raises(RoteError, match="No NumPy equivalent"):
        rote.load(tmp_path / "a.h5", name="when")
    store = zarr.create_group(tmp_path / "a.zarr")
    store.create_array("in/u", data=np.arange(3.0))
    (tmp_path / "a.zarr" / "in" / "up").symlink_to(tmp_path / "a.zarr", target_is_directory=True)
    (tmp_path / "a.zarr" / ".rote-0.part").symlink_to(tmp_path / "a.zarr" / "in", target_is_directory=True)
    assert list(rote.contents(tmp_path / "a.zarr").tensors) == ["in/u"]
    assert rote.load(tmp_path / "a.zarr", name="in/up/in/u").to_global().tolist() == [0, 1, 2]


def test_steps_of_stores(tmp_path: Path) -> None:
    """A step replaces one of its number, and lost chunks are lost; a step without its metadata is an error, not the
    step before it."""
    path = tmp_path / "steps.zarr"
    x = rote.DistTensor.from_global(np.arange(24.0).reshape(4, 6), "block[(0),()]")
    for step in (0, 5):
        rote.save(path, {"u": x + step}, {"time": step}, step)
    held = rote.contents(path)
    assert (held.steps, held.step, held.attributes) == ((0, 5), 5, {"time": 5})
    assert rote.load(path).to_global()[0, 0] == 5
    rote.save(path, {"u": x}, step=5)
    assert rote.load(path).to_global()[0, 0] == 0
    (path / "0" / "u" / "c" / "0" / "0").unlink()
    with pytest.raises(RoteError, match="is lost"):
        rote.load(path, step=0)
    (path / "5" / "zarr.json").unlink()
    with pytest.raises(RoteError, match="5 is no Zarr store"):
        rote.load(path)


@pytest.mark.parametrize("suffix", [".zarr", ".h5", ".nc", ".xdmf"])
def test_a_step_that_is_replaced_before_later_ones(tmp_path: Path, suffix: str) -> None:
    """A new run that begins again at step 0 in an old file is told once that the old later steps stay; a new step, the
    last step and a new file are silent."""
    path = tmp_path / f"run{suffix}"

    def program(comm: Comm, steps: tuple[int, ...]) -> None:
        for step in steps:
            rote.save(path, {"u": rote.DistTensor.zeros((4, 6), "block[(0),()]", comm)}, step=step)

    rote.run(program, 2, ((0, 20, 10),))
    rote.run(program, 2, ((20, 30, 30, 5),))
    with pytest.warns(UserWarning, match=r"step 0 is replaced, and 4 later .* up to 30, .*\n.*remove") as told:
        rote.run(program, 2, ((0, 5, 10),))
    assert (len(told), told[0].filename) == (1, __file__)
    assert rote.contents(path).steps == (0, 5, 10, 20, 30)


def test_pictures_show_steps_alone(tmp_path: Path) -> None:
    """What another program adds to the HDF5 file of a picture, also under a number, is no step of the series."""
    x = rote.DistTensor.zeros((4, 5), "block[(0),()]")
    rote.save(tmp_path / "flow.xdmf", {"u": x}, step=1)
    with h5py.File(tmp_path / "flow.h5", "r+") as file:
        file["7/u"], file["last"] = np.zeros(3), h5py.SoftLink("/1")
    rote.save(tmp_path / "flow.xdmf", {"u": x}, step=2)
    text = (tmp_path / "flow.xdmf").read_text("utf-8")
    assert [text.count(f"flow.h5:/{step}/u") for step in (1, 2, 7)] == [1, 1, 0]
    assert rote.contents(tmp_path / "flow.h5").links == {"last": "/1"}


def test_pictures_of_other_steps_are_checked_first(tmp_path: Path) -> None:
    """Law: where another step is no field on one grid, a step is refused before either file changes."""
    x = rote.DistTensor.zeros((4, 5), "block[(0),()]")
    rote.save(tmp_path / "flow.h5", {"u": rote.DistTensor.zeros(3, "[(0)]")}, step=1)
    before = (tmp_path / "flow.h5").read_bytes()
    with pytest.raises(RoteError, match=r"shapes are \(3,\)"):
        rote.save(tmp_path / "flow.xdmf", {"u": x}, step=2)
    assert (tmp_path / "flow.h5").read_bytes() == before and not (tmp_path / "flow.xdmf").exists()

    rote.save(tmp_path / "flow.xdmf", {"u": x}, step=1)
    with h5py.File(tmp_path / "flow.h5", "r+") as file:
        del file["1/u"]
    with pytest.raises(RoteError, match="shapes are none"):
        rote.save(tmp_path / "flow.xdmf", {"u": x}, step=2)


def test_elements_that_are_not_carried(tmp_path: Path) -> None:
    """Texts, records, half floats and objects are refused, in files and in tensors."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["words"] = ["a", "b"]
        file["half"] = np.zeros(2, "f2")
        file["records"] = np.zeros(2, [("x", "f8"), ("y", "i4")])
        file["nothing"] = h5py.Empty("f8")
        file["groups/u"] = np.arange(3.0)
        file.attrs["reference"] = file["half"].ref
    zarr.create_group(tmp_path / "a.zarr").create_array("half", data=np.zeros(2, "f2"))

    def program(comm: Comm) -> None:
        for suffix, name in ((".h5", "words"), (".h5", "half"), (".h5", "records"), (".zarr", "half")):
            path = tmp_path / f"a{suffix}"
            raised(comm, lambda: rote.load(path, "[(0)]", name, comm=comm), RoteError, "elements of dtype", "convert")  # noqa: B023
        assert rote.load(tmp_path / "a.h5", "[(0)]", "groups/u", comm=comm).to_global().tolist() == [0, 1, 2]
        held = rote.contents(tmp_path / "a.h5", comm=comm)
        assert (set(held.tensors), held.attributes) == ({"words", "half", "records", "groups/u"}, {})
        dist = rote.parse("[(0)]").on(4, comm.size)
        objects = rote.DistTensor(np.full(dist.local_shape(comm.rank), None, object), dist, comm)
        for suffix in ALL:
            raised(comm, lambda: objects.save(tmp_path / f"x{suffix}"), RoteError, "dtype object")  # noqa: B023

    run(program, 2)
    assert sorted(os.listdir(tmp_path)) == ["a.h5", "a.zarr"]


def test_what_formats_do_not_hold(tmp_path: Path) -> None:
    """Names, attributes, steps and shapes that a format has not, and what is no tensor, name, step or attribute."""

    def program(comm: Comm) -> None:
        x = rote.DistTensor.zeros((4, 4), "block[(0),()]", comm)

        def refused(name: str, value: Any, kind: type[Exception], *parts: str, **options: Any) -> None:
            raised(comm, lambda: rote.save(tmp_path / name, value, **options), kind, *parts)

        for options in ({"step": 1}, {"attributes": {"time": 1}}):
            refused("x.npy", x, RoteError, "holds one tensor", "x.zarr or .h5", **options)
        refused("x.npy", {"u": x}, RoteError, "holds one tensor")
        refused("x.nxs", x, RoteError, "x.nxs is not the name", ".zarr", ".h5")
        refused("x.h5", {}, TypeError, "tensors by name")
        refused("x.h5", np.zeros(3), TypeError, "from_global")
        for name in ("", "a/b", ".a", "_a", 'a"b', 5):
            refused("x.h5", {name: x}, RoteError, "is not the name of a tensor")
        for step in (-1, 1.5, True, "1"):
            refused("x.h5", x, RoteError, "a step is a number from 0 on", step=step)
        for value in (None, {}, [1, "a"], 1j, [[1]], object):
            refused("x.zarr", x, RoteError, "attribute 'a'", attributes={"a": value})
        for value in (x.sum(layout="[]+(0)"), [x], x[0]):
            refused("x.h5", x, RoteError, "float(x) of a tensor of order 0", attributes={"energy": value})
        refused("x.xdmf", x * 1j, RoteError, "x.real and x.imag")
        refused("x.xdmf", x > 0, RoteError, "astype('u1')")
        refused("x.xdmf", {"u": x, "v": rote.DistTensor.zeros(3, "[(0)]", comm)}, RoteError, "one grid", "(3,)")
        refused("x.h5", rote.DistTensor.zeros(3, "[()]+(0)", comm), LayoutError, "is partial", "redistribute to")
        mine = f"x{comm.rank}.h5"
        refused(mine, x, CommError, "of paths rank 0", "rank 1")
        refused("x.h5", x, CommError, "of attributes", attributes={"energy": comm.rank})
        refused("x.h5", x, CommError, "of steps", step=comm.rank)
        raised(comm, lambda: rote.load(tmp_path / mine, "[(0)]", comm=comm), CommError, "of paths")

    run(program, 2)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("suffix", "library"), ((".h5", "h5py"), (".zarr", "zarr")))
def test_a_library_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, library: str) -> None:
    """Without its library a format is refused with the command that installs it."""
    monkeypatch.setitem(sys.modules, library, None)
    x = rote.DistTensor.zeros(3, "[(0)]")
    (tmp_path / f"x{suffix}").touch()
    for call in (lambda: x.save(tmp_path / f"y{suffix}"), lambda: rote.load(tmp_path / f"x{suffix}")):
        with pytest.raises(RoteError, match=f"need {library}\npip install {library}"):
            call()


def test_h5py_with_mpi_writes_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where h5py was built with MPI, all ranks open the file together by its driver, and nobody waits for a turn."""
    opened: list[tuple[Any, ...]] = []
    real = h5py.File

    def driven(path: Any, mode: str = "r", **options: Any) -> Any:
        opened.append((mode, *options.items()))
        return real(path, mode)

    monkeypatch.setattr(hdf5, "parallel", lambda: True)
    monkeypatch.setattr(hdf5, "MpiHandle", threads.LocalComm)
    monkeypatch.setattr(threads.LocalComm, "handle", "MPI_COMM", raising=False)
    monkeypatch.setattr(h5py, "File", driven)
    run(lambda comm: rote.DistTensor.from_global(np.arange(6.0), "[(0)]", comm).save(tmp_path / "x.h5"), 1)
    assert opened == [("w", ("track_order", True)), ("r+", ("driver", "mpio"), ("comm", "MPI_COMM"))]
    assert plain(tmp_path / "x.h5").tolist() == [0, 1, 2, 3, 4, 5]


LIMITED = """
    import os, resource, sys
    import numpy as np
    import rote
    os.chdir(sys.argv[1])
    suffixes = (".npy", ".h5", ".zarr")
    def program(comm, suffix, fails):
        x = rote.DistTensor.from_global(np.random.default_rng(0).random((60, 30, 20)), "block[(0),(),()]", comm)
        try:
            rote.save("old" + suffix, x)
        except Exception as error:
            assert fails and "File too large: 'old" in str(error), error
        else:
            assert not fails, suffix
    for suffix in suffixes:
        rote.run(program, 3, (suffix, False))
    before = sorted(os.listdir()), [os.stat("old" + suffix).st_mtime_ns for suffix in suffixes]
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, resource.RLIM_INFINITY))
    for suffix in suffixes:
        rote.run(program, 3, (suffix, True))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert before == (sorted(os.listdir()), [os.stat("old" + suffix).st_mtime_ns for suffix in suffixes])
    for suffix in suffixes:
        rote.run(program, 3, (suffix, False))
    print("all failed alike")
"""


def test_a_true_limit(tmp_path: Path) -> None:
    """A system that takes no more bytes of a file: an error on all ranks, the old file, and a process that goes on."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LIMITED), tmp_path], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "all failed alike\n", "")
