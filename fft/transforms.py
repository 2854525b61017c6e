"""Kinds of transforms by name: what undoes them, along which axes they go, and how many points they count.

The cosine and sine transforms are those of FFTW and of `scipy.fft.dct` and `dst`, types I to IV: "dct1" is FFTW's
REDFT00, "dct2" REDFT10, "dct3" REDFT01, "dct4" REDFT11, and "dst1" to "dst4" the same with RODFT. Of a complex
tensor they transform the real and the imaginary part, each by itself.
"""

from __future__ import annotations

from rote.errors import LayoutError

__all__ = [
    "FORWARD",
    "INVERSE",
    "ORTHO_WEIGHTS",
    "TRIGONOMETRIC",
    "Kinds",
    "by_axis",
    "in_order",
    "is_forward",
    "logical_size",
]

TRIGONOMETRIC = ("dct1", "dct2", "dct3", "dct4", "dst1", "dst2", "dst3", "dst4")
"""The kinds that leave dtype and extents alone, and that commute with all others."""

FORWARD = ("fft", "rfft", *TRIGONOMETRIC)
"""The kinds that a transform may name for its axes; it goes back by what undoes them."""

INVERSE = {
    "fft": "ifft",
    "ifft": "fft",
    "rfft": "irfft",
    "irfft": "rfft",
    "complex": "real",
    "real": "complex",
    **{kind: kind[:3] + {"2": "3", "3": "2"}.get(kind[3], kind[3]) for kind in TRIGONOMETRIC},
}
"""The transform, or the change of dtype, that undoes another, but for a factor."""

ORTHO_WEIGHTS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "dct1": ((0, -1), (0, -1)),
    "dct2": ((), (0,)),
    "dct3": ((0,), ()),
    "dst2": ((), (-1,)),
    "dst3": ((-1,), ()),
}
"""The places along an axis where norm="ortho" multiplies the input by √2, and those where it divides the output by it:
what makes the transform orthogonal (`orthogonalize` of `scipy.fft.dct`)."""

Kinds = str | tuple[str, ...]
"""One name for all axes, or a name for each. Along several axes "rfft" and "irfft" are real along the last, and complex
along the others. "idct2" is "dct3" on the way back, from the first axis to the last."""


def by_axis(kinds: Kinds, axes: tuple[int, ...]) -> dict[int, str]:
    """The kind of each axis.

    >>> by_axis("rfft", (1, 0)), by_axis("idct2", (0, 1))
    ({1: 'fft', 0: 'rfft'}, {0: 'dct3', 1: 'dct3'})
    """
    if not isinstance(kinds, str):
        return dict(zip(axes, kinds, strict=True))
    if kinds in ("rfft", "irfft"):
        return {axis: kinds if axis == axes[-1] else kinds.replace("rfft", "fft") for axis in axes}
    return dict.fromkeys(axes, INVERSE[kinds[1:]] if kinds[1:] in TRIGONOMETRIC else kinds)


def in_order(kind: dict[int, str], real: bool) -> tuple[tuple[int, ...], Kinds]:
    """Axes in NumPy's order, an "rfft" last, and their kinds: what `by_axis` makes the same of again.

    Args:
        kind: of each axis, in the order in which they are given.
        real: whether the tensor is.

    Raises:
        LayoutError: a kind is unknown, or they do not fit each other, or the tensor.

    >>> in_order({0: "rfft", 1: "fft"}, True), in_order({0: "dct2", 1: "rfft"}, True)
    (((1, 0), 'rfft'), ((0, 1), ('dct2', 'rfft')))
    """
    unknown = [name for name in kind.values() if name not in FORWARD]
    if unknown:
        raise LayoutError(f"a kind is one of {', '.join(FORWARD)}; not {unknown[0]!r}")
    axes = tuple(sorted(kind, key=lambda axis: kind[axis] == "rfft"))
    kinds = tuple(kind[axis] for axis in axes)
    if kinds.count("rfft") > 1:
        raise LayoutError(f"one axis is rfft, for the others are complex then; not {kinds.count('rfft')} of {axes}")
    if "rfft" in kinds and not real:
        raise LayoutError("rfft takes real numbers; give a real dtype, or write fft")
    if "fft" in kinds and "rfft" not in kinds and real:
        raise LayoutError("fft takes complex numbers; make one axis rfft, or give a complex dtype")
    if {*kinds} <= {"fft", "rfft"}:
        return axes, "rfft" if real else "fft"
    return axes, kinds[0] if len({*kinds}) == 1 else kinds


def is_forward(kinds: Kinds) -> bool:
    """Whether the axes go from the last to the first, so that the way back leads to where it began."""
    return not (isinstance(kinds, str) and kinds.startswith("i"))


def logical_size(kind: str, points: int) -> int:
    """The points of the discrete Fourier transform that a kind is a part of; of real data and spectra, those of data.

    >>> logical_size("fft", 5), logical_size("dct1", 5), logical_size("dst1", 5), logical_size("dct2", 5)
    (5, 8, 12, 10)
    """
    return 2 * (points + {"dct1": -1, "dst1": 1}.get(kind, 0)) if kind in TRIGONOMETRIC else points
