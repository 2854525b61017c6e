"""Speeds of kernels: timed once for a machine, the same on all ranks, and what they say is what is taken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import product
from math import inf

import numpy as np
import pytest

import rote
from rote import wisdom
from rote.fft.kernels import choose as speeds
from rote.fft.kernels.backends import library
from rote.fft.kernels.backends.library import KernelConfig
from rote.fft.kernels.choose import Position, Sample, fastest, kernel_call, known_speeds, samples_of
from rote.fft.kernels.kernel import Kernel
from rote.fft.kernels.threads import helpers, with_threads
from rote.fft.transforms import KINDS
from rote.runtime.comm.segments import at_line
from rote.runtime.comm.threads import alone
from rote.runtime.tuning import keep_machine

USUAL = KernelConfig("mkl")
LARGE = (64, 4096, 64)  # more than any cache holds


def kernel(kind="fft", axes=(0, 1), shape=(64, 64), dtype="c16", points=64):
    """A kernel whose last axis has some points on its real side."""
    row = KINDS[kind]
    before, after = ((*shape[:-1], row.taken(points)), (*shape[:-1], row.given(points)))
    return Kernel(kind, axes, before, after, np.dtype(dtype))


@pytest.fixture
def timed(monkeypatch, tmp_path):
    """Samples that were timed, in a new folder of wisdom; ducc0 is the fastest."""
    samples = []

    def time(each, names, comm):
        samples.append(each)
        times = {"pyfftw": (1.2, 3.0, 3.0), "ducc0": (1.5, 1.0, 1.0), "mkl": (2.0, 2.0, 2.0), "fftw3": (2.0, 2.0, 2.0)}
        return {name: times[name][: len(each.ways(name))] for name in names}

    monkeypatch.setenv("ROTE_WISDOM", str(tmp_path))
    monkeypatch.setattr(speeds, "_timed", time)
    return samples


def agreed(*kernels, ranks=2):
    """The speeds that each rank of a new communicator knows then."""
    return rote.run(lambda comm: dict(known_speeds(kernels, [Position()] * len(kernels), comm)), ranks)


def taken(kernel, known, usual=USUAL):
    """The config of a kernel that stands behind no move."""
    return fastest(kernel, Position(), usual, known)


def ways(name, sample):
    """The configs of a library that are timed for a sample; no lines are read out of boxes in one call."""
    some = [{}, {"tiled": False}, {"tiled": False, "fused": False}]
    kept = [True, len(sample.axes) > 1 or not sample.after_move, sample.after_move]
    return [KernelConfig(name, **way) for way, keep in zip(some, kept, strict=True) if keep]


def test_lines_are_samples_along_each_axis() -> None:
    """The kind of a real transform is along its last axis, that of complex ones along the others; there as back."""

    def ends(*arguments, **more):
        return [(s.kind, s.shape, s.out_shape, s.dtype, s.many) for s in samples_of(kernel(*arguments, **more), False)]

    columns, rows = ("fft", (64, 8192), (64, 8192), "<c16", False), ("fft", (64,), (64,), "<c16", True)
    assert ends("fft", (0,), LARGE) == ends("ifft", (0,), LARGE) == [columns]
    assert ends("fft", (2,), LARGE) == [rows] and ends("fft", (0, 2), LARGE) == [columns, rows]
    assert ends("fft", (1,), (9, 64, 48), points=48) == [("fft", (64, 48), (64, 48), "<c16", True)]
    assert ends("rfft", (0, 2), LARGE, "f8")[1] == ("rfft", (64,), (33,), "<f8", True)
    assert ends("irfft", (0, 2), LARGE) == [columns, ("irfft", (33,), (64,), "<c16", True)]
    assert ends("dct2", (2,), LARGE, "c8") == [("dct2", (64,), (64,), "<c8", True)]
    assert ends("fft", (1,), (8, 1 << 20), points=1 << 20) == [], "neither so short nor so long ones"


def test_planes_that_a_cache_holds_are_one_sample() -> None:
    """What lies before the first axis is not theirs; small blocks have no samples."""
    assert samples_of(kernel(axes=(0, 1), shape=(64, 64)), False) == (
        Sample("fft", (0, 1), (64, 64), (64, 64), "<c16", many=False, after_move=False, stays=False, threads=1),
    )
    assert samples_of(kernel("rfft", (1, 2), (9, 64, 48), "f8", 48), True) == (
        Sample("rfft", (0, 1), (64, 48), (64, 25), "<f8", many=True, after_move=True, stays=False, threads=1),
    )
    assert len(samples_of(kernel(axes=(0, 1), shape=(1 << 10, 1 << 10), points=1 << 10), False)) == 2
    assert samples_of(kernel(axes=(0, 1), shape=(8, 8), points=8), False) == ()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_samples_are_of_the_threads_that_share_a_block(threads) -> None:
    """Law: of as many as the config has, if the block is large and can be shared; else of one."""

    def number(*arguments, **more):
        return {sample.threads for sample in samples_of(with_threads(kernel(*arguments, **more), threads), False)}

    assert number("fft", (0,), LARGE) == number("rfft", (1, 2), (99, 64, 64), "f8") == {threads}
    assert number("fft", (0, 1), (512, 512)) == number("fft", (0,), (64, 64)) == {1}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("place", [Position(), Position(stays=True), Position(after_move=True)])
def test_a_call_is_in_place_if_the_block_stays(place, threads) -> None:
    """Law: a call that is timed writes where the walk does: into its input, or into other memory."""
    block = with_threads(kernel("fft", (0,), (64, 2048), points=2048), threads)
    scratch = at_line(block.nbytes), at_line(block.nbytes)
    source, other = (memory.view("c16").reshape(64, 2048) for memory in scratch)
    call = kernel_call(block, place, scratch, helpers(alone(), threads))
    source[...], other[...] = np.random.default_rng(threads).random(source.shape), 0
    before, want = source.copy(), np.fft.fft(source, axis=0)
    call()
    assert np.allclose(source if place.stays else other, want)
    assert not other.any() if place.stays else np.array_equal(source, before)


@pytest.mark.parametrize("after_move, stays", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("kind", ["fft", "rfft", "irfft"])
@pytest.mark.parametrize("axes, shape", [((1, 2), (9, 64, 64)), ((0, 2), LARGE), ((0,), LARGE)])
def test_the_fastest_way_is_taken(kind, after_move, stays, axes, shape) -> None:
    """Law: of all libraries and ways the one whose samples take least together, if it clearly leads.

    Only a block that a cache holds, or that stays where it is, may have lines across it transformed in one call. Only
    the former may be moved as a whole before it is transformed.
    """
    rng = np.random.default_rng(6)
    block = kernel(kind, axes, shape, "f8" if KINDS[kind].real == "input" else "c16")
    samples = samples_of(block, after_move, stays)
    assert len(samples) == (1 if axes != (0, 2) else 2)
    for _ in range(50):
        number = len(ways("mkl", samples[0]))
        known = {s: {name: tuple(rng.uniform(1, 1.5, number)) for name in ("pyfftw", "ducc0", "mkl")} for s in samples}
        times = {}
        for name in ("pyfftw", "ducc0", "mkl"):
            for n, way in enumerate(ways(name, samples[0])):
                if shape != LARGE or (way.fused and (way.tiled or stays)):
                    times[way] = sum(known[s][name][n] for s in samples)
        config, best = fastest(block, Position(after_move, stays), USUAL, known), min(times.values())
        assert times[config] == best or (config == USUAL and best >= 0.9 * times[USUAL])


def test_what_is_not_known_is_not_taken() -> None:
    """Law: the usual config stays where nothing is known of its lines or of another library's."""
    for block in (kernel(axes=(0,)), kernel()):
        (timed,) = samples_of(block, False)
        assert taken(block, {}) == USUAL
        assert taken(block, {timed: {}}) == USUAL
        assert taken(block, {timed: {"mkl": (9.0, 9.0)}}) == USUAL
        assert taken(block, {timed: {"ducc0": (9.0, 9.0)}}).library == "ducc0", "mkl cannot do it"
    cosine, others = kernel("dct2", (0,), dtype="f8"), samples_of(kernel(axes=(0,)), False)
    assert taken(cosine, {others[0]: {"ducc0": (0.1, 0.1)}}, KernelConfig()).library == "pyfftw"
    block = kernel("fft", (0, 2), LARGE)
    assert taken(block, {samples_of(block, False)[0]: {"ducc0": (0.1, 0.1)}}) == USUAL, "of one axis alone"


