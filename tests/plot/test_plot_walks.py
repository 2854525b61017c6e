"""Pictures of walks: a layout per stage that transforms, what is done there, and what moves in between."""

from __future__ import annotations

import pytest

import rote
from rote import plot
from rote.fft import compare


def words(figure: object) -> tuple[list[str], list[str]]:
    """The titles of the layouts, and the two words at each arrow."""
    axes = figure.axes  # type: ignore[attr-defined]
    texts = [text.get_text() for ax in axes if not ax.get_title() for text in ax.texts if text.get_text()]
    return [ax.get_title() for ax in axes if ax.get_title()], texts


def test_a_walk_is_drawn_stage_by_stage() -> None:
    """Each title is a layout and its actions, as in the lines of the walk; each arrow a step of its comments."""
    walk = compare((8, 8, 8), 4, "block[(0),(1),()]")[0].walk
    assert walk is not None
    titles, arrows = words(walk.plot())
    lines = [line.strip() for line in str(walk).splitlines()]
    assert [title.replace("\n", ": ") for title in titles] == [line for line in lines if not line.startswith("#")]
    assert [f"# {kind} {over}" for kind, over in zip(arrows[::2], arrows[1::2], strict=True)] == lines[1::2]


QUICK = rote.Machine(latency=0)


def test_stages_without_a_transform_are_left_out() -> None:
    """Of the six-step walk the ends are drawn and the stages that transform; where nothing moves, the arrow says so."""
    walk = next(
        choice.walk for choice in compare((16, 16, 4), 16, grid=(4, 4), machine=QUICK) if choice.name == "cyclic"
    )
    assert walk is not None
    titles, arrows = words(walk.plot())
    assert [title.splitlines()[-1] for title in titles[1:3]] == ["fft(a0, b0, c), twiddle", "fft(a2, b2)"]
    assert (titles[0], len(titles)) == ("[(0),(1),()]", 4)
    assert arrows == ["nothing", "moves", "alltoall", "over 0,1", "nothing", "moves"]


def test_too_many_modes_are_refused() -> None:
    """`stages` takes three modes of a layout at most, as all pictures do."""
    whole = rote.parse("[(),(),(),()]").on((2, 2, 2, 2), 2)
    with pytest.raises(rote.LayoutError, match="up to three modes"):
        plot.stages([whole], [], ["fft(0)"], [range(4)])
