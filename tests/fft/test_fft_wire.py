"""Transforms whose numbers travel in single precision."""

from __future__ import annotations

from pathlib import Path

import pytest
import single
from marks import PARTS, mpi_parts

import rote
from rote import Machine
from rote.errors import PlanError
from rote.fft import FFT

PROGRAM = Path(single.__file__)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("ranks", (2, pytest.param(4, marks=pytest.mark.slow)))
def test_threads_transform_within_the_error_that_is_said(ranks, part):
    """Law: an error of 2^-24 in 2-norm for each move by messages, none where memory is read; bytes are half."""
    assert min(rote.run(single.check, ranks, (part,))) >= 2


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "part"), mpi_parts(3), indirect=["job"])
def test_mpi_ranks_transform_alike_by_every_method(job, part):
    """Law: all methods that send messages give the same bits, chunks and nodes among them; functions are NumPy's to
    1e-7."""
    done = job.run(PROGRAM, part, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("compared") == job.ranks


def test_a_transform_says_it():
    """Law: print says the bytes and the error, repr makes it again, the moves are plans of rounded messages."""
    grids = {"grid": (1,), "layout": "block[(0),()]"}
    f = FFT((8, 8), **grids, wire="f4")
    assert repr(f).endswith("wire='f4')") and "wire" not in repr(FFT((8, 8), **grids))
    with pytest.raises(PlanError, match="write wire='f4' to send"):
        FFT((8, 8), wire="f2")
    with pytest.raises(PlanError, match="the elements are float32"):
        FFT((8, 8), dtype="f4", wire="f4")

    def program(comm):
        made = [FFT((8, 8), comm=comm, method="alltoallv", wire=each) for each in ("f4", None)]
        return [str(f) for f in made], [plan.cost.bytes for f in made for plan in f.moves]

    (text, entire), nbytes = rote.run(program, 2)[0]
    assert "receives 128 B in 1 move, sent in single precision: error at most 6.0e-08 in 2-norm" in text
    assert "alltoall over 0 as complex64" in text and "single" not in entire
    assert nbytes == [128, 256]


def test_the_choice_of_a_walk_counts_half_the_bytes():
    """Law: the model's seconds of a link that is all that counts are half; timed choices are kept apart."""
    link = Machine(latency=0, byte_time=1e-6, copy_time=0, reduce_time=0, step_time=0, fft_time=0)

    def program(comm):
        made = [FFT((8, 8, 8), comm=comm, method="alltoallv", machine=link, wire=each) for each in ("f4", None)]
        return [f._choices[0].seconds for f in made]

    rounded, entire = rote.run(program, 4)[0]
    assert rounded * 2 == pytest.approx(entire)