def test_samples_are_timed_once(timed) -> None:
    """Law: by all ranks at once, for all later programs on this machine, on however many ranks."""
    lines, real = kernel(axes=(0,)), kernel("rfft", (1,), dtype="f8")
    ((sample,), (other,)) = samples_of(lines, False), samples_of(real, False)
    first = agreed(lines, real)
    assert first[0] == first[1] and sorted(timed) == sorted([sample, other] * 2)
    assert {record.key.facts["what"] for record in wisdom.records()} == {"speeds"}
    assert agreed(kernel("ifft", (0,))) == [{sample: first[0][sample]}] * 2 and len(timed) == 4
    assert agreed(lines, ranks=3) == [{sample: first[0][sample]}] * 3 and len(timed) == 4
    wisdom.forget(all=True)
    assert agreed(lines) == [{sample: first[0][sample]}] * 2 and len(timed) == 6


@pytest.mark.parametrize(
    "layout, shapes",
    [("[(),()]|(0)", {(64, 48)}), ("block[(0),()]|(1@1)", {(48,), (64, 24)})],
    ids=["planes", "lines"],
)
def test_ranks_that_hold_nothing_time_what_others_have(timed, layout, shapes) -> None:
    """Law: all ranks plan together, whatever they hold; and the transform is right."""
    x = np.random.default_rng(4).random((64, 48)) + 0j

    def program(comm):
        here = rote.DistTensor.from_global(x, layout, comm, grid=(2, 2) if "@" in layout else (4,))
        return bool(np.allclose(rote.fft.fftn(here).to_global(), np.fft.fftn(x)))

    assert rote.run(program, 4) == [True] * 4
    assert {each.shape for each in timed} == shapes
    assert len(timed) == 4 * len(shapes)


