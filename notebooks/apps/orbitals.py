"""Orbitals and the density matrix of a molecule: F C = S C e, a generalised eigenproblem, with all matrices split.

    python orbitals.py                              four ranks, which are threads of one process
    mpiexec -n 4 python orbitals.py --n 2000        four processes; with the extra `fast`, by ScaLAPACK

The overlap S of n basis functions is positive definite, and the Fock matrix F is symmetric. S = L L' makes the basis
orthonormal: F' = L^-1 F L'^-1 has the same energies e. The lowest orbitals are doubly occupied, and D = 2 C C' is their
density. With ScaLAPACK nothing is gathered; without it, one rank solves the eigenproblem, and its parts go back to all.
"""

from __future__ import annotations

import argparse

import numpy as np

import rote

TILES = "block[(0),(1)]"  # so that products gather no operand either


def overlap(i, j):
    """Gaussians on a line, which overlap with their neighbours."""
    return np.exp(-0.7 * (i - j) ** 2)


def fock(i, j):
    """A chain of atoms of two kinds, whose orbitals mix as they overlap."""
    return -(1 + 0.3 * (-1.0) ** np.minimum(i, j)) * overlap(i, j) - 0.5 * (i == j) * (i % 2)


def program(comm, n, occupied):
    """Solve on one rank; return the energy of the electrons, and how far the density is from what it must be."""
    S = rote.DistTensor.from_function(overlap, (n, n), TILES, comm)
    F = rote.DistTensor.from_function(fock, (n, n), TILES, comm)
    with rote.config(implicit="allow", gather="error"):
        # The orthonormal basis, by Cholesky: L^-1 S L'^-1 is the identity.
        L = np.linalg.cholesky(S)
        half = rote.linalg.solve_triangular(L, S, lower=True)
        unit = rote.linalg.solve_triangular(L, half.T.redistribute(TILES), lower=True)
        identity = rote.DistTensor.from_function(lambda i, j: 1.0 * (i == j), (n, n), TILES, comm)
        assert float(abs(unit - identity).max()) < 1e-8

        # The orbitals, and the density of the occupied ones.
        energies, C = rote.linalg.eigh(F, S, subset_by_index=(0, occupied - 1))
        D = 2 * C @ C.T
        electrons = float(np.trace(D @ S))
        idempotent = float(abs(D @ S @ D - 2 * D).max())
        energy = float((D * F).sum())

    assert abs(electrons - 2 * occupied) < 1e-8 * n
    assert idempotent < 1e-8
    assert abs(energy - 2 * float(energies.sum())) < 1e-8 * n
    if comm.rank == 0:
        print(f"{electrons:.6f} electrons, energy {energy:.6f}")
    return energy, electrons


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=300, help="basis functions")
    parser.add_argument("--ranks", type=int, default=4)
    options = parser.parse_args()
    rote.run(program, options.ranks, (options.n, options.n // 4))
