"""The applications of the book, at small size: against their serial twins, published figures, and themselves."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from argparse import Namespace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import rote

APPS = Path(__file__).parents[2] / "notebooks" / "apps"
DEALIASED = ["2/3", pytest.param("3/2", marks=pytest.mark.slow)]


def app(name: str) -> ModuleType:
    """An application, as a module."""
    spec = importlib.util.spec_from_file_location(name, APPS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def options(**given: object) -> Namespace:
    usual = {
        "n": 16,
        "re": 1600,
        "dt": 0.01,
        "steps": 10,
        "dealias": "2/3",
        "save": 1000,
        "folder": ".",
        "resume": False,
    }
    return Namespace(**{**usual, **given})


def twin(n: int, steps: int, dt: float, nu: float) -> list[float]:
    """Energies of the Taylor-Green vortex by NumPy alone: full spectra, the convective products of u and its curl."""
    k = np.stack(np.meshgrid(*[np.fft.fftfreq(n, 1 / n)] * 3, indexing="ij"))
    odd = np.where(abs(k) == n / 2, 0, k)
    k2, kept = np.sum(odd**2, 0), np.all(abs(k) < n / 3, 0)

    def slope(u):
        real, curl = (np.fft.ifftn(a, axes=(1, 2, 3)).real for a in (u, 1j * np.cross(odd, u, axis=0)))
        rate = kept * np.fft.fftn(np.cross(real, curl, axis=0), axes=(1, 2, 3))
        return rate - odd * np.sum(odd * rate, 0) / np.where(k2 == 0, 1, k2) - nu * k2 * u

    x, y, z = 2 * np.pi / n * np.mgrid[:n, :n, :n]
    u = np.stack([np.sin(x) * np.cos(y) * np.cos(z), -np.cos(x) * np.sin(y) * np.cos(z), 0 * x])
    u, energies = np.fft.fftn(u, axes=(1, 2, 3)), []
    for step in range(steps + 1):
        if step % 10 == 0:
            energies.append(0.5 * np.mean(np.sum(np.fft.ifftn(u, axes=(1, 2, 3)).real ** 2, 0)))
        a = slope(u)
        b = slope(u + dt / 2 * a)
        c = slope(u + dt / 2 * b)
        u = u + dt / 6 * (a + 2 * b + 2 * c + slope(u + dt * c))
    return energies


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_vortex_is_that_of_its_serial_twin(ranks):
    """Law: the energies are those of a program of NumPy alone, to rounding."""
    lines = rote.run(app("taylor_green").program, ranks, (options(steps=20, dt=0.05),))[0]
    np.testing.assert_allclose([energy for _, energy, _ in lines], twin(16, 20, 0.05, 1 / 1600), rtol=1e-13)


@pytest.mark.parametrize("dealias", DEALIASED)
def test_the_vortex_has_the_published_energy(dealias):
    """Law: n=32, dt=0.01 gives at t=0.1 the figures that spectralDNS's demo/TG.py is held to: to 12 and to 9 digits."""
    *_, (step, energy, enstrophy) = rote.run(app("taylor_green").program, 2, (options(n=32, dealias=dealias),))[0]
    assert (step, round(energy, 12), round(enstrophy, 9)) == (10, 0.124953117517, 0.375249931)


@pytest.mark.parametrize("dealias", DEALIASED)
def test_a_vortex_goes_on_where_it_was_stopped(dealias, tmp_path):
    """Law: ten steps on two ranks, a checkpoint, and ten on three or four leave the bits of twenty on two."""
    program, files = app("taylor_green").program, []
    for name, ranks in (("straight", 2), ("on-3", 3), ("on-4", 4)):
        (tmp_path / name).mkdir()
        given = {"folder": tmp_path / name, "save": 10, "dealias": dealias}
        rote.run(program, 2, (options(**given, steps=20 if name == "straight" else 10),))
        rote.run(program, ranks, (options(**given, steps=20, resume=True),))
        files.append((tmp_path / name / "taylor-green-000020.npy").read_bytes())
    assert files[0] == files[1] == files[2]


def test_poisson_is_exact():
    """Law: the solution of a few modes comes out to rounding, for any extents and ranks."""
    for shape, ranks in (((16, 12, 20), 4), ((11, 8, 9), 3), ((12, 12, 11), 1)):
        assert rote.run(app("poisson").program, ranks, (shape,))[0] < 1e-13


def test_heat_flows_alike_by_cells_and_by_modes():
    """Law: fifty steps of a stencil with ghost cells are one product of the spectrum, on any grid, to rounding."""
    for shape, ranks in (((24, 20), 4), ((9, 7), 3), ((5, 8), 6)):
        assert rote.run(app("heat").program, ranks, (shape, 50, 0.2))[0] < 1e-14


