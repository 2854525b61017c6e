"""Walks as texts: those that users write run, those of the families read back, and the wrong ones say what is wrong."""

from __future__ import annotations

import re
from math import prod

import numpy as np
import pytest
from families import numbers

import rote
from rote import DistTensor
from rote.fft import FFT, irfftn
from rote.grammar import parse_walk, unparse_walk

SIX_STEP = "(t s=4): [(),(0)]: fft(t), twiddle\n(b r=4) s: [(0),(),()]: fft(s)\n(s b r): [()]"
OWN = {
    "six-step, blocked in between": ("[(0)]", (256,), (4,), SIX_STEP, "D", 2),
    "six-step, cyclic in and out": (
        "[(0)]",
        (256,),
        (4,),
        "(t s=4): [(),(0)]: fft(t), twiddle\n(b r=4) s: [(),(0),()]: fft(s)\n(s b r): [(0)]",
        "D",
        1,
    ),
    "six-step, n0 and n1 unlike": (
        "[(0)]",
        (72,),
        (3,),
        "(a b=6): [(),(0)]: fft(a), twiddle   # 12 x 6\na b: [(0),()]: fft(b)\n(b a): [(0)]",
        "D",
        1,
    ),
    "six-step from blocks, which is one move more": (
        "block[(0)]",
        (64,),
        (4,),
        "(t s=8): [(),(0)]: fft(t), twiddle\n[(0),()]: fft(1)\n(b a): [(0)]",
        "D",
        2,
    ),
    "from the least significant half, blocked": (
        "block[(0)]",
        (64,),
        (4,),
        "(t s=8): block[(),(0)]: fft(t), twiddle\nblock[(0),()]: fft(1)\n(b a): block[()]",
        "D",
        3,
    ),
    "three digits on one rank": (
        "[(0)]",
        (60,),
        (2,),
        "(a b=3 c=4): [(),(),()]: fft(a), twiddle, fft(b), twiddle, fft(c)\n(c b a): [(0)]",
        "D",
        1,
    ),
    "digits of a digit": (
        "[()]",
        (48,),
        (2,),
        "(a b=12): [(),()]: fft(a), twiddle\na (c d=4): [(0),(),()]: fft(c), twiddle, fft(d)\n(d c a): [(0)]",
        "D",
        0,
    ),
    "rows as published": (
        "(a b) c: block[(0),()]",
        (8, 8, 8),
        (16,),
        "(a b) c: block[(0),()]: fft(c)\n(c a) b: block[(0),()]: fft(b)\n(c b) a: block[(0),()]: fft(a)",
        "D",
        2,
    ),
    "rows of a real tensor": (
        "(a b) c: block[(0),()]",
        (4, 5, 6),
        (3,),
        "(a b) c: block[(0),()]: rfft(c)\n(c a) b: block[(0),()]: fft(b)\n(c b) a: block[(0),()]: fft(a)",
        "d",
        2,
    ),
    "a pencil by another way, on another grid": (
        "block[(0),(1),()]",
        (6, 8, 5),
        (2, 2),
        "block[(0),(1),()]: rfft(2)\non 4 block[(),(0),()]: fft(0)\non 2x2 block[(0),(),(1)]: fft(1)",
        "d",
        2,
    ),
    "one axis in six steps beside a real one": (
        "[(0),()]",
        (16, 7),
        (4,),
        "(a b=4) z: [(),(0),()]: rfft(a, z), twiddle\n(a r=4) s z: [(),(0),(),()]: fft(s)\n(s a r) z: [(0),()]",
        "d",
        1,
    ),
    "two axes, whose digits cross": (
        "[(0),()]",
        (16, 9),
        (4,),
        "(a b=4) c: [(),(0),()]: fft(a, c), twiddle\nc b a: [(),(),(0)]: fft(b)\nc (b a): [(0),()]\n[(),(0)]",
        "D",
        2,
    ),
    "a digit that waits inside a fused mode": (
        "[(0),()]",
        (16, 3),
        (4,),
        "(a b=4) c: [(),(0),()]\na (b c): [(),(0)]: fft(a), twiddle\na b c: [(0),(),()]: fft(b, c)\n(b a) c: [(0),()]",
        "D",
        2,
    ),
    "sizes of a user's own": (
        "[(0:block(1,4,2)),()]",
        (7, 6),
        (3,),
        "[(0:block(1,4,2)),()]: fft(1)\n[(),(0:block(3,0,3))]: fft(0)",
        "D",
        1,
    ),
    "a sum that is left to later": ("[(0),()]", (4, 6), (2,), "[(),()]+(0): fft(0, 1)\n[(0),()]", "D", 1),
    "on the root alone": ("[(0),()]", (4, 6), (2,), "[(),()]|(0): fft(0, 1)\n[(0),()]", "D", 2),
}


