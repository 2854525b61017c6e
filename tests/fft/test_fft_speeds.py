"""Speeds of lines and planes: timed once for a machine, the same on all ranks, and what they say is what is taken."""

from __future__ import annotations

import json
from itertools import product
from math import inf

import numpy as np
import pytest

import rote
from rote import wisdom
from rote.fft.kernels import speeds
from rote.fft.kernels.backends import versions
from rote.fft.kernels.config import KernelConfig
from rote.fft.kernels.kernel import Kernel, in_lines
from rote.fft.kernels.speeds import AxisLines, Planes, fastest, known_speeds, lines_of, planes_of
from rote.fft.transforms import KINDS
from rote.runtime.comm.threads import alone

USUAL = KernelConfig("mkl")
FFT = AxisLines("fft", 64, "<c16")


def kernel(kind="fft", axes=(0, 1), shape=(64, 64), dtype="c16", points=64):
    """A kernel whose last axis has some points on its real side."""
    row = KINDS[kind]
    before, after = ((*shape[:-1], row.taken(points)), (*shape[:-1], row.given(points)))
    return Kernel(kind, axes, before, after, np.dtype(dtype))


@pytest.fixture
def timed(monkeypatch, tmp_path):
    """Lines that were timed, in a new folder of wisdom; FFTW is the fastest in rows, ducc0 in columns."""
    lines = []

    def time(each, names, comm):
        lines.append(each)
        times = {"pyfftw": (1.2, 3.0, 2.0), "ducc0": (1.5, 1.0, 1.0), "mkl": (2.0, 2.0, 2.0)}
        return {name: times[name] for name in names}

    monkeypatch.setenv("ROTE_WISDOM", str(tmp_path))
    monkeypatch.setattr(speeds, "_timed", time)
    return lines


def agreed(*kernels, ranks=2):
    """The speeds that each rank of a new communicator knows then."""
    return rote.run(lambda comm: dict(known_speeds(kernels, [False] * len(kernels), comm)), ranks)


def taken(kernel, known, usual=USUAL):
    """The config of a kernel that stands behind no move."""
    return fastest(kernel, False, usual, known)


def test_lines_are_those_of_the_axes() -> None:
    """The kind of a real transform is along its last axis, that of complex ones along the others; there as back."""
    complex_, real = AxisLines("fft", 64, "<c16"), AxisLines("rfft", 48, "<f8")
    assert lines_of(kernel("fft")) == lines_of(kernel("ifft")) == {0: complex_, 1: complex_}
    assert lines_of(kernel("rfft", dtype="f8", points=48)) == {0: complex_, 1: real}
    assert lines_of(kernel("irfft", points=48)) == {0: complex_, 1: AxisLines("irfft", 48, "<c16")}
    assert lines_of(kernel("dct2", (1,), dtype="c8")) == lines_of(kernel("dct2", (1,), dtype="f4"))
    assert lines_of(kernel("fft", shape=(8, 1 << 20), points=1 << 20)) == {}, "neither so short nor so long ones"


