"""Linear algebra of matrices that are split over ranks, with the names and the returns of `scipy.linalg`.

Functions that NumPy has, such as `numpy.linalg.solve`, answer under NumPy's names: `np.linalg.solve(x, y)`. Here are
those that it has not. `rote.config(linalg=…)` says what computes: ScaLAPACK, Rote's own walks, or one rank.

>>> import numpy as np, rote
>>> x = rote.DistTensor.from_global(np.diag([4.0, 9.0]), "block[(0),()]")
>>> rote.linalg.cho_solve(rote.linalg.cho_factor(x), np.array([4.0, 18.0])).to_global()
array([1., 2.])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import attach

if TYPE_CHECKING:  # what the table below says to Python, name by name
    from .factors import cho_factor, cho_solve, eigh, lu_factor, lu_solve, solve_triangular
    from .planning import plan
else:
    _NAMES = "cholesky cond det eigvalsh inv lstsq matrix_power matrix_rank norm pinv qr slogdet solve svd svdvals"

    __getattr__, __dir__ = attach(
        __name__,
        {"factors": "cho_factor cho_solve eigh lu_factor lu_solve solve_triangular", "planning": "plan"},
        {name: f"numpy.linalg.{name}(x, …), which answers for tensors" for name in _NAMES.split()},
    )

__all__ = ["cho_factor", "cho_solve", "eigh", "lu_factor", "lu_solve", "plan", "solve_triangular"]
