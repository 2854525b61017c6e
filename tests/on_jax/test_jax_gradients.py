"""Gradients through programs of moves, contractions and transforms on devices are those of one device."""

from __future__ import annotations

import random

import jax
import numpy as np
import pytest
from devices import mesh_of
from jax import numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from marks import examples

import rote

GRIDS = [(8,), (2, 4), (4, 2), (2, 2, 2), (2,), (2, 2)]


class Program:
    """A random program of a tensor and of matrices, as functions of devices and of one; extents are 8 and 16.

    Each step is a function of a value and of the arrays, a pair of them: on devices, and on one.
    """

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.mesh = mesh_of(self.rng.choice(GRIDS))
        self.shape = [self.rng.choice([8, 16]) for _ in range(self.rng.choice([2, 2, 3]))]
        self.arrays, self.specs, self.steps = [], [], []

        self.spec = self.added(self.shape)
        for _ in range(self.rng.choice([2, 3, 4])):
            self.rng.choice([self.move, self.contract, self.contract, self.transform])()

    def pick_spec(self, order):
        modes = [list[str]() for _ in range(order)]
        for name in self.rng.sample(self.mesh.axis_names, len(self.mesh.axis_names)):
            if self.rng.random() < 0.8:
                self.rng.choice(modes).append(name)
        return P(*map(tuple, modes))

    def added(self, shape):
        """The PartitionSpec of one more argument."""
        self.arrays.append(self.numbers.standard_normal(shape) / np.sqrt(shape[0]))
        self.specs.append(self.pick_spec(len(shape)))
        return self.specs[-1]

    def move(self):
        before, self.spec = self.spec, self.pick_spec(len(self.shape))
        after = self.spec

        def moved(x, _):
            return rote.jax.redistribute(x, after, layout=before, mesh=self.mesh)

        self.steps.append((moved, lambda x, _: x))

    def contract(self):
        """A mode by a matrix, or by two."""
        mode, before, count = self.rng.randrange(len(self.shape)), self.spec, self.rng.choice([1, 1, 2])
        letters, first = "abc"[: len(self.shape)], len(self.arrays)
        terms = [letters[mode] + "y", "yz"][:count]
        for _ in terms:
            extent = self.rng.choice([8, 16])
            self.added([self.shape[mode], extent])
            self.shape[mode] = extent

        self.spec = self.pick_spec(len(self.shape))
        text = f"{letters},{','.join(terms)}->{letters.replace(letters[mode], terms[-1][1])}"
        after, specs = self.spec, [before, *self.specs[first:]]

        def contracted(x, arrays):
            factors = arrays[first : first + count]
            return rote.jax.einsum(text, x, *factors, layout=after, layouts=specs, mesh=self.mesh)

        def of_one(x, arrays):
            return jnp.einsum(text, x, *[factor.astype(x.dtype) for factor in arrays[first : first + count]])

        self.steps.append((contracted, of_one))

    def transform(self):
        """A Fourier transform along some modes, if it needs no padding."""
        axes = sorted(self.rng.sample(range(len(self.shape)), self.rng.randint(1, len(self.shape))))
        fft = rote.jax.FFT(tuple(self.shape), self.spec, self.mesh, "c16", axes, norm="ortho")
        if fft.source.shape == tuple(self.shape):
            transformed = lambda x, _: fft.forward(x.astype("c16"))  # noqa: E731
            self.steps.append((transformed, lambda x, _: jnp.fft.fftn(x.astype("c16"), axes=axes, norm="ortho")))

    def loss(self, side):
        """The function of the arrays, on devices or on one, whose gradient is taken."""

        def squared(arrays):
            value = arrays[0]
            for step in self.steps:
                value = step[side](value, arrays)
            weights = jnp.cos(jnp.arange(value.size)).reshape(value.shape)
            return jnp.sum(weights * jnp.abs(value) ** 2)

        return squared


def check(seed):
    """Law: the value and the gradients of a program on devices are those on one."""
    program = Program(seed)
    shardings = [NamedSharding(program.mesh, spec) for spec in program.specs]
    sharded = [jax.device_put(x, where) for x, where in zip(program.arrays, shardings, strict=True)]
    value, gradients = jax.jit(jax.value_and_grad(program.loss(0)))(sharded)
    right, expected = jax.jit(jax.value_and_grad(program.loss(1)))([*map(jnp.asarray, program.arrays)])

    np.testing.assert_allclose(value, right, rtol=1e-12, atol=1e-12 * abs(program.arrays[0]).max())
    for gradient, of_one in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(gradient, of_one, rtol=0, atol=1e-13 * max(1, abs(of_one).max()))


def check_many(seeds):
    """The law, for random programs."""
    for seed in seeds:
        try:
            check(seed)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


def test_gradients_are_those_of_one_device():
    """Law: gradients of random programs of moves, contractions and transforms are those of one device."""
    check_many(range(6))


@pytest.mark.slow
def test_more_gradients_are_those_of_one_device():
    """The same, for a hundred in all."""
    check_many(range(6, 6 + examples(94)))
