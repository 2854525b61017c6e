"""The pictures of the gallery and the tutorial: what the programs of `notebooks/apps` compute, drawn small.

`draw.py` writes them. Each function runs one program on ranks that are threads, on small sizes.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import rote

APPS = Path(__file__).parents[1] / "apps"


def app(name: str) -> ModuleType:
    """A program of the book, as a module."""
    spec = importlib.util.spec_from_file_location(name, APPS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def images(width: float = 4.0, **named: Any) -> Figure:
    """Matrices side by side, each in its own range of colours."""
    figure = Figure((width, 2.3), layout="constrained")
    for ax, (title, values) in zip(figure.subplots(1, len(named), squeeze=False)[0], named.items(), strict=True):
        ax.imshow(values, interpolation="nearest")
        ax.set(title=title.replace("_", " "), xticks=[], yticks=[])
    return figure


def curve(values: Any, what: str, over: str) -> Figure:
    """Positive numbers over their index, on a logarithmic axis."""
    figure = Figure((4.4, 2.3), layout="constrained")
    ax = figure.subplots()
    ax.semilogy(range(1, 1 + len(values)), values, "o-")
    ax.set(xlabel=over, ylabel=what)
    return figure


def bars(named: dict[str, float], what: str) -> Figure:
    """Numbers with names, as horizontal bars."""
    figure = Figure((4.4, 1.6), layout="constrained")
    ax = figure.subplots()
    ax.barh(range(len(named)), [*named.values()], tick_label=[*named])
    ax.set_xlabel(what)
    return figure


def lowpass() -> Figure:
    """The tutorial: a slice with noise, the slice after the filter, and the power in each shell of wavenumbers."""
    z, y, x = 2 * np.pi * np.indices((64, 64, 64)) / 64
    wave = np.sin(2 * x) * np.cos(2 * y) + np.sin(2 * y) * np.cos(2 * z) + np.sin(2 * z) * np.cos(2 * x)
    volume = wave + np.random.default_rng(0).standard_normal(wave.shape)
    f = rote.fft.FFT(volume.shape, "block[(0),(),()]", dtype="f8", norm="forward")
    X = f.forward(rote.DistTensor.from_global(volume, f.input_layout))
    X[sum(k**2 for k in f.wavenumbers()) > 8**2] = 0

    figure = Figure((5.8, 1.9), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    left.imshow(volume[0, :48, :48], interpolation="nearest")
    middle.imshow(f.backward(X).to_global()[0, :48, :48], interpolation="nearest")
    right.semilogy(range(1, 9), f.shell_sums(abs(X) ** 2)[1:9], "o-")
    return figure


def taylor_green() -> Figure:
    """The vorticity along z in a slice of the vortex, at the beginning and at t = 2."""
    vortex = app("taylor_green")

    def slices(comm: Any) -> list[Any]:
        solver = vortex.Solver(comm, 32)
        u = solver.start()
        drawn = []
        for step in range(21):
            if step in (0, 20):
                curl = rote.DistTensor(solver.curl(u.local), u.distribution, comm)
                drawn.append(solver.fft.backward(curl).to_global()[2, :, :, 4])
            solver.advance(u, 0.1)
        return drawn

    begin, end = rote.run(slices, ranks=2)[0]
    return images(vorticity_at_t_0=begin, at_t_2=end)


def poisson() -> Figure:
    """A right-hand side, and the solution that sines, cosines and Fourier modes find."""
    box, n = app("poisson"), 48

    def slices(comm: Any) -> tuple[Any, Any]:
        kinds = {0: "dst2", 1: "dct2", 2: "rfft"}
        fft = rote.fft.FFT((n, n, n), comm=comm, dtype="f8", kinds=kinds, norm="forward")
        value = lambda i, j, k: box.exact((i + 0.5) / n, (j + 0.5) / n, k / n)[1]
        f = rote.DistTensor.from_function(value, (n, n, n), fft.input_layout, comm, fft.grid)
        return f.to_global()[:, :, 3], box.solve(f, fft).to_global()[:, :, 3]

    right, solution = rote.run(slices, ranks=2)[0]
    return images(right_side=right, solution=solution)


def heat() -> Figure:
    """A field of numbers that look random, and the same after 50 steps of the stencil."""
    steps = app("heat")

    def fields(comm: Any) -> tuple[Any, Any]:
        u = rote.DistTensor.from_function(lambda i, j: (i * j) % 7 - 3.0, (60, 60), "block[(0),(1)]", comm)
        before = u.to_global()
        return before, steps.by_stencil(u, 50, 0.2).to_global()

    before, after = rote.run(fields, ranks=4)[0]
    return images(before=before, after_50_steps=after)


def smooth() -> Figure:
    """A slice of a volume, and of the volume after a Gaussian of two voxels."""
    filtered = app("smooth")

    def slices(comm: Any) -> tuple[Any, Any]:
        make = lambda i, j, k: np.cos(i * i + j * k)
        volume = rote.DistTensor.from_function(make, (64, 64, 64), "block[(0),(),()]", comm)
        return volume.to_global()[:, :, 5], filtered.smooth(volume, 2.0).to_global()[:, :, 5]

    volume, result = rote.run(slices, ranks=4)[0]
    return images(volume=volume, smooth=result)


def ccd() -> Figure:
    """How far the energy of each iteration is from the last one's."""
    program = app("ccd")
    energies = [rote.run(program.program, 4, (4, 10, count))[0][0] for count in range(1, 10)]
    return curve([abs(energy - energies[-1]) for energy in energies[:-1]], "error of the energy", "iterations")


def mp2() -> Figure:
    """The energy of each pair of occupied orbitals."""
    program, occupied = app("mp2"), 6
    pqrs, Co, Cv, e = program.random_molecule(14, occupied)
    pairs = np.einsum(program.TRANSFORM, pqrs, Co, Cv, Co, Cv, optimize=True)
    o, v = e[:occupied], e[occupied:]
    gaps = o[:, None, None, None] + o[:, None] - v[:, None, None] - v
    terms = pairs * (2 * pairs - pairs.transpose(0, 3, 2, 1)) / gaps
    return images(2.0, energies_of_pairs=terms.sum(axis=(1, 3)))


def mttkrp() -> Figure:
    """The error of a decomposition after each sweep."""
    program = app("mttkrp")
    return curve(rote.run(program.program, 4, ((24, 20, 16), 3, 8))[0][0], "relative error", "sweeps")


def orbitals() -> Figure:
    """Overlaps of basis functions, and the density matrix of the occupied orbitals."""
    molecule, n = app("orbitals"), 40

    def matrices(comm: Any) -> tuple[Any, Any]:
        S = rote.DistTensor.from_function(molecule.overlap, (n, n), molecule.TILES, comm)
        F = rote.DistTensor.from_function(molecule.fock, (n, n), molecule.TILES, comm)
        with rote.config(implicit="allow", gather="allow"):
            C = rote.linalg.eigh(F, S, subset_by_index=(0, n // 4 - 1))[1]
            return S.to_global(), (2 * C @ C.T).to_global()

    overlap, density = rote.run(matrices, ranks=4)[0]
    return images(overlap=overlap, density=density)


def attention() -> Figure:
    """The bytes that a rank receives where heads are split, and where positions are."""
    received = rote.run(app("attention").program, 4, ((2, 4, 48, 16),))[0]
    return bars(received, "bytes that a rank receives")


PICTURES: dict[str, Callable[[], Figure]] = {
    f"{picture.__name__}.png": picture
    for picture in (lowpass, taylor_green, poisson, heat, smooth, ccd, mp2, mttkrp, orbitals, attention)
}
