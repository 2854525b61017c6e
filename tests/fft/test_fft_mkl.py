"""MKL: it has plans along a few axes at most, and ends a process that lacks one of its files."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rote
from rote.fft.kernels.backends import library, mkl
from rote.fft.kernels.backends.library import KernelConfig
from rote.fft.kernels.kernel import Kernel
from rote.fft.kernels.passes import prepare


@pytest.mark.parametrize("order", [7, 8, 9])
def test_transforms_have_any_number_of_axes(order: int) -> None:
    """Law: along any number of axes of one block, transforms are NumPy's, complex and real, there and back."""
    shape = (2,) * (order - 1) + (3,)
    block = np.random.default_rng(order).random(shape)
    layout = f"[{','.join(['()'] * order)}]"
    x = rote.DistTensor.from_global(block, layout, comm=rote.runtime.alone())
    half = rote.fft.rfftn(x)
    assert np.allclose(half.to_global(), np.fft.rfftn(block), atol=1e-11)
    assert np.allclose(rote.fft.irfftn(half, s=shape).to_global(), block, atol=1e-13)
    whole = rote.fft.fftn(x)
    assert np.allclose(whole.to_global(), np.fft.fftn(block), atol=1e-11)
    assert np.allclose(rote.fft.ifftn(whole).to_global(), block, atol=1e-13)


@pytest.mark.parametrize("planes, columns, calls", [(64, 33, 64), (64, 8, 64), (64, 7, 7), (2, 3, 2)])
def test_columns_side_by_side_are_one_call(planes: int, columns: int, calls: int) -> None:
    """Law: MKL repeats along columns that share cache lines, though there are more planes, unless they are few."""
    if not library("mkl").version():  # not installed
        return
    block = np.random.default_rng(planes).random((planes, 16, columns)).astype("c16")
    kernel = Kernel("fft", (1,), block.shape, block.shape, block.dtype, KernelConfig("mkl"))
    plan, found = prepare(kernel, (1,), block, block, 1), np.empty_like(block)
    assert len(plan._starts) == calls
    prepare(kernel, (1,), block, found, 1)(block, found)()
    assert np.allclose(found, np.fft.fft(block, axis=1))


def test_a_process_without_a_folder_does_without(tmp_path: Path) -> None:
    """Law: in a folder that was removed, where MKL would end the process, other libraries transform."""
    program = """if True:
        import os, sys
        os.mkdir(sys.argv[1]); os.chdir(sys.argv[1]); os.rmdir(sys.argv[1])
        import numpy as np, rote
        from rote.fft.kernels.backends import library
        x = rote.DistTensor.from_function(lambda i, j: i + 1j * j, (64, 64), "[(),()]")
        assert np.allclose(rote.fft.fftn(x).to_global(), np.fft.fftn(x.local)) and not library("mkl").version()
        print("transformed")
    """
    folder = str(tmp_path / "gone")
    done = subprocess.run([sys.executable, "-c", program, folder], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "transformed\n"), done.stderr


def test_a_partial_install_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Law: where one of MKL's files is not there, MKL is not loaded, for some would end the process."""
    needed = ("core", "sequential", "intel_lp64", "rt", "def")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(site, "getuserbase", lambda: str(tmp_path / "none"))
    monkeypatch.setattr(os, "fsencode", lambda path: pytest.fail(f"{path} is opened"))
    for missing in needed:
        shutil.rmtree(tmp_path / "lib", ignore_errors=True)
        (tmp_path / "lib").mkdir()
        for name in needed:
            (tmp_path / "lib" / f"libmkl_{name}.so.3").touch()
        (tmp_path / "lib" / f"libmkl_{missing}.so.3").unlink()
        assert mkl._interface.__wrapped__() is None
