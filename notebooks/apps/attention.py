"""Attention as batched products: over heads nothing moves, and over positions the keys and values do.

    python attention.py                 four ranks, which are threads of one process
    mpiexec -n 4 python attention.py    four processes

    scores[b,h,q,k] = sum over d of Q[b,h,q,d] K[b,h,k,d]
    output[b,h,q,d] = sum over k of softmax(scores)[b,h,q,k] V[b,h,k,d]

The letters b and h are in both operands and in the result. Where they are split, each rank has all that it multiplies.
Where the positions q are split instead, each rank needs the keys and values of all positions.
"""

from __future__ import annotations

import argparse

import numpy as np

import rote

SPLITS = {"batch and heads": "block[(0),(1),(),()]", "positions": "block[(0),(),(1),()]"}


def attention(einsum, Q, K, V):
    """Softmax(Q Kᵀ / √d) V for each b and h. The same code for arrays and for tensors."""
    scores = einsum("bhqd,bhkd->bhqk", Q, K) / np.sqrt(Q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return einsum("bhqk,bhkd->bhqd", weights, V)


def program(comm, shape):
    """Compute on one rank; return the bytes that a rank receives for each way to split."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for _ in "QKV"]
    expected = attention(np.einsum, *arrays)
    received = {}
    for name, layout in SPLITS.items():
        tensors = [rote.DistTensor.from_global(array, layout, comm, rote.Grid.of(comm.size, 2)) for array in arrays]

        def einsum(text, *operands, layout=layout):
            return rote.einsum(text, *operands, layout=layout)

        with rote.trace() as moves:
            output = attention(einsum, *tensors)
        assert np.allclose(output.to_global(), expected, rtol=0, atol=1e-13)
        received[name] = sum(move.nbytes for move in moves)
        if comm.rank == 0:
            print(f"split over {name}, {layout} on grid {output.grid}: a rank receives {received[name]:,} bytes")
    return received


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", type=int, nargs=4, default=(2, 4, 48, 16), metavar="N", help="b, h, q, d")
    parser.add_argument("--ranks", type=int, default=4)
    options = parser.parse_args()
    rote.run(program, options.ranks, (tuple(options.shape),))
