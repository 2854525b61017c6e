"""Speeds of lines: timed once for a machine, the same on all ranks, and what they say is what is taken."""

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
from rote.fft.kernels.speeds import AxisLines, Speed, fastest, known_speeds, lines_of
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
        times = {"pyfftw": Speed(1.0, 3.0, 2.0), "ducc0": Speed(1.5, 1.0, 1.0), "mkl": Speed(2.0, 2.0, 2.0)}
        return {name: times[name] for name in names}

    monkeypatch.setenv("ROTE_WISDOM", str(tmp_path))
    monkeypatch.setattr(speeds, "_timed", time)
    return lines


def agreed(*kernels, ranks=2):
    """The speeds that each rank of a new communicator knows then."""
    return rote.run(lambda comm: dict(known_speeds(kernels, comm)), ranks)


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
        axes = [(0,), (1,), (0, 1)][number % 3]
        known = {FFT: {name: Speed(*rng.uniform(1, 1.5, 3)) for name in names}}

        def time(config, axes=axes, known=known):
            speed, made = known[FFT][config.library], Kernel("fft", axes, (64, 64), (64, 64), np.dtype("D"), config)
            every = {1: speed.rows, 0: speed.turned if in_lines(made, 0) else speed.columns}
            return sum(every[axis] for axis in axes)

        taken = fastest(kernel(axes=axes), USUAL, known)
        every = [KernelConfig(name, order=order) for name, order in product(names, ("usual", "columns", "lines"))]
        best = min(map(time, every))
        assert time(taken) == best or (taken == USUAL and best >= 0.95 * time(USUAL))


def test_what_is_not_known_is_not_taken() -> None:
    """Law: the usual config stays where nothing is known of its lines or of another library's."""
    assert fastest(kernel(), USUAL, {}) == USUAL
    assert fastest(kernel(), USUAL, {FFT: {"mkl": Speed(9.0, 9.0, 9.0)}}) == USUAL
    assert fastest(kernel(), USUAL, {FFT: {"ducc0": Speed(9.0, 9.0, 9.0)}}).library == "ducc0", "mkl cannot do it"
    assert (
        fastest(kernel("dct2", dtype="f8"), KernelConfig(), {FFT: {"ducc0": Speed(0.1, 0.1, 0.1)}}).library == "pyfftw"
    )


def test_lines_are_timed_once(timed) -> None:
    """Law: by all ranks at once, for all later programs on this machine, on however many ranks."""
    first = agreed(kernel(), kernel("rfft", dtype="f8"))
    assert first[0] == first[1] and sorted(timed) == sorted([FFT, AxisLines("rfft", 64, "<f8")] * 2)
    assert [record.key.facts["points"] for record in wisdom.records()] == [64, 64]
    assert agreed(kernel("ifft")) == [{FFT: first[0][FFT]}] * 2 and len(timed) == 4
    assert agreed(kernel(), ranks=3) == [{FFT: first[0][FFT]}] * 3 and len(timed) == 4
    wisdom.forget(all=True)
    assert agreed(kernel()) == [{FFT: first[0][FFT]}] * 2 and len(timed) == 6


@pytest.mark.parametrize("layout", ["[(),()]|(0)", "block[(0),()]|(1@1)"])
def test_ranks_that_hold_nothing_time_the_lines_of_others(timed, layout) -> None:
    """Law: all ranks plan together, whatever they hold; and the transform is right."""
    x = np.random.default_rng(4).random((32, 48)) + 0j

    def program(comm):
        here = rote.DistTensor.from_global(x, layout, comm, grid=(2, 2) if "@" in layout else (4,))
        return bool(np.allclose(rote.fft.fftn(here).to_global(), np.fft.fftn(x)))

    assert rote.run(program, 4) == [True] * 4
    assert {each.points for each in timed} == {32, 48} and len(timed) == 8


def test_nothing_is_timed_where_nothing_is_kept(timed, monkeypatch) -> None:
    """Law: then every run takes the same kernels, whatever the machine does meanwhile."""
    monkeypatch.setenv("ROTE_WISDOM", "")
    assert agreed(kernel()) == [{FFT: {}}] * 2 and not timed


@pytest.mark.parametrize("damage", [[], 3, {"pyfftw": [1, 2]}, {"pyfftw": 1}, {"pyfftw": [1, 2, "x"]}])
def test_damaged_wisdom_is_timed_anew(timed, tmp_path, damage) -> None:
    """Law: with one warning."""
    first = agreed(kernel(), ranks=1)
    (path,) = tmp_path.glob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "decision": damage}))
    with pytest.warns(wisdom.WisdomWarning):
        assert agreed(kernel(), ranks=1) == first
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
    """Law: each library that does a kind has three times, all of them positive and finite."""
    for dtype in "fd":
        code = dtype if KINDS[kind].real in ("both", "input") else dtype.upper()
        lines = AxisLines(kind, 24, np.dtype(code).str)
        measured = speeds._timed(lines, [name for name in ("pyfftw", "ducc0", "mkl") if name in versions()], alone())
        assert "pyfftw" in measured
        assert all(len(times) == 3 and all(0 < time < inf for time in times) for times in measured.values())
