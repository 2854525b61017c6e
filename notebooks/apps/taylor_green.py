"""The Taylor-Green vortex at Re 1600, by Fourier modes: the incompressible Navier-Stokes equations in rotational form.

    python taylor_green.py --ranks 2                 two ranks, which are threads of one process
    mpiexec -n 2 python taylor_green.py --ranks 2    two processes

A run that was stopped is taken up by --resume, on any number of ranks; from two ranks on the result is the same to the
last bit. Published (spectralDNS, demo/TG.py): at t = 0.1, from 32 points and dt = 0.01, the energy is 0.124953117517
and the enstrophy 0.375249930801.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import rote
from rote.fft import FFT


class Solver:
    """Transforms and wavenumbers of one resolution on the ranks of a communicator.

    A velocity field is a tensor of its Fourier coefficients, of which mode 0 counts the components.
    """

    def __init__(self, comm, n=32, nu=1 / 1600, dealias="2/3"):
        # Products are formed on n points, and the modes above n/3 are left out; or on 3n/2 points, free of aliases.
        points = (n if dealias == "2/3" else 3 * n // 2,) * 3
        axes, resample = (1, 2, 3), (n, n, n)
        self.fft = FFT((3, *points), None, comm.size, comm, "f8", axes, norm="forward", resample=resample)
        self.comm, self.nu = comm, nu
        self.k = self.fft.local_wavenumbers(nyquist="zero")  # of this rank's block: three open arrays of four modes
        self.k2 = sum(k**2 for k in self.k)
        self.inverse_k2 = 1 / np.where(self.k2 == 0, 1, self.k2)
        all_k = self.fft.local_wavenumbers()
        self.kept = np.logical_and.reduce(np.broadcast_arrays(*(abs(k) < n / 3 for k in all_k))) | (dealias != "2/3")

    def start(self):
        """The vortex at t = 0."""
        unit = 2 * np.pi / self.fft.shape[1]

        def velocity(component, i, j, k):
            x, y, z = unit * i, unit * j, unit * k
            first, second = np.sin(x) * np.cos(y), -np.cos(x) * np.sin(y)
            return np.select([component == 0, component == 1], [first * np.cos(z), second * np.cos(z)], 0.0 * z)

        f = self.fft
        return f.forward(rote.DistTensor.from_function(velocity, f.shape, f.input_layout, self.comm, f.grid, "f8"))

    def curl(self, u):
        """The Fourier coefficients of curl(u), on this rank."""
        (kx, ky, kz), (ux, uy, uz) = (k[0] for k in self.k), u
        return 1j * np.stack([ky * uz - kz * uy, kz * ux - kx * uz, kx * uy - ky * ux])

    def slope(self, u):
        """The time derivative of the coefficients: u x curl(u) less its gradient part, and viscosity."""
        spectrum = rote.DistTensor(self.curl(u.local), u.distribution, self.comm)
        velocity, vorticity = self.fft.backward(u), self.fft.backward(spectrum)
        velocity.local[...] = np.cross(velocity.local, vorticity.local, axis=0)
        rate = self.kept * self.fft.forward(velocity, out=spectrum).local
        pressure = sum(k[0] * r for k, r in zip(self.k, rate, strict=True)) * self.inverse_k2[0]
        for k, r in zip(self.k, rate, strict=True):
            r -= k[0] * pressure
        return rate - self.nu * self.k2 * u.local

    def advance(self, u, dt):
        """One step by the classical Runge-Kutta method of order four."""
        stage, total, slope = u.copy(), u.local.copy(), 0.0
        for length, weight in ((0.0, 1 / 6), (0.5, 1 / 3), (0.5, 1 / 3), (1.0, 1 / 6)):
            stage.local[...] = u.local + length * dt * slope
            slope = self.slope(stage)
            total += weight * dt * slope
        u.local[...] = total

    def measure(self, u):
        """Energy and enstrophy per volume, from their spectra; the dissipation is 2 nu times the enstrophy."""
        curl = rote.DistTensor(self.curl(u.local), u.distribution, self.comm)
        return [0.5 * self.fft.shell_sums(abs(each) ** 2).sum() for each in (u, curl)]


def program(comm, options):
    """Run the solver on one rank; return the figures of every tenth step."""
    solver, folder = Solver(comm, options.n, 1 / options.re, options.dealias), Path(options.folder)
    saved = sorted(folder.glob("taylor-green-*.npy"))
    u, first = solver.start(), 0
    if options.resume and saved:
        first = int(saved[-1].stem.rpartition("-")[2])
        u = rote.DistTensor.load(saved[-1], u.layout, comm, u.grid)
    lines = []
    for step in range(first, options.steps + 1):
        if step % 10 == 0 or step == options.steps:
            energy, enstrophy = solver.measure(u)
            lines.append((step, energy, enstrophy))
            if comm.rank == 0:
                print(f"t={step * options.dt:6.3f}  energy {energy:.12f}  dissipation {2 * solver.nu * enstrophy:.12f}")
        if step > first and step % options.save == 0:
            u.save(folder / f"taylor-green-{step:06d}.npy")
        if step < options.steps:
            solver.advance(u, options.dt)
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=32, help="Fourier modes along each axis")
    parser.add_argument("--re", type=float, default=1600, help="Reynolds number")
    parser.add_argument("--dt", type=float, default=0.01)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--dealias", choices=("2/3", "3/2"), default="2/3")
    parser.add_argument("--save", type=int, default=10, help="steps between checkpoints")
    parser.add_argument("--folder", default=".", help="where checkpoints lie")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument("--ranks", type=int, default=1)
    rote.run(program, (options := parser.parse_args()).ranks, (options,))
