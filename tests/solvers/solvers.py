"""Whole solvers, each one program of NumPy over a space: the Taylor-Green vortex, Poisson's equation, a product.

    mpiexec -n 2 python solvers.py taylor-green rote --n 64
    python solvers.py taylor-green scipy --n 64 --updates plain

prints one JSON object: the energy at the end, and the seconds from the start of the process until modules were there,
all was planned, the first right-hand side was done, and the end. `ROTE_SOLVERS_START` is that start, by time.time().
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module

import numpy as np
from spaces import SPACES, Array, Space

_TILE = 1 << 16  # bytes of an array's part that is worked on at once: all that take part stay in the second-level cache
_WEIGHTS = ((1 / 6, 0.5), (1 / 3, 0.5), (1 / 3, 1.0), (1 / 6, 0.0))  # of the classical Runge-Kutta method
_NU, _DT = 1 / 1600, 0.01


class TaylorGreen:
    """The incompressible Navier-Stokes equations in rotational form (Mortensen and Langtangen 2016, section 2).

    A right-hand side takes six inverse transforms, of velocity and vorticity, and three forward ones, of their product.
    """

    def __init__(self, space: Space, plain: bool) -> None:
        self.space, self.rates = space, self._whole if plain else self._tiled
        self.U, self.W = space.empty(3), space.empty(3)
        self.u, self.start, self.end, self.rate = (space.empty_spectrum(3) for _ in range(4))
        k = [np.where(abs(each) == space.n / 2, 0.0, each) for each in space.modes()]
        self.k, self.k2 = k, k[0] ** 2 + k[1] ** 2 + k[2] ** 2
        kept = [(abs(each) < space.n / 3).astype(float) for each in space.modes()]
        self.kept = kept[0] * kept[1] * kept[2]
        self.inverse_k2 = 1 / np.where(self.k2 == 0, 1, self.k2)
        x, y, z = space.grid()
        self.U[0] = np.sin(x) * np.cos(y) * np.cos(z)
        self.U[1] = -np.cos(x) * np.sin(y) * np.cos(z)
        self.U[2] = 0
        self._both(space.forward, self.U, self.u)
        # The last axis of real numbers is twice as long: real and imaginary part, which a real factor scales alike.
        # Mode 0 has no pressure, which therefore may be divided by almost nothing.
        self._k = [k[0], k[1], np.repeat(k[2], 2, axis=2)]
        planes = self._k[1] ** 2 + self._k[2] ** 2 + 1e-300, kept[1] * np.repeat(kept[2], 2, axis=2)
        self._tables = (k[0] ** 2, kept[0]), planes

    @staticmethod
    def _both(transform: Callable[[Array, Array], object], fields: Array, spectra: Array) -> None:
        for field, spectrum in zip(fields, spectra, strict=True):
            transform(field, spectrum)

    def slope(self, weight: float, length: float, first: bool) -> None:
        """Add one of the four slopes of a step to its end, and go from its start to where the next slope is taken."""
        self.rates(weight * _DT, length * _DT, first)

    def advance(self) -> None:
        """One step in time."""
        for number, (weight, length) in enumerate(_WEIGHTS):
            self.slope(weight, length, number == 0)

    def _whole(self, weight: float, length: float, first: bool) -> None:
        """Plain NumPy on whole arrays, as spectralDNS and the demo of mpi4py-fft have it."""
        space, (kx, ky, kz), u, d = self.space, self.k, self.u, self.rate
        if first:
            self.start[:] = self.end[:] = u
        self._both(space.backward, u, self.U)
        space.backward(1j * (ky * u[2] - kz * u[1]), self.W[0])
        space.backward(1j * (kz * u[0] - kx * u[2]), self.W[1])
        space.backward(1j * (kx * u[1] - ky * u[0]), self.W[2])
        U, W = self.U, self.W
        space.forward(U[1] * W[2] - U[2] * W[1], d[0])
        space.forward(U[2] * W[0] - U[0] * W[2], d[1])
        space.forward(U[0] * W[1] - U[1] * W[0], d[2])
        d *= self.kept
        pressure = (kx * d[0] + ky * d[1] + kz * d[2]) * self.inverse_k2
        for k, each in zip(self.k, d, strict=True):
            each -= pressure * k
        d -= _NU * self.k2 * u
        self.end += weight * d
        u[:] = self.start + length * d if length else self.end

    def _tiled(self, weight: float, length: float, first: bool) -> None:
        """All that is done between two transforms is done with one tile, in cache, before the next."""
        space, u, d = self.space, self.u, self.rate
        reals = [a.view(float) for a in (u, self.start, self.end, d)]
        for tile in _tiles(u[0]):
            _curl([k[_of(k, tile)] for k in self._k], reals[0][:, tile], d[:, tile])
        self._both(space.backward, d, self.W)
        self._both(space.backward, u, self.U)
        for tile in _tiles(self.U[0]):
            _cross(self.U[:, tile], self.W[:, tile])
        self._both(space.forward, self.W, d)
        columns, planes = self._tables
        for tile in _tiles(u[0]):
            ks = [k[_of(k, tile)] for k in self._k]
            tables = (columns[0][tile] + planes[0], columns[1][tile] * planes[1])
            _update(ks, tables, [a[:, tile] for a in reals], (weight, length, first))


def _of(k: Array, tile: slice) -> slice:
    return tile if len(k) > 1 else slice(None)


def _tiles(block: Array) -> Iterator[slice]:
    """Slices of the first axis that together are a block."""
    rows = max(1, _TILE // max(1, block[:1].nbytes))
    return (slice(at, at + rows) for at in range(0, len(block), rows))


def _curl(ks: list[Array], u: Array, out: Array) -> None:
    """The curl of a spectrum."""
    (kx, ky, kz), w = ks, out.view(float)
    product = np.empty_like(u[0])
    for component, (k, a, other, b) in enumerate(((ky, 2, kz, 1), (kz, 0, kx, 2), (kx, 1, ky, 0))):
        np.multiply(k, u[a], out=w[component])
        w[component] -= np.multiply(other, u[b], out=product)
    out *= 1j


def _cross(U: Array, W: Array) -> None:
    """The cross product of two fields, in place of the second."""
    x, y, z = U
    a, b, c = W
    first, second, product = (np.empty_like(a) for _ in range(3))
    np.multiply(y, c, out=first)
    first -= np.multiply(z, b, out=product)
    np.multiply(z, a, out=second)
    second -= np.multiply(x, c, out=product)
    np.multiply(x, b, out=c)
    c -= np.multiply(y, a, out=product)
    a[...], b[...] = first, second


def _update(ks: list[Array], tables: tuple[Array, Array], parts: list[Array], step: tuple[float, float, bool]) -> None:
    """Projection, viscosity, and the Runge-Kutta sums."""
    (k2, kept), (u, start, end, d), (weight, length, first) = tables, parts, step
    d *= kept
    pressure, product = np.multiply(ks[0], d[0]), np.empty_like(d[0])
    for k, each in zip(ks[1:], d[1:], strict=True):
        pressure += np.multiply(k, each, out=product)
    pressure /= k2
    k2 *= _NU
    for component, k in enumerate(ks):
        rate, now, before, after = d[component], u[component], start[component], end[component]
        rate -= np.multiply(k, pressure, out=product)
        rate -= np.multiply(k2, now, out=product)
        if first:
            before[...] = after[...] = now
        after += np.multiply(rate, weight, out=product)
        if length:
            np.multiply(rate, length, out=product)
            np.add(before, product, out=now)
        else:
            now[...] = after


def taylor_green(space: Space, plain: bool, steps: int) -> Iterator[Array]:
    """Velocities: after planning, after the first step, and at the end."""
    solver = TaylorGreen(space, plain)
    yield solver.u
    for step in range(steps):
        solver.advance()
        if step == 0:
            yield solver.u
    yield solver.u


def poisson(space: Space, plain: bool, steps: int) -> Iterator[Array]:
    """Solve -laplace(u) = f as often as there are steps, each time from the last solution."""
    x, y, z = space.grid()
    k2 = sum(k**2 for k in space.modes())
    inverse = 1 / np.where(k2 == 0, 1, k2)
    f, spectrum = space.empty(), space.empty_spectrum()
    f[...] = np.exp(np.sin(x) + np.cos(2 * y) * np.sin(z))
    yield spectrum
    for step in range(steps):
        space.forward(f, spectrum)
        spectrum *= inverse
        space.backward(spectrum.copy(), f)
        if step == 0:
            yield spectrum
    yield spectrum


def product(space: Space, plain: bool, steps: int) -> Iterator[Array]:
    """Square a field as often as there are steps, free of aliases: a convolution of its spectrum with itself."""
    u, out, field = space.empty_spectrum(), space.empty_spectrum(), space.empty()
    kx, ky, kz = space.modes()
    # Nyquist's modes, on the way out too: a library may halve them, give one to its twin, or leave them out.
    kept = np.logical_and.reduce(np.broadcast_arrays(*(abs(k) < space.n / 2 for k in (kx, ky, kz)))).astype(float)
    u[...] = np.exp(-0.5 * (abs(kx) + abs(ky) + kz)) * kept
    yield out
    for step in range(steps):
        space.backward(u.copy(), field)
        field *= field
        space.forward(field, out)
        out *= kept
        if step == 0:
            yield out
    yield out


SOLVERS: dict[str, Callable[[Space, bool, int], Iterator[Array]]] = {
    "taylor-green": taylor_green,
    "poisson": poisson,
    "product": product,
}


def run(solver: str, library: str, n: int, steps: int, plain: bool) -> dict[str, object]:
    """The energy at the end, and when each phase ended, in seconds since the start of the process."""
    begin, times = float(os.environ.get("ROTE_SOLVERS_START") or time.time()), {}
    for module in SPACES[library].modules:
        import_module(module)
    times["imported"] = round(time.time() - begin, 4)
    space = SPACES[library](n, solver == "product")
    phases = SOLVERS[solver](space, plain, steps)
    for phase in ("planned", "first", "end"):
        spectrum = next(phases)
        times[phase] = round(time.time() - begin, 4)
    said = {"energy": space.energy(spectrum), "library": space.library, **times}
    return {**said, "rank": space.rank}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("solver", choices=SOLVERS)
    parser.add_argument("library", choices=SPACES)
    parser.add_argument("--n", type=int, default=32, help="modes along each axis")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--updates", choices=("tiles", "plain"), default="tiles")
    options = parser.parse_args()
    result = run(options.solver, options.library, options.n, options.steps, options.updates == "plain")
    if result.pop("rank") == 0:
        json.dump(result, sys.stdout)
        print()
