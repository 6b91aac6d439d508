"""Categorical draws against their probabilities."""

import jax
import jax.numpy as jnp
import numpy as np

from bayescrowd.draws.categorical import draw_categories


def test_draws_have_their_probabilities():
    probabilities = np.array([0.5, 0.3, 0.2, 0.0])
    n = 40_000
    weights = jnp.log(jnp.tile(jnp.asarray(7 * probabilities), (n, 1)))
    draws = np.bincount(draw_categories(jax.random.key(0), weights), minlength=4)
    error = np.sqrt(n * probabilities * (1 - probabilities))
    assert draws[3] == 0
    np.testing.assert_array_less(np.abs(draws - n * probabilities)[:3], 4 * error[:3])
