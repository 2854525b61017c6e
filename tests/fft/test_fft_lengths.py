"""Transforms of other lengths than the tensor's (s=), spectra of fewer points (resample=), and what travels then."""

from __future__ import annotations

from pathlib import Path

import lengths
import numpy as np
import pytest
from families import numbers
from marks import make_checks, mpi_parts, parts_of

import rote
from rote import DistTensor
from rote.fft import FFT
from rote.fft.families.choose import walk_of
from rote.fft.request import as_request

D = np.dtype("D")
pytestmark = pytest.mark.filterwarnings("ignore::rote.GatherWarning")  # resampled spectra of one axis

PROGRAM = Path(lengths.__file__)


@pytest.mark.parametrize(("ranks", "check", "args"), parts_of(lengths.CHECKS, 1, 2, 3, 4, 6))
def test_on_ranks_of_this_process(ranks, check, args):
    """Transforms of other lengths on in-process ranks do what they must."""
    rote.run(check, ranks, args)


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "part"), mpi_parts(), indirect=["job"])
def test_on_mpi_ranks(job, part):
    """On MPI ranks they do too."""
    make_checks(job, PROGRAM, lengths.CHECKS, part)


@pytest.mark.parametrize(
    ("points", "kept"), [(12, 8), (8, 12), (9, 6), (6, 9), (7, 4), (4, 7), (10, 10), (5, 1), (2, 1)]
)
@pytest.mark.parametrize("code", "Dd")
def test_resample_is_scipys(points, kept, code):
    """The spectrum that is kept is that of `scipy.signal.resample`, which resamples the signal."""
    import scipy.signal  # a second, which most processes that collect this test need not take

    array = numbers((points,), code)
    spectrum = FFT(points, dtype=code, norm="forward", resample=kept).forward(
        DistTensor.from_global(array, "block[(0)]")
    )
    want = scipy.signal.resample(array, kept)
    want = np.fft.fft(want, norm="forward") if code == "D" else np.fft.rfft(want, norm="forward")
    assert np.abs(spectrum.to_global() - want).max() < 1e-14


def test_what_is_cut_never_travels_nor_do_zeros():
    """Law: every move is that of the small tensor: signals travel before they are padded, spectra once they are cut."""
    grid, layouts = (2, 2), ("block[(0),(1),()]", "block[(0),(),(1)]", "block[(),(0),(1)]")

    def moved(shape, **lengths):
        source = rote.parse(layouts[0]).on(shape, grid)
        walk = walk_of(source, as_request(shape, (0, 1, 2), "fft", D, **lengths))
        assert [str(stage.before.layout) for stage in walk.stages if stage.done] == [*layouts]
        return [plan.source.shape for plan in walk.moves], [plan.cost.bytes for plan in walk.moves]

    fine, coarse = (96, 96, 96), (64, 64, 64)
    shapes, sent = moved(fine, resample=coarse)
    assert shapes == [(96, 96, 64), (96, 64, 64)]
    plans = [
        rote.compile(f"{here} -> {there}", shape=shape, grid=grid, dtype=D)
        for here, there, shape in zip(layouts, layouts[1:], shapes, strict=False)
    ]
    assert sent == [plan.cost.bytes for plan in plans]
    shapes, _ = moved(coarse, s=fine)
    assert shapes == [(64, 64, 96), (64, 96, 96)]


def test_a_cut_signal_does_not_travel():
    """Of blocks that are cut, each rank keeps what it had, though the blocks are uneven then."""
    source = rote.parse("block[(0),()]").on((16, 12), 4)
    walk = walk_of(source, as_request((16, 12), (0, 1), "fft", D, s=(6, 5)))
    assert str(walk).splitlines()[0] == "  block[(0),()]: resize(0=6, 1=5)"
    assert [plan.source.shape for plan in walk.moves] == [(6, 5)]
    assert str(walk.moves[0].source.layout) == "block(4,2,0,0)[(0),()]"


@pytest.mark.parametrize("kind", ("fft", "rfft"))
@pytest.mark.parametrize(
    "lengths", ({"s": (12, 9, 16)}, {"resample": (4, 9, 6)}, {"s": (16, 8, 6), "resample": (8, 4, 5)})
)
@pytest.mark.parametrize("layout", ("block[(0),(1),()]", "[(0),(1),()]", "[(0),(),(1:block)]"))
def test_walks_print_what_they_read(kind, lengths, layout):
    """Law: the text of a walk with other extents is a walk, the same one."""
    source = rote.parse(layout).on((8, 8, 8), (2, 2))
    wanted = as_request((8, 8, 8), (0, 1, 2), kind, D if kind == "fft" else np.dtype("d"), **lengths)
    walk = walk_of(source, wanted)
    assert walk_of(source, wanted, str(walk)) == walk
    assert walk.inverse().inverse() == walk
