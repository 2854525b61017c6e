"""Configs found by timing: as exact as the usual ones, the same on all ranks, and kept."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from families import numbers
from hurry import hurry
from marks import mpi_parts, parts_on
from parts import share

import rote
from rote import DistTensor, wisdom
from rote.fft import FFT
from rote.fft.families.choose import walk_of
from rote.fft.kernels import choose as timing
from rote.fft.kernels.backends import mkl, usual_library, versions
from rote.fft.kernels.backends.library import KernelConfig, NumPy
from rote.fft.kernels.kernel import Kernel
from rote.fft.program.operations import KernelWork, operations
from rote.fft.request import Options, as_request
from rote.runtime import world
from rote.runtime.choose import SECONDS, TimeRatio
from rote.runtime.comm.threads import alone


def check(comm, part):
    """Transforms with timed plans are numpy.fft's there and back, and replicas of a spectrum have the same bits."""
    world = product(
        (("D", None), ("d", None), ("d", "dct2")),
        (((12, 10, 14), "block[(0),(),()]"), ((7, 6), "[(0),()]")),
    )
    for (code, kinds), (shape, layout) in share(world, part, 6, comm.size, of=2):
        whole = f"[{','.join(['()'] * len(shape))}]"
        f = FFT(shape, layout, comm.size, comm, code, kinds=kinds, output=whole, tune="measure")
        array = numbers(shape, code)
        x = DistTensor.from_global(array, layout, comm, comm.size)
        X = f.forward(x)
        if kinds is None:
            want = np.fft.fftn(array) if code == "D" else np.fft.rfftn(array)
            assert np.abs(X.local - want).max() <= 1e-13 * np.abs(want).max()
        assert np.abs(f.backward(X).local - x.local).max(initial=0) <= 1e-13
        assert len(set(comm.allgather_object(X.local.tobytes()))) == 1
    with pytest.raises(rote.LayoutError, match="tune is one of model, measure, patient; not 'fast'"):
        FFT((4, 4), comm=comm, tune="fast")


def configs(comm, tune="measure", threads=1, shape=(5, 6, 7)):
    """The configs of a slab transform, of which some ranks hold nothing if they are many."""
    source = rote.parse("block[(0),(),()]").on(shape, (comm.size,))
    walk = walk_of(source, as_request(shape, (0, 1, 2), "fft", np.dtype("D")), "slab", None)
    works = [
        operation.run for operation in operations(walk, comm, False, Options(tune, threads), lambda walk, block: block)
    ]
    found = [work.kernel.config for work in works if isinstance(work, KernelWork)]
    assert len(set(comm.allgather_object(tuple(found)))) == 1
    return found


@pytest.mark.parametrize("ranks", (2, *(pytest.param(ranks, marks=pytest.mark.slow) for ranks in (1, 6))))
def test_recipes_are_remembered(ranks, monkeypatch, tmp_path):
    """Law: what was timed once is not timed again, by other ranks of another program either; all ranks do the same."""
    monkeypatch.setenv("ROTE_WISDOM", str(tmp_path / "kept"))
    contests = []
    best = timing._Search.best
    monkeypatch.setattr(timing._Search, "best", lambda *args: contests.append(args) or best(*args))
    hurry(monkeypatch, 0.05, 0.1)
    first = rote.run(configs, ranks)
    assert len(contests) == ranks * len(first[0]) > 0
    assert rote.run(configs, ranks) == first
    assert len(contests) == ranks * len(first[0])
    patient = rote.run(configs, ranks, args=("patient",))
    assert len(contests) == 2 * ranks * len(first[0])
    assert rote.run(configs, ranks) == patient
    assert len(contests) == 2 * ranks * len(first[0])
    usual = usual_library("fft", np.dtype("D"))
    expected = [KernelConfig(usual, threads=2)] * min(ranks, 2)
    assert rote.run(configs, ranks, args=("model", 2)) == [expected] * ranks
    monkeypatch.setenv("ROTE_WISDOM", "")
    rote.run(lambda comm: [configs(comm) for _ in range(3)], ranks)
    assert len(contests) == 3 * ranks * len(first[0])


