"""The `linalg` extension of the array API standard.

Stacks of matrices may be split, and so may the rows or columns of matrices whose factors or singular values are wanted;
other matrices are made whole, which is an implicit move.

>>> import rote.array_api as xp
>>> xp.linalg.vector_norm(xp.asarray([3.0, 4.0])).to_global()
array(5.)
"""

from __future__ import annotations

from ..tensor.functions.matrices import cholesky as cholesky
from ..tensor.functions.matrices import det as det
from ..tensor.functions.matrices import diagonal as diagonal
from ..tensor.functions.matrices import eigh as eigh
from ..tensor.functions.matrices import eigvalsh as eigvalsh
from ..tensor.functions.matrices import inv as inv
from ..tensor.functions.matrices import matrix_power as matrix_power
from ..tensor.functions.matrices import matrix_transpose as matrix_transpose
from ..tensor.functions.matrices import slogdet as slogdet
from ..tensor.functions.matrices import solve as solve
from ..tensor.functions.matrices import trace as trace
from ..tensor.functions.norms import matrix_norm as matrix_norm
from ..tensor.functions.norms import vector_norm as vector_norm
from ..tensor.functions.orthogonal import matrix_rank as matrix_rank
from ..tensor.functions.orthogonal import pinv as pinv
from ..tensor.functions.orthogonal import qr as qr
from ..tensor.functions.orthogonal import svd as svd
from ..tensor.functions.orthogonal import svdvals as svdvals
from ..tensor.functions.products import cross as cross
from ..tensor.functions.products import matmul as matmul
from ..tensor.functions.products import outer as outer
from ..tensor.functions.products import tensordot as tensordot
from ..tensor.functions.products import vecdot as vecdot

__all__ = [
    *("cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power"),
    *("matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot"),
    *("trace", "vecdot", "vector_norm"),
]
