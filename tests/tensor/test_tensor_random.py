"""Random numbers: those of NumPy's Philox, of the distributions that they say, and the same for ever."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import stats

import rote
from rote.random import _scaled as scaled

NUMBER = 40_000


def test_uniform_numbers_are_numpys():
    """Draw after draw, numbers in double precision are those of NumPy's generator of the same seed."""
    for seed in (0, 7, [1, 2], np.random.SeedSequence(3)):
        ours, theirs = rote.random.default_rng(seed), np.random.Generator(np.random.Philox(seed))
        for shape in ((5,), (), (3, 4), (0, 3), (7,)):
            np.testing.assert_array_equal(ours.random(shape).local, theirs.random(shape))
        np.testing.assert_array_equal(ours.uniform(-2, 3, 6).local, theirs.uniform(-2, 3, 6))


def test_numbers_never_change():
    """What a seed gives is pinned: a version that gives other numbers breaks the programs of users."""
    rng = rote.random.default_rng(2024)
    assert rng.random(2).local.tolist() == [0.2706129375647399, 0.6189835150824522]
    assert rng.integers(-5, 1000, 4).local.tolist() == [33, 645, 523, 31]
    assert rng.integers(0, 2**64 - 1, 1, endpoint=True, dtype="u8").local.tolist() == [14552780702806421673]
    assert rng.random(2, dtype="f4").local.tolist() == [0.6104684472084045, 0.7348474860191345]
    np.testing.assert_allclose(rng.normal(0, 1, 2).local, [-1.8369270209203616, 0.8528978099345692], rtol=1e-14)
    complex_one = rng.normal(1 + 1j, 2.0, 1, dtype="c16").local
    np.testing.assert_allclose(complex_one, [-0.9061280745437921 + 0.5160036418865724j], rtol=1e-14)
    np.testing.assert_allclose(rng.exponential(2.0, 2).local, [0.006984132257942019, 7.519127821709084], rtol=1e-14)
    assert rng.position == 2 + 8 + 2 + 2 + 4 + 2 + 2


def test_distributions():
    """Numbers are of the distributions that they say, by the test of Kolmogorov and Smirnov, and by their moments."""
    rng = rote.random.default_rng(1)
    uniform, normal = rng.uniform(2.0, 5.0, NUMBER).local, rng.normal(1.0, 3.0, NUMBER).local
    exponential, single = rng.exponential(0.5, NUMBER).local, rng.random(NUMBER, dtype="f4").local
    assert stats.kstest(uniform, "uniform", (2, 3)).pvalue > 0.01
    assert stats.kstest((normal - 1) / 3, "norm").pvalue > 0.01
    assert stats.kstest(exponential, "expon", (0, 0.5)).pvalue > 0.01
    assert stats.kstest(single, "uniform").pvalue > 0.01
    z = rng.standard_normal(NUMBER, dtype="c16").local
    assert abs(z.mean()) < 0.02 and abs(np.mean(abs(z) ** 2) - 1) < 0.02 and abs(np.mean(z**2)) < 0.02
    assert abs(np.corrcoef(normal[:-1], normal[1:])[0, 1]) < 0.02
    dice = np.bincount(rng.integers(1, 6, NUMBER, endpoint=True, dtype="i1").local)
    assert len(dice) == 7 and dice[0] == 0 and stats.chisquare(dice[1:]).pvalue > 0.01
    coins = rng.integers(2, shape=NUMBER, dtype=bool).local
    assert coins.dtype == bool and abs(coins.mean() - 0.5) < 0.02


def test_integers_are_fractionsscaled():
    """An integer below n is the floor of n times a fraction of 128 bits, for every n up to 2**64."""
    words = np.random.default_rng(1).integers(0, 2**64, (300, 2), dtype="u8")
    words[:3] = [[0, 0], [2**64 - 1, 2**64 - 1], [2**64 - 1, 0]]
    for number in (1, 2, 10, 2**32 + 7, 2**63, 2**64 - 1, 2**64):
        want = [(int(high) * 2**64 + int(low)) * number >> 128 for high, low in words]
        assert scaled(words[:, 0], words[:, 1], number).tolist() == want


