"""The config of a local transform: its library, the size of its tiles, its number of threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any, Literal, get_args

__all__ = ["ORDERS", "WHOLE", "KernelConfig", "Order", "Study"]

Order = Literal["usual", "columns", "lines"]
ORDERS: tuple[Order, ...] = get_args(Order)
"""Orders of a tile: its columns stay where they are, or become lines of memory; or whichever suits their length."""

WHOLE = 1 << 62
"""Bytes that no block has: a part of so many is all of it."""


@dataclass(frozen=True, slots=True)
class KernelConfig:
    """The way in which a kernel runs over a block; the result is the same but for its last bits.

    Attributes:
        library: that transforms, one of `rote.fft.kernels.backends.NAMES`.
        tile: bytes of a tile, which is to stay in a core's second-level cache; 0 is what suits most.
        part: bytes of a part of a block that goes through all passes before the next one does; 0 is what suits most.
        tiled: whether axes whose points lie badly apart go tile by tile; else all axes go in one call.
        order: in which memory order a tile is transformed, one of `ORDERS`.
        fused: whether the kernel reads its block out of boxes where it stands behind a move.
        threads: how many it uses at most.
        plans: what FFTW has found out by timing, in the text of its wisdom; empty, it estimates.
    """

    library: str = "pyfftw"
    tile: int = 0
    part: int = 0
    tiled: bool = True
    order: Order = "usual"
    fused: bool = True
    threads: int = 1
    plans: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The config as a JSON value.

        >>> KernelConfig.of(KernelConfig("ducc0", tile=4096).as_dict()) == KernelConfig("ducc0", tile=4096)
        True
        """
        return asdict(self)

    @classmethod
    def of(cls, value: Any) -> KernelConfig:
        """The config that `as_dict` gave.

        Raises:
            ValueError: it did not give this.
        """
        usual = cls().as_dict()
        if isinstance(value, Mapping):
            value = {"order": "columns", **value}  # the only one there was when decisions did not say it
        if not isinstance(value, Mapping) or value.keys() != usual.keys():
            raise ValueError(f"a config has {', '.join(usual)}")
        alike = all(type(value[name]) is type(usual[name]) for name in usual)
        if not alike or value["threads"] < 1 or value["order"] not in ORDERS:
            raise ValueError("a part of a config is of another type")
        return cls(**value)


@dataclass(slots=True)
class Study:
    """The plans that FFTW finds by timing, of all kernels that carry this study, one after the other.

    What lies in the arrays that they are made for is lost.

    Attributes:
        effort: how long it looks for each, "measure" or "patient".
        seconds: for all of them, from now on; then it estimates.
        plans: those that it knows, in the text of its wisdom.
    """

    effort: str
    seconds: float
    plans: str = ""
    _until: float = field(init=False)

    def __post_init__(self) -> None:
        self._until = perf_counter() + self.seconds

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self._until - perf_counter()
