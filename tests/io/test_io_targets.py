"""Permissions, owners and links of what is saved over."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from file_laws import SUFFIXES, plain
from io_laws import raised

import rote
from rote.runtime import Comm, run

ALL = (*SUFFIXES, ".xdmf")


def tensor(comm: Comm, value: float = 1.0) -> rote.DistTensor:
    return rote.DistTensor.from_global(np.full((4, 6), value), "block(ceil)[(0),()]", comm)


# --- permissions and owners -----------------------------------------------------------------------------------------


def modes(path: Path) -> dict[str, int]:
    """The modes of a file, or of a folder and all that is in it."""
    paths = [path, *path.rglob("*")] if path.is_dir() else [path]
    return {str(each.relative_to(path)): stat.S_IMODE(each.stat().st_mode) for each in paths}


@contextmanager
def umask(mask: int) -> Iterator[None]:
    old = os.umask(mask)
    try:
        yield
    finally:
        os.umask(old)


@pytest.mark.parametrize("suffix", ALL)
@pytest.mark.parametrize(("mode", "inner"), ((0o750, 0o640), (0o2770, 0o660), (0o700, 0o600)))
def test_permissions_are_kept(tmp_path: Path, suffix: str, mode: int, inner: int) -> None:
    """What is saved over keeps its modes and, where the user may, owner and group; a step has those of its store."""
    path = tmp_path / f"x{suffix}"
    owner = (1234, 5678) if os.geteuid() == 0 else (os.geteuid(), os.getegid())

    def saves(*steps: int) -> None:
        for step in steps:
            options: Any = {} if suffix == ".npy" else {"step": step}
            run(lambda comm: rote.save(path, tensor(comm, step), **options), 2)  # noqa: B023

    with umask(0o022):
        saves(1)
        assert set(modes(path).values()) <= {0o644, 0o755}
        for each in [path, *path.rglob("*")]:
            os.chown(each, *owner)
            each.chmod(mode if each.is_dir() else inner)
        saves(1, 2)
        if suffix == ".zarr":
            assert (path / "2").is_dir()
        for name, found in modes(path).items():
            assert found == (mode if (path / name).is_dir() else inner), (name, oct(found))
            status = (path / name).stat()
            assert (status.st_uid, status.st_gid) == owner, name
        if suffix != ".npy":
            run(lambda comm: tensor(comm).save(path), 2)  # the whole
        assert {stat.S_IMODE(path.stat().st_mode)} == {mode if path.is_dir() else inner}


def test_drafts_are_private(tmp_path: Path) -> None:
    """As long as a private file is written, nobody else may read it."""
    path, seen = tmp_path / "x.h5", list[int]()
    run(lambda comm: tensor(comm).save(path), 2)
    path.chmod(0o600)

    def look(part: float) -> None:
        seen.extend(stat.S_IMODE(draft.stat().st_mode) for draft in tmp_path.glob(".rote-*.part"))

    run(lambda comm: rote.save(path, tensor(comm), progress=look), 2)
    assert seen and set(seen) == {0o600}


# --- links ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ALL)
def test_links(tmp_path: Path, suffix: str) -> None:
    """Links to files are followed, as NumPy follows them, also where they lead to nothing; circles of links are
    errors, and stay."""
    home, circle = tmp_path / "home", tmp_path / f"circle{suffix}"
    home.mkdir()
    link, far = tmp_path / f"link{suffix}", tmp_path / f"far{suffix}"
    link.symlink_to(home / f"x{suffix}")
    far.symlink_to(link.name)
    circle.symlink_to(f"round{suffix}")
    (tmp_path / f"round{suffix}").symlink_to(circle.name)
    (tmp_path / f"self{suffix}").symlink_to(f"self{suffix}")
    (tmp_path / f"lost{suffix}").symlink_to(tmp_path / "none" / f"x{suffix}")

    def program(comm: Comm) -> None:
        for value, path in ((1.0, link), (2.0, far), (3.0, link)):
            if suffix != ".xdmf":  # whose data are in the file of the name that is given
                tensor(comm, value).save(path)
                comm.barrier()
                assert link.is_symlink() and far.is_symlink() and (plain(home / f"x{suffix}") == value).all()
                assert rote.load(far, comm=comm).to_global()[0, 0] == value
                comm.barrier()
        for name in (circle.name, f"self{suffix}", f"self{suffix}/x{suffix}"):
            for call in (lambda: tensor(comm).save(tmp_path / name), lambda: rote.load(tmp_path / name, comm=comm)):  # noqa: B023
                if suffix != ".xdmf":
                    raised(comm, call, OSError, "Too many levels of symbolic links", name)
        raised(comm, lambda: tensor(comm).save(tmp_path / f"lost{suffix}"), FileNotFoundError, f"lost{suffix}")

    names = sorted(os.listdir(tmp_path))
    run(program, 2)
    left = [name for name in names if (tmp_path / name).is_symlink()]
    assert left == [name for name in names if name != "home"]


def test_a_picture_that_is_a_circle_of_links(tmp_path: Path) -> None:
    """Of a picture, the description and the data are checked as any other file."""
    (tmp_path / "x.xdmf").symlink_to("x.xdmf")
    (tmp_path / "y.h5").symlink_to("y.h5")

    def program(comm: Comm) -> None:
        for name in ("x", "y"):
            call: Any = lambda: tensor(comm).save(tmp_path / f"{name}.xdmf")  # noqa: B023, E731
            raised(comm, call, OSError, "Too many levels of symbolic links", name)

    run(program, 2)
    assert (tmp_path / "x.xdmf").is_symlink() and (tmp_path / "y.h5").is_symlink()