def test_the_least_time_is_taken() -> None:
    """Law: of all libraries and orders that are known the one whose lines take least, if it clearly leads."""
    rng = np.random.default_rng(5)
    names = ("pyfftw", "ducc0", "mkl")
    for number in range(200):
        axes = [(0,), (2,), (0, 2)][number % 3]
        known = {FFT: {name: tuple(rng.uniform(1, 1.5, 3)) for name in names}}
        shape = (64, 4096, 64)  # more than any cache holds

        def time(config, axes=axes, known=known, shape=shape):
            made = Kernel("fft", axes, shape, shape, np.dtype("D"), config)
            rows, columns, turned = known[FFT][config.library]
            every = {2: rows, 0: turned if in_lines(made, 0) else columns}
            return sum(every[axis] for axis in axes)

        config = taken(kernel(axes=axes, shape=shape), known)
        every = [KernelConfig(name, order=order) for name, order in product(names, ("usual", "columns", "lines"))]
        best = min(map(time, every))
        assert time(config) == best or (config == USUAL and best >= 0.95 * time(USUAL))


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("kind", ["fft", "rfft", "irfft"])
def test_the_fastest_way_through_planes_is_taken(kind, behind) -> None:
    """Law: of all libraries, in tiles or at once, the one that takes least; the number of planes does not matter."""
    rng = np.random.default_rng(6)
    dtype = "f8" if KINDS[kind].real == "input" else "c16"
    for number in range(1, 50):
        block = kernel(kind, (1, 2), (number, 64, 64), dtype)
        planes = planes_of(block, behind)
        assert planes is not None and planes == planes_of(kernel(kind, (1, 2), (3, 64, 64), dtype), behind)
        known = {planes: {name: tuple(rng.uniform(1, 1.5, 3)) for name in ("pyfftw", "ducc0", "mkl")}}
        ways = {
            KernelConfig(name, **way): time
            for name, times in known[planes].items()
            for way, time in zip(
                ({}, {"tiled": False}, {"order": "columns" if name == "pyfftw" else "lines"}), times, strict=True
            )
        }
        config = fastest(block, behind, USUAL, known)
        assert ways[config] == min(ways.values()) or (config == USUAL and min(ways.values()) >= 0.95 * ways[USUAL])


def test_planes_are_those_that_a_cache_holds() -> None:
    """What lies before the first axis is not theirs; of lines, and of what is larger or small, there are none."""
    assert planes_of(kernel(axes=(0, 1), shape=(64, 64)), False) == Planes(
        "fft", (0, 1), (64, 64), (64, 64), "<c16", many=False, behind=False
    )
    read = planes_of(kernel("rfft", (1, 2), (9, 64, 48), "f8", 48), True)
    assert read == Planes("rfft", (0, 1), (64, 48), (64, 25), "<f8", many=True, behind=True)
    for shape, axes in (((64, 64), (1,)), ((4, 1 << 19), (0, 1)), ((1 << 10, 1 << 10), (0, 1)), ((8, 8), (0, 1))):
        assert planes_of(kernel(axes=axes, shape=shape, points=shape[-1]), False) is None


def test_what_is_not_known_is_not_taken() -> None:
    """Law: the usual config stays where nothing is known of its lines or of another library's."""
    planes = planes_of(kernel(), False)
    for block, timed in ((kernel(axes=(0,)), FFT), (kernel(), planes)):
        assert taken(block, {}) == USUAL
        assert taken(block, {timed: {}}) == USUAL
        assert taken(block, {timed: {"mkl": (9.0, 9.0, 9.0)}}) == USUAL
        assert taken(block, {timed: {"ducc0": (9.0, 9.0, 9.0)}}).library == "ducc0", "mkl cannot do it"
    cosine = kernel("dct2", (0,), dtype="f8")
    assert taken(cosine, {FFT: {"ducc0": (0.1, 0.1, 0.1)}}, KernelConfig()).library == "pyfftw"


def test_lines_are_timed_once(timed) -> None:
    """Law: by all ranks at once, for all later programs on this machine, on however many ranks."""
    first = agreed(kernel(axes=(0,)), kernel("rfft", (1,), dtype="f8"))
    assert first[0] == first[1] and sorted(timed) == sorted([FFT, AxisLines("rfft", 64, "<f8")] * 2)
    assert [record.key.facts["points"] for record in wisdom.records()] == [64, 64]
    assert agreed(kernel("ifft", (0,))) == [{FFT: first[0][FFT]}] * 2 and len(timed) == 4
    assert agreed(kernel(axes=(0,)), ranks=3) == [{FFT: first[0][FFT]}] * 3 and len(timed) == 4
    wisdom.forget(all=True)
    assert agreed(kernel(axes=(0,))) == [{FFT: first[0][FFT]}] * 2 and len(timed) == 6


def test_planes_are_timed_once(timed) -> None:
    """Law: as lines are; of a kernel whose planes are timed, lines are not."""
    planes = planes_of(kernel(), False)
    first = agreed(kernel())
    assert [{*known} for known in first] == [{planes}] * 2 and timed == [planes] * 2
    assert [record.key.facts["what"] for record in wisdom.records()] == ["planes"]
    assert agreed(kernel(), ranks=3) == [first[0]] * 3 and len(timed) == 2


