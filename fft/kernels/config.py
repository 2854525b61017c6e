"""The config of a local transform: its library, its tile size and its number of threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any, Literal, get_args

__all__ = ["ORDERS", "WHOLE", "KernelConfig", "Order", "Study"]

Order = Literal["usual", "columns", "lines"]
ORDERS: tuple[Order, ...] = get_args(Order)
"""Memory orders of a tile: columns stay columns, or become contiguous lines; "usual" takes what suits their length."""

WHOLE = 1 << 62
"""More bytes than any block has: a part of this size is the whole block."""


@dataclass(frozen=True, slots=True)
class KernelConfig:
    """The way in which a kernel runs over a block; results of different configs differ only in their last bits.

    Attributes:
        library: the library, one of `rote.fft.kernels.backends.NAMES`.
        tile: bytes of a tile, which should fit into a core's second-level cache; 0 takes the default.
        part: bytes of a part of a block, which goes through all passes before the next part; 0 takes the default.
        tiled: whether axes with unfavourable strides are transformed tile by tile; else one call transforms all axes.
        order: the memory order in which a tile is transformed, one of `ORDERS`.
        fused: whether a kernel after a move reads its block directly out of boxes.
        threads: the most threads that the kernel uses.
        plans: FFTW's timed plans, as text of its wisdom; if empty, FFTW estimates.
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
        """The config from the value that `as_dict` returned.

        Raises:
            ValueError: the value is not one that `as_dict` returns.
        """
        usual = cls().as_dict()
        if not isinstance(value, Mapping) or value.keys() != usual.keys():
            raise ValueError(f"a config has {', '.join(usual)}")
        alike = all(type(value[name]) is type(usual[name]) for name in usual)
        if not alike or value["threads"] < 1 or value["order"] not in ORDERS:
            raise ValueError("a part of a config is of another type")
        return cls(**value)


@dataclass(slots=True)
class Study:
    """FFTW's search for plans by timing, shared by all kernels that carry this study.

    Planning overwrites the arrays for which the plans are made.

    Attributes:
        effort: how thoroughly FFTW searches for each plan, "measure" or "patient".
        seconds: the time for all plans together, from now on; after it FFTW estimates.
        plans: the plans that FFTW knows, as text of its wisdom.
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
