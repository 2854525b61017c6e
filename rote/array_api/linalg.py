"""The `linalg` extension of the array API standard.

Stacks of matrices may be split, and so may the rows and columns of one matrix, which no rank then holds whole. Stacks
of matrices that are split are made whole, which is an implicit move.

>>> import rote.array_api as xp
>>> xp.linalg.vector_norm(xp.asarray([3.0, 4.0])).to_global()
array(5.)
"""

from __future__ import annotations

from ..functions.matrices import (
    cholesky,
    cond,
    det,
    diagonal,
    eigh,
    eigvalsh,
    inv,
    matrix_norm,
    matrix_power,
    slogdet,
    solve,
    trace,
    vector_norm,
)
from ..functions.orthogonal import lstsq, matrix_rank, matrix_transpose, pinv, qr, svd, svdvals
from ..functions.products import cross, matmul, outer, tensordot, vecdot

__all__ = ["cholesky", "cond", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "lstsq", "matmul", "matrix_norm"]
__all__ += ["matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd"]
__all__ += ["svdvals", "tensordot", "trace", "vecdot", "vector_norm"]
