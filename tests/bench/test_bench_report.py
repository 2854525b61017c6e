"""What is made of measured times: ratios, what scaling pays, the libraries by name, and pictures."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from rote.bench import report
from rote.bench.cases import Case, Round, Timing, Work
from rote.bench.machine import build, fftw_text
from rote.bench.report import figure

PEERS = {"mpi4py-fft", "dtfft", "fftw-mpi", "pfft", "pyfftw", "scipy", "ducc0", "mkl_fft"}


def line(group: str, variant: str, work: Work, *seconds: float) -> Timing:
    """A contestant that took some seconds; missing if it took none."""
    on = "MPI ranks" if group == "rote" else "threads"
    case = Case(group, variant, on, work.ranks, work, None, lambda comm: Round(1.0))
    return Timing(case, list(seconds), "" if seconds else "is away")


def test_ratios() -> None:
    """A median over Rote's of the same name, or over its fastest; nothing, where Rote did not run."""
    work, other = (Work(shape, np.dtype("c16"), 2) for shape in ((8, 8), (9, 9)))
    lines = [
        line("rote", "slab", work, 1.0, 2.0, 9.0),
        line("rote", "auto", work, 1.0),
        line("mpi4py-fft", "slab", work, 4.0, 8.0),
        line("scipy", "", work, 3.0),
        line("scipy", "", other, 3.0),
        line("ducc0", "", work),
    ]
    assert [report.ratio(each, lines) for each in lines[:5]] == [1.0, 1.0, 3.0, 3.0, None]
    assert report.missing(lines) == ["missing: ducc0 is away"]
    assert report.summary(lines).splitlines()[1].split() == ["c2c", "8x8", "c16", "1.00", "s", "6.00", "3.00"]
    assert report.missing([*lines, line("ducc0", "", other, 1.0)]) == ["missing: ducc0 is away (c2c 8x8 c16)"]


def test_what_scaling_pays() -> None:
    """Speed-up and efficiency are the first time over the time, of the same contestant and the same work per rank."""
    works = [Work((8, 8), np.dtype("f8"), p) for p in (1, 2)]
    lines = [line(group, "", work, 6.0 / work.ranks) for work in works for group in ("rote", "scipy")]
    rows = [row.split() for row in report.scaling(lines, weak=False).splitlines()[1:]]
    assert [(row[0], row[1], row[-2]) for row in rows] == [
        *(("rote", "1", "1.00"), ("rote", "2", "2.00"), ("scipy", "1", "1.00"), ("scipy", "2", "2.00"))
    ]
    weak = [line("rote", "", Work((8 * p, 8), np.dtype("f8"), p), 6.0 * p) for p in (1, 2)]
    assert [row.split()[-2] for row in report.scaling(weak, weak=True).splitlines()[1:]] == ["1.00", "0.50"]


def test_builds_are_those_that_run() -> None:
    """The FFTW that a figure names is the one that the package is linked to, with its instructions, not another's."""
    import pyfftw

    fftw = pyfftw.fftw_version
    assert build("pyfftw").startswith(f"pyfftw {pyfftw.__version__} with FFTW {fftw}")
    assert build("no-such-package") == "no-such-package"
    assert fftw_text("fftw-3.3.10-sse2-avx-avx2-avx2_128") == "FFTW 3.3.10 (sse2, avx, avx2, avx2_128)"
    work = Work((8, 8), np.dtype("c16"), 2)
    lines = [line(group, "", work, 1.0) for group in ("rote", "pyfftw", "scipy", "memcpy")]
    for each, library in zip(lines, ("a 1 with FFTW 2", "a 1 with FFTW 2", "b 3", ""), strict=True):
        each.library = library
    assert [row.split(maxsplit=2) for row in report.libraries(lines).splitlines()] == [
        ["rote,", "pyfftw", "a 1 with FFTW 2"],
        ["scipy", "b", "3"],
    ]
    assert [each["library"] for each in report.as_json(lines, {})["entries"]] == ["a 1 with FFTW 2"] * 2 + ["b 3", ""]


@pytest.mark.parametrize("scaling", [False, True])
def test_nothing_in_a_picture_lies_on_another(scaling: bool) -> None:
    """Panels, with all that they say, lie apart and inside; every curve has a colour and a marker of its own."""
    contestants = [("rote", name) for name in ("slab", "pencil", "auto")] + [("threads", "slab"), ("threads", "auto")]
    contestants += [(name, "") for name in sorted(PEERS)]
    families = [
        [
            line(group, variant, Work(shape, np.dtype("c16"), p), (n + 2) * 1e-3 / p)
            for p in ((1, 2, 4, 8) if scaling else (4,))
            for n, (group, variant) in enumerate(contestants)
        ]
        for shape in ((64, 64, 64), (128, 128, 128), (96, 160, 224))
    ]
    drawn = figure(families, "what is measured\nand where", scaling)
    drawn.draw_without_rendering()
    boxes = [ax.get_tightbbox() for ax in drawn.axes]
    assert len(boxes) == 3
    for upper, lower in pairwise(boxes):
        assert upper.y0 > lower.y1
    assert all(box.x0 >= 0 and box.x1 <= drawn.bbox.x1 + 1 and box.y0 >= 0 for box in boxes)
    assert boxes[0].y1 < drawn._suptitle.get_window_extent().y0
    if scaling:
        for ax in drawn.axes:
            colours = [curve.get_color() for curve in ax.get_lines()]
            assert len(colours) == len(set(colours)) == len(contestants)
            styles = {(c.get_marker(), c.get_linestyle()) for c in ax.get_lines()}
            assert len(styles) >= 8
