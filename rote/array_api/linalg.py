"""The `linalg` extension of the array API standard.

Stacks of matrices may be split, and so may the rows or columns of matrices whose factors or singular values are wanted;
other matrices are made whole, which is an implicit move.

>>> import rote.array_api as xp
>>> xp.linalg.vector_norm(xp.asarray([3.0, 4.0])).to_global()
array(5.)
"""

from __future__ import annotations

from ..functions.matrices import cholesky as cholesky
from ..functions.matrices import det as det
from ..functions.matrices import diagonal as diagonal
from ..functions.matrices import eigh as eigh
from ..functions.matrices import eigvalsh as eigvalsh
from ..functions.matrices import inv as inv
from ..functions.matrices import matrix_power as matrix_power
from ..functions.matrices import matrix_transpose as matrix_transpose
from ..functions.matrices import slogdet as slogdet
from ..functions.matrices import solve as solve
from ..functions.matrices import trace as trace
from ..functions.norms import matrix_norm as matrix_norm
from ..functions.norms import vector_norm as vector_norm
from ..functions.orthogonal import matrix_rank as matrix_rank
from ..functions.orthogonal import pinv as pinv
from ..functions.orthogonal import qr as qr
from ..functions.orthogonal import svd as svd
from ..functions.orthogonal import svdvals as svdvals
from ..functions.products import cross as cross
from ..functions.products import matmul as matmul
from ..functions.products import outer as outer
from ..functions.products import tensordot as tensordot
from ..functions.products import vecdot as vecdot

__all__ = [
    *("cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power"),
    *("matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot"),
    *("trace", "vecdot", "vector_norm"),
]
