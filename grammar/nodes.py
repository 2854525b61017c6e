"""The syntax nodes of layouts and walks: frozen and hashable, and canonical, so that equal meanings are equal nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import index
from typing import Any, Generic, Literal, SupportsIndex, TypeAlias, TypeVar, get_args

__all__ = ["BLOCK", "CASTS", "CONVOLVE", "CYCLIC", "RESIZES", "TRANSFORMS", "TWIDDLE", "ActionSyntax", "Entry"]
__all__ += ["Fuse", "Kind", "LayoutSyntax", "Name", "StageSyntax", "Tile", "TransitionSyntax", "ViewItem"]
__all__ += ["WalkSyntax"]

Op: TypeAlias = Literal["sum", "max", "min", "prod"]
OPS: tuple[Op, ...] = ("sum", "max", "min", "prod")

# How block(ceil) and block(floor) round the beginnings of their parts.
Rounding: TypeAlias = Literal["ceil", "floor"]
ROUNDINGS: tuple[Rounding, ...] = ("ceil", "floor")

# The actions of a stage of a walk: transforms along modes; casts from real to complex and back; resizes, which change
# extents at the end of a mode, in the middle of a spectrum, from a spectrum to half of it and back, or for a
# convolution with a chirp; and two that name no modes: ``twiddle``, and ``convolve`` with that chirp.
Fourier: TypeAlias = Literal["fft", "ifft", "rfft", "irfft"]
Trigonometric: TypeAlias = Literal["dct1", "dct2", "dct3", "dct4", "dst1", "dst2", "dst3", "dst4"]
TransformName: TypeAlias = Literal[Fourier, Trigonometric, "dht", "r2hc", "hc2r"]
TRANSFORMS: tuple[str, ...] = get_args(TransformName)
CastName: TypeAlias = Literal["complex", "real"]
CASTS: tuple[str, ...] = get_args(CastName)
ResizeName: TypeAlias = Literal["resize", "resample", "fold", "chirp"]
RESIZES: tuple[str, ...] = get_args(ResizeName)
TWIDDLE = "twiddle"
CONVOLVE = "convolve"

SPACE = " \t\r\n"
MAX_TEXT = 10_000  # characters of a layout, a transition, a stage
MAX_WALK = 50_000  # characters of a walk with all its comments
MAX_MODES = 64  # modes of a layout, names of a view
MAX_GRID_MODES = 64  # grid modes are 0 … 63
MAX_NUMBER = 2**63  # sizes and roots are below it


def exact(value: SupportsIndex) -> int:
    """Take an integer, which may be NumPy's, as a plain int.

    A bool or a float is refused: it can equal an integer, hash included, and a lookup would take one for the other.
    """
    if type(value) is int:
        return value
    if type(value).__name__ == "bool":  # Python's, or NumPy's, which NumPy before 2.3 takes for an index
        raise TypeError(f"{value!r} is not an integer")
    return int(index(value))


def exact_all(values: Iterable[SupportsIndex], name: str) -> tuple[int, ...]:
    """Take the integers of a node as plain ints; the error calls them `name`."""
    try:
        return tuple(map(exact, values))
    except TypeError:
        raise TypeError(f"{name} are integers, not {values!r}") from None


@dataclass(frozen=True, slots=True, order=True)
class Kind:
    """The way in which an entry deals out indices.

    ``cyclic`` is ``cyclic(1)``: ``("cyclic", (1,))``; ``cyclic(b)``: ``("cyclic", (b,))``; balanced ``block``:
    ``("block", ())``; ``block(b)``: ``("block", (b,))``; ``block(3,5,2)``: ``("block", (3, 5, 2))``; ``block(ceil)``:
    ``("ceil", ())``; ``block(floor)``: ``("floor", ())``. `at` is the coordinate of the first tile: ``cyclic(4,at=2)``
    is ``("cyclic", (4,), 2)``.

    Raises
    ------
    ValueError
        The name is unknown, or does not take such sizes.
    TypeError
        A size is not an integer.

    Examples
    --------
    >>> from rote.grammar import BLOCK, CYCLIC, Kind
    >>> Kind("cyclic") == CYCLIC == Kind("cyclic", (1,)), Kind("block") == BLOCK
    (True, True)
    >>> CYCLIC.is_cyclic, CYCLIC.tile, CYCLIC.fits, Kind("block", (3, 5, 2)).fits
    (True, 1, True, False)
    """

    name: Literal["cyclic", "block", "ceil", "floor"]
    sizes: tuple[int, ...] = ()
    at: int = 0

    def __post_init__(self) -> None:
        if self.name not in ("cyclic", "block", *ROUNDINGS):
            raise ValueError(f"a kind is cyclic, block, ceil or floor, not {self.name!r}")

        least = int(self.name == "cyclic")
        sizes = exact_all(self.sizes, f"the sizes of {self.name}") or (1,) * least
        if not all(least <= b < MAX_NUMBER for b in sizes):
            raise ValueError(f"the sizes of {self.name} are integers of at least {least}, below 2**63, not {sizes}")
        if self.name == "cyclic" and len(sizes) > 1:
            raise ValueError(f"cyclic has one size, not {sizes}")
        if self.name in ROUNDINGS and sizes:
            raise ValueError(f"block({self.name}) has no sizes, not {sizes}")

        (at,) = exact_all((self.at,), "coordinates of a first tile")
        if not (0 <= at < MAX_NUMBER and (at == 0 or self.name == "cyclic")):
            raise ValueError(f"at is 0 or more, below 2**63, and 0 for all kinds but cyclic, not {at} for {self.name}")

        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "at", at)

    @property
    def is_cyclic(self) -> bool:
        """Whether a coordinate may hold several tiles; otherwise, it holds one block."""
        return self.name == "cyclic"

    @property
    def tile(self) -> int:
        """The number of indices in a tile, or 0 if it follows from the extent or differs from part to part."""
        return self.sizes[0] if len(self.sizes) == 1 else 0

    @property
    def fits(self) -> bool:
        """Whether this kind splits every extent: no sizes of parts have to add up to it."""
        return self.is_cyclic or not self.sizes


CYCLIC = Kind("cyclic", (1,))
BLOCK = Kind("block")


@dataclass(frozen=True, slots=True)
class Entry:
    """A grid mode that splits a mode, and how: ``0:block``.

    Parameters
    ----------
    grid_mode : int
        The number of the grid mode.
    kind : Kind, optional
        How it deals out indices.

    Examples
    --------
    >>> from rote.grammar import BLOCK, CYCLIC, Entry
    >>> Entry(0) == Entry(0, CYCLIC), Entry(1, BLOCK).kind.name
    (True, 'block')
    """

    grid_mode: int
    kind: Kind = CYCLIC

    def __post_init__(self) -> None:
        if type(self.grid_mode) is not int:
            object.__setattr__(self, "grid_mode", *exact_all((self.grid_mode,), "grid modes"))


@dataclass(frozen=True, slots=True)
class Name:
    """A mode of the tensor, read as it is: ``a``.

    Parameters
    ----------
    name : str
        The name of the mode.

    Examples
    --------
    >>> from rote.grammar import Name, parse_syntax
    >>> parse_syntax("b a: [(0),()]").view, Name("b").names
    ((Name(name='b'), Name(name='a')), ('b',))
    """

    name: str

    @property
    def names(self) -> tuple[str]:
        """The one name."""
        return (self.name,)


@dataclass(frozen=True, slots=True)
class Fuse:
    """Two or more modes of the tensor read as one, the rightmost fastest: ``(a b)``.

    Parameters
    ----------
    names : tuple[str, ...]
        The names of the modes, the fastest last.

    Examples
    --------
    >>> from rote.grammar import parse_syntax
    >>> parse_syntax("(a b): [(0)]").view
    (Fuse(names=('a', 'b')),)
    """

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """One mode of the tensor read as several, the rightmost fastest: ``(r s=4)``.

    A part has a name and a size. At most one part has no size (None): its size follows from those of the others.

    Parameters
    ----------
    parts : tuple[tuple[str, int | None], ...]
        Per part, its name and its size; the fastest last.

    Examples
    --------
    >>> from rote.grammar import parse_syntax
    >>> (tile,) = parse_syntax("(r s=4): [(0),()]").view
    >>> tile, tile.given
    (Tile(parts=(('r', None), ('s', 4))), [4])
    """

    parts: tuple[tuple[str, int | None], ...]

    def __post_init__(self) -> None:
        if not all(1 <= size < MAX_NUMBER for size in exact_all(self.given, "the sizes of parts")):
            raise ValueError(f"the sizes of parts are integers of at least 1, below 2**63, not {self.given}")
        parts = tuple((name, None if size is None else exact(size)) for name, size in self.parts)
        object.__setattr__(self, "parts", parts)

    @property
    def given(self) -> list[int]:
        """The sizes of parts that have one."""
        return [size for _, size in self.parts if size is not None]


ViewItem: TypeAlias = Name | Fuse | Tile


def modes_read(view: tuple[ViewItem, ...]) -> list[tuple[str, ...]]:
    """List the modes of a view, each with the names that it reads."""
    modes: list[tuple[str, ...]] = []
    for item in view:
        if isinstance(item, Tile):
            modes += [(name,) for name, _ in item.parts]
        else:
            modes.append(item.names)
    return modes


def order_read(view: tuple[ViewItem, ...]) -> int:
    """Count the modes of the tensor that a view reads."""
    return sum(1 if isinstance(item, Tile) else len(item.names) for item in view)


@dataclass(frozen=True, slots=True)
class LayoutSyntax:
    """A layout as written, with defaults resolved.

    `modes`: the entries of each mode, in the order of refinement. `view`: how the tensor's modes are read; None if they
    are read as they are. `op`, `partial`: the value is the op over the grid modes `partial`. `rooted`: pairs of a grid
    mode and its only coordinate that holds data.

    Examples
    --------
    >>> from rote.grammar import Fuse, LayoutSyntax, Name
    >>> as_it_is = LayoutSyntax(modes=((), ()), view=(Name("a"), Name("b")), op="max", partial=())
    >>> as_it_is == LayoutSyntax(((), ()))
    True
    >>> LayoutSyntax(((),), view=(Fuse(("a", "b")),)).tensor_order
    2
    """

    modes: tuple[tuple[Entry, ...], ...]
    view: tuple[ViewItem, ...] | None = None
    op: Op = "sum"
    partial: tuple[int, ...] = ()
    rooted: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if self.view is not None:
            names = [item.name for item in self.view if isinstance(item, Name)]
            if len(names) == len(self.view) and names == sorted(names):  # all modes, in their order
                object.__setattr__(self, "view", None)

        # Without partial modes the op means nothing, so that equal meanings are equal nodes.
        if not self.partial:
            object.__setattr__(self, "op", "sum")
        partial = exact_all(self.partial, "grid modes")
        rooted = (exact_all(pair, "a grid mode and its root") for pair in self.rooted)

        object.__setattr__(self, "partial", tuple(sorted(partial)))
        object.__setattr__(self, "rooted", tuple((g, at) for g, at in sorted(rooted)))

    @property
    def tensor_order(self) -> int:
        """The order of the tensor, which a view may change."""
        return len(self.modes) if self.view is None else order_read(self.view)


@dataclass(frozen=True, slots=True)
class TransitionSyntax:
    """A transition as written: ``source -> target``.

    Examples
    --------
    >>> from rote.grammar import parse_syntax, unparse
    >>> unparse(parse_syntax("[(0) ()] -> [() (0)]").target)
    '[(),(0)]'
    """

    source: LayoutSyntax
    target: LayoutSyntax


LayoutClass = TypeVar("LayoutClass", bound=LayoutSyntax)
TransitionClass = TypeVar("TransitionClass", bound=TransitionSyntax)


@dataclass(frozen=True, slots=True)
class ActionSyntax:
    """An action in a stage of a walk: one of TRANSFORMS, CASTS or RESIZES along `modes`, in order; TWIDDLE; CONVOLVE.

    A resize gives each of the `modes` its new extent. ``resize`` cuts or pads with zeros at the end of the mode, and
    ``resample`` in the middle of the spectrum along it. ``fold`` keeps the half spectrum that a real signal needs, or
    pads that half to the whole. ``chirp`` pads a signal for a convolution, or cuts the result. `modes` are numbers of
    modes of the stage's layout, hence of its view if it has one. `extents` has one number, at least 1, for each mode of
    a resize, and is empty for other actions.

    Parameters
    ----------
    name : str
        The name of the action.
    modes : tuple[int, ...], optional
        The modes along which it acts.
    extents : tuple[int, ...], optional
        The new extents, if it changes them.

    Examples
    --------
    >>> from rote.grammar import parse_walk
    >>> parse_walk("[(0),()]: fft(1), resample(1=6)").stages[0].actions[1]
    ActionSyntax(name='resample', modes=(1,), extents=(6,))
    """

    name: str
    modes: tuple[int, ...] = ()
    extents: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "modes", exact_all(self.modes, "the modes of an action"))
        object.__setattr__(self, "extents", exact_all(self.extents, "the extents of an action"))


N = TypeVar("N")


@dataclass(frozen=True, slots=True)
class StageSyntax(Generic[N]):
    """A line of a walk: the layout, as a node or a value of its own, the grid if it changes here, and the actions.

    Examples
    --------
    >>> from rote.grammar import LayoutSyntax, StageSyntax
    >>> StageSyntax(LayoutSyntax(()), grid=()) == StageSyntax(LayoutSyntax(()), grid=(1,))
    True
    """

    layout: N
    grid: tuple[int, ...] | None = None
    actions: tuple[ActionSyntax, ...] = ()

    def __post_init__(self) -> None:
        if self.grid is not None:  # a grid without modes is one rank
            object.__setattr__(self, "grid", exact_all(self.grid, "the modes of a grid") or (1,))


@dataclass(frozen=True, slots=True)
class WalkSyntax:
    """The stages of a walk, at least one; between stages the tensor moves.

    Examples
    --------
    A stage on the same grid as the one before does not name the grid again:

    >>> from rote.grammar import LayoutSyntax, StageSyntax, WalkSyntax
    >>> stages = [StageSyntax(LayoutSyntax(()), grid) for grid in ((4,), (4,), (2, 2), (4,))]
    >>> [stage.grid for stage in WalkSyntax(tuple(stages)).stages]
    [(4,), None, (2, 2), (4,)]
    """

    stages: tuple[StageSyntax[Any], ...]

    def __post_init__(self) -> None:
        if not self.stages:
            raise ValueError("a walk has at least one stage: write for example WalkSyntax((StageSyntax(layout),))")

        grid, stages = None, []
        for stage in self.stages:
            if stage.grid == grid:
                stage = replace(stage, grid=None)
            stages.append(stage)
            grid = stage.grid or grid

        object.__setattr__(self, "stages", tuple(stages))