@pytest.mark.parametrize("name", OWN)
def test_own_walks_are_the_transform(name):
    """Law: a walk that is accepted is numpy.fft's transform, and back; and its text is a text of the same walk."""
    layout, shape, grid, text, code, moves = OWN[name]

    def program(comm):
        f = FFT(shape, layout, grid, comm, code, algorithm=text)
        array = numbers(shape, code)
        X = f.forward(DistTensor.from_global(array, layout, comm, grid))
        want = np.fft.rfftn(array) if code == "d" else np.fft.fftn(array)
        error = np.abs(X.to_global() - want).max() / np.abs(want).max()
        noise = numbers(X.shape, "D", 1)
        back = f.backward(DistTensor.from_global(noise, X.layout, comm, grid)).to_global()
        want = np.fft.irfftn(noise, shape, range(len(shape))) if code == "d" else np.fft.ifftn(noise)
        again = FFT(shape, layout, grid, comm, code, algorithm=str(f.walk))
        return float(error), float(np.abs(back - want).max()), len(f.moves), again.walk == f.walk

    for error, back, number, same in rote.run(program, prod(grid)):
        assert error < 1e-14 and back < 1e-14 and same
        assert number == moves


def test_a_walk_begins_where_its_text_says():
    """Without a layout, the tensor lies as the first line says."""

    def program(comm):
        f = FFT(256, grid=4, comm=comm, algorithm=SIX_STEP)
        x = DistTensor.from_global(numbers((256,), "D"), f.input_layout, comm)
        return str(f.input_layout), float(np.abs(f.forward(x).to_global() - np.fft.fft(numbers((256,), "D"))).max())

    for layout, error in rote.run(program, 4):
        assert layout == "(t s=4): [(),(0)]" and error < 1e-12


# --- refusals -------------------------------------------------------------------------------------------------------

