"""The start of a program: what its first transform imports, and what it leaves to those who want more."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import sys
import numpy as np
from rote.fft import FFT

f = FFT((6, 5, 8), dtype="f8")
x = f.empty_input()
x.local[...] = np.random.default_rng(0).standard_normal(x.shape)
assert np.allclose(f.forward(x).to_global(), np.fft.rfftn(x.local))
others = {"scipy", "lark", "click", "rich", "mpi4py", "importlib.metadata", "statistics", "logging"}
assert not others & sys.modules.keys()
used = sys.modules["pyfftw.pyfftw"]

import pyfftw

assert pyfftw.pyfftw is used and pyfftw.FFTW is used.FFTW
assert pyfftw.__version__ and pyfftw.builders.rfftn and pyfftw.interfaces.scipy_fft.rfftn
assert np.allclose(pyfftw.interfaces.numpy_fft.rfftn(x.local), np.fft.rfftn(x.local))
"""


def test_a_first_transform_imports_no_more_than_it_runs() -> None:
    """Law: FFT plans and runs without SciPy, lark and MPI; pyfftw is whole for whoever imports it afterwards."""
    env = {**os.environ, "ROTE_WISDOM": ""}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
