"""The ragged family: one-dimensional transforms of any number of points on any number of ranks, spread over all."""

from __future__ import annotations

import warnings
from math import isqrt, prod
from pathlib import Path

import numpy as np
import pytest
import ragged
from families import numbers
from marks import PARTS, make_checks, mpi_parts, parts_on
from workspace import bytes_taken

import rote
from rote import DistTensor, GatherWarning, LayoutError
from rote.fft import FFT
from rote.fft.families.choose import crowded, gathered_bytes, walk_of
from rote.fft.families.ragged import best_factors, padded_factors
from rote.fft.program.twiddles import chirp
from rote.fft.request import as_request

PROGRAM = Path(__file__).with_name("ragged.py")


@pytest.mark.parametrize(("ranks", "part"), parts_on(1, 2, 3, 4, 6, 8))
def test_lengths(ranks, part):
    """Law: a transform is numpy.fft's for every number of points, prime or not, and its inverse goes back."""
    rote.run(ragged.check_lengths, ranks, (part,))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("check", (ragged.check_options, ragged.check_tensors), ids=("options", "tensors"))
def test_what_else_may_be_asked_for(check, part):
    """Law: norms, dtypes, s, output, methods and other axes change nothing of that."""
    rote.run(check, 3, (part,))


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "part"), mpi_parts(), indirect=["job"])
def test_on_mpi_ranks(job, part):
    """All of that on MPI ranks."""
    make_checks(job, PROGRAM, ragged.CHECKS, part)


def walks(lengths, ranks, kinds=("fft", "rfft", "ifft", "irfft")):
    """Walks of the family, from both layouts; nothing is run."""
    for n in lengths:
        for p in ranks:
            for kind in kinds:
                points = n // 2 + 1 if kind == "irfft" else n
                wanted = as_request((points,), (0,), kind, np.dtype("d" if kind == "rfft" else "D"), s=n)
                for layout in ("[(0)]", "block[(0)]"):
                    yield n, p, walk_of(rote.parse(layout).on(points, p), wanted, "ragged")


def test_no_rank_holds_more_than_its_part():
    """Law: the largest block on a walk is of about n / p elements, and no less than a column.

    Twice as many where the number of columns is small; and of a convolution, which takes 2 n - 1 points or little more.
    """
    for n, ranks, walk in walks((2**12, 2**12 - 1, 4093, 2 * 4093, 10**6, 65537), (2, 3, 7, 8, 64)):
        blocks = [end.max_local_shape() for stage in walk.stages for end in (stage.before, stage.after)]
        assert max(map(prod, blocks)) <= 2.3 * n / ranks + 3 * isqrt(2 * n), (n, ranks, walk.stages)
        assert gathered_bytes(walk) == 0


def test_texts_parse_to_the_same_walk():
    """Law: a walk of this family is what its printed text says."""
    for n, _, walk in walks((24, 23), (3,), ("fft", "rfft")):
        again = walk_of(walk.source, as_request((n,), (0,), "", walk.dtype), str(walk))
        assert again == walk and str(again) == str(walk)


@pytest.mark.parametrize(
    ("n", "most", "code"),
    [
        *((1 << 16, 1, "D"), (1 << 15 | 2, 1.2, "d"), (65537, 2.1, "D")),
        *(pytest.param(*more, marks=pytest.mark.slow) for more in ((1 << 16, 1, "d"), (1 << 15 | 2, 1.2, "D"))),
        pytest.param(65537, 2.1, "d", marks=pytest.mark.slow),
    ],
)
def test_memory_is_that_of_a_part(n, code, most):
    """Law: on 8 ranks the scratch of a rank is two of its largest blocks, of n / 8 elements or little more.

    Of a prime n, twice that; and a call takes nothing else.
    """

    def program(comm):
        f = FFT(n, "[(0)]", comm=comm, dtype=code)
        x = DistTensor.from_function(lambda i: i % 7 - 3.0, n, "[(0)]", comm=comm, dtype=code)
        peak = bytes_taken(f, x)
        return f.workspace_bytes, peak

    found = rote.run(program, 8)
    assert max(used for used, _ in found) <= 2 * most * 16 * n / 8 + 4096
    assert found[0][1] <= n * 16, found[0]


