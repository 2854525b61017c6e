"""What to write in place of a call or an attribute that tensors do not answer, though arrays, or tensors of other
libraries, have it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import functions

__all__ = ["HINTS", "name_hint", "refusal"]

_NAMES = {
    "view": "x.astype(dtype), x.reshape(shape), or x.local.view(dtype) for this rank's block alone",
    "indices": "x.distribution.indices(x.comm.rank), or x.slices() of a layout in blocks",
    "placements": "x.layout",
    "sharding": "x.layout",
    "device_mesh": "x.distribution.grid",
    "clone": "x.copy()",
    "unsqueeze": "x[None], or numpy.expand_dims(x, axis)",
    "permute": "x.transpose(axes)",
    "expand": "numpy.broadcast_to(x, shape)",
    "chunk": "numpy.array_split(x, n)",
    "norm": "numpy.linalg.norm(x)",
    "einsum": "numpy.einsum(subscripts, x)",
    "where": "numpy.where(condition, x, y)",
    "compress": "numpy.compress(mask, x, axis)",
    "masked_fill": "numpy.where(mask, value, x)",
    "at": "x[key] = value",
    "dim": "x.ndim",
    "numel": "x.size",
    "cuda": "torch.as_tensor(x.local).cuda(), or cupy.asarray(x.local): this rank's block; a tensor stays on the host",
    "to": "x.astype(dtype), or torch.as_tensor(x.local).to(device): this rank's block; a tensor stays on the host",
    "is_cuda": "x.device, which is 'cpu'",
    "devices": "x.device, which is 'cpu'",
    "tofile": "x.save('x.npy'), or x.local.tofile(path) for this rank's block",
    "tobytes": "x.save('x.npy'), or x.local.tobytes() for this rank's block",
    "dump": "x.save('x.npy')",
    "flat": "x.reshape(-1)",
    "setfield": "x[...] = value",
    **{name: f"x.local.{name}, of this rank's block" for name in ("base", "ctypes", "data", "flags", "strides")},
    "to_hdf5": "x.save('x.h5')",
    "to_zarr": "x.save('x.zarr')",
    "plot": "rote.plot.layout(x.distribution), or a picture of x.to_global()",
    "global_shape": "x.shape",
    "chunks": "x.distribution.to_chunks()",
    "rechunk": "x.redistribute(layout)",
    "map_blocks": "DistTensor.from_local(function(x.local), x.distribution, comm=x.comm)",
    "map_overlap": "function(x.halo(width)), which is of this rank's block",
    **dict.fromkeys(("to_local", "blocks", "partitions", "addressable_shards"), "x.local"),
    **dict.fromkeys(
        ("full_tensor", "compute", "numpy", "to_numpy", "gather", "get", "asnumpy", "values"), "x.to_global()"
    ),
    **dict.fromkeys(("float", "double", "half", "int", "long", "bool", "type"), "x.astype(dtype)"),
    **dict.fromkeys(("fill_", "zero_", "copy_"), "x[...] = value"),
    **dict.fromkeys(("add_", "sub_", "mul_", "div_"), "x += y, or with -=, *= and /="),
    **dict.fromkeys(
        ("cpu", "detach", "contiguous", "persist", "block_until_ready"), "x, which is computed, and on the host"
    ),
}
_BETWEEN = "numpy.linspace(0, 1, n).reshape(-1, *[1] * x.ndim)"
_LARGEST = "numpy.max(x, axis=0)"

HINTS: dict[Any, str] = {
    **dict.fromkeys((np.save, np.savez, np.savez_compressed, np.savetxt), "x.save(path)"),
    np.kron: "numpy.einsum('ij,kl->ikjl', x, y).reshape(x.shape[0] * y.shape[0], -1)",
    np.vander: "x[:, None] ** numpy.arange(len(x))[::-1]",
    np.ediff1d: "numpy.diff(x.reshape(-1))",
    np.diagflat: "numpy.diag(x.reshape(-1))",
    np.diag_indices_from: "numpy.diag_indices(len(x), x.ndim)",
    np.tril_indices_from: "numpy.tril_indices(len(x), m=x.shape[1])",
    np.triu_indices_from: "numpy.triu_indices(len(x), m=x.shape[1])",
    np.rollaxis: "numpy.moveaxis(x, axis, 0)",
    np.min_scalar_type: "x.dtype",
    np.real_if_close: "x.real if numpy.allclose(x.imag, 0) else x",
    np.sort_complex: "numpy.sort(x.astype('c16'))",
    np.apply_over_axes: "numpy.sum(x, axis=(0, 1), keepdims=True), or another reduction",
    np.histogram2d: "numpy.bincount(numpy.digitize(x, xs) * (len(ys) + 1) + numpy.digitize(y, ys), "
    "minlength=(len(xs) + 1) * (len(ys) + 1)).reshape(len(xs) + 1, -1)[1:-1, 1:-1], of edges xs and ys",
    np.histogramdd: "the line that numpy.histogram2d(x[:, 0], x[:, 1]) is refused with, with more columns",
    np.linspace: f"x + (y - x) * {_BETWEEN}",
    np.logspace: f"10.0 ** (x + (y - x) * {_BETWEEN})",
    np.geomspace: f"x * (y / x) ** {_BETWEEN}",
    np.ix_: "(x[:, None], y[None])",
    np.lexsort: "numpy.argsort(x)[numpy.argsort(y[numpy.argsort(x)])], of keys (x, y)",
    np.packbits: "(x.reshape(-1, 8) @ (1 << numpy.arange(7, -1, -1))).astype('u1'), of bool",
    np.unpackbits: "(x.reshape(-1, 1) >> numpy.arange(7, -1, -1) & 1).astype('u1').reshape(-1)",
    np.polyadd: "x + y, of as many coefficients",
    np.polysub: "x - y, of as many coefficients",
    np.polymul: "numpy.convolve(x, y)",
    np.polyder: "x[:-1] * numpy.arange(len(x) - 1, 0, -1)",
    np.polyint: "numpy.append(x / numpy.arange(len(x), 0, -1), 0)",
    np.polyfit: "numpy.linalg.lstsq(x[:, None] ** numpy.arange(degree, -1, -1), y)[0]",
    np.ravel_multi_index: "x * dims[1] + y, of indices (x, y)",
    np.resize: "numpy.tile(x.reshape(-1), n)[:size].reshape(shape), of n copies",
    np.trim_zeros: "x[int(numpy.flatnonzero(x)[0]) : int(numpy.flatnonzero(x)[-1]) + 1]",
    np.unwrap: "numpy.append(x[:1], x[1:] - 2 * numpy.pi * numpy.cumsum(numpy.round(numpy.diff(x) / (2 * numpy.pi))))",
    np.linalg.tensorinv: "numpy.linalg.inv(x.reshape(n, n)).reshape(x.shape[2:] + x.shape[:2]), of n rows and columns",
    np.linalg.tensorsolve: "numpy.linalg.solve(x.reshape(y.size, y.size), y.reshape(-1)).reshape(x.shape[y.ndim :])",
    **dict.fromkeys((np.linalg.eig, np.linalg.eigvals), "numpy.linalg.eigh(x), of a symmetric matrix"),
    np.piecewise: "numpy.where(condition, f(x), g(x)), within one another for more",
    np.partition: "numpy.sort(x), which is ordered over all ranks",
    np.argpartition: "numpy.argsort(x), which is ordered over all ranks",
    np.put: "x.reshape(-1)[indices] to read, x[numpy.unravel_index(indices, x.shape)] = values to write",
    np.choose: "numpy.where(condition, x, y), within one another for more",
    np.delete: "x[numpy.delete(numpy.arange(len(x)), indices)], along mode 0",
    np.insert: "numpy.concatenate([x[:i], values, x[i:]])",
    np.apply_along_axis: "the function of x.local, after x.redistribute to a layout that has the axis whole",
    (np.subtract, "reduce"): "2 * x[0] - numpy.sum(x, axis=0)",
    (np.divide, "reduce"): "x[0] ** 2 / numpy.prod(x, axis=0)",
    (np.hypot, "reduce"): "numpy.sqrt(numpy.sum(x * x, axis=0))",
    (np.logaddexp, "reduce"): f"{_LARGEST} + numpy.log(numpy.sum(numpy.exp(x - {_LARGEST}), axis=0))",
    (np.logaddexp2, "reduce"): f"{_LARGEST} + numpy.log2(numpy.sum(numpy.exp2(x - {_LARGEST}), axis=0))",
    (np.fmax, "reduce"): "numpy.nanmax(x, axis=0)",
    (np.fmin, "reduce"): "numpy.nanmin(x, axis=0)",
    (np.logical_xor, "reduce"): "numpy.sum(x != 0, axis=0) % 2 == 1",
    (np.bitwise_and, "reduce"): "numpy.all(x, axis=0), of bool",
    (np.bitwise_or, "reduce"): "numpy.any(x, axis=0), of bool",
    (np.bitwise_xor, "reduce"): "numpy.sum(x, axis=0) % 2 == 1, of bool",
    (np.subtract, "accumulate"): "2 * x[:1] - numpy.cumsum(x, axis=0)",
    (np.divide, "accumulate"): "x[:1] ** 2 / numpy.cumprod(x, axis=0)",
    (np.add, "reduceat"): "numpy.diff(numpy.append(0, numpy.cumsum(x))[numpy.append(indices, len(x))])",
}
"""What to write, by function, or by ufunc and method."""


def refusal(call: str, hint: str = "") -> str:
    """The text that refuses a call.

    Args:
        call: the user's call, with {} in the place of the tensor.
        hint: what to write instead; if empty, the call on the whole array.

    >>> print(refusal("numpy.kron({})"))
    numpy.kron(x) of a DistTensor x is not answered: nothing is gathered silently
    write numpy.kron(x.to_global()), or numpy.kron(x.local) for this rank's block alone
    """
    whole, block = call.format("x.to_global()"), call.format("x.local")
    usual = f"{whole}, or {block} for this rank's block alone"
    return f"{call.format('x')} of a DistTensor x is not answered: nothing is gathered silently\nwrite {hint or usual}"


def name_hint(name: str) -> str:
    """The replacement for an attribute that arrays, or tensors of other libraries, have; empty if there is none.

    >>> name_hint("full_tensor"), name_hint("exp"), name_hint("sun")
    ('x.to_global()', 'numpy.exp(x)', '')
    """
    function = vars(np).get(name)
    if name in _NAMES or not callable(function):
        return _NAMES.get(name, "")
    if isinstance(function, np.ufunc) and function.nin == 1:
        return f"numpy.{name}(x)"
    if isinstance(function, np.ufunc) or name in functions.ANSWERING:
        return f"numpy.{name}(x, …)"
    return HINTS.get(function, "")
