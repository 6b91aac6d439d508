"""Conditionals of the model of numeric judgements: sweeps must leave the posterior as it is."""

import numpy as np
import pytest

from bayescrowd.models.judgements import DEGREES, Prior
from bayescrowd.posterior.conditionals.judgements import (
    JudgementState,
    JudgementStatistics,
    sweep_judgements,
)

COUNTS = np.array([[2, 1], [2, 1], [0, 3], [2, 2]], dtype=float)


def state_from_prior(rng, prior):
    scale = (1 / prior.spread**2) / rng.standard_gamma(0.5, size=2)
    degrees = int(DEGREES + 1)
    normal = rng.normal(size=(degrees, 2)) * np.sqrt(scale / (2 * DEGREES))
    half = prior.n_pseudo / 2
    *internal, common, residual = half * prior.pseudo_variance / rng.standard_gamma(half, size=4)
    coefficient = np.sqrt(common) * rng.normal(size=2)
    mean = prior.mean * rng.normal(size=3)
    precision = normal.T @ normal
    return JudgementState(mean, precision, np.array(internal), scale, coefficient, common, residual)


def data_given(rng, state):
    own = rng.normal(size=(len(COUNTS), 2)) @ np.linalg.cholesky(np.linalg.inv(state.precision)).T
    residual = np.sqrt(state.residual_variance) * rng.normal(size=len(COUNTS))
    joint = state.mean + np.column_stack([own, own @ state.coefficient + residual])
    means = joint[:, :2] + rng.normal(size=COUNTS.shape) * np.sqrt(
        state.internal_variance / np.maximum(COUNTS, 1)
    )
    squares = state.internal_variance * 2 * rng.standard_gamma(np.maximum(COUNTS - 1, 0) / 2)
    patterns, which = np.unique(COUNTS, axis=0, return_inverse=True)
    members = [np.flatnonzero(which.ravel() == p) for p in range(len(patterns))]
    sums = COUNTS * means
    return JudgementStatistics(COUNTS, sums, squares, joint[:, 2], patterns, members, np.ones(3))


def statistics(state):
    covariance = np.linalg.inv(state.precision)
    spread = np.sqrt(np.diag(covariance))
    return [
        *np.log(state.internal_variance),
        *np.log(spread),
        *np.log(state.scale),
        covariance[0, 1] / spread[0] / spread[1],
        *np.tanh(state.mean / 5),
        *np.tanh(state.coefficient),
        np.prod(np.tanh(state.coefficient)),
        np.log(state.coefficient_variance),
        np.log(state.residual_variance),
    ]


def geweke(n_sweeps, sweep_prior):
    """Largest z-score between the prior and a chain that draws parameters and data in turn.

    Geweke (2004), 'Getting it right': if sweeps leave the posterior as it is, so does the chain
    the prior.
    """
    prior = Prior(spread=1.0, mean=2.0, n_pseudo=6.0, pseudo_variance=0.5)
    rng = np.random.default_rng(0)
    expected = np.array([statistics(state_from_prior(rng, prior)) for _ in range(1000)])
    state = state_from_prior(rng, prior)
    found = []
    for _ in range(n_sweeps):
        state = sweep_judgements(rng, state, data_given(rng, state), sweep_prior(prior))
        found.append(statistics(state))
    batches = np.array(found).reshape(40, -1, expected.shape[1]).mean(axis=1)
    error = np.hypot(batches.std(axis=0) / np.sqrt(39), expected.std(axis=0) / np.sqrt(1000))
    return np.abs((batches.mean(axis=0) - expected.mean(axis=0)) / error).max()


# The largest of 15 z-scores of 40 batch means exceeds 4.5 once in a thousand runs.


@pytest.mark.parametrize(
    "n_sweeps", [pytest.param(600), pytest.param(12_000, marks=pytest.mark.slow)]
)
def test_sweeps_leave_prior_and_data_as_they_are(n_sweeps):
    assert geweke(n_sweeps, lambda prior: prior) < 4.5


@pytest.mark.slow
def test_control_another_prior_is_noticed():
    assert geweke(600, lambda prior: prior._replace(pseudo_variance=1.0)) > 4.5
