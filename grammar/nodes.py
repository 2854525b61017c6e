"""The syntax of layouts and walks: frozen, hashable values, canonical at birth: equal meaning is an equal node."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

Op: TypeAlias = Literal["sum", "max", "min", "prod"]
OPS: tuple[Op, ...] = ("sum", "max", "min", "prod")

# What a stage of a walk can do: transforms along modes; what makes real numbers complex, or takes their real part; what
# gives modes another extent, at the end of a mode, in the middle of a spectrum, from a spectrum to half of it and back,
# or for a convolution with a chirp; and two that name no modes: ``twiddle``, and ``convolve`` with that chirp.
TRANSFORMS = ("fft", "ifft", "rfft", "irfft", "dct1", "dct2", "dct3", "dct4", "dst1", "dst2", "dst3", "dst4")
CASTS = ("complex", "real")
RESIZES = ("resize", "resample", "fold", "chirp")
TWIDDLE = "twiddle"
CONVOLVE = "convolve"

MAX_TEXT = 10_000  # characters of a layout, a transition, a stage
MAX_WALK = 50_000  # characters of a walk with all its comments
MAX_MODES = 64  # modes of a layout, names of a view
MAX_GRID_MODES = 64  # grid modes are 0 … 63
MAX_NUMBER = 2**63  # sizes and roots are below


@dataclass(frozen=True, slots=True)
class Kind:
    """How an entry deals out indices.

    ``cyclic`` is ``cyclic(1)``: ``("cyclic", (1,))``; ``cyclic(b)``: ``("cyclic", (b,))``; balanced ``block``:
    ``("block", ())``; ``block(b)``: ``("block", (b,))``; ``block(3,5,2)``: ``("block", (3, 5, 2))``.
    """

    name: Literal["cyclic", "block"]
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.name == "cyclic" and not self.sizes:
            object.__setattr__(self, "sizes", (1,))


CYCLIC = Kind("cyclic", (1,))
BLOCK = Kind("block")


@dataclass(frozen=True, slots=True)
class Entry:
    """A grid mode that splits a mode, and how: ``0:block``."""

    grid_mode: int
    kind: Kind = CYCLIC


@dataclass(frozen=True, slots=True)
class Name:
    """A mode of the tensor as it is: ``a``."""

    name: str


@dataclass(frozen=True, slots=True)
class Fuse:
    """Two or more modes of the tensor read as one, the rightmost fastest: ``(a b)``."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """One mode of the tensor read as several, the rightmost fastest: ``(r s=4)``.

    A part is its name and its size; at most one part has no size (None) and takes what the others leave.
    """

    parts: tuple[tuple[str, int | None], ...]


ViewItem: TypeAlias = Name | Fuse | Tile


@dataclass(frozen=True, slots=True)
class LayoutSyntax:
    """A layout as written, defaults resolved.

    `modes`: per mode its entries, in the order of refinement. `view`: how the tensor's modes are read, None when they
    are read as they are. `op`, `partial`: the value is the op over the grid modes `partial`. `rooted`: pairs of a grid
    mode and the only coordinate of it that holds data.

    >>> LayoutSyntax(modes=((), ()), view=(Name("a"), Name("b")), op="max", partial=()) == LayoutSyntax(((), ()))
    True
    """

    modes: tuple[tuple[Entry, ...], ...]
    view: tuple[ViewItem, ...] | None = None
    op: Op = "sum"
    partial: tuple[int, ...] = ()
    rooted: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if self.view is not None and _says_nothing(self.view):
            object.__setattr__(self, "view", None)
        if not self.partial:
            object.__setattr__(self, "op", "sum")
        object.__setattr__(self, "partial", tuple(sorted(self.partial)))
        object.__setattr__(self, "rooted", tuple(sorted(self.rooted)))


@dataclass(frozen=True, slots=True)
class TransitionSyntax:
    """``source -> target``"""

    source: LayoutSyntax
    target: LayoutSyntax


@dataclass(frozen=True, slots=True)
class ActionSyntax:
    """What is done in a stage of a walk: one of TRANSFORMS or CASTS along `modes`, in order; or TWIDDLE; or CONVOLVE.

    One of RESIZES gives each of the `modes` its new extent: ``resize`` cuts or pads with zeros at the end of the mode,
    ``resample`` in the middle of the spectrum along it, ``fold`` keeps the half of it that a real signal needs, or pads
    that to the whole, and ``chirp`` pads a signal for a convolution, or cuts what comes of it. `modes` are the numbers
    of modes of the stage's layout, hence of its view if it has one; `extents` has one number, at least 1, for each of
    them, and is empty for other actions.
    """

    name: str
    modes: tuple[int, ...] = ()
    extents: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class StageSyntax:
    """A line of a walk: the layout, the grid if it is another one from here on, and what is done there, in order.

    >>> StageSyntax(LayoutSyntax(()), grid=()) == StageSyntax(LayoutSyntax(()), grid=(1,))
    True
    """

    layout: LayoutSyntax
    grid: tuple[int, ...] | None = None
    actions: tuple[ActionSyntax, ...] = ()

    def __post_init__(self) -> None:
        if self.grid == ():  # one rank
            object.__setattr__(self, "grid", (1,))


@dataclass(frozen=True, slots=True)
class WalkSyntax:
    """The stages of a walk, at least one; between them the tensor moves.

    A grid that a stage stays on is not said again:

    >>> stages = [StageSyntax(LayoutSyntax(()), grid) for grid in ((4,), (4,), (2, 2), (4,))]
    >>> [stage.grid for stage in WalkSyntax(tuple(stages)).stages]
    [(4,), None, (2, 2), (4,)]
    """

    stages: tuple[StageSyntax, ...]

    def __post_init__(self) -> None:
        if not self.stages:
            raise ValueError("a walk has at least one stage: write for example WalkSyntax((StageSyntax(layout),))")
        grid, stages = None, []
        for stage in self.stages:
            stages.append(replace(stage, grid=None) if stage.grid == grid else stage)
            grid = stage.grid or grid
        object.__setattr__(self, "stages", tuple(stages))


def _says_nothing(view: tuple[ViewItem, ...]) -> bool:
    """Whether a view leaves every mode as and where it is: sorted names are the tensor's modes in order."""
    names = [item.name for item in view if isinstance(item, Name)]
    return len(names) == len(view) and names == sorted(names)