@pytest.mark.parametrize("dtype", ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"))
def test_integers_of_all_of_a_dtype(dtype):
    """Law: bounds are those of NumPy: all numbers of a dtype can be drawn, and none beyond, by either kind of end."""
    least, most = (0, 1) if dtype == "?" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    words = np.random.Philox(5).random_raw(12).reshape(6, 2).tolist()

    def program(comm):
        for first, last in ((least, most), (most, most), (least, least), (0, most), (max(least, -3), most // 2)):
            want = [first + ((high * 2**64 + low) * (last - first + 1) >> 128) for high, low in words]
            for high, endpoint in ((last + 1, False), (last, True)):
                options = {"shape": 6, "layout": "[(0)]", "dtype": dtype, "endpoint": endpoint, "comm": comm}
                numbers = rote.random.default_rng(5).integers(first, high, **options)
                assert numbers.dtype == np.dtype(dtype) and numbers.to_global().tolist() == want
                if first == 0:
                    assert rote.random.default_rng(5).integers(high, **options).to_global().tolist() == want
                np.random.default_rng(1).integers(first, high, 6, dtype, endpoint)  # NumPy answers too
        for first, high in ((least - 1, most), (least, most + 2), (3, 3), (2**70, 2**71), (0, -(2**70))):
            with pytest.raises(ValueError, match=r"high|low"):
                np.random.default_rng(1).integers(first, high, 6, dtype)
            with pytest.raises(ValueError, match="no integers of"):
                rote.random.default_rng(5).integers(first, high, 6, dtype=dtype, comm=comm)

    for ranks in (1, 3):
        rote.run(program, ranks)


def test_large_blocks_are_made_in_windows():
    """Numbers of blocks larger than a window, near and far apart, are those of the whole."""

    def program(comm):
        rng = rote.random.default_rng(3)
        first = rng.random((3, 200_000), "[(),(0)]", comm=comm)
        return first.local, rng.random((40, 5000), "block[(),(0)]", comm=comm).local

    (a, b), (c, d) = rote.run(program, 2)
    theirs = np.random.Generator(np.random.Philox(3))
    whole = theirs.random((3, 200_000))
    np.testing.assert_array_equal(a, whole[:, ::2])
    np.testing.assert_array_equal(c, whole[:, 1::2])
    np.testing.assert_array_equal(np.concatenate([b, d], axis=1), theirs.random((40, 5000)))


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("permutation", "x[numpy.argsort(rng.random(len(x)))]"),
        ("shuffle", "x[...] = x[numpy.argsort(rng.random(len(x)))]"),
        ("choice", "numpy.take(x, rng.integers(len(x), shape=…), axis=0)"),
        ("spawn", "rote.random.default_rng([seed, k])"),
        ("poisson", "rote.DistTensor.from_global(numpy.random.default_rng(seed).poisson(…), layout)"),
    ],
)
def test_names_of_numpys_generators_say_what_to_write(name, cure):
    """Law: a name that NumPy's generators have and ours has not is refused with its like."""
    rng = rote.random.default_rng(1)
    with pytest.raises(AttributeError, match=re.escape(f"'Generator' object has no attribute '{name}'\nwrite {cure}")):
        getattr(rng, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'sun'$"):
        rng.sun  # noqa: B018


def test_cures_of_names_give_permutations_and_choices():
    """Law: what the cures write is a permutation of the rows, and a choice of them, the same on any number of ranks."""
    array = np.arange(14).reshape(7, 2)

    def program(comm):
        rng, x = rote.random.default_rng(1), rote.DistTensor.from_global(array, "block[(0),()]", comm)
        with rote.config(implicit="allow"):
            order = np.argsort(rng.random(len(x), comm=comm))
            chosen = np.take(x, rng.integers(len(x), shape=3, comm=comm), axis=0).to_global()
            permuted = x[order].to_global()
            x[...] = x[order]
        return permuted.tolist(), chosen.tolist(), x.to_global().tolist()

    (permuted, chosen, shuffled), *others = rote.run(program, 1) + rote.run(program, 3)
    assert sorted(permuted) == array.tolist() != permuted == shuffled and all(row in permuted for row in chosen)
    assert others == [(permuted, chosen, shuffled)] * 3


def test_size_is_called_shape():
    """Law: each method that draws refuses NumPy's `size` by naming `shape`, and uses up no words."""
    rng = rote.random.default_rng(1)
    for name, args in {
        "random": (),
        "uniform": (0, 1),
        "standard_normal": (),
        "normal": (0, 1),
        "integers": (3,),
    }.items():
        with pytest.raises(TypeError, match=rf"{name} takes shape, not size\nwrite rng\.{name}\(…, shape=\(2, 3\)\)"):
            getattr(rng, name)(*args, size=(2, 3))
    with pytest.raises(TypeError, match=r"write rng\.exponential\(…, shape=3\)"):
        rng.exponential(size=3)
    assert rng.position == 0


def test_refusals():
    """What cannot be drawn is refused, and uses up no words."""
    rng = rote.random.default_rng(1)
    for error, says, call in (
        (TypeError, "float32 or float64", lambda: rng.random(3, dtype="i4")),
        (TypeError, "dtype='c16'", lambda: rng.normal(0, 1, 3, dtype="G")),
        (TypeError, "integer dtype", lambda: rng.integers(3, shape=2, dtype="f8")),
        (ValueError, "scale is 0 or more", lambda: rng.normal(0, -1, 3)),
        (ValueError, "scale is 0 or more", lambda: rng.exponential(float("nan"), 3)),
        (ValueError, "no integers of int8 from 0 to 128", lambda: rng.integers(129, shape=3, dtype="i1")),
        (ValueError, "no integers", lambda: rng.integers(3, 3)),
        (TypeError, r"not from 0 to 1\.5", lambda: rng.integers(1.5, shape=3)),
        (TypeError, "low is one number for all elements, not 'a'", lambda: rng.uniform("a", 1, 3)),
        (TypeError, "low is one real number", lambda: rng.uniform(1j, 2, 3)),
        (TypeError, "loc is one real number", lambda: rng.normal(1j, 2, 3)),
        (TypeError, "scale is one real number", lambda: rng.normal(1, 2j, 3, dtype="c16")),
        (ValueError, "from the lower to the higher bound, not from 2 to 1", lambda: rng.uniform(2, 1, 3)),
        (ValueError, "higher bound", lambda: rng.uniform(float("nan"), 1, 3)),
        (OverflowError, "finite range, not from 0 to inf", lambda: rng.uniform(0, float("inf"), 3)),
        (OverflowError, "finite range", lambda: rng.uniform(-1e308, 1e308, 3)),
        (TypeError, "low is one number for all elements", lambda: rng.uniform(np.zeros(3), 1, 6)),
        (TypeError, "high is one number", lambda: rng.integers(0, [3, 4], 2)),
        (TypeError, "scale is one number", lambda: rng.exponential(np.ones(3), 3)),
        (TypeError, "loc is one number", lambda: rng.normal(rote.DistTensor.zeros(3, "[()]"), 1, 3)),
        (rote.LayoutError, "order", lambda: rng.random(3, "[(0),()]")),
    ):
        with pytest.raises(error, match=says):
            call()
    assert rng.position == 0 and repr(rng) == "Generator(Philox, position=0)"
