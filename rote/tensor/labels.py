"""Tensors under names: xarray's labelled arrays, whose data is the tensor as it lies."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy.typing as npt

from ..errors import RoteError
from ..functions.distributed import Distributed
from ..runtime.placement import check_values

__all__ = ["Labelled"]


class Labelled(Distributed):
    """A tensor that can be had with names and coordinates."""

    __slots__ = ()

    def to_xarray(
        self,
        dims: Sequence[Hashable] | None = None,
        coords: Mapping[Any, npt.ArrayLike] | None = None,
        name: Hashable | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> Any:
        """An `xarray.DataArray` of this tensor: its data is the tensor itself, and nothing is moved or copied.

        What NumPy's functions do with a tensor, xarray's operations do: the result's data is a tensor again
        (`a.data`). What would need the whole array, as `a.values`, is refused as it is for tensors.

        Args:
            dims: the names of the modes; "dim_0" and so on if None.
            coords: by name, what lies along a mode: a plain array of the mode's whole extent, the same on all ranks.
            name, attrs: as of `xarray.DataArray`.

        Raises:
            LayoutError: the tensor is partial. RoteError: there is no xarray.
            ValueError: xarray's, where names or coordinates do not fit the shape.

        >>> import numpy as np, rote
        >>> x = rote.DistTensor.zeros((2, 3), "block[(0),()]")
        >>> a = x.to_xarray(("t", "y"), {"y": np.linspace(0, 1, 3)}, name="u")
        >>> a.data is x, (a + 1).dims, type((a + 1).data).__name__, a.y.values.tolist()
        (True, ('t', 'y'), 'DistTensor', [0.0, 0.5, 1.0])
        """
        check_values("to_xarray", self.distribution)
        try:
            import xarray
        except ImportError:
            raise RoteError("labelled arrays need xarray\npip install xarray") from None
        return xarray.DataArray(self, coords=coords, dims=dims, name=name, attrs=attrs)