def test_a_volume_is_smoothed_from_file_to_file(tmp_path):
    """Law: the file written on three ranks is that of SciPy's formula on the file read: a product of spectra."""
    source, target = tmp_path / "volume.zarr", tmp_path / "smooth.zarr"
    rote.run(app("smooth").program, 3, (source, target, 1.5, (12, 10, 9)))
    volume, result = (rote.load(path, "[(),(),()]").to_global() for path in (source, target))
    factor = np.ones(volume.shape)
    for axis, n in enumerate(volume.shape):
        k = 2 * np.pi * np.fft.fftfreq(n)
        factor *= np.exp(-0.5 * (1.5 * k) ** 2).reshape([-1 if a == axis else 1 for a in range(3)])
    np.testing.assert_allclose(result, np.fft.ifftn(factor * np.fft.fftn(volume)).real, atol=1e-14)


@pytest.mark.parametrize(
    ("ranks", "occupied", "virtual"),
    [(3, 3, 5), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((4, 4, 6), (6, 2, 7)))],
)
def test_coupled_cluster_is_that_of_numpy(ranks, occupied, virtual):
    """Law: amplitudes and energies are NumPy's on any grid, and a solution leaves no residual."""
    energy, expected, left = rote.run(app("ccd").program, ranks, (occupied, virtual, 8))[0]
    assert abs(energy - expected) < 1e-12
    assert energy < 0
    assert left < 1e-4


def test_two_electrons_have_no_pairs_of_pairs():
    """Law: of two electrons CCD is exact, so its terms of second order leave -E t for any amplitudes t."""
    ccd = app("ccd")
    V, gaps = ccd.random_molecule(2, 6)
    t = V["oovv"] + np.linspace(1, 2, 6) * np.linspace(1, 2, 6)[:, None] * V["oovv"]
    every = ccd.residual(np.einsum, V, gaps, t)
    ccd.TERMS = [term for term in ccd.TERMS if term[1].count(",") == 1]
    assert len(ccd.TERMS) == 3
    energy = (V["oovv"] * t).sum() / 4
    np.testing.assert_allclose(every - ccd.residual(np.einsum, V, gaps, t), -energy * t, atol=1e-14)


@pytest.mark.parametrize(("ranks", "orbitals"), [(4, 8), pytest.param(3, 7, marks=pytest.mark.slow)])
def test_mp2_is_that_of_numpy(ranks, orbitals):
    """Law: the energy of integrals that went to molecular orbitals over the ranks is NumPy's."""
    energy, expected = rote.run(app("mp2").program, ranks, (orbitals, 3))[0]
    assert energy < 0
    assert abs(energy - expected) < 1e-12 * abs(expected)


def test_a_tensor_comes_apart_into_its_outer_products():
    """Law: sweep by sweep the errors are NumPy's, and they fall."""
    for ranks, shape in ((4, (8, 7, 6)), (3, (9, 5, 4)), (6, (6, 6, 6))):
        errors, expected = rote.run(app("mttkrp").program, ranks, (shape, 2, 4))[0]
        np.testing.assert_allclose(errors, expected, rtol=1e-6)
        assert errors == sorted(errors, reverse=True)


def test_attention_over_heads_moves_nothing():
    """Law: where batch letters are split a rank has all that it multiplies; where positions are, it has not."""
    for ranks, shape in ((4, (2, 4, 10, 3)), (6, (2, 3, 7, 4))):
        heads, positions = rote.run(app("attention").program, ranks, (shape,))[0].values()
        assert heads == 0 < positions


@pytest.mark.parametrize(
    "name", ["every_element_has_one_owner", "columns_are_centred", "any_tensor_comes_into_the_layout"]
)
def test_a_layout_of_ones_own(name):
    """Law: the property tests of the book hold."""
    getattr(app("test_my_layout"), f"test_{name}")()


@pytest.mark.mpi
@pytest.mark.parametrize("job", [2], indirect=True)
@pytest.mark.parametrize(
    "command",
    [
        ("taylor_green", "--n", "16", "--steps", "2"),
        ("poisson", "--shape", "12", "16", "10"),
        ("heat", "--steps", "5"),
        ("ccd", "--virtual", "6", "--iterations", "2"),
        ("mp2", "--orbitals", "8"),
        ("orbitals", "--n", "80"),
        ("mttkrp", "--sweeps", "2"),
        ("attention",),
    ],
    ids=lambda c: c[0],
)
def test_the_same_file_runs_under_mpi(job, command, monkeypatch, capsys):
    """Law: started by mpiexec, or on in-process ranks, an application prints the same."""
    script, *arguments = (APPS / f"{command[0]}.py", *command[1:], "--ranks", "2")
    done = job.run(script, *arguments)
    assert done.returncode == 0, done.stderr
    monkeypatch.setattr(sys, "argv", [str(script), *arguments])
    runpy.run_path(str(script), run_name="__main__")
    assert done.stdout == capsys.readouterr().out != ""
