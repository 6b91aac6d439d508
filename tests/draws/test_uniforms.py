"""Uniform numbers against JAX's own generator."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32

from bayescrowd.draws.uniforms import draw_uniforms

KEY = jax.random.key(20)


@pytest.mark.parametrize(("n_numbers", "n_words"), [(8, 8), (7, 8)])
def test_words_are_those_of_threefry(n_numbers, n_words):
    words = threefry_2x32(jax.random.key_data(KEY), jnp.arange(n_words, dtype=jnp.uint32))
    expected = (np.asarray(words) >> 9) / 2**23
    drawn = draw_uniforms(KEY, (n_numbers,))
    np.testing.assert_array_equal(drawn, expected[:n_numbers].astype(np.float32))


@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3)])
def test_shapes(shape):
    drawn = np.asarray(draw_uniforms(KEY, shape))
    assert drawn.shape == shape
    assert ((drawn >= 0) & (drawn < 1)).all()


def test_keys_of_other_generators_are_used_as_jax_does():
    key = jax.random.key(1, impl="rbg")
    np.testing.assert_array_equal(draw_uniforms(key, (4,)), jax.random.uniform(key, (4,)))


def test_old_keys_are_the_same_keys():
    drawn = draw_uniforms(jax.random.PRNGKey(3), (4,))
    np.testing.assert_array_equal(drawn, draw_uniforms(jax.random.key(3), (4,)))
