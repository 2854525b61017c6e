"""The Hartley transform: the proof that a kind is a row of a table; and that table."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import get_args

import hartley
import numpy as np
import pytest
from marks import make_checks, mpi_parts, parts_of

import rote
from rote import DistTensor
from rote.fft import dht
from rote.fft.kernels import kernel as kernels
from rote.fft.kernels import passes
from rote.fft.kernels.backends import NAMES, library, transforms
from rote.fft.kernels.backends.library import KernelConfig
from rote.fft.kernels.kernel import Kernel, plain
from rote.fft.kernels.passes import composed
from rote.fft.transforms import KINDS, REAL_TO_REAL, Kind, complex_dtype, real_dtype
from rote.grammar import TRANSFORMS
from rote.runtime.comm.segments import at_line

pytestmark = pytest.mark.filterwarnings("ignore::rote.GatherWarning")  # transforms of one axis

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("hartley.py")


@pytest.mark.parametrize(("ranks", "check", "args"), parts_of(hartley.CHECKS, 1, 2, 3, 4))
def test_on_ranks_of_this_process(ranks, check, args):
    """Hartley transforms on in-process ranks do what they must."""
    rote.run(check, ranks, args)


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "part"), mpi_parts(), indirect=["job"])
def test_on_mpi_ranks(job, part):
    """Hartley transforms on MPI ranks do too."""
    make_checks(job, PROGRAM, hartley.CHECKS, part)


def test_a_wrong_sign_is_found():
    """The comparison can fail: the other sign of the imaginary part is another transform."""

    def program(comm):
        x = DistTensor.from_global(hartley.values((6, 5), "d"), "block[(0),()]", comm)
        spectrum = np.fft.fft(hartley.values((6, 5), "d"), axis=1)
        hartley.same(dht(x, axes=1), spectrum.real + spectrum.imag)

    with pytest.raises(AssertionError, match="DistTensor"):
        rote.run(program, 2)


@pytest.mark.parametrize("name", [name for name in NAMES if library(name).version()])
def test_every_library_does_it(name, monkeypatch):
    """Law: with a function of its own or without, in tiles of any size, along any axes, in place or not: one result."""
    monkeypatch.setattr(kernels, "CACHED", 700)
    for code in "dfDF":
        assert transforms(name, "dht", real_dtype(code))
        for shape in ((5,), (1, 6), (3, 8, 4)):
            block = hartley.values(shape, code)
            for count in range(1, len(shape) + 1):
                for axes in combinations(range(len(shape)), count):
                    kernel = Kernel("dht", axes, shape, shape, block.dtype, KernelConfig(library=name))
                    scratch = at_line(block.nbytes), at_line(block.nbytes)
                    run, want = passes.BoundKernel(kernel, scratch), hartley.hartley(block, axes, None)
                    source, target = plain(block.copy()), plain(np.empty_like(block))
                    run(source, target)
                    assert np.array_equal(source, block)
                    run(source, source)
                    for result in (source, target):
                        assert np.abs(result - want).max() <= 40 * np.finfo(real_dtype(code)).eps * np.abs(want).max()


def test_who_has_no_function_goes_by_parts():
    """ducc0 and the system's FFTW have functions of their own; others go by the parts of a Fourier transform."""
    kernel = Kernel("dht", (0,), (8,), (8,), np.dtype("d"))
    by_parts = {
        name: composed(replace(kernel, config=KernelConfig(library=name))) for name in NAMES if library(name).version()
    }
    assert not by_parts.pop("ducc0", False) and not by_parts.pop("fftw3", False)
    assert all(by_parts.values())
    assert not any(library(name).does("dct2", np.dtype("d")) for name in ("numpy", "mkl"))


def test_a_kind_is_at_most_four_files():
    """Law: adding is local. The product files that name the Hartley transform are its row, its name, and its door.

    The names of another library, in `rote/compat`, are no part of it.
    """
    files = [path for room in ("grammar", "fft", "rote") for path in (ROOT / room).rglob("*") if path.is_file()]
    files = [path for path in files if "compat" not in path.parts]
    naming = [
        str(path.relative_to(ROOT))
        for path in files
        if path.suffix in (".py", ".lark") and re.search("dht|hartley", path.read_text("utf-8"), re.IGNORECASE)
    ]
    assert sorted(naming) == ["fft/__init__.py", "fft/functions/fourier.py", "fft/transforms.py", "grammar/nodes.py"]


def test_kinds_are_told_by_the_table_alone():
    """No file of fft/ but the table looks into the letters of a kind's name."""
    letters = re.compile(
        r"""kind\w*\.(startswith|endswith|replace|rstrip|removeprefix)|["']r["'] in kind|\bkind\[[-:\d]+\]"""
    )
    files = [path for path in (ROOT / "fft").rglob("*.py") if letters.search(path.read_text("utf-8"))]
    assert not files
    for text in ('kind.replace("rfft", "fft")', "kinds.startswith('i')", '"r" in kind', "kind[:3]", "kind[-1]"):
        assert letters.search(text), text


def test_the_table_is_whole():
    """Law: a row per name that walks can say; inverses are mutual; what is real on both sides is alike on all axes."""
    assert tuple(KINDS) == TRANSFORMS == get_args(Kind)
    for name, row in KINDS.items():
        back = KINDS[row.inverse]
        assert (row.name, back.inverse) == (name, name)
        assert [row.taken(n) for n in (7, 8)] == [back.given(n) for n in (7, 8)]
        assert row.logical_size(9) == back.logical_size(9)
        assert row.ortho == back.ortho[::-1]
        assert (row.others == name) == (name in KINDS[row.others].others) == (row.real in ("neither", "both"))
        assert complex_dtype("d") == np.dtype("D")
    assert {name for name in KINDS if KINDS[name].real == "both"} == {*REAL_TO_REAL}
