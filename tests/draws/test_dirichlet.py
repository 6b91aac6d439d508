"""Gamma and Dirichlet draws compared with their distributions, including extreme shapes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bayescrowd.draws.dirichlet import log_dirichlet, log_gamma

N_DRAWS = 40_000
LEAST_P_VALUE = 1e-4
"""Level of each test; eight tests at this level fail for one key in 1,250."""

draw_gammas = jax.jit(log_gamma)
draw_rows = jax.jit(log_dirichlet)


def p_value(shape, distribution):
    draws = draw_gammas(jax.random.key(5), jnp.full(N_DRAWS, shape))
    return stats.kstest(np.exp(np.asarray(draws, dtype=float)), distribution.cdf).pvalue


@pytest.mark.parametrize("shape", [0.05, 0.5, 1.0, 1.2, 3.0, 50.0, 1e4, 1e6])
def test_gamma_draws_have_the_gamma_distribution(shape):
    assert p_value(shape, stats.gamma(shape)) > LEAST_P_VALUE


def test_control_another_shape_is_detected():
    assert p_value(3.0, stats.gamma(3.1)) < LEAST_P_VALUE


def test_dirichlet_draws_have_beta_marginals():
    concentration = jnp.tile(jnp.array([0.7, 2.0, 5.3], dtype=jnp.float32), (N_DRAWS, 1))
    rows = np.exp(np.asarray(draw_rows(jax.random.key(1), concentration), dtype=float))
    np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=1e-5)
    for column, alpha in enumerate([0.7, 2.0, 5.3]):
        marginal = stats.beta(alpha, 8.0 - alpha)
        assert stats.kstest(rows[:, column], marginal.cdf).pvalue > LEAST_P_VALUE


def test_dirichlet_entries_have_the_covariance():
    alpha = np.array([0.7, 2.0, 5.3])
    concentration = jnp.tile(jnp.asarray(alpha, dtype=jnp.float32), (N_DRAWS, 1))
    rows = np.exp(np.asarray(draw_rows(jax.random.key(2), concentration), dtype=float))
    mean = alpha / alpha.sum()
    expected = (np.diag(mean) - np.outer(mean, mean)) / (alpha.sum() + 1)
    # a covariance of variables below 1 has a standard error of at most 1 / (2 sqrt(n))
    np.testing.assert_allclose(np.cov(rows.T), expected, atol=4 * 0.5 / np.sqrt(N_DRAWS))


@pytest.mark.parametrize("concentration", [1e-3, 1e-2, 1e8])
def test_extreme_concentrations_stay_finite(concentration):
    rows = draw_rows(jax.random.key(0), jnp.full((N_DRAWS, 3), concentration, dtype=jnp.float32))
    assert np.isfinite(rows).all()
    np.testing.assert_allclose(np.exp(rows).sum(axis=1), 1, rtol=1e-5)


def test_draws_depend_on_the_key_alone():
    shape = jnp.full(N_DRAWS, 2.0)
    first, again, other = (draw_gammas(jax.random.key(seed), shape) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    # Of independent pairs, 1e-5 are as close as the tolerance by chance: 0.4 are expected.
    assert np.isclose(first, other).sum() < 5


def test_small_arrays_have_the_same_distribution():
    shape = jnp.full(100, 1.5)
    keys = jax.random.split(jax.random.key(3), 100)
    draws = jax.jit(lambda keys: jax.lax.map(lambda key: log_gamma(key, shape), keys))(keys)
    draws = np.exp(np.asarray(draws, dtype=float)).ravel()
    assert stats.kstest(draws, stats.gamma(1.5).cdf).pvalue > LEAST_P_VALUE


def test_draws_of_one_call_are_uncorrelated():
    # refused entries are drawn again by another round of the generator
    draws = np.asarray(draw_gammas(jax.random.key(9), jnp.full(N_DRAWS, 1.0)))
    for lag in (1, 2, 5000, 5032):
        correlation = np.corrcoef(draws[:-lag], draws[lag:])[0, 1]
        assert abs(correlation) < 4 / np.sqrt(N_DRAWS - lag)