def test_nothing_is_timed_where_nothing_is_kept(timed, monkeypatch) -> None:
    """Law: then every run takes the same kernels, whatever the machine does meanwhile."""
    monkeypatch.setenv("ROTE_WISDOM", "")
    assert agreed(kernel(axes=(0,))) == [{samples_of(kernel(axes=(0,)), False)[0]: {}}] * 2 and not timed


BITS = """
import hashlib, numpy as np, rote
def program(comm):
    found = hashlib.sha1()
    for shape, transform in (((48, 80, 24), rote.fft.fftn), ((45, 35, 77), rote.fft.rfftn)):
        array = np.random.default_rng(1).standard_normal(shape)
        found.update(transform(rote.DistTensor.from_global(array, "block[(0),(),()]", comm)).local.tobytes())
    return found.hexdigest()
print(rote.run(program, 2))
"""


def test_without_wisdom_every_run_has_the_same_bits() -> None:
    """Law: with ROTE_WISDOM= (empty) processes agree to the last bit, of blocks that are large enough to be timed."""
    env = {**os.environ, "ROTE_WISDOM": ""}
    command = [sys.executable, "-c", BITS]
    runs = [subprocess.run(command, env=env, check=True, timeout=60, capture_output=True).stdout for _ in range(2)]
    assert runs[0] == runs[1] and len(runs[0]) > 80


def test_a_printed_plan_says_which_machine_and_samples_decided(timed, monkeypatch) -> None:
    """Law: `print(f)` names the machine of its times, and after a run the libraries, and whether samples were timed."""

    def program(comm, **options):
        f = rote.fft.FFT((64, 64, 64), "block[(0),(),()]", comm=comm, **options)
        before = str(f).splitlines()
        f.forward(f.empty_input())
        after = str(f).splitlines()
        assert after[: len(before)] == before
        (taken,) = (line for line in before if line.endswith(", taken"))
        return taken.partition(" on ")[2], *after[len(before) :], ", ".join(f.libraries)

    for _ in range(2):
        machine, libraries, names = rote.run(program, 2)[0]
        assert machine.endswith("on the default machine, taken")
        assert libraries == f"  transformed by {names}, by timed samples"
    given = rote.run(lambda comm: program(comm, machine=rote.Machine(latency=1e-3)), 2)[0]
    assert given[0].endswith("on a machine of latency 1.0 ms, taken")
    rote.run(lambda comm: keep_machine(comm, rote.Machine(latency=1e-5)), 2)
    assert rote.run(program, 2)[0][0].endswith("on a machine of latency 10 us, taken")
    monkeypatch.setenv("ROTE_WISDOM", "")
    machine, libraries, names = rote.run(program, 2)[0]
    assert libraries == f"  transformed by {names}, as usual, untimed"


@pytest.mark.parametrize("damage", [[], 3, {"pyfftw": [1]}, {"pyfftw": 1}, {"pyfftw": [1, "x"]}])
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

    expected = ("ducc0",) if library("ducc0").version() else ("pyfftw",)
    assert rote.run(program, 2) == [(expected, True)] * 2


def test_a_library_that_fails_while_it_is_timed_is_none(monkeypatch) -> None:
    """Law: its time is no number, and wisdom keeps numbers alone; the others are known."""

    def fails() -> None:
        raise RuntimeError

    monkeypatch.setattr(speeds, "_calls", lambda sample, name, pool: [(fails if name == "pyfftw" else int, 1)] * 3)
    monkeypatch.setattr(speeds, "library", lambda name: speeds)
    monkeypatch.setattr(speeds, "version", lambda: "1", raising=False)
    assert {*speeds._timed(samples_of(kernel(), False)[0], ["pyfftw", "ducc0"], alone())} == {"ducc0"}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_all_that_is_installed_is_timed(kind, monkeypatch) -> None:
    """Law: each library that does a kind has a positive, finite time per way, of planes and of lines."""
    monkeypatch.setattr(speeds, "_BLOCK", 1 << 18)
    names = [name for name in ("pyfftw", "fftw3", "ducc0", "mkl") if library(name).version()]
    for dtype, after_move in product("fd", (False, True)):
        code = dtype if KINDS[kind].real in ("both", "input") else dtype.upper()
        planes = kernel(kind, (1, 2), (2, 96, 96), code, 96)
        for (each,) in (samples_of(planes, after_move), samples_of(replace(planes, axes=(2,)), after_move)):
            measured = speeds._timed(each, names, alone())
            assert "pyfftw" in measured
            for name, times in measured.items():
                assert len(times) == len(ways(name, each)) and all(0 < time < inf for time in times)