def test_factors_are_what_they_say():
    """Law: r s is n, and no other two have a smaller largest block; or of a convolution at least 2 n - 1, whose columns
    the ranks divide."""
    for n in range(1, 200):
        for ranks in (1, 2, 3, 8):
            padded, found = padded_factors(n, ranks), best_factors(n, ranks)
            assert padded.points >= 2 * n - 1 and padded.s % ranks == 0 and padded.r > 1
            prime = all(n % d for d in range(2, n))
            assert (found is None) == (n == 1 or prime)
            if found is not None:
                assert found.points == n and found.largest >= -(-n // ranks)
                others = [(d, n // d) for d in range(2, n) if n % d == 0]
                free = min(max(r * -(-s // ranks), s * -(-r // ranks)) for r, s in others)
                assert found.largest == free


@pytest.mark.parametrize("code", "FDG")
def test_chirps_are_exact(code):
    """Law: exp(-pi i k² / n) to the last bits, for squares beyond 64 bits too."""
    for n in (7, 4093, 10**10 + 19):
        k = np.array([0, 1, 2, n // 3, n - 2, n - 1])
        exact = np.array([int(one) ** 2 % (2 * n) for one in k])
        angle = -np.pi * (exact / n)
        wanted = np.cos(angle) + 1j * np.sin(angle)
        assert np.abs(chirp(k, n, np.dtype(code)) - wanted).max() < (3e-7 if code == "F" else 3e-15)


MISTAKES = {
    "[(0)]: chirp(0=30)": "pads 16 points to 31",
    "[(0)]: chirp(0=32)\n(a b=4): [(),(0)]: fft(a), twiddle\n[(0),()]: fft(b)": "b is not a mode",
    "[(0)]: chirp(0=32)\n(a b=4): [(),(0)]: fft(a), twiddle\n[(0),()]: fft(1)\n(b a): [(0)]": "chirp",
    "[(0)]: chirp(0=32)\n[()]: fft(0), convolve": "chirp(0=16)",
    "[(0)]: chirp(0=32)\n[()]: convolve": "no convolve is due",
    "[(0)]: chirp(0=32)\n[()]: ifft(0)": "fft has begun",
    "[(0)]: chirp(0=32)\n[()]: fft(0), convolve\n[()]: ifft(0), chirp(0=8)": "to the 16 points",
    "[(0)]: chirp(0=32)\n[()]: fft(0), chirp(0=16)": "transformed, convolved",
    "[(0)]: chirp(0=32), resize(0=16)": "end it with chirp before resize",
    "[()]: fft(0), chirp(0=32)": "fft has begun",
    "[()]: fft(0), fold(0=9)": "a real axis",
    "[()]: complex(0), fft(0)": "complex128 by then",
    "[()]: fft(0), real(0)": "which fold has begun",
}


@pytest.mark.parametrize("text", MISTAKES, ids=lambda text: text.replace("\n", "; "))
def test_wrong_walks_are_refused(text):
    """What is not due, or is left in the middle, is named."""
    wanted = as_request((16,), (0,), "", np.dtype("D"))
    with pytest.raises((LayoutError, rote.NotationError)) as caught:
        walk_of(rote.parse("[(0)]").on(16, 4), wanted, text)
    assert MISTAKES[text] in str(caught.value)


def test_real_walks_end_as_they_should():
    """A real walk that leaves out fold, or folds to another extent, is refused."""
    wanted = as_request((16,), (0,), "", np.dtype("d"))
    for text, why in (
        ("[()]: complex(0), fft(0)", "end it with fold(0=9)"),
        ("[()]: complex(0), fft(0), fold(0=8)", "from 16 points to 9"),
        ("[()]: complex(0), ifft(0), fold(0=9)", "write fft"),
        ("[(0)]: chirp(0=32)", "write complex before"),
    ):
        with pytest.raises(LayoutError) as caught:
            walk_of(rote.parse("[(0)]").on(16, 4), wanted, text)
        assert why in str(caught.value)


def test_auto_gathers_only_where_it_must():
    """Law: with "auto" one-dimensional fft and rfft are spread, and warn of nothing; tensors go by transposes."""
    for n, ranks in ((40, 4), (31, 3), (64, 8)):
        for kind, code in (("fft", "D"), ("rfft", "d")):
            wanted = as_request((n,), (0,), kind, np.dtype(code))
            walk = walk_of(rote.parse("block[(0)]").on(n, ranks), wanted)
            assert gathered_bytes(walk) == 0 and not crowded(walk)
    wanted = as_request((32, 32, 32), (0, 1, 2), "rfft", np.dtype("d"))
    walk = walk_of(rote.parse("block[(0),(),()]").on((32, 32, 32), 4), wanted)
    assert [len(stage.before.shape) for stage in walk.stages] == [3, 3]


def test_a_gather_is_warned_of():
    """Once per plan, on rank 0 alone: how many bytes each rank holds, and what would avoid it; not if it is written."""

    def program(comm):
        x = DistTensor.from_global(numbers((1000,), "d"), "block[(0)]", comm)
        FFT(1000, "block[(0)]", comm=comm, dtype="d", kinds="dct2")
        f = FFT(1000, "block[(0)]", comm=comm, algorithm="slab")
        f.backward(f.forward(x.astype("D")))
        for _ in range(2):
            rote.fft.fftn(x, algorithm="slab")
        FFT(1000, "block[(0)]", comm=comm, dtype="d")
        FFT((1000,), comm=comm, algorithm="block[(0)]\n[()]: fft(0)")

    with pytest.warns(GatherWarning) as warned:
        rote.run(program, 4)
    said = [str(one.message) for one in warned]
    assert len(said) == 3 and all(one.filename == __file__ for one in warned)
    assert all("each of 4 ranks comes to hold" in text for text in said)
    assert "7.8 KiB" in said[0] and "2.0 KiB" in said[0] and "dct2" in said[0] and "on 1 rank" in said[0]
    assert all("15.6 KiB" in text and 'algorithm="ragged"' in text for text in said[1:])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rote.run(lambda comm: FFT(1000, "block[(0)]", comm=comm, dtype="d", kinds="dct2"), 1)