BACK = "back"  # in place of a dtype: the walk of irfftn
PIECES = "in pieces, .* end it with a line that reads its digits as one mode, the last to be done first"
DUE = "line 1 .* a twiddle is due before the tensor moves on; write twiddle after the transforms"
NOT_DUE = "line 1 .* no twiddle is due; it stands after the transform of a digit that others wait for"
REFUSED = [
    # shape, axes, dtype, text, reason
    ((8, 6), (0, 1), "D", "[(0),()]: fft(0)", "line 1 of the walk, .* mode 0 is not whole on a rank: grid mode 0"),
    ((8, 6), (0, 1), "D", "[(),()]: fft(0)\n[(),(0)]: fft(1)", "line 2 .* mode 1 is not whole on a rank: grid mode 0"),
    ((16,), (0,), "D", "(a b=4): [(),(0)]: fft(a), twiddle, fft(b)", "mode 1 is not whole on a rank: grid mode 0"),
    ((8, 6), (0, 1), "D", "[(0),()]: fft(1)", "the walk leaves out axis 0"),
    ((8,), (0,), "D", "[()]: fft(0)\n(a b=1): [(),()]", "ends with a part of a tile that is no axis, .* leave it out"),
    ((8, 6), (0, 1), "D", "[(0),()]", "the walk leaves out axis 0"),
    ((8,), (0,), "D", "[()]: chirp(0=16)", r"leaves axis 0 padded for a convolution; end it with chirp\(0=8\)"),
    ((8,), (0,), "d", "[()]: complex(0), fft(0)", r"leaves the whole spectrum of the real axis 0; .* fold\(0=5\)"),
    ((5,), (0,), BACK, "[()]: fold(0=8), ifft(0)", "leaves axis 0 complex; write real after its last transform"),
    ((16,), (0,), "D", "(a b=4): [(),()]: fft(a), twiddle\n(b a): [()]", f"axis 0 {PIECES}"),
    ((8, 6), (0, 1), "D", "[(0),()]: fft(1)\n[(0),()]: fft(1)", "line 2 .* mode 1 is already transformed: spectrum"),
    ((16,), (0,), "D", "(a b=4): [(),()]: fft(a), twiddle\n[(),()]: fft(0)", "line 2 .* mode 0 is already transformed"),
    ((16,), (0,), "D", "(a b=4): [(),(0)]: fft(a)\n[(0),()]: fft(1)\n(b a): [()]", DUE),
    ((16,), (0,), "D", "(a b=4): [(),()]: fft(a), fft(b)\n(b a): [()]", "twiddle is due before mode 1 is transformed"),
    ((16,), (0,), "D", "(a b=4): [(),()]: fft(a, b)\n(b a): [()]", "a twiddle is due before mode 1 is transformed; wr"),
    ((8, 6), (0, 1), "D", "[(),()]: fft(0, 1), twiddle", NOT_DUE),
    ((16,), (0,), "D", "(a b=4): [(),()]: twiddle, fft(a), fft(b)\n(b a): [()]", NOT_DUE),
    ((16,), (0,), "D", "(a b=4): [(),()]: fft(a), twiddle, twiddle, fft(b)\n(b a): [()]", NOT_DUE),
    (
        (16,),
        (0,),
        "D",
        "(a b=4): [(),()]: fft(b), twiddle, fft(a)",
        "mode 1 waits for a more significant digit of axis",
    ),
    ((16,), (0,), "D", "(a b=4): [(0),()]: fft(b)\n", "line 1 .* mode 1 waits .*, which mode 0 is"),
    ((16,), (0,), "D", "(a b=4): [(),()]: fft(a), twiddle, fft(b)", f"axis 0 {PIECES}"),
    ((16,), (0,), "D", "(a b=4): [(),()]: fft(a), twiddle, fft(b)\n(a b): [()]", f"axis 0 {PIECES}"),
    ((16, 3), (0, 1), "D", "(a b=4) c: [(),(),()]: fft(a, c), twiddle, fft(b)\n(b c a): [()]", PIECES),
    ((8, 6), (0,), "D", "[(),()]: fft(0, 1)", r"the walk transforms axis 1, which is not among the axes \(0,\)"),
    ((8, 6), (0, 1), "D", "(a b): [()]: fft(0)", "mode 0 is no digit of one axis, but signal .* of axis 0 and signal"),
    ((16,), (0,), "D", "(a b=4): [(),()]: fft(a), twiddle\n(b a): [()]: fft(0)", "mode 0 is no digit of one axis, but"),
    ((16,), (0,), "D", "(a b=4): [(),()]: fft(a), twiddle, ifft(b)", "mode 1 is a digit of axis 0, which fft has beg"),
    ((16,), (0,), "d", "(a b=4): [(),()]: rfft(a)", "rfft takes a whole axis, but mode 0 is signal // 4 % 4 of axis 0"),
    ((16,), (0,), "d", "(a b=4): [(),()]: dct2(a)", "dct2 takes a whole axis, but mode 0 is"),
    ((1, 4), (0, 1), "d", "[(),()]: dct1(0, 1)", "dct1 takes two points or more, but axis 0 has 1"),
    ((8, 6), (0, 1), "d", "[(),()]: fft(0, 1)", "fft takes complex numbers, but they are float64 .* or with rfft"),
    ((8, 6), (0, 1), "D", "[(),()]: rfft(0, 1)", "rfft takes real numbers, but they are complex128 by then; write fft"),
    ((8, 6), (0, 1), "d", "[(),()]: rfft(1), rfft(0)", "rfft takes real numbers, but they are complex128 by then"),
    ((8, 6), (0, 1), "D", "[(),()]: irfft(0, 1)", "irfft along axis 1 restores an extent that nothing says"),
    ((8, 6), (0, 1), BACK, "[(),()]: resize(1=5), irfft(0, 1)", "irfft along axis 1 to 10 points takes 6, not 5"),
    ((8, 6), (0, 1), "D", "[(0),()]: resize(0=10), resample(0=6)", "mode 0 is split, and has .*; write resample below"),
    ((16,), (0,), "D", "(a b=4): [(),()]: resize(a=6)", "resize takes a whole axis, but mode 0 is signal // 4 % 4"),
    ((8, 6), (0, 1), "D", "(a b): [()]: resize(0=6)", "resize takes a whole axis, but mode 0 is signal .* and signal"),
    ((8, 6), (0, 1), "D", "[(),()]: dct2(0), resample(0=6)", "resample is of a spectrum along axis 0; write it after"),
    (
        (8, 7),
        (0, 1),
        "d",
        "[(),()]: rfft(0, 1), resample(1=6)",
        "term along axis 1, which is mixed with others",
    ),
    ((8, 6), (0, 1), "D", "on 3x2 [(0),()]: fft(1)\n[(),(0)]: fft(0)", "grid 3x2 is of 6 ranks, but there are 2"),
    ((8, 6), (0, 1), "D", "[(),()]+prod(0): fft(0, 1)", "the transform of a prod is not the prod of the transforms"),
    ((8, 6), (0, 1), "D", "[(0),(),()]: fft(1)", r"for tensors of order 3, but the shape is \(8, 6\); write one pair"),
    ((8, 6), (0, 1), "D", "[(1),()]: fft(1)", "names grid mode 1, but the grid 2 has order 1"),
    ((36,), (0,), "D", "(a b=5): [(),()]: fft(a)", r"extent 36, which \(a b=5\) does not divide; 35 or 40 would"),
    (
        (8, 18),
        (0, 1),
        "D",
        "a (b c=6): [(),(),()]: fft(b), twiddle\n(b c) a: [(),()]\n(d e=4) a: [(),(),()]",
        "line 3 .* the shape is",
    ),
]