@pytest.mark.parametrize(
    "layout, lengths", [("[(),()]|(0)", {(32, 48)}), ("block[(0),()]|(1@1)", {32, 48})], ids=["planes", "lines"]
)
def test_ranks_that_hold_nothing_time_what_others_have(timed, layout, lengths) -> None:
    """Law: all ranks plan together, whatever they hold; and the transform is right."""
    x = np.random.default_rng(4).random((32, 48)) + 0j

    def program(comm):
        here = rote.DistTensor.from_global(x, layout, comm, grid=(2, 2) if "@" in layout else (4,))
        return bool(np.allclose(rote.fft.fftn(here).to_global(), np.fft.fftn(x)))

    assert rote.run(program, 4) == [True] * 4
    assert {each.shape if isinstance(each, Planes) else each.points for each in timed} == lengths
    assert len(timed) == 4 * len(lengths)


def test_nothing_is_timed_where_nothing_is_kept(timed, monkeypatch) -> None:
    """Law: then every run takes the same kernels, whatever the machine does meanwhile."""
    monkeypatch.setenv("ROTE_WISDOM", "")
    assert agreed(kernel(axes=(0,))) == [{FFT: {}}] * 2 and not timed


@pytest.mark.parametrize("damage", [[], 3, {"pyfftw": [1, 2]}, {"pyfftw": 1}, {"pyfftw": [1, 2, "x"]}])
def test_damaged_wisdom_is_timed_anew(timed, tmp_path, damage) -> None:
    """Law: with one warning."""
    first = agreed(kernel(axes=(0,)), ranks=1)
    (path,) = tmp_path.glob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "decision": damage}))
    with pytest.warns(wisdom.WisdomWarning):
        assert agreed(kernel(axes=(0,)), ranks=1) == first
    assert len(timed) == 2


def test_a_plan_takes_what_is_fast(timed) -> None:
    """Law: the model's plan transforms by the libraries that lead, and tuning begins with them."""
    x = np.random.default_rng(2).random((64, 64, 64)) + 0j

    def program(comm):
        f = rote.fft.FFT(x.shape, "block[(0),(),()]", comm=comm)
        y = f.forward(rote.DistTensor.from_global(x, "block[(0),(),()]", comm))
        return f.libraries, bool(np.allclose(y.to_global(), np.fft.fftn(x)))

    expected = ("ducc0",) if "ducc0" in versions() else ("pyfftw",)
    assert rote.run(program, 2) == [(expected, True)] * 2


def test_a_library_that_fails_while_it_is_timed_is_none(monkeypatch) -> None:
    """Law: its time is no number, and wisdom keeps numbers alone; the others are known."""

    def fails() -> None:
        raise RuntimeError

    monkeypatch.setattr(speeds, "_calls", lambda lines, name: [(fails if name == "pyfftw" else int, 1)] * 3)
    monkeypatch.setattr(speeds, "library", lambda name: speeds)
    monkeypatch.setattr(speeds, "version", lambda: "1", raising=False)
    assert {*speeds._timed(FFT, ["pyfftw", "ducc0"], alone())} == {"ducc0"}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_all_that_is_installed_is_timed(kind) -> None:
    """Law: each library that does a kind has three times, all of them positive and finite, of lines and of planes."""
    names = [name for name in ("pyfftw", "ducc0", "mkl") if name in versions()]
    for dtype, behind in product("fd", (False, True)):
        code = dtype if KINDS[kind].real in ("both", "input") else dtype.upper()
        planes = planes_of(kernel(kind, (1, 2), (2, 96, 96), code, 96), behind)
        for each in (AxisLines(kind, 24, np.dtype(code).str), planes):
            measured = speeds._timed(each, names, alone())
            assert "pyfftw" in measured
            assert all(len(times) == 3 and all(0 < time < inf for time in times) for times in measured.values())
