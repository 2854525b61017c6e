"""How much of the house two calls pass: a redistribution and a transform, the first time, again, and in a loop.

Whoever steps through a call wants to see few files; and each Python function costs what small tensors take.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys
import rote
from rote.fft import fftn
from rote.fft.kernels import backends

backends.processor = lambda: ""  # of no maker's: so FFTW transforms, which is everywhere
HOMES = tuple(sys.modules[name].__path__[0] for name in ("rote", "rote.fft", "rote.grammar"))


def passed(call):
    "The code of the product that a call passes on this rank."
    codes = set()

    def see(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(HOMES):
            codes.add(frame.f_code)

    sys.setprofile(see)
    try:
        call()
    finally:
        sys.setprofile(None)
    return codes


def program(comm):
    x = rote.DistTensor.from_function(lambda i, j, k: i + j + k, (16, 12, 8), "block[(0),(),()]", comm)
    call = {"redistribute": lambda: x.redistribute("block[(),(0),()]"), "fftn": lambda: fftn(x)}[sys.argv[1]]
    kept = []  # so that the second call's new block lies elsewhere
    first, second = [passed(lambda: kept.append(call())) for _ in range(2)]
    later = [passed(call) for _ in range(40)]
    return first, second, min(later, key=len)  # where new blocks lie is the system's affair


# What one rank works out, the other one only waits for: so both are looked at.
both = [set.union(*ranks) for ranks in zip(*rote.run(program, 2), strict=True)]
print(json.dumps([[len({code.co_filename for code in codes}), len(codes)] for codes in both]))
"""
MOST = {"redistribute": ((45, 484), (15, 38), (13, 30)), "fftn": ((72, 830), (18, 46), (14, 29))}


@pytest.mark.parametrize("call", MOST)
def test_few_files_and_functions_are_passed(call: str) -> None:
    """Law: two in-process ranks together pass no more files and functions than these.

    The second call works on a block that lies elsewhere, and of many later ones one where another has lain before.
    """
    done = subprocess.run([sys.executable, "-c", PROGRAM, call], capture_output=True, text=True, check=True)
    for seen, most in zip(json.loads(done.stdout), MOST[call], strict=True):
        assert seen[0] <= most[0] and seen[1] <= most[1], f"{call} passes {seen} files and functions, at most {most}"
        assert seen[0] > 5 and seen[1] > 20, "the trace sees nothing"
