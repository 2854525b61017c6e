"""MKL: it has plans along a few axes at most, and ends a process that lacks one of its files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import rote
from rote import host
from rote.cli import doctor
from rote.fft.kernels import choose
from rote.fft.kernels.backends import library, mkl
from rote.fft.kernels.backends.library import KernelConfig
from rote.fft.kernels.kernel import Kernel
from rote.fft.kernels.passes import prepare
from rote.fft.transforms import Kind
from rote.runtime.comm.protocol import Comm


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


NEEDED = ("core", "sequential", "intel_lp64", "rt", "def")


def package_in(folder: Path, names: Sequence[str]) -> None:
    """A package mkl in a folder of packages, whose list of files says that its libraries are in another folder."""
    (folder / "mkl-2026.2.0.dist-info").mkdir(parents=True)
    listed = "".join(f"../../libmkl_{name}.so.3,,\n" for name in names)
    (folder / "mkl-2026.2.0.dist-info" / "RECORD").write_text(listed)
    (folder / "mkl-2026.2.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mkl\nVersion: 2026.2.0\n")


@pytest.fixture
def fresh() -> Iterator[None]:
    """What is known of installed packages, and of MKL, is looked up anew, and again after the test."""
    caches = (mkl._opened, host.installed)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("missing", NEEDED)
def test_a_partial_install_is_none(missing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Law: where one of MKL's files is not there, MKL is not loaded, for some would end the process; doctor says so."""
    package_in(tmp_path / "python" / "packages", NEEDED)
    for name in {*NEEDED} - {missing}:
        (tmp_path / f"libmkl_{name}.so.3").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "python" / "packages")])
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "none"))
    monkeypatch.setattr(os, "fsencode", lambda path: pytest.fail(f"{path} is opened"))
    backend = library("mkl")
    assert (host.installed("mkl"), backend.loads, backend.version()) == ("2026.2.0", False, "")
    assert not any(backend.does(kind, np.dtype("d")) for kind in ("fft", "rfft", "irfft", "dct2"))
    with pytest.raises(ImportError, match=rf"no file libmkl_{missing}\.so is where the package mkl has its files"):
        backend.load()


@pytest.mark.usefixtures("fresh")
def test_broken_files_are_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Law: where MKL's files cannot be opened, other libraries transform, and doctor says what the system says."""
    package_in(tmp_path / "python" / "packages", NEEDED)
    for name in NEEDED:
        (tmp_path / f"libmkl_{name}.so.3").write_text("no library")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "python" / "packages"), *sys.path])
    assert library("mkl").version() == ""
    assert doctor._unloadable() == ["mkl"]
    (finding,) = (each for each in doctor.findings() if each.subject == "mkl")
    assert (finding.state, finding.hint) == ("missing", "pip install --force-reinstall mkl")
    assert "libmkl_core.so.3" in finding.result


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("kind", ["fft", "rfft"])
def test_times_of_a_library_that_loads_elsewhere_are_not_taken(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: where kept times say that MKL is the fastest, and it cannot be loaded here, another library transforms."""
    monkeypatch.setattr(metadata, "distributions", lambda name: [])
    monkeypatch.setattr(sys, "prefix", "none")
    x = np.random.default_rng(1).random((64, 64)).astype("d" if kind == "rfft" else "D")
    monkeypatch.setattr(choose, "recalled", lambda comm, key, read: {"mkl": (0.1, 0.1), "pyfftw": (1.0, 1.0)})

    def program(comm: Comm) -> tuple[str, ...]:
        f = rote.fft.FFT(x.shape, "block[(0),()]", comm=comm, dtype=x.dtype, axes=(1,))
        y = f.forward(rote.DistTensor.from_global(x, f.input_layout, comm))
        assert np.allclose(y.to_global(), getattr(np.fft, kind)(x)) and np.allclose(f.backward(y).to_global(), x)
        return f.libraries

    assert rote.run(program, 2) == [("pyfftw",)] * 2


def test_mkl_is_found_where_its_package_is(tmp_path: Path) -> None:
    """Law: an environment over another one sees its packages, and MKL's libraries where these say, not in its own."""
    if not library("mkl").version():  # not installed
        return
    program = """if True:
        import sys
        sys.prefix = sys.argv[1]  # as in an environment over this one
        from rote.fft.kernels.backends import library
        print(bool(library("mkl").version()))
    """
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
