"""Slice sampling of several scalars at once, against known distributions."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from bayescrowd.posterior.conditionals.slices import slice_step


def test_slices_of_known_densities():
    # a normal, and the logarithm of a gamma of shape 3, from a bad start and a wrong width
    def log_density(x):
        return jnp.stack([-0.5 * ((x[0] - 2) / 0.1) ** 2, 3 * x[1] - jnp.exp(x[1])])

    @jax.jit
    def run(keys):
        def step(x, key):
            x = slice_step(key, x, log_density, width=1.0)
            return x, x

        return jax.lax.scan(step, jnp.array([0.0, 5.0]), keys)[1]

    draws = np.asarray(run(jax.random.split(jax.random.key(0), 8_000)), dtype=float)[1000::7]
    # successive draws of a slice sampler are nearly independent after seven steps
    assert stats.kstest(draws[:, 0], stats.norm(2, 0.1).cdf).pvalue > 1e-3
    assert stats.kstest(np.exp(draws[:, 1]), stats.gamma(3).cdf).pvalue > 1e-3
