"""Ranks that read each other's blocks: boxes hold what a rank is to have, and give the bits that messages give."""

from __future__ import annotations

import random

import numpy as np
import pytest
from cases import pick_grid, pick_layout, pick_shape
from families import cases, numbers
from marks import PARTS
from parts import share

import rote
from rote import DistTensor
from rote.compiler.rules import one_step
from rote.fft import FFT
from rote.fft.kernels import kernel as kernels
from rote.fft.kernels.gather import Gather, boxes, whole
from rote.fft.kernels.kernel import Kernel
from rote.runtime.comm.segments import at_line
from rote.runtime.comm.threads import LocalComm
from rote.runtime.exchange.shared import DirectRead

pytestmark = pytest.mark.filterwarnings("ignore::rote.GatherWarning")  # slabs of one axis, asked for by name

D = np.dtype("D")


def steps(ranks, number):
    """Seeded steps that move values, between layouts of any kind, with this rank's share of them."""
    pick = random.Random(f"gather {ranks}").choice
    for _ in range(number):
        grid = pick_grid(pick, ranks)
        shape = pick_shape(pick)
        source, target = (pick_layout(pick, shape, grid).on(shape, grid) for _ in range(2))
        step = None if source.partial or target.partial else one_step(source, target)
        if step is not None:
            yield step, shape


@pytest.mark.parametrize("ranks", (2, 3, 4, 6))
def test_boxes_are_the_block(ranks):
    """Law: the boxes that a rank reads make up its new block, and a transform out of them is that of the block."""
    scratch = at_line(1 << 20), at_line(1 << 20)
    read = 0
    for step, shape in steps(ranks, 250):
        array = np.arange(np.prod(shape), dtype=D).reshape(shape)
        blocks = [block.reshape(-1) for block in rote.simulate.scatter(array, step.before)]
        for rank, want in enumerate(rote.simulate.scatter(array, step.after)):
            reading = DirectRead(step, rank)
            regions = reading.readable(False)
            found = None if regions is None else boxes(regions, want.ndim)
            if found is None or not want.ndim or 0 in shape:
                continue
            read += 1
            factor = np.exp(1j * np.arange(want.shape[-1]))
            for axis in range(want.ndim):
                gathered = np.full(want.shape, np.nan, D)
                kernel = Kernel("fft", (axis,), want.shape, want.shape, D)
                run = Gather(kernel, found, (factor,), scratch)
                run(run.reads(blocks), gathered)
                exact = np.fft.fft(want * factor, axis=axis) if want.size else want
                assert np.abs(gathered - exact).max(initial=0) <= 1e-13 * np.abs(exact).max(initial=0), (step, rank)
    assert read > 100


@pytest.mark.parametrize(("cached", "chunk"), [(1, 1), (400, 1), (400, 5000), (1 << 18, 1 << 19)])
@pytest.mark.parametrize("code", "DFG")
def test_parts_and_tiles_of_any_size(cached, chunk, code, monkeypatch):
    """Law: whatever the size of parts and tiles, a gathered transform along any axes is numpy.fft's."""
    monkeypatch.setattr(kernels, "CACHED", cached)
    monkeypatch.setattr(kernels, "CHUNK", chunk)
    scratch = at_line(1 << 20), at_line(1 << 20)
    shape = (3, 5, 4, 7)
    block = numbers(shape, code)
    for axes in ((0,), (1,), (3,), (1, 2), (1, 3), (2, 3), (0, 1, 2, 3)):
        for kind, name in (("fft", "fftn"), ("ifft", "ifftn"), ("irfft", "irfftn")):
            if kind == "irfft" and len(axes) == 1:
                continue
            n = 2 * shape[axes[-1]] - 1
            s = None if kind != "irfft" else [*(shape[a] for a in axes[:-1]), n]
            norm = "backward" if kind == "fft" else "forward"
            want = getattr(np.fft, name)(block, s=s, axes=axes, norm=norm)
            kernel = Kernel(kind, axes, shape, want.shape, np.dtype(code))
            out = np.empty(want.shape, kernel.out_dtype)
            for _ in range(2):
                run = Gather(kernel, whole(shape), (), scratch)
                run(run.reads([block.reshape(-1)]), out)
            to = 40 * np.finfo(want.dtype).eps if code != "G" else 1e-13
            assert np.abs(out - want).max() <= to * np.abs(want).max(), (axes, kind)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("ranks", (2, 3, 4, 6))
def test_reading_gives_the_bits_that_messages_give(ranks, part, monkeypatch):
    """Law: with messages alone a transform gives the same bits as with shared memory, in every family, many times."""

    def program(comm):
        found = []
        for case in share(cases(comm.size, 18), part, 7, comm.size, of=3):
            for code in "Dd" if case.real else "D":
                f = FFT(case.shape, case.layout, case.grid, comm, code, case.axes, case.family, "ortho", case.output)
                x = DistTensor.from_global(numbers(case.shape, code), case.layout, comm, case.grid)
                for _ in range(3):
                    X = f.forward(x)
                    back = f.backward(X)
                    found.append((X.local.tobytes(), back.local.tobytes()))
        return found

    read = rote.run(program, ranks)
    monkeypatch.setattr(LocalComm, "allocate_shared", lambda self, nbytes: None)
    assert rote.run(program, ranks) == read