def test_of_large_blocks_a_part_is_timed(monkeypatch):
    """A block is cut where no point of a transform is lost, or halved along other modes; a huge one along all."""
    monkeypatch.setattr(timing, "_LARGEST", 1 << 25)
    for shape, axes, want in (
        ((8, 16, 16), (1, 2), (8, 16, 16)),
        ((1000, 256, 256), (1, 2), (32, 256, 256)),
        ((3, 1 << 20, 4), (1, 2), (1, 1 << 20, 4)),
        ((256, 128, 256), (0,), (256, 32, 256)),
        ((128, 9, 1 << 20), (0,), (128, 9, 1 << 10)),
        ((1024, 1024, 1024), (0, 1, 2), (64, 1024, 1024)),
        ((0, 1024, 1024), (1, 2), (0, 1024, 1024)),
    ):
        kernel = Kernel("fft", axes, shape, shape, np.dtype("D"))
        assert timing._bounded(kernel).shape == timing._bounded(kernel).out_shape == want
    half = Kernel("rfft", (0, 1), (1 << 14, 1 << 14), (1 << 14, (1 << 13) + 1), np.dtype("d"))
    assert timing._bounded(half).shape == (1 << 12, 1 << 14)
    assert timing._bounded(half).out_shape == (1 << 12, (1 << 13) + 1)


def test_a_damaged_recipe_is_ignored(monkeypatch, tmp_path):
    """A decision that is no config is ignored with a warning, and made again."""
    monkeypatch.setenv("ROTE_WISDOM", str(tmp_path))
    hurry(monkeypatch, 0.1, 0.2)
    (first,) = configs(alone())
    (path,) = tmp_path.glob("*.json")
    kept = json.loads(path.read_text())
    kept["decision"]["threads"] = "1"
    path.write_text(json.dumps(kept))
    with pytest.warns(wisdom.WisdomWarning, match="a part of a config is of another type"):
        assert isinstance(configs(alone())[0], type(first))


def test_a_library_that_fails_is_not_taken(monkeypatch):
    """A library that cannot be imported, or that refuses a block on one rank, is no candidate on any."""
    hurry(monkeypatch, 30, 30)
    arguments, prepare = [], NumPy.prepare

    def refuses(self, row, axes, ends, *args):
        arguments.append(ends[0].shape)
        if 3 in ends[0].shape:  # the block of one rank, before the move
            raise RuntimeError
        return prepare(self, row, axes, ends, *args)

    monkeypatch.setattr(NumPy, "prepare", refuses)
    monkeypatch.setattr(TimeRatio, "is_better", True)  # any other than the usual one is taken
    for name in ("ducc0", "scipy"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(mkl, "_interface", lambda: None)
    assert {one.library for one in rote.run(configs, 2)[0]} == {"pyfftw"}
    assert {(3, 6, 7), (2, 6, 7)} <= {*arguments}


def test_the_model_imports_no_other_library():
    """Without timing no package of transforms is imported but pyfftw, or its compiled part alone."""
    code = (
        "import sys, rote; from rote.fft import FFT; f = FFT((4, 6), dtype='f8')\n"
        "f.forward(rote.DistTensor.zeros((4, 6), f.input_layout))\n"
        "print({'ducc0', 'mkl_fft', 'scipy'} & {*sys.modules})"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


@pytest.mark.parametrize(("ranks", "part"), parts_on(1, 2, 4))
def test_on_ranks_of_this_process(ranks, part, monkeypatch):
    """Timed plans on in-process ranks."""
    hurry(monkeypatch, 0.03, 0.06)
    rote.run(check, ranks, (part,))


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "part"), mpi_parts(2))
def test_on_mpi_ranks(mpirun, ranks, part):
    """Timed plans on MPI ranks, each of which times by itself."""
    done = mpirun(ranks, Path(__file__), part, timeout=120)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "right\n")


def test_what_is_kept_is_read(tmp_path, monkeypatch):
    """Law: a decision on a kernel is taken without timing anything."""
    monkeypatch.setenv("ROTE_WISDOM", str(tmp_path))
    config = {"library": "numpy", "tile": 0, "part": 4096, "tiled": False, "fused": True, "threads": 1, "plans": ""}
    kernel = {"what": "kernel", "kind": "fft", "axes": [0], "dtype": "<c16", "shapes": [[[8, 2], [8, 2]]]}
    kernel |= {"after_move": False, "stays": False, "threads": 1, "libraries": versions(), "ranks": 1}
    wisdom.remember(wisdom.key(kernel | {"hosts": 1, "tune": "measure"}), config)
    monkeypatch.setattr(timing, "choose", None)
    block = Kernel("fft", (0,), (8, 2), (8, 2), np.dtype("D"))
    (chosen,) = timing.tuned([block], [timing.Position()], alone(), Options("measure"))
    assert chosen.config == KernelConfig(**config)


if __name__ == "__main__":
    SECONDS["kernel"]["measure"] = 0.05
    check(world(), sys.argv[1])
    if world().rank == 0:
        print("right")
