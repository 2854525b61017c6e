"""The `linalg` extension of the array API standard.

Stacks of matrices may be split. For QR factors and singular values, rows or columns may be split, too. Other matrices
are made whole, which is an implicit move.

>>> import rote.array_api as xp
>>> xp.linalg.vector_norm(xp.asarray([3.0, 4.0])).to_global()
array(5.)
"""

from __future__ import annotations

from ..functions.linalg.matrices import cholesky as cholesky
from ..functions.linalg.matrices import det as det
from ..functions.linalg.matrices import diagonal as diagonal
from ..functions.linalg.matrices import eigh as eigh
from ..functions.linalg.matrices import eigvalsh as eigvalsh
from ..functions.linalg.matrices import inv as inv
from ..functions.linalg.matrices import matrix_power as matrix_power
from ..functions.linalg.matrices import matrix_transpose as matrix_transpose
from ..functions.linalg.matrices import slogdet as slogdet
from ..functions.linalg.matrices import solve as solve
from ..functions.linalg.matrices import trace as trace
from ..functions.linalg.norms import matrix_norm as matrix_norm
from ..functions.linalg.norms import vector_norm as vector_norm
from ..functions.linalg.orthogonal import matrix_rank as matrix_rank
from ..functions.linalg.orthogonal import pinv as pinv
from ..functions.linalg.orthogonal import qr as qr
from ..functions.linalg.orthogonal import svd as svd
from ..functions.linalg.orthogonal import svdvals as svdvals
from ..functions.linalg.products import cross as cross
from ..functions.linalg.products import matmul as matmul
from ..functions.linalg.products import outer as outer
from ..functions.linalg.products import tensordot as tensordot
from ..functions.linalg.products import vecdot as vecdot

__all__ = [
    *("cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power"),
    *("matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot"),
    *("trace", "vecdot", "vector_norm"),
]
