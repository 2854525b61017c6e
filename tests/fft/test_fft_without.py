"""FFTs without pyfftw, which has no wheels for some versions of Python: other libraries transform everything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

PROGRAM = """
import sys
import rote.host

installed, absent = rote.host.installed, sys.argv[2].split()
rote.host.installed = lambda package: "" if package in absent else installed(package)
sys.modules.update(dict.fromkeys(absent))  # to import one is an ImportError

import numpy as np
import rote
from rote import fft

if "fftw3" in absent:
    import rote.fft.kernels.backends.system as system
    system._opened = lambda named: "not installed"

KINDS = {
    "complex": (fft.fftn, fft.ifftn, "c16"), "real": (fft.rfftn, lambda y: fft.irfftn(y, s=(12, 9, 8)), "f8"),
    "single": (fft.fftn, fft.ifftn, "c8"), "long": (fft.fftn, fft.ifftn, "G"), "dht": (fft.dht, fft.dht, "f8"),
    **{f"dct{n}": (lambda x, n=n: fft.dctn(x, n), lambda y, n=n: fft.idctn(y, n), "f8") for n in (1, 2, 3, 4)},
    **{f"dst{n}": (lambda x, n=n: fft.dstn(x, n), lambda y, n=n: fft.idstn(y, n), "f8") for n in (1, 2, 3, 4)},
}


def program(comm):
    results, libraries = {}, set()
    for name, (forward, backward, dtype) in KINDS.items():
        x = rote.DistTensor.from_function(lambda i, j, k: np.sin(i + 2.0 * j * k), (12, 9, 8), "block[(0),(),()]", comm)
        try:
            y = forward(x.astype(dtype))
        except rote.RoteError as error:
            assert name.startswith("d") and "no installed library has" in str(error), error
        else:
            results[name] = y.to_global(), backward(y).to_global()
    for options in ({"threads": 2}, {"tune": "measure"}):
        plan = fft.FFT((16, 12, 8), "block[(0),(),()]", comm=comm, **options)
        plan.forward(plan.empty_input())
        libraries |= set(plan.libraries)
    return results, libraries


(results, libraries), *_ = rote.run(program, 2)
assert not libraries & set(absent), libraries
np.savez(sys.argv[1], **{f"{name}-{n}": each for name, both in results.items() for n, each in enumerate(both)})
"""


def results(path: Path, absent: str) -> dict[str, np.ndarray]:
    """All transforms on two in-process ranks, in a process that does not have some libraries."""
    subprocess.run([sys.executable, "-c", PROGRAM, path, absent], check=True)
    with np.load(path) as kept:
        return dict(kept)


def test_transforms_are_those_of_the_libraries_that_are_there(tmp_path: Path) -> None:
    """Law: without some libraries, transforms are equal to rounding; an error says which kinds NumPy has not."""
    expected = results(tmp_path / "all.npz", "")
    assert len(expected) == 26
    for absent, kinds in (("pyfftw", 13), ("pyfftw fftw3", 13), ("pyfftw fftw3 ducc0 scipy", 5)):
        others = results(tmp_path / "some.npz", absent)
        assert len(others) == 2 * kinds
        for name, array in others.items():
            tolerance = 1e-5 if name.startswith("single") else 1e-12
            assert array.dtype == expected[name].dtype
            np.testing.assert_allclose(array, expected[name], rtol=0, atol=tolerance * np.abs(expected[name]).max())