def refusal(shape, axes, dtype, text):
    """The error that a walk's text is refused with, on two ranks."""

    def program(comm):
        layout = f"[{','.join(['()'] * len(shape))}]"
        if dtype == BACK:
            return irfftn(DistTensor.zeros(shape, layout, comm=comm), axes=axes, algorithm=text)
        return FFT(shape, layout, (2,), comm, dtype, axes, text)

    with pytest.raises(rote.LayoutError) as error:
        rote.run(program, 2)
    return error.value


@pytest.mark.parametrize(("shape", "axes", "dtype", "text", "reason"), REFUSED)
def test_wrong_walks_are_refused(shape, axes, dtype, text, reason):
    """Law: a walk that is no transform of its axes is refused before it runs, and the reason is said."""
    said = str(refusal(shape, axes, dtype, text))
    assert re.search(reason, said, re.DOTALL), said


def test_walks_take_the_new_kinds():
    """The layouts of a walk's lines are layouts: `[(0:block(ceil)),()]: fft(1)` is a stage."""
    text = "block(ceil)[(0),()]: fft(1)\n[(),(0:cyclic(2,at=1))]: fft(0)"
    assert unparse_walk(parse_walk(text.replace("=1", " = 1 "))) == "\n".join(
        ["block(ceil)[(0),()]: fft(1)", "cyclic(2,at=1)[(),(0)]: fft(0)"]
    )
    array = np.random.default_rng(4).standard_normal((7, 6)).astype("c16")

    def program(comm):
        f = rote.fft.FFT((7, 6), comm=comm, algorithm=text)
        return np.allclose(
            f.forward(rote.DistTensor.from_global(array, f.input_layout, comm)).to_global(), np.fft.fftn(array)
        )

    assert rote.run(program, ranks=3) == [True] * 3
