"""Section 3.2 of Popovici et al. 2019: a transform of 256 points on 4 ranks in six steps, and one all-to-all.

Figure 10 writes the signal as a matrix A of 16 x 16 on a grid of 4, in the layout [(0),()], and its transform in B, in
[(),(0)]. In the words of equations 13-17, with n = n0 n1, index i = i1 n0 + i0 of the signal, k = k0 n1 + k1 of the
spectrum, and i0 dealt out to the ranks:

    13  Y[k1, k0] = ((T[i0, k1] * (X[i0, i1] . DFT_n1[i1, k1]))^T) . DFT_n0[i0, k0]
    14  T0[i0, k1]: X's rows, each transformed along i1 on the rank that holds it, times twiddles exp(-2 pi i i0 k1 / n)
    15  T1[i0, k1]: the one all-to-all; k1 is dealt out, i0 whole
    16  T2[k1, i0]: each rank transposes what it holds
    17  Y[k1, k0]: T2's rows, each transformed along i0

Cyclic in is cyclic out: i0 mod 4 is i mod 4, and k1 mod 4 is k mod 4.
"""

from __future__ import annotations

import numpy as np
import pytest

import rote
from rote import DistTensor
from rote.fft import FFT

# i1 is the slower digit of i, and k0 that of k: (i1 i0) reads i, and what is transformed in a and b is read as (b a).
BY_HAND = """
    (a b=16): [(),(0)]: fft(a), twiddle        # 14: a is i1, and k1 once it is transformed; i0 is on the grid
    a b: [(0),()]: fft(b)                      # 15-17: b is i0, and then k0; k1 is on the grid
    (b a): [(0)]                               # k in natural order
"""


def numbers(n):
    rng = np.random.default_rng(n)
    return rng.standard_normal(n) + 1j * rng.standard_normal(n)


def test_the_one_all_to_all():
    """Law (eq. 15): A[(0),()] -> B[(),(0)] is one all-to-all, in which each rank keeps a quarter of what it has."""
    plan = rote.compile("[(0),()] -> [(),(0)]", shape=(16, 16), grid=4, dtype="c16")
    assert [step.kind for step in plan.steps] == ["alltoall"]
    assert plan.cost.messages == 3 and plan.cost.bytes == plan.lower_bound == 3 * 4 * 4 * 16


def test_the_signal_is_the_matrix():
    """Law (eq. 13): X's rows dealt out elementwise cyclically are the signal dealt out so: the same blocks."""
    signal, matrix = rote.parse("[(0)]").on(256, 4), rote.parse("(i1 i0=16): [(),(0)]").on(256, 4)
    for rank in range(4):
        assert np.array_equal(signal.tensor_indices(rank)[0], matrix.tensor_indices(rank)[0].reshape(-1))
    assert rote.compile(signal, matrix, "c16").cost.messages == 0


@pytest.mark.parametrize("text", [BY_HAND, "cyclic", "volumetric"])
def test_six_steps(text):
    """Law (eq. 13-17): the walk, by hand or by name, moves once, lies as the figure says, and is the DFT of 256."""

    def program(comm):
        f = FFT(256, "[(0)]", 4, comm, algorithm=text)
        x = DistTensor.from_global(numbers(256), f.input_layout, comm)
        X = f.forward(x)
        error = np.abs(X.to_global() - np.fft.fft(numbers(256))).max()
        back = np.abs(f.backward(X).to_global() - numbers(256)).max()
        return f.walk, float(error), float(back)

    walk, error, back = rote.run(program, 4)[0]
    assert error < 1e-12 and back < 1e-13
    (move,) = walk.moves
    assert [step.kind for step in move.steps if step.kind != "relayout"] == ["alltoall"]
    assert move.cost.messages == 3 and move.cost.bytes == 3 * 16 * 16
    assert str(walk.source.layout) == str(walk.target.layout) == "[(0)]"


def test_the_layouts_of_the_figure():
    """The walk by hand holds 64 elements per rank as 16 x 4 and as 4 x 16: T0 and T1 of equations 14 and 15."""

    def program(comm):
        return FFT(256, "[(0)]", 4, comm, algorithm=BY_HAND).walk

    walk = rote.run(program, 4)[0]
    rest, first, second, last = walk.stages
    assert [stage.before.local_shape(0) for stage in walk.stages] == [(64,), (16, 4), (4, 16), (64,)]
    assert str(first.before.layout) == "(a b=16): [(),(0)]" and not rest.done and not last.done
    twiddle = first.done[1]
    assert (twiddle.mode, twiddle.other, twiddle.step, twiddle.points) == (0, 1, 1, 256)
    assert str(second.before.layout) == "[(0),()]" and len(second.done) == 1
    assert [plan.cost.messages for plan in walk.transitions] == [0, 3, 0]


@pytest.mark.parametrize("algorithm", ["cyclic", "volumetric"])
def test_blocks_need_three(algorithm):
    """Law (section 3.2): from blocks to blocks takes three all-to-alls, and cyclic in, cyclic out one."""

    def moves(layout, output):
        return rote.run(lambda comm: FFT(256, layout, 4, comm, algorithm=algorithm, output=output).moves, 4)[0]

    assert [len(moves(*ends)) for ends in [("[(0)]", None), ("[(0)]", "[(0)]")]] == [1, 1]
    assert len(moves("block[(0)]", "block[(0)]")) == 3


@pytest.mark.parametrize(("n0", "n1", "ranks"), [(16, 16, 4), (8, 32, 4), (6, 12, 3), (12, 6, 6), (9, 15, 3)])
def test_any_factors_that_the_ranks_divide(n0, n1, ranks):
    """Law (section 3.2): any n = n0 n1 with p | n0 and p | n1 takes one all-to-all, cyclic in and cyclic out."""
    text = f"(a b={n0}): [(),(0)]: fft(a), twiddle\n a b: [(0),()]: fft(b)\n (b a): [(0)]"

    def program(comm):
        f = FFT(n0 * n1, "[(0)]", ranks, comm, algorithm=text)
        X = f.forward(DistTensor.from_global(numbers(n0 * n1), "[(0)]", comm))
        return len(f.moves), float(np.abs(X.to_global() - np.fft.fft(numbers(n0 * n1))).max())

    moves, error = rote.run(program, ranks)[0]
    assert moves == 1 and error < 1e-12
