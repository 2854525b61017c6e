"""An image volume, smoothed by a Gaussian: read from Zarr, filtered in Fourier space, written to Zarr.

    python smooth.py volume.zarr smooth.zarr --sigma 2 --ranks 4
    mpiexec -n 4 python smooth.py volume.zarr smooth.zarr --sigma 2 --ranks 4

Every rank reads the chunks that it filters, and writes those that it has filtered; no rank ever holds the whole volume.
Without a volume, `--make 64 64 64` writes one of noise first.
"""

from __future__ import annotations

import argparse

import numpy as np

import rote
from rote.fft import FFT


def smooth(volume, sigma):
    """Convolve with a periodic Gaussian of standard deviation `sigma`, in voxels."""
    fft = FFT(volume.shape, volume.layout, volume.grid, volume.comm, volume.dtype)
    spectrum = fft.forward(volume)
    for k in fft.wavenumbers(L=volume.shape):  # radians per voxel
        spectrum *= np.exp(-0.5 * (sigma * k) ** 2)
    return fft.backward(spectrum)


def program(comm, source, target, sigma, make):
    """Smooth a file on one rank."""
    layout = "block[(0),(),()]"
    if make:
        rote.save(source, rote.DistTensor.from_function(lambda i, j, k: np.cos(i * i + j * k), make, layout, comm))
    volume = rote.load(source, layout, comm=comm)
    result = smooth(volume, sigma)
    rote.save(target, result, attributes={"sigma": sigma, "source": str(source)})
    spread = np.array([[np.sum(x.local), np.sum(x.local**2)] for x in (volume, result)])
    comm.allreduce_in_place(spread, "sum")
    mean, square = spread.T / volume.size
    if comm.rank == 0:
        print(f"{volume.shape}: mean {mean[0]:.6f} -> {mean[1]:.6f}, variance {np.ptp(square - mean**2):.3f} less")
    return mean, square


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--sigma", type=float, default=2.0, help="standard deviation, in voxels")
    parser.add_argument("--make", type=int, nargs=3, metavar="N", help="write a volume of this shape first")
    parser.add_argument("--ranks", type=int, default=1)
    options = parser.parse_args()
    make = tuple(options.make or ())
    rote.run(program, options.ranks, (options.source, options.target, options.sigma, make))
